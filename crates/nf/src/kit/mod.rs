//! The interface of an NF: inputs and effects of `handle`, named timers, generational tables, and
//! seeded randomness.
//!
//! ```text
//!           Input                                   Effect
//!  N2Input ─────────┐                      ┌──────── N2Effect   to the N2 gateway
//!  N4Input ─────────┤                      ├──────── N4Effect   to the N4 gateway
//!  Request (SBI) ───┼──> nf.handle(now) ───┼──────── Call       an SBI operation of another NF
//!  Reply (SBI) ─────┤                      ├──────── Answer     to an earlier Request
//!  Stored ──────────┤                      ├──────── Store      UDR only
//!  Timer ───────────┘                      └──────── StartTimer, StopTimer, Event
//! ```

mod addressing;
mod allowance;
mod arena;
mod capacity;
mod context_id;
mod contexts;
pub mod document;
mod ending;
mod event;
mod flow_filter;
mod function;
mod input;
mod instances;
mod n2;
mod n4;
mod outbox;
mod owner;
mod passage;
mod procedure_name;
mod rates;
mod reference;
mod reply;
mod residency;
mod rng;
mod sbi;
mod store;
mod subscriber;
mod time;
mod timer;

pub use addressing::{Addressing, IpNetwork, first_and_last, overlap};
pub use allowance::Allowance;
pub use arena::{Arena, Key};
pub(crate) use capacity::{is_oversized, shrink};
pub use context_id::{ContextIds, UNPLACED, block_of_equipment, block_of_subscriber};
pub(crate) use contexts::{Context, Contexts, Handles};
pub use ending::EndedContexts;
pub use event::{Event, Level};
pub(crate) use flow_filter::{DescribedFlow, FlowFilter, MAX_PACKET_FILTERS};
pub use function::{Deregister, Fate, Inspect, Needs, NetworkFunction, Order, Page, PolicyRule, deliver};
pub use input::Input;
pub use instances::SetInstances;
pub use n2::{GnbHandle, GnbInfo, N2Effect, N2Input, ResetUe, RetainedConnections, Tnla, TnlaBinding};
pub use n4::{N4Effect, N4Error, N4Input, N4Transaction, UpfHandle, UpfInfo};
pub use outbox::{Effect, Outbox};
pub use owner::{Client, Issuer, Owner, check_instance, may_be_instance};
pub use passage::{AddressNews, MovedConnection, Passage, PassedBlock, PassedContext, PassedPart, UpfLoss};
pub use procedure_name::ProcedureName;
pub(crate) use rates::MAX_RATE;
pub use reference::{ReferenceKey, References, block_in_reference, context_in_reference};
pub use reply::PendingReply;
pub use residency::{Change, DocumentSink, RESERVED_COUNTS, StoreScope, StoredKey, Tracker, Tracking};
pub use rng::Rng;
pub use sbi::{Caller, Identity, Nf, Selection, Tag, Target};
pub(crate) use store::{SDM_SUBSCRIPTIONS, nf_in};
pub use store::{StoreError, StoreRequest, StoreResponse, collection_of, has_room};
pub(crate) use subscriber::check_trace;
pub use subscriber::{
    AkaAlgorithm, Authentication, AuthenticationMethod, MobilityRestrictions, Secret, SubscribedDnn,
    SubscribedSlice, Subscriber, SubscriberTrace,
};
pub use time::{Duration, Instant, WallClock};
pub use timer::{Timer, TimerKey};
