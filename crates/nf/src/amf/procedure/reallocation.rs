//! AMF re-allocation at the initial AMF (TS 23.502 4.2.2.2.3; TS 23.501 5.15.5.2.1): the NSSF names the AMFs that serve the UE's slices.
//!
//! | step | state | from | 23.502 |
//! |---|---|---|---|
//! | Namf_Communication_N1MessageNotify with the UE's context, to one candidate after the other, or to an AMF of the set | [`AwaitingAmfReallocation`] | target AMF | 6, 7A |
//! | 204: the context ends, without a message to the gNB | | | 8 |
//! | refused by all, and the UE was sent nothing: REROUTE NAS REQUEST | | | 7B |
//! | refused, and the UE was sent something: it gets the slices that this AMF serves | | | |
//!
//! With `amf.security.derive_k_amf` no AMF gets K_AMF, and the UE derives another key only by a SECURITY MODE COMMAND of a registration
//! (TS 33.501 6.9.3): N1MessageNotify is left out, and the target AMF of REROUTE NAS REQUEST requests the context with a derived key.
//!
//! The gNB's connection belongs to the target AMF with that AMF's first message (Old AMF, TS 38.413 8.3.1.2, 8.6.2.2). What the target AMF does
//! is in [`crate::amf::services`], and in [`confirm`].

use super::registration::{self, Attempt};
use super::ue_context_release::{on_connection_lost, on_idle};
use super::{Procedure, RegistrationStep, Step, context_transfer};
use crate::amf::connection::RanContext;
use crate::amf::consumer;
use crate::amf::context::{CallId, DeferredAction, Env, RmState, UeContext};
use crate::amf::emergency;
use crate::amf::error::RegistrationError;
use crate::amf::n2;
use crate::amf::reallocation::{NssfSlices, Origin, Reallocation};
use crate::amf::services::context_for_registration;
use crate::kit::document::pack_struct;
use crate::kit::{Duration, Level, Nf, Owner, Selection, Target, Timer};
use pith_ngap::RerouteNasRequest;
use pith_sbi::nnssf_nsselection::AuthorizedNetworkSliceInfo;
use pith_sbi::{Cause, NfInstanceId, Problem, Reply};
use pith_types::Plmn;

/// Candidates that get the request one after the other, while the UE waits.
const MOST_CANDIDATES: usize = 3;

/// How long another AMF may request the context with a message that the gNB has rerouted: the gNB has sent it on at once.
const REROUTED_TIME: Duration = Duration::from_secs(10);

/// A target AMF has the UE's registration, and has not answered yet.
#[derive(Debug)]
pub(crate) struct AwaitingAmfReallocation {
    attempt: Attempt,
    nssf: NssfSlices,
    /// The AMFs to ask next.
    targets: Targets,
    /// Sessions that go with the UE.
    sessions: Vec<u8>,
    pub call: CallId,
}

/// The AMFs that the NSSF names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Targets {
    candidates: Vec<NfInstanceId>,
    set: Option<AmfSet>,
    /// No AMF of the set was asked yet.
    may_ask_set: bool,
}

/// An AMF Set of the PLMN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AmfSet {
    region: u8,
    set: u16,
}

pack_struct!(AwaitingAmfReallocation { attempt, nssf, targets, sessions, call });
pack_struct!(Targets { candidates, set, may_ask_set });
pack_struct!(AmfSet { region, set });

impl AmfSet {
    /// The set of a `targetAmfSet`, such as `999-70-02-001` (TS 29.531 6.1.6.2.8), if it is one of that PLMN.
    fn parse(name: &str, plmn: Plmn) -> Option<Self> {
        let mut parts = name.split('-');
        let (mcc, mnc, region, set) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || (mcc, mnc) != (plmn.mcc().as_str(), plmn.mnc().as_str()) {
            return None;
        }
        let set = u16::from_str_radix(set, 16).ok().filter(|set| *set < 1 << 10)?;
        Some(Self { region: u8::from_str_radix(region, 16).ok()?, set })
    }
}

