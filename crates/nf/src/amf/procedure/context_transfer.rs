//! UE context transfer (TS 23.502 4.2.2.2.2 steps 4, 5 and 10; 5.2.2.2.2): another shard or
//! instance of this AMF Set allocated the 5G-GUTI, or an AMF of another one, which the NRF finds by its GUAMI; so it has the UE's context.
//!
//! | step | state | from |
//! |---|---|---|
//! | Namf_Communication_UEContextTransfer | [`AwaitingUeContextTransfer`] | old AMF |
//! | the context, or identification | | |
//! | Namf_Communication_RegistrationStatusUpdate, when the UE is authenticated | | |
//!
//! An old AMF that cannot verify the message, as it has other keys than the UE (a target AMF of a handover has changed them, and lost its context), is
//! asked once more when the UE is authenticated here: by the SUPI, without keys (TS 29.518 5.2.2.2.1, MOBI_REG_UE_VALIDATED). So are the other
//! shards of this AMF, and before that one, if no context is transferred by the 5G-GUTI: the UE may not have got the one that its present shard has
//! allocated since, also after a handover from the AMF that allocated this one (TS 24.501 5.5.1.3.8, 5.4.4.6).
//!
//! The old AMF verifies the REGISTRATION REQUEST, because it has the keys. By its policy (`amf.security.derive_k_amf`) it sends a key that is derived
//! from K_AMF in place of that (TS 33.501 6.9.3): the UE derives it, too, when it gets a SECURITY MODE COMMAND that says so.

use super::registration::{self, Attempt};
use super::{Procedure, RegistrationStep, Step, deregistration, security_mode};
use crate::amf::consumer;
use crate::amf::context::{CallId, DeferredAction, Env, RmState, TransferredPolicy, UeContext};
use crate::amf::emergency;
use crate::amf::reachability;
use crate::amf::security::SecurityContext;
use crate::amf::services::RESERVED_NAS_COUNTS;
use crate::amf::session::{PduSession, UserPlane};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Duration, Level, Nf, Owner, Selection, Target, Timer};
use pith_crypto::keys::KAmf;
use pith_nas::NasCount;
use pith_nas::ie::{PduSessionSet, RegistrationKind, UeSecurityCapability};
use pith_nas::security::Algorithms;
use pith_sbi::common::{AccessType, UeContextId};
use pith_sbi::namf_communication as namf;
use pith_sbi::{ApiRoot, Cause, Problem, Reply, Response};
use pith_types::{BlockOwner, FiveGGuti, Supi};
use std::sync::Arc;

/// UEs of a shard that are not authenticated, beyond which no AMF of another set is looked for.
const MOST_REQUESTS: usize = 256;

/// How long the old AMF waits for the report after the UDM's notification: as long as the new one waits for answers.
const STATUS_TIME: Duration = Duration::from_secs(10);

/// The context is requested from the AMF that allocated the 5G-GUTI.
#[derive(Debug)]
pub(crate) struct AwaitingUeContextTransfer {
    attempt: Attempt,
    old_amf: OldAmf,
    purpose: Purpose,
    pub call: CallId,
}

/// What the context is requested for.
#[derive(Debug)]
enum Purpose {
    /// The old AMF verifies the UE's message, and says who it is.
    Identification,
    /// The UE is authenticated as that subscriber: its sessions.
    Sessions(Supi),
}

/// The AMF that transferred the context.
#[derive(Debug)]
pub(crate) struct OldAmf {
    /// Of an AMF of another set: when it has answered. Until then this AMF's.
    api_root: Arc<ApiRoot>,
    /// The 5G-GUTI that it allocated.
    guti: FiveGGuti,
    /// The UE's sessions. They stay with the old AMF until the UE is authenticated here.
    sessions: Vec<PduSession>,
}

pack_struct!(AwaitingUeContextTransfer { attempt, old_amf, purpose, call });
pack_enum!(Purpose { 0 => Identification, 1 => Sessions(supi) });
pack_struct!(OldAmf { api_root, guti, sessions });

