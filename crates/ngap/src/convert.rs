//! Conversion between this crate's types and those of the codec.

use crate::error::Diagnostics;
use crate::types::{
    Cause, ModifyItem, NgConnection, ResetScope, SecurityCapabilities, SessionTransfer, SetupItem,
    SupportedTa, UeNgapIds, UserLocation,
};
use oxirush_ngap::ngap as wire;
use oxirush_ngap::{BitString, Bits, Octets};
use pith_types::{
    Ambr, AmfId, AmfUeNgapId, BitRate, FiveGSTmsi, FiveGTmsi, Guami, NrCellIdentity, Plmn, RanUeNgapId,
    Snssai, Tac, Tai,
};
use std::borrow::Cow;

/// A value that decodes but is invalid, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bad(pub &'static str);

/// Conversion from a value of the codec.
pub(crate) trait Read<W>: Sized {
    fn read(wire: W) -> Result<Self, Bad>;
}

/// Conversion to a value of the codec, which may borrow.
pub(crate) trait Write<'a, W> {
    fn write(&'a self) -> W;
}

/// Both conversions of a value without octets.
macro_rules! convert {
    ($own:ty, $wire:ty, $read:expr, $write:expr) => {
        impl Read<$wire> for $own {
            fn read(wire: $wire) -> Result<Self, Bad> {
                let read: fn($wire) -> Result<$own, Bad> = $read;
                read(wire)
            }
        }
        impl Write<'_, $wire> for $own {
            fn write(&self) -> $wire {
                let write: fn(&$own) -> $wire = $write;
                write(self)
            }
        }
    };
}

/// Both conversions of a list.
macro_rules! convert_list {
    ($own:ty, $list:ident, $item:ty) => {
        impl Read<wire::$list> for Vec<$own> {
            fn read(wire: wire::$list) -> Result<Self, Bad> {
                wire.0.into_iter().map(<$own as Read<$item>>::read).collect()
            }
        }
        impl Write<'_, wire::$list> for Vec<$own> {
            fn write(&self) -> wire::$list {
                wire::$list(self.iter().map(<$own as Write<'_, $item>>::write).collect())
            }
        }
    };
}

/// A PDU session with its transfer, in the item types of several lists.
macro_rules! convert_transfers {
    ($($list:ident $item:ident)*) => {$(
        impl<'a> Read<wire::$list<'a>> for Vec<SessionTransfer> {
            fn read(wire: wire::$list<'a>) -> Result<Self, Bad> {
                let item = |item: wire::$item<'a>| {
                    let wire::$item { pdu_session_id, ie_extensions: _, .. } = &item;
                    let pdu_session_id = pdu_session_id.0;
                    SessionTransfer { pdu_session_id, transfer: transfer_of(item) }
                };
                Ok(wire.0.into_iter().map(item).collect())
            }
        }
        impl<'a> Write<'a, wire::$list<'a>> for Vec<SessionTransfer> {
            fn write(&'a self) -> wire::$list<'a> {
                let item = |item: &'a SessionTransfer| {
                    wire::$item::new(wire::PDUSessionID(item.pdu_session_id), octets(&item.transfer), None)
                };
                wire::$list(self.iter().map(item).collect())
            }
        }
    )*};
}

/// Access to the transfer in an item, independent of its field's name.
trait HasTransfer {
    fn transfer(self) -> Vec<u8>;
}

fn transfer_of(item: impl HasTransfer) -> Vec<u8> {
    item.transfer()
}

macro_rules! has_transfer {
    ($($item:ident $field:ident)*) => {$(
        impl HasTransfer for wire::$item<'_> {
            fn transfer(self) -> Vec<u8> {
                self.$field.into_vec()
            }
        }
    )*};
}

fn octets(octets: &[u8]) -> Octets<'_> {
    Octets::from(octets)
}

