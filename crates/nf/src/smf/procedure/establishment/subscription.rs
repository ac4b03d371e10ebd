//! The subscription (TS 23.502 4.3.2.2.1 steps 4, 5; TS 29.503 5.2.2.2.5): the SMF checks that the subscription
//! allows the session, and answers the AMF.

use super::request::{self, Refused};
use super::{AwaitingPolicyDecision, UeRequest};
use crate::kit::document::pack_struct;
use crate::kit::{Addressing, PendingReply};
use crate::smf::consumer;
use crate::smf::context::{Access, CallId, IpVersions, Qos, SmContext};
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::procedure::release::{self, Held};
use crate::smf::procedure::{State, subscription_change};
use crate::smf::timers::SessionTimer;
use pith_sbi::common::PduSessionType;
use pith_sbi::nsmf_pdusession::SmContextCreatedData;
use pith_sbi::nudm_sdm::{DnnConfiguration, SessionManagementSubscriptionData, SmSubsData};
use pith_sbi::{Cause, Created, Operation, Reply, Response, Uri};
use pith_types::{Ambr, Plmn, Supi};

/// The subscription data were requested from the UDM. The AMF's request is not answered yet.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingSubscriptionData {
    request: UeRequest,
    access: Box<Access>,
    /// The answer to the AMF.
    pub reply: PendingReply,
    /// The call.
    pub call: CallId,
}

pack_struct!(AwaitingSubscriptionData { request, access, reply, call });

impl AwaitingSubscriptionData {
    /// Requests the subscription data from the UDM (step 4).
    pub(super) fn begin(
        session: &mut SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
        request: UeRequest,
        access: Box<Access>,
        of: (Supi, Plmn),
    ) -> State {
        session.start(env, SessionTimer::Guard, env.config.guard);
        let call = consumer::get_sm_data(session, env, of);
        State::AwaitingSubscriptionData(Self { request, access, reply, call })
    }

    /// Handles the UDM's answer.
    pub(in crate::smf) fn on_reply(self, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
        let subscribed = match reply {
            Ok(Response::SmData(data)) => subscribed(session, env, &data),
            Ok(_) => {
                Err(EstablishmentError::Network("the UDM's response has no session management data".into()))
            }
            Err(problem) if problem.cause() == Some(&Cause::DataNotFound) => {
                Err(not_subscribed(session, &[]))
            }
            Err(problem) => Err(EstablishmentError::of_problem(Operation::GetSmData, &problem)),
        };
        match subscribed {
            Ok(subscribed) => self.accept(session, env, subscribed),
            Err(error) => self.refuse(session, env, error),
        }
    }

    /// The UDM did not answer in time.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        self.refuse(session, env, EstablishmentError::Network("the UDM does not answer".into()))
    }

    /// Answers the AMF (step 5), registers with the UDM, and asks the PCF (step 7b).
    fn accept(self, session: &mut SmContext, env: &mut Env<'_>, subscribed: Subscribed) -> State {
        let Self { request, access, reply, .. } = self;
        (session.qos, session.ip, session.addressing) = subscribed;
        session.subscribed = session.qos.clone();
        answer_created(session, env, reply);
        if let Some(supi) = session.ue.supi().cloned() {
            subscription_change::register(session, env, supi);
        }
        AwaitingPolicyDecision::begin(session, env, request, *access)
    }

    fn refuse(self, session: &mut SmContext, env: &mut Env<'_>, error: EstablishmentError) -> State {
        let Self { request: UeRequest { pti, .. }, reply, .. } = self;
        let (ue, pdu_session_id) = (Some(session.ue.clone()), session.pdu_session_id);
        let next = release::end(Held::default(), session, env);
        request::refuse(reply, &Refused { ue, pdu_session_id, pti, error }, env.out);
        next
    }

    /// What must be answered: the AMF's request.
    pub(in crate::smf) fn into_held(self) -> Held {
        Held { reply: Some(self.reply), ..Held::default() }
    }
}

/// Answers the AMF: the SM context is created (step 5).
pub(super) fn answer_created(session: &SmContext, env: &mut Env<'_>, reply: PendingReply) {
    let path = format!("/nsmf-pdusession/v1/sm-contexts/{}", env.reference(session));
    let location = Uri::new(&env.identity.api_root, &path);
    let mut body = SmContextCreatedData::default();
    body.pdu_session_id = Some(session.pdu_session_id);
    body.s_nssai = Some(session.snssai);
    reply.answer(Response::SmContextCreated(Box::new(Created { location, body })), env.out);
}

/// The subscribed QoS, the selected IP versions, and their static addresses and framed routes.
type Subscribed = (Qos, IpVersions, Addressing);

fn subscribed(
    session: &SmContext,
    env: &Env<'_>,
    data: &SmSubsData,
) -> Result<Subscribed, EstablishmentError> {
    let configuration =
        configuration_of(session, data).ok_or_else(|| not_subscribed(session, data.individual()))?;
    if configuration.secondary_auth == Some(true) {
        return Err(EstablishmentError::SecondaryAuthentication);
    }
    let ip = selected_ip(session, env, configuration)?;
    let addressing = addressing_of(ip, configuration).map_err(EstablishmentError::Addressing)?;
    if let Some(network) = env.network(session) {
        env.config.check_addressing(network, &addressing).map_err(EstablishmentError::Addressing)?;
    }
    Ok((qos_of(session, env, configuration), ip, addressing))
}

