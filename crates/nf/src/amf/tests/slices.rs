//! Slice selection (TS 23.501 5.15.5.2.1; TS 24.501 5.5.1.2.4, 5.5.1.2.5).

use super::world::{GNB, OTHER_GNB, Phone, World, config, establishment, problem, subscription, tai};
use crate::amf::AmfConfig;
use crate::kit::{Input, N2Input, Target};
use pith_nas::gmm::{
    ConfigurationUpdateComplete, RegistrationAccept, RegistrationComplete, RegistrationRequest,
};
use pith_nas::ie::{NetworkSlicingIndication, Nssai, RegistrationKind, SnssaiRejection};
use pith_nas::{GmmCause, GmmMessage};
use pith_sbi::common::AccessType;
use pith_sbi::nnssf_nsselection::{AllowedNssai, AllowedSnssai, AuthorizedNetworkSliceInfo, NsiInformation};
use pith_sbi::nudm_sdm::AdditionalSnssaiData;
use pith_sbi::{Cause, Operation, Problem, Reply, Request, Response, Uri};
use pith_types::{Snssai, Tac, Tai};
use std::sync::Arc;

fn subscribed(ssts: &[u8]) -> World {
    let mut world = World::new();
    subscribe(&mut world, ssts);
    world
}

fn subscribe(world: &mut World, ssts: &[u8]) {
    let data = Response::SubscriptionDataSets(Box::new(subscription(ssts)));
    world.script.insert(Operation::GetDataSets, Some(Ok(data)));
}

/// Registers with a request for those slices, up to the answer.
fn registers(world: &mut World, phone: &mut Phone, ssts: &[u8]) {
    let mut request = phone.registration_request(RegistrationKind::Initial);
    let nssai: Nssai = ssts.iter().map(|sst| Snssai::of_sst(*sst)).collect();
    request.requested_nssai = (!ssts.is_empty()).then_some(nssai);
    registers_with(world, phone, request);
}

/// Registers with that request, up to the answer.
fn registers_with(world: &mut World, phone: &mut Phone, request: RegistrationRequest) {
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    phone.receive(world);
    phone.send(world, Phone::authentication_response());
    phone.receive(world);
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(world, complete);
}

fn allowed(accept: &RegistrationAccept) -> Vec<u8> {
    accept.allowed_nssai.as_ref().unwrap().iter().map(|slice| slice.sst).collect()
}

#[test]
fn a_slice_that_is_not_subscribed_is_rejected_and_the_other_allowed() {
    let (mut world, mut phone) = (subscribed(&[1]), Phone::default());
    registers(&mut world, &mut phone, &[1, 3]);
    let accept = phone.accepted(&mut world);
    assert_eq!(allowed(&accept), [1]);
    let rejected = accept.rejected_nssai.unwrap().0;
    assert_eq!(rejected, [(Snssai::of_sst(3), SnssaiRejection::NotAvailableInPlmn)]);
}

/// Its default slice is 1; it is subscribed to 2, too. TS 24.501 5.5.1.2.4.
#[test]
fn a_ue_that_does_not_know_its_slices_gets_a_configured_nssai() {
    let cases: [(&[u8], bool, bool); 5] = [
        (&[], false, true),
        (&[1, 3], false, true),
        (&[1], true, true),
        (&[1], false, false),
        (&[1, 2], false, false),
    ];
    for (requested, is_of_default, is_sent) in cases {
        let mut config = config();
        config.plmns[0].slices = [1, 2].map(Snssai::of_sst).to_vec();
        let (mut world, mut phone) = (World::with(config), Phone::default());
        let mut data = subscription(&[1]);
        data.am_data.as_mut().unwrap().nssai.as_mut().unwrap().single_nssais = vec![Snssai::of_sst(2)];
        let data = Response::SubscriptionDataSets(Box::new(data));
        world.script.insert(Operation::GetDataSets, Some(Ok(data)));
        let mut request = phone.registration_request(RegistrationKind::Initial);
        let nssai: Nssai = requested.iter().map(|sst| Snssai::of_sst(*sst)).collect();
        request.requested_nssai = (!requested.is_empty()).then_some(nssai);
        request.network_slicing_indication = is_of_default
            .then_some(NetworkSlicingIndication { default_configured_nssai: true, ..Default::default() });
        registers_with(&mut world, &mut phone, request);
        let accept = phone.accepted(&mut world);
        let configured = accept.configured_nssai.map(|nssai| nssai.iter().collect::<Vec<_>>());
        assert_eq!(configured, is_sent.then(|| [1, 2].map(Snssai::of_sst).to_vec()), "{requested:?}");
        assert_eq!(accept.network_slicing_indication, None);
    }
}

