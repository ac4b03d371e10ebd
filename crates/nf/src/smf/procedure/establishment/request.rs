//! The UE's request in Nsmf_PDUSession_CreateSMContext (TS 23.502 4.3.2.2.1 step 3; TS 29.502 5.2.2.2), and the checks that need
//! no other NF (TS 24.501 6.4.1.4.1, 7.3 to 7.6).

use super::{Asks, AwaitingSubscriptionData, UeRequest, emergency};
use crate::kit::{Instant, Level, Outbox, Owner, PendingReply};
use crate::smf::config::{DataNetwork, EmergencyServices, SmfConfig};
use crate::smf::context::{Access, AmfLink, IpVersions, SmContext};
use crate::smf::error::EstablishmentError;
use crate::smf::n1::UNASSIGNED_PTI;
use crate::smf::procedure::release;
use crate::smf::{Smf, consumer, n1, table};
use pith_nas::gsm::PduSessionEstablishmentRequest;
use pith_nas::ie::{GsmCapability, PcoRequest, PduSessionType, SscMode};
use pith_nas::{GsmBody, GsmMessage};
use pith_sbi::common::{AccessType, PresenceState};
use pith_sbi::nsmf_pdusession::{RequestType, SmContextCreateData, SmContextCreateErrorData};
use pith_sbi::{Problem, ProblemMore};
use pith_types::{Dnn, Plmn, Snssai, Supi, Tac, UeIdentity};

/// A request that passed the checks.
struct Accepted {
    ue: UeIdentity,
    source: Source,
    pdu_session_id: u8,
    dnn: Dnn,
    snssai: Snssai,
    tac: Option<Tac>,
    /// The requested IP versions, and whether the UE requests IPv6 addresses of DNS servers.
    ip: (IpVersions, bool),
    /// Whether the UE derives QoS rules.
    supports_reflective_qos: bool,
    asks_for_always_on: bool,
    request: UeRequest,
    access: Box<Access>,
}

/// What decides the QoS of a session.
enum Source {
    Subscription(Supi),
    /// An emergency session.
    Configuration(EmergencyServices),
}

/// A request that is refused, with the data for the answer.
pub(super) struct Refused {
    pub ue: Option<UeIdentity>,
    pub pdu_session_id: u8,
    pub pti: u8,
    pub error: EstablishmentError,
}

impl Smf {
    /// Begins an establishment (step 3).
    pub(in crate::smf) fn establish(
        &mut self,
        now: Instant,
        reply: PendingReply,
        data: SmContextCreateData,
        out: &mut Outbox,
    ) {
        let accepted = match check(&self.shared.config, self.shared.identity.plmn, &data) {
            Ok(accepted) => accepted,
            Err(refused) => return refuse(reply, &refused, out),
        };
        // The UE no longer has an earlier session with the same identity, so the SMF ends that first (step 3a). Its registration in the UDM is
        // replaced: a request to delete it could arrive after that.
        let mut is_registered = false;
        if let Some(old) = self.shared.index.find(&accepted.ue, accepted.pdu_session_id) {
            let from = reply.caller();
            self.with_session(now, old, out, |state, session, env| {
                // An AMF that did not request the end is notified; otherwise its UE would keep a session without a user plane.
                if state.is_alive() && session.amf.check(from).is_err() {
                    consumer::notify_released(session, env);
                }
                if matches!(accepted.source, Source::Subscription(_)) {
                    is_registered = std::mem::take(&mut session.is_registered);
                }
                release::end_state(state, session, env)
            });
        }
        let Accepted {
            ue,
            source,
            pdu_session_id,
            dnn,
            snssai,
            tac,
            ip,
            supports_reflective_qos,
            asks_for_always_on,
            request,
            access,
        } = accepted;
        let (ids, rng) = (&mut self.shared.ids, &mut self.rng);
        let (instance, status_uri) = (data.serving_nf_id, data.sm_context_status_uri);
        let owner = Owner::of(reply.caller());
        let callback = status_uri.clone();
        let root = status_uri.root.clone();
        let amf = AmfLink { instance, root, status_uri, owner, handover_target: None };
        let (named, is_emergency) =
            ((ue.clone(), pdu_session_id), matches!(source, Source::Configuration(_)));
        let key = self.sessions.insert_with(|key| {
            let id = ids.allocate_beside(&callback, key);
            let seid = table::allocate_seid(rng, id);
            let mut session = SmContext::new((key, id, seid), named, (dnn, snssai), tac, amf);
            (session.ip, session.asks_dns6) = ip;
            (session.is_emergency, session.is_registered) = (is_emergency, is_registered);
            session.reflective.is_supported = supports_reflective_qos;
            // Granted to each UE but for an emergency session, which lasts for one call.
            session.always_on = asks_for_always_on.then_some(!is_emergency);
            Box::new(session)
        });
        let Some(key) = key else {
            let error = EstablishmentError::Resources;
            let refused = Refused { ue: Some(ue), pdu_session_id, pti: request.pti, error };
            return refuse(reply, &refused, out);
        };
        self.shared.index.claim(ue, pdu_session_id, key);
        let plmn = data.serving_network.plmn_id;
        self.with_session(now, key, out, |_, session, env| match source {
            Source::Subscription(supi) => {
                AwaitingSubscriptionData::begin(session, env, reply, request, access, (supi, plmn))
            }
            Source::Configuration(services) => {
                emergency::begin(session, env, reply, request, *access, &services)
            }
        });
    }
}

