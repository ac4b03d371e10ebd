//! A changed subscription (TS 23.502 4.5.1): the UDM notifies a change, and the AMF requests the data again.
//!
//! A UE that uses a slice which is no longer allowed must register again (TS 23.501 5.15.5.2.2). A
//! changed UE-AMBR or RFSP index is sent to the gNB. Changed mobility restrictions are sent to UE and gNB with CONFIGURATION UPDATE COMMAND,
//! at once or when the UE connects; a UE that may no longer be registered where it is, is deregistered (TS 24.501 5.5.2.3.1).

use super::deregistration::{self, Reason};
use super::{Procedure, configuration_update};
use crate::amf::context::{Env, UeContext};
use crate::amf::error::RegistrationAnswer;
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
    let data = match reply {
        Ok(Response::SubscriptionDataSets(data)) if data.am_data.is_some() => Some(*data),
        _ => None,
    };
    let changed = data.and_then(|data| Some((data.am_data.clone(), Subscription::of(data)?)));
    let Some((restricted, subscription)) = changed else {
        return env.out.log(Level::Warn, || format!("{}: the changed subscription can't be read", ue.name()));
    };
    let has_other_restrictions = ue.restrict(restricted.as_ref());
    let before = (ue.ambr(), ue.rfsp());
    let keeps_slices = ue.slices.allowed.iter().all(|slice| subscription.has_slice(slice));
    ue.subscription = Some(Box::new(subscription));
    if !keeps_slices {
        return deregistration::by_network(ue, env, Reason::ReRegistrationRequired);
    }
    if before != (ue.ambr(), ue.rfsp()) {
        n2::modify_ue_context(ue, env);
    }
    if has_other_restrictions {
        on_other_restrictions(ue, env);
    }
}

/// The restrictions have changed: ends the registration if they exclude the UE, else sends them. A UE that can't be reached at present, or
/// has a procedure in progress, gets them afterwards.
pub(crate) fn on_other_restrictions(ue: &mut UeContext, env: &mut Env<'_>) {
    let excluded = ue.check_restrictions().err().map(|error| error.answer());
    if let Some(RegistrationAnswer::Reject(cause)) = excluded {
        return deregistration::by_network(ue, env, Reason::NotAllowed(cause));
    }
    let is_idle = matches!(ue.procedure, Procedure::Idle) && ue.mobility.is_idle();
    if is_idle && ue.is_registered() && ue.security.is_some() && ue.is_reachable(env) {
        ue.procedure = configuration_update::send_areas(ue, env).next;
    }
}
