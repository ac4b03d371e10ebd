//! Emergency services in a UE's context (TS 23.501 5.16.4).
//!
//! | registration | security | other sessions | restrictions |
//! |---|---|---|---|
//! | normal | authenticated | yes | do not apply to the emergency session |
//! | emergency registered | authenticated | no | none |
//! | emergency registered, since the subscription ended during an emergency session | authenticated | no | none |
//! | emergency registered, unauthenticated | null algorithms; the UE is known by its PEI | no | none |

use super::config::{EMERGENCY_UES, EmergencyServices};
use super::consumer;
use super::context::{Env, UeContext};
use super::error::RegistrationError;
use super::slices::Slices;
use crate::kit::document::{pack_enum, pack_struct};
use pith_sbi::namf_communication as namf;
use pith_types::{Dnn, Snssai, UeIdentity};

/// What a context has for emergency services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Emergency {
    pub registration: EmergencyRegistration,
    /// The PDU session identity that the UE last requested an emergency session with.
    session: Option<u8>,
}

/// Whether the UE is registered for emergency services only (TS 24.501 5.5.1.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EmergencyRegistration {
    /// It is not.
    #[default]
    None,
    /// It is, and was authenticated.
    Authenticated,
    /// It is, and was not authenticated: its NAS messages are not protected.
    Unauthenticated,
    /// It is since its subscription ended, which it does not know: it is deregistered when its emergency session ends.
    SubscriptionWithdrawn,
    /// As before, since the UDM required that it registers again.
    ReRegistrationRequired,
}

pack_struct!(Emergency { registration, session });
pack_enum!(EmergencyRegistration {
    0 => None,
    1 => Authenticated,
    2 => Unauthenticated,
    3 => SubscriptionWithdrawn,
    4 => ReRegistrationRequired,
});

impl UeContext {
    /// Whether the UE is registered for emergency services only.
    pub fn is_emergency_registered(&self) -> bool {
        self.emergency.registration != EmergencyRegistration::None
    }

    /// Whether the UE got a REGISTRATION ACCEPT for emergency services only, with their T3512.
    pub fn knows_emergency_registration(&self) -> bool {
        match self.emergency.registration {
            EmergencyRegistration::Authenticated | EmergencyRegistration::Unauthenticated => true,
            EmergencyRegistration::None
            | EmergencyRegistration::SubscriptionWithdrawn
            | EmergencyRegistration::ReRegistrationRequired => false,
        }
    }

    /// Whether the UE is registered for emergency services, and was not authenticated.
    pub fn is_unauthenticated(&self) -> bool {
        self.emergency.registration == EmergencyRegistration::Unauthenticated
    }

    /// The identity of the subscriber, or of the device of an unauthenticated UE.
    pub fn identity(&self) -> Option<UeIdentity> {
        if self.is_unauthenticated() {
            return self.pei.clone().map(UeIdentity::Pei);
        }
        self.supi.clone().map(UeIdentity::Supi)
    }

    /// The UE has nothing of emergency services any longer.
    pub fn end_emergency_registration(&mut self, env: &mut Env<'_>) {
        self.free_unauthenticated(env);
        self.emergency = Emergency::default();
    }

    /// The place of an unauthenticated UE, which is known by its PEI, becomes free.
    fn free_unauthenticated(&self, env: &mut Env<'_>) {
        if self.is_unauthenticated()
            && let Some(identity) = self.identity()
        {
            env.index.free(&identity, self.key);
        }
    }

    /// The UE's emergency session.
    pub fn emergency_session(&self) -> Option<u8> {
        self.emergency.session.filter(|id| self.session(*id).is_some())
    }

    /// Notes the kind of a session that the UE requests with that identity.
    pub fn note_requested_session(&mut self, id: u8, is_emergency: bool) {
        if is_emergency {
            self.emergency.session = Some(id);
            self.leave_mico_mode();
        } else if self.emergency.session == Some(id) {
            self.emergency.session = None;
        }
    }

    /// Whether the session may have a user plane where the UE is: restrictions do not apply to an emergency session (TS 23.501 5.16.4.3).
    pub fn has_service_for(&self, id: u8) -> bool {
        self.has_service() || self.emergency_session() == Some(id)
    }
}

/// The AMF admits a UE without authentication. Null algorithms are chosen with this proof only.
#[derive(Debug)]
pub(crate) struct UnauthenticatedAdmission(());

