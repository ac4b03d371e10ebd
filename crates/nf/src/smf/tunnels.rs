//! N3 tunnels of a session in dual connectivity (TS 37.340 4.3.2; TS 23.501 5.11.1): downlink packets of some QoS flows go to a
//! secondary gNB, those of all others to the tunnel of [`super::context::UserPlane::gnb`], the primary one.
//!
//! ```text
//!  PDRs of all other flows    FAR 2          primary tunnel
//!  PDRs of a tunnel's flows   FAR 16 to 18   additional tunnels
//! ```
//!
//! [`reroute`] finds the least change of these rules. A tunnel that no flow uses any longer gets an End Marker, for which the FAR that had it
//! must have another tunnel in the same request (TS 29.244 table 7.5.4.3-2, SNDEM). If all tunnels have a FAR already, two FARs lead to the
//! same tunnel until the next change.

use super::context::UserPlane;
use super::n4::{self, EndMarker};
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_struct};
use pith_ngap::transfer::{FlowTunnel, Tunnel};
use pith_ngap::{Cause, CauseRadioNetwork};
use pith_pfcp::ie::FarId;
use std::net::IpAddr;

/// Number of additional tunnels of a session (TS 38.413 9.4.7, maxnoofMultiConnectivityMinusOne).
pub(super) const MOST: u8 = 3;

/// The FAR of the first additional tunnel. FARs 1 to 3 have other uses.
const FIRST_FAR: u32 = 16;

/// The additional tunnels of a session at the UPF that terminates N3, and the flows in each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tunnels(Vec<AdditionalTunnel>);

/// A tunnel beside the primary one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AdditionalTunnel {
    /// 1 to [`MOST`]; 0 is the primary tunnel.
    slot: u8,
    /// The gNB's endpoint.
    pub gnb: Tunnel,
    /// QFIs of its flows.
    pub flows: Vec<u8>,
}

pack_struct!(AdditionalTunnel { slot, gnb, flows });

impl Pack for Tunnels {
    fn pack(&self, writer: &mut Writer<'_>) {
        self.0.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        Vec::unpack(reader).map(Self)
    }
}

const fn far_of_slot(slot: u8) -> FarId {
    match slot {
        0 => n4::DOWNLINK_FAR,
        slot => FarId(FIRST_FAR + slot as u32 - 1),
    }
}

impl Tunnels {
    /// Whether all flows have the primary tunnel.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each tunnel with its FAR.
    pub(super) fn iter(&self) -> impl Iterator<Item = (FarId, &AdditionalTunnel)> {
        self.0.iter().map(|additional| (far_of_slot(additional.slot), additional))
    }

    /// The tunnel of a flow; `None`: the primary one.
    pub(super) fn of(&self, qfi: u8) -> Option<Tunnel> {
        self.0.iter().find(|additional| additional.flows.contains(&qfi)).map(|additional| additional.gnb)
    }

    /// The FAR of a flow's downlink packets.
    pub(super) fn far_of(&self, qfi: u8) -> FarId {
        far_of_slot(self.slot_of(qfi))
    }

    fn slot_of(&self, qfi: u8) -> u8 {
        self.0.iter().find(|additional| additional.flows.contains(&qfi)).map_or(0, |it| it.slot)
    }

    /// Flows that the session no longer has leave their tunnels, and these end if they have no other flow.
    pub(super) fn keep(&mut self, flows: &[u8]) {
        self.0.iter_mut().for_each(|it| it.flows.retain(|qfi| flows.contains(qfi)));
        self.0.retain(|it| !it.flows.is_empty());
    }

    /// Whether one of the tunnels has that endpoint.
    pub(super) fn has(&self, gnb: Tunnel) -> bool {
        self.0.iter().any(|additional| additional.gnb == gnb)
    }
}

/// A change of a session's tunnels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reroute {
    /// The primary tunnel and the additional ones, after the change.
    pub primary: Tunnel,
    pub tunnels: Tunnels,
    /// FARs with their tunnels.
    pub created: Vec<(FarId, Tunnel)>,
    pub updated: Vec<(FarId, Tunnel, EndMarker)>,
    pub removed: Vec<FarId>,
    /// QFIs of flows with other FARs than before.
    pub moved: Vec<(u8, FarId)>,
}

impl Reroute {
    /// The same change for a UPF that has applied it before: the request arrived, but not its response.
    pub(super) fn repeated(self) -> Self {
        let created = self.created.iter().map(|(far, tunnel)| (*far, *tunnel, EndMarker::Omit));
        let updated = self.updated.iter().copied().chain(created).collect();
        Self { updated, created: Vec::new(), removed: Vec::new(), ..self }
    }

