//! RAN initiated QoS flow mobility: the master gNB moves downlink packets of the session, or of some QoS flows, to a secondary gNB, or back (TS
//! 23.502 4.14.1; TS 23.501 5.11.1; TS 38.413 8.2.5; TS 29.502 5.2.2.3).
//!
//! ```text
//!  AMF ─> PDU_RES_MOD_IND        step 2    tunnels and their flows
//!         AwaitingFlowMobility   3, 4      <─ UPF: End Marker into each tunnel that no flow uses any longer (5)
//!  AMF <─ PDU_RES_MOD_CFM        6         flows that have moved, the UPF's endpoint, flows that have not
//! ```
//!
//! All nodes send uplink packets to the same endpoint of the UPF. A tunnel that keeps other flows gets no End Marker. A UPF that
//! refuses has changed nothing: the session keeps its tunnels, and the gNB its configuration. A session with a UPF between gNB and anchor has one
//! tunnel, which can move. Redundant transmission (TS 23.501 5.33.2) is not supported.

use super::restoration::{self, Absence};
use super::{Established, State, release};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::tunnels::{self, Indicated, Reroute, Tunnels};
use crate::smf::update::{answer_update, refuse_with};
use crate::smf::{n2, n4};
use bytes::Bytes;
use pith_ngap::transfer::{
    FlowTunnel, ModifyIndicationTransfer, ModifyIndicationUnsuccessfulTransfer, ModifyResponseTransfer,
    Tunnel,
};
use pith_ngap::{Cause as NgapCause, CauseRadioNetwork};
use pith_pfcp::Message;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateData, SmContextUpdatedData};
use pith_sbi::{Cause, Problem};

/// New rules were sent to the UPF. The AMF's request is not answered yet.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingFlowMobility {
    /// With the new primary tunnel; the session has the additional ones.
    pub user_plane: UserPlane,
    /// The tunnels until now: they are in force again if the UPF refuses.
    former: Box<(Tunnel, Tunnels)>,
    moving: Box<Move>,
    /// The UPF has refused the change, and got it as a repeated one.
    is_repeated: bool,
    reply: PendingReply,
    /// The request.
    pub call: CallId,
}

/// The gNB's message that moves flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    /// An indication, which gets a confirmation.
    Indication,
    /// The answer to a modification by the SMF.
    Response,
}

/// What is to move, and what the gNB is answered.
#[derive(Debug)]
struct Move {
    trigger: Trigger,
    wanted: Vec<(u8, Tunnel)>,
    confirmed: Vec<u8>,
    failed: Vec<(u8, NgapCause)>,
}

pack_struct!(AwaitingFlowMobility { user_plane, former, moving, is_repeated, reply, call });
pack_enum!(Trigger { 0 => Indication, 1 => Response });
pack_struct!(Move { trigger, wanted, confirmed, failed });

/// PDU_RES_MOD_IND (TS 23.502 4.14.1 step 2).
pub(in crate::smf) fn on_indication(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    info: &Bytes,
) -> State {
    let transfer = match ModifyIndicationTransfer::decode(info) {
        Ok(transfer) => transfer,
        Err(error) => {
            let problem = Problem::new(Cause::N2SmError).detail(&error);
            refuse(Trigger::Indication, reply, problem, error.cause(), env);
            return state;
        }
    };
    session.count_secondary_rat(transfer.usage);
    match state {
        State::Established(Established { user_plane })
            if user_plane.gnb.is_some() && !is_modifying(session) =>
        {
            let asked: Vec<FlowTunnel> =
                std::iter::once(transfer.downlink).chain(transfer.additional).collect();
            begin(user_plane, session, env, reply, (Trigger::Indication, &asked))
        }
        // The gNB has no resources of the session, or another procedure gives or takes them.
        state => {
            let problem = Problem::new(Cause::UnprocessableRequest).detail(state.phase().name());
            refuse(Trigger::Indication, reply, problem, BUSY, env);
            state
        }
    }
}

