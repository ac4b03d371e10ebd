//! Messages from SMFs for a UE and its gNB (TS 23.502 4.2.3.3): sent at once, or queued until the
//! UE is reachable.

use super::connection::{FormerRequests, RanContext};
use super::consumer;
use super::context::{Env, UeContext};
use super::procedure::nas_transport::session_downlink;
use super::procedure::{nas_non_delivery, pdu_session_resources};
use super::session::{PduSession, UserPlane};
use super::{n1, n2, reachability};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Key, Level, Timer};
use bytes::Bytes;
use pith_nas::GmmMessage;
use pith_ngap::transfer::SetupUnsuccessfulTransfer;
use pith_ngap::{Cause, CauseRadioNetwork, ModifyItem, SessionTransfer, SetupItem};
use pith_sbi::Uri;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use std::collections::BTreeSet;

/// A message from an SMF for a UE, its gNB or both, about one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SmfMessage {
    pub id: u8,
    /// A 5GSM message for the UE.
    pub n1: Option<Bytes>,
    /// An NGAP transfer for the gNB.
    pub n2: Option<(Transfer, Bytes)>,
}

impl SmfMessage {
    /// Whether the message has content for a gNB's existing resources of the session. A UE in CM-IDLE has no such resources.
    pub const fn is_for_resources(&self) -> bool {
        matches!(self.n2, Some((Transfer::ModifyRequest | Transfer::ReleaseCommand, _)))
    }

    /// Whether the message only commands a gNB to release the session's resources (TS 23.502 4.3.7).
    pub const fn is_release_of_resources(&self) -> bool {
        self.n1.is_none() && matches!(self.n2, Some((Transfer::ReleaseCommand, _)))
    }

    /// Whether the message changes the session's resources at the gNB, and has nothing for the UE.
    pub const fn is_modification_of_resources(&self) -> bool {
        self.n1.is_none() && matches!(self.n2, Some((Transfer::ModifyRequest, _)))
    }

    /// Whether the message is for the UE, and establishes or releases its session with its resources.
    pub const fn begins_or_ends_session(&self) -> bool {
        let with_resources = matches!(self.n2, Some((Transfer::SetupRequest | Transfer::ReleaseCommand, _)));
        self.n1.is_some() && with_resources
    }

    /// Whether the message requests resources for the session.
    pub const fn is_setup(&self) -> bool {
        matches!(self.n2, Some((Transfer::SetupRequest, _)))
    }

    /// Octets of its content.
    pub fn octets(&self) -> usize {
        self.n1.as_ref().map_or(0, Bytes::len) + self.n2.as_ref().map_or(0, |(_, transfer)| transfer.len())
    }
}

/// The NGAP message that a transfer belongs to (TS 38.413 9.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// PDU Session Resource Setup Request Transfer.
    SetupRequest,
    /// PDU Session Resource Release Command Transfer.
    ReleaseCommand,
    /// PDU Session Resource Modify Request Transfer.
    ModifyRequest,
    /// A transfer of another message, which this AMF does not support.
    Unsupported,
}

impl From<N2SmInfoType> for Transfer {
    fn from(kind: N2SmInfoType) -> Self {
        match kind {
            N2SmInfoType::PduResSetupReq => Self::SetupRequest,
            N2SmInfoType::PduResRelCmd => Self::ReleaseCommand,
            N2SmInfoType::PduResModReq => Self::ModifyRequest,
            _ => Self::Unsupported,
        }
    }
}

impl From<NgapIeType> for Transfer {
    fn from(kind: NgapIeType) -> Self {
        match kind {
            NgapIeType::PduResSetupReq => Self::SetupRequest,
            NgapIeType::PduResRelCmd => Self::ReleaseCommand,
            NgapIeType::PduResModReq => Self::ModifyRequest,
            _ => Self::Unsupported,
        }
    }
}

/// A message queued for a UE in CM-IDLE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Undelivered {
    pub message: SmfMessage,
    /// Where to send a failure notification if the UE can't be reached, and the URI that identifies
    /// the message in it.
    pub on_failure: Option<(Uri, Uri)>,
}

