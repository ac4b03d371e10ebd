//! [`Pack`] for the types of the wire band: identities, keys, messages.
//!
//! A NAS message is written as its NAS octets, an SBI body as its JSON with the binary parts after it (but see [`super::bodies`]): what the specifications keep
//! readable from release to release stays readable here.

use super::pack::text;
use super::{Pack, PackError, Reader, UnpackError, Writer, pack_enum, pack_struct};
use bytes::Bytes;
use pith_crypto::algorithm::Res;
use pith_crypto::keys::{HresStar, KAmf, KAut, KSeaf, Rand, ResStar};
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_nas::gmm::RegistrationRequest;
use pith_nas::ie::{RegistrationKind, SnssaiRejection, UeSecurityCapability};
use pith_nas::security::Algorithms;
use pith_nas::{GmmCause, GmmMessage, GsmCause, NasCount};
use pith_ngap::transfer::HandoverPreparationUnsuccessfulTransfer;
use pith_ngap::transfer::Tunnel;
use pith_ngap::{Cause, HandoverItem, SessionTransfer, SetupItem, UserLocation};
use pith_sbi::common::{BinaryData, DateTime, SupiOrSuci};
use pith_sbi::nausf_ueauthentication::Av5gAka;
use pith_sbi::nnrf_nfmanagement::{NfProfile, SubscriptionData};
use pith_sbi::nsmf_pdusession::SmContextUpdateData;
use pith_sbi::{ApiRoot, Hex, NfInstanceId, Scheme, Uri};
use pith_types::{
    Ambr, AmfId, AmfUeNgapId, BitRate, Dnn, FiveGGuti, FiveGTmsi, Guami, NrCellIdentity, Pei, Plmn,
    RanUeNgapId, SchemeOutput, Seid, Snssai, Suci, Supi, Tac, Tai, Teid, UeIdentity,
};
use std::sync::Arc;

/// Implements [`Pack`] for a newtype or a number-like type: what is written, and how it is made again; `None` if it is not a value.
macro_rules! pack_as {
    ($($type:ty as $wire:ty: |$value:ident| $out:expr, |$read:ident| $in:expr;)+) => {$(
        impl Pack for $type {
            fn pack(&self, writer: &mut Writer<'_>) {
                let $value = self;
                <$wire as Pack>::pack(&$out, writer);
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
                let $read = <$wire as Pack>::unpack(reader)?;
                let made: Option<Self> = $in;
                made.ok_or_else(|| reader.malformed(stringify!($type)))
            }
        }
    )+};
}

pack_as! {
    Plmn as [u8; 3]: |plmn| plmn.to_bcd(), |octets| Self::from_bcd(octets).ok();
    Tac as [u8; 3]: |tac| tac.octets(), |octets| Some(Self::from(octets));
    AmfId as u32: |id| id.to_bits(), |bits| Some(Self::from_bits(bits));
    FiveGTmsi as u32: |tmsi| tmsi.0, |tmsi| Some(Self(tmsi));
    NrCellIdentity as u64: |cell| cell.value(), |cell| Some(Self::new(cell));
    AmfUeNgapId as u64: |id| id.value(), |id| Self::from_wire(id);
    RanUeNgapId as u32: |id| id.0, |id| Some(Self(id));
    Teid as u32: |teid| teid.0, |teid| Some(Self(teid));
    Seid as u64: |seid| seid.0, |seid| Some(Self(seid));
    BitRate as u64: |rate| rate.0, |rate| Some(Self(rate));
    NfInstanceId as u128: |id| id.0, |id| Some(Self(id));
    DateTime as u64: |time| zigzag(time.unix_ms()), |time| Some(Self::from_unix_ms(unzigzag(time)));
    NasCount as u32: |count| count.value(), |count| Self::new(count);
    GmmCause as u8: |cause| cause.code(), |code| Some(Self::from_code(code));
    GsmCause as u8: |cause| cause.code(), |code| Some(Self::from_code(code));
    RegistrationKind as u8: |kind| kind.code(), |code| Some(Self::from_code(code));
    SnssaiRejection as u8: |rejection| rejection.code(), |code| Some(Self::from_code(code));
    IntegrityAlgorithm as u8: |algorithm| *algorithm as u8, |number| number.try_into().ok();
    Hex<16> as [u8; 16]: |hex| hex.0, |octets| Some(Self(octets));
    CipheringAlgorithm as u8: |algorithm| *algorithm as u8, |number| number.try_into().ok();
}

const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Implements [`Pack`] for a type that is its text.
macro_rules! pack_text {
    ($($type:ty),+) => {$(
        impl Pack for $type {
            fn pack(&self, writer: &mut Writer<'_>) {
                writer.counted(self.as_str().as_bytes());
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
                let text = text(reader)?;
                text.parse().map_err(|_| reader.malformed(stringify!($type)))
            }
        }
    )+};
}

pack_text!(Supi, Pei, UeIdentity, Dnn);

/// Implements [`Pack`] for keys and challenge values, of fixed length, in cleartext.
macro_rules! pack_octets {
    ($($type:ident),+) => {$(
        impl Pack for $type {
            fn pack(&self, writer: &mut Writer<'_>) {
                writer.put(self.as_bytes());
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
                let octets = reader.take(Self::LEN)?;
                Self::try_from(octets).map_err(|_| reader.malformed(stringify!($type)))
            }
        }
    )+};
}

/// An NGAP cause, as NGAP encodes it in a transfer.
impl Pack for Cause {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.counted(&HandoverPreparationUnsuccessfulTransfer { cause: *self }.encode());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let transfer = HandoverPreparationUnsuccessfulTransfer::decode(reader.counted()?);
        transfer.map(|transfer| transfer.cause).map_err(|_| reader.malformed("NGAP cause"))
    }
}

