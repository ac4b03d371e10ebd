//! Local area data networks (TS 23.501 5.6.5; TS 24.501 5.5.1.2.4, 5.4.4.3): data networks that are available in some tracking areas only.
//!
//! UEs get the areas with REGISTRATION ACCEPT and CONFIGURATION UPDATE COMMAND. The AMF informs the SMF of a session whether the UE is in the
//! area when the session is requested, when the UE enters or leaves the area, and when another AMF has served the UE before; the SMF decides
//! about the session.

use super::config::AmfConfig;
use super::consumer;
use super::context::{Env, UeContext};
use pith_nas::ie::{LadnIndication, LadnInformation, TaiList};
use pith_ngap::UserLocation;
use pith_sbi::common::PresenceState;
use pith_types::{Dnn, Tai};

/// LADNs in a message (TS 24.501 9.11.3.30).
const MOST: usize = 8;

/// A local area data network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladn {
    /// Its name.
    pub dnn: Dnn,
    /// Its service area.
    pub tais: Vec<Tai>,
}

/// LADN information for a UE: the LADNs that it is subscribed to, each with the part of its service area that is in the registration area.
/// `None` if there is none. A UE that names LADNs gets only those.
pub(super) fn information(
    ue: &UeContext,
    config: &AmfConfig,
    requested: Option<&LadnIndication>,
) -> Option<LadnInformation> {
    let subscription = ue.subscription.as_ref().filter(|_| !ue.is_emergency_registered())?;
    let is_name_of =
        |dnn: &Dnn, name: &Dnn| name == dnn || config.network_identifier(name).as_ref() == Some(dnn);
    let is_wanted = |dnn: &Dnn| {
        requested.is_none_or(|list| list.0.is_empty() || list.0.iter().any(|name| is_name_of(dnn, name)))
    };
    let is_subscribed = |dnn: &Dnn| {
        subscription.dnns.iter().any(|it| it.dnn.as_ref().is_none_or(|subscribed| subscribed == dnn))
    };
    let ladns = config.ladns.iter().filter(|ladn| is_wanted(&ladn.dnn) && is_subscribed(&ladn.dnn));
    let here = ladns.filter_map(|ladn| {
        let area = ladn.tais.iter().filter(|tai| ue.registration_area.contains(tai));
        let area: Vec<Tai> = area.copied().collect();
        (!area.is_empty()).then(|| (ladn.dnn.clone(), TaiList::of(&area)))
    });
    let list: Vec<_> = here.take(MOST).collect();
    (!list.is_empty()).then_some(LadnInformation(list))
}

/// Whether the UE is in the service area; `None` if the data network is no LADN, or if it is not proven where the UE is: anyone may have repeated
/// a message of a UE with an outdated security context.
pub(super) fn presence(ue: &UeContext, config: &AmfConfig, dnn: &Dnn) -> Option<PresenceState> {
    let ladn = config.ladns.iter().filter(|_| ue.outdated.is_none()).find(|ladn| ladn.dnn == *dnn)?;
    Some(match ue.location {
        Some(location) if ladn.tais.contains(&location.tai) => PresenceState::InArea,
        Some(_) => PresenceState::OutOfArea,
        None => PresenceState::Unknown,
    })
}

/// Sessions with the presence of their UE in the service area before it moved.
#[must_use]
pub(super) struct Moved(Vec<(u8, Option<PresenceState>)>);

/// The UE is at another location.
pub(super) fn relocate(ue: &mut UeContext, env: &mut Env<'_>, location: Option<UserLocation>) {
    note_location(ue, env.config, location).report(ue, env);
}

/// As [`relocate`], for a UE whose SMFs are to get something else first.
pub(super) fn note_location(ue: &mut UeContext, config: &AmfConfig, location: Option<UserLocation>) -> Moved {
    let before = if config.ladns.is_empty() { Vec::new() } else { presences(ue, config) };
    ue.location = location.or(ue.location);
    Moved(before)
}

fn presences(ue: &UeContext, config: &AmfConfig) -> Vec<(u8, Option<PresenceState>)> {
    ue.sessions.iter().map(|session| (session.id, presence(ue, config, &session.dnn))).collect()
}

/// The UE has proven that it is where its gNB says: reports what was not reported before.
pub(super) fn report_all(ue: &mut UeContext, env: &mut Env<'_>) {
    if env.config.ladns.is_empty() {
        return;
    }
    let ids: Vec<u8> = ue.sessions.iter().map(|session| session.id).collect();
    ids.into_iter().for_each(|id| consumer::report_presence(ue, env, id));
}

impl Moved {
    /// Reports to the SMFs of LADN sessions whose service area the UE has entered or left (TS 23.502 4.2.2.2.2 step 17, 4.2.3.2 step 4).
    pub fn report(self, ue: &mut UeContext, env: &mut Env<'_>) {
        for (id, before) in self.0 {
            let after = ue.session(id).and_then(|session| presence(ue, env.config, &session.dnn));
            if after.is_some() && after != before {
                consumer::report_presence(ue, env, id);
            }
        }
    }
}
