//! Primary authentication by 5G AKA (TS 24.501 5.4.1.3, TS 33.501 6.1.3.2).
//!
//! ```text
//!  UE                                AMF
//!   | <- AUTHENTICATION REQUEST       |   ngKSI, ABBA, RAND, AUTN
//!   |    AUTHENTICATION RESPONSE ->   |   RES*, kept while T3516 runs
//!   |    AUTHENTICATION FAILURE ->    |   #20, #21 with AUTS, #26, #71; T3520 waits for another challenge
//!   | <- AUTHENTICATION REJECT        |   the USIM is invalid from now on
//! ```

use super::downlink::Protection;
use super::usim::Refusal;
use super::{Event, Failure, State, Timer, Ue};
use pith_crypto::kdf;
use pith_crypto::keys::{Autn, Auts, KAmf, KAusf, Rand, ResStar};
use pith_nas::GmmCause;
use pith_nas::gmm::{AuthenticationFailure, AuthenticationRequest, AuthenticationResponse};
use pith_nas::ie::NgKsi;
use pith_types::Suci;

/// Failures in a row after which the network counts as false (5.4.1.3.7).
const FAILURES_TOLERATED: u8 = 3;

/// The partial native security context: K_AMF before algorithms are selected (5.4.1.3.1).
pub(crate) struct PartialContext {
    pub ng_ksi: NgKsi,
    pub k_amf: KAmf,
}

/// An EAP-Request and its response.
pub(crate) struct EapRound {
    pub request: Vec<u8>,
    pub response: Vec<u8>,
}

/// State of the authentication.
#[derive(Default)]
pub(crate) struct Authentication {
    pub partial: Option<PartialContext>,
    /// The last challenge and its response, while T3516 runs.
    answered: Option<(Rand, ResStar)>,
    /// The last EAP-Request and its response, until EAP-Success or EAP-Failure.
    pub eap: Option<EapRound>,
    /// Refused challenges in a row.
    pub failures: u8,
    /// Timers that were stopped by the first refused challenge.
    stopped: Vec<Timer>,
    /// The last SUCI sent, while T3519 runs.
    pub suci: Option<Suci>,
}

impl Authentication {
    /// T3516 expired: deletes RAND and RES* (5.4.1.3.3).
    pub fn forget_answer(&mut self) {
        self.answered = None;
    }

    /// Deletes RAND and RES*, and the EAP state.
    pub fn forget_challenge(&mut self) {
        self.answered = None;
        self.eap = None;
    }
}

impl Ue {
    /// AUTHENTICATION REQUEST (TS 24.501 5.4.1.3.3, 5.4.1.3.6).
    pub(super) fn receive_authentication_request(&mut self, request: &AuthenticationRequest) {
        self.timers.stop(Timer::T3520);
        if request.abba != kdf::ABBA {
            self.violation("TS 24.501 5.4.1.3.2", format!("ABBA {:02x?}", request.abba));
        }
        if let Some(eap) = &request.eap_message {
            return self.receive_eap_request(request.ng_ksi, eap, &request.abba);
        }
        let (Some(rand), Some(autn)) = (request.rand, request.autn) else {
            self.violation("TS 24.501 8.2.1", "AUTHENTICATION REQUEST without RAND, AUTN or EAP message");
            return self.send_status(GmmCause::ConditionalIeError);
        };
        if let Some(res_star) = self.stored_answer(rand) {
            return self.send_res_star(&res_star);
        }
        if !self.is_fresh_ng_ksi(request.ng_ksi) {
            let text = format!("ngKSI {:?} is already in use", request.ng_ksi);
            self.violation("TS 24.501 5.4.1.3.2", text);
            return self.fail_authentication(GmmCause::NgKsiAlreadyInUse, None);
        }
        self.take_challenge(request, &Rand::new(rand), &Autn::new(autn));
    }

    /// The response to the same RAND, if it was sent already: the challenge is a retransmission.
    fn stored_answer(&self, rand: [u8; 16]) -> Option<ResStar> {
        let (answered, res_star) = self.authentication.answered.as_ref()?;
        (*answered.as_bytes() == rand).then(|| res_star.clone())
    }

    /// Whether no security context of the UE has that identifier; the value 'no key is available'
    /// is never fresh.
    pub(super) fn is_fresh_ng_ksi(&self, ng_ksi: NgKsi) -> bool {
        let in_use = self.current_security_context.as_ref().is_some_and(|context| context.ng_ksi == ng_ksi);
        ng_ksi != NgKsi::NoKey && !in_use
    }

