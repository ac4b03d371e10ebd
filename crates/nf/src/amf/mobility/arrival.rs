//! N2 handover from another AMF, at the target AMF (TS 23.502 4.9.1.3; TS 29.518 5.2.2.2.3, 5.2.2.2.4, 5.2.2.3.6).
//!
//! | step | state | from | timer | TS 23.502 4.9.1.3 |
//! |---|---|---|---|---|
//! | CreateUEContext | | source AMF | | .2 3 |
//! | HANDOVER REQUEST to the target gNB, as within an AMF, with a NAS container if the algorithms change | those of [`super::n2_handover`] | SMFs, target gNB | preparation | .2 4 to 11 |
//! | 201 with what HANDOVER COMMAND has | [`super::n2_handover::AwaitingHandoverNotify`] | target gNB | completion | .2 12 |
//! | N2InfoNotify; Nudm_UECM_Registration; UpdateSMContext (COMPLETED), a session each | [`super::n2_handover::AwaitingSessionCompletion`] | SMFs | | .3 6 to 14 |
//! | the UE's registration update: UDM, PCF, a 5G-GUTI of this AMF | [`crate::amf::procedure::registration`] | UE | completion | .3 12 |
//! | CONFIGURATION UPDATE COMMAND that requests it, also if the gNB is to release the UE before, then DEREGISTRATION REQUEST | | UE | completion, T3555; T3522 | |
//!
//! The context is registered from HANDOVER NOTIFY on. Before, it is in no document, and its sessions are the source AMF's: it ends without
//! releasing them.

use super::n2_handover::{self, HandoverError};
use super::{Mobility, n14};
use crate::amf::access_keys::{self, NextHop};
use crate::amf::consumer;
use crate::amf::context::{DeferredAction, Env, RmState, UeContext};
use crate::amf::emergency;
use crate::amf::error::TransferError;
use crate::amf::procedure::context_transfer::{Received, session};
use crate::amf::procedure::deregistration::{self, Reason};
use crate::amf::reachability;
use crate::amf::security::algorithms_after_handover;
use crate::amf::session::{PduSession, UserPlane};
use crate::amf::slices::{self, Slices};
use crate::amf::subscription::Subscription;
use crate::kit::document::{Pack, Reader, UnpackError, Writer};
use crate::kit::{Caller, GnbHandle, Level, Owner, PendingReply};
use bytes::Bytes;
use pith_nas::NasCount;
use pith_nas::ie::{IntraN1Container, NgKsi};
use pith_ngap::{
    Cause, CauseRadioNetwork, EarlyRanStatus, RanStatus, SessionTransfer, TargetId, UserLocation,
};
use pith_sbi::namf_communication::{self as namf, NgapIeType};
use pith_sbi::{Cause as SbiCause, Created, Reply, Response, Uri};
use pith_types::{NrCellIdentity, Snssai};

/// The AMF from which the UE is being handed over; until HANDOVER NOTIFY.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// CreateUEContext, until it is answered.
    reply: Option<PendingReply>,
    /// The callback URI for the completion of the handover.
    notify: Option<Uri>,
    source: Owner,
    /// Sessions of slices that this AMF does not serve.
    not_served: Vec<u8>,
    /// The downlink COUNT with which the source AMF has derived the key, if it has.
    pub(in crate::amf) derived_with: Option<NasCount>,
}

/// Without the COUNT, which follows in the section.
impl Pack for Arrival {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { reply, notify, source, not_served, derived_with: _ } = self;
        reply.pack(writer);
        notify.pack(writer);
        source.pack(writer);
        not_served.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (reply, notify, source, not_served) = Pack::unpack(reader)?;
        Ok(Self { reply, notify, source, not_served, derived_with: None })
    }
}

impl Arrival {
    /// Requests that are not answered yet.
    pub fn replies_owed(&self) -> usize {
        usize::from(self.reply.is_some())
    }

    /// Whether the caller is the source AMF.
    pub fn admits(&self, caller: Caller) -> bool {
        self.source.admits(caller)
    }
}

/// A checked CreateUEContext.
pub(in crate::amf) struct Creation {
    pub data: namf::UeContextCreateData,
    pub target: (GnbHandle, TargetId),
    pub security: Received,
    pub next_hop: NextHop,
}

