//! Values of handover, path switch and location reporting (TS 38.413 9.3.1).

use super::{Bad, HasTransfer, Read, Write, octets, transfer_of};
use crate::mobility::{
    EarlyRanStatus, HandoverItem, LocationRequest, MobilityRestrictions, NextHop, RanStatus, ServiceArea,
    SonTransfer, TargetId,
};
use crate::types::SessionTransfer;
use oxirush_ngap::ngap as wire;
use oxirush_ngap::{BitString, Bits, Octets};
use pith_types::{Guami, Plmn, Tac};

convert!(wire::HandoverType, wire::HandoverType, Ok, |own| *own);
convert!((), wire::DirectForwardingPathAvailability, |_| Ok(()), |_| {
    wire::DirectForwardingPathAvailability::direct_path_available
});
convert!((), wire::NewSecurityContextInd, |_| Ok(()), |_| wire::NewSecurityContextInd::R_true);
convert!(u16, wire::AMFSetID, |w| Ok(w.0.value() as u16), |own| {
    wire::AMFSetID(Bits::low((*own).into(), 10))
});
convert!(LocationRequest, wire::LocationReportingRequestType, |w| Ok(Self { event: w.event_type }), |own| {
    wire::LocationReportingRequestType::new(own.event, wire::ReportArea::cell, None, None, None)
});
convert!(
    TargetId,
    wire::TargetID,
    |w| match w {
        wire::TargetID::targetRANNodeID(target) => Ok(Self::RanNode {
            node: Read::read(target.global_ran_node_id)?,
            tai: Read::read(target.selected_tai)?,
        }),
        wire::TargetID::targeteNB_ID(target) => read_enb(target),
        _ => Err(Bad("Target ID of an unknown kind")),
    },
    write_target
);

fn read_enb(target: wire::TargeteNBID) -> Result<TargetId, Bad> {
    let (id, bits) = super::node::read_enb_id(target.global_enb_id.ng_enb_id)?;
    Ok(TargetId::Enb {
        plmn: Read::read(target.global_enb_id.plmn_identity)?,
        id,
        bits,
        tai_plmn: Read::read(target.selected_eps_tai.plmn_identity)?,
        tac: u16::from_be_bytes(target.selected_eps_tai.eps_tac.0),
    })
}

fn write_target(target: &TargetId) -> wire::TargetID {
    match *target {
        TargetId::RanNode { ref node, ref tai } => {
            wire::TargetID::targetRANNodeID(wire::TargetRANNodeID::new(node.write(), tai.write(), None))
        }
        TargetId::Enb { plmn, id, bits, tai_plmn, tac } => {
            let id = super::node::write_enb_id(id, bits);
            let enb = wire::GlobalNgENBID::new(plmn.write(), id, None);
            let tai = wire::EPSTAI::new(tai_plmn.write(), wire::EPSTAC(tac.to_be_bytes()), None);
            wire::TargetID::targeteNB_ID(wire::TargeteNBID::new(enb, tai, None))
        }
    }
}

impl Read<wire::SecurityContext<'_>> for NextHop {
    fn read(wire: wire::SecurityContext<'_>) -> Result<Self, Bad> {
        Ok(Self { chaining_count: wire.next_hop_chaining_count.0, nh: Read::read(wire.next_hop_nh)? })
    }
}

impl<'a> Write<'a, wire::SecurityContext<'a>> for NextHop {
    fn write(&'a self) -> wire::SecurityContext<'a> {
        let count = wire::NextHopChainingCount(self.chaining_count & 7);
        wire::SecurityContext::new(count, self.nh.write(), None)
    }
}

/// Containers that are kept as the codec has them.
macro_rules! convert_kept {
    ($($own:ident $wire:ident)*) => {$(
        impl Read<wire::$wire<'_>> for $own {
            fn read(wire: wire::$wire<'_>) -> Result<Self, Bad> {
                Ok(Self(wire.into_owned()))
            }
        }
        impl<'a> Write<'a, wire::$wire<'a>> for $own {
            fn write(&'a self) -> wire::$wire<'a> {
                self.0.clone()
            }
        }
    )*};
}

convert_kept! {
    RanStatus RANStatusTransferTransparentContainer
    EarlyRanStatus EarlyStatusTransferTransparentContainer
    SonTransfer SONConfigurationTransfer
}

convert!(wire::RRCState, wire::RRCState, Ok, |own| *own);
convert!(wire::HandoverFlag, wire::HandoverFlag, Ok, |own| *own);

