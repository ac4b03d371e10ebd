//! The states of a session, from its establishment to its release (TS 23.502 4.3.2 to 4.3.5), and their properties.

use super::branching::AwaitingClassifier;
use super::confirmation::AwaitingConfirmation;
use super::establishment::{
    Accept, AwaitingFrontEstablishment, AwaitingN4Establishment, AwaitingN9Modification,
    AwaitingPolicyDecision, AwaitingResourceSetup, AwaitingSubscriptionData,
};
use super::flow_mobility::AwaitingFlowMobility;
use super::forwarding::AwaitingForwardingTunnel;
use super::lost_tunnel::{AwaitingBuffering, AwaitingResourceRelease};
use super::modification::AwaitingRates;
use super::path::{AwaitingDownlinkSwitch, AwaitingUplinkSwitch};
use super::path_switch::AwaitingPathSwitch;
use super::release::{Abandoned, AwaitingReleaseComplete, Held};
use super::restoration::AwaitingRestoration;
use super::user_plane::AwaitingN4Modification;
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{ProcedureName, UpfHandle};
use crate::smf::context::{CallId, UserPlane};

/// The state of a session: what it waits for.
#[derive(Debug, Default)]
pub(in crate::smf) enum State {
    /// Establishment: the UDM's subscription data. The AMF's request is not answered yet.
    AwaitingSubscriptionData(AwaitingSubscriptionData),
    /// Establishment: the PCF's decision.
    AwaitingPolicyDecision(AwaitingPolicyDecision),
    /// Establishment: the anchor's tunnel endpoint.
    AwaitingN4Establishment(AwaitingN4Establishment),
    /// Establishment: the tunnel endpoints of the UPF between gNB and anchor.
    AwaitingFrontEstablishment(AwaitingFrontEstablishment),
    /// Establishment: the anchor, which is to send downlink packets to the front UPF.
    AwaitingN9Modification(AwaitingN9Modification),
    /// Establishment: the gNB's tunnel endpoint. The messages to UE and gNB were sent.
    AwaitingResourceSetup(AwaitingResourceSetup),
    /// The session is established and waits for nothing.
    Established(Established),
    /// Activation or deactivation: the UPF, which is to apply new rules. The AMF's request is not answered yet.
    AwaitingN4Modification(AwaitingN4Modification),
    /// Handover: the UPF, which is to send downlink packets to the target gNB. The AMF's request is not answered yet.
    AwaitingPathSwitch(AwaitingPathSwitch),
    /// Dual connectivity: the UPF, which is to send downlink packets of QoS flows to other gNBs. The AMF's request is not answered yet.
    AwaitingFlowMobility(AwaitingFlowMobility),
    /// N2 handover: the UPF's endpoint for packets that gNBs forward. The AMF's request is not answered yet.
    AwaitingForwardingTunnel(AwaitingForwardingTunnel),
    /// Modification: the UPFs, which are to apply new rates.
    AwaitingRates(AwaitingRates),
    /// Branching: the tunnel endpoints of the UPF that becomes the classifier.
    AwaitingClassifier(AwaitingClassifier),
    /// Branching: the anchor, which is to send downlink packets to another endpoint.
    AwaitingDownlinkSwitch(AwaitingDownlinkSwitch),
    /// Branching: the gNB, which is to send uplink packets to another endpoint.
    AwaitingUplinkSwitch(AwaitingUplinkSwitch),
    /// Lost tunnel: the UPF, which is to buffer downlink packets.
    AwaitingBuffering(AwaitingBuffering),
    /// Lost tunnel: the gNB, which is to release its resources.
    AwaitingResourceRelease(AwaitingResourceRelease),
    /// Release: the UE's PDU SESSION RELEASE COMPLETE.
    AwaitingReleaseComplete(AwaitingReleaseComplete),
    /// Restart: the UPFs, which are to get the session again.
    AwaitingRestoration(AwaitingRestoration),
    /// Restart: a UPF, which is to confirm that it has the session.
    AwaitingConfirmation(AwaitingConfirmation),
    /// The session has ended; a UPF has not yet answered the request to establish it.
    Abandoned(Abandoned),
    /// The session has ended, or a step has taken its state.
    #[default]
    Over,
}

/// An established session, which waits for nothing.
#[derive(Debug)]
pub(in crate::smf) struct Established {
    pub user_plane: UserPlane,
}