    /// Whether [`Reroute::repeated`] differs.
    pub(super) const fn has_new_rules(&self) -> bool {
        !(self.created.is_empty() && self.removed.is_empty())
    }
}

/// A tunnel with its FAR: before the change, and after it.
struct Leg {
    slot: u8,
    former: Option<Tunnel>,
    gnb: Option<Tunnel>,
    /// No flow uses the former tunnel any longer, and this is the FAR whose change sends the End Marker.
    is_left: bool,
}

/// The change that sends the downlink packets of each flow to its tunnel in `wanted`, which has all flows of the session. If the primary tunnel is
/// left, the first tunnel of `wanted` that has no FAR becomes the primary one. `before`: the primary tunnel, `None` while packets are buffered, and
/// the additional ones. `None`: there are no flows, or more than four tunnels.
pub(super) fn reroute(
    (primary, before): (Option<Tunnel>, &Tunnels),
    wanted: &[(u8, Tunnel)],
) -> Option<Reroute> {
    let mut targets: Vec<Tunnel> = Vec::new();
    for (_, target) in wanted {
        if !targets.contains(target) {
            targets.push(*target);
        }
    }
    let first = *targets.first()?;
    if targets.len() > usize::from(MOST) + 1 {
        return None;
    }
    let mut legs = vec![Leg { slot: 0, former: primary, gnb: None, is_left: false }];
    legs.extend(before.0.iter().map(|it| Leg {
        slot: it.slot,
        former: Some(it.gnb),
        gnb: None,
        is_left: false,
    }));
    for at in 0..legs.len() {
        let former = legs[at].former;
        let is_first = legs[..at].iter().all(|other| other.former != former);
        legs[at].is_left = is_first && former.is_some_and(|former| !targets.contains(&former));
    }
    let mut open = targets.clone();
    // A FAR keeps its tunnel, unless another one has the same.
    for leg in &mut legs {
        leg.gnb = leg.former.filter(|former| open.contains(former));
        open.retain(|target| Some(*target) != leg.gnb);
    }
    // The FARs of tunnels that are left get new tunnels.
    let mut open = open.into_iter();
    for leg in legs.iter_mut().filter(|leg| leg.gnb.is_none()) {
        leg.gnb = open.next();
    }
    let unused = (1..=MOST).filter(|slot| before.0.iter().all(|it| it.slot != *slot));
    let new_legs: Vec<_> = unused.zip(open).collect();
    legs.extend(new_legs.into_iter().map(|(slot, gnb)| Leg {
        slot,
        former: None,
        gnb: Some(gnb),
        is_left: false,
    }));
    let leads_to =
        |former: &Tunnel| wanted.iter().find(|(qfi, _)| before.of(*qfi).or(primary) == Some(*former));
    for leg in legs.iter_mut().filter(|leg| leg.gnb.is_none()) {
        if leg.slot == 0 || leg.is_left {
            let next = leg.former.as_ref().and_then(leads_to).map(|(_, next)| *next);
            leg.gnb = Some(next.unwrap_or(first));
        }
    }
    Some(rules(&legs, before, wanted, first))
}

/// The rules after a change: flows keep their FARs where these have the right tunnel.
fn rules(legs: &[Leg], before: &Tunnels, wanted: &[(u8, Tunnel)], first: Tunnel) -> Reroute {
    let slot_for = |(qfi, target): &(u8, Tunnel)| {
        let has_it = |leg: &&Leg| leg.gnb == Some(*target);
        let own = legs.iter().filter(has_it).find(|leg| leg.slot == before.slot_of(*qfi));
        own.or_else(|| legs.iter().find(has_it)).map_or(0, |leg| leg.slot)
    };
    let slots: Vec<(u8, u8)> = wanted.iter().map(|flow| (flow.0, slot_for(flow))).collect();
    let mut change = Reroute {
        primary: first,
        tunnels: Tunnels::default(),
        created: Vec::new(),
        updated: Vec::new(),
        removed: Vec::new(),
        moved: Vec::new(),
    };
    for leg in legs {
        let far = far_of_slot(leg.slot);
        let Some(gnb) = leg.gnb else {
            change.removed.push(far);
            continue;
        };
        if leg.slot == 0 {
            change.primary = gnb;
        } else {
            let flows = slots.iter().filter(|(_, slot)| *slot == leg.slot).map(|(qfi, _)| *qfi).collect();
            change.tunnels.0.push(AdditionalTunnel { slot: leg.slot, gnb, flows });
        }
        let end_marker = if leg.is_left { EndMarker::Send } else { EndMarker::Omit };
        match leg.former {
            None if leg.slot > 0 => change.created.push((far, gnb)),
            // The FAR of the primary tunnel may buffer.
            former if leg.slot == 0 || former != Some(gnb) => change.updated.push((far, gnb, end_marker)),
            _ => {}
        }
    }
    let moved = slots.iter().filter(|(qfi, slot)| before.slot_of(*qfi) != *slot);
    change.moved = moved.map(|(qfi, slot)| (*qfi, far_of_slot(*slot))).collect();
    change
}