/// Requests the context from the peer that owns the 5G-GUTI's block, or from the AMF of another set that has the GUAMI; without such an AMF,
/// requests the UE's identity.
pub(crate) fn begin(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt, guti: FiveGGuti) -> Step {
    let config = &env.config;
    let (target, api_root) = if config.serves(&guti.guami) {
        let peer = config.peer_of(guti.tmsi).map(Arc::clone);
        (peer.clone().map(Target::Root), peer.unwrap_or_else(|| Arc::clone(&config.identity.api_root)))
    } else {
        // In a flood of registrations the NRF is not asked for each.
        let may_ask = config.serves_plmn(guti.guami.plmn_id) && env.half_open.len() <= MOST_REQUESTS;
        let selection = Selection { guami: Some(guti.guami), is_other: true, ..Selection::default() };
        (may_ask.then_some(Target::Service(selection)), Arc::clone(&config.identity.api_root))
    };
    let Some(target) = target.filter(|_| !ue.initial.nas_pdu.is_empty()) else {
        return attempt.for_other_shards(env, guti).ask_identity(ue, env);
    };
    let reason = match attempt.kind() {
        RegistrationKind::Initial | RegistrationKind::Emergency => namf::TransferReason::InitReg,
        _ => namf::TransferReason::MobiReg,
    };
    let call = consumer::transfer_context(ue, env, target, guti, reason);
    let old_amf = OldAmf { api_root, guti, sessions: Vec::new() };
    let next = AwaitingUeContextTransfer { attempt, old_amf, purpose: Purpose::Identification, call };
    Step::waiting(Procedure::AwaitingUeContextTransfer(next), Nf::Amf)
}

impl AwaitingUeContextTransfer {
    /// The attempt of a UE that is authenticated.
    pub const fn authenticated(&self) -> Option<&Attempt> {
        match self.purpose {
            Purpose::Identification => None,
            Purpose::Sessions(_) => Some(&self.attempt),
        }
    }

    /// The reply is from the AMF with that root.
    pub fn note_sender(&mut self, from: &Arc<ApiRoot>) {
        self.old_amf.api_root = Arc::clone(from);
    }

    /// The old AMF's reply: with a context the UE is known and its message verified.
    pub fn on_reply(mut self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        if let Purpose::Sessions(supi) = self.purpose {
            return on_sessions(ue, env, (self.attempt, self.old_amf, supi), reply);
        }
        let context = match reply {
            Ok(Response::UeContextTransferred(transferred)) => transferred.ue_context,
            other => {
                let problem = other.err();
                env.out.log(Level::Info, || {
                    format!(
                        "no UE context was transferred{}",
                        problem.as_ref().map_or_else(String::new, |problem| format!(": {problem}"))
                    )
                });
                return Ok(self.not_transferred(env, problem.as_deref()).ask_identity(ue, env));
            }
        };
        let sessions = &context.session_context_list;
        let received = received_or_derived(&context).filter(|_| are_session_contexts(sessions));
        let (Some(supi), Some(received)) = (context.supi.clone(), received) else {
            let name = self.old_amf.name();
            self.old_amf.report_failure(env, name);
            return Ok(self.attempt.ask_identity(ue, env));
        };
        let is_emergency = emergency::is_registered_elsewhere(env, &context);
        reachability::take_drx(ue, &context);
        let policy = context.pcf_am_policy_uri.clone().filter(consumer::is_policy);
        ue.transferred_policy = policy.map(|uri| Box::new(TransferredPolicy { uri, is_taken: false }));
        ue.pei = context.pei;
        self.old_amf.sessions = context.session_context_list.into_iter().map(session).collect();
        self.attempt.is_verified = true;
        self.attempt.transferred_from = Some(self.old_amf);
        if received.is_derived {
            if is_emergency {
                emergency::take_registration(ue, env);
            }
            // The complete request follows in SECURITY MODE COMPLETE.
            ue.capability =
                self.attempt.request.ue_security_capability.or(Some(received.security.capability));
            return security_mode::begin_with_derived_key(ue, env, self.attempt, supi, received.security);
        }
        ue.k_gnb_count = received.uplink;
        ue.security = Some(received.security);
        let attempt = self.attempt.unpack_nas_container(ue, Some(received.uplink))?;
        if registration::needs_new_key(ue, env) {
            // A former context of the UE stays until it is authenticated: it may have the sessions already, by a handover.
            ue.supi = Some(supi);
        } else {
            registration::on_identified(ue, env, supi.into());
        }
        if is_emergency {
            emergency::take_registration(ue, env);
        }
        registration::identify(ue, env, attempt)
    }

