//! DRX and MICO mode: requested in REGISTRATION REQUEST, granted in REGISTRATION ACCEPT, used in paging (TS 24.501 5.3.16, 5.5.1.2.2, 5.5.1.3.2;
//! TS 23.501 5.4.1.3).

use super::{RegistrationData, Ue};
use pith_nas::gmm::{RegistrationAccept, RegistrationRequest};
use pith_nas::ie::{DrxParameters, ExtendedDrxParameters, GprsTimer3, MicoIndication, RegistrationKind};
use pith_ngap::PagingDrx;
use std::time::Duration;

/// What UEs request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedReachability {
    /// UE-specific DRX.
    pub drx: Option<DrxParameters>,
    /// eDRX value (TS 24.008 10.5.5.32), with a paging time window of 5.12 s.
    pub edrx: Option<u8>,
    /// MICO mode.
    pub mico: bool,
    /// Active time of MICO mode (T3324).
    pub active_time: Option<Duration>,
}

/// What the network has granted in the last registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantedReachability {
    /// UE-specific DRX.
    pub drx: Option<DrxParameters>,
    /// Extended DRX.
    pub edrx: Option<ExtendedDrxParameters>,
    /// MICO mode; an emergency session ends it.
    pub mico: Option<MicoIndication>,
    /// Active time of MICO mode (T3324).
    pub active_time: Option<Duration>,
}

/// With which DRX a UE is paged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PagedWith {
    /// UE-specific DRX.
    pub drx: Option<PagingDrx>,
    /// PAGING has the cycle of extended DRX.
    pub is_extended: bool,
}

/// The paging time window in requests: 5.12 s.
const WINDOW: u8 = 3;

impl Ue {
    /// Adds what the UE wants to REGISTRATION REQUEST. Emergency services have neither extended DRX nor MICO mode; a periodic update has no
    /// request for UE-specific DRX (TS 24.501 5.5.1.3.2).
    pub(super) fn request_reachability(&self, request: &mut RegistrationRequest, kind: RegistrationKind) {
        let RequestedReachability { drx, edrx, mico, active_time } = self.settings.reachability;
        if kind != RegistrationKind::PeriodicUpdating {
            request.requested_drx_parameters = drx;
        }
        if self.settings.service.is_emergency() {
            return;
        }
        request.requested_extended_drx_parameters = edrx.map(|value| ExtendedDrxParameters {
            paging_time_window: WINDOW,
            value,
            further: Vec::new(),
        });
        if mico {
            request.mico_indication = Some(MicoIndication::default());
            request.t3324 = active_time.map(GprsTimer3::at_least);
        }
    }

    /// Reports a violation if the accept grants what the UE has not requested, or not what it must.
    pub(super) fn check_reachability(&mut self, accept: &RegistrationAccept, kind: RegistrationKind) {
        let clause = "TS 24.501 5.5.1.2.4";
        let RequestedReachability { drx, edrx, mico, active_time } = self.settings.reachability;
        let drx = drx.filter(|_| kind != RegistrationKind::PeriodicUpdating);
        match (drx, accept.negotiated_drx_parameters) {
            (Some(requested), None) => {
                self.violation(clause, format!("no negotiated DRX parameters, {requested:?} requested"));
            }
            (None, Some(granted)) => {
                self.violation(clause, format!("negotiated DRX {granted:?} that was not requested"));
            }
            _ => {}
        }
        let granted = accept.negotiated_extended_drx_parameters.as_ref().map(|granted| granted.value);
        if granted.is_some_and(|granted| edrx.is_none_or(|requested| granted > requested)) {
            self.violation(clause, format!("extended DRX {granted:?}, requested {edrx:?}"));
        }
        if accept.mico_indication.is_some() && !mico {
            self.violation(clause, "MICO mode that was not requested");
        }
        let is_right = accept.mico_indication.is_some() && active_time.is_some();
        if accept.t3324.is_some() && !is_right {
            self.violation(clause, "T3324 without MICO mode, or that was not requested");
        }
    }

    /// The UE has an emergency session: it leaves MICO mode until the next registration (TS 24.501 5.3.6).
    pub(super) fn leave_mico_mode(&mut self) {
        self.registration.reachability.mico = None;
    }

    /// The UE was paged: with the DRX that it uses, and not in MICO mode.
    pub(super) fn check_paging(&mut self, with: PagedWith) {
        let granted = &self.registration.reachability;
        let drx = match granted.drx {
            Some(DrxParameters::T32) => Some(PagingDrx::v32),
            Some(DrxParameters::T64) => Some(PagingDrx::v64),
            Some(DrxParameters::T128) => Some(PagingDrx::v128),
            Some(DrxParameters::T256) => Some(PagingDrx::v256),
            _ => None,
        };
        // Extended DRX is not used during an emergency session (TS 24.501 5.3.16).
        let is_extended = granted.edrx.is_some() && !self.sessions.has_emergency();
        let is_unreachable =
            granted.mico.is_some() && granted.active_time.is_none() && !self.sessions.requests_emergency();
        if with != (PagedWith { drx, is_extended }) {
            let text = format!("paged with {with:?}, granted {drx:?}, extended: {is_extended}");
            self.violation("TS 38.413 8.5.1.2", text);
        }
        if is_unreachable {
            self.violation("TS 23.501 5.4.1.3", "paged in MICO mode");
        }
    }
}

impl RegistrationData {
    /// Takes what the accept grants. A periodic update leaves UE-specific DRX as it is.
    pub(super) fn store_reachability(&mut self, accept: &RegistrationAccept, kind: RegistrationKind) {
        let former = self.reachability.drx.filter(|_| kind == RegistrationKind::PeriodicUpdating);
        self.reachability = GrantedReachability {
            drx: accept.negotiated_drx_parameters.or(former),
            edrx: accept.negotiated_extended_drx_parameters.clone(),
            mico: accept.mico_indication,
            active_time: accept.t3324.and_then(GprsTimer3::duration),
        };
    }
}
