//! The AMF's settings.

use super::section::{item, section};
use super::text::{Period, list, text_value, words};
use pith_types::{Dnn, Plmn, Snssai};
use std::net::{IpAddr, Ipv4Addr};
use std::{fmt, str::FromStr};

section! {
    /// Access and Mobility Management Function.
    Amf {
        /// AMF Name, sent to gNBs (TS 38.413 9.3.3.21).
        name: String = "pith-amf".into(),
        /// AMF Region ID, 0 to 255 (TS 23.003 2.10.1).
        region: u8 = 2,
        /// AMF Set ID, 0 to 1023.
        set: u16 = 1,
        /// AMF Pointer, 0 to 63.
        pointer: u8 = 0,
        /// Slices that this AMF serves, of network.slices; all of them by default. 'nssf.amfs' names the AMFs of the others.
        #[serde(with = "list")]
        slices: Vec<Snssai> = Vec::new(),
        /// Request the instance of a session's slice from the NSSF, and select an SMF of that instance (TS 23.502 4.3.2.2.3.2). By default if
        /// 'nssf.slice_instances' has some.
        select_slice_instances: Option<bool> = None,
        /// The N2 endpoint, to which gNBs connect.
        n2: N2 = N2::default(),
        /// Algorithms of the NAS security, best first (TS 33.501 6.7.2).
        security: Security = Security::default(),
        /// Largest number of registered UEs of the process: 1000 to 16777216. Each worker serves its part, and up to an eighth
        /// more; further UEs are rejected with 5GMM cause 22, congestion, and the time of T3346. An idle UE with a session takes
        /// about 5 kB in all NFs.
        max_ues: u32 = 1 << 18,
        /// Lengths of the timers of TS 24.501 table 10.2.2.
        timers: AmfTimers = AmfTimers::default(),
        /// Indicate to UEs that IMS voice is supported (TS 23.501 5.16.3.2): for a network with a data network 'ims'. The AMF asks gNBs
        /// whether the UE's radio capabilities suffice.
        ims_voice: bool = false,
        /// The network's time zone, as a POSIX TZ string such as CET-1CEST,M3.5.0,M10.5.0/3 (the last line of a file of /usr/share/zoneinfo):
        /// phones get it with the time when they register. By default they get none.
        time_zone: Option<String> = None,
        /// Names of the network that phones can show (TS 24.501 8.2.19), such as {full: Pith Test, short: Pith}: phones get them when they
        /// register. By default they get none, and show what the SIM card has.
        network_name: Option<NetworkName> = None,
        /// Longest cycle of extended DRX, of 5.12 s to 10485.76 s, that UEs get if they request it (TS 23.501 5.31.7.2), such as 163s: write the
        /// whole seconds. A UE listens to paging once a cycle: for so long packets for it wait. Off by default (0s).
        edrx: Period = Period::seconds(0),
        /// MICO mode for UEs that request it (TS 23.501 5.4.1.3), such as {t3512: 12h}: such a UE is not paged, so that packets for it wait
        /// until it sends something. Off without this section.
        mico: Option<Mico> = None,
        /// ARP priority levels of services whose UEs are paged with priority (TS 23.501 5.4.3.2), first the highest: at most 8, such as [1, 2].
        #[serde(with = "list")]
        paging_priorities: Vec<u8> = Vec::new(),
        /// Emergency services (TS 23.501 5.16.4): off without this section, such as
        /// {dnn: sos, slice: {sst: 1}, numbers: [{number: '110', services: [police]}]}. AMF and SMF use it.
        emergency: Option<Emergency> = None,
    }
}

section! {
    /// The N2 endpoint.
    N2 {
        /// Addresses of the AMF for gNBs. With more than one the AMF is multi-homed: each association uses
        /// all of them.
        /// This needs the kernel's SCTP. The default is the address in UERANSIM's sample files.
        addresses: Vec<IpAddr> = vec![IpAddr::V4(Ipv4Addr::new(127, 0, 0, 5))],
        /// SCTP port (TS 38.412 7: 38412).
        port: u16 = 38412,
        /// SCTP stack: kernel, raw (user space over raw IP, needs CAP_NET_RAW), udp:PORT (user space
        /// over UDP, RFC 6951), or auto: kernel if available, else raw.
        sctp: SctpMode = SctpMode::Auto,
        /// Idle time of an association before SCTP sends a HEARTBEAT. After six unanswered HEARTBEATs in a
        /// row the gNB counts as disconnected.
        heartbeat: Period = Period::seconds(5),
        /// gNBs that may connect, each with its addresses, such as
        /// [{id: 999/70-gnb-000001, addresses: [10.0.0.2]}]. If the list is empty, any gNB may connect; even
        /// then a second gNB with the ID of a connected one is refused unless it has the same address. A gNB with associations
        /// from several addresses must be in the list, with all of them. A gNB has at most 32 associations.
        gnbs: Vec<Gnb> = Vec::new(),
        /// After a restart of the core, UEs stay connected at gNBs that propose to retain them (UE Retention Information, TS 38.413
        /// 8.7.1.2). Off by default: a procedure that the restart interrupted may leave AMF and SMF with different views of a
        /// session's user plane until its next packet or service request.
        retain_ues: bool = false,
        /// Further endpoints of the AMF, for gNBs with several associations, such as [{address: 10.0.1.5, usage: ue, weight: 128}]. gNBs
        /// connect to 'addresses', and learn of the others (AMF CONFIGURATION UPDATE). If one fails, UEs use the others.
        endpoints: Vec<N2Endpoint> = Vec::new(),
        /// Weight of 'addresses' among the endpoints, 0 to 255.
        weight: u8 = 255,
        /// Largest number of SCTP associations per IPv4 address or IPv6 /64: 1 to 16384.
        associations_per_address: u32 = 1024,
    }
}

