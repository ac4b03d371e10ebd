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
    Target::dialogue("ausf", "authentications: one answer for each request, none stays for ever", nfs::ausf),
    Target::dialogue("udm", "subscriber data: one answer for each request", nfs::udm),
    Target::dialogue("udr", "documents, and a failing database: one answer for each request", nfs::udr),
    Target::dialogue("pcf", "policy associations: one answer for each request", nfs::pcf),
    Target::dialogue("nrf", "instances, subscriptions, discovery: one answer for each request", nfs::nrf),
    Target::dialogue("nssf", "slices: one answer for each request", nfs::nssf),
    Target::dialogue(
        "amf",
        "a misbehaving UE in any state: others are not affected, no state is left",
        amf::run,
    ),
    Target::dialogue(
        "smf",
        "sessions: one answer for each request, and no state is left when all are released",
        smf::run,
    ),
    Target::dialogue("attack-ue", "a hostile UE over honest gNBs: honest UEs are not affected", world::ue),
    Target::dialogue("attack-gnb", "a hostile gNB: honest UEs are not affected", world::gnb),
    Target::dialogue("attack-n4", "a hostile PFCP host: honest UEs are not affected", world::host),
    Target::dialogue("inside-n4", "PFCP with forged SMF and UPF addresses: nothing hangs", world::inside),
];
