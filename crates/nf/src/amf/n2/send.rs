//! NGAP messages that the AMF sends.

use super::{Handling, N2Origin};
use crate::amf::access_keys::NextHop;
use crate::amf::connection::{NgConnection, RanContext, RanSide};
use crate::amf::context::{DeferredAction, Env, UeContext, host_of};
use crate::amf::mobility::n2_handover;
use crate::amf::procedure::{registration, subscription_change};
use crate::amf::reachability::Drx;
use crate::amf::{delivery, security};
use crate::kit::{Duration, GnbHandle, Key, Level, N2Effect, Outbox, Timer, TnlaBinding};
use pith_ngap::transfer::ReleaseCommandTransfer;
use pith_ngap::{
    Cause, CauseNas, Diagnostics, DownlinkNasTransport, EncodeError, ErrorIndication,
    HandoverCancelAcknowledge, HandoverItem, HandoverRequest, HandoverType, InitialContextSetupRequest,
    Message, ModifyItem, Paging, PduSessionResourceModifyRequest, PduSessionResourceReleaseCommand,
    PduSessionResourceSetupRequest, SessionTransfer, SetupItem, UeContextModificationRequest,
    UeContextReleaseCommand, UeNgapIds,
};
use pith_types::{Ambr, AmfUeNgapId, BitRate, RanUeNgapId};

type Encoded = Result<Vec<u8>, EncodeError>;

/// Sends a PDU to a gNB.
pub(super) fn send(out: &mut Outbox, gnb: GnbHandle, binding: TnlaBinding, pdu: Encoded) {
    match pdu {
        Ok(pdu) => out.n2(N2Effect::Send { gnb, binding, pdu: pdu.into() }),
        Err(error) => out.log(Level::Error, || error.to_string()),
    }
}

/// Sends a PDU to the gNB's end of a connection.
pub(crate) fn send_to(out: &mut Outbox, side: RanSide, pdu: Encoded) {
    send(out, side.gnb, side.binding, pdu);
}

/// Sends the response of a gNB's procedure over a connection, with what was ignored of the request (TS 38.413 10.3.4.2).
pub(crate) fn respond(env: &mut Env<'_>, key: Key, pdu: Encoded) {
    let Some(side) = env.connections.side(key) else { return };
    let pdu = pdu.map(|pdu| env.connections.with_notice(key, pdu));
    send_to(env.out, side, pdu);
}

/// The gNB has a UE context: sends the PDUs queued for it.
pub(crate) fn open_context(ue: &UeContext, env: &mut Env<'_>) {
    let Some(connection) = ue.connection.and_then(|key| env.connections.get_mut(key)) else { return };
    connection.context = RanContext::Established;
    let (gnb, binding) = (connection.gnb, connection.binding);
    for pdu in std::mem::take(&mut connection.queued) {
        env.out.n2(N2Effect::Send { gnb, binding, pdu: pdu.into() });
    }
}

/// Sends a PDU over a connection.
fn send_over(out: &mut Outbox, connection: &NgConnection, pdu: Encoded) {
    send(out, connection.gnb, connection.binding, pdu);
}

/// Sends a PDU over a connection, or queues it until the gNB has a UE context.
fn send_in_context(out: &mut Outbox, connection: &mut NgConnection, pdu: Encoded) {
    match (&connection.context, pdu) {
        (RanContext::Requested | RanContext::Switching, Ok(pdu)) => connection.queued.push(pdu),
        (RanContext::Releasing | RanContext::Left, _) => {}
        (_, pdu) => send_over(out, connection, pdu),
    }
}

/// ERROR INDICATION (TS 38.413 8.7.5).
pub(crate) fn error_indication(
    from: N2Origin,
    amf_ue_ngap_id: Option<AmfUeNgapId>,
    ran_ue_ngap_id: Option<RanUeNgapId>,
    cause: Cause,
    diagnostics: Option<Diagnostics>,
    out: &mut Outbox,
) {
    let message =
        ErrorIndication { amf_ue_ngap_id, ran_ue_ngap_id, cause: Some(cause), diagnostics, s_tmsi: None };
    send(out, from.gnb, from.binding, message.encode());
}

