//! Session deletion, with the last usage reports (TS 29.244 6.3.4).

use pith_pfcp::ie::{Cause, PfcpSdRspFlags};
use pith_pfcp::message::SessionDeletionResponse;

use crate::contract::SessionId;
use crate::port::{Context, Notice};
use crate::upf::{ProcedureResult, Upf};

impl Upf {
    /// Deletes a session and reports its remaining usage.
    pub(crate) fn session_deletion(&mut self, context: &mut Context<'_>, id: SessionId) -> ProcedureResult {
        let unknown = (0, Cause::SessionContextNotFound.into());
        let mut session = self.sessions.remove(id).ok_or(unknown)?;
        let usage = context.datapath.remove(id).unwrap_or_default();
        session.measurements.sample(&session.rules, context.now, &usage);
        let usage_reports = session.measurements.terminate(&session.rules, context.now, &self.config);
        // Pending reports are still retransmitted; the response announces them to the SMF.
        let pending = !session.reports.is_empty();
        context.notice(Notice::SessionDeleted { session: id, reason: "the SMF deleted it" });
        let response = SessionDeletionResponse {
            usage_reports,
            pfcp_sd_rsp_flags: pending.then_some(PfcpSdRspFlags::PURU),
            ..SessionDeletionResponse::new(Cause::RequestAccepted)
        };
        Ok((session.cp.seid, response.into()))
    }
}
