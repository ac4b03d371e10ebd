//! N2 handover to another AMF, at the source AMF (TS 23.502 4.9.1.3, 4.9.1.4; TS 29.518 5.2.2.2.3, 5.2.2.2.4, 5.2.2.3.6).
//!
//! | step | state | from | timer | TS 23.502 4.9.1.3 |
//! |---|---|---|---|---|
//! | HANDOVER REQUIRED for a gNB that is not connected here | | source gNB | | .2 1 |
//! | CreateUEContext to an AMF that serves the target's tracking area, with keys, NH and NCC | [`AwaitingUeContextCreation`] | target AMF | | .2 2, 3 |
//! | HANDOVER COMMAND; RAN STATUS TRANSFER is relayed by N1N2MessageTransfer | [`AwaitingN2InfoNotify`] | target AMF | completion | .3 1 to 5 |
//! | the context ends without its sessions; UE CONTEXT RELEASE COMMAND to the source gNB | | | release of the source | .3 6, 14 |
//!
//! HANDOVER CANCEL, or the timer: ReleaseUEContext, and the UE stays; but the context ends if N2InfoNotify arrives nevertheless. During the handover
//! messages of SMFs are refused: SMFs send them again after it (TS 23.502 4.9.1.3.1).
//!
//! The NAS COUNTs are the target AMF's from CreateUEContext on: this AMF sends no NAS message until the UE stays ([`crate::amf::n1::seal`]). If
//! HANDOVER COMMAND was sent, it continues after COUNTs that it reserves, because the target AMF may have used some.

use super::Mobility;
use super::n2_handover::{self, HandoverError, fail_preparation, source_of, stay, unsuccessful};
use super::n14;
use crate::amf::access_keys;
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, RmState, UeContext};
use crate::amf::n2;
use crate::amf::procedure::{self, Procedure};
use crate::amf::services::{self, MAX_UNCONFIRMED_NAS_COUNTS, RESERVED_NAS_COUNTS};
use crate::kit::document::pack_struct;
use crate::kit::{Duration, Level, Target, Timer};
use pith_ngap::{
    Cause, CauseRadioNetwork, HandoverCommand, HandoverRequired, HandoverType, SessionTransfer, TargetId,
};
use pith_sbi::common::UeContextId;
use pith_sbi::namf_communication::{self as namf, NgapIeType};
use pith_sbi::{ApiRoot, Cause as SbiCause, Problem, ProblemMore, Reply, Response, Uri};
use std::sync::Arc;

/// Time from N2InfoNotify to the release of the source gNB (TS 23.502 4.9.1.3.3 steps 6, 14): the paths of the UE's sessions are switched in it.
const SOURCE_RELEASE: Duration = Duration::from_secs(1);

/// CreateUEContext is pending.
#[derive(Debug)]
pub(crate) struct AwaitingUeContextCreation {
    call: CallId,
    /// The number of the handover in its callback URI.
    number: CallId,
    /// Sessions that are to be handed over.
    offered: Vec<u8>,
    /// Sessions of which the target AMF gets the context.
    transferred: Vec<u8>,
    to_release: Vec<SessionTransfer>,
}

/// HANDOVER COMMAND was sent: the UE moves.
#[derive(Debug)]
pub(crate) struct AwaitingN2InfoNotify {
    number: CallId,
    /// The UE context at the target AMF.
    context: Uri,
    transferred: Vec<u8>,
}

pack_struct!(AwaitingUeContextCreation { call, number, offered, transferred, to_release });
pack_struct!(AwaitingN2InfoNotify { number, context, transferred });

/// Whether the UE can be handed over to another AMF: its keys are those of gNB and UE (TS 33.501 6.9.5), and its COUNTs suffice.
pub(super) fn check(ue: &UeContext) -> Result<(), HandoverError> {
    let is_rekeying =
        matches!(ue.procedure, Procedure::AwaitingSecurityModeComplete(_)) || ue.access_keys.is_outdated();
    // A UE that has got DEREGISTRATION REQUEST does not take its registration to another AMF.
    let is_leaving = matches!(ue.procedure, Procedure::AwaitingDeregistrationAccept(_));
    if is_rekeying || is_leaving || ue.procedure.is_registering() {
        return Err(HandoverError::InProgress);
    }
    let reserved = ue.security.as_ref().map(|security| security.unconfirmed + RESERVED_NAS_COUNTS);
    match reserved {
        Some(reserved) if reserved <= MAX_UNCONFIRMED_NAS_COUNTS => Ok(()),
        _ => Err(HandoverError::NoContext),
    }
}