    /// Which AMF is to send the UE's sessions when it is authenticated, if it updates a registration.
    fn not_transferred(self, env: &mut Env<'_>, problem: Option<&Problem>) -> Attempt {
        let Self { mut attempt, old_amf, .. } = self;
        let is_refused = problem.is_some_and(|it| it.is(&Cause::IntegrityCheckFail));
        if is_refused && old_amf.is_other(env) && !attempt.begins_registration() {
            attempt.transferred_from = Some(old_amf);
            return attempt;
        }
        let (name, guti) = (old_amf.name(), old_amf.guti);
        if problem.is_some_and(|problem| problem.status >= 500) {
            old_amf.report_failure(env, name);
        }
        attempt.for_other_shards(env, guti)
    }
}

/// The UE is authenticated, and has the keys of this AMF: with a context it keeps its sessions. If the other shards do not have it, the old AMF may;
/// without a context the sessions end.
fn on_sessions(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    (mut attempt, mut old_amf, supi): (Attempt, OldAmf, Supi),
    reply: Reply,
) -> RegistrationStep {
    env.index.note_moving(ue.key, false);
    let name = UeContextId::Supi(supi.clone());
    match reply {
        Ok(Response::UeContextTransferred(transferred)) if is_usable(&transferred.ue_context, &supi) => {
            let context = transferred.ue_context;
            attempt.transferred_from = None;
            if emergency::is_registered_elsewhere(env, &context) {
                emergency::take_registration(ue, env);
            }
            reachability::take_drx(ue, &context);
            let policy = context.pcf_am_policy_uri.clone().filter(consumer::is_policy);
            ue.transferred_policy = policy.map(|uri| Box::new(TransferredPolicy { uri, is_taken: false }));
            ue.pei = ue.pei.take().or(context.pei);
            old_amf.sessions = context.session_context_list.into_iter().map(session).collect();
            take_over(ue, env, &attempt, old_amf, name);
        }
        Err(problem) if problem.status < 500 => {
            env.out.log(Level::Info, || format!("no UE context was transferred: {problem}"));
        }
        _ => old_amf.report_failure(env, name),
    }
    match attempt.transferred_from.take() {
        Some(next) => Ok(request_sessions(ue, env, attempt, next, supi)),
        None => registration::on_authenticated(ue, env, attempt),
    }
}

/// Whether it is that UE's context, with sessions that a UE may have.
fn is_usable(context: &namf::UeContext, supi: &Supi) -> bool {
    context.supi.as_ref().is_none_or(|it| it == supi) && are_session_contexts(&context.session_context_list)
}

impl OldAmf {
    /// Any other shard of this AMF.
    fn shards(env: &Env<'_>, guti: FiveGGuti) -> Self {
        Self { api_root: Arc::clone(&env.config.identity.api_root), guti, sessions: Vec::new() }
    }

    /// The UE context there.
    const fn name(&self) -> UeContextId {
        UeContextId::FiveGGuti(self.guti)
    }

    /// Whether it is not this one, and its root is known.
    fn is_other(&self, env: &Env<'_>) -> bool {
        self.api_root != env.config.identity.api_root
    }

    /// No answer, or none that says what the old AMF did: if it has transferred the context, it is to serve the UE as before.
    fn report_failure(self, env: &mut Env<'_>, name: UeContextId) {
        if self.is_other(env) {
            let status = namf::UeContextTransferStatus::NotTransferred;
            let report = namf::UeRegStatusUpdateReqData::new(status);
            consumer::report_transfer(env, self.api_root, name, report);
        }
    }
}

impl Attempt {
    /// No context is transferred by the 5G-GUTI: if the UE updates a registration, another shard of this AMF may have its context.
    fn for_other_shards(mut self, env: &Env<'_>, guti: FiveGGuti) -> Self {
        if !self.begins_registration() && has_other_shards(env) {
            self.transferred_from = Some(OldAmf::shards(env, guti));
        }
        self
    }
}

fn has_other_shards(env: &Env<'_>) -> bool {
    let identity = &env.config.identity;
    let is_other = |owner: BlockOwner| owner.instance == identity.owner.instance && owner != identity.owner;
    identity.owners.owners().any(|(owner, _)| is_other(owner))
}

