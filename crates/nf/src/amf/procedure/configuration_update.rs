//! Generic UE configuration update (TS 24.501 5.4.4; TS 23.502 4.2.4.2).
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | CONFIGURATION UPDATE COMMAND with a 5G-GUTI | [`AwaitingConfigurationUpdateComplete`] | UE | T3555 |
//! | CONFIGURATION UPDATE COMMAND with changed areas or slices | as above | UE | T3555 |
//! | CONFIGURATION UPDATE COMMAND that requests a registration, after a handover from another AMF | as above | UE | T3555 |
//! | CONFIGURATION UPDATE COMMAND with the network's name and local time | none: nothing to confirm | | |
//!
//! A service request of the UE meanwhile does not end the wait: see [`crate::amf::in_progress`].

use super::deregistration::{self, Reason};
use super::{Procedure, Step, registration, subscription_change};
use crate::amf::context::{Env, UeContext};
use crate::amf::ladn;
use crate::amf::n1::{self, NasOutcome, Silence};
use crate::amf::n2;
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::amf::services::MAX_UNCONFIRMED_NAS_COUNTS;
use crate::amf::slices::Slices;
use crate::kit::document::pack_struct;
use crate::kit::{Level, Timer};
use pith_nas::GmmMessage;
use pith_nas::gmm::ConfigurationUpdateCommand;
use pith_nas::ie::{
    ConfigurationUpdateIndication, LadnInformation, MobileIdentity, NetworkName, NetworkSlicingIndication,
    RegistrationKind, RejectedNssai, TaiList,
};
use pith_ngap::{Cause, CauseNas, CauseRadioNetwork};

/// The UE must confirm a new 5G-GUTI, or changed areas or slices.
#[derive(Debug)]
pub(crate) struct AwaitingConfigurationUpdateComplete {
    command: Retransmission,
}

pack_struct!(AwaitingConfigurationUpdateComplete { command });

/// Requests a UE to register, for example one that another AMF has handed over: it gets a 5G-GUTI, and its Allowed NSSAI, as a command with a 5G-GUTI
/// alone requests no registration (TS 24.501 5.4.4.3 a). The UE registers when its connection is released, after its answer.
pub(crate) fn request_registration(ue: &mut UeContext, env: &mut Env<'_>) {
    if !matches!(ue.procedure, Procedure::Idle) || !ue.is_reachable(env) {
        return;
    }
    let mut command = ConfigurationUpdateCommand::new();
    command.guti = Some(MobileIdentity::FiveGGuti(registration::renew_guti(ue, env)));
    if !ue.is_emergency_registered() && !ue.slices.allowed.is_empty() {
        command.allowed_nssai = Some(ue.slices.allowed_nssai());
        (command.rejected_nssai, command.extended_rejected_nssai) =
            ue.rejection_ies(ue.slices.rejected_nssai());
    }
    command.indication =
        Some(ConfigurationUpdateIndication { acknowledgement: true, registration_requested: true });
    let command = Retransmission::send(ue, env, Timer::T3555, command);
    let next = AwaitingConfigurationUpdateComplete { command };
    ue.procedure = Procedure::AwaitingConfigurationUpdateComplete(next);
}

/// The gNB has requested the release of the UE, which waits for the UE's answer: for T3555 at most.
pub(crate) fn release_after_answer(ue: &mut UeContext) {
    if let Procedure::AwaitingConfigurationUpdateComplete(state) = &mut ue.procedure {
        state.command.send_once();
    }
}

/// The UE has moved to another gNB: no release waits for its answer any longer. That gNB requests one if the UE is inactive there.
pub(crate) fn on_moved(ue: &mut UeContext) {
    if let Procedure::AwaitingConfigurationUpdateComplete(state) = &mut ue.procedure {
        state.command.send_as_usual();
    }
}

/// Sends the UE the network name after an initial registration, and local time after each that it completes: what is configured of it.
pub(crate) fn send_network_name_and_time(ue: &mut UeContext, env: &mut Env<'_>, kind: RegistrationKind) {
    let name = |text: &str| Some(NetworkName { text: text.to_owned(), add_country_initials: false });
    let mut command = ConfigurationUpdateCommand::new();
    let names = env.config.network_name.as_ref().filter(|_| kind == RegistrationKind::Initial);
    if let Some(names) = names {
        command.full_name = name(&names.full);
        command.short_name = name(&names.short);
    }
    if let Some((now, offset)) = env.local_time() {
        command.local_time_zone = Some(offset.zone);
        command.universal_time = Some(offset.universal_time(now));
        command.daylight_saving_time = Some(offset.daylight_saving);
    }
    if command != ConfigurationUpdateCommand::new() {
        n1::send(ue, env, command);
    }
}

