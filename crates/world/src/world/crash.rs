//! The end of a process whose contexts are stored (`residency: durable`): all of its NFs lose what has no document.

use super::process::Process;
use super::{Failure, World};
use crate::documents::Documents;
use crate::plan::Residency;
use pith_nf::kit::Inspect;
use serde_json::Value;
use std::collections::BTreeSet;

/// What a crash must not change.
#[derive(Debug, Default)]
pub(super) struct BeforeCrash {
    /// SUPI and 5G-GUTI of registered UEs; without the 5G-GUTI if it may be a new one, which `soft` has not written.
    registered: BTreeSet<(String, Option<String>)>,
    /// SUPI, PDU session identity and address of established sessions.
    sessions: BTreeSet<(String, u64, String)>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl World {
    /// Registered UEs and established sessions of a process, without those that the network is removing. Nothing, if the store of
    /// contexts may not have the last changes: after an outage or a loss, while writes wait, and with `soft`.
    pub(super) fn note_before_crash(&mut self, process: usize) {
        self.before_crash.remove(&process);
        if self.note_if_behind(process) {
            return;
        }
        self.load_copies(true);
        self.note_contexts(process);
        self.load_copies(false);
    }

    /// Whether the store may not have the last changes of a process: resources that they record have no owner after its end.
    pub(super) fn note_if_behind(&mut self, process: usize) -> bool {
        let Process { stores, documents, .. } = &self.processes[process];
        let stores = stores.as_ref();
        // With `soft` a context in a transaction is written when that is over.
        let has_transactions =
            self.plan.residency == Residency::Soft && !self.journal().open_calls.is_empty();
        let after_outage = self.now < self.store_back;
        let drops_copies =
            matches!(self.plan.residency, Residency::Stateless | Residency::Shared | Residency::Embedded);
        let is_outdated = drops_copies && self.server.has_stale();
        let is_behind = after_outage
            || is_outdated
            || stores.is_some_and(|stores| stores.is_behind())
            || documents.as_ref().is_some_and(Documents::is_behind)
            || has_transactions;
        self.watch.may_leak |= is_behind;
        self.watch.was_behind |= after_outage;
        is_behind
    }

    fn note_contexts(&mut self, process: usize) {
        let (mut before, mut unwritten) = (BeforeCrash::default(), BTreeSet::new());
        for ue in self.inspected_in(process, Inspect::Ues) {
            let is_leaving = ue["procedure"] == "AwaitingDeregistrationAccept";
            // It comes from another AMF, and is in two contexts if it has come to two shards.
            let is_coming = self.plan.areas > 1 && ue["guti"].is_null();
            // `procedural` may lose what a procedure in progress accepted.
            let is_unwritten = self.plan.residency == Residency::Procedural && ue["procedure"] != "Idle";
            if is_unwritten {
                unwritten.insert(text(&ue["supi"]));
            } else if ue["rm"] == "RM-REGISTERED" && !is_leaving && !is_coming {
                let gets_new = ["AwaitingRegistrationComplete", "AwaitingConfigurationUpdateComplete"]
                    .contains(&ue["procedure"].as_str().unwrap_or_default());
                let may_be_new = self.plan.residency == Residency::Soft && gets_new;
                before.registered.insert((text(&ue["supi"]), (!may_be_new).then(|| text(&ue["guti"]))));
            }
        }
        // What the procedure created at other NFs is lost, too.
        self.watch.may_leak |= !unwritten.is_empty();
        for session in self.inspected_in(process, Inspect::Sessions) {
            let is_stored = !unwritten.contains(&text(&session["supi"]));
            if is_stored && session["state"] == "established" && session["upf"].is_string() {
                let id = session["pduSessionId"].as_u64().unwrap_or_default();
                before.sessions.insert((text(&session["supi"]), id, text(&session["ipv4"])));
            }
        }
        self.before_crash.insert(process, before);
    }

    /// Restored shards have all of them.
    pub(super) fn check_restored(&mut self, process: usize) -> Result<(), Box<Failure>> {
        let Some(before) = self.before_crash.remove(&process) else { return Ok(()) };
        let registered: BTreeSet<_> = self
            .inspected_in(process, Inspect::Ues)
            .iter()
            .filter(|ue| ue["rm"] == "RM-REGISTERED")
            .flat_map(|ue| [None, Some(text(&ue["guti"]))].map(|guti| (text(&ue["supi"]), guti)))
            .collect();
        let lost: Vec<_> = before.registered.difference(&registered).collect();
        self.demand(lost.is_empty(), || format!("registrations lost by the crash: {lost:?}"))?;
        let sessions: BTreeSet<_> = self
            .inspected_in(process, Inspect::Sessions)
            .iter()
            .map(|session| {
                let id = session["pduSessionId"].as_u64().unwrap_or_default();
                (text(&session["supi"]), id, text(&session["ipv4"]))
            })
            .collect();
        let lost: Vec<_> = before.sessions.difference(&sessions).collect();
        self.demand(lost.is_empty(), || format!("sessions lost by the crash: {lost:?}"))
    }
}
