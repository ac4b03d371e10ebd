//! Causes of acceptance or rejection, and the offending information.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::macros::number_ie;
use crate::ie_type::IeType;
use crate::wire::Reader;
use std::fmt;

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        /// Cause (TS 29.244 8.2.1).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Cause {
            $($(#[$doc])* $name,)*
            /// A value that Release 17 does not define: below 64 an acceptance, otherwise a rejection.
            Unknown(u8),
        }

        impl Cause {
            /// The value on the wire.
            pub fn value(self) -> u8 {
                match self {
                    $(Cause::$name => $value,)*
                    Cause::Unknown(value) => value,
                }
            }
        }

        impl From<u8> for Cause {
            fn from(value: u8) -> Self {
                match value {
                    $($value => Cause::$name,)*
                    value => Cause::Unknown(value),
                }
            }
        }
    };
}

causes! {
    /// The request is accepted.
    RequestAccepted = 1,
    /// The session is deleted, and more usage reports will follow.
    MoreUsageReportToSend = 2,
    /// Some rules could not be applied.
    RequestPartiallyAccepted = 3,
    /// Rejected for a reason not specified.
    RequestRejected = 64,
    /// The F-SEID is unknown.
    SessionContextNotFound = 65,
    /// A mandatory information element is missing.
    MandatoryIeMissing = 66,
    /// A conditional information element is missing.
    ConditionalIeMissing = 67,
    /// An information element, or the message, has an invalid length.
    InvalidLength = 68,
    /// A mandatory information element is malformed or invalid.
    MandatoryIeIncorrect = 69,
    /// The Forwarding Policy Identifier is not configured.
    InvalidForwardingPolicy = 70,
    /// Both functions attempted to allocate F-TEIDs.
    InvalidFTeidAllocationOption = 71,
    /// The sender has no PFCP association.
    NoEstablishedPfcpAssociation = 72,
    /// A rule could not be stored or applied.
    RuleCreationModificationFailure = 73,
    /// Node level congestion.
    PfcpEntityInCongestion = 74,
    /// Resources are temporarily unavailable.
    NoResourcesAvailable = 75,
    /// The feature or service is not supported.
    ServiceNotSupported = 76,
    /// A system error.
    SystemFailure = 77,
    /// The request should go to another SMF.
    RedirectionRequested = 78,
    /// No UE address is left.
    AllDynamicAddressesAreOccupied = 79,
    /// The pre-defined rule is unknown.
    UnknownPredefinedRule = 80,
    /// The application id is unknown.
    UnknownApplicationId = 81,
    /// The L2TP tunnel could not be established.
    L2tpTunnelEstablishmentFailure = 82,
    /// The L2TP session could not be established.
    L2tpSessionEstablishmentFailure = 83,
    /// The L2TP tunnel was released.
    L2tpTunnelRelease = 84,
    /// The L2TP session was released.
    L2tpSessionRelease = 85,
    /// The session cannot be restored, because its F-TEID or UE address is not available.
    PfcpSessionRestorationFailure = 86,
}

impl Cause {
    /// Whether the request was accepted, wholly or in part.
    pub fn is_acceptance(self) -> bool {
        self.value() < 64
    }
}

impl Ie for Cause {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        match value.u8()? {
            0 => Err(IeFault::Incorrect("cause 0 is reserved")),
            cause => Ok(Cause::from(cause)),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.value());
    }
}

/// Offending IE: the type of the missing or faulty IE (TS 29.244 8.2.22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffendingIe(pub IeType);

impl Ie for OffendingIe {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        value.u16().map(|ie_type| OffendingIe(IeType(ie_type)))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.0.to_be_bytes());
    }
}

/// Offending IE Information: type and value of the offending IE (TS 29.244 8.2.185).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffendingIeInformation {
    /// Its type.
    pub ie_type: IeType,
    /// Its value.
    pub value: Vec<u8>,
}

