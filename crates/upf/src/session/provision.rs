//! Rules as provisioned by the SMF: created, updated, removed (TS 29.244 5.6.3, 6.3.2, 6.3.3).

use std::mem::take;

use pith_pfcp::ie::*;
use pith_pfcp::message::{SessionEstablishmentRequest, SessionModificationRequest};
use pith_pfcp::rules::*;
use pith_pfcp::{Change, IeType};

use super::rule_map::RuleMap;
use crate::rejection::Rejection;

/// The rules of a session as received, with all updates applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSet {
    pub pdrs: RuleMap<PdrId, CreatePdr>,
    pub fars: RuleMap<FarId, CreateFar>,
    pub qers: RuleMap<QerId, CreateQer>,
    pub urrs: RuleMap<UrrId, CreateUrr>,
    pub bars: RuleMap<BarId, CreateBar>,
    pub endpoints: RuleMap<TrafficEndpointId, CreateTrafficEndpoint>,
}

type UpdateResult = Result<(), Rejection>;

impl RuleSet {
    /// The rules of a new session, taken out of its request; at most `max` of each kind.
    pub fn establish(request: &mut SessionEstablishmentRequest, max: usize) -> Result<Self, Rejection> {
        let mut rules = RuleSet::default();
        rules.pdrs.reserve(request.create_pdrs.len());
        rules.fars.reserve(request.create_fars.len());
        rules.qers.reserve(request.create_qers.len());
        let endpoints = take(&mut request.create_traffic_endpoints);
        endpoints.into_iter().try_for_each(|endpoint| rules.create_endpoint(endpoint))?;
        take(&mut request.create_bars).into_iter().try_for_each(|bar| rules.create_bar(bar))?;
        take(&mut request.create_fars).into_iter().try_for_each(|far| rules.create_far(far))?;
        take(&mut request.create_qers).into_iter().try_for_each(|qer| rules.create_qer(qer))?;
        take(&mut request.create_urrs).into_iter().try_for_each(|urr| rules.create_urr(urr))?;
        take(&mut request.create_pdrs).into_iter().try_for_each(|pdr| rules.create_pdr(pdr))?;
        rules.check_count(max)?;
        Ok(rules)
    }

    /// The rules after a modification; `self` is unchanged.
    pub fn modify(&self, request: &SessionModificationRequest, max: usize) -> Result<Self, Rejection> {
        let mut rules = self.clone();
        rules.remove_all(request)?;
        rules.create_all(request)?;
        rules.update_all(request)?;
        rules.check_count(max)?;
        Ok(rules)
    }

    fn check_count(&self, max: usize) -> UpdateResult {
        let most = [self.pdrs.len(), self.fars.len(), self.qers.len(), self.urrs.len(), self.endpoints.len()];
        if most.into_iter().any(|count| count > max) {
            Err(Cause::NoResourcesAvailable.into())
        } else {
            Ok(())
        }
    }

    fn remove_all(&mut self, request: &SessionModificationRequest) -> UpdateResult {
        request.remove_pdrs.iter().try_for_each(|remove| {
            removed(&mut self.pdrs, remove.pdr_id, FailedRuleId::Pdr(remove.pdr_id))
        })?;
        request.remove_fars.iter().try_for_each(|remove| {
            removed(&mut self.fars, remove.far_id, FailedRuleId::Far(remove.far_id))
        })?;
        request.remove_urrs.iter().try_for_each(|remove| self.remove_urr(remove.urr_id))?;
        request.remove_qers.iter().try_for_each(|remove| self.remove_qer(remove.qer_id))?;
        request.remove_bars.iter().try_for_each(|remove| {
            removed(&mut self.bars, remove.bar_id, FailedRuleId::Bar(remove.bar_id))
        })?;
        let endpoints = request.remove_traffic_endpoints.iter();
        endpoints.map(|remove| remove.traffic_endpoint_id).try_for_each(|id| self.remove_endpoint(id))
    }

    fn create_all(&mut self, request: &SessionModificationRequest) -> UpdateResult {
        let endpoints = request.create_traffic_endpoints.iter();
        endpoints.cloned().try_for_each(|endpoint| self.create_endpoint(endpoint))?;
        request.create_bars.iter().cloned().try_for_each(|bar| self.create_bar(bar))?;
        request.create_fars.iter().cloned().try_for_each(|far| self.create_far(far))?;
        request.create_qers.iter().cloned().try_for_each(|qer| self.create_qer(qer))?;
        request.create_urrs.iter().cloned().try_for_each(|urr| self.create_urr(urr))?;
        request.create_pdrs.iter().cloned().try_for_each(|pdr| self.create_pdr(pdr))
    }

    fn update_all(&mut self, request: &SessionModificationRequest) -> UpdateResult {
        let endpoints = request.update_traffic_endpoints.iter();
        endpoints.cloned().try_for_each(|update| self.update_endpoint(update))?;
        request.update_bars.iter().cloned().try_for_each(|update| self.update_bar(update))?;
        request.update_fars.iter().cloned().try_for_each(|update| self.update_far(update))?;
        request.update_qers.iter().cloned().try_for_each(|update| self.update_qer(update))?;
        request.update_urrs.iter().cloned().try_for_each(|update| self.update_urr(update))?;
        request.update_pdrs.iter().cloned().try_for_each(|update| self.update_pdr(update))
    }