/// CreateUEContext to an AMF that serves the target's tracking area.
pub(super) fn begin(ue: &mut UeContext, env: &mut Env<'_>, message: HandoverRequired) -> Mobility {
    let (known, unknown): (Vec<_>, Vec<_>) = message.sessions.into_iter().partition(|item| {
        ue.session(item.pdu_session_id).is_some_and(|session| session.sm_context.is_some())
    });
    let cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_PDU_session_ID);
    let to_release = unknown.into_iter().map(|item| unsuccessful(item.pdu_session_id, cause)).collect();
    let offered: Vec<u8> = known.iter().map(|item| item.pdu_session_id).collect();
    if offered.is_empty() {
        fail_preparation(ue, env, HandoverError::NoSession);
        return Mobility::Idle;
    }
    let TargetId::RanNode { tai, .. } = message.target else { return Mobility::Idle };
    let context = if env.config.derives_k_amf {
        services::context_with_derived_key(ue)
    } else {
        access_keys::next_hop(ue).and_then(|next_hop| services::context_for_handover(ue, &next_hop))
    };
    let (Some(context), Some(target)) = (context, consumer::target_id(&message.target)) else {
        fail_preparation(ue, env, HandoverError::NoContext);
        return Mobility::Idle;
    };
    let transferred = context.session_context_list.iter().map(|session| session.pdu_session_id).collect();
    let number = ue.next_number();
    let container = n14::information(NgapIeType::SrcToTarContainer, message.source_to_target);
    let sessions: Vec<_> =
        known.into_iter().map(|item| n14::session_information(NgapIeType::HandoverRequired, item)).collect();
    let mut body = namf::UeContextCreateData::new(context, target, container, sessions);
    body.n2_notify_uri = Some(consumer::n2_callback(ue, env, number));
    body.ngap_cause = message.cause.map(n14::sbi_cause);
    body.serving_network = Some(env.config.plmn_in(ue.location).into());
    let capability = ue.radio_capability.as_ref();
    body.ue_radio_capability =
        capability.map(|octets| n14::information(NgapIeType::UeRadioCapability, octets.to_vec()));
    let Some(call) = consumer::create_ue_context(ue, env, tai, body) else {
        fail_preparation(ue, env, HandoverError::NoContext);
        return Mobility::Idle;
    };
    AwaitingUeContextCreation { call, number, offered, transferred, to_release }.into()
}

/// Why the target AMF does not prepare the handover.
fn error_of(problem: &Problem) -> HandoverError {
    if problem.is(&SbiCause::NfDiscoveryFailure) {
        return HandoverError::UnknownTarget;
    }
    match &problem.more {
        Some(ProblemMore::UeContextCreateError(error)) => {
            let cause = error.ngap_cause.as_ref().and_then(n14::cause_of);
            cause.map_or(HandoverError::Refused, HandoverError::ByTargetAmf)
        }
        _ if problem.status == 504 => HandoverError::NoAnswer,
        _ => HandoverError::Refused,
    }
}