convert!(RanUeNgapId, wire::RANUENGAPID, |w| Ok(Self(w.0)), |own| wire::RANUENGAPID(own.0));
convert!(
    AmfUeNgapId,
    wire::AMFUENGAPID,
    |w| Self::from_wire(w.0).ok_or(Bad("AMF-UE-NGAP-ID above 40 bits")),
    |own| wire::AMFUENGAPID(own.value())
);
convert!(u8, wire::RelativeAMFCapacity, |w| Ok(w.0), |own| wire::RelativeAMFCapacity(*own));
convert!(u8, wire::TrafficLoadReductionIndication, |w| Ok(w.0), |own| wire::TrafficLoadReductionIndication(
    *own
));
convert!(u64, wire::IndexToRFSP, |w| Ok(w.0), |own| wire::IndexToRFSP(*own));
convert!(Diagnostics, wire::CriticalityDiagnostics, |w| Ok(Self(w)), |own| own.0.clone());
convert!(wire::PagingDRX, wire::PagingDRX, Ok, |own| *own);
convert!(wire::TimeToWait, wire::TimeToWait, Ok, |own| *own);
convert!(wire::UERetentionInformation, wire::UERetentionInformation, Ok, |own| *own);
convert!(wire::RRCEstablishmentCause, wire::RRCEstablishmentCause, Ok, |own| *own);
// The IE is present or absent.
convert!((), wire::UEContextRequest, |_| Ok(()), |_| wire::UEContextRequest::requested);

convert!(
    Plmn,
    wire::PLMNIdentity,
    |w| Self::from_bcd(w.0).map_err(|_| Bad("PLMN Identity with digits above 9")),
    |own| wire::PLMNIdentity(own.to_bcd())
);
convert!(Tac, wire::TAC, |w| Ok(Self::from(w.0)), |own| wire::TAC(own.octets()));
convert!(
    Tai,
    wire::TAI,
    |w| Ok(Self { plmn_id: Read::read(w.plmn_identity)?, tac: Read::read(w.tac)? }),
    |own| wire::TAI::new(own.plmn_id.write(), own.tac.write(), None)
);
convert!(
    Snssai,
    wire::SNSSAI,
    |w| Ok(Self { sst: w.sst.0[0], sd: w.sd.map(|sd| sd.0).filter(|sd| *sd != [0xff; 3]) }),
    |own| wire::SNSSAI::new(wire::SST([own.sst]), own.sd.map(wire::SD), None)
);
convert!(
    Guami,
    wire::GUAMI,
    |w| {
        let amf_id = AmfId {
            region: w.amf_region_id.0.value() as u8,
            set: w.amf_set_id.0.value() as u16,
            pointer: w.amf_pointer.0.value() as u8,
        };
        Ok(Self { plmn_id: Read::read(w.plmn_identity)?, amf_id })
    },
    |own| {
        let AmfId { region, set, pointer } = own.amf_id;
        wire::GUAMI::new(
            own.plmn_id.write(),
            wire::AMFRegionID(Bits::low(region.into(), 8)),
            wire::AMFSetID(Bits::low(set.into(), 10)),
            wire::AMFPointer(Bits::low(pointer.into(), 6)),
            None,
        )
    }
);
convert!(
    FiveGSTmsi,
    wire::FiveGSTMSI,
    |w| Ok(Self {
        amf_set: w.amf_set_id.0.value() as u16,
        amf_pointer: w.amf_pointer.0.value() as u8,
        tmsi: FiveGTmsi(u32::from_be_bytes(w.five_g_tmsi.0)),
    }),
    |own| wire::FiveGSTMSI::new(
        wire::AMFSetID(Bits::low(own.amf_set.into(), 10)),
        wire::AMFPointer(Bits::low(own.amf_pointer.into(), 6)),
        wire::FiveGTMSI(own.tmsi.0.to_be_bytes()),
        None,
    )
);
convert!(
    FiveGSTmsi,
    wire::UEPagingIdentity,
    |w| match w {
        wire::UEPagingIdentity::fiveG_S_TMSI(tmsi) => Read::read(tmsi),
        _ => Err(Bad("UE Paging Identity of an unknown kind")),
    },
    |own| wire::UEPagingIdentity::fiveG_S_TMSI(own.write())
);
convert!(
    Ambr,
    wire::UEAggregateMaximumBitRate,
    |w| Ok(Self {
        downlink: BitRate(w.ue_aggregate_maximum_bit_rate_dl.0),
        uplink: BitRate(w.ue_aggregate_maximum_bit_rate_ul.0),
    }),
    |own| wire::UEAggregateMaximumBitRate::new(
        wire::BitRate(own.downlink.bps()),
        wire::BitRate(own.uplink.bps()),
        None
    )
);
convert!(
    Cause,
    wire::Cause,
    |w| match w {
        wire::Cause::radioNetwork(cause) => Ok(Self::RadioNetwork(cause)),
        wire::Cause::transport(cause) => Ok(Self::Transport(cause)),
        wire::Cause::nas(cause) => Ok(Self::Nas(cause)),
        wire::Cause::protocol(cause) => Ok(Self::Protocol(cause)),
        wire::Cause::misc(cause) => Ok(Self::Misc(cause)),
        _ => Ok(Self::Misc(wire::CauseMisc::unspecified)),
    },
    |own| match *own {
        Self::RadioNetwork(cause) => wire::Cause::radioNetwork(cause),
        Self::Transport(cause) => wire::Cause::transport(cause),
        Self::Nas(cause) => wire::Cause::nas(cause),
        Self::Protocol(cause) => wire::Cause::protocol(cause),
        Self::Misc(cause) => wire::Cause::misc(cause),
    }
);
impl Read<wire::UserLocationInformation<'_>> for UserLocation {
    fn read(wire: wire::UserLocationInformation<'_>) -> Result<Self, Bad> {
        let wire::UserLocationInformation::userLocationInformationNR(nr) = wire else {
            return Err(Bad("User Location Information that is not of NR"));
        };
        Ok(Self {
            cell_plmn: Read::read(nr.nr_cgi.plmn_identity)?,
            cell: NrCellIdentity::new(nr.nr_cgi.nr_cell_identity.0.value()),
            tai: Read::read(nr.tai)?,
        })
    }
}

