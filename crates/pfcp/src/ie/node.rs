//! Capabilities, load and reports of a node.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{bit, flags};
use crate::ie::macros::{flags_ie, number_ie};
use crate::wire::Reader;

flags_ie! {
    /// UP Function Features (TS 29.244 8.2.25).
    pub struct UpFunctionFeatures: u64, min 2 {
        /// Downlink data buffering in the CP function.
        BUCP = 5/1,
        /// Downlink Data Notification Delay.
        DDND = 5/2,
        /// DL Buffering Duration.
        DLBD = 5/3,
        /// Traffic steering.
        TRST = 5/4,
        /// F-TEID allocation in the UP function.
        FTUP = 5/5,
        /// PFD management.
        PFDM = 5/6,
        /// Header enrichment of uplink traffic.
        HEEU = 5/7,
        /// Traffic redirection enforcement.
        TREU = 5/8,
        /// End Marker packets.
        EMPU = 6/1,
        /// PDI optimised signalling: traffic endpoints.
        PDIU = 6/2,
        /// Uplink and downlink buffering control.
        UDBC = 6/3,
        /// Quota action.
        QUOAC = 6/4,
        /// Trace.
        TRACE = 6/5,
        /// Framed routing.
        FRRT = 6/6,
        /// PFD contents with several values of a property.
        PFDE = 6/7,
        /// Enhanced PFCP association release.
        EPFAR = 6/8,
        /// Deferred PDR activation and deactivation.
        DPDRA = 7/1,
        /// Activation and deactivation of predefined PDRs.
        ADPDP = 7/2,
        /// UE IP address allocation.
        UEIP = 7/3,
        /// Sessions controlled by several SMFs of a set in turn.
        SSET = 7/4,
        /// Measurement of numbers of packets.
        MNOP = 7/5,
        /// Several traffic endpoints in a PDI.
        MTE = 7/6,
        /// Bundled messages.
        BUNDL = 7/7,
        /// 5G VN group communication.
        GCOM = 7/8,
        /// Several associations with an SMF set.
        MPAS = 8/1,
        /// Redundant transmission at the transport layer.
        RTTL = 8/2,
        /// Quota validity time.
        VTIME = 8/3,
        /// Number of reports.
        NORP = 8/4,
        /// IPTV.
        IPTV = 8/5,
        /// IPv6 prefixes other than /64.
        IP6PL = 8/6,
        /// Time sensitive communication.
        TSCU = 8/7,
        /// MPTCP proxy.
        MPTCP = 8/8,
        /// ATSSS-LL steering.
        ATSSS_LL = 9/1,
        /// QoS monitoring per QoS flow and UE.
        QFQM = 9/2,
        /// QoS monitoring per GTP-U path.
        GPQM = 9/3,
        /// Size of downlink data packets (EPC).
        MT_EDT = 9/4,
        /// Cellular IoT packet rates.
        CIOT = 9/5,
        /// Ethernet PDU session anchor relocation.
        ETHAR = 9/6,
        /// Reports of the first downlink data buffered or discarded.
        DDDS = 9/7,
        /// Reliable data service.
        RDS = 9/8,
        /// Round trip times towards the UE without PMF.
        RTTWP = 10/1,
        /// Exempted application or SDF filter for the quota action.
        QUASF = 10/2,
        /// Notification of the start of a pause of charging.
        NSPOC = 10/3,
        /// L2TP.
        L2TP = 10/4,
        /// Uplink buffering during EAS relocation.
        UPBER = 10/5,
        /// Restoration of sessions by FQ-CSID, group or CP address.
        RESPS = 10/6,
        /// IP address and port replacement.
        IPREP = 10/7,
        /// DNS traffic steering.
        DNSTS = 10/8,
        /// Direct reporting of QoS monitoring events.
        DRQOS = 11/1,
        /// MBS multicast by individual delivery.
        MBSN4 = 11/2,
        /// Resource management per slice.
        PSUPRM = 11/3,
        /// Paging policy indicators by DSCP.
        EPPPI = 11/4,
        /// Redirection to a port.
        RATP = 11/5,
        /// Inactivity detection per PDR.
        UPIDP = 11/6,
    }

    /// CP Function Features (TS 29.244 8.2.58).
    pub struct CpFunctionFeatures: u32, min 1 {
        /// Load control.
        LOAD = 5/1,
        /// Overload control.
        OVRL = 5/2,
        /// Enhanced PFCP association release.
        EPFAR = 5/3,
        /// Sessions controlled by several SMFs of a set in turn.
        SSET = 5/4,
        /// Bundled messages.
        BUNDL = 5/5,
        /// Several associations from an SMF set.
        MPAS = 5/6,
        /// Additional usage reports at session deletion.
        ARDR = 5/7,
        /// UE IP address usage reports.
        UIAUR = 5/8,
        /// Partial success of session requests.
        PSUCC = 6/1,
        /// Reports of a peer GTP-U entity's restart.
        RPGUR = 6/2,
    }

    /// PFCPASReq-Flags (TS 29.244 8.2.178).
    pub struct PfcpAsReqFlags: u8, min 1 {
        /// The UPF is configured for IPUPS.
        UUPSI = 5/1,
    }

    /// PFCPASRsp-Flags (TS 29.244 8.2.134).
    pub struct PfcpAsRspFlags: u8, min 1 {
        /// The requested sessions were retained.
        PSREI = 5/1,
        /// The UPF is configured for IPUPS.
        UUPSI = 5/2,
    }

    /// PFCPAUReq-Flags (TS 29.244 8.2.120).
    pub struct PfcpAuReqFlags: u8, min 1 {
        /// The association is to be released: report all usage.
        PARPS = 5/1,
    }

    /// PFCP Association Release Request (TS 29.244 8.2.77).
    pub struct ReleaseRequestFlags: u8, min 1 {
        /// The UP function asks for the release.
        SARR = 5/1,
        /// All usage of the affected sessions has been reported.
        URSS = 5/2,
    }

    /// Node Report Type (TS 29.244 8.2.69).
    pub struct NodeReportType: u8, min 1 {
        /// A user plane path failed.
        UPFR = 5/1,
        /// A user plane path recovered.
        UPRR = 5/2,
        /// Clock drift.
        CKDR = 5/3,
        /// QoS of a GTP-U path.
        GPQR = 5/4,
        /// A peer GTP-U entity restarted.
        PURR = 5/5,
        /// Specific to a vendor.
        VSR = 5/6,
    }

    /// OCI Flags (TS 29.244 8.2.76).
    pub struct OciFlags: u8, min 1 {
        /// The overload information applies to the Node ID.
        AOCI = 5/1,
    }

    /// IP version (TS 29.244 8.2.177).
    pub struct IpVersion: u8, min 1 {
        /// IPv4.
        V4 = 5/1,
        /// IPv6.
        V6 = 5/2,
    }

    /// QoS Report Trigger (TS 29.244 8.2.165).
    pub struct QosReportTrigger: u8, min 1 {
        /// Periodic.
        PER = 5/1,
        /// A threshold was exceeded.
        THR = 5/2,
        /// At once.
        IRE = 5/3,
    }

    /// GTP-U Path Interface Type (TS 29.244 8.2.166).
    pub struct GtpuPathInterfaceType: u8, min 1 {
        /// N9.
        N9 = 5/1,
        /// N3.
        N3 = 5/2,
    }

    /// Requested Clock Drift Information (TS 29.244 8.2.145).
    pub struct RequestedClockDriftInformation: u8, min 1 {
        /// Time offset reporting.
        RRTO = 5/1,
        /// Cumulative rateRatio reporting.
        RRCR = 5/2,
    }

    /// Configured Time Domain (TS 29.244 8.2.218).
    pub struct ConfiguredTimeDomain: u8, min 1 {
        /// The time domain number configured to the NW-TT is used.
        CTDI = 5/1,
    }
}

