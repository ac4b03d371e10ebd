//! pith-ran: gNBs and UEs for testing a 5G core.
//!
//! ```text
//!  shell/cli.rs          the options and their help texts
//!  shell/build.rs        options -> gNBs, UEs and their plan
//!  shell/run.rs          the event loop: SCTP, GTP-U, time
//!  shell/steps.rs        steps of all UEs at once, and those of --commands
//!  shell/links.rs        the sockets; garble.rs corrupts messages on request
//!  shell/tuns.rs         TUN interfaces of UEs
//!  shell/echo.rs         the echo service for streams
//!  shell/report.rs       the result as table and JSON
//! ```

#[global_allocator]
static ALLOCATOR: pith_runtime::memory::Allocator = pith_runtime::memory::Allocator;

mod shell;

use clap::Parser;
use shell::cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(options) => shell::run::run(&options),
        Command::Echo(options) => shell::echo::echo(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pith-ran: {error:#}");
            ExitCode::from(2)
        }
    }
}
