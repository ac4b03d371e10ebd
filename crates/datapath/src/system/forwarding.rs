//! The kernel's forwarding between interfaces.

use crate::config::StartError;
use std::fs;

/// Forwarding of IPv4.
pub const V4: &str = "/proc/sys/net/ipv4/ip_forward";
/// Forwarding of IPv6.
pub const V6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";

/// Enabled forwarding; dropping this restores the previous value.
#[derive(Debug)]
pub struct Forwarding {
    setting: &'static str,
    former: Option<String>,
}

impl Forwarding {
    /// Enables a setting, if it is disabled.
    pub fn enable(setting: &'static str) -> Result<Self, StartError> {
        let error = |source| StartError::setup(format!("turning forwarding on in {setting}"))(source);
        let now = fs::read_to_string(setting).map_err(error)?;
        if now.trim() == "1" {
            return Ok(Self { setting, former: None });
        }
        fs::write(setting, "1").map_err(error)?;
        Ok(Self { setting, former: Some(now) })
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        if let Some(former) = &self.former
            && let Err(error) = fs::write(self.setting, former)
        {
            tracing::warn!(setting = self.setting, %error, "forwarding could not be switched off");
        }
    }
}
