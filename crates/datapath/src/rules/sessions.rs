//! The sessions of a datapath on its control thread, and the state that outlives a change of rules.

use super::Now;
use super::compile::{Rules, SessionState};
use super::pool::{Pools, SessionMeters};
use super::usage::{UrrCounter, UrrUse};
use pith_upf::contract::{Session, SessionId, SessionUsage, Urr};
use pith_upf::qos::{Enforcement, FlowUsage, SessionQos, SharedMeters, SharedRate};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug)]
pub struct Sessions {
    entries: HashMap<SessionId, Entry>,
    pools: Pools,
    enforcement: Enforcement,
    shared: SharedMeters,
}

#[derive(Debug)]
struct Entry {
    rules: Arc<Rules>,
    urrs: Vec<Arc<UrrUse>>,
}

/// Rules to publish.
#[derive(Debug)]
pub struct Installed {
    /// The session's new rules.
    pub rules: Arc<Rules>,
    /// The replaced rules.
    pub previous: Option<Arc<Rules>>,
}

impl Sessions {
    /// No sessions, with meters and counters in these pools.
    pub fn new(pools: Pools, enforcement: Enforcement) -> Self {
        Self { entries: HashMap::new(), pools, enforcement, shared: SharedMeters::default() }
    }

    /// Adds rates that sessions share.
    pub fn sharing(self, rates: &[SharedRate]) -> Self {
        let meters = SessionMeters { pools: &self.pools, block: None };
        Self { shared: SharedMeters::new(rates, self.enforcement, &meters), ..self }
    }

    /// Compiles a session. Meters with unchanged rates and counters of remaining URRs are kept.
    pub fn install(&mut self, session: &Session) -> Installed {
        let before = self.entries.remove(&session.id);
        let state = match &before {
            Some(entry) => Arc::clone(&entry.rules.state),
            None => Arc::new(SessionState::new(session.id, self.pools.session_blocks.take())),
        };
        let qos = Arc::new(self.qos(session, &state, before.as_ref()));
        let urrs = session.urrs.iter().map(|urr| self.urr_use(&state, urr, before.as_ref()));
        let urrs = urrs.collect::<Vec<_>>();
        let rules = Arc::new(Rules::compile(session, state, qos, &urrs));
        self.entries.insert(session.id, Entry { rules: Arc::clone(&rules), urrs });
        Installed { rules, previous: before.map(|entry| entry.rules) }
    }

    fn qos(&self, session: &Session, state: &SessionState, before: Option<&Entry>) -> SessionQos {
        let before = before.map(|entry| &**entry.rules.qos());
        let shared = self.shared.of(session.ue);
        let meters = SessionMeters { pools: &self.pools, block: state.block() };
        SessionQos::compile(session, before, self.enforcement, shared, &meters)
    }

    fn urr_use(&self, state: &SessionState, urr: &Urr, before: Option<&Entry>) -> Arc<UrrUse> {
        let old = before.and_then(|entry| entry.urrs.iter().find(|used| used.urr.id == urr.id));
        let counter = match old {
            Some(used) if used.urr == *urr => return Arc::clone(used),
            Some(used) => Arc::clone(&used.counter),
            None => Arc::new(UrrCounter::new(urr.id, &self.pools, state.block())),
        };
        Arc::new(UrrUse::new(state.id, urr.clone(), counter, &self.pools))
    }

    pub fn rules(&self, id: SessionId) -> Option<&Arc<Rules>> {
        Some(&self.entries.get(&id)?.rules)
    }

    pub fn usage(&self, id: SessionId, now: Now) -> Option<SessionUsage> {
        let entry = self.entries.get(&id)?;
        Some(SessionUsage {
            urrs: entry.urrs.iter().map(|used| used.counter.usage(now)).collect(),
            last_packet: now.since(entry.rules.state.last_packet()),
        })
    }

    /// Adds usage that another datapath counted.
    pub fn add_usage(&self, id: SessionId, usage: &SessionUsage, now: Now) {
        let Some(entry) = self.entries.get(&id) else { return };
        for urr in &usage.urrs {
            if let Some(used) = entry.urrs.iter().find(|used| used.urr.id == urr.id) {
                used.counter.add(urr, now);
            }
        }
        if let Some(age) = usage.last_packet {
            entry.rules.state.note_packet(now.before(age));
        }
    }

