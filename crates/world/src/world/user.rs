//! The actions of UEs' users, drawn from the seed.

use super::fault::Fault;
use super::{SimEvent, World};
use crate::dice::Dice;
use pith_nf::kit::Deregister;
use pith_ran::ue::Input;
use std::time::Duration;

/// An action of a user, of an operator or of another NF, or an event of a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Registers, or updates the registration.
    Register,
    /// Establishes a session.
    Establish(u8),
    /// Releases a session.
    Release(u8),
    /// No longer supports reflective QoS in a session.
    RevokeReflectiveQos(u8),
    /// Is inactive: the gNB releases the connection.
    Idle,
    /// Sends data.
    RequestService,
    /// Deregisters, with or without signalling.
    Deregister { switch_off: bool },
    /// The network's stored sequence number is set back.
    LoseSequenceNumber,
    /// Moves to another gNB, over Xn.
    XnHandover,
    /// Moves to another gNB, through the AMF.
    N2Handover,
    /// Selects a cell of the next gNB, most times in another tracking area, without a connection.
    Reselect,
    /// The downlink of its sessions moves to the next gNB as a secondary one, or back to its own.
    MoveFlows { secondary: bool },
    /// The radio fails.
    LoseRadio,
    /// A downlink packet arrives for a random UE.
    DownlinkPacket,
    /// An operator inserts a classifier into a session.
    Branch(u8),
    /// An operator removes it again.
    Unbranch(u8),
    /// The UE is switched off, and the network does not notice it.
    Vanish,
    /// A downlink packet arrives for the UE's session; `lost`: its gNB has lost the tunnel.
    DownlinkFor { lost: bool },
    /// Nothing: a timer expires.
    Wait,
    /// An operator deregisters the UE.
    OrderDeregister(Deregister),
    /// The UDM notifies that the subscription is withdrawn.
    Withdraw,
    /// The operator changes the subscription.
    ChangeSubscription(SubscriptionChange),
    /// The PCF changes the session-AMBR of a session.
    ChangePolicy(u8),
    /// The PCF adds a rule with a QoS flow of its own to a session; the number says which rule.
    AddFlow(u8, u8),
    /// The PCF removes that rule.
    RemoveFlow(u8, u8),
    /// The PCF ends the policy association of a session.
    EndPolicy(u8),
    /// A component fails.
    Fail(Fault),
    /// The process that is to crash is killed, and starts again.
    Restart,
}

/// A change of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubscriptionChange {
    /// The session-AMBR in Mbit/s, and twice that as UE-AMBR.
    Rates(u8),
    /// The data network of the UE's sessions is not subscribed any longer.
    End,
    /// It is subscribed again.
    Begin,
}

impl World {
    /// Draws the actions of each UE within that time; each registers first.
    pub(super) fn draw_scripts(&mut self, time: Duration) {
        let millis = time.as_millis() as u64;
        for ue in 0..self.ues.len() {
            let begin = self.dice.millis(0, millis / 4);
            self.at(begin, SimEvent::Act { ue, act: Act::Register });
            let acts = 1 + self.dice.index(self.plan.acts);
            for _ in 0..acts {
                let (when, act) = (self.dice.millis(millis / 8, millis), self.draw_act());
                self.at(when, SimEvent::Act { ue, act });
            }
        }
        self.draw_handovers(time);
        self.draw_flows(time);
        self.draw_flow_mobility(time);
        self.draw_subscription_changes(time);
        self.draw_ladn(time);
        self.draw_emergencies(time);
        self.draw_revocations(time);
    }

    /// Changes of subscriptions; in the end all have the data network. Drawn apart, too.
    fn draw_subscription_changes(&mut self, time: Duration) {
        let mut dice = Dice::new(self.plan.seed ^ 0x7375_6273_0000);
        let millis = time.as_millis() as u64;
        for ue in 0..self.ues.len() {
            for _ in 0..dice.below(4) {
                let when = dice.millis(millis / 8, millis);
                let change = SubscriptionChange::Rates(10 + dice.below(50) as u8);
                self.at(when, SimEvent::Act { ue, act: Act::ChangeSubscription(change) });
            }
            if dice.chance(300) {
                let when = dice.millis(millis / 8, millis / 2);
                self.at(when, SimEvent::Act { ue, act: Act::ChangeSubscription(SubscriptionChange::End) });
                let again = dice.millis(millis / 2, millis);
                self.at(again, SimEvent::Act { ue, act: Act::ChangeSubscription(SubscriptionChange::Begin) });
            }
        }
    }