/// Allocates a new 5G-GUTI to the UE, because the current one was sent in clear in paging (TS 33.501 6.12.3).
pub(crate) fn renew_guti(ue: &mut UeContext, env: &mut Env<'_>) -> Step {
    let guti = registration::renew_guti(ue, env);
    let mut command = ConfigurationUpdateCommand::new();
    command.guti = Some(MobileIdentity::FiveGGuti(guti));
    add_changes(ue, env, &mut command);
    send(ue, env, command)
}

/// Half of the COUNTs that may be reserved were reserved, for another AMF or before a restart: the UE gets a 5G-GUTI, and its answer confirms
/// the COUNTs. Otherwise cancelled handovers would use them up, and the UE could not be handed over to another AMF.
pub(crate) fn confirm_counts(ue: &mut UeContext, env: &mut Env<'_>) {
    let is_idle = matches!(ue.procedure, Procedure::Idle) && ue.mobility.is_idle();
    let reserved = ue.security.as_ref().map_or(0, |security| security.unconfirmed);
    if is_idle && ue.is_registered() && ue.is_reachable(env) && 2 * reserved > MAX_UNCONFIRMED_NAS_COUNTS {
        ue.procedure = renew_guti(ue, env).next;
    }
}

/// Sends what has changed since the UE got it (TS 23.502 4.2.4.2). `None`: there is nothing to send.
pub(crate) fn send_changes(ue: &mut UeContext, env: &mut Env<'_>) -> Option<Step> {
    if subscription_change::has_no_slices(ue, env) {
        deregistration::by_network(ue, env, Reason::ReRegistrationRequired);
        return Some(Step::replied(std::mem::take(&mut ue.procedure), "DeregistrationRequest"));
    }
    let mut command = ConfigurationUpdateCommand::new();
    add_changes(ue, env, &mut command);
    (command != ConfigurationUpdateCommand::new()).then(|| send(ue, env, command))
}

/// Adds registration area and service area list after a change of the mobility restrictions (TS 23.501 5.3.4.1.1), and another Allowed NSSAI
/// (5.15.5.2.2). The gNB gets them with the message.
fn add_changes(ue: &mut UeContext, env: &Env<'_>, command: &mut ConfigurationUpdateCommand) {
    if ue.has_unsent_restrictions() {
        add_areas(ue, env, command);
    }
    let slices = subscription_change::new_slices(ue, env).filter(|slices| !slices.allowed.is_empty());
    if let Some(slices) = slices {
        command.tai_list = narrower_area(ue, env, &slices).or(command.tai_list.take());
        command.allowed_nssai = Some(slices.allowed_nssai());
        (command.rejected_nssai, command.extended_rejected_nssai) = ue.rejection_ies(slices.rejected_nssai());
    }
    let configured = subscription_change::configured_slices(ue, env.config);
    if ue.owes_configured_nssai && !configured.is_empty() {
        // The UE deletes what it knows of slices of other networks (TS 24.501 5.4.4.3).
        command.network_slicing_indication =
            Some(NetworkSlicingIndication { subscription_changed: true, ..Default::default() });
        command.configured_nssai = Some(configured.into_iter().collect());
    }
}

/// The areas of the UE's registration area where gNBs support other slices than before, if these are not all of it (TS 23.501 5.15.5.2.1). The
/// registration area changes when the UE confirms the list: until then the UE may be in any of the former areas.
fn narrower_area(ue: &UeContext, env: &Env<'_>, slices: &Slices) -> Option<TaiList> {
    let here = ue.location.map(|location| location.tai);
    if !here.is_some_and(|here| ue.registration_area.contains(&here)) {
        return None;
    }
    let mut area = registration::area_with(ue, env, slices);
    area.retain(|tai| ue.registration_area.contains(tai));
    (!area.is_empty() && area.len() < ue.registration_area.len()).then(|| TaiList::of(&area))
}

