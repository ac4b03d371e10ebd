//! Named messages with many IEs, for the tests of octets.

use pith_nas::gmm::*;
use pith_nas::gsm::*;
use pith_nas::ie::*;
use pith_nas::{GmmCause, GmmMessage, GsmCause, GsmMessage};
use pith_types::{Ambr, BitRate, FiveGGuti, Plmn, Snssai, Tac, Tai};
use std::time::Duration;

fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

fn tai(tac: u32) -> Tai {
    Tai { plmn_id: plmn(), tac: Tac::new(tac) }
}

fn guti() -> FiveGGuti {
    "5g-guti-99970020040c0ffee01".parse().unwrap()
}

fn suci() -> MobileIdentity {
    MobileIdentity::Suci("suci-0-999-70-0-0-0-0000000001".parse().unwrap())
}

fn s_tmsi() -> MobileIdentity {
    MobileIdentity::FiveGSTmsi(guti().s_tmsi())
}

fn slices() -> Nssai {
    ["1", "2-0a0b0c"].iter().map(|text| text.parse::<Snssai>().unwrap()).collect()
}

fn sessions() -> PduSessionSet {
    [1, 5, 15].into_iter().collect()
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn capability() -> UeSecurityCapability {
    UeSecurityCapability::of_5gs_and_eps(0xf0, 0x70, 0xf0, 0x70)
}

fn ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(100), downlink: BitRate::mbps(1_000) }
}

/// A message for the container of another one.
fn inner_registration_request() -> Vec<u8> {
    let initial = RegistrationType { follow_on_request: true, kind: RegistrationKind::Initial };
    GmmMessage::from(RegistrationRequest::new(initial, NgKsi::NoKey, suci())).encode()
}

fn registration_request() -> RegistrationRequest {
    let initial = RegistrationType { follow_on_request: true, kind: RegistrationKind::Initial };
    RegistrationRequest {
        gmm_capability: Some(GmmCapability(vec![0x07])),
        ue_security_capability: Some(capability()),
        requested_nssai: Some(slices()),
        last_visited_registered_tai: Some(tai(7)),
        s1_ue_network_capability: Some(vec![0xf0, 0x70]),
        uplink_data_status: Some(sessions()),
        pdu_session_status: Some(sessions()),
        mico_indication: Some(MicoIndication { all_plmn_area: true, strictly_periodic: false }),
        ue_status: Some(UeStatus { registered_in_epc: false, registered_in_5gc: true }),
        additional_guti: Some(MobileIdentity::FiveGGuti(guti())),
        allowed_pdu_session_status: Some(sessions()),
        ue_usage_setting: Some(UeUsageSetting::DataCentric),
        requested_drx_parameters: Some(DrxParameters::T128),
        network_slicing_indication: Some(NetworkSlicingIndication {
            subscription_changed: false,
            default_configured_nssai: true,
        }),
        update_type: Some(UpdateType { sms_requested: true, ..UpdateType::default() }),
        nas_message_container: Some(inner_registration_request()),
        requested_extended_drx_parameters: Some(ExtendedDrxParameters {
            paging_time_window: 3,
            value: 9,
            further: Vec::new(),
        }),
        t3324: Some(GprsTimer3::at_least(minutes(1))),
        requested_t3512: Some(GprsTimer3::at_least(minutes(600))),
        ..RegistrationRequest::new(initial, NgKsi::NoKey, suci())
    }
}

