//! The SMF, which notes what it sees of the UPF.

use super::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{Header, Message};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub const N4: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);
pub const SMF: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);
/// Interval of the SMF's heartbeats.
const BEAT: Duration = Duration::from_millis(2);

pub struct Smf {
    socket: UdpSocket,
    sequence: AtomicU32,
    responses: Receiver<(Header, Message)>,
    seen: Arc<Seen>,
    threads: Vec<JoinHandle<()>>,
}

/// What the SMF sees.
#[derive(Default)]
struct Seen {
    ends: AtomicBool,
    /// Recovery Time Stamps.
    starts: Mutex<BTreeSet<u32>>,
    /// Requests other than heartbeats.
    requests: Mutex<Vec<String>>,
    /// The longest time without a response to a heartbeat, in microseconds.
    silence: AtomicU64,
}

impl Smf {
    pub fn start() -> Self {
        let socket = UdpSocket::bind((SMF, 8805)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let beats = UdpSocket::bind((SMF, 0)).unwrap();
        beats.set_read_timeout(Some(PATIENCE)).unwrap();
        let seen = Arc::new(Seen::default());
        let (to, responses) = channel();
        let threads = vec![
            thread::spawn({
                let (socket, seen) = (socket.try_clone().unwrap(), Arc::clone(&seen));
                move || receive(&socket, &seen, &to)
            }),
            thread::spawn({
                let seen = Arc::clone(&seen);
                move || beat(&beats, &seen)
            }),
        ];
        Self { socket, sequence: AtomicU32::new(1), responses, seen, threads }
    }

    fn ask(&self, seid: u64, request: impl Into<Message>) -> Message {
        let sequence = self.sequence.fetch_add(1, Relaxed);
        self.socket.send_to(&encode(seid, sequence, request), (N4, 8805)).unwrap();
        loop {
            let (header, response) = self.responses.recv_timeout(PATIENCE).expect("a response");
            if header.sequence == sequence {
                return response;
            }
        }
    }

    pub fn associate(&self) {
        let Message::AssociationSetupResponse(response) =
            self.ask(0, AssociationSetupRequest::new(node(), NtpSeconds::from_unix(1)))
        else {
            panic!()
        };
        assert_eq!(response.cause, Cause::RequestAccepted);
        self.seen.starts.lock().unwrap().insert(response.recovery_time_stamp.0);
    }

    /// Establishes a session with a URR over both directions; returns its SEID and TEID.
    pub fn establish(&self) -> (u64, u32) {
        let uplink = Pdi {
            local_f_teid: Some(FTeid::Choose { ipv4: true, ipv6: false, choose_id: None }),
            ue_ip_addresses: vec![UeIpAddress::new(UE.into(), PacketEnd::Source)],
            ..Pdi::new(SourceInterface::Access)
        };
        let downlink = Pdi {
            ue_ip_addresses: vec![UeIpAddress::new(UE.into(), PacketEnd::Destination)],
            ..Pdi::new(SourceInterface::Core)
        };
        let pdr = |id, far, pdi| CreatePdr {
            far_id: Some(FarId(far)),
            qer_ids: vec![QerId(1)],
            urr_ids: vec![UrrId(1)],
            ..CreatePdr::new(PdrId(id), Precedence(255), pdi)
        };
        let far = |id, parameters| CreateFar {
            forwarding_parameters: Some(parameters),
            ..CreateFar::new(FarId(id), ApplyAction::FORW)
        };
        let to_gnb = ForwardingParameters {
            outer_header_creation: Some(OuterHeaderCreation::gtpu(GNB_TEID, IpAddr::from(GNB))),
            ..ForwardingParameters::new(DestinationInterface::Access)
        };
        let urr = CreateUrr {
            measurement_information: Some(MeasurementInformation::MNOP),
            ..CreateUrr::new(UrrId(1), MeasurementMethod::VOLUM, ReportingTriggers::default())
        };
        let request = SessionEstablishmentRequest {
            create_qers: vec![CreateQer {
                maximum_bitrate: Some(BitRates { uplink: 1_000_000, downlink: 1_000_000 }),
                qfi: Some(Qfi(QFI)),
                ..CreateQer::new(QerId(1), GateStatus::OPEN)
            }],
            create_urrs: vec![urr],
            ..SessionEstablishmentRequest::new(
                node(),
                FSeid::new(0x5, SMF.into()),
                vec![pdr(1, 1, uplink), pdr(2, 2, downlink)],
                vec![far(1, ForwardingParameters::new(DestinationInterface::Core)), far(2, to_gnb)],
            )
        };
        let Message::SessionEstablishmentResponse(response) = self.ask(0, request) else { panic!() };
        assert_eq!(response.cause, Cause::RequestAccepted, "{response:?}");
        let FTeid::Allocated { teid, .. } = response.created_pdrs[0].local_f_teids[0] else { panic!() };
        (response.up_f_seid.unwrap().seid, teid)
    }

    /// Changes nothing in a session.
    pub fn modify(&self, seid: u64) -> Cause {
        match self.ask(seid, SessionModificationRequest::new()) {
            Message::SessionModificationResponse(response) => response.cause,
            other => panic!("{other:?}"),
        }
    }

    /// Deletes the session; returns the reported octets up and down, and packets up and down.
    pub fn delete(&self, seid: u64) -> [u64; 4] {
        let Message::SessionDeletionResponse(response) = self.ask(seid, SessionDeletionRequest::new()) else {
            panic!()
        };
        let volume = response.usage_reports.into_iter().next().unwrap().volume_measurement.unwrap();
        [volume.uplink, volume.downlink, volume.uplink_packets, volume.downlink_packets].map(Option::unwrap)
    }

    /// The longest time without a response to a heartbeat since the last call.
    pub fn longest_silence(&self) -> Duration {
        Duration::from_micros(self.seen.silence.swap(0, Relaxed))
    }

    /// The number of different Recovery Time Stamps, and requests of the UPF other than heartbeats.
    pub fn noticed(self) -> (usize, Vec<String>) {
        self.seen.ends.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        let requests = std::mem::take(&mut *self.seen.requests.lock().unwrap());
        (self.seen.starts.lock().unwrap().len(), requests)
    }
}

fn node() -> NodeId {
    NodeId::Ipv4(SMF)
}

fn encode(seid: u64, sequence: u32, message: impl Into<Message>) -> Vec<u8> {
    let mut octets = Vec::new();
    message.into().encode(seid, sequence, &mut octets).unwrap();
    octets
}

/// Answers heartbeats, and passes responses on.
fn receive(socket: &UdpSocket, seen: &Seen, responses: &Sender<(Header, Message)>) {
    let mut buffer = vec![0; 65_535];
    while !seen.ends.load(Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let (header, message) = Message::decode(&buffer[..length]).unwrap();
        match message {
            Message::HeartbeatRequest(request) => {
                seen.starts.lock().unwrap().insert(request.recovery_time_stamp.0);
                let response = HeartbeatResponse::new(NtpSeconds::from_unix(1));
                socket.send_to(&encode(0, header.sequence, response), from).unwrap();
            }
            message if header.message_type.is_response() => responses.send((header, message)).unwrap(),
            message => seen.requests.lock().unwrap().push(format!("{message:?}")),
        }
    }
}

/// Sends heartbeats one after the other.
fn beat(socket: &UdpSocket, seen: &Seen) {
    let mut buffer = vec![0; 1000];
    for sequence in 1.. {
        if seen.ends.load(Relaxed) {
            return;
        }
        let sent = Instant::now();
        let request = HeartbeatRequest::new(NtpSeconds::from_unix(1));
        socket.send_to(&encode(0, sequence, request), (N4, 8805)).unwrap();
        let length = socket.recv(&mut buffer).expect("a response to a heartbeat");
        let Ok((_, Message::HeartbeatResponse(response))) = Message::decode(&buffer[..length]) else {
            panic!()
        };
        seen.starts.lock().unwrap().insert(response.recovery_time_stamp.0);
        seen.silence.fetch_max(sent.elapsed().as_micros() as u64, Relaxed);
        thread::sleep(BEAT);
    }
}
