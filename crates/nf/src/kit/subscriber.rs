//! One subscriber as provisioned by the operator: the source of all provisioned data of
//! Nudr_DataRepository (TS 29.505).

use super::addressing::{Addressing, overlap};
use pith_sbi::common::{CoreNetworkType, RatType, TraceData, TraceDepth};
use pith_sbi::nudm_sdm::{FrameRouteInfo, IpAddress};
use pith_types::{Ambr, BitRate, Dnn, Plmn, Snssai, Supi, Tac, five_qi};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use zeroize::Zeroize;

/// A subscriber: keys, bit rates, slices and data networks.
///
/// Its JSON is that of `pith subscriber export` and of the operator API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Subscriber {
    pub supi: Supi,
    /// Authentication data shared by USIM and home network.
    pub authentication: Authentication,
    /// `msisdn-…`, if the subscriber has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpsi: Option<String>,
    /// UE-AMBR: for all non-GBR flows of all sessions together.
    pub ambr: Ambr,
    /// Subscribed S-NSSAIs; at least one is a default one (TS 23.501 5.15.3).
    pub slices: Vec<SubscribedSlice>,
    /// Mobility restrictions; the default restricts nothing.
    #[serde(default, skip_serializing_if = "MobilityRestrictions::is_empty")]
    pub restrictions: MobilityRestrictions,
    /// The trace of the subscriber, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<SubscriberTrace>,
}

/// A trace of a subscriber (TS 32.422 4.1.2; TS 29.571 `TraceData`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscriberTrace {
    /// Trace Reference, such as `99970-00000a`: MCC, MNC, and the Trace ID.
    pub trace_ref: Arc<str>,
    /// How much is recorded.
    pub trace_depth: TraceDepth,
    /// Types of NFs that record, in hexadecimal digits (TS 32.422 5.4).
    pub ne_type_list: Arc<str>,
    /// Triggering events, in hexadecimal digits (TS 32.422 5.1).
    pub event_list: Arc<str>,
    /// IPv4 address of the trace collection entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_entity_ipv4_addr: Option<Ipv4Addr>,
    /// IPv6 address of the trace collection entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_entity_ipv6_addr: Option<Ipv6Addr>,
    /// Interfaces, in hexadecimal digits (TS 32.422 5.5); without it, all interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_list: Option<Arc<str>>,
}

impl SubscriberTrace {
    /// As data of the subscription.
    pub fn data(&self) -> TraceData {
        let mut data = TraceData::new(
            self.trace_ref.clone(),
            self.trace_depth.clone(),
            self.ne_type_list.clone(),
            self.event_list.clone(),
        );
        data.collection_entity_ipv4_addr = self.collection_entity_ipv4_addr;
        data.collection_entity_ipv6_addr = self.collection_entity_ipv6_addr;
        data.interface_list = self.interface_list.clone();
        data
    }

    fn check(&self) -> Result<(), String> {
        check_trace(&self.data()).map(drop).map_err(|why| format!("{why} in 'trace'"))?;
        if self.collection_entity_ipv4_addr.is_none() && self.collection_entity_ipv6_addr.is_none() {
            return Err("'trace' needs 'collectionEntityIpv4Addr' or 'collectionEntityIpv6Addr': gNBs send records there".into());
        }
        Ok(())
    }
}

/// Octets of a list in a trace at most. TS 32.422 5.1, 5.4 and 5.5 define fewer.
const MOST_TRACE_OCTETS: usize = 64;

/// Checks the texts and the depth of a trace; the error names the member. Returns the Trace Reference: PLMN and Trace ID (TS 32.422 5.6).
pub(crate) fn check_trace(data: &TraceData) -> Result<[u8; 6], &'static str> {
    let lists = [
        (&*data.ne_type_list, "'neTypeList' has no 1 to 64 octets in hexadecimal digits"),
        (&*data.event_list, "'eventList' has no 1 to 64 octets in hexadecimal digits"),
        (
            data.interface_list.as_deref().unwrap_or("00"),
            "'interfaceList' has no 1 to 64 octets in hexadecimal digits",
        ),
    ];
    if let Some((_, why)) = lists.iter().find(|(text, _)| !is_octets(text)) {
        return Err(why);
    }
    if matches!(data.trace_depth, TraceDepth::Other(_)) {
        return Err("unknown 'traceDepth'");
    }
    trace_reference(&data.trace_ref).ok_or("'traceRef' is not like 99970-00000a")
}

