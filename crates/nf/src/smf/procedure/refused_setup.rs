//! A gNB does not set up the resources of a session, or sets them up without the QoS flow of the default QoS rule,
//! which each session has for its lifetime (TS 23.501 5.7.1.1; TS 38.413 8.2.1.2, 9.3.4.2, 9.3.4.16).
//!
//! | state | no resources | no default flow |
//! |---|---|---|
//! | AwaitingResourceSetup | the session ends; the UE has not got the accept | commands to gNB and UE (#26) |
//! | Established, no tunnel | the UPF drops the buffered packets | the same; command to the gNB |
//! | Established, a tunnel of earlier resources | the UPF buffers | the same; command to the gNB |
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

/// Whether the gNB, or a secondary one, has set up the default flow.
pub(in crate::smf) fn has_default_flow(transfer: &SetupResponseTransfer) -> bool {
    let additional = transfer.additional.iter().flat_map(|it| &it.flows);
    transfer.flows.iter().chain(additional).any(|qfi| *qfi == DEFAULT_QFI)
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
        State::Established(Established { mut user_plane }) => {
            log(session, env);
            session.forget_handover();
            if user_plane.gnb.take().is_some() {
                // The command to the gNB follows when the UPF buffers.
                acknowledge(reply, env.out);
                return AwaitingBuffering::begin(user_plane, session, env);
            }
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
    match state {
        State::AwaitingResourceSetup(state) if is_handover => {
            acknowledge(reply, env.out);
            state.on_handover(session, env)
        }
        State::Established(Established { user_plane })
            if user_plane.gnb.is_some() && cause != Some(second) =>
        {
            session.forget_handover();
            let state = user_plane::deactivate(user_plane, session, env, reply);
            if is_handover {
                refused_transfer::set_up_later(session, env);
            }
            state
        }
        State::Established(established) if is_handover && established.user_plane.gnb.is_none() => {
            acknowledge(reply, env.out);
            if refused_transfer::set_up_later(session, env) {
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
