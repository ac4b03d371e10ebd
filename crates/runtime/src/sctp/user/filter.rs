//! A socket filter that keeps other programs' SCTP packets out of a raw socket.
//!
//! A raw socket gets a copy of every SCTP packet of its namespace, on loopback even the packets that it sent
//! itself. This classic BPF program passes only packets for this process's ports, so that the rest costs no
//! system calls. It is an optimization only: the endpoint checks every packet again.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MSH,
    BPF_RET,
};
use libc::{sock_filter, sock_fprog};

use super::ports::BLOCK;
use crate::sctp::poll::set_option;

/// Offset of the destination port in the SCTP header.
const DESTINATION_PORT: u32 = 2;
/// Jumps are 8 bits wide; a program for more ports passes everything.
const MAX_PORTS: usize = 240;

/// The first header of a raw socket's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// The IPv4 header.
    Ipv4,
    /// The SCTP header, as raw IPv6 sockets deliver it.
    Bare,
}

/// Passes packets for `ports`, and for the blocks of [`BLOCK`] ports that begin at `blocks`.
pub(super) fn attach(fd: BorrowedFd<'_>, framing: Framing, ports: &[u16], blocks: &[u16]) -> io::Result<()> {
    let mut program = program(framing, ports, blocks);
    let header = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &header)
}

fn program(framing: Framing, ports: &[u16], blocks: &[u16]) -> Vec<sock_filter> {
    if ports.len() + blocks.len() > MAX_PORTS {
        return vec![accept()];
    }
    let mut program = load_destination_port(framing);
    let mut remaining = ports.len() + blocks.len() + 1;
    for &port in ports {
        program.push(jump_to_accept_if(port, remaining));
        remaining -= 1;
    }
    program.push(statement(BPF_ALU | BPF_AND | BPF_K, u32::from(!(BLOCK - 1))));
    for &block in blocks {
        remaining -= 1;
        program.push(jump_to_accept_if(block, remaining));
    }
    program.push(statement(BPF_RET | BPF_K, 0));
    program.push(accept());
    program
}

fn load_destination_port(framing: Framing) -> Vec<sock_filter> {
    match framing {
        Framing::Bare => vec![statement(BPF_LD | BPF_H | BPF_ABS, DESTINATION_PORT)],
        Framing::Ipv4 => vec![
            statement(BPF_LDX | BPF_B | BPF_MSH, 0), // X = length of the IPv4 header
            statement(BPF_LD | BPF_H | BPF_IND, DESTINATION_PORT),
        ],
    }
}

fn jump_to_accept_if(port: u16, distance: usize) -> sock_filter {
    sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: distance as u8, jf: 0, k: u32::from(port) }
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn accept() -> sock_filter {
    statement(BPF_RET | BPF_K, u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Sends packets for these ports through the kernel's interpreter, and returns the ports that passed.
    fn passed(framing: Framing, ports: &[u16], blocks: &[u16], sent: &[u16]) -> Vec<u16> {
        let (from, to) = UnixDatagram::pair().unwrap();
        attach(to.as_fd(), framing, ports, blocks).unwrap();
        to.set_nonblocking(true).unwrap();
        let header: &[u8] = if framing == Framing::Ipv4 { &[0x46; 24] } else { &[] };
        let mut packet = [0; 64];
        sent.iter()
            .filter(|port| {
                let sctp = [&[0, 7], port.to_be_bytes().as_slice(), &[0; 12]].concat();
                from.send(&[header, &sctp].concat()).unwrap();
                to.recv(&mut packet).is_ok()
            })
            .copied()
            .collect()
    }

    #[test]
    fn only_packets_for_own_ports_and_blocks_pass() {
        let sent = [1, 38411, 38412, 38413, 40959, 40960, 41215, 41216, 65280, 65535];
        for framing in [Framing::Ipv4, Framing::Bare] {
            let through = passed(framing, &[1, 38412], &[40960, 65280], &sent);
            assert_eq!(through, [1, 38412, 40960, 41215, 65280, 65535], "{framing:?}");
            assert_eq!(passed(framing, &[38412], &[], &sent), [38412]);
            assert_eq!(passed(framing, &[], &[65280], &sent), [65280, 65535]);
            assert!(passed(framing, &[], &[], &sent).is_empty());
        }
    }

    #[test]
    fn the_longest_program_still_reaches_its_end() {
        let ports: Vec<u16> = (1..=112).collect();
        let blocks: Vec<u16> = (128..=255).map(|b| b * BLOCK).collect();
        assert_eq!(passed(Framing::Ipv4, &ports, &blocks, &[1, 112, 113, 32767, 65535]), [1, 112, 65535]);
    }

    #[test]
    fn with_too_many_ports_everything_passes() {
        let ports: Vec<u16> = (1..=300).collect();
        assert_eq!(passed(Framing::Ipv4, &ports, &[], &[5000]), [5000]);
    }
}
