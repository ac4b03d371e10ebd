//! The actions of UEs' users, drawn from the seed.

use super::{SimEvent, World};
use crate::network;
use pith_nas::ie::PduSessionType;
use pith_nf::fabric::ShardInput;
use pith_nf::kit::Order;
use pith_ran::ue::{Input, SessionRequest};
use pith_types::Snssai;
use std::time::Duration;

/// An action of a user, or an event of a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Registers, or updates the registration.
    Register,
    /// Establishes a session.
    Establish(u8),
    /// Releases a session.
    Release(u8),
    /// Is inactive: the gNB releases the connection.
    Idle,
    /// Sends data.
    RequestService,
    /// Deregisters, with or without signalling.
    Deregister { switch_off: bool },
    /// The network's stored sequence number is set back.
    LoseSequenceNumber,
    /// The radio fails.
    LoseRadio,
    /// A downlink packet arrives for a random UE.
    DownlinkPacket,
    /// An operator inserts a classifier into a session.
    Branch(u8),
    /// An operator removes it again.
    Unbranch(u8),
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
        match act {
            Act::Register => self.ue_input(ue, Input::Register),
            Act::Establish(id) => self.ue_input(ue, Input::EstablishSession(session(id))),
            Act::Release(id) => self.ue_input(ue, Input::ReleaseSession(id)),
            Act::Idle => self.end_for_inactivity(ue),
            Act::RequestService => self.ue_input(ue, Input::RequestService),
            Act::Deregister { switch_off } => self.ue_input(ue, Input::Deregister { switch_off }),
            Act::LoseSequenceNumber => {
                let supi = self.ues[ue].subscriber.supi.clone();
                self.database.put_sequence_number(&supi, 0);
            }
            Act::LoseRadio => self.lose_radio(ue),
            Act::DownlinkPacket => self.downlink_packet(),
            Act::Branch(_) | Act::Unbranch(_) => self.order(ue, act),
        }
    }
}

impl World {
    /// Sends the order to every SMF; the one that has the session carries it out.
    fn order(&mut self, ue: usize, act: Act) {
        let supi = self.ues[ue].subscriber.supi.clone();
        let what = match act {
            Act::Branch(pdu_session_id) => {
                let (upf, destinations) = (network::UPFS[1].to_owned(), vec![network::BREAKOUT]);
                Order::Branch { supi, pdu_session_id, upf, destinations }
            }
            Act::Unbranch(pdu_session_id) => Order::Unbranch { supi, pdu_session_id },
            _ => return,
        };
        for process in 0..self.processes.len() {
            for shard in 0..self.processes[process].shard_hosts.len() {
                let input = ShardInput::Operate { exchange: 0, what: what.clone() };
                self.send_to_shard(process, shard, input);
            }
        }
    }
}

fn session(id: u8) -> SessionRequest {
    SessionRequest {
        id,
        dnn: Some(network::dnn()),
        snssai: Some(Snssai::of_sst(1)),
        session_type: PduSessionType::Ipv4,
    }
}
