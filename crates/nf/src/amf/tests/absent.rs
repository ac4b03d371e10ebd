//! UE contexts that are only in a store between transactions.

use super::world::{GNB, NgapIe, OTHER_GNB, Phone, Shell, World, supi, transfer};
use crate::amf::Amf;
use crate::kit::{Deregister, Input, Instant, N2Input, NetworkFunction, Outbox, Timer, Tracking};
use crate::testing::Stateless;
use pith_nas::GmmMessage;
use pith_nas::ie::ServiceType;
use pith_ngap::Message;
use std::cell::RefCell;
use std::rc::Rc;

struct Store(Rc<RefCell<Stateless>>);

impl Shell for Store {
    fn before(&mut self, amf: &mut Amf, now: Instant, input: &Input, out: &mut Outbox) {
        self.0.borrow_mut().before(amf, now, input, out);
    }

    fn after(&mut self, amf: &mut Amf, now: Instant, out: &mut Outbox) {
        self.0.borrow_mut().after(amf, now, out);
    }
}

fn stateless() -> (World, Phone, Rc<RefCell<Stateless>>) {
    let (mut world, store) = (World::new(), Rc::<RefCell<Stateless>>::default());
    world.amf.track_contexts(Tracking { whole: true, ..Tracking::default() });
    world.shell = Some(Box::new(Store(Rc::clone(&store))));
    let mut phone = Phone::default();
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.take_ladder();
    (world, phone, store)
}

/// Whether the AMF has no copy of any context.
fn has_no_copy(world: &World, store: &RefCell<Stateless>) -> bool {
    let store = store.borrow();
    assert_eq!(world.amf.ues.len(), store.stored.documents.len());
    store.stored.documents.keys().all(|id| !world.amf.is_resident(*id))
}

fn request_service(world: &mut World, phone: &mut Phone) -> GmmMessage {
    let nas = phone.initial_nas(phone.service_request(ServiceType::MobileTerminatedServices));
    phone.connect(world, nas);
    phone.receive(world)
}

/// The target's PATH SWITCH REQUEST waits for the context, and a message that follows it, too.
#[test]
fn a_message_of_the_target_does_not_overtake_its_path_switch() {
    let (mut world, phone, store) = stateless();
    let message = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    let pdu = message.encode().unwrap();
    let named = |world: &World, gnb| {
        world.amf.context_of(&Input::N2(N2Input::Pdu { gnb, stream: 1, pdu: pdu.clone().into() }))
    };
    let id = named(&world, GNB);
    assert!(id.is_some() && has_no_copy(&world, &store));
    assert_eq!(named(&world, OTHER_GNB), id);
    // A UE whose context is in the process: the message is refused at once.
    world.shell = None;
    let mut resident = Phone::default();
    resident.register(&mut world);
    let message = pith_ngap::UeContextReleaseRequest { amf_ue_ngap_id: resident.amf_id.unwrap(), ..message };
    let pdu = message.encode().unwrap();
    let input = Input::N2(N2Input::Pdu { gnb: OTHER_GNB, stream: 1, pdu: pdu.into() });
    assert_eq!(world.amf.context_of(&input), None);
}

#[test]
fn each_message_finds_its_context_in_the_store() {
    let (mut world, mut phone, store) = stateless();
    assert!(has_no_copy(&world, &store));
    phone.release(&mut world);
    assert!(has_no_copy(&world, &store));
    let before = store.borrow().reads;
    let reply = world.request(transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup"))));
    assert!(reply.is_ok() && store.borrow().reads == before + 1);
    assert!(has_no_copy(&world, &store), "the procedure waits for the phone");
    world.expire(Timer::T3513);
    world.downlinks.clear();
    assert!(matches!(request_service(&mut world, &mut phone), GmmMessage::ServiceAccept(_)));
    phone.context_setup_response(&mut world, &[5]);
    assert!(has_no_copy(&world, &store));
    world.downlinks.clear();
    assert_eq!(world.operate(supi(), Deregister::Anew).len(), 1);
    assert!(matches!(phone.receive(&mut world), GmmMessage::DeregistrationRequestUeTerminated(_)));
}

#[test]
fn phones_of_a_lost_gnb_are_idle_as_soon_as_their_contexts_are_read() {
    let (mut world, mut phone, store) = stateless();
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    assert!(has_no_copy(&world, &store));
    assert_eq!(world.amf.audit().connections, 0);
    assert!(world.take_ladder().contains("UpdateSmContext"), "the user plane is deactivated");
    world.connect_gnbs();
    assert!(matches!(request_service(&mut world, &mut phone), GmmMessage::ServiceAccept(_)));
}

#[test]
fn a_second_registration_supersedes_an_absent_context() {
    let (mut world, _, store) = stateless();
    let mut again = Phone { ran_id: pith_types::RanUeNgapId(77), ..Phone::default() };
    again.register(&mut world);
    let Message::UeContextReleaseCommand(_) = world.next() else { panic!("{:?}", world.take_ladder()) };
    assert_eq!(world.amf.ues.len(), 1);
    assert!(has_no_copy(&world, &store));
}
