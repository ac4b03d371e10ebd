//! The running process's side of an upgrade.

use super::Succeedable;
use super::channel::{Channel, Kind};
use super::meanwhile::Meanwhile;
use super::message::{
    Accept, Hello, PROTOCOL, descriptors, difference, encode_datagram, encode_packet, printable,
};
use crate::api::bind_socket;
use crate::wait::wait_readable;
use pith_datapath::{QueuedOctets, UserPlane};
use pith_upf::Upf;
use pith_upf::handover::{Counted, FORMAT, HandoverError};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

/// Time for a successor's first frame, which it sends at once.
const FIRST: Duration = Duration::from_millis(500);
/// A successor that has not begun by then has failed, and another one may begin.
const PREPARATION: Duration = Duration::from_secs(60);
/// The longest time that the successor takes for a part of the state, and for the last part with what it had received before. Until packets
/// wait, the upgrade can be given up without a loss.
const STALL: Duration = Duration::from_millis(1500);
const LAST: Duration = Duration::from_millis(2500);
/// The longest time in which SMFs get answers to heartbeats only: they give up other requests after some seconds.
const STATE: Duration = Duration::from_secs(30);

/// Awaits successors, one after the other.
pub struct Successors {
    listener: UnixListener,
    preparing: Option<Preparing>,
    process: Succeedable,
}

/// A successor that prepares itself.
struct Preparing {
    since: Instant,
    channel: Channel,
    takes_datagrams: bool,
}

/// What the UPF's thread hands over.
pub struct Estate<'a> {
    pub upf: &'a mut Upf,
    pub datapath: &'a mut UserPlane,
    pub n4: &'a UdpSocket,
    pub zero: u64,
    pub now: Duration,
    pub restoring: bool,
    /// Datagrams that were received during an upgrade that failed.
    pub unhandled: Vec<(SocketAddr, Vec<u8>)>,
}

impl Successors {
    /// Listens on the socket of the process; replaces that of a predecessor.
    pub fn await_on(process: Succeedable, replaces: bool) -> io::Result<Self> {
        if replaces {
            // The predecessor ends at once, and new connections are for this process.
            let _ = std::fs::remove_file(&process.socket);
        }
        Ok(Self { listener: bind_socket(&process.socket, None)?, preparing: None, process })
    }

    /// Descriptors that are readable when a successor has sent something.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.listener.as_fd()]
            .into_iter()
            .chain(self.preparing.iter().map(|preparing| preparing.channel.as_fd()))
    }

    /// Serves successors. Returns whether one has taken over.
    pub fn serve(&mut self, estate: &mut Estate<'_>) -> bool {
        if self.serve_preparing(estate) {
            return true;
        }
        // One at a time: each may take the time for its first frame.
        if let Ok((stream, _)) = self.listener.accept() {
            let accepted = Channel::new(stream).and_then(|channel| self.welcome(channel, estate));
            if let Err(error) = accepted {
                tracing::warn!(%error, "user plane: a process that asked to take over was refused");
            }
        }
        false
    }

    /// Hands over to the successor that has prepared itself, if it has. Returns whether that has taken over.
    fn serve_preparing(&mut self, estate: &mut Estate<'_>) -> bool {
        let is_ready = |preparing: &mut Preparing| {
            wait_readable(&[preparing.channel.as_fd()], Some(Duration::ZERO)).has(0)
        };
        let Some(Preparing { mut channel, takes_datagrams, .. }) = self.preparing.take_if(is_ready) else {
            return false;
        };
        let begun = channel.limit(Some(FIRST)).and_then(|()| channel.expect(Kind::Begin));
        match begun.and_then(|_| hand_over(&mut channel, takes_datagrams, estate)) {
            Ok(took) => {
                let (millis, sessions) = (took.as_millis(), estate.upf.sessions().count());
                tracing::info!(
                    "user plane: handed over {sessions} sessions to a new process in {millis} ms: this one ends"
                );
                true
            }
            Err(error) => {
                // Without it, a closed channel means that this process has ended, and the successor goes on.
                let _ = channel.send(Kind::Refuse, error.to_string().as_bytes());
                tracing::warn!(%error, "user plane: a new process failed to take over: this one goes on");
                false
            }
        }
    }

    /// The process ends without a successor.
    pub fn close(self) {
        let _ = std::fs::remove_file(&self.process.socket);
    }

    /// Ends the process, for which another one goes on.
    pub fn end(self) {
        (self.process.ended)();
    }

    /// Accepts or refuses a successor.
    fn welcome(&mut self, mut channel: Channel, estate: &Estate<'_>) -> io::Result<()> {
        if !channel.is_trusted()? {
            return Err(io::Error::other("it runs as another user"));
        }
        channel.limit(Some(FIRST))?;
        let hello: Hello = serde_json::from_slice(&channel.expect(Kind::Hello)?)?;
        if let Some(reason) = self.objection(&hello, estate) {
            channel.send(Kind::Refuse, reason.as_bytes())?;
            return Err(io::Error::other(reason));
        }
        let handles = estate.datapath.handles()?;
        let api = self.process.api.as_ref();
        let accept = Accept::of(&handles, (estate.zero, estate.restoring, api.is_some()));
        channel.send(Kind::Accept, &serde_json::to_vec(&accept)?)?;
        channel.send_descriptors(&descriptors(estate.n4.as_fd(), &handles, api.map(AsFd::as_fd)))?;
        tracing::info!("user plane: Pith {} prepares to take over", printable(&hello.version));
        let takes_datagrams = hello.takes_datagrams;
        self.preparing = Some(Preparing { since: Instant::now(), channel, takes_datagrams });
        Ok(())
    }

    /// The reason to refuse a successor.
    fn objection(&self, hello: &Hello, estate: &Estate<'_>) -> Option<String> {
        if (hello.protocol, hello.format) != (PROTOCOL, FORMAT) {
            return Some(format!(
                "Pith {} exchanges the state of a UPF in format {PROTOCOL}.{FORMAT}, and the new process (Pith {}) in {}.{}: restart the UPF instead",
                env!("CARGO_PKG_VERSION"),
                printable(&hello.version),
                hello.protocol,
                hello.format
            ));
        }
        if estate.datapath.succeeds() {
            return Some(
                "SMFs still restore sessions of a process that was killed: try again in 30 s".into(),
            );
        }
        // One that has not begun by then has failed.
        if self.preparing.as_ref().is_some_and(|preparing| preparing.since.elapsed() < PREPARATION) {
            return Some("another process already prepares to take over".into());
        }
        difference(&self.process.settings, &hello.settings)
    }
}

