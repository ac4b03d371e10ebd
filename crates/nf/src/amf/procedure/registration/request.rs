//! REGISTRATION REQUEST (TS 24.501 5.5.1.2, 5.5.1.3): checks it, and chooses how the UE is authenticated.

use super::{accept, admit, on_authenticated};
use crate::amf::context::{Env, UeContext};
use crate::amf::emergency;
use crate::amf::error::RegistrationError;
use crate::amf::n1::{NasOutcome, Silence};
use crate::amf::procedure::{
    self, Procedure, RegistrationStep, Step, authentication, context_transfer, identification, voice_match,
};
use crate::amf::security::{choose_algorithms, is_acceptable, ng_ksi_after};
use crate::kit::document::{pack_enum, pack_struct};
use pith_nas::gmm::RegistrationRequest;
use pith_nas::ie::{MobileIdentity, NgKsi, RegistrationKind, RegistrationType};
use pith_nas::{GmmMessage, NasCount};
use pith_types::{FiveGGuti, Supi};

/// A registration in progress.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The request; after security mode control, the complete request from the NAS message container.
    pub request: Box<RegistrationRequest>,
    /// The message passed the integrity check.
    pub is_verified: bool,
    /// IDENTITY REQUEST was sent in this registration.
    pub has_been_asked: bool,
    /// The UE reported once that the key set identifier is in use (#71).
    pub ng_ksi_was_in_use: bool,
    /// What the UE is authenticated for.
    pub purpose: AuthenticationPurpose,
    /// The AMF that transferred the context. It is notified whether the context was used. If the message is not verified: the AMF that could
    /// not do that, and may have the context, or this one, if another shard may have it.
    pub transferred_from: Option<context_transfer::OldAmf>,
}

pack_struct!(Attempt { request, is_verified, has_been_asked, ng_ksi_was_in_use, transferred_from, purpose });

/// What a UE is authenticated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthenticationPurpose {
    /// Its registration.
    Registration,
    /// A new security context for a registered UE. There is no request of the UE.
    NewKeys,
    /// A service request with an outdated security context. Its content follows in SECURITY MODE COMPLETE.
    ServiceRequest,
}

pack_enum!(AuthenticationPurpose { 0 => Registration, 1 => NewKeys, 2 => ServiceRequest });

impl Attempt {
    /// The authentication of a registered UE, whose identity is known. The registration request has no content of the UE's, and is
    /// never answered.
    pub fn of_registered(purpose: AuthenticationPurpose, ng_ksi: u8, guti: FiveGGuti) -> Self {
        let identity = MobileIdentity::FiveGGuti(guti);
        let kind = RegistrationType { follow_on_request: false, kind: RegistrationKind::PeriodicUpdating };
        Self {
            request: Box::new(RegistrationRequest::new(kind, NgKsi::Native(ng_ksi), identity)),
            is_verified: true,
            has_been_asked: true,
            ng_ksi_was_in_use: false,
            purpose,
            transferred_from: None,
        }
    }

    pub fn kind(&self) -> RegistrationKind {
        kind_of(&self.request)
    }

    /// Whether the UE registers for emergency services.
    pub fn is_emergency(&self) -> bool {
        self.kind() == RegistrationKind::Emergency
    }

    /// Whether the registration is no update of one.
    pub fn begins_registration(&self) -> bool {
        begins_registration(self.kind())
    }

    /// The same attempt for a UE whose authentication may fail. The AMF that transferred the UE's context keeps it then.
    pub fn to_be_admitted(&self) -> Self {
        Self { request: self.request.clone(), transferred_from: None, ..*self }
    }

    /// Whether the UE registered with its SUCI.
    pub fn came_with_suci(&self) -> bool {
        matches!(self.request.mobile_identity, MobileIdentity::Suci(_))
    }

    /// A key set identifier for a new key, different from that of the UE's current key (TS 24.501 5.4.1.3.2).
    pub fn next_ng_ksi(&self, ue: &UeContext) -> u8 {
        let in_use = match (&ue.security, self.request.ng_ksi) {
            (Some(context), _) => context.ng_ksi,
            (None, NgKsi::Native(ng_ksi)) => ng_ksi,
            (None, _) => 6,
        };
        ng_ksi_after(in_use)
    }
}

/// The registration type. Undefined values count as initial registration (TS 24.501 9.11.3.7).
const fn kind_of(request: &RegistrationRequest) -> RegistrationKind {
    match request.registration_type.kind {
        RegistrationKind::Other(_) => RegistrationKind::Initial,
        kind => kind,
    }
}

/// Whether a registration of that kind is no update of one.
pub(crate) fn begins_registration(kind: RegistrationKind) -> bool {
    matches!(kind, RegistrationKind::Initial | RegistrationKind::Emergency)
}

