//! Namf_Communication_UEContextTransfer and RegistrationStatusUpdate (TS 29.518 5.2.2.2.1,
//! 5.2.2.2.2): another shard or instance of this AMF takes over a UE.
//!
//! Keys leave this AMF only for a REGISTRATION REQUEST of the UE that passes the integrity check
//! here (TS 23.502 4.2.2.2.2 step 5). Without such a message a caller gets no key, and uses up none
//! of the UE's COUNTs.

use crate::amf::Amf;
use crate::amf::access_keys::NextHop;
use crate::amf::context::{RmState, UeContext};
use crate::amf::procedure;
use crate::amf::reachability;
use crate::amf::reallocation::Reallocation;
use crate::amf::security::SecurityContext;
use crate::kit::{Caller, Instant, Key, Level, Outbox, Owner};
use pith_crypto::kdf;
use pith_crypto::keys::Nh;
use pith_crypto::nas::Direction;
use pith_nas::GmmMessage;
use pith_sbi::common::{AccessType, UeContextId};
use pith_sbi::namf_communication as namf;
use pith_sbi::{Cause, Problem, Reply, Response};
use pith_types::Snssai;

/// Number of downlink NAS COUNTs reserved for the AMF that takes over a UE. If it does not, this AMF
/// continues after the reserved COUNTs, so that none is used twice (TS 33.501 6.4.3.1). Until the
/// UE is authenticated, the new AMF sends at most a challenge and its retransmissions, so the UE
/// still estimates the next COUNT correctly (TS 24.501 4.4.3.1).
pub(in crate::amf) const RESERVED_NAS_COUNTS: u32 = 32;

/// Maximum number of downlink NAS COUNTs reserved for other AMFs since the UE last confirmed a downlink
/// message. The UE estimates a COUNT from its eight low bits, so it accepts no message more than
/// 255 ahead (TS 24.501 4.4.3.1). Beyond the limit the new AMF authenticates the UE.
pub(in crate::amf) const MAX_UNCONFIRMED_NAS_COUNTS: u32 = 6 * RESERVED_NAS_COUNTS;

impl Amf {
    /// Returns the context of a UE: with keys if its REGISTRATION REQUEST passes the integrity
    /// check; without keys if the new AMF has authenticated the UE and identifies it by its SUPI
    /// (`MOBI_REG_UE_VALIDATED`), of which this AMF has that one's word only.
    pub(super) fn ue_context_transfer(
        &mut self,
        from: Caller,
        request: namf::UeContextTransfer,
        out: &mut Outbox,
    ) -> Reply {
        if request.body.access_type != AccessType::ThreeGppAccess {
            return Err(Problem::context_not_found().detail("this AMF has no UE at non-3GPP access").into());
        }
        let key = self.find_transferable(&request);
        let derives_key = self.shared.config.derives_k_amf && Owner::of(from) != Owner::Process;
        let ue = key.and_then(|key| self.ues.get_mut(key));
        let ue = ue.ok_or_else(|| Box::new(Problem::context_not_found()))?;
        let is_authenticated = request.body.reason == namf::TransferReason::MobiRegUeValidated;
        let mut context = match (is_authenticated, &request.ue_context_id) {
            (true, UeContextId::Supi(_)) => {
                note_authenticated_elsewhere(ue, Owner::of(from), out);
                without_security(ue)
            }
            _ => with_security(ue, request.body.reg_request.as_ref(), derives_key)?,
        };
        let receiver = Owner::of(from);
        if receiver != Owner::Process {
            context.pcf_am_policy_uri = ue.policy.as_ref().map(|policy| policy.uri.clone());
        }
        ue.transferred_to = Some(receiver);
        let key = ue.key;
        if receiver == Owner::Process {
            self.shared.index.note_moving(key, true);
        }
        self.note_change(key, None);
        Ok(Response::UeContextTransferred(Box::new(namf::UeContextTransferRspData::new(context))))
    }