fn registration_accept() -> RegistrationAccept {
    RegistrationAccept {
        guti: Some(MobileIdentity::FiveGGuti(guti())),
        equivalent_plmns: Some(PlmnList(vec!["208/93".parse().unwrap()])),
        tai_list: Some(TaiList::of(&[tai(1), tai(2)])),
        allowed_nssai: Some(slices()),
        rejected_nssai: Some(RejectedNssai(vec![(
            "3-010203".parse().unwrap(),
            SnssaiRejection::NotAvailableInRegistrationArea,
        )])),
        configured_nssai: Some(slices()),
        network_feature_support: Some(NetworkFeatureSupport {
            ims_voice_three_gpp: true,
            further: vec![0],
            ..NetworkFeatureSupport::default()
        }),
        pdu_session_status: Some(sessions()),
        reactivation_result: Some(sessions()),
        reactivation_result_error_cause: Some(ReactivationErrors(vec![(
            5,
            GmmCause::InsufficientUserPlaneResourcesForThePduSession,
        )])),
        ladn_information: Some(LadnInformation(vec![(
            "local".parse().unwrap(),
            TaiList::of(&[tai(1), tai(3)]),
        )])),
        service_area_list: Some(ServiceAreaList(vec![ServiceArea {
            allowed: false,
            areas: PartialTaiList::NonConsecutive { plmn: plmn(), tacs: vec![Tac::new(9)] },
        }])),
        t3512: Some(GprsTimer3::at_least(minutes(54))),
        t3502: Some(GprsTimer2::at_least(minutes(12))),
        emergency_number_list: Some(EmergencyNumberList(vec![EmergencyNumber {
            category: EmergencyCategory { police: true, ..EmergencyCategory::default() },
            digits: "110".into(),
        }])),
        nssai_inclusion_mode: Some(NssaiInclusionMode::D),
        negotiated_drx_parameters: Some(DrxParameters::T128),
        negotiated_extended_drx_parameters: Some(ExtendedDrxParameters {
            paging_time_window: 3,
            value: 5,
            further: Vec::new(),
        }),
        mico_indication: Some(MicoIndication::default()),
        t3324: Some(GprsTimer3::at_least(minutes(1))),
        ..RegistrationAccept::new(RegistrationResult { sms_allowed: true, ..RegistrationResult::THREE_GPP })
    }
}

fn configuration_update_command() -> ConfigurationUpdateCommand {
    let name = |text: &str| Some(NetworkName { text: text.into(), add_country_initials: false });
    ConfigurationUpdateCommand {
        indication: Some(ConfigurationUpdateIndication {
            acknowledgement: true,
            registration_requested: false,
        }),
        guti: Some(MobileIdentity::FiveGGuti(guti())),
        full_name: name("Pith 5G"),
        short_name: name("Pith"),
        local_time_zone: Some(TimeZone { quarters: 8 }),
        universal_time: Some(UniversalTime {
            year: 26,
            month: 11,
            day: 21,
            hour: 5,
            minute: 7,
            second: 35,
            zone: TimeZone { quarters: -20 },
        }),
        daylight_saving_time: Some(DaylightSavingTime::OneHour),
        ..ConfigurationUpdateCommand::new()
    }
}

fn ul_nas_transport() -> UlNasTransport {
    UlNasTransport {
        pdu_session_id: Some(5),
        request_type: Some(RequestType::InitialRequest),
        snssai: Some("1".parse::<Snssai>().unwrap().into()),
        dnn: Some("internet".parse().unwrap()),
        ..UlNasTransport::new(PayloadContainerType::N1SmInformation, vec![0x2e, 5, 1, 0xc1, 0xff, 0xff])
    }
}

fn security_mode_command() -> SecurityModeCommand {
    let algorithms = NasSecurityAlgorithms { ciphering: 2, integrity: 2 };
    SecurityModeCommand {
        imeisv_request: Some(ImeisvRequest::Requested),
        selected_eps_algorithms: Some(0x22),
        additional_security_information: Some(AdditionalSecurityInformation {
            horizontal_derivation: false,
            retransmit_initial_nas_message: true,
        }),
        ..SecurityModeCommand::new(algorithms, NgKsi::Native(3), capability())
    }
}

