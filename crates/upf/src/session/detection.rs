//! Packet detection: compiles PDIs (TS 29.244 5.2.1A).

use std::net::Ipv6Addr;

use pith_pfcp::IeType;
use pith_pfcp::ie::{
    self, Cause, Choice, DestinationInterface, FTeid, FailedRuleId, InterfaceType, SourceInterface,
    UeIpAddress,
};
use pith_pfcp::rules::{CreatePdr, CreateTrafficEndpoint};

use super::provision::RuleSet;
use crate::config::Config;
use crate::contract::{
    AddressRange, Direction, FlowDescription, Qfi, SdfFilter, Source, Teid, TosFilter, UeAddress,
};
use crate::rejection::Rejection;

/// The prefix length of a UE's link.
const LINK_PREFIX: u8 = 64;
/// The shortest prefix of a session has 48 bits, a site's (RFC 6177 1).
const MAX_DELEGATION: u8 = 16;
/// Maximum number of SDF filters of a PDR.
const MAX_FILTERS: usize = 64;

/// The compiled PDI of a PDR.
pub struct Detection {
    /// Where packets arrive.
    pub source: Source,
    /// Filters, one of which must match.
    pub filters: Vec<SdfFilter>,
    /// QFIs, one of which must match.
    pub qfis: Vec<Qfi>,
}

/// Compiles the PDI of `pdr` and its traffic endpoint.
pub fn compile(rules: &RuleSet, pdr: &CreatePdr, config: &Config) -> Result<Detection, Rejection> {
    let failed = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id));
    check_supported(pdr, failed)?;
    let endpoint = traffic_endpoint(rules, pdr)?;
    let f_teid = pdr.pdi.local_f_teid.or(endpoint.and_then(|endpoint| endpoint.local_f_teid));
    let qfis = if pdr.pdi.qfis.is_empty() { endpoint.map(|endpoint| &endpoint.qfis) } else { None };
    let instance = pdr.pdi.network_instance.as_ref();
    let instance = instance.or(endpoint.and_then(|endpoint| endpoint.network_instance.as_ref()));
    let source = source(interface_of(rules, pdr, endpoint), f_teid, failed)?;
    // A tunnel is identified by its F-TEID; the network of plain packets only by its name.
    if source == Source::Network && instance.is_some_and(|instance| !config.has_network(instance)) {
        return Err(failed.because_of(IeType::NETWORK_INSTANCE));
    }
    Ok(Detection {
        source,
        filters: filters(rules, pdr)?,
        qfis: qfis.unwrap_or(&pdr.pdi.qfis).iter().map(|qfi| Qfi(qfi.0)).collect(),
    })
}

/// Rejects detection parameters that this UPF does not support, because ignoring them would match more
/// packets.
fn check_supported(pdr: &CreatePdr, failed: Rejection) -> Result<(), Rejection> {
    let unsupported = [
        (pdr.pdi.application_id.is_some(), IeType::APPLICATION_ID),
        (pdr.pdi.ethernet_pdu_session_information.is_some(), IeType::ETHERNET_PDU_SESSION_INFORMATION),
        (!pdr.pdi.ethernet_packet_filters.is_empty(), IeType::ETHERNET_PACKET_FILTER),
        (!pdr.pdi.dns_query_filters.is_empty(), IeType::DNS_QUERY_FILTER),
        (pdr.pdi.traffic_endpoint_ids.len() > 1, IeType::TRAFFIC_ENDPOINT_ID),
        (pdr.mar_id.is_some(), IeType::MAR_ID),
    ];
    match unsupported.into_iter().find(|(present, _)| *present) {
        Some((_, ie_type)) => Err(failed.with_cause(Cause::ServiceNotSupported).because_of(ie_type)),
        None => Ok(()),
    }
}

fn traffic_endpoint<'a>(
    rules: &'a RuleSet,
    pdr: &CreatePdr,
) -> Result<Option<&'a CreateTrafficEndpoint>, Rejection> {
    let Some(id) = pdr.pdi.traffic_endpoint_ids.first() else { return Ok(None) };
    let failed = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id)).because_of(IeType::TRAFFIC_ENDPOINT_ID);
    rules.endpoints.get(*id).map(Some).ok_or(failed)
}

/// The interface that decides on the direction. Packets that gNBs forward in a handover arrive from the access side, and are downlink packets: the
/// interface type says so, or that the FAR sends them to the access side (TS 23.501 5.8.2.10).
fn interface_of(
    rules: &RuleSet,
    pdr: &CreatePdr,
    endpoint: Option<&CreateTrafficEndpoint>,
) -> SourceInterface {
    let interface_type = pdr.pdi.source_interface_type.or(endpoint.and_then(|it| it.source_interface_type));
    let far =
        pdr.far_id.and_then(|far| rules.fars.get(far)).and_then(|far| far.forwarding_parameters.as_ref());
    let is_forwarded = interface_type == Some(InterfaceType::N3DataForwarding)
        || far.is_some_and(|far| far.destination_interface == DestinationInterface::Access);
    match pdr.pdi.source_interface {
        SourceInterface::Access if is_forwarded => SourceInterface::Core,
        interface => interface,
    }
}

