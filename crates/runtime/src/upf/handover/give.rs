//! The running process's side of an upgrade.

use super::Succeedable;
use super::channel::{Channel, Kind};
use super::message::{Accept, Hello, PROTOCOL, descriptors, difference, encode_packet};
use crate::api::bind_socket;
use crate::wait::wait_readable;
use pith_datapath::{QueuedOctets, UserPlane};
use pith_upf::Upf;
use pith_upf::handover::{FORMAT, HandoverError};
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

/// Time for a successor's first frame, which it sends at once.
const FIRST: Duration = Duration::from_millis(500);
/// A successor that has not begun by then has failed, and another one may begin.
const PREPARATION: Duration = Duration::from_secs(60);
/// The longest time that N4 is not served while the state is handed over, and that the successor takes for a part of it. An SMF of Pith
/// gives a UPF up after 3 s without an answer; until packets wait, the upgrade can be given up without a loss.
const STATE: Duration = Duration::from_millis(2500);
const STALL: Duration = Duration::from_millis(1500);

/// Awaits successors, one after the other.
pub struct Successors {
    listener: UnixListener,
    /// The successor that prepares itself, and since when.
    preparing: Option<(Instant, Channel)>,
    process: Succeedable,
}

/// What the UPF's thread hands over.
pub struct Estate<'a> {
    pub upf: &'a mut Upf,
    pub datapath: &'a mut UserPlane,
    pub n4: &'a UdpSocket,
    pub zero: u64,
    pub now: Duration,
    pub restoring: bool,
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
        [self.listener.as_fd()].into_iter().chain(self.preparing.iter().map(|(_, channel)| channel.as_fd()))
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
        let is_ready = |(_, channel): &mut (Instant, Channel)| {
            wait_readable(&[channel.as_fd()], Some(Duration::ZERO)).has(0)
        };
        let Some((_, mut channel)) = self.preparing.take_if(is_ready) else { return false };
        let begun = channel.limit(Some(FIRST)).and_then(|()| channel.expect(Kind::Begin));
        match begun.and_then(|_| hand_over(&mut channel, estate)) {
            Ok(took) => {
                let millis = took.as_millis();
                tracing::info!("user plane: handed over to a new process in {millis} ms: this one ends");
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
        tracing::info!("user plane: Pith {} prepares to take over", hello.version);
        self.preparing = Some((Instant::now(), channel));
        Ok(())
    }

    /// The reason to refuse a successor.
    fn objection(&self, hello: &Hello, estate: &Estate<'_>) -> Option<String> {
        if (hello.protocol, hello.format) != (PROTOCOL, FORMAT) {
            return Some(format!(
                "Pith {} exchanges the state of a UPF in format {PROTOCOL}.{FORMAT}, and the new process (Pith {}) in {}.{}: restart the UPF instead",
                env!("CARGO_PKG_VERSION"),
                hello.version,
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
        if self.preparing.as_ref().is_some_and(|(since, _)| since.elapsed() < PREPARATION) {
            return Some("another process already prepares to take over".into());
        }
        difference(&self.process.settings, &hello.settings)
    }
}

/// Hands everything over; after an error this process has what it had. Returns the time in which N4 was not served.
fn hand_over(channel: &mut Channel, estate: &mut Estate<'_>) -> io::Result<Duration> {
    let begun = Instant::now();
    let rest = || STATE.checked_sub(begun.elapsed()).filter(|rest| !rest.is_zero()).ok_or_else(too_slow);
    let counted = estate.upf.export(estate.now, &*estate.datapath, |record| {
        channel.limit(Some(rest()?.min(STALL)))?;
        channel.send(Kind::State, &record).map_err(stalled)
    });
    let counted = counted.map_err(|error| match error {
        HandoverError::Channel(error) => error,
        error => io::Error::other(error),
    })?;
    channel.limit(Some(rest()?))?;
    channel.send(Kind::StateEnd, b"").map_err(stalled)?;
    channel.expect(Kind::Ready).map_err(stalled)?;
    let mut queued = Vec::new();
    let swapped = swap(channel, estate, &counted, begun, &mut queued);
    if swapped.is_err()
        && let Err(error) = estate.datapath.resume(queued)
    {
        tracing::error!(%error, "user plane: packets cannot be handled again after a failed upgrade: restart the UPF");
    }
    swapped.map(|()| begun.elapsed())
}

fn too_slow() -> io::Error {
    let text = format!(
        "the state of all sessions takes more than {} ms, in which SMFs get no answer: try again when the machine is less busy",
        STATE.as_millis()
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
    estate: &mut Estate<'_>,
    counted: &pith_upf::handover::Counted,
    begun: Instant,
    queued: &mut Vec<QueuedOctets>,
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
        if sent.is_ok() {
            sent = channel.send(Kind::Counted, &record);
        }
    });
    written.map_err(io::Error::other)?;
    sent?;
    channel.send(Kind::CountedEnd, b"")?;
    channel.expect(Kind::Done).map(drop)
}