impl<'a> Write<'a, wire::UserLocationInformation<'a>> for UserLocation {
    fn write(&'a self) -> wire::UserLocationInformation<'a> {
        let cell = wire::NRCellIdentity(Bits::low(self.cell.value(), 36));
        let cgi = wire::NRCGI::new(self.cell_plmn.write(), cell, None);
        let nr = wire::UserLocationInformationNR::new(cgi, self.tai.write(), None, None);
        wire::UserLocationInformation::userLocationInformationNR(nr)
    }
}

convert!(
    UeNgapIds,
    wire::UENGAPIDs,
    |w| match w {
        wire::UENGAPIDs::uE_NGAP_ID_pair(pair) => {
            Ok(Self::Pair(Read::read(pair.amf_ue_ngap_id)?, Read::read(pair.ran_ue_ngap_id)?))
        }
        wire::UENGAPIDs::aMF_UE_NGAP_ID(amf) => Ok(Self::Amf(Read::read(amf)?)),
        _ => Err(Bad("UE NGAP IDs of an unknown kind")),
    },
    |own| match own {
        Self::Pair(amf, ran) => {
            wire::UENGAPIDs::uE_NGAP_ID_pair(wire::UENGAPIDPair::new(amf.write(), ran.write(), None))
        }
        Self::Amf(amf) => wire::UENGAPIDs::aMF_UE_NGAP_ID(amf.write()),
    }
);
convert!(
    NgConnection,
    wire::UEAssociatedLogicalNGConnectionItem,
    |w| Ok(Self {
        amf_ue_ngap_id: w.amf_ue_ngap_id.map(Read::read).transpose()?,
        ran_ue_ngap_id: w.ran_ue_ngap_id.map(Read::read).transpose()?,
    }),
    |own| wire::UEAssociatedLogicalNGConnectionItem::new(
        own.amf_ue_ngap_id.as_ref().map(Write::write),
        own.ran_ue_ngap_id.as_ref().map(Write::write),
        None,
    )
);
convert!(
    ResetScope,
    wire::ResetType,
    |w| match w {
        wire::ResetType::nG_Interface(_) => Ok(Self::NgInterface),
        wire::ResetType::partOfNG_Interface(part) => Ok(Self::Part(Read::read(part)?)),
        _ => Err(Bad("Reset Type of an unknown kind")),
    },
    |own| match own {
        Self::NgInterface => wire::ResetType::nG_Interface(wire::ResetAll::reset_all),
        Self::Part(part) => wire::ResetType::partOfNG_Interface(part.write()),
    }
);
convert!(
    SupportedTa,
    wire::SupportedTAItem,
    |w| {
        let plmns = w.broadcast_plmn_list.0.into_iter();
        let plmns = plmns.map(|p| Ok((Read::read(p.plmn_identity)?, Read::read(p.tai_slice_support_list)?)));
        Ok(Self { tac: Read::read(w.tac)?, plmns: plmns.collect::<Result<_, Bad>>()? })
    },
    |own| {
        let plmn = |(plmn, slices): &(Plmn, Vec<Snssai>)| {
            wire::BroadcastPLMNItem::new(plmn.write(), slices.write(), None)
        };
        let plmns = wire::BroadcastPLMNList(own.plmns.iter().map(plmn).collect());
        wire::SupportedTAItem::new(own.tac.write(), plmns, None)
    }
);
convert!(
    (Plmn, Vec<Snssai>),
    wire::PLMNSupportItem,
    |w| Ok((Read::read(w.plmn_identity)?, Read::read(w.slice_support_list)?)),
    |own| wire::PLMNSupportItem::new(own.0.write(), own.1.write(), None)
);
convert!(Snssai, wire::SliceSupportItem, |w| Read::read(w.s_nssai), |own| wire::SliceSupportItem::new(
    own.write(),
    None
));
convert!(Snssai, wire::AllowedNSSAIItem, |w| Read::read(w.s_nssai), |own| wire::AllowedNSSAIItem::new(
    own.write(),
    None
));
convert!(Tai, wire::TAIListForPagingItem, |w| Read::read(w.tai), |own| wire::TAIListForPagingItem::new(
    own.write(),
    None
));
convert!(u8, wire::PDUSessionResourceItemCxtRelReq, |w| Ok(w.pdu_session_id.0), |own| {
    wire::PDUSessionResourceItemCxtRelReq::new(wire::PDUSessionID(*own), None)
});
convert!(u8, wire::PDUSessionResourceItemCxtRelCpl, |w| Ok(w.pdu_session_id.0), |own| {
    wire::PDUSessionResourceItemCxtRelCpl::new(wire::PDUSessionID(*own), None)
});