/// Hands everything over; after an error this process has what it had. Returns the time in which SMFs got answers to heartbeats only.
fn hand_over(channel: &mut Channel, takes_datagrams: bool, estate: &mut Estate<'_>) -> io::Result<Duration> {
    let begun = Instant::now();
    let mut meanwhile = Meanwhile::new(estate.n4, estate.upf.heartbeats());
    let handed = hand_state(channel, takes_datagrams, estate, begun, &mut meanwhile);
    if handed.is_err() {
        estate.unhandled = meanwhile.waiting;
    }
    handed.map(|()| begun.elapsed())
}

fn hand_state(
    channel: &mut Channel,
    takes_datagrams: bool,
    estate: &mut Estate<'_>,
    begun: Instant,
    meanwhile: &mut Meanwhile<'_>,
) -> io::Result<()> {
    let counted = estate.upf.export(estate.now, &*estate.datapath, |record| {
        meanwhile.take_turn();
        if begun.elapsed() > STATE {
            return Err(too_slow());
        }
        channel.limit(Some(STALL))?;
        channel.send(Kind::State, &record).map_err(stalled)
    });
    let counted = counted.map_err(|error| match error {
        HandoverError::Channel(error) => error,
        error => io::Error::other(error),
    })?;
    channel.send(Kind::StateEnd, b"").map_err(stalled)?;
    await_frame(channel, meanwhile)?;
    channel.expect(Kind::Ready).map_err(stalled)?;
    let mut queued = Vec::new();
    let swapped = swap(channel, takes_datagrams, estate, (&counted, begun), &mut queued, meanwhile);
    if swapped.is_err()
        && let Err(error) = estate.datapath.resume(queued)
    {
        tracing::error!(%error, "user plane: packets cannot be handled again after a failed upgrade: restart the UPF");
    }
    swapped
}

/// Serves N4 until the successor has sent something.
fn await_frame(channel: &Channel, meanwhile: &mut Meanwhile<'_>) -> io::Result<()> {
    let begun = Instant::now();
    while let Some(rest) = LAST.checked_sub(begun.elapsed()) {
        let readable = wait_readable(&[channel.as_fd(), meanwhile.as_fd()], Some(rest));
        if readable.has(0) {
            return Ok(());
        }
        meanwhile.serve();
    }
    Err(stalled(io::ErrorKind::TimedOut.into()))
}

fn too_slow() -> io::Error {
    let text = format!(
        "the state of all sessions takes more than {} s, in which SMFs get no answers: try again when the machine is less busy",
        STATE.as_secs()
    );
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// What a time limit of the channel means.
fn stalled(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::new(io::ErrorKind::TimedOut, "the new process does not take the state")
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            io::Error::new(error.kind(), "the new process has ended; its log says why")
        }
        _ => error,
    }
}

/// From the time on when packets wait.
fn swap(
    channel: &mut Channel,
    takes_datagrams: bool,
    estate: &mut Estate<'_>,
    (counted, begun): (&Counted, Instant),
    queued: &mut Vec<QueuedOctets>,
    meanwhile: &mut Meanwhile<'_>,
) -> io::Result<()> {
    // Only the end of the successor is certain; one that is slow may still take over.
    channel.limit(None)?;
    estate.datapath.hold()?;
    channel.send(Kind::Held, b"")?;
    channel.expect(Kind::Swapped)?;
    *queued = estate.datapath.drain()?;
    queued.iter().try_for_each(|packet| channel.send(Kind::Packet, &encode_packet(packet)))?;
    channel.send(Kind::PacketsEnd, b"")?;
    let mut sent = Ok(());
    let now = estate.now + begun.elapsed();
    let written = estate.upf.counted_since(counted, now, &*estate.datapath, |record| {
        meanwhile.take_turn();
        if sent.is_ok() {
            sent = channel.send(Kind::Counted, &record);
        }
    });
    written.map_err(io::Error::other)?;
    sent?;
    // What arrives from here on waits in the socket.
    let waiting = meanwhile.waiting.iter().filter(|_| takes_datagrams);
    for (peer, datagram) in waiting {
        channel.send(Kind::Datagram, &encode_datagram(*peer, datagram))?;
    }
    channel.send(Kind::CountedEnd, b"")?;
    channel.expect(Kind::Done).map(drop)
}
