//! The channel between a running UPF and its successor: frames on a Unix socket, and descriptors.
//!
//! ```text
//!   │ length, 4 octets │ kind, 1 octet │ body │      descriptors: after a frame that names their number, in groups, each with an octet
//! ```

use super::message::printable;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Octets of the longest body: a session with the most rules takes some 100 kB.
const LONGEST: usize = 16 << 20;
/// Descriptors sent together; the kernel permits 253.
const TOGETHER: usize = 64;

/// The kind of a frame, in the order of a handover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Successor: its version and settings.
    Hello = 1,
    /// Running process: it may be succeeded; descriptors follow.
    Accept,
    /// Running process: it may not; the reason.
    Refuse,
    /// Successor: prepared to take the state.
    Begin,
    /// A record of UPF-C's state.
    State,
    /// No more records.
    StateEnd,
    /// Successor: has installed all sessions.
    Ready,
    /// Running process: reads no more packets.
    Held,
    /// Successor: its program forwards.
    Swapped,
    /// A queued packet.
    Packet,
    /// No more queued packets.
    PacketsEnd,
    /// Usage counted since the state was written.
    Counted,
    /// No more usage.
    CountedEnd,
    /// Successor: has everything.
    Done,
    /// A datagram of N4 that was received since the state was written; only for a successor that takes such.
    Datagram,
}

impl Kind {
    const ALL: [Self; 15] = [
        Self::Hello,
        Self::Accept,
        Self::Refuse,
        Self::Begin,
        Self::State,
        Self::StateEnd,
        Self::Ready,
        Self::Held,
        Self::Swapped,
        Self::Packet,
        Self::PacketsEnd,
        Self::Counted,
        Self::CountedEnd,
        Self::Done,
        Self::Datagram,
    ];
}

/// A connected channel.
#[derive(Debug)]
pub struct Channel(UnixStream);

impl Channel {
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        Ok(Self(stream))
    }

    /// Limits the time of each read and write; `None`: until the peer ends.
    pub fn limit(&self, time: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(time)?;
        self.0.set_write_timeout(time)
    }

    /// Whether the peer runs as this user, or as root.
    pub fn is_trusted(&self) -> io::Result<bool> {
        let peer = rustix::net::sockopt::socket_peercred(&self.0)?;
        Ok(peer.uid.is_root() || peer.uid == rustix::process::geteuid())
    }

    pub fn send(&mut self, kind: Kind, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).ok().filter(|length| *length as usize <= LONGEST);
        let length = length.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "a frame is too long"))?;
        let head = [&length.to_be_bytes()[..], &[kind as u8]].concat();
        self.0.write_all(&[&head, body].concat())
    }

    pub fn receive(&mut self) -> io::Result<(Kind, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head)?;
        let [length @ .., kind] = head;
        let length = u32::from_be_bytes(length) as usize;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind).filter(|_| length <= LONGEST);
        let kind = kind.ok_or_else(|| invalid("an unknown frame"))?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((kind, body))
    }

    /// Receives a frame of this kind, and returns its body.
    pub fn expect(&mut self, wanted: Kind) -> io::Result<Vec<u8>> {
        match self.receive()? {
            (kind, body) if kind == wanted => Ok(body),
            (Kind::Refuse, reason) => Err(io::Error::other(printable(&String::from_utf8_lossy(&reason)))),
            (kind, _) => Err(invalid(&format!("{kind:?} instead of {wanted:?}"))),
        }
    }

    pub fn send_descriptors(&mut self, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        for group in descriptors.chunks(TOGETHER) {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(TOGETHER))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !control.push(SendAncillaryMessage::ScmRights(group)) {
                return Err(ErrorKind::InvalidInput.into());
            }
            sendmsg(&self.0, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }

    pub fn receive_descriptors(&mut self, count: usize) -> io::Result<Vec<OwnedFd>> {
        let mut received = Vec::new();
        while received.len() < count {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(TOGETHER))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut octet = [0];
            let read =
                recvmsg(&self.0, &mut [IoSliceMut::new(&mut octet)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
            let before = received.len();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    received.extend(descriptors);
                }
            }
            if read.bytes == 0 || received.len() == before {
                return Err(invalid("descriptors are missing"));
            }
        }
        if received.len() > count { Err(invalid("too many descriptors")) } else { Ok(received) }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, Channel) {
        let (one, other) = UnixStream::pair().unwrap();
        (Channel::new(one).unwrap(), Channel::new(other).unwrap())
    }

    #[test]
    fn frames_and_descriptors_arrive_in_order() {
        let (mut one, mut other) = pair();
        assert!(one.is_trusted().unwrap());
        let files: Vec<_> = (0..150).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let all: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        one.send(Kind::Accept, b"150").unwrap();
        one.send_descriptors(&all).unwrap();
        one.send(Kind::State, b"next").unwrap();
        assert_eq!(other.expect(Kind::Accept).unwrap(), b"150");
        assert_eq!(other.receive_descriptors(150).unwrap().len(), 150);
        assert_eq!(other.receive().unwrap(), (Kind::State, b"next".to_vec()));
    }

    #[test]
    fn a_refusal_is_the_error_of_what_was_expected() {
        let (mut one, mut other) = pair();
        one.send(Kind::Refuse, b"not now").unwrap();
        assert_eq!(other.expect(Kind::Accept).unwrap_err().to_string(), "not now");
        one.send(Kind::Held, b"").unwrap();
        assert!(other.expect(Kind::Accept).unwrap_err().to_string().contains("Held instead of Accept"));
        drop(one);
        assert_eq!(other.expect(Kind::Accept).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn frames_of_other_programs_are_refused() {
        for octets in [[0, 0, 0, 0, 99], [255, 255, 255, 255, 1], [0, 0, 0, 0, 0]] {
            let (mut one, mut other) = pair();
            one.0.write_all(&octets).unwrap();
            assert_eq!(other.receive().unwrap_err().kind(), ErrorKind::InvalidData);
        }
        let (mut one, mut other) = pair();
        one.send(Kind::Accept, b"").unwrap();
        one.0.write_all(&[0]).unwrap();
        other.expect(Kind::Accept).unwrap();
        assert!(other.receive_descriptors(1).is_err());
        assert!(one.send(Kind::State, &vec![0; LONGEST + 1]).is_err());
    }
}
