//! Frames that the program must not handle, with native and generic hook: for other hosts and VLANs, GTP-U on
//! interfaces without gNBs, wrong checksums.

mod support;
#[path = "packet_fuzz/fuzz/wire.rs"]
#[allow(dead_code)]
mod wire;

use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::*;
use std::net::{Ipv4Addr, UdpSocket};
use support::*;

const HOST: [u8; 6] = [2, 0, 0, 0, 0, 2];
const SOMEBODY: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// The MAC of an interface of this namespace.
fn link_of(interface: &str) -> [u8; 6] {
    let line = run(&format!("ip -o link show {interface}"));
    let text = line.split("link/ether ").nth(1).expect("a link address");
    let octets = text[..17].split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap());
    octets.collect::<Vec<_>>().try_into().unwrap()
}

fn frame(to: [u8; 6], packet: &[u8]) -> Vec<u8> {
    [&to[..], &HOST, &[8, 0], packet].concat()
}

fn tagged(vlan: u16, frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0], &vlan.to_be_bytes(), &frame[12..]].concat()
}

/// The packet that carries a message from `source` to the N3 address.
fn outer(source: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    let mut packet = udp(source, UPF, GTPU_PORT, message);
    packet[20..22].copy_from_slice(&GTPU_PORT.to_be_bytes());
    packet
}

/// A G-PDU of the session with a packet to the server.
fn uplink(payload: &[u8]) -> Vec<u8> {
    outer(GNB, &gpdu(TEID, &udp(UE, SERVER, 7000, payload)))
}

fn downlink(payload: &[u8]) -> Vec<u8> {
    udp(SERVER, UE, 5000, payload)
}

/// A lab, and sockets that send frames from either side.
struct Frames {
    lab: Lab,
    radio: UdpSocket,
    network: UdpSocket,
    links: [[u8; 6]; 2],
    server: UdpSocket,
}

impl Frames {
    fn each() -> impl Iterator<Item = Self> {
        labs().filter(|lab| lab.kind != Kind::Portable).map(|mut lab| {
            lab.install(session());
            let open = |host: &Host| host.run(|| wire::open("eth0", false));
            let (radio, network) = (open(&lab.radio), open(&lab.server));
            let links = [link_of("n3"), link_of("n6")];
            let server = lab.data_network(7000);
            Self { lab, radio, network, links, server }
        })
    }

    /// Packets passed by user space, packets received and sent, and drops by `reason`.
    fn state(&self, reason: DropReason) -> [u64; 6] {
        let Counters { n3_in, n3_out, n6_in, n6_out, .. } = self.lab.upf.counters();
        let [n3_in, n3_out, n6_in, n6_out] = [n3_in, n3_out, n6_in, n6_out].map(|traffic| traffic.packets);
        let dropped = self.lab.upf.counters().dropped(reason);
        [self.lab.user_packets(1), n3_in, n3_out, n6_in, n6_out, dropped]
    }

    /// A packet in each direction is forwarded by the program alone.
    fn both_pass(&self) {
        let before = self.lab.user_packets(1);
        wire::send(&self.radio, &frame(self.links[0], &uplink(b"up")));
        assert_eq!(receive(&self.server), b"up");
        wire::send(&self.network, &frame(self.links[1], &downlink(b"down")));
        assert_eq!(self.lab.downlink().payload(), b"down");
        assert_eq!(self.lab.user_packets(1), before);
    }

    /// These frames are neither forwarded nor counted.
    fn come_to_nothing(&self, from: &UdpSocket, frames: &[Vec<u8>]) {
        let before = self.state(DropReason::BadChecksum);
        frames.iter().for_each(|frame| wire::send(from, frame));
        assert!(self.lab.gnb_hears_nothing());
        assert_eq!(self.state(DropReason::BadChecksum), before);
        assert_eq!(self.lab.upf.counters().dropped, []);
        self.both_pass();
    }
}