pack_struct!(SmfMessage { id, n1, n2 });
pack_struct!(Undelivered { message, on_failure });
pack_enum!(Transfer { 0 => SetupRequest, 1 => ReleaseCommand, 2 => ModifyRequest, 3 => Unsupported });

impl SmfMessage {
    /// A message about a session; `None` if it has no content.
    pub fn of_session(id: u8, n1: Option<Bytes>, n2: Option<(Transfer, Bytes)>) -> Option<Self> {
        (n1.is_some() || n2.is_some()).then_some(Self { id, n1, n2 })
    }
}

/// Drops the pending messages for the UE about a session that has ended: another one may get its identity.
pub(crate) fn drop_queued(ue: &mut UeContext, id: u8) {
    ue.undelivered.retain(|undelivered| undelivered.message.id != id);
    let is_of_session = |plain: &Vec<u8>| match GmmMessage::decode(plain) {
        Ok(GmmMessage::DlNasTransport(transport)) => transport.pdu_session_id == Some(id),
        _ => false,
    };
    ue.returned.retain(|plain| !is_of_session(plain));
    reachability::note_dequeued(ue);
}

/// Sends a message to a connected UE. A message for a session that no longer exists is dropped.
pub(crate) fn send(ue: &mut UeContext, env: &mut Env<'_>, message: SmfMessage) {
    if ue.mobility.is_n2_handover() {
        // Neither gNB can act on it (TS 23.502 4.9.1.3.1).
        return ue.undelivered.push(Undelivered { message, on_failure: None });
    }
    if matches!(message.n2, Some((Transfer::ModifyRequest, _))) && ue.mobility.moves_flows_of(message.id) {
        // It may name the tunnels of the SMF's confirmation, which the gNB gets first.
        return ue.undelivered.push(Undelivered { message, on_failure: None });
    }
    if message.is_setup() && message.n1.is_none() && ue.procedure.activates(message.id) {
        // The SMF's answer has the setup, too: [`add_setup_items`] sends one of them.
        return ue.undelivered.push(Undelivered { message, on_failure: None });
    }
    if let Some(session) = ue.session_mut(message.id) {
        // The SMF ends an establishment, or begins another one: the accept that waits is not sent after this message.
        let is_modification = matches!(message.n2, Some((Transfer::ModifyRequest, _)));
        let supersedes = message.n1.is_some() && !is_modification;
        session
            .held_setup
            .take_if(|setup| message.is_release_of_resources() || (supersedes && setup.n1.is_some()));
    }
    if message.is_setup() && (awaits_gnb(ue, env, message.id) || awaits_smf(ue, message.id)) {
        return hold_setup(ue, message);
    }
    if message.is_setup() && message.n1.is_none() && has_resources(ue, message.id) {
        return replace_resources(ue, env, message);
    }
    let SmfMessage { id, n1, n2 } = message;
    let nas_pdu = n1.and_then(|n1| n1::seal(ue, &GmmMessage::from(session_downlink(id, &n1)).encode()));
    let transfer = n2.map(|(kind, transfer)| (kind, transfer.to_vec()));
    match (transfer, nas_pdu) {
        (Some((Transfer::SetupRequest, transfer)), nas_pdu) => {
            if let Some(item) = setup_item(ue, env, id, nas_pdu, transfer) {
                n2::deliver(ue, env, None, vec![item], true);
            }
        }
        (Some((Transfer::ReleaseCommand, _)), nas_pdu) if releases_resources(ue, id) => {
            // The gNB has a command already, and would get the second one for a session that it does not have. Its answer is for the SMF now.
            if let Some(session) = ue.session_mut(id) {
                session.user_plane = UserPlane::Releasing;
            }
            if let Some(nas_pdu) = nas_pdu {
                n2::downlink_nas_transport(ue, env, nas_pdu);
            }
        }
        (Some((Transfer::ReleaseCommand, transfer)), nas_pdu) if has_resources(ue, id) => {
            n2::release_sessions(ue, env, nas_pdu, vec![SessionTransfer { pdu_session_id: id, transfer }]);
            note_superseded_setup(ue, env, id);
            if let Some(session) = ue.session_mut(id) {
                session.user_plane = UserPlane::Releasing;
            }
        }
        (Some((Transfer::ModifyRequest, transfer)), nas_pdu) if keeps_resources(ue, id) => {
            n2::modify_sessions(ue, env, vec![ModifyItem { pdu_session_id: id, nas_pdu, transfer }]);
        }
        (_, Some(nas_pdu)) => n2::downlink_nas_transport(ue, env, nas_pdu),
        (_, None) => {
            env.out.log(Level::Warn, || format!("{}: no message to send for session {id}", ue.name()))
        }
    }
}