/// Takes the UE's context, and prepares the handover.
pub(in crate::amf) fn begin(ue: &mut UeContext, env: &mut Env<'_>, creation: Creation, reply: PendingReply) {
    let Creation { data, target, security, next_hop } = creation;
    let source = Owner::of(reply.caller());
    let derived_with = security.derived_with;
    take_security(ue, security, next_hop);
    ue.location = location_of(&target.1);
    ue.radio_capability = data.ue_radio_capability.map(|capability| capability.ngap_data.content);
    let offered: Vec<_> = data.pdu_session_list.iter().filter_map(n14::transfer_of).collect();
    let has_user_plane = |id: u8| offered.iter().any(|item| item.pdu_session_id == id);
    let not_served = take_context(ue, env, data.ue_context, has_user_plane);
    let (reply, notify) = (Some(reply), data.n2_notify_uri);
    ue.arrival = Some(Box::new(Arrival { reply, notify, source, not_served, derived_with }));
    if ue.slices.allowed.is_empty() {
        return n2_handover::fail_preparation(ue, env, HandoverError::NoSlices);
    }
    let cause = data.ngap_cause.as_ref().and_then(n14::cause_of);
    let cause = cause.unwrap_or(Cause::RadioNetwork(CauseRadioNetwork::unspecified));
    let container = data.source_to_target_data.ngap_data.content.to_vec();
    ue.mobility = n2_handover::begin(ue, env, target, (Some(cause), container), offered);
}

fn take_security(ue: &mut UeContext, Received { security, uplink, .. }: Received, next_hop: NextHop) {
    ue.k_gnb_count = uplink;
    ue.capability = Some(security.capability);
    ue.security = Some(security);
    access_keys::adopt(ue, next_hop);
}

/// Takes restrictions, trace, slices and sessions. Returns the sessions of slices that this AMF, or its gNBs in the target's tracking area, do
/// not serve (TS 23.502 4.9.1.3.2 step 4).
fn take_context(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    context: namf::UeContext,
    has_user_plane: impl Fn(u8) -> bool,
) -> Vec<u8> {
    let is_emergency = emergency::is_registered_elsewhere(env, &context);
    if !is_emergency {
        ue.restrict_as_transferred(&context);
        ue.subscribe_trace(context.trace_data.as_ref(), env.out);
    }
    reachability::take_drx(ue, &context);
    ue.pei = context.pei;
    let target = ue.location.map(|location| location.tai);
    let plmn = target.map_or(env.config.guami.plmn_id, |tai| tai.plmn_id);
    let is_supported =
        |slice: &Snssai| target.is_none_or(|tai| env.gnbs.may_support(&tai, std::slice::from_ref(slice)));
    let served: Vec<_> = env.config.slices(plmn).iter().copied().filter(is_supported).collect();
    // This AMF's own slices bound the number.
    let named: Vec<_> = context.mm_context_list.into_iter().flat_map(|mm| mm.allowed_nssai).collect();
    let allowed = served.iter().filter(|slice| named.contains(slice)).copied().collect();
    ue.slices = slices::cut(Slices { allowed, rejected: Vec::new() });
    if is_emergency {
        emergency::take_registration(ue, env);
    } else {
        // What is known of it until the UE's registration update.
        ue.subscription = Some(Box::new(Subscription {
            ue_ambr: context.sub_ue_ambr,
            rfsp: context.used_rfsp.or(context.sub_rfsp),
            gpsi: context.gpsi_list.into_iter().next(),
            default_slices: ue.slices.allowed.clone(),
            ..Subscription::default()
        }));
    }
    let sessions = context.session_context_list.into_iter().map(session);
    let is_served =
        |it: &PduSession| served.contains(&it.snssai) || emergency::is_session(env, it.snssai, &it.dnn);
    let (taken, not_served): (Vec<_>, Vec<_>) = sessions.partition(is_served);
    ue.sessions = taken;
    emergency::note_transferred_session(ue, env);
    for session in ue.sessions.iter_mut().filter(|session| has_user_plane(session.id)) {
        session.user_plane = UserPlane::Activated;
    }
    not_served.into_iter().map(|session| session.id).collect()
}

/// Takes the algorithms that this AMF prefers into use, if they are others than the source AMF's. Returns the NAS container that tells the UE, and
/// whether the source AMF has derived another K_AMF (TS 33.501 6.9.2.3.3). It is called once, for HANDOVER REQUEST: until HANDOVER NOTIFY the UE gets no NAS message of this AMF.
pub(super) fn select_algorithms(
    ue: &mut UeContext,
    env: &Env<'_>,
) -> Result<Option<IntraN1Container>, HandoverError> {
    let derived_with = ue.arrival.as_ref().and_then(|arrival| arrival.derived_with);
    let context = ue.security.as_mut().ok_or(HandoverError::Security)?;
    let in_use = context.nas.algorithms();
    let selected = algorithms_after_handover(env.config, &context.capability, in_use);
    let selected = selected.ok_or(HandoverError::Security)?;
    if selected == in_use && derived_with.is_none() {
        return Ok(None);
    }
    context.change_algorithms(selected);
    let ng_ksi = NgKsi::Native(context.ng_ksi);
    if let Some(count) = derived_with {
        return Ok(Some(context.nas.derived_key_container(ng_ksi, count)));
    }
    let container = context.nas.handover_container(ng_ksi);
    container.map(Some).map_err(|_| HandoverError::Security)
}

