//! N2 handover of a session (TS 23.502 4.9.1.3; TS 29.502 5.2.2.3.4). The packets keep their path until the UE is at the target.
//!
//! | hoState | N2 information of the AMF | the SMF answers |
//! |---|---|---|
//! | PREPARING | HANDOVER_REQUIRED | PDU_RES_SETUP_REQ, for the target gNB |
//! | PREPARED | HANDOVER_REQ_ACK | HANDOVER_CMD, for the source gNB; notes the target gNB's endpoint. Before it, a tunnel for packets that are forwarded, if the gNBs have no path ([`super::forwarding`]) |
//! | PREPARED | HANDOVER_RES_ALLOC_FAIL | HANDOVER_PREP_FAIL |
//! | COMPLETED | | after the path switch ([`super::path_switch`]); at once if the AMF repeats it because it has not got the answer |
//! | CANCELLED | | forgets the target gNB's endpoint |
//!
//! With a change of the AMF the requests are the target AMF's: it names itself in PREPARING (`targetServingNfId`) and in COMPLETED (`servingNfId`),
//! and the session is its own from COMPLETED on. Until then the source AMF's requests are served, too.

use super::forwarding::{self, Forwarded};
use super::path_switch::{self, Handover, Target};
use super::{Established, State, modification};
use crate::kit::{Level, Owner, PendingReply};
use crate::smf::context::{DEFAULT_QFI, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::n2;
use crate::smf::update::{answer_update, refuse_transfer};
use bytes::Bytes;
use pith_ngap::transfer::{
    AdditionalTarget, FlowTunnel, HandoverCommandTransfer, HandoverRequestAcknowledgeTransfer,
    HandoverRequiredTransfer, Tunnel,
};
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, SmContextUpdateData, SmContextUpdatedData};
use pith_sbi::{Cause, Problem};

/// The AMF changes the session's handover state.
pub(in crate::smf) fn on_update(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    (handover, data): (&HoState, &SmContextUpdateData),
) -> State {
    let info = data.n2_sm_info.as_ref().map(|info| info.content.clone()).unwrap_or_default();
    let Established { user_plane } = match state {
        State::Established(established) => established,
        state => {
            let problem = Problem::new(Cause::UnprocessableRequest).detail(state.phase().name());
            refuse_transfer(reply, &N2SmInfoType::HandoverRequired, problem, env.out);
            return state;
        }
    };
    match handover {
        HoState::Preparing if user_plane.gnb.is_some() => {
            session.forget_handover();
            session.gnb.note_handover();
            session.forwards_directly =
                HandoverRequiredTransfer::decode(&info).is_ok_and(|transfer| transfer.direct_forwarding_path);
            // It has no other proof than the reference of the SM context, which it has from the source AMF.
            session.amf.handover_target = data.target_serving_nf_id.map(|_| Owner::of(reply.caller()));
            // The source gNB keeps its own.
            session.handover_uplink = Some(user_plane.n3_session().tunnel);
            let setup = n2::setup_request(session, &user_plane);
            answer(HoState::Preparing, Some((N2SmInfoType::PduResSetupReq, setup)), reply, env);
        }
        // A request that CANCELLED has overtaken must not prepare the handover again.
        HoState::Prepared if session.handover_uplink.is_none() => {
            refuse(reply, "no handover of this session is being prepared", env);
        }
        HoState::Prepared if data.n2_sm_info_type == Some(N2SmInfoType::HandoverReqAck) => {
            return prepared(user_plane, session, env, reply, &info);
        }
        HoState::Prepared => {
            session.forget_handover();
            forwarding::end(session, env);
            refuse(reply, "the target gNB did not admit the session", env);
        }
        // The target stays: the AMF repeats its request to an SMF that has restarted meanwhile.
        HoState::Completed => match session.handover_target.filter(|_| session.handover_uplink.is_some()) {
            Some(primary) => {
                let of_flows = |(tunnel, flows): &(Tunnel, Vec<u8>)| FlowTunnel {
                    tunnel: *tunnel,
                    flows: flows.clone(),
                };
                let additional = session.handover_additional.iter().map(of_flows).collect();
                let target = Target { primary, additional };
                session.amf.handover_target = None;
                let refused = std::mem::take(&mut session.flows.refused_by_target);
                let failed = session.flows.note_at_target(|qfi| refused & 1 << (qfi & 63) == 0);
                modification::fail_rules(session, env, failed, "the target gNB does not accept their flows");
                return path_switch::begin(user_plane, session, env, reply, (target, Handover::N2));
            }
            None => refuse(reply, "no handover of this session is prepared", env),
        },
        HoState::Cancelled => {
            session.forget_handover();
            forwarding::end(session, env);
            answer(HoState::Cancelled, None, reply, env);
        }
        _ => refuse(reply, "the session has no user plane to hand over", env),
    }
    State::established(user_plane)
}

