//! Every command, option and example.

use clap::{Args, Parser, Subcommand, ValueEnum};
use pith_nf::kit::AuthenticationMethod;
use pith_runtime::config::{Ipv4Net, Role, SuciProfile};
use pith_runtime::store::Existing;
use pith_types::{BitRate, Dnn, Snssai, Supi};
use std::net::IpAddr;
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
  pith subscriber add --help             how phones get in
"
)]
pub struct Cli {
    /// Configuration file [default: $PITH_CONFIG, ./pith.yaml, /etc/pith/pith.yaml, or no file].
    #[arg(short, long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change a setting, such as amf.n2.sctp=raw; may be given again.
    #[arg(long, global = true, value_name = "SETTING=VALUE")]
    pub set: Vec<String>,
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the core: all NFs and the UPF in one process.
    Up(UpCommand),
    /// Run some NFs of a core in a process of their own.
    Nf(NfCommand),
    /// Subscribers: add, list, show, delete, import, export.
    #[command(subcommand)]
    Subscriber(SubscriberCommand),
    /// UEs that are registered: list, deregister.
    #[command(subcommand)]
    Ue(UeCommand),
    /// gNBs that are connected.
    #[command(subcommand)]
    Gnb(ListCommand),
    /// PDU sessions: list, branch, unbranch.
    #[command(subcommand)]
    Session(SessionCommand),
    /// NF instances that the NRF knows.
    #[command(subcommand)]
    Instance(ListCommand),
    /// The UPF: sessions, rules, counters, packets on their way.
    #[command(subcommand)]
    Upf(UpfCommand),
    /// What a running core is and does.
    Status,
    /// The REST API: tokens.
    #[command(subcommand)]
    Api(ApiCommand),
    /// Who changed what, read keys, or was denied.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// The configuration file: print the default one, check one.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Keys of the home network, which uncover SUCIs.
    #[command(subcommand)]
    Key(KeyCommand),
    /// The private CA of the SBI: init, issue, list, renew.
    #[command(subcommand)]
    Pki(PkiCommand),
}

/// The core.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pith up --test-network                   subscribers with keys that everybody knows, in memory
  pith up --config /etc/pith/pith.yaml     your network
  pith up --test-network --set 'amf.n2.addresses=[192.0.2.10]' --set upf.n3=192.0.2.10
                                           for radios on other machines
")]
pub struct UpCommand {
    /// Add the subscribers of the test network (PLMN 999/70); without a file, keep them in memory.
    #[arg(long)]
    pub test_network: bool,
    /// How many subscribers the test network has.
    #[arg(long, default_value_t = 1000, requires = "test_network")]
    pub subscribers: u32,
}

/// Some NFs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pith nf nrf
  pith nf udr --test-network
  pith nf amf --config pith.yaml
  pith nf upf
Each NF serves at its place in 'sbi.addresses' of the configuration, and finds the others through the NRF.
")]
pub struct NfCommand {
    /// Of nrf, udr, udm, ausf, pcf, nssf, smf, amf, upf.
    #[arg(required = true, value_name = "NF")]
    pub names: Vec<String>,
    /// Add the subscribers of the test network, where the UDR is among the NFs.
    #[arg(long)]
    pub test_network: bool,
    /// How many subscribers the test network has.
    #[arg(long, default_value_t = 1000, requires = "test_network")]
    pub subscribers: u32,
}

/// UEs that are registered.
#[derive(Debug, Subcommand)]
pub enum UeCommand {
    /// All of them.
    List,
    /// End a UE's registration and its sessions; it is asked to register again.
    #[command(after_help = "\
Examples:
  pith ue deregister imsi-999700000000001
  pith subscriber delete imsi-999700000000001     # the same, and it may not come back
")]
    Deregister {
        /// The UE: imsi-999700000000001, or the digits alone.
        supi: SupiArg,
    },
}

/// PDU sessions.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// All of them.
    List,
    /// Have a session's packets for some destinations leave at a UPF near the radio, while it lives.
    #[command(after_help = "\
Example:
  pith session branch imsi-999700000000001 1 --upf edge --to 192.0.2.0/24
  pith session unbranch imsi-999700000000001 1
For all sessions of a data network, write 'breakouts' in the configuration.
")]
    Branch {
        /// Whose: imsi-999700000000001, or the digits alone.
        supi: SupiArg,
        /// PDU session identity, 1 to 15.
        id: u8,
        /// The UPF, by its name in 'n4.upfs'.
        #[arg(long)]
        upf: String,
        /// A destination; may be given again.
        #[arg(long, required = true, value_name = "NETWORK")]
        to: Vec<Ipv4Net>,
    },
    /// Have all its packets go by its anchor again.
    Unbranch {
        /// Whose: imsi-999700000000001, or the digits alone.
        supi: SupiArg,
        /// PDU session identity, 1 to 15.
        id: u8,
    },
}

/// The REST API.
#[derive(Debug, Subcommand)]
pub enum ApiCommand {
    /// Tokens, which programs show to use the API at 'api.listen'.
    #[command(subcommand)]
    Token(TokenCommand),
}