fn is_octets(text: &str) -> bool {
    let is_complete = !text.is_empty() && text.len().is_multiple_of(2) && text.len() <= 2 * MOST_TRACE_OCTETS;
    is_complete && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn trace_reference(text: &str) -> Option<[u8; 6]> {
    let (plmn, id) = text.split_once('-')?;
    let (mcc, mnc) = plmn.split_at_checked(3)?;
    let [a, b, c] = Plmn::new(mcc, mnc).ok()?.to_bcd();
    if !id.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let [d, e, f] = parse_hex(id)?;
    Some([a, b, c, d, e, f])
}

/// Mobility restrictions of a subscriber (TS 23.501 5.3.4.1; TS 29.503 6.1.6.2.4), in every network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MobilityRestrictions {
    /// Radio access technologies that are not allowed, such as `NR`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rat_restrictions: Vec<RatType>,
    /// Core networks that are not allowed: `5GC`, `EPC`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_network_type_restrictions: Vec<CoreNetworkType>,
    /// Tracking areas in which the subscriber can't register.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden_tacs: Vec<Tac>,
    /// If not empty, the tracking areas in which the subscriber gets service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tacs: Vec<Tac>,
    /// Tracking areas in which the subscriber can register, and gets no service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_allowed_tacs: Vec<Tac>,
}

impl MobilityRestrictions {
    /// Whether nothing is restricted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self) -> Result<(), String> {
        if !self.allowed_tacs.is_empty() && !self.not_allowed_tacs.is_empty() {
            return Err("'restrictions' has either 'allowedTacs' or 'notAllowedTacs'".into());
        }
        if [&self.forbidden_tacs, &self.allowed_tacs, &self.not_allowed_tacs].iter().any(|it| it.len() > 4096)
        {
            return Err("'restrictions' has at most 4096 tracking areas of a kind".into());
        }
        let is_unknown = |rat: &RatType| matches!(rat, RatType::Other(_));
        if let Some(rat) = self.rat_restrictions.iter().find(|rat| is_unknown(rat)) {
            return Err(format!("'{rat}' in 'ratRestrictions' is unknown: NR and EUTRA are known"));
        }
        let is_unknown = |core: &CoreNetworkType| matches!(core, CoreNetworkType::Other(_));
        if let Some(core) = self.core_network_type_restrictions.iter().find(|core| is_unknown(core)) {
            return Err(format!(
                "'{core}' in 'coreNetworkTypeRestrictions' is unknown: 5GC and EPC are known"
            ));
        }
        Ok(())
    }
}

/// The authentication subscription (TS 29.505 5.2.2 `AuthenticationSubscription`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Authentication {
    #[serde(default)]
    pub method: AuthenticationMethod,
    /// The functions f1 to f5*.
    #[serde(default)]
    pub algorithm: AkaAlgorithm,
    /// Permanent key K: 128 bits.
    pub k: Secret<16>,
    /// OPc of Milenage (128 bits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opc: Option<Secret<16>>,
    /// TOPc of TUAK (256 bits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topc: Option<Secret<32>>,
    /// Authentication Management Field, four hexadecimal digits; bit 0 set for 5G (TS 33.102
    /// Annex H, TS 33.501 6.1.3).
    #[serde(with = "hex_amf", default = "default_amf")]
    pub amf: [u8; 2],
    /// Highest sequence number used, 48 bits.
    #[serde(default)]
    pub sqn: u64,
}

/// 5G-AKA or EAP-AKA' (TS 33.501 6.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum AuthenticationMethod {
    /// TS 33.501 6.1.3.2.
    #[default]
    #[serde(rename = "5G_AKA")]
    FiveGAka,
    /// TS 33.501 6.1.3.1.
    #[serde(rename = "EAP_AKA_PRIME")]
    EapAkaPrime,
}

/// Functions f1 to f5*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AkaAlgorithm {
    /// TS 35.206.
    #[default]
    Milenage,
    /// TS 35.231.
    Tuak,
}

/// A slice of a subscription and its data networks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscribedSlice {
    /// The slice.
    pub snssai: Snssai,
    /// Allowed when the UE requests none.
    #[serde(default)]
    pub default: bool,
    /// Data networks in it; the first is the default one.
    pub dnns: Vec<SubscribedDnn>,
}