fn check(config: &SmfConfig, home: Plmn, data: &SmContextCreateData) -> Result<Accepted, Refused> {
    let octets = data.n1_sm_msg.as_ref().map(|message| message.content.clone()).unwrap_or_default();
    let (pdu_session_id, pti) = (data.pdu_session_id.unwrap_or(0), octets.get(2).copied().unwrap_or(0));
    let refused = |error| Refused { ue: identity_of(data), pdu_session_id, pti, error };
    let message = GsmMessage::decode(&octets).map_err(|error| refused(EstablishmentError::Message(error)))?;
    let id = message.pdu_session_id;
    let GsmBody::PduSessionEstablishmentRequest(message) = message.body else {
        return Err(refused(EstablishmentError::WrongMessage));
    };
    if pti == UNASSIGNED_PTI {
        return Err(refused(EstablishmentError::UnassignedPti));
    }
    if id != pdu_session_id {
        return Err(Refused { pdu_session_id: id, ..refused(EstablishmentError::OtherIdentity) });
    }
    if id == 0 {
        return Err(refused(EstablishmentError::UnassignedIdentity));
    }
    if data.an_type != AccessType::ThreeGppAccess {
        return Err(refused(EstablishmentError::OtherAccess));
    }
    if is_transfer(data) {
        return Err(refused(EstablishmentError::NoSession));
    }
    let (Some(ue), Some(dnn), Some(snssai)) = (identity_of(data), data.dnn.clone(), data.s_nssai) else {
        return Err(refused(EstablishmentError::WrongMessage));
    };
    let dnn = configured_name(config, [home, data.serving_network.plmn_id], dnn, &snssai);
    let source = match &ue {
        _ if is_emergency(data) => {
            let services = config.emergency.as_ref().filter(|it| it.dnn == dnn && it.snssai == snssai);
            let services = services.ok_or_else(|| refused(EstablishmentError::NoEmergencyServices))?;
            Source::Configuration(services.clone())
        }
        UeIdentity::Supi(supi) => Source::Subscription(supi.clone()),
        UeIdentity::Pei(_) => return Err(refused(EstablishmentError::WrongMessage)),
    };
    let Some(network) = config.network(&dnn, &snssai) else {
        return Err(refused(unknown_network(config, &dnn, &snssai)));
    };
    // Without the AMF's word the UE counts as outside (TS 23.502 4.3.2.2.1 step 3).
    if network.is_ladn && data.presence_in_ladn != Some(PresenceState::InArea) {
        return Err(refused(EstablishmentError::OutsideLadn));
    }
    let ip = check_kind(&message, network).map_err(refused)?;
    let location = data.ue_location.as_ref().and_then(|location| location.nr_location.as_ref());
    let tac = location.map(|location| location.tai.tac);
    let request = UeRequest { pti, asks: asks(&message) };
    let ip = (ip, asks_for(&message, &PcoRequest::DnsServerIpv6));
    let asks_for_always_on = message.always_on_requested.is_some_and(|requested| requested.on);
    let supports_reflective_qos = message.gsm_capability.as_ref().is_some_and(GsmCapability::reflective_qos);
    Ok(Accepted {
        ue,
        source,
        pdu_session_id,
        dnn,
        snssai,
        tac,
        ip,
        supports_reflective_qos,
        asks_for_always_on,
        request,
        access: Box::new(access(data)),
    })
}

/// Whether the UE requests an emergency session.
fn is_emergency(data: &SmContextCreateData) -> bool {
    data.request_type == Some(RequestType::InitialEmergencyRequest)
}

/// Whether the UE requests the transfer of a session that it has (TS 24.501 6.4.1.4.1).
fn is_transfer(data: &SmContextCreateData) -> bool {
    let existing = [RequestType::ExistingPduSession, RequestType::ExistingEmergencyPduSession];
    data.request_type.as_ref().is_some_and(|kind| existing.contains(kind))
}

/// The identity under which the SMF has the session: the SUPI; the PEI in an emergency session of a UE whose SUPI is missing or was not
/// authenticated (TS 29.502 6.1.6.2.2).
pub(in crate::smf) fn identity_of(data: &SmContextCreateData) -> Option<UeIdentity> {
    let is_authenticated = data.unauthenticated_supi != Some(true);
    match (&data.supi, &data.pei) {
        (Some(supi), _) if is_authenticated => Some(UeIdentity::Supi(supi.clone())),
        (_, Some(pei)) if is_emergency(data) => Some(UeIdentity::Pei(pei.clone())),
        _ => None,
    }
}

