//! Paths into the states of the AMF: each starts with a UE that is switched on, and performs a
//! given number of steps.

use super::honest::{ask_for_release, follow};
use super::hostile::HostilePhone;
use pith_nas::ie::{RegistrationKind, ServiceType};
use pith_nf::amf::testing::{NgapIe, World, config, establishment, identity, subscription, tai, transfer};
use pith_nf::amf::{AmfConfig, NetworkNames, Peer};
use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification};
use pith_sbi::{ApiRoot, NfType, Operation, Response, Scheme};
use pith_types::{BlockOwner, FiveGGuti, FiveGTmsi, Guami, InstanceId, ShardId};
use std::sync::Arc;

/// A path; it subtracts the performed steps.
pub type StatePath = fn(&mut World, &mut HostilePhone, &mut usize);

/// All paths.
pub const STATE_PATHS: [StatePath; 13] = [
    register,
    register,
    establish,
    serve,
    update,
    leave,
    withdrawn,
    paged,
    renamed,
    stranger,
    from_a_peer,
    between_slices,
    idle,
];

/// An AMF with a peer, and optionally a network name.
pub fn configuration(tells_its_name: bool) -> AmfConfig {
    let root = ApiRoot::new(Scheme::Http, "127.0.0.2:7000");
    let peer = Peer { instance: InstanceId(2), api_root: Arc::new(root) };
    let name = NetworkNames { full: "Pith".into(), short: "P".into() };
    AmfConfig { peers: vec![peer], network_name: tells_its_name.then_some(name), ..config() }
}

fn register(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    let request = rogue.phone.registration_request(RegistrationKind::Initial);
    let nas = rogue.phone.initial_nas(request);
    rogue.phone.connect(world, nas);
    follow(world, &mut rogue.phone, steps);
}

/// Registered; `None` if the steps did not suffice or a call is left open.
fn registered(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) -> Option<()> {
    let mut enough = 8;
    register(world, rogue, &mut enough);
    *steps = (*steps).min(6);
    (rogue.phone.guti.is_some() && rogue.phone.amf_id.is_some()).then_some(())
}

