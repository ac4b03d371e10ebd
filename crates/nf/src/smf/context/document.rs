//! The document of a session.
//!
//! ```text
//!  identity   SUPI, or PEI of an unauthenticated UE; PDU session id, DNN, slice, AMF, SEID, address
//!  policy     authorised QoS, policy association, registration in the UDM
//!  procedure  the state with the user plane, a modification, a UPF that is being removed
//!  pending    what arrived while the session could not act on it
//!  handover   the target gNB's endpoint, and the target AMF; absent unless an N2 handover is prepared, or was the last change of the gNB
//!  uplink     the endpoint sent to a handover's target gNB, whether gNBs forward directly, and unanswered switches; absent if there are none
//!  rejected   PTI of the UE's last request that was rejected; absent if there is none
//!  ipv6       IP versions, prefix, DNS servers requested, bits of prefix delegation; absent in a session of IPv4
//!  tunnels    additional N3 tunnels and their flows, now and after a prepared handover; absent if there are none
//!  usage      data volume over a secondary RAT; absent if there is none
//!  emergency  marks an emergency session; absent in others
//!  flows      PCC rules, and their change; absent in a session with the default flow only
//!  reflective whether the UE derives QoS rules, RQ timer, rules whose packets have the RQI, and the revocation; absent if there is nothing of these
//!  subscribed subscribed QoS, and a change of the subscription, or the registration with the UDM; absent if the authorised QoS is the subscribed
//!             one, and there is nothing of these
//!  addressing static addresses and framed routes of the subscription; absent if there are none
//!  leaving    sessions at UPFs that are being deleted; absent if there are none
//!  gnb        what the accept for the UE answers until it is set up, whether it is an always-on session, requests that the gNB has not answered
//!             or has refused, and whether the UPF has reported downlink data; absent if there is nothing of these
//!  unanswered flows that the UE has confirmed, and the gNB has not; absent if there are none
//!  prepared   what the target gNB of an N2 handover admits and does not get; absent if there is nothing of these
//!  left       rules that a failed change has removed, and the UE may still have; absent if there are none
//!  timers     running timers with their deadlines; number of the last call
//! ```
//!
//! Not in it: the key in the table; the id, which is the document's key. UPFs are in it by name: a session whose UPF has no association cannot be loaded yet.

use super::{AmfLink, GnbRequests, IpVersions, Pending, Qos, ReflectiveQos, SmContext, UeAddress, UserPlane};
use crate::kit::document::{Document, Names, Pack, PackError, Section, Sections, UnpackError, Writer};
use crate::kit::{Addressing, Context, Handles, Key, Nf, UpfHandle};
use crate::smf::flows::SessionFlows;
use crate::smf::procedure::State;
use crate::smf::procedure::establishment::Accept;
use crate::smf::procedure::subscription_change::SubscriptionChange;
use pith_ngap::transfer::SecondaryRatUsage;
use pith_types::ContextId;

const IDENTITY: Section = Section { id: 1, name: "identity", version: 1 };
const POLICY: Section = Section { id: 2, name: "policy", version: 1 };
const PROCEDURE: Section = Section { id: 3, name: "procedure", version: 1 };
const PENDING: Section = Section { id: 4, name: "pending", version: 1 };
const TIMERS: Section = Section { id: 5, name: "timers", version: 1 };

/// Version 2 has the target AMF, too.
const HANDOVER: Section = Section { id: 6, name: "handover", version: 2 };

/// Absent if no request of the UE was rejected.
const REJECTED: Section = Section { id: 12, name: "rejected", version: 1 };

/// Version 2 has the request for the deletion, too.
const LEAVING: Section = Section { id: 14, name: "leaving", version: 2 };

/// A session without the section is one of IPv4. Version 2 has the bits of prefix delegation, too.
const IPV6: Section = Section { id: 13, name: "ipv6", version: 2 };

/// The shortest prefix of a session has 48 bits.
const MAX_DELEGATION: u8 = 16;

/// A session without the section has only the default flow.
const FLOWS: Section = Section { id: 7, name: "flows", version: 1 };

