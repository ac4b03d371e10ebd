//! The command line.

use clap::{ArgAction, Args, Parser, Subcommand};
use pith_nas::ie::{DrxParameters, PduSessionType};
use pith_ran::journey::{Profile, Step};
use pith_ran::network::Network;
use pith_ran::ue::Service;
use pith_runtime::sctp::SctpMode;
use pith_types::{Dnn, Plmn, Snssai, Supi};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;

/// gNBs and UEs for testing a 5G core
#[derive(Debug, Parser)]
#[command(version, about, long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

const LONG_ABOUT: &str = "gNBs and UEs for testing a 5G core.

One process plays many gNBs, each with an SCTP association of its own to the AMF, and thousands of UEs with \
their USIMs. They are strict: what a real UE or gNB would reject, they reject, and count as a violation \
with the clause of the specification that was broken.

The exit status is 0 if every UE got all that its profile asks for and nothing was violated, 1 if not, and \
2 if the run could not be done at all.";

const EXAMPLES: &str = "Examples:
  The test network of `pith up --test-network`: 10 UEs register and open a session
    pith-ran run --test-network --amf 127.0.0.5 --ues 10

  256 UEs at once, numbers for a program to read
    pith-ran run --test-network --amf 127.0.0.5 --ues 256 --json

  Four UEs ping 192.0.2.1, and stream 10 Mbit/s each through the UPF to `pith-ran echo`, which runs there
    pith-ran run --test-network --amf 127.0.0.5 --ues 4 --ping 192.0.2.1 --traffic 192.0.2.1 --mbps 10

  Another network, 50 new UEs a second as a Poisson process, concealed SUPIs
    pith-ran run --amf 192.0.2.1 --plmn 001/01 --supi imsi-001010000000001 --k 00..ff --opc 00..ff \\
      --suci a:1:5a8d38864820197c3394b92613b20b91633cbd897119273bf8e4a6f4eec0a650 --ues 1000 --poisson 50";

/// The port of the echo service (RFC 862).
const ECHO_PORT: u16 = 7;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Let gNBs and UEs run against a core
    #[command(after_help = EXAMPLES)]
    Run(Box<RunOptions>),
    /// Return every UDP datagram to its sender (RFC 862): the echo service for --traffic
    Echo(EchoOptions),
}

/// Options of the echo service.
#[derive(Debug, Args)]
pub struct EchoOptions {
    /// Address and port to listen on
    #[arg(long, default_value = "0.0.0.0:7", value_name = "ADDR[:PORT]", value_parser = parse_echo)]
    pub listen: SocketAddrV4,
}

