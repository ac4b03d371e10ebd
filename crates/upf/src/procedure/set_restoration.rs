//! A session that another SMF of a set restores (TS 23.527 4.3.2, 4.6): its former SMF is gone, or has given it away.
//!
//! The restored session has the CP SEID, F-TEID and UE address of the former one. The former session is deleted without a report: its SMF
//! serves it no longer.

use crate::contract::Teid;
use crate::port::Context;
use crate::upf::Upf;
use pith_pfcp::ie::FTeid;
use pith_pfcp::message::SessionEstablishmentRequest;

impl Upf {
    /// Deletes the session that a request to restore one replaces, if that is of another SMF. Permitted SMFs only get here; the SEID, which is
    /// random, shows that both have the same context.
    pub(crate) fn end_predecessor(
        &mut self,
        context: &mut Context<'_>,
        request: &SessionEstablishmentRequest,
    ) {
        let of_pdrs = request.create_pdrs.iter().filter_map(|pdr| pdr.pdi.local_f_teid.as_ref());
        let of_endpoints = request.create_traffic_endpoints.iter().filter_map(|it| it.local_f_teid.as_ref());
        let owner = |f_teid: &FTeid| match f_teid {
            FTeid::Allocated { teid, .. } => self.sessions.teids.owner(Teid(*teid)),
            FTeid::Choose { .. } => None,
        };
        let mut rivals: Vec<_> = of_pdrs.chain(of_endpoints).filter_map(owner).collect();
        rivals.dedup();
        rivals.retain(|rival| {
            let rival = self.sessions.get(*rival);
            rival
                .is_some_and(|rival| rival.cp.seid == request.cp_f_seid.seid && rival.node != request.node_id)
        });
        self.drop_sessions(context, &rivals, "another SMF of its set has restored it");
    }
}
