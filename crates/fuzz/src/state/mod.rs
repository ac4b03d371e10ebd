//! Dialogues: an NF is brought into a state, and then gets unexpected inputs.

mod amf;
mod choices;
mod material;
mod nfs;
mod smf;
mod stage;
mod world;

use crate::target::Target;

/// All dialogue targets.
pub const TARGETS: &[Target] = &[
    Target::dialogue("ausf", "authentications: each request one answer, none stays for ever", nfs::ausf),
    Target::dialogue("udm", "subscribers' data: each request one answer", nfs::udm),
    Target::dialogue("udr", "documents, and a database that fails: each request one answer", nfs::udr),
    Target::dialogue("pcf", "policy associations: each request one answer", nfs::pcf),
    Target::dialogue("nrf", "instances, subscriptions, discovery: each request one answer", nfs::nrf),
    Target::dialogue("nssf", "slices: each request one answer", nfs::nssf),
    Target::dialogue(
        "amf",
        "a phone in any state that does anything: another does not notice, nothing is left",
        amf::run,
    ),
    Target::dialogue(
        "smf",
        "sessions: each request one answer, and nothing is left when all are released",
        smf::run,
    ),
    Target::dialogue(
        "attack-ue",
        "a UE that sends anything over honest gNBs: honest UEs do not notice",
        world::ue,
    ),
    Target::dialogue("attack-gnb", "a gNB that sends anything: honest UEs do not notice", world::gnb),
    Target::dialogue("attack-n4", "a host that sends any PFCP: honest UEs do not notice", world::host),
    Target::dialogue("inside-n4", "PFCP in the name of SMF and UPF: nothing hangs", world::inside),
];