/// Whether the AMF repeats COMPLETED: the path is switched, and the UE has been at that gNB since.
pub(in crate::smf) fn is_repeated(state: &State, session: &SmContext, data: &SmContextUpdateData) -> bool {
    let is_active = state.user_plane().is_some_and(|user_plane| user_plane.gnb.is_some());
    data.ho_state == Some(HoState::Completed) && session.is_switched() && is_active
}

/// The path is switched.
pub(in crate::smf) fn answer_completed(reply: PendingReply, env: &mut Env<'_>) {
    answer(HoState::Completed, None, reply, env);
}

/// The target gNB has resources: notes its endpoint, and answers with the tunnel for forwarded packets: the target gNB's, if the gNBs have a path for
/// them, else one of the UPF.
fn prepared(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    info: &Bytes,
) -> State {
    let transfer = match HandoverRequestAcknowledgeTransfer::decode(info) {
        Ok(transfer) if admits(&transfer, DEFAULT_QFI) => transfer,
        Ok(_) => {
            refuse(reply, "the target gNB did not admit the default QoS flow", env);
            return State::established(user_plane);
        }
        Err(error) => {
            refuse(reply, &error.to_string(), env);
            return State::established(user_plane);
        }
    };
    session.handover_target = Some(transfer.downlink);
    let of_flows = |it: &AdditionalTarget| (it.downlink, it.flows.iter().map(|(qfi, _)| *qfi).collect());
    session.handover_additional = transfer.additional.iter().map(of_flows).collect();
    let flows = session.flows.current.flows().into_iter().map(|flow| flow.qfi);
    let refused = flows.filter(|qfi| !admits(&transfer, *qfi));
    session.flows.refused_by_target = refused.fold(0, |bits, qfi| bits | 1 << (qfi & 63));
    session.log(env, Level::Debug, || "handover prepared".to_owned());
    let named: Vec<u8> = admitted(&transfer).map(|(qfi, _)| *qfi).collect();
    modification::ignore_unknown(session, env, &named);
    session.flows.at_target = named.iter().fold(0, |bits, qfi| bits | 1 << (qfi & 63));
    let is_forwarded = |flow: &&(u8, bool)| flow.1 && session.flows.knows(flow.0);
    let flows: Vec<u8> = transfer.flows.iter().filter(is_forwarded).map(|(qfi, _)| *qfi).collect();
    match transfer.forwarding {
        Some(target) if !session.forwards_directly && !flows.is_empty() => {
            forwarding::begin(user_plane, session, env, Some(reply), Forwarded { target, flows })
        }
        tunnel => {
            command(tunnel, flows, Some(reply), env);
            State::established(user_plane)
        }
    }
}

/// Answers with Handover Command Transfer.
pub(super) fn command(
    forwarding: Option<Tunnel>,
    flows: Vec<u8>,
    reply: Option<PendingReply>,
    env: &mut Env<'_>,
) {
    let Some(reply) = reply else { return };
    let flows = if forwarding.is_some() { flows } else { Vec::new() };
    let command = HandoverCommandTransfer { forwarding, flows };
    answer(HoState::Prepared, Some((N2SmInfoType::HandoverCmd, command.encode())), reply, env);
}

/// The flows that the target gNB, or a secondary one, takes, and whether it accepts forwarded packets of them.
fn admitted(transfer: &HandoverRequestAcknowledgeTransfer) -> impl Iterator<Item = &(u8, bool)> {
    transfer.flows.iter().chain(transfer.additional.iter().flat_map(|it| &it.flows))
}

fn admits(transfer: &HandoverRequestAcknowledgeTransfer, qfi: u8) -> bool {
    admitted(transfer).any(|(admitted, _)| *admitted == qfi)
}

fn answer(state: HoState, n2: Option<(N2SmInfoType, Vec<u8>)>, reply: PendingReply, env: &mut Env<'_>) {
    let mut data = SmContextUpdatedData::default();
    data.ho_state = Some(state);
    if let Some((kind, transfer)) = n2 {
        data.n2_sm_info = Some(transfer.into());
        data.n2_sm_info_type = Some(kind);
    }
    answer_update(reply, data, env.out);
}

/// Refuses with Handover Preparation Unsuccessful Transfer.
fn refuse(reply: PendingReply, why: &str, env: &mut Env<'_>) {
    let problem = Problem::new(Cause::N2SmError).detail(why);
    refuse_transfer(reply, &N2SmInfoType::HandoverRequired, problem, env.out);
}
