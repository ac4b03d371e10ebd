//! Modifications that the UE requests: each is rejected, with the cause of its error (TS 24.501 6.4.2.4), and changes nothing.

use super::flows::with_voice;
use super::world::*;
use pith_nas::gsm::{
    PduSessionModificationComplete, PduSessionModificationRequest, PduSessionReleaseRequest,
};
use pith_nas::ie::{
    FilterComponent, FilterDirection, FlowOperation, FlowParameter, PacketFilter, PrecedenceAndQfi,
    QosFlowDescription, QosFlowDescriptions, QosRule, QosRules, RuleOperation,
};
use pith_nas::{GsmBody, GsmCause, GsmMessage};

/// A request for a rule of a new flow.
fn wanted() -> (QosRule, QosFlowDescription) {
    let filter = PacketFilter {
        id: 0,
        direction: FilterDirection::Bidirectional,
        components: vec![FilterComponent::Protocol(17), FilterComponent::RemotePort(5004)],
    };
    let rule = QosRule {
        id: 0,
        operation: RuleOperation::Create,
        default: false,
        packet_filters: vec![filter],
        precedence_and_qfi: Some(PrecedenceAndQfi { precedence: 70, segregation: false, qfi: 9 }),
    };
    (rule, QosFlowDescription::non_gbr(9, 5))
}

fn cause_of(world: &mut World, pti: u8, octets: Vec<u8>) -> GsmCause {
    let before = world.ladder.len();
    world.update(|data| data.n1_sm_msg = Some(octets.into()));
    assert_eq!(world.ladder.len(), before + 1, "an answer, and nothing else");
    let message = world.n1.last().unwrap();
    assert_eq!(message.pti, pti);
    let GsmBody::PduSessionModificationReject(reject) = &message.body else { panic!("{message:?}") };
    reject.cause
}

/// The cause for a request that differs from [`wanted`].
fn cause_for(change: impl FnOnce(&mut QosRule, &mut QosFlowDescription)) -> u8 {
    let mut world = with_voice();
    let (mut rule, mut flow) = wanted();
    change(&mut rule, &mut flow);
    let mut request = PduSessionModificationRequest::new();
    request.requested_qos_rules = Some(QosRules(vec![rule]));
    request.requested_qos_flow_descriptions = Some(QosFlowDescriptions(vec![flow]));
    cause_of(&mut world, 9, GsmMessage::new(5, 9, request).encode()).code()
}

#[test]
fn correct_rules_and_flows_are_not_accepted() {
    assert_eq!(cause_for(|_, _| {}), 37);
    // Identifiers of the session's rule: 2, with packet filter 1, of flow 2.
    assert_eq!(
        cause_for(|rule, flow| {
            (rule.id, rule.operation) = (2, RuleOperation::AddPacketFilters);
            *flow =
                QosFlowDescription { operation: FlowOperation::Modify, ..QosFlowDescription::non_gbr(2, 1) };
            rule.precedence_and_qfi = None;
        }),
        37
    );
}

#[test]
fn incorrect_operations_on_rules_have_their_causes() {
    use RuleOperation as O;
    let with = |id: u8, operation: O| {
        move |rule: &mut QosRule, _: &mut QosFlowDescription| (rule.id, rule.operation) = (id, operation)
    };
    assert_eq!(cause_for(with(7, O::Create)), 83, "the network assigns the identifier");
    assert_eq!(cause_for(|rule, _| rule.default = true), 83, "there is a default rule");
    assert_eq!(cause_for(with(7, O::AddPacketFilters)), 83, "there is no rule 7");
    assert_eq!(cause_for(|rule, _| rule.precedence_and_qfi.as_mut().unwrap().qfi = 8), 83, "no flow 8");
    assert_eq!(cause_for(|rule, _| rule.packet_filters.clear()), 84);
    assert_eq!(cause_for(|rule, _| rule.precedence_and_qfi = None), 84);
    assert_eq!(cause_for(with(2, O::Delete)), 84, "with packet filters");
    assert_eq!(cause_for(with(0, O::Other(7))), 84);
    assert_eq!(
        cause_for(|rule, _| {
            (rule.id, rule.operation) = (1, O::Delete);
            rule.packet_filters.clear();
        }),
        83,
        "the default rule stays"
    );
    let deleted = |id: u8| {
        cause_for(move |rule, _| {
            (rule.id, rule.operation) = (2, O::DeletePacketFilters);
            rule.packet_filters[0] =
                PacketFilter { id, direction: FilterDirection::Other(0), components: vec![] };
        })
    };
    assert_eq!((deleted(1), deleted(9)), (37, 83), "the rule has packet filter 1 only");
}

