//! The UDP echo service (RFC 862): the data network's end of streams.

use super::cli::EchoOptions;
use anyhow::{Context, Result};
use std::net::UdpSocket;

/// Maximum octets of a UDP datagram over IPv4.
const DATAGRAM: usize = 65_507;

/// Returns every datagram, until the process is ended.
pub fn echo(options: &EchoOptions) -> Result<bool> {
    let socket = UdpSocket::bind(options.listen).with_context(|| {
        format!(
            "binding UDP {}; ports below 1024 need root, --listen ADDR:PORT selects another",
            options.listen
        )
    })?;
    eprintln!("echoing on UDP {}; Ctrl-C ends", options.listen);
    let mut buffer = vec![0; DATAGRAM];
    loop {
        // An error concerns one datagram, for instance an earlier answer to a closed port.
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let _ = socket.send_to(buffer.get(..length).unwrap_or_default(), from);
    }
}
