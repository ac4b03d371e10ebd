//! Messages as scapy 2.8 builds them, and the server's answers.

use super::*;

const UE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x77);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x45, 0x202, 0, 0, 0, 0);
const DNS: [Ipv6Addr; 1] = [Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x53)];
const DUID: [u8; 18] = [0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// IA_NA 5, IA_PD 7; requests DNS servers, search list and prefix exclusion.
const SOLICIT: &str = "\
    60000000004a1101fe800000000000000000000000000077ff02000000000000000000000001000202220223004ad8890110\
    20300001000a00030001020000000077000800020000000600060017001800430003000c0000000500000000000000000019\
    000c000000070000000000000000";

/// The answer: no address; 2001:db8:45:200::/56 without 2001:db8:45:202::/64; preference 255.
const ADVERTISE: &str = "\
    6000000000921140fe800000000000000000000000000001fe800000000000000000000000000077022302220092e28f0210\
    20300001000a000300010200000000770002001200040102030405060708090a0b0c0d0e0f10000300120000000500000000\
    00000000000d000200020019002f00000007ffffffffffffffff001a001fffffffffffffffff3820010db800450200000000\
    000000000000430002400200070001ff0017001020010db8000000000000000000000053";

/// Solicit with Rapid Commit, IA_PD 7 and 8, and IA_TA 9.
const RAPID_COMMIT: &str = "\
    6000000000461101fe800000000000000000000000000077ff020000000000000000000000010002022202230046d8d90110\
    20380001000a00030001020000000077000e00000019000c0000000700000000000000000019000c00000008000000000000\
    00000004000400000009";

/// IA_PD 7 with 2001:db8:45:200::/56; requests prefix exclusion.
const REQUEST: &str = "\
    6000000000691101fe800000000000000000000000000077ff0200000000000000000000000100020222022300695fb10310\
    20310001000a000300010200000000770002001200040102030405060708090a0b0c0d0e0f10000800020000000600020043\
    00190029000000070000000000000000001a0019ffffffffffffffff3820010db8004502000000000000000000";

/// The same without an option request.
const RENEW: &str = "\
    6000000000631101fe800000000000000000000000000077ff0200000000000000000000000100020222022300635e070510\
    20320001000a000300010200000000770002001200040102030405060708090a0b0c0d0e0f10000800020000001900290000\
    00070000000000000000001a0019ffffffffffffffff3820010db8004502000000000000000000";

/// IA_PD 7.
const REBIND: &str = "\
    6000000000301101fe800000000000000000000000000077ff020000000000000000000000010002022202230030d44c0610\
    20330001000a000300010200000000770008000200000019000c000000070000000000000000";

/// IA_PD 7, IA_NA 5.
const RELEASE: &str = "\
    6000000000561101fe800000000000000000000000000077ff020000000000000000000000010002022202230056918b0810\
    20340001000a000300010200000000770002001200040102030405060708090a0b0c0d0e0f100008000200000019000c0000\
    000700000000000000000003000c000000050000000000000000";

/// IA_NA 5 with an address.
const DECLINE: &str = "\
    60000000005c1101fe800000000000000000000000000077ff02000000000000000000000001000202220223005c60760910\
    20350001000a000300010200000000770002001200040102030405060708090a0b0c0d0e0f10000300280000000500000000\
    000000000005001820010db80045020200000000000000050000000000000000";

/// IA_NA 5 with 2001:db8:45:202::5.
const CONFIRM: &str = "\
    6000000000461101fe800000000000000000000000000077ff020000000000000000000000010002022202230046a6010410\
    20360001000a00030001020000000077000300280000000500000000000000000005001820010db800450202000000000000\
    00050000000000000000";

/// IA_NA 5 with 2001:db8:45:201::5.
const CONFIRM_OTHER_LINK: &str = "\
    6000000000461101fe800000000000000000000000000077ff020000000000000000000000010002022202230046a6010410\
    20370001000a00030001020000000077000300280000000500000000000000000005001820010db800450201000000000000\
    00050000000000000000";

/// IA_NA 5 without an address.
const CONFIRM_NOTHING: &str = "\
    60000000002a1101fe800000000000000000000000000077ff02000000000000000000000001000202220223002ad6760410\
    20370001000a000300010200000000770003000c000000050000000000000000";

/// Information-request for DNS servers.
const INFORMATION_REQUEST: &str = "\
    6000000000261101fe800000000000000000000000000077ff020000000000000000000000010002022202230026e49a0b0a\
    0b0c0001000a00030001020000000077000800020000000600020017";

/// The answer.
const INFORMATION_REPLY: &str = "\
    6000000000441140fe800000000000000000000000000001fe8000000000000000000000000000770223022200447a78070a\
    0b0c0001000a000300010200000000770002001200040102030405060708090a0b0c0d0e0f100017001020010db800000000\
    0000000000000053";

/// Relay-forward with a Solicit.
const RELAY: &str = "\
    6000000000401101fe800000000000000000000000000077ff020000000000000000000000010002022302230040c1440c00\
    20010db8000000000000000000000001fe80000000000000000000000000000900090012010000010001000a000300010200\
    00000077";

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn server(delegation: u8) -> Dhcpv6Server<'static> {
    Dhcpv6Server { duid: &DUID, ue: UeAddress { delegation, ..UeAddress::v6(PREFIX) }, dns: &DNS }
}