convert_list!(Snssai, SliceSupportList, wire::SliceSupportItem);
convert_list!(Snssai, AllowedNSSAI, wire::AllowedNSSAIItem);
convert_list!(Tai, TAIListForPaging, wire::TAIListForPagingItem);
convert_list!(SupportedTa, SupportedTAList, wire::SupportedTAItem);
convert_list!((Plmn, Vec<Snssai>), PLMNSupportList, wire::PLMNSupportItem);
convert_list!(NgConnection, UEAssociatedLogicalNGConnectionList, wire::UEAssociatedLogicalNGConnectionItem);
convert_list!(u8, PDUSessionResourceListCxtRelReq, wire::PDUSessionResourceItemCxtRelReq);
convert_list!(u8, PDUSessionResourceListCxtRelCpl, wire::PDUSessionResourceItemCxtRelCpl);

impl Read<wire::ServedGUAMIList<'_>> for Vec<Guami> {
    fn read(wire: wire::ServedGUAMIList<'_>) -> Result<Self, Bad> {
        wire.0.into_iter().map(|item| Read::read(item.guami)).collect()
    }
}

impl<'a> Write<'a, wire::ServedGUAMIList<'a>> for Vec<Guami> {
    fn write(&'a self) -> wire::ServedGUAMIList<'a> {
        wire::ServedGUAMIList(
            self.iter().map(|own| wire::ServedGUAMIItem::new(own.write(), None, None)).collect(),
        )
    }
}

impl Read<wire::NASPDU<'_>> for Vec<u8> {
    fn read(wire: wire::NASPDU<'_>) -> Result<Self, Bad> {
        Ok(wire.0.into_vec())
    }
}

impl<'a> Write<'a, wire::NASPDU<'a>> for Vec<u8> {
    fn write(&'a self) -> wire::NASPDU<'a> {
        wire::NASPDU(octets(self))
    }
}

impl Read<wire::UERadioCapability<'_>> for Vec<u8> {
    fn read(wire: wire::UERadioCapability<'_>) -> Result<Self, Bad> {
        Ok(wire.0.into_vec())
    }
}

impl<'a> Write<'a, wire::UERadioCapability<'a>> for Vec<u8> {
    fn write(&'a self) -> wire::UERadioCapability<'a> {
        wire::UERadioCapability(octets(self))
    }
}

impl Read<wire::RANNodeName<'_>> for String {
    fn read(wire: wire::RANNodeName<'_>) -> Result<Self, Bad> {
        Ok(wire.0.into_owned())
    }
}

impl<'a> Write<'a, wire::RANNodeName<'a>> for String {
    fn write(&'a self) -> wire::RANNodeName<'a> {
        wire::RANNodeName(Cow::Borrowed(self))
    }
}

impl Read<wire::AMFName<'_>> for String {
    fn read(wire: wire::AMFName<'_>) -> Result<Self, Bad> {
        Ok(wire.0.into_owned())
    }
}

impl<'a> Write<'a, wire::AMFName<'a>> for String {
    fn write(&'a self) -> wire::AMFName<'a> {
        wire::AMFName(Cow::Borrowed(self))
    }
}

