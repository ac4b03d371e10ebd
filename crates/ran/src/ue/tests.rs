//! Recorded messages of other cores to a UE: the simulated UE must not report violations.

use super::security::SecurityContext;
use super::*;
use pith_crypto::Algorithm;
use pith_crypto::milenage::Milenage;
use pith_crypto::sqn::UsimSequence;
use pith_nas::ie::PduSessionType;
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
    }
}

/// The UE's inputs before the recorded message of that number, which the message answers.
fn inputs_before(number: usize, message: &str) -> Vec<Input<'static>> {
    match (number, message) {
        (6, _) => vec![Input::ReleaseSession(7)],
        (7, _) => vec![Input::ReleaseSession(6)],
        (_, "5GMMServiceAccept") => vec![Input::ConnectionReleased, Input::Paging],
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