/// An SMF requests setup of a session for which the gNB already has resources, for example after a
/// GTP-U Error Indication (TS 23.527 5.3.2.1). The gNB would refuse a second instance (TS 38.413
/// 8.2.1.4), so the AMF first has it release the existing one. If a setup is in progress, or its
/// result is not yet acknowledged by the SMF, the request is a duplicate: the UPF reported a second
/// packet before it received the tunnel.
fn replace_resources(ue: &mut UeContext, env: &mut Env<'_>, message: SmfMessage) {
    let (id, name) = (message.id, ue.name());
    let Some(session) = ue.session_mut(id) else { return };
    match session.user_plane {
        UserPlane::Activated if !session.reports_setup() => {
            session.user_plane = UserPlane::Replacing;
            session.held_setup = Some(message);
            env.out
                .log(Level::Info, || format!("{name}: session {id} is released at the gNB and set up again"));
            n2::release_resources(ue, env, id);
        }
        _ => env.out.log(Level::Debug, || format!("{name}: session {id} already has its user plane")),
    }
}

/// The gNB is to answer first, since which session an answer concerns is known only from the order; or the SMF is ([`awaits_smf`]). The timer of
/// the answer runs: a UE that repeats its request does not prolong it. An accept that waits has the setup for a message without one.
fn hold_setup(ue: &mut UeContext, message: SmfMessage) {
    if let Some(session) = ue.session_mut(message.id)
        && (message.n1.is_some() || session.held_setup.as_ref().is_none_or(|held| held.n1.is_none()))
    {
        session.held_setup = Some(message);
    }
}

/// Whether the SMF's answer with the SM context is awaited: Namf_Communication_N1N2MessageTransfer can arrive before it. The gNB's answer is
/// for that SM context, and a document without it is that of no session.
fn awaits_smf(ue: &UeContext, id: u8) -> bool {
    ue.session(id).is_some_and(|session| session.sm_context.is_none())
}

/// Whether the gNB has not answered a request before, after which a setup of the session can follow.
pub(crate) fn awaits_gnb(ue: &UeContext, env: &Env<'_>, id: u8) -> bool {
    releases_resources(ue, id) || former_requests(ue, env).is_some_and(|former| former.setups.contains(id))
}

fn former_requests(ue: &UeContext, env: &Env<'_>) -> Option<FormerRequests> {
    Some(env.connections.get(ue.connection?)?.former)
}

fn former_requests_mut<'a>(ue: &UeContext, env: &'a mut Env<'_>) -> Option<&'a mut FormerRequests> {
    Some(&mut env.connections.get_mut(ue.connection?)?.former)
}

/// The gNB gets the command to release resources whose setup it has not answered.
fn note_superseded_setup(ue: &UeContext, env: &mut Env<'_>, id: u8) {
    let is_activating = ue.session(id).is_some_and(|it| it.user_plane == UserPlane::Activating);
    if let Some(former) = former_requests_mut(ue, env).filter(|_| is_activating) {
        former.setups.insert(id);
    }
}

/// A session has ended, which is not the UE's any longer: answers of the gNB about it concern no later session with the identity.
pub(crate) fn note_ended(ue: &UeContext, env: &mut Env<'_>, session: &PduSession) {
    let Some(former) = former_requests_mut(ue, env) else { return };
    match session.user_plane {
        UserPlane::Activating => former.setups.insert(session.id),
        UserPlane::Releasing | UserPlane::Replacing => former.releases.insert(session.id),
        UserPlane::Deactivated | UserPlane::Activated | UserPlane::Unannounced => {}
    }
}

