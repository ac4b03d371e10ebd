//! [`Pack`] for the SBI bodies that contexts of the PCF are: members that most of them have in binary form, all others as JSON.
//!
//! JSON took a third of what storing a UE's contexts costs: identities become texts, one by one.

use super::values::Json;
use super::{Pack, Reader, UnpackError, Writer, pack_enum, pack_struct};
use pith_sbi::Uri;
use pith_sbi::common::{
    AccessType, Arp, GNbId, GlobalRanNodeId, Ncgi, NrLocation, PduSessionType, PlmnIdNid,
    PreemptionCapability, PreemptionVulnerability, RatType, SubscribedDefaultQos, SupportedFeatures,
    UserLocation,
};
use pith_sbi::npcf_ampolicycontrol::PolicyAssociationRequest;
use pith_sbi::npcf_smpolicycontrol::{ServingNfIdentity, SmPolicyContextData};
use pith_types::{Dnn, Snssai, Supi};

/// Implements [`Pack`] for an extensible enumeration of strings: its text.
macro_rules! pack_open_enum {
    ($($type:ty),+) => {$(
        impl Pack for $type {
            fn pack(&self, writer: &mut Writer<'_>) {
                writer.counted(self.as_str().as_bytes());
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
                super::pack::text(reader).map(Self::from)
            }
        }
    )+};
}

pack_enum!(AccessType { 0 => ThreeGppAccess, 1 => NonThreeGppAccess });
pack_open_enum!(RatType, PduSessionType, PreemptionCapability, PreemptionVulnerability);
pack_struct!(PlmnIdNid { plmn_id, nid });
pack_struct!(UserLocation { nr_location });
pack_struct!(NrLocation { tai, ncgi, age_of_location_information, ue_location_timestamp, global_gnb_id });
pack_struct!(Ncgi { plmn_id, nr_cell_id, nid });
pack_struct!(GlobalRanNodeId { plmn_id, g_nb_id });
pack_struct!(GNbId { bit_length, g_nb_value });
pack_struct!(Arp { priority_level, preempt_cap, preempt_vuln });
pack_struct!(SubscribedDefaultQos { five_qi, arp, priority_level });
pack_struct!(ServingNfIdentity { serv_nf_inst_id, guami });

impl Pack for SupportedFeatures {
    fn pack(&self, writer: &mut Writer<'_>) {
        self.0.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        u128::unpack(reader).map(Self)
    }
}

/// Implements [`Pack`] for a body: its required members, those optional members, and if it has further ones, the rest as JSON.
macro_rules! pack_body {
    ($type:ident { $($required:ident: $of:ty),+ } { $($member:ident),+ $(,)? }) => {
        impl Pack for $type {
            fn pack(&self, writer: &mut Writer<'_>) {
                $(self.$required.pack(writer);)+
                $(self.$member.pack(writer);)+
                let plain = $type::new($(self.$required.clone()),+);
                let rest = Self { $($member: plain.$member.clone(),)+ ..self.clone() };
                let has_rest = rest != plain;
                has_rest.pack(writer);
                if has_rest {
                    Json::pack(&rest, writer);
                }
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
                $(let $required = <$of>::unpack(reader)?;)+
                let plain = Self { $($member: Pack::unpack(reader)?,)+ ..$type::new($($required),+) };
                if !bool::unpack(reader)? {
                    return Ok(plain);
                }
                let rest: Self = Json::unpack(reader, stringify!($type))?;
                Ok(Self { $($required: plain.$required,)+ $($member: plain.$member,)+ ..rest })
            }
        }
    };
}

pack_body!(PolicyAssociationRequest { notification_uri: Uri, supi: Supi, supp_feat: SupportedFeatures } {
    gpsi, access_type, pei, user_loc, serving_plmn, rat_type, rfsp, ue_ambr, guami, allowed_snssais
});
pack_body!(SmPolicyContextData {
    supi: Supi, pdu_session_id: u8, pdu_session_type: PduSessionType, dnn: Dnn, notification_uri: Uri, slice_info: Snssai
} {
    gpsi, access_type, rat_type, serving_network, user_location_info, ue_time_zone, pei, ipv4_address, subs_sess_ambr,
    subs_def_qos, serv_nf_id, smf_id
});
