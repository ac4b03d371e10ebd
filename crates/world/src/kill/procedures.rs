//! The procedures during which a process is killed.

use crate::plan::Residency;
use crate::services::{EmergencyUes, Reachability, Services};
use crate::world::{Act, EMERGENCY, Ends, Fault, LOCAL, REFLECTIVE_RULE, SubscriptionChange};
use pith_nf::kit::Deregister;
use std::time::Duration;

/// What the first UE does, or what happens to it.
#[derive(Debug)]
pub struct Procedure {
    /// Its name.
    pub name: &'static str,
    /// Actions before, each completed.
    pub(crate) before: &'static [Act],
    /// Time that passes before crash points count.
    pub(crate) lead: Duration,
    /// The beginning of the procedure.
    pub(crate) act: Act,
    /// Crash points within this time count.
    pub(crate) window: Duration,
    /// What the UE loses by the procedure itself.
    pub(crate) ends: Ends,
    /// A UPF can be inserted into sessions as a classifier.
    pub(crate) needs_classifier: bool,
    /// UEs can move to another gNB.
    pub(crate) needs_gnbs: bool,
    /// That gNB is at an AMF of another AMF Set, which has a process of its own.
    pub(crate) needs_amfs: bool,
    /// The first AMF passes UEs on to the second one.
    pub(crate) reallocates: bool,
    /// What there is beside registrations and sessions.
    pub(crate) services: Services,
    /// Of the chosen crash points every n-th counts, if not all are chosen.
    pub(crate) thinning: u64,
}

impl Procedure {
    const fn new(name: &'static str, before: &'static [Act], act: Act) -> Self {
        Self {
            name,
            before,
            lead: Duration::ZERO,
            act,
            window: Duration::from_secs(3),
            ends: Ends::Nothing,
            needs_classifier: false,
            needs_gnbs: false,
            needs_amfs: false,
            reallocates: false,
            services: Services {
                ladn: false,
                emergency: EmergencyUes::None,
                reachability: Reachability::Drx,
                delegation: 0,
            },
            thinning: 1,
        }
    }

    /// Whether the residency can be configured. A document of all NFs of a UE has room for one AMF.
    pub const fn may_have(&self, residency: Residency) -> bool {
        !self.needs_amfs || !residency.needs_runtime_store()
    }

    const fn ends(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }

    const fn within(self, seconds: u64) -> Self {
        Self { window: Duration::from_secs(seconds), ..self }
    }

    const fn after(self, seconds: u64) -> Self {
        Self { lead: Duration::from_secs(seconds), ..self }
    }

    const fn with_gnbs(self) -> Self {
        Self { needs_gnbs: true, ..self }
    }

    /// An AMF that ends does not transfer the context: the other one registers the UE without it.
    const fn with_amfs(self) -> Self {
        Self { needs_gnbs: true, needs_amfs: true, ends: Ends::Context, ..self }
    }

    const fn with_reallocation(self) -> Self {
        Self { needs_amfs: true, reallocates: true, ends: Ends::Context, thinning: 4, ..self }
    }

    const fn with_ladn(self) -> Self {
        Self { needs_gnbs: true, services: Services { ladn: true, ..self.services }, thinning: 4, ..self }
    }

    const fn of_emergency(self, emergency: EmergencyUes) -> Self {
        Self { services: Services { emergency, ..self.services }, thinning: 4, ..self }
    }

    const fn requesting(self, reachability: Reachability) -> Self {
        Self { services: Services { reachability, ..self.services }, thinning: 4, ..self }
    }

    const fn delegating(self, bits: u8) -> Self {
        Self { services: Services { delegation: bits, ..self.services }, thinning: 4, ..self }
    }

    const fn thinned(self) -> Self {
        Self { thinning: 4, ..self }
    }

    const fn with_classifier(self) -> Self {
        Self { needs_classifier: true, ..self }
    }
}

use Act::{Deregister as Leave, DownlinkFor, Establish, Fail, Idle, OrderDeregister, Register, Release};
use Act::{RequestService, Restart, Vanish};

