//! The UPF's procedures, one file each (TS 29.244 6.2, 6.3).

mod association;
mod heartbeat;
mod session_deletion;
mod session_establishment;
mod session_modification;
mod session_report;
