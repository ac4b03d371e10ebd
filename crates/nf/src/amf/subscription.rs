//! The subscription data that the AMF keeps for a UE (TS 29.503 6.1.6.2.4, 6.1.6.2.8).

use crate::kit::document::pack_struct;
use pith_sbi::nudm_sdm::{
    AccessAndMobilitySubscriptionData, SmfSelectionSubscriptionData, SubscriptionDataSets,
};
use pith_types::{Ambr, Dnn, Snssai};
use std::sync::Arc;

/// Access and mobility subscription data, and data networks by slice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Subscription {
    pub ue_ambr: Option<Ambr>,
    /// Slices that apply if the UE requests none.
    pub default_slices: Vec<Snssai>,
    /// Other subscribed slices.
    pub slices: Vec<Snssai>,
    /// Index to RAT/Frequency Selection Priority, 1 to 256.
    pub rfsp: Option<u16>,
    /// GPSI.
    pub gpsi: Option<Arc<str>>,
    pub dnns: Vec<SubscribedDnn>,
}

/// A subscribed data network of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubscribedDnn {
    pub snssai: Snssai,
    /// The data network; `None` for any (`*`).
    pub dnn: Option<Dnn>,
    /// The default if the UE requests no DNN.
    pub default: bool,
}

pack_struct!(Subscription { ue_ambr, default_slices, slices, rfsp, gpsi, dnns });
pack_struct!(SubscribedDnn { snssai, dnn, default });

impl Subscription {
    /// Reads both data sets; `None` if the mandatory one is missing.
    pub fn of(data: SubscriptionDataSets) -> Option<Self> {
        let mut subscription = Self::default();
        subscription.take_am_data(data.am_data?);
        subscription.take_smf_selection(&data.smf_sel_data.unwrap_or_default());
        Some(subscription)
    }

    /// Stores access and mobility subscription data.
    pub fn take_am_data(&mut self, data: AccessAndMobilitySubscriptionData) {
        self.ue_ambr = data.subscribed_ue_ambr;
        self.rfsp = data.rfsp_index;
        self.gpsi = data.gpsis.into_iter().next();
        if let Some(nssai) = data.nssai {
            // This AMF has no NSSAAF: a slice that requires an authentication of its own is not allowed (TS 23.501 5.15.10).
            let is_usable = |slice: &Snssai| {
                let mut named = nssai.additional_snssai_data.iter();
                let more = named.find(|(name, _)| name.parse::<Snssai>().is_ok_and(|named| named == *slice));
                more.is_none_or(|(_, more)| more.required_authn_authz != Some(true))
            };
            let usable = |slices: Vec<Snssai>| slices.into_iter().filter(is_usable).collect();
            self.default_slices = usable(nssai.default_single_nssais);
            self.slices = usable(nssai.single_nssais);
        }
    }

    /// Stores SMF selection data; invalid entries are skipped.
    pub fn take_smf_selection(&mut self, data: &SmfSelectionSubscriptionData) {
        self.dnns.clear();
        for (snssai, info) in &data.subscribed_snssai_infos {
            let Ok(snssai) = snssai.parse() else { continue };
            for entry in &info.dnn_infos {
                let any = &*entry.dnn == "*";
                let dnn = entry.dnn.parse().ok();
                if any || dnn.is_some() {
                    let default = entry.default_dnn_indicator.unwrap_or(false);
                    self.dnns.push(SubscribedDnn { snssai, dnn, default });
                }
            }
        }
    }

    pub fn has_slice(&self, slice: &Snssai) -> bool {
        self.default_slices.contains(slice) || self.slices.contains(slice)
    }

    pub fn has_dnn(&self, slice: &Snssai, dnn: &Dnn) -> bool {
        let fits = |known: &SubscribedDnn| known.dnn.as_ref().is_none_or(|known| known == dnn);
        self.dnns.iter().any(|known| known.snssai == *slice && fits(known))
    }

    /// Whether a data network of that name is subscribed, in any slice; not by a wildcard.
    pub fn names_dnn(&self, dnn: &Dnn) -> bool {
        self.dnns.iter().any(|known| known.dnn.as_ref() == Some(dnn))
    }

    /// The data network if the UE requests none in the slice: the default one, else the first (TS
    /// 23.501 5.6.1).
    pub fn default_dnn(&self, slice: &Snssai) -> Option<&Dnn> {
        let here = || self.dnns.iter().filter(|known| known.snssai == *slice);
        let default = here().find(|known| known.default).and_then(|known| known.dnn.as_ref());
        default.or_else(|| here().find_map(|known| known.dnn.as_ref()))
    }
}
