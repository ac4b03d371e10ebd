//! Admission of associations and gNBs.
//!
//! An association costs memory before the gNB has identified itself. So the number of associations
//! of a peer address is limited, and NG Setup must succeed in time. A gNB ID is bound to the peer
//! addresses of its associations while one exists: another association with the same ID, of this gNB or of a second one, is refused
//! from other addresses. With a list of gNBs, the ID is bound to the addresses in the list.

use super::{Association, N2Gateway, N2GatewayEffect};
use crate::kit::{Allowance, Duration, GnbHandle, GnbInfo, Instant, Level, N2Input, Tnla};
use pith_ngap::{Cause, CauseMisc};
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Associations of one address without NG Setup: enough for a simulator of hundreds of gNBs that starts.
const HALF_OPEN_PER_ADDRESS: usize = 512;

/// Associations without NG Setup in total, a quarter of what SCTP accepts (`SctpConfig::max_associations`). A
/// further one ends the oldest, so that silent peers do not keep a gNB out.
const HALF_OPEN: usize = 4096;

/// Maximum time of an association without NG Setup, restarted by each refusal: several times the
/// Time To Wait that a refused gNB gets.
const HALF_OPEN_TIME: Duration = Duration::from_secs(60);

/// Messages that an association may send before NG Setup succeeds: some refused NG Setups, and some errors.
const MESSAGES_BEFORE_SETUP: u32 = 16;

/// Warnings about one address in [`WARNING_PERIOD`]; further ones are suppressed, so that a peer
/// can't fill the log.
const WARNINGS: u32 = 20;
const WARNING_PERIOD: Duration = Duration::from_secs(10);

/// A gNB that may connect (`amf.n2.gnbs`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermittedGnb {
    /// Its Global RAN Node ID as text, such as `999/70-gnb-000001`.
    pub id: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// The associations of one peer address.
#[derive(Debug, Default)]
pub(super) struct Share {
    associations: usize,
    half_open: usize,
    /// Warnings about the address in the current period.
    warnings: u32,
    warned_since: Instant,
}

/// Counters of each peer address, and the associations without NG Setup.
#[derive(Debug, Default)]
pub(super) struct Admission {
    pub(super) now: Instant,
    pub(super) shares: HashMap<IpAddr, Share>,
    /// Time of the last sweep of addresses without associations.
    swept: Instant,
    /// Sorted by the deadline of the association.
    half_open: BTreeSet<(Instant, Tnla)>,
}

impl Admission {
    fn wait_for_setup(&mut self, tnla: Tnla) -> Instant {
        let until = self.now + HALF_OPEN_TIME;
        self.half_open.insert((until, tnla));
        until
    }

    /// Removes addresses without associations whose warnings are old.
    fn sweep(&mut self) {
        if self.now.since(self.swept) >= WARNING_PERIOD {
            self.swept = self.now;
            let now = self.now;
            let is_old = |share: &Share| now.since(share.warned_since) >= WARNING_PERIOD;
            self.shares.retain(|_, share| share.associations > 0 || !is_old(share));
        }
    }
}

/// Cost of an interface management procedure: each makes work for all shards. That of an NG RESET of fewer connections is their number.
pub(super) const PROCEDURE: u32 = 64;
/// Cost of the interface management procedures that a gNB may start at once, over all its associations. A gNB starts a few when it begins, and then
/// one when its configuration changes; after a failure, some reset UE by UE.
const PROCEDURES: u32 = 32 * PROCEDURE;
/// Time after which it may start one more of cost 1.
const PROCEDURE_INTERVAL: Duration = Duration::from_millis(4);

/// The peers that share a limit: one IPv4 address, or one IPv6 /64 network, whose addresses one
/// host can choose freely.
pub(super) fn share_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