impl Ie for OffendingIeInformation {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        Ok(OffendingIeInformation { ie_type: IeType(value.u16()?), value: value.take_rest().to_vec() })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.ie_type.0.to_be_bytes());
        out.extend(&self.value);
    }
}

number_ie! {
    /// PDR ID: a Packet Detection Rule of the session (TS 29.244 8.2.36).
    pub struct PdrId(u16);
    /// FAR ID: a Forwarding Action Rule of the session; predefined if the top bit is set (TS 29.244 8.2.74).
    pub struct FarId(u32);
    /// QER ID: a QoS Enforcement Rule of the session; predefined if the top bit is set (TS 29.244 8.2.75).
    pub struct QerId(u32);
    /// URR ID, Linked URR ID or Aggregated URR ID: a Usage Reporting Rule of the session; predefined if the top bit is
    /// set (TS 29.244 8.2.54, 8.2.55, 8.2.85).
    pub struct UrrId(u32);
    /// BAR ID: a Buffering Action Rule of the session (TS 29.244 8.2.57).
    pub struct BarId(u8);
    /// MAR ID: a Multi-Access Rule of the session (TS 29.244 8.2.123).
    pub struct MarId(u16);
    /// SRR ID: a Session Reporting Rule of the session (TS 29.244 8.2.151).
    pub struct SrrId(u8);
    /// Traffic Endpoint ID of the session (TS 29.244 8.2.92).
    pub struct TrafficEndpointId(u8);
}

/// Failed Rule ID: the rule that could not be created or modified (TS 29.244 8.2.80).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailedRuleId {
    /// A Packet Detection Rule.
    Pdr(PdrId),
    /// A Forwarding Action Rule.
    Far(FarId),
    /// A QoS Enforcement Rule.
    Qer(QerId),
    /// A Usage Reporting Rule.
    Urr(UrrId),
    /// A Buffering Action Rule.
    Bar(BarId),
    /// A Multi-Access Rule.
    Mar(MarId),
    /// A Session Reporting Rule.
    Srr(SrrId),
}

impl fmt::Display for FailedRuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pdr(PdrId(id)) => write!(f, "PDR {id}"),
            Self::Far(FarId(id)) => write!(f, "FAR {id}"),
            Self::Qer(QerId(id)) => write!(f, "QER {id}"),
            Self::Urr(UrrId(id)) => write!(f, "URR {id}"),
            Self::Bar(BarId(id)) => write!(f, "BAR {id}"),
            Self::Mar(MarId(id)) => write!(f, "MAR {id}"),
            Self::Srr(SrrId(id)) => write!(f, "SRR {id}"),
        }
    }
}

impl Ie for FailedRuleId {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        Ok(match value.u8()? & 0x1f {
            0 => FailedRuleId::Pdr(Ie::decode(value)?),
            2 => FailedRuleId::Qer(Ie::decode(value)?),
            3 => FailedRuleId::Urr(Ie::decode(value)?),
            4 => FailedRuleId::Bar(Ie::decode(value)?),
            5 => FailedRuleId::Mar(Ie::decode(value)?),
            6 => FailedRuleId::Srr(Ie::decode(value)?),
            // Values for future use are treated as FAR (table 8.2.80-1).
            _ => FailedRuleId::Far(Ie::decode(value)?),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let mut put = |rule_type: u8, id: &dyn Fn(&mut Vec<u8>)| {
            out.push(rule_type);
            id(out);
        };
        match self {
            FailedRuleId::Pdr(id) => put(0, &|out| id.encode(out)),
            FailedRuleId::Far(id) => put(1, &|out| id.encode(out)),
            FailedRuleId::Qer(id) => put(2, &|out| id.encode(out)),
            FailedRuleId::Urr(id) => put(3, &|out| id.encode(out)),
            FailedRuleId::Bar(id) => put(4, &|out| id.encode(out)),
            FailedRuleId::Mar(id) => put(5, &|out| id.encode(out)),
            FailedRuleId::Srr(id) => put(6, &|out| id.encode(out)),
        }
    }
}