const SESSION: &[Act] = &[Register, Establish(1)];
const IDLE: &[Act] = &[Register, Establish(1), Idle];
const LEFT: &[Act] = &[Register, Establish(1), Leave { switch_off: false }];
const TWO_SESSIONS: &[Act] = &[Register, Establish(1), Establish(2)];
const AT_ANOTHER_AMF: &[Act] = &[Register, Establish(1), Act::N2Handover, Act::Wait, Act::Wait];
/// The AMF does not know of the failure yet.
const LOST: &[Act] = &[Register, Establish(1), Act::LoseRadio];
const MOVED: &[Act] = &[Register, Establish(1), Act::XnHandover];
const SECONDARY: Act = Act::MoveFlows { secondary: true };
const SPLIT: &[Act] = &[Register, Establish(1), SECONDARY];
const FLOW: &[Act] = &[Register, Establish(1), Act::AddFlow(1, 0)];
const FLOW_IDLE: &[Act] = &[Register, Establish(1), Act::AddFlow(1, 0), Idle];
const CHANGE: Act = Act::ChangeSubscription(SubscriptionChange::Rates(50));
const UNSUBSCRIBE: Act = Act::ChangeSubscription(SubscriptionChange::End);
const CHANGED_IDLE: &[Act] = &[Register, Establish(1), Idle, CHANGE];
const RESTARTED: &[Act] = &[Register, Establish(1), Restart];
/// Registration and session, then 14 times: a restart, a service request, the release of the connection. The AMF reserves NAS COUNTs at each
/// restart.
const fn aged() -> [Act; 2 + 3 * 14] {
    let mut acts = [Restart; 2 + 3 * 14];
    (acts[0], acts[1]) = (Register, Establish(1));
    let mut at = 3;
    while at + 1 < acts.len() {
        (acts[at], acts[at + 1]) = (RequestService, Idle);
        at += 3;
    }
    acts
}

/// After these restarts the AMF has reserved more NAS COUNTs than the UE can estimate: it authenticates the UE at its next request.
const AGED: &[Act] = &aged();
const REFLECTIVE: &[Act] = &[Register, Establish(1), Act::AddFlow(1, REFLECTIVE_RULE)];
const IN_LADN: &[Act] = &[Register, Establish(LOCAL)];
const IDLE_OUTSIDE: &[Act] = &[Register, Establish(LOCAL), Idle, Act::Reselect];
const OUTSIDE: &[Act] = &[Register, Establish(1), Establish(LOCAL), Act::XnHandover];
const IN_EMERGENCY: &[Act] = &[Register, Establish(EMERGENCY)];
const BRANCHED: &[Act] = &[Register, Establish(1), Act::Branch(1)];