// A number is never given to another state.
pack_enum!(State {
    0 => Over,
    1 => AwaitingSubscriptionData(state),
    2 => AwaitingPolicyDecision(state),
    3 => AwaitingN4Establishment(state),
    4 => AwaitingFrontEstablishment(state),
    5 => AwaitingN9Modification(state),
    6 => AwaitingResourceSetup(state),
    7 => Established(state),
    8 => AwaitingN4Modification(state),
    9 => AwaitingRates(state),
    10 => AwaitingClassifier(state),
    11 => AwaitingDownlinkSwitch(state),
    12 => AwaitingUplinkSwitch(state),
    13 => AwaitingBuffering(state),
    14 => AwaitingResourceRelease(state),
    15 => AwaitingReleaseComplete(state),
    16 => Abandoned(state),
    17 => AwaitingRestoration(state),
    18 => AwaitingPathSwitch(state),
    40 => AwaitingConfirmation(state),
    42 => AwaitingFlowMobility(state),
    43 => AwaitingForwardingTunnel(state),
});
pack_struct!(Established { user_plane });

impl From<Established> for State {
    fn from(established: Established) -> Self {
        Self::Established(established)
    }
}

impl State {
    /// The state of an established session with this user plane.
    pub(in crate::smf) const fn established(user_plane: UserPlane) -> Self {
        Self::Established(Established { user_plane })
    }

    /// The procedure that the state belongs to; `None` if it does not follow from the state.
    pub(in crate::smf) const fn procedure(&self) -> Option<ProcedureName> {
        match self {
            Self::AwaitingSubscriptionData(_)
            | Self::AwaitingPolicyDecision(_)
            | Self::AwaitingN4Establishment(_)
            | Self::AwaitingFrontEstablishment(_)
            | Self::AwaitingN9Modification(_)
            | Self::AwaitingResourceSetup(_) => Some(ProcedureName::SessionEstablishment),
            Self::AwaitingN4Modification(state) if state.user_plane.gnb.is_none() => {
                Some(ProcedureName::AnRelease)
            }
            Self::Established(_) | Self::AwaitingN4Modification(_) => None,
            Self::AwaitingRates(_)
            | Self::AwaitingClassifier(_)
            | Self::AwaitingDownlinkSwitch(_)
            | Self::AwaitingUplinkSwitch(_) => Some(ProcedureName::SessionModification),
            Self::AwaitingBuffering(_) | Self::AwaitingResourceRelease(_) => Some(ProcedureName::AnRelease),
            Self::AwaitingReleaseComplete(_) | Self::Abandoned(_) | Self::Over => {
                Some(ProcedureName::SessionRelease)
            }
            Self::AwaitingPathSwitch(_) | Self::AwaitingForwardingTunnel(_) => Some(ProcedureName::Handover),
            Self::AwaitingFlowMobility(_) => Some(ProcedureName::SessionModification),
            Self::AwaitingRestoration(_) | Self::AwaitingConfirmation(_) => Some(ProcedureName::Other),
        }
    }

    /// The procedure of a step that led to this state, from a state of that procedure. `None`: that of the step before.
    pub(in crate::smf) fn procedure_since(&self, before: Option<ProcedureName>) -> Option<ProcedureName> {
        before.or_else(|| match self {
            // An idle session is activated, or the UE is paged for it.
            Self::Established(state) if state.user_plane.gnb.is_none() => Some(ProcedureName::ServiceRequest),
            Self::AwaitingN4Modification(state) if state.user_plane.gnb.is_some() => {
                Some(ProcedureName::ServiceRequest)
            }
            state => state.procedure(),
        })
    }

    /// The call, or the request to a UPF, that the state waits for.
    pub(in crate::smf) const fn call(&self) -> Option<CallId> {
        match self {
            Self::AwaitingSubscriptionData(state) => Some(state.call),
            Self::AwaitingPolicyDecision(state) => Some(state.call),
            Self::AwaitingN4Establishment(state) => Some(state.call),
            Self::AwaitingFrontEstablishment(state) => Some(state.call),
            Self::AwaitingN9Modification(state) => Some(state.call),
            Self::AwaitingResourceSetup(state) => Some(state.call),
            Self::AwaitingN4Modification(state) => Some(state.call),
            Self::AwaitingPathSwitch(state) => Some(state.call),
            Self::AwaitingFlowMobility(state) => Some(state.call),
            Self::AwaitingForwardingTunnel(state) => Some(state.call),
            Self::AwaitingRates(state) => Some(state.call),
            Self::AwaitingClassifier(state) => Some(state.call),
            Self::AwaitingDownlinkSwitch(state) => Some(state.call),
            Self::AwaitingUplinkSwitch(state) => Some(state.call),
            Self::AwaitingBuffering(state) => Some(state.call),
            Self::AwaitingResourceRelease(state) => Some(state.call),
            Self::Abandoned(state) => Some(state.call),
            Self::AwaitingRestoration(state) => state.call,
            Self::AwaitingConfirmation(state) => Some(state.call),
            Self::Established(_) | Self::AwaitingReleaseComplete(_) | Self::Over => None,
        }
    }