/// Each flow with its tunnel: one of the additional tunnels that name it, else the primary one.
pub(super) fn of_setup(flows: &[u8], primary: Tunnel, additional: &[FlowTunnel]) -> Vec<(u8, Tunnel)> {
    let tunnel_of = |qfi: &u8| {
        let named = additional.iter().find(|it| it.flows.contains(qfi));
        (*qfi, named.map_or(primary, |it| it.tunnel))
    };
    let mut wanted: Vec<_> = flows.iter().map(tunnel_of).collect();
    // The primary tunnel keeps its FAR.
    wanted.sort_by_key(|(_, tunnel)| *tunnel != primary);
    wanted
}

/// The additional tunnels that the session can have: none with a UPF between gNB and anchor, whose rules do not tell flows apart, or if one of
/// them can't be used. The flows then have the primary tunnel.
pub(super) fn usable<'a>(additional: &'a [FlowTunnel], user_plane: &UserPlane) -> &'a [FlowTunnel] {
    let upf = user_plane.anchor.tunnel.address;
    let can_be_used = user_plane.front.is_none() && additional.iter().all(|it| is_usable(&it.tunnel, upf));
    if can_be_used { additional } else { &[] }
}

/// What a gNB's indication changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Indicated {
    /// All flows of the session with their tunnels.
    pub wanted: Vec<(u8, Tunnel)>,
    /// QFIs of flows whose tunnel is as indicated.
    pub confirmed: Vec<u8>,
    /// QFIs that the gNB indicates in vain, with causes.
    pub failed: Vec<(u8, Cause)>,
}

/// Applies the tunnels of a PDU Session Resource Modify Indication Transfer to the session's flows. A flow that is not indicated keeps its tunnel
/// (TS 23.502 4.14.1: the tunnel information is that of the indicated flows).
pub(super) fn indicated(
    flows: &[u8],
    (primary, tunnels): (Tunnel, &Tunnels),
    asked: &[FlowTunnel],
    is_usable: impl Fn(&Tunnel) -> bool,
) -> Indicated {
    let mut result = Indicated::default();
    let mut named: Vec<u8> = asked.iter().flat_map(|it| &it.flows).copied().collect();
    named.sort_unstable();
    let number = |qfi: u8| named.iter().filter(|named| **named == qfi).count();
    for (tunnel, qfi) in asked.iter().flat_map(|it| it.flows.iter().map(move |qfi| (it.tunnel, *qfi))) {
        let failure = if !flows.contains(&qfi) {
            Some(CauseRadioNetwork::unkown_qos_flow_ID)
        } else if number(qfi) > 1 {
            Some(CauseRadioNetwork::multiple_qos_flow_ID_instances)
        } else if !is_usable(&tunnel) {
            Some(CauseRadioNetwork::unspecified)
        } else {
            None
        };
        match failure {
            None => {
                result.wanted.push((qfi, tunnel));
                result.confirmed.push(qfi);
            }
            Some(cause) if result.failed.iter().all(|(failed, _)| *failed != qfi) => {
                result.failed.push((qfi, Cause::RadioNetwork(cause)));
            }
            Some(_) => {}
        }
    }
    let kept = flows.iter().filter(|qfi| !result.confirmed.contains(qfi));
    result.wanted.extend(kept.map(|qfi| (*qfi, tunnels.of(*qfi).unwrap_or(primary))));
    result
}

