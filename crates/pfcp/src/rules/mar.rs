//! Multi-Access Rules: selection of the access for a packet of a multi-access session (ATSSS).

use crate::group::group;
use crate::ie::*;

group! {
    /// Create MAR (TS 29.244 table 7.5.2.8-1).
    pub struct CreateMar {
        M mar_id: MarId = MAR_ID,
        M steering_functionality: SteeringFunctionality = STEERING_FUNCTIONALITY,
        M steering_mode: SteeringMode = STEERING_MODE,
        C tgpp_access: AccessForwardingAction = TGPP_ACCESS_FORWARDING_ACTION_INFORMATION,
        C non_tgpp_access: AccessForwardingAction = NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION,
        C thresholds: SteeringThresholds = THRESHOLDS,
        C steering_mode_indicator: SteeringModeIndicator = STEERING_MODE_INDICATOR,
    }

    /// 3GPP or non-3GPP Access Forwarding Action Information (TS 29.244 tables 7.5.2.8-2, 7.5.2.8-3).
    pub struct AccessForwardingAction {
        M far_id: FarId = FAR_ID,
        C weight: Weight = WEIGHT,
        C priority: AccessPriority = PRIORITY,
        Cs urr_ids: UrrId = URR_ID,
        O rat_type: RatType = RAT_TYPE,
    }

    /// Update MAR (TS 29.244 table 7.5.4.16-1).
    pub struct UpdateMar {
        M mar_id: MarId = MAR_ID,
        C steering_functionality: SteeringFunctionality = STEERING_FUNCTIONALITY,
        C steering_mode: SteeringMode = STEERING_MODE,
        C update_tgpp_access: UpdateAccessForwardingAction = UPDATE_TGPP_ACCESS_FORWARDING_ACTION_INFORMATION,
        C update_non_tgpp_access: UpdateAccessForwardingAction = UPDATE_NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION,
        C tgpp_access: AccessForwardingAction = TGPP_ACCESS_FORWARDING_ACTION_INFORMATION,
        C non_tgpp_access: AccessForwardingAction = NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION,
        U thresholds: SteeringThresholds = THRESHOLDS,
        U steering_mode_indicator: SteeringModeIndicator = STEERING_MODE_INDICATOR,
    }

    /// Update 3GPP or non-3GPP Access Forwarding Action Information (TS 29.244 tables 7.5.4.16-2, 7.5.4.16-3).
    pub struct UpdateAccessForwardingAction {
        C far_id: FarId = FAR_ID,
        U weight: Weight = WEIGHT,
        U priority: AccessPriority = PRIORITY,
        Us urr_ids: UrrId = URR_ID,
        O rat_type: RatType = RAT_TYPE,
    }

    /// Remove MAR (TS 29.244 table 7.5.4.15-1).
    pub struct RemoveMar {
        M mar_id: MarId = MAR_ID,
    }
}