    /// What the accept for the UE answers, while the gNB is to set the session up for the first time.
    pub(in crate::smf) const fn accept(&self) -> Option<Accept> {
        match self {
            Self::AwaitingResourceSetup(state) => state.accept,
            _ => None,
        }
    }

    /// Sets it, as a document has it. Returns that of a session which is to be restored.
    pub(in crate::smf) fn set_accept(&mut self, accept: Option<Accept>) -> Option<Accept> {
        if let Self::AwaitingResourceSetup(state) = self {
            state.accept = accept;
            return None;
        }
        accept
    }

    /// The user plane, once the anchor has the session and until the session is released.
    pub(in crate::smf) const fn user_plane(&self) -> Option<&UserPlane> {
        match self {
            Self::AwaitingFrontEstablishment(state) => Some(&state.user_plane),
            Self::AwaitingN9Modification(state) => Some(&state.user_plane),
            Self::AwaitingResourceSetup(state) => Some(&state.user_plane),
            Self::Established(state) => Some(&state.user_plane),
            Self::AwaitingN4Modification(state) => Some(&state.user_plane),
            Self::AwaitingPathSwitch(state) => Some(&state.user_plane),
            Self::AwaitingFlowMobility(state) => Some(&state.user_plane),
            Self::AwaitingForwardingTunnel(state) => Some(&state.user_plane),
            Self::AwaitingRates(state) => Some(&state.user_plane),
            Self::AwaitingClassifier(state) => Some(&state.user_plane),
            Self::AwaitingDownlinkSwitch(state) => Some(&state.user_plane),
            Self::AwaitingUplinkSwitch(state) => Some(&state.user_plane),
            Self::AwaitingBuffering(state) => Some(&state.user_plane),
            Self::AwaitingResourceRelease(state) => Some(&state.user_plane),
            Self::AwaitingRestoration(state) => Some(&state.user_plane),
            Self::AwaitingConfirmation(state) => Some(&state.user_plane),
            Self::AwaitingSubscriptionData(_)
            | Self::AwaitingPolicyDecision(_)
            | Self::AwaitingN4Establishment(_)
            | Self::AwaitingReleaseComplete(_)
            | Self::Abandoned(_)
            | Self::Over => None,
        }
    }

    /// The user plane of [`State::user_plane`].
    pub(in crate::smf) fn into_user_plane(self) -> Option<UserPlane> {
        match self {
            Self::AwaitingFrontEstablishment(state) => Some(state.user_plane),
            Self::AwaitingN9Modification(state) => Some(state.user_plane),
            Self::AwaitingResourceSetup(state) => Some(state.user_plane),
            Self::Established(state) => Some(state.user_plane),
            Self::AwaitingN4Modification(state) => Some(state.user_plane),
            Self::AwaitingPathSwitch(state) => Some(state.user_plane),
            Self::AwaitingFlowMobility(state) => Some(state.user_plane),
            Self::AwaitingForwardingTunnel(state) => Some(state.user_plane),
            Self::AwaitingRates(state) => Some(state.user_plane),
            Self::AwaitingClassifier(state) => Some(state.user_plane),
            Self::AwaitingDownlinkSwitch(state) => Some(state.user_plane),
            Self::AwaitingUplinkSwitch(state) => Some(state.user_plane),
            Self::AwaitingBuffering(state) => Some(state.user_plane),
            Self::AwaitingResourceRelease(state) => Some(state.user_plane),
            Self::AwaitingRestoration(state) => Some(state.user_plane),
            Self::AwaitingConfirmation(state) => Some(state.user_plane),
            Self::AwaitingSubscriptionData(_)
            | Self::AwaitingPolicyDecision(_)
            | Self::AwaitingN4Establishment(_)
            | Self::AwaitingReleaseComplete(_)
            | Self::Abandoned(_)
            | Self::Over => None,
        }
    }

