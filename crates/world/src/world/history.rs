//! What each UE had, and what it lost: its registration, its security context, its sessions.

use super::World;
use super::crash_point::Crash;
use super::radio::SimUe;
use super::services::LOCAL;
use super::unstored::Unstored;
use super::user::{Act, SubscriptionChange};
use pith_nf::kit::Instant;
use pith_ran::ue::{Event, Output, State};
use pith_types::{FiveGGuti, FiveGSTmsi};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What a UE can lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// It is deregistered.
    Registration,
    /// It was authenticated again.
    SecurityContext,
    /// The session ended, or has another address.
    Session(u8),
}

/// A loss, with the times at which the UE got what it lost, and its 5G-GUTI: a UE whose 5G-GUTI the AMF does not know loses all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lost {
    pub what: Loss,
    since: Instant,
    guti_since: Instant,
    at: Instant,
    /// The UE was at an AMF of the set that does not have it for the second time within a minute.
    is_misrouted: bool,
}

/// The network may take these from a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ends {
    /// Nothing.
    #[default]
    Nothing,
    /// The security context in use: the UE is authenticated.
    SecurityContext,
    /// One session.
    Session(u8),
    /// The security context and all sessions.
    Context,
    /// The registration, with all sessions.
    Registration,
}

/// The state of a UE after its last input.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Its registration was accepted.
    registered: Option<Instant>,
    /// Number of keys of the subscriber at that time.
    keys: u64,
    guti: Option<FiveGGuti>,
    guti_since: Instant,
    sessions: BTreeMap<u8, (Option<Ipv4Addr>, Instant)>,
    losses: Vec<Lost>,
    /// The last two times at which the UE came to an AMF of the set that does not have it; the former one first.
    misrouted: [Option<Instant>; 2],
    /// The user deregisters: nothing is lost until the next registration.
    leaves: bool,
    /// Sessions that the user ends, or establishes again.
    ends: BTreeSet<u8>,
    /// The last end of a subscription: sessions that were being established then end, too.
    unsubscribed: Option<Instant>,
    /// The last message to the UE that the radio lost.
    lost_downlink: Option<Instant>,
    /// The last message to the UE at a connection that it had left, as it lost the radio.
    missed_downlink: Option<Instant>,
    /// The UE is refusing a message whose PTI it does not use.
    refuses_pti: bool,
    /// The last refusal of such a message that the radio lost.
    lost_refusal: Option<Instant>,
    /// The last session that the UE has released, and when.
    released: Option<(u8, Instant)>,
}

impl History {
    /// The radio lost a message to the UE.
    pub(super) fn note_lost_downlink(&mut self, now: Instant) {
        self.lost_downlink = Some(now);
    }

    /// Whether the UE sends 5GSM STATUS #47 with what it sends next.
    pub(super) fn note_refusal(&mut self, outputs: &[Output]) {
        let is_pti = |it: &Output| matches!(it, Output::Violation(it) if it.clause == "TS 24.501 7.3.1");
        self.refuses_pti = outputs.iter().any(is_pti);
    }

    /// Records what the UE has released.
    pub(super) fn note_releases(&mut self, outputs: &[Output], now: Instant) {
        for output in outputs {
            if let Output::Event(Event::SessionReleased(id)) = output {
                self.released = Some((*id, now));
            }
        }
    }

    /// Whether a message of the SMF for a session may have been overtaken by the command to release it: SBI messages have no order.
    pub(super) fn has_just_released(&self, session: u8, now: Instant) -> bool {
        self.released.is_some_and(|(id, at)| id == session && now < at + OVERTAKEN)
    }

    /// The radio lost a message of the UE.
    pub(super) fn note_lost_uplink(&mut self, now: Instant) {
        if self.refuses_pti {
            self.lost_refusal = Some(now);
        }
    }

    /// A message came to the UE at a connection that it has left.
    pub(super) fn note_missed_downlink(&mut self, now: Instant) {
        self.missed_downlink = Some(now);
    }

    /// Whether the UE may have missed the accept of a session, and not have sent its request again (TS 24.501 6.4.1.6 a): the network may
    /// change the session meanwhile.
    pub(super) fn may_lack_accept(&self, now: Instant) -> bool {
        self.missed_downlink.is_some_and(|missed| now < missed + T3580)
    }

