//! What belongs to the request of a UE that is being processed, beside the state of its procedure.
//!
//! A request with the same information elements as the one in progress is a retransmission: the procedure continues, and an accept that was
//! sent is sent again (TS 24.501 5.5.1.2.8, 5.5.1.3.8, 5.6.1.8).

use super::context::UeContext;
use super::procedure::configuration_update::AwaitingConfigurationUpdateComplete;
use crate::kit::document::pack_struct;
use pith_crypto::jws::sha256;
use pith_nas::gmm::{RegistrationRequest, ServiceRequest};
use pith_nas::{GmmMessage, NasCount};

/// It lasts as long as the procedure.
#[derive(Debug, Default)]
pub(crate) struct InProgress {
    /// SHA-256 of the request.
    request: Option<[u8; 32]>,
    /// The UE has not answered this command, and then requested service: both go on (TS 24.501 5.4.4.6 e).
    pub update: Option<AwaitingConfigurationUpdateComplete>,
    /// A SERVICE REQUEST that is processed when the UE has its new keys (TS 24.501 5.4.2.7 c).
    pub postponed: Option<Vec<u8>>,
}

pack_struct!(InProgress { request, update, postponed });

fn digest(message: impl Into<GmmMessage>) -> [u8; 32] {
    sha256(&message.into().encode())
}

impl UeContext {
    /// Notes the registration request that the procedure answers: the complete one.
    pub fn note_registration_request(&mut self, request: &RegistrationRequest) {
        self.in_progress().request = Some(digest(request.clone()));
    }

    /// Notes the service request that the procedure answers.
    pub fn note_service_request(&mut self, request: ServiceRequest) {
        self.in_progress().request = Some(digest(request));
    }

    /// Whether the request, or the complete one in its NAS message container, is the one in progress.
    pub fn repeats_registration(&self, request: &RegistrationRequest, verified: Option<NasCount>) -> bool {
        let Some(known) = self.in_progress.as_ref().and_then(|it| it.request) else { return false };
        let is_known = |request: &RegistrationRequest| digest(request.clone()) == known;
        is_known(request) || self.in_container(request, verified).is_some_and(|whole| is_known(&whole))
    }

    /// The complete request in the NAS message container (TS 24.501 4.4.6).
    fn in_container(
        &self,
        request: &RegistrationRequest,
        verified: Option<NasCount>,
    ) -> Option<Box<RegistrationRequest>> {
        let (count, mut container) = verified.zip(request.nas_message_container.clone())?;
        self.security.as_ref()?.nas.decipher_container(count, &mut container);
        match GmmMessage::decode(&container) {
            Ok(GmmMessage::RegistrationRequest(whole)) => Some(whole),
            _ => None,
        }
    }

    /// Whether that complete request is the one in progress.
    pub fn repeats_service_request(&self, request: &ServiceRequest) -> bool {
        let known = self.in_progress.as_ref().and_then(|it| it.request);
        known.is_some_and(|known| digest(request.clone()) == known)
    }

    /// Keeps a command that the UE has not answered, beside its service request.
    pub fn keep_update(&mut self, update: AwaitingConfigurationUpdateComplete) {
        self.in_progress().update = Some(update);
    }

    /// The command that the UE has not answered, beside its service request.
    pub fn take_update(&mut self) -> Option<AwaitingConfigurationUpdateComplete> {
        self.in_progress.as_mut()?.update.take()
    }

    /// Whether the UE has to answer a command, beside its service request.
    pub fn has_update(&self) -> bool {
        self.in_progress.as_ref().is_some_and(|it| it.update.is_some())
    }

    /// Keeps a service request until the UE has its new keys.
    pub fn postpone(&mut self, request: ServiceRequest) {
        self.in_progress().postponed = Some(GmmMessage::from(request).encode());
    }

    /// The service request that waited for new keys.
    pub fn take_postponed(&mut self) -> Option<Vec<u8>> {
        self.in_progress.as_mut()?.postponed.take()
    }

    fn in_progress(&mut self) -> &mut InProgress {
        self.in_progress.get_or_insert_default()
    }
}
