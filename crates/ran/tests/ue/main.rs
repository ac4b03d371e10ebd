//! Dialogues of a UE with a network made by hand: what it does when all goes well, and what it refuses.

mod authentication;
mod deregistration;
mod eap_aka_prime;
mod network;
mod protection;
mod registration;
mod security_mode;
mod service_request;
mod session;
mod usim;