/// DOWNLINK NAS TRANSPORT (TS 38.413 8.6.2); `nas_pdu` is already protected. Nothing is sent to a
/// UE in CM-IDLE or over a connection that is being released. The message is queued behind earlier
/// ones with lower NAS COUNTs, which the UE would otherwise discard as replays (TS 24.501 4.4.3.2).
pub(crate) fn downlink_nas_transport(ue: &UeContext, env: &mut Env<'_>, nas_pdu: Vec<u8>) {
    // The gNB uses it in place of the former one (TS 38.413 8.6.2.2).
    let allowed_nssai = subscription_change::new_slices(ue, env).map(|slices| slices.allowed);
    let allowed_nssai = allowed_nssai.filter(|slices| !slices.is_empty());
    let Some(connection) = ue.connection.and_then(|key| env.connections.get_mut(key)) else { return };
    if connection.context == RanContext::Releasing {
        return;
    }
    // The gNB keeps them until it gets others (TS 38.413 8.6.2.2).
    let unsent = ue.has_unsent_restrictions()
        && ue.check_restrictions().is_ok()
        && connection.context != RanContext::Absent;
    let mobility_restrictions =
        unsent.then(|| ue.mobility_restrictions(&env.config.equivalent_plmns)).flatten();
    let message = DownlinkNasTransport {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        old_amf: ue.old_amf(),
        nas_pdu,
        mobility_restrictions,
        ue_ambr: None,
        allowed_nssai: allowed_nssai.filter(|_| connection.context != RanContext::Absent),
    };
    if connection.queued.is_empty() && connection.context != RanContext::Switching {
        send_over(env.out, connection, message.encode())
    } else {
        send_in_context(env.out, connection, message.encode())
    }
}

/// Sends a NAS message with the N2 resources of its sessions, in the message that the connection's
/// state requires. Without sessions it is a DOWNLINK NAS TRANSPORT, unless `wants_context`: then
/// the gNB gets a UE context if it has none.
pub(crate) fn deliver(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    nas_pdu: Option<Vec<u8>>,
    sessions: Vec<SetupItem>,
    wants_context: bool,
) {
    let Some(context) = ue.ng(env).map(|connection| connection.context) else { return };
    match (context, sessions.is_empty()) {
        (RanContext::Absent, false) => initial_context_setup_request(ue, env, nas_pdu, sessions),
        (RanContext::Absent, true) if wants_context => {
            initial_context_setup_request(ue, env, nas_pdu, sessions);
        }
        (_, true) => {
            if let Some(nas_pdu) = nas_pdu {
                downlink_nas_transport(ue, env, nas_pdu);
            }
        }
        (_, false) => pdu_session_resource_setup_request(ue, env, nas_pdu, sessions),
    }
}

/// INITIAL CONTEXT SETUP REQUEST (TS 38.413 8.3.1): K_gNB, and the other parameters of the UE
/// context. Starts the NGAP guard timer.
pub(crate) fn initial_context_setup_request(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    nas_pdu: Option<Vec<u8>>,
    sessions: Vec<SetupItem>,
) {
    let Some(key) = ue.connection else { return };
    let trace = ue.activate_trace(env, key);
    let (Some(connection), Some(context)) = (env.connections.get_mut(key), &ue.security) else { return };
    let message = InitialContextSetupRequest {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        old_amf: ue.old_amf(),
        ue_ambr: (!sessions.is_empty()).then(|| ue.ambr().unwrap_or(UNLIMITED)),
        guami: env.config.guami_in(ue.location),
        sessions: (!sessions.is_empty()).then_some(sessions),
        allowed_nssai: ue.slices.allowed.clone(),
        security_capabilities: security::ngap_capabilities(&context.capability),
        security_key: *context.k_gnb(ue.k_gnb_count).as_bytes(),
        trace,
        ue_radio_capability: ue.radio_capability.as_ref().map(|capability| capability.to_vec()),
        rfsp_index: ue.rfsp().map(u64::from),
        masked_imeisv: ue.pei.as_ref().and_then(masked_imeisv),
        mobility_restrictions: ue.mobility_restrictions(&env.config.equivalent_plmns),
        nas_pdu,
    };
    connection.context = RanContext::Requested;
    ue.access_keys.reset();
    send_over(env.out, connection, message.encode());
    env.out.start(key.to_u64(), Timer::NgapGuard, env.config.timers.ngap_guard);
}

