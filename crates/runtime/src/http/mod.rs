//! HTTP on one tokio thread: server and client of the SBI, and the operator API.
//!
//! ```text
//!  peer ──HTTP/2──> server ─ exchanges ──> sink.request(exchange, …)   shard
//!                     ^          ^                                       │
//!                     └──────────┴──────── HttpHandle::answer ───────────┤
//!  peer <─HTTP/2──  client <────────────── HttpHandle::call ─────────────┘
//!                     └──> sink.reply(token, …) ──> shard
//! ```
//!
//! Processes use HTTP/2 over TLS 1.3 ([`Tls`]) for the SBI, or cleartext HTTP/2 with prior knowledge (TS
//! 29.500 5.2). Each request has a deadline, each body a maximum size, and the number of open exchanges a
//! limit; beyond these the response is 504, 413 or 503.
//! A request is authorized by its head, before its body is read. Connections, exchanges and octets of bodies
//! are divided among peers ([`share`]); an idle connection of an unknown peer, or of the peer with the most connections, is
//! closed when another peer needs its place. TLS handshakes have limits of their own ([`rate`]) and a thread of
//! their own ([`handshake`]). A peer whose requests are refused is read more slowly ([`refusals`]).

mod activity;
mod client;
mod connection;
mod exchanges;
mod handshake;
mod identity;
mod local;
mod peers;
mod problem;
mod rate;
mod refusals;
mod same_user;
mod server;
mod share;
mod tls;

pub use client::{CallError, Client};
pub use connection::Limits;
pub use exchanges::Exchanges;
pub use identity::{Expected, ExternalPeer, ExternalPeers, PeerIdentity, Security, ServerIdentity};
pub use problem::problem;
pub use server::{Drain, Handler, Known, Listener, Protocol, Server, Transport};
pub use share::{Peer, Standing};
pub(crate) use tls::CHECK_INTERVAL;
pub use tls::Tls;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