/// A data network of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscribedDnn {
    /// Its name.
    pub dnn: Dnn,
    /// Session-AMBR; with `None` the SMF uses the value of the data network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambr: Option<Ambr>,
    /// 5QI of the default QoS flow (TS 23.501 table 5.7.4-1).
    #[serde(default = "default_five_qi")]
    pub five_qi: u8,
    /// ARP priority level of the default QoS flow, 1 (highest) to 15.
    #[serde(default = "default_arp")]
    pub arp: u8,
    /// Static addresses of the UE: an IPv4 address, an IPv6 prefix, or both (TS 29.503 6.1.6.2.9).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_ip_address: Vec<IpAddress>,
    /// IPv4 networks behind the UE: framed routes (TS 23.501 5.6.14).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv4_frame_route_list: Vec<FrameRouteInfo>,
    /// IPv6 networks behind the UE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6_frame_route_list: Vec<FrameRouteInfo>,
}

impl SubscribedDnn {
    /// A data network with this session-AMBR, 5QI 9 and ARP 8.
    pub const fn new(dnn: Dnn, ambr: Option<Ambr>) -> Self {
        Self {
            dnn,
            ambr,
            five_qi: default_five_qi(),
            arp: default_arp(),
            static_ip_address: Vec::new(),
            ipv4_frame_route_list: Vec::new(),
            ipv6_frame_route_list: Vec::new(),
        }
    }

    /// Its static addresses and framed routes.
    pub fn addressing(&self) -> Result<Addressing, String> {
        let routes = self.ipv4_frame_route_list.iter().chain(&self.ipv6_frame_route_list);
        Addressing::of(&self.static_ip_address, routes)
    }

    fn check_addressing(&self) -> Result<(), String> {
        if let Some(IpAddress::Ipv6(v6)) =
            self.static_ip_address.iter().find(|it| matches!(it, IpAddress::Ipv6(_)))
        {
            return Err(format!(
                "a UE chooses the lower half of its IPv6 address: instead of 'ipv6Addr' {v6}, 'staticIpAddress' has an 'ipv6Prefix' such as \
                 2001:db8:45:ff01::/64"
            ));
        }
        let is_of = |list: &[FrameRouteInfo], has: fn(&FrameRouteInfo) -> bool| list.iter().all(has);
        if !is_of(&self.ipv4_frame_route_list, |it| it.ipv6_prefix.is_none())
            || !is_of(&self.ipv6_frame_route_list, |it| it.ipv4_mask.is_none())
        {
            return Err(
                "'ipv4FrameRouteList' has 'ipv4Mask', and 'ipv6FrameRouteList' has 'ipv6Prefix'".into()
            );
        }
        self.addressing().map(drop)
    }
}

const fn default_amf() -> [u8; 2] {
    [0x80, 0x00]
}

const fn default_five_qi() -> u8 {
    9
}

const fn default_arp() -> u8 {
    8
}

impl Subscriber {
    /// A subscriber with those keys, SST 1, DNN `internet`, and 1 Gbit/s: the defaults of `pith
    /// subscriber add`.
    pub fn with_defaults(supi: Supi, k: [u8; 16], opc: [u8; 16]) -> Self {
        let ambr = Ambr { uplink: BitRate::mbps(1000), downlink: BitRate::mbps(1000) };
        let dnn = "internet".parse().expect("a constant that is a DNN");
        Self {
            supi,
            authentication: Authentication {
                method: AuthenticationMethod::FiveGAka,
                algorithm: AkaAlgorithm::Milenage,
                k: Secret(k),
                opc: Some(Secret(opc)),
                topc: None,
                amf: default_amf(),
                sqn: 0,
            },
            gpsi: None,
            ambr,
            slices: vec![SubscribedSlice {
                snssai: Snssai::of_sst(1),
                default: true,
                dnns: vec![SubscribedDnn::new(dnn, Some(ambr))],
            }],
            restrictions: MobilityRestrictions::default(),
            trace: None,
        }
    }

    /// The static addresses and framed routes of all data networks.
    pub fn own_networks(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        let dnns = self.slices.iter().flat_map(|slice| &slice.dnns);
        dnns.filter_map(|dnn| dnn.addressing().ok())
            .flat_map(|addressing| addressing.networks().collect::<Vec<_>>())
    }

    /// No address or network is in two data networks, as one session only can have it.
    fn check_addressing(&self) -> Result<(), String> {
        let mut known: Vec<(IpAddr, u8)> = Vec::new();
        for dnn in self.slices.iter().flat_map(|slice| &slice.dnns) {
            let fault = |why: String| format!("data network '{}': {why}", dnn.dnn);
            dnn.check_addressing().map_err(fault)?;
            let own: Vec<_> = dnn.addressing().map_err(fault)?.networks().collect();
            let twice = own.iter().find(|network| known.iter().any(|other| overlap(*other, **network)));
            if let Some((address, prefix)) = twice {
                return Err(fault(format!(
                    "{address}/{prefix} is that of another slice or data network, too"
                )));
            }
            known.extend(own);
        }
        Ok(())
    }

