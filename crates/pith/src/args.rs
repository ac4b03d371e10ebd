//! The command line: commands, options and examples.

use clap::{Args, Parser, Subcommand, ValueEnum};
use pith_nf::kit::AuthenticationMethod;
use pith_runtime::config::{Ipv4Net, Role, SuciProfile};
use pith_runtime::store::Existing;
use pith_types::{BitRate, BlockId, Dnn, Snssai, Supi};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// A 5G standalone core.
#[derive(Debug, Parser)]
#[command(
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "\
Begin here:
  pith up --test-network                 a core with a test network, until Ctrl-C
  pith config default > pith.yaml        every setting, explained
  pith subscriber add --help             provisioning of UEs
"
)]
pub struct Cli {
    /// Configuration file [default: $PITH_CONFIG, ./pith.yaml, /etc/pith/pith.yaml, or no file].
    #[arg(short, long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change a setting, such as amf.n2.sctp=raw; may be repeated.
    #[arg(long, global = true, value_name = "SETTING=VALUE")]
    pub set: Vec<String>,
    /// Use the REST API at this loopback address ('api.listen' of the core) instead of the Unix socket, with the
    /// token in $PITH_TOKEN.
    #[arg(long, global = true, value_name = "ADDRESS:PORT")]
    pub api: Option<SocketAddr>,
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the core: all NFs and the UPF in one process.
    Up(UpCommand),
    /// Run selected NFs of a core in a process of their own.
    Nf(NfCommand),
    /// Subscribers: add, list, show, delete, import, export.
    #[command(subcommand)]
    Subscriber(SubscriberCommand),
    /// Registered UEs: list, deregister, locate.
    #[command(subcommand)]
    Ue(UeCommand),
    /// Connected gNBs: list, reset, capacity, endpoint.
    #[command(subcommand)]
    Gnb(GnbCommand),
    /// PDU sessions: list, branch, unbranch.
    #[command(subcommand)]
    Session(SessionCommand),
    /// QoS flows of PDU sessions: list, add, remove.
    #[command(subcommand)]
    Qos(QosCommand),
    /// Shards of a process: list, move blocks of ids with their UEs.
    #[command(subcommand)]
    Shard(ShardCommand),
    /// NF instances registered with the NRF.
    #[command(subcommand)]
    Instance(ListCommand),
    /// The UPF: sessions, rules, counters, packet traces.
    #[command(subcommand)]
    Upf(UpfCommand),
    /// State of a running core.
    Status,
    /// The REST API: tokens.
    #[command(subcommand)]
    Api(ApiCommand),
    /// The audit log: changes, reads of keys, denied requests.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// The configuration file: print the default one, check one.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Home network keys for SUCIs.
    #[command(subcommand)]
    Key(KeyCommand),
    /// The private CA of the SBI: init, issue, list, renew.
    #[command(subcommand)]
    Pki(PkiCommand),
}

/// Arguments of 'pith up'.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pith up --test-network                   subscribers with public keys, in memory
  pith up --config /etc/pith/pith.yaml     your network
  pith up --test-network --set 'amf.n2.addresses=[192.0.2.10]' --set upf.n3=192.0.2.10
                                           for gNBs on other machines
")]
pub struct UpCommand {
    /// Add the subscribers of the test network (PLMN 999/70); without a file, keep them in memory.
    #[arg(long)]
    pub test_network: bool,
    /// Number of subscribers of the test network.
    #[arg(long, default_value_t = 1000, requires = "test_network")]
    pub subscribers: u32,
}

/// Arguments of 'pith nf'.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pith nf nrf
  pith nf udr --test-network
  pith nf amf --config pith.yaml
  pith nf upf
  pith nf upf --take-over     # upgrade: sessions and packets of the running UPF go on in this process
Each NF serves its address in 'sbi.addresses' of the configuration, and discovers the others through the NRF.
")]
pub struct NfCommand {
    /// NFs: nrf, udr, udm, ausf, pcf, nssf, smf, amf, upf.
    #[arg(required = true, value_name = "NF")]
    pub names: Vec<String>,
    /// Add the subscribers of the test network, if the UDR is among the NFs.
    #[arg(long)]
    pub test_network: bool,
    /// Number of subscribers of the test network.
    #[arg(long, default_value_t = 1000, requires = "test_network")]
    pub subscribers: u32,
    /// Take the running UPF over, also of another version: no session ends, no packet is lost that XDP forwards, and the former
    /// process ends. Starts as usual if none is running. Both need the same 'upf.n3', 'upf.n4', 'upf.tun', 'upf.pin' and pools.
    #[arg(long)]
    pub take_over: bool,
}

