//! The procedures of the AUSF, a file a method of authentication.

pub(super) mod five_g_aka;
