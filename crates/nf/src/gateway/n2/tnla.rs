//! The TNL associations of a gNB (TS 38.412 7, TS 23.501 5.21.1).
//!
//! ```text
//!  gNB ── 1st association: NG SETUP REQUEST ────────────────────────────> a new NG-C interface instance
//!      ── 2nd: RAN CONFIGURATION UPDATE with the Global RAN Node ID ────> joins it
//!      ── 2nd: NG SETUP REQUEST that retains UEs ───────────────────────> joins it, with other configuration data
//!      ── 2nd: NG SETUP REQUEST otherwise ──────────────────────────────> takes its place: the gNB has restarted
//!      ── a message of a UE, over any ──────────────────────────────────> the UE's binding is to that association
//!  an association ends ─────────────────────────────────────────────────> its UEs use another one
//!  the last one ends ───────────────────────────────────────────────────> the gNB is gone
//! ```
//!
//! Shards know gNBs, not associations: a UE's connection has its binding, and the gateway selects another association for a message if
//! that of the binding is gone. So a failure costs nothing but what was in transit.
//!
//! An association that joins may take the place of one which the gNB has found broken, and SCTP has not yet reported. Until the gNB sends
//! something over the earlier one, this one is in doubt: downlink messages take another.

use super::{N2Gateway, N2GatewayEffect, NON_UE_STREAM, RanIds};
use crate::kit::{Allowance, GnbHandle, GnbInfo, Tnla, TnlaBinding};
use bytes::Bytes;
use pith_ngap::{CpTransportLayer, RanTnlAssociation, TnlAssociationUsage};
use std::net::SocketAddr;
use std::sync::Arc;

/// Associations of one gNB: as many as a list of NGAP has entries (TS 38.413 9.3.2.7, maxnoofTNLAssociations).
pub(super) const MOST: usize = 32;

/// An N2 endpoint of the AMF: an address at which it accepts associations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TnlEndpoint {
    /// Address and SCTP port.
    pub address: SocketAddr,
    /// The messages for which it is used.
    pub usage: TnlAssociationUsage,
    /// TNL Address Weight Factor: the share of initial messages of UEs. With 0 there are none (TS 23.502 4.2.7.1); `None`: an operator has
    /// removed the endpoint.
    pub weight: Option<u8>,
}

/// The NG-C interface instance with a gNB.
#[derive(Debug)]
pub(super) struct NgInterface {
    /// Data of NG Setup and RAN Configuration Update.
    pub info: Arc<GnbInfo>,
    /// In the order in which they joined.
    pub associations: Vec<Tnla>,
    /// The shard of the connection of each RAN-UE-NGAP-ID.
    pub ran_ids: RanIds,
    /// Interface management procedures that the gNB may still start, over all its associations.
    pub procedures: Allowance,
}

impl N2Gateway {
    /// The gNB to which an association belongs.
    pub fn gnb_of(&self, tnla: Tnla) -> Option<GnbHandle> {
        self.associations.get(&tnla)?.gnb
    }

    /// The associations of a gNB.
    pub fn associations_of(&self, gnb: GnbHandle) -> &[Tnla] {
        self.interfaces.get(&gnb).map(|interface| interface.associations.as_slice()).unwrap_or_default()
    }

