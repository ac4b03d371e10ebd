//! The UDM's transactions: each a chain of calls to the UDR.

mod authentication;
mod registration;
mod relay;

use super::config::UdmConfig;
use crate::kit::{Instant, Rng};
use pith_sbi::{Problem, Reply, Request};

/// A transaction that waits for the UDR, in the order of its steps.
pub(super) enum Transaction {
    /// For keys and SQN.
    AwaitingAuthenticationSubscription(authentication::AwaitingAuthenticationSubscription),
    /// For SQN to be kept.
    AwaitingSequenceNumberUpdate(authentication::AwaitingSequenceNumberUpdate),
    /// For the AMF that is registered so far.
    AwaitingAmfRegistration(registration::AwaitingAmfRegistration),
    /// For the new AMF's registration to be kept.
    AwaitingAmfRegistrationUpdate(registration::AwaitingAmfRegistrationUpdate),
    /// For the AMF whose registration is to be changed.
    AwaitingRegistrationToModify(registration::AwaitingRegistrationToModify),
    /// For the answer to hand on.
    Relay(relay::Relay),
    /// For nothing: it has ended.
    Ended,
}

/// What follows.
pub(super) enum Step {
    /// Ask the UDR, and wait.
    Call(Request, Transaction),
    /// Answer, and perhaps tell another NF.
    Answer(Reply, Option<Request>),
}

impl Step {
    fn refuse(problem: impl Into<Box<Problem>>) -> Self {
        Self::Answer(Err(problem.into()), None)
    }
}

/// Begins the transaction that a request asks for.
pub(super) fn begin(config: &UdmConfig, now: Instant, request: Request) -> Step {
    match request {
        Request::GenerateAuthData(request) => authentication::begin(config, *request),
        Request::ThreeGppRegistration(request) => registration::begin(config, *request),
        Request::UpdateThreeGppRegistration(request) => registration::begin_update(*request),
        other => relay::begin(config, now, other),
    }
}

impl Transaction {
    /// Goes on with what the UDR answered.
    pub(super) fn reply(self, config: &UdmConfig, rng: &mut Rng, reply: Reply) -> Step {
        match self {
            Self::AwaitingAuthenticationSubscription(state) => state.reply(rng, reply),
            Self::AwaitingSequenceNumberUpdate(state) => state.reply(reply),
            Self::AwaitingAmfRegistration(state) => state.reply(reply),
            Self::AwaitingAmfRegistrationUpdate(state) => state.reply(config, reply),
            Self::AwaitingRegistrationToModify(state) => state.reply(reply),
            Self::Relay(state) => state.reply(config, reply),
            Self::Ended => Step::refuse(Problem::system_failure("an answer after the end")),
        }
    }
}
