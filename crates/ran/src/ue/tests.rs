//! Recorded messages of other cores to a UE: the simulated UE must not report violations.

use super::security::SecurityContext;
use super::*;
use pith_crypto::Algorithm;
use pith_crypto::keys::KAmf;
use pith_crypto::milenage::Milenage;
use pith_crypto::nas::{CipheringAlgorithm, Direction, IntegrityAlgorithm};
use pith_crypto::sqn::UsimSequence;
use pith_nas::ie::{
    ConfigurationUpdateIndication, IntraN1Container, MobileIdentity, NasSecurityAlgorithms, NgKsi,
    PduSessionType,
};
use pith_nas::security::Algorithms;
use pith_nas::{NasCount, NasSecurity, Role, SecurityHeaderType};
use pith_types::Tac;

struct Recorded {
    message: &'static str,
    wire: Vec<u8>,
}

/// The messages of a core, and their security context.
fn recorded(core: &str) -> (SecurityContext, Vec<Recorded>) {
    let lines = include_str!("tests/recorded.tsv").lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    let fields: Vec<_> = lines.filter(|fields| fields[0] == core).collect();
    let context = SecurityContext::of_keys(&fields[0][2].parse().unwrap(), &fields[0][3].parse().unwrap());
    let message = |f: &Vec<&'static str>| Recorded { message: f[1], wire: hex::decode(f[4]).unwrap() };
    (context, fields.iter().map(message).collect())
}

fn slice() -> Snssai {
    Snssai { sst: 1, sd: Some([1, 2, 3]) }
}

fn ue() -> Ue {
    let plmn: Plmn = "208/93".parse().unwrap();
    let settings = Settings {
        plmn,
        security_capability: UeSecurityCapability::of_5gs(0x20, 0x20),
        requested_nssai: vec![slice()],
        follow_on_request: false,
        service: Service::Normal,
        reachability: Default::default(),
    };
    let keys = Milenage::new(&[0; 16].into(), &[0; 16].into());
    let subscription = Subscription {
        supi: "imsi-208930000000001".parse().unwrap(),
        home: plmn,
        routing_indicator: "0".into(),
        concealment: Concealment::Null,
        algorithm: Algorithm::Milenage(keys).into(),
        sequence: UsimSequence::default(),
        seed: [0; 32],
    };
    let imeisv = "imeisv-4901542032375101".parse().unwrap();
    Ue::new(Arc::new(settings), subscription, imeisv, Tai { plmn_id: plmn, tac: Tac::new(1) })
}

fn request(id: u8) -> SessionRequest {
    SessionRequest {
        id,
        dnn: Some("internet".parse().unwrap()),
        snssai: Some(slice()),
        session_type: PduSessionType::Ipv4,
        reflective_qos: false,
        is_emergency: false,
    }
}

/// The UE's inputs before the recorded message of that number, which the message answers.
fn inputs_before(number: usize, message: &str) -> Vec<Input<'static>> {
    match (number, message) {
        (6, _) => vec![Input::ReleaseSession(7)],
        (7, _) => vec![Input::ReleaseSession(6)],
        (_, "5GMMServiceAccept") => vec![Input::ConnectionReleased, Input::Paging(Default::default())],
        (_, "5GMMMODeregistrationAccept") => vec![Input::Deregister { switch_off: false }],
        _ => vec![],
    }
}

/// Plays a core's messages to a UE that expects them; returns the UE's events and violations.
fn play(core: &str) -> (Vec<Event>, Vec<Violation>) {
    let (mut context, messages) = recorded(core);
    let (mut ue, mut out, now) = (ue(), Vec::new(), Instant::START);
    ue.handle(now, Input::Register, &mut out);
    (5..=7).for_each(|id| ue.handle(now, Input::EstablishSession(request(id)), &mut out));
    let mut messages = messages.into_iter().enumerate();
    let (_, command) = messages.next().unwrap();
    context.open(&command.wire).expect("the MAC of SECURITY MODE COMMAND is right");
    ue.current_security_context = Some(context);
    ue.connection = Connection::Secured;
    for (number, Recorded { message, wire }) in messages {
        for input in inputs_before(number, message) {
            ue.handle(now, input, &mut out);
        }
        ue.handle(now, Input::Nas(&wire), &mut out);
    }
    assert_eq!(ue.state(), State::Deregistered);
    let event = |output: &Output| if let Output::Event(event) = output { Some(*event) } else { None };
    let events = out.iter().filter_map(event).collect();
    let violation =
        |output: Output| if let Output::Violation(violation) = output { Some(violation) } else { None };
    (events, out.into_iter().filter_map(violation).collect())
}

