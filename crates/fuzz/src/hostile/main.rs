//! `pith-hostile`: one attacker of a running core, at a constant rate, for `make hostile` and `make faults`.
//!
//! ```text
//!  `phone`   packets of a UE through its session: to addresses and ports of the core, radios, other UEs; forged sources
//!  radio     mutated and out-of-order NGAP; NG SETUP with other gNBs' ids; G-PDUs with invented TEIDs
//!  n4        PFCP from an unknown peer, to a UPF or an SMF
//!  http      requests to the SBI or the operator API: mutated, unauthorised, slow
//!  function  the same over TLS, with a certificate of another NF type and tokens of another service
//!  network   packets from the data network to used and unused UE addresses
//! ```
//!
//! It attacks only the given addresses. Its last line is JSON: the number of sent messages, and the
//! CPU time used.

mod datagrams;
mod function;
mod http;
mod pace;
mod radio;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use pace::Pace;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

/// Attacks a running core of your own.
#[derive(Debug, Parser)]
struct Args {
    /// The kind of attacker.
    #[command(subcommand)]
    who: Who,
    /// Packets or messages per second.
    #[arg(long, global = true, default_value_t = 2000)]
    rate: u32,
    /// Duration in seconds.
    #[arg(long, global = true, default_value_t = 10)]
    seconds: u64,
    /// Seed of the messages.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Subcommand)]
enum Who {
    /// A UE, through the interface of its session.
    Phone {
        /// The interface, such as uetun1.
        #[arg(long)]
        device: String,
        /// Addresses to attack.
        #[arg(long, required = true, value_delimiter = ',')]
        targets: Vec<Ipv4Addr>,
    },
    /// An unknown gNB.
    Radio {
        /// The AMF's N2 address.
        #[arg(long)]
        amf: SocketAddr,
        /// The UPF's N3 address.
        #[arg(long)]
        n3: SocketAddr,
        /// Local address.
        #[arg(long)]
        local: IpAddr,
    },
    /// An unknown peer on N4.
    N4 {
        /// The N4 endpoint to attack.
        #[arg(long)]
        target: SocketAddr,
        /// Local address and port.
        #[arg(long)]
        local: SocketAddr,
    },
    /// A client of the SBI or of the operator API.
    Http {
        /// The server's address.
        #[arg(long)]
        target: SocketAddr,
        /// Corpus of the requests: sbi-request or api.
        #[arg(long)]
        corpus: String,
    },
    /// An NF of another type than those that use the service which it attacks.
    Function(function::Args),
    /// A host in the data network.
    Network {
        /// The first UE address.
        #[arg(long)]
        first: Ipv4Addr,
        /// Number of addresses from there on.
        #[arg(long, default_value_t = 1000)]
        count: u32,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pith-hostile: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let common = Args::parse();
    let mut pace = Pace::new(common.rate, Duration::from_secs(common.seconds));
    let (name, report) = match &common.who {
        Who::Phone { device, targets } => {
            ("phone", datagrams::phone(device, targets, common.seed, &mut pace)?)
        }
        Who::Radio { amf, n3, local } => ("radio", radio::attack(*amf, *n3, *local, common.seed, &mut pace)?),
        Who::N4 { target, local } => ("n4", datagrams::n4(*target, *local, common.seed, &mut pace)?),
        Who::Http { target, corpus } => {
            ("http", http::attack(*target, corpus, common.seed, &mut pace).context("HTTP")?)
        }
        Who::Function(args) => {
            ("function", function::attack(args, common.seed, &mut pace).context("function")?)
        }
        Who::Network { first, count } => {
            ("network", datagrams::network(*first, *count, common.seed, &mut pace)?)
        }
    };
    let line = json!({
        "attacker": name,
        "sent": pace.sent(),
        "seconds": pace.elapsed().as_secs_f64(),
        "cpu_s": pace::cpu_seconds(),
        "seen": report,
    });
    println!("{line}");
    Ok(())
}
