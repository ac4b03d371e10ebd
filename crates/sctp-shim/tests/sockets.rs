//! Programs that use kernel SCTP sockets, with the shim preloaded: instances of this test in several roles.
#![allow(unsafe_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use libc::{c_int, iovec, msghdr, sockaddr_in};

const ROLE: &str = "PITH_SHIM_ROLE";
const PORT: &str = "PITH_SHIM_PORT";

const SCTP_EVENTS: c_int = 11;
const SCTP_STATUS: c_int = 14;
const SCTP_SNDRCV: c_int = 1;
const MSG_NOTIFICATION: c_int = 0x8000;
const SCTP_ASSOC_CHANGE: u16 = 0x8001;
const SCTP_SHUTDOWN_EVENT: u16 = 0x8005;

/// Messages that a slow reader receives.
const FLOOD: usize = 4_000;
const FLOOD_MESSAGE: usize = 1_000;

// ---- the tests ----

#[test]
fn a_client_and_a_server_exchange_messages_with_stream_and_ppid() {
    converse("echo", 0);
}

#[test]
fn a_slow_reader_stops_the_sender_and_gets_everything() {
    converse("flood", 1);
}

#[test]
fn other_sockets_of_the_program_are_left_alone() {
    assert!(start("tcp", 2).wait().unwrap().success());
}

/// Runs a server and a client in these roles.
fn converse(topic: &str, test: u16) {
    let mut server = start(&format!("{topic} server"), test);
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(output.any(|line| line.ends_with("ready")), "no server");
    assert!(start(&format!("{topic} client"), test).wait().unwrap().success(), "the client failed");
    let rest: Vec<String> = output.collect();
    assert!(server.wait().unwrap().success(), "the server failed: {rest:#?}");
}

fn start(role: &str, test: u16) -> Child {
    let own = std::env::current_exe().unwrap();
    let shim =
        own.ancestors().find_map(|dir| Some(dir.join("libpith_sctp_shim.so")).filter(|path| path.exists()));
    let port = 20_000 + (std::process::id() % 10_000) as u16 + test;
    Command::new(&own)
        .args(["--exact", "play", "--ignored", "--nocapture"])
        .env("LD_PRELOAD", shim.expect("the shim, built with this test"))
        .env("PITH_SCTP", format!("udp:{}", port + 10_000 + test))
        .env(ROLE, role)
        .env(PORT, port.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test: the program in one of the roles.
#[test]
#[ignore = "started by the tests"]
fn play() {
    let port = std::env::var(PORT).map_or(0, |port| port.parse().unwrap());
    match std::env::var(ROLE).as_deref() {
        Ok("echo server") => echo_server(port),
        Ok("echo client") => echo_client(port),
        Ok("flood server") => flood_server(port),
        Ok("flood client") => flood_client(port),
        Ok("tcp") => tcp(port),
        _ => {}
    }
}

// ---- the roles ----

fn echo_server(port: u16) {
    let socket = accept_one(port);
    loop {
        match receive(socket) {
            Received::Message { stream, ppid, payload } => send(socket, stream, ppid, &payload),
            Received::Notification(SCTP_SHUTDOWN_EVENT) => break,
            Received::Notification(kind) => assert_eq!(kind, SCTP_ASSOC_CHANGE),
            Received::End => panic!("no shutdown event"),
        }
    }
    assert!(matches!(receive(socket), Received::Notification(SCTP_ASSOC_CHANGE)));
    assert!(matches!(receive(socket), Received::End));
}

fn echo_client(port: u16) {
    let socket = open();
    let (name, length) = loopback(port);
    check(unsafe { libc::connect(socket, (&raw const name).cast(), length) });
    assert!(matches!(receive(socket), Received::Notification(SCTP_ASSOC_CHANGE)));

    let mut status = [0_u16; 88];
    let mut length = 176;
    check(unsafe {
        libc::getsockopt(socket, libc::IPPROTO_SCTP, SCTP_STATUS, (&raw mut status).cast(), &raw mut length)
    });
    let (inbound, outbound) = (status[8], status[9]);
    assert!(inbound > 0 && outbound > 3, "{inbound} streams in, {outbound} out");

    for n in 0..100_u32 {
        let payload = vec![n as u8; n as usize * 50 + 1];
        send(socket, (n % 4) as u16, 60, &payload);
        assert_eq!(receive(socket), Received::Message { stream: (n % 4) as u16, ppid: 60, payload });
    }
    check(unsafe { libc::close(socket) });
    // The engine completes the shutdown after `close` has returned.
    std::thread::sleep(std::time::Duration::from_millis(300));
}

fn flood_server(port: u16) {
    let socket = accept_one(port);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut messages = (0_u32..).zip(std::iter::from_fn(|| {
        loop {
            match receive(socket) {
                Received::Message { payload, .. } => return Some(payload),
                Received::Notification(_) => {}
                Received::End => return None,
            }
        }
    }));
    let count =
        messages.by_ref().inspect(|(n, m)| assert_eq!(m[..4], n.to_be_bytes(), "message {n}")).count();
    assert_eq!(count, FLOOD);
}

fn flood_client(port: u16) {
    let socket = open();
    let (name, length) = loopback(port);
    check(unsafe { libc::connect(socket, (&raw const name).cast(), length) });
    let mut message = vec![0; FLOOD_MESSAGE];
    for n in 0..FLOOD as u32 {
        message[..4].copy_from_slice(&n.to_be_bytes());
        send(socket, 1, 60, &message);
    }
    check(unsafe { libc::shutdown(socket, libc::SHUT_WR) });
    while receive(socket) != Received::End {}
}

fn tcp(port: u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"as ever").unwrap();
    drop(client);
    let mut received = String::new();
    server.read_to_string(&mut received).unwrap();
    assert_eq!(received, "as ever");
}

// ---- sockets as C programs use them ----

fn check(result: c_int) -> c_int {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

/// A one-to-one socket with the events that UERANSIM asks for.
fn open() -> c_int {
    let socket = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP) });
    let events = [1_u8, 1, 1, 1, 1, 1, 1, 0];
    check(unsafe {
        libc::setsockopt(socket, libc::IPPROTO_SCTP, SCTP_EVENTS, (&raw const events).cast(), 8)
    });
    socket
}