    /// Whether the UE may have sent its request for a session again before it got the first accept, and not have got the second one, which no
    /// timer repeats (TS 24.501 6.4.1.3, 6.4.1.6 a), or its refusal was lost, which nothing repeats either (7.3.1): the SMF has established the
    /// session twice.
    fn may_lack_second_accept(&self, since: Instant) -> bool {
        let is_lost = |lost: Instant| since <= lost && lost < since + ESTABLISHMENT;
        self.lost_downlink.is_some_and(is_lost) || self.lost_refusal.is_some_and(is_lost)
    }
}

/// A message on the SBI overtakes others by this time at most.
const OVERTAKEN: Duration = Duration::from_millis(200);

/// TS 24.501 10.3.
const T3580: Duration = Duration::from_secs(16);

/// A session is established within this time.
const ESTABLISHMENT: Duration = Duration::from_secs(5);

/// Within this time an AMF that does not have a UE sends it back once only (ADR 0024).
const SENT_BACK: Duration = Duration::from_secs(60);

/// Messages of a killed process arrive within this time.
const IN_FLIGHT: Duration = Duration::from_millis(50);

impl Lost {
    /// Whether the residency permits the loss: the change was not written when the process ended.
    fn was_unwritten(&self, crash: &Crash) -> bool {
        let Some(unwritten) = crash.unwritten else { return false };
        let is_unwritten = |since: Instant| since + unwritten >= crash.at && since < crash.at + IN_FLIGHT;
        is_unwritten(self.since) || is_unwritten(self.guti_since)
    }

    /// Whether the UE got what it lost, or its 5G-GUTI, from an instance that could not store it.
    fn was_without_store(&self, unstored: &Unstored) -> bool {
        unstored.may_have_lost(self.since) || unstored.may_have_lost(self.guti_since)
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Loss::Registration => f.write_str("its registration")?,
            Loss::SecurityContext => f.write_str("its security context")?,
            Loss::Session(id) => write!(f, "its session {id}")?,
        }
        let seconds = |at: Instant| at.as_micros() as f64 / 1e6;
        write!(
            f,
            " at {:.3} s, which it had since {:.3} s",
            seconds(self.at),
            seconds(self.since.max(self.guti_since))
        )
    }
}

impl Ends {
    /// Whether a loss is the purpose of the procedure.
    fn permits(self, loss: Loss) -> bool {
        match self {
            Self::Nothing => false,
            Self::SecurityContext => loss == Loss::SecurityContext,
            Self::Session(id) => loss == Loss::Session(id),
            Self::Context => loss != Loss::Registration,
            Self::Registration => true,
        }
    }
}

impl World {
    /// Notes what a UE has, and what it lost with its last input.
    pub(super) fn note_history(&mut self, ue: usize) {
        let now = self.now;
        let keys = self.journal().keys.get(self.ues[ue].subscriber.supi.as_str()).copied().unwrap_or(0);
        let is_kill = self.is_kill;
        let sim_ue = &mut self.ues[ue];
        let (history, ue) = (&mut sim_ue.history, &sim_ue.ue);
        let is_emergency = sim_ue.service.is_emergency() && !is_kill;
        let guti_since = history.guti_since;
        let is_misrouted = history.misrouted[0].is_some_and(|former| former + SENT_BACK > now);
        let (leaves, ends, unsubscribed) = (history.leaves, &mut history.ends, history.unsubscribed);
        let was_unsubscribed =
            |since| unsubscribed.is_some_and(|end| (end..=end + ESTABLISHMENT).contains(&since));
        // The registration for emergency services ends when the UE has been idle for some time; a session of the LADN, when the UE leaves it.
        let is_temporary =
            |what| is_emergency || matches!(what, Loss::Session(id) if id == LOCAL && !is_kill);
        // The SMF had given up the establishment, whose setup no gNB answered: the UE gets accept and command together (TS 24.501 6.3.3.2).
        let was_given_up =
            |what, since: Instant| matches!(what, Loss::Session(_)) && !is_kill && now < since + IN_FLIGHT;
        let mut lose = |what, since| {
            let is_wanted = leaves
                || is_temporary(what)
                || was_given_up(what, since)
                || matches!(what, Loss::Session(id) if ends.remove(&id) || was_unsubscribed(since));
            let lost = Lost { what, since, guti_since, at: now, is_misrouted };
            history.losses.extend((!is_wanted).then_some(lost));
        };
        let had = history.sessions.iter().map(|(id, (address, since))| (*id, *address, *since));
        for (id, address, since) in had {
            if !ue.sessions().any(|session| session.id == id && session.ipv4 == address) {
                lose(Loss::Session(id), since);
            }
        }
        match (history.registered, ue.state()) {
            (Some(since), State::Deregistered) => {
                lose(Loss::Registration, since);
                history.registered = None;
            }
            (None, State::Registered) => {
                (history.registered, history.keys) = (Some(now), keys);
                history.leaves = false;
            }
            (Some(since), _) if keys > history.keys => {
                lose(Loss::SecurityContext, since);
                history.keys = keys;
            }
            _ => {}
        }
        if ue.guti() != history.guti {
            (history.guti, history.guti_since) = (ue.guti(), now);
        }
        let since = |id| history.sessions.get(&id).map(|(address, since)| (*address, *since));
        let sessions = ue.sessions().map(|session| {
            let before = since(session.id).filter(|(address, _)| *address == session.ipv4);
            (session.id, (session.ipv4, before.map_or(now, |(_, since)| since)))
        });
        history.sessions = sessions.collect();
    }