/// Whether packets can be sent to a gNB's endpoint from a UPF's: to another host of the same IP version, and to a tunnel (TEID 0 is for
/// messages without one, TS 29.281 5.1).
pub(super) fn is_usable(gnb: &Tunnel, upf: IpAddr) -> bool {
    let is_host = match gnb.address {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_multicast()),
    };
    is_host && gnb.address != upf && gnb.teid.0 != 0 && gnb.address.is_ipv4() == upf.is_ipv4()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_types::Teid;
    use std::collections::BTreeMap;

    const fn at(teid: u32) -> Tunnel {
        Tunnel { address: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), teid: Teid(teid) }
    }

    const A: Tunnel = at(1);
    const B: Tunnel = at(2);
    const C: Tunnel = at(3);

    /// What a UPF has: FARs with tunnels, and the FAR of each flow.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Upf {
        fars: BTreeMap<FarId, Tunnel>,
        flows: BTreeMap<u8, FarId>,
    }

    impl Upf {
        fn new(primary: Tunnel, flows: &[u8]) -> Self {
            let flows = flows.iter().map(|qfi| (*qfi, n4::DOWNLINK_FAR)).collect();
            Self { fars: [(n4::DOWNLINK_FAR, primary)].into(), flows }
        }

        /// Applies a change as TS 29.244 has it; returns the tunnels that get an End Marker.
        fn apply(&mut self, change: &Reroute) -> Vec<Tunnel> {
            for far in &change.removed {
                assert!(self.fars.remove(far).is_some(), "{far:?} is not there");
            }
            for (far, tunnel) in &change.created {
                assert_eq!(self.fars.insert(*far, *tunnel), None, "{far:?} is there");
            }
            let mut markers = Vec::new();
            for (far, tunnel, end_marker) in &change.updated {
                let former = self.fars.insert(*far, *tunnel).expect("an updated FAR exists");
                if *end_marker == EndMarker::Send && former != *tunnel {
                    markers.push(former);
                }
            }
            for (qfi, far) in &change.moved {
                assert!(self.flows.insert(*qfi, *far).is_some_and(|former| former != *far));
            }
            assert!(self.flows.values().all(|far| self.fars.contains_key(far)), "{self:?}");
            markers
        }

        fn tunnel_of(&self, qfi: u8) -> Tunnel {
            self.fars[&self.flows[&qfi]]
        }
    }

    /// A session's tunnels and its UPF, changed one time after another.
    struct Session {
        primary: Tunnel,
        tunnels: Tunnels,
        upf: Upf,
    }

    impl Session {
        fn new(flows: &[u8]) -> Self {
            Self { primary: A, tunnels: Tunnels::default(), upf: Upf::new(A, flows) }
        }

        /// Returns the tunnels that get an End Marker.
        fn change(&mut self, wanted: &[(u8, Tunnel)]) -> Vec<Tunnel> {
            let before: Vec<Tunnel> = wanted.iter().map(|(qfi, _)| self.upf.tunnel_of(*qfi)).collect();
            let change = reroute((Some(self.primary), &self.tunnels), wanted).unwrap();
            let markers = self.upf.apply(&change);
            (self.primary, self.tunnels) = (change.primary, change.tunnels);
            for (qfi, tunnel) in wanted {
                assert_eq!(self.upf.tunnel_of(*qfi), *tunnel, "flow {qfi}");
                assert_eq!(self.tunnels.of(*qfi).unwrap_or(self.primary), *tunnel, "flow {qfi}");
                assert_eq!(self.tunnels.far_of(*qfi), self.upf.flows[qfi]);
            }
            assert_eq!(self.upf.fars[&n4::DOWNLINK_FAR], self.primary);
            let mut fars = vec![n4::DOWNLINK_FAR];
            fars.extend(self.tunnels.iter().map(|(far, _)| far));
            fars.sort_unstable();
            assert_eq!(fars, self.upf.fars.keys().copied().collect::<Vec<_>>());
            // Exactly the tunnels that no flow uses any longer.
            let is_left = |tunnel: &Tunnel| wanted.iter().all(|(_, target)| target != tunnel);
            let mut left: Vec<Tunnel> = before.into_iter().filter(is_left).collect();
            left.sort_unstable_by_key(|tunnel| tunnel.teid.0);
            left.dedup();
            let mut marked = markers.clone();
            marked.sort_unstable_by_key(|tunnel| tunnel.teid.0);
            assert_eq!(marked, left);
            markers
        }
    }

    #[test]
    fn a_session_moves_as_a_whole_with_one_rule() {
        let mut session = Session::new(&[1]);
        assert_eq!(session.change(&[(1, B)]), [A]);
        assert_eq!(session.change(&[(1, B)]), []);
        assert!(session.tunnels.is_empty());
        assert_eq!(session.change(&[(1, A)]), [B]);
    }

    #[test]
    fn a_flow_that_moves_alone_sends_no_end_marker_until_it_returns() {
        let mut session = Session::new(&[1, 2]);
        assert_eq!(session.change(&[(1, A), (2, B)]), []);
        assert_eq!((session.primary, session.tunnels.of(2)), (A, Some(B)));
        assert_eq!(session.change(&[(1, A), (2, A)]), [B]);
        // The FAR of the tunnel that was left leads to the primary one, until the next change.
        assert_eq!(session.upf.fars.len(), 2);
        assert_eq!(session.change(&[(1, A), (2, A)]), []);
        assert_eq!((session.upf.fars.len(), session.tunnels.is_empty()), (1, true));
    }

    #[test]
    fn flows_of_the_primary_tunnel_that_all_leave_take_its_rule_along() {
        let mut session = Session::new(&[1, 2, 3]);
        assert_eq!(session.change(&[(1, B), (2, C), (3, C)]), [A]);
        assert_eq!(session.primary, B);
        assert_eq!(session.change(&[(1, C), (2, C), (3, C)]), [B]);
        assert_eq!(session.change(&[(1, A), (2, A), (3, A)]), [C]);
    }

    /// All changes of up to three flows between four tunnels, several in a row.
    #[test]
    fn each_flow_has_its_tunnel_and_each_left_tunnel_one_end_marker() {
        let mut seed = 7_u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % 4 + 1
        };
        for _ in 0..300 {
            let mut session = Session::new(&[1, 2, 3]);
            for _ in 0..12 {
                let wanted = [(1, at(next())), (2, at(next())), (3, at(next()))];
                session.change(&wanted);
            }
        }
    }

    #[test]
    fn a_change_that_the_upf_has_made_before_can_be_repeated() {
        let mut session = Session::new(&[1, 2]);
        let before = (session.primary, session.tunnels.clone());
        let wanted = [(1, A), (2, B)];
        session.change(&wanted);
        let again = reroute((Some(before.0), &before.1), &wanted).unwrap();
        assert!(again.has_new_rules());
        let mut upf = session.upf.clone();
        let repeated = again.repeated();
        assert!(!repeated.has_new_rules());
        upf.flows = Upf::new(A, &[1, 2]).flows;
        assert_eq!(upf.apply(&repeated), []);
        assert_eq!(upf, session.upf);
    }

    #[test]
    fn a_fifth_tunnel_is_refused() {
        let wanted: Vec<_> = (1..=5_u8).map(|qfi| (qfi, at(qfi.into()))).collect();
        assert_eq!(reroute((Some(A), &Tunnels::default()), &wanted), None);
        assert!(reroute((Some(A), &Tunnels::default()), &wanted[..4]).is_some());
        assert_eq!(reroute((Some(A), &Tunnels::default()), &[]), None);
    }

    #[test]
    fn an_indication_moves_what_it_names() {
        let asked = [
            FlowTunnel { tunnel: B, flows: vec![2, 9] },
            FlowTunnel { tunnel: C, flows: vec![3, 4] },
            FlowTunnel { tunnel: Tunnel { teid: Teid(0), ..A }, flows: vec![4, 5] },
        ];
        let usable = |tunnel: &Tunnel| is_usable(tunnel, [10, 0, 0, 1].into());
        let result = indicated(&[1, 2, 3, 4, 5], (A, &Tunnels::default()), &asked, usable);
        assert_eq!(result.wanted, [(2, B), (3, C), (1, A), (4, A), (5, A)]);
        assert_eq!(result.confirmed, [2, 3]);
        let cause = Cause::RadioNetwork;
        let failed = [
            (9, cause(CauseRadioNetwork::unkown_qos_flow_ID)),
            (4, cause(CauseRadioNetwork::multiple_qos_flow_ID_instances)),
            (5, cause(CauseRadioNetwork::unspecified)),
        ];
        assert_eq!(result.failed, failed);
    }

    #[test]
    fn tunnels_to_no_host_are_not_used() {
        let upf: IpAddr = [10, 0, 0, 1].into();
        for address in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "10.0.0.1", "2001:db8::1", "::", "ff02::1"]
        {
            let tunnel = Tunnel { address: address.parse().unwrap(), teid: Teid(1) };
            assert!(!is_usable(&tunnel, upf), "{address}");
        }
        assert!(is_usable(&A, upf));
        assert!(!is_usable(&Tunnel { teid: Teid(0), ..A }, upf));
    }
}
