//! The network functions: pure state machines that communicate only through the SBI.
//!
//! Each NF is a value with one method, `handle(now, input, out)`. It never blocks, reads no clock,
//! and uses only the seeded randomness that it was created with; see [`kit`] for inputs and
//! effects. [`fabric`] combines the NFs of one shard and routes SBI calls.

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
