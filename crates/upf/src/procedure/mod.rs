//! What the UPF does on a request, an event or a timer: a file a procedure (TS 29.244 6.2, 6.3).

mod association;
mod heartbeat;
mod session_deletion;
mod session_establishment;
mod session_modification;
mod session_report;
