//! SMFs that may use the UPF.

use super::Config;
use super::check::Findings;
use super::text::text_value;
use pith_upf::PermittedSmf;
use pith_upf::contract::AddressRange;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// SMFs: an address, `10.0.0.4`; an address and the source port of its requests, `10.0.0.4:8805`; or a
/// network, `10.0.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SmfFilter(pub PermittedSmf);

text_value!(SmfFilter);

impl SmfFilter {
    /// The SMF with this address and source port only.
    const fn at(socket: SocketAddr) -> Self {
        let address = socket.ip();
        let network = AddressRange { address, prefix: width(address) };
        Self(PermittedSmf { network, port: Some(socket.port()) })
    }
}

const fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for SmfFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PermittedSmf { network, port } = self.0;
        match port {
            Some(port) => SocketAddr::new(network.address, port).fmt(f),
            None if network.prefix == width(network.address) => network.address.fmt(f),
            None => write!(f, "{}/{}", network.address, network.prefix),
        }
    }
}

impl FromStr for SmfFilter {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(socket) = text.parse() {
            return Ok(Self::at(socket));
        }
        let network = || {
            let (address, prefix) = match text.split_once('/') {
                Some((address, prefix)) => (address.parse().ok()?, prefix.parse().ok()?),
                None => {
                    let address: IpAddr = text.parse().ok()?;
                    (address, width(address))
                }
            };
            (prefix <= width(address)).then_some(AddressRange { address, prefix })
        };
        let network = network().ok_or_else(|| {
            format!("'{text}' is not the address of an SMF: write, for example, 10.0.0.4, 10.0.0.4:8805 or 10.0.0.0/24")
        })?;
        if network.network() != network {
            let right = SmfFilter(PermittedSmf { network: network.network(), port: None });
            return Err(format!("'{text}' has bits set after its prefix: write {right}"));
        }
        Ok(Self(PermittedSmf { network, port: None }))
    }
}

impl Config {
    /// SMFs that may use the UPF of this process: those of 'upf.smfs', or the SMF of this configuration.
    pub fn smfs_of_upf(&self) -> Vec<PermittedSmf> {
        let own = [SmfFilter::at(self.n4.address)];
        let permitted = if self.upf.smfs.is_empty() { &own[..] } else { &self.upf.smfs };
        permitted.iter().map(|filter| filter.0).collect()
    }
}

impl Findings {
    /// Addresses must be of single hosts: peers use them to decide which PFCP and GTP-U to accept.
    pub(super) fn n4_peers(&mut self, config: &Config) {
        let sentence = "this must be one address: the N4 peer accepts messages from it";
        let is_one = |address: IpAddr| !address.is_unspecified() && !address.is_multicast();
        self.require(is_one(config.n4.address.ip()), "n4.address", sentence);
        self.require(is_one(config.upf.n4.ip()), "upf.n4", sentence);
        self.require(
            is_one(config.upf.n3.into()),
            "upf.n3",
            "this must be one address: gNBs send GTP-U to it",
        );
        for (at, filter) in config.upf.smfs.iter().enumerate() {
            let sentence = "this permits every host: list the addresses of SMFs";
            self.require(filter.0.network.prefix > 0, format!("upf.smfs[{at}]"), sentence);
        }
        for (at, peer) in config.n4.upfs.iter().enumerate() {
            let sentence = "this must be the address of one UPF";
            self.require(is_one(peer.address.ip()), format!("n4.upfs[{at}].address"), sentence);
        }
        self.require(config.upf.smfs.len() <= 64, "upf.smfs", "there are at most 64 of these");
        let named = config.upf.network_instances.iter().all(|name| (1..=100).contains(&name.len()));
        self.require(named, "upf.network_instances", "a name must have 1 to 100 characters");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_round_trip_as_text() {
        for text in
            ["10.0.0.4", "10.0.0.4:8805", "10.0.0.0/24", "2001:db8::4", "[2001:db8::4]:8805", "2001:db8::/32"]
        {
            assert_eq!(text.parse::<SmfFilter>().unwrap().to_string(), text);
        }
        for bad in ["", "smf", "10.0.0.4/33", "10.0.0.4:", "10.0.0.4:70000", "10.0.0.4/24"] {
            assert!(bad.parse::<SmfFilter>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_smf_of_the_configuration_is_permitted_by_default() {
        let smfs = |yaml: &str| {
            let permitted = Config::parse(yaml, "f").unwrap().smfs_of_upf();
            permitted.into_iter().map(|smf| SmfFilter(smf).to_string()).collect::<Vec<_>>()
        };
        assert_eq!(smfs(""), ["127.0.0.4:8805"]);
        assert_eq!(smfs("n4: {address: '10.0.0.4:8806'}"), ["10.0.0.4:8806"]);
        assert_eq!(smfs("upf: {smfs: [10.0.0.0/24, 10.1.0.4]}"), ["10.0.0.0/24", "10.1.0.4"]);
    }

    #[test]
    fn each_check_reports_its_finding() {
        for (yaml, sentence) in [
            ("n4: {address: '0.0.0.0:8805'}", "one address"),
            ("upf: {n4: '[::]:8805'}", "one address"),
            ("upf: {n3: 0.0.0.0}", "gNBs send GTP-U to it"),
            ("upf: {smfs: [0.0.0.0/0]}", "permits every host"),
            ("upf: {smfs: [10.0.0.1/8]}", "write 10.0.0.0/8"),
            ("n4: {upfs: [{name: a, address: '224.0.0.1:8805'}]}", "one UPF"),
        ] {
            let text = Config::parse(yaml, "f").unwrap_err().to_string();
            assert!(text.contains(sentence), "{yaml}: {text}");
        }
    }
}
