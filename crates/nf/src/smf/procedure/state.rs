//! The states of a session, in the order of its life (TS 23.502 4.3.2 to 4.3.5), and what can be asked of each.

use super::branching::AwaitingClassifier;
use super::establishment::{
    AwaitingFrontEstablishment, AwaitingN4Establishment, AwaitingN9Modification, AwaitingPolicyDecision,
    AwaitingResourceSetup, AwaitingSubscriptionData,
};
use super::lost_tunnel::{AwaitingBuffering, AwaitingResourceRelease};
use super::modification::AwaitingRates;
use super::path::{AwaitingDownlinkSwitch, AwaitingUplinkSwitch};
use super::release::{Abandoned, AwaitingReleaseComplete, Remains};
use super::user_plane::AwaitingN4Modification;
use crate::kit::UpfHandle;
use crate::smf::context::{CallId, UserPlane};

/// What a session waits for.
#[derive(Debug, Default)]
pub(in crate::smf) enum State {
    /// Establishment: the UDM's subscription data; the AMF waits for an answer.
    AwaitingSubscriptionData(AwaitingSubscriptionData),
    /// Establishment: the PCF's decision.
    AwaitingPolicyDecision(AwaitingPolicyDecision),
    /// Establishment: the anchor's tunnel.
    AwaitingN4Establishment(AwaitingN4Establishment),
    /// Establishment: the tunnels of the UPF between gNB and anchor.
    AwaitingFrontEstablishment(AwaitingFrontEstablishment),
    /// Establishment: the anchor's new destination of downlink packets.
    AwaitingN9Modification(AwaitingN9Modification),
    /// Establishment: the gNB's tunnel; UE and gNB were told of the session.
    AwaitingResourceSetup(AwaitingResourceSetup),
    /// Nothing.
    Established(Established),
    /// Activation or deactivation: the UPF's new rules; the AMF waits for an answer.
    AwaitingN4Modification(AwaitingN4Modification),
    /// Modification: the UPFs' new rates.
    AwaitingRates(AwaitingRates),
    /// Branching: the tunnels of the UPF that becomes the classifier.
    AwaitingClassifier(AwaitingClassifier),
    /// Branching: the anchor's new destination of downlink packets.
    AwaitingDownlinkSwitch(AwaitingDownlinkSwitch),
    /// Branching: the gNB's new destination of uplink packets.
    AwaitingUplinkSwitch(AwaitingUplinkSwitch),
    /// Lost tunnel: the UPF, which buffers.
    AwaitingBuffering(AwaitingBuffering),
    /// Lost tunnel: the gNB, which releases its resources.
    AwaitingResourceRelease(AwaitingResourceRelease),
    /// Release: the UE's PDU SESSION RELEASE COMPLETE.
    AwaitingReleaseComplete(AwaitingReleaseComplete),
    /// Ended: a UPF's answer to an establishment.
    Abandoned(Abandoned),
    /// Ended, or between two states.
    #[default]
    Over,
}

/// A session that waits for nothing.
#[derive(Debug)]
pub(in crate::smf) struct Established {
    pub user_plane: UserPlane,
}

impl From<Established> for State {
    fn from(established: Established) -> Self {
        Self::Established(established)
    }
}

impl State {
    /// A session with that user plane, which waits for nothing.
    pub(in crate::smf) const fn established(user_plane: UserPlane) -> Self {
        Self::Established(Established { user_plane })
    }

    /// The call, or the request to a UPF, whose answer moves it.
    pub(in crate::smf) const fn call(&self) -> Option<CallId> {
        match self {
            Self::AwaitingSubscriptionData(state) => Some(state.call),
            Self::AwaitingPolicyDecision(state) => Some(state.call),
            Self::AwaitingN4Establishment(state) => Some(state.call),
            Self::AwaitingFrontEstablishment(state) => Some(state.call),
            Self::AwaitingN9Modification(state) => Some(state.call),
            Self::AwaitingResourceSetup(state) => Some(state.call),
            Self::AwaitingN4Modification(state) => Some(state.call),
            Self::AwaitingRates(state) => Some(state.call),
            Self::AwaitingClassifier(state) => Some(state.call),
            Self::AwaitingDownlinkSwitch(state) => Some(state.call),
            Self::AwaitingUplinkSwitch(state) => Some(state.call),
            Self::AwaitingBuffering(state) => Some(state.call),
            Self::AwaitingResourceRelease(state) => Some(state.call),
            Self::Abandoned(state) => Some(state.call),
            Self::Established(_) | Self::AwaitingReleaseComplete(_) | Self::Over => None,
        }
    }

    /// The user plane, once the anchor has the session and until the session is released.
    pub(in crate::smf) const fn user_plane(&self) -> Option<&UserPlane> {
        match self {
            Self::AwaitingFrontEstablishment(state) => Some(&state.user_plane),
            Self::AwaitingN9Modification(state) => Some(&state.user_plane),
            Self::AwaitingResourceSetup(state) => Some(&state.user_plane),
            Self::Established(state) => Some(&state.user_plane),
            Self::AwaitingN4Modification(state) => Some(&state.user_plane),
            Self::AwaitingRates(state) => Some(&state.user_plane),
            Self::AwaitingClassifier(state) => Some(&state.user_plane),
            Self::AwaitingDownlinkSwitch(state) => Some(&state.user_plane),
            Self::AwaitingUplinkSwitch(state) => Some(&state.user_plane),
            Self::AwaitingBuffering(state) => Some(&state.user_plane),
            Self::AwaitingResourceRelease(state) => Some(&state.user_plane),
            Self::AwaitingSubscriptionData(_)
            | Self::AwaitingPolicyDecision(_)
            | Self::AwaitingN4Establishment(_)
            | Self::AwaitingReleaseComplete(_)
            | Self::Abandoned(_)
            | Self::Over => None,
        }
    }

