//! One UE: 5GMM and 5GSM (TS 24.501), with its USIM.
//!
//! ```text
//!  the user            Register, EstablishSession, …   ──┐          ┌──> Event           to the user
//!  the radio           Nas, SecurityActivated, Paging  ──┼── handle ┼──> Connect, Send, Release   to the radio
//!  time                Timeout                         ──┘          └──> Violation       to the tester
//! ```
//!
//! One file for each procedure. `downlink` checks a downlink message before its procedure handles it.

mod authentication;
mod configuration_update;
mod deregistration;
mod downlink;
mod eap_aka_prime;
mod handover;
mod identification;
mod initial;
mod interface;
mod reachability;
mod registration;
mod restrictions;
mod security;
mod security_mode;
mod service_request;
mod session;
mod timer;
mod transport;
mod usim;

pub use interface::{Event, Failure, Input, Output, SessionFailure};
pub use reachability::{GrantedReachability, PagedWith, RequestedReachability};
pub use session::{Qos, Session, SessionRequest};
pub use usim::{Concealment, Subscription};

use crate::clock::Instant;
use crate::prefix::DelegatedPrefix;
use crate::violation::Violation;
use authentication::Authentication;
use initial::InitialMessage;
use pith_crypto::kdf::{self, AccessType};
use pith_crypto::keys::KGnb;
use pith_nas::ie::{RegistrationKind, ServiceAreaList, TaiList, UeSecurityCapability};
use pith_nas::{GmmCause, GmmMessage, SecurityHeaderType};
use pith_ngap::SecurityCapabilities;
use pith_types::{FiveGGuti, Pei, Plmn, Snssai, Tai};
use security::SecurityContext;
use session::Sessions;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use timer::{Timer, Timers};
use usim::Usim;

/// Configuration that UEs share.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Settings {
    /// The network that the UEs select.
    pub plmn: Plmn,
    pub security_capability: UeSecurityCapability,
    /// Requested NSSAI; if empty, the IE is omitted.
    pub requested_nssai: Vec<Snssai>,
    /// Request that the signalling connection is kept after registration.
    pub follow_on_request: bool,
    /// What the UEs use the network for.
    pub service: Service,
    /// DRX and MICO mode that the UEs request.
    pub reachability: RequestedReachability,
}

/// What a UE uses the network for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Service {
    /// Everything that is subscribed.
    #[default]
    Normal,
    /// Emergency services only: registration and sessions are those for emergency services.
    Emergency,
    /// As [`Service::Emergency`], by a UE without a SIM card.
    EmergencyWithoutSim,
}

impl Service {
    /// Whether it is emergency services.
    pub const fn is_emergency(self) -> bool {
        matches!(self, Self::Emergency | Self::EmergencyWithoutSim)
    }
}

/// The 5GMM states (TS 24.501 5.1.3.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// 5GMM-DEREGISTERED.
    Deregistered,
    /// 5GMM-REGISTERED-INITIATED: T3510.
    AwaitingRegistrationAccept(RegistrationKind),
    /// 5GMM-REGISTERED.
    Registered,
    /// 5GMM-SERVICE-REQUEST-INITIATED: T3517.
    AwaitingServiceAccept,
    /// 5GMM-DEREGISTERED-INITIATED: T3521.
    AwaitingDeregistrationAccept,
}

/// The N1 NAS signalling connection (TS 24.501 5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    /// 5GMM-IDLE.
    Idle,
    /// 5GMM-CONNECTED, without secure exchange of NAS messages yet (4.4.2.5).
    Unsecured,
    /// 5GMM-CONNECTED, with secure exchange of NAS messages.
    Secured,
}

/// Data of a registration, kept until de-registration.
#[derive(Debug, Clone, Default)]
struct RegistrationData {
    guti: Option<FiveGGuti>,
    tai_list: Option<TaiList>,
    /// Where the UE has service; `None`: everywhere in its registration area.
    service_area: Option<ServiceAreaList>,
    last_visited: Option<Tai>,
    allowed_nssai: Vec<Snssai>,
    periodic_update: Option<Duration>,
    reachability: reachability::GrantedReachability,
}

