//! Allowed slices, and causes of rejected ones.

use super::*;
use crate::testing::{Bench, Seen, instance, plmn, root};
use pith_sbi::NfType;
use pith_sbi::nnssf_nsselection::RoamingIndication;
use pith_types::Tac;

fn tai(tac: u32) -> Tai {
    Tai { plmn_id: plmn(), tac: Tac::new(tac) }
}

fn slice(sst: u8) -> Snssai {
    Snssai::of_sst(sst)
}

/// Slice 1 is offered everywhere, slice 2 in tracking area 2.
fn bench() -> Bench<Nssf> {
    let slices = vec![(slice(1), vec![]), (slice(2), vec![tai(2)])];
    let nrf = root("nrf");
    Bench::new(Nssf::new(NssfConfig { slices, nrf, amfs: Vec::new(), instances: instances() }))
}

/// Slice 1 has two sites and the rest of the network.
fn instances() -> Vec<SliceInstance> {
    let instance = |id: &str, tais| SliceInstance { id: id.into(), slices: vec![slice(1)], tais };
    vec![instance("site-a", vec![tai(1)]), instance("site-b", vec![tai(2)]), instance("rest", vec![])]
}

fn request() -> NsSelectionGet {
    NsSelectionGet {
        nf_type: NfType::Amf,
        nf_id: instance(1),
        slice_info_request_for_registration: None,
        slice_info_request_for_pdu_session: None,
        slice_info_request_for_ue_cu: None,
        home_plmn_id: None,
        tai: Some(tai(1)),
        supported_features: None,
    }
}

/// Registration in tracking area 1 with slices 1 (default), 2 and 3 subscribed.
fn register(requested: &[u8]) -> Seen {
    let subscribed = |sst| {
        let mut subscribed = SubscribedSnssai::new(slice(sst));
        subscribed.default_indication = Some(sst == 1);
        subscribed
    };
    let info = SliceInfoForRegistration {
        subscribed_nssai: [1, 2, 3].map(subscribed).to_vec(),
        requested_nssai: requested.iter().copied().map(slice).collect(),
        ..Default::default()
    };
    bench().request(NsSelectionGet { slice_info_request_for_registration: Some(info), ..request() })
}

fn authorized(seen: &Seen) -> &AuthorizedNetworkSliceInfo {
    let Response::AuthorizedNetworkSliceInfo(info) = seen.answer() else { panic!("{seen:?}") };
    info
}

fn allowed(seen: &Seen) -> Vec<Snssai> {
    let lists = authorized(seen).allowed_nssai_list.iter().flat_map(|list| &list.allowed_snssai_list);
    lists.map(|item| item.allowed_snssai).collect()
}

#[test]
fn a_requested_slice_that_is_subscribed_and_offered_is_allowed() {
    let seen = register(&[1]);
    assert_eq!(allowed(&seen), [slice(1)]);
    assert!(authorized(&seen).rejected_nssai_in_plmn.is_empty());
}

#[test]
fn without_a_request_the_default_slices_are_selected() {
    assert_eq!(allowed(&register(&[])), [slice(1)]);
}

#[test]
fn a_slice_of_another_tracking_area_is_rejected_here_only() {
    let seen = register(&[1, 2]);
    assert_eq!(allowed(&seen), [slice(1)]);
    assert_eq!(authorized(&seen).rejected_nssai_in_ta, [slice(2)]);
}

#[test]
fn slices_that_do_not_exist_or_are_not_subscribed_are_rejected_in_the_network() {
    let seen = register(&[3, 4]);
    assert_eq!(authorized(&seen).rejected_nssai_in_plmn, [slice(3), slice(4)]);
    assert_eq!(allowed(&seen), [slice(1)], "the default ones in their place");
}

#[test]
fn the_configured_slices_are_those_subscribed_that_exist() {
    let seen = register(&[1]);
    let configured = authorized(&seen).configured_nssai.iter().map(|item| item.configured_snssai);
    assert_eq!(configured.collect::<Vec<_>>(), [slice(1), slice(2)]);
}

#[test]
fn without_any_slice_the_request_is_refused() {
    let info = SliceInfoForRegistration {
        subscribed_nssai: vec![SubscribedSnssai::new(slice(2))],
        ..Default::default()
    };
    let seen =
        bench().request(NsSelectionGet { slice_info_request_for_registration: Some(info), ..request() });
    assert_eq!(seen.cause(), Some(&Cause::SnssaiNotSupported));
}

#[test]
fn a_session_gets_the_nrf_of_its_slice() {
    let select = |sst, tac| {
        let info = SliceInfoForPduSession::new(slice(sst), RoamingIndication::NonRoaming);
        let slice_info_request_for_pdu_session = Some(info);
        bench().request(NsSelectionGet {
            slice_info_request_for_pdu_session,
            tai: Some(tai(tac)),
            ..request()
        })
    };
    let seen = select(2, 2);
    assert_eq!(authorized(&seen).nsi_information.as_ref().unwrap().nrf_id.root, root("nrf"));
    assert_eq!(select(2, 1).cause(), Some(&Cause::SnssaiNotSupported));
    let instance = |sst, tac| {
        let information = authorized(&select(sst, tac)).nsi_information.clone();
        information.unwrap().nsi_id.as_deref().map(ToOwned::to_owned)
    };
    let found = [(1, 1), (1, 2), (1, 3), (2, 2)].map(|(sst, tac)| instance(sst, tac));
    assert_eq!(found.each_ref().map(Option::as_deref), [Some("site-a"), Some("site-b"), Some("rest"), None]);
}