impl AwaitingUeContextCreation {
    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        meets(self.call)
    }

    /// The target AMF's reply.
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> Mobility {
        let error = match reply {
            Ok(Response::UeContextCreated(created)) => return self.command(ue, env, *created),
            Ok(_) => HandoverError::Refused,
            Err(problem) => {
                env.out.log(Level::Warn, || format!("{}: CreateUEContext: {problem}", ue.name()));
                error_of(&problem)
            }
        };
        fail_preparation(ue, env, error);
        stay(ue, env)
    }

    /// The target is prepared: HANDOVER COMMAND to the source gNB (TS 38.413 8.4.1.2).
    fn command(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        created: pith_sbi::Created<namf::UeContextCreatedData>,
    ) -> Mobility {
        let Self { number, offered, transferred, mut to_release, .. } = self;
        let (context, data) = (created.location, created.body);
        let is_offered = |item: &SessionTransfer| offered.contains(&item.pdu_session_id);
        let accepted: Vec<_> =
            data.pdu_session_list.iter().filter_map(n14::transfer_of).filter(is_offered).collect();
        let mut answered: Vec<u8> = accepted.iter().map(|item| item.pdu_session_id).collect();
        let has_room = |item: &SessionTransfer| !answered.contains(&item.pdu_session_id) && is_offered(item);
        let failed: Vec<_> =
            data.failed_session_list.iter().filter_map(n14::transfer_of).filter(has_room).collect();
        answered.extend(failed.iter().map(|item| item.pdu_session_id));
        to_release.extend(failed);
        let silent = offered.iter().filter(|id| !answered.contains(id));
        to_release.extend(silent.map(|id| unsuccessful(*id, n2_handover::NOT_PREPARED)));
        let source = ue.connection.zip(source_of(ue, env).map(|source| (source.id, source.ran_id)));
        let Some((key, (amf_ue_ngap_id, ran_ue_ngap_id))) = source.filter(|_| !accepted.is_empty()) else {
            consumer::release_ue_context(env, &context, n2_handover::CANCELLED);
            fail_preparation(ue, env, HandoverError::NoSession);
            return stay(ue, env);
        };
        let command = HandoverCommand {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            handover_type: HandoverType::intra5gs,
            nas_security_parameters: None,
            sessions: Some(accepted),
            to_release: (!to_release.is_empty()).then_some(to_release),
            target_to_source: data.target_to_source_data.ngap_data.content.to_vec(),
            diagnostics: None,
        };
        n2::respond(env, key, command.encode());
        ue.start(env, Timer::Handover, env.config.timers.handover_completion);
        AwaitingN2InfoNotify { number, context, transferred }.into()
    }
}

/// The network deregisters the UE: the handover does not take place. Before HANDOVER COMMAND the source gNB gets HANDOVER PREPARATION FAILURE (TS
/// 38.413 8.4.1.3), and the target AMF's answer is undone when it arrives. Later the target AMF releases the context (TS 29.518 5.2.2.2.4): if the
/// UE moves nevertheless, its gNB is refused, and it registers again.
pub(crate) fn cancel(ue: &mut UeContext, env: &mut Env<'_>) {
    let state = std::mem::take(&mut ue.mobility);
    n2_handover::withdraw(ue, env, &state);
    if let Mobility::AwaitingUeContextCreation(_) = state {
        fail_preparation(ue, env, HandoverError::InProgress);
    }
    ue.mobility = stay(ue, env);
}

/// A handover of which HANDOVER COMMAND was sent, and which this AMF has withdrawn.
#[derive(Debug)]
pub(crate) struct Withdrawn {
    pub number: CallId,
    /// Sessions whose contexts the target AMF has got.
    transferred: Vec<u8>,
}

pack_struct!(Withdrawn { number, transferred });

impl AwaitingN2InfoNotify {
    /// The UE context at the target AMF.
    pub const fn context(&self) -> &Uri {
        &self.context
    }

    /// The handover does not take place, as far as this AMF knows: the target AMF releases its context. It refuses, and reports the UE, if the
    /// UE has arrived there meanwhile ([`completed`]).
    pub(super) fn withdraw(&self, ue: &mut UeContext, env: &mut Env<'_>) {
        consumer::release_ue_context(env, &self.context, n2_handover::CANCELLED);
        ue.withdrawn =
            Some(Box::new(Withdrawn { number: self.number, transferred: self.transferred.clone() }));
        ue.start(env, Timer::WithdrawnHandover, env.config.timers.handover_completion);
        if let Some(security) = &mut ue.security {
            security.nas.skip_to_send(RESERVED_NAS_COUNTS);
            security.unconfirmed = security.unconfirmed.saturating_add(RESERVED_NAS_COUNTS);
        }
    }
}

