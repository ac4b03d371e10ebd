//! Dialogues of a gNB with a scripted AMF.

mod amf;
mod associations;
mod flow_mobility;
mod management;
mod pdu_session;
mod reroute;
mod retention;
mod ue_context;
