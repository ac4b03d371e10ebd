//! Guaranteed bit rates: a rate that cannot be guaranteed is rejected, without any change.

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{Change, IeType, Message};
use pith_upf::contract::Rates;
use std::net::Ipv4Addr;

/// A UPF that may guarantee 10 Mbit/s in each direction.
fn world() -> World {
    let guaranteed = Some(Rates { uplink: 10_000_000, downlink: 10_000_000 });
    let mut world = World::configured(|config| config.guaranteed = guaranteed);
    world.ask(0, AssociationSetupRequest::new(smf_node(), ntp(5)));
    world
}

fn kbps(rate: u64) -> BitRates {
    BitRates { uplink: rate, downlink: rate }
}

/// A session whose only QoS flow has a GBR and an MBR in kbit/s, with an AMBR of 10 and 20 Mbit/s.
fn guaranteed(cp_seid: u64, last: u8, gbr: u64, mbr: u64) -> SessionEstablishmentRequest {
    let ue = Ipv4Addr::new(10, 45, 0, last);
    let mut request = pdu_session_of(cp_seid, ue);
    let mut qer = CreateQer { qer_id: QerId(2), ..ambr() };
    (qer.guaranteed_bitrate, qer.maximum_bitrate) = (Some(kbps(gbr)), Some(kbps(mbr)));
    request.create_qers.push(qer);
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.qer_ids.push(QerId(2)));
    request
}

fn answer(world: &mut World, request: SessionEstablishmentRequest) -> SessionEstablishmentResponse {
    let Message::SessionEstablishmentResponse(response) = world.ask(0, request).message else { panic!() };
    response
}

#[test]
fn guaranteed_rates_are_accepted_up_to_the_capacity() {
    let mut world = world();
    let (first, _) = world.establish(guaranteed(1, 2, 6_000, 7_000));
    let teids = world.upf.teids_in_use();
    let refused = answer(&mut world, guaranteed(2, 3, 5_000, 7_000));
    assert_eq!(refused.cause, Cause::NoResourcesAvailable);
    assert_eq!(refused.failed_rule_id, Some(FailedRuleId::Qer(QerId(2))));
    assert_eq!(refused.offending_ie, Some(OffendingIe(IeType::GBR)));
    assert_eq!(world.upf.teids_in_use(), teids, "nothing leaks");
    world.establish(guaranteed(3, 4, 4_000, 7_000));
    assert_eq!(world.upf.admitted_rates(), Rates { uplink: 10_000_000, downlink: 10_000_000 });
    world.delete(first);
    assert_eq!(world.upf.admitted_rates(), Rates { uplink: 4_000_000, downlink: 4_000_000 });
    world.establish(guaranteed(4, 5, 5_000, 7_000));
}

#[test]
fn a_change_that_cannot_be_guaranteed_leaves_the_session_unchanged() {
    let mut world = world();
    let (session, _) = world.establish(guaranteed(1, 2, 6_000, 20_000));
    let to = |gbr| {
        let mut update = UpdateQer::new(QerId(2));
        update.guaranteed_bitrate = Some(Change::Set(kbps(gbr)));
        SessionModificationRequest { update_qers: vec![update], ..SessionModificationRequest::new() }
    };
    assert_eq!(world.modify(session, to(9_000)).cause, Cause::RequestAccepted);
    let before = world.installed(session);
    for gbr in [10_500, 21_000] {
        let refused = world.modify(session, to(gbr));
        assert_ne!(refused.cause, Cause::RequestAccepted);
        assert_eq!(refused.failed_rule_id, Some(FailedRuleId::Qer(QerId(2))));
        assert_eq!(world.installed(session), before);
    }
    assert_eq!(world.upf.admitted_rates(), Rates { uplink: 9_000_000, downlink: 9_000_000 });
    assert_eq!(world.modify(session, to(3_000)).cause, Cause::RequestAccepted);
    assert_eq!(world.upf.admitted_rates(), Rates { uplink: 3_000_000, downlink: 3_000_000 });
}

#[test]
fn a_gbr_above_its_mbr_or_the_ambr_is_rejected() {
    let mut world = world();
    for (gbr, mbr) in [(8_000, 7_000), (10_001, 30_000)] {
        let refused = answer(&mut world, guaranteed(1, 2, gbr, mbr));
        assert_eq!(refused.cause, Cause::RuleCreationModificationFailure, "{gbr} of {mbr}");
    }
    assert_eq!(world.upf.sessions().count(), 0);
}