    /// The sessions with queued packets.
    pub fn waiting(&self) -> impl Iterator<Item = SessionId> {
        let waiting = self.entries.iter().filter(|(_, entry)| entry.rules.state.is_waiting());
        waiting.map(|(id, _)| *id)
    }

    /// The counters of each of its flows.
    pub fn flows(&self, id: SessionId) -> Vec<FlowUsage> {
        self.entries.get(&id).map(|entry| entry.rules.qos().usage()).unwrap_or_default()
    }

    /// Removes a session.
    pub fn remove(&mut self, id: SessionId) {
        self.entries.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, Worker};
    use super::*;
    use crate::packet::Flow;
    use crate::packet::samples::{tcp_v4, udp_v4};
    use pith_upf::contract::*;
    use pith_upf::qos::Colour;
    use std::net::Ipv4Addr;

    fn pdr(id: u16, precedence: u32, far: u32) -> Pdr {
        Pdr {
            id: PdrId(id),
            precedence,
            source: Source::Tunnel { teid: Teid(1), direction: Direction::Uplink },
            filters: Vec::new(),
            qfis: Vec::new(),
            far: FarId(far),
            qers: vec![QerId(1)],
            urrs: vec![UrrId(1)],
        }
    }

    fn session() -> Session {
        let rates = Rates { uplink: 8_000, downlink: 8_000 };
        Session {
            id: SessionId(1),
            ue: UeAddress::v4(Ipv4Addr::new(10, 45, 0, 2)),
            framed_routes: vec![],
            pdrs: vec![pdr(1, 255, 1)],
            fars: vec![Far { id: FarId(1), action: Action::Forward(Destination::Network) }],
            qers: vec![Qer {
                id: QerId(1),
                gates: Gates::OPEN,
                mbr: Some(rates),
                gbr: None,
                qfi: Some(Qfi(9)),
                rqi: false,
            }],
            urrs: vec![Urr {
                id: UrrId(1),
                threshold: VolumeLimits::default(),
                quota: VolumeLimits::default(),
            }],
            former_qfis: vec![],
        }
    }

    fn udp() -> Flow {
        Flow::of(&udp_v4(b"x")).unwrap()
    }

