//! A changed subscription (TS 23.502 4.5.1): the UDM notifies a change, and the AMF requests the data again.
//!
//! A UE that uses a slice which is no longer allowed must register again (TS 23.501 5.15.5.2.2). A
//! changed UE-AMBR or RFSP index is sent to the gNB.

use super::deregistration::{self, Reason};
use crate::amf::context::{Env, UeContext};
use crate::amf::subscription::Subscription;
use crate::amf::{consumer, n2};
use crate::kit::Level;
use pith_sbi::{Reply, Response};

/// Requests the current subscription data, unless a registration in progress requests them anyway.
pub(crate) fn begin(ue: &mut UeContext, env: &mut Env<'_>) {
    if !ue.procedure.is_registering() {
        ue.refresh_call = consumer::subscription_data(ue, env);
    }
}

/// The current subscription data.
pub(crate) fn on_refreshed(ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) {
    let subscription = match reply {
        Ok(Response::SubscriptionDataSets(data)) => Subscription::of(*data),
        _ => None,
    };
    let Some(subscription) = subscription else {
        return env.out.log(Level::Warn, || format!("{}: the changed subscription can't be read", ue.name()));
    };
    let before = (ue.ambr(), ue.rfsp());
    let keeps_slices = ue.slices.allowed.iter().all(|slice| subscription.has_slice(slice));
    ue.subscription = Some(Box::new(subscription));
    if !keeps_slices {
        deregistration::by_network(ue, env, Reason::ReRegistrationRequired);
    } else if before != (ue.ambr(), ue.rfsp()) {
        n2::modify_ue_context(ue, env);
    }
}