/// A session without the section has one N3 tunnel, or none.
const TUNNELS: Section = Section { id: 8, name: "tunnels", version: 1 };

/// Absent if no gNB has reported usage of a secondary RAT.
const USAGE: Section = Section { id: 9, name: "usage", version: 1 };

/// A session without the section has the QoS that is subscribed, and is registered with the UDM. Version 2 has a registration that the UDM has not
/// answered, too.
const SUBSCRIBED: Section = Section { id: 10, name: "subscribed", version: 2 };

/// Absent unless it is an emergency session.
const EMERGENCY: Section = Section { id: 11, name: "emergency", version: 1 };

const UPLINK: Section = Section { id: 15, name: "uplink", version: 2 };

/// A session without the section has no reflective QoS. Version 2 has what the PCF has not answered, too.
const REFLECTIVE: Section = Section { id: 17, name: "reflective QoS", version: 2 };

/// A session without the section has dynamic addresses and no framed routes.
const ADDRESSING: Section = Section { id: 18, name: "addressing", version: 1 };

/// Absent if the gNB has answered all requests, and the UE has got the accept.
const GNB: Section = Section { id: 19, name: "gnb", version: 1 };

/// Absent if the gNB has answered the request for each flow that the UE has confirmed.
const UNANSWERED: Section = Section { id: 20, name: "unanswered flows", version: 1 };

/// Absent unless the target gNB of a handover admits flows, or does not get a request that the gNB has not answered.
const PREPARED: Section = Section { id: 21, name: "prepared", version: 1 };

/// Absent if the UE has confirmed the removal of all rules that are removed.
const LEFT: Section = Section { id: 22, name: "rules left at the UE", version: 1 };

/// All sections, in their order in a document.
pub(in crate::smf) const SECTIONS: &[Section] = &[
    IDENTITY, POLICY, PROCEDURE, PENDING, HANDOVER, TUNNELS, USAGE, REJECTED, LEAVING, UPLINK, IPV6, FLOWS,
    SUBSCRIBED, EMERGENCY, REFLECTIVE, ADDRESSING, GNB, UNANSWERED, PREPARED, LEFT, TIMERS,
];

/// Packs some sections of a session.
pub(in crate::smf) fn pack(
    session: &SmContext,
    upfs: &dyn Names,
    sections: &[Section],
) -> Result<Document, PackError> {
    let mut writer = Writer::new(Nf::Smf, upfs);
    let is_present = |section: &&Section| match **section {
        HANDOVER => session.handover_target.is_some() || session.amf.handover_target.is_some(),
        UPLINK => {
            session.handover_uplink.is_some() || session.unanswered_switches > 0 || session.forwards_directly
        }
        TUNNELS => !session.tunnels.is_empty() || !session.handover_additional.is_empty(),
        USAGE => session.secondary_rat != SecondaryRatUsage::default(),
        REJECTED => session.answered_pti.is_some(),
        LEAVING => !session.leaving.is_empty(),
        FLOWS => !session.flows.is_default(),
        SUBSCRIBED => session.subscribed != session.qos || session.subscription_change.is_some(),
        EMERGENCY => session.is_emergency,
        REFLECTIVE => {
            session.reflective != ReflectiveQos::default() || !session.flows.reflective_rules().is_empty()
        }
        ADDRESSING => !session.addressing.is_default(),
        GNB => {
            let has_accept = accept(session).is_some() || session.always_on.is_some();
            has_accept || session.gnb != GnbRequests::default()
        }
        UNANSWERED => session.gnb.has_unanswered_flows(),
        PREPARED => session.flows.at_target != 0 || session.gnb.before_handover > 0,
        LEFT => !session.flows.left_at_ue.is_empty(),
        IPV6 => session.ip != IpVersions::V4 || session.asks_dns6 || session.address.v6.is_some(),
        _ => true,
    };
    for section in sections.iter().filter(is_present) {
        writer.section(section, |writer| write(session, section, writer));
    }
    writer.finish()
}

/// The accept for the UE: that of the state, or of a session that is to be restored.
fn accept(session: &SmContext) -> Option<Accept> {
    session.state.accept().or(session.accept)
}

