//! What the two AMFs of a handover send each other, as SBI data types (TS 29.518 6.1.6).

use pith_ngap::{Cause, CauseRadioNetwork, GlobalRanNodeId, SessionTransfer, TargetId};
use pith_sbi::common::NgApCause;
use pith_sbi::namf_communication::{N2InfoContent, N2SmInformation, NgapIeType};
use pith_sbi::nsmf_pdusession::NgRanTargetId;

/// An NGAP information element.
pub(super) fn information(kind: NgapIeType, octets: Vec<u8>) -> N2InfoContent {
    let mut content = N2InfoContent::new(octets);
    content.ngap_ie_type = Some(kind);
    content
}

/// NGAP information for a PDU session.
pub(super) fn session_information(kind: NgapIeType, session: SessionTransfer) -> N2SmInformation {
    let mut information_of_session = N2SmInformation::new(session.pdu_session_id);
    information_of_session.n2_info_content = Some(information(kind, session.transfer));
    information_of_session
}

/// The transfer of a PDU session; `None` if it is missing.
pub(super) fn transfer_of(session: &N2SmInformation) -> Option<SessionTransfer> {
    let content = session.n2_info_content.as_ref()?;
    let transfer = content.ngap_data.content.to_vec();
    Some(SessionTransfer { pdu_session_id: session.pdu_session_id, transfer })
}

/// A cause of NGAP.
pub(in crate::amf) fn sbi_cause(cause: Cause) -> NgApCause {
    let (group, value) = cause.group_and_value();
    NgApCause::new(group, value)
}

/// The cause that the other AMF gives, if it is one of handovers; the others mean nothing to a source gNB.
pub(super) fn cause_of(cause: &NgApCause) -> Option<Cause> {
    use CauseRadioNetwork as C;
    const CAUSES: [CauseRadioNetwork; 15] = [
        C::unspecified,
        C::handover_cancelled,
        C::ho_failure_in_target_5GC_ngran_node_or_target_system,
        C::ho_target_not_allowed,
        C::tngrelocprep_expiry,
        C::cell_not_available,
        C::unknown_targetID,
        C::no_radio_resources_available_in_target_cell,
        C::handover_desirable_for_radio_reason,
        C::time_critical_handover,
        C::resource_optimisation_handover,
        C::reduce_load_in_serving_cell,
        C::interaction_with_other_procedure,
        C::encryption_and_or_integrity_protection_algorithms_not_supported,
        C::slice_not_supported,
    ];
    let cause = CAUSES.into_iter().find(|known| *known as u32 == cause.value && cause.group == 0)?;
    Some(Cause::RadioNetwork(cause))
}

/// The target of a handover: a gNB, as the source AMF names it.
pub(in crate::amf) fn target_of(target: &NgRanTargetId) -> Option<TargetId> {
    let gnb = target.ran_node_id.g_nb_id.as_ref().filter(|gnb| (22..=32).contains(&gnb.bit_length))?;
    let id = u32::from_str_radix(&gnb.g_nb_value, 16).ok()?;
    let is_within = u64::from(id) < 1 << gnb.bit_length;
    let node = GlobalRanNodeId::Gnb { plmn: target.ran_node_id.plmn_id, id, bits: gnb.bit_length };
    is_within.then_some(TargetId::RanNode { node, tai: target.tai })
}