#[test]
fn a_registration_gets_the_instances_of_its_slices() {
    let info = register(&[1]);
    let [slice] = &authorized(&info).allowed_nssai_list[0].allowed_snssai_list[..] else { panic!() };
    let instances = slice.nsi_information_list.iter().map(|it| it.nsi_id.as_deref().unwrap());
    assert_eq!(instances.collect::<Vec<_>>(), ["site-a", "rest"]);
}

#[test]
fn a_request_without_slice_information_is_refused() {
    assert_eq!(bench().request(request()).problem().status, 400);
}

/// UE configuration update in a tracking area, with slices 1 (default), 2 and 3 subscribed.
fn update(requested: &[u8], allowed: &[u8], tac: u32) -> Seen {
    let subscribed = |sst| {
        let mut subscribed = SubscribedSnssai::new(slice(sst));
        subscribed.default_indication = Some(sst == 1);
        subscribed
    };
    let list: Vec<_> = allowed.iter().map(|sst| AllowedSnssai::new(slice(*sst))).collect();
    let allowed = (!list.is_empty()).then(|| AllowedNssai::new(list, AccessType::ThreeGppAccess));
    let info = SliceInfoForUeConfigurationUpdate {
        subscribed_nssai: [1, 2, 3].map(subscribed).to_vec(),
        requested_nssai: requested.iter().copied().map(slice).collect(),
        allowed_nssai_current_access: allowed,
        ..Default::default()
    };
    let (slice_info_request_for_ue_cu, tai) = (Some(info), Some(tai(tac)));
    bench().request(NsSelectionGet { slice_info_request_for_ue_cu, tai, ..request() })
}

/// TS 29.531 5.2.2.2.4, 6.1.6.2.2.
#[test]
fn a_configuration_update_gets_the_allowed_and_the_configured_slices() {
    let seen = update(&[1, 2, 4], &[], 1);
    assert_eq!(allowed(&seen), [slice(1)]);
    let configured = authorized(&seen).configured_nssai.iter().map(|item| item.configured_snssai);
    assert_eq!(configured.collect::<Vec<_>>(), [slice(1), slice(2)]);
    assert_eq!(authorized(&seen).rejected_nssai_in_ta, [slice(2)]);
    assert_eq!(authorized(&seen).rejected_nssai_in_plmn, [slice(4)]);
    assert_eq!(allowed(&update(&[], &[], 2)), [slice(1)], "the default ones");
    let kept = update(&[], &[2, 4], 2);
    assert_eq!(allowed(&kept), [slice(2)], "what the UE has, and is still subscribed");
    assert!(authorized(&kept).rejected_nssai_in_plmn.is_empty(), "the UE has requested none");
    assert_eq!(allowed(&update(&[], &[2], 1)), [slice(1)], "not offered here");
}

#[test]
fn a_configuration_update_without_any_slice_is_refused() {
    let info = SliceInfoForUeConfigurationUpdate {
        subscribed_nssai: vec![SubscribedSnssai::new(slice(2))],
        ..Default::default()
    };
    let seen = bench().request(NsSelectionGet { slice_info_request_for_ue_cu: Some(info), ..request() });
    assert_eq!(seen.cause(), Some(&Cause::SnssaiNotSupported));
}

/// Slice 2 has an AMF Set, slice 3 two AMFs.
fn register_with_amfs(requested: &[u8]) -> AuthorizedNetworkSliceInfo {
    let slices = [1, 2, 3].map(|sst| (slice(sst), vec![])).to_vec();
    let amfs = vec![
        AmfsOfSlices { slices: vec![slice(2)], amfs: TargetAmfs::Set { region: 2, set: 7 } },
        AmfsOfSlices {
            slices: vec![slice(1), slice(3)],
            amfs: TargetAmfs::Instances(vec![instance(5), instance(6)]),
        },
    ];
    let mut bench = Bench::new(Nssf::new(NssfConfig { slices, nrf: root("nrf"), amfs, instances: vec![] }));
    let info = SliceInfoForRegistration {
        subscribed_nssai: [1, 2, 3].map(|sst| SubscribedSnssai::new(slice(sst))).to_vec(),
        requested_nssai: requested.iter().copied().map(slice).collect(),
        ..Default::default()
    };
    let seen = bench.request(NsSelectionGet { slice_info_request_for_registration: Some(info), ..request() });
    authorized(&seen).clone()
}

#[test]
fn the_amfs_of_a_slice_are_named_with_it() {
    let info = register_with_amfs(&[2]);
    assert_eq!((info.target_amf_set.as_deref(), info.candidate_amf_list), (Some("999-70-02-007"), vec![]));
    let info = register_with_amfs(&[1, 3]);
    assert_eq!((info.target_amf_set, info.candidate_amf_list), (None, vec![instance(5), instance(6)]));
}

#[test]
fn amfs_that_serve_all_slices_are_named_before_those_that_serve_some() {
    let info = register_with_amfs(&[3]);
    assert_eq!(info.candidate_amf_list.len(), 2);
    let info = register_with_amfs(&[2, 3]);
    assert_eq!(info.target_amf_set.as_deref(), Some("999-70-02-007"), "none serves both");
}