/// Whether the context that the target AMF of an earlier handover has created is now that of the handover in progress: an AMF has one context of a UE
/// that is being handed over. Its release would end this handover. While the target AMF of this handover is not known, it may be another one: then
/// the timer there ends the earlier context.
pub(crate) fn is_replaced(ue: &UeContext, context: &Uri) -> bool {
    match &ue.mobility {
        Mobility::AwaitingUeContextCreation(_) => true,
        Mobility::AwaitingN2InfoNotify(state) => state.context == *context,
        _ => false,
    }
}

/// Whether the UE may be at the target AMF of a handover, whose report has not arrived.
pub(crate) fn may_be_complete(ue: &UeContext) -> bool {
    matches!(ue.mobility, Mobility::AwaitingN2InfoNotify(_)) || ue.withdrawn.is_some()
}

/// CreateUEContext failed without a refusal: no answer arrived in time, or one without the URI of the context. The target AMF may have created
/// the context, which has the name in the request there.
pub(crate) fn release_unconfirmed(
    ue: &UeContext,
    env: &mut Env<'_>,
    call: CallId,
    target: &Arc<ApiRoot>,
    problem: &Problem,
) {
    let is_pending = matches!(&ue.mobility, Mobility::AwaitingUeContextCreation(state) if state.call == call);
    let is_refusal = matches!(problem.more, Some(ProblemMore::UeContextCreateError(_)));
    let Some(supi) = ue.supi.clone().filter(|_| is_pending && !is_refusal && problem.status >= 500) else {
        return;
    };
    let (target, name) = (Target::Root(Arc::clone(target)), UeContextId::Supi(supi));
    consumer::release_named_ue_context(env, target, name, n2_handover::CANCELLED);
}

/// N2InfoNotify: the UE is at the target AMF. The source gNB forwards packets until the target AMF's SMFs have switched the paths, and is released then
/// ([`SOURCE_RELEASE`]). The context ends; its sessions are the target AMF's,
/// except those that it does not take. Returns whether that handover was in progress, or withdrawn a short time ago.
///
/// The target AMF decides whether a handover takes place that this one withdraws: it has got HANDOVER NOTIFY before ReleaseUEContext, which it
/// refuses, and the SMFs have its requests. The UE is at its gNB.
pub(crate) fn completed(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    number: u32,
    notification: &namf::N2InformationNotification,
) -> bool {
    let transferred = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingN2InfoNotify(state) if state.number.0 == number => state.transferred,
        later => match take_withdrawn(ue, number) {
            Some(withdrawn) => {
                n2_handover::withdraw(ue, env, &later);
                withdrawn.transferred
            }
            None => {
                ue.mobility = later;
                return false;
            }
        },
    };
    ue.stop(env, Timer::Handover);
    forget_withdrawn(ue, env);
    ue.log_outcome(env, Level::Info, "N2 handover", "to another AMF");
    procedure::abort(ue, env);
    if let Some(source) = ue.connection.take() {
        n2::leave(ue, env, source, SOURCE_RELEASE);
    }
    let released = &notification.to_release_session_list;
    let is_left = |id: &u8| released.contains(id) || !transferred.contains(id);
    ue.sessions.retain(|session| is_left(&session.id));
    ue.registered_in_udm = false;
    ue.discards_security = true;
    ue.rm = RmState::Deregistered;
    true
}

fn take_withdrawn(ue: &mut UeContext, number: u32) -> Option<Box<Withdrawn>> {
    let is_registered = ue.is_registered();
    ue.withdrawn.take_if(|withdrawn| is_registered && withdrawn.number.0 == number)
}

/// The UE is here, or at the target AMF of a later handover: reports of the one that was withdrawn are refused from now on.
pub(crate) fn forget_withdrawn(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.withdrawn = None;
    ue.stop(env, Timer::WithdrawnHandover);
}

impl From<AwaitingUeContextCreation> for Mobility {
    fn from(state: AwaitingUeContextCreation) -> Self {
        Self::AwaitingUeContextCreation(Box::new(state))
    }
}

impl From<AwaitingN2InfoNotify> for Mobility {
    fn from(state: AwaitingN2InfoNotify) -> Self {
        Self::AwaitingN2InfoNotify(Box::new(state))
    }
}