/// Whether the UE is authenticated, and its context is requested from another AMF or shard: this one has no sessions of it to transfer.
pub(in crate::amf) const fn awaits_sessions(ue: &UeContext) -> bool {
    match &ue.procedure {
        Procedure::AwaitingUeContextTransfer(state) => state.authenticated().is_some(),
        _ => false,
    }
}

/// Requests the context of a UE that is authenticated, if its old AMF could not verify its message, or if another shard may have it. A former context
/// in this shard has the sessions already, unless it has sent them to another shard, or awaits them: the last attempt of the UE gets them. A context
/// of another shard is later than that of the old AMF, to which the request goes after the shards.
pub(crate) fn begin_for_authenticated(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    mut attempt: Attempt,
) -> Result<Step, Attempt> {
    if attempt.is_verified {
        return Err(attempt);
    }
    let (Some(old_amf), Some(supi)) = (attempt.transferred_from.take(), ue.supi.clone()) else {
        return Err(attempt);
    };
    let superseded = |action: &DeferredAction| match *action {
        DeferredAction::Supersede { new, old } if new == ue.key => Some(old),
        _ => None,
    };
    let former: Vec<_> = env.after.iter().filter_map(superseded).collect();
    let have_moved = former.iter().any(|old| env.index.is_moving(*old));
    let (is_here, is_other) = (!former.is_empty() && !have_moved, old_amf.is_other(env));
    if is_other && (is_here || !has_other_shards(env)) {
        return Ok(request_sessions(ue, env, attempt, old_amf, supi));
    }
    if is_here {
        return Err(attempt);
    }
    let shards = OldAmf::shards(env, old_amf.guti);
    attempt.transferred_from = is_other.then_some(old_amf);
    Ok(request_sessions(ue, env, attempt, shards, supi))
}

fn request_sessions(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    old_amf: OldAmf,
    supi: Supi,
) -> Step {
    env.index.note_moving(ue.key, true);
    let call = consumer::transfer_context_of_authenticated(ue, env, &old_amf.api_root, supi.clone());
    let next = AwaitingUeContextTransfer { attempt, old_amf, purpose: Purpose::Sessions(supi), call };
    Step::waiting(Procedure::AwaitingUeContextTransfer(next), Nf::Amf)
}

/// The UE is authenticated: takes its sessions over, except those of slices that this AMF does not serve, and all at an initial registration
/// (TS 24.501 5.5.1.2.4). Notifies the old AMF, and the SMFs.
pub(crate) fn confirm(ue: &mut UeContext, env: &mut Env<'_>, attempt: &mut Attempt) {
    let Some(old_amf) = attempt.transferred_from.take() else { return };
    let name = old_amf.name();
    take_over(ue, env, attempt, old_amf, name);
}

fn take_over(ue: &mut UeContext, env: &mut Env<'_>, attempt: &Attempt, old_amf: OldAmf, name: UeContextId) {
    let OldAmf { api_root, guti: _, sessions } = old_amf;
    let begins = attempt.begins_registration();
    let (taken, left): (Vec<_>, Vec<_>) =
        sessions.into_iter().partition(|it| !begins && is_served(ue, env, it));
    // The UE may have been handed over to this AMF, which has them already.
    let new: Vec<_> = taken.into_iter().filter(|it| ue.session(it.id).is_none()).collect();
    let ids: Vec<u8> = new.iter().map(|session| session.id).collect();
    ue.sessions.extend(new);
    // The old AMF releases the others: they are its own.
    let mut report = namf::UeRegStatusUpdateReqData::new(namf::UeContextTransferStatus::Transferred);
    report.to_release_session_list = left.into_iter().map(|session| session.id).collect();
    report.pcf_reselected_ind = (!take_policy(ue, begins)).then_some(true);
    consumer::report_transfer(env, api_root, name, report);
    if begins {
        return;
    }
    emergency::note_transferred_session(ue, env);
    // It stays registered during its update, also if the process ends: the old AMF has deleted its context.
    ue.rm = RmState::Registered;
    (ue.must_store, ue.must_store_at_once) = (true, true);
    announce_idle(ue, env, &ids);
}

