//! Subscription data in the UDR (TS 29.505) that the Nudm types do not define.

use crate::common::{AuthType, NotifyItem};
use crate::octets::{Hex, SecretText};
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::Supi;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// Authentication data of a subscriber.
    AuthenticationSubscription {
        required {
            /// The authentication method.
            authentication_method: AuthType,
        }
        optional {
            /// K, encrypted according to `protection_parameter_id`.
            enc_permanent_key: SecretText,
            /// Encryption of the keys; `None` if they are in cleartext.
            protection_parameter_id: Arc<str>,
            /// SQN_HE.
            sequence_number: SequenceNumber,
            /// AMF of TS 33.102, two octets.
            authentication_management_field: Hex<2>,
            /// `milenage` or `tuak` with parameters; defined by the operator.
            algorithm_id: Arc<str>,
            /// OPc, encrypted like K.
            enc_opc_key: SecretText,
            /// TOPc, encrypted like K.
            enc_topc_key: SecretText,
            /// SUPI of the subscriber.
            supi: Supi,
        }
    }
}

open_enum! {
    /// Generation scheme of sequence numbers (TS 33.102 Annex C.1.1).
    SqnScheme {
        General = "GENERAL",
        NonTimeBased = "NON_TIME_BASED",
        TimeBased = "TIME_BASED",
    }
}

/// The sign of a difference; not extensible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Sign {
    /// Above zero.
    Positive,
    /// Below zero.
    Negative,
}

record! {
    /// A sequence number and its generation scheme.
    SequenceNumber {
        optional {
            /// The scheme.
            sqn_scheme: SqnScheme,
            /// SQN, 48 bits.
            sqn: Hex<6>,
            /// Length of the index in bits.
            ind_length: u8,
            /// The sign of DIF.
            dif_sign: Sign,
        }
        repeated {
            /// The last index by node type.
            last_indexes: BTreeMap<Arc<str>, u32>,
        }
    }
}

record! {
    /// A notification of changed data (TS 29.505 5.4.2.25).
    DataChangeNotify {
        optional {
            /// The subscriber.
            ue_id: Supi,
        }
        repeated {
            /// The callback URIs of the consumers to which the receiver forwards it.
            original_callback_reference: Vec<Uri>,
            /// Changes by resource.
            notify_items: Vec<NotifyItem>,
        }
    }
}