fn loopback(port: u16) -> (sockaddr_in, u32) {
    let name = sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    (name, size_of::<sockaddr_in>() as u32)
}

fn accept_one(port: u16) -> c_int {
    let listener = open();
    let (mut name, mut length) = loopback(port);
    check(unsafe { libc::bind(listener, (&raw const name).cast(), length) });
    check(unsafe { libc::listen(listener, 5) });
    println!("ready");
    std::io::stdout().flush().unwrap();
    let socket = check(unsafe { libc::accept(listener, (&raw mut name).cast(), &raw mut length) });
    assert_eq!(name.sin_addr.s_addr, u32::from_ne_bytes([127, 0, 0, 1]));
    socket
}

fn send(socket: c_int, stream: u16, ppid: u32, payload: &[u8]) {
    let mut control = [0_u64; 6];
    let mut vector = iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::IPPROTO_SCTP;
        (*header).cmsg_type = SCTP_SNDRCV;
        (*header).cmsg_len = libc::CMSG_LEN(32) as usize;
        let info = libc::CMSG_DATA(header);
        info.cast::<u16>().write_unaligned(stream);
        info.add(8).cast::<u32>().write_unaligned(ppid.to_be());
        libc::sendmsg(socket, &raw const message, 0)
    };
    assert_eq!(check(sent as c_int) as usize, payload.len());
}

#[derive(Debug, PartialEq)]
enum Received {
    Message { stream: u16, ppid: u32, payload: Vec<u8> },
    Notification(u16),
    End,
}

fn receive(socket: c_int) -> Received {
    let (mut buffer, mut control) = (vec![0_u8; 8192], [0_u64; 32]);
    let mut vector = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let length = check(unsafe { libc::recvmsg(socket, &raw mut message, 0) } as c_int);
    if length == 0 {
        return Received::End;
    }
    buffer.truncate(length as usize);
    assert_eq!(message.msg_flags & libc::MSG_EOR, libc::MSG_EOR);
    if message.msg_flags & MSG_NOTIFICATION != 0 {
        return Received::Notification(u16::from_ne_bytes([buffer[0], buffer[1]]));
    }
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message).as_ref().expect("message information");
        assert_eq!((header.cmsg_level, header.cmsg_type), (libc::IPPROTO_SCTP, SCTP_SNDRCV));
        let info = libc::CMSG_DATA(header);
        let stream = info.cast::<u16>().read_unaligned();
        let ppid = u32::from_be(info.add(8).cast::<u32>().read_unaligned());
        Received::Message { stream, ppid, payload: buffer }
    }
}
