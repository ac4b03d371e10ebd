//! Loads the BPF program, sizes its tables, and attaches it to interfaces.

use super::XdpError;
use super::attach::{Attached, Attachment, dismiss};
use super::compile::address;
use super::conntrack::Conntrack;
use super::spread;
use crate::boundary::{one_sided_interfaces, tunnel_interfaces};
use crate::config::{DatapathConfig, XdpHook};
use crate::fib::ProgramSettings;
use crate::handover::LinkHandle;
use crate::rules::{BlockPool, BlockValues, Clock, Pool, Pools};
use crate::sys::layout::{
    BLOCK_FLOWS, BLOCK_METERS, FlowCell, Limits, Link, N3_ADDRESSES, Refused, SESSION_FLOWS, Session,
    Settings, Shared, Tally, UrrHalves,
};
use crate::sys::{Hook, MapMemory, driver_of, interface_index, link_address, vlan_of};
use crate::system::RouteMtus;
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel};
use pith_upf::qos::{Enforcement, Meter};
use std::ffi::OsStr;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

/// The compiled `bpf/upf.bpf.c`; empty if built without clang.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/upf.o"));
/// The same with NAT, which needs functions of the kernel's connection tracking.
const NAT_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/upf_nat.o"));
/// Attempts to load: a signal interrupts the kernel's verifier, and libbpf gives up after five interruptions.
const LOAD_ATTEMPTS: usize = 10;
/// The program's name.
pub const PROGRAM: &str = "pith_upf";
/// Slots beyond the configured sessions: a removed session keeps its slot while packets of it are queued.
const SPARE: u32 = 64;
/// Offset of the meters in a session's block.
const METERS_AT: usize = size_of::<Session>();
const TALLIES_AT: usize = METERS_AT + BLOCK_METERS * size_of::<Meter>();
const REFUSED_AT: usize = TALLIES_AT + BLOCK_FLOWS * size_of::<Tally>();
/// Octets of a session's block: what a session with two rules needs, for any number of CPUs.
pub const SESSION_BLOCK: usize = REFUSED_AT + BLOCK_FLOWS * size_of::<Refused>();

/// The number of entries of each table.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    sessions: u32,
    cpus: u32,
    /// CPUs over which packets of tunnels are spread.
    spread: u32,
    workers: u32,
    /// Bytes of the ring of events, a power of two and of pages.
    pub events: u32,
}

/// Octets of the caches of routes and senders of all CPUs, if that does not make them too small.
const ROUTE_CACHES: u32 = 16 << 20;
/// Octets of an entry of each.
const ROUTE_OCTETS: u32 = 64 + 40;
const LEAST_ROUTES: u32 = 1 << 10;
const MOST_ROUTES: u32 = 1 << 14;

/// The ring has room for 4,681 events.
const EVENTS: u32 = 1 << 18;

impl Sizes {
    /// For a configuration with this number of workers.
    pub fn of(config: &DatapathConfig, workers: usize) -> Result<Self, XdpError> {
        let cpus = libbpf_rs::num_possible_cpus()? as u32;
        Ok(Self {
            sessions: config.sessions.clamp(1, 1 << 20),
            cpus,
            spread: spread_over(config, cpus),
            workers: workers as u32,
            events: EVENTS,
        })
    }

    pub fn session_blocks(&self) -> u32 {
        self.sessions + SPARE
    }

    /// Entries of a look-up table of sets of eight: sessions with consecutive TEIDs or addresses rarely collide.
    fn direct_entries(&self) -> u32 {
        self.sessions.next_power_of_two() * 2
    }

    /// Slots for filters: only some sessions have filters.
    pub fn filters(&self) -> u32 {
        self.sessions / 8 + SPARE
    }

    /// Entries of a CPU's cache of routes and of its cache of senders: for 10,000 neighbours and more, unless there are many
    /// CPUs.
    fn routes(&self) -> u32 {
        let fits = (ROUTE_CACHES / (ROUTE_OCTETS * self.cpus.max(1))).max(1);
        (1 << fits.ilog2()).clamp(LEAST_ROUTES, MOST_ROUTES)
    }