/// The UE would not request a slice that is not configured (TS 23.501 5.15.5.2.1).
#[test]
fn the_configured_nssai_has_slices_that_other_amfs_serve() {
    let config = AmfConfig { slices_elsewhere: vec![Snssai::of_sst(2)], ..config() };
    let (mut world, mut phone) = (World::with(config), Phone::default());
    let mut data = subscription(&[1]);
    let others = vec![Snssai::of_sst(2), Snssai::of_sst(3)];
    data.am_data.as_mut().unwrap().nssai.as_mut().unwrap().single_nssais = others;
    let data = Response::SubscriptionDataSets(Box::new(data));
    world.script.insert(Operation::GetDataSets, Some(Ok(data)));
    registers(&mut world, &mut phone, &[]);
    let accept = phone.accepted(&mut world);
    let configured: Vec<_> = accept.configured_nssai.iter().flat_map(Nssai::iter).collect();
    assert_eq!((allowed(&accept), configured), (vec![1], [1, 2].map(Snssai::of_sst).to_vec()));
}

#[test]
fn a_slice_that_is_requested_twice_is_allowed_or_rejected_once() {
    let (mut world, mut phone) = (subscribed(&[1]), Phone::default());
    registers(&mut world, &mut phone, &[3, 1, 3, 1, 3]);
    let accept = phone.accepted(&mut world);
    assert_eq!(allowed(&accept), [1]);
    let rejected = accept.rejected_nssai.unwrap().0;
    assert_eq!(rejected, [(Snssai::of_sst(3), SnssaiRejection::NotAvailableInPlmn)]);
}

/// A UE with ER-NSSAI requests slices 1, 2 and 3, up to the answer. The network has 1 and 2.
fn extended(ssts: &[u8]) -> (World, Phone) {
    let mut config = config();
    config.plmns[0].slices = [1, 2].map(Snssai::of_sst).to_vec();
    let (mut world, mut phone) = (World::with(config), Phone::default());
    subscribe(&mut world, ssts);
    let mut request = phone.registration_request(RegistrationKind::Initial);
    request.requested_nssai = Some([1, 2, 3].map(Snssai::of_sst).into_iter().collect());
    request.gmm_capability = Some(pith_nas::ie::GmmCapability(vec![0, 0, 0x10]));
    registers_with(&mut world, &mut phone, request);
    (world, phone)
}

/// A registered UE with ER-NSSAI; slice 3 is rejected.
pub(super) fn with_extended_rejection() -> (World, Phone) {
    let (mut world, mut phone) = extended(&[1, 2]);
    let accept = phone.accepted(&mut world);
    assert_eq!(accept.rejected_nssai, None);
    // TS 24.501 9.11.3.75: a list without timer, of one element; its cause is 'not available in the PLMN'.
    assert_eq!(accept.extended_rejected_nssai, Some(vec![0, 0x10, 3]));
    phone.context_setup_response(&mut world, &[]);
    phone.send(&mut world, RegistrationComplete::new());
    world.downlinks.clear();
    (world, phone)
}

/// TS 24.501 4.6.2.1, 5.4.4.2, 5.5.1.2.4, 5.5.1.2.5.
#[test]
fn a_ue_with_er_nssai_gets_the_extended_rejected_nssai() {
    let (mut world, mut phone) = with_extended_rejection();
    subscribe(&mut world, &[1]);
    super::subscription_change::notified(&mut world);
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(&mut world) else { panic!() };
    assert_eq!((command.rejected_nssai, command.extended_rejected_nssai), (None, Some(vec![0, 0x10, 2])));
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    let (_, ue) = world.amf.ues.iter().next().unwrap();
    assert_eq!(ue.slices.rejected, [(Snssai::of_sst(2), SnssaiRejection::NotAvailableInPlmn)]);

    let (mut world, mut phone) = extended(&[7]);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::NoNetworkSlicesAvailable);
    let rejected = vec![2, 0x10, 1, 0x10, 2, 0x10, 3];
    assert_eq!((reject.rejected_nssai, reject.extended_rejected_nssai), (None, Some(rejected)));
}

