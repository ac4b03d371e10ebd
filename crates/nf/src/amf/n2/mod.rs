//! N2: NGAP between gNB and AMF (TS 38.413): the UE-associated procedures. The gateway handles the
//! procedures that concern a whole gNB.
//!
//! A PDU is accepted only from the gNB of an open connection, with its pair of ids. Any other is
//! answered with ERROR INDICATION (TS 38.413 10.6).

mod faulty;
mod initial_ue_message;
mod interface;
mod reports;
mod send;
mod setup;

pub(crate) use initial_ue_message::Initial;
pub(in crate::amf) use initial_ue_message::octets_kept;
pub(crate) use send::{
    HandoverContent, close, deliver, downlink_nas_transport, error_indication, handover_request, leave,
    modify_sessions, modify_ue_context, open_context, page, rekey, release, release_connection,
    release_resources, release_sessions, respond, send_to,
};
pub(in crate::amf) use setup::Setups;

use super::Amf;
use super::connection::{RanContext, RanSide};
use super::context::{Env, UeContext};
use super::error::unknown_connection;
use super::mobility::{flow_mobility, n2_handover, path_switch};
use super::n1::{self, NasOutcome};
use super::procedure::{
    context_setup, nas_non_delivery, pdu_session_resources, ue_context_release, voice_match,
};
use super::trace;
use crate::kit::{Effect, GnbHandle, Instant, Key, Level, N2Effect, Outbox, TnlaBinding};
use pith_ngap::{
    Cause, CauseProtocol, ErrorIndication, HandoverFailure, HandoverNotify, HandoverRequestAcknowledge,
    Message, Notice, PathSwitchRequest, UeRadioCapabilityInfoIndication, UplinkNasTransport, peek,
};
use pith_types::{AmfUeNgapId, RanUeNgapId};

/// The gNB of a received PDU, and where it arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct N2Origin {
    pub gnb: GnbHandle,
    pub binding: TnlaBinding,
}

/// What has become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handling {
    Processed,
    /// It had no effect: it got an answer that says so, or none is due.
    Discarded,
}

impl Amf {
    /// Handles one UE-associated NGAP PDU. One that waited for its context, while the association of its gNB ended, is discarded.
    pub(super) fn ngap_pdu(&mut self, now: Instant, from: N2Origin, pdu: &[u8], out: &mut Outbox) {
        if !self.shared.gnbs.contains_key(&from.gnb) {
            return;
        }
        let (message, notice) = match Message::decode_with_notice(pdu) {
            Ok(decoded) => decoded,
            Err(error) => return self.ngap_error(now, from, pdu, &error, out),
        };
        let is_reported = wants_answer(&message);
        let before = out.effects().len();
        let handling = match message {
            Message::InitialUeMessage(message) => self.initial_ue_message(now, from, (message, pdu), out),
            Message::Other(other) => self.unknown_procedure(from, pdu, other, out),
            message => self.ue_associated(now, from, pdu, message, out),
        };
        if let Some(notice) = notice.filter(|_| is_reported && handling == Handling::Processed) {
            self.give_notice(from, pdu, notice, before, out);
        }
    }

    /// Reports what was ignored of a message: in the procedure's response, which may have to wait for SMFs or another gNB, or by ERROR INDICATION if
    /// it has none (TS 38.413 10.3.4.2).
    fn give_notice(
        &mut self,
        from: N2Origin,
        pdu: &[u8],
        notice: Box<Notice>,
        before: usize,
        out: &mut Outbox,
    ) {
        out.log(Level::Warn, || format!("NGAP: ignored, and reported to the gNB: {}", notice.text));
        let response = out.effects_since(before).iter_mut().find_map(|effect| match effect {
            Effect::N2(N2Effect::Send { gnb, pdu, .. }) if *gnb == from.gnb => {
                Some((notice.add_to(pdu)?, pdu))
            }
            _ => None,
        });
        if let Some((octets, response)) = response {
            *response = octets.into();
            return;
        }
        let (amf_id, ran_id) = ids_of(pdu);
        let connections = &mut self.shared.connections;
        if notice.awaits_response()
            && let Some(key) = amf_id.and_then(|id| connections.find(id))
        {
            return connections.keep_notice(key, notice);
        }
        error_indication(from, amf_id, ran_id, Notice::CAUSE, Some(notice.diagnostics), out);
    }