/// The other AMFs that the NSSF names for the UE. `None`: this one keeps it, because the NSSF names none, another AMF has passed it on, or it is
/// connected: only an initial message is passed on.
pub(super) fn targets(
    ue: &UeContext,
    env: &Env<'_>,
    info: &AuthorizedNetworkSliceInfo,
    nssf: &NssfSlices,
) -> Option<Targets> {
    let connection = ue.connection.and_then(|key| env.connections.get(key))?;
    let is_initial = connection.context == RanContext::Absent && ue.mobility.is_idle();
    let was_passed_on = ue.reallocation.as_ref().is_some_and(|it| it.origin.is_some());
    let plmn = ue.location?.tai.plmn_id;
    let served = env.config.slices(plmn);
    if !is_initial || was_passed_on || nssf.allowed.iter().all(|slice| served.contains(slice)) {
        return None;
    }
    let own = env.config.guami.amf_id;
    let set = info.target_amf_set.as_deref().and_then(|name| AmfSet::parse(name, plmn));
    let set = set.filter(|set| (set.region, set.set) != (own.region, own.set));
    let own = env.config.identity.instance_id;
    let candidates = info.candidate_amf_list.iter().copied().filter(|candidate| *candidate != own);
    let candidates: Vec<_> = candidates.take(MOST_CANDIDATES).collect();
    (set.is_some() || !candidates.is_empty()).then_some(Targets {
        candidates,
        set,
        may_ask_set: set.is_some(),
    })
}

impl Targets {
    fn next(&mut self) -> Option<Target> {
        if !self.candidates.is_empty() {
            return Some(Target::Instance(self.candidates.remove(0)));
        }
        let AmfSet { region, set } = self.set.filter(|_| std::mem::take(&mut self.may_ask_set))?;
        let amf_set = Some((region, set));
        Some(Target::Service(Selection { amf_set, is_other: true, ..Selection::default() }))
    }
}

/// Passes the registration on to the next AMF; without one over the gNB; else the UE is served here.
pub(super) fn proceed(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    (nssf, mut targets): (NssfSlices, Targets),
) -> RegistrationStep {
    let sessions = transferable(ue, &nssf);
    if let Some(target) = targets.next()
        && let Some(call) = pass_on(ue, env, &attempt, (&nssf, &sessions), target)
    {
        let next = AwaitingAmfReallocation { attempt, nssf, targets, sessions, call };
        return Ok(Step::waiting(Procedure::AwaitingAmfReallocation(Box::new(next)), Nf::Amf));
    }
    if let Some(set) = targets.set
        && reroute(ue, env, &nssf, set)
    {
        return Ok(Step::complete());
    }
    if ue.registered_in_udm {
        return registration::serve_here(ue, env, attempt, &nssf);
    }
    // Before it refused, the target AMF has registered in the UDM, which has ended this AMF's registration and subscription. The NSSF is not asked
    // again.
    let origin = Some(Origin { nssf, ..Origin::default() });
    ue.reallocation.get_or_insert_default().origin = origin;
    ue.sdm_subscription = None;
    registration::register_in_udm(ue, env, attempt)
}

/// Sessions of slices that the target AMF serves, and the emergency session. This AMF releases the others.
fn transferable(ue: &UeContext, nssf: &NssfSlices) -> Vec<u8> {
    let emergency = ue.emergency_session();
    let sessions = ue.sessions.iter().filter(|it| it.sm_context.is_some());
    sessions
        .filter(|it| nssf.allowed.contains(&it.snssai) || emergency == Some(it.id))
        .map(|it| it.id)
        .collect()
}

/// Namf_Communication_N1MessageNotify. The REGISTRATION REQUEST is the complete one, in cleartext. `None` if the UE's keys can't be given away:
/// K_AMF itself, if the policy is to derive another key, or keys whose COUNTs are used up.
fn pass_on(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: &Attempt,
    (nssf, sessions): (&NssfSlices, &[u8]),
    target: Target,
) -> Option<CallId> {
    if env.config.derives_k_amf {
        return None;
    }
    let connection = ue.connection.and_then(|key| env.connections.get(key))?;
    let gnb = env.gnbs.get(&connection.gnb)?.node;
    let ids = (connection.id, connection.ran_id);
    let mut context = context_for_registration(ue)?;
    context.session_context_list.retain(|session| sessions.contains(&session.pdu_session_id));
    // Until the target AMF refuses it may have the UE.
    ue.transferred_to = Some(Owner::SameUser);
    consumer::pass_registration_on(ue, env, (target, context), (gnb, ids), &attempt.request, nssf)
}

