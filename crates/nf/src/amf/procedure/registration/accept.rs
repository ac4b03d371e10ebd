//! REGISTRATION ACCEPT and COMPLETE (TS 24.501 5.5.1.2.4, 5.5.1.3.4; TS 23.502 4.2.2.2.2 steps 21
//! and 22).

use super::Attempt;
use crate::amf::config::AmfConfig;
use crate::amf::context::{Env, RmState, UeContext};
use crate::amf::mobility::departure;
use crate::amf::procedure::activation::Activated;
use crate::amf::procedure::{Procedure, Step, configuration_update, subscription_change, voice_match};
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::amf::slices::Slices;
use crate::amf::{delivery, ladn, n1, n2, reachability};
use crate::kit::document::pack_struct;
use crate::kit::{Level, Timer};
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationAccept;
use pith_nas::ie::{
    EmergencyNumberList, GprsTimer2, GprsTimer3, MobileIdentity, NetworkFeatureSupport,
    NetworkSlicingIndication, Nssai, PlmnList, ReactivationErrors, RegistrationKind, RegistrationResult,
    TaiList,
};
use pith_types::{FiveGGuti, FiveGTmsi, Tai};

/// The UE must confirm a new 5G-GUTI, or a Configured NSSAI.
#[derive(Debug)]
pub(crate) struct AwaitingRegistrationComplete {
    accept: Retransmission,
    kind: RegistrationKind,
}

pack_struct!(AwaitingRegistrationComplete { accept, kind });

/// Sends REGISTRATION ACCEPT; the UE is registered from now on. If it includes a new 5G-GUTI or a
/// Configured NSSAI, the UE must confirm; else the registration is complete.
pub(crate) fn accept(ue: &mut UeContext, env: &mut Env<'_>, attempt: &Attempt, activated: Activated) -> Step {
    let kind = attempt.kind();
    // A document of the time before says that the UE is not, or that it has no 5G-GUTI, also if a request for a session that it took over
    // is still pending.
    ue.must_store |= !ue.is_registered() || ue.guti.is_none();
    ue.rm = RmState::Registered;
    // It is here, whatever another AMF reports of a withdrawn handover.
    departure::forget_withdrawn(ue, env);
    if ue.mobility.is_idle() {
        // A UE that came from another AMF gets a 5G-GUTI now.
        ue.stop(env, Timer::Handover);
    }
    ue.registration_area = registration_area(ue, env);
    reachability::negotiate(ue, env.config, &attempt.request);
    let new_guti =
        (kind != RegistrationKind::PeriodicUpdating || ue.guti.is_none()).then(|| renew_guti(ue, env));
    let message = message(ue, env.config, attempt, new_guti, &activated);
    let is_confirmed = new_guti.is_some() || message.configured_nssai.is_some();
    voice_match::note_told(ue);
    let plain = GmmMessage::from(message).encode();
    let nas_pdu = n1::seal(ue, &plain);
    let wants_context = ue.initial.wants_context || attempt.begins_registration();
    n2::deliver(ue, env, nas_pdu, activated.sessions, wants_context);
    ue.reallocation = None;
    ue.note_restrictions_sent();
    delivery::send_held_setups(ue, env);
    delivery::send_queued(ue, env);
    if !is_confirmed {
        ue.log_outcome(env, Level::Info, procedure_name(kind), "ok");
        return Step::replied(Procedure::Idle, "RegistrationAccept");
    }
    let accept = Retransmission::start(ue, env, Timer::T3550, plain);
    let next = AwaitingRegistrationComplete { accept, kind };
    Step::replied(Procedure::AwaitingRegistrationComplete(next), "RegistrationAccept")
}

/// Allocates a new 5G-GUTI; the previous one stays valid until the UE confirms (TS 33.501 6.12.3).
pub(crate) fn renew_guti(ue: &mut UeContext, env: &mut Env<'_>) -> FiveGGuti {
    let tmsi = env.index.allocate_tmsi(ue.id.block, ue.key, env.rng);
    let guti = FiveGGuti { guami: env.config.guami_of(tmsi.block(), ue.location), tmsi };
    drop_old_guti(ue, env);
    ue.old_guti = ue.guti.replace(guti);
    guti
}