/// Whether this AMF may serve a session of another AMF where the UE is: it serves the slice, or it is an emergency session.
pub(crate) fn is_served(ue: &UeContext, env: &Env<'_>, session: &PduSession) -> bool {
    let plmn = ue.location.map_or(env.config.guami.plmn_id, |location| location.tai.plmn_id);
    env.config.slices(plmn).contains(&session.snssai)
        || emergency::is_session(env, session.snssai, &session.dnn)
}

/// Takes the AM policy association of the old AMF (TS 23.502 4.2.2.2.2 steps 10 and 15); `false` if this AMF creates one of its own, so that
/// the old AMF deletes its one: at an initial registration, in which nothing else is taken over either.
fn take_policy(ue: &mut UeContext, begins: bool) -> bool {
    let is_usable = !begins && ue.policy.is_none() && !ue.is_emergency_registered();
    match &mut ue.transferred_policy {
        Some(policy) if is_usable => {
            policy.is_taken = true;
            true
        }
        _ => {
            ue.transferred_policy = None;
            false
        }
    }
}

/// Notifies the SMFs of sessions that another AMF had, and has them deactivate the user planes.
pub(crate) fn announce_idle(ue: &mut UeContext, env: &mut Env<'_>, ids: &[u8]) {
    for id in ids.iter().copied() {
        // For the old AMF the UE may still be connected.
        if let Some(session) = ue.session_mut(id) {
            session.user_plane = UserPlane::Unannounced;
        }
        consumer::deactivate(ue, env, id);
    }
}

/// The UDM says that another AMF serves the UE, to which this one has transferred the context, or which was to take it in a handover: its report,
/// which may arrive later, says which sessions it does not take (TS 23.502 4.2.2.2.2 steps 5 and 14d).
pub(crate) fn await_status(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.registered_in_udm = false;
    ue.start(env, Timer::TransferredContext, STATUS_TIME);
}

/// The other AMF has not got the context: it was as if it had not requested it (TS 29.518 5.2.2.2.2). If the UDM has said that it serves the
/// UE nevertheless, the sessions end.
pub(crate) fn on_not_transferred(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.transferred_to = None;
    env.index.note_moving(ue.key, false);
    if ue.runs(Timer::TransferredContext) {
        deregistration::by_network(ue, env, deregistration::Reason::ServedElsewhere);
    }
}

/// The report is lost, or the other AMF has none to send. It may have the sessions: an SMF that knows AMFs from each other then refuses their
/// release by this one; without identities, and in the process of the SMF, which believes its AMF, they are only forgotten. Another shard of this
/// process reports in the step in which it takes them: without its report no shard has them, and they end.
pub(crate) fn on_status_overdue(ue: &mut UeContext, env: &mut Env<'_>) {
    let may_release = matches!(ue.transferred_to, Some(Owner::Client(_) | Owner::Process));
    let own = &env.config.identity.api_root;
    let is_elsewhere = |session: &PduSession| session.sm_context.as_ref().is_some_and(|it| it.root != *own);
    let knows_amfs = |session: &PduSession| env.config.nfs_are_identified && is_elsewhere(session);
    ue.sessions.retain(|session| may_release || knows_amfs(session));
    consumer::leave_to_other_amf(ue);
    deregistration::by_network(ue, env, deregistration::Reason::ServedElsewhere);
}

/// Whether each is another session of a UE, and has an SM context of its own.
pub(in crate::amf) fn are_session_contexts(contexts: &[namf::PduSessionContext]) -> bool {
    let has_own_context = |(at, context): (usize, &namf::PduSessionContext)| {
        contexts.iter().take(at).all(|other| other.sm_context_ref != context.sm_context_ref)
    };
    are_sessions(contexts.iter().map(|context| context.pdu_session_id))
        && contexts.iter().enumerate().all(has_own_context)
}

/// Whether each is another session of a UE.
pub(in crate::amf) fn are_sessions(ids: impl Iterator<Item = u8>) -> bool {
    let mut known = PduSessionSet::NONE;
    for id in ids {
        if !(1..=15).contains(&id) || known.contains(id) {
            return false;
        }
        known.insert(id);
    }
    true
}

