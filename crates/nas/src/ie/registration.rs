//! Registration, deregistration, service: types and results.

use super::flags;
use crate::error::Malformed;
use crate::ie::AccessType;
use crate::wire::{Cursor, Ie, coded};
use serde::{Deserialize, Serialize};

coded! {
    /// Registration type value (TS 24.501 Table 9.11.3.7.1).
    RegistrationKind {
        /// Initial registration.
        Initial = 1,
        /// Mobility registration updating.
        MobilityUpdating = 2,
        /// Periodic registration updating.
        PeriodicUpdating = 3,
        /// Emergency registration.
        Emergency = 4,
        /// SNPN onboarding registration.
        SnpnOnboarding = 5,
        /// Disaster roaming mobility registration updating.
        DisasterRoamingMobilityUpdating = 6,
        /// Disaster roaming initial registration.
        DisasterRoamingInitial = 7,
    }
}

/// 5GS registration type (TS 24.501 9.11.3.7), half an octet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrationType {
    /// The UE requests that the signalling connection is kept after the registration (FOR).
    pub follow_on_request: bool,
    /// Kind of registration.
    pub kind: RegistrationKind,
}

impl Ie for RegistrationType {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let bits = Cursor(value).u8()?;
        Ok(Self { follow_on_request: bits & 8 != 0, kind: RegistrationKind::from_code(bits & 7) })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.follow_on_request) << 3 | self.kind.code() & 7);
    }
}

/// 5GS registration result (TS 24.501 9.11.3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrationResult {
    /// The access over which the UE is registered.
    pub access: AccessType,
    /// SMS over NAS is allowed.
    pub sms_allowed: bool,
    /// Slice-specific authentication is still to be performed.
    pub nssaa_to_be_performed: bool,
    /// Registered for emergency services.
    pub emergency_registered: bool,
    /// Registered for disaster roaming: bits 8 and 7 as received.
    pub disaster_roaming: u8,
}

impl RegistrationResult {
    /// Registered over 3GPP access, without other indications.
    pub const THREE_GPP: Self = Self {
        access: AccessType::ThreeGpp,
        sms_allowed: false,
        nssaa_to_be_performed: false,
        emergency_registered: false,
        disaster_roaming: 0,
    };
}

impl Ie for RegistrationResult {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let octet = Cursor(value).u8()?;
        Ok(Self {
            access: AccessType::from_code(octet & 7),
            sms_allowed: octet & 0x08 != 0,
            nssaa_to_be_performed: octet & 0x10 != 0,
            emergency_registered: octet & 0x20 != 0,
            disaster_roaming: octet >> 6,
        })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(
            self.disaster_roaming << 6
                | u8::from(self.emergency_registered) << 5
                | u8::from(self.nssaa_to_be_performed) << 4
                | u8::from(self.sms_allowed) << 3
                | self.access.code() & 7,
        );
    }
}

/// De-registration type (TS 24.501 9.11.3.20), half an octet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeregistrationType {
    /// The UE is being switched off, and expects no answer.
    pub switch_off: bool,
    /// The network asks the UE to register again.
    pub re_registration_required: bool,
    /// The access that is deregistered.
    pub access: AccessType,
}

impl Ie for DeregistrationType {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let bits = Cursor(value).u8()?;
        Ok(Self {
            switch_off: bits & 8 != 0,
            re_registration_required: bits & 4 != 0,
            access: AccessType::from_code(bits & 3),
        })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(
            u8::from(self.switch_off) << 3
                | u8::from(self.re_registration_required) << 2
                | self.access.code() & 3,
        );
    }
}

coded! {
    /// Service type (TS 24.501 Table 9.11.3.50.1), half an octet.
    ServiceType {
        /// Signalling only.
        Signalling = 0,
        /// User data pending in the UE.
        Data = 1,
        /// The answer to paging or a notification.
        MobileTerminatedServices = 2,
        /// Emergency services.
        EmergencyServices = 3,
        /// Emergency services fallback.
        EmergencyServicesFallback = 4,
        /// Service request of a UE with high priority access.
        HighPriorityAccess = 5,
        /// Signalling of elevated priority.
        ElevatedSignalling = 6,
    }
}

flags! {
    /// 5GS update type (TS 24.501 9.11.3.9A).
    UpdateType {
        /// SMS over NAS is requested.
        sms_requested = 1,
        /// The UE radio capability must be read again.
        ng_ran_radio_capability_update = 2,
        /// Preferred CIoT network behaviour of 5GS, low bit.
        five_gs_preferred_ciot_low = 3,
        /// Preferred CIoT network behaviour of 5GS, high bit.
        five_gs_preferred_ciot_high = 4,
        /// Preferred CIoT network behaviour of EPS, low bit.
        eps_preferred_ciot_low = 5,
        /// Preferred CIoT network behaviour of EPS, high bit.
        eps_preferred_ciot_high = 6,
    }
}

flags! {
    /// UE status (TS 24.501 9.11.3.56).
    UeStatus {
        /// EMM-REGISTERED.
        registered_in_epc = 1,
        /// 5GMM-REGISTERED.
        registered_in_5gc = 2,
    }
}

flags! {
    /// Configuration update indication (TS 24.501 9.11.3.18), half an octet.
    ConfigurationUpdateIndication {
        /// CONFIGURATION UPDATE COMPLETE is requested.
        acknowledgement = 1,
        /// The UE must register again.
        registration_requested = 2,
    }
}

flags! {
    /// Network slicing indication (TS 24.501 9.11.3.36), half an octet.
    NetworkSlicingIndication {
        /// The subscription's slices have changed.
        subscription_changed = 1,
        /// The requested NSSAI was derived from the default configured NSSAI.
        default_configured_nssai = 2,
    }
}

coded! {
    /// 5GS DRX parameters (TS 24.501 Table 9.11.3.2A.1).
    DrxParameters {
        /// The UE has no preference.
        NotSpecified = 0,
        /// T = 32 radio frames.
        T32 = 1,
        /// T = 64.
        T64 = 2,
        /// T = 128.
        T128 = 3,
        /// T = 256.
        T256 = 4,
    }
}

/// Extended DRX parameters (TS 24.501 9.11.3.26A; TS 24.008 10.5.5.32).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtendedDrxParameters {
    /// Paging time window, 0 to 15: one more of 1.28 s, except in NB-N1 mode.
    pub paging_time_window: u8,
    /// eDRX value, 0 to 15: the code of the cycle.
    pub value: u8,
    /// Further octets, as received.
    pub further: Vec<u8>,
}

impl Ie for ExtendedDrxParameters {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        let octet = cursor.u8()?;
        Ok(Self { paging_time_window: octet >> 4, value: octet & 0xf, further: cursor.0.to_vec() })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.paging_time_window << 4 | self.value & 0xf);
        out.extend(&self.further);
    }
}

flags! {
    /// MICO indication (TS 24.501 9.11.3.31).
    MicoIndication {
        /// All tracking areas of the network are the registration area (RAAI).
        all_plmn_area = 1,
        /// T3512 is strictly periodic (SPRTI).
        strictly_periodic = 2,
    }
}
