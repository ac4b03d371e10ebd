//! Sessions of a UE's user: established one after the other, complete with radio bearers and addresses.

use super::{Journey, JourneyContext, Progress, Step, UserAction};
use crate::ue::SessionRequest;
use std::time::Duration;

/// Interval and number of Router Solicitations (RFC 4861 10).
const SOLICITATION_INTERVAL: Duration = Duration::from_secs(4);
const MAX_SOLICITATIONS: u8 = 3;
/// Interval and number of requests for a prefix. (A DHCPv6 client would go on, with longer and longer intervals: RFC 8415 15.)
const PREFIX_INTERVAL: Duration = Duration::from_secs(1);
const MAX_PREFIX_REQUESTS: u8 = 3;

impl Journey {
    /// Requests the next session.
    pub(super) fn establish_session(&mut self, scene: &mut JourneyContext<'_>) {
        (self.has_addresses, self.solicitations) = (false, 0);
        (self.has_prefix, self.prefix_requests) = (false, 0);
        match self.sessions.get(self.established).cloned() {
            Some(request) => {
                self.established += 1;
                scene.actions.push(UserAction::EstablishSession(request));
            }
            None => self.fail("session: the UE has all its sessions".to_owned(), scene),
        }
    }

    /// Releases the session that it has established last.
    pub(super) fn release_session(&mut self, scene: &mut JourneyContext<'_>) {
        match self.current_session().map(|session| session.id) {
            Some(id) => {
                self.established -= 1;
                scene.actions.push(UserAction::ReleaseSession(id));
            }
            None => self.fail("release of the session: the UE has none".to_owned(), scene),
        }
    }

    fn current_session(&self) -> Option<&SessionRequest> {
        self.sessions.get(self.established.checked_sub(1)?)
    }

    /// Whether there are bearers for the session in a step that establishes it, or for any session.
    fn has_bearer(&self) -> bool {
        let id = match self.progress {
            Progress::Under(Step::EstablishSession) => self.current_session().map(|session| session.id),
            _ => None,
        };
        self.bearers & id.map_or(u16::MAX, bit) != 0
    }

    /// Radio bearers of a session were set up or released.
    pub fn on_bearer(&mut self, session: u8, up: bool, scene: &mut JourneyContext<'_>) {
        if up {
            self.bearers |= bit(session);
        } else {
            self.bearers &= !bit(session);
        }
        let waits = matches!(self.progress, Progress::Under(Step::EstablishSession | Step::RequestService));
        if self.has_bearer() && waits && self.half_done {
            self.complete_bearer(scene);
        }
    }

    /// Signalling is complete; the step also needs the bearers.
    pub(super) fn complete_half(&mut self, scene: &mut JourneyContext<'_>) {
        self.half_done = true;
        if self.has_bearer() {
            self.complete_bearer(scene);
        }
    }

    /// Signalling and bearers are complete; a new session with IPv6 needs an address, too, and perhaps a prefix for hosts behind the UE.
    fn complete_bearer(&mut self, scene: &mut JourneyContext<'_>) {
        if self.waits_for_router() {
            self.solicit(scene);
        } else if self.waits_for_prefix(scene) {
            self.request_prefix(scene);
        } else {
            self.end_step(scene);
        }
    }

    /// Whether the step establishes a session with IPv6, and signalling and bearers are complete.
    fn has_new_link(&self) -> bool {
        use pith_nas::ie::PduSessionType::{Ipv4v6, Ipv6};
        let is_new =
            self.progress == Progress::Under(Step::EstablishSession) && self.half_done && self.has_bearer();
        let kind = self.current_session().map(|session| session.session_type);
        is_new && matches!(kind, Some(Ipv6 | Ipv4v6))
    }

    pub(super) fn waits_for_router(&self) -> bool {
        self.has_new_link() && !self.has_addresses
    }

    pub(super) fn waits_for_prefix(&self, scene: &JourneyContext<'_>) -> bool {
        scene.plan.requests_prefix && self.has_new_link() && self.has_addresses && !self.has_prefix
    }

    pub(super) fn request_prefix(&mut self, scene: &mut JourneyContext<'_>) {
        if self.prefix_requests == MAX_PREFIX_REQUESTS {
            return self.fail("session: no delegated prefix".to_owned(), scene);
        }
        let Some(session) = self.current_session().map(|session| session.id) else { return };
        self.prefix_requests += 1;
        self.deadline = Some(scene.now + PREFIX_INTERVAL);
        scene.actions.push(UserAction::RequestPrefix(session));
    }

    /// A prefix was delegated to the UE.
    pub fn on_prefix(&mut self, scene: &mut JourneyContext<'_>) {
        let waits = self.waits_for_prefix(scene);
        self.has_prefix = true;
        if waits {
            self.deadline = None;
            self.end_step(scene);
        }
    }

    pub(super) fn solicit(&mut self, scene: &mut JourneyContext<'_>) {
        if self.solicitations == MAX_SOLICITATIONS {
            return self.fail("session: no Router Advertisement".to_owned(), scene);
        }
        let Some(session) = self.current_session().map(|session| session.id) else { return };
        self.solicitations += 1;
        self.deadline = Some(scene.now + SOLICITATION_INTERVAL);
        scene.actions.push(UserAction::SolicitRouter(session));
    }

    /// The session has all its addresses.
    pub fn on_addresses(&mut self, scene: &mut JourneyContext<'_>) {
        let waits = self.waits_for_router();
        self.has_addresses = true;
        if waits {
            self.deadline = None;
            self.complete_bearer(scene);
        }
    }
}

/// The bit of a PDU session identity, 1 to 15.
const fn bit(session: u8) -> u16 {
    1 << (session & 15)
}