    /// The context that is requested. The one of a UE that is authenticated, and of which this shard requests the context itself, is not it: the
    /// request goes on to the shards that may have it.
    pub(in crate::amf) fn find_transferable(&self, request: &namf::UeContextTransfer) -> Option<Key> {
        let key = self.find_context(&request.ue_context_id)?;
        let is_new = self.ues.view(key).is_some_and(|ue| procedure::context_transfer::awaits_sessions(&ue));
        (!is_new).then_some(key)
    }

    /// The context of whose transfer another AMF reports. A UE may have a context in two shards: only one was transferred. An absent context is
    /// loaded first.
    pub(in crate::amf) fn find_transferred(&self, id: &UeContextId) -> Option<Key> {
        let key = self.find_context(id)?;
        self.ues.view(key).is_none_or(|ue| ue.transferred_to.is_some()).then_some(key)
    }

    /// The new AMF reports the result of the transfer: the context is deleted with its sessions, or
    /// stays. Only an AMF that received the context may report.
    pub(super) fn registration_status_update(
        &mut self,
        now: Instant,
        from: Caller,
        request: &namf::RegistrationStatusUpdate,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_context(&request.ue_context_id);
        let receiver = key.and_then(|key| Some((key, self.ues.get_mut(key)?.transferred_to?)));
        let (key, receiver) = receiver.ok_or_else(|| {
            Box::new(Problem::context_not_found().detail("no transfer of this UE context is in progress"))
        })?;
        receiver.check(from)?;
        if matches!(request.body.transfer_status, namf::UeContextTransferStatus::Other(_)) {
            return Err(Problem::mandatory_ie_incorrect("/transferStatus", "unknown").into());
        }
        if request.body.transfer_status == namf::UeContextTransferStatus::Transferred {
            let released = &request.body.to_release_session_list;
            // The new AMF goes on with the AM policy association that was transferred (TS 23.502 4.2.2.2.2 step 10).
            let keeps_policy = receiver != Owner::Process && request.body.pcf_reselected_ind != Some(true);
            self.with_ue(now, key, out, |ue, env| {
                if keeps_policy {
                    ue.policy = None;
                }
                procedure::abort(ue, env);
                ue.sessions.retain(|session| released.contains(&session.id));
                ue.registered_in_udm = false;
                ue.discards_security = true;
                ue.rm = RmState::Deregistered;
            });
        } else {
            self.with_ue(now, key, out, procedure::context_transfer::on_not_transferred);
        }
        Ok(Response::RegistrationStatusUpdated(Box::new(namf::UeRegStatusUpdateRspData::new(true))))
    }
}

/// Another AMF has authenticated a UE that is connected here: a UE that has lost its gNB, or an AMF that does not tell the truth.
fn note_authenticated_elsewhere(ue: &UeContext, receiver: Owner, out: &mut Outbox) {
    if ue.connection.is_some() && receiver != Owner::Process {
        out.log(Level::Info, || {
            format!("{}: connected here, and authenticated by another AMF ({receiver})", ue.name())
        });
    }
}

/// Verifies the UE's REGISTRATION REQUEST with its security context. The uplink COUNT is consumed,
/// so that the same message is not accepted again.
fn check(
    security: &mut SecurityContext,
    request: Option<&namf::N1MessageContainer>,
) -> Result<(), Box<Problem>> {
    let message = request.and_then(|request| {
        let checked = security.nas.unprotect(&request.n1_message_content.content).ok()?;
        GmmMessage::decode(&checked.plain).ok()
    });
    match message {
        Some(GmmMessage::RegistrationRequest(_)) => Ok(()),
        _ => Err(Problem::new(Cause::IntegrityCheckFail).into()),
    }
}

/// Whether this AMF has verified the message before, and has had the gNB reroute it. It is accepted once, as any other.
fn take_rerouted(ue: &mut UeContext, request: &namf::N1MessageContainer) -> bool {
    let message = &request.n1_message_content.content;
    let is_it = |it: &mut Box<Reallocation>| !message.is_empty() && it.rerouted == **message;
    ue.reallocation.take_if(is_it).is_some()
}

