//! The AMF: a UE with a subscription misbehaves in any state, and so do
//! its gNB, other NFs and timers. Another registered UE must not be affected, and at the
//! end no state may be left.
//!
//! It uses the bench of the AMF's own tests.

mod honest;
mod hostile;
mod paths;

use super::choices::Choices;
use crate::target::{CheckFailed, ensure};
use honest::follow;
use hostile::HostilePhone;
use paths::STATE_PATHS;
use pith_nas::GmmMessage;
use pith_nas::ie::ServiceType;
use pith_nf::amf::Audit;
use pith_nf::amf::testing::{self, GNB, OTHER_GNB, Phone, World};
use pith_nf::kit::{Input, N2Input};
use pith_ngap::Message;
use pith_sbi::{Operation, Problem};

/// Rounds after which an abandoned dialogue must have ended.
const ENDING: usize = 1000;

/// Calls that may be left open, so that the state which waits for the reply stays.
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

/// A well-behaved UE: registered, and in CM-IDLE.
fn bystander(world: &mut World) -> Phone {
    let supi: pith_types::Supi = "imsi-999700000000899".parse().expect("a constant that is an IMSI");
    let mut phone = Phone { gnb: GNB, supi: supi.clone(), ..Phone::default() };
    world.found = supi;
    phone.register(world);
    follow(world, &mut phone, &mut 4);
    phone.release(world);
    world.found = testing::supi();
    phone
}

/// The AMF, the well-behaved UE, and the other UE in the state that the first choices select:
/// a path, its number of steps, and a call that is left open.
fn stage(choices: &mut Choices<'_>) -> (World, Phone, HostilePhone) {
    let (way, mut steps) = (choices.below(STATE_PATHS.len()), choices.below(10));
    let open = choices.pick(&LEFT_OPEN).copied().flatten();
    let mut world = World::with(paths::configuration(choices.below(4) == 0));
    let bystander = bystander(&mut world);
    let mut rogue = HostilePhone::new(Phone { gnb: OTHER_GNB, ..Phone::default() });
    world.script.extend(open.map(|operation| (operation, None)));
    STATE_PATHS[way](&mut world, &mut rogue, &mut steps);
    (world, bystander, rogue)
}

/// Runs an input.
pub fn run(input: &[u8]) -> Result<(), CheckFailed> {
    let mut choices = Choices::new(input);
    let (mut world, bystander, mut rogue) = stage(&mut choices);
    while !choices.is_exhausted() {
        rogue.act(&mut world, &mut choices);
        sound(&world)?;
    }
    world.script.clear();
    still_served(&mut world, bystander)?;
    end(&mut world, &mut rogue)
}

/// Checks what must hold at any time.
fn sound(world: &World) -> Result<(), CheckFailed> {
    let audit = world.amf.audit();
    ensure(audit.dangling == 0 && audit.orphaned_connections == 0, || format!("{audit:?}"))
}

/// The well-behaved UE reconnects and must be served at once.
fn still_served(world: &mut World, mut phone: Phone) -> Result<(), CheckFailed> {
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
        return Err(CheckFailed(format!("a well-behaved registered UE is no longer served: {answer:?}")));
    };
    let nas = setup.nas_pdu.unwrap_or_default();
    phone.amf_id = Some(setup.amf_ue_ngap_id);
    let accepted = matches!(phone.open(&nas), GmmMessage::ServiceAccept(_));
    ensure(accepted, || "a well-behaved registered UE is not accepted".into())?;
    phone.context_setup_response(world, &[]);
    phone.release(world);
    Ok(())
}

/// Ends everything: gNBs disconnect, calls fail, timers expire. No state may be left then.
fn end(world: &mut World, rogue: &mut HostilePhone) -> Result<(), CheckFailed> {
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
    let nothing = Audit { gnbs: audit.gnbs, retained: audit.retained, ..Audit::default() };
    ensure(audit == nothing, || format!("state left at the end: {audit:?}, timers {:?}", world.running()))?;
    let (asked, answered) = (rogue.asked, world.answers.len());
    ensure(asked == answered, || format!("{asked} SBI requests have {answered} answers"))
}