/// TS 24.501 5.4.7: this AMF has no NSSAAF.
#[test]
fn a_slice_that_requires_an_authentication_of_its_own_is_not_allowed() {
    for (required, ssts) in [(true, vec![1]), (false, vec![1, 2])] {
        let mut config = super::world::config();
        config.plmns[0].slices.push(Snssai::of_sst(2));
        let (mut world, mut phone) = (World::with(config), Phone::default());
        let mut data = subscription(&[1, 2]);
        let nssai = data.am_data.as_mut().unwrap().nssai.as_mut().unwrap();
        let more = AdditionalSnssaiData { required_authn_authz: Some(required) };
        nssai.additional_snssai_data.insert("2".into(), more);
        let data = Response::SubscriptionDataSets(Box::new(data));
        world.script.insert(Operation::GetDataSets, Some(Ok(data)));
        registers(&mut world, &mut phone, &[1, 2]);
        let accept = phone.accepted(&mut world);
        assert_eq!(allowed(&accept), ssts);
        let rejected = accept.rejected_nssai.map(|rejected| rejected.0).unwrap_or_default();
        let expected = required.then_some((Snssai::of_sst(2), SnssaiRejection::NotAvailableInPlmn));
        assert_eq!(rejected, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_subscribed_slice_that_is_not_served_is_queried_at_the_nssf() {
    let (mut world, mut phone) = (subscribed(&[1, 2]), Phone::default());
    let slice = AllowedSnssai::new(Snssai::of_sst(1));
    let info = AuthorizedNetworkSliceInfo {
        allowed_nssai_list: vec![AllowedNssai::new(vec![slice], AccessType::ThreeGppAccess)],
        rejected_nssai_in_ta: vec![Snssai::of_sst(2)],
        ..Default::default()
    };
    let info = Response::AuthorizedNetworkSliceInfo(Box::new(info));
    world.script.insert(Operation::NsSelectionGet, Some(Ok(info)));
    registers(&mut world, &mut phone, &[1, 2]);
    let accept = phone.accepted(&mut world);
    assert_eq!(allowed(&accept), [1]);
    let rejected = accept.rejected_nssai.unwrap().0;
    assert_eq!(rejected, [(Snssai::of_sst(2), SnssaiRejection::NotAvailableInRegistrationArea)]);
}

#[test]
fn without_an_nssf_the_served_slices_are_used() {
    let (mut world, mut phone) = (subscribed(&[1, 2]), Phone::default());
    world.script.insert(Operation::NsSelectionGet, problem(Cause::TargetNfNotReachable));
    registers(&mut world, &mut phone, &[2]);
    assert_eq!(allowed(&phone.accepted(&mut world)), [1], "the default slice");
}

#[test]
fn a_phone_without_any_slice_is_rejected_with_the_causes() {
    let (mut world, mut phone) = (subscribed(&[2]), Phone::default());
    world.script.insert(Operation::NsSelectionGet, problem(Cause::SnssaiNotSupported));
    registers(&mut world, &mut phone, &[2]);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::NoNetworkSlicesAvailable);
    assert!(reject.rejected_nssai.is_some());
    phone.released(&mut world);
    assert!(world.take_ladder().contains("UpdateThreeGppRegistration"), "the UDM is told");
    world.assert_empty();
}

#[test]
fn a_registration_succeeds_without_a_pcf() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::CreateAmPolicyAssociation, problem(Cause::TargetNfNotReachable));
    phone.register(&mut world);
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn a_subscriber_without_5gs_is_rejected() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::ThreeGppRegistration, problem(Cause::UnknownFiveGsSubscription));
    registers(&mut world, &mut phone, &[]);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::FiveGsServicesNotAllowed);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn the_network_name_is_sent_after_registration() {
    let mut named = super::world::config();
    named.network_name = Some(crate::amf::NetworkNames { full: "Pith Test".into(), short: "Pith".into() });
    let (mut world, mut phone) = (World::with(named), Phone::default());
    phone.register(&mut world);
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(&mut world) else { panic!() };
    assert_eq!(command.full_name.unwrap().text, "Pith Test");
    assert_eq!(world.running(), []);
}

/// TS 24.501 8.2.19.15 to 8.2.19.17. The world begins at 1970-01-01 00:00:00 UTC.
#[test]
fn the_local_time_is_sent_after_registration_and_to_smfs() {
    let local_time = "EST5EDT,M3.2.0,M11.1.0".parse().ok();
    let with_time = crate::amf::AmfConfig { local_time, ..super::world::config() };
    let (mut world, mut phone) = (World::with(with_time), Phone::default());
    phone.register(&mut world);
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(&mut world) else { panic!() };
    assert_eq!(command.full_name, None);
    assert_eq!(command.local_time_zone, Some(pith_nas::ie::TimeZone { quarters: -20 }));
    assert_eq!(command.daylight_saving_time, Some(pith_nas::ie::DaylightSavingTime::None));
    let time = command.universal_time.unwrap();
    assert_eq!((time.year, time.month, time.day, time.hour), (70, 1, 1, 0));
    assert_eq!(world.running(), [], "nothing is to be acknowledged");
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, super::world::establishment(5));
    let pith_sbi::Request::PostSmContexts(request) = world.open_call(Operation::PostSmContexts) else {
        panic!()
    };
    assert_eq!(request.body.ue_time_zone.as_deref(), Some("-05:00"));
}

