//! `pith up` and `pith nf`: the core itself, until a signal ends it.

use crate::args::{Cli, NfCommand, UpCommand};
use crate::place;
use anyhow::{Result, anyhow, bail};
use pith_nf::kit::{Nf, Subscriber};
use pith_runtime::config::{Config, LogFormat, StorePath};
use pith_runtime::node::{Hosting, Node};
use pith_runtime::signals::Signals;
use pith_runtime::store::{Database, Existing, Place};
use pith_types::Supi;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// How long the NFs may take to register with the NRF before the operator is told.
const PATIENCE: Duration = Duration::from_secs(10);

/// The test network (README, 'Test network'): keys that everybody knows.
mod test_network {
    pub const FIRST_SUPI: u64 = 999_700_000_000_001;
    pub const K: &str = "465B5CE8B199B49FAA5F0A2EE238A6BC";
    pub const OPC: &str = "E8ED289DEBA952E4283B54E88E6183CA";
}

/// All NFs and the UPF in one process.
pub fn up(command: &UpCommand, cli: &Cli) -> Result<()> {
    let mut config = place::config(cli)?;
    log_to_stderr(&config)?;
    let mut database = None;
    if command.test_network {
        if place::file(cli).is_none() {
            config.store.path = StorePath::Memory;
        }
        database = Some(with_test_subscribers(&config, command.subscribers)?);
        tracing::warn!("test network: {} subscribers whose keys everybody knows", command.subscribers);
    }
    run(&config, &Hosting::all(), database)
}

/// Some NFs of a core whose others are elsewhere.
pub fn nf(command: &NfCommand, cli: &Cli) -> Result<()> {
    let config = place::config(cli)?;
    log_to_stderr(&config)?;
    let mut nfs = Vec::new();
    let mut upf = false;
    for name in &command.names {
        match Nf::of_name(name) {
            Some(nf) => nfs.push(nf),
            None if name == "upf" => upf = true,
            None => bail!("'{name}' is no NF: choose of nrf, udr, udm, ausf, pcf, nssf, smf, amf, upf"),
        }
    }
    let database = match (command.test_network, nfs.contains(&Nf::Udr)) {
        (true, true) => Some(with_test_subscribers(&config, command.subscribers)?),
        _ => None,
    };
    run(&config, &Hosting::some(nfs, upf), database)
}

fn run(config: &Config, hosting: &Hosting, database: Option<Database>) -> Result<()> {
    let signals = Signals::hold()?;
    let node = Node::start(config, hosting, database).map_err(|error| anyhow!("{error}"))?;
    match node.wait_until_ready(PATIENCE) {
        Some(after) => tracing::info!("ready in {} ms", after.as_millis()),
        None => tracing::warn!(
            "not all NFs are registered with the NRF yet: does it run at its address in 'sbi'?"
        ),
    }
    let signal = signals.wait();
    tracing::info!("{signal:?}: going down");
    node.stop();
    Ok(())
}

fn with_test_subscribers(config: &Config, count: u32) -> Result<Database> {
    let place = config.store.path.file().map_or(Place::Memory, Place::File);
    let mut database = Database::open(&place)?;
    database.add_subscribers(test_subscribers(count)?, Existing::Keep)?;
    Ok(database)
}

fn test_subscribers(count: u32) -> Result<Vec<Subscriber>> {
    let key = |text: &str| text.parse::<pith_nf::kit::Secret<16>>().map_err(|error| anyhow!(error));
    let (k, opc) = (key(test_network::K)?, key(test_network::OPC)?);
    let numbers = test_network::FIRST_SUPI..test_network::FIRST_SUPI + u64::from(count);
    let subscriber = |number: u64| {
        let supi = Supi::from_imsi(&format!("{number:015}"))?;
        Ok(Subscriber::with_defaults(supi, k.0, opc.0))
    };
    numbers.map(subscriber).collect()
}

fn log_to_stderr(config: &Config) -> Result<()> {
    let filter = EnvFilter::try_new(&config.log.level)
        .map_err(|error| anyhow!("'log.level' is '{}', which can't be read: {error}", config.log.level))?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match config.log.format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