/// Options of a run.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The AMF: address, and port if it is not 38412. With several AMFs, separated by commas, each gNB connects to all
    #[arg(long, required = true, value_delimiter = ',', value_name = "ADDR[:PORT]", value_parser = parse_amf, help_heading = "Network")]
    pub amf: Vec<SocketAddr>,

    /// Each AMF has a tracking area and gNBs of its own: the first gNB is at the first AMF in tracking area --tac, the second one at the
    /// second AMF in the next tracking area, and so on
    #[arg(long, help_heading = "Network")]
    pub areas: bool,

    /// Interval of SCTP heartbeats in milliseconds: an AMF that does not answer three in a row is lost. Default: 5000, six in a row
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(100..=60_000), help_heading = "Network")]
    pub heartbeat: Option<u64>,

    /// SCTP associations of each gNB with each AMF. If one is lost, its UEs use the others; with --reconnect it is established again
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=32), help_heading = "Network")]
    pub associations: u8,

    /// Further associations join by NG SETUP REQUEST with UE Retention Information, not by RAN CONFIGURATION UPDATE
    #[arg(long, help_heading = "Network")]
    pub join_by_setup: bool,

    /// SCTP transport: auto, kernel, raw or udp:PORT (RFC 6951)
    #[arg(long, default_value = "auto", help_heading = "Network")]
    pub sctp: SctpMode,

    /// Local address towards the AMF; default: the address of the route to it
    #[arg(long, value_name = "ADDR", help_heading = "Network")]
    pub local_n2: Option<IpAddr>,

    /// Local address for GTP-U; default: that of --local-n2, or the address of the route to the AMF
    #[arg(long, value_name = "ADDR", help_heading = "Network")]
    pub n3: Option<IpAddr>,

    /// Keys, PLMN, TAC, slice and DNN of the test network: K 465B5CE8..., OPc E8ED289D..., 999/70, TAC 1, SST 1, internet
    #[arg(long, help_heading = "Network")]
    pub test_network: bool,

    /// PLMN of the gNBs, and home PLMN of the UEs
    #[arg(long, default_value = "999/70", value_name = "MCC/MNC", help_heading = "Network")]
    pub plmn: Plmn,

    /// Tracking area code of the gNBs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=0xff_fffe), help_heading = "Network")]
    pub tac: u32,

    /// A slice, SST or SST-SD, of gNBs and UEs; may be repeated; sessions use the first
    #[arg(long, default_value = "1", value_name = "SST[-SD]", help_heading = "Network")]
    pub slice: Vec<Snssai>,

    /// Each UE has a session in each slice, instead of one in the first
    #[arg(long, help_heading = "Network")]
    pub each_slice: bool,

    /// Data network of the sessions
    #[arg(long, default_value = "internet", help_heading = "Network")]
    pub dnn: Dnn,

    /// Number of gNBs; UEs are distributed over them
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4000), help_heading = "gNBs and UEs")]
    pub gnbs: u32,

    /// gNB ID of the first gNB; the others are consecutive
    #[arg(long, default_value_t = 1, help_heading = "gNBs and UEs")]
    pub gnb_id: u32,

    /// Number of UEs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "gNBs and UEs")]
    pub ues: u32,

    /// SUPI of the first UE; the others are consecutive
    #[arg(long, default_value = "imsi-999700000000001", help_heading = "gNBs and UEs")]
    pub supi: Supi,

    /// Permanent key of all UEs, 32 hexadecimal digits
    #[arg(long, value_name = "HEX", required_unless_present = "test_network", help_heading = "gNBs and UEs")]
    pub k: Option<String>,

    /// OPc of all UEs, for Milenage
    #[arg(long, value_name = "HEX", conflicts_with_all = ["op", "topc"], help_heading = "gNBs and UEs")]
    pub opc: Option<String>,

    /// OP of the operator, instead of OPc
    #[arg(long, value_name = "HEX", conflicts_with = "topc", help_heading = "gNBs and UEs")]
    pub op: Option<String>,

    /// TOPc of all UEs: TUAK instead of Milenage
    #[arg(long, value_name = "HEX", help_heading = "gNBs and UEs")]
    pub topc: Option<String>,

    /// Concealment of SUPIs: null, a:KEYID:PUBLICKEY (X25519) or b:KEYID:PUBLICKEY (P-256)
    #[arg(long, default_value = "null", value_name = "SCHEME", help_heading = "gNBs and UEs")]
    pub suci: String,

    /// Routing Indicator, 1 to 4 digits
    #[arg(long, default_value = "0", value_name = "DIGITS", help_heading = "gNBs and UEs")]
    pub routing_indicator: String,

    /// Ciphering algorithms of the UEs, of 0 to 3
    #[arg(long, default_value = "0,1,2,3", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=3), help_heading = "gNBs and UEs")]
    pub nea: Vec<u8>,

    /// Integrity algorithms of the UEs, of 1 to 3
    #[arg(long, default_value = "1,2,3", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=3), help_heading = "gNBs and UEs")]
    pub nia: Vec<u8>,

    /// PDU session type that UEs request: ipv4, ipv6, ipv4v6
    #[arg(long, default_value = "ipv4", value_name = "TYPE", value_parser = parse_pdu_type, help_heading = "gNBs and UEs")]
    pub pdu_type: PduSessionType,

    /// UEs support reflective QoS: they derive QoS rules from packets with the RQI (TS 23.501 5.7.5)
    #[arg(long, help_heading = "gNBs and UEs")]
    pub reflective_qos: bool,

    /// Each session also needs a prefix for hosts behind the UE, by DHCPv6 prefix delegation, which is printed; --ping then pings from the UE's
    /// address and from one of the prefix by turns
    #[arg(long, help_heading = "gNBs and UEs")]
    pub delegate_prefix: bool,

    /// A network behind each UE, a framed route of its subscription; may be repeated. Packets for it go to the TUN interface
    #[arg(long, value_name = "NETWORK", help_heading = "gNBs and UEs")]
    pub framed: Vec<Network>,

    /// UEs register for emergency services only, and their session is an emergency session: sim (with a SIM card), no-sim (without,
    /// known by their IMEI)
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "sim", conflicts_with = "each_slice", help_heading = "gNBs and UEs")]
    pub emergency: Option<EmergencyKind>,

    /// UEs request UE-specific DRX with this cycle, in radio frames: 32, 64, 128 or 256
    #[arg(long, value_name = "FRAMES", help_heading = "gNBs and UEs")]
    pub drx: Option<DrxCycle>,

    /// UEs request extended DRX with that eDRX value of TS 24.008 table 10.5.5.32, 0 to 15
    #[arg(long, value_name = "VALUE", value_parser = clap::value_parser!(u8).range(0..=15), help_heading = "gNBs and UEs")]
    pub edrx: Option<u8>,

    /// UEs request MICO mode
    #[arg(long, action = ArgAction::SetTrue, help_heading = "gNBs and UEs")]
    pub mico: bool,

    /// UEs request an active time of MICO mode (T3324), in seconds
    #[arg(long, value_name = "SECONDS", requires = "mico", help_heading = "gNBs and UEs")]
    pub active_time: Option<u64>,

    /// What each UE does: register; session (register, establish a session); idle (session, then
    /// repeatedly idle and service request); release (repeatedly session and release); deregister
    /// (repeatedly session and deregister); parked (session, then idle); paged (session, then repeatedly
    /// idle until a downlink packet pages the UE); moving (session, then repeatedly an Xn and an N2
    /// handover to the next gNB); xn and n2 (handovers of one kind); ping-pong (to the next gNB and 50
    /// ms later back, over Xn and through the AMF); dc (session, then repeatedly the downlink to a secondary
    /// gNB and back). The packet of paged is sent by this host, which needs a
    /// route to the UEs' addresses
    #[arg(long, default_value_t = Profile::Session, help_heading = "What happens")]
    pub profile: Profile,

    /// Number of cycles of a profile with a cycle
    #[arg(long, default_value_t = 1, conflicts_with = "duration", help_heading = "What happens")]
    pub rounds: u32,

    /// No cycle begins after this time, in seconds
    #[arg(long, value_name = "SECONDS", help_heading = "What happens")]
    pub duration: Option<u64>,

    /// Pause between the steps of a cycle, in milliseconds; at least 50 before a handover, and before a packet pages a UE
    #[arg(long, default_value_t = 0, value_name = "MS", help_heading = "What happens")]
    pub pause: u64,

    /// UEs started per second, evenly spaced; without --rate and --poisson all start at once
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate, conflicts_with = "poisson", help_heading = "What happens")]
    pub rate: Option<f64>,

    /// UEs started per second on average, as a Poisson process
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate, help_heading = "What happens")]
    pub poisson: Option<f64>,

    /// Start all UEs at once, which is the default
    #[arg(long, conflicts_with_all = ["rate", "poisson"], help_heading = "What happens")]
    pub at_once: bool,

    /// UEs in progress at once, a closed loop: the next one starts when one has completed its profile
    #[arg(long, value_name = "UES", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["rate", "poisson", "at_once"], help_heading = "What happens")]
    pub in_flight: Option<u32>,

    /// After all UEs have completed their profile: service requests of random idle UEs per second; each UE is released as soon
    /// as its user plane is active. Needs the profile parked
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate, help_heading = "What happens")]
    pub services: Option<f64>,

    /// Duration of --services, in seconds
    #[arg(
        long,
        default_value_t = 10,
        value_name = "SECONDS",
        requires = "services",
        help_heading = "What happens"
    )]
    pub service_seconds: u64,

    /// After that, steps that all UEs begin at the same time, one step after the other, separated by commas: register, session,
    /// ping, traffic, idle, service, release, page, xn, n2, xn-back, n2-back (to the gNB from which the UE came), reselect (an
    /// idle UE, a cell of the next gNB), dc, dc-back, deregister, wait:MS. The result has latency, and with --watch-cpu CPU time, for each
    #[arg(long, value_delimiter = ',', value_name = "STEP", help_heading = "What happens")]
    pub then: Vec<Step>,

    /// After that, read such steps from standard input, one line at a time, as 'xn' for all UEs or 'xn 2' for the second UE;
    /// each result is a line of JSON on standard output. The end of the input ends the run
    #[arg(long, conflicts_with = "hold", help_heading = "What happens")]
    pub commands: bool,

    /// A UE whose registration fails tries again by itself (T3511) and does not count as failed
    #[arg(long, help_heading = "What happens")]
    pub persistent: bool,

    /// A gNB whose association is lost sets up another one, every 200 ms; its UEs are idle meanwhile, and request service again.
    /// Without this the run ends when the last association is lost
    #[arg(long, help_heading = "What happens")]
    pub reconnect: bool,

    /// gNBs keep their connected UEs while they have no association, and propose to the AMF to retain them (UE Retention Information);
    /// with --reconnect
    #[arg(long, requires = "reconnect", help_heading = "What happens")]
    pub retain_ues: bool,

    /// Percentage of N2 messages that are corrupted like those of a faulty radio: truncated,
    /// changed, invented, duplicated or delayed. The exit status then says little
    #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "What happens")]
    pub garble: u8,

    /// Seed of the run's random numbers, to repeat the run
    #[arg(long, default_value_t = 1, value_name = "NUMBER", help_heading = "What happens")]
    pub seed: u64,

    /// Each UE pings this address through its session; an IPv6 address needs --pdu-type ipv6 or ipv4v6
    #[arg(long, value_name = "ADDR", help_heading = "Traffic")]
    pub ping: Option<IpAddr>,

    /// Number of pings of each UE
    #[arg(long, default_value_t = 3, help_heading = "Traffic")]
    pub count: u32,

    /// Interval of pings, in milliseconds
    #[arg(long, default_value_t = 200, value_name = "MS", help_heading = "Traffic")]
    pub interval: u64,

    /// Octets of data in a ping
    #[arg(long, default_value_t = 56, value_parser = clap::value_parser!(u16).range(0..=1372), help_heading = "Traffic")]
    pub size: u16,

    /// Each UE streams UDP datagrams to the echo service at this address, which returns them;
    /// `pith-ran echo` is one
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = parse_echo, help_heading = "Traffic")]
    pub traffic: Option<SocketAddrV4>,

    /// Bit rate of each UE's stream, in Mbit/s
    #[arg(long, default_value_t = 1.0, value_name = "MBIT/S", value_parser = parse_rate, help_heading = "Traffic")]
    pub mbps: f64,

    /// Octets of each IP packet of a stream
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(44..=1400), help_heading = "Traffic")]
    pub packet: u16,

    /// Duration of a stream, in seconds
    #[arg(long, default_value_t = 5.0, value_parser = parse_rate, help_heading = "Traffic")]
    pub seconds: f64,

    /// Create a TUN interface for each UE with a session, named PREFIX1, PREFIX2, … with the session's
    /// address, for use by other programs: ping -I ue1 192.0.2.1. Best combined with --hold
    #[arg(long, value_name = "PREFIX", num_args = 0..=1, default_missing_value = "ue", value_parser = parse_prefix, help_heading = "Traffic")]
    pub tun: Option<String>,

    /// Time limit of the run, in seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS", help_heading = "Output")]
    pub timeout: u64,

    /// Keep gNBs and UEs as they are after the run, whether it passed or not, until Ctrl-C
    #[arg(long, help_heading = "Output")]
    pub hold: bool,

    /// Report the CPU time of this process (the core), from before the first UE starts until 50 ms
    /// after the last is done; NG Setup and the end of the associations are not included
    #[arg(long, value_name = "PID", help_heading = "Output")]
    pub watch_cpu: Option<u32>,

    /// Write the result as JSON to standard output, or to a file (the schema is in the README)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help_heading = "Output")]
    pub json: Option<PathBuf>,

    /// Write a line for each accepted service request: seconds since 1970, latency in milliseconds
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub timeline: Option<PathBuf>,

    /// Print no progress and no table
    #[arg(long, short, action = ArgAction::SetTrue, help_heading = "Output")]
    pub quiet: bool,
}

