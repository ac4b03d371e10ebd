//! A UPF of a world: UPF-C with a datapath that only records rules.

use crate::network::{EPOCH, SMF_SET, smf_n4, upf_n3, upf_n4};
use pith_nf::kit::Instant;
use pith_upf::contract::{
    Action, AddressRange, Counters, Datapath, Destination, Direction, DropReason, Event, Session, SessionId,
    SessionUsage, Source, Tunnel,
};
use pith_upf::{Config, Effect, GtpuAddress, Input, PermittedSmf, Upf};
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// The rules that a datapath would forward by.
#[derive(Debug, Default)]
pub(crate) struct RecordingDatapath {
    pub sessions: BTreeMap<SessionId, Arc<Session>>,
}

impl Datapath for RecordingDatapath {
    fn install(&mut self, session: Arc<Session>) {
        self.sessions.insert(session.id, session);
    }

    fn remove(&mut self, session: SessionId) -> Option<SessionUsage> {
        self.sessions.remove(&session).map(|_| SessionUsage::default())
    }

    fn discard_buffered(&mut self, _session: SessionId) {}

    fn send_end_marker(&mut self, _tunnel: &Tunnel) {}

    fn usage(&self, session: SessionId) -> Option<SessionUsage> {
        self.sessions.get(&session).map(|_| SessionUsage::default())
    }

    fn add_usage(&mut self, _session: SessionId, _usage: &SessionUsage) {}

    fn count_dropped(&mut self, _reason: DropReason) {}

    fn poll_events(&mut self, _events: &mut Vec<Event>) {}

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// What only one session of a UPF may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    Teid(u32),
    Address(Ipv4Addr),
}

impl RecordingDatapath {
    /// Two sessions that share a TEID or an address, if any.
    pub fn duplicate(&self) -> Option<String> {
        let mut seen = HashMap::new();
        for session in self.sessions.values() {
            let tunnels = session.pdrs.iter().filter_map(|pdr| match pdr.source {
                Source::Tunnel { teid, .. } => Some(Name::Teid(teid.0)),
                Source::Network => None,
            });
            let address = session.ue.v4.map(Name::Address);
            for name in tunnels.chain(address) {
                if seen.insert(name, session.id).is_some_and(|other| other != session.id) {
                    return Some(format!("{name:?} belongs to two sessions of the UPF"));
                }
            }
        }
        None
    }

    /// The event that a downlink packet for that session causes: a report if it is buffered and reporting is
    /// requested; or, with `lost`, an Error Indication of the peer, which has lost the tunnel.
    fn downlink_data(&self, at: usize, lost: bool) -> Option<Event> {
        let session = self.sessions.values().nth(at % self.sessions.len().max(1))?;
        let pdr = session.pdrs.iter().find(|pdr| pdr.source.direction() == Direction::Downlink)?;
        let far = session.fars.iter().find(|far| far.id == pdr.far)?;
        match far.action {
            Action::Buffer { notify: true, .. } => {
                Some(Event::DownlinkData { session: session.id, pdr: pdr.id, qfi: None, dscp: 0 })
            }
            Action::Forward(Destination::Tunnel(tunnel)) if lost => {
                Some(Event::ErrorIndication { peer: tunnel.peer, teid: tunnel.teid })
            }
            _ => None,
        }
    }

    /// The place of the session with that UE address.
    pub fn session_of(&self, ue: Ipv4Addr) -> Option<usize> {
        self.sessions.values().position(|session| session.ue.v4 == Some(ue))
    }

    /// The downlink tunnel of the first session, if its packets are forwarded.
    pub fn first_downlink_tunnel(&self) -> Option<Tunnel> {
        let session = self.sessions.values().next()?;
        session.fars.iter().find_map(|far| match far.action {
            Action::Forward(Destination::Tunnel(tunnel)) => Some(tunnel),
            _ => None,
        })
    }
}

/// A UPF, its start time, and its datapath.
pub(crate) struct UserPlane {
    pub upf: Upf,
    pub datapath: RecordingDatapath,
    born: Instant,
}

impl UserPlane {
    /// `has_set`: its SMFs are a set.
    pub fn start(upf: usize, has_set: bool, now: Instant) -> Self {
        let n3 = GtpuAddress { v4: Some(upf_n3(upf)), v6: None };
        let started = EPOCH + now.as_micros() / 1_000_000;
        let mut config = Config::new(upf_n4(upf).ip(), n3, started);
        config.heartbeat_interval = Duration::from_secs(30);
        let network = AddressRange { address: smf_n4(0).ip(), prefix: 24 };
        config.smfs = vec![PermittedSmf { network, port: None }];
        config.smf_sets = if has_set { vec![SMF_SET.into()] } else { Vec::new() };
        // Each run has other identifiers, and yet a world is reproducible.
        let mut seed = [upf as u8; 32];
        seed[..8].copy_from_slice(&now.as_micros().to_le_bytes());
        Self { upf: Upf::new(config, seed), datapath: RecordingDatapath::default(), born: now }
    }

    pub fn handle(&mut self, now: Instant, input: Input<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.upf.handle(now.since(self.born), input, &mut self.datapath, &mut effects);
        effects
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.upf.next_timeout().map(|after| self.born + after)
    }

    /// A downlink packet arrives for one of the sessions; `lost`: the gNB has lost its tunnel.
    pub fn downlink_packet(&mut self, now: Instant, at: usize, lost: bool) -> Vec<Effect> {
        match self.datapath.downlink_data(at, lost) {
            Some(event) => self.handle(now, Input::Event(event)),
            None => Vec::new(),
        }
    }
}
