//! The successor's side of an upgrade.

use super::channel::{Channel, Kind};
use super::message::{
    Accept, Hello, Inherited, PROTOCOL, Settings, decode_datagram, decode_packet, printable,
};
use crate::upf::n4::N4;
use pith_datapath::{DatapathConfig, PathReport, QueuedOctets, StartError, UserPlane, monotonic};
use pith_upf::contract::{Datapath, Event};
use pith_upf::handover::{FORMAT, HandoverError, Importer};
use pith_upf::{Config, HostAddresses, Upf};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time for each frame before the swap.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reason why a running UPF cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// It has refused, or has ended.
    #[error("the running UPF cannot be taken over: {0}")]
    Channel(#[from] io::Error),
    /// Its state is not valid here.
    #[error("the state of the running UPF: {0}")]
    State(#[from] HandoverError),
    /// The datapath cannot be succeeded.
    #[error("user plane: {0}")]
    Datapath(#[from] StartError),
}

/// A running UPF that this process takes over.
#[derive(Debug)]
pub struct Predecessor {
    channel: Channel,
    accept: Accept,
    inherited: Inherited,
}

impl Predecessor {
    /// Asks the UPF that listens on a socket; `None` if none does.
    pub fn ask(socket: &Path, settings: Settings) -> Result<Option<Self>, TakeOverError> {
        let stream = match UnixStream::connect(socket) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                return Ok(None);
            }
            stream => stream?,
        };
        let mut channel = Channel::new(stream)?;
        if !channel.is_trusted()? {
            return Err(io::Error::other("another user's process has the socket of the running UPF").into());
        }
        channel.limit(Some(PATIENCE))?;
        let version = env!("CARGO_PKG_VERSION").into();
        let hello = Hello { protocol: PROTOCOL, format: FORMAT, version, settings, takes_datagrams: true };
        channel.send(Kind::Hello, &serde_json::to_vec(&hello).map_err(io::Error::from)?)?;
        let accept: Accept =
            serde_json::from_slice(&channel.expect(Kind::Accept)?).map_err(io::Error::from)?;
        let descriptors = channel.receive_descriptors(accept.descriptors())?;
        let inherited = accept.assign(descriptors);
        let inherited = inherited.ok_or_else(|| io::Error::other("descriptors are missing"))?;
        Ok(Some(Self { channel, accept, inherited }))
    }

    /// The TCP listener of the API.
    pub fn take_api(&mut self) -> Option<TcpListener> {
        self.inherited.api.take()
    }

    /// Prepares the datapath, and installs all sessions in it.
    pub fn prepare(
        self,
        config: Config,
        seed: [u8; 32],
        datapath: &DatapathConfig,
    ) -> Result<Prepared, TakeOverError> {
        let Self { mut channel, accept, inherited: Inherited { n4, handles, .. } } = self;
        let Accept { version, zero, former, restoring, .. } = accept;
        let n4 = N4::new(n4)?;
        let datapath_config = DatapathConfig { refuses_unknown: !restoring, ..datapath.clone() };
        let (mut datapath, report) = UserPlane::take_over(&datapath_config, handles)?;
        let state = receive_state(&mut channel, zero, (config, seed), &mut datapath);
        let upf = match state {
            Ok(upf) => upf,
            Err(error) => {
                datapath.leave();
                return Err(error);
            }
        };
        let events = Vec::new();
        Ok(Prepared {
            channel,
            version: printable(&version),
            datagrams: Vec::new(),
            zero,
            former,
            restoring,
            upf,
            datapath,
            datapath_config,
            n4,
            report,
            events,
            reads: false,
        })
    }
}

fn receive_state(
    channel: &mut Channel,
    zero: u64,
    (config, seed): (Config, [u8; 32]),
    datapath: &mut UserPlane,
) -> Result<Upf, TakeOverError> {
    let host = datapath.host();
    let host = HostAddresses { local: host.local.clone(), broadcast: host.broadcast.clone() };
    let mut importer = Importer::new(Config { host, ..config }, seed);
    channel.send(Kind::Begin, b"")?;
    loop {
        match channel.receive()? {
            (Kind::State, record) => importer.take(now(zero), &record, datapath)?,
            (Kind::StateEnd, _) => return Ok(importer.finish()?),
            (kind, _) => return Err(io::Error::other(format!("{kind:?} within the state")).into()),
        }
    }
}

