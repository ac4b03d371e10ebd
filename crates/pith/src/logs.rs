//! Logs, on standard error.

use crate::flood::Flood;
use anyhow::{Result, anyhow};
use pith_runtime::config::{Log, LogFormat};
use std::io::{IsTerminal, stderr};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt, registry};

/// The filter of the configured level.
pub fn filter(log: &Log) -> Result<EnvFilter> {
    EnvFilter::try_new(&log.level).map_err(|error| {
        anyhow!("'log.level' is '{}': {error}; write error, warn, info, debug or trace", log.level)
    })
}

/// Starts logging.
pub fn begin(log: &Log) -> Result<()> {
    let lines = fmt::layer().with_writer(stderr).with_target(false);
    let lines = match log.format {
        LogFormat::Text => lines.with_ansi(stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    registry().with(filter(log)?).with(Flood::default()).with(lines).init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_invalid_level_names_valid_ones() {
        let log = |level: &str| Log { level: level.into(), ..Log::default() };
        assert!(filter(&log("info,pith::nf=debug")).is_ok());
        let error = filter(&log("pith=loud")).unwrap_err().to_string();
        assert!(error.contains("'log.level'") && error.contains("debug"), "{error}");
    }
}