/// Commands on UEs.
#[derive(Debug, Subcommand)]
pub enum UeCommand {
    /// List all registered UEs.
    List,
    /// End a UE's registration and its sessions, and request the UE to register again.
    #[command(after_help = "\
Examples:
  pith ue deregister imsi-999700000000001
  pith subscriber delete imsi-999700000000001     # the same, without permission to register again
")]
    Deregister {
        /// The UE: imsi-999700000000001, or only its digits.
        supi: SupiArg,
    },
    /// Request the gNB of a connected UE to report the UE's cell, which 'pith ue list --json' shows.
    Locate {
        /// The UE: imsi-999700000000001, or only its digits.
        supi: SupiArg,
    },
}

/// Commands on gNBs.
#[derive(Debug, Subcommand)]
pub enum GnbCommand {
    /// List all connected gNBs.
    List,
    /// Reset the interface to a gNB: its UEs lose their connections, and stay registered.
    #[command(after_help = "\
Example:
  pith gnb reset 999/70-gnb-000001
")]
    Reset {
        /// The gNB, by the ID in 'pith gnb list'.
        id: String,
    },
    /// Change the relative capacity of the AMF until its next start. gNBs select an AMF of a set in proportion to it.
    #[command(after_help = "\
Examples:
  pith gnb capacity 0        before an upgrade of this AMF: new UEs get another AMF of the set
  pith gnb capacity 255
")]
    Capacity {
        /// 0 to 255.
        capacity: u8,
    },
    /// Change the weight of an N2 endpoint ('amf.n2.endpoints') until the AMF's next start, or remove the endpoint.
    #[command(after_help = "\
Examples:
  pith gnb endpoint 10.0.1.5 0         UEs leave the associations with the endpoint
  pith gnb endpoint 10.0.1.5 remove    gNBs end them
  pith gnb endpoint 10.0.1.5 255
")]
    Endpoint {
        /// Its address.
        address: std::net::IpAddr,
        /// 0 to 255, or remove.
        weight: String,
    },
}

/// Commands on PDU sessions.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List all PDU sessions.
    List,
    /// Start local breakout for a session: packets to some destinations leave at another UPF, near the gNB.
    #[command(after_help = "\
Example:
  pith session branch imsi-999700000000001 1 --upf edge --to 192.0.2.0/24
  pith session unbranch imsi-999700000000001 1
For all sessions of a data network, set 'breakouts' in the configuration.
")]
    Branch {
        /// The session's UE: imsi-999700000000001, or only its digits.
        supi: SupiArg,
        /// PDU session identity, 1 to 15.
        id: u8,
        /// The UPF, by its name in 'n4.upfs'.
        #[arg(long)]
        upf: String,
        /// A destination; may be repeated.
        #[arg(long, required = true, value_name = "NETWORK")]
        to: Vec<Ipv4Net>,
    },
    /// End local breakout: all packets of the session use its anchor again.
    Unbranch {
        /// The session's UE: imsi-999700000000001, or only its digits.
        supi: SupiArg,
        /// PDU session identity, 1 to 15.
        id: u8,
    },
}