/// UE-specific DRX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DrxCycle {
    /// 320 ms.
    #[value(name = "32")]
    T32,
    /// 640 ms.
    #[value(name = "64")]
    T64,
    /// 1.28 s.
    #[value(name = "128")]
    T128,
    /// 2.56 s.
    #[value(name = "256")]
    T256,
}

impl From<DrxCycle> for DrxParameters {
    fn from(cycle: DrxCycle) -> Self {
        match cycle {
            DrxCycle::T32 => Self::T32,
            DrxCycle::T64 => Self::T64,
            DrxCycle::T128 => Self::T128,
            DrxCycle::T256 => Self::T256,
        }
    }
}

/// How UEs register for emergency services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EmergencyKind {
    /// With a SIM card: they are authenticated if the network can.
    Sim,
    /// Without one.
    NoSim,
}

impl From<EmergencyKind> for Service {
    fn from(kind: EmergencyKind) -> Self {
        match kind {
            EmergencyKind::Sim => Self::Emergency,
            EmergencyKind::NoSim => Self::EmergencyWithoutSim,
        }
    }
}

impl RunOptions {
    /// The first AMF.
    pub fn first_amf(&self) -> SocketAddr {
        self.amf.first().copied().expect("the option is required")
    }

    /// The number of AMFs at which each gNB is.
    pub fn amfs_of_gnb(&self) -> u32 {
        if self.areas { 1 } else { self.amf.len() as u32 }
    }

