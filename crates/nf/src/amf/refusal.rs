//! Explains in one sentence for the operator why a UE is refused and what to do. The caller masks
//! identities when it logs the sentence.

use super::context::{Env, UeContext};
use super::error::{AuthenticationFault, RegistrationError};
use pith_sbi::common::SupiOrSuci;
use pith_types::{Dnn, SchemeOutput, Snssai, Tai};
use std::fmt::Display;

pub(crate) fn explain(error: &RegistrationError, ue: &UeContext, env: &Env<'_>) -> String {
    match error {
        RegistrationError::UnknownSubscriber => {
            "unknown subscriber: 'pith subscriber list' shows those that there are, \
             'pith subscriber add' adds one"
                .into()
        }
        RegistrationError::AuthenticationFailed { fault, .. } => authentication(*fault),
        RegistrationError::NoIdentity | RegistrationError::SuciNotDeconcealed => no_identity(ue),
        RegistrationError::TrackingAreaNotServed => tracking_area(ue, env),
        RegistrationError::RoamingNotAllowed => {
            let plmn = ue.location.map(|location| location.tai.plmn_id.to_string()).unwrap_or_default();
            format!("the subscription does not allow PLMN {plmn}")
        }
        RegistrationError::ServingNetworkNotAuthorized => {
            format!("the home network does not accept PLMN {} as serving network", env.config.guami.plmn_id)
        }
        RegistrationError::SecurityCapabilityMismatch => format!(
            "no algorithm in common, or the capabilities were changed on the way: 'amf.security' allows {} and {}",
            names(&env.config.integrity),
            names(&env.config.ciphering)
        ),
        RegistrationError::NoSlicesAvailable(_) => slices(ue, env),
        RegistrationError::Congestion => {
            format!(
                "congestion: there is room for {} phones on this shard, or an NF is overloaded",
                env.config.max_ues
            )
        }
        RegistrationError::NoAnswer => "the phone does not answer, though it was asked five times".into(),
        RegistrationError::ServicesNotAllowed => {
            "the subscription has no 5GS: give the subscriber a default slice with a data network".into()
        }
        RegistrationError::Network(nf) => format!("the {nf} gave an answer that was not asked for"),
        other => other.to_string(),
    }
}

fn authentication(fault: AuthenticationFault) -> String {
    match fault {
        AuthenticationFault::Mac => {
            "the SIM finds the network's proof wrong (MAC failure): K, OPc or the algorithm of the \
             subscriber are not the SIM's; often OP was given as OPc"
                .into()
        }
        AuthenticationFault::Synchronisation => "the SIM finds the sequence number out of range, also after \
             resynchronisation: another network uses the same K, or two SIMs have one SUPI"
            .into(),
        AuthenticationFault::Cause(cause) => format!("the phone refuses the authentication: {cause}"),
        AuthenticationFault::WrongResponse => {
            "the SIM's response is wrong: K or OPc of the subscriber are not the SIM's".into()
        }
        AuthenticationFault::HomeNetwork => {
            "the home network refuses the authentication: K or OPc of the subscriber are \
             not the SIM's, if the phone asked for resynchronisation"
                .into()
        }
    }
}

/// The identity is missing, or the home network can't de-conceal it.
fn no_identity(ue: &UeContext) -> String {
    let Some(SupiOrSuci::Suci(suci)) = &ue.claimed else {
        return "the phone shows no IMSI or SUCI of one".into();
    };
    let profile = match suci.output {
        SchemeOutput::Null(_) => return "the phone's SUCI of the null scheme shows no IMSI".into(),
        SchemeOutput::Concealed { scheme: 1, .. } => "profile A".to_owned(),
        SchemeOutput::Concealed { scheme: 2, .. } => "profile B".to_owned(),
        SchemeOutput::Concealed { scheme, .. } => format!("protection scheme {scheme}"),
    };
    format!(
        "the SUCI can't be uncovered: it needs home network key {} ({profile}), which 'home_network_keys' lacks, or the SIM's \
         public key is not that of this key",
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
        "no slice for the phone here: its subscription has {subscribed}, the network has {} (and the cell may have fewer)",
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