    /// Places in the turn of outer ids. A power of two divides the number of ids, so that places keep their ids for ever.
    fn senders(&self) -> u32 {
        (self.cpus + self.workers).next_power_of_two()
    }

    /// Entries of a table; `None`: as declared in the program.
    fn entries(&self, table: &str) -> Option<u32> {
        Some(match table {
            // One more: the spare block in which new rules are published first.
            "sessions" => self.session_blocks() + 1,
            // More than two flows require more than two rules, which require filters.
            "filters" | "flows" => self.filters(),
            "meters" => self.sessions * 4 + SPARE,
            "usage" => self.sessions + SPARE,
            "limits" | "by_teid" => self.sessions * 2 + SPARE,
            "direct_teid" | "direct_v4" | "direct_v6" => self.direct_entries(),
            "by_v4" | "by_v6" => self.sessions + SPARE,
            "framed" => self.sessions * 4 + SPARE,
            "routes" | "senders" => self.routes(),
            "cpus" | "spread" => self.cpus,
            "events" => self.events,
            _ => return None,
        })
    }
}

/// The loaded program and its tables.
#[derive(Debug)]
pub struct Program {
    object: Object,
    sizes: Sizes,
}

/// Makes the table of routes' MTUs equal; `known` is what it has.
fn set_mtus(table: &MapHandle, known: &mut RouteMtus, wanted: &RouteMtus) -> io::Result<()> {
    let key =
        |(network, prefix): &(Ipv4Addr, u8)| [u32::from(*prefix).to_ne_bytes(), network.octets()].concat();
    let old: Vec<_> = known.keys().filter(|network| !wanted.contains_key(network)).copied().collect();
    for network in old {
        table.delete(&key(&network)).map_err(io::Error::other)?;
        known.remove(&network);
    }
    for (network, mtu) in wanted {
        if known.get(network) != Some(mtu) {
            table.update(&key(network), &mtu.to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
            known.insert(*network, *mtu);
        }
    }
    Ok(())
}

impl Program {
    /// Loads the program for frames of these interfaces, with NAT if the kernel's connection tracking is ready for it. Needs
    /// CAP_BPF and CAP_NET_ADMIN, and CAP_PERFMON for NAT.
    pub fn load(
        config: &DatapathConfig,
        clock: &Clock,
        sizes: Sizes,
        links: Vec<Link>,
        conntrack: Option<&Conntrack>,
    ) -> Result<Self, XdpError> {
        let object = if conntrack.is_some() { NAT_OBJECT } else { OBJECT };
        if object.is_empty() {
            return Err(XdpError::NotBuilt);
        }
        libbpf_rs::set_print(Some((PrintLevel::Info, |_, line| tracing::debug!("{}", line.trim()))));
        let conntrack = conntrack.map(Conntrack::times).unwrap_or_default();
        let settings = Settings { conntrack, ..settings(config, clock, sizes, links) }.encode();
        let load = || -> Result<Object, XdpError> {
            let mut open = ObjectBuilder::default().open_memory(object)?;
            resize(&mut open, &settings, sizes)?;
            spread::prepare(&mut open, sizes.spread);
            Ok(open.load()?)
        };
        let interrupted = |error: &XdpError| matches!(error, XdpError::Load(error) if error.kind() == ErrorKind::WouldBlock);
        let mut loaded = load();
        for _ in 1..LOAD_ATTEMPTS {
            if loaded.as_ref().is_err_and(interrupted) {
                loaded = load();
            }
        }
        let program = Self { object: loaded?, sizes };
        spread::start(&program, sizes.spread)?;
        Ok(program)
    }

    pub fn table(&self, name: &str) -> Result<MapHandle, XdpError> {
        let found = self.object.maps().find(|map| map.name() == OsStr::new(name));
        Ok(MapHandle::try_from(&found.ok_or(XdpError::Missing)?)?)
    }

    /// What the program has to know of the host's rules.
    pub fn settings(&self) -> Result<ProgramSettings, XdpError> {
        const PLACE: u32 = 1;
        let switches = self.table("incomplete")?;
        let detour = Box::new(move |is_on| {
            let value = u32::from(is_on).to_ne_bytes();
            switches.update(&PLACE.to_ne_bytes(), &value, MapFlags::ANY).map_err(io::Error::other)
        });
        let table = self.table("route_mtus")?;
        let mut known = RouteMtus::new();
        let route_mtus = Box::new(move |wanted: &RouteMtus| set_mtus(&table, &mut known, wanted));
        Ok(ProgramSettings { detour, route_mtus })
    }

    /// A program of the object.
    pub fn program(&self, name: &str) -> Result<OwnedFd, XdpError> {
        let found = self.object.progs().find(|program| program.name() == OsStr::new(name));
        Ok(found.ok_or(XdpError::Missing)?.as_fd().try_clone_to_owned()?)
    }

    /// A table's mapped memory, with `per_entry` values an entry.
    pub fn memory<T: Shared>(&self, name: &str, per_entry: u32) -> Result<MapMemory<T>, XdpError> {
        let table = self.table(name)?;
        if table.value_size() as usize != size_of::<T>() * per_entry as usize {
            return Err(XdpError::Missing);
        }
        let (entries, stride) = (table.max_entries() as usize, table.value_size() as usize);
        Ok(MapMemory::map(table.as_fd(), entries, stride, per_entry as usize)?)
    }

    /// The rules at the start of the sessions' blocks.
    pub fn sessions(&self) -> Result<MapMemory<Session>, XdpError> {
        let table = self.table("sessions")?;
        if table.value_size() as usize != SESSION_BLOCK {
            return Err(XdpError::Missing);
        }
        Ok(MapMemory::map(table.as_fd(), table.max_entries() as usize, SESSION_BLOCK, 1)?)
    }

    /// Meters and counters that the program shares.
    pub fn pools(&self) -> Result<Pools, XdpError> {
        let blocks = self.sessions()?;
        let blocks = BlockValues {
            meters: blocks.part(METERS_AT, BLOCK_METERS),
            tallies: blocks.part(TALLIES_AT, BLOCK_FLOWS),
            refused: blocks.part(REFUSED_AT, BLOCK_FLOWS),
            groups: self.memory::<FlowCell>("flows", (SESSION_FLOWS - BLOCK_FLOWS) as u32)?,
        };
        Ok(Pools {
            session_blocks: BlockPool::in_map(blocks, self.sizes.session_blocks()),
            meters: Pool::in_map(1, self.memory::<Meter>("meters", 1)?),
            urrs: Pool::in_map(1, self.memory::<UrrHalves>("usage", 1)?),
            limits: Pool::in_map(1, self.memory::<Limits>("limits", 1)?),
            first_sender: self.sizes.cpus as usize,
        })
    }

    /// Attaches the program to the interfaces, or to the attachments of a running process, if there are any; the fast path is active
    /// from then on.
    pub fn attach(&self, config: &DatapathConfig, links: Vec<LinkHandle>) -> Result<Attached, XdpError> {
        let DatapathConfig { interfaces: names, xdp_hook: hook, pin, .. } = config;
        let one_sided = one_sided_interfaces(config);
        let mut interfaces = names.iter().map(|name| Interface::of(name)).collect::<Result<Vec<_>, _>>()?;
        for (interface, name) in interfaces.iter_mut().zip(names) {
            interface.one_sided = one_sided.contains(name);
        }
        self.make_ports(&interfaces)?;
        let program = self.object.progs().find(|program| program.name() == OsStr::new(PROGRAM));
        let program = program.ok_or(XdpError::Missing)?;
        let predecessor = self.table("predecessor")?;
        let devices = Device::all(&interfaces).into_iter().map(|device| device.index).collect();
        let attachment = Attachment {
            program: program.as_fd(),
            predecessor: &predecessor,
            devices,
            folder: pin.as_deref(),
        };
        if !links.is_empty() {
            let hook = if links.iter().any(|link| link.generic) { Hook::Generic } else { Hook::Native };
            return attachment.succeed(links, hook);
        }
        let veth = interfaces.iter().any(|interface| interface.driver == "veth");
        match hook {
            XdpHook::Native => attachment.start(Hook::Native),
            // If the previous process had to use the generic hook, so must this one: a native program would
            // end its sessions.
            XdpHook::Auto if !veth && !attachment.is_pinned(Hook::Generic) => {
                attachment.start(Hook::Native).or_else(|error| {
                    tracing::warn!(%error, "the driver has no XDP: the generic hook is slower");
                    attachment.start(Hook::Generic)
                })
            }
            // A veth drops redirected frames unless its peer, which may be in another namespace, is prepared
            // for them.
            XdpHook::Auto | XdpHook::Generic => attachment.start(Hook::Generic),
        }
    }

    /// Attaches the program again, after another process has perhaps replaced it.
    pub fn reclaim(&self, attached: &Attached) -> Result<(), XdpError> {
        let program = self.object.progs().find(|program| program.name() == OsStr::new(PROGRAM));
        Ok(attached.reclaim(program.ok_or(XdpError::Missing)?.as_fd())?)
    }

    /// Releases the predecessor.
    pub fn dismiss_predecessor(&self) -> Result<(), XdpError> {
        dismiss(&self.table("predecessor")?)
    }

    /// Runs the program on one frame; returns the verdict and the resulting frame.
    #[cfg(test)]
    pub fn run(&self, frame: &[u8]) -> (u32, Vec<u8>) {
        let program = self.object.progs_mut().find(|program| program.name() == OsStr::new(PROGRAM)).unwrap();
        let mut out = vec![0; 4096];
        let input =
            libbpf_rs::ProgramInput { data_in: Some(frame), data_out: Some(&mut out), ..Default::default() };
        let output = program.test_run(input).unwrap();
        (output.return_value, output.data.unwrap_or_default().to_vec())
    }

    /// The program, for threads that run it at the same time.
    #[cfg(test)]
    pub fn descriptor(&self) -> std::os::fd::OwnedFd {
        let program = self.object.progs().find(|program| program.name() == OsStr::new(PROGRAM)).unwrap();
        program.as_fd().try_clone_to_owned().unwrap()
    }

    /// The devices that receive the packets of these interfaces.
    pub fn devices(names: &[String]) -> Result<Vec<Device>, XdpError> {
        let interfaces = names.iter().map(|name| Interface::of(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Device::all(&interfaces))
    }

    /// Registers the interfaces by which the program may send packets.
    pub fn make_ports(&self, interfaces: &[Interface]) -> Result<(), XdpError> {
        let (ports, devices) = (self.table("ports")?, self.table("devices")?);
        for (slot, interface) in interfaces.iter().enumerate() {
            let slot = (slot as u32).to_ne_bytes();
            let vlan = u32::from(interface.vlan.to_be()).to_ne_bytes();
            let one_sided = u32::from(interface.one_sided).to_ne_bytes();
            devices.update(&slot, &interface.device.to_ne_bytes(), MapFlags::ANY)?;
            ports.update(&interface.index.to_ne_bytes(), &[slot, vlan, one_sided].concat(), MapFlags::ANY)?;
        }
        Ok(())
    }
}

/// A device of one or more interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    pub index: u32,
    /// A bit for each of its slots in `devices`.
    pub slots: u64,
}

impl Device {
    /// The devices of `interfaces`, in the order of their slots.
    fn all(interfaces: &[Interface]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (slot, interface) in interfaces.iter().enumerate() {
            let bit = 1u64.checked_shl(slot as u32).unwrap_or(0);
            match all.iter_mut().find(|device| device.index == interface.device) {
                Some(device) => device.slots |= bit,
                None => all.push(Self { index: interface.device, slots: bit }),
            }
        }
        all
    }
}

/// An interface and its receiving device.
#[derive(Debug)]
pub struct Interface {
    pub index: u32,
    pub device: u32,
    /// 0: untagged.
    pub vlan: u16,
    pub driver: String,
    /// Whether it leads to gNBs and other UPFs only.
    pub one_sided: bool,
}

impl Interface {
    fn of(name: &str) -> Result<Self, XdpError> {
        let error = |source: io::Error| XdpError::Interface { name: name.to_owned(), source };
        let (parent, vlan) = vlan_of(name).unwrap_or((name.to_owned(), 0));
        let index = interface_index(name).map_err(error)?;
        let device = interface_index(&parent).map_err(error)?;
        Ok(Self { index, device, vlan, driver: driver_of(&parent).unwrap_or_default(), one_sided: false })
    }
}

/// The number of CPUs, if packets of tunnels are spread over them: those that are online from the first to the first gap.
fn spread_over(config: &DatapathConfig, possible: u32) -> u32 {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let first =
        online.trim().split(',').next().and_then(|range| range.strip_prefix("0-")?.parse::<u32>().ok());
    first.filter(|_| config.spread).map_or(0, |last| (last + 1).min(possible))
}

/// The devices of those of these interfaces that exist.
pub fn devices_there(names: &[String]) -> impl Iterator<Item = u32> {
    names.iter().filter_map(|name| Some(Interface::of(name).ok()?.device))
}

/// The links whose frames the program handles, and whether each receives GTP-U.
pub fn links(config: &DatapathConfig) -> Result<Vec<Link>, XdpError> {
    let has_tunnels = tunnel_interfaces(config);
    let link = |name: &String| {
        let error = |source: io::Error| XdpError::Interface { name: name.clone(), source };
        let Interface { device, vlan, .. } = Interface::of(name)?;
        let tunnels = has_tunnels.contains(name);
        Ok(Link { device, vlan, ethernet: link_address(name).map_err(error)?, tunnels })
    };
    config.interfaces.iter().map(link).collect()
}

fn resize(open: &mut OpenObject, settings: &[u8], sizes: Sizes) -> Result<(), XdpError> {
    for mut table in open.maps_mut() {
        let name = table.name().to_string_lossy().into_owned();
        if let Some(entries) = sizes.entries(&name) {
            table.set_max_entries(entries)?;
        }
        if name.ends_with(".rodata") {
            table.set_initial_value(settings)?;
        }
    }
    Ok(())
}

fn settings(config: &DatapathConfig, clock: &Clock, sizes: Sizes, links: Vec<Link>) -> Settings {
    let mut settings = Settings {
        started: clock.started(),
        cpus: sizes.cpus,
        senders: sizes.senders(),
        ue_mtu: config.mtu.into(),
        shapes: config.enforcement == Enforcement::Shape,
        direct_mask: sizes.direct_entries() - 1,
        pinned: config.pin.is_some(),
        hairpin: config.is_hairpin_direct(),
        links,
        outer_ecn: config.outer_ecn,
        flow_ports: config.flow_ports,
        route_mask: sizes.routes() - 1,
        spread: sizes.spread,
        ..Settings::default()
    };
    let addresses = config.n3_addresses.iter().take(N3_ADDRESSES);
    let v4 = addresses.clone().filter(|address| address.is_ipv4()).map(|v4| address(*v4).low as u32);
    let v6 = addresses.filter(|address| address.is_ipv6()).map(|v6| address(*v6));
    settings.n3_v4.iter_mut().zip(v4).for_each(|(slot, v4)| *slot = v4);
    settings.n3_v6.iter_mut().zip(v6).for_each(|(slot, v6)| *slot = v6);
    settings
}
