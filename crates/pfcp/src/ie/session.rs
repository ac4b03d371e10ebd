//! Properties of a session, its user, and flags of its messages.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{bit, flags};
use crate::ie::macros::{enum_ie, flags_ie};
use crate::wire::{Reader, put_octets8};

enum_ie! {
    /// PDN Type (TS 29.244 8.2.79).
    pub enum PdnType: mask 0x07 {
        /// IPv4.
        Ipv4 = 1,
        /// IPv6.
        Ipv6 = 2,
        /// IPv4 and IPv6.
        Ipv4v6 = 3,
        /// Not IP: unstructured.
        NonIp = 4,
        /// Ethernet.
        Ethernet = 5,
    }

    /// RAT Type (TS 29.244 8.2.186).
    pub enum RatType: mask 0xff {
        /// WLAN.
        Wlan = 3,
        /// LTE.
        Eutran = 6,
        /// A virtual RAT.
        Virtual = 7,
        /// Narrow band IoT.
        EutranNbIot = 8,
        /// LTE-M.
        LteM = 9,
        /// New Radio.
        Nr = 10,
    }
}

flags_ie! {
    /// PFCPSEReq-Flags (TS 29.244 8.2.136).
    pub struct PfcpSeReqFlags: u8, min 1 {
        /// The session restores one that existed.
        RESTI = 5/1,
        /// Stop measuring for the URRs with ASPOC.
        SUMPC = 5/2,
    }

    /// PFCPSMReq-Flags (TS 29.244 8.2.31).
    pub struct PfcpSmReqFlags: u8, min 1 {
        /// Drop buffered packets before the new actions apply.
        DROBU = 5/1,
        /// Send End Markers to the old F-TEID when switching to the new one.
        SNDEM = 5/2,
        /// Report the usage of all URRs at once.
        QAURR = 5/3,
        /// Stop measuring for the URRs with ASPOC.
        SUMPC = 5/4,
        /// Resume measuring for the URRs with ASPOC.
        RUMUC = 5/5,
        /// Delete all downlink N3mb and N19mb F-TEIDs.
        DETEID = 5/6,
    }

    /// PFCPSDRsp-Flags (TS 29.244 8.2.215).
    pub struct PfcpSdRspFlags: u8, min 1 {
        /// Session reports are still unacknowledged.
        PURU = 5/1,
    }

    /// PFCPSRReq-Flags (TS 29.244 8.2.119).
    pub struct PfcpSrReqFlags: u8, min 1 {
        /// The UP function deletes the session by itself, and has reported all usage.
        PSDBU = 5/1,
    }

    /// PFCPSRRsp-Flags (TS 29.244 8.2.32).
    pub struct PfcpSrRspFlags: u8, min 1 {
        /// Drop buffered packets.
        DROBU = 5/1,
    }

    /// Report Type of a Session Report (TS 29.244 8.2.21).
    pub struct ReportType: u8, min 1 {
        /// Downlink Data Report.
        DLDR = 5/1,
        /// Usage Report.
        USAR = 5/2,
        /// Error Indication Report.
        ERIR = 5/3,
        /// User Plane Inactivity Report.
        UPIR = 5/4,
        /// TSC Management Information Report.
        TMIR = 5/5,
        /// Session Report.
        SESR = 5/6,
        /// A request that the UP function initiates, for the reason in PFCPSRReq-Flags.
        UISR = 5/7,
    }
}

/// S-NSSAI (TS 29.244 8.2.176).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snssai {
    /// Slice/Service Type.
    pub sst: u8,
    /// Slice Differentiator, 24 bits; 0xFFFFFF: none (TS 23.003 28.4.2).
    pub sd: u32,
}

impl Ie for Snssai {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [sst, high, middle, low] = value.array()?;
        Ok(Snssai { sst, sd: u32::from_be_bytes([0, high, middle, low]) })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [_, high, middle, low] = self.sd.to_be_bytes();
        out.extend([self.sst, high, middle, low]);
    }
}

/// User ID: the session's user, for trusted UP functions (TS 29.244 8.2.101).
///
/// The fields are in wire format: IMSI, IMEI and MSISDN in telephony digits (TS 29.274 8.3, 8.10, 8.11), the
/// others text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserId {
    /// The IMSI.
    pub imsi: Option<Vec<u8>>,
    /// The IMEI.
    pub imei: Option<Vec<u8>>,
    /// The MSISDN.
    pub msisdn: Option<Vec<u8>>,
    /// A network access identifier.
    pub nai: Option<Vec<u8>>,
    /// A SUPI that is a global cable or line identifier.
    pub supi: Option<Vec<u8>>,
    /// A GPSI that is an external identifier.
    pub gpsi: Option<Vec<u8>>,
    /// A PEI that is a MAC address or EUI-64.
    pub pei: Option<Vec<u8>>,
}

