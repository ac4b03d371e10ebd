//! Paging (TS 24.501 5.6.2; TS 23.502 4.2.3.3): the UE is in CM-IDLE, and an SMF has a message for it.
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | PAGING, over all gNBs of the registration area | [`AwaitingPagingResponse`] | UE | T3513 |
//! | SERVICE REQUEST, or a registration | queued messages are sent | | |

use super::{Procedure, Step};
use crate::amf::context::{Env, UeContext};
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::amf::{delivery, n2, reachability};
use crate::kit::document::pack_struct;
use crate::kit::{Level, Timer};

/// The UE is being paged.
#[derive(Debug)]
pub(crate) struct AwaitingPagingResponse {
    tries: Retransmission,
}

pack_struct!(AwaitingPagingResponse { tries });

/// Pages the UE, unless paging is in progress.
pub(crate) fn begin(ue: &mut UeContext, env: &mut Env<'_>) {
    if matches!(ue.procedure, Procedure::AwaitingPagingResponse(_)) {
        return;
    }
    n2::page(ue, env);
    let tries = Retransmission::start(ue, env, Timer::T3513, Vec::new());
    reachability::begin_paging(ue, env);
    ue.procedure = Procedure::AwaitingPagingResponse(AwaitingPagingResponse { tries });
}

impl AwaitingPagingResponse {
    /// T3513 expired: pages again, a UE with extended DRX for one cycle and T3513's retransmissions; after the last retransmission notifies the SMFs that the UE does
    /// not respond (TS 24.501 5.6.2.2.1).
    pub fn on_t3513(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        if reachability::continues_paging(ue, env) {
            n2::page(ue, env);
            return Step::replied(Procedure::AwaitingPagingResponse(self), "Paging");
        }
        match self.tries.expired(ue, env) {
            Expiry::SendAgain => {
                n2::page(ue, env);
                Step::replied(Procedure::AwaitingPagingResponse(self), "Paging")
            }
            Expiry::GiveUp => {
                ue.log_outcome(env, Level::Warn, "Paging", "not answered");
                delivery::fail_all(ue, env);
                Step::complete()
            }
        }
    }
}