/// The UE used one of its 5G-GUTIs in a message that passed the integrity check: the other one is
/// freed (TS 24.501 5.5.1.2.8 c, 5.4.4.6 a).
pub(crate) fn confirm_guti_in_use(ue: &mut UeContext, env: &mut Env<'_>, tmsi: FiveGTmsi) {
    if ue.old_guti.is_some_and(|old| old.tmsi == tmsi) {
        std::mem::swap(&mut ue.guti, &mut ue.old_guti);
    }
    if ue.guti.is_some_and(|guti| guti.tmsi == tmsi) {
        drop_old_guti(ue, env);
    }
}

/// The UE uses its new 5G-GUTI: frees the previous one.
pub(crate) fn drop_old_guti(ue: &mut UeContext, env: &mut Env<'_>) {
    if let Some(old) = ue.old_guti.take() {
        env.index.free_tmsi(old.tmsi, ue.key);
    }
}

/// The tracking areas served in the UE's current network that the subscription does not forbid (TS 23.501 5.3.4.1.1), and where gNBs support
/// all allowed slices (5.15.5.2.1), and none that is rejected for the registration area: the UE could not request it there (TS 24.501 4.6.2.2). Of
/// an area without connected gNBs that is not known.
pub(crate) fn registration_area(ue: &UeContext, env: &Env<'_>) -> Vec<Tai> {
    area_with(ue, env, &ue.slices)
}

/// The registration area with these slices in place of those that the UE has.
pub(crate) fn area_with(ue: &UeContext, env: &Env<'_>, slices: &Slices) -> Vec<Tai> {
    let config = env.config;
    let here = ue.location.map(|location| location.tai);
    let plmn = here.map_or(config.guami.plmn_id, |tai| tai.plmn_id);
    let is_uniform = config.slices(plmn).len() < 2;
    let rejected_here = slices.rejected_in_area();
    let has_slices = |tai: &Tai| {
        let is_here_or_alike = is_uniform || here == Some(*tai);
        is_here_or_alike
            || env.gnbs.may_support(tai, &slices.allowed) && !env.gnbs.supports_any(tai, &rejected_here)
    };
    let served = config.tais.iter().copied().filter(|tai| tai.plmn_id == plmn);
    served.filter(|tai| !ue.is_forbidden_in(tai) && has_slices(tai)).collect()
}

fn message(
    ue: &UeContext,
    config: &AmfConfig,
    attempt: &Attempt,
    new_guti: Option<FiveGGuti>,
    activated: &Activated,
) -> RegistrationAccept {
    let is_emergency = ue.is_emergency_registered();
    let result = RegistrationResult { emergency_registered: is_emergency, ..RegistrationResult::THREE_GPP };
    let mut accept = RegistrationAccept::new(result);
    accept.guti = new_guti.map(MobileIdentity::FiveGGuti);
    if !config.equivalent_plmns.is_empty() {
        accept.equivalent_plmns = Some(PlmnList(config.equivalent_plmns.clone()));
    }
    accept.tai_list = Some(TaiList::of(&ue.registration_area));
    accept.service_area_list = ue.service_area_list();
    if !is_emergency {
        accept.allowed_nssai = Some(ue.slices.allowed_nssai());
        (accept.rejected_nssai, accept.extended_rejected_nssai) =
            ue.rejection_ies(ue.slices.rejected_nssai());
        accept.configured_nssai = configured_nssai(ue, config, attempt);
        if ue.owes_configured_nssai {
            accept.network_slicing_indication =
                Some(NetworkSlicingIndication { subscription_changed: true, ..Default::default() });
        }
    }
    accept.ladn_information = ladn::information(ue, config, attempt.request.ladn_indication.as_ref());
    accept.network_feature_support = Some(network_features(ue, config));
    accept.emergency_number_list = emergency_numbers(config);
    accept.t3512 = Some(GprsTimer3::at_least(config.t3512(is_emergency)));
    reachability::describe(ue, &attempt.request, &mut accept);
    accept.t3502 = Some(GprsTimer2::at_least(config.timers.t3502));
    if !attempt.begins_registration() || attempt.request.pdu_session_status.is_some() {
        accept.pdu_session_status = Some(ue.sessions.iter().map(|session| session.id).collect());
    }
    if attempt.request.uplink_data_status.is_some() {
        accept.reactivation_result = Some(activated.failed());
        if !activated.errors.is_empty() {
            accept.reactivation_result_error_cause = Some(ReactivationErrors(activated.errors.clone()));
        }
    }
    accept
}

