//! The chain of keys of the access stratum: NH and NCC (TS 33.501 6.9.2.1.1), and the K_AMF from which it is derived.

use super::context::UeContext;
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_struct};
use pith_crypto::kdf::{self, AccessType};
use pith_crypto::keys::{KAmf, Nh};
use pith_nas::NasCount;

/// The keys of the UE's access stratum, while it is connected: nothing until the first handover.
#[derive(Debug, Default)]
pub(crate) struct AccessKeys(Option<Box<Chain>>);

#[derive(Debug, Default)]
struct Chain {
    /// NH and NCC that a gNB got last; `None`: the gNB has K_gNB of the connection, with NCC 0.
    last: Option<NextHop>,
    /// The base of the chain, while the gNB has not taken K_gNB of a newer K_AMF into use (TS 33.501 6.9.5.1): K_AMF, and the
    /// uplink NAS COUNT of K_gNB.
    former: Option<(KAmf, NasCount)>,
}

/// NH and NCC.
#[derive(Debug, Clone)]
pub(crate) struct NextHop {
    pub nh: Nh,
    pub chaining_count: u8,
}

pack_struct!(Chain { last, former });
pack_struct!(NextHop { nh, chaining_count });

impl Pack for AccessKeys {
    fn pack(&self, writer: &mut Writer<'_>) {
        self.0.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        Pack::unpack(reader).map(Self)
    }
}

impl Pack for Nh {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.put(self.as_bytes());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        reader.array().map(Self::new)
    }
}

impl From<&NextHop> for pith_ngap::NextHop {
    fn from(next: &NextHop) -> Self {
        Self { chaining_count: next.chaining_count, nh: *next.nh.as_bytes() }
    }
}

impl AccessKeys {
    /// Whether the gNB has K_gNB of the current K_AMF, and no handover has taken place.
    pub fn is_initial(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the gNB is still to take K_gNB of the current K_AMF into use.
    pub fn is_outdated(&self) -> bool {
        self.0.as_ref().is_some_and(|chain| chain.former.is_some())
    }

    /// NH and NCC that the source AMF of a handover has derived ([`adopt`]).
    pub fn adopted(&self) -> Option<NextHop> {
        self.0.as_ref()?.last.clone()
    }

    /// The gNB uses K_gNB of the current K_AMF and COUNT, or has no UE context.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn chain(&mut self) -> &mut Chain {
        self.0.get_or_insert_default()
    }
}

/// A new K_AMF is taken into use on N1. Until the gNB has K_gNB of it, the chain continues with the former one.
pub(crate) fn note_new_k_amf(ue: &mut UeContext, k_amf: &KAmf) {
    let count = ue.k_gnb_count;
    ue.access_keys.chain().former.get_or_insert_with(|| (k_amf.clone(), count));
}

/// NH and NCC for the target gNB, which the source AMF of a handover has derived with the next step of its chain (TS 33.501 6.9.2.3.3).
pub(crate) fn adopt(ue: &mut UeContext, next: NextHop) {
    *ue.access_keys.chain() = Chain { last: Some(next), former: None };
}

/// The next NH of the chain, for the target of a handover; `None` without a security context. At the setup of the connection
/// the AMF has NH with NCC 1, which no gNB gets (TS 33.501 6.9.2.1.1); a handover increments NCC (6.9.2.3.2, 6.9.2.3.3).
pub(crate) fn next_hop(ue: &mut UeContext) -> Option<NextHop> {
    let security = ue.security.as_ref()?;
    let current = (&security.k_amf, ue.k_gnb_count);
    let chain = ue.access_keys.chain();
    let (k_amf, count) = chain.former.as_ref().map_or(current, |(k_amf, count)| (k_amf, *count));
    let (nh, chaining_count) = match &chain.last {
        Some(last) => (kdf::next_nh(k_amf, &last.nh), (last.chaining_count + 1) & 7),
        None => {
            let k_gnb = kdf::k_gnb(k_amf, count.value(), AccessType::ThreeGpp);
            (kdf::next_nh(k_amf, &kdf::first_nh(k_amf, &k_gnb)), 2)
        }
    };
    let next = NextHop { nh, chaining_count };
    chain.last = Some(next.clone());
    Some(next)
}
