//! A gNB does not set up the resources of a session, sets them up without the QoS flow of the default QoS rule, or releases that flow (TS 38.413
//! 8.2.1.2, 8.2.4.2, 9.3.4.2, 9.3.4.16). Each session has the flow for its lifetime (TS 23.501 5.7.1.1).
//!
//! | state | no resources | no default flow |
//! |---|---|---|
//! | AwaitingResourceSetup | reject to the UE (#26), which has not got the accept | commands to gNB and UE (#26) |
//! | Established, no tunnel | the UPF drops the buffered packets | the same; command to the gNB |
//! | Established, a tunnel of earlier resources | the UPF buffers | the same; command to the gNB |
//!
//! A gNB that releases the default flow alone keeps the session with its other flows. As without the flow in a setup, its resources are of no use: the
//! SMF has it release them, and the session continues without a user plane (TS 23.502 4.3.7).
//!
//! If the gNB has not answered, the AMF says so by a cause that gNBs do not send: the UE may have got the accept, and gets the command.
//!
//! What a gNB refuses because of a handover is requested again ([`refused_transfer`]).

use super::lost_tunnel::AwaitingBuffering;
use super::{AwaitingResourceSetup, Established, State, refused_transfer, release, user_plane};
use crate::kit::{Level, PendingReply};
use crate::smf::context::{DEFAULT_QFI, SmContext};
use crate::smf::env::Env;
use crate::smf::n2;
use crate::smf::update::{acknowledge, answer_update, on_delivery_failure};
use pith_ngap::transfer::{SetupResponseTransfer, SetupUnsuccessfulTransfer};
use pith_ngap::{Cause as NgapCause, CauseRadioNetwork};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdatedData};
use pith_sbi::{Cause, Problem};
use std::collections::BTreeSet;

const HANDED_OVER: &str = "the UE is handed over: its resources are set up later";

/// Whether the gNB, or a secondary one, has set up the default flow.
pub(in crate::smf) fn has_default_flow(transfer: &SetupResponseTransfer) -> bool {
    let additional = transfer.additional.iter().flat_map(|it| &it.flows);
    transfer.flows.iter().chain(additional).any(|qfi| *qfi == DEFAULT_QFI)
}

/// Whether a flow has two results: two tunnels, or one although it has failed.
pub(in crate::smf) fn is_contradictory(transfer: &SetupResponseTransfer) -> bool {
    let failed: BTreeSet<u8> = transfer.failed.iter().map(|(qfi, _)| *qfi).collect();
    let lists = [&transfer.flows].into_iter().chain(transfer.additional.iter().map(|it| &it.flows));
    let tunnels = lists.map(|flows| flows.iter().copied().collect::<BTreeSet<u8>>());
    let mut seen = BTreeSet::new();
    tunnels.chain([failed]).any(|flows| {
        let is_repeated = !seen.is_disjoint(&flows);
        seen.extend(flows);
        is_repeated
    })
}

/// The gNB has set up other flows only: the session can't use its resources, which the gNB is to release.
pub(in crate::smf) fn on_unusable(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
) -> State {
    match state {
        State::AwaitingResourceSetup(AwaitingResourceSetup { user_plane, .. }) => {
            log(session, env);
            acknowledge(reply, env.out);
            release::end_without_resources(user_plane.into(), session, env)
        }
        State::Established(established) if established.user_plane.gnb.is_some() => {
            log(session, env);
            acknowledge(reply, env.out);
            release_resources(established, session, env)
        }
        State::Established(Established { user_plane }) => {
            log(session, env);
            session.forget_handover();
            let mut data = SmContextUpdatedData::default();
            data.n2_sm_info = Some(n2::release_command().into());
            data.n2_sm_info_type = Some(N2SmInfoType::PduResRelCmd);
            answer_update(reply, data, env.out);
            Established { user_plane }.on_paging_failure(session, env)
        }
        state => {
            let problem = Problem::new(Cause::UnprocessableRequest).detail(state.phase().name());
            reply.refuse(problem, env.out);
            state
        }
    }
}

/// The gNB has released the default flow, and perhaps others. The target gNB of a handover gets all flows.
pub(in crate::smf) fn on_default_flow_released(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
) -> State {
    match state {
        State::Established(established)
            if established.user_plane.gnb.is_some() && !session.is_handed_over() =>
        {
            session.log(env, Level::Warn, || "the gNB has released the default QoS flow".to_owned());
            release_resources(established, session, env)
        }
        // It has no resources, is to set them up, or is to release them.
        state => state,
    }
}

/// The UPF buffers, and then the gNB gets the command.
fn release_resources(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let Established { mut user_plane } = established;
    session.forget_handover();
    user_plane.gnb = None;
    AwaitingBuffering::begin(user_plane, session, env)
}

fn log(session: &SmContext, env: &mut Env<'_>) {
    session.log(env, Level::Warn, || "the gNB has not set up the default QoS flow".to_owned());
}

/// The gNB has set up nothing. The AMF takes the session for inactive from now on: a tunnel that the UPF has is that of
/// resources which have ended, unless the gNB refuses a second instance of the session (TS 38.413 8.2.1.4).
pub(in crate::smf) fn on_failure(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    info: &[u8],
) -> State {
    let second = NgapCause::RadioNetwork(CauseRadioNetwork::multiple_PDU_session_ID_instances);
    let cause = SetupUnsuccessfulTransfer::decode(info).map(|transfer| transfer.cause).ok();
    let is_handover = cause.is_some_and(NgapCause::is_handover);
    let of_core = CauseRadioNetwork::release_due_to_5gc_generated_reason;
    let is_unanswered = cause == Some(NgapCause::RadioNetwork(of_core));
    match state {
        State::AwaitingResourceSetup(state) if is_handover => {
            acknowledge(reply, env.out);
            state.on_handover(session, env)
        }
        State::AwaitingResourceSetup(state) => {
            acknowledge(reply, env.out);
            if is_unanswered { state.on_silence(session, env) } else { state.on_refusal(session, env) }
        }
        State::Established(Established { user_plane })
            if user_plane.gnb.is_some() && cause != Some(second) =>
        {
            session.forget_handover();
            let state = user_plane::deactivate(user_plane, session, env, reply);
            if is_handover {
                refused_transfer::set_up_later(session, env, HANDED_OVER);
            }
            state
        }
        State::Established(established) if is_handover && established.user_plane.gnb.is_none() => {
            acknowledge(reply, env.out);
            if refused_transfer::set_up_later(session, env, HANDED_OVER) {
                return established.into();
            }
            established.on_paging_failure(session, env)
        }
        state => {
            acknowledge(reply, env.out);
            on_delivery_failure(state, session, env)
        }
    }
}