impl N2Gateway {
    /// Advances the gateway's clock, and ends associations whose NG Setup is late.
    pub fn advance(&mut self, now: Instant) -> std::vec::Drain<'_, N2GatewayEffect> {
        self.admission.now = now;
        self.admission.sweep();
        while let Some(&(until, tnla)) = self.admission.half_open.first()
            && until <= now
        {
            self.close(tnla, &format!("no NG Setup within {} s", HALF_OPEN_TIME.as_secs()));
            // Removed even if the association is unknown, so that the loop ends.
            self.admission.half_open.remove(&(until, tnla));
        }
        self.end_late_setups(now);
        self.end_elsewhere(now);
        self.continue_initiated(now);
        self.out.drain(..)
    }

    /// The latest time at which [`N2Gateway::advance`] must be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        let half_open = self.admission.half_open.first().map(|(until, _)| *until);
        half_open
            .into_iter()
            .chain(self.next_late_setup())
            .chain(self.next_late_elsewhere())
            .chain(self.initiated.next_deadline())
            .min()
    }

    /// A new association: accepted if its address is permitted and within its limits.
    pub(super) fn associated(
        &mut self,
        tnla: Tnla,
        (peer, local): (SocketAddr, SocketAddr),
        alternatives: Vec<IpAddr>,
    ) {
        if let Err(why) = self.check_address(peer.ip()) {
            self.out.push(N2GatewayEffect::Close { tnla });
            return self.warn_of(peer.ip(), || format!("SCTP association of {peer} ended: {why}"));
        }
        if self.admission.half_open.len() >= HALF_OPEN
            && let Some(&(_, oldest)) = self.admission.half_open.first()
        {
            self.close(
                oldest,
                &format!("{HALF_OPEN} associations have not completed NG Setup, and this is the oldest"),
            );
        }
        let share = self.admission.shares.entry(share_of(peer.ip())).or_default();
        share.associations += 1;
        share.half_open += 1;
        let half_open_until = Some(self.admission.wait_for_setup(tnla));
        let association = Association {
            peer,
            local,
            alternatives,
            half_open_until,
            early_messages: 0,
            gnb: None,
            is_doubtful: false,
            is_leaving: false,
            procedures: Allowance::full(PROCEDURES, PROCEDURE_INTERVAL, self.admission.now),
            notice: None,
        };
        self.associations.insert(tnla, association);
    }

    fn check_address(&self, address: IpAddr) -> Result<(), String> {
        let permitted = &self.config.permitted_gnbs;
        if !permitted.is_empty() && !permitted.iter().any(|gnb| gnb.addresses.contains(&address)) {
            return Err(format!("no gNB of 'amf.n2.gnbs' has the address {address}"));
        }
        let Some(share) = self.admission.shares.get(&share_of(address)) else { return Ok(()) };
        let bound = self.config.associations_per_address;
        if share.associations >= bound {
            return Err(format!(
                "{address} has {bound} associations already ('amf.n2.associations_per_address')"
            ));
        }
        if share.half_open >= HALF_OPEN_PER_ADDRESS {
            return Err(format!("{address} has {HALF_OPEN_PER_ADDRESS} associations without NG Setup"));
        }
        Ok(())
    }

    /// Counts a message of an association without NG Setup. `false`: the limit is exceeded, and the
    /// association is closed.
    pub(super) fn count_early_message(&mut self, tnla: Tnla) -> bool {
        let Some(association) = self.associations.get_mut(&tnla) else { return false };
        association.early_messages += 1;
        if association.early_messages <= MESSAGES_BEFORE_SETUP {
            return true;
        }
        self.close(tnla, &format!("{MESSAGES_BEFORE_SETUP} messages without a successful NG Setup"));
        false
    }

    /// NG Setup succeeded: the association no longer counts as half open.
    pub(super) fn leave_half_open(&mut self, tnla: Tnla) {
        let Some(association) = self.associations.get_mut(&tnla) else { return };
        let peer = association.peer.ip();
        if let Some(until) = association.half_open_until.take() {
            self.admission.half_open.remove(&(until, tnla));
            if let Some(share) = self.admission.shares.get_mut(&share_of(peer)) {
                share.half_open = share.half_open.saturating_sub(1);
            }
        }
    }

    /// NG Setup was refused: extends the time for another attempt.
    pub(super) fn extend_half_open(&mut self, tnla: Tnla) {
        let Some(association) = self.associations.get_mut(&tnla) else { return };
        if let Some(until) = association.half_open_until {
            self.admission.half_open.remove(&(until, tnla));
            association.half_open_until = Some(self.admission.wait_for_setup(tnla));
        }
    }

    /// Removes an association that has ended. Returns it, and the data of its gNB if that has no other one.
    pub(super) fn forget(&mut self, tnla: Tnla) -> Option<(Association, Option<Arc<GnbInfo>>)> {
        self.leave_half_open(tnla);
        let association = self.associations.remove(&tnla)?;
        let last_of = association.gnb.and_then(|gnb| self.leave(tnla, gnb));
        let peer = association.peer.ip();
        if let Some(share) = self.admission.shares.get_mut(&share_of(peer)) {
            share.associations = share.associations.saturating_sub(1);
        }
        Some((association, last_of))
    }

    /// Warns the operator about a gNB, within the limits of its address.
    pub(super) fn warn(&mut self, tnla: Tnla, text: impl FnOnce() -> String) {
        if let Some(association) = self.associations.get(&tnla) {
            self.warn_of(association.peer.ip(), text);
        }
    }

    fn warn_of(&mut self, address: IpAddr, text: impl FnOnce() -> String) {
        let now = self.admission.now;
        let share = self.admission.shares.entry(share_of(address)).or_default();
        if now.since(share.warned_since) >= WARNING_PERIOD {
            (share.warnings, share.warned_since) = (0, now);
        }
        share.warnings = share.warnings.saturating_add(1);
        match share.warnings {
            ..=WARNINGS => self.event(Level::Warn, text()),
            number if number == WARNINGS + 1 => {
                let period = WARNING_PERIOD.as_secs();
                self.event(
                    Level::Warn,
                    format!("further warnings about {address} are suppressed for {period} s"),
                );
            }
            _ => {}
        }
    }

    /// Ends an association that exceeds a limit.
    pub(super) fn close(&mut self, tnla: Tnla, why: &str) {
        let Some((association, last_of)) = self.forget(tnla) else { return };
        self.out.push(N2GatewayEffect::Close { tnla });
        let peer = association.peer;
        self.warn_of(peer.ip(), || format!("SCTP association of {peer} ended: {why}"));
        if let Some(gnb) = association.gnb.filter(|_| last_of.is_some()) {
            self.send_to_all_shards(|| N2Input::GnbDown { gnb });
        }
    }

    /// Checks that the gNB may use its ID from its address.
    pub(super) fn check_identity(&self, tnla: Tnla, global_id: &str) -> Result<(), (Cause, String)> {
        let Some(association) = self.associations.get(&tnla) else { return Ok(()) };
        let address = association.peer.ip();
        if !self.config.permitted_gnbs.is_empty() {
            // The operator has said which addresses the gNB has.
            if self.permitted_addresses(global_id).any(|permitted| permitted == address) {
                return Ok(());
            }
            let why = format!("'amf.n2.gnbs' does not permit this gNB ID at {address}");
            return Err((Cause::Misc(CauseMisc::om_intervention), why));
        }
        let other = self.by_global_id.get(global_id).filter(|gnb| association.gnb != Some(**gnb));
        match other.and_then(|other| Some((*other, &self.interfaces.get(other)?.info))) {
            Some((other, info)) if !self.has_address(other, address) => {
                let why = format!(
                    "the gNB ID is in use by {} at {}, whose association is active: change one of the two IDs, or stop the other gNB first; a gNB with several addresses must be in 'amf.n2.gnbs'",
                    info.name, info.peer
                );
                Err((Cause::Misc(CauseMisc::unspecified), why))
            }
            _ => Ok(()),
        }
    }

    /// The addresses of a gNB in the list of those that may connect.
    pub(super) fn permitted_addresses(&self, global_id: &str) -> impl Iterator<Item = IpAddr> {
        let of_gnb =
            self.config.permitted_gnbs.iter().filter(move |gnb| gnb.id.eq_ignore_ascii_case(global_id));
        of_gnb.flat_map(|gnb| gnb.addresses.iter().copied())
    }

    /// Only the primary address of the new association is compared with all addresses of the gNB's others:
    /// a peer lists its alternative addresses itself, and could list those of another gNB.
    fn has_address(&self, gnb: GnbHandle, address: IpAddr) -> bool {
        self.associations_of(gnb).iter().filter_map(|tnla| self.associations.get(tnla)).any(|association| {
            association.peer.ip() == address || association.alternatives.contains(&address)
        })
    }

    /// NG Setup without UE retention erases all data of that gNB (TS 38.413 8.7.1.1). Its other associations are from the same address, or
    /// from another one of the gNB ([`N2Gateway::check_identity`]): the gNB restarted, and SCTP has not detected it yet.
    pub(super) fn supersede(&mut self, tnla: Tnla, gnb: GnbHandle) {
        let global_id = self.interfaces.get(&gnb).map(|interface| interface.info.global_id.clone());
        let others = self.associations_of(gnb).iter().copied().filter(|other| *other != tnla);
        for other in others.collect::<Vec<_>>() {
            self.close(other, &format!("gNB {} sets up again", global_id.as_deref().unwrap_or_default()));
        }
    }

    /// Counts an interface management procedure that a gNB starts, over whichever of its associations. `false`: it has started too many.
    pub(super) fn count_procedure(&mut self, tnla: Tnla, cost: u32) -> bool {
        let now = self.admission.now;
        let Some(association) = self.associations.get_mut(&tnla) else { return false };
        let of_gnb = association.gnb.and_then(|gnb| self.interfaces.get_mut(&gnb));
        of_gnb.map_or(&mut association.procedures, |it| &mut it.procedures).take_several(now, cost)
    }

    /// The procedures that a gNB may start after the NG Setup that it has requested over an association: those of its former interface,
    /// of which that NG Setup is one.
    pub(super) fn take_allowance(&mut self, tnla: Tnla, known: Option<GnbHandle>) -> Allowance {
        let now = self.admission.now;
        if let Some(known) = known.filter(|known| self.gnb_of(tnla) != Some(*known))
            && let Some(former) = self.interfaces.get_mut(&known)
        {
            former.procedures.take_several(now, PROCEDURE);
            return former.procedures.clone();
        }
        let own = self.associations.get(&tnla).map(|association| association.procedures.clone());
        own.unwrap_or_else(|| Allowance::full(PROCEDURES, PROCEDURE_INTERVAL, now))
    }
}
