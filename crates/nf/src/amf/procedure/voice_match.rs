//! UE Capability Match Request (TS 23.502 4.2.8a; TS 38.413 8.14.2): do the UE's radio capabilities suffice for IMS voice?
//!
//! | step | from |
//! |---|---|
//! | the gNB has a UE context: UE RADIO CAPABILITY CHECK REQUEST, with the radio capability if the AMF has it | |
//! | UE RADIO CAPABILITY CHECK RESPONSE | gNB |
//! | not supported: CONFIGURATION UPDATE COMMAND that requests a registration, in which the UE gets the other indication | |
//!
//! With `amf.ims_voice` only. Until the gNB has answered, REGISTRATION ACCEPT indicates that IMS voice over PS is supported (TS 23.501 5.16.3.2): the
//! gNB has the capabilities after the context setup only. Without an answer the next connection begins with another request.

use super::Procedure;
use super::configuration_update;
use crate::amf::context::{Env, UeContext};
use crate::amf::n2;
use crate::kit::Level;
use crate::kit::document::pack_enum;
use pith_ngap::{ImsVoiceSupport, UeRadioCapabilityCheckRequest, UeRadioCapabilityCheckResponse};

/// Voice Support Match Indicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum VoiceMatch {
    /// No gNB has answered.
    #[default]
    Unknown,
    Supported,
    NotSupported,
    /// It is not supported, and REGISTRATION ACCEPT has indicated that it is.
    NotSupportedUntold,
}

pack_enum!(VoiceMatch { 0 => Unknown, 1 => Supported, 2 => NotSupported, 3 => NotSupportedUntold });

impl VoiceMatch {
    /// What REGISTRATION ACCEPT indicates.
    pub const fn may_be_supported(self) -> bool {
        matches!(self, Self::Unknown | Self::Supported)
    }
}

/// The gNB has a UE context: asks it, unless it has answered before.
pub(crate) fn begin(ue: &UeContext, env: &mut Env<'_>) {
    let wants = env.config.ims_voice && ue.is_registered() && !ue.is_emergency_registered();
    let connection = ue.connection.and_then(|key| env.connections.get(key));
    let Some(connection) = connection.filter(|_| wants && ue.voice == VoiceMatch::Unknown) else { return };
    let request = UeRadioCapabilityCheckRequest {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        ue_radio_capability: ue.radio_capability.as_ref().map(|octets| octets.to_vec()),
    };
    n2::send_to(env.out, connection.side(), request.encode());
}

/// UE RADIO CAPABILITY CHECK RESPONSE. One that was not requested changes nothing.
pub(crate) fn answered(ue: &mut UeContext, env: &mut Env<'_>, message: &UeRadioCapabilityCheckResponse) {
    if !env.config.ims_voice || ue.voice != VoiceMatch::Unknown || !ue.is_registered() {
        return env
            .out
            .log(Level::Debug, || format!("{}: a capability check that was not requested", ue.name()));
    }
    let is_supported = message.ims_voice_support == ImsVoiceSupport::supported;
    ue.voice = if is_supported { VoiceMatch::Supported } else { VoiceMatch::NotSupportedUntold };
}

/// The UE has another radio capability.
pub(crate) fn forget(ue: &mut UeContext) {
    ue.voice = VoiceMatch::Unknown;
}

/// REGISTRATION ACCEPT tells the UE what is known.
pub(crate) fn note_told(ue: &mut UeContext) {
    if ue.voice == VoiceMatch::NotSupportedUntold {
        ue.voice = VoiceMatch::NotSupported;
    }
}

/// A step of the UE is over: a UE that has the wrong indication registers again, when no procedure is in progress. Only REGISTRATION ACCEPT has the indication
/// (TS 24.501 8.2.7.12); if the UE does not register, it gets that with its next update.
pub(crate) fn resume(ue: &mut UeContext, env: &mut Env<'_>) {
    let is_untold = ue.voice == VoiceMatch::NotSupportedUntold && ue.is_registered();
    if is_untold
        && matches!(ue.procedure, Procedure::Idle)
        && ue.mobility.is_idle()
        && ue.is_reachable(env)
        && ue.has_ran_context(env)
    {
        configuration_update::request_registration(ue, env);
        ue.voice = VoiceMatch::NotSupported;
    }
}
