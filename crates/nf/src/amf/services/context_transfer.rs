//! Namf_Communication_UEContextTransfer and RegistrationStatusUpdate (TS 29.518 5.2.2.2.1, 5.2.2.2.2):
//! another shard or instance of this AMF takes a UE over.

use crate::amf::Amf;
use crate::amf::context::{RmState, UeContext};
use crate::amf::procedure;
use crate::kit::{Instant, Outbox};
use pith_sbi::common::AccessType;
use pith_sbi::namf_communication as namf;
use pith_sbi::{Cause, Problem, Reply, Response};

/// Downlink NAS COUNTs that are left to the AMF that takes a UE over. If it does not, this one goes on after them: none is
/// used twice (TS 33.501 6.4.3.1). The other one sends no more than a repeated challenge or two until it is authorised,
/// and the UE still estimates the next COUNT right (TS 24.501 4.4.3.1).
const RESERVE: u32 = 32;

impl Amf {
    /// Gives the context of a UE whose REGISTRATION REQUEST passes the integrity check.
    pub(super) fn ue_context_transfer(&mut self, request: namf::UeContextTransfer) -> Reply {
        let key = self.find(&request.ue_context_id);
        let ue = key.and_then(|key| self.ues.get_mut(key));
        let ue = ue.ok_or_else(|| Box::new(Problem::context_not_found()))?;
        if let Some(request) = &request.body.reg_request {
            let context = ue.security.as_mut();
            let checked = context.map(|context| context.nas.unprotect(&request.n1_message_content.content));
            if !matches!(checked, Some(Ok(_))) {
                return Err(Problem::new(Cause::IntegrityCheckFail).into());
            }
        }
        let context = context(ue).ok_or_else(|| Box::new(Problem::context_not_found()))?;
        ue.security.iter_mut().for_each(|security| security.nas.skip_to_send(RESERVE));
        Ok(Response::UeContextTransferred(Box::new(namf::UeContextTransferRspData::new(context))))
    }

    /// The UE is served elsewhere now: its context goes, and its sessions with it, or stays.
    pub(super) fn registration_status_update(
        &mut self,
        now: Instant,
        request: &namf::RegistrationStatusUpdate,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find(&request.ue_context_id).ok_or_else(|| Box::new(Problem::context_not_found()))?;
        if request.body.transfer_status == namf::UeContextTransferStatus::Transferred {
            let released = &request.body.to_release_session_list;
            self.with_ue(now, key, out, |ue, env| {
                procedure::abort(ue, env);
                ue.sessions.retain(|session| released.contains(&session.id));
                ue.registered_in_udm = false;
                ue.rm = RmState::Deregistered;
            });
        }
        Ok(Response::RegistrationStatusUpdated(Box::new(namf::UeRegStatusUpdateRspData::new(true))))
    }
}

/// The context as the SBI has it; `None` without security, of which there is nothing to give.
fn context(ue: &UeContext) -> Option<namf::UeContext> {
    let security = ue.security.as_ref()?;
    let algorithms = security.nas.algorithms();
    let integrity = namf::IntegrityAlgorithm::from(format!("NIA{}", algorithms.integrity as u8).as_str());
    let ciphering = namf::CipheringAlgorithm::from(format!("NEA{}", algorithms.ciphering as u8).as_str());
    let next = security.nas.next_to_send()?.value();
    let mut mm = namf::MmContext::new(AccessType::ThreeGppAccess);
    mm.nas_security_mode = Some(namf::NasSecurityMode::new(integrity, ciphering));
    mm.nas_downlink_count = Some(next.saturating_sub(1));
    mm.nas_uplink_count = security.nas.last_received().map(|count| count.value());
    mm.ue_security_capability = Some(security.capability.octets().to_vec().into());
    mm.allowed_nssai = ue.slices.allowed.clone();
    let key = namf::KeyAmf::of_octets(namf::KeyAmfType::Kamf, *security.k_amf.as_bytes());
    let ksi = namf::NgKsi::new(namf::ScType::Native, security.ng_ksi);
    let mut context = namf::UeContext {
        supi: ue.supi.clone(),
        pei: ue.pei.clone(),
        seaf_data: Some(namf::SeafData::new(ksi, key)),
        ..Default::default()
    };
    context.mm_context_list = vec![mm];
    context.session_context_list = sessions(ue);
    Some(context)
}

fn sessions(ue: &UeContext) -> Vec<namf::PduSessionContext> {
    let session = |session: &crate::amf::session::PduSession| {
        let context = session.sm_context.clone()?;
        let (snssai, dnn) = (session.snssai, session.dnn.clone());
        Some(namf::PduSessionContext::new(session.id, context, snssai, dnn, AccessType::ThreeGppAccess))
    };
    ue.sessions.iter().filter_map(session).collect()
}
