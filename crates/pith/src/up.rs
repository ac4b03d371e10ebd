//! `pith up` and `pith nf`: run the core, or selected NFs of it, until SIGINT or SIGTERM.

use crate::args::{Cli, NfCommand, UpCommand};
use crate::{config_file, logs, processes, test_network};
use anyhow::{Context, Result, anyhow, bail};
use pith_nf::kit::Nf;
use pith_runtime::config::{Config, StorePath};
use pith_runtime::node::{Hosting, Node, is_upf_running};
use pith_runtime::privileges::{self, Need};
use pith_runtime::signals::{Signal, Signals};
use pith_runtime::store::Database;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Time after which a warning is logged if not all NFs are registered with the NRF.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// Exit status if a second SIGINT or SIGTERM ends the process during shutdown.
const EXIT_SECOND_SIGNAL: i32 = 130;

/// Runs all NFs and the UPF in one process.
pub fn up(command: &UpCommand, cli: &Cli) -> Result<()> {
    let mut config = config_file::config(cli)?;
    logs::begin(&config.log)?;
    if command.test_network && config_file::file(cli).is_none() && config.store.path == StorePath::Auto {
        config.store.path = StorePath::Memory;
    }
    let subscribers = command.test_network.then_some(command.subscribers);
    let hosting = Hosting::all().without_external(&config);
    start(&config, &hosting, subscribers).map_err(name_other_cores)
}

/// Runs selected NFs of a core.
pub fn nf(command: &NfCommand, cli: &Cli) -> Result<()> {
    let config = config_file::config(cli)?;
    logs::begin(&config.log)?;
    let hosting = Hosting { takes_over: command.take_over, ..hosting(&command.names)? };
    let hosted = hosting.clone().without_external(&config);
    if let Some(nf) = hosting.nfs.iter().find(|nf| !hosted.nfs.contains(nf)) {
        bail!("'{nf}' is configured as another vendor's NF in 'sbi.external.{nf}'");
    }
    let adds_subscribers = command.test_network && hosting.nfs.contains(&Nf::Udr);
    let subscribers = adds_subscribers.then_some(command.subscribers);
    start(&config, &hosting, subscribers).map_err(name_other_cores)
}

/// Opens the database if the process hosts the UDR, and runs the process.
fn start(config: &Config, hosting: &Hosting, test_subscribers: Option<u32>) -> Result<()> {
    let database = match test_subscribers {
        Some(count) => Some(test_network::database(config, count)?),
        None if hosting.nfs.contains(&Nf::Udr) => {
            let mut database = Database::open(&config.store.location())?;
            if database.subscriber_count()? == 0 {
                tracing::warn!(
                    "no subscribers in {}: add some with 'pith subscriber add' or 'pith subscriber import', \
                     or try 'pith up --test-network'",
                    config
                        .store
                        .path
                        .file()
                        .map_or_else(|| "memory".into(), |path| path.display().to_string())
                );
            }
            Some(database)
        }
        None => None,
    };
    run(config, hosting, database)
}

/// Adds the core that has the database, directory, port or interface to the error of a core that cannot start because of it.
fn name_other_cores(error: anyhow::Error) -> anyhow::Error {
    match processes::users_of(&format!("{error:#}")) {
        Some(others) => anyhow!("{error:#}\n{others}"),
        None => error,
    }
}

/// The NFs that the command line names.
fn hosting(names: &[String]) -> Result<Hosting> {
    let mut hosting = Hosting::some(Vec::new(), false);
    for name in names {
        match Nf::of_name(name) {
            Some(nf) if hosting.nfs.contains(&nf) => bail!("NF '{name}' is listed more than once"),
            Some(nf) => hosting.nfs.push(nf),
            None if name == "upf" => hosting.upf = true,
            None => bail!("'{name}' is not an NF: use nrf, udr, udm, ausf, pcf, nssf, smf, amf, upf"),
        }
    }
    Ok(hosting)
}

/// Set in the environment of a process that has begun again.
const BEGUN_AGAIN: &str = "PITH_TAKE_OVER_FAILED";

/// The UPF that was to be taken over has ended meanwhile: executes this program again, which finds none and starts afresh. Returns only
/// an error.
fn start_afresh(error: &str) -> anyhow::Error {
    if std::env::var_os(BEGUN_AGAIN).is_some() {
        return anyhow!("{error}");
    }
    if privileges::are_given_up() {
        return anyhow!("{error}: the running UPF has ended; start this one again");
    }
    tracing::warn!("{error}: the running UPF has ended, and this one starts afresh");
    let failed =
        Command::new("/proc/self/exe").args(std::env::args_os().skip(1)).env(BEGUN_AGAIN, "1").exec();
    anyhow!("{error}; starting afresh failed: {failed}")
}

/// Runs the process until SIGINT or SIGTERM, and shuts it down.
fn run(config: &Config, hosting: &Hosting, database: Option<Database>) -> Result<()> {
    let signals = Signals::hold()?;
    if !config.log.core_dumps {
        privileges::hide_memory().context("cannot forbid core files")?;
    }
    // SIGHUP reloads the certificates of a process without a terminal. In a process with one, it means that the terminal was
    // closed, and ends the process.
    let has_terminal = std::io::stdin().is_terminal();
    let need = if hosting.upf { Need::UserPlane } else { Need::Nothing };
    if hosting.upf {
        privileges::lift_memory_limit();
    }
    let takes_over = hosting.takes_over && is_upf_running(config);
    let node = Node::start(config, hosting, database, || privileges::keep_only(need));
    let node = match node {
        Err(error) if takes_over && !is_upf_running(config) => {
            return Err(start_afresh(&error.to_string()));
        }
        node => node.map_err(|error| anyhow!("{error}"))?,
    };
    match node.wait_until_ready(READY_TIMEOUT) {
        Some(after) => tracing::info!("ready in {} ms{}", after.as_millis(), addresses(config, hosting)),
        None => tracing::warn!(
            "not all NFs are registered with the NRF yet: is the NRF running at {}?",
            config.sbi.address(pith_runtime::config::HostedNf::Nrf)
        ),
    }
    let signal = loop {
        match signals.wait() {
            Signal::Hangup if !has_terminal => node.read_certificates(),
            signal => break signal,
        }
    };
    tracing::info!("{signal:?}: shutting down; a second signal ends the process immediately");
    std::thread::spawn(move || {
        while signals.wait() == Signal::Hangup {}
        std::process::exit(EXIT_SECOND_SIGNAL)
    });
    node.stop();
    Ok(())
}

/// The addresses of N2 and of the operator API, as the end of a log line.
fn addresses(config: &Config, hosting: &Hosting) -> String {
    let mut text = String::new();
    if hosting.nfs.contains(&Nf::Amf) {
        let addresses: Vec<_> = config.amf.n2.addresses.iter().map(ToString::to_string).collect();
        text.push_str(&format!("; N2 at {} port {}", addresses.join(", "), config.amf.n2.port));
    }
    if !hosting.several_processes {
        text.push_str(&format!("; operator API at {}", config.api_socket(None).display()));
        if let Some(listen) = config.api.listen {
            text.push_str(&format!(", and http://{listen} with tokens"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_or_unknown_nf_is_rejected() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let some = hosting(&names(&["udm", "upf", "ausf"])).unwrap();
        assert_eq!((some.nfs, some.upf, some.several_processes), (vec![Nf::Udm, Nf::Ausf], true, true));
        assert!(hosting(&names(&["udm", "udm"])).unwrap_err().to_string().contains("listed more than once"));
        assert!(hosting(&names(&["mme"])).unwrap_err().to_string().contains("use nrf"));
    }
}
