//! The UPF of a case, with its sessions.

use super::cases::Rules;
use super::frame::{FIRST_TEID, FIRST_UE, PORTS};
use crate::support::{UPF, session_of};
use pith_datapath::{DatapathConfig, PathChoice, UePool, UserPlane, XdpHook};
use pith_upf::contract::*;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A rate that no traffic reaches, in bit/s.
pub const UNLIMITED: u64 = 100_000_000_000;
/// A limit that no traffic reaches, in octets.
const MUCH: u64 = 1 << 50;

/// How a UPF is set up.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub sessions: u32,
    /// Of each session and direction, in bit/s.
    pub rate: u64,
    pub rules: Rules,
    pub nat: bool,
    /// Outer headers with the packet's ECN field and a source port of its flow.
    pub marking: bool,
}

impl Setup {
    /// Without NAT and limits.
    pub fn of(sessions: u32) -> Self {
        Self { sessions, rate: UNLIMITED, rules: Rules::Usual, nat: false, marking: true }
    }

    pub fn start(self) -> UserPlane {
        let Self { sessions, nat, marking, rules, .. } = self;
        // An eighth of the sessions may have filters.
        let room = if rules == Rules::Filters { sessions * 8 } else { sessions };
        let config = DatapathConfig {
            outer_ecn: marking,
            flow_ports: marking,
            n3_addresses: vec![UPF.into()],
            pools: vec![UePool { gateway: Ipv4Addr::new(10, 0, 0, 1).into(), prefix: 8 }],
            workers: 1,
            nat,
            path: PathChoice::Xdp,
            xdp_hook: XdpHook::Native,
            interfaces: vec!["n3".into(), "n6".into()],
            // The tables are made for one session at least.
            sessions: room.max(1),
            ..DatapathConfig::default()
        };
        let mut upf = UserPlane::start(config).unwrap();
        (0..sessions).for_each(|number| upf.install(Arc::new(self.session(number))));
        upf
    }

    fn session(self, number: u32) -> Session {
        let ue = Ipv4Addr::from_bits(FIRST_UE.to_bits() + number);
        let mut session = session_of(u64::from(number) + 1, ue, FIRST_TEID + number, 0x10_0000 + number);
        session.qers[1].mbr = Some(Rates { uplink: self.rate, downlink: self.rate });
        match self.rules {
            Rules::Usual => {}
            Rules::Filters => add_filters(&mut session),
            Rules::Quota => {
                let limit = VolumeLimits { total: Some(MUCH), ..VolumeLimits::default() };
                (session.urrs[0].threshold, session.urrs[0].quota) = (limit, limit);
            }
        }
        session
    }
}

/// The matching filter is the third.
fn add_filters(session: &mut Session) {
    let usual = session.pdrs.clone();
    let texts = [
        "permit out 6 from any 443 to assigned".to_owned(),
        "permit out 17 from 192.0.2.0/24 to assigned 8000-8010".to_owned(),
        format!("permit out 17 from any {} to assigned {}", PORTS.1, PORTS.0),
    ];
    for (at, text) in texts.iter().enumerate() {
        let filters = text.parse::<FlowDescription>().unwrap().filters;
        for (way, pdr) in usual.iter().enumerate() {
            let id = PdrId((10 + 2 * at + way) as u16);
            session.pdrs.push(Pdr { id, precedence: at as u32 + 1, filters: filters.clone(), ..pdr.clone() });
        }
    }
}