/// The transferred security context.
pub(in crate::amf) struct Received {
    pub security: SecurityContext,
    pub uplink: NasCount,
    /// The UE does not have the key yet, and the COUNTs begin at 0.
    pub is_derived: bool,
    /// The downlink COUNT with which the source AMF of a handover has derived it.
    pub derived_with: Option<NasCount>,
}

/// The security context in a transferred UE context; `None` if a part is missing or unknown, or if K_AMF is not the one in use.
pub(in crate::amf) fn received(context: &namf::UeContext) -> Option<Received> {
    received_or_derived(context).filter(|received| !received.is_derived)
}

/// As [`received`], also with a key that is derived from K_AMF, which the UE gets to know by a SECURITY MODE COMMAND (TS 33.501 6.9.3), or by the NAS
/// container of a handover (6.9.2.3.3).
pub(in crate::amf) fn received_or_derived(context: &namf::UeContext) -> Option<Received> {
    let seaf = context.seaf_data.as_ref()?;
    let is_derived = seaf.key_amf_h_derivation_ind == Some(true);
    // A new K_AMF that no gNB uses yet is not supported, unless the source AMF of a handover has derived it (TS 33.501 6.9.2.3.3). No
    // other kind of key is known.
    let is_known = match &seaf.key_amf.key_type {
        namf::KeyAmfType::Kamf => true,
        namf::KeyAmfType::Kprimeamf => is_derived,
        _ => false,
    };
    if (seaf.key_amf_change_ind == Some(true) && !is_derived) || !is_known {
        return None;
    }
    // Each access has its own (TS 33.501 6.4.2.2).
    let of_access = |mm: &&namf::MmContext| mm.access_type == AccessType::ThreeGppAccess;
    let mm = context.mm_context_list.iter().find(of_access)?;
    let mode = mm.nas_security_mode.as_ref()?;
    let algorithms = Algorithms {
        integrity: mode
            .integrity_algorithm
            .as_str()
            .strip_prefix("NIA")?
            .parse::<u8>()
            .ok()?
            .try_into()
            .ok()?,
        ciphering: mode
            .ciphering_algorithm
            .as_str()
            .strip_prefix("NEA")?
            .parse::<u8>()
            .ok()?
            .try_into()
            .ok()?,
    };
    let capability = UeSecurityCapability::from_octets(&mm.ue_security_capability.as_ref()?.0)?;
    let k_amf = KAmf::new(seaf.key_amf.octets()?);
    // 7 means that there is no key (TS 24.501 9.11.3.32), and larger ones do not exist.
    let ng_ksi = Some(seaf.ng_ksi.ksi).filter(|ksi| *ksi < 7)?;
    let mut security = SecurityContext::new(ng_ksi, k_amf, capability, algorithms);
    let downlink = mm.nas_downlink_count.and_then(NasCount::new);
    if is_derived {
        return Some(Received { security, uplink: NasCount::ZERO, is_derived, derived_with: downlink });
    }
    let (uplink, downlink) = (NasCount::new(mm.nas_uplink_count?)?, downlink?);
    security.nas.resume(downlink.plus(1), Some(uplink));
    security.unconfirmed = RESERVED_NAS_COUNTS;
    Some(Received { security, uplink, is_derived, derived_with: None })
}

/// A transferred session.
pub(in crate::amf) fn session(context: namf::PduSessionContext) -> PduSession {
    let mut session = PduSession::new(context.pdu_session_id, context.s_nssai, context.dnn);
    session.sm_context = Some(context.sm_context_ref);
    session.smf.instance = context.vsmf_id.or(context.hsmf_id);
    session
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{client, instance, root};

    /// Sessions from another AMF do not start without an SMF.
    #[test]
    fn a_transferred_session_is_that_of_its_smf() {
        let uri = pith_sbi::Uri::new(&root("smf"), "/nsmf-pdusession/v1/sm-contexts/1");
        let (slice, dnn) = (pith_types::Snssai::of_sst(1), "internet".parse::<pith_types::Dnn>().unwrap());
        let access = pith_sbi::common::AccessType::ThreeGppAccess;
        let mut context = namf::PduSessionContext::new(5, uri, slice, dnn, access);
        context.hsmf_id = Some(instance(1));
        let mut session = session(context);
        assert!(!session.admits(client(2)));
        assert!(session.admits(client(1)) && !session.admits(client(2)));
    }
}