    /// Checks the subscriber. The error is a sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        let auth = &self.authentication;
        match auth.algorithm {
            AkaAlgorithm::Milenage if auth.opc.is_none() => {
                return Err("Milenage needs 'opc': 32 hexadecimal digits".into());
            }
            AkaAlgorithm::Tuak if auth.topc.is_none() => {
                return Err("TUAK needs 'topc': 64 hexadecimal digits".into());
            }
            _ => {}
        }
        if auth.sqn >= 1 << 48 {
            return Err("'sqn' has at most 48 bits".into());
        }
        if !self.slices.iter().any(|slice| slice.default) {
            return Err("no slice is a default slice: set 'default: true' for one of 'slices'".into());
        }
        if let Some(slice) = self.slices.iter().find(|slice| slice.dnns.is_empty()) {
            return Err(format!("slice {} has no data network: add 'dnns' to it", slice.snssai));
        }
        let mut dnns = self.slices.iter().flat_map(|slice| &slice.dnns);
        if let Some(dnn) = dnns.find(|dnn| five_qi::is_gbr(dnn.five_qi) || !(1..=254).contains(&dnn.five_qi))
        {
            return Err(format!(
                "5QI {} of data network '{}' can't be the default one, which has no guaranteed bit rate \
                 (TS 23.501 5.7.2.7): choose 5 to 9, 69, 70, 79 or 80",
                dnn.five_qi, dnn.dnn
            ));
        }
        let arp = |dnn: &SubscribedDnn| !(1..=15).contains(&dnn.arp);
        if self.slices.iter().flat_map(|slice| &slice.dnns).any(arp) {
            return Err("'arp' is 1 to 15".into());
        }
        self.check_addressing()?;
        self.restrictions.check()?;
        self.trace.as_ref().map_or(Ok(()), SubscriberTrace::check)
    }
}

/// A key: hexadecimal digits in JSON, hidden by `Debug`. Overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<const N: usize>(pub [u8; N]);

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<const N: usize> std::fmt::Debug for Secret<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<const N: usize> std::str::FromStr for Secret<N> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        parse_hex(text).map(Self).ok_or_else(needs_key::<N>)
    }
}

/// The error says what is needed. It does not show the value, which may be a key with one digit too many.
fn needs_key<const N: usize>() -> String {
    format!("a key of {} hexadecimal digits is needed here", N * 2)
}

impl<const N: usize> Serialize for Secret<N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_hex(&self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Secret<N> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer);
        // An error of another type than text would repeat the value.
        let text = text.map_err(|_| serde::de::Error::custom(needs_key::<N>()))?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Parses exactly `N` octets of hexadecimal digits.
fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 || !text.is_ascii() {
        return None;
    }
    let mut octets = [0; N];
    for (at, octet) in octets.iter_mut().enumerate() {
        *octet = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(octets)
}

fn to_hex(octets: &[u8]) -> String {
    hex::encode(octets)
}

