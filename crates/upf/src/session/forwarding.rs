//! Forwarding: compiles FARs (TS 29.244 5.2.3).

use std::net::IpAddr;

use pith_pfcp::IeType;
use pith_pfcp::ie::{ApplyAction, Cause, DestinationInterface, FailedRuleId};
use pith_pfcp::rules::{CreateFar, ForwardingParameters};

use super::provision::RuleSet;
use crate::config::{Config, GtpuAddress};
use crate::contract::{Action, Destination, Far, FarId, Teid, Tunnel};
use crate::rejection::Rejection;

pub fn compile(rules: &RuleSet, far: &CreateFar, config: &Config) -> Result<Far, Rejection> {
    let failed = Rejection::rule(FailedRuleId::Far(far.far_id));
    let bar = match far.bar_id {
        Some(id) => Some(rules.bars.get(id).ok_or(failed.because_of(IeType::BAR_ID))?),
        None => None,
    };
    let action = match far.apply_action {
        action if !action.is_valid() => {
            let incorrect = failed.with_cause(Cause::MandatoryIeIncorrect);
            return Err(incorrect.because_of(IeType::APPLY_ACTION));
        }
        action if action.contains(ApplyAction::DROP) => Action::Drop,
        action if action.contains(ApplyAction::FORW) => forward(far, config, failed)?,
        action if action.contains(ApplyAction::BUFF) => Action::Buffer {
            notify: action.contains(ApplyAction::NOCP),
            packets: bar.and_then(|bar| bar.suggested_buffering_packets_count).map(|count| count.0.into()),
        },
        _ => return Err(failed.with_cause(Cause::ServiceNotSupported).because_of(IeType::APPLY_ACTION)),
    };
    Ok(Far { id: FarId(far.far_id.0), action })
}

fn forward(far: &CreateFar, config: &Config, failed: Rejection) -> Result<Action, Rejection> {
    let missing = failed.with_cause(Cause::ConditionalIeMissing).because_of(IeType::FORWARDING_PARAMETERS);
    let parameters = far.forwarding_parameters.as_ref().ok_or(missing)?;
    check_supported(parameters, failed)?;
    let interface = failed.because_of(IeType::DESTINATION_INTERFACE);
    match (parameters.destination_interface, tunnel(parameters, config.n3)) {
        // This UPF does not have these interfaces (TS 29.244 8.2.24).
        (DestinationInterface::LiFunction | DestinationInterface::FiveGVnInternal, _) => {
            Err(interface.with_cause(Cause::ServiceNotSupported))
        }
        (DestinationInterface::Unknown(_), _) => Err(interface.with_cause(Cause::MandatoryIeIncorrect)),
        (_, Some(tunnel)) if config.may_send_to(tunnel.peer) && tunnel.teid.0 != 0 => {
            Ok(Action::Forward(Destination::Tunnel(tunnel)))
        }
        (_, Some(_)) => Err(failed.because_of(IeType::OUTER_HEADER_CREATION)),
        // The gNB's F-TEID is not known yet.
        (DestinationInterface::Access, None) => Ok(Action::Drop),
        // The SMF is reached by a tunnel only (TS 29.244 5.3.3).
        (DestinationInterface::CpFunction, None) => Err(interface),
        (DestinationInterface::Core | DestinationInterface::SgiLanN6Lan, None) => {
            let instance = parameters.network_instance.as_ref();
            if instance.is_none_or(|instance| config.has_network(instance)) {
                Ok(Action::Forward(Destination::Network))
            } else {
                Err(failed.because_of(IeType::NETWORK_INSTANCE))
            }
        }
    }
}

/// Rejects forwarding parameters that this UPF does not support and must not ignore.
fn check_supported(parameters: &ForwardingParameters, failed: Rejection) -> Result<(), Rejection> {
    let unsupported = |ie_type| Err(failed.with_cause(Cause::ServiceNotSupported).because_of(ie_type));
    let invalid_policy =
        failed.with_cause(Cause::InvalidForwardingPolicy).because_of(IeType::FORWARDING_POLICY);
    match parameters {
        ForwardingParameters { forwarding_policy: Some(_), .. } => Err(invalid_policy),
        ForwardingParameters { redirect_information: Some(_), .. } => {
            unsupported(IeType::REDIRECT_INFORMATION)
        }
        ForwardingParameters { outer_header_creation: Some(outer), .. } if outer.teid.is_none() => {
            unsupported(IeType::OUTER_HEADER_CREATION)
        }
        ForwardingParameters { ip_address_and_port_replacement: Some(_), .. } => {
            unsupported(IeType::IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT)
        }
        _ => Ok(()),
    }
}

/// The GTP-U tunnel of the outer header to create. Of two addresses, the one in a family of `local`, IPv4
/// first.
pub fn tunnel(parameters: &ForwardingParameters, local: GtpuAddress) -> Option<Tunnel> {
    let outer = parameters.outer_header_creation?;
    let (v4, v6) = (outer.ipv4.map(IpAddr::from), outer.ipv6.map(IpAddr::from));
    let reachable = v4.filter(|_| local.v4.is_some()).or(v6.filter(|_| local.v6.is_some()));
    Some(Tunnel {
        peer: reachable.or(v4).or(v6)?,
        teid: Teid(outer.teid?),
        dscp: parameters.transport_level_marking.map(|marking| marking.tos >> 2),
    })
}