/// Refuses the indications that wait for the session, which is about to request another uplink endpoint of the gNB: the AMF sends that
/// request after its answers to the gNB, so that both would wait for each other.
pub(super) fn refuse_pending(session: &mut SmContext, env: &mut Env<'_>) {
    let indications = session.pending.updates.extract_if(.., |(_, data)| is_indication(data));
    for (reply, _) in indications {
        refuse_before_switch(reply, env);
    }
}

/// Refuses an indication that arrives while the gNB is to send uplink packets to another endpoint.
pub(super) fn refuse_before_switch(reply: PendingReply, env: &mut Env<'_>) {
    let problem = Problem::new(Cause::UnprocessableRequest).detail("the uplink endpoint is being changed");
    refuse(Trigger::Indication, reply, problem, BUSY, env);
}

pub(super) fn is_indication(data: &SmContextUpdateData) -> bool {
    data.n2_sm_info_type == Some(N2SmInfoType::PduResModInd)
}

/// The gNB has not answered yet what it is to add or to release: the indication may be older.
fn is_modifying(session: &SmContext) -> bool {
    session.flows.awaits_gnb || (session.flows.former.is_some() && !session.flows.is_at_gnb)
}

/// The gNB's answer to a modification has other tunnels: as an indication of these flows, which needs no confirmation for the gNB.
pub(in crate::smf) fn on_modified(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    transfer: ModifyResponseTransfer,
) -> State {
    let named: Vec<u8> = transfer.additional.iter().flat_map(|it| &it.flows).copied().collect();
    let of_primary = |qfi: &u8| !named.contains(qfi) && session.tunnels.of(*qfi).is_none();
    let primary = transfer.downlink.map(|tunnel| {
        let flows = session.flows().into_iter().filter(of_primary).collect();
        FlowTunnel { tunnel, flows }
    });
    let asked: Vec<_> = primary.into_iter().chain(transfer.additional).collect();
    begin(user_plane, session, env, reply, (Trigger::Response, &asked))
}

const BUSY: NgapCause = NgapCause::RadioNetwork(CauseRadioNetwork::interaction_with_other_procedure);

/// Sends the new rules to the UPF, if they differ.
fn begin(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    (trigger, asked): (Trigger, &[FlowTunnel]),
) -> State {
    let Some(primary) = user_plane.gnb else { return State::established(user_plane) };
    let upf = user_plane.n3_session().tunnel.address;
    let Indicated { mut wanted, mut confirmed, mut failed } =
        tunnels::indicated(&session.flows(), (primary, &session.tunnels), asked, |gnb| {
            tunnels::is_usable(gnb, upf)
        });
    if user_plane.front.is_some() && wanted.iter().any(|(_, tunnel)| *tunnel != wanted[0].1) {
        // The rules of N9 do not tell flows apart.
        let unspecified = NgapCause::RadioNetwork(CauseRadioNetwork::unspecified);
        failed.extend(confirmed.drain(..).map(|qfi| (qfi, unspecified)));
        wanted.iter_mut().for_each(|(_, tunnel)| *tunnel = primary);
    }
    let former = (primary, std::mem::take(&mut session.tunnels));
    match (confirmed.is_empty(), change_of(&former, &wanted)) {
        (false, Some(change)) => {
            let moving = Move { trigger, wanted, confirmed, failed };
            send(user_plane, session, env, reply, (former, moving, change), false)
        }
        _ => {
            session.tunnels = former.1;
            let cause = failed.first().map_or(BUSY, |(_, cause)| *cause);
            let problem = Problem::new(Cause::N2SmError).detail("no indicated QoS flow can move");
            refuse(trigger, reply, problem, cause, env);
            State::established(user_plane)
        }
    }
}

fn change_of(former: &(Tunnel, Tunnels), wanted: &[(u8, Tunnel)]) -> Option<Reroute> {
    tunnels::reroute((Some(former.0), &former.1), wanted)
}

