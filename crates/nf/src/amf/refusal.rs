//! Explains in one sentence for the operator why a UE is refused and what to do. The caller masks
//! identities when it logs the sentence.

use super::context::{Env, UeContext};
use super::error::{AuthenticationFault, RegistrationError};
use crate::kit::{Event, Level};
use pith_sbi::common::SupiOrSuci;
use pith_types::{Dnn, SchemeOutput, Snssai, Tai};
use std::fmt::Display;

/// Reports that a procedure of a UE is refused.
pub(crate) fn report(ue: &UeContext, env: &mut Env<'_>, procedure: &'static str, error: &RegistrationError) {
    let text = explain(error, ue, env);
    env.out.event(Level::Warn, || Event {
        level: Level::Warn,
        procedure,
        outcome: error.outcome(),
        ue: ue.name(),
        text: format!("{procedure} refused: {text}"),
    });
}

fn explain(error: &RegistrationError, ue: &UeContext, env: &Env<'_>) -> String {
    match error {
        RegistrationError::UnknownSubscriber => {
            "unknown subscriber: 'pith subscriber list' shows the provisioned subscribers, \
             'pith subscriber add' adds one"
                .into()
        }
        RegistrationError::ForeignSubscriber => {
            "the subscriber is of another home network, and not provisioned here: 'pith subscriber add' adds one".into()
        }
        RegistrationError::AuthenticationFailed { fault, .. } => authentication(*fault),
        RegistrationError::NoIdentity | RegistrationError::SuciNotDeconcealed => no_identity(ue),
        RegistrationError::UnknownUe => "no context of the UE, which has no SUCI: it registers again".into(),
        RegistrationError::TrackingAreaNotServed => tracking_area(ue, env),
        RegistrationError::RoamingNotAllowed => {
            let plmn = ue.location.map(|location| location.tai.plmn_id.to_string()).unwrap_or_default();
            format!("the subscription does not allow PLMN {plmn}")
        }
        RegistrationError::ServingNetworkNotAuthorized => {
            let plmn = env.config.plmn_in(ue.location);
            format!("the home network does not accept PLMN {plmn} as serving network")
        }
        RegistrationError::SecurityCapabilityMismatch => format!(
            "no algorithm in common, or the capabilities were modified in transit: 'amf.security' allows {} and {}",
            names(&env.config.integrity),
            names(&env.config.ciphering)
        ),
        RegistrationError::NoSlicesAvailable(_) => slices(ue, env),
        RegistrationError::Congestion if env.refuses_new => {
            "contexts of UEs are not stored at present, and a restart would lose this one: 'pith status' has the reason"
                .into()
        }
        RegistrationError::Congestion => {
            format!(
                "congestion: the limit of {} UEs on this shard is reached, or an NF is overloaded",
                env.config.max_ues
            )
        }
        RegistrationError::AwaitsOwner => {
            "the instance that served the UE is gone, and its UEs are not taken over yet: 'pith status' shows the set and its store"
                .into()
        }
        RegistrationError::NoAnswer => "the UE did not answer any of five transmissions".into(),
        RegistrationError::ServicesNotAllowed => {
            "the subscription has no 5GS: give the subscriber a default slice with a data network".into()
        }
        RegistrationError::ForbiddenArea => {
            let tac = ue.location.map(|location| location.tai.tac.to_string()).unwrap_or_default();
            format!("the subscription forbids tracking area {tac}: 'forbiddenTacs' in the subscriber's 'restrictions'")
        }
        RegistrationError::RatNotAllowed => "the subscription does not allow NR with 5GC".into(),
        other => other.to_string(),
    }
}

