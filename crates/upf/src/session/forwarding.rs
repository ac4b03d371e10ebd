//! Forwarding: what a FAR does with a packet (TS 29.244 5.2.3).

use std::net::IpAddr;

use pith_pfcp::IeType;
use pith_pfcp::ie::{ApplyAction, Cause, DestinationInterface, FailedRuleId};
use pith_pfcp::rules::{CreateFar, ForwardingParameters};

use super::provision::RuleSet;
use crate::contract::{Action, Destination, Far, FarId, Teid, Tunnel};
use crate::rejection::Rejection;

/// Compiles a FAR.
pub fn compile(rules: &RuleSet, far: &CreateFar) -> Result<Far, Rejection> {
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
        action if action.contains(ApplyAction::FORW) => forward(far, failed)?,
        action if action.contains(ApplyAction::BUFF) => Action::Buffer {
            notify: action.contains(ApplyAction::NOCP),
            packets: bar.and_then(|bar| bar.suggested_buffering_packets_count).map(|count| count.0.into()),
        },
        _ => return Err(failed.with_cause(Cause::ServiceNotSupported).because_of(IeType::APPLY_ACTION)),
    };
    Ok(Far { id: FarId(far.far_id.0), action })
}

fn forward(far: &CreateFar, failed: Rejection) -> Result<Action, Rejection> {
    let missing = failed.with_cause(Cause::ConditionalIeMissing).because_of(IeType::FORWARDING_PARAMETERS);
    let parameters = far.forwarding_parameters.as_ref().ok_or(missing)?;
    check_supported(parameters, failed)?;
    let to_access = parameters.destination_interface == DestinationInterface::Access;
    match tunnel(parameters) {
        Some(tunnel) => Ok(Action::Forward(Destination::Tunnel(tunnel))),
        // The gNB's end is not known yet: there is nowhere to send to.
        None if to_access => Ok(Action::Drop),
        None => Ok(Action::Forward(Destination::Network)),
    }
}

/// Rejects what this UPF does not offer among its features, rather than to let packets pass without.
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

/// The GTP-U tunnel of the outer header to create; by IPv4 if both addresses are given.
pub fn tunnel(parameters: &ForwardingParameters) -> Option<Tunnel> {
    let outer = parameters.outer_header_creation?;
    let address = outer.ipv4.map(IpAddr::from).or(outer.ipv6.map(IpAddr::from));
    Some(Tunnel {
        peer: address?,
        teid: Teid(outer.teid?),
        dscp: parameters.transport_level_marking.map(|marking| marking.tos >> 2),
    })
}
