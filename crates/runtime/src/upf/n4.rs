//! The socket of N4: one system call for many datagrams.
#![allow(unsafe_code)]

use crate::sctp::{decode_address, encode_address};
use libc::{iovec, mmsghdr, sockaddr_storage};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Datagrams of a batch; events get their turn between two.
const BATCH: usize = 32;
/// Longer than any datagram. Pages of the buffers that no datagram reaches take no memory.
const LONGEST: usize = 65_536;

/// The socket, with datagrams to send.
pub struct N4 {
    socket: UdpSocket,
    pending: Vec<(SocketAddr, Vec<u8>)>,
}

/// Received datagrams.
pub struct Batch {
    headers: Vec<mmsghdr>,
    /// The headers point at these, and they at the buffers. None is moved or reallocated.
    vectors: Vec<iovec>,
    names: Vec<sockaddr_storage>,
    buffers: Box<[u8]>,
    /// Headers that the kernel has filled, which are prepared before the next call.
    filled: usize,
    /// The sender of each buffer's datagram, and its length; `None` for a sender of an unknown address family.
    received: Vec<Option<(SocketAddr, usize)>>,
}

// SAFETY: the pointers are only used within `N4::receive`, which borrows the batch.
unsafe impl Send for Batch {}

impl N4 {
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, pending: Vec::with_capacity(BATCH) })
    }

    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Replaces the datagrams of a batch by those that the socket has. Returns whether it has no more.
    pub fn receive(&self, batch: &mut Batch) -> bool {
        batch.prepare();
        // SAFETY: each header points at a name and a vector of the batch, and the vector at a buffer of the batch.
        let count = unsafe {
            let none = std::ptr::null_mut();
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                batch.headers.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT as _,
                none,
            )
        };
        batch.filled = usize::try_from(count).unwrap_or(0);
        let filled = batch.headers.iter().zip(&batch.names).take(batch.filled);
        batch
            .received
            .extend(filled.map(|(header, name)| Some((decode_address(name)?, header.msg_len as usize))));
        batch.filled < BATCH
    }

    /// Sends with the next [`flush`](Self::flush).
    pub fn send(&mut self, peer: SocketAddr, octets: Vec<u8>) {
        self.pending.push((peer, octets));
    }

    /// Sends what is pending. A datagram that cannot be sent is lost; lost requests are retransmitted after T1.
    pub fn flush(&mut self) {
        let mut rest = &self.pending[..];
        while !rest.is_empty() {
            let sent = match send_some(&self.socket, rest) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => {
                    if let Some((peer, _)) = rest.first() {
                        tracing::debug!(%peer, %error, "cannot send a PFCP datagram");
                    }
                    1
                }
            };
            rest = rest.get(sent..).unwrap_or_default();
        }
        self.pending.clear();
    }
}

impl AsFd for N4 {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Batch {
    pub fn new() -> Self {
        // SAFETY: all-zero bytes are valid for these C structures.
        let (header, vector, name) = unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            headers: vec![header; BATCH],
            vectors: vec![vector; BATCH],
            names: vec![name; BATCH],
            buffers: vec![0; BATCH * LONGEST].into(),
            filled: BATCH,
            received: Vec::with_capacity(BATCH),
        }
    }

    /// Prepares the headers that the last call has filled: the kernel leaves others as they are.
    fn prepare(&mut self) {
        self.received.clear();
        let parts = self.buffers.chunks_exact_mut(LONGEST).zip(&mut self.vectors).zip(&mut self.names);
        for (header, ((buffer, vector), name)) in self.headers.iter_mut().zip(parts).take(self.filled) {
            *vector = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let header = &mut header.msg_hdr;
            (header.msg_name, header.msg_namelen) = ((&raw mut *name).cast(), size_of_val(name) as _);
            (header.msg_iov, header.msg_iovlen) = (vector, 1);
        }
    }

    /// The datagrams, in the order of their arrival, with their senders.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let buffers = self.buffers.chunks_exact(LONGEST).zip(&self.received);
        buffers.filter_map(|(buffer, received)| {
            let (peer, length) = (*received)?;
            Some((peer, buffer.get(..length)?))
        })
    }
}

/// Sends a batch at most, and returns how many the kernel took; an error is that of the first one.
fn send_some(socket: &UdpSocket, datagrams: &[(SocketAddr, Vec<u8>)]) -> io::Result<usize> {
    if let [(peer, octets)] = datagrams {
        // The arrays below take longer to fill than most datagrams to send.
        return socket.send_to(octets, peer).map(|_| 1);
    }
    // SAFETY: all-zero bytes are valid for these C structures.
    let (mut headers, mut vectors, mut names) = unsafe {
        (
            std::mem::zeroed::<[mmsghdr; BATCH]>(),
            std::mem::zeroed::<[iovec; BATCH]>(),
            std::mem::zeroed::<[sockaddr_storage; BATCH]>(),
        )
    };
    let parts = datagrams.iter().zip(&mut vectors).zip(&mut names);
    for (header, (((peer, octets), vector), name)) in headers.iter_mut().zip(parts) {
        let length;
        (*name, length) = encode_address(*peer);
        *vector = iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
        let header = &mut header.msg_hdr;
        (header.msg_name, header.msg_namelen) = ((&raw mut *name).cast(), length);
        (header.msg_iov, header.msg_iovlen) = (vector, 1);
    }
    let count = datagrams.len().min(BATCH) as u32;
    // SAFETY: the first `count` headers point at names and vectors on this stack, and the vectors at the datagrams, which the
    // kernel only reads.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pair() -> (N4, UdpSocket) {
        let (socket, peer) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        peer.connect(socket.local_addr().unwrap()).unwrap();
        (N4::new(socket).unwrap(), peer)
    }

    #[test]
    fn more_than_a_batch_is_received_in_order() {
        let (n4, peer) = pair();
        let longest = vec![7; 65_507];
        peer.send(&longest).unwrap();
        for number in 0..BATCH as u32 {
            peer.send(&number.to_be_bytes()).unwrap();
        }
        let (mut batch, mut all) = (Batch::new(), Vec::new());
        let mut add = |batch: &Batch| all.extend(batch.iter().map(|(from, octets)| (from, octets.to_vec())));
        assert!(!n4.receive(&mut batch), "there is one more");
        add(&batch);
        assert!(n4.receive(&mut batch));
        add(&batch);
        assert!(n4.receive(&mut batch));
        assert_eq!(batch.iter().count(), 0);
        assert!(all.iter().all(|(from, _)| *from == peer.local_addr().unwrap()));
        assert_eq!(all[0].1, longest);
        let numbers = all[1..].iter().map(|(_, octets)| u32::from_be_bytes(octets[..].try_into().unwrap()));
        assert!(numbers.eq(0..BATCH as u32));
    }

    #[test]
    fn all_that_can_be_sent_is_sent_in_order() {
        let (mut n4, peer) = pair();
        let to = peer.local_addr().unwrap();
        let count = 2 * BATCH as u32 + 1;
        for number in 0..count {
            n4.send(to, number.to_be_bytes().to_vec());
            if number % 50 == 0 {
                // Longer than UDP permits: lost.
                n4.send(to, vec![0; 70_000]);
            }
        }
        n4.flush();
        n4.flush();
        let mut buffer = [0; 100];
        for number in 0..count {
            let length = peer.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], number.to_be_bytes());
        }
        peer.set_nonblocking(true).unwrap();
        assert!(peer.recv(&mut buffer).is_err(), "each once");
    }
}
