//! The contract between UPF-C (`pith-upf`) and UPF-U (`pith-datapath`).
//!
//! UPF-C turns what PFCP says into [`Session`]s and hands them, whole, to a [`Datapath`]. A datapath
//! forwards packets by them, counts, polices and buffers, and tells by [`Event`]s what UPF-C has to
//! report. Nothing here knows how packets move: the portable path and an XDP path stand side by side
//! behind the same trait and show the same behaviour.
//!
//! ```text
//!   SMF ── PFCP ── UPF-C ── install, remove, usage ──▶ Datapath ── GTP-U (N3, N9)
//!                    ◀────────── Event ──────────────            └─ plain IP (N6)
//! ```
//!
//! All rates are in bits per second, all volumes in bytes of the inner packet as it would be on N6.

mod event;
mod filter;
mod flow_description;
mod rules;
mod trace;
mod usage;

pub use event::{Counters, DropReason, Event, Traffic};
pub use filter::{AddressRange, Endpoint, PortRange, SdfFilter, TosFilter};
pub use flow_description::{FlowDescription, FlowDescriptionError};
pub use rules::{
    Action, Destination, Direction, Far, FarId, Gate, Gates, Pdr, PdrId, Qer, QerId, Qfi, Rates, Session,
    SessionId, Source, Teid, Tunnel, UeAddress, Urr, UrrId,
};
pub use trace::{Fate, TracedPacket};
pub use usage::{SessionUsage, UrrUsage, Volume, VolumeLimits};

use crate::qos::FlowUsage;
use std::sync::Arc;

/// What forwards packets: the portable path, the XDP path, or a test's recording of the calls.
///
/// Calls return at once or after at most the time of one batch of packets; none waits for a peer.
pub trait Datapath {
    /// Makes `session` the rules for its id, in place of those before, in one step: each packet meets
    /// the old rules or the new, never a mixture, and a packet that comes after the call meets the new.
    ///
    /// What carries on by id: counters of a URR, fill of a QER's meters while its rates stay, and
    /// buffered packets. These leave in order by the new rules if a PDR's FAR now forwards, and go
    /// if it now drops.
    fn install(&mut self, session: Arc<Session>);

    /// Forgets a session and what it has buffered, and answers with the final count: no packet is
    /// forwarded or counted for it afterwards. `None` if there was none.
    fn remove(&mut self, session: SessionId) -> Option<SessionUsage>;

    /// Drops what is buffered for a session, without rules changing (PFCP flag DROBU).
    fn discard_buffered(&mut self, session: SessionId);

    /// Sends an End Marker into `tunnel`, after the last packet that old rules sent there; call it
    /// after the [`install`](Datapath::install) that moved the session elsewhere.
    fn send_end_marker(&mut self, tunnel: &Tunnel);

    /// What a session has used so far; every packet forwarded before the call may be counted on.
    fn usage(&self, session: SessionId) -> Option<SessionUsage>;

    /// What each flow of a session was given; nothing where a datapath does not tell.
    fn flows(&self, _session: SessionId) -> Vec<FlowUsage> {
        Vec::new()
    }

    /// Begins to follow the packets of a session, or ends it. Meanwhile the session may take a slower path.
    fn trace(&mut self, _session: SessionId, _on: bool) {}

    /// Moves what became of packets of traced sessions since the last call into `packets`, oldest first; answers
    /// how many more there were than it has room for.
    fn poll_trace(&mut self, _packets: &mut Vec<TracedPacket>) -> u64 {
        0
    }

    /// Counts a packet that UPF-C dropped.
    fn count_dropped(&mut self, reason: DropReason);

    /// Moves what has happened since the last call into `events`, oldest first.
    fn poll_events(&mut self, events: &mut Vec<Event>);

    /// Traffic and drops of the whole UPF since its start.
    fn counters(&self) -> Counters;
}
