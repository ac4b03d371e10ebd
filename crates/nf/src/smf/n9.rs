//! Rules of a session at the UPF between gNB and anchor (TS 29.244 5.2; TS 23.501 5.6.4.2, 5.7.1.8).
//!
//! ```text
//!  PDR 1  access, F-TEID of N3                        FAR 1 forward to the anchor
//!  PDR 2  the same F-TEID, local destinations         FAR 3 forward to the local data network
//!  PDR 3  core, F-TEID of N9                          FAR 2 buffer, or forward to the gNB
//!  PDR 4  core, UE address as destination             FAR 2
//! ```
//!
//! Only a classifier that is also the local anchor has PDRs 2 and 4. QER, URR and BAR are as at the anchor.

use super::config::Network;
use super::context::{SmContext, UeAddress, UserPlane};
use super::n4::{self, PRECEDENCE};
use super::selection::FrontPlan;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_pfcp::ie::{
    ApplyAction, DestinationInterface, FTeid, FarId, OuterHeader, OuterHeaderCreation, PdrId, Precedence,
    SdfFilter, SourceInterface,
};
use pith_pfcp::message::SessionEstablishmentResponse;
use pith_pfcp::rules::{CreateFar, CreatePdr, ForwardingParameters, Pdi};
use std::net::IpAddr;

const LOCAL_UPLINK_PDR: PdrId = PdrId(2);
const N9_PDR: PdrId = PdrId(3);
const LOCAL_DOWNLINK_PDR: PdrId = PdrId(4);
const LOCAL_FAR: FarId = FarId(3);
/// The PDR of local destinations is evaluated before the one that matches all packets.
const LOCAL_PRECEDENCE: Precedence = Precedence(100);
/// CHOOSE IDs: the PDRs with the same value share an F-TEID (TS 29.244 8.2.3). Uplink PDRs have one, the PDR of N9 another.
const N3_CHOICE: u8 = 1;
const N9_CHOICE: u8 = 2;

/// Session Establishment Request. Uplink packets are forwarded to the anchor, or to the local data network if the plan has
/// their destination. Downlink packets are forwarded to the gNB if its endpoint is known, else `otherwise` applies.
pub(super) fn establishment(
    session: &SmContext,
    plan: &FrontPlan,
    user_plane: &UserPlane,
    (address, local): (UeAddress, IpAddr),
    otherwise: ApplyAction,
) -> Message {
    let mut pdrs = vec![uplink_pdr(address), n9_pdr()];
    let mut fars = vec![uplink_far(user_plane.anchor.tunnel), n4::downlink_far(user_plane.gnb, otherwise)];
    if !plan.destinations.is_empty() {
        pdrs.extend(local_pdrs(address, &plan.destinations));
        let mut far = CreateFar::new(LOCAL_FAR, ApplyAction::FORW);
        far.forwarding_parameters = Some(ForwardingParameters::new(DestinationInterface::Core));
        fars.push(far);
    }
    n4::establishment_request(session, (session.front_seid(), local), pdrs, fars)
}

fn uplink_far(anchor: Tunnel) -> CreateFar {
    let mut parameters = ForwardingParameters::new(DestinationInterface::Core);
    parameters.outer_header_creation = Some(OuterHeaderCreation::gtpu(anchor.teid.0, anchor.address));
    let mut far = CreateFar::new(n4::UPLINK_FAR, ApplyAction::FORW);
    far.forwarding_parameters = Some(parameters);
    far
}

fn uplink_pdr(address: UeAddress) -> CreatePdr {
    let mut pdr = n4::uplink_pdr(address);
    pdr.pdi.local_f_teid = choose(N3_CHOICE);
    pdr
}

fn n9_pdr() -> CreatePdr {
    let mut pdi = Pdi::new(SourceInterface::Core);
    pdi.local_f_teid = choose(N9_CHOICE);
    let mut pdr = CreatePdr::new(N9_PDR, PRECEDENCE, pdi);
    pdr.outer_header_removal = Some(OuterHeader::GtpuUdpIpv4.into());
    n4::with_rules(pdr, n4::DOWNLINK_FAR)
}

fn local_pdrs(address: UeAddress, destinations: &[Network]) -> [CreatePdr; 2] {
    let mut uplink = uplink_pdr(address);
    uplink.pdr_id = LOCAL_UPLINK_PDR;
    uplink.precedence = LOCAL_PRECEDENCE;
    uplink.pdi.sdf_filters = destinations.iter().map(filter).collect();
    uplink.far_id = Some(LOCAL_FAR);
    let downlink = CreatePdr::new(LOCAL_DOWNLINK_PDR, PRECEDENCE, n4::to_ue(address));
    [uplink, n4::with_rules(downlink, n4::DOWNLINK_FAR)]
}

/// A flow description is written for downlink packets and applies to both directions (TS 29.212 5.4.2).
fn filter((network, prefix): &Network) -> SdfFilter {
    SdfFilter {
        flow_description: Some(format!("permit out ip from {network}/{prefix} to assigned").into_bytes()),
        ..SdfFilter::default()
    }
}

const fn choose(choose_id: u8) -> Option<FTeid> {
    Some(FTeid::Choose { ipv4: true, ipv6: false, choose_id: Some(choose_id) })
}

/// The endpoints of N3 and N9 that the UPF allocated.
pub(super) fn tunnels(response: &SessionEstablishmentResponse) -> Option<(Tunnel, Tunnel)> {
    Some((n4::tunnel(response, n4::UPLINK_PDR)?, n4::tunnel(response, N9_PDR)?))
}
