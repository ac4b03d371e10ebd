//! Generic UE configuration update (TS 24.501 5.4.4).
//!
//! ```text
//!  UE                                      AMF
//!   | <- CONFIGURATION UPDATE COMMAND       |
//!   |    CONFIGURATION UPDATE COMPLETE ->   |   if acknowledgement is requested
//! ```

use super::{State, Ue};
use pith_nas::gmm::{ConfigurationUpdateCommand, ConfigurationUpdateComplete};
use pith_nas::ie::{MobileIdentity, RegistrationKind};

impl Ue {
    /// CONFIGURATION UPDATE COMMAND (TS 24.501 5.4.4.3).
    pub(super) fn receive_configuration_update(&mut self, command: ConfigurationUpdateCommand) {
        if self.state == State::AwaitingDeregistrationAccept {
            // It crossed DEREGISTRATION REQUEST: the UE ignores it, and the AMF aborts the update (TS 24.501 5.4.4.5 c, 5.4.4.6 c).
            return;
        }
        if !matches!(self.state, State::Registered | State::AwaitingServiceAccept) {
            return self.report_unexpected_message("ConfigurationUpdateCommand");
        }
        let indication = command.indication.unwrap_or_default();
        self.check_configuration_update(&command, indication.acknowledgement);
        if let Some(MobileIdentity::FiveGGuti(guti)) = command.guti {
            self.check_guti(&guti);
            self.registration.guti = Some(guti);
        }
        let registers = indication.registration_requested && requests_registration(&command);
        self.take_areas(command.tai_list, command.service_area_list);
        if let Some(allowed) = command.allowed_nssai {
            self.registration.allowed_nssai = allowed.0.iter().map(|slice| slice.snssai).collect();
        }
        if indication.acknowledgement {
            self.send(&ConfigurationUpdateComplete::new().into());
        }
        if registers {
            self.register_when_idle = Some(RegistrationKind::MobilityUpdating);
            self.await_nas_connection_release();
        }
    }

    /// A new 5G-GUTI, TAI list, service area list or NSSAI must be acknowledged (TS 24.501 5.4.4.2).
    fn check_configuration_update(&mut self, command: &ConfigurationUpdateCommand, acknowledged: bool) {
        let weighty = command.guti.is_some()
            || command.tai_list.is_some()
            || command.service_area_list.is_some()
            || command.allowed_nssai.is_some()
            || command.configured_nssai.is_some();
        if weighty && !acknowledged {
            self.violation(
                "TS 24.501 5.4.4.2",
                "5G-GUTI, TAI list or NSSAI without acknowledgement requested",
            );
        }
    }
}

/// Whether the UE follows the request to register, when its connection is released (TS 24.501 5.4.4.3): the command has no other parameter, or says that
/// slices have changed. A 5G-GUTI, for example, requests nothing.
fn requests_registration(command: &ConfigurationUpdateCommand) -> bool {
    let others = ConfigurationUpdateCommand { indication: None, ..command.clone() };
    others == ConfigurationUpdateCommand::new()
        || command.allowed_nssai.is_some()
        || command.configured_nssai.is_some()
        || command.network_slicing_indication.is_some_and(|it| it.subscription_changed)
}