fn establish(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    if registered(world, rogue, steps).is_some() {
        rogue.phone.send(world, establishment(5));
        if *steps > 0 {
            rogue.ask(world, transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup"))));
        }
        follow(world, &mut rogue.phone, steps);
    }
}

fn idle(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    establish(world, rogue, &mut 4);
    ask_for_release(world, &rogue.phone);
    follow(world, &mut rogue.phone, steps);
}

fn idle_for_sure(world: &mut World, rogue: &mut HostilePhone) -> Option<()> {
    idle(world, rogue, &mut 4);
    (rogue.phone.guti.is_some() && rogue.phone.amf_id.is_none()).then_some(())
}

fn serve(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    if idle_for_sure(world, rogue).is_some() {
        let mut request = rogue.phone.service_request(ServiceType::Data);
        request.uplink_data_status = Some([5].into_iter().collect());
        let nas = rogue.phone.initial_nas(request);
        rogue.phone.connect(world, nas);
        follow(world, &mut rogue.phone, steps);
    }
}

fn update(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    if idle_for_sure(world, rogue).is_some() {
        let mut request = rogue.phone.registration_request(RegistrationKind::MobilityUpdating);
        request.uplink_data_status = Some([5].into_iter().collect());
        let nas = rogue.phone.initial_nas(request);
        rogue.phone.connect(world, nas);
        follow(world, &mut rogue.phone, steps);
    }
}

fn leave(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    establish(world, rogue, &mut 4);
    if rogue.phone.amf_id.is_some() && rogue.phone.security.is_some() {
        let request = rogue.phone.deregistration_request(false);
        rogue.phone.send(world, request);
        follow(world, &mut rogue.phone, steps);
    }
}

/// The UDM ends the registration.
fn withdrawn(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    establish(world, rogue, &mut 4);
    if rogue.phone.guti.is_none() {
        return;
    }
    let key = world.amf.key_of(&rogue.phone.supi);
    let uri = DeregistrationNotification::callback_uri(&identity().api_root, &NfType::Amf, &key);
    rogue.ask(
        world,
        DeregistrationNotification { uri, body: DeregistrationData::new("SUBSCRIPTION_WITHDRAWN") },
    );
    follow(world, &mut rogue.phone, steps);
}

fn paged(world: &mut World, rogue: &mut HostilePhone, _steps: &mut usize) {
    if idle_for_sure(world, rogue).is_some() {
        rogue.ask(world, transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup"))));
    }
}

/// Paged and reconnected: it gets another 5G-GUTI.
fn renamed(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    paged(world, rogue, steps);
    if rogue.phone.guti.is_some() && rogue.phone.amf_id.is_none() {
        let request = rogue.phone.service_request(ServiceType::MobileTerminatedServices);
        let nas = rogue.phone.initial_nas(request);
        rogue.phone.connect(world, nas);
        follow(world, &mut rogue.phone, steps);
    }
}

fn guti(shard: u8) -> FiveGGuti {
    let owner = BlockOwner { shard: ShardId(shard), ..identity().owner };
    let block = identity().owners.blocks_of(owner).next().expect("each of the four shards has blocks");
    let guami =
        Guami { plmn_id: tai().plmn_id, amf_id: "020040".parse().expect("a constant that is an AMF ID") };
    FiveGGuti { guami, tmsi: FiveGTmsi::new(block, 0x123) }
}

/// An unknown 5G-GUTI.
fn stranger(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    rogue.phone.guti = Some(guti(2));
    register(world, rogue, steps);
}

/// A 5G-GUTI that another shard allocated.
fn from_a_peer(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    rogue.phone.guti = Some(guti(3));
    world.script.insert(Operation::UeContextTransfer, None);
    register(world, rogue, steps);
}

/// A subscription to a slice that another AMF serves.
fn between_slices(world: &mut World, rogue: &mut HostilePhone, steps: &mut usize) {
    let data = Response::SubscriptionDataSets(Box::new(subscription(&[1, 2])));
    world.script.insert(Operation::GetDataSets, Some(Ok(data)));
    world.script.insert(Operation::NsSelectionGet, None);
    register(world, rogue, steps);
}

#[cfg(test)]
mod tests {
    use super::super::{Choices, stage};
    use crate::random::Random;
    use pith_nf::kit::{Inspect, NetworkFunction};
    use std::collections::BTreeSet;

    /// All states in which the AMF waits.
    const STATES: [&str; 16] = [
        "AwaitingAuthenticationConfirmation",
        "AwaitingAuthenticationResponse",
        "AwaitingAuthenticationVector",
        "AwaitingConfigurationUpdateComplete",
        "AwaitingDeregistrationAccept",
        "AwaitingIdentityResponse",
        "AwaitingPagingResponse",
        "AwaitingPolicyAssociation",
        "AwaitingRegistrationComplete",
        "AwaitingSecurityModeComplete",
        "AwaitingSessionActivation",
        "AwaitingSliceSelection",
        "AwaitingSubscriptionData",
        "AwaitingUeContextTransfer",
        "AwaitingUecmRegistration",
        "Idle",
    ];

    #[test]
    fn the_paths_reach_every_state() {
        let mut reached = BTreeSet::new();
        for number in 0..3000 {
            let mut random = Random::of_input(1, number);
            let input: Vec<u8> = (0..8).map(|_| random.octet()).collect();
            let (world, ..) = stage(&mut Choices::new(&input));
            let mut ues = Vec::new();
            world.amf.inspect(Inspect::Ues, &mut ues);
            reached.extend(ues.iter().filter_map(|ue| ue["procedure"].as_str().map(str::to_owned)));
        }
        for state in STATES {
            assert!(reached.contains(state), "{state} is not reached: {reached:?}");
        }
    }
}