impl std::fmt::Debug for UserId {
    /// Prints which identities are present, but not their values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["imsi", "imei", "msisdn", "nai", "supi", "gpsi", "pei"];
        let present = names.iter().zip(self.fields()).filter(|(_, field)| field.is_some());
        f.debug_set().entries(present.map(|(name, _)| name)).finish()
    }
}

impl UserId {
    fn fields(&self) -> [&Option<Vec<u8>>; 7] {
        [&self.imsi, &self.imei, &self.msisdn, &self.nai, &self.supi, &self.gpsi, &self.pei]
    }
}

impl Ie for UserId {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let mut field = |number| value.when(bit(octet, number), Reader::octets8);
        Ok(UserId {
            imsi: field(1)?,
            imei: field(2)?,
            msisdn: field(3)?,
            nai: field(4)?,
            supi: field(5)?,
            gpsi: field(6)?,
            pei: field(7)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let fields = self.fields();
        let present = (0..).zip(fields).filter(|(_, field)| field.is_some());
        out.push(present.fold(0, |octet, (number, _)| octet | 1 << number));
        fields.into_iter().flatten().for_each(|field| put_octets8(out, field));
    }
}

/// Trace Information (TS 29.244 8.2.108); the fields are as TS 32.422 defines them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceInformation {
    /// MCC and MNC, as in TS 24.008 10.5.1.4.
    pub plmn: [u8; 3],
    /// Trace ID.
    pub trace_id: [u8; 3],
    /// Triggering events.
    pub triggering_events: Vec<u8>,
    /// Session trace depth.
    pub session_trace_depth: u8,
    /// List of interfaces.
    pub interfaces: Vec<u8>,
    /// IPv4 or IPv6 address of the trace collection entity.
    pub collection_entity: Vec<u8>,
}

impl Ie for TraceInformation {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        Ok(TraceInformation {
            plmn: value.array()?,
            trace_id: value.array()?,
            triggering_events: value.octets8()?,
            session_trace_depth: value.u8()?,
            interfaces: value.octets8()?,
            collection_entity: value.octets8()?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.plmn);
        out.extend(self.trace_id);
        put_octets8(out, &self.triggering_events);
        out.push(self.session_trace_depth);
        put_octets8(out, &self.interfaces);
        put_octets8(out, &self.collection_entity);
    }
}

flags_ie! {
    /// Requested QoS Monitoring (TS 29.244 8.2.167).
    pub struct RequestedQosMonitoring: u8, min 1 {
        /// The downlink delay, from the UPF to the UE.
        DL = 5/1,
        /// The uplink delay, from the UE to the UPF.
        UL = 5/2,
        /// The round trip.
        RP = 5/3,
        /// By GTP-U path monitoring.
        GTPUPM = 5/4,
    }

    /// Reporting Frequency (TS 29.244 8.2.168).
    pub struct ReportingFrequency: u8, min 1 {
        /// When the delay exceeds a threshold.
        EVETT = 5/1,
        /// Periodically.
        PERIO = 5/2,
        /// When the session is released.
        SESRL = 5/3,
    }

    /// Reporting Flags (TS 29.244 8.2.204).
    pub struct ReportingFlags: u8, min 1 {
        /// Notify over N4 as well.
        DUPL = 5/1,
    }

    /// Requested Access Availability Information (TS 29.244 8.2.152).
    pub struct RequestedAccessAvailabilityInformation: u8, min 1 {
        /// Report changes of access availability.
        RRCA = 5/1,
    }
}

/// Packet delays in milliseconds: Packet Delay Thresholds, QoS Monitoring Measurement (TS 29.244 8.2.169, 8.2.171).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketDelays {
    /// Downlink.
    pub downlink: Option<u32>,
    /// Uplink.
    pub uplink: Option<u32>,
    /// Round trip.
    pub round_trip: Option<u32>,
    /// PLMF: no delay could be measured; significant in a measurement only.
    pub measurement_failure: bool,
}

impl Ie for PacketDelays {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        Ok(PacketDelays {
            downlink: value.when(bit(octet, 1), Reader::u32)?,
            uplink: value.when(bit(octet, 2), Reader::u32)?,
            round_trip: value.when(bit(octet, 3), Reader::u32)?,
            measurement_failure: bit(octet, 4),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let delays = [self.downlink, self.uplink, self.round_trip];
        let [downlink, uplink, round_trip] = delays.map(|delay| delay.is_some());
        out.push(flags([(1, downlink), (2, uplink), (3, round_trip), (4, self.measurement_failure)]));
        out.extend(delays.into_iter().flatten().flat_map(u32::to_be_bytes));
    }
}