/// A registered phone that requests a session; the NSSF has not answered.
fn with_slice_instances(reply: Option<Reply>) -> (World, Phone) {
    let mut world = World::with(AmfConfig { selects_slice_instances: true, ..config() });
    let mut phone = Phone::default();
    phone.register(&mut world);
    world.script.insert(Operation::NsSelectionGet, reply);
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(5));
    (world, phone)
}

/// The slice instance by which the SMF is selected.
fn selected(world: &World) -> Option<String> {
    let creates = |(_, _, request): &&(_, _, Request)| request.operation() == Operation::PostSmContexts;
    let Some((_, Target::Service(selection), _)) = world.calls.iter().find(creates) else { panic!() };
    selection.slice_instance.as_deref().map(ToOwned::to_owned)
}

/// TS 23.502 4.3.2.2.3.2.
#[test]
fn the_smf_of_a_session_is_selected_by_the_nssfs_slice_instance() {
    let nrf = Uri::new(&config().identity.api_root, "/nnrf-disc/v1");
    let of = |nsi_id: Option<&str>| {
        let nsi_information =
            Some(NsiInformation { nsi_id: nsi_id.map(Into::into), ..NsiInformation::new(nrf.clone()) });
        let info = AuthorizedNetworkSliceInfo { nsi_information, ..Default::default() };
        Some(Ok(Response::AuthorizedNetworkSliceInfo(Box::new(info))))
    };
    let without = problem(Cause::TargetNfNotReachable);
    for (reply, instance) in [(of(Some("site-a")), Some("site-a")), (of(None), None), (without, None)] {
        let (world, _) = with_slice_instances(reply);
        assert_eq!(selected(&world).as_deref(), instance);
    }
}

#[test]
fn a_session_in_a_slice_that_is_not_available_here_is_returned() {
    let (mut world, mut phone) = with_slice_instances(problem(Cause::SnssaiNotSupported));
    let GmmMessage::DlNasTransport(transport) = phone.receive(&mut world) else { panic!() };
    assert_eq!(transport.cause, Some(GmmCause::PayloadWasNotForwarded));
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn a_session_that_is_requested_again_meanwhile_has_one_sm_context() {
    let (mut world, mut phone) = with_slice_instances(None);
    phone.send(&mut world, establishment(5));
    let reply = || Err(Problem::new(Cause::TargetNfNotReachable).into());
    world.reply_to(Operation::NsSelectionGet, reply());
    world.reply_to(Operation::NsSelectionGet, reply());
    let creates = world.calls.iter().filter(|(_, _, it)| it.operation() == Operation::PostSmContexts);
    assert_eq!((creates.count(), world.amf.audit().sessions), (1, 1));
}

/// TS 24.501 4.6.2.2: the UE requests a slice that is rejected for the registration area not before it has left the area.
#[test]
fn a_tracking_area_with_a_slice_that_is_rejected_for_the_area_is_not_in_it() {
    let there = Tai { tac: Tac::new(2), ..tai() };
    let elsewhere = Tai { tac: Tac::new(3), ..tai() };
    let both = [Snssai::of_sst(1), Snssai::of_sst(2)];
    for is_served in [false, true] {
        let mut config = super::world::config();
        config.tais = vec![tai(), there, elsewhere];
        config.plmns[0].slices = both.to_vec();
        let (mut world, mut phone) = (World::with(config), Phone::default());
        subscribe(&mut world, &[1, 2]);
        world.script.insert(Operation::NsSelectionGet, problem(Cause::TargetNfNotReachable));
        let here = both[..1 + usize::from(is_served)].to_vec();
        for (gnb, tai, slices) in [(GNB, tai(), here), (OTHER_GNB, there, both.to_vec())] {
            let info = crate::kit::GnbInfo { supported: vec![(tai, slices)], ..World::gnb_info(gnb) };
            world.input(Input::N2(N2Input::GnbUp { gnb, info: Arc::new(info) }));
        }
        registers(&mut world, &mut phone, &[1, 2]);
        let accept = phone.accepted(&mut world);
        assert_eq!(accept.rejected_nssai.is_none(), is_served);
        let (_, ue) = world.amf.ues.iter().next().unwrap();
        let area = [Some(tai()), is_served.then_some(there), Some(elsewhere)];
        assert_eq!(ue.registration_area, area.into_iter().flatten().collect::<Vec<_>>());
    }
}
