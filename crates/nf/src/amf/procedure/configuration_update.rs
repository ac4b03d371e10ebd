//! Generic UE configuration update (TS 24.501 5.4.4; TS 23.502 4.2.4.2).
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | CONFIGURATION UPDATE COMMAND with a 5G-GUTI | [`AwaitingConfigurationUpdateComplete`] | UE | T3555 |
//! | CONFIGURATION UPDATE COMMAND with changed areas | as above | UE | T3555 |
//! | CONFIGURATION UPDATE COMMAND with the network's name | none: nothing to confirm | | |

use super::{Procedure, Step, registration};
use crate::amf::context::{Env, UeContext};
use crate::amf::n1;
use crate::amf::n2;
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::kit::document::pack_struct;
use crate::kit::{Level, Timer};
use pith_nas::GmmMessage;
use pith_nas::gmm::ConfigurationUpdateCommand;
use pith_nas::ie::{ConfigurationUpdateIndication, MobileIdentity, NetworkName, TaiList};
use pith_ngap::{Cause, CauseNas};

/// The UE must confirm a new 5G-GUTI, or changed areas.
#[derive(Debug)]
pub(crate) struct AwaitingConfigurationUpdateComplete {
    command: Retransmission,
}

pack_struct!(AwaitingConfigurationUpdateComplete { command });

/// Sends the UE the network name, if one is configured.
pub(crate) fn send_network_name(ue: &mut UeContext, env: &mut Env<'_>) {
    let Some(names) = &env.config.network_name else { return };
    let name = |text: &str| Some(NetworkName { text: text.to_owned(), add_country_initials: false });
    let mut command = ConfigurationUpdateCommand::new();
    command.full_name = name(&names.full);
    command.short_name = name(&names.short);
    n1::send(ue, env, command);
}

/// Allocates a new 5G-GUTI to the UE, because the current one was sent in clear in paging (TS 33.501 6.12.3).
pub(crate) fn renew_guti(ue: &mut UeContext, env: &mut Env<'_>) -> Step {
    let guti = registration::renew_guti(ue, env);
    let mut command = ConfigurationUpdateCommand::new();
    command.guti = Some(MobileIdentity::FiveGGuti(guti));
    if ue.has_unsent_restrictions() {
        add_areas(ue, env, &mut command);
    }
    send(ue, env, command)
}

/// Sends registration area and service area list after a change of the mobility restrictions (TS 23.501 5.3.4.1.1). The gNB gets its list
/// with the message.
pub(crate) fn send_areas(ue: &mut UeContext, env: &mut Env<'_>) -> Step {
    let mut command = ConfigurationUpdateCommand::new();
    add_areas(ue, env, &mut command);
    send(ue, env, command)
}

fn add_areas(ue: &mut UeContext, env: &Env<'_>, command: &mut ConfigurationUpdateCommand) {
    ue.registration_area = registration::registration_area(ue, env.config);
    let area = &ue.registration_area;
    command.tai_list = (!area.is_empty()).then(|| TaiList::of(area));
    command.service_area_list = ue.changed_service_area_list();
    ue.note_restrictions_in_command();
}

/// Sends a command that the UE acknowledges (TS 24.501 5.4.4.2).
fn send(ue: &mut UeContext, env: &mut Env<'_>, mut command: ConfigurationUpdateCommand) -> Step {
    command.indication =
        Some(ConfigurationUpdateIndication { acknowledgement: true, registration_requested: false });
    let command = Retransmission::send(ue, env, Timer::T3555, command);
    let next = AwaitingConfigurationUpdateComplete { command };
    Step::replied(Procedure::AwaitingConfigurationUpdateComplete(next), "ConfigurationUpdateCommand")
}

impl AwaitingConfigurationUpdateComplete {
    /// CONFIGURATION UPDATE COMPLETE: only the new 5G-GUTI is valid (TS 24.501 5.4.4.4).
    pub fn on_configuration_update_complete(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        self.command.stop(ue, env);
        let command = match GmmMessage::decode(self.command.plain()) {
            Ok(GmmMessage::ConfigurationUpdateCommand(command)) => command,
            _ => return Step::complete(),
        };
        if command.guti.is_some() {
            registration::drop_old_guti(ue, env);
        }
        if !ue.has_unsent_restrictions() {
            return Step::complete();
        }
        if !ue.confirm_restrictions() {
            return send_areas(ue, env);
        }
        if !ue.has_service() {
            // Its user planes end (TS 23.501 5.3.4.1.1).
            n2::release(ue, env, Cause::Nas(CauseNas::normal_release));
        }
        Step::complete()
    }

    /// T3555 expired: retransmits the command; on the fifth expiry both 5G-GUTIs stay valid (TS
    /// 24.501 5.4.4.6 a).
    pub fn on_t3555(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        match self.command.send_again(ue, env) {
            Expiry::SendAgain => Step::replied(
                Procedure::AwaitingConfigurationUpdateComplete(self),
                "ConfigurationUpdateCommand",
            ),
            Expiry::GiveUp => {
                ue.log_outcome(env, Level::Warn, "Configuration update", "not answered");
                Step::complete()
            }
        }
    }
}