pack_octets!(KAmf, KSeaf, KAut, Rand, ResStar, HresStar);

pack_struct!(Ambr { uplink, downlink });
pack_struct!(Guami { plmn_id, amf_id });
pack_struct!(FiveGGuti { guami, tmsi });
pack_struct!(Snssai { sst, sd });
pack_struct!(Tai { plmn_id, tac });
pack_struct!(Tunnel { address, teid });
pack_struct!(UserLocation { cell_plmn, cell, tai });
pack_struct!(SetupItem { pdu_session_id, nas_pdu, snssai, transfer });
pack_struct!(HandoverItem { pdu_session_id, snssai, transfer });
pack_struct!(SessionTransfer { pdu_session_id, transfer });
pack_struct!(Algorithms { integrity, ciphering });
pack_enum!(Scheme { 0 => Http, 1 => Https });
pack_struct!(ApiRoot { scheme, authority, prefix });
pack_struct!(Uri { root, path });
pack_struct!(Av5gAka { rand, hxres_star, autn });

pack_enum!(SupiOrSuci { 0 => Supi(supi), 1 => Suci(suci) });

/// The scheme, then the digits of the MSIN or the scheme's output. Its parts are checked as in the text form (TS 29.571 `Suci`).
impl Pack for Suci {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { plmn, routing_indicator, home_network_key_id, output } = self;
        plmn.pack(writer);
        routing_indicator.pack(writer);
        home_network_key_id.pack(writer);
        self.scheme().pack(writer);
        match output {
            SchemeOutput::Null(msin) => msin.pack(writer),
            SchemeOutput::Concealed { output, .. } => writer.counted(output),
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let plmn = Plmn::unpack(reader)?;
        let routing_indicator = digits(reader, 4)?;
        let home_network_key_id = u8::unpack(reader)?;
        let output = match reader.octet()? {
            0 => SchemeOutput::Null(digits(reader, 10)?),
            scheme @ 1..16 => SchemeOutput::Concealed { scheme, output: reader.counted()?.into() },
            _ => return Err(reader.malformed("protection scheme")),
        };
        Ok(Self { plmn, routing_indicator, home_network_key_id, output })
    }
}

/// One to `most` digits.
fn digits(reader: &mut Reader<'_>, most: usize) -> Result<Arc<str>, UnpackError> {
    let text = text(reader)?;
    let are_digits = (1..=most).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
    if are_digits { Ok(text.into()) } else { Err(reader.malformed("digits")) }
}

impl Pack for Arc<ApiRoot> {
    fn pack(&self, writer: &mut Writer<'_>) {
        ApiRoot::pack(self, writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        ApiRoot::unpack(reader).map(Self::new)
    }
}

impl Pack for Bytes {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.counted(self);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        reader.counted().map(Self::copy_from_slice)
    }
}

impl Pack for Res {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.counted(self.as_bytes());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let octets = reader.counted()?;
        Self::from_octets(octets).ok_or_else(|| reader.malformed("RES of 4 to 16 octets"))
    }
}

impl Pack for UeSecurityCapability {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.counted(self.octets());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let octets = reader.counted()?;
        Self::from_octets(octets).ok_or_else(|| reader.malformed("UE security capability"))
    }
}

impl Pack for RegistrationRequest {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.counted(&GmmMessage::from(self.clone()).encode());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        match GmmMessage::decode(reader.counted()?) {
            Ok(GmmMessage::RegistrationRequest(request)) => Ok(*request),
            _ => Err(reader.malformed("REGISTRATION REQUEST")),
        }
    }
}

/// A value as its JSON; for SBI bodies, whose members the OpenAPI files define.
pub(crate) struct Json;

impl Json {
    /// Writes a value.
    pub fn pack(value: &impl serde::Serialize, writer: &mut Writer<'_>) {
        if writer.counted_by(|writer| serde_json::to_writer(writer, value)).is_err() {
            writer.fail(PackError::NoJson);
        }
    }

    /// Reads a value.
    pub fn unpack<T: serde::de::DeserializeOwned>(
        reader: &mut Reader<'_>,
        expected: &'static str,
    ) -> Result<T, UnpackError> {
        let text = reader.counted()?;
        serde_json::from_slice(text).map_err(|_| reader.malformed(expected))
    }
}

/// Implements [`Pack`] for SBI bodies without binary parts.
macro_rules! pack_json {
    ($($type:ty),+) => {$(
        impl Pack for $type {
            fn pack(&self, writer: &mut Writer<'_>) {
                Json::pack(self, writer);
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
                Json::unpack(reader, stringify!($type))
            }
        }
    )+};
}

pack_json!(NfProfile, SubscriptionData);

/// The JSON of a body has only references to its binary parts: their octets follow.
impl Pack for SmContextUpdateData {
    fn pack(&self, writer: &mut Writer<'_>) {
        Json::pack(self, writer);
        for part in [&self.n1_sm_msg, &self.n2_sm_info, &self.n2_sm_info_ext1].into_iter().flatten() {
            writer.counted(&part.content);
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let mut body: Self = Json::unpack(reader, "SmContextUpdateData")?;
        let parts: [&mut Option<BinaryData>; 3] =
            [&mut body.n1_sm_msg, &mut body.n2_sm_info, &mut body.n2_sm_info_ext1];
        for part in parts.into_iter().flatten() {
            part.content = Bytes::copy_from_slice(reader.counted()?);
        }
        Ok(body)
    }
}
