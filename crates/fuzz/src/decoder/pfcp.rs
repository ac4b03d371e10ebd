//! PFCP (TS 29.244) and GTP-U (TS 29.281).

use crate::target::{CheckFailed, ensure, same};
use pith_pfcp::group::Ie;
use pith_pfcp::gtpu::{Packet, Signalling};
use pith_pfcp::ie::*;
use pith_pfcp::rules::*;
use pith_pfcp::wire::Reader;
use pith_pfcp::{Message, bundled, peek};

/// A datagram, all messages bundled in it.
pub fn message(input: &[u8]) -> Result<(), CheckFailed> {
    let mut octets = 0;
    for one in bundled(input) {
        octets += one.len();
        one_message(one)?;
    }
    ensure(octets <= input.len(), || "bundled messages overlap".into())
}

fn one_message(octets: &[u8]) -> Result<(), CheckFailed> {
    let seen = peek(octets);
    let (header, message) = match Message::decode(octets) {
        Ok(decoded) => decoded,
        Err(error) => {
            let _ = error.to_string();
            return Ok(());
        }
    };
    let same_ids = seen.is_some_and(|seen| seen.seid == header.seid && seen.sequence == header.sequence);
    ensure(same_ids, || format!("a peek sees {seen:?} of {header:?}"))?;
    let mut out = Vec::new();
    message
        .encode_with(&header, &mut out)
        .map_err(|error| CheckFailed(format!("{error} of {}", octets.len())))?;
    same(&message, Message::decode(&out).map(|(_, again)| again))
}

fn value<T: Ie + PartialEq + std::fmt::Debug>(octets: &[u8]) -> Result<(), CheckFailed> {
    let Ok(value) = T::decode(&mut Reader::new(octets, 0)) else { return Ok(()) };
    let mut out = Vec::new();
    value.encode(&mut out);
    same(&value, T::decode(&mut Reader::new(&out, 0)))
}

macro_rules! values {
    ($octets:expr, $($value:ty)*) => {
        $(value::<$value>($octets).map_err(|CheckFailed(what)| CheckFailed(format!("{}: {what}", stringify!($value))))?;)*
    };
}

/// The value of an IE, decoded as each IE type.
pub fn ie(input: &[u8]) -> Result<(), CheckFailed> {
    values!(input,
        Cause OffendingIe FailedRuleId FSeid FTeid UeIpAddress EntityIpAddress AlternativeSmfIpAddress
        SourceIpAddress IpMulticastAddress RemoteGtpuPeer NodeId SmfSetId UeIpAddressPoolIdentity UpFunctionFeatures
        CpFunctionFeatures Metric NumberOfUeIpAddresses FqCsid Snssai UserId TraceInformation PacketDelays SdfFilter
        OuterHeaderRemoval OuterHeaderCreation FlowInformation PfdContents MacAddress VlanTag MacAddresses ApplyAction
        TransportLevelMarking ForwardingPolicy RedirectInformation HeaderEnrichment IpAddressAndPortReplacement
        GateStatus BitRates Qfi PacketRateStatus DlFlowLevelMarking DscpToPpiMapping ReportingTriggers
        UsageReportTrigger Volume VolumeMeasurement DroppedDlTrafficThreshold TimeQuotaMechanism Multiplier
        AdditionalUsageReports DlBufferingSuggestedPacketCount DownlinkDataServiceInformation SteeringThresholds
        AccessAvailabilityInformation
        CreatePdr UpdatePdr CreatedPdr Pdi CreateFar UpdateFar CreateUrr UpdateUrr CreateQer UpdateQer CreateBar
        UpdateBar CreateMar UpdateMar CreateSrr UpdateSrr CreateTrafficEndpoint UpdateTrafficEndpoint UsageReport
        SessionReport DownlinkDataReport ErrorIndicationReport
    );
    Ok(())
}

/// A GTP-U datagram.
pub fn gtpu(input: &[u8]) -> Result<(), CheckFailed> {
    let Ok(packet) = Packet::decode(input) else { return Ok(()) };
    let whole = input.get(packet.header_len..packet.header_len + packet.payload.len());
    ensure(whole == Some(packet.payload), || format!("the payload is elsewhere: {packet:?}"))?;
    let extensions = packet.extensions.count();
    ensure(extensions * 4 <= input.len(), || format!("{extensions} extension headers"))?;
    let _ = (packet.pdu_session_information(), packet.uncomprehended(|known| known == 0x85));
    let Ok(signalling) = Signalling::decode(&packet) else { return Ok(()) };
    let _ = format!("{signalling:?}");
    Ok(())
}
