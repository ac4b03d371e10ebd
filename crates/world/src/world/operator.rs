//! What the network's side begins: orders of operators, and notifications of UDM and PCF.

use super::World;
use super::user::{Act, SubscriptionChange};
use crate::journal::Callback;
use crate::network;
use pith_nf::fabric::{ShardInput, shard_of};
use pith_nf::kit::{Caller, Nf, Order, Tag};
use pith_sbi::common::Arp;
use pith_sbi::npcf_smpolicycontrol::{
    FlowInformation, PccRule, QosData, SessionRule, SmPolicyAssociationReleaseCause, SmPolicyDecision,
    SmPolicyNotification, SmPolicyTerminateNotify, SmPolicyTerminationNotification, SmPolicyUpdateNotify,
};
use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification, DeregistrationReason};
use pith_sbi::{Request, Uri};
use pith_types::{Ambr, BitRate};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The sender of notifications: no call of an NF has this tag, so that the answer is ignored.
const NOBODY: Tag = Tag::new(u64::MAX, u32::MAX);

impl World {
    /// Sends the order to every AMF and SMF; the one that has the UE or session carries it out.
    pub(super) fn order(&mut self, ue: usize, act: Act) {
        let supi = self.ues[ue].subscriber.supi.clone();
        let what = match act {
            Act::Branch(pdu_session_id) => {
                let (upf, destinations) = (network::UPFS[1].to_owned(), vec![network::BREAKOUT]);
                Order::Branch { supi, pdu_session_id, upf, destinations }
            }
            Act::Unbranch(pdu_session_id) => Order::Unbranch { supi, pdu_session_id },
            Act::OrderDeregister(why) => Order::Deregister { supis: [supi].into(), why },
            _ => return,
        };
        for process in 0..self.processes.len() {
            for shard in 0..self.processes[process].shard_hosts.len() {
                let input = ShardInput::Operate { exchange: 0, what: Box::new(what.clone()) };
                self.send_to_shard(process, shard, input);
            }
        }
    }

    /// UDM or PCF send a notification to the callback URI that they were given last.
    pub(super) fn notify(&mut self, ue: usize, act: Act) {
        let kind = match act {
            Act::Withdraw => Callback::Deregistration,
            Act::ChangePolicy(session)
            | Act::EndPolicy(session)
            | Act::AddFlow(session, _)
            | Act::RemoveFlow(session, _) => Callback::SmPolicy(session),
            _ => return,
        };
        let supi = self.ues[ue].subscriber.supi.to_string();
        let Some(uri) = self.journal().callbacks.get(&(supi, kind)).cloned() else { return };
        let (nf, request) = match act {
            Act::Withdraw => (Nf::Amf, withdrawal(uri)),
            Act::ChangePolicy(_) => (Nf::Smf, changed_policy(uri)),
            Act::AddFlow(_, rule) => (Nf::Smf, added_flow(uri, rule)),
            Act::RemoveFlow(_, rule) => (Nf::Smf, removed_flow(uri, rule)),
            _ => (Nf::Smf, ended_policy(uri)),
        };
        let (mut first, mut owner) = (None, None);
        for process in 0..self.processes.len() {
            let at = &self.processes[process];
            if at.nfs.contains(&nf) {
                first = first.or(Some((process, 0)));
                let owners = if at.set.is_some() { &at.owners } else { &at.owners_at_start };
                let shard = shard_of(owners, self.plan.instance(process), &request);
                owner = owner.or(shard.map(|shard| (process, shard)));
            }
        }
        let Some((process, shard)) = owner.or(first) else { return };
        let from = Caller::Shard { shard: 0, nf: Nf::Pcf, tag: NOBODY };
        self.send_to_shard(process, usize::from(shard), ShardInput::Request { from, nf, request });
    }

    /// The operator changes the subscription in the database; the UDR has the NFs notified.
    pub(super) fn change_subscription(&mut self, ue: usize, change: SubscriptionChange) {
        let supi = self.ues[ue].subscriber.supi.clone();
        let dnns = self.ues[ue].subscriber.slices[0].dnns.clone();
        self.database.change_subscriber(&supi, |subscriber| {
            let of_slice = &mut subscriber.slices[0].dnns;
            match change {
                SubscriptionChange::Rates(mbps) => {
                    subscriber.ambr = rates(2 * u64::from(mbps));
                    of_slice.iter_mut().for_each(|dnn| dnn.ambr = Some(rates(mbps.into())));
                }
                SubscriptionChange::End => of_slice.iter_mut().for_each(|dnn| dnn.dnn = network::other_dnn()),
                SubscriptionChange::Begin => *of_slice = dnns,
            }
        });
        self.notify_changes();
    }

