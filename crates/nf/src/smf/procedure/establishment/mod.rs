//! PDU session establishment (TS 23.502 4.3.2.2.1; TS 29.502 5.2.2.2; TS 24.501 6.4.1).
//!
//! ```text
//!  step    state                        from                                 timer
//!  3       (request.rs)                 AMF: PostSmContexts, 5GSM message
//!  4       AwaitingSubscriptionData     UDM; then the answer to the AMF (5)  Guard
//!  7       AwaitingPolicyDecision       PCF; the address is allocated (8)    Guard
//!  10      AwaitingN4Establishment      anchor: its tunnel                   Guard
//!  10      AwaitingFrontEstablishment   a UPF before it, if there is one     Guard
//!  10      AwaitingN9Modification       anchor, told the front UPF's tunnel  Guard
//!  11      AwaitingResourceSetup        Accept and N2 information ─> AMF     Guard
//!  15, 16  AwaitingN4Modification       the gNB's tunnel (user_plane.rs)
//!          Established
//! ```
//!
//! Until step 5 a failure is the answer to the AMF, with the reject for the UE in it ([`request::refuse`]). After it the SMF
//! sends the reject by itself and notifies the AMF ([`fail`]).

mod anchor;
mod front;
mod policy;
mod request;
mod setup;
mod subscription;

use super::State;
use super::release::{self, Remains};
use crate::kit::{Level, UpfHandle};
use crate::smf::consumer;
use crate::smf::context::SmContext;
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::n1;
pub(super) use anchor::{AwaitingN4Establishment, accepted};
pub(super) use front::{AwaitingFrontEstablishment, AwaitingN9Modification};
pub(super) use policy::{AwaitingPolicyDecision, authorise};
pub(in crate::smf) use setup::AwaitingResourceSetup;
pub(super) use subscription::AwaitingSubscriptionData;

/// What the UE's request leaves for the answer to it.
#[derive(Debug, Clone, Copy)]
pub(in crate::smf) struct UeRequest {
    /// Procedure transaction identity.
    pub pti: u8,
    /// What the UE requests to receive.
    pub asks: Asks,
}

/// What the UE asks for: protocol configuration options, and IPv6 beside IPv4.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::smf) struct Asks {
    pub dns: bool,
    pub mtu: bool,
    pub ipv4v6: bool,
}

/// An establishment that asks UPFs.
#[derive(Debug)]
pub(in crate::smf) struct Attempt {
    request: UeRequest,
    /// UPFs that did not take the session.
    tried: Vec<UpfHandle>,
}

/// Ends an establishment after the AMF was answered: the reject for the UE goes in a transfer of its own (TS 24.501
/// 6.4.1.4).
fn fail(
    session: &mut SmContext,
    env: &mut Env<'_>,
    request: UeRequest,
    remains: Remains,
    error: &EstablishmentError,
) -> State {
    session.log(env, Level::Warn, || format!("refused: {error}"));
    let reject = n1::establishment_reject(session.pdu_session_id, request.pti, error.gsm_cause());
    let transfer = consumer::transfer(session, Some(reject), None);
    consumer::notify_amf(session, env, transfer);
    release::end_and_notify_amf(remains, session, env)
}

/// The guard of an establishment ran out after the AMF was answered.
fn too_slow() -> EstablishmentError {
    EstablishmentError::Network("no answer in time".into())
}
