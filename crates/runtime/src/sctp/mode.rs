//! Selection of the SCTP stack by configuration and availability.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use super::poll::new_socket;

/// Port for SCTP in UDP (RFC 6951 clause 4, IANA).
pub const UDP_ENCAPSULATION_PORT: u16 = 9899;

/// The SCTP stack; as text `auto`, `kernel`, `raw`, `udp` or `udp:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SctpMode {
    /// The kernel's SCTP if available, else raw IP if permitted, else UDP.
    #[default]
    Auto,
    /// The kernel's SCTP.
    Kernel,
    /// User-space SCTP over a raw IP socket, protocol 132.
    Raw,
    /// User-space SCTP in UDP (RFC 6951) with this server port.
    Udp(u16),
}

/// The text is not an [`SctpMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an SCTP mode: use auto, kernel, raw or udp:PORT (PORT from 1 to 65535)")]
pub struct ParseSctpModeError(String);

impl FromStr for SctpMode {
    type Err = ParseSctpModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let udp_port = |port: &str| port.parse().ok().filter(|&p: &u16| p != 0);
        match text {
            "auto" => Some(Self::Auto),
            "kernel" => Some(Self::Kernel),
            "raw" => Some(Self::Raw),
            "udp" => Some(Self::Udp(UDP_ENCAPSULATION_PORT)),
            _ => text.strip_prefix("udp:").and_then(udp_port).map(Self::Udp),
        }
        .ok_or_else(|| ParseSctpModeError(text.to_owned()))
    }
}

impl fmt::Display for SctpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Kernel => f.write_str("kernel"),
            Self::Raw => f.write_str("raw"),
            Self::Udp(port) => write!(f, "udp:{port}"),
        }
    }
}

/// A mode other than `Auto`, and the reason for its choice.
pub(super) struct Choice {
    pub mode: SctpMode,
    pub why: String,
}

/// Resolves `Auto` by opening the sockets that the other modes need.
pub(super) fn choose(asked: SctpMode) -> Choice {
    match asked {
        SctpMode::Auto => choose_from(probe(libc::SOCK_STREAM), probe(libc::SOCK_RAW)),
        mode => Choice { mode, why: "set by the configuration".to_owned() },
    }
}

fn choose_from(kernel: io::Result<()>, raw: io::Result<()>) -> Choice {
    match (kernel, raw) {
        (Ok(()), _) => Choice { mode: SctpMode::Kernel, why: "this kernel has SCTP".to_owned() },
        (Err(kernel), Ok(())) => {
            Choice { mode: SctpMode::Raw, why: format!("no kernel SCTP ({kernel}), raw IP is permitted") }
        }
        (Err(kernel), Err(raw)) => Choice {
            mode: SctpMode::Udp(UDP_ENCAPSULATION_PORT),
            why: format!("no kernel SCTP ({kernel}), no raw IP ({raw})"),
        },
    }
}

/// Whether an SCTP socket of this type can be opened: a stream socket of the kernel's SCTP, or a raw one.
fn probe(kind: libc::c_int) -> io::Result<()> {
    new_socket(libc::AF_INET, kind, libc::IPPROTO_SCTP).map(drop)
}

/// Whether the kernel's SCTP receives packets in this network namespace. If so, the kernel answers an INIT
/// without a listener with an ABORT (RFC 9260 5.1), which ends associations over raw IP. A kernel whose
/// module is not loaded does not answer, so the check is for the loaded module.
pub(super) fn kernel_answers() -> bool {
    Path::new("/proc/net/sctp").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_round_trip_through_text() {
        for text in ["auto", "kernel", "raw", "udp:9899", "udp:1", "udp:65535"] {
            assert_eq!(text.parse::<SctpMode>().unwrap().to_string(), text);
        }
        assert_eq!("udp".parse(), Ok(SctpMode::Udp(UDP_ENCAPSULATION_PORT)));
    }

    #[test]
    fn other_text_is_refused_with_the_choices() {
        for text in ["", "Kernel", "udp:", "udp:0", "udp:65536", "udp:x", "tcp"] {
            let error = text.parse::<SctpMode>().unwrap_err().to_string();
            assert!(error.contains("auto, kernel, raw or udp:PORT"), "{error}");
        }
    }

    #[test]
    fn auto_prefers_kernel_then_raw_then_udp() {
        let no = || Err(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT));
        let denied = || Err(io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(choose_from(Ok(()), Ok(())).mode, SctpMode::Kernel);
        assert_eq!(choose_from(no(), Ok(())).mode, SctpMode::Raw);
        let last = choose_from(no(), denied());
        assert_eq!(last.mode, SctpMode::Udp(9899));
        assert!(last.why.contains("not permitted"), "{}", last.why);
    }
}
