//! UL NAS TRANSPORT (TS 24.501 5.4.5.2): forwards the UE's 5GSM messages to SMFs without decoding
//! them. A payload that can't be forwarded is returned with the cause (TS 24.501 5.4.5.3.1 case e).

use crate::amf::consumer;
use crate::amf::context::{Env, UeContext};
use crate::amf::delivery;
use crate::amf::emergency;
use crate::amf::error::TransportError;
use crate::amf::n1::{self, NasOutcome, Silence};
use crate::amf::refusal;
use crate::amf::session::PduSession;
use crate::kit::{Level, Nf};
use bytes::Bytes;
use pith_nas::gmm::{DlNasTransport, UlNasTransport};
use pith_nas::ie::{PayloadContainerType, RequestType};
use pith_types::{Dnn, Snssai};

/// PDU sessions of a UE at most: identities 1 to 15.
const MAX_SESSIONS: usize = 15;

/// Handles UL NAS TRANSPORT.
pub(crate) fn uplink(ue: &mut UeContext, env: &mut Env<'_>, transport: UlNasTransport) -> NasOutcome {
    if !ue.is_registered() {
        return NasOutcome::Silent(Silence::NotExpected);
    }
    let kind = transport.payload_container_type;
    let id = transport.pdu_session_id;
    let payload = Bytes::from(transport.payload_container);
    let way = match (kind, id) {
        (PayloadContainerType::N1SmInformation, Some(id @ 1..=15)) => {
            let routing = Routing {
                id,
                request_type: transport.request_type.map(RequestType::as_received),
                snssai: transport.snssai.map(|mapped| mapped.snssai),
                dnn: transport.dnn.map(|dnn| requested_network(ue, env, dnn)),
            };
            let asked = (routing.snssai, routing.dnn.clone());
            let way = session_message(ue, env, routing, &payload);
            if matches!(way, Err(TransportError::DnnNotSupported)) {
                let why = || refusal::explain_session(ue, asked.0, asked.1.as_ref());
                env.out.log(Level::Warn, || format!("{}: {}", ue.name(), why()));
            }
            way
        }
        _ => Err(TransportError::NotForwarded),
    };
    match way {
        Ok(()) => NasOutcome::Waiting(Nf::Smf),
        Err(error) => send_back(ue, env, kind, id, &payload, error),
    }
}

/// The requested DNN without the operator identifier of a served network, unless the subscription has it with that (TS 23.003 9A).
fn requested_network(ue: &UeContext, env: &Env<'_>, dnn: Dnn) -> Dnn {
    let is_subscribed = ue.subscription.as_deref().is_some_and(|subscription| subscription.names_dnn(&dnn));
    let identifier = env.config.network_identifier(&dnn).filter(|_| !is_subscribed);
    identifier.unwrap_or(dnn)
}

/// The routing IEs that accompany a 5GSM message.
struct Routing {
    id: u8,
    request_type: Option<RequestType>,
    snssai: Option<Snssai>,
    dnn: Option<Dnn>,
}

/// Finds the SMF of a 5GSM message (TS 24.501 5.4.5.2.3).
fn session_message(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    routing: Routing,
    payload: &Bytes,
) -> Result<(), TransportError> {
    use RequestType::{ExistingPduSession, InitialRequest, ModificationRequest};
    let asks_for_emergency = matches!(
        routing.request_type,
        Some(RequestType::InitialEmergencyRequest | RequestType::ExistingEmergencyPduSession)
    );
    if asks_for_emergency {
        return emergency_session(ue, env, routing, payload);
    }
    let asks_for_session = matches!(routing.request_type, Some(InitialRequest | ExistingPduSession));
    if asks_for_session && ue.is_emergency_registered() {
        // It may have an emergency session only (TS 23.501 5.16.4.1).
        return Err(TransportError::NotForwarded);
    }
    // A request for another session with the identity of the emergency session is not one for that.
    let has_service = if asks_for_session { ue.has_service() } else { ue.has_service_for(routing.id) };
    let is_restricted = asks_for_session || routing.request_type == Some(ModificationRequest);
    if is_restricted && !has_service {
        // A release is permitted (TS 24.501 5.3.5.2).
        return Err(TransportError::RestrictedServiceArea);
    }
    match (routing.request_type, ue.session(routing.id).is_some()) {
        (Some(RequestType::InitialRequest), true) => {
            // The UE no longer has the existing session (TS 23.502 4.3.2.2.1 step 2).
            consumer::release_session(ue, env, routing.id);
            establish(ue, env, routing, payload)
        }
        (Some(RequestType::InitialRequest), false) => establish(ue, env, routing, payload),
        (_, true) => forward(ue, env, routing.id, payload),
        (_, false) => Err(TransportError::NotForwarded),
    }
}

