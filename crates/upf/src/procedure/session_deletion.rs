//! Session deletion, with the last usage reports (TS 29.244 6.3.4).

use pith_pfcp::ie::{Cause, PfcpSdRspFlags};
use pith_pfcp::message::SessionDeletionResponse;

use crate::contract::SessionId;
use crate::port::{Notice, Turn};
use crate::upf::{Outcome, Upf};

impl Upf {
    /// Deletes a session and reports its remaining usage.
    pub(crate) fn session_deletion(&mut self, turn: &mut Turn<'_>, id: SessionId) -> Outcome {
        let unknown = (0, Cause::SessionContextNotFound.into());
        let mut session = self.sessions.remove(id).ok_or(unknown)?;
        let usage = turn.datapath.remove(id).unwrap_or_default();
        session.measurements.sample(&session.rules, turn.now, &usage);
        let usage_reports = session.measurements.terminate(&session.rules, turn.now, &self.config);
        // Pending reports are still retransmitted; the response announces them to the SMF.
        let pending = !session.reports.is_empty();
        turn.notice(Notice::SessionDeleted { session: id, reason: "the SMF deleted it" });
        let response = SessionDeletionResponse {
            usage_reports,
            pfcp_sd_rsp_flags: pending.then_some(PfcpSdRspFlags::PURU),
            ..SessionDeletionResponse::new(Cause::RequestAccepted)
        };
        Ok((session.cp.seid, response.into()))
    }
}
