//! A UPF between a gNB and a data network, each in its own namespace, on two CPUs, one of which is the UPF's
//! alone.
//!
//! ```text
//!   radio (namespace) ── veth, GTP-U ── UPF (namespace) ── veth, IP ── data network (namespace)
//! ```

use super::cpu::pin;
use super::support::{self, Host, UPF_N6, run as command};
use pith_datapath::{DatapathConfig, PortableDatapath};
use pith_upf::contract::*;
use std::net::Ipv4Addr;
use std::sync::Arc;

pub const RADIO: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
pub const UPF_N3: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(172, 17, 0, 2);
/// A next hop that does not exist: the data network's interface drops packets for it on reception. In a veth
/// the sending CPU also does the receiver's work, which is not the UPF's.
const NOBODY: Ipv4Addr = Ipv4Addr::new(172, 17, 0, 99);
/// The destination of UE packets, by that next hop.
pub const FAR_AWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The UPF's CPU; everything else uses the other.
pub const UPF_CPU: usize = 0;
/// The UPF's only worker.
pub const WORKER: &str = "pith-upf-0";

pub struct Net {
    pub radio: Host,
    pub server: Host,
    pub upf: Host,
}

impl Net {
    pub fn set_up() -> Self {
        let (radio, server, upf) = (Host::start(), Host::start(), Host::start());
        for (host, cpu) in [(&radio, 1), (&server, 1), (&upf, UPF_CPU)] {
            host.run(move || pin(cpu));
        }
        let (radio_id, server_id) = (radio.thread, server.thread);
        upf.run(move || {
            command(&format!("ip link add n3 type veth peer name eth0 netns {radio_id}"));
            command(&format!("ip link add n6 type veth peer name eth0 netns {server_id}"));
            command(&format!("ip addr add {UPF_N3}/24 dev n3"));
            command(&format!("ip addr add {UPF_N6}/24 dev n6"));
            command("ip link set n3 up");
            command("ip link set n6 up");
        });
        for (host, address) in [(&radio, RADIO), (&server, SERVER)] {
            host.run(move || {
                command(&format!("ip addr add {address}/24 dev eth0"));
                command("ip link set eth0 up");
            });
        }
        server.run(|| drop(command(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"))));
        upf.run(|| {
            command(&format!("ip neigh replace {NOBODY} lladdr 02:00:00:00:00:99 dev n6 nud permanent"));
            command(&format!("ip route add 192.0.2.0/24 via {NOBODY}"));
        });
        Self { radio, server, upf }
    }
}

/// A number of sessions, with TEID and address by number.
pub fn start_portable(sessions: u32) -> PortableDatapath {
    let config =
        DatapathConfig { n3_addresses: vec![UPF_N3.into()], workers: 1, ..DatapathConfig::default() };
    let mut upf = PortableDatapath::start(config).unwrap();
    install(&mut upf, sessions);
    upf
}

pub fn install(upf: &mut PortableDatapath, sessions: u32) {
    for number in 0..sessions {
        let mut session =
            support::session_of(u64::from(number) + 1, ue(number), 0x100 + number, 0x200 + number);
        let peer = Tunnel { peer: RADIO.into(), teid: Teid(0x200 + number), dscp: None };
        session.fars[1].action = Action::Forward(Destination::Tunnel(peer));
        session.qers[1].mbr = Some(Rates { uplink: 100_000_000_000, downlink: 100_000_000_000 });
        upf.install(Arc::new(session));
    }
}

pub fn ue(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 45, 1, 0).to_bits() + number)
}
