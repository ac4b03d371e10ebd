//! Packet paths: follows the rules of UPFs and the tunnels of gNBs as a packet would.

use super::operator::REFLECTIVE_RULE;
use super::{Failure, World};
use crate::network::{BREAKOUT, UPFS, upf_n3};
use crate::plan::Residency;
use pith_ran::gnb::{Bearer, UeKey};
use pith_upf::contract::{Action, Destination, Direction, Pdr, SdfFilter, Session, Source, Teid, Tunnel};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// An address in the Internet.
const FAR_AWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The end of a packet's path.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// In the data network behind that UPF.
    Network(usize),
    /// At a gNB, in that tunnel.
    Gnb(IpAddr, Teid),
    /// Buffered at that UPF.
    Held(usize),
    /// Dropped at that UPF, by a rule or for the lack of one.
    Lost(usize),
}

impl World {
    /// Packets of a session that is active in the SMF reach its gNB and leave from it; if the UE is
    /// idle, they are buffered.
    pub(super) fn check_path(&self, session: &Value) -> Result<(), Box<Failure>> {
        let wrong = self.wrong_path(session).filter(|_| !self.tolerates_leaks());
        wrong.map_or(Ok(()), |wrong| self.demand(false, || format!("{wrong}, for {session}")))
    }

    fn wrong_path(&self, session: &Value) -> Option<String> {
        let address: Ipv4Addr = session["ipv4"].as_str()?.parse().ok()?;
        let upf = |name: &str| UPFS.iter().position(|upf| session[name] == *upf);
        let (anchor, front) = (upf("upf")?, upf("frontUpf"));
        if let Some(wrong) = self.wrong_flows(session, anchor, address) {
            return Some(wrong);
        }
        let down = self.end_from_network(anchor, address);
        let Some((gnb, bearer)) = self.bearer_of(session) else {
            let held = session["userPlane"] == "inactive" && matches!(down, End::Held(_));
            return (!held).then(|| format!("no gNB has its bearer, and a packet for it ends {down:?}"));
        };
        let to_gnb = End::Gnb(gnb, Teid(bearer.downlink.0));
        if down != to_gnb {
            return Some(format!("a packet for it ends {down:?}, not {to_gnb:?}"));
        }
        let local = front.unwrap_or(anchor);
        for (destination, upf) in [(FAR_AWAY, anchor), (BREAKOUT.0, local)] {
            let up = self.end_from_ue(&bearer, address, destination);
            if up != End::Network(upf) {
                return Some(format!("its packet for {destination} ends {up:?}, not at UPF {upf}"));
            }
        }
        let answer = self.end_from_network(local, address);
        (answer != to_gnb).then(|| format!("an answer to UPF {local} ends {answer:?}, not {to_gnb:?}"))
    }

    /// SMF, UPF, gNB and UE have the same QoS flows. After faults an unanswered command may have made a difference.
    fn wrong_flows(&self, session: &Value, anchor: usize, address: Ipv4Addr) -> Option<String> {
        // With `soft`, an SMF that was killed may have lost the last change, which the others have.
        let may_lag = self.plan.residency == Residency::Soft && self.crash_points.crashed.is_some();
        if !self.plan.is_faultless() || may_lag {
            return None;
        }
        let of_smf: BTreeSet<u64> =
            session["qosFlows"].as_array()?.iter().filter_map(|flow| flow["qfi"].as_u64()).collect();
        let mut at_upf = self.upfs[anchor].datapath.sessions.values().filter(|at| at.ue.v4 == Some(address));
        let qers = at_upf.next().map(|at| at.qers.clone()).unwrap_or_default();
        let of_upf: BTreeSet<u64> = qers.iter().filter_map(|qer| Some(u64::from(qer.qfi?.0))).collect();
        if of_upf != of_smf {
            return Some(format!("its anchor has the flows {of_upf:?}"));
        }
        if let Some((_, bearer)) = self.bearer_of(session) {
            let of_gnb: BTreeSet<u64> = bearer.flows.iter().map(u64::from).collect();
            if of_gnb != of_smf {
                return Some(format!("its gNB has the flows {of_gnb:?}"));
            }
            let with_rqi: BTreeSet<u64> =
                qers.iter().filter(|qer| qer.rqi).filter_map(|qer| Some(u64::from(qer.qfi?.0))).collect();
            let with_attribute: BTreeSet<u64> = bearer.reflective.iter().map(u64::from).collect();
            if with_rqi != with_attribute {
                return Some(format!("RQI in {with_rqi:?}, reflective at the gNB {with_attribute:?}"));
            }
        }
        let sim_ue = self.ues.iter().find(|ue| ue.owns(session))?;
        let own = sim_ue.ue.sessions().find(|own| session["pduSessionId"] == own.id)?;
        if !own.reflective_qos && qers.iter().any(|qer| qer.rqi) {
            return Some("its UE does not support the RQI".into());
        }
        let flows = own.qos.flows.iter().map(|flow| u64::from(flow.qfi));
        let of_ue: BTreeSet<u64> = flows.chain([u64::from(own.default_qfi)]).collect();
        // A UE that revokes reflective QoS does not need a flow whose rule has no packet filters for it.
        let reflective = format!("rule-{REFLECTIVE_RULE}");
        let is_for_ue = |flow: &&Value| own.reflective_qos || flow["rules"] != json!([reflective]);
        let for_ue: BTreeSet<u64> = session["qosFlows"]
            .as_array()?
            .iter()
            .filter(is_for_ue)
            .filter_map(|flow| flow["qfi"].as_u64())
            .collect();
        (of_ue != for_ue).then(|| format!("its UE has the flows {of_ue:?}"))
    }