/// The slices that the UE may request, if they have changed, or if its request shows that it does not know them: it requests none, one that is not
/// valid here, or those of its default configured NSSAI (TS 24.501 5.5.1.2.4, 5.5.1.3.4).
fn configured_nssai(ue: &UeContext, config: &AmfConfig, attempt: &Attempt) -> Option<Nssai> {
    let configured = subscription_change::configured_slices(ue, config);
    let request = &attempt.request;
    let is_of_default =
        request.network_slicing_indication.is_some_and(|indication| indication.default_configured_nssai);
    let is_unknown = match &request.requested_nssai {
        None => attempt.kind() != RegistrationKind::PeriodicUpdating,
        Some(nssai) => nssai.iter().any(|slice| !configured.contains(&slice)),
    };
    let is_sent = ue.owes_configured_nssai || is_of_default || is_unknown;
    (is_sent && !configured.is_empty()).then(|| configured.into_iter().collect())
}

/// IMS voice over NR, with `amf.ims_voice` (TS 23.501 5.16.3.2). Emergency services are supported over NR only, and without fallback to EPS (TS 24.501 9.11.3.5, EMC and EMF).
fn network_features(ue: &UeContext, config: &AmfConfig) -> NetworkFeatureSupport {
    let emergency_services = u8::from(config.emergency.is_some());
    let ims_voice_three_gpp = config.ims_voice && ue.voice.may_be_supported();
    NetworkFeatureSupport { ims_voice_three_gpp, emergency_services, further: vec![0], ..Default::default() }
}

/// The local emergency numbers (TS 24.501 5.3.12A).
fn emergency_numbers(config: &AmfConfig) -> Option<EmergencyNumberList> {
    let numbers = &config.emergency.as_ref()?.numbers;
    (!numbers.is_empty()).then(|| EmergencyNumberList(numbers.clone()))
}

impl AwaitingRegistrationComplete {
    /// REGISTRATION COMPLETE: only the new 5G-GUTI is valid, and the UE has its Configured NSSAI.
    pub fn on_registration_complete(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        self.accept.stop(ue, env);
        drop_old_guti(ue, env);
        if let Ok(GmmMessage::RegistrationAccept(accept)) = GmmMessage::decode(self.accept.plain()) {
            subscription_change::note_configured(ue, env.config, accept.configured_nssai.as_ref());
        }
        ue.log_outcome(env, Level::Info, procedure_name(self.kind), "ok");
        configuration_update::send_network_name_and_time(ue, env, self.kind);
        configuration_update::send_changes(ue, env).unwrap_or_else(Step::complete)
    }

    /// The UE repeats its request: the accept is sent again, and T3550 starts again (TS 24.501 5.5.1.2.8 d).
    pub fn on_repeated_request(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        self.accept.repeat(ue, env);
        Step::replied(Procedure::AwaitingRegistrationComplete(self), "RegistrationAccept")
    }

    /// T3550 expired: retransmits the accept; on the fifth expiry the UE counts as registered, with
    /// both 5G-GUTIs valid (TS 24.501 5.5.1.2.8 c).
    pub fn on_t3550(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        match self.accept.send_again(ue, env) {
            Expiry::SendAgain => {
                Step::replied(Procedure::AwaitingRegistrationComplete(self), "RegistrationAccept")
            }
            Expiry::GiveUp => {
                ue.log_outcome(env, Level::Warn, procedure_name(self.kind), "not completed");
                Step::complete()
            }
        }
    }
}

/// The procedure's label in metrics.
fn procedure_name(kind: RegistrationKind) -> &'static str {
    match kind {
        RegistrationKind::MobilityUpdating => "Mobility registration update",
        RegistrationKind::PeriodicUpdating => "Periodic registration update",
        RegistrationKind::Emergency => "Emergency registration",
        _ => "Initial registration",
    }
}
