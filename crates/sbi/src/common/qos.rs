//! Quality of service (TS 29.571), and protection of the user plane.

use super::{PreemptionCapability, PreemptionVulnerability, UpProtection};
use crate::record::record;

record! {
    /// Allocation and Retention Priority (TS 29.571).
    Arp {
        required {
            /// 1 (highest) to 15.
            priority_level: u8,
            /// May it push others out.
            preempt_cap: PreemptionCapability,
            /// May it be pushed out.
            preempt_vuln: PreemptionVulnerability,
        }
    }
}

impl Arp {
    /// Of that priority (1 highest, 15 lowest); pushes none out and may not be pushed out.
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
            /// Its priority when resources are short.
            arp: Arp,
        }
        optional {
            /// 1 to 127, instead of that of the 5QI.
            priority_level: u8,
        }
    }
}

record! {
    /// Protection of the user plane (TS 29.571).
    UpSecurity {
        required {
            /// Integrity protection.
            up_integr: UpProtection,
            /// Ciphering.
            up_confid: UpProtection,
        }
    }
}