    /// What must be released or answered if the session ends in this state.
    pub(in crate::smf) fn into_held(self) -> Held {
        match self {
            Self::AwaitingSubscriptionData(state) => state.into_held(),
            Self::AwaitingN4Establishment(state) => state.into_held(),
            Self::AwaitingFrontEstablishment(state) => state.into_held(),
            Self::AwaitingN9Modification(state) => state.user_plane.into(),
            Self::AwaitingResourceSetup(state) => state.user_plane.into(),
            Self::Established(state) => state.user_plane.into(),
            Self::AwaitingN4Modification(state) => state.into_held(),
            Self::AwaitingPathSwitch(state) => state.into_held(),
            Self::AwaitingFlowMobility(state) => state.into_held(),
            Self::AwaitingForwardingTunnel(state) => state.into_held(),
            Self::AwaitingRates(state) => state.user_plane.into(),
            Self::AwaitingClassifier(state) => state.into_held(),
            Self::AwaitingDownlinkSwitch(state) => state.user_plane.into(),
            Self::AwaitingUplinkSwitch(state) => state.user_plane.into(),
            Self::AwaitingBuffering(state) => state.user_plane.into(),
            Self::AwaitingResourceRelease(state) => state.user_plane.into(),
            Self::AwaitingRestoration(state) => state.into_held(),
            Self::AwaitingConfirmation(state) => state.user_plane.into(),
            Self::Abandoned(Abandoned { upf, call }) => {
                Held { establishing: Some((upf, call)), ..Held::default() }
            }
            Self::AwaitingPolicyDecision(_) | Self::AwaitingReleaseComplete(_) | Self::Over => {
                Held::default()
            }
        }
    }

    /// The UPF that has not answered a Session Establishment Request, and the request.
    pub(in crate::smf) fn establishing(&self) -> Option<(UpfHandle, CallId)> {
        match self {
            Self::AwaitingN4Establishment(state) => Some((state.upf, state.call)),
            Self::AwaitingFrontEstablishment(state) => Some((state.upf(), state.call)),
            Self::AwaitingClassifier(state) => Some((state.upf(), state.call)),
            Self::AwaitingForwardingTunnel(state) => Some((state.upf(), state.call)),
            Self::Abandoned(state) => Some((state.upf, state.call)),
            Self::AwaitingRestoration(state) => state.establishing(),
            Self::AwaitingSubscriptionData(_)
            | Self::AwaitingPolicyDecision(_)
            | Self::AwaitingN9Modification(_)
            | Self::AwaitingResourceSetup(_)
            | Self::Established(_)
            | Self::AwaitingN4Modification(_)
            | Self::AwaitingPathSwitch(_)
            | Self::AwaitingFlowMobility(_)
            | Self::AwaitingRates(_)
            | Self::AwaitingDownlinkSwitch(_)
            | Self::AwaitingUplinkSwitch(_)
            | Self::AwaitingBuffering(_)
            | Self::AwaitingResourceRelease(_)
            | Self::AwaitingConfirmation(_)
            | Self::AwaitingReleaseComplete(_)
            | Self::Over => None,
        }
    }

    /// Whether the session is established, or being established, at this UPF.
    pub(in crate::smf) fn is_at(&self, upf: UpfHandle) -> bool {
        let of_path = self.user_plane().is_some_and(|user_plane| {
            user_plane.anchor.upf == upf
                || user_plane.front.as_ref().is_some_and(|front| front.session.upf == upf)
        });
        of_path || self.establishing().is_some_and(|(establishing, _)| establishing == upf)
    }

    /// Whether the gNB has, or may have, resources of the session.
    pub(in crate::smf) fn has_tunnel(&self) -> bool {
        let has_endpoint = self.user_plane().is_some_and(|user_plane| user_plane.gnb.is_some());
        has_endpoint || matches!(self, Self::AwaitingResourceSetup(_) | Self::AwaitingResourceRelease(_))
    }

    /// Whether the state has a request of another NF to answer.
    pub(in crate::smf) const fn owes_reply(&self) -> bool {
        match self {
            Self::AwaitingForwardingTunnel(state) => state.owes_reply(),
            state => matches!(
                state,
                Self::AwaitingSubscriptionData(_)
                    | Self::AwaitingN4Modification(_)
                    | Self::AwaitingPathSwitch(_)
                    | Self::AwaitingFlowMobility(_)
            ),
        }
    }

    /// Whether a change of an established session at UPF or gNB is in progress. Other changes are pending until its end.
    pub(in crate::smf) const fn is_changing(&self) -> bool {
        matches!(self.phase(), Phase::Changing | Phase::Branching)
    }

