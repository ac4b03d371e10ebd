//! Selects the configuration of a command.

use crate::args::Cli;
use anyhow::{Result, anyhow};
use pith_runtime::config::Config;
use std::path::PathBuf;

/// Default configuration files.
const USUAL: [&str; 2] = ["pith.yaml", "/etc/pith/pith.yaml"];

/// Path of the configuration file, if there is one.
pub fn file(cli: &Cli) -> Option<PathBuf> {
    let named = cli.config.clone().or_else(|| std::env::var_os("PITH_CONFIG").map(PathBuf::from));
    named.or_else(|| USUAL.iter().map(PathBuf::from).find(|path| path.exists()))
}

/// The configuration of the file, or the default one, with the changes of '--set'.
pub fn config(cli: &Cli) -> Result<Config> {
    let config = match file(cli) {
        Some(path) => Config::load(&path)?,
        None => Config::default(),
    };
    config.with(cli.set.iter().map(String::as_str)).map_err(|error| anyhow!("--set {error}"))
}
