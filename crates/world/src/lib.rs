//! All NFs, gateways, the UPF, gNBs and UEs in one thread with virtual time and seeded faults
//! (design section 15). See the crate's README for its contract.
//!
//! ```text
//!  plan     the parameters of a seed        network      the NFs of the test network
//!  world    the agenda, and dispatch        observed     observed NFs; journal: the ladder
//!  user     the actions of UEs' users       invariant    conditions after each step, and when all is idle
//!  many     the worlds of many seeds        kill         crash points of each procedure
//!  services what some worlds have besides
//! ```

mod database;
mod dice;
mod documents;
mod journal;
mod kill;
mod many;
mod network;
mod observed;
mod plan;
mod server;
mod services;
mod stores;
mod user_plane;
mod world;

pub use database::Database;
pub use journal::TraceEntry;
pub use kill::{
    Breach, BreachKind, BrokenRun, Kill, Options, PROCEDURES, Procedure, Row, Table, Victim, campaign,
};
pub use many::{WorldOutcome, reports_of, run_worlds};
pub use pith_runtime::residency::WriteForm;
pub use plan::{Faults, Plan, Residency};
pub use services::{EmergencyUes, Reachability, Services};
pub use stores::StoreOperations;
pub use world::{AttackAction, Attacker, Failure, ObservedMessages, ReflectedAnswer, Report, World};