/// The subscribed QoS of an established session, and its static addresses and framed routes, unless these are malformed; `None` if its slice
/// and data network are not subscribed any longer.
pub(in crate::smf::procedure) fn subscribed_data(
    session: &SmContext,
    env: &Env<'_>,
    data: &SmSubsData,
) -> Option<(Qos, Result<Addressing, String>)> {
    let configuration = configuration_of(session, data)?;
    Some((qos_of(session, env, configuration), addressing_of(session.ip, configuration)))
}

/// The subscribed static addresses and framed routes of these IP versions: the session's other version has a dynamic address (TS 23.501
/// 5.8.2.2.1).
fn addressing_of(ip: IpVersions, configuration: &DnnConfiguration) -> Result<Addressing, String> {
    let routes = configuration.ipv4_frame_route_list.iter().chain(&configuration.ipv6_frame_route_list);
    let addressing = Addressing::of(&configuration.static_ip_address, routes)?;
    Ok(addressing.of_versions(ip.v4, ip.v6))
}

/// The subscribed configuration of the session's slice and data network.
fn configuration_of<'a>(session: &SmContext, data: &'a SmSubsData) -> Option<&'a DnnConfiguration> {
    let slices = data.individual().iter().filter(|slice| slice.single_nssai == session.snssai);
    let named = |name: &str| name.eq_ignore_ascii_case(session.dnn.as_str()) || name == "*";
    let mut configurations = slices.flat_map(|slice| &slice.dnn_configurations);
    configurations.find(|(name, _)| named(name)).map(|(_, configuration)| configuration)
}

fn qos_of(session: &SmContext, env: &Env<'_>, configuration: &DnnConfiguration) -> Qos {
    let profile = configuration.five_g_qos_profile.as_ref();
    Qos {
        ambr: configuration.session_ambr.unwrap_or_else(|| default_ambr(session, env)),
        five_qi: profile.map_or(Qos::UNKNOWN.five_qi, |profile| profile.five_qi),
        arp_priority: profile.map_or(Qos::UNKNOWN.arp_priority, |profile| profile.arp.priority_level),
    }
}

/// Selects the IP versions of the session: the requested ones, as far as data network and subscription allow them (TS 24.501
/// 6.4.1.3; TS 23.501 5.8.2.2.1). A UE that requests no type gets the default type of the subscription.
fn selected_ip(
    session: &SmContext,
    env: &Env<'_>,
    configuration: &DnnConfiguration,
) -> Result<IpVersions, EstablishmentError> {
    let types = &configuration.pdu_session_types;
    let subscribed = types.default_session_type.iter().chain(&types.allowed_session_types).map(versions);
    let subscribed = subscribed.fold(IpVersions::NONE, IpVersions::or);
    let has_ipv6 = env.network(session).is_some_and(|network| network.pool6.is_some());
    let allowed = subscribed.and(IpVersions { v4: true, v6: has_ipv6 });
    let requested = match session.ip {
        IpVersions::NONE => types.default_session_type.as_ref().map_or(IpVersions::V4, versions),
        requested => requested,
    };
    match (requested.and(allowed), allowed) {
        (_, IpVersions::NONE) => Err(EstablishmentError::NoIpSubscribed),
        // The default type of the subscription is none of the data network: the type that both have.
        (IpVersions::NONE, allowed) if session.ip == IpVersions::NONE => Ok(allowed),
        (IpVersions::NONE, IpVersions::V6) => Err(EstablishmentError::OnlyIpv6),
        (IpVersions::NONE, _) => Err(EstablishmentError::OnlyIpv4),
        (selected, _) => Ok(selected),
    }
}

const fn versions(kind: &PduSessionType) -> IpVersions {
    match kind {
        PduSessionType::Ipv4 => IpVersions::V4,
        PduSessionType::Ipv6 => IpVersions::V6,
        PduSessionType::Ipv4v6 => IpVersions::BOTH,
        _ => IpVersions::NONE,
    }
}

/// The data network's session-AMBR, for subscriptions that have none.
fn default_ambr(session: &SmContext, env: &Env<'_>) -> Ambr {
    env.network(session).map_or(Qos::UNKNOWN.ambr, |network| network.ambr)
}

/// The error that names the requested DNN and slice, and those that the subscription has.
fn not_subscribed(session: &SmContext, slices: &[SessionManagementSubscriptionData]) -> EstablishmentError {
    let names = slices.iter().flat_map(|slice| {
        slice.dnn_configurations.keys().map(move |dnn| format!("'{dnn}' in slice {}", slice.single_nssai))
    });
    EstablishmentError::NotSubscribed {
        asked: format!("'{}' in slice {}", session.dnn, session.snssai),
        subscribed: names.collect::<Vec<_>>().join(", "),
    }
}