    fn take_challenge(&mut self, request: &AuthenticationRequest, rand: &Rand, autn: &Autn) {
        match self.usim.challenge(rand, autn) {
            Ok(answer) => {
                let name = self.settings.plmn.serving_network_name();
                let res_star = kdf::res_star(&answer.ck, &answer.ik, &name, rand, answer.res.as_bytes());
                let k_ausf = kdf::k_ausf(&answer.ck, &answer.ik, &name, autn);
                self.keep_partial_context(request.ng_ksi, &k_ausf, &request.abba);
                self.authentication.eap = None;
                self.authentication.answered = Some((*rand, res_star.clone()));
                self.timers.start(Timer::T3516, self.now + Timer::T3516.duration());
                self.send_res_star(&res_star);
                self.resume_stopped_timers();
            }
            Err(Refusal::MacFailure) => self.fail_authentication(GmmCause::MacFailure, None),
            Err(Refusal::SeparationBit) => {
                self.fail_authentication(GmmCause::NonFiveGAuthenticationUnacceptable, None);
            }
            Err(Refusal::SynchFailure(auts)) => self.fail_authentication(GmmCause::SynchFailure, Some(auts)),
        }
    }

    /// Derives K_SEAF and K_AMF from a new K_AUSF (TS 33.501 A.6, A.7).
    pub(super) fn keep_partial_context(&mut self, ng_ksi: NgKsi, k_ausf: &KAusf, abba: &[u8]) {
        let k_seaf = kdf::k_seaf(k_ausf, &self.settings.plmn.serving_network_name());
        let k_amf = kdf::k_amf(&k_seaf, self.usim.supi().imsi(), abba);
        self.authentication.partial = Some(PartialContext { ng_ksi, k_amf });
    }

    fn send_res_star(&mut self, res_star: &ResStar) {
        let mut response = AuthenticationResponse::new();
        response.res_star = Some(*res_star.as_bytes());
        self.send(&response.into());
    }

    /// Refuses a challenge and waits for another one, at most three times (TS 24.501 5.4.1.3.7 c to f).
    pub(super) fn fail_authentication(&mut self, cause: GmmCause, auts: Option<Auts>) {
        let mut failure = AuthenticationFailure::new(cause);
        failure.auts = auts.map(|auts| *auts.as_bytes());
        self.send(&failure.into());
        self.note_refused_challenge();
    }

    /// Records a refused challenge (TS 24.501 5.4.1.3.6, 5.4.1.3.7).
    pub(super) fn note_refused_challenge(&mut self) {
        self.authentication.answered = None;
        self.timers.stop(Timer::T3516);
        self.authentication.failures += 1;
        if self.authentication.failures >= FAILURES_TOLERATED {
            return self.on_network_not_authenticated();
        }
        self.stop_retransmission_timers();
        self.timers.start(Timer::T3520, self.now + Timer::T3520.duration());
    }

    fn stop_retransmission_timers(&mut self) {
        for timer in [Timer::T3510, Timer::T3517, Timer::T3521] {
            if self.timers.is_running(timer) {
                self.timers.stop(timer);
                self.authentication.stopped.push(timer);
            }
        }
    }

    pub(super) fn resume_stopped_timers(&mut self) {
        self.authentication.failures = 0;
        for timer in std::mem::take(&mut self.authentication.stopped) {
            self.timers.start(timer, self.now + timer.duration());
        }
    }

    /// The network failed the authentication check: the cell counts as barred (TS 24.501 5.4.1.3.7 g).
    pub(super) fn on_network_not_authenticated(&mut self) {
        self.authentication.failures = 0;
        self.authentication.stopped.clear();
        self.timers.stop(Timer::T3520);
        match self.state {
            State::AwaitingRegistrationAccept(_) => {
                self.event(Event::RegistrationFailed(Failure::NetworkNotAuthenticated));
            }
            _ => self.event(Event::ServiceFailed(Failure::NetworkNotAuthenticated)),
        }
        self.release_locally();
    }

    /// AUTHENTICATION REJECT (TS 24.501 5.4.1.3.5, 5.4.1.3.7 m). The simulator has only one
    /// network, and does not try again after T3247.
    pub(super) fn receive_authentication_reject(&mut self, protection: Protection) {
        let awaited = self.timers.is_running(Timer::T3516) || self.timers.is_running(Timer::T3520);
        if protection == Protection::None && !awaited {
            let text = "unprotected AUTHENTICATION REJECT though no challenge was answered";
            return self.violation("TS 24.501 5.4.1.3.7 m", text);
        }
        self.usim_is_valid = false;
        self.event(Event::RegistrationFailed(Failure::AuthenticationRejected));
        self.deregister_locally();
        self.await_nas_connection_release();
    }
}
