//! 5G QoS Identifiers (TS 23.501 5.7.4).

/// Standardised 5QIs of flows with a guaranteed bit rate, delay-critical ones included (TS 23.501 table 5.7.4-1).
const GBR: [u8; 21] = [1, 2, 3, 4, 65, 66, 67, 71, 72, 73, 74, 76, 82, 83, 84, 85, 86, 87, 88, 89, 90];

/// Whether flows of that 5QI have a guaranteed bit rate. Only standardised values are known here.
pub const fn is_gbr(five_qi: u8) -> bool {
    let mut at = 0;
    while at < GBR.len() {
        if GBR[at] == five_qi {
            return true;
        }
        at += 1;
    }
    false
}

/// Standardised 5QIs of flows without a guaranteed bit rate (TS 23.501 table 5.7.4-1).
const NON_GBR: [u8; 10] = [5, 6, 7, 8, 9, 10, 69, 70, 79, 80];

/// Whether the 5QI is standardised: gNBs know its characteristics without being sent them.
pub fn is_standardised(five_qi: u8) -> bool {
    is_gbr(five_qi) || NON_GBR.contains(&five_qi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_5qis_are_classified() {
        assert!([1, 4, 65, 82, 90].into_iter().all(is_gbr));
        assert!([1, 5, 9, 80, 90].into_iter().all(is_standardised));
        assert!(![0, 11, 68, 91, 128, 255].into_iter().any(is_standardised));
        assert!(![5, 6, 7, 8, 9, 10, 69, 70, 79, 80, 128, 254].into_iter().any(is_gbr));
    }
}