/// Writes a section's body: each field belongs to one section.
fn write(session: &SmContext, section: &Section, writer: &mut Writer<'_>) {
    let SmContext {
        key: _,
        id: _,
        ue,
        is_emergency,
        pdu_session_id,
        dnn,
        snssai,
        tac,
        amf,
        seid,
        ip,
        asks_dns6,
        always_on,
        gnb,
        address,
        addressing,
        qos,
        subscribed,
        subscription_change,
        flows,
        reflective,
        policy,
        is_registered,
        modification,
        draining,
        leaving,
        deletion,
        pending,
        accept: _,
        handover_target,
        handover_additional,
        tunnels,
        secondary_rat,
        handover_uplink,
        forwards_directly,
        unanswered_switches,
        answered_pti,
        timers,
        state,
        calls,
        must_store: _,
        document_at_end: _,
    } = session;
    match *section {
        IDENTITY => {
            ue.pack(writer);
            pdu_session_id.pack(writer);
            dnn.pack(writer);
            snssai.pack(writer);
            tac.pack(writer);
            amf.pack(writer);
            seid.pack(writer);
            address.v4.pack(writer);
        }
        POLICY => {
            qos.pack(writer);
            policy.pack(writer);
            is_registered.pack(writer);
        }
        PROCEDURE => {
            state.pack(writer);
            modification.pack(writer);
            draining.pack(writer);
        }
        PENDING => pending.pack(writer),
        HANDOVER => {
            handover_target.pack(writer);
            amf.handover_target.pack(writer);
        }
        TUNNELS => {
            tunnels.pack(writer);
            handover_additional.pack(writer);
        }
        USAGE => (secondary_rat.uplink, secondary_rat.downlink).pack(writer),
        FLOWS => flows.pack(writer),
        SUBSCRIBED => {
            subscribed.pack(writer);
            subscription_change.pack(writer);
        }
        EMERGENCY => is_emergency.pack(writer),
        REFLECTIVE => {
            reflective.pack(writer);
            flows.reflective_rules().pack(writer);
        }
        REJECTED => answered_pti.pack(writer),
        GNB => {
            accept(session).pack(writer);
            always_on.pack(writer);
            gnb.pack(writer);
        }
        UNANSWERED => gnb.unanswered_flows.pack(writer),
        PREPARED => {
            flows.at_target.pack(writer);
            gnb.before_handover.pack(writer);
        }
        LEFT => flows.left_at_ue.pack(writer),
        ADDRESSING => {
            addressing.v4.pack(writer);
            addressing.v6.pack(writer);
            addressing.framed_routes.pack(writer);
        }
        LEAVING => {
            leaving.pack(writer);
            deletion.pack(writer);
        }
        UPLINK => {
            handover_uplink.pack(writer);
            unanswered_switches.pack(writer);
            forwards_directly.pack(writer);
        }
        IPV6 => {
            (ip.v4, ip.v6).pack(writer);
            address.v6.pack(writer);
            asks_dns6.pack(writer);
            address.delegation.pack(writer);
        }
        _ => {
            timers.pack(writer);
            calls.pack(writer);
        }
    }
}

