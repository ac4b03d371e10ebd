//! A UPF updates its association, or requests its release (TS 29.244 6.2.7.3).
//!
//! ```text
//! UPF  Association Update Request   ─▶  new features of the UPF; or it is to be released: no new sessions there
//!      Association Release Request  ◀─  at once, or before the Graceful Release Period is over
//! ```
//!
//! After a release, the gateway requests an association again, as after a loss, if the UPF is still
//! configured: it is available again after its restart. A UPF that does not want to be associated refuses.

use super::association::timer;
use super::{Association, N4Gateway, N4GatewayEffect};
use crate::kit::{Duration, Level, N4Input, Timer};
use pith_pfcp::Message;
use pith_pfcp::ie::{CodedDuration, ReleaseRequestFlags, UpFunctionFeatures};
use pith_pfcp::message::{AssociationUpdateRequest, AssociationUpdateResponse};
use pith_types::Seid;
use std::net::SocketAddr;

impl N4Gateway {
    /// A UPF updates its association (TS 29.244 6.2.7.3.2).
    pub(super) fn peer_updates(
        &mut self,
        from: SocketAddr,
        sequence: u32,
        request: &AssociationUpdateRequest,
    ) {
        let answer = AssociationUpdateResponse::new(self.node_id(), self.cause_for(from));
        self.answer(from, Seid(0), sequence, &Message::AssociationUpdateResponse(answer));
        let Some(peer) = self.peer_at(from).filter(|peer| self.handle_of(*peer).is_some()) else { return };
        if let Some(features) = request.up_function_features {
            self.check_features(peer, features);
        }
        if request.association_release_request.is_some_and(|it| it.contains(ReleaseRequestFlags::SARR)) {
            self.release_asked(peer, request.graceful_release_period);
        }
    }

    /// Releases a UPF that has become unsuitable.
    fn check_features(&mut self, peer: usize, features: UpFunctionFeatures) {
        let Some(Association::Up { node, .. }) = self.peers.get(peer).map(|peer| &peer.association) else {
            return;
        };
        let node = node.clone();
        if let Err(why) = self.suitability(peer, &node, Some(features)) {
            self.log_unsuitable(peer, why);
            self.release(peer);
        }
    }

    /// A UPF requests its release, which must happen before the period is over. If the period has
    /// no end, the association ends when the UPF releases it (TS 29.244 8.2.78).
    fn release_asked(&mut self, peer: usize, period: Option<CodedDuration>) {
        let name = self.name(peer);
        self.event(Level::Warn, format!("UPF {name} requests its release: it gets no new sessions"));
        if let Some(upf) = self.handle_of(peer) {
            self.send_to_all_shards(|| N4Input::UpfLeaves { upf });
        }
        let Some(seconds) = period.map_or(Some(0), CodedDuration::seconds) else { return };
        match Duration::from_secs(seconds).saturating_sub(self.config.t1) {
            Duration::ZERO => self.release(peer),
            after => {
                let key = timer(Timer::PfcpGracefulRelease, peer);
                self.out.push(N4GatewayEffect::StartTimer { key, after });
            }
        }
    }
}