/// Commands on QoS flows.
#[derive(Debug, Subcommand)]
pub enum QosCommand {
    /// List the QoS flows of all PDU sessions, with the PCC rules that are bound to them.
    List,
    /// Add a PCC rule to a session while it is in use: its packets get a QoS flow of that 5QI, or use the flow of another rule with the
    /// same 5QI and priority.
    #[command(after_help = "\
Example: a voice flow of 64 kbit/s, from and to port 5004 of a server
  pith qos add imsi-999700000000001 1 voice --5qi 1 --guaranteed '64 Kbps' \\
    --flow 'permit out 17 from 192.0.2.9 5004 to assigned'
  pith qos remove imsi-999700000000001 1 voice
Example: the UE sends the answers to a server's packets in the flow in which they arrive
  pith qos add imsi-999700000000001 1 game --5qi 7 --reflective --flow 'permit out 17 from 192.0.2.0/24 to assigned'
A flow is written for packets to the UE, and matches packets in both directions: 'permit out PROTOCOL from SERVER [PORTS] to assigned
[PORTS]', with PROTOCOL 'ip', 17 (UDP) or 6 (TCP), and SERVER an address, a prefix, or 'any'.
")]
    Add {
        /// The session's UE: imsi-999700000000001, or only its digits.
        supi: SupiArg,
        /// PDU session identity, 1 to 15.
        id: u8,
        /// A name for the rule: letters, digits, '-' and '_'.
        name: String,
        /// 5QI: 1 voice, 2 video, 5 IMS signalling, 6 to 9 without a guaranteed rate (TS 23.501 table 5.7.4-1).
        #[arg(long = "5qi", value_name = "5QI")]
        five_qi: u8,
        /// Guaranteed bit rate in both directions, for a GBR 5QI.
        #[arg(long, value_name = "RATE")]
        guaranteed: Option<BitRate>,
        /// Maximum bit rate in both directions; by default the guaranteed one.
        #[arg(long, value_name = "RATE")]
        maximum: Option<BitRate>,
        /// Priority of the flow (ARP), 1 (highest) to 15.
        #[arg(long, default_value_t = 8)]
        priority: u8,
        /// Rules with lower values are evaluated first.
        #[arg(long, default_value_t = 50)]
        precedence: u8,
        /// Packets of the rule; may be repeated.
        #[arg(long, required = true)]
        flow: Vec<String>,
        /// Reflective QoS: the UE does not get the flows; it derives its own rules from the packets that it receives. For UDP, TCP and
        /// ESP without a guaranteed rate, if the UE supports it.
        #[arg(long)]
        reflective: bool,
    },
    /// Remove a rule that was added.
    Remove {
        /// The session's UE: imsi-999700000000001, or only its digits.
        supi: SupiArg,
        /// PDU session identity, 1 to 15.
        id: u8,
        /// The name of the rule.
        name: String,
    },
}

/// Commands on shards.
#[derive(Debug, Subcommand)]
pub enum ShardCommand {
    /// List the shards: blocks of ids, contexts, inputs handled since the start, version of the owner map.
    #[command(after_help = "\
Each id begins with a block, 0 to 3ff: 5G-TMSI, AMF-UE-NGAP-ID, SEID, references in URIs, and UE addresses. A shard
serves the UEs and sessions whose ids are in its blocks.
")]
    List {
        /// If NFs are separate processes: the shards of the process with this NF.
        #[arg(long, default_value = "amf")]
        nf: String,
    },
    /// Move blocks of ids to a shard, with their UEs and sessions, which are served all the while.
    #[command(after_help = "\
Examples:
  pith shard list                   shows the blocks of each shard
  pith shard move 1f --to 1         moves one block
  pith shard move 100-1ff --to 1    moves 256 blocks, one after another
A block waits up to 2 s for the end of requests to other NFs, else it stays where it is. The first block of each shard
always stays. If contexts are stored, each shard has its blocks again after a restart.
")]
    Move {
        /// A block, 1f, or a range of blocks, 100-1ff, in hexadecimal digits.
        blocks: BlockRange,
        /// The shard that gets them.
        #[arg(long, value_name = "SHARD")]
        to: u8,
        /// If NFs are separate processes: the shards of the process with this NF.
        #[arg(long, default_value = "amf")]
        nf: String,
    },
}

/// Blocks of ids, the last included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl std::str::FromStr for BlockRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let block = |text: &str| u16::from_str_radix(text, 16).ok().filter(|block| *block < BlockId::COUNT);
        match (block(first), block(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err("a block is 0 to 3ff, a range of blocks such as 100-1ff".into()),
        }
    }
}

/// Commands on the REST API.
#[derive(Debug, Subcommand)]
pub enum ApiCommand {
    /// Tokens for programs that use the API at 'api.listen'.
    #[command(subcommand)]
    Token(TokenCommand),
}

/// Commands on API tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it. It is shown only once.
    #[command(after_help = "\
