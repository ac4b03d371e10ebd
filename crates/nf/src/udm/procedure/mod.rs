//! The UDM's transactions: each is a sequence of requests to the UDR.

mod authentication;
mod data_change;
mod registration;
mod relay;
mod subscription;

use super::config::UdmConfig;
use crate::kit::{Caller, Instant, Rng};
use pith_sbi::{Problem, Reply, Request};

/// A transaction that waits for the UDR, in the order of its steps.
pub(super) enum Transaction {
    /// Waits for keys and SQN.
    AwaitingAuthenticationSubscription(authentication::AwaitingAuthenticationSubscription),
    /// Waits until SQN is stored.
    AwaitingSequenceNumberUpdate(authentication::AwaitingSequenceNumberUpdate),
    /// Waits for the current registration of an AMF.
    AwaitingAmfRegistration(registration::AwaitingAmfRegistration),
    /// Waits until the new AMF's registration is stored.
    AwaitingAmfRegistrationUpdate(registration::AwaitingAmfRegistrationUpdate),
    /// Waits for the AMF registration to be changed.
    AwaitingRegistrationToModify(registration::AwaitingRegistrationToModify),
    /// Waits for subscriptions that may have expired.
    AwaitingEarlierSubscriptions(subscription::AwaitingEarlierSubscriptions),
    /// Waits until an expired subscription is removed.
    AwaitingRemoval(subscription::AwaitingRemoval),
    /// Waits until a subscription is stored.
    AwaitingSubscriptionCreation(subscription::AwaitingSubscriptionCreation),
    /// Waits for the subscription to be changed.
    AwaitingSubscriptionToModify(Box<subscription::AwaitingSubscriptionToModify>),
    /// Waits until the changed subscription is stored.
    AwaitingSubscriptionUpdate(subscription::AwaitingSubscriptionUpdate),
    /// Waits for the subscriptions to changed data.
    AwaitingSdmSubscriptions(data_change::AwaitingSdmSubscriptions),
    /// Waits for the changed data.
    AwaitingChangedData(data_change::AwaitingChangedData),
    /// Waits for the registration of the AMF that serves the UE of a deleted subscriber.
    AwaitingAmfOfDeleted(data_change::AwaitingAmfOfDeleted),
    /// Waits for the AMF that is to deregister the UE of a deleted subscriber.
    AwaitingWithdrawal(data_change::AwaitingWithdrawal),
    /// Waits for the registrations of the SMFs, as that AMF has not answered.
    AwaitingSmfsOfDeleted(data_change::AwaitingSmfsOfDeleted),
    /// Waits for the answer of a subscriber NF.
    AwaitingAcknowledgement(Box<data_change::AwaitingAcknowledgement>),
    /// Waits for the reply to forward.
    Relay(relay::Relay),
    /// Has ended.
    Ended,
}

/// The result of a step.
pub(super) enum Step {
    /// Send a request to the UDR, or a notification to its URI, and wait.
    Call(Request, Transaction),
    /// Send requests whose replies nothing waits for, and then one as [`Step::Call`].
    SendAndCall(Vec<Request>, Request, Transaction),
    /// Answer, and send requests whose replies nothing waits for.
    Answer(Reply, Vec<Request>),
}

impl Step {
    fn refuse(problem: impl Into<Box<Problem>>) -> Self {
        Self::Answer(Err(problem.into()), Vec::new())
    }
}

/// Starts the transaction of a request.
pub(super) fn begin(config: &UdmConfig, now: Instant, from: Caller, request: Request) -> Step {
    match request {
        Request::GenerateAuthData(request) => authentication::begin(config, *request),
        Request::ThreeGppRegistration(request) => registration::begin(config, request),
        Request::UpdateThreeGppRegistration(request) => registration::begin_update(request, from),
        Request::DataChangeNotification(notification) => data_change::begin(config, now, *notification),
        Request::SdmSubscribe(request) => subscription::begin(config, now, from, *request),
        Request::SdmModifySubscription(request) => {
            subscription::begin_modification(config, now, from, *request)
        }
        other => relay::begin(config, from, other),
    }
}

impl Transaction {
    /// Continues with the UDR's reply.
    pub(super) fn reply(self, config: &UdmConfig, rng: &mut Rng, reply: Reply) -> Step {
        match self {
            Self::AwaitingAuthenticationSubscription(state) => state.reply(rng, reply),
            Self::AwaitingSequenceNumberUpdate(state) => state.reply(reply),
            Self::AwaitingAmfRegistration(state) => state.reply(reply),
            Self::AwaitingAmfRegistrationUpdate(state) => state.reply(config, reply),
            Self::AwaitingRegistrationToModify(state) => state.reply(config, reply),
            Self::AwaitingEarlierSubscriptions(state) => state.reply(reply),
            Self::AwaitingRemoval(state) => state.reply(),
            Self::AwaitingSubscriptionCreation(state) => state.reply(config, reply),
            Self::AwaitingSubscriptionToModify(state) => state.reply(reply),
            Self::AwaitingSubscriptionUpdate(state) => state.reply(reply),
            Self::AwaitingSdmSubscriptions(state) => state.reply(config, reply),
            Self::AwaitingChangedData(state) => state.reply(reply),
            Self::AwaitingAmfOfDeleted(state) => state.reply(reply),
            Self::AwaitingWithdrawal(state) => state.reply(reply),
            Self::AwaitingSmfsOfDeleted(state) => state.reply(reply),
            Self::AwaitingAcknowledgement(state) => state.reply(reply),
            Self::Relay(state) => state.reply(config, reply),
            Self::Ended => Step::refuse(Problem::system_failure("an answer after the end")),
        }
    }
}