#[test]
fn deregistration_waits_only_for_the_procedure_in_progress() {
    for (state, after) in [
        (State::AwaitingServiceAccept, Input::ConnectionReleased),
        (State::AwaitingRegistrationAccept(RegistrationKind::PeriodicUpdating), Input::ConnectionReleased),
    ] {
        let (mut ue, mut out, now) = (ue(), Vec::new(), Instant::START);
        (ue.state, ue.connection) = (state, Connection::Unsecured);
        ue.handle(now, Input::Deregister { switch_off: true }, &mut out);
        assert_eq!(ue.state, state, "the procedure is let end first");
        out.clear();
        ue.handle(now, after, &mut out);
        assert_eq!(ue.state, State::Deregistered, "{out:?}");
        assert!(
            out.iter()
                .any(|output| matches!(output, Output::Event(Event::Deregistered { by_network: false })))
        );
    }
}

/// TS 24.501 5.4.4.5 c.
#[test]
fn a_configuration_update_that_crosses_a_deregistration_is_ignored() {
    let (mut ue, mut out) = (ue(), Vec::new());
    (ue.state, ue.connection) = (State::Registered, Connection::Unsecured);
    ue.handle(Instant::START, Input::Deregister { switch_off: false }, &mut out);
    assert_eq!(ue.state, State::AwaitingDeregistrationAccept);
    let mut command = pith_nas::gmm::ConfigurationUpdateCommand::new();
    command.guti = Some(MobileIdentity::FiveGGuti("5g-guti-2089302004055f4ddd1".parse().unwrap()));
    command.indication = Some(ConfigurationUpdateIndication { acknowledgement: true, ..Default::default() });
    ue.receive_configuration_update(command);
    assert!(ue.out.is_empty(), "neither answered nor reported: {:?}", ue.out);
    assert_eq!((ue.state, ue.guti()), (State::AwaitingDeregistrationAccept, None));
}

#[test]
fn free5gc_and_open5gs_serve_our_ue_without_violation() {
    use Event::*;
    for core in ["free5GC", "Open5GS"] {
        let (events, violations) = play(core);
        assert_eq!(violations, [], "{core}");
        let expected = [
            Registered(RegistrationKind::Initial),
            SessionEstablished(5),
            SessionEstablished(6),
            SessionEstablished(7),
            SessionReleased(7),
            SessionReleased(6),
            Idle,
            ServiceAccepted,
            Idle,
            ServiceAccepted,
            SessionReleased(5),
            Deregistered { by_network: false },
        ];
        assert_eq!(events, expected, "{core}");
    }
}

const K_AMF: [u8; 32] = [9; 32];

/// The AMF's side of a context with 128-NEA1 and 128-NIA1, which has sent messages up to COUNT 0x2fe.
fn of_target_amf() -> NasSecurity {
    let (integrity, ciphering) = (IntegrityAlgorithm::Nia1, CipheringAlgorithm::Nea1);
    let k_amf = KAmf::new(K_AMF);
    let mut amf = NasSecurity::new(
        Role::Network,
        pith_nas::security::Connection::ThreeGpp,
        Algorithms { integrity, ciphering },
        pith_crypto::kdf::k_nas_int(&k_amf, integrity),
        pith_crypto::kdf::k_nas_enc(&k_amf, ciphering),
    );
    amf.resume(NasCount::new(0x2ff), None);
    amf
}

/// A UE with 128-NEA2 and 128-NIA2 in use that has got the AMF's messages but the last ones, and gets a handover command.
fn commanded(nas_container: &[u8]) -> (Ue, Vec<Violation>) {
    let (mut ue, mut out) = (ue(), Vec::new());
    let settings = Settings {
        security_capability: UeSecurityCapability::of_5gs(0xe0, 0xe0),
        ..Settings::clone(&ue.settings)
    };
    ue.settings = Arc::new(settings);
    let in_use = NasSecurityAlgorithms { ciphering: 2, integrity: 2 };
    let context = SecurityContext::new(NgKsi::Native(1), KAmf::new(K_AMF), in_use).unwrap();
    ue.current_security_context = Some(context.after_container(in_use, 0x280).unwrap());
    ue.connection = Connection::Secured;
    ue.handle(Instant::START, Input::HandoverCommand { nas_container: Some(nas_container) }, &mut out);
    let violation =
        |output: Output| if let Output::Violation(violation) = output { Some(violation) } else { None };
    (ue, out.into_iter().filter_map(violation).collect())
}

