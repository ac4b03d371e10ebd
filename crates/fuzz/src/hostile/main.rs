//! `pith-hostile`: one attacker of a running core, at a steady rate, for `make hostile` and `make faults`.
//!
//! ```text
//!  phone     what a UE can send through its session: the core's addresses and ports, radios, other UEs, forged sources
//!  radio     NGAP, spoiled and out of turn; NG SETUP with other gNBs' ids; G-PDUs with made-up TEIDs
//!  n4        PFCP from a stranger, towards a UPF or an SMF
//!  http      requests to the SBI or the REST API: spoiled, unauthorised, slow
//!  network   packets from the data network to UE addresses that exist and that do not
//! ```
//!
//! It attacks only the addresses that it is given. Its last line is JSON: what it sent, and the CPU that took.

mod datagrams;
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

/// One attacker of a running core of your own.
#[derive(Debug, Parser)]
struct Args {
    /// Who attacks.
    #[command(subcommand)]
    who: Who,
    /// Packets or messages in a second.
    #[arg(long, global = true, default_value_t = 2000)]
    rate: u32,
    /// For how long.
    #[arg(long, global = true, default_value_t = 10)]
    seconds: u64,
    /// Of the messages.
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
        /// Addresses that it tries.
        #[arg(long, required = true, value_delimiter = ',')]
        targets: Vec<Ipv4Addr>,
    },
    /// A gNB that nobody knows.
    Radio {
        /// The AMF's N2.
        #[arg(long)]
        amf: SocketAddr,
        /// The UPF's N3.
        #[arg(long)]
        n3: SocketAddr,
        /// Its own address.
        #[arg(long)]
        local: IpAddr,
    },
    /// A stranger on N4.
    N4 {
        /// The N4 end point that it attacks.
        #[arg(long)]
        target: SocketAddr,
        /// Its own address and port.
        #[arg(long)]
        local: SocketAddr,
    },
    /// A client of the SBI or of the REST API.
    Http {
        /// Where the server is.
        #[arg(long)]
        target: SocketAddr,
        /// Which requests: sbi-request or api.
        #[arg(long)]
        corpus: String,
    },
    /// A host of the data network.
    Network {
        /// The first UE address.
        #[arg(long)]
        first: Ipv4Addr,
        /// How many addresses from there on.
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
    let args = Args::parse();
    let mut pace = Pace::new(args.rate, Duration::from_secs(args.seconds));
    let (name, report) = match &args.who {
        Who::Phone { device, targets } => ("phone", datagrams::phone(device, targets, args.seed, &mut pace)?),
        Who::Radio { amf, n3, local } => ("radio", radio::attack(*amf, *n3, *local, args.seed, &mut pace)?),
        Who::N4 { target, local } => ("n4", datagrams::n4(*target, *local, args.seed, &mut pace)?),
        Who::Http { target, corpus } => {
            ("http", http::attack(*target, corpus, args.seed, &mut pace).context("HTTP")?)
        }
        Who::Network { first, count } => {
            ("network", datagrams::network(*first, *count, args.seed, &mut pace)?)
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
