//! The settings of the service-based interface.

use super::section::section;
use super::text::{Period, words};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

section! {
    /// How NFs reach each other.
    Sbi {
        /// Where 'pith up' serves its NFs over HTTP/2. Without it, 'pith up' opens no socket for the SBI
        /// unless another NF needs one ('external', or a binding of http2): 127.0.0.1:7777 then.
        listen: Option<SocketAddr> = None,
        /// Where an NF that runs as a process of its own ('pith nf') is served instead; those not named
        /// keep their default.
        addresses: BTreeMap<HostedNf, SocketAddr> = split_addresses(),
        /// auto: NFs of one process call each other without serialisation, others over HTTP/2.
        /// http2: all calls go over HTTP/2.
        binding: Binding = Binding::Auto,
        /// NFs for which another binding is forced, such as {udm: http2}.
        bindings: BTreeMap<HostedNf, Binding> = BTreeMap::new(),
        /// NFs of another vendor and where they stand; Pith does not start its own then.
        /// Example: {udm: 'http://10.0.0.9:8000'}
        external: BTreeMap<HostedNf, String> = BTreeMap::new(),
        /// Time before a call without an answer fails with 504.
        request_timeout: Period = Period::seconds(5),
        /// Requests of others that may wait for an answer at once; the next are told 503.
        max_exchanges: u32 = 4096,
        /// Largest body taken, in octets; larger ones are told 413.
        max_body: u32 = 1 << 20,
        /// Directory in which every exchange over HTTP/2 is recorded as JSON lines, keys included:
        /// for tests only.
        record: Option<PathBuf> = None,
    }
}

words! {
    /// How an NF is reached.
    Binding, "a binding" {
        /// Without serialisation in one process, else over HTTP/2.
        Auto = "auto",
        /// Over HTTP/2.
        Http2 = "http2",
    }
}

words! {
    /// An NF by its name in the configuration.
    HostedNf, "an NF" {
        /// Network Repository Function.
        Nrf = "nrf",
        /// Unified Data Repository.
        Udr = "udr",
        /// Unified Data Management.
        Udm = "udm",
        /// Authentication Server Function.
        Ausf = "ausf",
        /// Policy Control Function.
        Pcf = "pcf",
        /// Network Slice Selection Function.
        Nssf = "nssf",
        /// Session Management Function.
        Smf = "smf",
        /// Access and Mobility Management Function.
        Amf = "amf",
    }
}

impl HostedNf {
    /// All of them, in the order in which they start.
    pub const ALL: [Self; 8] =
        [Self::Nrf, Self::Udr, Self::Udm, Self::Ausf, Self::Pcf, Self::Nssf, Self::Smf, Self::Amf];
}

impl Sbi {
    /// Where the NFs of one process are served, or are named as if they were.
    pub fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7777)))
    }

    /// Whether NFs of one process are called over HTTP/2: by others, or among themselves.
    pub fn is_served(&self) -> bool {
        let bindings = [&self.binding].into_iter().chain(self.bindings.values());
        let forced = bindings.into_iter().any(|binding| *binding == Binding::Http2);
        self.listen.is_some() || !self.external.is_empty() || forced
    }

    /// Where an NF that runs as a process of its own is served.
    pub fn address(&self, nf: HostedNf) -> SocketAddr {
        let usual = || split_addresses().get(&nf).copied().unwrap_or(self.listen());
        self.addresses.get(&nf).copied().unwrap_or_else(usual)
    }
}

/// A loopback address for each NF, so that all of them can be processes of one machine.
fn split_addresses() -> BTreeMap<HostedNf, SocketAddr> {
    let hosts = [10, 20, 12, 11, 13, 14, 4, 5];
    let address = |host| SocketAddr::from(([127, 0, 0, host], 7777));
    HostedNf::ALL.into_iter().zip(hosts.map(address)).collect()
}
