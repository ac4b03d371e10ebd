//! Enumerations of TS 29.571 and TS 29.510 that are common to several services.

use crate::record::open_enum;
use serde::{Deserialize, Serialize};

/// Access type (TS 29.571); not extensible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessType {
    /// NR or E-UTRA.
    #[serde(rename = "3GPP_ACCESS")]
    ThreeGppAccess,
    /// N3IWF, TNGF, W-AGF.
    #[serde(rename = "NON_3GPP_ACCESS")]
    NonThreeGppAccess,
}

impl AccessType {
    /// The value in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ThreeGppAccess => "3GPP_ACCESS",
            Self::NonThreeGppAccess => "NON_3GPP_ACCESS",
        }
    }
}

open_enum! {
    /// Radio access technology (TS 29.571).
    RatType {
        Nr = "NR",
        Eutra = "EUTRA",
        Wlan = "WLAN",
        Virtual = "VIRTUAL",
        Nbiot = "NBIOT",
        Wireline = "WIRELINE",
        TrustedN3ga = "TRUSTED_N3GA",
        NrU = "NR_U",
        NrRedcap = "NR_REDCAP",
        NrLeo = "NR_LEO",
        NrMeo = "NR_MEO",
        NrGeo = "NR_GEO",
    }
}

open_enum! {
    /// PDU session type (TS 29.571).
    PduSessionType {
        Ipv4 = "IPV4",
        Ipv6 = "IPV6",
        Ipv4v6 = "IPV4V6",
        Unstructured = "UNSTRUCTURED",
        Ethernet = "ETHERNET",
    }
}

open_enum! {
    /// Session and service continuity mode (TS 29.571).
    SscMode {
        SscMode1 = "SSC_MODE_1",
        SscMode2 = "SSC_MODE_2",
        SscMode3 = "SSC_MODE_3",
    }
}

open_enum! {
    /// Core network types in a subscriber's restrictions (TS 29.571).
    CoreNetworkType {
        FiveGc = "5GC",
        Epc = "EPC",
    }
}

open_enum! {
    /// Whether areas are allowed or not allowed (TS 29.571).
    RestrictionType {
        AllowedAreas = "ALLOWED_AREAS",
        NotAllowedAreas = "NOT_ALLOWED_AREAS",
    }
}

open_enum! {
    /// Presence of a UE in a monitored area (TS 29.571).
    PresenceState {
        InArea = "IN_AREA",
        OutOfArea = "OUT_OF_AREA",
        Unknown = "UNKNOWN",
        Inactive = "INACTIVE",
    }
}

open_enum! {
    /// Whether a flow may pre-empt others (TS 29.571).
    PreemptionCapability {
        NotPreempt = "NOT_PREEMPT",
        MayPreempt = "MAY_PREEMPT",
    }
}

open_enum! {
    /// Whether a flow may be pre-empted (TS 29.571).
    PreemptionVulnerability {
        NotPreemptable = "NOT_PREEMPTABLE",
        Preemptable = "PREEMPTABLE",
    }
}

open_enum! {
    /// User plane integrity protection or ciphering (TS 29.571).
    UpProtection {
        Required = "REQUIRED",
        Preferred = "PREFERRED",
        NotNeeded = "NOT_NEEDED",
    }
}

open_enum! {
    /// Authentication method of a UE (TS 29.503).
    AuthType {
        FiveGAka = "5G_AKA",
        EapAkaPrime = "EAP_AKA_PRIME",
        EapTls = "EAP_TLS",
        EapTtls = "EAP_TTLS",
        None = "NONE",
    }
}

open_enum! {
    /// Types of network functions (TS 29.510).
    NfType {
        Nrf = "NRF",
        Udm = "UDM",
        Amf = "AMF",
        Smf = "SMF",
        Ausf = "AUSF",
        Nef = "NEF",
        Pcf = "PCF",
        Smsf = "SMSF",
        Nssf = "NSSF",
        Udr = "UDR",
        Lmf = "LMF",
        Gmlc = "GMLC",
        FiveGEir = "5G_EIR",
        Sepp = "SEPP",
        Upf = "UPF",
        N3iwf = "N3IWF",
        Af = "AF",
        Udsf = "UDSF",
        Bsf = "BSF",
        Chf = "CHF",
        Nwdaf = "NWDAF",
        Scp = "SCP",
        Nssaaf = "NSSAAF",
        Nsacf = "NSACF",
        Dccf = "DCCF",
    }
}

open_enum! {
    /// Service names, as in NF profiles and paths (TS 29.510).
    ServiceName {
        NnrfNfm = "nnrf-nfm",
        NnrfDisc = "nnrf-disc",
        NnrfOauth2 = "nnrf-oauth2",
        NudmSdm = "nudm-sdm",
        NudmUecm = "nudm-uecm",
        NudmUeau = "nudm-ueau",
        NamfComm = "namf-comm",
        NamfEvts = "namf-evts",
        NamfMt = "namf-mt",
        NamfLoc = "namf-loc",
        NsmfPdusession = "nsmf-pdusession",
        NsmfEventExposure = "nsmf-event-exposure",
        NausfAuth = "nausf-auth",
        NpcfAmPolicyControl = "npcf-am-policy-control",
        NpcfSmpolicycontrol = "npcf-smpolicycontrol",
        NpcfPolicyauthorization = "npcf-policyauthorization",
        NnssfNsselection = "nnssf-nsselection",
        NnssfNssaiavailability = "nnssf-nssaiavailability",
        NudrDr = "nudr-dr",
    }
}

impl ServiceName {
    /// The NF type that offers the service; `None` for an unknown service.
    pub fn producer(&self) -> Option<NfType> {
        Some(match self {
            Self::NnrfNfm | Self::NnrfDisc | Self::NnrfOauth2 => NfType::Nrf,
            Self::NudmSdm | Self::NudmUecm | Self::NudmUeau => NfType::Udm,
            Self::NamfComm | Self::NamfEvts | Self::NamfMt | Self::NamfLoc => NfType::Amf,
            Self::NsmfPdusession | Self::NsmfEventExposure => NfType::Smf,
            Self::NausfAuth => NfType::Ausf,
            Self::NpcfAmPolicyControl | Self::NpcfSmpolicycontrol | Self::NpcfPolicyauthorization => {
                NfType::Pcf
            }
            Self::NnssfNsselection | Self::NnssfNssaiavailability => NfType::Nssf,
            Self::NudrDr => NfType::Udr,
            Self::Other(_) => return None,
        })
    }
}
