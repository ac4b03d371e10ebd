//! Which slices a UE may use here (TS 23.501 5.15.5.2.1).

use super::context::UeContext;
use super::subscription::Subscription;
use crate::kit::document::pack_struct;
use pith_nas::ie::{Nssai, RejectedNssai, SnssaiRejection};
use pith_types::Snssai;

/// The result of slice selection: Allowed and Rejected NSSAI.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Slices {
    /// Slices that the UE may use in its registration area.
    pub allowed: Vec<Snssai>,
    /// Requested slices that the UE may not use, with the cause.
    pub rejected: Vec<(Snssai, SnssaiRejection)>,
}

pack_struct!(Slices { allowed, rejected });

/// The AMF's own result of slice selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The AMF can decide.
    Local(Slices),
    /// A subscribed slice is not served here: another AMF may serve it, and the NSSF knows which.
    AskNssf,
}

/// Decides by the subscription and by the slices that AMF and gNB serve in the UE's tracking area.
///
/// Requested slices that are not subscribed are rejected. If none is left, or none was requested,
/// the default subscribed slices apply (TS 23.501 5.15.5.2.1).
pub(crate) fn decide(requested: &[Snssai], subscription: &Subscription, served: &[Snssai]) -> Decision {
    let subscribed = requested.iter().copied().filter(|slice| subscription.has_slice(slice));
    let (mut allowed, elsewhere): (Vec<_>, Vec<_>) = subscribed.partition(|slice| served.contains(slice));
    if !elsewhere.is_empty() {
        return Decision::AskNssf;
    }
    if allowed.is_empty() {
        let default = subscription.default_slices.iter().copied();
        allowed = default.filter(|slice| served.contains(slice)).collect();
    }
    if allowed.is_empty() {
        return Decision::AskNssf;
    }
    let rejected = requested.iter().filter(|slice| !subscription.has_slice(slice));
    let rejected = rejected.map(|slice| (*slice, SnssaiRejection::NotAvailableInPlmn)).collect();
    Decision::Local(cut(Slices { allowed, rejected }))
}

/// Selection without an NSSF: slices that are not served here are not available in the registration area.
pub(crate) fn decide_alone(requested: &[Snssai], subscription: &Subscription, served: &[Snssai]) -> Slices {
    let wanted = requested.iter().copied().chain(subscription.default_slices.iter().copied());
    let usable = |slice: &Snssai| subscription.has_slice(slice) && served.contains(slice);
    let mut allowed: Vec<_> = wanted.filter(usable).collect();
    allowed.sort_unstable();
    allowed.dedup();
    let rejection = |slice: &Snssai| {
        if subscription.has_slice(slice) {
            SnssaiRejection::NotAvailableInRegistrationArea
        } else {
            SnssaiRejection::NotAvailableInPlmn
        }
    };
    let rejected = requested.iter().filter(|slice| !allowed.contains(slice));
    let rejected = rejected.map(|slice| (*slice, rejection(slice))).collect();
    cut(Slices { allowed, rejected })
}

/// Maximum number of slices in an Allowed NSSAI and in a Rejected NSSAI (TS 24.501 9.11.3.37, 9.11.3.46).
const MOST: usize = 8;

/// Maximum number of slices in a Configured NSSAI (TS 24.501 9.11.3.37).
pub(crate) const MOST_CONFIGURED: usize = 16;

/// Each slice once, and none beyond what a message can have.
pub(crate) fn cut(mut slices: Slices) -> Slices {
    let mut seen = Vec::new();
    let mut is_first = |slice: Snssai| {
        let is_first = !seen.contains(&slice);
        seen.push(slice);
        is_first
    };
    slices.allowed.retain(|slice| is_first(*slice));
    slices.rejected.retain(|(slice, _)| is_first(*slice));
    slices.allowed.truncate(MOST);
    slices.rejected.truncate(MOST);
    slices
}

impl UeContext {
    /// The IEs Rejected NSSAI and Extended rejected NSSAI: the UE gets the one that it takes (TS 24.501 4.6.2.1).
    pub fn rejection_ies(&self, rejected: Option<RejectedNssai>) -> (Option<RejectedNssai>, Option<Vec<u8>>) {
        if self.takes_extended_rejection {
            (None, rejected.map(|rejected| rejected.extended()))
        } else {
            (rejected, None)
        }
    }
}

impl Slices {
    /// The Allowed NSSAI IE of REGISTRATION ACCEPT.
    pub fn allowed_nssai(&self) -> Nssai {
        self.allowed.iter().copied().collect()
    }

    /// Those that are rejected for the registration area.
    pub fn rejected_in_area(&self) -> Vec<Snssai> {
        let rejected = self.rejected.iter();
        let in_area = rejected.filter(|(_, cause)| *cause == SnssaiRejection::NotAvailableInRegistrationArea);
        in_area.map(|(slice, _)| *slice).collect()
    }

    /// The Rejected NSSAI IE of REGISTRATION ACCEPT and REJECT.
    pub fn rejected_nssai(&self) -> Option<RejectedNssai> {
        (!self.rejected.is_empty()).then(|| RejectedNssai(self.rejected.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(default: &[u8], others: &[u8]) -> Subscription {
        let slices = |ssts: &[u8]| ssts.iter().map(|sst| Snssai::of_sst(*sst)).collect();
        Subscription { default_slices: slices(default), slices: slices(others), ..Subscription::default() }
    }

    fn ssts(slices: &[Snssai]) -> Vec<u8> {
        slices.iter().map(|slice| slice.sst).collect()
    }

    #[test]
    fn without_a_request_the_default_slices_are_allowed() {
        let served = [Snssai::of_sst(1), Snssai::of_sst(2)];
        let Decision::Local(slices) = decide(&[], &subscription(&[1], &[2]), &served) else { panic!() };
        assert_eq!((ssts(&slices.allowed), slices.rejected), (vec![1], vec![]));
    }

    #[test]
    fn requested_slices_are_allowed_if_subscribed_and_rejected_if_not() {
        let served = [Snssai::of_sst(1), Snssai::of_sst(2), Snssai::of_sst(3)];
        let requested = [Snssai::of_sst(2), Snssai::of_sst(3)];
        let Decision::Local(slices) = decide(&requested, &subscription(&[1], &[2]), &served) else {
            panic!()
        };
        assert_eq!(ssts(&slices.allowed), [2]);
        assert_eq!(slices.rejected, [(Snssai::of_sst(3), SnssaiRejection::NotAvailableInPlmn)]);
    }

    #[test]
    fn a_subscribed_slice_that_is_not_served_needs_the_nssf() {
        let (requested, served) = ([Snssai::of_sst(2)], [Snssai::of_sst(1)]);
        let subscription = subscription(&[1], &[2]);
        assert_eq!(decide(&requested, &subscription, &served), Decision::AskNssf);
        let alone = decide_alone(&requested, &subscription, &served);
        assert_eq!(ssts(&alone.allowed), [1]);
        assert_eq!(alone.rejected, [(Snssai::of_sst(2), SnssaiRejection::NotAvailableInRegistrationArea)]);
    }
}