    /// What is left to end when the session ends in this state.
    pub(in crate::smf) fn dismantle(self) -> Remains {
        match self {
            Self::AwaitingSubscriptionData(state) => state.dismantle(),
            Self::AwaitingN4Establishment(state) => state.dismantle(),
            Self::AwaitingFrontEstablishment(state) => state.dismantle(),
            Self::AwaitingN9Modification(state) => state.user_plane.into(),
            Self::AwaitingResourceSetup(state) => state.user_plane.into(),
            Self::Established(state) => state.user_plane.into(),
            Self::AwaitingN4Modification(state) => state.dismantle(),
            Self::AwaitingRates(state) => state.user_plane.into(),
            Self::AwaitingClassifier(state) => state.dismantle(),
            Self::AwaitingDownlinkSwitch(state) => state.user_plane.into(),
            Self::AwaitingUplinkSwitch(state) => state.user_plane.into(),
            Self::AwaitingBuffering(state) => state.user_plane.into(),
            Self::AwaitingResourceRelease(state) => state.user_plane.into(),
            Self::Abandoned(Abandoned { upf, call }) => {
                Remains { establishing: Some((upf, call)), ..Remains::default() }
            }
            Self::AwaitingPolicyDecision(_) | Self::AwaitingReleaseComplete(_) | Self::Over => {
                Remains::default()
            }
        }
    }

    /// The UPF that owes an answer to an establishment, and to which request.
    pub(in crate::smf) const fn establishing(&self) -> Option<(UpfHandle, CallId)> {
        match self {
            Self::AwaitingN4Establishment(state) => Some((state.upf, state.call)),
            Self::AwaitingFrontEstablishment(state) => Some((state.upf(), state.call)),
            Self::AwaitingClassifier(state) => Some((state.upf(), state.call)),
            Self::Abandoned(state) => Some((state.upf, state.call)),
            Self::AwaitingSubscriptionData(_)
            | Self::AwaitingPolicyDecision(_)
            | Self::AwaitingN9Modification(_)
            | Self::AwaitingResourceSetup(_)
            | Self::Established(_)
            | Self::AwaitingN4Modification(_)
            | Self::AwaitingRates(_)
            | Self::AwaitingDownlinkSwitch(_)
            | Self::AwaitingUplinkSwitch(_)
            | Self::AwaitingBuffering(_)
            | Self::AwaitingResourceRelease(_)
            | Self::AwaitingReleaseComplete(_)
            | Self::Over => None,
        }
    }

    /// Whether it has, or asked for, a session at that UPF.
    pub(in crate::smf) fn is_at(&self, upf: UpfHandle) -> bool {
        let of_path = self.user_plane().is_some_and(|user_plane| {
            user_plane.anchor.upf == upf
                || user_plane.front.as_ref().is_some_and(|front| front.session.upf == upf)
        });
        of_path || self.establishing().is_some_and(|(establishing, _)| establishing == upf)
    }

    /// Whether it owes another NF an answer.
    pub(in crate::smf) const fn owes_reply(&self) -> bool {
        matches!(self, Self::AwaitingSubscriptionData(_) | Self::AwaitingN4Modification(_))
    }

    /// Whether UPF or gNB are changing what they have of an established session: other changes are pending until they have.
    pub(in crate::smf) const fn is_changing(&self) -> bool {
        matches!(self.phase(), Phase::Changing | Phase::Branching)
    }

    /// Whether an SM context resource stands for it.
    pub(in crate::smf) const fn is_alive(&self) -> bool {
        !matches!(self, Self::Abandoned(_) | Self::Over)
    }

    /// Whether nothing is left of the session.
    pub(in crate::smf) const fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// Where it is in the session's life.
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
            | Self::AwaitingRates(_)
            | Self::AwaitingBuffering(_)
            | Self::AwaitingResourceRelease(_) => Phase::Changing,
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
            Self::AwaitingRates(_) => "AwaitingRates",
            Self::AwaitingClassifier(_) => "AwaitingClassifier",
            Self::AwaitingDownlinkSwitch(_) => "AwaitingDownlinkSwitch",
            Self::AwaitingUplinkSwitch(_) => "AwaitingUplinkSwitch",
            Self::AwaitingBuffering(_) => "AwaitingBuffering",
            Self::AwaitingResourceRelease(_) => "AwaitingResourceRelease",
            Self::AwaitingReleaseComplete(_) => "AwaitingReleaseComplete",
            Self::Abandoned(_) => "Abandoned",
            Self::Over => "Over",
        }
    }
}

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::smf) enum Phase {
    /// Other NFs and UPFs are asked.
    Establishing,
    /// UE and gNB set the session up.
    AwaitingGnb,
    /// It waits for nothing.
    Established,
    /// UPF or gNB change what they have of it.
    Changing,
    /// A classifier is inserted or removed.
    Branching,
    /// It ends.
    Releasing,
}

impl Phase {
    /// For people.
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
