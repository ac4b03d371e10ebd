//! The UE's request in Nsmf_PDUSession_CreateSMContext (TS 23.502 4.3.2.2.1 step 3; TS 29.502 5.2.2.2), and the checks that need
//! no other NF (TS 24.501 6.4.1.4.1, 7.3 to 7.6).

use super::{Asks, AwaitingSubscriptionData, UeRequest};
use crate::kit::{Instant, Level, Outbox, Owner, PendingReply};
use crate::smf::config::{DataNetwork, SmfConfig};
use crate::smf::context::{Access, AmfLink, IpVersions, SmContext};
use crate::smf::error::EstablishmentError;
use crate::smf::procedure::release;
use crate::smf::{Smf, consumer, n1, table};
use pith_nas::gsm::PduSessionEstablishmentRequest;
use pith_nas::ie::{PcoRequest, PduSessionType, SscMode};
use pith_nas::{GsmBody, GsmMessage};
use pith_sbi::nsmf_pdusession::{SmContextCreateData, SmContextCreateErrorData};
use pith_sbi::{Problem, ProblemMore};
use pith_types::{Dnn, Snssai, Supi, Tac};

/// A request that passed the checks.
struct Accepted {
    supi: Supi,
    pdu_session_id: u8,
    dnn: Dnn,
    snssai: Snssai,
    tac: Option<Tac>,
    /// The requested IP versions, and whether the UE requests IPv6 addresses of DNS servers.
    ip: (IpVersions, bool),
    request: UeRequest,
    access: Box<Access>,
}

/// A request that is refused, with the data for the answer.
pub(super) struct Refused {
    pub supi: Option<Supi>,
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
        let accepted = match check(&self.shared.config, &data) {
            Ok(accepted) => accepted,
            Err(refused) => return refuse(reply, &refused, out),
        };
        // The UE no longer has an earlier session with the same identity, so the SMF ends that first (step 3a).
        if let Some(old) = self.shared.index.find(&accepted.supi, accepted.pdu_session_id) {
            let from = reply.caller();
            self.with_session(now, old, out, |state, session, env| {
                // An AMF that did not request the end is notified; otherwise its UE would keep a session without a user plane.
                if state.is_alive() && session.amf.owner.check(from).is_err() {
                    consumer::notify_released(session, env);
                }
                release::end_state(state, session, env)
            });
        }
        let Accepted { supi, pdu_session_id, dnn, snssai, tac, ip, request, access } = accepted;
        let (ids, rng) = (&mut self.shared.ids, &mut self.rng);
        let (instance, status_uri) = (data.serving_nf_id, data.sm_context_status_uri);
        let owner = Owner::of(reply.caller());
        let callback = status_uri.clone();
        let root = status_uri.root.clone();
        let amf = AmfLink { instance, root, status_uri, owner, handover_target: None };
        let named = (supi.clone(), pdu_session_id);
        let key = self.sessions.insert_with(|key| {
            let id = ids.allocate_beside(&callback, key);
            let seid = table::allocate_seid(rng, id);
            let mut session = SmContext::new((key, id, seid), named, (dnn, snssai), tac, amf);
            (session.ip, session.asks_dns6) = ip;
            Box::new(session)
        });
        let Some(key) = key else {
            let error = EstablishmentError::Resources;
            let refused = Refused { supi: Some(supi), pdu_session_id, pti: request.pti, error };
            return refuse(reply, &refused, out);
        };
        self.shared.index.claim(supi, pdu_session_id, key);
        let plmn = data.serving_network.plmn_id;
        self.with_session(now, key, out, |_, session, env| {
            AwaitingSubscriptionData::begin(session, env, reply, request, access, plmn)
        });
    }
}

fn check(config: &SmfConfig, data: &SmContextCreateData) -> Result<Accepted, Refused> {
    let octets = data.n1_sm_msg.as_ref().map(|message| message.content.clone()).unwrap_or_default();
    let (pdu_session_id, pti) = (data.pdu_session_id.unwrap_or(0), octets.get(2).copied().unwrap_or(0));
    let refused = |error| Refused { supi: data.supi.clone(), pdu_session_id, pti, error };
    let message = GsmMessage::decode(&octets).map_err(|error| refused(EstablishmentError::Message(error)))?;
    let GsmBody::PduSessionEstablishmentRequest(message) = message.body else {
        return Err(refused(EstablishmentError::WrongMessage));
    };
    let (Some(supi), Some(dnn), Some(snssai)) = (data.supi.clone(), data.dnn.clone(), data.s_nssai) else {
        return Err(refused(EstablishmentError::WrongMessage));
    };
    let Some(network) = config.network(&dnn, &snssai) else {
        return Err(refused(unknown_network(config, &dnn, &snssai)));
    };
    let ip = check_kind(&message, network).map_err(refused)?;
    let location = data.ue_location.as_ref().and_then(|location| location.nr_location.as_ref());
    let tac = location.map(|location| location.tai.tac);
    let request = UeRequest { pti, asks: asks(&message) };
    let ip = (ip, asks_for(&message, &PcoRequest::DnsServerIpv6));
    Ok(Accepted { supi, pdu_session_id, dnn, snssai, tac, ip, request, access: Box::new(access(data)) })
}

/// Checks PDU session type and SSC mode: IP and SSC mode 1 are supported, IPv6 only in data networks that have it (TS 24.501
/// 6.4.1.3, 6.4.1.4.1). Returns the IP versions of the requested type.
fn check_kind(
    request: &PduSessionEstablishmentRequest,
    network: &DataNetwork,
) -> Result<IpVersions, EstablishmentError> {
    let ip = match request.pdu_session_type {
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
    match request.ssc_mode {
        None | Some(SscMode::Mode1) => Ok(ip),
        Some(_) => Err(EstablishmentError::SscMode),
    }
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
        ipv4v6: request.pdu_session_type == Some(PduSessionType::Ipv4v6),
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

/// Refuses PostSmContexts, with PDU SESSION ESTABLISHMENT REJECT for the UE (step 5; TS 29.502 5.2.2.2.1 step 2b).
pub(super) fn refuse(reply: PendingReply, refused: &Refused, out: &mut Outbox) {
    let Refused { supi, pdu_session_id, pti, error } = refused;
    let who = || supi.as_ref().map_or_else(|| "UE without SUPI".into(), Supi::masked);
    out.log(Level::Warn, || format!("{} session {pdu_session_id}: refused: {error}", who()));
    let mut data = SmContextCreateErrorData::default();
    data.n1_sm_msg = Some(n1::establishment_reject(*pdu_session_id, *pti, error.gsm_cause()).into());
    let more = ProblemMore::SmContextCreateError(Box::new(data));
    reply.refuse(Problem::new(error.cause()).detail(error).with(more), out);
}