/// Whether the error means that the other process has ended.
fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// The time of UPF-C's clock that was 0 at `zero`.
pub fn now(zero: u64) -> Duration {
    Duration::from_micros(monotonic().saturating_sub(zero) / 1000)
}

/// A successor that has everything but the packets.
pub struct Prepared {
    channel: Channel,
    /// The running process's version.
    version: String,
    /// Datagrams of N4 that it received and did not handle.
    pub datagrams: Vec<(SocketAddr, Vec<u8>)>,
    pub zero: u64,
    former: Vec<(String, String)>,
    pub restoring: bool,
    pub upf: Upf,
    pub datapath: UserPlane,
    datapath_config: DatapathConfig,
    pub n4: N4,
    pub report: PathReport,
    /// Events that UPF-C has to handle first.
    pub events: Vec<Event>,
    /// Whether the workers read packets.
    reads: bool,
}

impl Prepared {
    /// Takes the packets over. After an error, the running process goes on.
    pub fn swap(&mut self) -> Result<(), TakeOverError> {
        self.datapath.set_controllers(self.upf.associations().map(|(_, address)| address.ip()).collect());
        self.channel.send(Kind::Ready, b"")?;
        self.channel.expect(Kind::Held)?;
        // From here on, only the end of the running process is certain.
        self.channel.limit(None)?;
        self.datapath.activate()?;
        let finished = self.finish();
        match finished {
            Err(TakeOverError::Channel(error)) if has_ended(&error) => {
                tracing::warn!(
                    "user plane: the former process ended too early: its last packets are in no usage report"
                );
                if !self.reads {
                    self.go_on(Vec::new())?;
                }
                Ok(())
            }
            finished => finished,
        }
    }

    fn finish(&mut self) -> Result<(), TakeOverError> {
        self.channel.send(Kind::Swapped, b"")?;
        self.receive_rest()?;
        Ok(self.channel.send(Kind::Done, b"")?)
    }

    /// Reads packets, behind those that the running process had queued.
    fn go_on(&mut self, packets: Vec<QueuedOctets>) -> io::Result<()> {
        self.reads = true;
        self.datapath.go_on(packets)?;
        self.take_events();
        Ok(())
    }

    /// Takes queued packets, and usage until the last packet.
    fn receive_rest(&mut self) -> Result<(), TakeOverError> {
        let mut packets = Vec::new();
        loop {
            match self.channel.receive()? {
                (Kind::Packet, octets) => packets.push(decode_packet(&octets)?),
                (Kind::PacketsEnd, _) => self.go_on(std::mem::take(&mut packets))?,
                (Kind::Counted, record) => {
                    self.upf.add_counted(now(self.zero), &record, &mut self.datapath)?;
                }
                (Kind::Datagram, octets) => self.datagrams.push(decode_datagram(&octets)?),
                (Kind::CountedEnd, _) => return Ok(()),
                (kind, _) => return Err(io::Error::other(format!("{kind:?} within usage")).into()),
            }
        }
    }

    /// Packets that were held before are held again: the SMF knows of those of which it was notified.
    fn take_events(&mut self) {
        let mut events = Vec::new();
        self.datapath.poll_events(&mut events);
        events.retain(|event| match event {
            Event::DownlinkData { session, pdr, .. } => !self.upf.has_reported(*session, *pdr),
            _ => true,
        });
        self.events = events;
    }

    /// Becomes the owner of the system's settings.
    pub fn own_system(&mut self) {
        let (sessions, version) = (self.upf.sessions().count(), &self.version);
        tracing::info!("user plane: took over {sessions} sessions of a running UPF (Pith {version})");
        if let Err(error) = self.datapath.own_system(&self.datapath_config, &self.former) {
            tracing::error!(%error, "user plane: the packet filter remains that of the former process");
        }
    }
}