fn answer_of(packet: &[u8], server: &Dhcpv6Server<'_>) -> Option<Vec<u8>> {
    Dhcpv6Message::read(packet, &Flow::of(packet)?)?.answer(server)
}

/// The type of the answer, and its options after the identifiers of client and server.
fn answered(hex: &str, delegation: u8) -> (u8, Vec<(u16, Vec<u8>)>) {
    let request = octets(hex);
    let packet = answer_of(&request, &server(delegation)).expect("an answer");
    assert_eq!(packet[8..40], [ROUTER.octets(), UE.octets()].concat());
    assert!(transport_holds(&packet[..40], UDP, &packet[40..]));
    assert_eq!(packet[40..44], [2, 35, 2, 34]);
    assert_eq!(packet[49..52], request[49..52], "the transaction");
    let options = read_options(&packet[52..]).unwrap();
    assert_eq!((options[0].0, options[1]), (option::CLIENT_ID, (option::SERVER_ID, &DUID[..])));
    (packet[48], options[2..].iter().map(|(code, value)| (*code, value.to_vec())).collect())
}

/// An IA_PD with this prefix of an infinite lifetime.
fn lease(id: u8, length: u8, prefix: &str, rest: &[u8]) -> (u16, Vec<u8>) {
    let prefix = prefix.parse::<Ipv6Addr>().unwrap().octets();
    let head = [0, 26, 0, 25 + rest.len() as u8];
    let value = [&[0, 0, 0, id][..], &[0xff; 8], &head, &[0xff; 8], &[length], &prefix, rest].concat();
    (option::IA_PD, value)
}

fn refused(code: u16, id: u8, status: u8) -> (u16, Vec<u8>) {
    let times = if code == option::IA_TA { &[][..] } else { &[0; 8] };
    (code, [&[0, 0, 0, id][..], times, &[0, 13, 0, 2, 0, status]].concat())
}

fn status(code: u8) -> (u16, Vec<u8>) {
    (option::STATUS_CODE, vec![0, code])
}

const EXCLUSION: [u8; 6] = [0, 67, 0, 2, 64, 2];

#[test]
fn the_answers_are_those_that_another_program_builds() {
    for (request, answer) in [(SOLICIT, ADVERTISE), (INFORMATION_REQUEST, INFORMATION_REPLY)] {
        assert_eq!(answer_of(&octets(request), &server(8)).unwrap(), octets(answer));
    }
}

#[test]
fn a_router_that_can_exclude_a_prefix_gets_the_whole_one() {
    let granted = lease(7, 56, "2001:db8:45:200::", &EXCLUSION);
    assert_eq!(answered(REQUEST, 8), (message::REPLY, vec![granted]));
    // By 12 bits: 2 octets of subnet.
    let granted = lease(7, 52, "2001:db8:45::", &[0, 67, 0, 3, 64, 0x20, 0x20]);
    assert_eq!(answered(REQUEST, 12).1[0].1[..granted.1.len()], granted.1);
}

#[test]
fn another_router_gets_the_half_without_the_links_prefix() {
    let stale = [0, 0, 0, 0, 0, 0, 0, 0, 56];
    let (kind, options) = answered(RENEW, 8);
    let granted = lease(7, 57, "2001:db8:45:280::", &[]).1;
    assert_eq!((kind, options.len()), (message::REPLY, 1));
    assert_eq!(options[0].1[..granted.len()], granted);
    // What it had before is no longer valid.
    let other = &options[0].1[granted.len()..];
    assert_eq!((&other[..4], &other[4..13], other.len()), (&[0, 26, 0, 25][..], &stale[..], 29));
    assert_eq!(answered(REBIND, 1).1, [lease(7, 64, "2001:db8:45:203::", &[])]);
    assert_eq!(answered(REBIND, 16).1, [lease(7, 49, "2001:db8:45:8000::", &[])]);
}

#[test]
fn the_first_association_gets_the_prefix_at_once_if_the_client_permits_it() {
    let expected = vec![
        lease(7, 57, "2001:db8:45:280::", &[]),
        refused(option::IA_PD, 8, 6),
        refused(option::IA_TA, 9, 2),
        (option::RAPID_COMMIT, vec![]),
    ];
    assert_eq!(answered(RAPID_COMMIT, 8), (message::REPLY, expected));
}

