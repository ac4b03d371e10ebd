//! What a seed stands for: the shape of the core, how many UEs and gNBs, and which faults.

use crate::dice::Dice;
use pith_crypto::nas::CipheringAlgorithm;
use pith_nf::kit::Nf;

/// How often things go wrong while faults are on, per mille of the messages of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// NAS messages lost between UE and gNB.
    pub radio_loss: u32,
    /// PFCP datagrams lost, each way.
    pub pfcp_loss: u32,
    /// PFCP datagrams that come twice.
    pub pfcp_duplication: u32,
    /// SBI requests lost between processes.
    pub request_loss: u32,
    /// SBI answers lost between processes, after the work was done.
    pub reply_loss: u32,
    /// Timers that run out late, by up to a second.
    pub late_timers: u32,
    /// NG Resets by gNBs, in all.
    pub resets: u32,
    /// N2 associations that break, in all.
    pub breaks: u32,
    /// Restarts of UPFs, in all.
    pub upf_restarts: u32,
    /// Kills of NF processes, in all.
    pub kills: u32,
}

/// A world before it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Where it comes from.
    pub seed: u64,
    /// Processes, each with the NFs that it hosts.
    pub processes: Vec<Vec<Nf>>,
    /// Shards of each process.
    pub shards: usize,
    /// gNBs.
    pub gnbs: usize,
    /// UEs.
    pub ues: usize,
    /// UPFs, 1 or 2. The second can be put into sessions as a classifier, and taken out again.
    pub upfs: usize,
    /// Sessions have the classifier from the beginning, where it can be had.
    pub breaks_out: bool,
    /// The ciphering that the AMF likes most.
    pub ciphering: CipheringAlgorithm,
    /// What goes wrong.
    pub faults: Faults,
    /// What each UE does at most.
    pub acts: usize,
}

impl Plan {
    /// The plan of a seed. Every fourth world is without faults.
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x0070_6974_6800);
        let split = dice.chance(400);
        let processes = match split {
            true => Nf::ALL.into_iter().map(|nf| vec![nf]).collect(),
            false => vec![Nf::ALL.to_vec()],
        };
        let most_shards = if split { 2 } else { 3 };
        let ciphers = [
            CipheringAlgorithm::Nea0,
            CipheringAlgorithm::Nea1,
            CipheringAlgorithm::Nea2,
            CipheringAlgorithm::Nea3,
        ];
        let upfs = 1 + dice.index(2);
        Self {
            seed,
            processes,
            upfs,
            breaks_out: upfs > 1 && dice.chance(500),
            shards: 1 + dice.index(most_shards),
            gnbs: 1 + dice.index(3),
            ues: 1 + dice.index(6),
            ciphering: ciphers[dice.index(ciphers.len())],
            faults: if seed.is_multiple_of(4) { Faults::default() } else { Faults::draw(&mut dice, split) },
            acts: 3 + dice.index(10),
        }
    }

    /// One UE that registers and opens a session, all in one process, without faults: for ladders.
    pub fn clean() -> Self {
        Self {
            seed: 0,
            processes: vec![Nf::ALL.to_vec()],
            shards: 1,
            gnbs: 1,
            ues: 1,
            upfs: 1,
            breaks_out: false,
            ciphering: CipheringAlgorithm::Nea0,
            faults: Faults::default(),
            acts: 0,
        }
    }

    /// Whether nothing goes wrong.
    pub fn is_faultless(&self) -> bool {
        self.faults == Faults::default()
    }
}

impl Faults {
    /// Each kind of fault is there in some worlds and not in others.
    fn draw(dice: &mut Dice, split: bool) -> Self {
        let mut some =
            |often: u32, most: u64| if dice.chance(often) { dice.below(most) as u32 + 1 } else { 0 };
        Self {
            radio_loss: some(600, 100),
            pfcp_loss: some(500, 200),
            pfcp_duplication: some(500, 200),
            request_loss: if split { some(500, 40) } else { 0 },
            reply_loss: if split { some(300, 20) } else { 0 },
            late_timers: some(500, 300),
            resets: some(300, 2),
            breaks: some(400, 3),
            upf_restarts: some(300, 2),
            kills: if split { some(400, 2) } else { 0 },
        }
    }
}
