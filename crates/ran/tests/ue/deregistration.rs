//! De-registration (TS 24.501 5.5.2).

use crate::network::*;
use pith_nas::GmmMessage;
use pith_nas::gmm::{DeregistrationAcceptUeOriginating, DeregistrationRequestUeTerminated};
use pith_nas::ie::*;
use pith_ran::ue::{Event, Failure, Input, State};
use std::time::Duration;

#[test]
fn a_deregistering_ue_waits_for_the_accept() {
    let mut pair = Pair::new();
    pair.register();
    pair.establish(1);
    pair.events.clear();
    pair.input(Input::Deregister { switch_off: false });
    let GmmMessage::DeregistrationRequestUeOriginating(request) = pair.ciphered() else { panic!() };
    assert!(!request.deregistration_type.switch_off);
    assert_eq!(request.mobile_identity, guti());
    pair.give_ciphered(DeregistrationAcceptUeOriginating::new());
    assert_eq!(pair.events, [Event::SessionReleased(1), Event::Deregistered { by_network: false }]);
    assert_eq!(pair.ue.state(), State::Deregistered);
    pair.assert_clean();
}

#[test]
fn switching_off_waits_for_nothing() {
    let mut pair = Pair::new();
    pair.register();
    pair.input(Input::Deregister { switch_off: true });
    assert_eq!(pair.ue.state(), State::Deregistered);
}

#[test]
fn messages_after_switch_off_are_ignored_without_violation() {
    let mut pair = Pair::new();
    pair.register();
    pair.input(Input::Deregister { switch_off: true });
    let sent = pair.sent.len();
    pair.give_ciphered(DeregistrationAcceptUeOriginating::new());
    assert_eq!(pair.sent.len(), sent);
    pair.assert_clean();
}

#[test]
fn the_request_is_sent_five_times() {
    let mut pair = Pair::new();
    pair.register();
    pair.input(Input::Deregister { switch_off: false });
    for _ in 0..4 {
        pair.advance(Duration::from_secs(15));
    }
    assert_eq!((pair.sent.len(), pair.released), (5, 0));
    pair.advance(Duration::from_secs(15));
    assert_eq!((pair.sent.len(), pair.released), (5, 1));
    assert_eq!(pair.ue.state(), State::Deregistered);
}

#[test]
fn the_network_may_request_deregistration_and_re_registration() {
    let mut pair = Pair::new();
    pair.register();
    let kind = DeregistrationType {
        switch_off: false,
        re_registration_required: true,
        access: AccessType::ThreeGpp,
    };
    pair.give_ciphered(DeregistrationRequestUeTerminated::new(kind));
    let GmmMessage::DeregistrationAcceptUeTerminated(_) = pair.ciphered() else { panic!() };
    assert_eq!(pair.events.last(), Some(&Event::Deregistered { by_network: true }));
    pair.release_connection();
    assert_eq!(pair.ue.state(), State::AwaitingRegistrationAccept(RegistrationKind::Initial));
    pair.assert_clean();
}

#[test]
fn a_connection_that_the_network_leaves_open_is_dropped_after_t3540() {
    let mut pair = Pair::new();
    pair.register();
    pair.input(Input::Deregister { switch_off: false });
    pair.give_ciphered(DeregistrationAcceptUeOriginating::new());
    pair.advance(Duration::from_secs(10));
    assert_eq!(pair.released, 1);
}

#[test]
fn a_connection_released_before_the_accept_ends_the_deregistration_as_failed() {
    let mut pair = Pair::new();
    pair.register();
    pair.events.clear();
    pair.input(Input::Deregister { switch_off: false });
    pair.release_connection();
    let failed = Event::DeregistrationFailed(Failure::ConnectionLost);
    assert_eq!(pair.events, [Event::Idle, failed, Event::Deregistered { by_network: false }]);
    assert_eq!(pair.ue.state(), State::Deregistered);
}