/// One UE.
pub struct Ue {
    settings: Arc<Settings>,
    usim: Usim,
    usim_is_valid: bool,
    imeisv: Pei,
    /// Tracking area of the current cell; changed by [`Input::Camp`].
    tai: Tai,
    state: State,
    connection: Connection,
    registration: RegistrationData,
    /// The current 5G NAS security context.
    current_security_context: Option<SecurityContext>,
    authentication: Authentication,
    /// The initial message of the procedure in progress.
    initial: Option<InitialMessage>,
    /// The uplink COUNT from which K_gNB of this connection is derived (TS 33.501 6.8.1.2.2).
    k_gnb_count: Option<u32>,
    /// Keys of the access stratum.
    as_keys: Option<handover::AsKeys>,
    /// What the handover in progress changes of NAS.
    nas_change: handover::NasChange,
    /// Register again when the connection is released.
    register_when_idle: Option<RegistrationKind>,
    /// The user deregisters when the procedure in progress is over.
    wants_to_deregister: bool,
    registration_attempts: u8,
    /// The value of the last REGISTRATION ACCEPT; `None`: the default.
    t3502: Option<Duration>,
    deregistration_attempts: u8,
    switch_off: bool,
    sessions: Sessions,
    timers: Timers,
    now: Instant,
    out: Vec<Output>,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deregistered => "5GMM-DEREGISTERED",
            Self::AwaitingRegistrationAccept(_) => "5GMM-REGISTERED-INITIATED",
            Self::Registered => "5GMM-REGISTERED",
            Self::AwaitingServiceAccept => "5GMM-SERVICE-REQUEST-INITIATED",
            Self::AwaitingDeregistrationAccept => "5GMM-DEREGISTERED-INITIATED",
        })
    }
}

impl Ue {
    /// A UE that is switched on and camps on a cell, but has not registered.
    pub fn new(settings: Arc<Settings>, subscription: Subscription, imeisv: Pei, tai: Tai) -> Self {
        Self {
            settings,
            usim: Usim::new(subscription),
            usim_is_valid: true,
            imeisv,
            tai,
            state: State::Deregistered,
            connection: Connection::Idle,
            registration: RegistrationData::default(),
            current_security_context: None,
            authentication: Authentication::default(),
            initial: None,
            k_gnb_count: None,
            as_keys: None,
            nas_change: handover::NasChange::None,
            register_when_idle: None,
            wants_to_deregister: false,
            registration_attempts: 0,
            t3502: None,
            deregistration_attempts: 0,
            switch_off: false,
            sessions: Sessions::default(),
            timers: Timers::default(),
            now: Instant::START,
            out: Vec::new(),
        }
    }