Examples:
  pith api token add console --role viewer
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:5100/v1/status
")]
    Add {
        /// A label for the token.
        name: String,
        /// Role of the token: viewer reads, operator also changes subscribers and sessions, admin may do
        /// everything.
        #[arg(long, default_value_t = Role::Viewer)]
        role: Role,
    },
    /// List all tokens, without their secrets.
    List,
    /// Revoke a token with immediate effect.
    Revoke {
        /// The token's id, as 'list' shows it.
        id: String,
    },
}

/// Commands on the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Print the last entries, oldest first. The state 'begun' without 'ended' is an interrupted or running change.
    List {
        /// Largest number of entries.
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// true: only denied requests; false: all others.
        #[arg(long, value_name = "BOOLEAN")]
        denied: Option<bool>,
    },
}

/// Commands with 'list' only.
#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// List all.
    List,
}

/// Commands on the UPF.
#[derive(Debug, Subcommand)]
pub enum UpfCommand {
    /// List UPFs with a PFCP association to the SMF.
    List,
    /// List sessions with addresses, tunnels, rates and traffic.
    Sessions {
        /// Only the session of this UE address.
        #[arg(long, conflicts_with = "teid")]
        ue: Option<IpAddr>,
        /// Only the session with a tunnel of this TEID, at either end.
        #[arg(long)]
        teid: Option<String>,
        /// Start after this SEID.
        #[arg(long, value_name = "SEID")]
        after: Option<String>,
        /// Largest number of sessions.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Show a session's rules: PDRs, FARs, QERs, URRs.
    Rules {
        /// SEID of the session, such as 0x1f, or address of its UE.
        session: String,
    },
    /// Show traffic and dropped packets by reason; for a session, offered and forwarded traffic of its flows.
    Counters {
        /// SEID of a session, such as 0x1f, or address of its UE.
        session: Option<String>,
    },
    /// Trace the packets of a tunnel's session until Ctrl-C.
    #[command(after_help = "\
Example:
  pith upf sessions                 shows TEIDs
  pith upf trace 0x9e3779b2 --seconds 10
      prints time, direction, length, QFI, matching rule and result of each packet
Other sessions are not affected. During the trace the session uses the portable path instead of XDP.
")]
    Trace {
        /// The TEID of either end, such as 0x1f.
        teid: String,
        /// End after this number of packets, 1 to 10000.
        #[arg(long, default_value_t = 1000)]
        packets: u32,
        /// End after this number of seconds, 1 to 600.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
}

/// Commands on configuration files.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting with its default and documentation.
    Default,
    /// Report the mistakes of a file with line and column.
    Check {
        /// The file.
        file: PathBuf,
    },
}

/// Commands on home network keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a private key and print the public key for the USIMs.
    #[command(after_help = "\
Example:
  pith key new --profile a /etc/pith/suci-1.key
then add the file to 'home_network_keys' in the configuration.
")]
    New {
        /// Protection scheme: a (X25519) or b (P-256).
        #[arg(long, default_value_t = SuciProfile::A)]
        profile: SuciProfile,
        /// Path of the new file.
        file: PathBuf,
    },
}

/// Commands on the private CA of the SBI, in the directory 'sbi.pki'.
#[derive(Debug, Subcommand)]
pub enum PkiCommand {
    /// Create the CA if there is none; the first 'pith nf' does the same.
    Init,
    /// Issue a certificate for a process, possibly on another host.
    #[command(after_help = "\
Examples:
  pith pki issue amf --address 10.0.0.5:7777 --out amf-files
      then copy amf-files to that host, and add the files to its configuration:
      sbi: {tls: {ca: ca.crt, certificate: amf-10.0.0.5-7777.pem, key: amf-10.0.0.5-7777.pem}}
")]
    Issue {
        /// All NFs of the process: nrf, udr, udm, ausf, pcf, nssf, smf, amf; or af or nef, for an application that uses the PCF.
        #[arg(required = true, value_name = "NF")]
        nfs: Vec<String>,
        /// Address of the process; by default that of its first NF in 'sbi.addresses'.
        #[arg(long, value_name = "ADDRESS:PORT")]
        address: Option<std::net::SocketAddr>,
        /// A further DNS name of the process.
        #[arg(long = "name", value_name = "NAME")]
        names: Vec<String>,
        /// Directory for copies of the certificate with its key and of the CA's certificate.
        #[arg(long, value_name = "DIRECTORY")]
        out: Option<PathBuf>,
    },
    /// List all certificates.
    List,
    /// Renew certificates; running processes reload them automatically.
    Renew {
        /// Certificates by the names that 'pith pki list' shows; all by default.
        #[arg(value_name = "ROLE")]
        roles: Vec<String>,
    },
}

