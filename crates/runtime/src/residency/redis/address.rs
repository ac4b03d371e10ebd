//! The address of a server, as `state.redis.url` has it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Port of Redis where the URL names none.
const PORT: u16 = 6379;
/// Databases that a server can have.
const MAX_DATABASE: u32 = 65_535;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisUrl {
    /// Its socket.
    pub place: RedisPlace,
    /// The user of an access control list; `None`: the default user.
    pub user: Option<String>,
    /// Number of the database.
    pub database: u32,
}

/// The socket of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RedisPlace {
    /// TCP, with TLS or in cleartext.
    Tcp { host: String, port: u16, is_tls: bool },
    /// A Unix socket.
    Unix(PathBuf),
}

impl RedisUrl {
    /// The usual port on this host.
    pub fn local() -> Self {
        let place = RedisPlace::Tcp { host: "127.0.0.1".into(), port: PORT, is_tls: false };
        Self { place, user: None, database: 0 }
    }

    /// Whether documents leave the machine in cleartext (their sections are sealed, the password is not).
    pub fn is_exposed(&self) -> bool {
        match &self.place {
            RedisPlace::Tcp { host, is_tls, .. } => !is_tls && !is_loopback(host),
            RedisPlace::Unix(_) => false,
        }
    }

    /// Whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.place, RedisPlace::Tcp { is_tls: true, .. })
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        match &self.place {
            RedisPlace::Unix(path) => write!(f, "unix://{user}{}", path.display())?,
            RedisPlace::Tcp { host, port, is_tls } => {
                let scheme = if *is_tls { "rediss" } else { "redis" };
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                write!(f, "{scheme}://{user}{host}:{port}")?;
            }
        }
        match (self.database, &self.place) {
            (0, _) => Ok(()),
            (database, RedisPlace::Unix(_)) => write!(f, "?db={database}"),
            (database, RedisPlace::Tcp { .. }) => write!(f, "/{database}"),
        }
    }
}

impl FromStr for RedisUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is not the address of a server: write redis://HOST:PORT, rediss://HOST:PORT (TLS) or unix:///PATH"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (user, rest) = match rest.split_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        if user.is_some_and(|user| user.contains(':')) {
            // The text is not quoted: it has a password.
            return Err(
                "a URL must not contain the password: write it into the file of 'state.redis.password_file'"
                    .into(),
            );
        }
        let user = user.filter(|user| !user.is_empty()).map(str::to_owned);
        let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        if !is_plain(rest) || user.as_deref().is_some_and(|user| !is_plain(user)) {
            return Err(wrong());
        }
        let database = |text: &str| -> Result<u32, String> {
            let number = text.parse().ok().filter(|number| *number <= MAX_DATABASE);
            number
                .ok_or_else(|| format!("'{text}' is not the number of a database: write 0 to {MAX_DATABASE}"))
        };
        if scheme == "unix" {
            let (path, number) = rest.split_once("?db=").unwrap_or((rest, "0"));
            let path = PathBuf::from(path);
            let place = Some(RedisPlace::Unix(path)).filter(|_| rest.starts_with('/')).ok_or_else(wrong)?;
            return Ok(Self { place, user, database: database(number)? });
        }
        let is_tls = match scheme {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(wrong()),
        };
        let (authority, number) = match rest.split_once('/') {
            Some((authority, "")) => (authority, "0"),
            Some((authority, number)) => (authority, number),
            None => (rest, "0"),
        };
        let (host, port) = host_and_port(authority).ok_or_else(wrong)?;
        Ok(Self { place: RedisPlace::Tcp { host, port, is_tls }, user, database: database(number)? })
    }
}

/// Host and port: `host`, `host:port`, `[address]:port`.
fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_host = !host.is_empty() && (text.starts_with('[') || host.chars().all(is_name));
    let port = port.map_or(Some(PORT), |port| port.parse().ok().filter(|port| *port != 0))?;
    is_host.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers() {
        for (text, shown) in [
            ("redis://127.0.0.1", "redis://127.0.0.1:6379"),
            ("valkey://state.example:7000/", "redis://state.example:7000"),
            ("rediss://pith@[::1]:6380/3", "rediss://pith@[::1]:6380/3"),
            ("unix:///run/redis.sock", "unix:///run/redis.sock"),
            ("unix:///run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
        ] {
            let url: RedisUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(shown.parse(), Ok(url));
        }
    }

    #[test]
    fn wrong_urls_are_refused_without_a_password_in_the_message() {
        for text in [
            "",
            "localhost",
            "http://a",
            "redis://",
            "redis://:0",
            "redis://a:0",
            "redis://a:x",
            "redis://a/x",
            "redis://a/65536",
            "redis://[::1",
            "redis://[a]:1",
            "redis://a b",
            "unix://run/x",
            "redis://a:1:2",
        ] {
            assert!(text.parse::<RedisUrl>().is_err(), "{text}");
        }
        let error = "redis://user:secret@host".parse::<RedisUrl>().unwrap_err();
        assert!(error.contains("password_file") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn cleartext_to_another_host_is_exposed() {
        let is_exposed = |text: &str| text.parse::<RedisUrl>().unwrap().is_exposed();
        assert!(is_exposed("redis://10.0.0.1") && is_exposed("redis://state"));
        for safe in ["redis://127.0.0.2", "redis://localhost", "redis://[::1]", "rediss://state", "unix:///x"]
        {
            assert!(!is_exposed(safe), "{safe}");
        }
    }
}
