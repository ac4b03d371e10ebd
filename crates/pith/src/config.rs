//! `pith config`.

use crate::args::ConfigCommand;
use crate::logs;
use anyhow::{Result, anyhow};
use pith_runtime::config::{Config, default_yaml};
use pith_runtime::keys;

/// Runs a command on configuration files; `settings` are those of `--set`.
pub fn run(command: &ConfigCommand, settings: &[String]) -> Result<()> {
    match command {
        ConfigCommand::Default => print!("{}", default_yaml()),
        ConfigCommand::Check { file } => {
            let config = Config::load(file)?.with(settings.iter().map(String::as_str));
            let config = config.map_err(|error| anyhow!("--set {error}"))?;
            keys::load(&config.home_network_keys)?;
            logs::filter(&config.log)?;
            config.api.token()?;
            println!("{} is in order", file.display());
        }
    }
    Ok(())
}