    /// The number of endpoints of all gNBs: each has one for each of its AMFs.
    pub fn endpoints(&self) -> u32 {
        self.gnbs * self.amfs_of_gnb()
    }

    /// The AMF of an endpoint. Those of a gNB are in the order of AMFs; if the AMFs have areas, the gNBs are.
    pub fn amf_of(&self, endpoint: u32) -> SocketAddr {
        self.amf[endpoint as usize % self.amf.len()]
    }
}

fn parse_amf(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>();
    let alone =
        || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, pith_runtime::sctp::NGAP_PORT));
    with_port.or_else(|_| alone()).map_err(|_| "an address such as 192.0.2.1 or 192.0.2.1:38412".to_owned())
}

fn parse_pdu_type(text: &str) -> Result<PduSessionType, String> {
    match text {
        "ipv4" => Ok(PduSessionType::Ipv4),
        "ipv6" => Ok(PduSessionType::Ipv6),
        "ipv4v6" => Ok(PduSessionType::Ipv4v6),
        _ => Err("ipv4, ipv6 or ipv4v6".to_owned()),
    }
}

fn parse_echo(text: &str) -> Result<SocketAddrV4, String> {
    let alone = || text.parse::<Ipv4Addr>().map(|address| SocketAddrV4::new(address, ECHO_PORT));
    text.parse().or_else(|_| alone()).map_err(|_| "an address such as 192.0.2.1 or 192.0.2.1:7".to_owned())
}

