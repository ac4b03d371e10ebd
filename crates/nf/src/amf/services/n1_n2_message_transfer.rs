//! Namf_Communication_N1N2MessageTransfer (TS 29.518 5.2.2.3.1; TS 23.502 4.2.3.3): an SMF has a
//! message for a UE, or for its gNB; or a source AMF has one for the target gNB of a handover.

use crate::amf::Amf;
use crate::amf::context::{Env, UeContext};
use crate::amf::delivery::{self, SmfMessage, Transfer, Undelivered};
use crate::amf::error::TransferError;
use crate::amf::mobility::arrival;
use crate::amf::procedure::paging;
use crate::amf::reachability;
use crate::kit::{Caller, Instant, Key, Outbox};
use pith_sbi::namf_communication::{
    N1MessageClass, N1N2MessageTransfer, N1N2MessageTransferCause, N1N2MessageTransferReqData,
    N1N2MessageTransferRspData, N2InfoContainer, N2InformationClass, NgapIeType,
};
use pith_sbi::{Created, Reply, Response, Uri};

/// Messages queued for a UE that is being paged, or handed over to another gNB of this AMF: one of each session and some more.
const MAX_QUEUED: usize = 24;

/// Octets of the messages queued for a UE that is being paged.
const MAX_QUEUED_OCTETS: usize = 64 << 10;

impl Amf {
    /// Sends the message, or pages the UE.
    pub(super) fn n1_n2_message_transfer(
        &mut self,
        now: Instant,
        from: Caller,
        request: N1N2MessageTransfer,
        out: &mut Outbox,
    ) -> Reply {
        let mut reply = Err(TransferError::NoContext);
        if let Some(key) = self.find_receiver(&request) {
            self.with_ue(now, key, out, |ue, env| reply = transfer(ue, env, from, request.body));
        }
        reply.map_err(|error| error.problem().into())
    }

    /// The context for a message: the source gNB's status is for the UE that is being handed over.
    pub(in crate::amf) fn find_receiver(&self, request: &N1N2MessageTransfer) -> Option<Key> {
        match ran_information(&request.body) {
            Some(_) => self.find_arrival(&request.ue_context_id),
            None => self.find_context(&request.ue_context_id),
        }
    }
}

fn transfer(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    from: Caller,
    body: N1N2MessageTransferReqData,
) -> Result<Response, TransferError> {
    if let Some(content) = ran_information(&body) {
        arrival::relay(ue, env, from, content)?;
        return Ok(initiated());
    }
    if ue.arrival.is_some() {
        return Err(TransferError::HandoverOngoing);
    }
    if ue.procedure.is_registering() {
        return Err(TransferError::RegistrationOngoing);
    }
    let skip_paging = body.skip_ind == Some(true);
    let arp = body.arp.as_ref().map(|arp| arp.priority_level);
    let on_failure = body.n1n2_failure_txf_notif_uri.clone();
    // The UE would take any other content as a 5GSM message: only SMFs may send the class SM, which the guard checks.
    if body.n1_message_container.as_ref().is_some_and(|n1| n1.n1_message_class != N1MessageClass::Sm) {
        return Err(TransferError::OtherClass);
    }
    check_session_information(&body)?;
    let has_n1 = body.n1_message_container.is_some();
    let without = if has_n1 { TransferError::NoSessionId } else { TransferError::Empty };
    let message = message(body).ok_or(without)?;
    let session = ue.session_mut(message.id).ok_or(TransferError::NoSession)?;
    if !session.admits(from) {
        return Err(TransferError::OtherSmf);
    }
    // The UE's context is on its way to another AMF, which gets no message that this one has queued (TS 23.502 4.9.1.3.1). A message that
    // ends a session waits nevertheless, for a UE that stays: SMFs send it once.
    if ue.mobility.is_departure() && (message.is_setup() || !message.begins_or_ends_session()) {
        return Err(TransferError::HandoverOngoing);
    }
    if message.is_setup() && !ue.has_service_for(message.id) {
        return Err(TransferError::NonAllowedArea);
    }
    // The command means the resources at the source gNB. After the handover it would release those at the target.
    if ue.mobility.is_handover() && message.is_release_of_resources() {
        return Err(TransferError::HandoverOngoing);
    }
    // The SMF may name the tunnels of the source gNB. It learns next that the UE is to leave that gNB.
    if message.is_modification_of_resources() && ue.mobility.prepares(message.id) {
        return Err(TransferError::HandoverOngoing);
    }
    let is_queued = ue.mobility.is_n2_handover() || ue.mobility.moves_flows_of(message.id);
    if is_queued && ue.undelivered.len() >= MAX_QUEUED {
        return Err(TransferError::QueueFull);
    }
    if ue.is_reachable(env) || ue.mobility.is_n2_handover() {
        let queued = ue.undelivered.len();
        delivery::send(ue, env, message);
        if ue.undelivered.len() > queued {
            // It waits for a procedure. If the UE's connection is lost meanwhile, the UE is paged for it.
            reachability::note_priority(ue, env.config, arp);
        }
        return Ok(initiated());
    }
    let is_for_gnb = message.is_for_resources() && (skip_paging || message.n1.is_none());
    let is_setup_of_connected = message.is_setup() && skip_paging && message.n1.is_none();
    if (is_for_gnb || is_setup_of_connected) && !ue.awaits_gnb(env) {
        return Err(TransferError::Idle);
    }
    if skip_paging && message.n2.is_none() {
        return Ok(not_transferred());
    }
    if reachability::is_unreachable(ue, env) {
        return Err(TransferError::NotReachable);
    }
    page_for(ue, env, (message, arp), on_failure)
}