    /// The PTI of the PDU SESSION RELEASE COMMAND that the UE has not answered, if there is one.
    pub(in crate::smf) const fn release_pti(&self) -> Option<u8> {
        match self {
            Self::AwaitingReleaseComplete(state) => Some(state.pti),
            _ => None,
        }
    }

    /// Whether the SM context resource exists.
    pub(in crate::smf) const fn is_alive(&self) -> bool {
        !matches!(self, Self::Abandoned(_) | Self::Over)
    }

    /// Whether nothing is left of the session.
    pub(in crate::smf) const fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// The phase of the session's life.
    pub(in crate::smf) const fn phase(&self) -> Phase {
        match self {
            Self::AwaitingSubscriptionData(_)
            | Self::AwaitingPolicyDecision(_)
            | Self::AwaitingN4Establishment(_)
            | Self::AwaitingFrontEstablishment(_)
            | Self::AwaitingN9Modification(_) => Phase::Establishing,
            Self::AwaitingResourceSetup(_) => Phase::AwaitingGnb,
            Self::Established(_) => Phase::Established,
            Self::AwaitingN4Modification(_)
            | Self::AwaitingPathSwitch(_)
            | Self::AwaitingFlowMobility(_)
            | Self::AwaitingForwardingTunnel(_)
            | Self::AwaitingRates(_)
            | Self::AwaitingBuffering(_)
            | Self::AwaitingResourceRelease(_)
            | Self::AwaitingRestoration(_)
            | Self::AwaitingConfirmation(_) => Phase::Changing,
            Self::AwaitingClassifier(_) | Self::AwaitingDownlinkSwitch(_) | Self::AwaitingUplinkSwitch(_) => {
                Phase::Branching
            }
            Self::AwaitingReleaseComplete(_) | Self::Abandoned(_) | Self::Over => Phase::Releasing,
        }
    }

    /// The state's name, for operators.
    pub(in crate::smf) const fn name(&self) -> &'static str {
        match self {
            Self::AwaitingSubscriptionData(_) => "AwaitingSubscriptionData",
            Self::AwaitingPolicyDecision(_) => "AwaitingPolicyDecision",
            Self::AwaitingN4Establishment(_) => "AwaitingN4Establishment",
            Self::AwaitingFrontEstablishment(_) => "AwaitingFrontEstablishment",
            Self::AwaitingN9Modification(_) => "AwaitingN9Modification",
            Self::AwaitingResourceSetup(_) => "AwaitingResourceSetup",
            Self::Established(_) => "Established",
            Self::AwaitingN4Modification(_) => "AwaitingN4Modification",
            Self::AwaitingPathSwitch(_) => "AwaitingPathSwitch",
            Self::AwaitingFlowMobility(_) => "AwaitingFlowMobility",
            Self::AwaitingForwardingTunnel(_) => "AwaitingForwardingTunnel",
            Self::AwaitingRates(_) => "AwaitingRates",
            Self::AwaitingClassifier(_) => "AwaitingClassifier",
            Self::AwaitingDownlinkSwitch(_) => "AwaitingDownlinkSwitch",
            Self::AwaitingUplinkSwitch(_) => "AwaitingUplinkSwitch",
            Self::AwaitingBuffering(_) => "AwaitingBuffering",
            Self::AwaitingResourceRelease(_) => "AwaitingResourceRelease",
            Self::AwaitingReleaseComplete(_) => "AwaitingReleaseComplete",
            Self::AwaitingRestoration(_) => "AwaitingRestoration",
            Self::AwaitingConfirmation(_) => "AwaitingConfirmation",
            Self::Abandoned(_) => "Abandoned",
            Self::Over => "Over",
        }
    }
}

/// The phase of a session's life, as the operator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::smf) enum Phase {
    /// Requests to other NFs and UPFs are in progress.
    Establishing,
    /// UE and gNB are setting the session up.
    AwaitingGnb,
    /// No procedure is in progress.
    Established,
    /// A change at UPF or gNB is in progress.
    Changing,
    /// A classifier is being inserted or removed.
    Branching,
    /// The session is being released.
    Releasing,
}

impl Phase {
    /// Its name in the output of commands.
    pub(in crate::smf) const fn name(self) -> &'static str {
        match self {
            Self::Establishing => "establishing",
            Self::AwaitingGnb => "awaiting-gnb",
            Self::Established | Self::Changing => "established",
            Self::Branching => "branching",
            Self::Releasing => "releasing",
        }
    }
}
