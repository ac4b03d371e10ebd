//! Tests that `Debug` of every message shows no key and no complete identity.

use crate::examples::bodies::{KEY, SECRET};
use crate::examples::{problems, request, response};
use pith_sbi::{Operation, Outcome};

/// Keys, expected responses, and the digits of the SUPI, of SUCIs and of PEIs in the examples.
const HIDDEN: [&str; 7] =
    [KEY, SECRET, "999700000000001", "0000000001", "5c1d5c1d", "353490069873319", "4370816125816151"];

#[track_caller]
fn assert_hides(shown: &str) {
    for hidden in HIDDEN {
        assert!(!shown.contains(hidden), "{hidden} shows in {shown}");
    }
}

#[test]
fn requests_hide_keys_and_identities() {
    for &operation in Operation::ALL {
        let request = request(operation);
        assert_hides(&format!("{request:?}"));
        assert_hides(&format!("{:?}", request.to_http()));
    }
}

#[test]
fn answers_and_errors_hide_keys_and_identities() {
    for &outcome in Outcome::ALL {
        let response = response(outcome);
        assert_hides(&format!("{response:?}"));
        assert_hides(&format!("{:?}", response.to_http()));
    }
    for (_, problem) in problems() {
        assert_hides(&format!("{problem:?} {problem}"));
    }
}
