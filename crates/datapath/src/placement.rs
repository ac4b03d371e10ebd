//! Which CPUs receive the packets of network devices: the number of receive queues, the CPUs of the interrupts, and the NUMA
//! node of the card, as sysfs and `/proc/irq` have them.

use crate::sys::vlan_of;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a device's packets are received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    device: String,
    /// Its receive queues.
    queues: usize,
    /// The CPUs of its interrupts; empty if it has none of its own.
    cpus: BTreeSet<usize>,
    /// The NUMA node, if the host has several.
    node: Option<u32>,
}

/// The directories of the kernel's files.
struct Roots {
    sys: PathBuf,
    proc: PathBuf,
}

/// The devices of the interfaces, each once; a VLAN's packets are received by its device. Without those that sysfs does not have, as in a
/// namespace without its own.
pub fn of(interfaces: &[String]) -> Vec<Placement> {
    let device = |name: &String| vlan_of(name).map_or_else(|| name.clone(), |(device, _)| device);
    let devices: BTreeSet<_> = interfaces.iter().map(device).collect();
    let roots = Roots { sys: "/sys".into(), proc: "/proc".into() };
    devices.into_iter().filter_map(|device| Placement::read(&roots, device)).collect()
}

/// The number of receive queues.
pub fn queues(placements: &[Placement]) -> usize {
    placements.iter().map(|placement| placement.queues).sum()
}

/// What would let more of `cpus` CPUs receive packets; `None`: nothing.
pub fn remedy(placements: &[Placement], cpus: usize, is_spread: bool) -> Option<String> {
    let of = |narrow: fn(&Placement) -> bool| placements.iter().find(|it| cpus > 1 && narrow(it));
    let single = of(|it| it.queues == 1 && it.device != "lo").filter(|_| !is_spread).map(|Placement { device, .. }| {
        format!("'upf.spread: true' or 'ethtool -L {device} combined {cpus}', if the CPU of {device}'s queue is busy")
    });
    single.or_else(|| {
        let Placement { device, .. } = of(|it| it.queues > 1 && it.cpus.len() == 1)?;
        Some(format!("irqbalance, or /proc/irq/*/smp_affinity: one CPU takes all interrupts of {device}"))
    })
}

impl Placement {
    fn read(roots: &Roots, device: String) -> Option<Self> {
        let of_device = roots.sys.join("class/net").join(&device);
        let is_receive_queue = |name: &String| name.starts_with("rx-");
        let queues = names(&of_device.join("queues")).iter().filter(|name| is_receive_queue(name)).count();
        // Of a virtio device, the card is above it.
        let card = [of_device.join("device"), of_device.join("device/..")];
        let interrupts =
            card.iter().map(|card| names(&card.join("msi_irqs"))).find(|names| !names.is_empty());
        let affinity = |interrupt: &String| {
            let of = roots.proc.join("irq").join(interrupt);
            let list = ["effective_affinity_list", "smp_affinity_list"]
                .map(|name| fs::read_to_string(of.join(name)));
            list.into_iter().flatten().map(|list| cpus_of(&list)).find(|cpus| !cpus.is_empty())
        };
        let cpus = interrupts.iter().flatten().filter_map(affinity).flatten().collect();
        let node =
            card.iter().find_map(|card| fs::read_to_string(card.join("numa_node")).ok()?.trim().parse().ok());
        let node = node.filter(|_| roots.sys.join("devices/system/node/node1").exists());
        (queues > 0).then_some(Self { device, queues, cpus, node })
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, queues, cpus, node } = self;
        let plural = if *queues == 1 { "" } else { "s" };
        write!(f, "{device}: {queues} receive queue{plural}")?;
        if !cpus.is_empty() {
            write!(f, " on CPU {}", ranges(cpus))?;
        }
        node.map_or(Ok(()), |node| write!(f, " of NUMA node {node}"))
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The CPUs of a list such as `0-3,8`.
fn cpus_of(list: &str) -> BTreeSet<usize> {
    let parts = list.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    });
    parts.flatten().collect()
}

/// CPUs as such a list.
fn ranges(cpus: &BTreeSet<usize>) -> String {
    let cpus: Vec<_> = cpus.iter().copied().collect();
    let runs = cpus.chunk_by(|one, next| one + 1 == *next).map(|run| match *run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is removed at the end.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A host with a virtio card of `queues` receive queues, whose interrupts have these CPUs.
    fn host(name: &str, queues: usize, affinities: &[&str]) -> (Folder, Placement) {
        let folder =
            Folder(std::env::temp_dir().join(format!("pith-placement-{name}-{}", std::process::id())));
        let roots = Roots { sys: folder.0.join("sys"), proc: folder.0.join("proc") };
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let card = roots.sys.join("devices/pci");
        let of_device = roots.sys.join("class/net/eth1");
        for queue in 0..queues {
            write(of_device.join(format!("queues/rx-{queue}/rps_cpus")), "0");
            write(of_device.join(format!("queues/tx-{queue}/xps_cpus")), "0");
        }
        fs::create_dir_all(card.join("virtio0")).unwrap();
        fs::create_dir_all(&of_device).unwrap();
        std::os::unix::fs::symlink(card.join("virtio0"), of_device.join("device")).unwrap();
        write(card.join("numa_node"), "1\n");
        write(roots.sys.join("devices/system/node/node1/cpulist"), "4-7\n");
        for (at, affinity) in affinities.iter().enumerate() {
            write(card.join(format!("msi_irqs/{}", 30 + at)), "msix\n");
            write(roots.proc.join(format!("irq/{}/effective_affinity_list", 30 + at)), affinity);
        }
        let placement = Placement::read(&roots, "eth1".into()).unwrap();
        (folder, placement)
    }

    #[test]
    fn queues_cpus_and_node_of_a_card_are_told() {
        let (_folder, placement) = host("spread", 3, &["4\n", "6\n", "5\n", "9\n"]);
        assert_eq!(placement.to_string(), "eth1: 3 receive queues on CPU 4-6,9 of NUMA node 1");
        assert_eq!((queues(std::slice::from_ref(&placement)), remedy(&[placement], 8, false)), (3, None));
    }

    #[test]
    fn a_card_without_interrupts_of_its_own_has_queues() {
        let (_folder, placement) = host("veth", 1, &[]);
        assert_eq!(placement.to_string(), "eth1: 1 receive queue of NUMA node 1");
    }

    #[test]
    fn one_queue_or_one_cpu_of_several_has_a_remedy() {
        let (_folder, single) = host("single", 1, &["0\n"]);
        let told = remedy(std::slice::from_ref(&single), 8, false).unwrap();
        assert!(told.contains("upf.spread") && told.contains("ethtool -L eth1 combined 8"), "{told}");
        assert_eq!(remedy(std::slice::from_ref(&single), 1, false), None, "one CPU");
        assert_eq!(remedy(&[single], 8, true), None, "spread");
        let (_folder, narrow) = host("narrow", 2, &["3\n", "3\n"]);
        assert!(remedy(&[narrow], 8, true).unwrap().contains("smp_affinity"));
    }

    #[test]
    fn a_device_that_sysfs_does_not_have_is_not_told() {
        assert_eq!(of(&["no-such".to_owned()]), []);
    }

    #[test]
    fn lists_of_cpus_are_read_and_written() {
        for list in ["0", "0-3", "0,2-4,7"] {
            assert_eq!(ranges(&cpus_of(list)), list);
        }
        assert!(cpus_of("").is_empty() && cpus_of("x-3").is_empty());
    }
}
