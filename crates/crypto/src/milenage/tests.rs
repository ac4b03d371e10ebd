//! Tests with all twenty test sets of TS 35.208 4.3.

use super::*;
use crate::vectors::sets;

#[test]
fn every_set_of_ts_35_208_holds() {
    let mut count = 0;
    for mut set in sets(include_str!("../../vectors/milenage.txt")) {
        let name = set.text();
        let k: SubscriberKey = set.value();
        let rand: Rand = set.value();
        let sqn = Sqn::from_bytes(set.array());
        let amf: ManagementField = set.value();
        let op: Op = set.value();
        let opc: Opc = set.value();
        assert_eq!(opc_from_op(&k, &op), opc, "set {name}");

        let milenage = Milenage::new(&k, &opc);
        assert_eq!(milenage.f1(&rand, sqn, amf), set.array(), "set {name}");
        assert_eq!(milenage.f1_star(&rand, sqn, amf), set.array(), "set {name}");
        let response = milenage.f2345(&rand);
        assert_eq!(response.res, set.array(), "set {name}");
        assert_eq!(response.ak, set.array(), "set {name}");
        assert_eq!(response.ck, set.value(), "set {name}");
        assert_eq!(response.ik, set.value(), "set {name}");
        assert_eq!(milenage.f5_star(&rand), set.array(), "set {name}");
        count += 1;
    }
    assert_eq!(count, 20);
}
