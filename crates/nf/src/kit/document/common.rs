//! [`Pack`] for the types of [`crate::kit`].

use super::pack::text;
use super::{Pack, PackError, Reader, UnpackError, Writer, pack_enum};
use crate::kit::{
    Caller, Client, GnbHandle, Issuer, Nf, Owner, PendingReply, Tag, Timer, Tnla, TnlaBinding, UpfHandle,
};

/// The name of the UPF. A session is at its UPFs: it cannot be loaded before they have associations.
/// A gNB by its name. One that is gone has none: messages to it are dropped.
impl Pack for GnbHandle {
    fn pack(&self, writer: &mut Writer<'_>) {
        if writer.names().keeps_handles() {
            return self.0.pack(writer);
        }
        writer.counted(writer.names().gnb_name(*self).unwrap_or_default().as_bytes());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        if reader.names().keeps_handles() {
            return u64::unpack(reader).map(Self);
        }
        let name = text(reader)?;
        Ok(reader.names().gnb(name).unwrap_or(Self(u64::MAX)))
    }
}

/// Only the stream: after a restart, or at another instance, the gNB has other associations.
impl Pack for TnlaBinding {
    fn pack(&self, writer: &mut Writer<'_>) {
        if writer.names().keeps_handles() {
            self.tnla.map(|tnla| tnla.0).pack(writer);
        }
        self.stream.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let keeps_handles = reader.names().keeps_handles();
        let tnla = if keeps_handles { Option::<u64>::unpack(reader)?.map(Tnla) } else { None };
        Ok(Self { tnla, stream: u16::unpack(reader)? })
    }
}

impl Pack for UpfHandle {
    fn pack(&self, writer: &mut Writer<'_>) {
        if writer.names().keeps_handles() {
            return self.0.pack(writer);
        }
        match writer.names().upf_name(*self) {
            Some(name) => writer.counted(name.as_bytes()),
            None => writer.fail(PackError::UpfIsGone),
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        if reader.names().keeps_handles() {
            return u64::unpack(reader).map(Self);
        }
        let name = text(reader)?;
        reader.names().upf(name).ok_or_else(|| UnpackError::UpfIsMissing(name.chars().take(64).collect()))
    }
}

impl Writer<'_> {
    /// Adds the names of those UPFs that have one.
    pub(crate) fn upfs(&mut self, upfs: &[UpfHandle]) {
        let names = self.names();
        if names.keeps_handles() {
            self.number(upfs.len() as u64);
            return upfs.iter().for_each(|upf| upf.pack(self));
        }
        let known: Vec<_> = upfs.iter().filter_map(|upf| names.upf_name(*upf)).collect();
        self.number(known.len() as u64);
        for name in known {
            self.counted(name.as_bytes());
        }
    }
}

impl Reader<'_> {
    /// Those UPFs of a list of names that have an association.
    pub(crate) fn upfs(&mut self) -> Result<Vec<UpfHandle>, UnpackError> {
        let mut upfs = Vec::new();
        for _ in 0..self.count()? {
            if self.names().keeps_handles() {
                upfs.push(UpfHandle::unpack(self)?);
                continue;
            }
            let name = text(self)?;
            upfs.extend(self.names().upf(name));
        }
        Ok(upfs)
    }
}

impl Pack for Caller {
    fn pack(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Local { nf, tag } => (0_u8, nf, tag).pack(writer),
            Self::Shard { shard, nf, tag } if tag.run == 0 => (1_u8, shard, nf, tag).pack(writer),
            Self::Shard { shard, nf, tag } => {
                (3_u8, shard, nf).pack(writer);
                (tag, tag.run).pack(writer);
            }
            Self::Remote { exchange, client } => (2_u8, exchange, client).pack(writer),
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        Ok(match reader.octet()? {
            0 => Self::Local { nf: Nf::unpack(reader)?, tag: Tag::unpack(reader)? },
            1 => Self::Shard {
                shard: u16::unpack(reader)?,
                nf: Nf::unpack(reader)?,
                tag: Tag::unpack(reader)?,
            },
            3 => {
                let (shard, nf) = Pack::unpack(reader)?;
                let (tag, run) = Pack::unpack(reader)?;
                Self::Shard { shard, nf, tag: Tag { run, ..tag } }
            }
            2 => Self::Remote { exchange: u64::unpack(reader)?, client: Option::unpack(reader)? },
            _ => return Err(reader.malformed("caller")),
        })
    }
}

impl Pack for PendingReply {
    fn pack(&self, writer: &mut Writer<'_>) {
        self.caller().pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        Caller::unpack(reader).map(Self::owed_to)
    }
}

/// A document that was written before a client had an issuer has 0 or 1 for `is_named`, and nothing after it.
impl Pack for Client {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { instance, process, is_named, is_proven, issuer } = self;
        instance.pack(writer);
        process.pack(writer);
        (u8::from(*is_named) | WITH_ISSUER).pack(writer);
        is_proven.pack(writer);
        issuer.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (instance, process) = (Pack::unpack(reader)?, Pack::unpack(reader)?);
        let (octet, mut is_proven, mut issuer) = (reader.octet()?, false, Issuer::Own);
        if octet & !1 == WITH_ISSUER {
            (is_proven, issuer) = (Pack::unpack(reader)?, Pack::unpack(reader)?);
        } else if octet > 1 {
            return Err(reader.malformed("client"));
        }
        Ok(Self { instance, process, is_named: octet & 1 == 1, is_proven, issuer })
    }
}

/// Set in the octet of `is_named` if `is_proven` and `issuer` follow.
const WITH_ISSUER: u8 = 2;

/// Without the run: 0 within a shard. That of another shard's call is in [`PendingReply`].
impl Pack for Tag {
    fn pack(&self, writer: &mut Writer<'_>) {
        (self.owner, self.step).pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (owner, step) = Pack::unpack(reader)?;
        Ok(Self::new(owner, step))
    }
}

pack_enum!(Issuer { 0 => Own, 1 => External(ca), 2 => Address });
pack_enum!(Owner { 0 => Process, 1 => SameUser, 2 => Client(client) });
pack_enum!(Nf {
    1 => Amf,
    2 => Smf,
    3 => Ausf,
    4 => Udm,
    5 => Udr,
    6 => Pcf,
    7 => Nrf,
    8 => Nssf,
    9 => Agent,
});

pack_enum!(Timer {
    1 => T3513,
    2 => T3522,
    3 => T3550,
    4 => T3555,
    5 => T3560,
    6 => T3565,
    7 => T3570,
    8 => T3590,
    9 => T3591,
    10 => T3592,
    11 => MobileReachable,
    12 => ImplicitDeregistration,
    13 => LostConnections,
    14 => LostSessions,
    29 => RestoredContexts,
    30 => AbsentGnbs,
    15 => NgapGuard,
    16 => SbiGuard,
    17 => SbiRetransmission,
    18 => NrfHeartBeat,
    19 => NrfSweep,
    20 => DiscoveryValidity,
    21 => PathGrace,
    22 => PfcpT1,
    23 => PfcpHeartbeat,
    24 => PfcpOverload,
    25 => PfcpGracefulRelease,
    26 => PfcpUnknownPeers,
    27 => PfcpAssociationRetry,
    28 => Expiry,
    31 => BlockMove,
    32 => Handover,
    33 => ChangedSubscribers,
    34 => WithdrawnHandover,
    35 => TransferredContext,
    36 => ReroutedMessage,
    37 => Reregistration,
    38 => SubscriptionData,
    39 => RegistrationCheck,
    40 => HandoverCompletion,
});
