//! What tunnel headers have besides addresses: the ECN field (RFC 6040), and the source port of the packet's flow.
#![allow(unsafe_code)]

#[path = "support/rfc6040.rs"]
mod rfc6040;
mod support;

use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use rfc6040::LEAVING;
use std::collections::HashSet;
use std::io;
use std::mem::{size_of_val, zeroed};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;
use support::*;

/// The type of service with which a socket sends, and whether it receives that of packets.
fn set_tos(socket: &UdpSocket, tos: u8) {
    let is_v6 = socket.local_addr().unwrap().is_ipv6();
    let (level, send, receive) = if is_v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_RECVTCLASS)
    } else {
        (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_RECVTOS)
    };
    for (option, value) in [(send, i32::from(tos)), (receive, 1)] {
        let value = (&raw const value).cast();
        // SAFETY: the option's value is a readable C int.
        assert_eq!(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, 4) }, 0);
    }
}

/// A datagram: its octets, the source port, the type of service.
struct Received {
    octets: Vec<u8>,
    port: u16,
    tos: u8,
}

/// The next datagram; an error after the socket's time-out.
fn receive_with_tos(socket: &UdpSocket) -> io::Result<Received> {
    let mut octets = vec![0; 4096];
    // SAFETY: all zero is a valid value of these plain C structures.
    let (mut header, mut name) = unsafe { (zeroed::<libc::msghdr>(), zeroed::<libc::sockaddr_in6>()) };
    let mut part = libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: octets.len() };
    let mut control = [0u64; 8];
    (header.msg_name, header.msg_namelen) = ((&raw mut name).cast(), size_of_val(&name) as _);
    (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
    (header.msg_control, header.msg_controllen) = ((&raw mut control).cast(), size_of_val(&control) as _);
    // SAFETY: the header's pointers are to memory on this stack and to `octets`, writable for the lengths given.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    octets.truncate(usize::try_from(length).map_err(|_| io::Error::last_os_error())?);
    // SAFETY: the kernel wrote well-formed entries; the first octet of each is in bounds.
    let tos = unsafe { libc::CMSG_FIRSTHDR(&raw const header).as_ref().map(|entry| *libc::CMSG_DATA(entry)) };
    Ok(Received { octets, port: u16::from_be(name.sin6_port), tos: tos.unwrap_or(0) })
}

/// A packet of the UE with that type of service.
fn marked(tos: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = udp(UE, SERVER, port, payload);
    packet[1] = tos;
    packet[10..12].fill(0);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet
}

/// Sends each pair of inner and outer field up, and compares with what the server receives.
fn check_uplink(lab: &mut Lab, gnb: &UdpSocket, upf: IpAddr, lost: u64) {
    let server = lab.data_network(7000);
    set_tos(&server, 0);
    for (inner, outer, result) in LEAVING {
        set_tos(gnb, outer);
        gnb.send_to(&gpdu(TEID, &marked(0xb8 | inner, 7000, &[inner, outer])), (upf, 2152)).unwrap();
        match result {
            Some(ecn) => {
                let received = receive_with_tos(&server).unwrap();
                assert_eq!((received.octets, received.tos), (vec![inner, outer], 0xb8 | ecn));
            }
            None => lab.wait_dropped(DropReason::LostCongestion, lost),
        }
    }
}

#[test]
fn the_ecn_field_crosses_tunnels_in_both_directions() {
    for mut lab in
        labs_with(DatapathConfig { n3_addresses: vec![UPF_V6.into()], ..DatapathConfig::default() })
    {
        lab.install(session());
        let gnb = lab.gnb.try_clone().unwrap();
        check_uplink(&mut lab, &gnb, UPF.into(), 1);
        let gnb_v6 = lab.radio.run(|| UdpSocket::bind((GNB_V6, 2152)).unwrap());
        gnb_v6.set_read_timeout(Some(PATIENCE)).unwrap();
        set_tos(&gnb_v6, 0);
        let server = lab.data_network(7001);
        for (gnb, peer) in [(&gnb, IpAddr::from(GNB)), (&gnb_v6, GNB_V6.into())] {
            let mut session = session();
            let tunnel = Tunnel { dscp: Some(10), ..tunnel_to(peer, GNB_TEID) };
            session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel));
            lab.install(session);
            for ecn in 0..4 {
                set_tos(&server, 0x48 | ecn);
                server.send_to(b"hello", (UE, 5000)).unwrap();
                let received = receive_with_tos(gnb).unwrap();
                assert_eq!(received.tos, 10 << 2 | ecn);
                assert_eq!(received.octets[received.octets.len() - 33 + 1], 0x48 | ecn);
            }
        }
        check_uplink(&mut lab, &gnb_v6, UPF_V6.into(), 2);
    }
}

#[test]
fn outer_headers_have_no_ecn_if_the_receiver_does_not_know_it() {
    let config = DatapathConfig { outer_ecn: false, flow_ports: false, ..DatapathConfig::default() };
    for mut lab in labs_with(config) {
        lab.install(session());
        let server = lab.data_network(7000);
        set_tos(&server, 3);
        set_tos(&lab.gnb, 0);
        server.send_to(b"hello", (UE, 5000)).unwrap();
        let received = receive_with_tos(&lab.gnb).unwrap();
        assert_eq!((received.tos, received.port), (0, 2152));
    }
}

/// Also packets that wait for their rate, which go through user space by AF_XDP, have the port and the field of their flow.
#[test]
fn a_flow_has_one_source_port_within_and_above_its_rate() {
    for mut lab in labs() {
        let mut session = session();
        session.qers[1].mbr = Some(Rates { uplink: 10_000_000, downlink: 10_000_000 });
        lab.install(session);
        receive_much(&lab.gnb);
        set_tos(&lab.gnb, 0);
        let server = lab.data_network(7000);
        set_tos(&server, 2);
        let mut ports = HashSet::new();
        for ue_port in 5000..5010u16 {
            for _ in 0..60 {
                server.send_to(&[7; 972], (UE, ue_port)).unwrap();
            }
            lab.gnb.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let (mut of_flow, mut fields, mut count) = (HashSet::new(), HashSet::new(), 0);
            while let Ok(received) = receive_with_tos(&lab.gnb) {
                of_flow.insert(received.port);
                fields.insert(received.tos);
                count += 1;
            }
            assert!(count > 25, "{count}");
            // The queue may mark packets: the outer field is that of the packet.
            assert!(fields.is_subset(&HashSet::from([2, 3])), "{fields:?}");
            // With the generic hook, packets above the rate leave by the GTP-U socket.
            assert!(of_flow.len() == 1 || lab.kind == Kind::Generic, "{of_flow:?}");
            ports.extend(of_flow);
        }
        match lab.kind {
            Kind::Portable => assert_eq!(ports, HashSet::from([2152])),
            Kind::Generic => {}
            Kind::Native => {
                assert!(lab.user_packets(1) > 50, "packets by AF_XDP");
                assert!(ports.len() > 7 && ports.iter().all(|port| *port >= 49_152), "{ports:?}");
            }
        }
    }
}
