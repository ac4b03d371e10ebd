//! Identification (TS 24.501 5.4.3; TS 23.502 4.2.2.2.2 steps 6 and 7): the AMF requests the UE's
//! SUCI when no context matches its 5G-GUTI.
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | IDENTITY REQUEST | [`AwaitingIdentityResponse`] | UE | T3570 |
//! | IDENTITY RESPONSE | authentication | | |

use super::registration::{self, Attempt};
use super::{Procedure, RegistrationStep, Step, authentication};
use crate::amf::context::{Env, UeContext};
use crate::amf::error::RegistrationError;
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::kit::Timer;
use crate::kit::document::pack_struct;
use pith_nas::gmm::{IdentityRequest, IdentityResponse};
use pith_nas::ie::{IdentityType, MobileIdentity};

/// IDENTITY REQUEST for the SUCI was sent to the UE.
#[derive(Debug)]
pub(crate) struct AwaitingIdentityResponse {
    attempt: Attempt,
    request: Retransmission,
}

pack_struct!(AwaitingIdentityResponse { attempt, request });

/// Requests the UE's SUCI (TS 24.501 5.4.3.2).
pub(crate) fn begin(ue: &mut UeContext, env: &mut Env<'_>, mut attempt: Attempt) -> Step {
    attempt.has_been_asked = true;
    let request = Retransmission::send(ue, env, Timer::T3570, IdentityRequest::new(IdentityType::Suci));
    let next = AwaitingIdentityResponse { attempt, request };
    Step::replied(Procedure::AwaitingIdentityResponse(next), "IdentityRequest")
}

impl AwaitingIdentityResponse {
    /// IDENTITY RESPONSE (TS 24.501 5.4.3.4). A UE without a SUCI, or with a SUCI that is not of an
    /// IMSI, can't be authenticated here: only emergency services may admit it. In an update it is one that was admitted before, and whose
    /// context is lost: with #9 it registers again, while #3 would keep it from that until it is switched off (5.5.1.3.5).
    pub fn on_identity_response(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        response: IdentityResponse,
    ) -> RegistrationStep {
        self.request.stop(ue, env);
        match response.mobile_identity {
            MobileIdentity::Suci(suci) => Ok(authentication::begin(ue, env, self.attempt, suci.into())),
            // A UE without a SUCI (TS 24.501 5.4.3.3).
            _ if self.attempt.is_emergency() => registration::admit(ue, env, self.attempt),
            _ if !self.attempt.begins_registration() => Err(RegistrationError::UnknownUe),
            _ => Err(RegistrationError::NoIdentity),
        }
    }

    /// T3570 expired: retransmits the request; on the fifth expiry the registration is aborted (TS
    /// 24.501 5.4.3.6 b).
    pub fn on_t3570(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> RegistrationStep {
        match self.request.send_again(ue, env) {
            Expiry::SendAgain => {
                Ok(Step::replied(Procedure::AwaitingIdentityResponse(self), "IdentityRequest"))
            }
            Expiry::GiveUp => Err(RegistrationError::NoAnswer),
        }
    }

    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}
