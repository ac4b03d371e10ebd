//! Provisioned data: the resources of TS 29.505 and TS 29.519 as views of one subscriber.

use crate::kit::{
    AkaAlgorithm, AuthenticationMethod, Secret, SubscribedDnn, SubscribedSlice, Subscriber, SubscriberTrace,
};
use pith_sbi::common::{
    Area, Arp, AuthType, PduSessionType, PreemptionCapability, PreemptionVulnerability, RestrictionType,
    ServiceAreaRestriction, SscMode, SubscribedDefaultQos,
};
use pith_sbi::nudm_sdm::{
    AccessAndMobilitySubscriptionData, DataSetName, DnnConfiguration, DnnInfo, Nssai, PduSessionTypes,
    SessionManagementSubscriptionData, SmSubsData, SmfSelectionSubscriptionData, SnssaiInfo, SscModes,
    SubscriptionDataSets,
};
use pith_sbi::nudr_dr::{
    AmPolicyData, AuthenticationSubscription, QueryProvisionedData, SequenceNumber, SmPolicyData,
    SmPolicyDnnData, SmPolicySnssaiData, SqnScheme,
};
use pith_sbi::{Hex, Problem, Reply, Request, Response, SecretText};
use pith_types::{Dnn, Snssai, Tac};
use std::sync::Arc;

/// The requested resource.
pub(super) fn view(subscriber: &Subscriber, request: &Request) -> Reply {
    Ok(match request {
        Request::QueryAuthSubsData(_) => {
            Response::AuthenticationSubscription(Box::new(authentication_subscription(subscriber)))
        }
        Request::QueryProvisionedData(query) => {
            Response::SubscriptionDataSets(Box::new(data_sets(subscriber, query)))
        }
        Request::QueryAmData(_) => Response::AmData(Box::new(am_data(subscriber))),
        Request::QuerySmfSelectData(_) => Response::SmfSelData(Box::new(smf_selection(subscriber))),
        Request::QuerySmData(query) => {
            Response::SmData(Box::new(sm_data(subscriber, query.single_nssai, query.dnn.as_ref())?))
        }
        Request::ReadAccessAndMobilityPolicyData(_) => Response::AmPolicyData(Box::<AmPolicyData>::default()),
        Request::ReadSessionManagementPolicyData(_) => {
            Response::SmPolicyData(Box::new(sm_policy_data(subscriber)))
        }
        _ => return Err(Box::new(Problem::data_not_found())),
    })
}

/// `authentication-subscription` (TS 29.505 5.2.2).
fn authentication_subscription(subscriber: &Subscriber) -> AuthenticationSubscription {
    let auth = &subscriber.authentication;
    let [.., a, b, c, d, e, f] = auth.sqn.to_be_bytes();
    let mut sequence_number = SequenceNumber::default();
    sequence_number.sqn_scheme = Some(SqnScheme::NonTimeBased);
    sequence_number.sqn = Some(Hex([a, b, c, d, e, f]));
    let method = match auth.method {
        AuthenticationMethod::FiveGAka => AuthType::FiveGAka,
        AuthenticationMethod::EapAkaPrime => AuthType::EapAkaPrime,
    };
    let mut subscription = AuthenticationSubscription::new(method);
    subscription.enc_permanent_key = Some(hex(&auth.k));
    subscription.sequence_number = Some(sequence_number);
    subscription.authentication_management_field = Some(Hex(auth.amf));
    subscription.enc_opc_key = auth.opc.as_ref().map(hex);
    subscription.enc_topc_key = auth.topc.as_ref().map(hex);
    subscription.supi = Some(subscriber.supi.clone());
    subscription.algorithm_id = Some(match auth.algorithm {
        AkaAlgorithm::Milenage => "milenage".into(),
        AkaAlgorithm::Tuak => "tuak".into(),
    });
    subscription
}

fn hex<const N: usize>(key: &Secret<N>) -> SecretText {
    SecretText::from(Hex(key.0).to_string())
}

/// `provisioned-data`: the requested data sets that the UDR has. Others are absent, as data sets without data are.
fn data_sets(subscriber: &Subscriber, query: &QueryProvisionedData) -> SubscriptionDataSets {
    let wanted = |name| query.dataset_names.as_ref().is_none_or(|names| names.contains(&name));
    SubscriptionDataSets {
        am_data: wanted(DataSetName::Am).then(|| am_data(subscriber)),
        smf_sel_data: wanted(DataSetName::SmfSel).then(|| smf_selection(subscriber)),
        sm_data: wanted(DataSetName::Sm).then(|| sm_data(subscriber, None, None).ok()).flatten(),
        ..Default::default()
    }
}