item! {
    /// A further N2 endpoint.
    N2Endpoint {
        /// Address of the AMF; the port is that of 'addresses'.
        address: IpAddr,
        /// The messages for which gNBs and AMF use associations with it: ue, non-ue, both (TS 38.413 9.3.2.9).
        #[serde(default = "both_usages")]
        usage: TnlaUsage,
        /// Its share of UEs, 0 to 255 (TS 38.413 9.3.2.10): with 0 no UE begins a connection here.
        #[serde(default = "full_weight")]
        weight: u8,
    }
}

const fn both_usages() -> TnlaUsage {
    TnlaUsage::Both
}

const fn full_weight() -> u8 {
    255
}

words! {
    /// TNL Association Usage.
    TnlaUsage, "a usage of an endpoint" {
        /// Messages of UEs.
        Ue = "ue",
        /// All other messages.
        NonUe = "non-ue",
        /// All messages.
        Both = "both",
    }
}

item! {
    /// A gNB that may connect.
    Gnb {
        /// Global RAN Node ID as 'pith gnb list' shows it: PLMN, kind (gnb, ng-enb, n3iwf), hexadecimal ID.
        id: String,
        /// Addresses from which the gNB connects.
        addresses: Vec<IpAddr>,
    }
}

impl Gnb {
    /// Whether the ID has the format of 'pith gnb list'.
    pub(super) fn has_valid_id(&self) -> bool {
        let id = self.id.to_ascii_lowercase();
        let parts = ["-gnb-", "-ng-enb-", "-n3iwf-"].iter().find_map(|kind| id.split_once(kind));
        parts.is_some_and(|(plmn, number)| {
            let digits = (4..=8).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_hexdigit());
            plmn.parse::<Plmn>().is_ok() && digits
        })
    }
}

item! {
    /// Names of the network.
    NetworkName {
        /// Full name for network, 1 to 60 characters.
        full: String,
        /// Short name for network; the full name by default.
        #[serde(default)]
        short: Option<String>,
    }
}

item! {
    /// MICO mode.
    Mico {
        /// Periodic registration update timer of UEs in MICO mode; a UE may request a shorter one.
        #[serde(default = "mico_t3512")]
        t3512: Period,
        /// The registration area of UEs without mobility restrictions is the whole network ('all PLMN'), whatever AMFs it has.
        #[serde(default)]
        all_plmn_area: bool,
    }
}

const fn mico_t3512() -> Period {
    Period::minutes(12 * 60)
}

item! {
    /// Emergency services.
    Emergency {
        /// Data network of emergency sessions: the name of one in smf.data_networks.
        dnn: Dnn,
        /// Slice of emergency sessions: one in network.slices.
        slice: Snssai,
        /// 5QI of the default flow of emergency sessions (TS 23.501 table 5.7.4-1): that of IMS signalling by default.
        #[serde(default = "emergency_five_qi")]
        five_qi: u8,
        /// ARP priority level of the default flow, 1 to 15. Give no other flow the same or a lower one.
        #[serde(default = "emergency_arp_priority")]
        arp_priority: u8,
        /// Admit UEs without SIM card, and those whose authentication fails, for emergency services only, if the law of the country requires
        /// it (TS 33.501 10.2.2). Their NAS messages and their traffic have no protection.
        #[serde(default)]
        unauthenticated: bool,
        /// Largest number of such UEs of the process: 1 to 65536. Anyone can register any number of them.
        #[serde(default = "max_unauthenticated")]
        max_unauthenticated: u32,
        /// Periodic registration update timer of UEs that are registered for emergency services only. A UE that is silent longer is
        /// deregistered: for so long it can be called back.
        #[serde(default = "emergency_t3512")]
        t3512: Period,
        /// Local emergency numbers, sent to all UEs, such as [{number: '110', services: [police]}].
        #[serde(default)]
        numbers: Vec<EmergencyNumber>,
    }
}

item! {
    /// A local emergency number (TS 24.008 10.5.3.13).
    EmergencyNumber {
        /// 1 to 20 digits.
        number: String,
        /// The services that it reaches: police, ambulance, fire, marine, mountain.
        #[serde(default)]
        services: Vec<EmergencyService>,
    }
}