/// The context with keys, in answer to a message that passed the integrity check. Reserves COUNTs
/// for the new AMF.
fn with_security(
    ue: &mut UeContext,
    request: Option<&namf::N1MessageContainer>,
    derives_key: bool,
) -> Result<namf::UeContext, Box<Problem>> {
    let not_found = || Box::new(Problem::context_not_found());
    if ue.is_unauthenticated() {
        // Any message passes the check by null integrity.
        return Err(not_found());
    }
    // In a handover to another AMF the next COUNTs are that one's.
    let of_target = if ue.mobility.is_departure() { RESERVED_NAS_COUNTS } else { 0 };
    let is_rerouted = request.is_some_and(|request| take_rerouted(ue, request));
    let security = ue.security.as_mut().ok_or_else(not_found)?;
    if !is_rerouted {
        check(security, request)?;
    }
    if security.unconfirmed.saturating_add(of_target + RESERVED_NAS_COUNTS) > MAX_UNCONFIRMED_NAS_COUNTS {
        return Err(not_found());
    }
    security.nas.skip_to_send(of_target);
    security.unconfirmed += of_target;
    let context = context_for_registration(ue).ok_or_else(not_found)?;
    if derives_key { with_derived_key(ue, context).ok_or_else(not_found) } else { Ok(context) }
}

/// The context with a key that is derived from K_AMF and the COUNT of the verified message, in place of K_AMF (TS 33.501 6.9.3, A.13). The COUNTs
/// of the new context begin at 0; this AMF goes on with the former one if the UE does not take it.
fn with_derived_key(ue: &UeContext, mut context: namf::UeContext) -> Option<namf::UeContext> {
    let security = ue.security.as_ref()?;
    let count = security.nas.last_received()?.value();
    let k_amf = kdf::k_amf_prime(&security.k_amf, Direction::Uplink, count);
    let seaf = context.seaf_data.as_mut()?;
    seaf.key_amf = namf::KeyAmf::of_octets(namf::KeyAmfType::Kprimeamf, *k_amf.as_bytes());
    seaf.key_amf_h_derivation_ind = Some(true);
    Some(context)
}

/// The context with keys, for an AMF that goes on with the UE's registration; reserves COUNTs for it. `None` without keys, or if too many COUNTs
/// are reserved already.
pub(in crate::amf) fn context_for_registration(ue: &mut UeContext) -> Option<namf::UeContext> {
    let security = ue.security.as_mut()?;
    let unconfirmed = security.unconfirmed.saturating_add(RESERVED_NAS_COUNTS);
    if unconfirmed > MAX_UNCONFIRMED_NAS_COUNTS {
        return None;
    }
    let (seaf_data, mut mm) = security_data(security)?;
    security.nas.skip_to_send(RESERVED_NAS_COUNTS);
    security.unconfirmed = unconfirmed;
    mm.allowed_nssai = allowed_nssai(ue);
    let mut context = without_security(ue);
    context.seaf_data = Some(seaf_data);
    context.mm_context_list = vec![mm];
    Some(context)
}

/// The UE context without keys.
fn without_security(ue: &UeContext) -> namf::UeContext {
    let mut context = namf::UeContext { supi: ue.supi.clone(), pei: ue.pei.clone(), ..Default::default() };
    let mut mm = namf::MmContext::new(AccessType::ThreeGppAccess);
    mm.allowed_nssai = allowed_nssai(ue);
    context.mm_context_list = vec![mm];
    context.session_context_list = sessions(ue);
    reachability::describe_drx(ue, &mut context);
    context
}

/// The Allowed NSSAI. A UE that is registered for emergency services only has none (TS 24.501 5.5.1.2.4), from which the other AMF knows that
/// it is.
fn allowed_nssai(ue: &UeContext) -> Vec<Snssai> {
    if ue.is_emergency_registered() { Vec::new() } else { ue.slices.allowed.clone() }
}

