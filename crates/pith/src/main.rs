//! pith: the core and the operator's commands.
//!
//! ```text
//!  args.rs        the command line: commands, options and examples
//!  up.rs          runs the core; test_network.rs, logs.rs, flood.rs
//!  config_file.rs selects the configuration file
//!  operator.rs    the REST API of a running core, or the same handlers on the database file
//!  import.rs      files of subscribers: JSON, CSV
//!  processes.rs   other cores on this machine
//!  subscriber.rs, list.rs, upf.rs, key.rs, pki.rs, config.rs, access.rs     a file per group of commands
//!  table.rs       tables; '--json' prints the API's JSON instead
//! ```

#[global_allocator]
static ALLOCATOR: pith_runtime::memory::Allocator = pith_runtime::memory::Allocator;

mod access;
mod args;
mod config;
mod config_file;
mod flood;
mod import;
mod key;
mod list;
mod logs;
mod operator;
mod pki;
mod processes;
mod qos;
mod session;
mod shard;
mod subscriber;
mod table;
mod test_network;
mod up;
mod upf;

use anyhow::Result;
use args::{ApiCommand, AuditCommand, Cli, Command, GnbCommand, UeCommand};
use clap::Parser;
use pith_runtime::signals::end_with_reader;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pith: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    if !matches!(cli.command, Command::Up(_) | Command::Nf(_)) {
        end_with_reader();
    }
    match &cli.command {
        Command::Up(command) => up::up(command, cli),
        Command::Nf(command) => up::nf(command, cli),
        Command::Config(command) => config::run(command, &cli.set),
        Command::Api(ApiCommand::Token(command)) => access::tokens(command, cli),
        Command::Audit(AuditCommand::List { limit, denied }) => access::audit(*limit, *denied, cli),
        Command::Key(command) => key::run(command, cli.json),
        Command::Pki(command) => pki::run(command, cli),
        Command::Subscriber(command) => subscriber::run(command, cli),
        Command::Ue(UeCommand::List) => list::run(&list::UES, cli),
        Command::Ue(UeCommand::Deregister { supi }) => list::deregister(&supi.0, cli),
        Command::Ue(UeCommand::Locate { supi }) => list::locate(&supi.0, cli),
        Command::Gnb(GnbCommand::List) => list::run(&list::GNBS, cli),
        Command::Gnb(GnbCommand::Reset { id }) => list::reset_gnb(id, cli),
        Command::Gnb(GnbCommand::Capacity { capacity }) => list::set_capacity(*capacity, cli),
        Command::Gnb(GnbCommand::Endpoint { address, weight }) => {
            list::change_endpoint(*address, weight, cli)
        }
        Command::Session(command) => session::run(command, cli),
        Command::Qos(command) => qos::run(command, cli),
        Command::Shard(command) => shard::run(command, cli),
        Command::Instance(_) => list::run(&list::INSTANCES, cli),
        Command::Upf(command) => upf::run(command, cli),
        Command::Status => list::status(cli),
    }
}