/// TS 33.501 6.9.2.3.4.
#[test]
fn the_ue_takes_the_algorithms_of_a_nas_container_in_the_target_cell() {
    let mut amf = of_target_amf();
    let (mut ue, violations) = commanded(&amf.handover_container(NgKsi::Native(1)).unwrap().octets());
    assert_eq!(violations, []);
    assert!(!ue.refuses_handover());
    let (former, sealed) = (ue.current_security_context.as_mut().unwrap(), b"before");
    former.seal(SecurityHeaderType::IntegrityProtectedAndCiphered, sealed);
    ue.take_nas_change();
    let context = ue.current_security_context.as_mut().unwrap();
    assert_eq!((context.next_uplink(), context.last_downlink()), (1, Some(0x2ff)), "the COUNTs go on");
    let header = SecurityHeaderType::IntegrityProtectedAndCiphered;
    let uplink = context.seal(header, b"uplink");
    assert_eq!(amf.unprotect(&uplink).unwrap().plain, b"uplink");
    let downlink = amf.protect(header, b"downlink").unwrap();
    assert_eq!(context.open(&downlink), Ok(b"downlink".to_vec()));
}

/// The source AMF has derived another K_AMF with the COUNT of the container: both COUNTs begin at 0.
#[test]
fn the_ue_derives_the_k_amf_of_a_nas_container() {
    let algorithms = of_target_amf().algorithms();
    let k_amf = pith_crypto::kdf::k_amf_prime(&KAmf::new(K_AMF), Direction::Downlink, 0x2ff);
    let mut amf = NasSecurity::new(
        Role::Network,
        pith_nas::security::Connection::ThreeGpp,
        algorithms,
        pith_crypto::kdf::k_nas_int(&k_amf, algorithms.integrity),
        pith_crypto::kdf::k_nas_enc(&k_amf, algorithms.ciphering),
    );
    let container = amf.derived_key_container(NgKsi::Native(1), NasCount::new(0x2ff).unwrap());
    let (mut ue, violations) = commanded(&container.octets());
    assert_eq!(violations, []);
    ue.take_nas_change();
    let context = ue.current_security_context.as_mut().unwrap();
    assert_eq!((context.next_uplink(), context.last_downlink()), (0, None));
    let header = SecurityHeaderType::IntegrityProtectedAndCiphered;
    let uplink = context.seal(header, b"uplink");
    assert_eq!(amf.unprotect(&uplink).unwrap().plain, b"uplink");
    let downlink = amf.protect(header, b"downlink").unwrap();
    assert_eq!(context.open(&downlink), Ok(b"downlink".to_vec()));
}

#[test]
fn a_ue_that_does_not_accept_a_nas_container_stays_with_its_algorithms() {
    let container = of_target_amf().handover_container(NgKsi::Native(1)).unwrap();
    let changed = |change: &dyn Fn(&mut IntraN1Container)| {
        let mut container = container;
        change(&mut container);
        container.octets()
    };
    let cases = [
        ("TS 24.501 9.11.2.6", container.octets()[..6].to_vec()),
        ("TS 33.501 6.9.2.3.4", changed(&|it| it.mac[0] ^= 1)),
        ("TS 33.501 6.9.2.3.4", changed(&|it| it.sequence_number ^= 1)),
        ("TS 33.501 6.9.2.3.4", changed(&|it| it.algorithms.ciphering = 2)),
        ("TS 33.501 6.9.2.3.4", changed(&|it| it.ng_ksi = NgKsi::Native(2))),
        ("TS 33.501 6.9.2.3.4", changed(&|it| it.has_new_k_amf = true)),
        ("TS 24.501 5.4.2.3", changed(&|it| it.algorithms.integrity = 0)),
        ("TS 24.501 5.4.2.2", changed(&|it| it.algorithms.ciphering = 3)),
        ("TS 24.501 5.4.2.2", changed(&|it| it.algorithms.integrity = 9)),
    ];
    for (clause, octets) in cases {
        let (mut ue, violations) = commanded(&octets);
        assert!(ue.refuses_handover(), "{octets:02x?}");
        assert!(
            violations.iter().any(|violation| violation.clause == clause),
            "{octets:02x?}: {violations:?}"
        );
        ue.take_nas_change();
        assert_eq!(ue.current_security_context.unwrap().last_downlink(), Some(0x280));
    }
}
