//! A traffic generator without a network card: the kernel creates frames (live frames of BPF_PROG_TEST_RUN),
//! and a BPF program writes G-PDUs or plain packets of many sessions into them and sends them by an
//! interface, millions a second from one core. `cargo run --release -p pith-datapath --example traffic --
//! --help`, or `make traffic`.

#![allow(unsafe_code)]

mod generator;
#[path = "../tests/support/mod.rs"]
mod support;

use generator::{ETHERNET, Generator, TUNNEL, Traffic};
use pith_pfcp::gtpu::UlPduSessionInformation;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::{Duration, Instant};

const HELP: &str = "\
traffic INTERFACE (uplink | downlink) [--NAME VALUE]...

Sends UDP packets by an interface, as fast as one core makes them: uplink, in GTP-U from a gNB, with PDU Session
Container; downlink, plain from a host of the data network to UEs. Needs root. The other end of a veth needs XDP or
GRO (ethtool -K IF gro on).

  --to MAC         link address that frames are for           (ff:ff:ff:ff:ff:ff)
  --sessions N     sessions, picked in no order               (1)
  --train N        packets in a row for one session           (16)
  --teid N         TEID of the first; the others follow       (256)
  --qfi N          QoS flow                                   (9)
  --ue ADDRESS     address of the first UE; the others follow (10.45.0.2)
  --gnb ADDRESS    the gNB's                                  (172.16.0.2)
  --upf ADDRESS    the UPF's on N3                            (172.16.0.1)
  --server ADDRESS the host of the data network               (172.17.0.2)
  --port N         its UDP port                               (7000)
  --bytes N        of a user's packet, 60 to 3000             (100)
  --rate N         packets in a second; 0: all that it can    (0)
  --seconds N      how long                                   (10)";

/// Frames of one call, including those that are not due yet: some tenths of a second. At the start of each
/// call the kernel waits milliseconds for all CPUs.
const FRAMES: u32 = 1 << 18;

/// The parsed command line.
struct Order {
    interface: String,
    uplink: bool,
    options: BTreeMap<String, String>,
}

impl Order {
    /// Of the command line.
    fn read() -> Result<Self, String> {
        let mut words = std::env::args().skip(1);
        let (Some(interface), Some(direction)) = (words.next(), words.next()) else {
            return Err(HELP.into());
        };
        let uplink = match direction.as_str() {
            "uplink" => true,
            "downlink" => false,
            _ => return Err(HELP.into()),
        };
        let mut options = BTreeMap::new();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").filter(|name| HELP.contains(&format!("--{name} ")));
            let (Some(name), Some(value)) = (name, words.next()) else {
                return Err(format!("{word}: no such option, or no value\n\n{HELP}"));
            };
            options.insert(name.to_owned(), value);
        }
        Ok(Self { interface, uplink, options })
    }

    /// An option's value, or its default.
    fn option<T: FromStr>(&self, name: &str, default: T) -> Result<T, String>
    where
        T::Err: Display,
    {
        let Some(value) = self.options.get(name) else { return Ok(default) };
        value.parse().map_err(|error| format!("--{name} {value}: {error}"))
    }

    /// The frame of the first session, and the offsets of its TEID and UE address.
    fn frame(&self) -> Result<(Vec<u8>, [usize; 2]), String> {
        let bytes: usize = self.option("bytes", 100)?;
        if !(60..=3000).contains(&bytes) {
            return Err("--bytes: 60 to 3000".into());
        }
        let (payload, port) = (vec![0; bytes - 28], self.option("port", 7000)?);
        let ue = self.option("ue", Ipv4Addr::new(10, 45, 0, 2))?;
        let server = self.option("server", support::SERVER)?;
        let link = [&self.link_address()?[..], &[2, 0, 0, 0, 0, 9, 8, 0]].concat();
        if !self.uplink {
            let packet = support::udp(server, ue, port, &payload);
            return Ok(([link, packet].concat(), [0, ETHERNET + 16]));
        }
        let inner = support::udp(ue, server, port, &payload);
        let information = UlPduSessionInformation { qfi: self.option("qfi", 9)?, qos_monitoring: None };
        let header =
            information.gpdu_header(self.option("teid", 256)?, inner.len()).ok_or("--qfi: 0 to 63")?;
        let (gnb, upf) = (self.option("gnb", support::GNB)?, self.option("upf", support::UPF)?);
        let mut outer = support::udp(gnb, upf, 2152, &[&header[..], &inner].concat());
        outer[20..22].copy_from_slice(&2152u16.to_be_bytes());
        Ok(([link, outer].concat(), [ETHERNET + 32, ETHERNET + TUNNEL + 12]))
    }

    fn link_address(&self) -> Result<[u8; 6], String> {
        let text: String = self.option("to", "ff:ff:ff:ff:ff:ff".to_owned())?;
        let octets: Result<Vec<u8>, _> = text.split(':').map(|octet| u8::from_str_radix(octet, 16)).collect();
        octets.ok().and_then(|octets| octets.try_into().ok()).ok_or(format!("--to {text}: no link address"))
    }
}

/// The generator as ordered.
fn generator_of(order: &Order) -> Result<Generator, String> {
    let (frame, [teid_at, address_at]) = order.frame()?;
    let mut generator =
        Generator::load().map_err(|error| format!("{error}; this needs root, and a build with clang"))?;
    generator.set_device(0, &order.interface).map_err(|error| format!("{}: {error}", order.interface))?;
    let rate: u64 = order.option("rate", 0)?;
    let traffic = Traffic {
        sessions: order.option("sessions", 1)?,
        train: order.option("train", 16)?,
        teid_at,
        address_at,
        interval: 1_000_000_000u64.checked_div(rate).unwrap_or(0),
        ..Traffic::default()
    };
    generator.configure(&traffic, frame);
    Ok(generator)
}

fn go() -> Result<(), String> {
    let order = Order::read()?;
    let generator = generator_of(&order)?;
    let time = Duration::from_secs_f64(order.option("seconds", 10.0)?);
    let (begin, mut call) = (Instant::now(), generator.call("generate"));
    while begin.elapsed() < time {
        call.run(FRAMES, 0).map_err(|error| error.to_string())?;
    }
    let (sent, seconds) = (generator.generated(), begin.elapsed().as_secs_f64());
    let rate = sent as f64 / seconds;
    let bits = rate * (call.octets() * 8) as f64;
    println!("{sent} packets in {seconds:.2} s: {:.0} kpps, {:.2} Gbit/s", rate / 1e3, bits / 1e9);
    Ok(())
}

fn main() {
    if let Err(reason) = go() {
        eprintln!("{reason}");
        std::process::exit(1);
    }
}