#[test]
fn frames_for_other_hosts_are_left_to_the_kernel_and_those_for_all_hosts_are_its_to_take() {
    for frames in Frames::each() {
        frames.both_pass();
        frames.come_to_nothing(&frames.radio, &[frame(SOMEBODY, &uplink(b"x"))]);
        frames.come_to_nothing(&frames.network, &[frame(SOMEBODY, &downlink(b"x"))]);
        // The kernel forwards no broadcast.
        frames.come_to_nothing(&frames.network, &[frame([0xff; 6], &downlink(b"x"))]);
        let before = frames.lab.user_packets(1);
        for to in [[0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
            wire::send(&frames.radio, &frame(to, &uplink(b"for all")));
            assert_eq!(receive(&frames.server), b"for all");
        }
        assert_eq!(frames.lab.user_packets(1), before + 2, "its socket took them");
    }
}

#[test]
fn frames_of_a_vlan_come_to_nothing_where_none_is_configured() {
    for frames in Frames::each() {
        let [up, down] = [uplink(b"x"), downlink(b"x")];
        for vlan in [1, 7, 0xfff] {
            frames.come_to_nothing(&frames.network, &[tagged(vlan, &frame(frames.links[1], &down))]);
        }
        for (vlan, dropped) in [1, 7, 0xfff].into_iter().zip(1..) {
            wire::send(&frames.radio, &tagged(vlan, &frame(frames.links[0], &up)));
            frames.lab.wait_dropped(DropReason::UnsupportedGtpu, dropped);
            frames.both_pass();
        }
        // A tag with VLAN ID 0 carries a priority only (IEEE 802.1Q 9.6).
        wire::send(&frames.radio, &tagged(0x6000, &frame(frames.links[0], &uplink(b"priority"))));
        assert_eq!(receive(&frames.server), b"priority");
        assert_eq!(frames.lab.user_packets(1), 0);
    }
}

#[test]
fn gtpu_from_the_data_network_is_dropped_by_name_and_gets_no_answer() {
    for frames in Frames::each() {
        let from = |packet: &[u8]| frame(frames.links[1], packet);
        let mut fragment = uplink(&[0; 64]);
        fragment[6] = 0x20;
        // Flag MF instead of DF.
        let (sum, carry) = u16::from_be_bytes([fragment[10], fragment[11]]).overflowing_add(0x2000);
        fragment[10..12].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
        let all = [
            uplink(b"forged"),
            outer(SERVER, &gpdu(TEID, &udp(UE, SERVER, 7000, b"forged"))),
            outer(SERVER, &gpdu(0xdead, b"no session")),
            outer(SERVER, &[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 7, 0, 0]),
            fragment,
        ];
        let before = frames.state(DropReason::UnsupportedGtpu);
        for packet in &all {
            wire::send(&frames.network, &from(packet));
        }
        frames.lab.wait_dropped(DropReason::UnsupportedGtpu, all.len() as u64);
        assert!(frames.lab.gnb_hears_nothing());
        let [user, n3_in, n3_out, n6_in, n6_out, _] = before;
        let come = all.len() as u64;
        let after = [user, n3_in, n3_out, n6_in + come, n6_out, come];
        assert_eq!(frames.state(DropReason::UnsupportedGtpu), after);
        // To the same address but not GTP-U: left to the kernel.
        let mut other = udp(SERVER, UPF, 9, b"x");
        other[22..24].copy_from_slice(&9u16.to_be_bytes());
        wire::send(&frames.network, &from(&other));
        frames.both_pass();
        let dropped = vec![(DropReason::UnsupportedGtpu, come)];
        assert_eq!(frames.lab.upf.counters().dropped, dropped);
    }
}

#[test]
fn packets_with_a_wrong_outer_ipv4_checksum_are_dropped_by_name() {
    for frames in Frames::each() {
        let mut dropped = 0;
        for (wire, link, packet) in [
            (&frames.radio, frames.links[0], uplink(b"x")),
            (&frames.network, frames.links[1], downlink(b"x")),
        ] {
            for at in [1, 8, 10, 11] {
                let mut wrong = packet.clone();
                wrong[at] ^= 1;
                wire::send(wire, &frame(link, &wrong));
                dropped += 1;
                frames.lab.wait_dropped(DropReason::BadChecksum, dropped);
            }
        }
        assert!(frames.lab.gnb_hears_nothing());
        assert_eq!(frames.state(DropReason::BadChecksum), [0, 4, 0, 4, 0, 8]);
        frames.both_pass();
    }
}