/// `am-data` (TS 29.505 5.2.3; TS 29.503 6.1.6.2.4).
fn am_data(subscriber: &Subscriber) -> AccessAndMobilitySubscriptionData {
    let of = |default| {
        let slices = subscriber.slices.iter().filter(move |slice| slice.default == default);
        slices.map(|slice| slice.snssai).collect::<Vec<_>>()
    };
    let mut nssai = Nssai::new(of(true));
    nssai.single_nssais = of(false);
    let restrictions = &subscriber.restrictions;
    let area = |tacs: &Vec<Tac>| Area { area_code: None, tacs: tacs.clone() };
    let areas = |tacs: &Vec<Tac>| if tacs.is_empty() { Vec::new() } else { vec![area(tacs)] };
    let service = |kind, tacs: &Vec<Tac>| {
        let areas = areas(tacs);
        let restriction =
            ServiceAreaRestriction { restriction_type: Some(kind), max_num_of_tas: None, areas };
        (!tacs.is_empty()).then_some(restriction)
    };
    let allowed = service(RestrictionType::AllowedAreas, &restrictions.allowed_tacs);
    let not_allowed = || service(RestrictionType::NotAllowedAreas, &restrictions.not_allowed_tacs);
    AccessAndMobilitySubscriptionData {
        gpsis: subscriber.gpsi.iter().map(|gpsi| gpsi.as_str().into()).collect(),
        subscribed_ue_ambr: Some(subscriber.ambr),
        nssai: Some(nssai),
        rat_restrictions: restrictions.rat_restrictions.clone(),
        core_network_type_restrictions: restrictions.core_network_type_restrictions.clone(),
        forbidden_areas: areas(&restrictions.forbidden_tacs),
        service_area_restriction: allowed.or_else(not_allowed),
        trace_data: subscriber.trace.as_ref().map(SubscriberTrace::data),
        ..Default::default()
    }
}

/// `smf-selection-subscription-data` (TS 29.505 5.2.4; TS 29.503 6.1.6.2.6).
fn smf_selection(subscriber: &Subscriber) -> SmfSelectionSubscriptionData {
    let info = |slice: &SubscribedSlice| {
        let dnn = |(at, dnn): (usize, &SubscribedDnn)| {
            let mut info = DnnInfo::new(dnn.dnn.as_str());
            info.default_dnn_indicator = Some(at == 0);
            info
        };
        let infos: Vec<DnnInfo> = slice.dnns.iter().enumerate().map(dnn).collect();
        (snssai_key(slice), SnssaiInfo::new(infos))
    };
    SmfSelectionSubscriptionData {
        subscribed_snssai_infos: subscriber.slices.iter().map(info).collect(),
        ..Default::default()
    }
}

fn snssai_key(slice: &SubscribedSlice) -> Arc<str> {
    slice.snssai.to_string().into()
}

/// `sm-data` of the requested slice and data network (TS 29.505 5.2.5; TS 29.503 6.1.6.2.8).
fn sm_data(
    subscriber: &Subscriber,
    wanted: Option<Snssai>,
    dnn: Option<&Dnn>,
) -> Result<SmSubsData, Problem> {
    let slices = subscriber.slices.iter().filter(|slice| wanted.is_none_or(|wanted| wanted == slice.snssai));
    let data: Vec<_> = slices.filter_map(|slice| slice_data(slice, dnn)).collect();
    if data.is_empty() { Err(Problem::data_not_found()) } else { Ok(SmSubsData::Individual(data)) }
}

fn slice_data(slice: &SubscribedSlice, wanted: Option<&Dnn>) -> Option<SessionManagementSubscriptionData> {
    let dnns = slice.dnns.iter().filter(|dnn| wanted.is_none_or(|wanted| *wanted == dnn.dnn));
    let mut data = SessionManagementSubscriptionData::new(slice.snssai);
    data.dnn_configurations = dnns.map(|dnn| (dnn.dnn.as_str().into(), configuration(dnn))).collect();
    (!data.dnn_configurations.is_empty()).then_some(data)
}

fn configuration(dnn: &SubscribedDnn) -> DnnConfiguration {
    let mut types = PduSessionTypes::default();
    types.default_session_type = Some(PduSessionType::Ipv4);
    // The SMF takes those that the data network has.
    types.allowed_session_types = vec![PduSessionType::Ipv4, PduSessionType::Ipv6, PduSessionType::Ipv4v6];
    let arp = Arp::new(dnn.arp, PreemptionCapability::NotPreempt, PreemptionVulnerability::Preemptable);
    let mut configuration = DnnConfiguration::new(types, SscModes::new(SscMode::SscMode1));
    configuration.five_g_qos_profile = Some(SubscribedDefaultQos::new(dnn.five_qi, arp));
    configuration.session_ambr = dnn.ambr;
    configuration.static_ip_address.clone_from(&dnn.static_ip_address);
    configuration.ipv4_frame_route_list.clone_from(&dnn.ipv4_frame_route_list);
    configuration.ipv6_frame_route_list.clone_from(&dnn.ipv6_frame_route_list);
    configuration
}

/// `policy-data/ues/{ueId}/sm-data` (TS 29.519 5.2.4).
fn sm_policy_data(subscriber: &Subscriber) -> SmPolicyData {
    let slice = |slice: &SubscribedSlice| {
        let mut data = SmPolicySnssaiData::new(slice.snssai);
        let dnns = slice.dnns.iter();
        data.sm_policy_dnn_data =
            dnns.map(|dnn| (dnn.dnn.as_str().into(), SmPolicyDnnData::new(dnn.dnn.clone()))).collect();
        (snssai_key(slice), data)
    };
    SmPolicyData::new(subscriber.slices.iter().map(slice).collect::<std::collections::BTreeMap<_, _>>())
}
