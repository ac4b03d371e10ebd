//! What the AMFs know of a UE whose registration one of them passes on to the other: AMF re-allocation (TS 23.502 4.2.2.2.3).
//!
//! The initial AMF asks the NSSF for slices that it does not serve itself. If the NSSF names other AMFs, it passes the registration on, once
//! ([`super::procedure::reallocation`]). The target AMF keeps a UE that was passed on, whatever its NSSF says: so no UE goes around between
//! AMFs that name each other.

use super::context::UeContext;
use super::session::PduSession;
use super::slices::{self, Slices};
use super::subscription::Subscription;
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_struct};
use pith_nas::ie::SnssaiRejection;
use pith_nas::{TemporaryIdentity, peek_temporary_identity};
use pith_ngap::{AmfInformationReroute, InitialUeMessage};
use pith_sbi::common::AccessType;
use pith_sbi::namf_communication::RegistrationContextContainer;
use pith_sbi::nnssf_nsselection::{
    AllowedNssai, AllowedSnssai, AuthorizedNetworkSliceInfo, ConfiguredSnssai,
};
use pith_types::Snssai;
use std::sync::Arc;

/// Slices that a list of the NSSF may have: as many as the IEs for them (TS 24.501 9.11.3.37).
const MOST_CONFIGURED: usize = slices::MOST_CONFIGURED;

/// As above, for allowed and rejected slices.
const MOST: usize = 8;

/// The part of a UE's context that belongs to a re-allocation.
#[derive(Debug, Default)]
pub(crate) struct Reallocation {
    /// The INITIAL UE MESSAGE as received, for REROUTE NAS REQUEST: while the UE was sent nothing, as it would discard what an AMF sends
    /// without its security context (TS 24.501 4.4.4.2).
    pub initial: Vec<u8>,
    /// The NAS message that this AMF has verified and had the gNB reroute: the target AMF may request the UE's context with it, once, while
    /// [`Timer::ReroutedMessage`](crate::kit::Timer) runs.
    pub rerouted: Vec<u8>,
    /// Another AMF has passed the UE on to this one.
    pub origin: Option<Origin>,
}

/// What the initial AMF has sent with a UE.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    /// What its NSSF says about the slices; without allowed ones if it did not send that.
    pub nssf: NssfSlices,
    /// The initial AMF's name, for the gNB that has the UE's connection with that AMF (Old AMF, TS 38.413 8.3.1.2, 8.6.2.2): until the
    /// gNB has sent something to this one.
    pub old_amf: Option<Arc<str>>,
    /// Sessions that the initial AMF has sent: until the UE is verified here they are that AMF's. `None`: it has sent no context, or they were
    /// taken.
    pub sessions: Option<Vec<PduSession>>,
}

/// What an NSSF says about a UE's slices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NssfSlices {
    pub allowed: Vec<Snssai>,
    pub configured: Vec<Snssai>,
    pub rejected_in_plmn: Vec<Snssai>,
    pub rejected_in_ta: Vec<Snssai>,
}

pack_struct!(Reallocation { initial, rerouted, origin });

/// Without the sessions, which follow in the section.
impl Pack for Origin {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { nssf, old_amf, sessions: _ } = self;
        nssf.pack(writer);
        old_amf.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        Ok(Self { nssf: Pack::unpack(reader)?, old_amf: Pack::unpack(reader)?, sessions: None })
    }
}
pack_struct!(NssfSlices { allowed, configured, rejected_in_plmn, rejected_in_ta });

fn at_most(most: usize, slices: impl IntoIterator<Item = Snssai>) -> Vec<Snssai> {
    slices.into_iter().take(most).collect()
}

fn allowed(list: AllowedNssai) -> impl Iterator<Item = Snssai> {
    list.allowed_snssai_list.into_iter().map(|it| it.allowed_snssai)
}

fn configured(list: Vec<ConfiguredSnssai>) -> Vec<Snssai> {
    at_most(MOST_CONFIGURED, list.into_iter().map(|it| it.configured_snssai))
}

impl NssfSlices {
    /// The NSSF's answer.
    pub fn of_nssf(info: AuthorizedNetworkSliceInfo) -> Self {
        let here = info.allowed_nssai_list.into_iter();
        let here = here.filter(|list| list.access_type == AccessType::ThreeGppAccess);
        Self {
            allowed: at_most(MOST, here.flat_map(allowed)),
            configured: configured(info.configured_nssai),
            rejected_in_plmn: at_most(MOST, info.rejected_nssai_in_plmn),
            rejected_in_ta: at_most(MOST, info.rejected_nssai_in_ta),
        }
    }

    /// As the initial AMF sends them.
    pub fn of_container(container: &RegistrationContextContainer) -> Self {
        Self {
            allowed: at_most(MOST, container.allowed_nssai.clone().into_iter().flat_map(allowed)),
            configured: configured(container.configured_nssai.clone()),
            rejected_in_plmn: at_most(MOST, container.rejected_nssai_in_plmn.iter().copied()),
            rejected_in_ta: at_most(MOST, container.rejected_nssai_in_ta.iter().copied()),
        }
    }

