//! AMF re-allocation (TS 23.502 4.2.2.2.3): a UE's connection passes from one endpoint of its gNB to another, as in `pith_ran::Ran`.

use super::World;
use pith_ngap::{InitialUeMessage, Message};
use pith_ran::gnb::{Input, N2Stream, UeKey};
use pith_types::RanUeNgapId;

impl World {
    /// An AMF has a UE's first message rerouted to an AMF of that set.
    pub(super) fn reroute(
        &mut self,
        endpoint: usize,
        ue: UeKey,
        amf_set: u16,
        message: Box<InitialUeMessage>,
    ) {
        let target = self.endpoints_of(endpoint).find(|at| self.gnbs[*at].gnb.serves_set(amf_set));
        match target.filter(|target| *target != endpoint) {
            Some(target) => {
                self.move_connection(endpoint, target, ue);
                self.gnb_input(target, Input::Rerouted { ue, message });
            }
            None => self.release_ue(endpoint, ue),
        }
    }

    /// The AMF of an endpoint has taken over a UE from the AMF of another one.
    pub(super) fn redirect(
        &mut self,
        endpoint: usize,
        (old_amf, ran_id): (&str, RanUeNgapId),
        (stream, message): (N2Stream, Box<Message>),
    ) {
        let mut found = None;
        for other in self.endpoints_of(endpoint) {
            let given_up = self.gnbs[other].gnb.give_up(old_amf, ran_id);
            if let Some(redirected) = given_up {
                self.move_connection(other, endpoint, redirected.ue());
                found = given_up;
                break;
            }
        }
        self.gnb_input(endpoint, Input::Redirected { found, stream, message });
    }

    fn endpoints_of(&self, endpoint: usize) -> std::ops::Range<usize> {
        let amfs = self.plan.amfs();
        let first = endpoint / amfs * amfs;
        first..first + amfs
    }

    fn move_connection(&mut self, from: usize, to: usize, connection: UeKey) {
        let Some(ue) = self.gnbs[from].connections.remove(&connection) else { return };
        self.gnbs[to].connections.insert(connection, ue);
        if self.ues[ue].connection == Some(connection.0.into()) {
            self.ues[ue].gnb = to;
        }
    }
}