/// Unpacks a session; `key` is its key in the table, `id` that of the document.
pub(in crate::smf) fn unpack(
    octets: &[u8],
    (key, id): (Key, ContextId),
    upfs: &dyn Names,
) -> Result<SmContext, UnpackError> {
    let sections = Sections::of(octets, Nf::Smf, SECTIONS, upfs)?;
    let (mut session, v4) = sections.read(&IDENTITY, |_, reader| {
        let (ue, pdu_session_id, dnn, snssai, tac) = Pack::unpack(reader)?;
        let amf = AmfLink::unpack(reader)?;
        let (seid, v4) = Pack::unpack(reader)?;
        Ok((SmContext::new((key, id, seid), (ue, pdu_session_id), (dnn, snssai), tac, amf), v4))
    })?;
    let (qos, policy, is_registered) = sections.unpack::<(Qos, _, _)>(&POLICY)?;
    let (mut state, modification, draining): (State, _, _) = sections.unpack(&PROCEDURE)?;
    let (mut always_on, mut gnb) = (None, GnbRequests::default());
    if sections.has(&GNB) {
        let accept;
        (accept, always_on, gnb) = sections.unpack(&GNB)?;
        session.accept = state.set_accept(accept);
    }
    if sections.has(&UNANSWERED) {
        gnb.unanswered_flows = sections.unpack(&UNANSWERED)?;
    }
    let pending = sections.unpack::<Pending>(&PENDING)?;
    let (timers, calls) = sections.unpack(&TIMERS)?;
    let mut handover_target = None;
    if sections.has(&HANDOVER) {
        (handover_target, session.amf.handover_target) = sections.read(&HANDOVER, |version, reader| {
            let target = Pack::unpack(reader)?;
            Ok((target, if version > 1 { Pack::unpack(reader)? } else { None }))
        })?;
    }
    let (tunnels, handover_additional) =
        if sections.has(&TUNNELS) { sections.unpack(&TUNNELS)? } else { Default::default() };
    let (uplink, downlink) = if sections.has(&USAGE) { sections.unpack(&USAGE)? } else { (0, 0) };
    let answered_pti = if sections.has(&REJECTED) { sections.unpack(&REJECTED)? } else { None };
    let mut addressing = Addressing::default();
    if sections.has(&ADDRESSING) {
        (addressing.v4, addressing.v6, addressing.framed_routes) = sections.unpack(&ADDRESSING)?;
    }
    let is_emergency = sections.has(&EMERGENCY) && sections.unpack(&EMERGENCY)?;
    let mut flows = if sections.has(&FLOWS) { sections.unpack(&FLOWS)? } else { SessionFlows::default() };
    if sections.has(&PREPARED) {
        (flows.at_target, gnb.before_handover) = sections.unpack(&PREPARED)?;
    }
    if sections.has(&LEFT) {
        flows.left_at_ue = sections.unpack(&LEFT)?;
    }
    let mut reflective = ReflectiveQos::default();
    if sections.has(&REFLECTIVE) {
        let rules: Vec<u8>;
        (reflective, rules) = sections.read(&REFLECTIVE, |version, reader| {
            if version > 1 {
                return Pack::unpack(reader);
            }
            let (is_supported, timer, revocation, rules) = Pack::unpack(reader)?;
            Ok((ReflectiveQos { is_supported, timer, revocation, ..ReflectiveQos::default() }, rules))
        })?;
        flows.note_reflective_rules(&rules);
    }
    let (mut subscribed, mut subscription_change) = (qos.clone(), None);
    if sections.has(&SUBSCRIBED) {
        (subscribed, subscription_change) = sections.read(&SUBSCRIBED, |version, reader| {
            let subscribed = Pack::unpack(reader)?;
            let change = if version > 1 {
                Pack::unpack(reader)?
            } else {
                SubscriptionChange::unpack_version_1(reader)?
            };
            Ok((subscribed, change))
        })?;
    }
    let (mut leaving, mut deletion) = (Vec::new(), None);
    if sections.has(&LEAVING) {
        (leaving, deletion) = sections.read(&LEAVING, |version, reader| {
            let leaving = Pack::unpack(reader)?;
            Ok((leaving, if version > 1 { Pack::unpack(reader)? } else { None }))
        })?;
    }
    let (mut handover_uplink, mut unanswered_switches, mut forwards_directly) = (None, 0, false);
    if sections.has(&UPLINK) {
        (handover_uplink, unanswered_switches, forwards_directly) =
            sections.read(&UPLINK, |version, reader| {
                let (uplink, unanswered) = Pack::unpack(reader)?;
                Ok((uplink, unanswered, if version > 1 { Pack::unpack(reader)? } else { false }))
            })?;
    }
    let (ip, v6, asks_dns6, delegation) = if sections.has(&IPV6) {
        let (((v4, v6), prefix, asks_dns6), delegation) = sections.read(&IPV6, |version, reader| {
            let body: ((bool, bool), _, _) = Pack::unpack(reader)?;
            let delegation: u8 = if version > 1 { Pack::unpack(reader)? } else { 0 };
            if delegation > MAX_DELEGATION {
                return Err(reader.malformed("bits of prefix delegation"));
            }
            Ok((body, delegation))
        })?;
        (IpVersions { v4, v6 }, prefix, asks_dns6, delegation)
    } else {
        (IpVersions::V4, None, false, 0)
    };
    Ok(SmContext {
        is_emergency,
        ip,
        asks_dns6,
        always_on,
        gnb,
        address: UeAddress { v4, v6, delegation },
        addressing,
        qos,
        subscribed,
        subscription_change,
        flows,
        reflective,
        policy,
        is_registered,
        modification,
        draining,
        leaving,
        deletion,
        pending,
        handover_target,
        handover_additional,
        tunnels,
        secondary_rat: SecondaryRatUsage { uplink, downlink },
        handover_uplink,
        forwards_directly,
        unanswered_switches,
        answered_pti,
        timers,
        state,
        calls,
        ..session
    })
}

