//! Quality of service (TS 29.571), and user plane security.

use super::{PreemptionCapability, PreemptionVulnerability, UpProtection};
use crate::record::record;

record! {
    /// Allocation and Retention Priority (TS 29.571).
    Arp {
        required {
            /// Priority level, 1 (highest) to 15.
            priority_level: u8,
            /// Whether the flow may pre-empt others.
            preempt_cap: PreemptionCapability,
            /// Whether the flow may be pre-empted.
            preempt_vuln: PreemptionVulnerability,
        }
    }
}

impl Arp {
    /// An ARP with this priority level (1 highest, 15 lowest), without pre-emption capability and not
    /// pre-emptable.
    pub fn of_priority(priority_level: u8) -> Self {
        Self::new(priority_level, PreemptionCapability::NotPreempt, PreemptionVulnerability::NotPreemptable)
    }
}

record! {
    /// The QoS of the default QoS flow (TS 29.571).
    SubscribedDefaultQos {
        required {
            /// 5G QoS identifier (TS 23.501 5.7.4).
            #[serde(rename = "5qi")]
            five_qi: u8,
            /// Allocation and retention priority.
            arp: Arp,
        }
        optional {
            /// Priority level, 1 to 127, in place of that of the 5QI.
            priority_level: u8,
        }
    }
}

record! {
    /// User plane security (TS 29.571).
    UpSecurity {
        required {
            /// Integrity protection.
            up_integr: UpProtection,
            /// Ciphering.
            up_confid: UpProtection,
        }
    }
}