    fn found<'a>(rules: &'a Rules, flow: &Flow, qfi: Option<Qfi>) -> Option<&'a super::super::Rule> {
        rules.find(Origin::Tunnel(Teid(1)), flow, qfi)
    }

    #[test]
    fn rules_are_tried_by_precedence_and_must_match_in_all_they_name() {
        let mut session = session();
        let filters = "permit out 6 from any to assigned".parse::<FlowDescription>().unwrap().filters;
        session.pdrs.push(Pdr { filters, ..pdr(2, 10, 1) });
        session.pdrs.push(Pdr { qfis: vec![Qfi(5)], ..pdr(3, 5, 1) });
        let rules = Sessions::new(Pools::on_heap(1), Enforcement::Police).install(&session).rules;
        let pdr = |flow: &Flow, qfi| found(&rules, flow, qfi).map(|rule| rule.pdr.0);
        let tcp = Flow::of(&tcp_v4(0, 0x10, b"x")).unwrap();
        assert_eq!(pdr(&udp(), None), Some(1));
        assert_eq!(pdr(&tcp, Some(Qfi(9))), Some(2));
        assert_eq!(pdr(&tcp, Some(Qfi(5))), Some(3));
        assert!(rules.find(Origin::Tunnel(Teid(2)), &tcp, None).is_none());
        assert!(rules.find(Origin::Network, &tcp, None).is_none());
    }

    #[test]
    fn a_rule_without_its_far_has_no_action_and_a_closed_gate_drops() {
        let mut session = session();
        session.pdrs = vec![pdr(1, 1, 7)];
        session.qers[0].gates.uplink = Gate::Closed;
        let rules = Sessions::new(Pools::on_heap(1), Enforcement::Police).install(&session).rules;
        let rule = found(&rules, &udp(), None).unwrap();
        assert_eq!((rule.action, rule.qfi), (None, Some(Qfi(9))));
        assert_eq!(rule.gate(), Err(DropReason::GateClosed));
    }

    /// Also if the QER of the session-AMBR has a QFI, and whatever the order.
    #[test]
    fn packets_get_the_qfi_of_the_most_specific_qer() {
        let qer = |id, qfi| Qer {
            id: QerId(id),
            gates: Gates::OPEN,
            mbr: None,
            gbr: None,
            qfi: Some(Qfi(qfi)),
            rqi: false,
        };
        for named in [[1, 2], [2, 1]] {
            let mut session = session();
            let filters = "permit out 6 from any to assigned".parse::<FlowDescription>().unwrap().filters;
            let qers = named.map(QerId).to_vec();
            session.pdrs.push(Pdr { filters, qers, ..pdr(2, 10, 1) });
            session.qers.push(qer(2, 5));
            let installed = Sessions::new(Pools::on_heap(1), Enforcement::Police).install(&session);
            let marks = installed.rules.iter().map(|rule| (rule.pdr.0, rule.qfi.map(|qfi| qfi.0)));
            assert_eq!(marks.collect::<Vec<_>>(), [(2, Some(5)), (1, Some(9))]);
            let usage = installed.rules.qos().usage();
            let named = usage.iter().map(|flow| (flow.qers.len(), flow.qfi.map(|qfi| qfi.0)));
            assert_eq!(named.collect::<Vec<_>>(), [(1, Some(9)), (2, Some(5))]);
        }
    }

    /// The RQI is that of the QER with the QFI, and of downlink packets only.
    #[test]
    fn downlink_packets_of_a_reflective_qer_have_the_rqi() {
        let mut session = session();
        let downlink = Pdr { id: PdrId(2), source: Source::Network, ..pdr(2, 255, 1) };
        session.pdrs.push(downlink);
        for rqi in [true, false] {
            session.qers[0].rqi = rqi;
            let installed = Sessions::new(Pools::on_heap(1), Enforcement::Police).install(&session);
            let marks = installed.rules.iter().map(|rule| (rule.direction(), rule.rqi));
            let marks: Vec<_> = marks.collect();
            assert_eq!(marks, [(Direction::Uplink, false), (Direction::Downlink, rqi)]);
        }
        session.qers[0] = Qer { qfi: None, rqi: true, ..session.qers[0].clone() };
        let installed = Sessions::new(Pools::on_heap(1), Enforcement::Police).install(&session);
        assert!(installed.rules.iter().all(|rule| !rule.rqi), "without a QFI");
    }

    #[test]
    fn usage_and_meters_carry_on_over_new_rules() {
        let mut sessions = Sessions::new(Pools::on_heap(1), Enforcement::Police);
        let old = sessions.install(&session()).rules;
        let spend = |rules: &Rules, now: Now| {
            let rule = found(rules, &udp(), None).unwrap();
            let passed = std::iter::repeat_with(|| rule.flow.admit(now.into(), 1000))
                .take_while(|it| *it != Colour::Red);
            let passed = passed.count();
            rule.count(Worker(0), 1000, now, |_, _| ());
            passed
        };
        assert!(spend(&old, Now(1)) > 10);
        let mut changed = session();
        changed.fars[0].action = Action::Drop;
        let new = sessions.install(&changed).rules;
        assert_eq!(spend(&new, Now(1)), 0, "the bucket stays empty");
        changed.qers[0].mbr = Some(Rates { uplink: 16_000, downlink: 0 });
        let faster = sessions.install(&changed).rules;
        assert!(spend(&faster, Now(1)) > 10, "another rate is another bucket");
        let usage = sessions.usage(SessionId(1), Now(2)).unwrap();
        assert_eq!(usage.urr(UrrId(1)).unwrap().volume.uplink, 3000);
    }

    #[test]
    fn a_threshold_is_reported_again_only_when_it_changes() {
        let mut sessions = Sessions::new(Pools::on_heap(1), Enforcement::Police);
        let mut session = session();
        session.urrs[0].threshold.total = Some(1);
        let told = |rules: &Rules| {
            let mut told = 0;
            found(rules, &udp(), None).unwrap().count(Worker(0), 10, Now(1), |_, _| told += 1);
            told
        };
        assert_eq!(told(&sessions.install(&session).rules), 1);
        assert_eq!(told(&sessions.install(&session).rules), 0);
        session.urrs[0].threshold.total = Some(25);
        let rules = sessions.install(&session).rules;
        assert_eq!((told(&rules), told(&rules)), (1, 0));
    }

    #[test]
    fn removal_forgets() {
        let mut sessions = Sessions::new(Pools::on_heap(1), Enforcement::Police);
        sessions.install(&session());
        sessions.remove(SessionId(1));
        assert_eq!(sessions.usage(SessionId(1), Now(1)), None);
    }
}