/// As [`note_ended`]. The gNB releases the resources, unless it has the command already.
pub(crate) fn release_ended(ue: &UeContext, env: &mut Env<'_>, session: &PduSession) {
    note_ended(ue, env, session);
    if !matches!(session.user_plane, UserPlane::Deactivated | UserPlane::Releasing | UserPlane::Replacing) {
        release_former(ue, env, session.id);
    }
}

/// The SMF has ended the session, and commanded the release of the resources of which it knew: not of those that the gNB has set up since.
pub(crate) fn on_ended_by_smf(ue: &UeContext, env: &mut Env<'_>, session: &PduSession) {
    if session.user_plane == UserPlane::Activated {
        release_ended(ue, env, session);
    } else {
        note_ended(ue, env, session);
    }
}

/// The gNB releases the resources of a session that has ended.
pub(crate) fn release_former(ue: &UeContext, env: &mut Env<'_>, id: u8) {
    n2::release_resources(ue, env, id);
    if let Some(former) = former_requests_mut(ue, env) {
        former.releases.insert(id);
    }
}

/// A new session: its setup waits until the gNB has released a former one with the identity.
pub(crate) fn after_former(ue: &UeContext, env: &Env<'_>, mut session: PduSession) -> PduSession {
    if former_requests(ue, env).is_some_and(|former| former.releases.contains(session.id)) {
        session.user_plane = UserPlane::Replacing;
    }
    session
}

/// The gNB answers a setup. Returns whether it is that of the UE's session, which waits for it. Resources of a session that has ended, or is
/// not to have them any longer, are released.
pub(crate) fn takes_setup_answer(ue: &mut UeContext, env: &mut Env<'_>, id: u8, is_set_up: bool) -> bool {
    let user_plane = ue.session(id).map(|session| session.user_plane);
    let former = former_requests(ue, env).unwrap_or(FormerRequests::NONE);
    let is_awaited = former.setups.contains(id);
    if !is_awaited && user_plane == Some(UserPlane::Activating) {
        return true;
    }
    if let Some(former) = former_requests_mut(ue, env) {
        former.setups.remove(id);
    }
    let is_released = former.releases.contains(id) || releases_resources(ue, id);
    if is_released {
        return false;
    }
    let is_inactive = user_plane.is_none_or(|state| state == UserPlane::Deactivated);
    let is_possible = (1..=15).contains(&id);
    if is_set_up && is_inactive && is_possible {
        // Also an answer that is too late ([`fail_requests_of_gnb`]).
        release_former(ue, env, id);
        if let Some(session) = ue.session_mut(id) {
            session.user_plane = UserPlane::Replacing;
        }
    } else {
        send_held_setup(ue, env, id);
    }
    false
}

/// The gNB answers a command to release. Returns whether the command was pending: for a session that has ended, or for the UE's.
pub(crate) fn takes_release_answer(ue: &UeContext, env: &mut Env<'_>, id: u8) -> bool {
    let former = former_requests_mut(ue, env).filter(|former| former.releases.contains(id));
    if let Some(former) = former {
        former.releases.remove(id);
        return true;
    }
    releases_resources(ue, id)
}

/// The gNB is to answer setups or releases ([`fail_requests_of_gnb`]).
pub(crate) fn guard_requests(ue: &UeContext, env: &mut Env<'_>) {
    if let Some(key) = ue.connection.filter(|_| awaits_answers(ue, env)) {
        env.out.start(key.to_u64(), Timer::NgapGuard, env.config.timers.ngap_guard);
    }
}

/// Whether the gNB has not answered a setup or a release.
fn awaits_answers(ue: &UeContext, env: &Env<'_>) -> bool {
    let former = former_requests(ue, env).unwrap_or(FormerRequests::NONE);
    has_open_requests(ue, former)
}