/// What a HANDOVER REQUEST has in addition to the UE's context.
pub(crate) struct HandoverContent {
    pub cause: Option<Cause>,
    pub next_hop: NextHop,
    /// K_NG-RAN* is derived from the first K_gNB of another K_AMF (New Security Context Indicator).
    pub has_new_k_amf: bool,
    pub nas_container: Option<Vec<u8>>,
    pub sessions: Vec<HandoverItem>,
    pub source_to_target: Vec<u8>,
}

/// HANDOVER REQUEST to the target gNB (TS 38.413 8.4.2). GUAMI and serving network are those of the network that the source gNB has selected for
/// the target (TS 23.502 4.9.1.3.1), as in INITIAL CONTEXT SETUP REQUEST afterwards.
pub(crate) fn handover_request(ue: &mut UeContext, env: &mut Env<'_>, key: Key, content: HandoverContent) {
    let trace = ue.activate_trace(env, key);
    let selected = ue.target_plmn.take().or(ue.location.map(|location| location.tai.plmn_id));
    let (Some(connection), Some(context)) = (env.connections.get(key), &ue.security) else { return };
    let message = HandoverRequest {
        amf_ue_ngap_id: connection.id,
        handover_type: HandoverType::intra5gs,
        cause: content.cause,
        ue_ambr: ue.ambr().unwrap_or(UNLIMITED),
        security_capabilities: security::ngap_capabilities(&context.capability),
        security_context: (&content.next_hop).into(),
        new_security_context: content.has_new_k_amf.then_some(()),
        nas_container: content.nas_container,
        sessions: content.sessions,
        allowed_nssai: ue.slices.allowed.clone(),
        trace,
        masked_imeisv: ue.pei.as_ref().and_then(masked_imeisv),
        source_to_target: content.source_to_target,
        mobility_restrictions: selected
            .and_then(|plmn| ue.mobility_restrictions_in(plmn, &env.config.equivalent_plmns)),
        guami: env.config.guami_in_network(selected),
    };
    send_over(env.out, connection, message.encode());
}

/// UE-AMBR of a subscription without one: the maximum bit rate of NGAP (TS 38.413 9.3.1.4).
const UNLIMITED: Ambr = Ambr { uplink: BitRate(4_000_000_000_000), downlink: BitRate(4_000_000_000_000) };

/// IMEISV with the last four digits of the serial number masked: digits 11 to 14 become 1111 in
/// bits (TS 38.413 9.3.1.54).
fn masked_imeisv(pei: &pith_types::Pei) -> Option<[u8; 8]> {
    let digits = pei.as_str().strip_prefix("imeisv-")?.as_bytes();
    let mut masked = [0; 8];
    for (octet, pair) in masked.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| pair.get(at).map_or(0, |digit| digit & 0xf);
        *octet = digit(0) << 4 | digit(1);
    }
    masked[5] = 0xff;
    masked[6] = 0xff;
    Some(masked)
}

/// PDU SESSION RESOURCE SETUP REQUEST (TS 38.413 8.2.1). Starts the NGAP guard timer, unless the message waits for a UE context.
fn pdu_session_resource_setup_request(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    nas_pdu: Option<Vec<u8>>,
    sessions: Vec<SetupItem>,
) {
    let ue_ambr = ue.ambr();
    let Some(connection) = ue.connection.and_then(|key| env.connections.get_mut(key)) else { return };
    let message = PduSessionResourceSetupRequest {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        nas_pdu,
        sessions,
        ue_ambr,
    };
    let is_sent = connection.context == RanContext::Established;
    send_in_context(env.out, connection, message.encode());
    if is_sent {
        delivery::guard_requests(ue, env);
    }
}

