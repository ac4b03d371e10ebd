//! The AMF driven through its public interface: inputs in, the ladder out.

mod absent;
mod authentication;
mod callbacks;
mod context_transfer;
mod deregistration;
mod document;
mod eap_authentication;
mod emergency;
mod flow_mobility;
mod half_open;
mod identification;
mod initial_registration;
mod n2_errors;
mod n2_handover;
mod nas_non_delivery;
mod nas_security;
mod outdated;
mod owner;
mod paging;
mod panic;
mod pdu_session;
mod registration_update;
mod release;
mod reports;
mod residency;
mod restoring;
mod restrictions;
mod retention;
mod scas;
mod security_mode;
mod service_request;
mod slices;
mod subscription_change;
mod take_over;
#[allow(clippy::duplicate_mod)]
pub(crate) mod world;
mod xn_handover;