/// K_gNB: 256 bits.
impl Read<wire::SecurityKey<'_>> for [u8; 32] {
    fn read(wire: wire::SecurityKey<'_>) -> Result<Self, Bad> {
        wire.0.as_octets().try_into().map_err(|_| Bad("Security Key that has not 256 bits"))
    }
}

impl<'a> Write<'a, wire::SecurityKey<'a>> for [u8; 32] {
    fn write(&'a self) -> wire::SecurityKey<'a> {
        wire::SecurityKey(BitString::from_octets(&self[..]))
    }
}

/// IMEISV with four digits masked: 64 bits.
impl Read<wire::MaskedIMEISV> for [u8; 8] {
    fn read(wire: wire::MaskedIMEISV) -> Result<Self, Bad> {
        Ok(wire.0.value().to_be_bytes())
    }
}

impl Write<'_, wire::MaskedIMEISV> for [u8; 8] {
    fn write(&self) -> wire::MaskedIMEISV {
        wire::MaskedIMEISV(Bits::low(u64::from_be_bytes(*self), 64))
    }
}

fn algorithms(bits: &BitString<'_>) -> u16 {
    match *bits.as_octets() {
        [high, low, ..] => u16::from_be_bytes([high, low]),
        [high] => u16::from_be_bytes([high, 0]),
        [] => 0,
    }
}

impl Read<wire::UESecurityCapabilities<'_>> for SecurityCapabilities {
    fn read(wire: wire::UESecurityCapabilities<'_>) -> Result<Self, Bad> {
        Ok(Self {
            nr_encryption: algorithms(&wire.nr_encryption_algorithms.0),
            nr_integrity: algorithms(&wire.nr_integrity_protection_algorithms.0),
            eutra_encryption: algorithms(&wire.eutra_encryption_algorithms.0),
            eutra_integrity: algorithms(&wire.eutra_integrity_protection_algorithms.0),
        })
    }
}

impl<'a> Write<'a, wire::UESecurityCapabilities<'a>> for SecurityCapabilities {
    fn write(&'a self) -> wire::UESecurityCapabilities<'a> {
        let bits = |algorithms: u16| BitString::from(algorithms.to_be_bytes());
        wire::UESecurityCapabilities::new(
            wire::NRencryptionAlgorithms(bits(self.nr_encryption)),
            wire::NRintegrityProtectionAlgorithms(bits(self.nr_integrity)),
            wire::EUTRAencryptionAlgorithms(bits(self.eutra_encryption)),
            wire::EUTRAintegrityProtectionAlgorithms(bits(self.eutra_integrity)),
            None,
        )
    }
}

impl Read<wire::PDUSessionResourceSetupListSUReq<'_>> for Vec<SetupItem> {
    fn read(wire: wire::PDUSessionResourceSetupListSUReq<'_>) -> Result<Self, Bad> {
        let item = |item: wire::PDUSessionResourceSetupItemSUReq<'_>| {
            Ok(SetupItem {
                pdu_session_id: item.pdu_session_id.0,
                nas_pdu: item.pdu_session_nas_pdu.map(|nas| nas.0.into_vec()),
                snssai: Read::read(item.s_nssai)?,
                transfer: item.pdu_session_resource_setup_request_transfer.into_vec(),
            })
        };
        wire.0.into_iter().map(item).collect()
    }
}

impl<'a> Write<'a, wire::PDUSessionResourceSetupListSUReq<'a>> for Vec<SetupItem> {
    fn write(&'a self) -> wire::PDUSessionResourceSetupListSUReq<'a> {
        let item = |item: &'a SetupItem| {
            wire::PDUSessionResourceSetupItemSUReq::new(
                wire::PDUSessionID(item.pdu_session_id),
                item.nas_pdu.as_ref().map(Write::write),
                item.snssai.write(),
                octets(&item.transfer),
                None,
            )
        };
        wire::PDUSessionResourceSetupListSUReq(self.iter().map(item).collect())
    }
}

impl Read<wire::PDUSessionResourceSetupListCxtReq<'_>> for Vec<SetupItem> {
    fn read(wire: wire::PDUSessionResourceSetupListCxtReq<'_>) -> Result<Self, Bad> {
        let item = |item: wire::PDUSessionResourceSetupItemCxtReq<'_>| {
            Ok(SetupItem {
                pdu_session_id: item.pdu_session_id.0,
                nas_pdu: item.nas_pdu.map(|nas| nas.0.into_vec()),
                snssai: Read::read(item.s_nssai)?,
                transfer: item.pdu_session_resource_setup_request_transfer.into_vec(),
            })
        };
        wire.0.into_iter().map(item).collect()
    }
}

