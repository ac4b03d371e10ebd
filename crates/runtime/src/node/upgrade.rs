//! A process that takes a running UPF over, or lets itself be taken over (docs/adr/0028).

use super::{Hosting, StartError};
use crate::api::{Unnamed, bind_socket};
use crate::config::Config;
use crate::upf::{Predecessor, Succeedable, settings, socket_beside};
use pith_datapath::DatapathConfig;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The state of this process between two others: of the former one what it has taken over, for the next one what it offers.
#[derive(Default)]
pub(super) struct Upgrade {
    pub predecessor: Option<Predecessor>,
    /// The socket for successors; `None`: this process cannot be succeeded.
    socket: Option<PathBuf>,
    /// The API's socket, until this process is the owner of its path.
    unnamed: Option<Unnamed>,
    api: Option<TcpListener>,
}

impl Upgrade {
    /// Asks a running UPF, if this process is to take one over.
    pub fn begin(config: &Config, hosting: &Hosting) -> Result<Self, StartError> {
        let is_upf_alone = hosting.upf && hosting.nfs.is_empty();
        if hosting.takes_over && !is_upf_alone {
            return Err(
                "'--take-over' is for a UPF in a process of its own: 'pith nf upf --take-over'".into()
            );
        }
        if !is_upf_alone {
            return Ok(Self::default());
        }
        let socket = socket_beside(&config.api_socket(Some("upf")));
        let predecessor = if hosting.takes_over { ask(config, &socket)? } else { None };
        Ok(Self { predecessor, socket: Some(socket), ..Self::default() })
    }

    /// Binds the API's socket; while another process has it, at another path.
    pub fn bind_api(&mut self, path: &Path, group: Option<&str>) -> io::Result<UnixListener> {
        if self.predecessor.is_none() {
            return bind_socket(path, group);
        }
        let (listener, unnamed) = Unnamed::bind(path, group)?;
        self.unnamed = Some(unnamed);
        Ok(listener)
    }

    /// The TCP listener of the API at that address: that of the running UPF, or a new one.
    pub fn api_at(
        &mut self,
        address: SocketAddr,
        bind: impl FnOnce() -> io::Result<TcpListener>,
    ) -> io::Result<TcpListener> {
        let inherited = self.predecessor.as_mut().and_then(Predecessor::take_api);
        let is_there = |listener: &TcpListener| listener.local_addr().is_ok_and(|at| at == address);
        let listener = inherited.filter(is_there).map_or_else(bind, Ok)?;
        self.api = self.socket.is_some().then(|| listener.try_clone()).transpose()?;
        Ok(listener)
    }

    /// What the UPF's thread needs to be succeeded.
    pub fn into_succeedable(self, config: &Config, datapath: &DatapathConfig) -> Option<Succeedable> {
        let Self { socket, unnamed, api, .. } = self;
        let publish = move || {
            if let Some(Err(error)) = unnamed.map(Unnamed::publish) {
                tracing::error!(%error, "the API's socket could not be taken over");
            }
        };
        Some(Succeedable {
            socket: socket?,
            settings: settings(config.upf.n4, datapath),
            api,
            begun: Box::new(publish),
            ended: Box::new(|| std::process::exit(0)),
        })
    }
}

/// The longest time for which a process that has ended keeps its sockets.
const LONGEST_END: Duration = Duration::from_secs(1);
const CHECK: Duration = Duration::from_millis(10);

/// Whether a UPF in a process of its own serves the API.
pub fn is_upf_running(config: &Config) -> bool {
    UnixStream::connect(config.api_socket(Some("upf"))).is_ok()
}

/// A UPF that awaits no successor any longer may still be ending.
fn await_end(config: &Config) {
    let begun = Instant::now();
    while is_upf_running(config) && begun.elapsed() < LONGEST_END {
        thread::sleep(CHECK);
    }
}

/// The running UPF; `None`: there is none, and this process starts as usual.
fn ask(config: &Config, socket: &Path) -> Result<Option<Predecessor>, StartError> {
    let datapath = super::user_plane::datapath(config);
    let found = Predecessor::ask(socket, settings(config.upf.n4, &datapath))?;
    if found.is_none() && UnixStream::connect(config.api_socket(None)).is_ok() {
        return Err("the UPF runs in the process of 'pith up', which cannot be upgraded without a restart: \
             to upgrade it alone, run it as 'pith nf upf', and the NFs likewise"
            .into());
    }
    if found.is_none() {
        await_end(config);
        tracing::info!("user plane: no UPF is running that could be taken over: this one starts afresh");
    }
    Ok(found)
}