/// The UPFs of a session, as a table shows them: a bit for each handle, which several handles may have in common.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::smf) struct UpfMark(u64);

impl UpfMark {
    const fn bit(upf: UpfHandle) -> u64 {
        1 << (upf.0 % 64)
    }

    /// Whether the session may be at this UPF.
    pub(in crate::smf) const fn may_have(self, upf: UpfHandle) -> bool {
        self.0 & Self::bit(upf) != 0
    }
}

/// A session in the local form: packed in memory.
impl Context for SmContext {
    type Mark = UpfMark;

    fn id(&self) -> ContextId {
        self.id
    }

    fn mark(&self) -> UpfMark {
        let user_plane = self.state.user_plane();
        let path = user_plane
            .into_iter()
            .flat_map(|it| it.front.iter().map(|front| front.session.upf).chain([it.anchor.upf]));
        let others = self.draining.iter().chain(&self.leaving).map(|it| it.upf);
        let upfs = path.chain(others).chain(self.state.establishing().map(|(upf, _)| upf));
        UpfMark(upfs.fold(0, |bits, upf| bits | UpfMark::bit(upf)))
    }

    fn is_idle(&self) -> bool {
        matches!(self.state, super::State::Established(_))
            && self.modification.is_none()
            && self.draining.is_none()
    }

    fn pack_local(&self) -> Option<Document> {
        pack(self, &Handles, SECTIONS).ok()
    }

    fn unpack_local(octets: &[u8], named: (Key, ContextId), _: UpfMark) -> Result<Self, UnpackError> {
        unpack(octets, named, &Handles)
    }
}

impl crate::smf::Smf {
    /// Replaces a session by what its document yields, and panics if a document made of that differs: for simulations.
    pub(in crate::smf) fn reload(&mut self, key: Key) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        let upfs = &self.shared.upfs;
        let has_restarted = |user_plane: &UserPlane| {
            let front = user_plane.front.as_ref().map(|front| front.session.upf);
            front.into_iter().chain([user_plane.anchor.upf]).any(|upf| upfs.has_restarted(upf))
        };
        if session.state.user_plane().is_some_and(has_restarted) {
            // A document has the UPF's name, but not that this association with it has ended.
            return;
        }
        let document = match pack(session, upfs, SECTIONS) {
            Ok(document) => document,
            // The session is about to end, or it waits for another NF and will choose another UPF then.
            Err(PackError::UpfIsGone) => return,
            Err(error) => panic!("{} in {}: {error}", session.ue.masked(), session.state.name()),
        };
        match unpack(document.octets(), (key, session.id), upfs) {
            Ok(loaded) => *session = loaded,
            // As after a restart: the session is loaded when the UPF has an association.
            Err(UnpackError::UpfIsMissing(_)) => return,
            Err(error) => panic!("{} in {}: {error}", session.ue.masked(), session.state.name()),
        }
        let again = pack(session, upfs, SECTIONS);
        assert!(
            again.as_ref() == Ok(&document),
            "a session of {} changes in its document",
            session.ue.masked()
        );
    }
}