/// Tokens of the API.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Makes a token and prints it: it is not shown again.
    #[command(after_help = "\
Examples:
  pith api token add console --role viewer
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:5100/v1/status
")]
    Add {
        /// What it is for.
        name: String,
        /// What its holder may do: viewer looks, operator changes subscribers and sessions too, admin may do everything.
        #[arg(long, default_value_t = Role::Viewer)]
        role: Role,
    },
    /// All of them, without their secrets.
    List,
    /// Takes a token back at once.
    Revoke {
        /// Its id, as 'list' shows it.
        id: String,
    },
}

/// The audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// The last entries, oldest first.
    List {
        /// How many.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
}

/// The only thing to do with what lives in the core.
#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// All of them.
    List,
}

/// The user plane.
#[derive(Debug, Subcommand)]
pub enum UpfCommand {
    /// UPFs with a PFCP association, as the SMF knows them.
    List,
    /// Sessions: addresses, tunnels, rates, what they have used.
    Sessions {
        /// Only the session of this UE address.
        #[arg(long, conflicts_with = "teid")]
        ue: Option<IpAddr>,
        /// Only the session with a tunnel of this TEID, at either end.
        #[arg(long)]
        teid: Option<String>,
        /// Begin after this SEID.
        #[arg(long, value_name = "SEID")]
        after: Option<String>,
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// A session's rules: PDRs, FARs, QERs, URRs.
    Rules {
        /// Its SEID, such as 0x1f, or its UE's address.
        session: String,
    },
    /// Traffic and drops by reason; of a session, what its flows were offered and given.
    Counters {
        /// A session's SEID, such as 0x1f, or its UE's address.
        session: Option<String>,
    },
    /// Follows the packets of a tunnel's session as they pass, until Ctrl-C.
    #[command(after_help = "\
Example:
  pith upf sessions                 shows TEIDs
  pith upf trace 0x9e3779b2 --seconds 10
      time, direction, length and QFI of each packet, the rule that it met, what became of it
Others' sessions do not notice. With the XDP path the session takes the portable path meanwhile.
")]
    Trace {
        /// The TEID of either end, such as 0x1f.
        teid: String,
        /// End after so many packets, 1 to 10000.
        #[arg(long, default_value_t = 1000)]
        packets: u32,
        /// End after so many seconds, 1 to 600.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
}

/// Configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Prints every setting with its default and what it means.
    Default,
    /// Says what is wrong in a file, with line and column.
    Check {
        /// The file.
        file: PathBuf,
    },
}

/// Keys of the home network.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Makes a private key and prints the public key, which goes on the USIMs.
    #[command(after_help = "\
Example:
  pith key new --profile a /etc/pith/suci-1.key
then name the file in the configuration under 'home_network_keys'.
")]
    New {
        /// Protection scheme: a (X25519) or b (P-256).
        #[arg(long, default_value_t = SuciProfile::A)]
        profile: SuciProfile,
        /// The new file.
        file: PathBuf,
    },
}

/// The private CA of the SBI, in the directory that 'sbi.pki' names.
#[derive(Debug, Subcommand)]
pub enum PkiCommand {
    /// Makes the CA, if there is none; the first 'pith nf' does the same.
    Init,
    /// Issues a certificate for a process, on another host perhaps.
    #[command(after_help = "\
Examples:
  pith pki issue amf --address 10.0.0.5:7777 --shards 4 --out amf-files
      then copy amf-files to that host, and name the files in its configuration:
      sbi: {tls: {ca: ca.crt, certificate: amf-10.0.0.5-7777.pem, key: amf-10.0.0.5-7777.pem}}
")]
    Issue {
        /// Of nrf, udr, udm, ausf, pcf, nssf, smf, amf: all NFs of the process.
        #[arg(required = true, value_name = "NF")]
        nfs: Vec<String>,
        /// Where the process is called: by default what 'sbi.addresses' says of the first NF.
        #[arg(long, value_name = "ADDRESS:PORT")]
        address: Option<std::net::SocketAddr>,
        /// A DNS name at which it is called, too.
        #[arg(long = "name", value_name = "NAME")]
        names: Vec<String>,
        /// Shards ('workers') of the process: each NF has an instance in each. By default those of this host.
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..=64))]
        shards: Option<u8>,
        /// A directory for copies of the certificate with its key and of the CA's certificate.
        #[arg(long, value_name = "DIRECTORY")]
        out: Option<PathBuf>,
    },
    /// Lists what was issued.
    List,
    /// Issues certificates anew; processes that run read them by themselves.
    Renew {
        /// Which, by the names that 'pith pki list' shows: all by default.
        #[arg(value_name = "ROLE")]
        roles: Vec<String>,
    },
}