    /// Dispatches a UE-associated PDU if its ids are those of a connection of that gNB. A connection that the
    /// gNB knows by another pair of ids is unusable: both sides release it (TS 38.413 10.6).
    fn ue_associated(
        &mut self,
        now: Instant,
        from: N2Origin,
        pdu: &[u8],
        message: Message,
        out: &mut Outbox,
    ) -> Handling {
        if let Message::ErrorIndication(ErrorIndication {
            amf_ue_ngap_id: None,
            ran_ue_ngap_id: Some(ran_id),
            ..
        }) = message
        {
            // The gNB's own id identifies the connection (TS 38.413 8.7.5.2).
            if let Some(key) = self.shared.connections.find_by_ran(from.gnb, ran_id) {
                self.shared.connections.rebind(key, from.binding);
                return self.over_connection(now, from, key, message, out);
            }
            return Handling::Discarded;
        }
        let Some((amf_id, ran_id)) = ids(&message) else {
            return self.not_for_an_amf(from, pdu, &message, out);
        };
        let connection = self.shared.connections.find(amf_id);
        if let Message::PathSwitchRequest(message) = message {
            return self.path_switch_request(now, from, connection, message, out);
        }
        let message = match message {
            Message::HandoverRequestAcknowledge(message) => {
                return self.handover_acknowledged(now, from, connection, message, out);
            }
            Message::HandoverFailure(message) => {
                return self.handover_refused(now, from, connection, &message, out);
            }
            message => message,
        };
        let known = connection.and_then(|key| self.shared.connections.get(key));
        match (connection, known) {
            (Some(key), Some(known)) if known.gnb == from.gnb && known.ran_id == ran_id => {
                self.shared.connections.rebind(key, from.binding);
                if has_late_response(&message) {
                    // A former procedure of the kind had no response: it was cancelled.
                    self.shared.connections.take_notice(key);
                }
                self.over_connection(now, from, key, message, out)
            }
            (Some(key), Some(known)) if known.left == Some((from.gnb, ran_id)) => {
                self.from_former_gnb(now, from, key, message, out);
                // The gNB may have given its id to another UE since: it gets no message with it.
                Handling::Discarded
            }
            (None, _) if self.is_released_at_setup(amf_id) => {
                out.log(Level::Debug, || format!("{} for {amf_id:?} crossed NG RESET", message.name()));
                Handling::Discarded
            }
            (key, known) => {
                let cause = unknown_connection(connection.is_some());
                out.log(Level::Warn, || format!("{} for {amf_id:?}, {ran_id:?}: {cause}", message.name()));
                if wants_answer(&message) {
                    error_indication(from, Some(amf_id), Some(ran_id), cause, None, out);
                }
                let is_of_this_gnb = known.is_some_and(|known| known.gnb == from.gnb);
                if let Some(key) = key.filter(|_| is_of_this_gnb) {
                    self.connection_lost(now, key, out);
                }
                Handling::Discarded
            }
        }
    }

