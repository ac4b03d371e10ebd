//! UE contexts that are only in a store between transactions.

use super::world::{GNB, NgapIe, Phone, Shell, World, supi, transfer};
use crate::amf::Amf;
use crate::kit::{Deregister, Input, Instant, Level, N2Input, NetworkFunction, Outbox, Timer, Tracking};
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

/// A registered phone with a session, whose context is dropped after each transaction.
pub(super) fn stateless() -> (World, Phone, Rc<RefCell<Stateless>>) {
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
pub(super) fn has_no_copy(world: &World, store: &RefCell<Stateless>) -> bool {
    let store = store.borrow();
    assert_eq!(world.amf.ues.len(), store.stored.documents.len());
    store.stored.documents.keys().all(|id| !world.amf.is_resident(*id))
}

fn request_service(world: &mut World, phone: &mut Phone) -> GmmMessage {
    let nas = phone.initial_nas(phone.service_request(ServiceType::MobileTerminatedServices));
    phone.connect(world, nas);
    phone.receive(world)
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

#[test]
fn a_context_waits_in_the_process_for_the_absent_one_that_it_supersedes() {
    let (mut world, first, store) = stateless();
    let supi: pith_types::Supi = "imsi-999700000000002".parse().unwrap();
    world.found = supi.clone();
    let mut other = Phone { supi, ran_id: pith_types::RanUeNgapId(77), ..Phone::default() };
    other.register(&mut world);
    assert!(has_no_copy(&world, &store));
    let key = |phone: &Phone| world.amf.shared.index.find_supi(&phone.supi).unwrap();
    let (old, new) = (key(&first), key(&other));
    let mut out = Outbox::new(Level::Debug);
    world.amf.supersede(world.now, new, old, &mut out);
    // A load in each turn, whose end drops what may leave the process.
    for _ in 0..3 {
        store.borrow_mut().after(&mut world.amf, world.now, &mut out);
    }
    assert_eq!((world.amf.ues.len(), world.amf.ues.take_missed()), (1, Vec::new()));
    assert!(world.amf.superseding.is_empty());
}

#[test]
fn a_context_that_ends_waits_for_no_absent_one() {
    let (mut world, first, store) = stateless();
    let supi: pith_types::Supi = "imsi-999700000000002".parse().unwrap();
    world.found = supi.clone();
    let mut other = Phone { supi, ran_id: pith_types::RanUeNgapId(77), ..Phone::default() };
    other.register(&mut world);
    assert!(has_no_copy(&world, &store));
    let key = |world: &World, phone: &Phone| world.amf.shared.index.find_supi(&phone.supi).unwrap();
    let (old, new) = (key(&world, &first), key(&world, &other));
    // The document of the absent one is lost.
    world.amf.superseding.insert(new, old);
    let lost = world.amf.ues.id(old).unwrap();
    let mut out = Outbox::new(Level::Debug);
    world.amf.forget_ue(world.now, lost, &mut out);
    assert!(world.amf.superseding.is_empty());
    // The one that waits ends.
    world.amf.superseding.insert(new, old);
    let request = other.deregistration_request(true);
    other.send(&mut world, request);
    assert!(world.amf.superseding.is_empty());
}