/// PDU SESSION RESOURCE RELEASE COMMAND (TS 38.413 8.2.2). Starts the NGAP guard timer, unless the message waits for a UE context.
pub(crate) fn release_sessions(
    ue: &UeContext,
    env: &mut Env<'_>,
    nas_pdu: Option<Vec<u8>>,
    sessions: Vec<SessionTransfer>,
) {
    let Some(connection) = ue.connection.and_then(|key| env.connections.get_mut(key)) else { return };
    let message = PduSessionResourceReleaseCommand {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        nas_pdu,
        sessions,
    };
    let is_sent = connection.context == RanContext::Established;
    send_in_context(env.out, connection, message.encode());
    if is_sent && let Some(key) = ue.connection {
        env.out.start(key.to_u64(), Timer::NgapGuard, env.config.timers.ngap_guard);
    }
}

/// Requests the gNB to release a session that the UE or the network no longer has. The SMF has no
/// context of it to request this, and the gNB would refuse a later setup (TS 38.413 8.2.1.4).
pub(crate) fn release_resources(ue: &UeContext, env: &mut Env<'_>, id: u8) {
    let transfer = ReleaseCommandTransfer { cause: Cause::Nas(CauseNas::normal_release) }.encode();
    release_sessions(ue, env, None, vec![SessionTransfer { pdu_session_id: id, transfer }]);
}

/// PDU SESSION RESOURCE MODIFY REQUEST (TS 38.413 8.2.3).
pub(crate) fn modify_sessions(ue: &UeContext, env: &mut Env<'_>, sessions: Vec<ModifyItem>) {
    let Some(connection) = ue.connection.and_then(|key| env.connections.get_mut(key)) else { return };
    let message = PduSessionResourceModifyRequest {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        sessions,
    };
    send_in_context(env.out, connection, message.encode());
}

/// Sends the gNB a changed UE-AMBR or RFSP index, if the gNB has a UE context (TS 38.413 8.3.4). If it has not confirmed a new key yet, it
/// gets that as well: its next response confirms both. The target gNB of a handover has the former values, and gets the change afterwards.
pub(crate) fn modify_ue_context(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.modifies_target = ue.mobility.is_n2_handover();
    let has_new_key = ue.access_keys.is_outdated() && !ue.mobility.is_n2_handover();
    ue_context_modification_request(ue, env, has_new_key);
}

/// Sends the gNB a K_gNB of the UE's new security context, if its UE context uses an older one (TS
/// 33.501 6.9.4.4).
pub(crate) fn rekey(ue: &UeContext, env: &mut Env<'_>) {
    if ue.mobility.is_n2_handover() {
        // The target gNB has keys of the former chain, and gets the new key when the UE has arrived (6.9.5.1).
        return;
    }
    ue_context_modification_request(ue, env, true);
}

fn ue_context_modification_request(ue: &UeContext, env: &mut Env<'_>, has_new_key: bool) {
    let Some(connection) = ue.connection.and_then(|key| env.connections.get(key)) else { return };
    if connection.context != RanContext::Established {
        return;
    }
    let context = ue.security.as_ref().filter(|_| has_new_key);
    let message = UeContextModificationRequest {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        security_key: context.map(|context| *context.k_gnb(ue.k_gnb_count).as_bytes()),
        rfsp_index: ue.rfsp().map(u64::from),
        ue_ambr: ue.ambr(),
        security_capabilities: context.map(|context| security::ngap_capabilities(&context.capability)),
    };
    send_over(env.out, connection, message.encode());
}

/// Requests the gNB to release the UE's connection (TS 38.413 8.3.3). The UE becomes CM-IDLE when
/// the gNB confirms.
pub(crate) fn release(ue: &UeContext, env: &mut Env<'_>, cause: Cause) {
    if let Some(key) = ue.connection {
        release_connection(env, key, cause);
    }
}

/// The UE has left the source gNB of an N2 handover, which is released after that time at the latest.
pub(crate) fn leave(ue: &UeContext, env: &mut Env<'_>, source: Key, after: Duration) {
    let Some(connection) = env.connections.get_mut(source) else { return };
    connection.detach(ue);
    if connection.context != RanContext::Releasing {
        connection.context = RanContext::Left;
        env.out.start(source.to_u64(), Timer::NgapGuard, after);
    }
}