#[test]
fn a_session_with_a_prefix_of_64_bits_delegates_none() {
    let (kind, options) = answered(RAPID_COMMIT, 0);
    assert_eq!((kind, &options[0]), (message::ADVERTISE, &refused(option::IA_PD, 7, 6)));
    assert_eq!(answered(REQUEST, 0), (message::REPLY, vec![refused(option::IA_PD, 7, 6)]));
    assert_eq!(answered(RELEASE, 0).1[1], refused(option::IA_PD, 7, 3));
}

#[test]
fn a_release_ends_nothing_and_addresses_have_no_binding() {
    let expected = vec![status(0), refused(option::IA_NA, 5, 3)];
    assert_eq!(answered(RELEASE, 8), (message::REPLY, expected.clone()));
    assert_eq!(answered(DECLINE, 8), (message::REPLY, expected));
}

#[test]
fn addresses_of_the_link_are_confirmed() {
    assert_eq!(answered(CONFIRM, 8), (message::REPLY, vec![status(0)]));
    assert_eq!(answered(CONFIRM_OTHER_LINK, 8), (message::REPLY, vec![status(4)]));
    assert_eq!(answer_of(&octets(CONFIRM_NOTHING), &server(8)), None);
}

#[test]
fn dns_servers_are_sent_if_there_are_any() {
    let without = Dhcpv6Server { dns: &[], ..server(8) };
    let answer = answer_of(&octets(INFORMATION_REQUEST), &without).unwrap();
    assert_eq!(read_options(&answer[52..]).unwrap().len(), 2);
}

#[test]
fn messages_for_others_and_of_relay_agents_are_discarded() {
    assert_eq!(answer_of(&octets(RELAY), &server(8)), None);
    let other = Dhcpv6Server { duid: &[0, 4, 9], ..server(8) };
    for named in [REQUEST, RENEW, RELEASE, DECLINE] {
        assert_eq!(answer_of(&octets(named), &other), None);
    }
    assert!(answer_of(&octets(REBIND), &other).is_some());
    // Messages of servers.
    for kind in [message::ADVERTISE, message::REPLY, 10, 13, 0, 255] {
        assert_eq!(answer_of(&changed(SOLICIT, |message| message[0] = kind), &server(8)), None, "{kind}");
    }
}

/// A message with a change, and with correct lengths and checksum.
fn changed(hex: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut packet = octets(hex);
    let mut message = packet.split_off(48);
    change(&mut message);
    let length = 8 + message.len() as u16;
    put(&mut packet, 4, &length.to_be_bytes());
    put(&mut packet, 44, &length.to_be_bytes());
    put(&mut packet, 46, &[0, 0]);
    packet.extend(message);
    let (ip, datagram) = packet.split_at(40);
    let checksum = transport_checksum(ip, UDP, datagram, &[]);
    put(&mut packet, 46, &checksum);
    packet
}

#[test]
fn a_damaged_or_incomplete_message_is_discarded() {
    let whole = octets(SOLICIT);
    for length in 0..whole.len() {
        assert_eq!(answer_of(&whole[..length], &server(8)), None, "{length} octets");
    }
    // Source, destination, ports, length, checksum, an option.
    for at in [8, 23, 30, 39, 43, 45, 46, 47, 60] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        assert_eq!(answer_of(&damaged, &server(8)), None, "octet {at}");
    }
    let mut without_checksum = whole.clone();
    without_checksum[46..48].fill(0);
    assert_eq!(answer_of(&without_checksum, &server(8)), None);
    let cut = |octets: usize| changed(SOLICIT, |message| message.truncate(octets));
    // The options end at 4, 18, 24, 34, 50 and 66 octets; a Solicit needs the client's identifier. Less than a header after them is ignored.
    let answers: Vec<_> = (0..=66).filter(|octets| answer_of(&cut(*octets), &server(8)).is_some()).collect();
    let expected: Vec<_> = [18, 24, 34, 50].into_iter().flat_map(|end| end..end + 4).chain([66]).collect();
    assert_eq!(answers, expected);
}

/// A Request of dhcpcd 9.4.1 with prefix exclusion, without its UDP header: an option without a value in the IA_PD, and two octets at the end.
const DHCPCD_REQUEST: &str = "\
    033a2d800001000e00010304329dd7130000000000000002001200045069746820558046a044b7bc5aa436200019002d0000\
    00010000000000000000001a0019ffffffffffffffff3820010db80045010000000000000000000043000000060006005200\
    53004300080002006a0010003c00009f0800366468637063642d392e342e313a4c696e75782d362e31382e34342d66632d76\
    3539353a7838365f36343a41757468656e746963414d440000";