/// A tunnel, if there is an F-TEID; otherwise N6. Packets from the access side and the CP function arrive by
/// tunnels only. This UPF does not have the other interfaces (TS 29.244 8.2.2).
fn source(interface: SourceInterface, f_teid: Option<FTeid>, failed: Rejection) -> Result<Source, Rejection> {
    let tunnel = |direction| match f_teid {
        Some(FTeid::Allocated { teid, .. }) => Ok(Source::Tunnel { teid: Teid(teid), direction }),
        Some(FTeid::Choose { .. }) | None => Err(failed.because_of(IeType::F_TEID)),
    };
    match interface {
        SourceInterface::Access => tunnel(Direction::Uplink),
        SourceInterface::Core | SourceInterface::SgiLanN6Lan if f_teid.is_none() => Ok(Source::Network),
        SourceInterface::Core | SourceInterface::SgiLanN6Lan | SourceInterface::CpFunction => {
            tunnel(Direction::Downlink)
        }
        SourceInterface::FiveGVnInternal => {
            Err(failed.with_cause(Cause::ServiceNotSupported).because_of(IeType::SOURCE_INTERFACE))
        }
        SourceInterface::Unknown(_) => {
            Err(failed.with_cause(Cause::MandatoryIeIncorrect).because_of(IeType::SOURCE_INTERFACE))
        }
    }
}

fn filters(rules: &RuleSet, pdr: &CreatePdr) -> Result<Vec<SdfFilter>, Rejection> {
    let failed = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id)).because_of(IeType::SDF_FILTER);
    let mut filters = Vec::new();
    for filter in &pdr.pdi.sdf_filters {
        filters.extend(compile_filter(definition(rules, filter)).ok_or(failed)?);
        if filters.len() > MAX_FILTERS {
            return Err(failed.with_cause(Cause::NoResourcesAvailable));
        }
    }
    Ok(filters)
}

/// The definition of a bidirectional filter that is referred to by its id (TS 29.244 5.2.1A.3).
fn definition<'a>(rules: &'a RuleSet, filter: &'a ie::SdfFilter) -> &'a ie::SdfFilter {
    let by_id_alone = ie::SdfFilter { filter_id: filter.filter_id, ..ie::SdfFilter::default() };
    if filter.filter_id.is_none() || *filter != by_id_alone {
        return filter;
    }
    let mut all = rules.pdrs.values().flat_map(|pdr| &pdr.pdi.sdf_filters);
    all.find(|other| other.filter_id == filter.filter_id && **other != by_id_alone).unwrap_or(filter)
}

fn compile_filter(filter: &ie::SdfFilter) -> Option<Vec<SdfFilter>> {
    let described = match &filter.flow_description {
        Some(text) => std::str::from_utf8(text).ok()?.parse::<FlowDescription>().ok()?.filters,
        None => vec![SdfFilter::default()],
    };
    let tos = filter.tos_traffic_class.map(|[value, mask]| TosFilter { value, mask });
    let complete = |described| SdfFilter {
        tos,
        spi: filter.security_parameter_index,
        flow_label: filter.flow_label,
        ..described
    };
    let compiled: Vec<_> = described.into_iter().map(complete).collect();
    let by_unknown_id = filter.filter_id.is_some() && compiled == [SdfFilter::default()];
    (!by_unknown_id || filter.flow_description.is_some()).then_some(compiled)
}

/// The UE's addresses in all PDRs and traffic endpoints.
pub fn ue_address(rules: &RuleSet, config: &Config) -> Result<UeAddress, Rejection> {
    let mut address = UeAddress::default();
    let mut add = |ue: &UeIpAddress, failed| add_address(&mut address, ue, config, failed);
    for endpoint in rules.endpoints.values() {
        let failed = Rejection::new(Cause::RuleCreationModificationFailure);
        endpoint.ue_ip_addresses.iter().try_for_each(|ue| add(ue, failed))?;
    }
    for pdr in rules.pdrs.values() {
        let failed = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id));
        pdr.pdi.ue_ip_addresses.iter().try_for_each(|ue| add(ue, failed))?;
    }
    Ok(address)
}

/// All must agree, because a session has one UE. The SMF allocates addresses, not this UPF (no UEIP).
fn add_address(
    address: &mut UeAddress,
    ue: &UeIpAddress,
    config: &Config,
    failed: Rejection,
) -> Result<(), Rejection> {
    let failed = failed.because_of(IeType::UE_IP_ADDRESS);
    if ue.ipv4 == Some(Choice::Choose) || ue.ipv6 == Some(Choice::Choose) {
        return Err(failed.with_cause(Cause::ServiceNotSupported));
    }
    let delegation = delegation(ue).ok_or(failed)?;
    let own = UeAddress {
        v4: ue.ipv4.and_then(Choice::given),
        v6: ue.ipv6.and_then(Choice::given).map(|v6| Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        delegation,
    };
    let of_v4 = own.v4.map(|v4| AddressRange { address: v4.into(), prefix: 32 });
    let permitted = of_v4.into_iter().chain(own.network6()).all(|range| config.may_be_of_ue(range));
    let is_first = address.v6.is_none();
    let agree = own.v4.is_none_or(|v4| *address.v4.get_or_insert(v4) == v4)
        && own.v6.is_none_or(|v6| *address.v6.get_or_insert(v6) == v6)
        && (is_first || own.v6.is_none() || address.delegation == delegation);
    if is_first && own.v6.is_some() {
        address.delegation = delegation;
    }
    (permitted && agree).then_some(()).ok_or(failed)
}

/// The bits by which the UE's prefix is shorter than 64 (TS 29.244 8.2.62): those of prefix delegation, or what the prefix length says. With a longer
/// prefix the UE has its prefix of 64 bits, too. `None` if both are there, or if it is too short.
fn delegation(ue: &UeIpAddress) -> Option<u8> {
    let bits = match (ue.prefix_delegation_bits, ue.prefix_len) {
        (None, None) => 0,
        (Some(bits), None) => bits,
        (None, Some(length @ 1..)) => LINK_PREFIX.saturating_sub(length),
        (None, Some(0)) | (Some(_), Some(_)) => return None,
    };
    (bits <= MAX_DELEGATION).then_some(bits)
}