    /// Whether the UE got that session from an instance that could not store it, and ended; or lacks the second of two accepts, or has refused it
    /// in vain.
    pub(super) fn may_have_former_session(&self, ue: usize, id: u64) -> bool {
        let sessions = &self.ues[ue].history.sessions;
        let since = u8::try_from(id).ok().and_then(|id| sessions.get(&id)).map(|(_, since)| *since);
        since.is_some_and(|since| {
            self.unstored.may_have_lost(since) || self.ues[ue].history.may_lack_second_accept(since)
        })
    }

    /// What a user ends is not lost. In a kill the procedure says what it ends.
    pub(super) fn note_wish(&mut self, ue: usize, act: Act) {
        let SimUe { history, ue, .. } = &mut self.ues[ue];
        match act {
            _ if self.is_kill => {}
            Act::Deregister { .. } => history.leaves = true,
            Act::ChangeSubscription(SubscriptionChange::End) => {
                history.ends.extend(ue.sessions().map(|session| session.id));
                history.unsubscribed = Some(self.now);
            }
            Act::Release(id) | Act::Establish(id) if ue.sessions().any(|session| session.id == id) => {
                history.ends.insert(id);
            }
            _ => {}
        }
    }

    /// What UEs lost so far.
    pub(super) fn losses(&self) -> Vec<String> {
        self.losses_that(|_| true)
    }

    fn losses_that(&self, counts: impl Fn(&Lost) -> bool) -> Vec<String> {
        let of = |(at, sim_ue): (usize, &SimUe)| {
            let losses = sim_ue.history.losses.iter().filter(|lost| counts(lost));
            losses.map(|lost| format!("UE{} lost {lost}", at + 1)).collect::<Vec<_>>()
        };
        self.ues.iter().enumerate().flat_map(of).collect()
    }

    /// What UEs lost so far, although it was stored, and their AMF could be reached.
    pub(super) fn losses_of_stored(&self) -> Vec<String> {
        self.losses_that(|lost| !lost.is_misrouted && !lost.was_without_store(&self.unstored))
    }

    /// A UE comes to the AMF of that process. With three instances or more a gNB may select one that does not have the UE, if it has no
    /// association with the one that has.
    pub(super) fn note_arrival(&mut self, ue: usize, process: usize, s_tmsi: Option<&FiveGSTmsi>) {
        let Some(s_tmsi) = s_tmsi.filter(|_| self.plan.instances > 2) else { return };
        let owner = self.processes[process].owners.owner(s_tmsi.tmsi.block());
        if owner.instance != self.plan.instance(process) {
            let misrouted = &mut self.ues[ue].history.misrouted;
            *misrouted = [misrouted[1], Some(self.now)];
        }
    }

    /// From now on losses count.
    pub(super) fn begin_histories(&mut self) {
        self.ues.iter_mut().for_each(|sim_ue| sim_ue.history.losses.clear());
    }

    /// The first loss that neither the procedure of the first UE nor the residency permits.
    pub(super) fn first_loss(&self, ends: Ends) -> Option<String> {
        let crash = self.crash_points.crashed;
        self.ues.iter().enumerate().find_map(|(at, sim_ue)| {
            let ends = if at == 0 || ends == Ends::SecurityContext { ends } else { Ends::Nothing };
            let lost = sim_ue.history.losses.iter().find(|lost| {
                !ends.permits(lost.what) && !crash.is_some_and(|crash| lost.was_unwritten(&crash))
            })?;
            Some(format!("UE{} lost {lost}", at + 1))
        })
    }
}