/// Checks PDU session type and SSC mode: IP and SSC mode 1 are supported, IPv6 only in data networks that have it (TS 24.501
/// 6.4.1.3, 6.4.1.4.1). Returns the IP versions of the requested type.
fn check_kind(
    request: &PduSessionEstablishmentRequest,
    network: &DataNetwork,
) -> Result<IpVersions, EstablishmentError> {
    let ip = match request.pdu_session_type.map(PduSessionType::as_received) {
        None => IpVersions::NONE,
        Some(PduSessionType::Ipv4) => IpVersions::V4,
        Some(PduSessionType::Ipv4v6) => IpVersions::BOTH,
        Some(PduSessionType::Ipv6) if network.pool6.is_some() => IpVersions::V6,
        Some(PduSessionType::Ethernet | PduSessionType::Unstructured) if network.pool6.is_some() => {
            return Err(EstablishmentError::OnlyIp);
        }
        Some(PduSessionType::Ipv6 | PduSessionType::Ethernet | PduSessionType::Unstructured) => {
            return Err(EstablishmentError::OnlyIpv4);
        }
        Some(_) => return Err(EstablishmentError::UnknownSessionType),
    };
    match request.ssc_mode.map(SscMode::as_received) {
        None | Some(SscMode::Mode1) => Ok(ip),
        Some(_) => Err(EstablishmentError::SscMode),
    }
}

/// The requested DNN if the configuration has it, or else its network identifier if its operator identifier is that of one of these networks
/// (TS 23.003 9A).
fn configured_name(config: &SmfConfig, networks: [Plmn; 2], requested: Dnn, snssai: &Snssai) -> Dnn {
    if config.network(&requested, snssai).is_some() {
        return requested;
    }
    let identifier = networks.into_iter().find_map(|network| requested.network_identifier_in(network));
    identifier.unwrap_or(requested)
}

fn unknown_network(config: &SmfConfig, dnn: &Dnn, snssai: &Snssai) -> EstablishmentError {
    let name = |network: &DataNetwork| format!("'{}' in slice {}", network.dnn, network.snssai);
    let served = config.data_networks.iter().map(name).collect::<Vec<_>>().join(", ");
    EstablishmentError::UnknownDnnInSlice { asked: format!("'{dnn}' in slice {snssai}"), served }
}

/// The parameters that the UE requests, as far as the SMF can send them.
fn asks(request: &PduSessionEstablishmentRequest) -> Asks {
    Asks {
        dns: asks_for(request, &PcoRequest::DnsServerIpv4),
        mtu: asks_for(request, &PcoRequest::Ipv4LinkMtu),
        p_cscf4: asks_for(request, &PcoRequest::PcscfIpv4),
        p_cscf6: asks_for(request, &PcoRequest::PcscfIpv6),
        ipv4v6: request.pdu_session_type.map(PduSessionType::as_received) == Some(PduSessionType::Ipv4v6),
    }
}

fn asks_for(request: &PduSessionEstablishmentRequest, what: &PcoRequest) -> bool {
    request.extended_pco.as_ref().is_some_and(|pco| pco.asks(what))
}

fn access(data: &SmContextCreateData) -> Access {
    Access {
        kind: data.an_type,
        rat_type: data.rat_type.clone(),
        serving_network: data.serving_network.clone(),
        location: data.ue_location.clone(),
        time_zone: data.ue_time_zone.clone(),
        pei: data.pei.clone(),
        gpsi: data.gpsi.clone(),
        guami: data.guami,
    }
}

/// Refuses PostSmContexts, with PDU SESSION ESTABLISHMENT REJECT for the UE (step 5; TS 29.502 5.2.2.2.1 step 2b). A PTI that does not fit has
/// 5GSM STATUS in its place, and a message that is to be ignored no answer (TS 24.501 7.2, 7.3).
pub(super) fn refuse(reply: PendingReply, refused: &Refused, out: &mut Outbox) {
    let Refused { ue, pdu_session_id, pti, error } = refused;
    let who = || ue.as_ref().map_or_else(|| "UE without SUPI".into(), UeIdentity::masked);
    out.log(Level::Warn, || format!("{} session {pdu_session_id}: refused: {error}", who()));
    let mut data = SmContextCreateErrorData::default();
    let message = match error {
        EstablishmentError::Message(error) if error.gsm_cause().is_none() => None,
        EstablishmentError::UnassignedPti => Some(n1::status(*pdu_session_id, *pti, error.gsm_cause())),
        error => Some(n1::establishment_reject(*pdu_session_id, *pti, error.gsm_cause())),
    };
    data.n1_sm_msg = message.map(Into::into);
    let more = ProblemMore::SmContextCreateError(Box::new(data));
    reply.refuse(Problem::new(error.cause()).detail(error).with(more), out);
}