    /// HANDOVER REQUEST ACKNOWLEDGE: the target gNB assigns its id (TS 38.413 8.4.2.2).
    fn handover_acknowledged(
        &mut self,
        now: Instant,
        from: N2Origin,
        connection: Option<Key>,
        message: HandoverRequestAcknowledge,
        out: &mut Outbox,
    ) -> Handling {
        let ids = (message.amf_ue_ngap_id, message.ran_ue_ngap_id);
        let Some((key, ue)) = self.awaited_target(from, connection) else {
            if self.is_releasing(from, connection) {
                // The gNB sent it before it received UE CONTEXT RELEASE COMMAND.
                return Handling::Discarded;
            }
            let known = connection.and_then(|key| self.shared.connections.get(key));
            let is_repeated = known.is_some_and(|known| (known.gnb, known.ran_id) == (from.gnb, ids.1));
            let cause = if is_repeated {
                // TS 38.413 10.4. With another cause the gNB would release the UE (10.6).
                Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state)
            } else {
                unknown_connection(connection.is_some())
            };
            out.log(Level::Warn, || format!("HandoverRequestAcknowledge for {ids:?}: {cause}"));
            error_indication(from, Some(ids.0), Some(ids.1), cause, None, out);
            return Handling::Discarded;
        };
        self.drop_stale(now, from, ids.1, out);
        self.with_ue(now, ue, out, |ue, env| {
            env.connections.note_prepared(key, ids.1);
            env.connections.rebind(key, from.binding);
            n2_handover::acknowledged(ue, env, message);
        });
        Handling::Processed
    }

    /// HANDOVER FAILURE: the target gNB has no UE context (TS 38.413 8.4.2.3).
    fn handover_refused(
        &mut self,
        now: Instant,
        from: N2Origin,
        connection: Option<Key>,
        message: &HandoverFailure,
        out: &mut Outbox,
    ) -> Handling {
        let Some((key, ue)) = self.awaited_target(from, connection) else {
            if let Some(key) = connection.filter(|_| self.is_releasing(from, connection)) {
                self.with_env(now, out, |env| close(env, key));
            }
            out.log(Level::Debug, || "HandoverFailure without HANDOVER REQUEST".to_owned());
            return Handling::Discarded;
        };
        self.with_ue(now, ue, out, |ue, env| {
            close(env, key);
            n2_handover::refused(ue, env, message);
        });
        Handling::Processed
    }

    /// Whether that gNB is to release the connection.
    fn is_releasing(&self, from: N2Origin, connection: Option<Key>) -> bool {
        let known = connection.and_then(|key| self.shared.connections.get(key));
        known.is_some_and(|known| known.gnb == from.gnb && known.context == RanContext::Releasing)
    }

    /// The connection for which that gNB has not answered HANDOVER REQUEST, and its UE.
    fn awaited_target(&self, from: N2Origin, connection: Option<Key>) -> Option<(Key, Key)> {
        let key = connection?;
        let known = self.shared.connections.get(key)?;
        let is_awaited = known.gnb == from.gnb && known.context == RanContext::Awaiting;
        Some((key, known.ue.filter(|_| is_awaited)?))
    }

    /// A message of the gNB that the UE has left, which was in transit: the UE's NAS messages count, and those returned to it; the gNB's
    /// own, and where it has received them, do not.
    fn from_former_gnb(
        &mut self,
        now: Instant,
        from: N2Origin,
        key: Key,
        message: Message,
        out: &mut Outbox,
    ) {
        let message = match message {
            Message::UplinkNasTransport(message) => UplinkNasTransport { location: None, ..message }.into(),
            message => message,
        };
        if matches!(message, Message::UplinkNasTransport(_) | Message::NasNonDeliveryIndication(_)) {
            self.over_connection(now, from, key, message, out);
            return;
        }
        out.log(Level::Debug, || format!("{} of the gNB that the UE has left", message.name()));
    }

    /// PATH SWITCH REQUEST: the target gNB identifies the UE by the AMF-UE-NGAP-ID from the source
    /// gNB, and by a RAN-UE-NGAP-ID of its own.
    fn path_switch_request(
        &mut self,
        now: Instant,
        from: N2Origin,
        connection: Option<Key>,
        message: PathSwitchRequest,
        out: &mut Outbox,
    ) -> Handling {
        let target = RanSide { gnb: from.gnb, binding: from.binding, ran_id: message.ran_ue_ngap_id };
        let is_considered = self.shared.gnbs.may_switch_paths(now, from.gnb);
        let ue = connection.and_then(|key| self.shared.connections.get(key)?.ue);
        let Some(ue) = ue.filter(|_| is_considered) else {
            self.with_env(now, out, |env| path_switch::refuse_unknown(env, target, &message));
            return Handling::Discarded;
        };
        if self.shared.connections.find_by_ran(from.gnb, target.ran_id) != connection {
            self.drop_stale(now, from, target.ran_id, out);
        }
        let mut handling = Handling::Processed;
        self.with_ue(now, ue, out, |ue, env| {
            match ue.connection.filter(|key| Some(*key) == connection) {
                Some(key) => {
                    env.connections.take_notice(key);
                    path_switch::request(ue, env, (key, target), message);
                }
                None => {
                    // It is the connection at the target gNB of an N2 handover.
                    path_switch::refuse_unknown(env, target, &message);
                    handling = Handling::Discarded;
                }
            }
        });
        handling
    }

    /// Handles a PDU over an open connection.
    fn over_connection(
        &mut self,
        now: Instant,
        from: N2Origin,
        key: Key,
        message: Message,
        out: &mut Outbox,
    ) -> Handling {
        if let Message::UeContextReleaseComplete(complete) = message {
            self.release_complete(now, key, complete.location, out);
            return Handling::Processed;
        }
        let connection = self.shared.connections.get(key);
        if connection.is_some_and(|connection| connection.context == RanContext::Releasing) {
            // The gNB sent it before it received UE CONTEXT RELEASE COMMAND.
            out.log(Level::Debug, || format!("{} while releasing", message.name()));
            return Handling::Discarded;
        }
        let mut handling = Handling::Discarded;
        if connection.is_some_and(|connection| connection.context == RanContext::Left) {
            self.with_env(now, out, |env| handling = send::on_message_of_left(env, key, &message));
            self.settle(now, out);
            return handling;
        }
        let Some(ue) = connection.and_then(|connection| connection.ue) else { return Handling::Discarded };
        self.with_ue(now, ue, out, |ue, env| {
            handling = if ue.connection == Some(key) {
                to_ue(ue, env, from, message)
            } else {
                from_target(ue, env, (from, key), message)
            };
        });
        self.give_up_excess(now, from, out);
        handling
    }

    /// UE CONTEXT RELEASE COMPLETE: the ids are free again (TS 38.413 8.3.3.2). So they are without a command, which a former run of this shard may
    /// have sent: the gNB does not have the UE any longer. Errors in a response are handled locally (10.4).
    fn release_complete(
        &mut self,
        now: Instant,
        key: Key,
        location: Option<pith_ngap::UserLocation>,
        out: &mut Outbox,
    ) {
        let Some(connection) = self.shared.connections.close(key) else { return };
        if connection.context != RanContext::Releasing {
            let id = connection.id;
            out.log(Level::Warn, || format!("UeContextReleaseComplete for {id:?}, without a command"));
        }
        out.stop(key.to_u64(), crate::kit::Timer::NgapGuard);
        let Some(ue) = connection.ue else { return };
        self.with_ue(now, ue, out, |ue, env| {
            if ue.connection == Some(key) {
                ue_context_release::complete(ue, env, location);
            } else {
                // The target gNB of a handover: the UE is still at its source.
                n2_handover::target_lost(ue, env);
            }
        });
        self.note_leaving(ue, (key, connection.gnb));
    }
}