/// Names of a session that is in no table.
#[cfg(any(test, feature = "testing"))]
const UNNAMED: (Key, ContextId) = (Key::from_u64(0), ContextId::from_u64(0).expect("of block 0"));

#[cfg(any(test, feature = "testing"))]
impl crate::smf::Smf {
    /// The documents of all sessions.
    pub fn documents(&self) -> Vec<Document> {
        let packed = self.sessions.iter().map(|(_, session)| pack(&session, &self.shared.upfs, SECTIONS));
        packed.filter_map(Result::ok).collect()
    }

    /// Unpacks a document.
    pub fn check_document(octets: &[u8], names: &dyn Names) -> Result<(), UnpackError> {
        unpack(octets, UNNAMED, names).map(drop)
    }

    /// Unpacks a document, and packs it again.
    pub fn repack(octets: &[u8], names: &dyn Names) -> Result<Document, UnpackError> {
        let session = unpack(octets, UNNAMED, names)?;
        Ok(pack(&session, names, SECTIONS).expect("its UPFs are known"))
    }
}

#[cfg(test)]
mod tests {
    //! Sessions with random content.

    use super::super::{FrontUpf, UpfSession};
    use super::*;
    use crate::kit::document::Names;
    use crate::kit::{Caller, Nf, Owner, PendingReply, Tag, UpfHandle};
    use crate::smf::procedure::State;
    use crate::smf::timers::SessionTimer;
    use crate::smf::tunnels::reroute;
    use pith_nas::GsmCause;
    use pith_ngap::transfer::Tunnel;
    use pith_sbi::common::{DateTime, NfInstanceId};
    use pith_sbi::nsmf_pdusession::SmContextUpdateData;
    use pith_types::{Ambr, BitRate, Seid, Snssai, Tac, Teid};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use std::net::IpAddr;
    use std::sync::Arc;

    /// UPFs `upf-0` to `upf-3`.
    struct Upfs([String; 4]);

    impl Names for Upfs {
        fn upf_name(&self, upf: UpfHandle) -> Option<&str> {
            self.0.get(upf.0 as usize).map(String::as_str)
        }

        fn upf(&self, name: &str) -> Option<UpfHandle> {
            self.0.iter().position(|known| known == name).map(|at| UpfHandle(at as u64))
        }
    }

    fn tunnel() -> impl Strategy<Value = Tunnel> {
        (any::<IpAddr>(), any::<u32>()).prop_map(|(address, teid)| Tunnel { address, teid: Teid(teid) })
    }

    fn at_upf() -> impl Strategy<Value = UpfSession> {
        (0_u64..4, any::<u64>(), tunnel()).prop_map(|(upf, seid, tunnel)| UpfSession {
            upf: UpfHandle(upf),
            seid: Seid(seid),
            tunnel,
        })
    }

    fn front() -> impl Strategy<Value = FrontUpf> {
        let networks = vec((any::<std::net::Ipv4Addr>(), 1_u8..=32), 0..4);
        (at_upf(), tunnel(), any::<bool>(), any::<bool>(), networks).prop_map(
            |(session, n9, is_needed, is_ending, destinations)| FrontUpf {
                session,
                n9,
                is_needed,
                is_ending,
                destinations,
            },
        )
    }

    fn state() -> impl Strategy<Value = State> {
        let user_plane = (at_upf(), option::of(front()), option::of(tunnel()), option::of(tunnel()));
        prop_oneof![
            Just(()).prop_map(|()| State::Over),
            user_plane.prop_map(|(anchor, front, gnb, gnb_uplink)| {
                State::established(UserPlane { anchor, front, gnb, gnb_uplink })
            }),
        ]
    }

    fn update() -> impl Strategy<Value = (PendingReply, SmContextUpdateData)> {
        (any::<(u64, u32, u16)>(), any::<bool>(), option::of(vec(any::<u8>(), 0..200))).prop_map(
            |((owner, step, shard), is_local, n2)| {
                let tag = Tag::new(owner, step);
                let local = Caller::Local { nf: Nf::Amf, tag };
                let caller = if is_local { local } else { Caller::Shard { shard, nf: Nf::Amf, tag } };
                let mut body = SmContextUpdateData::default();
                body.n2_sm_info = n2.map(Into::into);
                (PendingReply::owed_to(caller), body)
            },
        )
    }