    /// As the gNB sends them, after REROUTE NAS REQUEST.
    pub fn of_ngap(allowed: Option<Vec<Snssai>>, reroute: Option<AmfInformationReroute>) -> Self {
        let reroute = reroute.unwrap_or_default();
        Self {
            allowed: at_most(MOST, allowed.unwrap_or_default()),
            configured: at_most(MOST_CONFIGURED, reroute.configured),
            rejected_in_plmn: at_most(MOST, reroute.rejected_in_plmn),
            rejected_in_ta: at_most(MOST, reroute.rejected_in_ta),
        }
    }

    /// For the target AMF.
    pub fn fill(&self, container: &mut RegistrationContextContainer) {
        let list: Vec<_> = self.allowed.iter().copied().map(AllowedSnssai::new).collect();
        container.allowed_nssai =
            (!list.is_empty()).then(|| AllowedNssai::new(list, AccessType::ThreeGppAccess));
        container.configured_nssai = self.configured.iter().copied().map(ConfiguredSnssai::new).collect();
        container.rejected_nssai_in_plmn.clone_from(&self.rejected_in_plmn);
        container.rejected_nssai_in_ta.clone_from(&self.rejected_in_ta);
    }

    /// For REROUTE NAS REQUEST, besides the allowed ones; `None` if there is nothing else.
    pub fn reroute(&self) -> Option<AmfInformationReroute> {
        let information = AmfInformationReroute {
            configured: self.configured.clone(),
            rejected_in_plmn: self.rejected_in_plmn.clone(),
            rejected_in_ta: self.rejected_in_ta.clone(),
        };
        (information != AmfInformationReroute::default()).then_some(information)
    }

    /// The slices that the NSSF allows and this AMF serves. The others are not available here.
    pub fn served(&self, served: &[Snssai]) -> Slices {
        let (allowed, elsewhere): (Vec<_>, Vec<_>) =
            self.allowed.iter().copied().partition(|slice| served.contains(slice));
        let in_plmn = self.rejected_in_plmn.iter().map(|it| (*it, SnssaiRejection::NotAvailableInPlmn));
        let in_area = self.rejected_in_ta.iter().copied().chain(elsewhere);
        let in_area = in_area.map(|it| (it, SnssaiRejection::NotAvailableInRegistrationArea));
        slices::cut(Slices { allowed, rejected: in_plmn.chain(in_area).collect() })
    }
}

impl Reallocation {
    fn is_empty(&self) -> bool {
        self.initial.is_empty() && self.rerouted.is_empty() && self.origin.is_none()
    }

    /// Of an INITIAL UE MESSAGE. It is kept if it is the first message of a UE with a 5G-GUTI, which may be verified without authentication.
    pub fn of_initial(message: &InitialUeMessage, pdu: &[u8]) -> Option<Box<Self>> {
        if message.amf_set_id.is_some() {
            let nssf = NssfSlices::of_ngap(message.allowed_nssai.clone(), message.reroute.clone());
            let origin = Some(Origin { nssf, ..Origin::default() });
            return Some(Box::new(Self { origin, ..Self::default() }));
        }
        let has_guti =
            matches!(peek_temporary_identity(&message.nas_pdu), Some(TemporaryIdentity::FiveGGuti(_)));
        has_guti.then(|| Box::new(Self { initial: pdu.to_vec(), ..Self::default() }))
    }
}

impl UeContext {
    /// The UE has a security context of this AMF in the making: no other AMF can begin with its first message.
    pub fn forget_initial_message(&mut self) {
        if let Some(reallocation) = &mut self.reallocation {
            reallocation.initial = Vec::new();
        }
        self.reallocation.take_if(|it| it.is_empty());
    }

    /// The sessions that another AMF has passed on with the UE, which is verified now; `None`: none was to be taken.
    pub fn take_passed_on_sessions(&mut self) -> Option<Vec<PduSession>> {
        self.reallocation.as_mut()?.origin.as_mut()?.sessions.take()
    }

    /// Old AMF, for the first messages to the gNB.
    pub fn old_amf(&self) -> Option<String> {
        self.reallocation.as_ref()?.origin.as_ref()?.old_amf.as_ref().map(ToString::to_string)
    }

    /// The gNB knows that the UE's connection is this AMF's.
    pub fn note_redirected(&mut self) {
        if let Some(origin) = self.reallocation.as_mut().and_then(|it| it.origin.as_mut()) {
            origin.old_amf = None;
        }
    }
}

impl Origin {
    /// The slices of a UE that another AMF has passed on, of those that are subscribed and served here.
    pub fn slices(&self, requested: &[Snssai], subscription: &Subscription, served: &[Snssai]) -> Slices {
        let mut nssf = self.nssf.clone();
        nssf.allowed.retain(|slice| subscription.has_slice(slice));
        let slices = nssf.served(served);
        if slices.allowed.is_empty() { slices::decide_alone(requested, subscription, served) } else { slices }
    }
}
