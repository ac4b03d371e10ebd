//! All NFs, gateways, the UPF, gNBs and UEs in one thread of virtual time, with seeded faults
//! (design section 15). See the crate's README for its contract.
//!
//! ```text
//!  plan     what a seed stands for          network      the NFs of the test network
//!  world    the agenda, and who gets what   observed     NFs that are watched, journal: the ladder
//!  user     what UEs' users do              invariant    what must hold after each step, and once quiet
//! ```

mod database;
mod dice;
mod journal;
mod network;
mod observed;
mod plan;
mod user_plane;
mod world;

pub use database::Database;
pub use journal::Rung;
pub use plan::{Faults, Plan};
pub use world::{Attacker, Blow, Failure, Overheard, Report, World};