    /// Dual connectivity. Drawn apart, too.
    fn draw_flow_mobility(&mut self, time: Duration) {
        if self.gnbs.len() < 2 {
            return;
        }
        let mut dice = Dice::new(self.plan.seed ^ 0x6e72_6463_0000);
        let millis = time.as_millis() as u64;
        for ue in 0..self.ues.len() {
            for _ in 0..dice.below(6) {
                let when = dice.millis(millis / 8, millis);
                let secondary = dice.chance(600);
                self.at(when, SimEvent::Act { ue, act: Act::MoveFlows { secondary } });
            }
        }
    }

    /// Rules of the PCF that come and go. Drawn apart, too.
    fn draw_flows(&mut self, time: Duration) {
        let mut dice = Dice::new(self.plan.seed ^ 0x666c_6f77_7300);
        let millis = time.as_millis() as u64;
        for ue in 0..self.ues.len() {
            for _ in 0..dice.below(6) {
                let when = dice.millis(millis / 8, millis);
                let (session, rule) = (1 + dice.below(2) as u8, dice.below(3) as u8);
                let act = if dice.chance(600) {
                    Act::AddFlow(session, rule)
                } else {
                    Act::RemoveFlow(session, rule)
                };
                self.at(when, SimEvent::Act { ue, act });
            }
        }
    }

    /// Handovers between gNBs. Drawn apart, so that other actions of a seed stay the same.
    fn draw_handovers(&mut self, time: Duration) {
        if self.gnbs.len() < 2 {
            return;
        }
        let mut dice = Dice::new(self.plan.seed ^ 0x786e_686f_0000);
        let millis = time.as_millis() as u64;
        for ue in 0..self.ues.len() {
            for _ in 0..dice.below(8) {
                let when = dice.millis(millis / 8, millis);
                let act = if dice.chance(500) { Act::XnHandover } else { Act::N2Handover };
                self.at(when, SimEvent::Act { ue, act });
            }
            for _ in 0..if self.plan.areas > 1 { dice.below(5) } else { 0 } {
                let when = dice.millis(millis / 8, millis);
                self.at(when, SimEvent::Act { ue, act: Act::Reselect });
            }
        }
    }

    fn draw_act(&mut self) -> Act {
        let session = 1 + self.dice.below(2) as u8;
        if self.upfs.len() > 1 && self.dice.chance(300) {
            return if self.dice.chance(500) { Act::Branch(session) } else { Act::Unbranch(session) };
        }
        match self.dice.below(20) {
            0..=2 => Act::Register,
            3..=7 => Act::Establish(session),
            8 => Act::Release(session),
            9..=11 => Act::Idle,
            12..=14 => Act::RequestService,
            15 => Act::Deregister { switch_off: self.dice.chance(400) },
            16 => Act::LoseSequenceNumber,
            17 => Act::LoseRadio,
            _ => Act::DownlinkPacket,
        }
    }

    pub(super) fn act(&mut self, ue: usize, act: Act) {
        self.record(super::radio::name(ue), super::radio::name(ue), format!("{act:?}"));
        self.note_wish(ue, act);
        match act {
            Act::Register => self.ue_input(ue, Input::Register),
            Act::Establish(id) => self.ue_input(ue, Input::EstablishSession(self.session_request(ue, id))),
            Act::RevokeReflectiveQos(id) => self.ue_input(ue, Input::RevokeReflectiveQos(id)),
            Act::Release(id) => self.ue_input(ue, Input::ReleaseSession(id)),
            Act::Idle => self.end_for_inactivity(ue),
            Act::RequestService => self.ue_input(ue, Input::RequestService),
            Act::Deregister { switch_off } => self.ue_input(ue, Input::Deregister { switch_off }),
            Act::LoseSequenceNumber => {
                let supi = self.ues[ue].subscriber.supi.clone();
                self.database.put_sequence_number(&supi, 0);
                self.watch.is_sqn_lost = true;
            }
            Act::XnHandover => self.xn_handover(ue),
            Act::N2Handover => self.n2_handover(ue),
            Act::Reselect => self.reselect(ue),
            Act::MoveFlows { secondary } => self.move_flows(ue, secondary),
            Act::LoseRadio => self.lose_radio(ue),
            Act::DownlinkPacket => self.downlink_packet(),
            Act::Branch(_) | Act::Unbranch(_) | Act::OrderDeregister(_) => self.order(ue, act),
            Act::Vanish => self.vanish(ue),
            Act::DownlinkFor { lost } => self.downlink_packet_for(ue, lost),
            Act::Wait => {}
            Act::ChangeSubscription(change) => self.change_subscription(ue, change),
            Act::Withdraw
            | Act::ChangePolicy(_)
            | Act::AddFlow(..)
            | Act::RemoveFlow(..)
            | Act::EndPolicy(_) => self.notify(ue, act),
            Act::Fail(fault) => self.break_it(fault),
            Act::Restart => self.crash(self.crash_points.victim),
        }
    }
}
