//! Reports of a UE's gNB (TS 38.413 8.3.4.3, 8.3.5, 8.12, 8.15), and the operator's request for one.

use super::send;
use crate::amf::connection::RanContext;
use crate::amf::context::{Env, UeContext};
use crate::amf::{Amf, consumer, ladn, refusal};
use crate::kit::{GnbHandle, GnbInfo, Instant, Level, N2Effect, Outbox};
use pith_ngap::{
    Cause, LocationEvent, LocationReportingControl, LocationRequest, SecondaryRatDataUsageReport,
    UserLocation,
};
use pith_types::{Supi, Tai};
use serde_json::{Value, json};

impl Amf {
    /// Requests the gNB of a connected UE to report the UE's location once (TS 38.413 8.12.1.2). `None`: the subscriber is not registered
    /// in this shard. The report changes what `pith ue list` shows.
    pub(in crate::amf) fn locate(&mut self, now: Instant, supi: &Supi, out: &mut Outbox) -> Option<Value> {
        let key = self.shared.index.find_supi(supi)?;
        let mut refusal = None;
        self.with_ue(now, key, out, |ue, env| refusal = request_location(ue, env).err());
        Some(json!({ "supi": supi, "refusal": refusal }))
    }

    /// Resets the interface to a gNB, by its Global RAN Node ID or its name. `None`: no gNB with that id is connected.
    pub(in crate::amf) fn reset_gnb(&self, gnb: &str, out: &mut Outbox) -> Option<Value> {
        let is_named = |info: &GnbInfo| !info.name.is_empty() && info.name == gnb;
        let of_id = self.shared.gnbs.iter().find(|(_, info)| info.global_id.eq_ignore_ascii_case(gnb));
        let (gnb, info) = of_id.or_else(|| self.shared.gnbs.iter().find(|(_, info)| is_named(info)))?;
        out.n2(N2Effect::Reset { gnb: *gnb });
        Some(json!({ "globalId": info.global_id }))
    }
}

/// LOCATION REPORTING CONTROL with the event `direct`. The gNB needs a UE context: it reports the cell of that context.
fn request_location(ue: &UeContext, env: &mut Env<'_>) -> Result<(), &'static str> {
    let connection = ue.connection.and_then(|key| env.connections.get(key));
    let connection = connection.ok_or("the UE is CM-IDLE: its last known location is in its entry")?;
    if connection.context != RanContext::Established {
        return Err("the gNB has no context of the UE, or the UE is moving to another gNB: try again");
    }
    let control = LocationReportingControl {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        request: Some(LocationRequest { event: LocationEvent::direct }),
    };
    send::send_to(env.out, connection.side(), control.encode());
    Ok(())
}

/// A message of a UE's gNB contains the UE's location, which counts if it is in a tracking area of that gNB.
pub(super) fn located(ue: &mut UeContext, env: &mut Env<'_>, gnb: GnbHandle, location: Option<UserLocation>) {
    let Some(reported) = location else { return };
    if env.gnbs.serves(gnb, &reported.tai) {
        ladn::relocate(ue, env, location);
    } else {
        env.out.log(Level::Warn, || {
            let Tai { plmn_id, tac } = reported.tai;
            format!("{}: the gNB reports a location in {plmn_id}-{tac}, which it does not serve", ue.name())
        });
    }
}

/// LOCATION REPORTING FAILURE INDICATION: the location stays as it was (TS 38.413 8.12.2).
pub(super) fn not_located(ue: &UeContext, env: &mut Env<'_>, cause: Option<Cause>) {
    env.out.log(Level::Warn, || {
        format!("{}: the gNB does not report the location: {}", ue.name(), refusal::text_of(cause))
    });
}

/// SECONDARY RAT DATA USAGE REPORT (TS 38.413 8.15.1): forwarded to the SMFs of the sessions (TS 23.502 4.21). While the UE is handed over, too: the
/// source gNB reports what it has sent.
pub(super) fn secondary_rat_usage(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    gnb: GnbHandle,
    message: SecondaryRatDataUsageReport,
) {
    located(ue, env, gnb, message.location);
    let mut seen = Vec::new();
    for item in message.sessions.into_iter().flatten() {
        let id = item.pdu_session_id;
        if !seen.contains(&id) {
            seen.push(id);
            consumer::report_usage(ue, env, id, item.transfer);
        }
    }
}

/// UE CONTEXT MODIFICATION FAILURE: the gNB's context is as before (TS 38.413 8.3.4.3). A key that the gNB has not taken is sent again
/// with the next modification, and the next connection begins with the current one.
pub(super) fn not_modified(ue: &UeContext, env: &mut Env<'_>, cause: Option<Cause>) {
    env.out.log(Level::Warn, || {
        format!("{}: the gNB has not modified its UE context: {}", ue.name(), refusal::text_of(cause))
    });
}