/// The ids of a PDU, as far as they can be decoded: ERROR INDICATION repeats them (TS 38.413 8.7.5.2).
fn ids_of(pdu: &[u8]) -> (Option<AmfUeNgapId>, Option<RanUeNgapId>) {
    peek(pdu).map_or((None, None), |ids| (ids.amf_ue_ngap_id, ids.ran_ue_ngap_id))
}

/// Whether an error in a message is answered. ERROR INDICATION in answer to ERROR INDICATION would
/// never end, and a final message of a procedure is not answered (TS 38.413 10.6).
const fn wants_answer(message: &Message) -> bool {
    !matches!(message, Message::ErrorIndication(_) | Message::UeContextReleaseComplete(_))
}

/// Whether the message begins a procedure over the connection of its gNB whose response waits for SMFs or another gNB.
const fn has_late_response(message: &Message) -> bool {
    matches!(message, Message::HandoverRequired(_) | Message::PduSessionResourceModifyIndication(_))
}

/// The ids of a UE-associated PDU that a gNB sends to an AMF.
fn ids(message: &Message) -> Option<(AmfUeNgapId, RanUeNgapId)> {
    macro_rules! ids_of {
        ($($name:ident),*) => {
            match message {
                $(Message::$name(message) => Some((message.amf_ue_ngap_id, message.ran_ue_ngap_id)),)*
                Message::ErrorIndication(error) => error.amf_ue_ngap_id.zip(error.ran_ue_ngap_id),
                Message::HandoverFailure(failure) => Some((failure.amf_ue_ngap_id, RanUeNgapId(u32::MAX))),
                Message::PathSwitchRequest(request) => {
                    Some((request.source_amf_ue_ngap_id, request.ran_ue_ngap_id))
                }
                _ => None,
            }
        };
    }
    ids_of!(
        UplinkNasTransport,
        NasNonDeliveryIndication,
        InitialContextSetupResponse,
        InitialContextSetupFailure,
        UeContextReleaseRequest,
        UeContextReleaseComplete,
        UeContextModificationResponse,
        UeContextModificationFailure,
        UeRadioCapabilityInfoIndication,
        UeRadioCapabilityCheckResponse,
        PduSessionResourceSetupResponse,
        PduSessionResourceReleaseResponse,
        PduSessionResourceModifyResponse,
        PduSessionResourceNotify,
        PduSessionResourceModifyIndication,
        HandoverRequired,
        HandoverRequestAcknowledge,
        HandoverNotify,
        HandoverCancel,
        UplinkRanStatusTransfer,
        UplinkRanEarlyStatusTransfer,
        RrcInactiveTransitionReport,
        SecondaryRatDataUsageReport,
        LocationReport,
        LocationReportingFailureIndication,
        TraceFailureIndication,
        CellTrafficTrace
    )
}

