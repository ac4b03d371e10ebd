//! TNL associations (TS 38.413 9.3.2.6 to 9.3.2.10).

use crate::types::Cause;
use oxirush_ngap::ngap::TNLAssociationUsage;
use std::net::{IpAddr, SocketAddr};

/// SCTP port of an endpoint that names none (TS 38.413 8.7.3.2).
pub const NGAP_PORT: u16 = 38412;

/// CP Transport Layer Information (TS 38.413 9.3.2.6): one end of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpTransportLayer {
    /// The address; of a node with both families, the IPv4 one.
    pub address: IpAddr,
    /// The SCTP port, if it is named.
    pub port: Option<u16>,
}

impl CpTransportLayer {
    /// The end of an association of the AMF.
    pub fn of_amf(end: SocketAddr) -> Self {
        Self { address: end.ip(), port: Some(end.port()).filter(|port| *port != NGAP_PORT) }
    }

    /// Address and port.
    pub fn socket(self) -> SocketAddr {
        SocketAddr::new(self.address, self.port.unwrap_or(NGAP_PORT))
    }
}

/// An endpoint of the AMF to which the gNB is to set up an association (AMF TNL Association to Add Item).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmfTnlaToAdd {
    /// The endpoint.
    pub endpoint: CpTransportLayer,
    /// The messages for which the gNB uses the association; all without it.
    pub usage: Option<TNLAssociationUsage>,
    /// TNL Address Weight Factor.
    pub weight: u8,
}

/// An endpoint of the AMF with other parameters (AMF TNL Association to Update Item).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmfTnlaToUpdate {
    /// The endpoint.
    pub endpoint: CpTransportLayer,
    /// As in [`AmfTnlaToAdd`].
    pub usage: Option<TNLAssociationUsage>,
    /// As in [`AmfTnlaToAdd`].
    pub weight: Option<u8>,
}

/// An endpoint of the AMF with which the gNB is to have no association (AMF TNL Association to Remove Item).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmfTnlaToRemove {
    /// The endpoint.
    pub endpoint: CpTransportLayer,
    /// Only the association with this end of the gNB.
    pub ran: Option<CpTransportLayer>,
}

/// An endpoint to which an association was not set up (TNL Association Item).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedTnla {
    /// The endpoint.
    pub endpoint: CpTransportLayer,
    /// The reason.
    pub cause: Cause,
}

/// Associations that the AMF is to remove (NG-RAN TNL Association to Remove Item).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RanTnlAssociation {
    /// The end of the gNB.
    pub ran: CpTransportLayer,
    /// The end of the AMF; without it, associations with all its endpoints.
    pub amf: Option<CpTransportLayer>,
}
