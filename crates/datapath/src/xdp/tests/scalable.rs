//! Packets of scalable flows (L4S, RFC 9331) above the session's rate: marked by a virtual queue instead of queued.

use super::ecn::with_tos;
use super::*;

const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;

/// The program with a session of 10 Mbit/s in each direction, above which packets wait.
fn slow_lab(change: impl FnOnce(&mut Session)) -> Option<Lab> {
    let mut session = session();
    let rates = Rates { uplink: 10_000_000, downlink: 10_000_000 };
    session.qers[0] = Qer { mbr: Some(rates), qfi: None, ..session.qers[0].clone() };
    change(&mut session);
    lab_of(&session, 0, super::Settings { shapes: true, ..super::Settings::default() })
}

/// The ECN fields of the packets that the program forwards before it passes one to user space.
fn forwarded(lab: &Lab, frame: &[u8], ecn_of: fn(&[u8]) -> u8) -> Vec<u8> {
    let mut fields = Vec::new();
    loop {
        let (verdict, sent) = lab.run(frame);
        if verdict == PASS {
            return fields;
        }
        assert_eq!(verdict, REDIRECT);
        fields.push(ecn_of(&sent) & 3);
        assert!(fields.len() < 1_000, "more than its rate");
    }
}

fn long(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    ipv4(from, to, 64, 17, &udp(5000, 7000, &[7; 1000]))
}

fn uplink(ecn: u8) -> Vec<u8> {
    tunnelled(&gpdu(TEID, &with_tos(long(UE, SERVER), ecn)))
}

#[test]
fn a_scalable_flow_is_marked_before_its_packets_wait() {
    let Some(lab) = slow_lab(|_| {}) else { return };
    let up = forwarded(&lab, &uplink(ECT_1), |sent| sent[15]);
    assert_eq!(lab.volume().uplink_packets as usize, up.len(), "all are counted");
    // Packets of both directions wait after one had to.
    let Some(lab) = slow_lab(|_| {}) else { return };
    let down = forwarded(&lab, &to_ue(&with_tos(long(SERVER, UE), ECT_1)), |sent| {
        // Ethernet, IPv4, UDP, GTP-U without extension headers.
        assert_eq!(sent[15] & 3, sent[14 + 20 + 8 + 8 + 1] & 3, "the outer field is that of the packet");
        sent[15]
    });
    for fields in [up, down] {
        let first = fields.iter().position(|field| *field == CE).expect("a marked packet");
        assert!(first > 10, "within the rate packets are not marked: {fields:?}");
        assert!(fields[first..].iter().all(|field| *field == CE) && fields.len() > first + 1, "{fields:?}");
    }
}

#[test]
fn other_flows_wait_without_marks() {
    for frame in [uplink(ECT_0), uplink(0)] {
        let Some(lab) = slow_lab(|_| {}) else { return };
        assert!(forwarded(&lab, &frame, |sent| sent[15]).iter().all(|field| *field != CE));
    }
}

#[test]
fn guaranteed_rates_are_shared_in_user_space() {
    let guaranteed = |session: &mut Session| {
        session.qers[0].gbr = Some(Rates { uplink: 5_000_000, downlink: 5_000_000 });
    };
    let Some(lab) = slow_lab(guaranteed) else { return };
    assert!(forwarded(&lab, &uplink(ECT_1), |sent| sent[15]).iter().all(|field| *field == ECT_1));
}
