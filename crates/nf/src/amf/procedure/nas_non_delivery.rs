//! NAS NON DELIVERY INDICATION (TS 38.413 8.6.4): the gNB returns a NAS message that it could not deliver, because the UE is being
//! handed over. The AMF sends it again after the handover, with a new NAS COUNT (TS 24.501 5.4.4.6 b, 5.5.1.2.8 d).
//!
//! | step | from |
//! |---|---|
//! | NAS NON DELIVERY INDICATION, cause handover triggered | source gNB |
//! | the handover ends, or the UE sends from the same gNB: the message again | |
//!
//! The message counts only if it has this AMF's MAC, and is one of the last that the UE was sent: with a new COUNT the UE accepts it, also if it
//! has received it before, so that a gNB must not choose among all that it has seen (TS 33.501 6.4.3). One of a procedure that has ended
//! meanwhile is not sent again. Messages that were not delivered for another reason are lost: those with a timer are repeated when it expires.

use super::Procedure;
use crate::amf::connection::RanContext;
use crate::amf::context::{Env, UeContext};
use crate::amf::session::{PduSession, UserPlane};
use crate::amf::{n1, refusal};
use crate::kit::{GnbHandle, Level};
use pith_nas::{GmmMessage, GsmBody, GsmMessage};
use pith_ngap::{Cause, NasNonDeliveryIndication};

/// Returned messages of a UE that are kept at most, and their octets.
const MAX_MESSAGES: usize = 8;
const MAX_OCTETS: usize = 16 << 10;

/// Messages from the last one back that a gNB can return.
const LATEST: u8 = 16;

/// NAS NON DELIVERY INDICATION of a gNB.
pub(crate) fn indicated(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    from: GnbHandle,
    message: &NasNonDeliveryIndication,
) {
    env.out.log(Level::Info, || {
        format!("{}: a NAS message was not delivered: {}", ue.name(), refusal::text_of(message.cause))
    });
    if !message.cause.is_some_and(Cause::is_handover) {
        return;
    }
    let security = ue.security.as_ref();
    let plain = message.nas_pdu.as_ref().zip(security).and_then(|(pdu, it)| it.nas.reopen(pdu, LATEST).ok());
    let Some(plain) = plain else {
        return env.out.log(Level::Warn, || {
            format!("{}: the message returned is not one of the last that the UE was sent", ue.name())
        });
    };
    let octets = ue.returned.iter().map(Vec::len).sum::<usize>() + plain.len();
    if ue.returned.contains(&plain) {
        return;
    }
    if ue.returned.len() >= MAX_MESSAGES || octets > MAX_OCTETS {
        return env.out.log(Level::Warn, || format!("{}: too many messages are returned", ue.name()));
    }
    ue.returned.push(plain);
    // The indication was in transit while the handover ended.
    let gnb = ue.connection.and_then(|key| env.connections.get(key)).map(|connection| connection.gnb);
    if gnb != Some(from) {
        send_again(ue, env);
    }
}

/// Sends the returned messages, unless a handover is in progress.
pub(crate) fn send_again(ue: &mut UeContext, env: &mut Env<'_>) {
    if ue.returned.is_empty() || ue.mobility.is_n2_handover() {
        return;
    }
    let connection = ue.connection.and_then(|key| env.connections.get(key));
    if connection.is_none_or(|connection| connection.context != RanContext::Established) {
        return;
    }
    for plain in std::mem::take(&mut ue.returned) {
        if is_current(ue, &plain) {
            n1::send_plain(ue, env, &plain);
        }
    }
}

/// Whether the UE is still to get the message: one of the procedure in progress, or of none.
fn is_current(ue: &UeContext, plain: &[u8]) -> bool {
    use GmmMessage as M;
    use Procedure as P;
    let Ok(message) = M::decode(plain) else { return false };
    match (message, &ue.procedure) {
        (M::DlNasTransport(transport), _) => transport.pdu_session_id.is_none_or(|id| {
            // The SMF sends an accept again with a setup that the gNB has refused.
            let has_resources = |session: &PduSession| session.user_plane == UserPlane::Activated;
            ue.session(id).is_some_and(|it| has_resources(it) || !is_accept(&transport.payload_container))
        }),
        (M::ConfigurationUpdateCommand(command), procedure) => {
            let needs_answer = command.indication.is_some_and(|indication| indication.acknowledgement);
            let is_awaited =
                ue.has_update() || matches!(procedure, P::AwaitingConfigurationUpdateComplete(_));
            !needs_answer || is_awaited
        }
        (M::RegistrationAccept(_), P::AwaitingRegistrationComplete(_))
        | (M::DeregistrationRequestUeTerminated(_), P::AwaitingDeregistrationAccept(_))
        | (M::AuthenticationRequest(_), P::AwaitingAuthenticationResponse(_) | P::AwaitingEapResponse(_))
        | (M::IdentityRequest(_), P::AwaitingIdentityResponse(_)) => true,
        _ => false,
    }
}

/// Whether it is a PDU SESSION ESTABLISHMENT ACCEPT.
fn is_accept(payload: &[u8]) -> bool {
    GsmMessage::decode(payload).is_ok_and(|it| matches!(it.body, GsmBody::PduSessionEstablishmentAccept(_)))
}
