//! PDU session establishment (TS 23.502 4.3.2.2.1; TS 29.502 5.2.2.2; TS 24.501 6.4.1).
//!
//! ```text
//!  step    state                        from                                 timer
//!  3       (request.rs)                 AMF: PostSmContexts, 5GSM message
//!  4       AwaitingSubscriptionData     UDM; then the answer to the AMF (5)  Guard
//!  7       AwaitingPolicyDecision       PCF; the address is allocated (8)    Guard
//!  10      AwaitingN4Establishment      anchor: its tunnel endpoint          Guard
//!  10      AwaitingFrontEstablishment   front UPF, if there is one           Guard
//!  10      AwaitingN9Modification       anchor: sends to the front UPF       Guard
//!  11      AwaitingResourceSetup        Accept and N2 information ─> AMF     Guard
//!  15, 16  AwaitingN4Modification       UPF: sends to the gNB (user_plane.rs)
//!          Established
//! ```
//!
//! Emergency sessions skip step 4 (emergency.rs). Before step 5, a failure is reported in the response to the AMF, which includes the reject for the UE ([`request::refuse`]).
//! After step 5, the SMF sends the reject in an N1N2MessageTransfer and notifies the AMF ([`fail`]).

mod anchor;
mod emergency;
mod front;
mod policy;
mod request;
mod setup;
mod subscription;

use super::State;
use super::release::{self, Held};
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_struct};
use crate::kit::{Level, UpfHandle};
use crate::smf::consumer;
use crate::smf::context::SmContext;
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::n1;
pub(super) use anchor::{AwaitingN4Establishment, accepted};
pub(super) use front::{AwaitingFrontEstablishment, AwaitingN9Modification};
pub(super) use policy::{AwaitingPolicyDecision, authorise};
pub(in crate::smf) use request::identity_of;
pub(in crate::smf) use setup::{Accept, AwaitingResourceSetup};
pub(super) use setup::{note_refused, resume};
pub(super) use subscription::{AwaitingSubscriptionData, subscribed_data};

/// The parts of the UE's request that the accept or reject needs.
#[derive(Debug, Clone, Copy)]
pub(in crate::smf) struct UeRequest {
    /// Procedure transaction identity.
    pub pti: u8,
    /// Parameters that the UE requests.
    pub asks: Asks,
}

/// Parameters that the UE requests: DNS server addresses, link MTU and P-CSCF addresses as protocol configuration options, and PDU
/// session type IPv4v6.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::smf) struct Asks {
    pub dns: bool,
    pub mtu: bool,
    pub ipv4v6: bool,
    pub p_cscf4: bool,
    pub p_cscf6: bool,
}

/// The search for UPFs that accept a session.
#[derive(Debug)]
pub(in crate::smf) struct Attempt {
    request: UeRequest,
    /// UPFs that refused the session.
    tried: Vec<UpfHandle>,
}

pack_struct!(UeRequest { pti, asks });

/// The requests for addresses are bits of one octet: earlier versions have that for DNS servers only.
impl Pack for Asks {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { dns, mtu, ipv4v6, p_cscf4, p_cscf6 } = *self;
        (u8::from(dns) | u8::from(p_cscf4) << 1 | u8::from(p_cscf6) << 2).pack(writer);
        mtu.pack(writer);
        ipv4v6.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let addresses = match reader.octet()? {
            bits @ 0..=7 => bits,
            _ => return Err(reader.malformed("requested addresses")),
        };
        let has = |bit: u8| addresses & bit != 0;
        let (dns, p_cscf4, p_cscf6) = (has(1), has(2), has(4));
        Ok(Self { dns, mtu: Pack::unpack(reader)?, ipv4v6: Pack::unpack(reader)?, p_cscf4, p_cscf6 })
    }
}

/// A UPF that was tried and no longer has an association need not be avoided.
impl Pack for Attempt {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { request, tried } = self;
        request.pack(writer);
        writer.upfs(tried);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        Ok(Self { request: Pack::unpack(reader)?, tried: reader.upfs()? })
    }
}

/// Ends an establishment after the AMF was answered: the SMF sends the reject for the UE in an N1N2MessageTransfer (TS 24.501
/// 6.4.1.4).
fn fail(
    session: &mut SmContext,
    env: &mut Env<'_>,
    request: UeRequest,
    held: Held,
    error: &EstablishmentError,
) -> State {
    session.log(env, Level::Warn, || format!("refused: {error}"));
    let reject = n1::establishment_reject(session.pdu_session_id, request.pti, error.gsm_cause());
    let transfer = consumer::transfer(session, Some(reject), None);
    consumer::notify_amf(session, env, transfer);
    release::end_and_notify_amf(held, session, env)
}

/// The guard timer of an establishment expired after the AMF was answered.
fn too_slow() -> EstablishmentError {
    EstablishmentError::Network("no answer in time".into())
}