/// 5GMM messages.
pub fn gmm() -> Vec<GmmMessage> {
    let switch_off = DeregistrationType {
        switch_off: true,
        re_registration_required: false,
        access: AccessType::ThreeGpp,
    };
    let re_register = DeregistrationType { switch_off: false, re_registration_required: true, ..switch_off };
    let container = || (PayloadContainerType::N1SmInformation, vec![0x2e, 5, 1, 0xc3, 27]);
    vec![
        registration_request().into(),
        registration_accept().into(),
        RegistrationComplete::new().into(),
        RegistrationReject {
            t3346: Some(GprsTimer2::at_least(minutes(10))),
            ..RegistrationReject::new(GmmCause::Congestion)
        }
        .into(),
        DeregistrationRequestUeOriginating::new(
            switch_off,
            NgKsi::Native(1),
            MobileIdentity::FiveGGuti(guti()),
        )
        .into(),
        DeregistrationAcceptUeOriginating::new().into(),
        DeregistrationRequestUeTerminated {
            cause: Some(GmmCause::IllegalUe),
            ..DeregistrationRequestUeTerminated::new(re_register)
        }
        .into(),
        DeregistrationAcceptUeTerminated::new().into(),
        ServiceRequest {
            uplink_data_status: Some(sessions()),
            pdu_session_status: Some(sessions()),
            nas_message_container: Some(
                GmmMessage::from(ServiceRequest::new(NgKsi::Native(0), ServiceType::Data, s_tmsi())).encode(),
            ),
            ..ServiceRequest::new(NgKsi::Native(0), ServiceType::Data, s_tmsi())
        }
        .into(),
        ServiceAccept {
            pdu_session_status: Some(sessions()),
            reactivation_result: Some(PduSessionSet::NONE),
            ..ServiceAccept::new()
        }
        .into(),
        ServiceReject {
            pdu_session_status: Some(sessions()),
            ..ServiceReject::new(GmmCause::UeIdentityCannotBeDerivedByTheNetwork)
        }
        .into(),
        configuration_update_command().into(),
        ConfigurationUpdateComplete::new().into(),
        AuthenticationRequest {
            rand: Some([0x23; 16]),
            autn: Some([0x55; 16]),
            ..AuthenticationRequest::new(NgKsi::Native(2), vec![0, 0])
        }
        .into(),
        AuthenticationResponse { res_star: Some([0xab; 16]), ..AuthenticationResponse::new() }.into(),
        AuthenticationResult::new(NgKsi::Native(2), vec![3, 1, 0, 4]).into(),
        AuthenticationFailure {
            auts: Some([0xcd; 14]),
            ..AuthenticationFailure::new(GmmCause::SynchFailure)
        }
        .into(),
        AuthenticationReject::new().into(),
        IdentityRequest::new(IdentityType::Suci).into(),
        IdentityResponse::new(MobileIdentity::Suci(
            format!("suci-0-999-70-1234-1-27-{}", "0a".repeat(45)).parse().unwrap(),
        ))
        .into(),
        IdentityResponse::new(MobileIdentity::SuciNai {
            supi_format: 1,
            nai: "type1.rid0.schid0.useriduser17@example.com".into(),
        })
        .into(),
        IdentityResponse::new(MobileIdentity::Imei("imei-490154203237510".parse().unwrap())).into(),
        IdentityResponse::new(MobileIdentity::MacAddress {
            unusable_as_equipment_id: true,
            address: [2, 0, 0, 0, 0, 1],
        })
        .into(),
        IdentityResponse::new(MobileIdentity::Eui64([1; 8])).into(),
        security_mode_command().into(),
        SecurityModeComplete {
            imeisv: Some(MobileIdentity::Imeisv("imeisv-4370816125816151".parse().unwrap())),
            nas_message_container: Some(inner_registration_request()),
            ..SecurityModeComplete::new()
        }
        .into(),
        SecurityModeReject::new(GmmCause::UeSecurityCapabilitiesMismatch).into(),
        GmmStatus::new(GmmCause::MessageTypeNonExistentOrNotImplemented).into(),
        Notification::new(AccessType::NonThreeGpp).into(),
        NotificationResponse { pdu_session_status: Some(sessions()) }.into(),
        ul_nas_transport().into(),
        DlNasTransport {
            pdu_session_id: Some(5),
            cause: Some(GmmCause::PayloadWasNotForwarded),
            back_off_timer: Some(GprsTimer3::DEACTIVATED),
            ..DlNasTransport::new(container().0, container().1)
        }
        .into(),
    ]
}

fn establishment_request() -> PduSessionEstablishmentRequest {
    PduSessionEstablishmentRequest {
        pdu_session_type: Some(PduSessionType::Ipv4v6),
        ssc_mode: Some(SscMode::Mode1),
        gsm_capability: Some(GsmCapability(vec![1])),
        maximum_packet_filters: Some(MaximumPacketFilters(64)),
        always_on_requested: Some(AlwaysOn { on: true }),
        extended_pco: Some(UplinkPco(vec![
            PcoRequest::IpAllocationViaNas,
            PcoRequest::DnsServerIpv4,
            PcoRequest::DnsServerIpv6,
            PcoRequest::Ipv4LinkMtu,
        ])),
        ..PduSessionEstablishmentRequest::new(IntegrityProtectionMaximumDataRate::FULL)
    }
}

fn gbr_flow() -> QosFlowDescription {
    QosFlowDescription {
        qfi: 2,
        operation: FlowOperation::Create,
        replaces: true,
        parameters: vec![
            FlowParameter::FiveQi(1),
            FlowParameter::GfbrUplink(BitRate::kbps(128)),
            FlowParameter::GfbrDownlink(BitRate::kbps(128)),
            FlowParameter::MfbrUplink(BitRate::kbps(256)),
            FlowParameter::MfbrDownlink(BitRate::kbps(256)),
            FlowParameter::AveragingWindow(2_000),
        ],
    }
}