/// A message of a gNB that the UE has left by an N2 handover. Its HANDOVER CANCEL is late (TS 38.413 8.4.5.2).
pub(super) fn on_message_of_left(env: &mut Env<'_>, key: Key, message: &Message) -> Handling {
    let Some(connection) = env.connections.get(key) else { return Handling::Discarded };
    match message {
        Message::HandoverCancel(cancel) => {
            let acknowledge = HandoverCancelAcknowledge {
                amf_ue_ngap_id: cancel.amf_ue_ngap_id,
                ran_ue_ngap_id: cancel.ran_ue_ngap_id,
                diagnostics: None,
            };
            send_over(env.out, connection, acknowledge.encode());
        }
        Message::UeContextReleaseRequest(_) => release_connection(env, key, n2_handover::SUCCESSFUL),
        _ => return Handling::Discarded,
    }
    Handling::Processed
}

/// UE CONTEXT RELEASE COMMAND (TS 38.413 8.3.3), sent once for a connection. Starts the NGAP guard timer.
pub(crate) fn release_connection(env: &mut Env<'_>, key: Key, cause: Cause) {
    let Some(connection) = env.connections.get_mut(key) else { return };
    if connection.context == RanContext::Releasing {
        return;
    }
    let ids = match connection.context {
        // The gNB has not assigned its id (TS 38.413 8.3.3.2).
        RanContext::Awaiting => UeNgapIds::Amf(connection.id),
        _ => UeNgapIds::Pair(connection.id, connection.ran_id),
    };
    send_over(env.out, connection, UeContextReleaseCommand { ids, cause }.encode());
    let gnb = env.connections.get(key).map(|connection| connection.gnb);
    let host = host_of(env.gnbs, gnb);
    if let Some(excess) = env.connections.start_release(key, host) {
        env.after.push(DeferredAction::Close(excess));
    }
    env.out.start(key.to_u64(), Timer::NgapGuard, env.config.timers.ngap_guard);
}

/// Removes a connection that the gNB no longer has.
pub(crate) fn close(env: &mut Env<'_>, key: Key) {
    if env.connections.close(key).is_some() {
        env.out.stop(key.to_u64(), Timer::NgapGuard);
    }
}

/// PAGING to each gNB that serves a part of the UE's registration area (TS 38.413 8.5.1). PAGING is
/// not UE-associated, so it uses stream 0 (TS 38.412 7) of one association of the gNB. A UE that may not have received its new
/// 5G-GUTI is paged by both 5G-GUTIs (TS 24.501 5.4.4.6 a, 5.5.1.2.8 c). One that another AMF has handed over may have no registration area
/// of this AMF yet: it is paged where it could get one.
pub(crate) fn page(ue: &UeContext, env: &mut Env<'_>) {
    let area = match &ue.registration_area {
        unknown if unknown.is_empty() => registration::registration_area(ue, env),
        known => known.clone(),
    };
    for guti in ue.old_guti.into_iter().chain(ue.guti) {
        let message = Paging {
            paging_drx: ue.reachability.drx.map(Drx::paging_drx),
            priority: ue.reachability.priority(),
            nr_edrx: ue.paging_edrx(),
            ..Paging::new(guti.s_tmsi(), area.clone())
        };
        let pdu = message.encode();
        for (gnb, info) in env.gnbs.iter() {
            if info.supported.iter().any(|(tai, _)| area.contains(tai)) {
                send(env.out, *gnb, TnlaBinding::unbound(0), pdu.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_end_of_the_serial_number_is_masked() {
        let pei = "imeisv-4370816125816151".parse().unwrap();
        assert_eq!(super::masked_imeisv(&pei).unwrap(), [0x43, 0x70, 0x81, 0x61, 0x25, 0xff, 0xff, 0x51]);
        assert_eq!(super::masked_imeisv(&"imei-437081612581615".parse().unwrap()), None);
    }
}