fn send(
    mut user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    (former, moving, change): ((Tunnel, Tunnels), Move, Reroute),
    is_repeated: bool,
) -> State {
    let at = user_plane.n3_session();
    user_plane.gnb = Some(change.primary);
    session.tunnels.clone_from(&change.tunnels);
    let call = session.ask_upf(env, at.upf, at.seid, n4::rerouted(session, &change));
    let (former, moving) = (Box::new(former), Box::new(moving));
    State::AwaitingFlowMobility(AwaitingFlowMobility { user_plane, former, moving, is_repeated, reply, call })
}

impl AwaitingFlowMobility {
    /// Handles the UPF's response.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let absence = Absence::of(&result);
        match (n4::modified(result), absence) {
            (Err(why), None) => self.refused(session, env, why),
            (Ok(()), _) => State::established(self.confirm(session, env)),
            // The UPF gets the session with these rules.
            (Err(_), Some(absence)) => {
                let user_plane = self.confirm(session, env);
                let upf = user_plane.n3_session().upf;
                restoration::after_absence(user_plane, session, env, (upf, absence))
            }
        }
    }

    /// Answers the AMF, for the gNB (step 6).
    fn confirm(self, session: &SmContext, env: &mut Env<'_>) -> UserPlane {
        let Self { mut user_plane, moving, reply, .. } = self;
        let Move { trigger, confirmed, failed, .. } = *moving;
        session.log(env, Level::Info, || {
            format!(
                "{} QoS flows moved, {} not; {} tunnels",
                confirmed.len(),
                failed.len(),
                session.tunnels.iter().count() + 1
            )
        });
        let mut data = SmContextUpdatedData::default();
        if trigger == Trigger::Indication {
            data.n2_sm_info = Some(n2::modify_confirm(session, &user_plane, confirmed, failed).into());
            data.n2_sm_info_type = Some(N2SmInfoType::PduResModCfm);
            user_plane.note_uplink_sent_to_gnb();
        }
        answer_update(reply, data, env.out);
        user_plane
    }

    /// The UPF has changed nothing. If an earlier run of the SMF was interrupted after the same request, the UPF has the new rules already, and
    /// refuses to create them.
    fn refused(mut self, session: &mut SmContext, env: &mut Env<'_>, why: String) -> State {
        let change = change_of(&self.former, &self.moving.wanted);
        if let Some(change) = change.filter(|change| !self.is_repeated && change.has_new_rules()) {
            let Self { user_plane, former, moving, reply, .. } = self;
            return send(user_plane, session, env, reply, (*former, *moving, change.repeated()), true);
        }
        session.log(env, Level::Warn, || format!("QoS flows keep their gNB: {why}"));
        self.user_plane.gnb = Some(self.former.0);
        session.tunnels = std::mem::take(&mut self.former.1);
        let problem = Problem::new(Cause::InsufficientResources).detail(why);
        let cause = NgapCause::RadioNetwork(CauseRadioNetwork::unspecified);
        refuse(self.moving.trigger, self.reply, problem, cause, env);
        State::established(self.user_plane)
    }

    /// What must be released and answered: the sessions at the UPFs, and the AMF's request.
    pub(in crate::smf) fn into_held(self) -> release::Held {
        release::Held { reply: Some(self.reply), ..self.user_plane.into() }
    }
}

/// Refuses with PDU Session Resource Modify Indication Unsuccessful Transfer: the gNB keeps its configuration (TS 38.413 8.2.5.2).
fn refuse(trigger: Trigger, reply: PendingReply, problem: Problem, cause: NgapCause, env: &mut Env<'_>) {
    if trigger == Trigger::Response {
        return reply.refuse(problem, env.out);
    }
    let transfer = ModifyIndicationUnsuccessfulTransfer { cause }.encode();
    refuse_with(reply, (N2SmInfoType::PduResModIndFail, transfer), problem, env.out);
}
