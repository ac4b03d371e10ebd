//! The QoS engine in virtual time: sources with given rates, a session's rules, and who got what.

mod buffering;
mod change;
mod conservation;
mod delay;
mod fairness;
mod lab;
mod slice;