    /// The addresses of gNB and AMF, for each association of a gNB.
    pub fn ends_of(&self, gnb: GnbHandle) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        let of_gnb = self.associations_of(gnb).iter();
        of_gnb.filter_map(|tnla| self.associations.get(tnla)).map(|it| (it.peer, it.local))
    }

    /// Sends a message of a UE, or PAGING.
    pub(super) fn send(&mut self, gnb: GnbHandle, binding: TnlaBinding, pdu: Bytes) {
        if let Some(tnla) = self.association_of(gnb, binding) {
            self.out.push(N2GatewayEffect::Send { tnla, stream: binding.stream, pdu });
        }
    }

    /// The association for a downlink message: that of the binding, if it exists and is not being shut down, else one that may be used
    /// for such messages. UEs of an association that has ended are divided between the others in proportion to their weights; each UE
    /// has its own stream.
    pub(super) fn association_of(&self, gnb: GnbHandle, binding: TnlaBinding) -> Option<Tnla> {
        let all = self.associations_of(gnb);
        let in_doubt = |tnla: &Tnla| self.associations.get(tnla).is_none_or(|it| it.is_doubtful);
        let leaves = |tnla: &Tnla| self.associations.get(tnla).is_none_or(|it| it.is_leaving);
        // While an association is shut down, SCTP accepts nothing new for it (RFC 9260 9.2).
        let is_usable = |tnla: &Tnla| all.contains(tnla) && !in_doubt(tnla) && !leaves(tnla);
        if let Some(tnla) = binding.tnla.filter(is_usable) {
            return Some(tnla);
        }
        let is_of_ue = binding.stream != NON_UE_STREAM || binding.tnla.is_some();
        let is_fit = |tnla: &&Tnla| {
            self.endpoint_of(**tnla)
                .is_none_or(|it| permits(it.usage, is_of_ue) && it.weight.is_some_and(|weight| weight > 0))
        };
        let good = || all.iter().filter(|tnla| !in_doubt(tnla) && !leaves(tnla));
        let mut candidates: Vec<Tnla> = good().filter(is_fit).copied().collect();
        if candidates.is_empty() {
            candidates.extend(good());
        }
        if candidates.is_empty() {
            candidates.extend(all.iter().filter(|tnla| !in_doubt(tnla)));
        }
        match &candidates[..] {
            [] => all.last().copied(),
            [first, others @ ..] if others.is_empty() || !is_of_ue => Some(*first),
            several => self.by_weight(several, binding.stream),
        }
    }

    /// The association at the stream's place in the row of the weights.
    fn by_weight(&self, candidates: &[Tnla], stream: u16) -> Option<Tnla> {
        let weight =
            |tnla: Tnla| u32::from(self.endpoint_of(tnla).and_then(|it| it.weight).unwrap_or(255).max(1));
        let total: u32 = candidates.iter().map(|tnla| weight(*tnla)).sum();
        // Neighbouring streams are far apart in the row (Fibonacci hashing).
        let mut place = (u32::from(stream.wrapping_mul(40_503)) * total) >> 16;
        for tnla in candidates {
            let Some(rest) = place.checked_sub(weight(*tnla)) else { return Some(*tnla) };
            place = rest;
        }
        candidates.last().copied()
    }

    /// The AMF's endpoint of an association, if it is configured.
    pub(super) fn endpoint_of(&self, tnla: Tnla) -> Option<&TnlEndpoint> {
        let local = self.associations.get(&tnla)?.local.ip();
        self.config.endpoints.iter().find(|endpoint| endpoint.address.ip() == local)
    }

    /// An association joins an interface. `doubts_all`: NG Setup, with which the gNB may have begun again; otherwise only associations
    /// between the same addresses are in doubt.
    pub(super) fn join(&mut self, tnla: Tnla, gnb: GnbHandle, doubts_all: bool) {
        let Some(interface) = self.interfaces.get_mut(&gnb) else { return };
        let earlier = interface.associations.clone();
        if !interface.associations.contains(&tnla) {
            interface.associations.push(tnla);
        }
        let Some(joined) = self.associations.get_mut(&tnla) else { return };
        joined.gnb = Some(gnb);
        let ends = (joined.peer.ip(), joined.local.ip());
        for other in earlier.iter().filter(|other| **other != tnla) {
            if let Some(other) = self.associations.get_mut(other) {
                other.is_doubtful |= doubts_all || (other.peer.ip(), other.local.ip()) == ends;
            }
        }
    }

    /// An association is no longer one of its gNB. Returns the gNB's data if that was the last one.
    pub(super) fn leave(&mut self, tnla: Tnla, gnb: GnbHandle) -> Option<Arc<GnbInfo>> {
        let interface = self.interfaces.get_mut(&gnb)?;
        interface.associations.retain(|other| *other != tnla);
        if !interface.associations.is_empty() {
            return None;
        }
        let interface = self.interfaces.remove(&gnb)?;
        self.by_global_id.remove(&interface.info.global_id);
        self.setups.remove(&gnb);
        self.initiated.forget(gnb);
        self.forget_elsewhere(gnb);
        Some(interface.info)
    }

    /// Whether another association may join the gNB's.
    pub(super) fn has_room(&self, gnb: GnbHandle) -> bool {
        self.associations_of(gnb).len() < MOST
    }

    /// The gNB removes associations: those with its addresses, to one address of the AMF or to all (TS 38.413 8.7.2.2, NG-RAN TNL Association
    /// to Remove List). The AMF shuts them down. Addresses of other gNBs have no effect.
    pub(super) fn remove_associations(&mut self, gnb: GnbHandle, items: &[RanTnlAssociation]) {
        let is_named = |tnla: &Tnla| {
            let Some(association) = self.associations.get(tnla) else { return false };
            let is_end = |named: &CpTransportLayer, end: SocketAddr| {
                named.address == end.ip() && named.port.is_none_or(|port| port == end.port())
            };
            items.iter().any(|item| {
                is_end(&item.ran, association.peer)
                    && item.amf.as_ref().is_none_or(|amf| is_end(amf, association.local))
            })
        };
        let named: Vec<_> = self.associations_of(gnb).iter().copied().filter(is_named).collect();
        named.into_iter().for_each(|tnla| self.shut_down(tnla));
    }

    fn shut_down(&mut self, tnla: Tnla) {
        let Some(association) = self.associations.get_mut(&tnla) else { return };
        if !std::mem::replace(&mut association.is_leaving, true) {
            self.out.push(N2GatewayEffect::ShutDown { tnla });
        }
    }
}

/// Whether messages of UEs, or all others, may take an association of that usage (TS 38.413 9.3.2.9).
fn permits(usage: TnlAssociationUsage, is_of_ue: bool) -> bool {
    match usage {
        TnlAssociationUsage::ue => is_of_ue,
        TnlAssociationUsage::non_ue => !is_of_ue,
        _ => true,
    }
}