/// Handles a REGISTRATION REQUEST; `verified` is its COUNT if it passed the integrity check.
pub(crate) fn begin(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    request: Box<RegistrationRequest>,
    verified: Option<NasCount>,
) -> NasOutcome {
    if is_repetition(ue, &request, verified) {
        return repeated(ue, env);
    }
    match std::mem::take(&mut ue.procedure) {
        Procedure::AwaitingDeregistrationAccept(state) => {
            if !state.on_registration_request(ue, env, kind_of(&request)) {
                return NasOutcome::Silent(Silence::NotExpected);
            }
        }
        other => ue.procedure = other,
    }
    procedure::abort(ue, env);
    ue.since = env.config.identity.date_time(env.now);
    let own = |guti: &FiveGGuti| env.config.serves(&guti.guami);
    if let (Some(_), Some(guti)) = (verified, request.gutis().find(own)) {
        accept::confirm_guti_in_use(ue, env, guti.tmsi);
    }
    let attempt = Attempt {
        request,
        is_verified: verified.is_some(),
        has_been_asked: false,
        ng_ksi_was_in_use: false,
        purpose: AuthenticationPurpose::Registration,
        transferred_from: None,
    };
    let step = check(ue, env, &attempt).and_then(|()| attempt.unpack_nas_container(ue, verified));
    let step = step.and_then(|attempt| identify(ue, env, attempt));
    procedure::settle(ue, env, step)
}

/// Goes on with the registration of a UE that another AMF has authenticated and passed on (TS 23.502 4.2.2.2.3 step 8). That AMF's word does not
/// end a registration here: such a UE is authenticated. Until the UE has sent something with its keys, it counts as an unauthenticated one.
pub(crate) fn go_on(ue: &mut UeContext, env: &mut Env<'_>, request: Box<RegistrationRequest>, supi: Supi) {
    ue.since = env.config.identity.date_time(env.now);
    let is_known = env.index.find_supi(&supi).is_some() || env.index.find_arrival(&supi).is_some();
    let attempt = Attempt {
        request,
        is_verified: !is_known,
        has_been_asked: true,
        ng_ksi_was_in_use: false,
        purpose: AuthenticationPurpose::Registration,
        transferred_from: None,
    };
    if is_known {
        ue.supi = Some(supi);
    } else {
        let place = ue.half_open.take();
        super::on_identified(ue, env, supi.into());
        ue.half_open = place;
    }
    let step = check(ue, env, &attempt).and_then(|()| identify(ue, env, attempt));
    procedure::settle(ue, env, step);
}

/// Whether the request repeats the one that is being processed: the procedure continues as if there had been
/// one request (TS 24.501 5.5.1.2.8 e and f). A request with other IEs starts a new procedure.
fn is_repetition(ue: &UeContext, request: &RegistrationRequest, verified: Option<NasCount>) -> bool {
    let attempt = match &ue.procedure {
        Procedure::AwaitingIdentityResponse(state) => state.attempt(),
        Procedure::AwaitingAuthenticationVector(state) => state.attempt(),
        Procedure::AwaitingAuthenticationResponse(state) => state.attempt(),
        Procedure::AwaitingAuthenticationConfirmation(state) => state.attempt(),
        Procedure::AwaitingEapResponse(state) => state.attempt(),
        Procedure::AwaitingEapSession(state) => state.attempt(),
        Procedure::AwaitingSecurityModeComplete(state) => state.attempt(),
        Procedure::AwaitingNullSecurityModeComplete(state) => state.attempt(),
        state if state.is_registering() || matches!(state, Procedure::AwaitingRegistrationComplete(_)) => {
            return ue.repeats_registration(request, verified);
        }
        _ => return false,
    };
    *attempt.request == *request
}

/// The request repeats the one in progress. If the accept was sent, it is sent again (TS 24.501 5.5.1.2.8 d).
fn repeated(ue: &mut UeContext, env: &mut Env<'_>) -> NasOutcome {
    match std::mem::take(&mut ue.procedure) {
        Procedure::AwaitingRegistrationComplete(state) => {
            let step = state.on_repeated_request(ue, env);
            procedure::settle(ue, env, Ok(step))
        }
        other => {
            ue.procedure = other;
            NasOutcome::Silent(Silence::Duplicate)
        }
    }
}

/// The checks that need no identity (TS 24.501 5.5.1.2.5).
fn check(ue: &mut UeContext, env: &Env<'_>, attempt: &Attempt) -> Result<(), RegistrationError> {
    match attempt.kind() {
        RegistrationKind::Emergency if env.config.emergency.is_none() => {
            return Err(attempt.without_emergency_services());
        }
        RegistrationKind::DisasterRoamingInitial | RegistrationKind::DisasterRoamingMobilityUpdating => {
            return Err(RegistrationError::DisasterRoamingNotSupported);
        }
        RegistrationKind::SnpnOnboarding => return Err(RegistrationError::OnboardingNotSupported),
        _ => {}
    }
    // Emergency services take precedence (TS 23.501 5.16.4.1): they use contexts beyond the limit.
    let is_full = env.refuses_new || env.ues > env.config.max_ues as usize;
    let is_admitted = attempt.is_emergency() && emergency::has_room(ue, env);
    if is_full && !ue.is_registered() && !is_admitted {
        return Err(RegistrationError::Congestion);
    }
    if !attempt.is_verified && attempt.updates_registration_elsewhere(env) {
        return Err(RegistrationError::AwaitsOwner);
    }
    if !env.is_in_served_area(ue) {
        return Err(RegistrationError::TrackingAreaNotServed);
    }
    Ok(())
}