const fn emergency_five_qi() -> u8 {
    5
}

const fn emergency_arp_priority() -> u8 {
    1
}

const fn max_unauthenticated() -> u32 {
    1000
}

const fn emergency_t3512() -> Period {
    Period::minutes(10)
}

section! {
    /// NAS security algorithms.
    Security {
        /// Integrity: nia1 (SNOW 3G), nia2 (AES), nia3 (ZUC).
        integrity: Vec<Integrity> = vec![Integrity::Nia2, Integrity::Nia1, Integrity::Nia3],
        /// Ciphering: nea1, nea2, nea3 as above. nea0 (none) leaves NAS readable: only for tests.
        ciphering: Vec<Ciphering> = vec![Ciphering::Nea2, Ciphering::Nea1, Ciphering::Nea3],
        /// Give another AMF at which a UE registers, or to which it is handed over, a key that is derived from the UE's K_AMF, not K_AMF
        /// itself (TS 33.501 6.9.2.3.3, 6.9.3): messages from before stay secret. A registration then has a security mode control.
        derive_k_amf: bool = false,
    }
}

section! {
    /// NAS timers of the AMF. A message is sent at most five times.
    AmfTimers {
        /// Periodic registration update timer, sent to the UE: up to 31 min in minutes, up to 310 min in steps of 10 min, then of hours; rounded
        /// up (TS 24.008 10.5.7.4a).
        t3512: Period = Period::minutes(54),
        /// Time before a rejected UE tries again, sent to the UE.
        t3502: Period = Period::minutes(12),
        /// Started when DEREGISTRATION REQUEST is sent.
        t3522: Period = Period::seconds(6),
        /// Started when REGISTRATION ACCEPT is sent.
        t3550: Period = Period::seconds(6),
        /// Started when AUTHENTICATION REQUEST or SECURITY MODE COMMAND is sent.
        t3560: Period = Period::seconds(6),
        /// Started when IDENTITY REQUEST is sent.
        t3570: Period = Period::seconds(6),
        /// Time added to T3512: a UE that sends nothing for this long is unreachable (TS 24.501 5.3.7).
        mobile_reachable_margin: Period = Period::minutes(4),
        /// Time an unreachable UE stays registered.
        implicit_deregistration: Period = Period::minutes(4),
        /// Time within which a gNB must answer an NGAP request (not of TS 24.501).
        ngap_guard: Period = Period::seconds(10),
        /// Time within which the target gNB of an N2 handover must answer HANDOVER REQUEST (not of TS 24.501).
        handover_preparation: Period = Period::seconds(5),
        /// Time from HANDOVER COMMAND within which the UE must arrive at the target gNB (not of TS 24.501).
        handover_completion: Period = Period::seconds(10),
    }
}

words! {
    /// A service that an emergency number reaches (TS 24.008 table 10.5.135d).
    EmergencyService, "an emergency service" {
        /// Police.
        Police = "police",
        /// Ambulance.
        Ambulance = "ambulance",
        /// Fire brigade.
        Fire = "fire",
        /// Marine guard.
        Marine = "marine",
        /// Mountain rescue.
        Mountain = "mountain",
    }
}

words! {
    /// An integrity algorithm (TS 33.501 5.11.1.2).
    Integrity, "an integrity algorithm" {
        /// 128-NIA1: SNOW 3G.
        Nia1 = "nia1",
        /// 128-NIA2: AES.
        Nia2 = "nia2",
        /// 128-NIA3: ZUC.
        Nia3 = "nia3",
    }
}

words! {
    /// A ciphering algorithm (TS 33.501 5.11.1.1).
    Ciphering, "a ciphering algorithm" {
        /// Null ciphering.
        Nea0 = "nea0",
        /// 128-NEA1: SNOW 3G.
        Nea1 = "nea1",
        /// 128-NEA2: AES.
        Nea2 = "nea2",
        /// 128-NEA3: ZUC.
        Nea3 = "nea3",
    }
}

/// The SCTP stack that carries N2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SctpMode {
    /// The kernel's SCTP if available, else user space over raw IP.
    Auto,
    /// The kernel's SCTP.
    Kernel,
    /// User space over a raw IP socket.
    Raw,
    /// User space over UDP on this port (RFC 6951).
    Udp(u16),
}

text_value!(SctpMode);

impl fmt::Display for SctpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Kernel => f.write_str("kernel"),
            Self::Raw => f.write_str("raw"),
            Self::Udp(port) => write!(f, "udp:{port}"),
        }
    }
}

impl FromStr for SctpMode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("udp:").map(str::parse) {
            Some(Ok(port)) if port != 0 => return Ok(Self::Udp(port)),
            _ => {}
        }
        match text {
            "auto" => Ok(Self::Auto),
            "kernel" => Ok(Self::Kernel),
            "raw" => Ok(Self::Raw),
            _ => Err(format!(
                "'{text}' is not an SCTP mode: choose one of auto, kernel, raw, udp:PORT (such as udp:9899)"
            )),
        }
    }
}