    type DualConnectivity = (Vec<Tunnel>, Vec<(Tunnel, Vec<u8>)>, (u64, u64));

    /// On the heap, as the stack is too small for one large strategy.
    fn dual_connectivity() -> BoxedStrategy<DualConnectivity> {
        let after_handover = vec((tunnel(), vec(any::<u8>(), 0..3)), 0..2);
        (vec(tunnel(), 0..4), after_handover, any::<(u64, u64)>()).boxed()
    }

    prop_compose! {
        fn session()(
            imsi in "[0-9]{5,15}",
            numbers in (1_u8..16, any::<u8>(), any::<Option<[u8; 3]>>(), any::<Option<u32>>(), any::<u64>()),
            address in any::<(Option<std::net::Ipv4Addr>, Option<u128>, [bool; 3])>(),
            rates in any::<(u64, u64)>(),
            state in state(),
            draining in option::of(at_upf()),
            updates in vec(update(), 0..3),
            pending in (any::<Option<u8>>(), option::of(tunnel()), any::<bool>()),
            timers in vec((0_usize..4, any::<i64>()), 0..4),
            (calls, is_emergency) in (any::<u32>(), any::<bool>()),
            (switches, dual) in ((option::of(tunnel()), any::<bool>(), any::<u8>()), dual_connectivity()),
            leaving in vec((at_upf(), option::of(any::<u32>())), 0..2),
        ) -> SmContext {
            let (id, sst, sd, tac, seid) = numbers;
            let status_uri = "http://127.0.0.1:7000/namf-callback/v1/sm-status/1.0".parse::<pith_sbi::Uri>().unwrap();
            let amf = AmfLink {
                instance: NfInstanceId(u128::from(seid)),
                root: Arc::clone(&status_uri.root),
                status_uri,
                owner: Owner::Process,
                handover_target: (id & 1 == 0).then_some(Owner::SameUser),
            };
            let key = (Key::from_u64(9), ContextId::from_u64(9).unwrap(), Seid(seid));
            let ue = if is_emergency { "imei-490154203237518".into() } else { format!("imsi-{imsi}") };
            let (ue, dnn) = (ue.parse().unwrap(), "internet".parse().unwrap());
            let mut session = SmContext::new(key, (ue, id), (dnn, Snssai { sst, sd }), tac.map(Tac::new), amf);
            let (uplink, downlink) = (BitRate(rates.0), BitRate(rates.1));
            session.qos = Qos { ambr: Ambr { uplink, downlink }, five_qi: id, arp_priority: sst };
            let (v4, v6, [has_v4, has_v6, asks_dns6]) = address;
            let v6 = v6.map(std::net::Ipv6Addr::from_bits);
            if has_v4 {
                session.addressing = Addressing { v4, v6: v6.map(|v6| (v6, 64)), framed_routes: v4.map(|v4| (v4.into(), sst)).into_iter().collect() };
            }
            session.address = UeAddress { v4, v6, delegation: if v6.is_some() { sst & 15 } else { 0 } };
            (session.ip, session.asks_dns6) = (IpVersions { v4: has_v4, v6: has_v6 }, asks_dns6);
            (session.state, session.draining) = (state, draining);
            let (release, lost_tunnel, downlink_data) = pending;
            session.pending = Pending {
                updates,
                release: release.map(GsmCause::from_code),
                lost_tunnel,
                qos: Some(session.qos.clone()),
                downlink_data,
            };
            for (timer, at) in timers {
                session.timers.start(SessionTimer::ALL[timer], DateTime::from_unix_ms(at));
            }
            (session.calls, session.is_emergency) = (calls, is_emergency);
            session.deletion = leaving.first().and_then(|(_, call)| call.map(super::super::CallId));
            session.leaving = leaving.into_iter().map(|(at, _)| at).collect();
            (session.handover_uplink, session.forwards_directly, session.unanswered_switches) = switches;
            session.answered_pti = release;
            session.gnb.unanswered_flows = if has_v4 { rates.0 } else { 0 };
            (session.flows.at_target, session.gnb.before_handover) = if has_v6 { (rates.1, sst) } else { (0, 0) };
            session.reflective = ReflectiveQos {
                is_supported: has_v4,
                timer: tac,
                revocation: release,
                awaits_pcf: has_v6,
                is_interrupted: asks_dns6,
            };
            let (tunnels, after_handover, (uplink, downlink)) = dual;
            let wanted: Vec<_> = (1..).zip(tunnels).collect();
            session.tunnels = reroute((None, &session.tunnels), &wanted).map(|it| it.tunnels).unwrap_or_default();
            session.handover_additional = after_handover;
            session.secondary_rat = SecondaryRatUsage { uplink, downlink };
            session
        }
    }