    /// Handles one input; appends the outputs to `out`.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Vec<Output>) {
        self.now = now;
        std::mem::swap(&mut self.out, out);
        self.dispatch(input);
        std::mem::swap(&mut self.out, out);
    }

    /// The time at which [`Input::Timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.next().into_iter().chain(self.sessions.next_timeout()).min()
    }

    /// The 5GMM state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the UE has an N1 NAS signalling connection.
    pub fn is_connected(&self) -> bool {
        self.connection != Connection::Idle
    }

    /// The UE's 5G-GUTI, if it has one.
    pub fn guti(&self) -> Option<FiveGGuti> {
        self.registration.guti
    }

    /// What the network has granted in the last registration.
    pub fn reachability(&self) -> &GrantedReachability {
        &self.registration.reachability
    }

    /// Whether the UE has an emergency session.
    pub fn has_emergency_session(&self) -> bool {
        self.sessions.has_emergency()
    }

    /// The running timers, by their names in TS 24.501.
    pub fn running_timers(&self) -> Vec<&'static str> {
        self.timers.running().map(Timer::name).chain(self.sessions.running_timers()).collect()
    }

    /// The PDU sessions that are active.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.active()
    }

    /// The UE makes an IPv6 address from a Router Advertisement, if a session has none yet; returns the one that it has.
    pub fn set_ipv6(&mut self, session: u8, address: Ipv6Addr) -> Option<Ipv6Addr> {
        self.sessions.set_ipv6(session, address)
    }

    /// A downlink packet of that QoS flow with the RQI. Returns whether the UE supports reflective QoS in the session (TS 24.501 6.2.5.1.4).
    pub fn reflect(&mut self, session: u8, qfi: u8, packet: &[u8], now: Instant) -> bool {
        self.sessions.reflect(session, qfi, packet, now)
    }

    /// The UPF has delegated a prefix to the UE, if a session has none yet; returns the one that it has.
    pub fn set_delegated(&mut self, session: u8, prefix: DelegatedPrefix) -> Option<DelegatedPrefix> {
        self.sessions.set_delegated(session, prefix)
    }

    fn dispatch(&mut self, input: Input<'_>) {
        match input {
            Input::Register => self.register_by_user(),
            Input::EstablishSession(request) => self.establish_session(request),
            Input::ReleaseSession(id) => self.release_session(id),
            Input::RevokeReflectiveQos(id) => self.revoke_reflective_qos(id),
            Input::RequestService => self.request_service_for_data(),
            Input::Deregister { switch_off } => self.deregister_by_user(switch_off),
            Input::Camp(tai) => self.camp(tai),
            // Sent before the AMF detected that the UE is switched off.
            Input::Nas(_) if self.is_off() => {}
            Input::Nas(octets) => self.receive_nas(octets),
            Input::SecurityActivated { k_gnb, capabilities } => self.check_as_security(&k_gnb, capabilities),
            Input::HandoverCommand { nas_container } => self.receive_handover_command(nas_container),
            Input::HandedOver { key, chaining_count, cell } => {
                self.check_handover(&key, chaining_count, cell);
                self.take_nas_change();
            }
            Input::UserPlane { session, up } => self.sessions.note_user_plane(session, up),
            Input::ConnectionReleased => self.on_connection_released(),
            Input::Paging(with) => self.answer_paging(with),
            Input::Timeout => self.on_timeout(),
        }
    }

    fn is_off(&self) -> bool {
        self.switch_off && self.state == State::Deregistered
    }

    fn camp(&mut self, tai: Tai) {
        let has_changed = std::mem::replace(&mut self.tai, tai) != tai;
        let left_area = self.registration.tai_list.as_ref().is_some_and(|area| !area.contains(&tai));
        match self.state {
            State::Registered if left_area => self.begin_registration(RegistrationKind::MobilityUpdating),
            // An interrupted update begins again in another tracking area, also in one of the former list (TS 24.501 5.2.3.2.3, U2 NOT UPDATED).
            State::Registered if has_changed && self.timers.is_running(Timer::T3511) => {
                self.begin_registration(RegistrationKind::MobilityUpdating);
            }
            // A registration that a change of the tracking area interrupts is aborted and begins again (TS 24.501 5.5.1.2.7, 5.5.1.3.7 e).
            State::AwaitingRegistrationAccept(kind) if has_changed => self.begin_registration(match kind {
                RegistrationKind::PeriodicUpdating => RegistrationKind::MobilityUpdating,
                kind => kind,
            }),
            _ => {}
        }
    }

    fn on_timeout(&mut self) {
        while let Some(timer) = self.timers.take_expired(self.now) {
            match timer {
                Timer::T3510 => self.on_registration_unanswered(),
                Timer::T3502 => self.retry_with_reset_counter(),
                Timer::T3511 | Timer::T3346 => self.retry_registration(),
                Timer::T3512 => self.begin_periodic_update(),
                Timer::T3516 => self.authentication.forget_answer(),
                Timer::T3517 => self.on_service_request_unanswered(),
                Timer::T3519 => self.authentication.suci = None,
                Timer::T3520 => self.on_network_not_authenticated(),
                Timer::T3521 => self.on_deregistration_unanswered(),
                Timer::T3540 => self.release_locally(),
            }
        }
        self.on_session_timeouts();
    }

    /// The N1 NAS signalling connection was released: 5GMM-IDLE (TS 24.501 5.3.1.3).
    fn on_connection_released(&mut self) {
        if self.connection == Connection::Idle {
            return;
        }
        self.enter_idle();
        match self.state {
            State::AwaitingRegistrationAccept(_) => self.on_connection_lost_in_registration(),
            State::AwaitingServiceAccept => self.on_connection_lost_in_service_request(),
            State::AwaitingDeregistrationAccept => self.on_connection_lost_in_deregistration(),
            State::Registered | State::Deregistered => {}
        }
        self.start_periodic_update();
        if self.state == State::Registered && self.wants_to_deregister {
            // The de-registration was deferred for a procedure that has ended without result.
            return self.deregister_by_user(self.switch_off);
        }
        if let Some(kind) = self.register_when_idle.take() {
            self.begin_registration(kind);
        } else if self.state == State::Registered && self.sessions.has_waiting() && self.has_service() {
            self.begin_service_request(pith_nas::ie::ServiceType::Signalling);
        }
    }

    /// Frees memory that an idle UE does not need.
    pub(crate) fn drop_expanded_keys(&mut self) {
        if let Some(context) = &mut self.current_security_context {
            context.drop_expanded_keys();
        }
    }

    fn enter_idle(&mut self) {
        self.connection = Connection::Idle;
        self.k_gnb_count = None;
        self.as_keys = None;
        self.nas_change = handover::NasChange::None;
        self.authentication.forget_challenge();
        self.authentication.failures = 0;
        self.authentication.partial = None;
        self.timers.stop_all(&[Timer::T3516, Timer::T3520, Timer::T3540]);
        self.sessions.note_idle();
        self.out.push(Output::Event(Event::Idle));
    }

    /// The UE has entered 5GMM-IDLE, and its procedure, if there was one, has ended: starts T3512 (TS 24.501 5.3.7).
    fn start_periodic_update(&mut self) {
        if let (State::Registered, Some(period)) = (self.state, self.registration.periodic_update) {
            self.timers.start(Timer::T3512, self.now + period);
        }
    }

    /// Releases the connection locally.
    fn release_locally(&mut self) {
        if self.connection != Connection::Idle {
            self.out.push(Output::Release);
            self.on_connection_released();
        }
    }

    /// The gNB activates AS security: K_gNB and the capabilities from the AMF must match the UE's
    /// own (TS 33.501 6.8.1.2.2, 6.7.4; TS 38.413 9.3.1.86).
    fn check_as_security(&mut self, k_gnb: &[u8; 32], capabilities: SecurityCapabilities) {
        let own = self.settings.security_capability;
        if self.current_security_context.as_ref().is_some_and(SecurityContext::is_null) {
            return self.check_null_as_security(capabilities);
        }
        if capabilities != as_capabilities(&own) {
            self.violation(
                "TS 38.413 9.3.1.86",
                format!("UE Security Capabilities {capabilities:x?} in the gNB, {own:?} in the UE"),
            );
        }
        let expected = self.k_gnb_count.zip(self.current_security_context.as_ref());
        let expected =
            expected.map(|(count, context)| kdf::k_gnb(&context.k_amf, count, AccessType::ThreeGpp));
        match expected {
            None => self.violation("TS 33.501 6.8.1.2.2", "AS security without a NAS security context"),
            Some(expected) if expected.as_bytes() != k_gnb => {
                self.violation("TS 33.501 6.8.1.2.2", "K_gNB of the gNB is not the one of the UE");
            }
            Some(_) => {}
        }
        let k_amf = self.current_security_context.as_ref().map(|context| context.k_amf.clone());
        self.as_keys = k_amf.map(|k_amf| handover::AsKeys::new(k_amf, KGnb::new(*k_gnb)));
    }

    /// AS security of a UE that is not authenticated: the gNB selects null algorithms, and no key is shared (TS 33.501 10.2.2.2).
    fn check_null_as_security(&mut self, capabilities: SecurityCapabilities) {
        if capabilities != as_capabilities(&UeSecurityCapability::of_5gs(0x80, 0x80)) {
            let text =
                format!("UE Security Capabilities {capabilities:x?} in the gNB of a UE with null algorithms");
            self.violation("TS 33.501 10.2.2.2", text);
        }
        self.as_keys = None;
    }

    /// Sends a message other than the initial one, with the protection of the connection.
    fn send(&mut self, message: &GmmMessage) {
        self.send_with(message, SecurityHeaderType::IntegrityProtectedAndCiphered);
    }

    fn send_with(&mut self, message: &GmmMessage, header: SecurityHeaderType) {
        let plain = message.encode();
        let nas = match (&mut self.current_security_context, self.connection) {
            (_, Connection::Idle) => return,
            (Some(context), _) if context.is_exhausted() => {
                self.current_security_context = None;
                return self.release_locally();
            }
            (Some(context), Connection::Secured) => context.seal(header, &plain),
            // Once a context is in use, every message is integrity protected (TS 24.501 4.4.4.1).
            (Some(context), Connection::Unsecured) => {
                context.seal(SecurityHeaderType::IntegrityProtected, &plain)
            }
            (None, _) => plain,
        };
        self.out.push(Output::Send(nas));
    }

    fn send_status(&mut self, cause: GmmCause) {
        self.send(&pith_nas::gmm::GmmStatus::new(cause).into());
    }

    fn violation(&mut self, clause: &'static str, text: impl Into<String>) {
        self.out.push(Output::Violation(Violation::new(clause, text)));
    }

    fn event(&mut self, event: Event) {
        self.out.push(Output::Event(event));
    }
}

/// The UE's algorithms in NGAP's format, which omits the null algorithms (TS 38.413 9.3.1.86).
fn as_capabilities(capability: &UeSecurityCapability) -> SecurityCapabilities {
    let shifted = |octet: u8| u16::from(octet << 1) << 8;
    SecurityCapabilities {
        nr_encryption: shifted(capability.ea()),
        nr_integrity: shifted(capability.ia()),
        eutra_encryption: shifted(capability.eea()),
        eutra_integrity: shifted(capability.eia()),
    }
}

#[cfg(test)]
mod tests;
