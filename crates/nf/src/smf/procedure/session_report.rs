//! PFCP Session Reports of a UPF: downlink data for an idle UE, and GTP-U Error Indications (TS 23.502 4.2.3.3 step 2,
//! 4.4.2.2; TS 29.244 7.5.8).

use super::{State, lost_tunnel};
use crate::kit::{N4Effect, N4Transaction};
use crate::smf::context::{SmContext, UpfSession};
use crate::smf::env::Env;
use crate::smf::n4;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_pfcp::ie::{Cause, FSeid, NodeId, ReportType};
use pith_pfcp::message::SessionReportResponse;
use pith_types::Seid;

/// Answers the UPF, and acts on the report. Downlink data are acted on only if the UPF terminates N3. A report from a UPF
/// that does not have the session is refused.
pub(in crate::smf) fn on_report(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    (transaction, seid): (N4Transaction, Seid),
    message: &Message,
) -> State {
    // A session that is to be restored has its UPF by name.
    let is_sender =
        |at: &UpfSession| at.upf == transaction.upf || env.upfs.resolve(at.upf) == Some(transaction.upf);
    let at = session.upf_session_of(state.user_plane(), seid).filter(is_sender);
    let Some(at) = at else {
        // The UPF may have sent it after its answer to the establishment, which is lost: it repeats the report after T1, and would delete a
        // session that the SMF does not know.
        if state.establishing().is_none_or(|(upf, _)| upf != transaction.upf) {
            refuse(transaction, env);
        }
        return state;
    };
    let Message::SessionReportRequest(report) = message else { return state };
    let mut response = SessionReportResponse::new(Cause::RequestAccepted);
    if let Some(info) = report.old_cp_f_seid.and_then(|_| env.upfs.info(transaction.upf)) {
        // Another SMF of the set has had the session: reports are for this one (TS 29.244 5.22.3).
        response.cp_f_seid = Some(FSeid::new(seid.0, info.local_address));
        response.node_id = Some(NodeId::from(info.local_address));
    }
    answer(transaction, at.seid, response, env);
    let terminates_n3 = state.user_plane().is_some_and(|user_plane| user_plane.n3_session().upf == at.upf);
    let mut state = state;
    if terminates_n3 && report.report_type.contains(ReportType::DLDR) {
        state = on_downlink_data(state, session, env);
    }
    if report.report_type.contains(ReportType::ERIR) {
        let lost = report.error_indication_report.iter().flat_map(|report| &report.remote_f_teids);
        let lost: Vec<Tunnel> = lost.copied().filter_map(n4::tunnel_of).collect();
        state = lost_tunnel::on_error_indication(state, session, env, &lost, terminates_n3);
    }
    state
}

/// The UPF buffers packets for an idle UE. It reports only the first one, so a session that is changing stores the report
/// until it is established again. A report of a session whose user plane is active was sent before the activation, which
/// has forwarded the buffered packets: it needs nothing (TS 23.502 4.2.3.3 step 3a requests the user plane's activation).
fn on_downlink_data(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    match state {
        State::Established(established) if established.user_plane.gnb.is_none() => {
            established.on_downlink_data(session, env)
        }
        state => {
            session.pending.downlink_data = state.is_changing();
            session.gnb.has_downlink_data |= state.is_changing();
            state
        }
    }
}

/// Refuses a report: the SMF has no such session at that UPF (TS 29.244 7.5.9).
pub(in crate::smf) fn refuse(transaction: N4Transaction, env: &mut Env<'_>) {
    let response = SessionReportResponse::new(Cause::SessionContextNotFound);
    answer(transaction, Seid(0), response, env);
}

fn answer(transaction: N4Transaction, seid: Seid, response: SessionReportResponse, env: &mut Env<'_>) {
    let message = Message::SessionReportResponse(response);
    env.out.n4(N4Effect::Answer { transaction, seid, message });
}