/// All procedures.
pub static PROCEDURES: &[Procedure] = &[
    Procedure::new("initial-registration", &[], Register),
    Procedure::new("registration-with-known-guti", LEFT, Register),
    Procedure::new("registration-over-registration", &[Register, Establish(1), Vanish], Register),
    Procedure::new(
        "registration-with-resynchronisation",
        &[Register, Leave { switch_off: false }, Restart, Act::LoseSequenceNumber],
        Register,
    ),
    Procedure::new("mobility-update-idle", IDLE, Register),
    Procedure::new("mobility-update-connected", SESSION, Register),
    Procedure::new("mobility-update-after-restart", RESTARTED, Register),
    Procedure::new("periodic-update", IDLE, Act::Wait).after(596),
    Procedure::new("service-request", IDLE, RequestService),
    Procedure::new(
        "service-request-two-sessions",
        &[Register, Establish(1), Establish(2), Idle],
        RequestService,
    ),
    Procedure::new("service-request-after-restart", RESTARTED, RequestService),
    Procedure::new("service-request-with-authentication", AGED, RequestService).ends(Ends::SecurityContext),
    Procedure::new("paging", IDLE, DownlinkFor { lost: false }),
    Procedure::new("paging-after-restart", RESTARTED, DownlinkFor { lost: false }),
    Procedure::new("an-release", SESSION, Idle),
    Procedure::new("xn-handover", SESSION, Act::XnHandover).with_gnbs(),
    Procedure::new("xn-handover-two-sessions", TWO_SESSIONS, Act::XnHandover).with_gnbs(),
    Procedure::new("xn-handover-after-handover", MOVED, Act::XnHandover).with_gnbs(),
    Procedure::new("n2-handover", SESSION, Act::N2Handover).with_gnbs(),
    Procedure::new("n2-handover-two-sessions", TWO_SESSIONS, Act::N2Handover).with_gnbs(),
    Procedure::new("n2-handover-after-handover", MOVED, Act::N2Handover).with_gnbs(),
    Procedure::new("n2-handover-to-another-amf", SESSION, Act::N2Handover).within(15).with_amfs(),
    Procedure::new("n2-handover-back-to-the-first-amf", AT_ANOTHER_AMF, Act::N2Handover)
        .within(15)
        .with_amfs(),
    Procedure::new("mobility-update-at-another-amf", IDLE, Act::Reselect).with_amfs(),
    Procedure::new("mobility-update-at-another-amf-after-radio-failure", LOST, Act::Reselect).with_amfs(),
    Procedure::new("flow-mobility", SESSION, SECONDARY).with_gnbs(),
    Procedure::new("flow-mobility-two-sessions", TWO_SESSIONS, SECONDARY).with_gnbs(),
    Procedure::new("flow-mobility-back", SPLIT, Act::MoveFlows { secondary: false }).with_gnbs(),
    Procedure::new("xn-handover-in-dual-connectivity", SPLIT, Act::XnHandover).with_gnbs(),
    Procedure::new("n2-handover-in-dual-connectivity", SPLIT, Act::N2Handover).with_gnbs(),
    Procedure::new("an-release-in-dual-connectivity", SPLIT, Idle).with_gnbs(),
    Procedure::new("registration-update-after-handover", MOVED, Register).with_gnbs(),
    Procedure::new("radio-failure", SESSION, Act::LoseRadio).within(11),
    Procedure::new("error-indication", SESSION, DownlinkFor { lost: true }),
    Procedure::new("session-establishment", &[Register], Establish(1)),
    Procedure::new("second-session-establishment", SESSION, Establish(2)),
    Procedure::new("session-establishment-idle", &[Register, Idle], Establish(1)),
    Procedure::new("session-release", SESSION, Release(1)).ends(Ends::Session(1)),
    Procedure::new("session-modification-by-pcf", SESSION, Act::ChangePolicy(1)),
    Procedure::new("session-modification-by-pcf-idle", IDLE, Act::ChangePolicy(1)),
    Procedure::new("flow-addition", SESSION, Act::AddFlow(1, 0)),
    Procedure::new("flow-addition-idle", IDLE, Act::AddFlow(1, 0)),
    Procedure::new("flow-removal", FLOW, Act::RemoveFlow(1, 0)),
    Procedure::new("service-request-with-flow", FLOW_IDLE, RequestService),
    Procedure::new("xn-handover-with-flow", FLOW, Act::XnHandover).with_gnbs(),
    Procedure::new("n2-handover-with-flow", FLOW, Act::N2Handover).with_gnbs(),
    Procedure::new("session-release-by-pcf", SESSION, Act::EndPolicy(1)).ends(Ends::Session(1)),
    Procedure::new("session-release-by-pcf-idle", IDLE, Act::EndPolicy(1)).ends(Ends::Session(1)),
    Procedure::new("deregistration", SESSION, Leave { switch_off: false }).ends(Ends::Registration),
    Procedure::new("deregistration-idle", IDLE, Leave { switch_off: false }).ends(Ends::Registration),
    Procedure::new("switch-off", SESSION, Leave { switch_off: true }).ends(Ends::Registration),
    Procedure::new("deregistration-by-operator", SESSION, OrderDeregister(Deregister::Withdrawn))
        .ends(Ends::Registration),
    Procedure::new("deregistration-by-operator-idle", IDLE, OrderDeregister(Deregister::Withdrawn))
        .ends(Ends::Registration),
    Procedure::new("re-registration-by-operator", SESSION, OrderDeregister(Deregister::Anew))
        .ends(Ends::Registration),
    Procedure::new("deregistration-by-udm", SESSION, Act::Withdraw).ends(Ends::Registration),
    Procedure::new("subscription-change", SESSION, CHANGE),
    Procedure::new("subscription-change-idle", IDLE, CHANGE),
    Procedure::new("service-request-with-changed-subscription", CHANGED_IDLE, RequestService),
    Procedure::new("subscription-end", SESSION, UNSUBSCRIBE).ends(Ends::Session(1)),
    Procedure::new("subscription-end-idle", IDLE, UNSUBSCRIBE).ends(Ends::Session(1)),
    Procedure::new("branch-insertion", SESSION, Act::Branch(1)).within(5).with_classifier(),
    Procedure::new("branch-removal", BRANCHED, Act::Unbranch(1)).within(5).with_classifier(),
    Procedure::new("ng-reset", SESSION, Fail(Fault::GnbReset(0))),
    Procedure::new("association-loss", SESSION, Fail(Fault::AssociationLost(0))).within(5),
    Procedure::new("restart", SESSION, Restart).within(6),
    Procedure::new("restart-idle", IDLE, Restart).within(6),
    Procedure::new("registration-with-reallocation", &[], Register).within(15).with_reallocation(),
    Procedure::new("registration-update-after-reallocation", IDLE, Register).with_reallocation(),
    Procedure::new("ladn-establishment", &[Register], Establish(LOCAL)).with_ladn(),
    Procedure::new("ladn-establishment-outside", MOVED, Establish(LOCAL)).with_ladn(),
    Procedure::new("ladn-leaving", IN_LADN, Act::XnHandover).ends(Ends::Session(LOCAL)).with_ladn(),
    Procedure::new("ladn-leaving-by-n2-handover", IN_LADN, Act::N2Handover)
        .ends(Ends::Session(LOCAL))
        .with_ladn(),
    Procedure::new("ladn-leaving-idle", IDLE_OUTSIDE, RequestService).ends(Ends::Session(LOCAL)).with_ladn(),
    Procedure::new("ladn-leaving-idle-with-update", IDLE_OUTSIDE, Register)
        .ends(Ends::Session(LOCAL))
        .with_ladn(),
    Procedure::new("ladn-entering", OUTSIDE, Act::XnHandover).with_ladn(),
    Procedure::new("emergency-registration", &[], Register).of_emergency(EmergencyUes::Subscribers),
    Procedure::new("emergency-registration-session", &[Register], Establish(EMERGENCY))
        .of_emergency(EmergencyUes::Subscribers),
    Procedure::new("emergency-registration-without-sim", &[], Register)
        .of_emergency(EmergencyUes::WithoutSim),
    Procedure::new("emergency-session-without-sim", &[Register], Establish(EMERGENCY))
        .of_emergency(EmergencyUes::WithoutSim),
    Procedure::new("emergency-session", &[Register], Establish(EMERGENCY))
        .of_emergency(EmergencyUes::Registered),
    Procedure::new("emergency-session-idle", &[Register, Idle], Establish(EMERGENCY))
        .of_emergency(EmergencyUes::Registered),
    Procedure::new("emergency-session-release", IN_EMERGENCY, Release(EMERGENCY))
        .ends(Ends::Session(EMERGENCY))
        .of_emergency(EmergencyUes::Registered),
    Procedure::new("reflective-flow-addition", SESSION, Act::AddFlow(1, REFLECTIVE_RULE)).thinned(),
    Procedure::new("reflective-flow-removal", REFLECTIVE, Act::RemoveFlow(1, REFLECTIVE_RULE)).thinned(),
    Procedure::new("reflective-qos-revocation", REFLECTIVE, Act::RevokeReflectiveQos(1)).thinned(),
    Procedure::new("registration-with-extended-drx", &[], Register).requesting(Reachability::ExtendedDrx),
    Procedure::new("paging-with-extended-drx", IDLE, DownlinkFor { lost: false })
        .within(30)
        .requesting(Reachability::ExtendedDrx),
    Procedure::new("registration-in-mico-mode", &[], Register).requesting(Reachability::Mico),
    Procedure::new("mobility-update-in-mico-mode", IDLE, Register).requesting(Reachability::Mico),
    Procedure::new("downlink-data-in-mico-mode", IDLE, DownlinkFor { lost: false })
        .requesting(Reachability::Mico),
    Procedure::new("session-establishment-with-delegation", &[Register], Establish(2)).delegating(8),
];
