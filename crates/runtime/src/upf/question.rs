//! What an operator asks the UPF, and how sessions and tunnels are named.

use super::trace::TraceRequest;
use pith_upf::contract::{SessionId, Teid};
use std::net::IpAddr;
use std::str::FromStr;

/// A question; [`UpfHandle::ask`](super::UpfHandle::ask) sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// A page of sessions.
    Sessions(Page),
    /// The session that is named so, or none, as a page.
    SessionNamed(Name),
    /// A session's rules.
    Rules(Name),
    /// What a session's flows were given.
    Flows(Name),
    /// Traffic and drops of the whole UPF.
    Counters,
    /// Follow the packets of a tunnel.
    BeginTrace(TraceRequest),
    /// What a trace has seen, from that packet's number on.
    ReadTrace {
        /// Which trace.
        id: u64,
        /// Packets known already.
        after: usize,
    },
    /// Follow no longer.
    EndTrace(u64),
}

/// Which sessions to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Those with ids above.
    pub after: SessionId,
    /// How many at most.
    pub limit: usize,
}

/// What a session is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Its SEID at the UPF.
    Seid(SessionId),
    /// Its UE's address.
    Ue(IpAddr),
    /// The TEID of a tunnel of its own, at either end.
    Teid(Teid),
}

impl FromStr for Name {
    type Err = String;

    /// An address, or a SEID.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Ue(address));
        }
        let seid = number(text).ok_or_else(|| {
            format!("'{text}' names no session: write its SEID, such as 0x1f, or its UE's address")
        })?;
        Ok(Self::Seid(SessionId(seid)))
    }
}

/// A TEID as it is written: `0x1f`, or 31.
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

/// A SEID as it is written: `0x1f`, or 31.
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
    fn a_session_goes_by_its_seid_or_its_ues_address() {
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