fn dns_filter() -> QosRule {
    QosRule {
        packet_filters: vec![PacketFilter {
            id: 2,
            direction: FilterDirection::Uplink,
            components: vec![FilterComponent::Protocol(17), FilterComponent::RemotePort(53)],
        }],
        precedence_and_qfi: Some(PrecedenceAndQfi { precedence: 10, segregation: false, qfi: 2 }),
        default: false,
        ..QosRule::match_all(2, 2)
    }
}

fn establishment_accept() -> PduSessionEstablishmentAccept {
    let rules = QosRules(vec![QosRule::match_all(1, 1), dns_filter()]);
    PduSessionEstablishmentAccept {
        cause: Some(GsmCause::PduSessionTypeIpv4OnlyAllowed),
        pdu_address: Some(std::net::Ipv4Addr::new(10, 45, 0, 2).into()),
        snssai: Some("1-0a0b0c".parse::<Snssai>().unwrap().into()),
        always_on: Some(AlwaysOn { on: false }),
        qos_flow_descriptions: Some(QosFlowDescriptions(vec![QosFlowDescription::non_gbr(1, 9), gbr_flow()])),
        extended_pco: Some(DownlinkPco(vec![
            PcoOption::DnsServerIpv4([8, 8, 8, 8].into()),
            PcoOption::Ipv4LinkMtu(1400),
        ])),
        dnn: Some("internet".parse().unwrap()),
        ..PduSessionEstablishmentAccept::new(PduSessionType::Ipv4, SscMode::Mode1, rules, ambr())
    }
}

/// 5GSM messages.
pub fn gsm() -> Vec<GsmMessage> {
    let rules = || QosRules(vec![QosRule::match_all(1, 1)]);
    let flows = || QosFlowDescriptions(vec![gbr_flow()]);
    let cause = GsmCause::RegularDeactivation;
    let bodies: Vec<pith_nas::GsmBody> = vec![
        establishment_request().into(),
        establishment_accept().into(),
        PduSessionEstablishmentReject {
            back_off_timer: Some(GprsTimer3::at_least(minutes(20))),
            allowed_ssc_mode: Some(AllowedSscMode { mode_1: true, mode_2: false, mode_3: false }),
            congestion_re_attempt_indicator: Some(CongestionReAttemptIndicator {
                in_all_plmns: true,
                in_current_access: false,
            }),
            re_attempt_indicator: Some(ReAttemptIndicator {
                not_in_s1_mode: true,
                not_in_equivalent_plmn: true,
            }),
            ..PduSessionEstablishmentReject::new(GsmCause::MissingOrUnknownDnn)
        }
        .into(),
        PduSessionAuthenticationCommand::new(vec![1, 1, 0, 5, 1]).into(),
        PduSessionAuthenticationComplete::new(vec![2, 1, 0, 5, 1]).into(),
        PduSessionAuthenticationResult {
            eap_message: Some(vec![3, 1, 0, 4]),
            ..PduSessionAuthenticationResult::new()
        }
        .into(),
        PduSessionModificationRequest {
            integrity_protection_maximum_data_rate: Some(IntegrityProtectionMaximumDataRate::FULL),
            requested_qos_rules: Some(rules()),
            requested_qos_flow_descriptions: Some(flows()),
            ..PduSessionModificationRequest::new()
        }
        .into(),
        PduSessionModificationReject::new(GsmCause::FiveGsQosNotAccepted).into(),
        PduSessionModificationCommand {
            session_ambr: Some(ambr()),
            rq_timer: Some(GprsTimer2::at_least(minutes(5))),
            qos_rules: Some(rules()),
            qos_flow_descriptions: Some(flows()),
            ..PduSessionModificationCommand::new()
        }
        .into(),
        PduSessionModificationComplete::new().into(),
        PduSessionModificationCommandReject::new(GsmCause::SemanticErrorInTheQosOperation).into(),
        PduSessionReleaseRequest { cause: Some(cause), ..PduSessionReleaseRequest::new() }.into(),
        PduSessionReleaseReject::new(GsmCause::PtiMismatch).into(),
        PduSessionReleaseCommand {
            back_off_timer: Some(GprsTimer3::at_least(minutes(1))),
            access_type: Some(AccessType::ThreeGpp),
            ..PduSessionReleaseCommand::new(cause)
        }
        .into(),
        PduSessionReleaseComplete { cause: Some(cause), ..PduSessionReleaseComplete::new() }.into(),
        GsmStatus::new(GsmCause::InvalidPtiValue).into(),
    ];
    bodies.into_iter().map(|body| GsmMessage::new(5, 1, body)).collect()
}
