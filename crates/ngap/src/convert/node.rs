//! Identities of RAN nodes (TS 38.413 9.3.1.5 to 9.3.1.8, 9.3.1.57).

use super::{Bad, Read, Write};
use crate::types::GlobalRanNodeId;
use oxirush_ngap::Bits;
use oxirush_ngap::ngap as wire;

convert!(GlobalRanNodeId, wire::GlobalRANNodeID, read_node, write_node);

fn read_node(node: wire::GlobalRANNodeID) -> Result<GlobalRanNodeId, Bad> {
    match node {
        wire::GlobalRANNodeID::globalGNB_ID(gnb) => {
            let wire::GNBID::gNB_ID(id) = gnb.gnb_id else {
                return Err(Bad("gNB ID of an unknown kind"));
            };
            let plmn = Read::read(gnb.plmn_identity)?;
            Ok(GlobalRanNodeId::Gnb { plmn, id: id.value() as u32, bits: id.len() as u8 })
        }
        wire::GlobalRANNodeID::globalNgENB_ID(enb) => {
            let plmn = Read::read(enb.plmn_identity)?;
            let (id, bits) = read_enb_id(enb.ng_enb_id)?;
            Ok(GlobalRanNodeId::NgEnb { plmn, id, bits })
        }
        wire::GlobalRANNodeID::globalN3IWF_ID(n3iwf) => {
            let wire::N3IWFID::n3IWF_ID(id) = n3iwf.n3iwf_id else {
                return Err(Bad("N3IWF ID of an unknown kind"));
            };
            Ok(GlobalRanNodeId::N3iwf { plmn: Read::read(n3iwf.plmn_identity)?, id: id.value() as u16 })
        }
        _ => Err(Bad("Global RAN Node ID of an unknown kind")),
    }
}

fn write_node(node: &GlobalRanNodeId) -> wire::GlobalRANNodeID {
    match *node {
        GlobalRanNodeId::Gnb { plmn, id, bits } => {
            let id = wire::GNBID::gNB_ID(Bits::low(id.into(), bits.clamp(22, 32).into()));
            wire::GlobalRANNodeID::globalGNB_ID(wire::GlobalGNBID::new(plmn.write(), id, None))
        }
        GlobalRanNodeId::NgEnb { plmn, id, bits } => {
            let id = write_enb_id(id, bits);
            wire::GlobalRANNodeID::globalNgENB_ID(wire::GlobalNgENBID::new(plmn.write(), id, None))
        }
        GlobalRanNodeId::N3iwf { plmn, id } => {
            let id = wire::N3IWFID::n3IWF_ID(Bits::low(id.into(), 16));
            wire::GlobalRANNodeID::globalN3IWF_ID(wire::GlobalN3IWFID::new(plmn.write(), id, None))
        }
    }
}

/// ID and length of an ng-eNB or eNB, which have the same format.
pub(super) fn read_enb_id(id: wire::NgENBID) -> Result<(u32, u8), Bad> {
    match id {
        wire::NgENBID::macroNgENB_ID(id)
        | wire::NgENBID::shortMacroNgENB_ID(id)
        | wire::NgENBID::longMacroNgENB_ID(id) => Ok((id.value() as u32, id.len() as u8)),
        _ => Err(Bad("eNB ID of an unknown kind")),
    }
}

pub(super) fn write_enb_id(id: u32, bits: u8) -> wire::NgENBID {
    match bits {
        18 => wire::NgENBID::shortMacroNgENB_ID(Bits::low(id.into(), 18)),
        21 => wire::NgENBID::longMacroNgENB_ID(Bits::low(id.into(), 21)),
        _ => wire::NgENBID::macroNgENB_ID(Bits::low(id.into(), 20)),
    }
}
