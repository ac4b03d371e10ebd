//! `pith config`.

use crate::args::ConfigCommand;
use crate::logs;
use anyhow::Result;
use pith_runtime::config::{Config, default_yaml};
use pith_runtime::keys;

/// Runs a command on configuration files.
pub fn run(command: &ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Default => print!("{}", default_yaml()),
        ConfigCommand::Check { file } => {
            let config = Config::load(file)?;
            keys::load(&config.home_network_keys)?;
            logs::filter(&config.log)?;
            config.api.token()?;
            println!("{} is in order", file.display());
        }
    }
    Ok(())
}