/// As [`awaits_answers`], at a gNB with these former requests.
pub(crate) fn has_open_requests(ue: &UeContext, former: FormerRequests) -> bool {
    former != FormerRequests::NONE || ue.sessions.iter().any(|it| is_unanswered(ue, it) || is_releasing(it))
}

/// Whether the gNB has got the setup of the session, and has not answered.
fn is_unanswered(ue: &UeContext, session: &PduSession) -> bool {
    session.user_plane == UserPlane::Activating && !ue.procedure.has_setup_of(session.id)
}

const fn is_releasing(session: &PduSession) -> bool {
    matches!(session.user_plane, UserPlane::Releasing | UserPlane::Replacing)
}

/// The sessions whose setups the gNB has not answered.
pub(crate) fn open_setups(ue: &UeContext, env: &Env<'_>) -> BTreeSet<u8> {
    let former = former_requests(ue, env).unwrap_or(FormerRequests::NONE);
    let unanswered = ue.sessions.iter().filter(|it| is_unanswered(ue, it)).map(|it| it.id);
    former.setups.iter().chain(unanswered).collect()
}

/// The sessions whose releases the gNB has not answered.
pub(crate) fn open_releases(ue: &UeContext, env: &Env<'_>) -> BTreeSet<u8> {
    let former = former_requests(ue, env).unwrap_or(FormerRequests::NONE);
    former.releases.iter().chain(ue.sessions.iter().filter(|it| is_releasing(it)).map(|it| it.id)).collect()
}

/// The gNB has answered. The timer of a context setup goes on.
pub(crate) fn end_guard(ue: &UeContext, env: &mut Env<'_>) {
    let Some(key) = ue.connection.filter(|_| !awaits_answers(ue, env)) else { return };
    if env.connections.get(key).is_some_and(|it| it.context == RanContext::Established) {
        env.out.stop(key.to_u64(), Timer::NgapGuard);
    }
}

/// The gNB does not answer setups and releases in time, or its answers say nothing of some sessions: the procedures have failed. An answer may be
/// lost, and the gNB have resources of which the SMF does not know: it releases them. Those of releases count as released, and the setups that
/// waited follow. Late answers change nothing, but resources that no session is to have are released.
pub(crate) fn fail_requests_of_gnb(ue: &mut UeContext, env: &mut Env<'_>) {
    let (setups, releases) = (open_setups(ue, env), open_releases(ue, env));
    for id in setups {
        log_unanswered(ue, env, id);
        if takes_setup_answer(ue, env, id, true) {
            fail_setup(ue, env, id, CauseRadioNetwork::release_due_to_5gc_generated_reason);
            release_former(ue, env, id);
            if let Some(session) = ue.session_mut(id) {
                session.user_plane = UserPlane::Replacing;
            }
        }
    }
    releases.into_iter().for_each(|id| pdu_session_resources::fail_release(ue, env, id));
}

fn log_unanswered(ue: &UeContext, env: &mut Env<'_>, id: u8) {
    env.out.log(Level::Warn, || format!("{}: the gNB does not answer the setup of session {id}", ue.name()));
}

/// The gNB has not answered a setup properly. Whether the UE has got the NAS message in it is unknown: the cause is one that gNBs do not send.
pub(crate) fn fail_open_setup(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    log_unanswered(ue, env, id);
    if takes_setup_answer(ue, env, id, false) {
        fail_setup(ue, env, id, CauseRadioNetwork::release_due_to_5gc_generated_reason);
    }
}

/// The gNB has released the resources of a session, or the SMF has created its SM context: sends the deferred setup. In a registration or
/// authentication, after which another security context may be in use, it waits for the end ([`send_held_setups`]).
pub(crate) fn send_held_setup(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    if ue.procedure.is_registering() {
        return;
    }
    if former_requests(ue, env).is_some_and(|former| former.setups.contains(id)) {
        return;
    }
    if let Some(setup) = ue.session_mut(id).and_then(|session| session.held_setup.take()) {
        send(ue, env, setup);
    }
}

