//! Dialogues of a UE with a scripted network: normal procedures, and what it refuses.

mod authentication;
mod deregistration;
mod eap_aka_prime;
mod emergency;
mod network;
mod protection;
mod reachability;
mod registration;
mod security_mode;
mod service_request;
mod session;
mod usim;