    /// The UDR reads what has changed, as at its start.
    pub(super) fn notify_changes(&mut self) {
        for process in 0..self.processes.len() {
            if self.processes[process].nfs.contains(&Nf::Udr) && self.processes[process].is_running() {
                let input = ShardInput::Operate { exchange: 0, what: Box::new(Order::NotifyChanges) };
                self.send_to_shard(process, 0, input);
            }
        }
    }
}

fn withdrawal(uri: Uri) -> Request {
    let body = DeregistrationData::new(DeregistrationReason::SubscriptionWithdrawn);
    DeregistrationNotification { uri, body }.into()
}

fn changed_policy(uri: Uri) -> Request {
    let mut rule = SessionRule::new("r");
    rule.auth_sess_ambr = Some(policy_rates());
    let mut decision = SmPolicyDecision::default();
    decision.sess_rules.insert("r".into(), Some(rule));
    decided(uri, decision)
}

fn decided(uri: Uri, decision: SmPolicyDecision) -> Request {
    let mut body = SmPolicyNotification::default();
    body.sm_policy_decision = Some(decision);
    SmPolicyUpdateNotify { uri, body }.into()
}

/// The rules of a world: two with a guaranteed rate, voice and video, and one without, which is reflective.
const FIVE_QIS: [u8; 3] = [1, 2, 7];

/// The reflective rule, which UEs do not get: they derive it from downlink packets.
pub(crate) const REFLECTIVE_RULE: u8 = 2;

/// The server of the rules' packets.
pub(super) const RULE_REMOTE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// Its port.
pub(super) fn rule_port(number: u8) -> u16 {
    5000 + u16::from(number)
}

/// A rule for a remote port, which has a QoS flow of its own.
fn added_flow(uri: Uri, number: u8) -> Request {
    let five_qi = FIVE_QIS[usize::from(number) % FIVE_QIS.len()];
    let id: Arc<str> = format!("rule-{number}").into();
    let mut qos = QosData::new(Arc::clone(&id));
    qos.five_qi = Some(five_qi);
    qos.arp = Some(Arp::of_priority(network::RULE_PRIORITY));
    if pith_types::five_qi::is_gbr(five_qi) {
        let rate = Some(BitRate::kbps(64));
        (qos.gbr_ul, qos.gbr_dl, qos.maxbr_ul, qos.maxbr_dl) = (rate, rate, rate, rate);
    }
    let mut flow = FlowInformation::default();
    let port = rule_port(number);
    flow.flow_description = Some(format!("permit out 17 from {RULE_REMOTE} {port} to assigned").into());
    flow.packet_filter_usage = Some(number != REFLECTIVE_RULE);
    qos.reflective_qos = (number == REFLECTIVE_RULE).then_some(true);
    let mut rule = PccRule::new(Arc::clone(&id));
    rule.flow_infos = vec![flow];
    rule.precedence = Some(20);
    rule.ref_qos_data = vec![Arc::clone(&id)];
    let mut decision = SmPolicyDecision::default();
    decision.qos_decs.insert(Arc::clone(&id), Some(qos));
    decision.pcc_rules.insert(id, Some(rule));
    decided(uri, decision)
}

fn removed_flow(uri: Uri, number: u8) -> Request {
    let id: Arc<str> = format!("rule-{number}").into();
    let mut decision = SmPolicyDecision::default();
    decision.pcc_rules.insert(Arc::clone(&id), None);
    decision.qos_decs.insert(id, None);
    decided(uri, decision)
}

fn ended_policy(uri: Uri) -> Request {
    let cause = SmPolicyAssociationReleaseCause::Unspecified;
    let body = SmPolicyTerminationNotification::new(uri.clone(), cause);
    SmPolicyTerminateNotify { uri, body }.into()
}

fn rates(mbps: u64) -> Ambr {
    Ambr { uplink: BitRate::mbps(mbps), downlink: BitRate::mbps(mbps) }
}

/// The session-AMBR that a PCF authorises with [`Act::ChangePolicy`].
pub(super) fn policy_rates() -> Ambr {
    rates(20)
}