/// A PDU of the target gNB of a handover, before the UE has arrived there.
fn from_target(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    (from, key): (N2Origin, Key),
    message: Message,
) -> Handling {
    match message {
        Message::HandoverNotify(message) => n2_handover::notified(ue, env, key, &message),
        // The UE would not get the answer, which goes to its source gNB: it repeats its message (TS 24.501 5.5.1.2.7, 5.6.1.7).
        Message::UplinkNasTransport(_) => {
            let name = ue.name();
            env.out.log(Level::Info, || format!("{name}: a NAS message before HANDOVER NOTIFY is ignored"));
            return Handling::Discarded;
        }
        Message::UeContextReleaseRequest(_) => n2_handover::target_lost(ue, env),
        Message::TraceFailureIndication(message) => trace::failed(ue, env, &message),
        Message::CellTrafficTrace(message) => trace::cell_traffic(ue, env, &message),
        Message::ErrorIndication(error) if ue_context_release::is_unknown_ue(&error) => {
            n2_handover::target_lost(ue, env);
        }
        Message::ErrorIndication(error) => env.out.log(Level::Warn, || {
            format!("{}: ERROR INDICATION of the target gNB: {:?}", ue.name(), error.cause)
        }),
        message => {
            let cause = Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state);
            env.out.log(Level::Warn, || format!("{} of the target gNB", message.name()));
            if let Some((amf_id, ran_id)) = ids(&message) {
                error_indication(from, Some(amf_id), Some(ran_id), cause, None, env.out);
            }
            return Handling::Discarded;
        }
    }
    Handling::Processed
}

