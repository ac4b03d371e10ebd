//! The network functions: pure state machines that meet only through the SBI.
//!
//! Each NF is a value with one method, `handle(now, input, out)`. It never waits, reads no clock
//! and draws no randomness that was not handed to it; see [`kit`] for what goes in and comes out.
//! [`fabric`] puts the NFs of one shard together and finds the way of each SBI call.

pub mod amf;
pub mod ausf;
pub mod fabric;
pub mod gateway;
pub mod kit;
pub mod nrf;
pub mod nssf;
pub mod pcf;
pub mod smf;
pub mod udm;
pub mod udr;

#[cfg(test)]
mod testing;
