//! Why a vector can't be generated, and the answer to the AUSF (TS 29.503 6.3.7.3).

use pith_crypto::suci::SuciError;
use pith_sbi::{Cause, Problem};

/// Why there is no authentication vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AuthenticationError {
    /// The SUCI's key id is not configured.
    #[error("the SUCI's home network key is not configured: add it to 'home_network_keys'")]
    UnknownHomeNetworkKey,
    /// The SUCI's protection scheme is unknown, or does not match the key.
    #[error("the protection scheme of the SUCI is not supported")]
    UnsupportedScheme,
    /// The SUCI can't be de-concealed.
    #[error("the SUCI can't be de-concealed: {0}")]
    Suci(#[from] SuciError),
    /// The de-concealed SUPI is not an IMSI.
    #[error("the de-concealed SUPI is not an IMSI")]
    NoImsi,
    /// A key of the subscriber is missing.
    #[error("the authentication subscription has no {0}")]
    IncompleteSubscription(&'static str),
    /// AUTS does not verify.
    #[error("AUTS does not verify")]
    WrongAuts,
    /// Concurrent transactions used each SQN before it was stored.
    #[error("too many concurrent requests for vectors of the subscriber")]
    SequenceNumberTaken,
    /// The UDR's reply is not the expected one.
    #[error("the UDR sent an unexpected reply")]
    UnexpectedAnswer,
}

impl From<AuthenticationError> for Box<Problem> {
    fn from(error: AuthenticationError) -> Self {
        let cause = match error {
            AuthenticationError::UnknownHomeNetworkKey => Cause::InvalidHnPublicKeyIdentifier,
            AuthenticationError::UnsupportedScheme => Cause::UnsupportedProtectionScheme,
            AuthenticationError::Suci(_) | AuthenticationError::NoImsi => Cause::InvalidSchemeOutput,
            AuthenticationError::WrongAuts => Cause::AuthenticationRejected,
            AuthenticationError::IncompleteSubscription(_) | AuthenticationError::SequenceNumberTaken => {
                Cause::AvGenerationProblem
            }
            AuthenticationError::UnexpectedAnswer => Cause::SystemFailure,
        };
        Box::new(Problem::new(cause).detail(error))
    }
}