#[test]
fn a_request_of_dhcpcd_is_answered() {
    let message = octets(DHCPCD_REQUEST);
    let duid = server_duid(Some("10.210.0.1".parse().unwrap()));
    let ue = UeAddress { delegation: 8, ..UeAddress::v6("2001:db8:45:100::".parse().unwrap()) };
    let answer =
        Dhcpv6Message::decode(UE, &message).unwrap().answer(&Dhcpv6Server { duid: &duid, ue, dns: &[] });
    let answer = answer.unwrap();
    let options = read_options(&answer[52..]).unwrap();
    let exclusion = [0, 67, 0, 2, 64, 0];
    assert_eq!(
        (answer[48], options[2].1),
        (message::REPLY, &lease(1, 56, "2001:db8:45:100::", &exclusion).1[..])
    );
}

#[test]
fn identifiers_and_associations_are_bounded() {
    let added = |octets: &[u8]| changed(SOLICIT, |message| message.extend(octets));
    let is_answered = |packet: &[u8]| answer_of(packet, &server(8)).is_some();
    let association = |code: u8| [&[0, code, 0, 12][..], &[0; 12]].concat();
    assert!(is_answered(&added(&association(25).repeat(2))));
    assert!(!is_answered(&added(&association(25).repeat(3))));
    assert!(!is_answered(&added(&[0, 1, 0, 4, 0, 3, 0, 1])), "a second client");
    assert!(!is_answered(&added(&[0, 2, 0, 4, 0, 3, 0, 1])), "a server in a Solicit");
    assert!(!is_answered(&added(&[0, 6, 0, 3, 0, 23, 0])), "half a code");
    assert!(!is_answered(&added(&[0, 14, 0, 1, 0])), "a Rapid Commit with a value");
    assert!(!is_answered(&added(&[0, 25, 0, 4, 0, 0, 0, 1])), "an association without times");
    assert!(is_answered(&added(&[0, 99, 0, 0].repeat(59))));
    assert!(!is_answered(&added(&[0, 99, 0, 0].repeat(60))), "65 options");
    let prefix = [&[0, 26, 0, 25][..], &[0; 8], &[129], &[0; 16]].concat();
    let with = |inner: &[u8]| [&[0, 25, 0, 12 + inner.len() as u8][..], &[0; 12], inner].concat();
    assert!(!is_answered(&added(&with(&prefix))), "129 bits");
    let prefix = [&[0, 26, 0, 25][..], &[0; 8], &[56], &[0x20; 16]].concat();
    assert!(is_answered(&added(&with(&prefix.repeat(4)))));
    assert!(!is_answered(&added(&with(&prefix.repeat(5)))));
    let within = [&[0, 26, 0, 29][..], &[0; 8], &[56], &[0; 16], &[0, 13, 0, 9]].concat();
    assert!(!is_answered(&added(&with(&within))), "an option longer than the prefix");
    let long = [0, 3, 0, 131].iter().copied().chain([1; 131]);
    let duid = |length: u8| {
        changed(SOLICIT, |message| {
            message
                .splice(4..18, [0, 1, 0, length].into_iter().chain(long.clone().skip(4).take(length.into())));
        })
    };
    assert!(is_answered(&duid(3)) && is_answered(&duid(130)));
    assert!(!is_answered(&duid(2)) && !is_answered(&duid(131)));
}

#[test]
fn the_longest_answer_fits_into_the_least_mtu() {
    let dns = [DNS[0]; 20];
    let server = Dhcpv6Server { dns: &dns, ..server(16) };
    let prefix = [&[0, 26, 0, 25][..], &[0; 8], &[56], &[0x20; 16]].concat();
    let association = [&[0, 25, 0, 128][..], &[0; 12], &prefix.repeat(4)].concat();
    let packet = changed(SOLICIT, |message| {
        message[0] = message::REBIND;
        message.splice(4..18, [0, 1, 0, 130].into_iter().chain([1; 130]));
        message.extend(association.repeat(2));
    });
    let answer = answer_of(&packet, &server).unwrap();
    assert!(answer.len() <= 1280, "{}", answer.len());
}

#[test]
fn a_servers_identifier_is_that_of_its_address() {
    let of = |text: &str| server_duid(Some(text.parse().unwrap()));
    let one = of("192.0.2.1");
    assert_eq!((one[..2].to_vec(), one[8] >> 4, one[10] >> 6), (vec![0, 4], 8, 2), "a UUID of version 8");
    assert_eq!(one, of("192.0.2.1"));
    let all = [one, of("192.0.2.2"), of("198.51.100.1"), of("2001:db8::1"), server_duid(None)];
    assert!(all.iter().enumerate().all(|(at, duid)| !all[..at].contains(duid)));
}