    fn create_pdr(&mut self, pdr: CreatePdr) -> UpdateResult {
        created(&mut self.pdrs, pdr.pdr_id, FailedRuleId::Pdr(pdr.pdr_id), pdr)
    }

    fn create_far(&mut self, far: CreateFar) -> UpdateResult {
        created(&mut self.fars, far.far_id, FailedRuleId::Far(far.far_id), far)
    }

    fn create_qer(&mut self, qer: CreateQer) -> UpdateResult {
        created(&mut self.qers, qer.qer_id, FailedRuleId::Qer(qer.qer_id), qer)
    }

    fn create_urr(&mut self, urr: CreateUrr) -> UpdateResult {
        created(&mut self.urrs, urr.urr_id, FailedRuleId::Urr(urr.urr_id), urr)
    }

    fn create_bar(&mut self, bar: CreateBar) -> UpdateResult {
        created(&mut self.bars, bar.bar_id, FailedRuleId::Bar(bar.bar_id), bar)
    }

    fn create_endpoint(&mut self, endpoint: CreateTrafficEndpoint) -> UpdateResult {
        if self.endpoints.add(endpoint.traffic_endpoint_id, endpoint) {
            Ok(())
        } else {
            Err(endpoint_rejection())
        }
    }

    /// Removes a URR, and its id from the PDRs that refer to it (TS 29.244 6.3.3.3).
    fn remove_urr(&mut self, id: UrrId) -> UpdateResult {
        self.pdrs.values_mut().for_each(|pdr| pdr.urr_ids.retain(|named| *named != id));
        removed(&mut self.urrs, id, FailedRuleId::Urr(id))
    }

    /// Removes a QER, and its id from the PDRs that refer to it (TS 29.244 6.3.3.3).
    fn remove_qer(&mut self, id: QerId) -> UpdateResult {
        self.pdrs.values_mut().for_each(|pdr| pdr.qer_ids.retain(|named| *named != id));
        removed(&mut self.qers, id, FailedRuleId::Qer(id))
    }

    /// Removes a traffic endpoint, and the PDRs that refer to it (TS 29.244 5.2.1A.2).
    fn remove_endpoint(&mut self, id: TrafficEndpointId) -> UpdateResult {
        self.endpoints.remove(id).ok_or_else(endpoint_rejection)?;
        self.pdrs.retain(|_, pdr| !pdr.pdi.traffic_endpoint_ids.contains(&id));
        Ok(())
    }