number_ie! {
    /// Sequence Number of load, overload or usage information (TS 29.244 8.2.33).
    pub struct SequenceNumber(u32);
    /// Time Domain Number (TS 29.244 8.2.146).
    pub struct TimeDomainNumber(u8);
    /// Time Offset Threshold, in nanoseconds (TS 29.244 8.2.147).
    pub struct TimeOffsetThreshold(i64);
    /// Cumulative rateRatio Threshold (TS 29.244 8.2.148).
    pub struct CumulativeRateRatioThreshold(u32);
    /// Time Offset Measurement, in nanoseconds (TS 29.244 8.2.149).
    pub struct TimeOffsetMeasurement(i64);
    /// Cumulative rateRatio Measurement (TS 29.244 8.2.150).
    pub struct CumulativeRateRatioMeasurement(u32);
}

/// Metric: a percentage, 0 to 100 (TS 29.244 8.2.34).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric(pub u8);

impl Ie for Metric {
    /// Values over 100 are treated as 0.
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        value.u8().map(|metric| Metric(if metric > 100 { 0 } else { metric }))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.0);
    }
}

/// NF Instance ID: a UUID (TS 29.244 8.2.175).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NfInstanceId(pub [u8; 16]);

impl Ie for NfInstanceId {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        value.array().map(NfInstanceId)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0);
    }
}