/// Dispatches a PDU to its procedure.
fn to_ue(ue: &mut UeContext, env: &mut Env<'_>, from: N2Origin, message: Message) -> Handling {
    ue.note_redirected();
    match message {
        Message::UplinkNasTransport(message) => {
            uplink_nas_transport(ue, env, from.gnb, &message);
            // The UE is at its gNB: its handover has ended.
            nas_non_delivery::send_again(ue, env);
        }
        Message::NasNonDeliveryIndication(message) => {
            nas_non_delivery::indicated(ue, env, from.gnb, &message);
        }
        Message::InitialContextSetupResponse(message) => context_setup::response(ue, env, message),
        Message::InitialContextSetupFailure(message) => context_setup::failure(ue, env, message),
        Message::UeContextReleaseRequest(message) => ue_context_release::request(ue, env, &message),
        Message::UeRadioCapabilityInfoIndication(message) => radio_capability(ue, env, message),
        Message::UeRadioCapabilityCheckResponse(message) => voice_match::answered(ue, env, &message),
        Message::PduSessionResourceSetupResponse(message) => {
            pdu_session_resources::setup_answered(ue, env, message.setup, message.failed);
        }
        Message::PduSessionResourceReleaseResponse(message) => {
            pdu_session_resources::release_answered(ue, env, message.released);
        }
        Message::PduSessionResourceModifyResponse(message) => {
            pdu_session_resources::modified(ue, env, message.modified, message.failed);
        }
        Message::PduSessionResourceNotify(message) => {
            pdu_session_resources::notified(ue, env, message.notified, message.released);
        }
        // The gNB has taken K_gNB of the current K_AMF into use, if it had another one (TS 33.501 6.9.4.4).
        Message::UeContextModificationResponse(_)
            if ue.access_keys.is_outdated() && !ue.mobility.is_n2_handover() =>
        {
            ue.access_keys.reset();
        }
        Message::ErrorIndication(error) => ue_context_release::error_indication(ue, env, &error),
        Message::HandoverRequired(message) => n2_handover::required(ue, env, message),
        Message::HandoverCancel(message) => n2_handover::cancel(ue, env, &message),
        // Ignored without a prepared handover (TS 38.413 8.4.6.3).
        Message::UplinkRanStatusTransfer(message) => n2_handover::relay_status(ue, env, message.status),
        Message::UplinkRanEarlyStatusTransfer(message) => {
            n2_handover::relay_early_status(ue, env, message.status);
        }
        Message::LocationReport(message) => reports::located(ue, env, from.gnb, message.location),
        Message::RrcInactiveTransitionReport(message) => {
            reports::located(ue, env, from.gnb, message.location)
        }
        Message::SecondaryRatDataUsageReport(message) => {
            reports::secondary_rat_usage(ue, env, from.gnb, message)
        }
        Message::LocationReportingFailureIndication(message) => {
            reports::not_located(ue, env, message.cause);
        }
        Message::TraceFailureIndication(message) => trace::failed(ue, env, &message),
        Message::CellTrafficTrace(message) => trace::cell_traffic(ue, env, &message),
        Message::UeContextModificationFailure(message) => reports::not_modified(ue, env, message.cause),
        Message::PduSessionResourceModifyIndication(message) => {
            reports::located(ue, env, from.gnb, message.location);
            flow_mobility::indicated(ue, env, message);
        }
        // The UE is at this gNB: no handover is in progress to which it could belong (TS 38.413 10.4).
        Message::HandoverNotify(HandoverNotify { amf_ue_ngap_id, ran_ue_ngap_id, .. }) => {
            let cause = Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state);
            error_indication(from, Some(amf_ue_ngap_id), Some(ran_ue_ngap_id), cause, None, env.out);
            return Handling::Discarded;
        }
        message => env.out.log(Level::Debug, || format!("{}: nothing to do", message.name())),
    }
    Handling::Processed
}

/// Octets of the UE radio capability that are kept for the next gNB. Without it, that gNB requests it from the UE.
pub(in crate::amf) const MAX_RADIO_CAPABILITY: usize = 64 << 10;

/// UE RADIO CAPABILITY INFO INDICATION (TS 38.413 8.14.1). A UE without security in this AMF has no capability to report:
/// a gNB obtains it from the UE with AS security (TS 38.331 5.6.1.2). So an unauthenticated context costs no memory for it.
fn radio_capability(ue: &mut UeContext, env: &mut Env<'_>, message: UeRadioCapabilityInfoIndication) {
    let Some(capability) = message.ue_radio_capability else { return };
    if ue.security.is_none() || capability.len() > MAX_RADIO_CAPABILITY {
        let octets = capability.len();
        return env.out.log(Level::Debug, || format!("{}: {octets} octets of capability ignored", ue.name()));
    }
    if let Some(place) = ue.half_open {
        // Another AMF has passed it on with its keys, and it has sent nothing yet.
        env.half_open.grow(place, capability.len());
    }
    ue.radio_capability = Some(capability.into());
}

/// UPLINK NAS TRANSPORT (TS 38.413 8.6.3). All messages of an unauthenticated UE count in its octets: any of them may be
/// kept, such as a longer REGISTRATION REQUEST than the first.
fn uplink_nas_transport(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    gnb: GnbHandle,
    message: &UplinkNasTransport,
) -> NasOutcome {
    if let Some(place) = ue.half_open {
        env.half_open.grow(place, octets_kept(message.nas_pdu.len()));
    }
    reports::located(ue, env, gnb, message.location);
    n1::receive(ue, env, &message.nas_pdu)
}
