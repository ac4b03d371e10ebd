//! Under load and changes: no packet is lost without a drop reason, and none is reordered.

mod support;

use pith_datapath::{BufferLimits, DatapathConfig};
use pith_upf::contract::*;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use support::random::Random;
use support::*;

#[test]
fn a_session_that_falls_idle_and_wakes_under_traffic_loses_and_reorders_nothing() {
    const PACKETS: u32 = 20_000;
    let buffer = BufferLimits { session_packets: PACKETS as usize, ..BufferLimits::default() };
    let config = DatapathConfig { workers: 2, buffer, ..DatapathConfig::default() };
    for mut lab in labs_with(config) {
        lab.install(session());
        let server = lab.data_network(7000);
        let sender = thread::spawn(move || {
            for number in 0..PACKETS {
                server.send_to(&number.to_be_bytes(), (UE, 5000)).unwrap();
                if number % 32 == 0 {
                    thread::sleep(Duration::from_micros(200));
                }
            }
        });
        let gnb = lab.gnb.try_clone().unwrap();
        receive_much(&gnb);
        let receiver = thread::spawn(move || {
            let mut buffer = [0; 100];
            for expected in 0..PACKETS {
                let length = gnb.recv(&mut buffer).expect("a packet more");
                let number = u32::from_be_bytes(buffer[length - 4..length].try_into().unwrap());
                assert_eq!(number, expected);
            }
        });
        let (active, idle) = (Arc::new(session()), Arc::new(idle()));
        while !sender.is_finished() {
            lab.upf.install(Arc::clone(&idle));
            thread::sleep(Duration::from_micros(300));
            lab.upf.install(Arc::clone(&active));
            thread::sleep(Duration::from_micros(100));
        }
        receiver.join().unwrap();
        let volume = lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume;
        assert_eq!((volume.downlink_packets, volume.downlink), (PACKETS.into(), u64::from(PACKETS) * 32));
        let counters = lab.upf.counters();
        assert_eq!((counters.buffered, counters.dropped), (0, vec![]));
    }
}

#[test]
fn every_packet_is_forwarded_or_dropped_by_name() {
    for mut lab in labs() {
        lab.install(session());
        let mut noise = Random::of(1);
        for sent in 1..=20_000u64 {
            let mut packet = udp(UE, SERVER, 7000, &vec![7; noise.below(200)]);
            for _ in 0..noise.below(4) {
                let at = noise.below(packet.len());
                packet[at] = noise.below(256) as u8;
            }
            packet.truncate(packet.len() - noise.below(packet.len()) * noise.below(2));
            let teid = if noise.below(20) == 0 { noise.below(1000) as u32 } else { TEID };
            lab.uplink(teid, &packet);
            if sent % 200 == 0 {
                wait_for("all packets", || lab.upf.counters().n3_in.packets == sent);
            }
        }
        let balanced = || {
            let Counters { n3_in, n3_out, n6_in, n6_out, dropped, .. } = lab.upf.counters();
            let dropped: u64 = dropped.iter().map(|(_, count)| count).sum();
            n3_in.packets + n6_in.packets == n3_out.packets + n6_out.packets + dropped
        };
        wait_for("as many out as in", balanced);
        let counters = lab.upf.counters();
        for reason in [DropReason::UnknownTeid, DropReason::MalformedInner, DropReason::SpoofedSource] {
            assert!(counters.dropped(reason) > 100, "{counters:?}");
        }
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"still here"));
        while receive(&server) != b"still here" {}
    }
}

#[test]
fn sessions_come_and_go_under_traffic_and_every_byte_is_counted_once() {
    for mut lab in labs() {
        let _server = lab.data_network(7000);
        let gnb = lab.gnb.try_clone().unwrap();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let traffic = thread::spawn(move || {
            let packet = udp(UE, SERVER, 7000, b"hello");
            let lab_header = [0x30, 255, 0, packet.len() as u8, 0, 0, 1, 0];
            let datagram = [&lab_header[..], &packet].concat();
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                gnb.send_to(&datagram, (UPF, 2152)).unwrap();
            }
        });
        let mut counted = 0;
        for _ in 0..200 {
            lab.install(session());
            thread::sleep(Duration::from_micros(500));
            counted += lab.upf.remove(SessionId(1)).unwrap().urrs[0].volume.uplink_packets;
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        traffic.join().unwrap();
        let balanced = || {
            let counters = lab.upf.counters();
            counters.n3_in.packets == counters.n6_out.packets + counters.dropped(DropReason::UnknownTeid)
        };
        wait_for("as many out as in", balanced);
        assert!(counted > 0);
        assert_eq!(counted, lab.upf.counters().n6_out.packets);
    }
}