fn authentication(fault: AuthenticationFault) -> String {
    match fault {
        AuthenticationFault::Mac => {
            "the SIM rejects the network's authentication (MAC failure): K, OPc or the algorithm of the \
             subscriber differ from the SIM's; often OP was given as OPc"
                .into()
        }
        AuthenticationFault::Synchronisation => "the SIM reports a sequence number out of range, also after \
             resynchronisation: another network uses the same K, or two SIMs have the same SUPI"
            .into(),
        AuthenticationFault::Cause(cause) => format!("the UE refused the authentication: {cause}"),
        AuthenticationFault::WrongResponse => {
            "the SIM's response is wrong: K or OPc of the subscriber differ from the SIM's".into()
        }
        AuthenticationFault::HomeNetwork => {
            "the home network refuses the authentication: if the UE requested \
             resynchronisation, K or OPc of the subscriber differ from the SIM's"
                .into()
        }
    }
}

/// The identity is missing, or the home network can't de-conceal it.
fn no_identity(ue: &UeContext) -> String {
    let Some(SupiOrSuci::Suci(suci)) = &ue.claimed else {
        return "the UE sent neither an IMSI nor the SUCI of an IMSI".into();
    };
    let profile = match suci.output {
        SchemeOutput::Null(_) => return "the UE's null-scheme SUCI does not contain an IMSI".into(),
        SchemeOutput::Concealed { scheme: 1, .. } => "profile A".to_owned(),
        SchemeOutput::Concealed { scheme: 2, .. } => "profile B".to_owned(),
        SchemeOutput::Concealed { scheme, .. } => format!("protection scheme {scheme}"),
    };
    format!(
        "the SUCI can't be de-concealed: home network key {} ({profile}) is missing in 'home_network_keys', or does not \
         match the SIM's public key",
        suci.home_network_key_id
    )
}

fn tracking_area(ue: &UeContext, env: &Env<'_>) -> String {
    let name = |tai: &Tai| format!("{} TAC {} (0x{})", tai.plmn_id, tai.tac.value(), tai.tac);
    let theirs = ue.location.map_or_else(|| "unknown".into(), |location| name(&location.tai));
    let ours: Vec<_> = env.config.tais.iter().map(name).collect();
    format!("the cell's tracking area {theirs} is not served: 'network' has {}", ours.join(", "))
}

fn slices(ue: &UeContext, env: &Env<'_>) -> String {
    let subscribed =
        ue.subscription.as_ref().map(|subscription| list(&subscription.slices)).unwrap_or_default();
    let plmn = ue.location.map_or(env.config.guami.plmn_id, |location| location.tai.plmn_id);
    format!(
        "no slice for the UE: its subscription has {subscribed}, the network has {} (the cell may have fewer)",
        list(env.config.slices(plmn))
    )
}

/// Why a session is refused before an SMF is contacted: what the UE requested, and what is subscribed.
pub(crate) fn explain_session(ue: &UeContext, snssai: Option<Snssai>, dnn: Option<&Dnn>) -> String {
    let slice = snssai.map_or_else(|| "any slice".into(), |snssai| format!("slice {snssai}"));
    let dnn = dnn.map_or_else(|| "the default data network".into(), |dnn| format!("data network '{dnn}'"));
    let subscription = ue.subscription.as_deref();
    let dnns = subscription.into_iter().flat_map(|subscription| &subscription.dnns);
    let subscribed: Vec<_> = dnns
        .filter_map(|entry| Some(format!("'{}' in slice {}", entry.dnn.as_ref()?, entry.snssai)))
        .collect();
    format!(
        "no session to {dnn} in {slice}: allowed are slices {}, subscribed is {}",
        list(&ue.slices.allowed),
        if subscribed.is_empty() { "nothing".into() } else { subscribed.join(", ") }
    )
}

/// The cause in a gNB's message as text.
pub(crate) fn text_of(cause: Option<pith_ngap::Cause>) -> String {
    cause.map_or_else(|| "no cause".into(), |cause| cause.to_string())
}

fn list<T: Display>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".into();
    }
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Names of algorithms as in the configuration: `nia2, nia1`.
fn names<T: std::fmt::Debug>(algorithms: &[T]) -> String {
    algorithms.iter().map(|algorithm| format!("{algorithm:?}").to_lowercase()).collect::<Vec<_>>().join(", ")
}
