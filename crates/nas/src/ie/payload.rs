//! Payloads of UL and DL NAS TRANSPORT (TS 24.501 9.11.3.39, 9.11.3.40, 9.11.3.47).

use crate::wire::coded;

coded! {
    /// Payload container type (TS 24.501 Table 9.11.3.40.1), half an octet.
    PayloadContainerType {
        /// N1 SM information: a 5GSM message.
        N1SmInformation = 1,
        /// SMS.
        Sms = 2,
        /// LTE positioning protocol.
        LppMessage = 3,
        /// Steering of roaming.
        SorTransparentContainer = 4,
        /// UE policy.
        UePolicyContainer = 5,
        /// UE parameters update.
        UeParametersUpdate = 6,
        /// Location services.
        LocationServices = 7,
        /// CIoT user data.
        CiotUserData = 8,
        /// Service-level authentication and authorization.
        ServiceLevelAa = 9,
        /// Event notification.
        EventNotification = 10,
        /// Several payloads in one.
        Multiple = 15,
    }
}

coded! {
    /// Request type (TS 24.501 Table 9.11.3.47.1), half an octet.
    RequestType & 7 {
        /// A new PDU session.
        InitialRequest = 1,
        /// A PDU session that is transferred to this access.
        ExistingPduSession = 2,
        /// A new emergency PDU session.
        InitialEmergencyRequest = 3,
        /// An emergency PDU session that is transferred to this access.
        ExistingEmergencyPduSession = 4,
        /// A modification of a PDU session.
        ModificationRequest = 5,
        /// A multi-access PDU session.
        MaPduRequest = 6,
    }
}

impl RequestType {
    /// The type that the network takes it for: an unused value stands for an initial request (TS 24.501 Table 9.11.3.47.1).
    pub const fn as_received(self) -> Self {
        match self {
            Self::Other(0) => Self::InitialRequest,
            other => other,
        }
    }
}