/// Subscribers.
#[derive(Debug, Subcommand)]
pub enum SubscriberCommand {
    /// Adds subscribers.
    #[command(after_help = "\
Examples:
  pith subscriber add imsi-001010000000001 --k 465B5CE8B199B49FAA5F0A2EE238A6BC \\
                      --opc E8ED289DEBA952E4283B54E88E6183CA
  pith subscriber add 001010000000001 --count 10000 --random-keys
      ten thousand, SUPIs counting up, each with keys of its own ('subscriber export' shows them)
  pith subscriber add 001010000000001 --random-keys --slice 1 --slice 2-000001 --dnn internet --dnn ims \\
                      --downlink '200 Mbps'
")]
    Add(Box<AddArgs>),
    /// Lists subscribers, without keys.
    List {
        /// Begin after this SUPI.
        #[arg(long, value_name = "SUPI")]
        after: Option<SupiArg>,
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Shows one subscriber.
    Show {
        /// Whose.
        supi: SupiArg,
        /// Show the secret keys too.
        #[arg(long)]
        keys: bool,
    },
    /// Deletes subscribers.
    Delete {
        /// Whom, or the first of them.
        supi: SupiArg,
        /// Delete those that exist of so many SUPIs, counting up.
        #[arg(long)]
        count: Option<u64>,
    },
    /// Adds the subscribers of a file: JSON that 'export' wrote (an array, or an object a line), or CSV. All or none.
    #[command(after_help = "\
CSV has a heading and a line for each subscriber, with ',' or ';' between the columns:
  supi,k,opc,dnns,slices,uplink,downlink
  999700000000001,465B5CE8B199B49FAA5F0A2EE238A6BC,E8ED289DEBA952E4283B54E88E6183CA,internet,1,1 Gbps,1 Gbps
supi (or imsi), k and opc (or op) are needed. There are amf, sqn, method, gpsi and 5qi as well; lists have blanks in between.
")]
    Import {
        /// The file; - reads standard input.
        #[arg(default_value = "-")]
        file: PathBuf,
        /// Subscribers that exist: refuse the file, replace them, or keep them.
        #[arg(long, default_value_t = Existing::Refuse)]
        existing: Existing,
    },
    /// Writes all subscribers, keys included, as a JSON array.
    Export {
        /// The file, made readable by its owner only; - writes to standard output.
        #[arg(default_value = "-")]
        file: PathBuf,
        /// A JSON object a line instead of an array.
        #[arg(long)]
        lines: bool,
    },
}

/// New subscribers.
#[derive(Debug, Args)]
#[command(next_line_help = false)]
pub struct AddArgs {
    /// SUPI of the first: imsi-… or its digits.
    pub supi: SupiArg,
    /// How many, SUPIs counting up.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub count: u64,
    /// Permanent key K, 32 hexadecimal digits.
    #[arg(long, value_name = "HEX", required_unless_present = "random_keys")]
    pub k: Option<Key>,
    /// OPc, 32 hexadecimal digits.
    #[arg(long, value_name = "HEX", required_unless_present_any = ["random_keys", "op"])]
    pub opc: Option<Key>,
    /// OP, 32 hexadecimal digits, of which and K the OPc is made.
    #[arg(long, value_name = "HEX", conflicts_with = "opc")]
    pub op: Option<Key>,
    /// Random K and OPc, of its own for each.
    #[arg(long, conflicts_with_all = ["k", "opc", "op"])]
    pub random_keys: bool,
    /// Slice: SST, or SST-SD; the first is the default one. May be given again.
    #[arg(long = "slice", value_name = "S-NSSAI", default_value = "1")]
    pub slices: Vec<Snssai>,
    /// Data network of each slice; the first is the default one. May be given again.
    #[arg(long = "dnn", value_name = "DNN", default_value = "internet")]
    pub dnns: Vec<Dnn>,
    /// Uplink bit rate, of all sessions (UE-AMBR) and of each (session-AMBR).
    #[arg(long, value_name = "RATE", default_value = "1 Gbps")]
    pub uplink: BitRate,
    /// Downlink bit rate.
    #[arg(long, value_name = "RATE", default_value = "1 Gbps")]
    pub downlink: BitRate,
    /// How they are authenticated (TS 33.501 6.1.3): 5g-aka or eap-aka-prime.
    #[arg(long, value_enum, default_value_t = Method::FiveGAka)]
    pub method: Method,
    /// Subscribers that exist: refuse all, replace them, or keep them.
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
    fn options_of_all_commands_may_stand_anywhere() {
        let cli = parse("pith ue list --json --config a.yaml").unwrap();
        assert!(cli.json && cli.config == Some("a.yaml".into()));
    }

    #[test]
    fn settings_may_be_given_again() {
        let cli = parse("pith up --set a=1 --test-network --set b=[1,2]").unwrap();
        assert_eq!(cli.set, ["a=1", "b=[1,2]"]);
    }

    #[test]
    fn every_key_is_kept_out_of_debug() {
        let key = "465B5CE8B199B49FAA5F0A2EE238A6BC";
        let cli = parse(&format!("pith subscriber add 12345 --k {key} --opc {key}")).unwrap();
        assert!(!format!("{cli:?}").to_uppercase().contains("465B"));
    }
}