/// A registration or authentication is over: sends the setups that were deferred for it.
pub(crate) fn send_held_setups(ue: &mut UeContext, env: &mut Env<'_>) {
    let held: Vec<u8> = ue.sessions.iter().filter(|it| it.held_setup.is_some()).map(|it| it.id).collect();
    held.into_iter().for_each(|id| send_held_setup(ue, env, id));
}

/// The connection is lost: setups that waited for an answer are queued for the UE.
pub(crate) fn keep_held_setups(ue: &mut UeContext) {
    let held: Vec<_> = ue.sessions.iter_mut().filter_map(|session| session.held_setup.take()).collect();
    // The gNB's resources end with the connection.
    ue.undelivered.retain(|kept| !kept.message.is_for_resources() || kept.message.n1.is_some());
    reachability::note_dequeued(ue);
    ue.undelivered.extend(held.into_iter().map(|message| Undelivered { message, on_failure: None }));
}

/// The UE has been handed over: its sessions have no resources at the former gNB, so that no setup waits for their release. A session
/// that was handed over (`is_listed`) has its resources; the setup of another one follows.
pub(crate) fn release_held_setups(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    key: Option<Key>,
    is_listed: impl Fn(u8) -> bool,
) {
    if let Some(key) = key {
        env.out.stop(key.to_u64(), Timer::NgapGuard);
    }
    let held: Vec<_> = ue.sessions.iter_mut().filter_map(|session| session.held_setup.take()).collect();
    let left = held.into_iter().filter_map(|message| {
        let n2 = message.n2.filter(|_| !is_listed(message.id));
        SmfMessage::of_session(message.id, message.n1, n2)
    });
    ue.undelivered.extend(left.map(|message| Undelivered { message, on_failure: None }));
}

/// As [`release_held_setups`], of an N2 handover, whose source gNB has another connection, or has lost it. A session that has begun since has no
/// resources there, whatever that gNB has not answered, and its SMF knows of none.
pub(crate) fn leave_source(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    source: Option<Key>,
    is_listed: impl Fn(u8) -> bool,
) {
    let former = source.and_then(|key| env.connections.get(key)).map(|it| it.former);
    release_held_setups(ue, env, source, is_listed);
    let is_new = |it: &&mut PduSession| {
        it.user_plane == UserPlane::Replacing && former.is_none_or(|former| former.releases.contains(it.id))
    };
    ue.sessions.iter_mut().filter(is_new).for_each(|it| it.user_plane = UserPlane::Deactivated);
}

/// The setup of a session at a gNB that the UE has left has failed.
pub(crate) fn fail_setup(ue: &mut UeContext, env: &mut Env<'_>, id: u8, cause: CauseRadioNetwork) {
    if let Some(session) = ue.session_mut(id) {
        session.user_plane = UserPlane::Deactivated;
    }
    let cause = Cause::RadioNetwork(cause);
    let transfer = SetupUnsuccessfulTransfer { cause }.encode();
    consumer::report(ue, env, id, transfer, N2SmInfoType::PduResSetupFail);
}

fn setup_item(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    nas_pdu: Option<Vec<u8>>,
    transfer: Vec<u8>,
) -> Option<SetupItem> {
    ue.must_store = true;
    let was_due = ue.mobility.note_setup(id);
    let session = ue.session_mut(id)?;
    session.user_plane = UserPlane::Activating;
    let item = SetupItem { pdu_session_id: id, nas_pdu, snssai: session.snssai, transfer };
    if was_due {
        session.forget_unheard();
        // The SMF has not learned with the handover where the UE is, and gets no further COMPLETED.
        consumer::report_presence(ue, env, id);
    }
    Some(item)
}

/// Whether the gNB has resources of the session, or a request for them is pending.
fn has_resources(ue: &UeContext, id: u8) -> bool {
    ue.session(id).is_some_and(PduSession::has_user_plane)
}

/// Whether the gNB was commanded to release the resources of the session, and has not answered.
fn releases_resources(ue: &UeContext, id: u8) -> bool {
    let user_plane = ue.session(id).map(|session| session.user_plane);
    matches!(user_plane, Some(UserPlane::Releasing | UserPlane::Replacing))
}

