//! What the UDM keeps of a subscriber (TS 29.505), beyond the types of Nudm itself.

use crate::common::AuthType;
use crate::octets::{Hex, SecretText};
use crate::record::{open_enum, record};
use pith_types::Supi;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// The credentials of a subscriber.
    AuthenticationSubscription {
        required {
            /// The method.
            authentication_method: AuthType,
        }
        optional {
            /// K, encrypted as `protection_parameter_id` says.
            enc_permanent_key: SecretText,
            /// How the keys are encrypted; `None` if they are in clear.
            protection_parameter_id: Arc<str>,
            /// SQN_HE.
            sequence_number: SequenceNumber,
            /// AMF of TS 33.102, two octets.
            authentication_management_field: Hex<2>,
            /// `milenage` or `tuak`, and their parameters; the operator's own.
            algorithm_id: Arc<str>,
            /// OPc, encrypted in the same way.
            enc_opc_key: SecretText,
            /// TOPc, encrypted in the same way.
            enc_topc_key: SecretText,
            /// The subscriber.
            supi: Supi,
        }
    }
}

open_enum! {
    /// How sequence numbers are made (TS 33.102 Annex C.1.1).
    SqnScheme {
        General = "GENERAL",
        NonTimeBased = "NON_TIME_BASED",
        TimeBased = "TIME_BASED",
    }
}

/// The sign of a difference; no other values, ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Sign {
    /// Above zero.
    Positive,
    /// Below zero.
    Negative,
}

record! {
    /// A sequence number and how the next is made.
    SequenceNumber {
        optional {
            /// The scheme.
            sqn_scheme: SqnScheme,
            /// SQN, 48 bits.
            sqn: Hex<6>,
            /// How many low bits are the index.
            ind_length: u8,
            /// The sign of DIF.
            dif_sign: Sign,
        }
        repeated {
            /// The last index by type of node.
            last_indexes: BTreeMap<Arc<str>, u32>,
        }
    }
}
