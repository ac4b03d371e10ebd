//! Properties for any octets: no panic, and a decoded message is equal after encoding and decoding again.

use pith_pfcp::group::Ie;
use pith_pfcp::gtpu::{Packet, Signalling};
use pith_pfcp::ie::*;
use pith_pfcp::rules::*;
use pith_pfcp::wire::Reader;
use pith_pfcp::{Message, bundled, peek};
use proptest::prelude::*;

fn vectors() -> Vec<Vec<u8>> {
    let lines = include_str!("vectors/go-pfcp.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| hex::decode(line.rsplit(" | ").next()?).ok()).collect()
}

/// Decodes; if that succeeds, encoding and decoding again must return the same.
fn check_message(octets: &[u8]) -> Result<(), TestCaseError> {
    peek(octets);
    bundled(octets).for_each(|message| {
        peek(message);
    });
    let Ok((header, message)) = Message::decode(octets) else { return Ok(()) };
    let mut out = vec![0xee];
    message.encode_with(&header, &mut out).expect("no longer than it was");
    let (_, again) = Message::decode(&out[1..]).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(again, message);
    Ok(())
}

fn check_value<T: Ie + PartialEq + std::fmt::Debug>(octets: &[u8]) -> Result<(), TestCaseError> {
    let Ok(value) = T::decode(&mut Reader::new(octets, 0)) else { return Ok(()) };
    let mut out = Vec::new();
    value.encode(&mut out);
    let again =
        T::decode(&mut Reader::new(&out, 0)).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(again, value);
    Ok(())
}

macro_rules! check_values {
    ($octets:expr, $($value:ty)*) => { $(check_value::<$value>($octets)?;)* };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn random_octets_never_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_message(&octets)?;
        if let Ok(packet) = Packet::decode(&octets) {
            let _ = (Signalling::decode(&packet), packet.pdu_session_information(), packet.uncomprehended(|_| false));
        }
    }

    #[test]
    fn random_elements_behind_a_good_header_never_panic(
        message_type in 1u8..60,
        ies in proptest::collection::vec((0u16..330, proptest::collection::vec(any::<u8>(), 0..24)), 0..12),
    ) {
        let put = |(ie_type, value): &(u16, Vec<u8>)| {
            [&ie_type.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
        };
        let body: Vec<u8> = ies.iter().flat_map(put).collect();
        let length = (body.len() as u16 + 12).to_be_bytes();
        let octets = [&[0x21, message_type, length[0], length[1]][..], &[1; 12], &body].concat();
        check_message(&octets)?;
    }

    #[test]
    fn a_message_with_octets_changed_is_rejected_or_understood(
        vector in proptest::sample::select(vectors()),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut octets = vector;
        for (index, octet) in changes {
            let index = index.index(octets.len());
            octets[index] = octet;
        }
        check_message(&octets)?;
    }

    #[test]
    fn a_value_that_was_understood_is_written_back_the_same(octets in proptest::collection::vec(any::<u8>(), 0..48)) {
        check_values!(&octets,
            Cause OffendingIe FailedRuleId FSeid FTeid UeIpAddress EntityIpAddress AlternativeSmfIpAddress SourceIpAddress
            IpMulticastAddress RemoteGtpuPeer NodeId SmfSetId UeIpAddressPoolIdentity UpFunctionFeatures
            CpFunctionFeatures Metric NumberOfUeIpAddresses FqCsid Snssai UserId TraceInformation PacketDelays SdfFilter
            OuterHeaderRemoval FlowInformation PfdContents MacAddress VlanTag MacAddresses ApplyAction
            TransportLevelMarking ForwardingPolicy RedirectInformation HeaderEnrichment IpAddressAndPortReplacement
            GateStatus BitRates Qfi PacketRateStatus DlFlowLevelMarking DscpToPpiMapping ReportingTriggers
            UsageReportTrigger Volume VolumeMeasurement DroppedDlTrafficThreshold TimeQuotaMechanism Multiplier
            AdditionalUsageReports DlBufferingSuggestedPacketCount DownlinkDataServiceInformation SteeringThresholds
            AccessAvailabilityInformation CreatePdr UpdateFar UsageReport
        );
    }

    #[test]
    fn a_coded_duration_is_never_shorter_than_asked_for(seconds in 1u64..1_200_000) {
        let coded = CodedDuration::at_least(seconds);
        prop_assert!(coded.seconds().is_none_or(|coded| coded >= seconds));
        prop_assert!(coded.seconds().is_some() || seconds > 31 * 36000);
    }

    #[test]
    fn a_point_in_time_survives_the_wrap_of_2036(seconds in 1_000_000_000u64..4_000_000_000) {
        prop_assert_eq!(NtpSeconds::from_unix(seconds).to_unix(), seconds);
    }

    #[test]
    fn a_network_instance_is_readable_in_labels_and_as_text(name in "[a-z]{1,20}(\\.[a-z0-9]{1,20}){0,3}") {
        let (labels, text) = (NetworkInstance::from_dnn(&name), NetworkInstance(name.clone().into_bytes()));
        prop_assert_eq!(labels.name(), name.as_str());
        prop_assert_eq!(text.name(), name.as_str());
    }
}