    fn update_pdr(&mut self, update: UpdatePdr) -> UpdateResult {
        let pdr = existing(&mut self.pdrs, update.pdr_id, FailedRuleId::Pdr(update.pdr_id))?;
        change(&mut pdr.outer_header_removal, update.outer_header_removal);
        replace(&mut pdr.precedence, update.precedence);
        replace(&mut pdr.pdi, update.pdi);
        pdr.far_id = update.far_id.or(pdr.far_id);
        replace(&mut pdr.urr_ids, update.urr_ids);
        replace(&mut pdr.qer_ids, update.qer_ids);
        let unknown = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id)).with_cause(Cause::UnknownPredefinedRule);
        let active = &mut pdr.activate_predefined_rules;
        for name in &update.deactivate_predefined_rules {
            if !active.contains(name) {
                return Err(unknown.because_of(IeType::DEACTIVATE_PREDEFINED_RULES));
            }
            active.retain(|active| active != name);
        }
        for name in update.activate_predefined_rules {
            if !active.contains(&name) {
                active.push(name);
            }
        }
        Ok(())
    }

    fn update_far(&mut self, update: UpdateFar) -> UpdateResult {
        let failed = FailedRuleId::Far(update.far_id);
        let far = existing(&mut self.fars, update.far_id, failed)?;
        replace(&mut far.apply_action, update.apply_action);
        change(&mut far.bar_id, update.bar_id);
        match (update.update_forwarding_parameters, &mut far.forwarding_parameters) {
            (None, _) => {}
            (Some(update), Some(parameters)) => update_forwarding(parameters, update),
            (Some(update), none) => {
                let missing = Rejection::rule(failed).because_of(IeType::DESTINATION_INTERFACE);
                let interface = update.destination_interface.ok_or(missing)?;
                update_forwarding(none.insert(ForwardingParameters::new(interface)), update);
            }
        }
        Ok(())
    }

    fn update_qer(&mut self, update: UpdateQer) -> UpdateResult {
        let qer = existing(&mut self.qers, update.qer_id, FailedRuleId::Qer(update.qer_id))?;
        change(&mut qer.qer_correlation_id, update.qer_correlation_id);
        replace(&mut qer.gate_status, update.gate_status);
        change(&mut qer.maximum_bitrate, update.maximum_bitrate);
        change(&mut qer.guaranteed_bitrate, update.guaranteed_bitrate);
        change(&mut qer.packet_rate, update.packet_rate);
        change(&mut qer.dl_flow_level_marking, update.dl_flow_level_marking);
        change(&mut qer.qfi, update.qfi);
        change(&mut qer.rqi, update.rqi);
        change(&mut qer.paging_policy_indicator, update.paging_policy_indicator);
        change(&mut qer.averaging_window, update.averaging_window);
        change(&mut qer.qer_control_indications, update.qer_control_indications);
        Ok(())
    }

    fn update_urr(&mut self, update: UpdateUrr) -> UpdateResult {
        let urr = existing(&mut self.urrs, update.urr_id, FailedRuleId::Urr(update.urr_id))?;
        replace(&mut urr.measurement_method, update.measurement_method);
        replace(&mut urr.reporting_triggers, update.reporting_triggers);
        change(&mut urr.measurement_period, update.measurement_period);
        change(&mut urr.volume_threshold, update.volume_threshold);
        change(&mut urr.volume_quota, update.volume_quota);
        change(&mut urr.time_threshold, update.time_threshold);
        change(&mut urr.time_quota, update.time_quota);
        change(&mut urr.quota_holding_time, update.quota_holding_time);
        change(&mut urr.quota_validity_time, update.quota_validity_time);
        change(&mut urr.monitoring_time, update.monitoring_time);
        change(&mut urr.subsequent_volume_threshold, update.subsequent_volume_threshold);
        change(&mut urr.subsequent_time_threshold, update.subsequent_time_threshold);
        change(&mut urr.subsequent_volume_quota, update.subsequent_volume_quota);
        change(&mut urr.subsequent_time_quota, update.subsequent_time_quota);
        change(&mut urr.inactivity_detection_time, update.inactivity_detection_time);
        replace(&mut urr.linked_urr_ids, update.linked_urr_ids);
        replace(&mut urr.additional_monitoring_times, update.additional_monitoring_times);
        change(&mut urr.far_id_for_quota_action, update.far_id_for_quota_action);
        change(&mut urr.measurement_information, update.measurement_information);
        change(&mut urr.user_plane_inactivity_timer, update.user_plane_inactivity_timer);
        Ok(())
    }

    fn update_bar(&mut self, update: UpdateBar) -> UpdateResult {
        let bar = existing(&mut self.bars, update.bar_id, FailedRuleId::Bar(update.bar_id))?;
        change(&mut bar.downlink_data_notification_delay, update.downlink_data_notification_delay);
        change(&mut bar.suggested_buffering_packets_count, update.suggested_buffering_packets_count);
        Ok(())
    }

    fn update_endpoint(&mut self, update: UpdateTrafficEndpoint) -> UpdateResult {
        let endpoint = self.endpoints.get_mut(update.traffic_endpoint_id).ok_or_else(endpoint_rejection)?;
        change(&mut endpoint.local_f_teid, update.local_f_teid);
        change(&mut endpoint.network_instance, update.network_instance);
        replace(&mut endpoint.ue_ip_addresses, update.ue_ip_addresses);
        replace(&mut endpoint.qfis, update.qfis);
        Ok(())
    }
}

fn update_forwarding(parameters: &mut ForwardingParameters, update: UpdateForwardingParameters) {
    replace(&mut parameters.destination_interface, update.destination_interface);
    change(&mut parameters.network_instance, update.network_instance);
    change(&mut parameters.redirect_information, update.redirect_information);
    change(&mut parameters.outer_header_creation, update.outer_header_creation);
    change(&mut parameters.transport_level_marking, update.transport_level_marking);
    change(&mut parameters.forwarding_policy, update.forwarding_policy);
    replace(&mut parameters.header_enrichments, update.header_enrichments);
    change(&mut parameters.linked_traffic_endpoint_id, update.linked_traffic_endpoint_id);
    change(&mut parameters.ip_address_and_port_replacement, update.ip_address_and_port_replacement);
}

/// There is no Failed Rule ID for a traffic endpoint.
fn endpoint_rejection() -> Rejection {
    Rejection::new(Cause::RuleCreationModificationFailure).because_of(IeType::TRAFFIC_ENDPOINT_ID)
}

fn created<K: Ord + Copy, V>(
    rules: &mut RuleMap<K, V>,
    id: K,
    failed: FailedRuleId,
    rule: V,
) -> UpdateResult {
    if rules.add(id, rule) { Ok(()) } else { Err(Rejection::rule(failed)) }
}

fn removed<K: Ord + Copy, V>(rules: &mut RuleMap<K, V>, id: K, failed: FailedRuleId) -> UpdateResult {
    rules.remove(id).map(drop).ok_or(Rejection::rule(failed))
}

fn existing<K: Ord + Copy, V>(
    rules: &mut RuleMap<K, V>,
    id: K,
    failed: FailedRuleId,
) -> Result<&mut V, Rejection> {
    rules.get_mut(id).ok_or(Rejection::rule(failed))
}

fn replace<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn change<T>(slot: &mut Option<T>, change: Option<Change<T>>) {
    if let Some(change) = change {
        *slot = change.into_option();
    }
}