impl Attempt {
    /// Whether the request updates a registration (mobility or periodic) whose AMF is gone, before its blocks have another owner: as a new
    /// registration it would end the UE's sessions. With cause #22 the UE stays registered, and tries again (TS 24.501 5.5.1.3.5). A living
    /// AMF gets a request for the context, also while the store does not answer.
    fn updates_registration_elsewhere(&self, env: &Env<'_>) -> bool {
        let Some(guti) = self.request.gutis().next() else { return false };
        let is_update =
            matches!(self.kind(), RegistrationKind::MobilityUpdating | RegistrationKind::PeriodicUpdating);
        is_update
            && env.config.serves(&guti.guami)
            && env.config.awaits_owner(guti.tmsi)
            && env.config.peer_of(guti.tmsi).is_none()
    }

    /// Decodes the complete request from the NAS message container of a protected one (TS 24.501
    /// 4.4.6), and stores the UE's capability.
    pub fn unpack_nas_container(
        mut self,
        ue: &mut UeContext,
        verified: Option<NasCount>,
    ) -> Result<Self, RegistrationError> {
        if let (Some(count), Some(context)) = (verified, &ue.security)
            && let Some(mut container) = self.request.nas_message_container.take()
        {
            context.nas.decipher_container(count, &mut container);
            match GmmMessage::decode(&container) {
                Ok(GmmMessage::RegistrationRequest(request)) => self.request = request,
                _ => return Err(RegistrationError::InvalidMandatoryInformation),
            }
        }
        if self.request.update_type.is_some_and(|update| update.ng_ran_radio_capability_update) {
            ue.radio_capability = None;
            voice_match::forget(ue);
        }
        ue.capability = self.request.ue_security_capability.or(ue.capability);
        match &ue.capability {
            Some(capability) if is_acceptable(capability) => Ok(self),
            Some(_) => Err(RegistrationError::SecurityCapabilityMismatch),
            None => Err(RegistrationError::NoSecurityCapability),
        }
    }
}

/// Chooses how the UE is authenticated: the integrity check of its message suffices, or a challenge
/// is needed. A challenge needs a SUPI or SUCI, which is known, or requested from the AMF that
/// allocated the 5G-GUTI, or from the UE.
pub(crate) fn identify(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt) -> RegistrationStep {
    let updates_unauthenticated = ue.is_unauthenticated() && !attempt.begins_registration();
    if attempt.is_verified && (updates_unauthenticated || !needs_new_key(ue, env)) {
        return on_authenticated(ue, env, attempt);
    }
    if let Some(supi) = ue.supi.clone() {
        return Ok(authentication::begin(ue, env, attempt, supi.into()));
    }
    match &attempt.request.mobile_identity {
        MobileIdentity::Suci(suci) => {
            let suci = suci.clone();
            Ok(authentication::begin(ue, env, attempt, suci.into()))
        }
        // Null integrity verifies any message of a UE without authentication: no AMF gets a request for the context that it names.
        MobileIdentity::FiveGGuti(_) if attempt.is_verified => Ok(attempt.ask_identity(ue, env)),
        MobileIdentity::FiveGGuti(mapped) => {
            let guti = attempt.request.gutis().next().unwrap_or(*mapped);
            Ok(context_transfer::begin(ue, env, attempt, guti))
        }
        MobileIdentity::Imei(_) | MobileIdentity::Imeisv(_) | MobileIdentity::SuciNai { .. }
            if attempt.is_emergency() =>
        {
            admit(ue, env, attempt)
        }
        MobileIdentity::SuciNai { .. } => Err(RegistrationError::NoIdentity),
        _ => Ok(identification::begin(ue, env, attempt)),
    }
}

/// Whether the UE must be authenticated although its message is protected: by null integrity, the COUNTs are almost
/// exhausted (TS 24.501 4.4.3.5), the UE's capability differs from the one by which the algorithms were
/// selected, or another AMF selected them by another order of priority (TS 33.501 6.7.1.2).
pub(crate) fn needs_new_key(ue: &UeContext, env: &Env<'_>) -> bool {
    let Some(context) = &ue.security else { return true };
    let preferred = choose_algorithms(env.config, &context.capability);
    ue.is_unauthenticated()
        || context.nas.is_near_wrap()
        || ue.capability.is_some_and(|capability| capability != context.capability)
        || preferred != Some(context.nas.algorithms())
}

impl Attempt {
    /// Continues with IDENTITY REQUEST if the UE can only be identified by its SUCI.
    pub fn ask_identity(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        identification::begin(ue, env, self)
    }
}