/// Containers that are transparent to the AMF.
macro_rules! convert_octets {
    ($($wire:ident)*) => {$(
        impl Read<wire::$wire<'_>> for Vec<u8> {
            fn read(wire: wire::$wire<'_>) -> Result<Self, Bad> {
                Ok(wire.0.into_vec())
            }
        }
        impl<'a> Write<'a, wire::$wire<'a>> for Vec<u8> {
            fn write(&'a self) -> wire::$wire<'a> {
                wire::$wire(octets(self))
            }
        }
    )*};
}

convert_octets! {
    SourceToTargetTransparentContainer
    TargetToSourceTransparentContainer
    NASSecurityParametersFromNGRAN
}

impl Read<Octets<'_>> for Vec<u8> {
    fn read(wire: Octets<'_>) -> Result<Self, Bad> {
        Ok(wire.into_vec())
    }
}

impl<'a> Write<'a, Octets<'a>> for Vec<u8> {
    fn write(&'a self) -> Octets<'a> {
        octets(self)
    }
}

impl Read<wire::UnavailableGUAMIList<'_>> for Vec<Guami> {
    fn read(wire: wire::UnavailableGUAMIList<'_>) -> Result<Self, Bad> {
        wire.0.into_iter().map(|item| Read::read(item.guami)).collect()
    }
}

impl<'a> Write<'a, wire::UnavailableGUAMIList<'a>> for Vec<Guami> {
    fn write(&'a self) -> wire::UnavailableGUAMIList<'a> {
        let item = |guami: &Guami| wire::UnavailableGUAMIItem::new(guami.write(), None, None, None);
        wire::UnavailableGUAMIList(self.iter().map(item).collect())
    }
}

impl Read<wire::PDUSessionResourceSetupListHOReq<'_>> for Vec<HandoverItem> {
    fn read(wire: wire::PDUSessionResourceSetupListHOReq<'_>) -> Result<Self, Bad> {
        let item = |item: wire::PDUSessionResourceSetupItemHOReq<'_>| {
            Ok(HandoverItem {
                pdu_session_id: item.pdu_session_id.0,
                snssai: Read::read(item.s_nssai)?,
                transfer: item.handover_request_transfer.into_vec(),
            })
        };
        wire.0.into_iter().map(item).collect()
    }
}

impl<'a> Write<'a, wire::PDUSessionResourceSetupListHOReq<'a>> for Vec<HandoverItem> {
    fn write(&'a self) -> wire::PDUSessionResourceSetupListHOReq<'a> {
        let item = |item: &'a HandoverItem| {
            wire::PDUSessionResourceSetupItemHOReq::new(
                wire::PDUSessionID(item.pdu_session_id),
                item.snssai.write(),
                octets(&item.transfer),
                None,
            )
        };
        wire::PDUSessionResourceSetupListHOReq(self.iter().map(item).collect())
    }
}

fn read_tacs(tacs: Vec<wire::TAC>) -> Result<Vec<Tac>, Bad> {
    tacs.into_iter().map(Read::read).collect()
}

fn write_tacs(tacs: &[Tac]) -> Vec<wire::TAC> {
    tacs.iter().map(Write::write).collect()
}

/// A list; `None` if it is empty.
fn some<T, L>(items: &[T], item: impl Fn(&T) -> L) -> Option<Vec<L>> {
    (!items.is_empty()).then(|| items.iter().map(item).collect())
}

impl Read<wire::MobilityRestrictionList<'_>> for MobilityRestrictions {
    fn read(wire: wire::MobilityRestrictionList<'_>) -> Result<Self, Bad> {
        let equivalent = wire.equivalent_plmns.map(|list| list.0).unwrap_or_default();
        let rats = wire.rat_restrictions.map(|list| list.0).unwrap_or_default();
        let forbidden = wire.forbidden_area_information.map(|list| list.0).unwrap_or_default();
        let service = wire.service_area_information.map(|list| list.0).unwrap_or_default();
        let rat = |rat: wire::RATRestrictionsItem<'_>| {
            let bits = rat.rat_restriction_information.0.as_octets().first().copied();
            Ok((Read::read(rat.plmn_identity)?, bits.unwrap_or(0)))
        };
        let area = |area: wire::ForbiddenAreaInformationItem| {
            Ok((Read::read(area.plmn_identity)?, read_tacs(area.forbidden_tacs.0)?))
        };
        Ok(Self {
            serving_plmn: Read::read(wire.serving_plmn)?,
            equivalent_plmns: equivalent.into_iter().map(Read::read).collect::<Result<_, Bad>>()?,
            rat_restrictions: rats.into_iter().map(rat).collect::<Result<_, Bad>>()?,
            forbidden_areas: forbidden.into_iter().map(area).collect::<Result<_, Bad>>()?,
            service_areas: service.into_iter().map(read_service_area).collect::<Result<_, Bad>>()?,
        })
    }
}

