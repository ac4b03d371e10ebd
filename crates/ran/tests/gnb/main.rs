//! Dialogues of a gNB with an AMF made by hand.

mod amf;
mod management;
mod pdu_session;
mod ue_context;
