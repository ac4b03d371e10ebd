//! Protection of initial NAS messages (TS 24.501 4.4.6): cleartext IEs, and those for the NAS
//! message container.

use super::{DeregistrationRequestUeOriginating, RegistrationRequest, ServiceRequest};
use crate::ie::MobileIdentity;
use pith_types::FiveGGuti;

impl RegistrationRequest {
    /// The 5G-GUTIs in the message, that of 5GS first: beside an Additional GUTI the mobile identity is mapped from a 4G-GUTI (TS 24.501
    /// 5.5.1.2.2, 5.5.1.3.2).
    pub fn gutis(&self) -> impl Iterator<Item = FiveGGuti> {
        let identities = [self.additional_guti.as_ref(), Some(&self.mobile_identity)];
        identities.into_iter().flatten().filter_map(|identity| match identity {
            MobileIdentity::FiveGGuti(guti) => Some(*guti),
            _ => None,
        })
    }

    /// The message with its cleartext IEs only.
    pub fn cleartext(&self) -> Self {
        Self {
            ue_security_capability: self.ue_security_capability,
            additional_guti: self.additional_guti.clone(),
            ue_status: self.ue_status,
            eps_nas_message_container: self.eps_nas_message_container.clone(),
            nid: self.nid,
            plmn_with_disaster_condition: self.plmn_with_disaster_condition,
            ..Self::new(self.registration_type, self.ng_ksi, self.mobile_identity.clone())
        }
    }
}

impl ServiceRequest {
    /// The message with its cleartext IEs only.
    pub fn cleartext(&self) -> Self {
        Self::new(self.ng_ksi, self.service_type, self.s_tmsi.clone())
    }
}

impl DeregistrationRequestUeOriginating {
    /// The message with its cleartext IEs only.
    pub fn cleartext(&self) -> Self {
        Self::new(self.deregistration_type, self.ng_ksi, self.mobile_identity.clone())
    }
}