/// A message of an existing session.
fn forward(ue: &mut UeContext, env: &mut Env<'_>, id: u8, payload: &Bytes) -> Result<(), TransportError> {
    if ue.session(id).is_some_and(PduSession::is_busy) {
        // The SMF does not answer: messages are returned rather than kept for it.
        return Err(TransportError::NotForwarded);
    }
    consumer::forward(ue, env, id, payload);
    Ok(())
}

/// A request for an emergency session (TS 24.501 5.4.5.2.3, TS 23.501 5.16.4.9): the UE has one at most. Its data network and slice are
/// those of the configuration, and restrictions do not apply.
fn emergency_session(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    routing: Routing,
    payload: &Bytes,
) -> Result<(), TransportError> {
    let services = emergency::services(env).map_err(|_| TransportError::NotForwarded)?;
    let current = ue.emergency_session();
    if routing.request_type == Some(RequestType::ExistingEmergencyPduSession) {
        return if current == Some(routing.id) {
            forward(ue, env, routing.id, payload)
        } else {
            Err(TransportError::NotForwarded)
        };
    }
    if current.is_some_and(|current| current != routing.id) {
        return Err(TransportError::NotForwarded);
    }
    // The UE no longer has a session with that identity.
    consumer::release_session(ue, env, routing.id);
    delivery::drop_queued(ue, routing.id);
    ue.sessions.push(PduSession::new(routing.id, services.snssai, services.dnn.clone()));
    ue.note_requested_session(routing.id, true);
    consumer::establish_session(ue, env, routing.id, payload);
    Ok(())
}

/// A new session: slice and data network select the SMF. They default to those of the subscription
/// (TS 24.501 5.4.5.2.3 a; TS 23.501 5.6.1, 6.3.2).
fn establish(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    routing: Routing,
    payload: &Bytes,
) -> Result<(), TransportError> {
    if ue.lacks_registration() {
        // Its subscription is not known yet. #91 would bar the data network for the UE (TS 24.501 5.4.5.2.5).
        return Err(TransportError::NotForwarded);
    }
    if ue.sessions.len() >= MAX_SESSIONS {
        return Err(TransportError::TooManySessions);
    }
    let snssai = slice_of(ue, &routing)?;
    let dnn = data_network_of(ue, &routing, &snssai)?;
    delivery::drop_queued(ue, routing.id);
    let session = delivery::after_former(ue, env, PduSession::new(routing.id, snssai, dnn));
    ue.sessions.push(session);
    ue.note_requested_session(routing.id, false);
    consumer::establish_session(ue, env, routing.id, payload);
    Ok(())
}

/// The slice that the UE requests, if it is allowed. Without one, an allowed slice in which the
/// data network is subscribed; a default slice is preferred.
fn slice_of(ue: &UeContext, routing: &Routing) -> Result<Snssai, TransportError> {
    let allowed = &ue.slices.allowed;
    if let Some(snssai) = routing.snssai {
        return allowed.contains(&snssai).then_some(snssai).ok_or(TransportError::NotForwarded);
    }
    let subscription = ue.subscription.as_deref().ok_or(TransportError::NotForwarded)?;
    let default = |slice: &&Snssai| subscription.default_slices.contains(slice);
    let candidates = allowed.iter().filter(default).chain(allowed);
    let fits = |slice: &&Snssai| match &routing.dnn {
        Some(dnn) => subscription.has_dnn(slice, dnn),
        None => subscription.default_dnn(slice).is_some(),
    };
    candidates.copied().find(|slice| fits(&slice)).ok_or(TransportError::DnnNotSupported)
}

/// The data network that the UE requests, if it is subscribed. Without one, the default of the slice.
fn data_network_of(ue: &UeContext, routing: &Routing, snssai: &Snssai) -> Result<Dnn, TransportError> {
    let subscription = ue.subscription.as_deref().ok_or(TransportError::NotForwarded)?;
    let dnn = match &routing.dnn {
        Some(dnn) => Some(dnn).filter(|dnn| subscription.has_dnn(snssai, dnn)),
        None => subscription.default_dnn(snssai),
    };
    dnn.cloned().ok_or(TransportError::DnnNotSupported)
}

/// Returns a payload that was not forwarded.
pub(crate) fn send_back(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    kind: PayloadContainerType,
    id: Option<u8>,
    payload: &[u8],
    error: TransportError,
) -> NasOutcome {
    env.out.log(Level::Debug, || format!("{}: {error}", ue.name()));
    let mut transport = DlNasTransport::new(kind, payload.to_vec());
    transport.pdu_session_id = id;
    transport.cause = Some(error.cause());
    n1::send(ue, env, transport);
    NasOutcome::Rejected(error.cause())
}

/// The plain DL NAS TRANSPORT that carries a 5GSM message to the UE.
pub(crate) fn session_downlink(id: u8, message: &[u8]) -> DlNasTransport {
    let mut transport = DlNasTransport::new(PayloadContainerType::N1SmInformation, message.to_vec());
    transport.pdu_session_id = Some(id);
    transport
}