    #[test]
    fn leaving_sessions_of_version_1_are_read() {
        use proptest::strategy::ValueTree;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let mut session = session().new_tree(&mut runner).unwrap().current();
        let upfs = Upfs(std::array::from_fn(|number| format!("upf-{number}")));
        let tunnel = Tunnel { address: IpAddr::from([192, 0, 2, 7]), teid: Teid(7) };
        let at = UpfSession { upf: UpfHandle(2), seid: Seid(0x51), tunnel };
        (session.leaving, session.deletion) = (vec![at], None);

        let mut writer = Writer::new(Nf::Smf, &upfs);
        for section in
            SECTIONS.iter().filter(|it| [IDENTITY, POLICY, PROCEDURE, PENDING, TIMERS].contains(it))
        {
            writer.section(section, |writer| write(&session, section, writer));
        }
        writer.section(&Section { version: 1, ..LEAVING }, |writer| session.leaving.pack(writer));
        let document = writer.finish().unwrap();

        let unpacked = unpack(document.octets(), (session.key, session.id), &upfs).unwrap();
        assert_eq!((unpacked.leaving, unpacked.deletion), (session.leaving, None));
    }

    #[test]
    fn prefixes_of_version_1_have_64_bits() {
        use proptest::strategy::ValueTree;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let mut session = session().new_tree(&mut runner).unwrap().current();
        let upfs = Upfs(std::array::from_fn(|number| format!("upf-{number}")));
        let prefix = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0x45, 1, 0, 0, 0, 0);
        session.address = UeAddress { v4: None, v6: Some(prefix), delegation: 0 };

        let mut writer = Writer::new(Nf::Smf, &upfs);
        let needed = [IDENTITY, POLICY, PROCEDURE, PENDING, IPV6, TIMERS];
        for section in SECTIONS.iter().filter(|it| needed.contains(it)) {
            let version = if *section == IPV6 { 1 } else { section.version };
            writer.section(&Section { version, ..*section }, |writer| match *section {
                IPV6 => ((false, true), session.address.v6, false).pack(writer),
                _ => write(&session, section, writer),
            });
        }
        let document = writer.finish().unwrap();

        let unpacked = unpack(document.octets(), (session.key, session.id), &upfs).unwrap();
        assert_eq!((unpacked.address, unpacked.ip), (session.address, IpVersions::V6));
    }

    proptest! {
        #[test]
        fn sessions_are_the_same_after_packing_and_unpacking(session in session()) {
            let upfs = Upfs(std::array::from_fn(|number| format!("upf-{number}")));
            let document = pack(&session, &upfs, SECTIONS).unwrap();
            let unpacked = unpack(document.octets(), (session.key, session.id), &upfs).unwrap();
            let again = pack(&unpacked, &upfs, SECTIONS).unwrap();
            prop_assert_eq!(again.octets(), document.octets());
            prop_assert_eq!(format!("{session:?}"), format!("{unpacked:?}"));
            let gone = Upfs(Default::default());
            let waits_for_upf = matches!(unpack(document.octets(), (session.key, session.id), &gone), Err(UnpackError::UpfIsMissing(_)));
            prop_assert_eq!(waits_for_upf, session.n4_sessions() > 0 || !session.leaving.is_empty());
        }
    }
}