/// REROUTE NAS REQUEST (TS 38.413 8.6.5), if the UE was sent nothing. A registered UE is CM-IDLE from now on, until the target AMF registers
/// in the UDM; it may request the context with the message.
fn reroute(ue: &mut UeContext, env: &mut Env<'_>, nssf: &NssfSlices, set: AmfSet) -> bool {
    let initial = ue.reallocation.as_ref().map(|it| it.initial.clone()).filter(|pdu| !pdu.is_empty());
    let connection = ue.connection.and_then(|key| env.connections.get(key));
    let (Some(ngap_message), Some(connection)) = (initial, connection) else { return false };
    let request = RerouteNasRequest {
        ran_ue_ngap_id: connection.ran_id,
        amf_ue_ngap_id: None,
        ngap_message,
        amf_set_id: set.set,
        allowed_nssai: (!nssf.allowed.is_empty()).then(|| nssf.allowed.clone()),
        reroute: nssf.reroute(),
    };
    n2::send_to(env.out, connection.side(), request.encode());
    ue.log_outcome(env, Level::Info, "Registration", "rerouted to another AMF");
    ue.transferred_to = None;
    leave(ue, env);
    if ue.is_registered() {
        let rerouted = pith_ngap::peek(&request.ngap_message).and_then(|it| it.nas_pdu).map(<[u8]>::to_vec);
        ue.reallocation =
            rerouted.map(|rerouted| Box::new(Reallocation { rerouted, ..Reallocation::default() }));
        on_connection_lost(ue, env);
        on_idle(ue, env);
        ue.start(env, Timer::ReroutedMessage, REROUTED_TIME);
    }
    true
}

/// No AMF has requested the UE's context with the message that the gNB has rerouted: from now on the message is as any other.
pub(crate) fn on_rerouted_overdue(ue: &mut UeContext) {
    ue.reallocation.take_if(|it| !it.rerouted.is_empty());
}

/// The connection belongs to another AMF: it ends here without a message to the gNB.
fn leave(ue: &mut UeContext, env: &mut Env<'_>) {
    let Some(key) = ue.connection.take() else { return };
    if let Some(connection) = env.connections.get_mut(key) {
        connection.ue = None;
    }
    env.after.push(DeferredAction::Close(key));
}

impl AwaitingAmfReallocation {
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// The target AMF serves the UE, or refuses. Without an answer it may serve it, or not: the UE is released, and tries again.
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        let problem = match reply {
            Ok(_) => return Ok(self.passed_on(ue, env)),
            Err(problem) => problem,
        };
        if is_unanswered(&problem) {
            // The UDM may have said already that the target AMF serves it.
            return if ue.registered_in_udm {
                Err(RegistrationError::ReallocationUnanswered)
            } else {
                Ok(self.passed_on(ue, env))
            };
        }
        env.out.log(Level::Info, || format!("{}: an AMF does not take the UE: {problem}", ue.name()));
        ue.transferred_to = None;
        proceed(ue, env, self.attempt, (self.nssf, self.targets))
    }

    /// The target AMF has the UE: the context ends, with the sessions that did not go with it.
    fn passed_on(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        ue.log_outcome(env, Level::Info, "Registration", "passed on to another AMF");
        ue.sessions.retain(|session| !self.sessions.contains(&session.id));
        (ue.rm, ue.discards_security) = (RmState::Deregistered, true);
        leave(ue, env);
        Step::complete()
    }
}

/// Whether the target AMF may have processed the request nevertheless: it has not answered in time, or the connection to it has ended, or a proxy
/// says so. One that was not reached has not.
fn is_unanswered(problem: &Problem) -> bool {
    matches!(problem.status, 502 | 504) && !problem.is(&Cause::TargetNfNotReachable)
}

/// At the target AMF: the UE is verified. Takes its sessions over from the initial AMF, except those of slices that this AMF does not serve, and all
/// at an initial registration (TS 24.501 5.5.1.2.4): these end.
pub(crate) fn confirm(ue: &mut UeContext, env: &mut Env<'_>, begins: bool) {
    let Some(sessions) = ue.take_passed_on_sessions() else { return };
    let (taken, left): (Vec<_>, Vec<_>) =
        sessions.into_iter().partition(|it| !begins && context_transfer::is_served(ue, env, it));
    for session in left {
        consumer::release_passed_on(ue, env, session);
    }
    if begins {
        return;
    }
    let ids: Vec<u8> = taken.iter().map(|session| session.id).collect();
    ue.sessions.extend(taken);
    emergency::note_transferred_session(ue, env);
    // It stays registered during its update, also if the process ends: the initial AMF has deleted its context.
    ue.rm = RmState::Registered;
    (ue.must_store, ue.must_store_at_once) = (true, true);
    context_transfer::announce_idle(ue, env, &ids);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_of_another_network_is_no_target() {
        let plmn = "999/70".parse().unwrap();
        assert_eq!(AmfSet::parse("999-70-02-0fe", plmn), Some(AmfSet { region: 2, set: 0xfe }));
        for wrong in ["999-71-02-001", "999-70-02-400", "999-70-02", "999-70-2g-001", "999-70-02-001-1", ""] {
            assert_eq!(AmfSet::parse(wrong, plmn), None, "{wrong}");
        }
    }
}
