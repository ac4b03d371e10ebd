//! Look-up of more keys than a set has entries.

use super::*;

/// Sessions whose TEIDs and addresses select the same set.
const SESSIONS: u32 = 12;

fn ue(number: u32) -> [u8; 4] {
    [10, 45, 0x10 * number as u8, 2]
}

fn numbered(number: u32) -> Session {
    let mut session = session();
    session.id = SessionId(u64::from(number) + 1);
    session.ue = UeAddress::v4(ue(number).into());
    let teid = Teid(TEID + 0x4000 * number);
    session.pdrs[0].source = Source::Tunnel { teid, direction: Direction::Uplink };
    session
}

/// The verdicts on a packet up and one down of a session.
fn verdicts(lab: &Lab, number: u32) -> [u32; 2] {
    let packet = ipv4(ue(number), SERVER, 64, 17, &udp(5000, 7000, b"x"));
    let down = ipv4(SERVER, ue(number), 64, 17, &udp(7000, 5000, b"x"));
    [lab.run(&tunnelled(&gpdu(TEID + 0x4000 * number, &packet))).0, lab.run(&to_ue(&down)).0]
}

#[test]
fn keys_that_find_their_set_full_are_found() {
    let Some(mut lab) = lab(&numbered(0)) else { return };
    let publish = |lab: &mut Lab, number| {
        let rules = lab.sessions.install(&numbered(number)).rules;
        lab.tables.publish(compile(&rules, N3, Some(0)), rules, State::Forward, None).unwrap()
    };
    let mut published: Vec<_> = (1..SESSIONS).map(|number| publish(&mut lab, number)).collect();
    for number in 0..SESSIONS {
        assert_eq!(verdicts(&lab, number), [REDIRECT; 2], "{number}");
    }
    // The first of these are in the set, the last in the hash tables.
    for number in [1, 2, SESSIONS - 1] {
        let at = published.iter().position(|one| one.rules.state.id.0 == u64::from(number) + 1).unwrap();
        lab.tables.withdraw(published.remove(at));
    }
    for number in 0..SESSIONS {
        let is_gone = [1, 2, SESSIONS - 1].contains(&number);
        assert_eq!(verdicts(&lab, number), [if is_gone { PASS } else { REDIRECT }; 2], "{number}");
    }
    published.push(publish(&mut lab, 1));
    assert_eq!(verdicts(&lab, 1), [REDIRECT; 2], "in the place that became free");
}
