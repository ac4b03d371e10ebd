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
//! Between processes of the SBI HTTP/2 is over TLS 1.3 ([`Tls`]); without it HTTP/2 begins with prior
//! knowledge (TS 29.500 5.2). Each request has a deadline, each body a
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
mod tls;

pub use client::{CallError, Client};
pub use connection::Limits;
pub use exchanges::Exchanges;
pub use identity::PeerIdentity;
pub use problem::problem;
pub use server::{Drain, Handler, Known, Listener, Protocol, Server, Transport};
pub use share::{Peer, Standing};
pub(crate) use tls::LOOK;
pub use tls::{Foreign, Security, Tls};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