/// Number of UE IP Addresses (TS 29.244 8.2.183).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberOfUeIpAddresses {
    /// IPv4 addresses.
    pub ipv4: Option<u32>,
    /// IPv6 addresses.
    pub ipv6: Option<u32>,
}

impl Ie for NumberOfUeIpAddresses {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let ipv4 = value.when(bit(octet, 1), Reader::u32)?;
        Ok(NumberOfUeIpAddresses { ipv4, ipv6: value.when(bit(octet, 2), Reader::u32)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(flags([(1, self.ipv4.is_some()), (2, self.ipv6.is_some())]));
        out.extend(self.ipv4.iter().chain(&self.ipv6).flat_map(|count| count.to_be_bytes()));
    }
}

/// The address part of an FQ-CSID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CsidNode {
    /// A global unicast IPv4 address.
    Ipv4(std::net::Ipv4Addr),
    /// A global unicast IPv6 address.
    Ipv6(std::net::Ipv6Addr),
    /// MCC and MNC as one number in the upper 20 bits, an operator's number in the lower 12.
    Number(u32),
}

/// FQ-CSID: a set of sessions of a node, which fail together (TS 29.244 8.2.43).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FqCsid {
    /// The node that assigned the identifiers.
    pub node: CsidNode,
    /// The identifiers, at most 15.
    pub csids: Vec<u16>,
    /// The type of the node: 2 for an SMF, 5 for a UPF (table 8.2.43-2); older functions omit it.
    pub node_type: Option<u8>,
}

impl Ie for FqCsid {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let node = match octet >> 4 {
            0 => CsidNode::Ipv4(value.array::<4>()?.into()),
            1 => CsidNode::Ipv6(value.array::<16>()?.into()),
            2 => CsidNode::Number(value.u32()?),
            _ => return Err(IeFault::Incorrect("the FQ-CSID Node-ID type is reserved")),
        };
        let csids = (0..octet & 0x0f).map(|_| value.u16()).collect::<Result<_, _>>()?;
        let has_type = !value.is_empty();
        Ok(FqCsid { node, csids, node_type: value.when(has_type, Reader::u8)?.map(|octet| octet & 0x0f) })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let count = self.csids.len().min(0x0f);
        let start = out.len();
        match self.node {
            CsidNode::Ipv4(address) => out.extend([&[0][..], &address.octets()].concat()),
            CsidNode::Ipv6(address) => out.extend([&[1 << 4][..], &address.octets()].concat()),
            CsidNode::Number(number) => out.extend([&[2 << 4][..], &number.to_be_bytes()].concat()),
        }
        out.iter_mut().skip(start).take(1).for_each(|octet| *octet |= count as u8);
        out.extend(self.csids.iter().take(count).flat_map(|csid| csid.to_be_bytes()));
        out.extend(self.node_type);
    }
}

/// Vendor-Specific Node Report Type (TS 29.244 8.2.217).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VendorSpecificNodeReportType {
    /// The enterprise that defines the report types.
    pub enterprise_id: u16,
    /// A bit mask defined by the enterprise.
    pub report_types: Vec<u8>,
}

impl Ie for VendorSpecificNodeReportType {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let enterprise_id = value.u16()?;
        Ok(VendorSpecificNodeReportType { enterprise_id, report_types: value.take_rest().to_vec() })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.enterprise_id.to_be_bytes());
        out.extend(&self.report_types);
    }
}