/// Information for the target gNB of a handover, from the source AMF.
fn ran_information(body: &N1N2MessageTransferReqData) -> Option<(Option<&NgapIeType>, &bytes::Bytes)> {
    let container = body.n2_info_container.as_ref()?;
    let information = container.ran_info.as_ref().filter(|_| container.sm_info.is_none())?;
    let content = &information.n2_info_content;
    Some((content.ngap_ie_type.as_ref(), &content.ngap_data.content))
}

/// Checks the N2 information about a session (TS 29.518 6.1.6.2.27): what this AMF can't pass on is refused.
fn check_session_information(body: &N1N2MessageTransferReqData) -> Result<(), TransferError> {
    let Some(container) = &body.n2_info_container else { return Ok(()) };
    if !matches!(container.n2_information_class, N2InformationClass::Sm | N2InformationClass::Ran) {
        return Err(TransferError::OtherN2Class);
    }
    let Some(information) = &container.sm_info else { return Ok(()) };
    if body.pdu_session_id.is_some_and(|id| id != information.pdu_session_id) {
        return Err(TransferError::OtherSession);
    }
    let kind = information.n2_info_content.as_ref().and_then(|content| content.ngap_ie_type.clone());
    match kind.map(Transfer::from) {
        Some(Transfer::Unsupported) => Err(TransferError::OtherInformation),
        _ => Ok(()),
    }
}

/// The message in the request, if it concerns a session.
fn message(body: N1N2MessageTransferReqData) -> Option<SmfMessage> {
    let n1 = body.n1_message_container.map(|container| container.n1_message_content.content);
    let (n2_session, n2) = body.n2_info_container.and_then(session_information).unzip();
    let id = body.pdu_session_id.or(n2_session)?;
    SmfMessage::of_session(id, n1, n2)
}

fn session_information(container: N2InfoContainer) -> Option<(u8, (Transfer, bytes::Bytes))> {
    let information = container.sm_info?;
    let content = information.n2_info_content?;
    Some((information.pdu_session_id, (content.ngap_ie_type?.into(), content.ngap_data.content)))
}

fn initiated() -> Response {
    let cause = N1N2MessageTransferCause::N1N2TransferInitiated;
    Response::N1N2MessageTransferInitiated(Box::new(N1N2MessageTransferRspData::new(cause)))
}

/// The sender does not want the UE to be paged for its message (`skipInd`).
fn not_transferred() -> Response {
    let cause = N1N2MessageTransferCause::N1MsgNotTransferred;
    Response::N1N2MessageTransferInitiated(Box::new(N1N2MessageTransferRspData::new(cause)))
}

/// Queues the message and pages the UE, at once or when its connection is released. Returns the URI
/// that identifies the message in a failure notification.
///
/// # Errors
///
/// Refuses the message if too many are queued for the UE.
fn page_for(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    (message, arp): (SmfMessage, Option<u8>),
    on_failure: Option<Uri>,
) -> Result<Response, TransferError> {
    let name = ue.identity().as_ref().map(ToString::to_string).unwrap_or_default();
    let path = format!("/namf-comm/v1/ue-contexts/{name}/n1-n2-messages/{}", env.rng.next_u32());
    let location = Uri::new(&env.config.identity.api_root, &path);
    let on_failure = on_failure.map(|callback| (callback, location.clone()));
    if message.n2.is_some() {
        // The new message supersedes a queued one of that session for the gNB alone.
        ue.undelivered.retain(|kept| kept.message.id != message.id || kept.message.n1.is_some());
        reachability::note_dequeued(ue);
    }
    // The SMF retransmits a command (TS 24.501 6.3.2.5, 6.3.3.5) that the UE has not got: it gets it once.
    ue.undelivered.retain(|kept| kept.message != message);
    let octets = ue.undelivered.iter().map(|kept| kept.message.octets()).sum::<usize>() + message.octets();
    if ue.undelivered.len() >= MAX_QUEUED || octets > MAX_QUEUED_OCTETS {
        return Err(TransferError::QueueFull);
    }
    ue.undelivered.push(Undelivered { message, on_failure });
    reachability::note_priority(ue, env.config, arp);
    if ue.connection.is_none() {
        paging::begin(ue, env);
    }
    let body = N1N2MessageTransferRspData::new(N1N2MessageTransferCause::AttemptingToReachUe);
    Ok(Response::N1N2MessageTransferAccepted(Box::new(Created { location, body })))
}
