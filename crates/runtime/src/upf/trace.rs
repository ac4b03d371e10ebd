//! Packet traces of a tunnel, limited in time and number of packets.
//!
//! A trace enables tracing of its session in the datapath. It is disabled when the trace has enough packets,
//! its time is over, it is ended, or it is no longer read. Other sessions are not affected.

use super::inspect::{self, hex32, hex64};
use crate::api::ApiError;
use hyper::StatusCode;
use pith_upf::contract::{Datapath, Fate, SessionId, Teid, TracedPacket};
use pith_upf::{TeidOwner, Upf};
use serde_json::{Value, json};
use std::time::Duration;

/// Largest number of traces.
const MAX_TRACES: usize = 8;
/// Largest number of packets of a trace.
const MAX_PACKETS: usize = 10_000;
/// Longest duration of a trace.
const LONGEST: Duration = Duration::from_secs(600);
/// A trace that was not read for this long ends, as its reader has probably gone.
const UNREAD: Duration = Duration::from_secs(10);
/// Time for which a trace is kept after its end.
const KEPT: Duration = Duration::from_secs(60);

/// The parameters of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRequest {
    /// TEID of either end of the tunnel.
    pub teid: Teid,
    /// Number of packets, 1 to 10,000.
    pub packets: usize,
    /// Duration, up to 10 minutes.
    pub time: Duration,
}

/// All traces.
#[derive(Debug, Default)]
pub(super) struct Traces {
    open: Vec<Trace>,
    last_id: u64,
}

#[derive(Debug)]
struct Trace {
    id: u64,
    session: SessionId,
    request: TraceRequest,
    begun: Duration,
    /// When the trace ends or has ended.
    end: Duration,
    read: Duration,
    is_on: bool,
    packets: Vec<Seen>,
    missed: u64,
}

/// A traced packet, with its time relative to the trace's start.
#[derive(Debug, Clone, Copy)]
struct Seen {
    after: Duration,
    packet: TracedPacket,
}

impl Traces {
    /// Starts a trace.
    pub fn begin(
        &mut self,
        now: Duration,
        upf: &Upf,
        datapath: &mut dyn Datapath,
        request: TraceRequest,
    ) -> Result<Value, ApiError> {
        check(&request)?;
        let session = find(upf, request.teid)?;
        self.make_room()?;
        self.last_id += 1;
        let trace = Trace {
            id: self.last_id,
            session,
            request,
            begun: now,
            end: now + request.time,
            read: now,
            is_on: true,
            packets: Vec::new(),
            missed: 0,
        };
        let shown = trace.show(0);
        self.open.push(trace);
        datapath.trace(session, true);
        Ok(shown)
    }

    /// Removes a trace that has ended if the table is full.
    fn make_room(&mut self) -> Result<(), ApiError> {
        if self.open.len() >= MAX_TRACES {
            let ended = self.open.iter().position(|trace| !trace.is_on);
            let full = || ApiError {
                status: StatusCode::TOO_MANY_REQUESTS,
                detail: format!("{MAX_TRACES} traces are running: end one first"),
            };
            self.open.remove(ended.ok_or_else(full)?);
        }
        Ok(())
    }

    /// A trace without its first `after` packets.
    pub fn read(
        &mut self,
        now: Duration,
        datapath: &mut dyn Datapath,
        id: u64,
        after: usize,
    ) -> Result<Value, ApiError> {
        self.update(now, datapath);
        let trace = self.open.iter_mut().find(|trace| trace.id == id).ok_or_else(|| unknown(id))?;
        trace.read = now;
        Ok(trace.show(after))
    }

    /// Ends a trace and removes its packets.
    pub fn end(&mut self, datapath: &mut dyn Datapath, id: u64) -> Result<Value, ApiError> {
        let at = self.open.iter().position(|trace| trace.id == id).ok_or_else(|| unknown(id))?;
        let trace = self.open.remove(at);
        self.switch_off(datapath, trace.session);
        Ok(Value::Null)
    }