    /// The address of the gNB that takes the session's downlink packets, and the bearer.
    fn bearer_of(&self, session: &Value) -> Option<(IpAddr, Bearer)> {
        let id = session["pduSessionId"].as_u64()? as u8;
        let sim_ue = self.ues.iter().find(|sim_ue| sim_ue.owns(session))?;
        let sim_gnb = &self.gnbs[sim_ue.gnb];
        let bearer = sim_gnb.bearers.get(&(UeKey(sim_ue.connection? as u32), id))?;
        Some((bearer.n3, *bearer))
    }

    /// The end of a packet from the UE.
    fn end_from_ue(&self, bearer: &Bearer, ue: Ipv4Addr, destination: Ipv4Addr) -> End {
        let tunnel = Tunnel { peer: bearer.uplink.address, teid: Teid(bearer.uplink.teid.0), dscp: None };
        self.follow(tunnel, &Packet { way: Direction::Uplink, ue, remote: destination })
    }

    /// The end of a packet that enters from the network of a UPF.
    fn end_from_network(&self, upf: usize, ue: Ipv4Addr) -> End {
        let packet = Packet { way: Direction::Downlink, ue, remote: FAR_AWAY };
        let of_ue =
            |session: &Session, source: Source| source == Source::Network && session.ue.v4 == Some(packet.ue);
        match self.leaves(upf, &packet, of_ue) {
            Ok(tunnel) => self.follow(tunnel, &packet),
            Err(end) => end,
        }
    }

    /// The end of a packet in a tunnel to a UPF or a gNB.
    fn follow(&self, mut tunnel: Tunnel, packet: &Packet) -> End {
        for _ in 0..self.upfs.len() {
            let Some(upf) = (0..self.upfs.len()).find(|upf| tunnel.peer == upf_n3(*upf)) else { break };
            let comes_by = |_: &Session, source: Source| {
                source == Source::Tunnel { teid: tunnel.teid, direction: packet.way }
            };
            match self.leaves(upf, packet, comes_by) {
                Ok(next) => tunnel = next,
                Err(end) => return end,
            }
        }
        End::Gnb(tunnel.peer, tunnel.teid)
    }

    /// The tunnel through which a packet of that source leaves a UPF, or its end.
    fn leaves(
        &self,
        upf: usize,
        packet: &Packet,
        comes: impl Fn(&Session, Source) -> bool,
    ) -> Result<Tunnel, End> {
        let rule = |session: &'_ Arc<Session>| {
            let taken = session.pdrs.iter().filter(|pdr| comes(session, pdr.source) && packet.matches(pdr));
            let first = taken.min_by_key(|pdr| pdr.precedence)?;
            session.fars.iter().find(|far| far.id == first.far).map(|far| far.action)
        };
        match self.upfs[upf].datapath.sessions.values().find_map(rule) {
            Some(Action::Forward(Destination::Tunnel(tunnel))) => Ok(tunnel),
            Some(Action::Forward(Destination::Network)) => Err(End::Network(upf)),
            Some(Action::Buffer { .. }) => Err(End::Held(upf)),
            Some(Action::Drop) | None => Err(End::Lost(upf)),
        }
    }
}

/// The fields of a packet that rules match.
struct Packet {
    way: Direction,
    ue: Ipv4Addr,
    remote: Ipv4Addr,
}

impl Packet {
    fn matches(&self, pdr: &Pdr) -> bool {
        let remote =
            |filter: &SdfFilter| filter.remote.address.is_none_or(|range| range.contains(self.remote.into()));
        pdr.filters.is_empty() || pdr.filters.iter().any(remote)
    }
}
