//! Documents of authentications. Every other test of the AUSF runs through them, too.

use super::*;
use crate::testing::{check_documents, print_document};

const GOLDEN: &[(&str, &str)] = &[
    ("ausf-challenged-1", include_str!("../../../tests/golden/ausf-challenged-1.hex")),
    ("ausf-eap-1", include_str!("../../../tests/golden/ausf-eap-1.hex")),
];

#[test]
fn documents_of_earlier_versions_are_read_and_damaged_ones_refused() {
    check_documents(GOLDEN, Ausf::repack);
}

#[test]
#[ignore = "prints documents for tests/golden"]
fn print_documents() {
    let mut bench = bench();
    challenge(&mut bench);
    print_document("ausf-challenged-1", bench.nf.documents()[0].octets());
    let mut bench = super::bench();
    eap_aka_prime::challenged(&mut bench);
    print_document("ausf-eap-1", bench.nf.documents()[0].octets());
}