/// Whether the operator permits UEs without authentication (TS 33.501 10.2.2.1).
pub(crate) fn check_unauthenticated(env: &Env<'_>) -> Result<UnauthenticatedAdmission, RegistrationError> {
    if services(env)?.unauthenticated == 0 {
        return Err(RegistrationError::NoIdentity);
    }
    Ok(UnauthenticatedAdmission(()))
}

/// Limits the UEs that are registered without authentication, as anyone can register any number of them. One that registers again replaces
/// its former context.
pub(crate) fn check_number(env: &Env<'_>, ue: &UeIdentity) -> Result<(), RegistrationError> {
    let limit = services(env)?.unauthenticated as usize;
    if env.index.unauthenticated() >= limit && env.index.find(ue).is_none() {
        return Err(RegistrationError::Congestion);
    }
    Ok(())
}

/// Whether a UE that is not registered may have a context for its emergency registration. One that does not answer gives its context away.
pub(crate) fn has_room(ue: &UeContext, env: &Env<'_>) -> bool {
    let most = env.config.max_ues.saturating_add(EMERGENCY_UES) as usize;
    let has_other_half_open = env.half_open.len() > usize::from(ue.half_open.is_some());
    env.ues <= most || has_other_half_open
}

/// What a normal registration has does not apply to a UE that is registered for emergency services only. The gNB gets the slice of emergency
/// sessions as Allowed NSSAI, which is mandatory in NGAP.
pub(crate) fn end_subscription(ue: &mut UeContext, env: &mut Env<'_>, snssai: Snssai) {
    consumer::delete_policy(ue, env);
    consumer::unsubscribe(ue, env);
    (ue.sdm_call, ue.refresh_call) = (None, None);
    (ue.subscription, ue.restrictions) = (None, None);
    ue.subscribe_trace(None, env.out);
    ue.slices = Slices { allowed: vec![snssai], rejected: Vec::new() };
}

/// Whether sessions of that slice and data network are emergency sessions. An AMF knows no more of those that it takes from another AMF.
pub(crate) fn is_session(env: &Env<'_>, snssai: Snssai, dnn: &Dnn) -> bool {
    env.config.emergency.as_ref().is_some_and(|it| it.snssai == snssai && it.dnn == *dnn)
}

/// Whether the UE is registered for emergency services only at the AMF that sends the context: that has no Allowed NSSAI, which one of a
/// normally registered UE has (TS 29.518 6.1.6.2.31), and an emergency session alone.
pub(crate) fn is_registered_elsewhere(env: &Env<'_>, context: &namf::UeContext) -> bool {
    let has_slices = context.mm_context_list.iter().any(|mm| !mm.allowed_nssai.is_empty());
    let sessions = &context.session_context_list;
    !has_slices && !sessions.is_empty() && sessions.iter().all(|it| is_session(env, it.s_nssai, &it.dnn))
}

/// The UE is registered for emergency services only at the AMF from which it comes, and so it is here.
pub(crate) fn take_registration(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.free_unauthenticated(env);
    ue.emergency.registration = EmergencyRegistration::Authenticated;
    let allowed = env.config.emergency.iter().map(|services| services.snssai).collect();
    ue.slices = Slices { allowed, rejected: Vec::new() };
}

/// Finds the emergency session among those that another AMF has transferred.
pub(crate) fn note_transferred_session(ue: &mut UeContext, env: &Env<'_>) {
    let found = ue.sessions.iter().find(|it| is_session(env, it.snssai, &it.dnn)).map(|it| it.id);
    if let Some(id) = found {
        ue.note_requested_session(id, true);
    }
}

/// Releases all sessions but the emergency session.
pub(crate) fn release_other_sessions(ue: &mut UeContext, env: &mut Env<'_>) {
    let emergency = ue.emergency_session();
    let others: Vec<u8> =
        ue.sessions.iter().map(|session| session.id).filter(|id| Some(*id) != emergency).collect();
    for id in others {
        consumer::release_session(ue, env, id);
    }
}

/// The configuration of emergency services.
pub(crate) fn services<'a>(env: &Env<'a>) -> Result<&'a EmergencyServices, RegistrationError> {
    env.config.emergency.as_ref().ok_or(RegistrationError::EmergencyNotSupported)
}