/// Whether the gNB is to release the resources of the session, and no setup follows.
pub(crate) fn is_left_without_setup(ue: &UeContext, id: u8) -> bool {
    releases_resources(ue, id) && ue.session(id).is_some_and(|session| session.held_setup.is_none())
}

/// As [`has_resources`], and the gNB is not to release them.
fn keeps_resources(ue: &UeContext, id: u8) -> bool {
    let user_plane = ue.session(id).map(|session| session.user_plane);
    matches!(user_plane, Some(UserPlane::Activating | UserPlane::Activated))
}

/// Adds the queued setups to the sessions in the answer to the UE's request. If a session is
/// already among them, its queued setup is dropped as fulfilled.
pub(crate) fn add_setup_items(ue: &mut UeContext, env: &mut Env<'_>, sessions: &mut Vec<SetupItem>) {
    ue.undelivered.retain(|kept| {
        let id = kept.message.id;
        let is_held = ue.sessions.iter().any(|session| session.id == id && session.held_setup.is_some());
        let is_there = is_held || sessions.iter().any(|item| item.pdu_session_id == id);
        !(is_there && is_setup(kept) && kept.message.n1.is_none())
    });
    sessions.extend(take_setup_items(ue, env));
}

fn take_setup_items(ue: &mut UeContext, env: &mut Env<'_>) -> Vec<SetupItem> {
    let queued = std::mem::take(&mut ue.undelivered);
    let is_due = |kept: &Undelivered| is_setup(kept) && !awaits_smf(ue, kept.message.id);
    let (setups, others): (Vec<_>, Vec<_>) = queued.into_iter().partition(is_due);
    ue.undelivered = others;
    reachability::note_dequeued(ue);
    let item = |undelivered: Undelivered| {
        let SmfMessage { id, n1, n2 } = undelivered.message;
        let nas_pdu = n1.and_then(|n1| n1::seal(ue, &GmmMessage::from(session_downlink(id, &n1)).encode()));
        setup_item(ue, env, id, nas_pdu, n2?.1.to_vec())
    };
    setups.into_iter().filter_map(item).collect()
}

fn is_setup(undelivered: &Undelivered) -> bool {
    undelivered.message.is_setup()
}

/// The UE is connected again: sends its queued messages, without those of sessions that the UE does not have any longer.
pub(crate) fn send_queued(ue: &mut UeContext, env: &mut Env<'_>) {
    for Undelivered { message, .. } in std::mem::take(&mut ue.undelivered) {
        if ue.session(message.id).is_some() {
            send(ue, env, message);
        }
    }
    reachability::note_dequeued(ue);
}

/// The N2 handover is over: sends what was queued for it, after what the source gNB did not deliver.
pub(crate) fn send_held(ue: &mut UeContext, env: &mut Env<'_>) {
    nas_non_delivery::send_again(ue, env);
    if !ue.undelivered.is_empty() && !ue.mobility.is_n2_handover() && ue.is_reachable(env) {
        send_queued(ue, env);
    }
}

/// The UE is outside its service area: the setups that are queued for it fail, except that of an emergency session.
pub(crate) fn fail_setups(ue: &mut UeContext, env: &mut Env<'_>) {
    let emergency = ue.emergency_session();
    let fails = |kept: &mut Undelivered| is_setup(kept) && Some(kept.message.id) != emergency;
    for undelivered in ue.undelivered.extract_if(.., fails) {
        if let Some((callback, message)) = undelivered.on_failure {
            consumer::transfer_failed(env, callback, message);
        }
    }
    reachability::note_dequeued(ue);
}

/// The UE can't be reached: notifies the senders of its queued messages.
pub(crate) fn fail_all(ue: &mut UeContext, env: &mut Env<'_>) {
    for undelivered in ue.undelivered.drain(..) {
        if let Some((callback, message)) = undelivered.on_failure {
            consumer::transfer_failed(env, callback, message);
        }
    }
    reachability::note_dequeued(ue);
}