#[test]
fn incorrect_operations_on_flows_have_their_causes() {
    use FlowOperation as O;
    let with = |qfi: u8, operation: O| {
        cause_for(move |rule, flow| {
            rule.precedence_and_qfi.as_mut().unwrap().qfi = 1;
            (flow.qfi, flow.operation) = (qfi, operation);
        })
    };
    assert_eq!(with(2, O::Create), 83, "the session has flow 2");
    assert_eq!(with(9, O::Modify), 83, "and no flow 9");
    assert_eq!(with(2, O::Modify), 37);
    assert_eq!(with(2, O::Delete), 84, "with parameters");
    assert_eq!(with(9, O::Other(0)), 84);
    assert_eq!(cause_for(|_, flow| flow.parameters.clear()), 84);
    assert_eq!(cause_for(|_, flow| flow.parameters = vec![FlowParameter::FiveQi(40)]), 59);
}

#[test]
fn incorrect_packet_filters_have_their_causes() {
    use FilterComponent as C;
    let with = |components: Vec<C>| cause_for(|rule, _| rule.packet_filters[0].components = components);
    assert_eq!(with(vec![]), 45);
    assert_eq!(with(vec![C::MatchAll, C::Protocol(6)]), 45);
    assert_eq!(with(vec![C::Protocol(17), C::Protocol(6)]), 45);
    assert_eq!(with(vec![C::RemotePorts(2, 1)]), 44);
    assert_eq!(with(vec![C::RemotePorts(1, 2), C::RemotePort(1)]), 44);
    assert_eq!(with(vec![C::LocalPort(1), C::SecurityParameterIndex(1)]), 44);
    assert_eq!(with(vec![C::Ipv4Remote([192, 0, 2, 1].into(), [255; 4].into()), C::FlowLabel(1)]), 44);
    assert_eq!(with(vec![C::MatchAll]), 37);
    let twice = |id: u8| {
        cause_for(move |rule, _| {
            rule.packet_filters[0].id = id;
            rule.packet_filters.push(rule.packet_filters[0].clone());
        })
    };
    assert_eq!((twice(3), twice(0)), (45, 37), "0 is no identifier");
}

#[test]
fn rules_with_the_same_precedence_are_refused() {
    let mut request = PduSessionModificationRequest::new();
    let (rule, flow) = wanted();
    request.requested_qos_rules = Some(QosRules(vec![rule.clone(), rule]));
    request.requested_qos_flow_descriptions = Some(QosFlowDescriptions(vec![flow]));
    let cause = cause_of(&mut with_voice(), 9, GsmMessage::new(5, 9, request).encode());
    assert_eq!(cause, GsmCause::SemanticErrorInTheQosOperation);
}

/// A decoder treats an optional IE that is syntactically incorrect as absent (TS 24.501 7.7.1); the UE gets to know it nevertheless.
#[test]
fn rules_that_cannot_be_decoded_have_their_causes() {
    let mut world = with_voice();
    for (ies, cause) in [
        ("7a0004000001ff", 84),
        ("7a0009000006213009301109", 84),
        ("7a0009000006213003770101", 45),
        ("790003092041", 84),
    ] {
        let octets = hex::decode(format!("2e0509c9{ies}")).unwrap();
        assert_eq!(cause_of(&mut world, 9, octets).code(), cause, "{ies}");
    }
}

#[test]
fn services_that_the_network_lacks_are_not_supported() {
    let mut world = with_voice();
    let mut request = PduSessionModificationRequest::new();
    request.mapped_eps_bearer_contexts = Some(vec![0x50, 0, 1, 0x40]);
    let octets = GsmMessage::new(5, 9, request).encode();
    assert_eq!(cause_of(&mut world, 9, octets), GsmCause::ServiceOptionNotSupported);
    let nothing = GsmMessage::new(5, 9, PduSessionModificationRequest::new()).encode();
    assert_eq!(cause_of(&mut world, 9, nothing), GsmCause::RequestRejectedUnspecified);
}

/// UL NAS TRANSPORT names session 5, the message in it session 6 (TS 24.501 7.3.2).
#[test]
fn a_message_of_another_session_changes_nothing() {
    let mut world = super::flows::awaiting_complete();
    let send = |world: &mut World, pti: u8, body: GsmBody| {
        let octets = GsmMessage::new(6, pti, body).encode();
        world.update(|data| data.n1_sm_msg = Some(octets.into()));
        world.n1.last().unwrap().clone()
    };
    let other = GsmCause::InvalidPduSessionIdentity;
    let answer = send(&mut world, 0, PduSessionModificationComplete::new().into());
    let GsmBody::GsmStatus(status) = answer.body else { panic!("{answer:?}") };
    assert_eq!((answer.pdu_session_id, status.cause), (6, other));
    let answer = send(&mut world, 9, PduSessionModificationRequest::new().into());
    let GsmBody::PduSessionModificationReject(reject) = answer.body else { panic!("{answer:?}") };
    assert_eq!(reject.cause, other);
    let answer = send(&mut world, 9, PduSessionReleaseRequest::new().into());
    let GsmBody::PduSessionReleaseReject(reject) = answer.body else { panic!("{answer:?}") };
    assert_eq!(reject.cause, other);
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert!(session.modification.is_some(), "the UE has not confirmed");
}