impl<'a> Write<'a, wire::PDUSessionResourceSetupListCxtReq<'a>> for Vec<SetupItem> {
    fn write(&'a self) -> wire::PDUSessionResourceSetupListCxtReq<'a> {
        let item = |item: &'a SetupItem| {
            wire::PDUSessionResourceSetupItemCxtReq::new(
                wire::PDUSessionID(item.pdu_session_id),
                item.nas_pdu.as_ref().map(Write::write),
                item.snssai.write(),
                octets(&item.transfer),
                None,
            )
        };
        wire::PDUSessionResourceSetupListCxtReq(self.iter().map(item).collect())
    }
}

impl Read<wire::PDUSessionResourceModifyListModReq<'_>> for Vec<ModifyItem> {
    fn read(wire: wire::PDUSessionResourceModifyListModReq<'_>) -> Result<Self, Bad> {
        let item = |item: wire::PDUSessionResourceModifyItemModReq<'_>| ModifyItem {
            pdu_session_id: item.pdu_session_id.0,
            nas_pdu: item.nas_pdu.map(|nas| nas.0.into_vec()),
            transfer: item.pdu_session_resource_modify_request_transfer.into_vec(),
        };
        Ok(wire.0.into_iter().map(item).collect())
    }
}

impl<'a> Write<'a, wire::PDUSessionResourceModifyListModReq<'a>> for Vec<ModifyItem> {
    fn write(&'a self) -> wire::PDUSessionResourceModifyListModReq<'a> {
        let item = |item: &'a ModifyItem| {
            wire::PDUSessionResourceModifyItemModReq::new(
                wire::PDUSessionID(item.pdu_session_id),
                item.nas_pdu.as_ref().map(Write::write),
                octets(&item.transfer),
                None,
            )
        };
        wire::PDUSessionResourceModifyListModReq(self.iter().map(item).collect())
    }
}

has_transfer! {
    PDUSessionResourceSetupItemSURes pdu_session_resource_setup_response_transfer
    PDUSessionResourceSetupItemCxtRes pdu_session_resource_setup_response_transfer
    PDUSessionResourceFailedToSetupItemSURes pdu_session_resource_setup_unsuccessful_transfer
    PDUSessionResourceFailedToSetupItemCxtRes pdu_session_resource_setup_unsuccessful_transfer
    PDUSessionResourceFailedToSetupItemCxtFail pdu_session_resource_setup_unsuccessful_transfer
    PDUSessionResourceToReleaseItemRelCmd pdu_session_resource_release_command_transfer
    PDUSessionResourceReleasedItemRelRes pdu_session_resource_release_response_transfer
    PDUSessionResourceFailedToModifyItemModRes pdu_session_resource_modify_unsuccessful_transfer
    PDUSessionResourceNotifyItem pdu_session_resource_notify_transfer
    PDUSessionResourceReleasedItemNot pdu_session_resource_notify_released_transfer
    PDUSessionResourceModifyItemModRes pdu_session_resource_modify_response_transfer
}

convert_transfers! {
    PDUSessionResourceSetupListSURes PDUSessionResourceSetupItemSURes
    PDUSessionResourceSetupListCxtRes PDUSessionResourceSetupItemCxtRes
    PDUSessionResourceFailedToSetupListSURes PDUSessionResourceFailedToSetupItemSURes
    PDUSessionResourceFailedToSetupListCxtRes PDUSessionResourceFailedToSetupItemCxtRes
    PDUSessionResourceFailedToSetupListCxtFail PDUSessionResourceFailedToSetupItemCxtFail
    PDUSessionResourceToReleaseListRelCmd PDUSessionResourceToReleaseItemRelCmd
    PDUSessionResourceReleasedListRelRes PDUSessionResourceReleasedItemRelRes
    PDUSessionResourceFailedToModifyListModRes PDUSessionResourceFailedToModifyItemModRes
    PDUSessionResourceNotifyList PDUSessionResourceNotifyItem
    PDUSessionResourceReleasedListNot PDUSessionResourceReleasedItemNot
    PDUSessionResourceModifyListModRes PDUSessionResourceModifyItemModRes
}

mod mobility;
mod node;
mod reroute;
mod tnla;
mod trace;