/// The target cell is not known before HANDOVER NOTIFY: the first one of the gNB.
fn location_of(target: &TargetId) -> Option<UserLocation> {
    let TargetId::RanNode { node: pith_ngap::GlobalRanNodeId::Gnb { plmn, id, bits }, tai } = *target else {
        return None;
    };
    let cell = NrCellIdentity::new(u64::from(id) << 36_u8.saturating_sub(bits));
    Some(UserLocation { cell_plmn: plmn, cell, tai })
}

/// The handover is prepared: answers the source AMF.
pub(super) fn prepared(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    accepted: Vec<SessionTransfer>,
    to_release: Vec<SessionTransfer>,
    target_to_source: Vec<u8>,
) {
    let Some(reply) = ue.arrival.as_mut().and_then(|arrival| arrival.reply.take()) else { return };
    let context = namf::UeContext { supi: ue.supi.clone(), ..Default::default() };
    let container = n14::information(NgapIeType::TarToSrcContainer, target_to_source);
    let list = |kind: NgapIeType, items: Vec<SessionTransfer>| -> Vec<_> {
        items.into_iter().map(|item| n14::session_information(kind.clone(), item)).collect()
    };
    let accepted = list(NgapIeType::HandoverCmd, accepted);
    let mut body = namf::UeContextCreatedData::new(context, container, accepted);
    body.failed_session_list = list(NgapIeType::HandoverPrepFail, to_release);
    // The association is created with the UE's registration update.
    body.pcf_reselected_ind = Some(true);
    let supi = ue.supi.as_ref().map(ToString::to_string).unwrap_or_default();
    let location = Uri::new(&env.config.identity.api_root, &format!("/namf-comm/v1/ue-contexts/{supi}"));
    reply.answer(Response::UeContextCreated(Box::new(Created { location, body })), env.out);
}

/// The handover does not take place: the context ends, and its sessions stay with the source AMF.
pub(super) fn end(ue: &mut UeContext, env: &mut Env<'_>, error: HandoverError) {
    let Some(arrival) = ue.arrival.take() else { return };
    if let Some(reply) = arrival.reply {
        reply.refuse(error.problem(), env.out);
    }
    ue.sessions.clear();
    ue.discards_security = true;
}

/// HANDOVER NOTIFY: the UE is registered here. Notifies the source AMF.
pub(super) fn arrived(ue: &mut UeContext, env: &mut Env<'_>, arrival: Arrival) {
    let now = env.config.identity.date_time(env.now);
    (ue.rm, ue.since) = (RmState::Registered, now);
    // The SMFs switch the paths to this AMF's gNB.
    (ue.must_store, ue.must_store_at_once) = (true, true);
    if let Some(supi) = &ue.supi {
        env.index.free_arrival(supi, ue.key);
        if let Some(old) = env.index.claim_supi(supi, ue.key) {
            env.after.push(DeferredAction::Supersede { new: ue.key, old });
        }
    }
    if let Some(uri) = arrival.notify {
        consumer::notify_source_amf(ue, env, uri, arrival.not_served);
    }
    consumer::register_arrival(ue, env);
}

/// The UDM's reply to the registration of a UE that has arrived. A subscriber that was deleted during the handover is deregistered (TS 23.502
/// 4.2.2.3.3). After another failure the UE's registration decides.
pub(crate) fn on_registered_in_udm(ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) {
    let Err(problem) = reply else { return };
    // Without an answer the UDM may have processed it.
    ue.registered_in_udm = problem.status >= 500;
    env.out.log(Level::Warn, || format!("{}: the UDM does not register the arrival: {problem}", ue.name()));
    if problem.cause() == Some(&SbiCause::UserNotFound) && !ue.is_emergency_registered() {
        deregistration::required_by_udm(ue, env, Reason::SubscriptionWithdrawn);
    }
}

/// RAN STATUS TRANSFER of the source gNB, from the source AMF, to the target gNB (TS 29.518 5.2.2.3.1.2).
pub(crate) fn relay(
    ue: &UeContext,
    env: &mut Env<'_>,
    from: Caller,
    (kind, octets): (Option<&NgapIeType>, &Bytes),
) -> Result<(), TransferError> {
    if !ue.arrives_from(from) {
        return Err(TransferError::NoHandover);
    }
    let Mobility::AwaitingHandoverNotify(_) = ue.mobility else { return Err(TransferError::NoHandover) };
    match kind {
        Some(NgapIeType::RanStatusTransContainer) => {
            let status = RanStatus::decode(octets).map_err(|_| TransferError::WrongStatus)?;
            n2_handover::send_status(ue, env, status);
        }
        Some(NgapIeType::EarlyStatusTransContainer) => {
            let status = EarlyRanStatus::decode(octets).map_err(|_| TransferError::WrongStatus)?;
            n2_handover::send_early_status(ue, env, status);
        }
        _ => return Err(TransferError::WrongStatus),
    }
    Ok(())
}