mod hex_amf {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(amf: &[u8; 2], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::to_hex(amf))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 2], D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse_hex(&text)
            .ok_or_else(|| serde::de::Error::custom("'amf' has four hexadecimal digits, such as 8000"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscriber() -> Subscriber {
        Subscriber::with_defaults("imsi-999700000000001".parse().unwrap(), [1; 16], [0x46; 16])
    }

    #[test]
    fn json_round_trips() {
        let json = serde_json::to_string(&subscriber()).unwrap();
        assert_eq!(serde_json::from_str::<Subscriber>(&json).unwrap(), subscriber());
        assert!(json.contains(r#""amf":"8000""#), "{json}");
    }

    #[test]
    fn debug_shows_no_key() {
        let text = format!("{:?}", subscriber());
        assert!(!text.contains("46, 46") && !text.contains("4646"), "{text}");
        assert!(!text.contains("999700000000001"), "{text}");
    }

    #[test]
    fn check_says_what_to_do() {
        let mut bad = subscriber();
        assert_eq!(bad.check(), Ok(()));
        bad.slices[0].dnns[0].five_qi = 1;
        assert!(bad.check().unwrap_err().contains("5QI 1 of data network 'internet'"));
        bad.slices[0].dnns[0].five_qi = 9;
        bad.slices[0].default = false;
        assert!(bad.check().unwrap_err().contains("default: true"));
        bad.authentication.opc = None;
        assert!(bad.check().unwrap_err().contains("opc"));
    }

    #[test]
    fn static_addresses_and_framed_routes_are_checked() {
        let check = |members: &str| {
            let json = format!(r#"{{"dnn":"internet",{members}}}"#);
            let dnn: SubscribedDnn = serde_json::from_str(&json).map_err(|error| error.to_string())?;
            let mut subscriber = subscriber();
            subscriber.slices[0].dnns = vec![dnn];
            let again = serde_json::to_string(&subscriber).unwrap();
            assert_eq!(serde_json::from_str::<Subscriber>(&again).unwrap(), subscriber);
            subscriber.check()
        };
        let good = r#""staticIpAddress":[{"ipv4Addr":"10.45.255.7"},{"ipv6Prefix":"2001:db8:45:ff07::/64"}],
            "ipv4FrameRouteList":[{"ipv4Mask":"192.168.7.0/24"}],"ipv6FrameRouteList":[{"ipv6Prefix":"2001:db8:5::/48"}]"#;
        assert_eq!(check(good), Ok(()));
        for (members, expected) in [
            (r#""staticIpAddress":[{"ipv6Addr":"2001:db8:45:ff07::1"}]"#, "'ipv6Prefix'"),
            (r#""staticIpAddress":[{"ipv4Addr":"10.45.255.7"},{"ipv4Addr":"10.45.255.8"}]"#, "at most one"),
            (
                r#""ipv4FrameRouteList":[{"ipv6Prefix":"2001:db8:5::/48"}]"#,
                "'ipv4FrameRouteList' has 'ipv4Mask'",
            ),
            (r#""ipv4FrameRouteList":[{"ipv4Mask":"192.168.7.1/24"}]"#, "192.168.7.1/24"),
            (r#""ipv4FrameRouteList":[{"ipv4Mask":"127.0.0.0/8"}]"#, "no UE can have"),
        ] {
            let error = check(members).unwrap_err();
            assert!(error.contains("internet") && error.contains(expected), "{members}: {error}");
        }
        let mut twice = subscriber();
        twice.slices[0].dnns[0].static_ip_address = vec![IpAddress::Ipv4([10, 45, 255, 7].into())];
        let second = SubscribedDnn { dnn: "ims".parse().unwrap(), ..twice.slices[0].dnns[0].clone() };
        twice.slices[0].dnns.push(second);
        assert!(
            twice.check().unwrap_err().contains("10.45.255.7/32 is that of another slice or data network")
        );
    }

    fn traced(member: &str, value: serde_json::Value) -> Result<(), String> {
        let mut trace = serde_json::json!({
            "traceRef": "99970-00000A", "traceDepth": "MINIMUM", "neTypeList": "0040", "eventList": "01",
            "collectionEntityIpv6Addr": "2001:db8::9",
        });
        trace[member] = value;
        let trace = serde_json::from_value(trace).map_err(|error| error.to_string())?;
        Subscriber { trace: Some(trace), ..subscriber() }.check()
    }

    #[test]
    fn errors_in_a_trace_name_the_member() {
        assert_eq!(traced("interfaceList", "f8".into()), Ok(()));
        assert_eq!(traced("traceRef", "310410-ffffff".into()), Ok(()));
        let long = "0".repeat(130);
        let cases = [
            ("traceRef", "99970"),
            ("traceRef", "99970-00000"),
            ("traceRef", "99970-+0000a"),
            ("traceRef", "9997-00000a"),
            ("traceRef", "9997x-00000a"),
            ("traceRef", "99\u{e9}70-00000a"),
            ("traceDepth", "DEEP"),
            ("neTypeList", ""),
            ("neTypeList", "0"),
            ("eventList", "0g"),
            ("interfaceList", &long),
            ("collectionEntityIpv6Addr", "192.0.2.9"),
        ];
        for (member, value) in cases {
            let error = traced(member, value.into()).unwrap_err();
            assert!(error.contains(member) || error.contains("IPv6"), "{member} {value}: {error}");
        }
        let error = traced("collectionEntityIpv6Addr", serde_json::Value::Null).unwrap_err();
        assert!(error.contains("collectionEntityIpv4Addr"), "{error}");
        assert!(traced("jobType", "TRACE_ONLY".into()).unwrap_err().contains("jobType"));
    }

    #[test]
    fn a_trace_reference_has_plmn_and_trace_id() {
        assert_eq!(trace_reference("99970-00000a"), Some([0x99, 0xf9, 0x07, 0, 0, 0x0a]));
        assert_eq!(trace_reference("310410-ABCDEF"), Some([0x13, 0x00, 0x14, 0xab, 0xcd, 0xef]));
    }
}
