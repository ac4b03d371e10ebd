//! Identification (TS 24.501 5.4.3).
//!
//! ```text
//!  UE                         AMF
//!   | <- IDENTITY REQUEST      |  type
//!   |    IDENTITY RESPONSE ->  |  a new SUCI starts T3519, and is sent again while it runs
//! ```

use super::{Service, Timer, Ue};
use pith_nas::gmm::IdentityResponse;
use pith_nas::ie::{IdentityType, MobileIdentity};
use pith_types::Suci;

impl Ue {
    /// Answers with the requested identity, or with none (TS 24.501 5.4.3.3, 5.4.3.5 b).
    pub(super) fn answer_identity_request(&mut self, identity_type: IdentityType) {
        let identity = match identity_type {
            IdentityType::Suci if self.settings.service == Service::EmergencyWithoutSim => {
                MobileIdentity::NoIdentity
            }
            IdentityType::Suci => MobileIdentity::Suci(self.suci()),
            IdentityType::FiveGGuti => {
                self.registration.guti.map_or(MobileIdentity::NoIdentity, MobileIdentity::FiveGGuti)
            }
            IdentityType::FiveGSTmsi => {
                let s_tmsi = self.registration.guti.map(|guti| guti.s_tmsi());
                s_tmsi.map_or(MobileIdentity::NoIdentity, MobileIdentity::FiveGSTmsi)
            }
            IdentityType::Imeisv => MobileIdentity::Imeisv(self.imeisv.clone()),
            IdentityType::Imei => imei_of(&self.imeisv),
            _ => MobileIdentity::NoIdentity,
        };
        self.send(&IdentityResponse::new(identity).into());
    }

    /// The SUCI of the last minute, or a new one.
    pub(super) fn suci(&mut self) -> Suci {
        if let Some(suci) = self.authentication.suci.clone() {
            return suci;
        }
        let suci = self.usim.suci();
        self.timers.start(Timer::T3519, self.now + Timer::T3519.duration());
        self.authentication.suci = Some(suci.clone());
        suci
    }
}

/// IMEI of an IMEISV: the same 14 digits and the Luhn check digit (TS 23.003 6.2.1, Annex B).
pub(super) fn imei_of(imeisv: &pith_types::Pei) -> MobileIdentity {
    let digits =
        imeisv.as_str().strip_prefix("imeisv-").and_then(|digits| digits.get(..14)).unwrap_or_default();
    let sum: u32 = digits
        .bytes()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit & 0xf);
            let doubled = if at % 2 == 1 { 2 * digit } else { digit };
            doubled / 10 + doubled % 10
        })
        .sum();
    let check = (10 - sum % 10) % 10;
    format!("imei-{digits}{check}").parse().map_or(MobileIdentity::NoIdentity, MobileIdentity::Imei)
}
