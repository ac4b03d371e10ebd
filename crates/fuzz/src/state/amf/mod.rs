//! The AMF: a phone that has a subscription goes into any state, then does whatever it likes, and so do its gNB, other
//! NFs and timers. Another phone, registered all the while, must not notice, and in the end nothing may be left.
//!
//! The bench is that of the AMF's own tests.

mod honest;
mod hostile;

use super::choices::Choices;
use crate::target::{Broken, demand};
use honest::follow;
use hostile::Rogue;
use pith_nas::GmmMessage;
use pith_nas::ie::{RegistrationKind, ServiceType};
use pith_nf::amf::Audit;
use pith_nf::amf::testing::{GNB, OTHER_GNB, Phone, World};
use pith_nf::kit::{Input, N2Input};
use pith_ngap::Message;
use pith_sbi::{Operation, Problem};

/// Rounds after which a dialogue that nobody continues must have ended.
const ENDING: usize = 1000;

/// Calls that may be left without an answer, so that the state that waits for it stays.
const LEFT_OPEN: [Option<Operation>; 14] = [
    None,
    None,
    Some(Operation::Authenticate),
    Some(Operation::FiveGAkaConfirmation),
    Some(Operation::ThreeGppRegistration),
    Some(Operation::GetDataSets),
    Some(Operation::SdmSubscribe),
    Some(Operation::CreateAmPolicyAssociation),
    Some(Operation::NsSelectionGet),
    Some(Operation::PostSmContexts),
    Some(Operation::UpdateSmContext),
    Some(Operation::ReleaseSmContext),
    Some(Operation::UeContextTransfer),
    Some(Operation::DeleteAmPolicyAssociation),
];

/// A phone without harm in it: registered, with a session, in CM-IDLE.
fn bystander(world: &mut World) -> Phone {
    let supi: pith_types::Supi = "imsi-999700000000899".parse().expect("a constant that is an IMSI");
    let mut phone = Phone { gnb: GNB, supi: supi.clone(), ..Phone::default() };
    world.found = supi;
    phone.register(world);
    phone.release(world);
    phone
}

/// Plays an input.
pub fn run(input: &[u8]) -> Result<(), Broken> {
    let mut choices = Choices::new(input);
    let mut world = World::new();
    let bystander = bystander(&mut world);
    world.found = pith_nf::amf::testing::supi();
    let mut rogue = Rogue::new(Phone { gnb: OTHER_GNB, ..Phone::default() });
    reach(&mut world, &mut rogue, &mut choices);
    while !choices.are_over() {
        rogue.act(&mut world, &mut choices);
        sound(&world)?;
    }
    world.script.clear();
    still_served(&mut world, bystander)?;
    end(&mut world, &mut rogue)
}

/// Goes so many steps of an honest phone's way; a call that is left open ends it early.
fn reach(world: &mut World, rogue: &mut Rogue, choices: &mut Choices<'_>) {
    let open = choices.pick(&LEFT_OPEN).copied().flatten();
    let mut steps = choices.below(12);
    let second = choices.below(6);
    if second == 0 {
        world.script.extend(open.map(|operation| (operation, None)));
    }
    let request = rogue.phone.registration_request(RegistrationKind::Initial);
    let nas = rogue.phone.initial_nas(request);
    rogue.phone.connect(world, nas);
    follow(world, &mut rogue.phone, &mut steps);
    if steps == 0 || rogue.phone.guti.is_none() {
        return;
    }
    world.script.extend(open.map(|operation| (operation, None)));
    go_on(world, rogue, second);
    follow(world, &mut rogue.phone, &mut steps);
}

/// What a registered phone does next.
fn go_on(world: &mut World, rogue: &mut Rogue, what: usize) {
    let phone = &mut rogue.phone;
    match what {
        1 => rogue.establish(world),
        2 => {
            phone.release_if_connected(world);
            let nas = phone.service_request(ServiceType::Data);
            let nas = phone.initial_nas(nas);
            phone.connect(world, nas);
        }
        3 => {
            phone.release_if_connected(world);
            let request = phone.registration_request(RegistrationKind::MobilityUpdating);
            let nas = phone.initial_nas(request);
            phone.connect(world, nas);
        }
        4 => {
            let request = phone.deregistration_request(false);
            if phone.amf_id.is_some() {
                phone.send(world, request);
            }
        }
        _ => phone.release_if_connected(world),
    }
}

trait Release {
    fn release_if_connected(&mut self, world: &mut World);
}

impl Release for Phone {
    fn release_if_connected(&mut self, world: &mut World) {
        if self.amf_id.is_some() {
            honest::ask_for_release(world, self);
            follow(world, self, &mut 1);
        }
    }
}

/// What holds at any time.
fn sound(world: &World) -> Result<(), Broken> {
    let audit = world.amf.audit();
    demand(audit.dangling == 0 && audit.orphaned_connections == 0, || format!("{audit:?}"))
}

/// The bystander comes back and is served at once.
fn still_served(world: &mut World, mut phone: Phone) -> Result<(), Broken> {
    world.downlinks.retain(|(gnb, _)| *gnb != phone.gnb);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
    let answer = world
        .downlinks
        .iter()
        .position(|(gnb, message)| *gnb == GNB && !matches!(message, Message::Paging(_)));
    let answer = answer.and_then(|at| world.downlinks.remove(at));
    let Some((_, Message::InitialContextSetupRequest(setup))) = answer else {
        return Err(Broken(format!("a registered phone that did nothing is no longer served: {answer:?}")));
    };
    let nas = setup.nas_pdu.unwrap_or_default();
    phone.amf_id = Some(setup.amf_ue_ngap_id);
    let accepted = matches!(phone.open(&nas), GmmMessage::ServiceAccept(_));
    demand(accepted, || "a registered phone that did nothing is not accepted".into())?;
    phone.context_setup_response(world, &[]);
    phone.release(world);
    Ok(())
}

/// Everyone falls silent: gNBs are gone, calls fail, timers run out. Nothing may be left then.
fn end(world: &mut World, rogue: &mut Rogue) -> Result<(), Broken> {
    for gnb in [GNB, OTHER_GNB, rogue.phone.gnb] {
        world.input(Input::N2(N2Input::GnbDown { gnb }));
    }
    for _ in 0..ENDING {
        if let Some((tag, ..)) = world.calls.pop() {
            world.reply(tag, Err(Box::new(Problem::timed_out())));
        } else if let Some(timer) = world.timers.keys().next().map(|key| key.timer) {
            world.expire(timer);
        } else {
            break;
        }
        sound(world)?;
    }
    let audit = world.amf.audit();
    let nothing = Audit { gnbs: audit.gnbs, ..Audit::default() };
    demand(audit == nothing, || {
        format!("left when everyone is gone: {audit:?}, timers {:?}", world.running())
    })?;
    let (asked, answered) = (rogue.asked, world.answers.len());
    demand(asked == answered, || format!("{asked} SBI requests have {answered} answers"))
}