    /// Adds the datapath's packets to the traces, and ends traces that have reached a limit.
    pub fn update(&mut self, now: Duration, datapath: &mut dyn Datapath) {
        if self.open.is_empty() {
            return;
        }
        let mut packets = Vec::new();
        let missed = datapath.poll_trace(&mut packets);
        let mut over = Vec::new();
        for trace in self.open.iter_mut().filter(|trace| trace.is_on) {
            trace.missed += missed;
            trace.take(now, &packets);
            if trace.is_over(now) {
                (trace.is_on, trace.end) = (false, now);
                over.push(trace.session);
            }
        }
        for session in over {
            self.switch_off(datapath, session);
        }
        self.open.retain(|trace| trace.is_on || trace.end + KEPT > now);
    }

    /// Disables tracing of a session unless another trace needs it.
    fn switch_off(&self, datapath: &mut dyn Datapath, session: SessionId) {
        if !self.open.iter().any(|trace| trace.is_on && trace.session == session) {
            datapath.trace(session, false);
        }
    }
}

impl Trace {
    fn take(&mut self, now: Duration, packets: &[TracedPacket]) {
        let own = packets.iter().filter(|packet| packet.session == self.session);
        let seen = own.map(|packet| Seen {
            after: now.saturating_sub(packet.age).saturating_sub(self.begun),
            packet: *packet,
        });
        let room = self.request.packets - self.packets.len();
        self.packets.extend(seen.take(room));
    }

    fn is_over(&self, now: Duration) -> bool {
        now >= self.end || now >= self.read + UNREAD || self.packets.len() >= self.request.packets
    }

    fn show(&self, after: usize) -> Value {
        let packets = self.packets.iter().enumerate().skip(after);
        json!({
            "id": self.id,
            "seid": hex64(self.session.0),
            "teid": hex32(self.request.teid.0),
            "ended": !self.is_on,
            "missed": self.missed,
            "packets": packets.map(|(at, seen)| seen.show(at + 1)).collect::<Vec<_>>(),
        })
    }
}

impl Seen {
    fn show(&self, number: usize) -> Value {
        let TracedPacket { direction, length, qfi, pdr, source, destination, protocol, ports, fate, .. } =
            self.packet;
        let (reason, tunnel) = match fate {
            Fate::Dropped(reason) => (Some(reason.name()), None),
            Fate::ToTunnel(tunnel) => (None, Some(inspect::tunnel(&tunnel))),
            Fate::ToNetwork | Fate::Queued | Fate::Buffered => (None, None),
        };
        json!({
            "number": number,
            "afterUs": self.after.as_micros() as u64,
            "direction": inspect::direction(direction),
            "length": length,
            "qfi": qfi.map(|qfi| qfi.0),
            "pdr": pdr.map(|pdr| pdr.0),
            "protocol": protocol,
            "source": source,
            "sourcePort": ports.map(|ports| ports.0),
            "destination": destination,
            "destinationPort": ports.map(|ports| ports.1),
            "fate": fate.name(),
            "reason": reason,
            "tunnel": tunnel,
        })
    }
}

fn check(request: &TraceRequest) -> Result<(), ApiError> {
    if !(1..=MAX_PACKETS).contains(&request.packets) {
        return Err(ApiError::bad_request(format!("'packets' must be 1 to {MAX_PACKETS}")));
    }
    if request.time.is_zero() || request.time > LONGEST {
        return Err(ApiError::bad_request(format!("'seconds' must be 1 to {}", LONGEST.as_secs())));
    }
    Ok(())
}

fn find(upf: &Upf, teid: Teid) -> Result<SessionId, ApiError> {
    let shown = hex32(teid.0);
    match upf.owner_of_teid(teid) {
        TeidOwner::Session(session) => Ok(session),
        TeidOwner::Nobody => Err(ApiError::not_found(format!("no session has a tunnel with TEID {shown}"))),
        TeidOwner::Several(count) => Err(ApiError {
            status: StatusCode::CONFLICT,
            detail: format!("{count} gNBs use TEID {shown}: use the session's TEID at the UPF"),
        }),
    }
}

fn unknown(id: u64) -> ApiError {
    ApiError::not_found(format!("there is no trace {id}, or it ended more than a minute ago"))
}
