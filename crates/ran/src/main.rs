//! pith-ran: gNBs and UEs for testing a 5G core.
//!
//! ```text
//!  shell/cli.rs          every option, and what it teaches
//!  shell/build.rs        options -> gNBs, UEs and their plan
//!  shell/run.rs          the event loop: SCTP, GTP-U, time
//!  shell/links.rs        the sockets
//!  shell/tuns.rs         TUN interfaces of UEs
//!  shell/report.rs       the table at the end, and its JSON
//! ```

mod shell;

use clap::Parser;
use shell::cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Cli { command: Command::Run(options) } = Cli::parse();
    match shell::run::run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pith-ran: {error:#}");
            ExitCode::from(2)
        }
    }
}
