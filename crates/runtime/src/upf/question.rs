//! Operators' queries to the UPF, and names of sessions and tunnels.

use super::trace::TraceRequest;
use pith_upf::contract::{SessionId, Teid};
use std::net::IpAddr;
use std::str::FromStr;

/// A query; [`UpfHandle::query`](super::UpfHandle::query) sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// A page of sessions.
    Sessions(Page),
    /// A page with the named session, or an empty one.
    SessionNamed(Name),
    /// Rules of a session.
    Rules(Name),
    /// Traffic of a session's flows.
    Flows(Name),
    /// Traffic and dropped packets of the whole UPF.
    Counters,
    /// Start tracing the packets of a tunnel.
    BeginTrace(TraceRequest),
    /// Packets of a trace.
    ReadTrace {
        /// The trace's id.
        id: u64,
        /// Number of packets to skip.
        after: usize,
    },
    /// End a trace.
    EndTrace(u64),
}

/// A page of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Sessions with ids above this one.
    pub after: SessionId,
    /// Largest number of sessions.
    pub limit: usize,
}

/// Identifies a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// By its SEID at the UPF.
    Seid(SessionId),
    /// By its UE's address.
    Ue(IpAddr),
    /// By the TEID of one of its tunnels, at either end.
    Teid(Teid),
}

impl FromStr for Name {
    type Err = String;

    /// Parses an address or a SEID.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Ue(address));
        }
        let seid = number(text).ok_or_else(|| {
            format!("'{text}' does not identify a session: write its SEID, such as 0x1f, or its UE's address")
        })?;
        Ok(Self::Seid(SessionId(seid)))
    }
}

/// A TEID in text form: `0x1f`, or 31.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeidText(pub Teid);

impl FromStr for TeidText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let teid = number(text).and_then(|number| u32::try_from(number).ok());
        teid.map(|teid| Self(Teid(teid))).ok_or_else(|| {
            format!("'{text}' is not a TEID: write 0x and up to 8 hexadecimal digits, or a number")
        })
    }
}

/// A SEID in text form: `0x1f`, or 31.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeidText(pub SessionId);

impl FromStr for SeidText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seid = number(text).ok_or_else(|| format!("'{text}' is not a SEID such as 0x1f"))?;
        Ok(Self(SessionId(seid)))
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_seid_or_ue_address() {
        let ue = Name::Ue("10.45.0.2".parse().unwrap());
        for (text, name) in [
            ("0x1F", Ok(Name::Seid(SessionId(31)))),
            ("31", Ok(Name::Seid(SessionId(31)))),
            ("10.45.0.2", Ok(ue)),
            ("2001:db8::1", Ok(Name::Ue("2001:db8::1".parse().unwrap()))),
        ] {
            assert_eq!(text.parse(), name, "{text}");
        }
        assert!("x".parse::<Name>().unwrap_err().contains("such as 0x1f"));
    }

    #[test]
    fn a_teid_has_32_bits() {
        assert_eq!("0xffffffff".parse(), Ok(TeidText(Teid(u32::MAX))));
        assert!("0x100000000".parse::<TeidText>().is_err() && "".parse::<TeidText>().is_err());
    }
}