/// Commands on subscribers.
#[derive(Debug, Subcommand)]
pub enum SubscriberCommand {
    /// Add subscribers.
    #[command(after_help = "\
Examples:
  pith subscriber add imsi-001010000000001 --k - --opc -
      reads K and OPc from standard input, a line each
  pith subscriber add 001010000000001 --count 10000 --random-keys
      ten thousand with consecutive SUPIs and individual keys ('subscriber export' shows the keys)
  pith subscriber add 001010000000001 --random-keys --slice 1 --slice 2-000001 --dnn internet --dnn ims \\
                      --downlink '200 Mbps'
")]
    Add(Box<AddArgs>),
    /// List subscribers, without keys.
    List {
        /// Start after this SUPI.
        #[arg(long, value_name = "SUPI")]
        after: Option<SupiArg>,
        /// Largest number of subscribers.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Show one subscriber.
    Show {
        /// SUPI of the subscriber.
        supi: SupiArg,
        /// Include the secret keys.
        #[arg(long)]
        keys: bool,
    },
    /// Delete subscribers.
    Delete {
        /// SUPI of the subscriber, or the first of several.
        supi: SupiArg,
        /// Delete the existing subscribers among this many consecutive SUPIs.
        #[arg(long)]
        count: Option<u64>,
    },
    /// Add the subscribers of a file: JSON from 'export' (an array, or one object per line), or CSV. Adds all
    /// or none.
    #[command(after_help = "\
CSV has a heading and one line per subscriber; ',' or ';' separates the columns:
  supi,k,opc,dnns,slices,uplink,downlink
  999700000000001,465B5CE8B199B49FAA5F0A2EE238A6BC,E8ED289DEBA952E4283B54E88E6183CA,internet,1,1 Gbps,1 Gbps
supi (or imsi), k and opc (or op) are required. Further columns: amf, sqn, method, gpsi, 5qi. Blanks separate the entries of a list.
")]
    Import {
        /// The file; - reads standard input.
        #[arg(default_value = "-")]
        file: PathBuf,
        /// Treatment of existing subscribers: refuse the file, replace them, or keep them.
        #[arg(long, default_value_t = Existing::Refuse)]
        existing: Existing,
    },
    /// Write all subscribers, including keys, as a JSON array.
    Export {
        /// The file, readable by its owner only; - writes to standard output.
        #[arg(default_value = "-")]
        file: PathBuf,
        /// Write one JSON object per line instead of an array.
        #[arg(long)]
        lines: bool,
    },
}

/// Arguments of 'pith subscriber add'.
#[derive(Debug, Args)]
#[command(next_line_help = false)]
pub struct AddArgs {
    /// SUPI of the first subscriber: imsi-… or only its digits.
    pub supi: SupiArg,
    /// Number of subscribers, with consecutive SUPIs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub count: u64,
    /// Permanent key K, 32 hexadecimal digits. With - it is read from standard input, so that it is neither in the list of
    /// processes nor in the shell's history; K comes first, then OPc or OP, a line each.
    #[arg(long, value_name = "HEX", required_unless_present = "random_keys")]
    pub k: Option<KeyArg>,
    /// OPc, 32 hexadecimal digits, or -.
    #[arg(long, value_name = "HEX", required_unless_present_any = ["random_keys", "op"])]
    pub opc: Option<KeyArg>,
    /// OP, 32 hexadecimal digits, or -, from which OPc is derived with K.
    #[arg(long, value_name = "HEX", conflicts_with = "opc")]
    pub op: Option<KeyArg>,
    /// Generate a random K and OPc for each subscriber.
    #[arg(long, conflicts_with_all = ["k", "opc", "op"])]
    pub random_keys: bool,
    /// Slice: SST, or SST-SD; the first is the default. May be repeated.
    #[arg(long = "slice", value_name = "S-NSSAI", default_value = "1")]
    pub slices: Vec<Snssai>,
    /// Data network of each slice; the first is the default. May be repeated.
    #[arg(long = "dnn", value_name = "DNN", default_value = "internet")]
    pub dnns: Vec<Dnn>,
    /// Uplink bit rate of all sessions (UE-AMBR) and of each session (session-AMBR).
    #[arg(long, value_name = "RATE", default_value = "1 Gbps")]
    pub uplink: BitRate,
    /// Downlink bit rate, as for uplink.
    #[arg(long, value_name = "RATE", default_value = "1 Gbps")]
    pub downlink: BitRate,
    /// Authentication method (TS 33.501 6.1.3): 5g-aka or eap-aka-prime.
    #[arg(long, value_enum, default_value_t = Method::FiveGAka)]
    pub method: Method,
    /// Treatment of existing subscribers: refuse the request, replace them, or keep them.
    #[arg(long, default_value_t = Existing::Refuse)]
    pub existing: Existing,
}

/// A method of primary authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// TS 33.501 6.1.3.2.
    #[value(name = "5g-aka")]
    FiveGAka,
    /// TS 33.501 6.1.3.1.
    #[value(name = "eap-aka-prime")]
    EapAkaPrime,
}

