//! The owner of a resource is the NF instance that created it; other NF instances may not use it.
//!
//! An access token permits all instances of an NF type to use a service: each SMF has a token that each AMF accepts. Which
//! instance owns a UE context, a session or a policy is checked here, by certificate and token (TS 33.501 13.1, 13.4.1).

use super::Caller;
use pith_sbi::{NfInstanceId, Problem};
use std::fmt;

/// The identity of a client in another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Client {
    /// The NF instance that its access token names (`sub`), which must also be in its certificate. Without a token: the first
    /// instance in the certificate.
    pub instance: NfInstanceId,
    /// The first NF instance in its certificate; it identifies the process. A process has one certificate, which names the
    /// instances of all its NFs.
    pub process: NfInstanceId,
    /// Whether the certificate names the instance. If not, the client is a foreign NF that proves only its NF type, and the
    /// two ids are derived from that.
    pub is_named: bool,
    /// Whether the request is that of this instance: its certificate names no other instance, or its access token names
    /// this one. If not, the request may be of another instance of the same process.
    pub is_proven: bool,
    /// The CA that issued the certificate, or the kind of proof that replaces one. Instance ids are compared only between
    /// clients of the same issuer: a foreign CA may write any id into a certificate.
    pub issuer: Issuer,
}

/// The issuer of a client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Issuer {
    /// The CA of this core (`sbi.pki`, `sbi.tls`).
    Own,
    /// A CA of external NFs (`sbi.external.<nf>.ca`), by a number that is derived from the NF types for which the
    /// configuration names it, so that it outlives a renewal of the CA's certificate.
    External(u64),
    /// No certificate: the configuration expects the NF at the client's address.
    Address,
}

/// The owner of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// An NF of this process.
    Process,
    /// A process of the same user on this machine, in cleartext (`sbi.security: none`).
    SameUser,
    /// Any other client.
    Client(Client),
}

impl Owner {
    /// The owner of what that caller makes.
    pub const fn of(caller: Caller) -> Self {
        match caller {
            Caller::Local { .. } | Caller::Shard { .. } => Self::Process,
            Caller::Remote { client: None, .. } => Self::SameUser,
            Caller::Remote { client: Some(client), .. } => Self::Client(client),
        }
    }

    /// Whether the resource is the caller's: it made it, or it is of the same process. Code of this process needs no proof.
    /// Instances of an NF set share their resources (TS 23.501 5.21.3.1): members of the owner's set belong here as soon as
    /// a producer learns the set of a client.
    pub fn admits(self, caller: Caller) -> bool {
        match (self, Self::of(caller)) {
            (_, Self::Process) | (Self::SameUser, Self::SameUser) => true,
            (Self::Client(owner), Self::Client(client)) => {
                owner.issuer == client.issuer
                    && (owner.process == client.process || owner.instance == client.instance)
            }
            _ => false,
        }
    }

    /// Whether both are the same process on the other side of HTTP/2.
    pub fn is_same_process(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Client(one), Self::Client(other)) if one.process == other.process && one.issuer == other.issuer
        )
    }

    /// Refuses a caller whose resource it is not.
    pub fn check(self, caller: Caller) -> Result<(), Box<Problem>> {
        if self.admits(caller) {
            return Ok(());
        }
        Err(Box::new(Problem::of_status(403).detail("the resource belongs to another NF instance")))
    }
}

/// For the log.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process => f.write_str("of this process"),
            Self::SameUser => f.write_str("of the same user"),
            Self::Client(client) => write!(f, "NF instance {}", client.instance),
        }
    }
}

/// Refuses a caller that is not the NF instance which a stored resource names. A foreign NF whose certificate names no
/// instance proves its type only, and is admitted; so are this process and, in cleartext, processes of the same user.
pub fn check_instance(named: NfInstanceId, caller: Caller) -> Result<(), Box<Problem>> {
    match caller {
        Caller::Remote { client: Some(client), .. }
            if client.is_named && client.instance != named && client.process != named =>
        {
            Err(Box::new(Problem::of_status(403).detail("the resource belongs to another NF instance")))
        }
        _ => Ok(()),
    }
}

/// Whether a caller may be that NF instance; a client that proves no instance id may be any.
pub fn may_be_instance(named: NfInstanceId, caller: Caller) -> bool {
    match caller {
        Caller::Remote { client: Some(client), .. } if client.is_named && client.is_proven => {
            client.instance == named || client.process == named
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::{Nf, Tag};

    fn remote(client: Option<(u128, u128)>) -> Caller {
        let id = NfInstanceId;
        let client = client.map(|(instance, process)| Client {
            instance: id(instance),
            process: id(process),
            is_named: true,
            is_proven: true,
            issuer: Issuer::Own,
        });
        Caller::Remote { exchange: 1, client }
    }

    #[test]
    fn a_resource_is_its_makers_and_that_of_the_makers_process() {
        let own = Caller::Local { nf: Nf::Amf, tag: Tag::new(1, 1) };
        let (amf, same_process) = (remote(Some((2, 1))), remote(Some((3, 1))));
        let (other, nobody) = (remote(Some((5, 4))), remote(None));
        let renewed = remote(Some((2, 6)));
        for (maker, may, may_not) in [
            (amf, vec![amf, same_process, renewed, own], vec![other, nobody]),
            (nobody, vec![nobody, own], vec![amf, other]),
            (own, vec![own], vec![amf, other, nobody]),
        ] {
            let owner = Owner::of(maker);
            assert!(may.iter().all(|caller| owner.check(*caller).is_ok()), "{owner:?}");
            assert!(may_not.iter().all(|caller| owner.check(*caller).is_err()), "{owner:?}");
        }
    }
}