/// An interface's name has at most 15 characters; seven remain for the number.
fn parse_prefix(text: &str) -> Result<String, String> {
    let fits = (1..=8).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    fits.then(|| text.to_owned()).ok_or_else(|| "one to eight letters, digits and hyphens".to_owned())
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate >= 0.001 && *rate <= 1e6);
    rate.ok_or_else(|| "a number from 0.001 to 1000000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn options(arguments: &[&str]) -> Result<RunOptions, clap::Error> {
        let all = ["pith-ran", "run"].iter().chain(arguments);
        Cli::try_parse_from(all).map(|cli| match cli.command {
            Command::Run(options) => *options,
            Command::Echo(_) => unreachable!("the command is `run`"),
        })
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn there_is_no_default_key() {
        assert!(options(&["--amf", "127.0.0.1"]).is_err());
        assert!(options(&["--amf", "127.0.0.1", "--test-network"]).is_ok());
        assert!(options(&["--amf", "127.0.0.1", "--k", "00", "--opc", "00"]).is_ok());
    }

    #[test]
    fn the_amf_has_the_port_of_ngap_by_default() {
        let amf = |text| options(&["--test-network", "--amf", text]).unwrap().first_amf().to_string();
        assert_eq!((amf("127.0.0.1"), amf("[::1]:9")), ("127.0.0.1:38412".into(), "[::1]:9".into()));
    }

    #[test]
    fn json_goes_to_standard_output_unless_a_file_is_named() {
        let json = |arguments: &[&str]| {
            options(&[&["--test-network", "--amf", "127.0.0.1"], arguments].concat()).unwrap().json
        };
        assert_eq!(json(&[]), None);
        assert_eq!(json(&["--json"]), Some("-".into()));
        assert_eq!(json(&["--json", "out.json"]), Some("out.json".into()));
    }
}
