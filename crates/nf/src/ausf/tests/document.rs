//! Documents of authentications. Every other test of the AUSF runs through them, too.

use super::*;
use crate::testing::check_documents;

const GOLDEN: &[(&str, &str)] = &[
    ("ausf-challenged-1", include_str!("../../../tests/golden/ausf-challenged-1.hex")),
    ("ausf-eap-1", include_str!("../../../tests/golden/ausf-eap-1.hex")),
];

#[test]
fn documents_of_earlier_versions_are_read_and_damaged_ones_refused() {
    let (mut aka, mut eap) = (bench(), bench());
    challenge(&mut aka);
    eap_aka_prime::challenged(&mut eap);
    let only = |bench: &Bench<Ausf>| bench.nf.documents()[0].octets().to_vec();
    let written = [("ausf-challenged", only(&aka)), ("ausf-eap", only(&eap))];
    check_documents(GOLDEN, &written, Ausf::repack);
}