impl From<Method> for AuthenticationMethod {
    fn from(method: Method) -> Self {
        match method {
            Method::FiveGAka => Self::FiveGAka,
            Method::EapAkaPrime => Self::EapAkaPrime,
        }
    }
}

/// A SUPI, with or without `imsi-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupiArg(pub Supi);

impl FromStr for SupiArg {
    type Err = pith_types::ParseError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let supi = if digits { Supi::from_imsi(text) } else { text.parse() };
        supi.map(Self)
    }
}

/// A key of 128 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(pub pith_nf::kit::Secret<16>);

impl FromStr for Key {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// A key, or `-` for a line of standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyArg {
    Given(Key),
    StandardInput,
}

impl FromStr for KeyArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-" { Ok(Self::StandardInput) } else { text.parse().map(Self::Given) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_subscriber_needs_keys_of_one_kind() {
        let key = "465B5CE8B199B49FAA5F0A2EE238A6BC";
        for (line, error) in [
            ("pith subscriber add 999700000000001".to_owned(), Some(ErrorKind::MissingRequiredArgument)),
            (
                format!("pith subscriber add 999700000000001 --k {key}"),
                Some(ErrorKind::MissingRequiredArgument),
            ),
            (format!("pith subscriber add 999700000000001 --k {key} --opc {key}"), None),
            (format!("pith subscriber add 999700000000001 --k {key} --op {key}"), None),
            ("pith subscriber add 999700000000001 --random-keys".to_owned(), None),
            (format!("pith subscriber add 1 --k {key} --random-keys"), Some(ErrorKind::ValueValidation)),
            (format!("pith subscriber add 12345 --k {key} --random-keys"), Some(ErrorKind::ArgumentConflict)),
            (format!("pith subscriber add 12345 --k 46 --opc {key}"), Some(ErrorKind::ValueValidation)),
            (
                "pith subscriber add 12345 --random-keys --count 0".to_owned(),
                Some(ErrorKind::ValueValidation),
            ),
        ] {
            assert_eq!(parse(&line).err().map(|error| error.kind()), error, "{line}");
        }
    }

    #[test]
    fn a_supi_may_be_given_by_its_digits() {
        let digits: SupiArg = "999700000000001".parse().unwrap();
        assert_eq!(digits, "imsi-999700000000001".parse().unwrap());
        assert!("imsi-".parse::<SupiArg>().is_err() && "".parse::<SupiArg>().is_err());
    }

    #[test]
    fn global_options_may_follow_the_command() {
        let cli = parse("pith ue list --json --config a.yaml").unwrap();
        assert!(cli.json && cli.config == Some("a.yaml".into()));
    }

    #[test]
    fn settings_may_be_repeated() {
        let cli = parse("pith up --set a=1 --test-network --set b=[1,2]").unwrap();
        assert_eq!(cli.set, ["a=1", "b=[1,2]"]);
    }

    #[test]
    fn keys_have_no_debug_output() {
        let key = "465B5CE8B199B49FAA5F0A2EE238A6BC";
        let cli = parse(&format!("pith subscriber add 12345 --k {key} --opc {key}")).unwrap();
        assert!(!format!("{cli:?}").to_uppercase().contains("465B"));
    }
}
