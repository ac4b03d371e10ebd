//! The QoS engine in virtual time: sources with given rates, the rules of a session, and the resulting
//! shares.

mod buffering;
mod change;
mod conservation;
mod delay;
mod fairness;
mod lab;
mod slice;