fn add_areas(ue: &mut UeContext, env: &Env<'_>, command: &mut ConfigurationUpdateCommand) {
    ue.registration_area = registration::registration_area(ue, env);
    let area = &ue.registration_area;
    command.tai_list = (!area.is_empty()).then(|| TaiList::of(area));
    command.service_area_list = ue.changed_service_area_list();
    if !env.config.ladns.is_empty() {
        // An empty list takes the place of the former one.
        let information = ladn::information(ue, env.config, None);
        command.ladn_information = Some(information.unwrap_or(LadnInformation(Vec::new())));
    }
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

/// Takes the command that the UE has not answered: it outlives the procedure if the UE requests service (TS 24.501 5.4.4.6 e).
pub(crate) fn take_unanswered(ue: &mut UeContext) -> Option<AwaitingConfigurationUpdateComplete> {
    match std::mem::take(&mut ue.procedure) {
        Procedure::AwaitingConfigurationUpdateComplete(state) => Some(state),
        other => {
            ue.procedure = other;
            ue.take_update()
        }
    }
}

/// T3555 expired while a service request is in progress.
pub(crate) fn on_t3555_beside(ue: &mut UeContext, env: &mut Env<'_>) -> NasOutcome {
    let Some(mut update) = ue.take_update() else { return NasOutcome::Silent(Silence::NotExpected) };
    match update.expired(ue, env) {
        Expiry::SendAgain => {
            ue.keep_update(update);
            NasOutcome::Replied("ConfigurationUpdateCommand")
        }
        Expiry::GiveUp => NasOutcome::Silent(Silence::Complete),
    }
}

impl AwaitingConfigurationUpdateComplete {
    /// Goes on beside a service request, or after it. No release waits for the answer any longer: the gNB requests that again when the UE is inactive
    /// again.
    pub fn resume(&mut self, ue: &mut UeContext, env: &mut Env<'_>) {
        self.command.send_as_usual();
        self.command.restart(ue, env);
    }

    /// CONFIGURATION UPDATE COMPLETE: only the new 5G-GUTI is valid (TS 24.501 5.4.4.4).
    pub fn on_configuration_update_complete(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        if self.confirmed(ue, env) {
            return Step::complete();
        }
        // What has changed meanwhile.
        send_changes(ue, env).unwrap_or_else(Step::complete)
    }

    /// The UE has what the command contains. Returns whether its connection is released for that.
    pub fn confirmed(self, ue: &mut UeContext, env: &mut Env<'_>) -> bool {
        self.command.stop(ue, env);
        let command = match GmmMessage::decode(self.command.plain()) {
            Ok(GmmMessage::ConfigurationUpdateCommand(command)) => command,
            _ => return false,
        };
        if command.guti.is_some() {
            registration::drop_old_guti(ue, env);
        }
        if let Some(allowed) = &command.allowed_nssai {
            let extended = command.extended_rejected_nssai.as_deref().map(RejectedNssai::of_extended);
            let rejected = extended.and_then(Result::ok).or(command.rejected_nssai).unwrap_or_default();
            ue.slices = Slices { allowed: allowed.iter().collect(), rejected: rejected.0 };
        }
        if let Some(list) = &command.tai_list {
            ue.registration_area.retain(|tai| list.contains(tai));
        }
        subscription_change::note_configured(ue, env.config, command.configured_nssai.as_ref());
        let had_unsent = ue.has_unsent_restrictions();
        let has_emergency = ue.emergency_session().is_some();
        if had_unsent && ue.confirm_restrictions() && !ue.has_service() && !has_emergency {
            // Its user planes end (TS 23.501 5.3.4.1.1).
            n2::release(ue, env, Cause::Nas(CauseNas::normal_release));
            return true;
        }
        let is_to_register = !has_emergency && command.indication.is_some_and(|it| it.registration_requested);
        if is_to_register {
            // TS 24.501 5.4.4.4.
            n2::release(ue, env, Cause::Nas(CauseNas::normal_release));
        }
        is_to_register
    }

    /// T3555 expired: retransmits the command; on the fifth expiry both 5G-GUTIs stay valid (TS
    /// 24.501 5.4.4.6 a). So they do if a release waits for the answer, which is on the first expiry.
    pub fn on_t3555(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        match self.expired(ue, env) {
            Expiry::SendAgain => Step::replied(
                Procedure::AwaitingConfigurationUpdateComplete(self),
                "ConfigurationUpdateCommand",
            ),
            Expiry::GiveUp => {
                if self.command.is_sent_once() {
                    release_inactive(ue, env);
                }
                Step::complete()
            }
        }
    }

    fn expired(&mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Expiry {
        let expiry = self.command.send_again(ue, env);
        if expiry == Expiry::GiveUp {
            ue.log_outcome(env, Level::Warn, "Configuration update", "not answered");
        }
        expiry
    }
}

/// The UE does not answer. Another gNB to which it moves requests the release itself.
fn release_inactive(ue: &UeContext, env: &mut Env<'_>) {
    if !ue.mobility.is_n2_handover() && ue.emergency_session().is_none() {
        n2::release(ue, env, Cause::RadioNetwork(CauseRadioNetwork::user_inactivity));
    }
}
