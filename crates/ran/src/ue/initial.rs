//! The initial NAS message of a connection, and its protection (TS 24.501 4.4.6).

use super::{Connection, Output, Ue};
use pith_nas::gmm::{DeregistrationRequestUeOriginating, RegistrationRequest, ServiceRequest};
use pith_nas::ie::NgKsi;
use pith_nas::{GmmMessage, SecurityHeaderType};
use pith_ngap::RrcEstablishmentCause;

/// An initial NAS message that was sent.
pub(crate) struct InitialMessage {
    /// The complete message with all its IEs.
    pub entire: Vec<u8>,
    /// The uplink COUNT of its protection, if there was a security context.
    pub count: Option<u32>,
}

/// A request that can be an initial NAS message.
pub(crate) trait Initial: Clone + Into<GmmMessage> {
    /// The message with its cleartext IEs only (4.4.6).
    fn cleartext(&self) -> Self;
    /// The NAS message container for the complete message.
    fn container(&mut self) -> Option<&mut Option<Vec<u8>>>;
}

impl Initial for RegistrationRequest {
    fn cleartext(&self) -> Self {
        Self {
            ue_security_capability: self.ue_security_capability,
            additional_guti: self.additional_guti.clone(),
            ue_status: self.ue_status,
            eps_nas_message_container: self.eps_nas_message_container.clone(),
            nid: self.nid,
            plmn_with_disaster_condition: self.plmn_with_disaster_condition,
            ..Self::new(self.registration_type, self.ng_ksi, self.mobile_identity.clone())
        }
    }

    fn container(&mut self) -> Option<&mut Option<Vec<u8>>> {
        Some(&mut self.nas_message_container)
    }
}

impl Initial for ServiceRequest {
    fn cleartext(&self) -> Self {
        Self::new(self.ng_ksi, self.service_type, self.s_tmsi.clone())
    }

    fn container(&mut self) -> Option<&mut Option<Vec<u8>>> {
        Some(&mut self.nas_message_container)
    }
}

/// All its IEs are cleartext IEs.
impl Initial for DeregistrationRequestUeOriginating {
    fn cleartext(&self) -> Self {
        self.clone()
    }

    fn container(&mut self) -> Option<&mut Option<Vec<u8>>> {
        None
    }
}

impl Ue {
    /// The key set identifier of the context that protects an initial message (TS 24.501 9.11.3.32).
    pub(super) fn ng_ksi(&self) -> NgKsi {
        self.current_security_context.as_ref().map_or(NgKsi::NoKey, |context| context.ng_ksi)
    }

    /// Sends a request: as the initial message of a new connection, or ciphered on the existing one.
    pub(super) fn send_request(&mut self, request: impl Initial, cause: RrcEstablishmentCause) {
        let entire: GmmMessage = request.clone().into();
        if self.connection == Connection::Secured {
            self.initial = Some(InitialMessage { entire: entire.encode(), count: self.next_uplink() });
            return self.send(&entire);
        }
        let nas = self.protect_initial(request, entire.encode());
        match self.connection {
            Connection::Idle => self.connect(nas, cause),
            Connection::Unsecured | Connection::Secured => self.out.push(Output::Send(nas)),
        }
    }

    fn connect(&mut self, nas: Vec<u8>, cause: RrcEstablishmentCause) {
        self.connection = Connection::Unsecured;
        self.timers.stop(super::Timer::T3512);
        let s_tmsi = self.registration.guti.map(|guti| guti.s_tmsi());
        self.out.push(Output::Connect { nas, cause, s_tmsi });
    }

    fn next_uplink(&self) -> Option<u32> {
        self.current_security_context.as_ref().map(|context| context.next_uplink())
    }

    /// Without a context only cleartext IEs are sent, unprotected; with one, all IEs in a ciphered container.
    fn protect_initial(&mut self, request: impl Initial, entire: Vec<u8>) -> Vec<u8> {
        let count = self.next_uplink();
        self.k_gnb_count = count;
        let mut cleartext = request.cleartext();
        let nas = match &mut self.current_security_context {
            None => cleartext.into().encode(),
            Some(context) => {
                let has_more = cleartext.clone().into().encode() != entire;
                if let (true, Some(container)) = (has_more, cleartext.container()) {
                    let mut ciphered = entire.clone();
                    context.cipher_container(&mut ciphered);
                    *container = Some(ciphered);
                }
                context.seal(SecurityHeaderType::IntegrityProtected, &cleartext.into().encode())
            }
        };
        self.initial = Some(InitialMessage { entire, count });
        nas
    }
}