/// The context with keys, for the target AMF of a handover, which continues with its COUNTs; `None` without keys or COUNTs.
pub(in crate::amf) fn context_for_handover(ue: &UeContext, next_hop: &NextHop) -> Option<namf::UeContext> {
    let (mut seaf_data, mut mm) = security_data(ue.security.as_ref()?)?;
    seaf_data.set_next_hop(*next_hop.nh.as_bytes(), next_hop.chaining_count);
    mm.allowed_nssai = allowed_nssai(ue);
    let mut context = without_security(ue);
    context.seaf_data = Some(seaf_data);
    context.mm_context_list = vec![mm];
    context.sub_ue_ambr = ue.ambr();
    context.used_rfsp = ue.rfsp();
    if let Some(subscription) = &ue.subscription {
        context.sub_rfsp = subscription.rfsp;
        context.gpsi_list = subscription.gpsi.iter().cloned().collect();
    }
    ue.describe_restrictions(&mut context);
    context.trace_data = ue.subscribed_trace();
    Some(context)
}

/// As [`context_for_handover`], with a key that is derived from K_AMF and the next downlink COUNT, which that uses up. In place of NH the target gNB
/// gets the first K_gNB of the key, with NCC 0 (TS 33.501 6.9.2.3.3, A.9, A.13).
pub(in crate::amf) fn context_with_derived_key(ue: &mut UeContext) -> Option<namf::UeContext> {
    let security = ue.security.as_mut()?;
    let count = security.nas.next_to_send()?.value();
    let k_amf = kdf::k_amf_prime(&security.k_amf, Direction::Downlink, count);
    security.nas.skip_to_send(1);
    security.unconfirmed += 1;
    let k_gnb = kdf::k_gnb(&k_amf, COUNT_OF_DERIVED_KEY, kdf::AccessType::ThreeGpp);
    let next_hop = NextHop { nh: Nh::new(*k_gnb.as_bytes()), chaining_count: 0 };
    let mut context = context_for_handover(ue, &next_hop)?;
    let seaf = context.seaf_data.as_mut()?;
    seaf.key_amf = namf::KeyAmf::of_octets(namf::KeyAmfType::Kprimeamf, *k_amf.as_bytes());
    // The second one says that the UE changes its AS keys: the gNB gets the New Security Context Indicator.
    (seaf.key_amf_h_derivation_ind, seaf.key_amf_change_ind) = (Some(true), Some(true));
    context.mm_context_list.iter_mut().for_each(|mm| mm.nas_downlink_count = Some(count));
    Some(context)
}

/// The uplink COUNT of the first K_gNB of a derived key (TS 33.501 6.9.2.3.3).
const COUNT_OF_DERIVED_KEY: u32 = u32::MAX;

/// Keys, algorithms and COUNTs as SBI data types; `None` if the COUNTs are exhausted.
fn security_data(security: &SecurityContext) -> Option<(namf::SeafData, namf::MmContext)> {
    let algorithms = security.nas.algorithms();
    let integrity = namf::IntegrityAlgorithm::from(format!("NIA{}", algorithms.integrity as u8).as_str());
    let ciphering = namf::CipheringAlgorithm::from(format!("NEA{}", algorithms.ciphering as u8).as_str());
    let next = security.nas.next_to_send()?.value();
    let mut mm = namf::MmContext::new(AccessType::ThreeGppAccess);
    mm.nas_security_mode = Some(namf::NasSecurityMode::new(integrity, ciphering));
    // The COUNT of the next message (TS 24.501 4.4.3.1). A receiver for which it is that of the last one leaves one out.
    mm.nas_downlink_count = Some(next);
    mm.nas_uplink_count = security.nas.last_received().map(|count| count.value());
    mm.ue_security_capability = Some(security.capability.octets().to_vec().into());
    let key = namf::KeyAmf::of_octets(namf::KeyAmfType::Kamf, *security.k_amf.as_bytes());
    let ksi = namf::NgKsi::new(namf::ScType::Native, security.ng_ksi);
    Some((namf::SeafData::new(ksi, key), mm))
}

fn sessions(ue: &UeContext) -> Vec<namf::PduSessionContext> {
    let session = |session: &crate::amf::session::PduSession| {
        let context = session.sm_context.clone()?;
        let (snssai, dnn) = (session.snssai, session.dnn.clone());
        let access = AccessType::ThreeGppAccess;
        let mut transferred = namf::PduSessionContext::new(session.id, context, snssai, dnn, access);
        transferred.hsmf_id = session.known_smf();
        Some(transferred)
    };
    ue.sessions.iter().filter_map(session).collect()
}
