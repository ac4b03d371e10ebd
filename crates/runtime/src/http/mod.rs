//! HTTP on one thread of tokio's: the SBI's server and client, and the REST API.
//!
//! ```text
//!  peer ──HTTP/2──> server ─ exchanges ──> sink.request(exchange, …)   shard
//!                     ^          ^                                       │
//!                     └──────────┴──────── HttpHandle::answer ───────────┤
//!  peer <─HTTP/2──  client <────────────── HttpHandle::call ─────────────┘
//!                     └──> sink.reply(token, …) ──> shard
//! ```
//!
//! Cleartext HTTP/2 with prior knowledge (TS 29.500 5.2); TLS goes between [`connection`] and the
//! socket, on both sides, and changes nothing else. Each request has a deadline, each body a
//! largest size, the number of open exchanges a limit; what is beyond is told 504, 413, 503.
//! Whether a request may be asked is judged by its head, before its body is read. Connections, exchanges and
//! octets of bodies are shared out among peers ([`share`]); idle connections of strangers give way.

mod activity;
mod client;
mod connection;
mod exchanges;
mod identity;
mod local;
mod peers;
mod problem;
mod server;
mod share;

pub use client::{CallError, Client};
pub use connection::Limits;
pub use exchanges::Exchanges;
pub use identity::PeerIdentity;
pub use problem::problem;
pub use server::{Drain, Handler, Known, Listener, Protocol, Server};
pub use share::{Peer, Standing};

#[cfg(test)]
mod tests;