fn read_service_area(area: wire::ServiceAreaInformationItem) -> Result<ServiceArea, Bad> {
    Ok(ServiceArea {
        plmn: Read::read(area.plmn_identity)?,
        allowed: read_tacs(area.allowed_tacs.map(|tacs| tacs.0).unwrap_or_default())?,
        not_allowed: read_tacs(area.not_allowed_tacs.map(|tacs| tacs.0).unwrap_or_default())?,
    })
}

fn write_service_area(area: &ServiceArea) -> wire::ServiceAreaInformationItem {
    let allowed = some(&area.allowed, |own| own.write()).map(wire::AllowedTACs);
    let not_allowed = some(&area.not_allowed, |own| own.write()).map(wire::NotAllowedTACs);
    wire::ServiceAreaInformationItem::new(area.plmn.write(), allowed, not_allowed, None)
}

impl<'a> Write<'a, wire::MobilityRestrictionList<'a>> for MobilityRestrictions {
    fn write(&'a self) -> wire::MobilityRestrictionList<'a> {
        let rat = |(plmn, bits): &(Plmn, u8)| {
            let bits = wire::RATRestrictionInformation(BitString::from([*bits]));
            wire::RATRestrictionsItem::new(plmn.write(), bits, None)
        };
        let area = |(plmn, tacs): &(Plmn, Vec<Tac>)| {
            wire::ForbiddenAreaInformationItem::new(plmn.write(), wire::ForbiddenTACs(write_tacs(tacs)), None)
        };
        wire::MobilityRestrictionList::new(
            self.serving_plmn.write(),
            some(&self.equivalent_plmns, |own| own.write()).map(wire::EquivalentPLMNs),
            some(&self.rat_restrictions, rat).map(wire::RATRestrictions),
            some(&self.forbidden_areas, area).map(wire::ForbiddenAreaInformation),
            some(&self.service_areas, write_service_area).map(wire::ServiceAreaInformation),
            None,
        )
    }
}

has_transfer! {
    PDUSessionResourceSecondaryRATUsageItem secondary_rat_data_usage_report_transfer
    PDUSessionResourceItemHORqd handover_required_transfer
    PDUSessionResourceHandoverItem handover_command_transfer
    PDUSessionResourceToReleaseItemHOCmd handover_preparation_unsuccessful_transfer
    PDUSessionResourceAdmittedItem handover_request_acknowledge_transfer
    PDUSessionResourceFailedToSetupItemHOAck handover_resource_allocation_unsuccessful_transfer
    PDUSessionResourceToBeSwitchedDLItem path_switch_request_transfer
    PDUSessionResourceFailedToSetupItemPSReq path_switch_request_setup_failed_transfer
    PDUSessionResourceSwitchedItem path_switch_request_acknowledge_transfer
    PDUSessionResourceReleasedItemPSAck path_switch_request_unsuccessful_transfer
    PDUSessionResourceReleasedItemPSFail path_switch_request_unsuccessful_transfer
    PDUSessionResourceModifyItemModInd pdu_session_resource_modify_indication_transfer
    PDUSessionResourceModifyItemModCfm pdu_session_resource_modify_confirm_transfer
    PDUSessionResourceFailedToModifyItemModCfm pdu_session_resource_modify_indication_unsuccessful_transfer
}

convert_transfers! {
    PDUSessionResourceSecondaryRATUsageList PDUSessionResourceSecondaryRATUsageItem
    PDUSessionResourceListHORqd PDUSessionResourceItemHORqd
    PDUSessionResourceHandoverList PDUSessionResourceHandoverItem
    PDUSessionResourceToReleaseListHOCmd PDUSessionResourceToReleaseItemHOCmd
    PDUSessionResourceAdmittedList PDUSessionResourceAdmittedItem
    PDUSessionResourceFailedToSetupListHOAck PDUSessionResourceFailedToSetupItemHOAck
    PDUSessionResourceToBeSwitchedDLList PDUSessionResourceToBeSwitchedDLItem
    PDUSessionResourceFailedToSetupListPSReq PDUSessionResourceFailedToSetupItemPSReq
    PDUSessionResourceSwitchedList PDUSessionResourceSwitchedItem
    PDUSessionResourceReleasedListPSAck PDUSessionResourceReleasedItemPSAck
    PDUSessionResourceReleasedListPSFail PDUSessionResourceReleasedItemPSFail
    PDUSessionResourceModifyListModInd PDUSessionResourceModifyItemModInd
    PDUSessionResourceModifyListModCfm PDUSessionResourceModifyItemModCfm
    PDUSessionResourceFailedToModifyListModCfm PDUSessionResourceFailedToModifyItemModCfm
}
convert!(wire::IMSVoiceSupportIndicator, wire::IMSVoiceSupportIndicator, Ok, |own| *own);
