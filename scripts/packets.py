"""The test cases of scripts/packets: Scapy sends packets to the UPF and compares the packets from the UPF with its own.

Needs the namespaces 'core', 'ran' and 'dn', with a UPF in 'core' that has the addresses below. Each case has its own
PFCP session. To show that the UPF dropped packets, a case sends one more packet, which must be the first to arrive.
"""

import ctypes
import logging
import os
import socket
import sys
import time

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.config import conf
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.pfcp import *
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

UPF_N3, GNB = "10.210.0.1", "10.210.0.2"
UPF_N6, SERVER = "10.211.0.1", "10.211.0.2"
UNKNOWN_PEER = "10.210.0.9"
GTPU_PORT, PFCP_PORT = 2152, 8805
QFI = 9
G_PDU, END_MARKER, ERROR_INDICATION, ECHO_REQUEST, ECHO_RESPONSE = 255, 254, 26, 1, 2
SUPPORTED_EXTENSION_HEADERS = 31
SESSION_CONTAINER = 0x85
PATIENCE = 3


def within(namespace, make):
    """The result of `make` in a network namespace; the process then returns to its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    assert libc.setns(there, 0) == 0, os.strerror(ctypes.get_errno())
    try:
        return make()
    finally:
        libc.setns(home, 0)
        os.close(home)
        os.close(there)


class Wire:
    """The interface of a host that Scapy acts as."""

    def __init__(self, namespace):
        self.raw = within(namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
        within(namespace, lambda: self.raw.bind(("core0", 3)))
        self.own = mac(namespace, "core0")
        self.core = mac("core", {"ran": "ran0", "dn": "dn0"}[namespace])

    def send(self, packet):
        self.raw.send(bytes(Ether(src=self.own, dst=self.core) / packet))

    def discard_received(self):
        self.raw.setblocking(False)
        try:
            while self.raw.recv(65535):
                pass
        except BlockingIOError:
            pass

    def receive(self, wanted, what):
        """The next frame to this host for which `wanted` is true."""
        end = time.monotonic() + PATIENCE
        while (left := end - time.monotonic()) > 0:
            self.raw.settimeout(left)
            try:
                frame, (_, _, kind, _, _) = self.raw.recvfrom(65535)
            except TimeoutError:
                break
            packet = Ether(frame)
            if kind == socket.PACKET_HOST and packet.dst == self.own and wanted(packet):
                return packet
        raise AssertionError(f"no {what} arrived")


def mac(namespace, device):
    return within(namespace, lambda: open_mac(device))


def open_mac(device):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((device, 0))
        return ":".join(f"{octet:02x}" for octet in raw.getsockname()[4])


class Smf:
    """An SMF with an association and one session at a time."""

    def __init__(self):
        self.socket = within("ran", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        within("ran", lambda: self.socket.bind((GNB, PFCP_PORT)))
        self.socket.settimeout(PATIENCE)
        self.sequence = int(time.time()) & 0x7FFFFF
        self.node = IE_NodeId(id_type=0, ipv4=GNB)
        self.reports = []
        answer = self.ask(
            PFCPAssociationSetupRequest(
                IE_list=[self.node, IE_RecoveryTimeStamp(timestamp=int(time.time()) + 2208988800)]
            )
        )
        accepted(answer)

    def ask(self, message, seid=None):
        self.sequence += 1
        head = PFCP(S=0, seq=self.sequence) if seid is None else PFCP(S=1, seid=seid, seq=self.sequence)
        self.socket.sendto(bytes(head / message), (UPF_N3, PFCP_PORT))
        while True:
            packet = self.next()
            if packet.seq == self.sequence and packet.message_type == head_type(head / message) + 1:
                return packet

    def next(self):
        """The next message. Answers reports and heartbeats, and stores reports."""
        packet = PFCP(self.socket.recv(65535))
        if packet.message_type == 56:
            self.reports.append(packet)
            answer = PFCPSessionReportResponse(IE_list=[IE_Cause(cause=1)])
            self.socket.sendto(bytes(PFCP(S=1, seid=self.seid, seq=packet.seq) / answer), (UPF_N3, PFCP_PORT))
        elif packet.message_type == 1:
            beat = PFCPHeartbeatResponse(IE_list=[IE_RecoveryTimeStamp(timestamp=1)])
            self.socket.sendto(bytes(PFCP(S=0, seq=packet.seq) / beat), (UPF_N3, PFCP_PORT))
        return packet

    def establish(self, ue, gnb_teid, downlink=None, uplink_gate=0, more=()):
        tunnel = downlink or [IE_ApplyAction(FORW=1), to_gnb(gnb_teid)]
        answer = self.ask(
            PFCPSessionEstablishmentRequest(
                IE_list=[
                    self.node,
                    IE_FSEID(v4=1, seid=1, ipv4=GNB),
                    IE_CreatePDR(
                        IE_list=[
                            IE_PDR_Id(id=1),
                            IE_Precedence(precedence=100),
                            IE_PDI(
                                IE_list=[
                                    IE_SourceInterface(interface=0),
                                    IE_FTEID(CH=1, V4=1),
                                    IE_UE_IP_Address(SD=0, V4=1, ipv4=ue),
                                ]
                            ),
                            IE_OuterHeaderRemoval(header=0),
                            IE_FAR_Id(id=1),
                            IE_URR_Id(id=1),
                            IE_QER_Id(id=1),
                        ]
                    ),
                    IE_CreatePDR(
                        IE_list=[
                            IE_PDR_Id(id=2),
                            IE_Precedence(precedence=100),
                            IE_PDI(
                                IE_list=[
                                    IE_SourceInterface(interface=1),
                                    IE_UE_IP_Address(SD=1, V4=1, ipv4=ue),
                                ]
                            ),
                            IE_FAR_Id(id=2),
                            IE_URR_Id(id=1),
                            IE_QER_Id(id=1),
                        ]
                    ),
                    IE_CreateFAR(
                        IE_list=[
                            IE_FAR_Id(id=1),
                            IE_ApplyAction(FORW=1),
                            IE_ForwardingParameters(IE_list=[IE_DestinationInterface(interface=1)]),
                        ]
                    ),
                    IE_CreateFAR(IE_list=[IE_FAR_Id(id=2), *tunnel]),
                    IE_CreateQER(
                        IE_list=[IE_QER_Id(id=1), IE_GateStatus(ul=uplink_gate, dl=0), IE_QFI(QFI=QFI)]
                    ),
                    IE_CreateURR(
                        IE_list=[
                            IE_URR_Id(id=1),
                            IE_MeasurementMethod(VOLUM=1),
                            IE_ReportingTriggers(periodic_reporting=0, volume_threshold=0, linked_usage_reporting=1),
                        ]
                    ),
                    *more,
                ]
            ),
            seid=0,
        )
        accepted(answer)
        self.seid = element(answer, IE_FSEID).seid
        return element(answer, IE_FTEID).TEID

    def modify(self, *elements):
        accepted(self.ask(PFCPSessionModificationRequest(IE_list=list(elements)), seid=self.seid))

    def delete(self):
        answer = self.ask(PFCPSessionDeletionRequest(), seid=self.seid)
        accepted(answer)
        return answer


def head_type(packet):
    return bytes(packet)[1]


def to_gnb(teid):
    return IE_ForwardingParameters(
        IE_list=[
            IE_DestinationInterface(interface=0),
            IE_OuterHeaderCreation(GTPUUDPIPV4=1, TEID=teid, ipv4=GNB),
        ]
    )


def update_far(*elements):
    return IE_UpdateFAR(IE_list=[IE_FAR_Id(id=2), *elements])


def tunnel_update(teid, *flags):
    return IE_UpdateForwardingParameters(
        IE_list=[
            IE_DestinationInterface(interface=0),
            IE_OuterHeaderCreation(GTPUUDPIPV4=1, TEID=teid, ipv4=GNB),
            *flags,
        ]
    )


def elements(packet, kind):
    """All IEs of a type, at any depth."""
    found = []
    for child in getattr(packet.payload if isinstance(packet, PFCP) else packet, "IE_list", []):
        found += [child] if isinstance(child, kind) else elements(child, kind)
    return found


def element(packet, kind):
    found = elements(packet, kind)
    assert found, f"no {kind.__name__} in\n{packet.show(dump=True)}"
    return found[0]


def accepted(answer):
    cause = element(answer, IE_Cause).cause
    assert cause == 1, f"cause {cause}\n{answer.show(dump=True)}"


class Lab:
    """The hosts around the UPF, and the session of one case."""

    def __init__(self, smf, ran, dn, number):
        self.smf, self.ran, self.dn = smf, ran, dn
        self.ue, self.gnb_teid = f"10.45.0.{number}", 0xA000 + number
        self.mark = 0
        ran.discard_received()
        dn.discard_received()

    def session(self, **options):
        self.teid = self.smf.establish(self.ue, self.gnb_teid, **options)
        return self

    # Tunnels

    def tunnel(self, inner, teid=None, **header):
        """A G-PDU from the gNB, with a PDU Session Container."""
        head = dict(E=1, next_ex=SESSION_CONTAINER, gtp_type=G_PDU, teid=self.teid if teid is None else teid)
        gtp = GTP_U_Header(**{**head, **header})
        container = GTPPDUSessionContainer(type=1, QFI=QFI)
        return IP(src=GNB, dst=UPF_N3, ttl=64) / UDP(sport=GTPU_PORT, dport=GTPU_PORT) / gtp / container / inner

    def up(self, inner, **header):
        self.ran.send(self.tunnel(inner, **header))

    # Expected packets

    def expect_uplink(self, inner):
        """The next packet of the UE at the data network must be `inner`, with its TTL decremented."""
        packet = self.dn.receive(lambda p: IP in p and p[IP].src == inner[IP].src, "packet at the data network")
        expected = Ether(src=self.dn.core, dst=self.dn.own) / forwarded(inner)
        same(bytes(packet), bytes(expected))

    def expect_downlink(self, inner, teid=None, dscp=0):
        """The next G-PDU at the gNB must contain `inner`, with its TTL decremented."""
        packet = self.ran.receive(is_gtpu, "packet at the gNB")
        outer, udp = packet[IP], packet[UDP]
        assert (outer.src, outer.dst, udp.dport) == (UPF_N3, GNB, GTPU_PORT), packet.summary()
        same(bytes(packet)[14:34], bytes(IP(bytes(outer)[:20])), "outer header")
        rebuilt = IP(bytes(outer))
        del rebuilt.chksum
        assert IP(bytes(rebuilt)).chksum == outer.chksum, "outer checksum"
        assert outer.len == len(packet) - 14 and udp.len == outer.len - 20, "outer lengths"
        assert outer.tos >> 2 == dscp, f"DSCP {outer.tos >> 2}"
        if udp.chksum:
            rebuilt = IP(bytes(outer))
            del rebuilt[UDP].chksum
            assert IP(bytes(rebuilt))[UDP].chksum == udp.chksum, "outer UDP checksum"
        gtp = GTP_U_Header(E=1, next_ex=SESSION_CONTAINER, gtp_type=G_PDU, teid=teid or self.gnb_teid)
        expected = gtp / GTPPDUSessionContainer(type=0, QFI=QFI) / forwarded(inner)
        same(bytes(packet)[42:], bytes(expected))

    def expect_no_uplink(self):
        """A packet sent now must be the first to arrive at the data network."""
        self.mark += 1
        last = udp(self.ue, SERVER, f"last {self.mark}".encode())
        self.up(last)
        self.expect_uplink(last)

    def expect_no_downlink(self):
        """A packet sent now must be the first to arrive at the gNB."""
        self.mark += 1
        last = udp(SERVER, self.ue, f"last {self.mark}".encode())
        self.dn.send(last)
        self.expect_downlink(last)


def is_gtpu(packet):
    return UDP in packet and packet[UDP].dport == GTPU_PORT


def forwarded(inner):
    """`inner` as a router forwards it: with the TTL decremented."""
    packet = IP(bytes(inner))
    packet.ttl -= 1
    del packet.chksum
    return packet


def same(got, expected, what="packet"):
    assert got == expected, f"{what}\n  received {got.hex()}\n  expected {expected.hex()}"


def udp(source, destination, payload=b"hello", **ip):
    return IP(src=source, dst=destination, ttl=64, id=7, **ip) / UDP(sport=5000, dport=7000) / Raw(payload)


# The cases. Each has its own lab.


def uplink_packets_of_all_sizes(lab):
    lab.session()
    for size in (0, 1, 2, 17, 18, 63, 64, 511, 1371, 1372):
        inner = udp(lab.ue, SERVER, bytes(size))
        lab.up(inner)
        lab.expect_uplink(inner)


def downlink_packets_of_all_sizes(lab):
    lab.session()
    for size in (0, 1, 2, 17, 18, 63, 64, 511, 1371, 1372):
        inner = udp(SERVER, lab.ue, bytes(size))
        lab.dn.send(inner)
        lab.expect_downlink(inner)


def tcp_icmp_and_unknown_protocols_both_ways(lab):
    lab.session()
    for body in (TCP(sport=1, dport=2, flags="S", options=[("MSS", 1360)]), ICMP() / b"ping", Raw(b"\x00" * 12)):
        inner = IP(src=lab.ue, dst=SERVER, proto=None if not isinstance(body, Raw) else 253) / body
        lab.up(inner)
        lab.expect_uplink(inner)
        inner = IP(src=SERVER, dst=lab.ue, proto=None if not isinstance(body, Raw) else 253) / body
        lab.dn.send(inner)
        lab.expect_downlink(inner)


def gtpu_headers_with_and_without_options(lab):
    lab.session()
    inner = udp(lab.ue, SERVER)
    outer = IP(src=GNB, dst=UPF_N3) / UDP(sport=40000, dport=GTPU_PORT)
    headers = [
        GTP_U_Header(gtp_type=G_PDU, teid=lab.teid) / inner,
        GTP_U_Header(gtp_type=G_PDU, teid=lab.teid, S=1, seq=77) / inner,
        GTP_U_Header(gtp_type=G_PDU, teid=lab.teid, PN=1, npdu=5) / inner,
        GTP_U_Header(gtp_type=G_PDU, teid=lab.teid, S=1, PN=1, E=1, next_ex=SESSION_CONTAINER, seq=1)
        / GTPPDUSessionContainer(type=1, QFI=QFI)
        / inner,
        # Service Class Indicator and UDP Port before the container: a receiver that does not know them skips them
        # (TS 29.281 5.2.1).
        GTP_U_Header(gtp_type=G_PDU, teid=lab.teid, E=1, next_ex=0x20)
        / Raw(b"\x01\x07\x00\x40\x01\x10\x00\x85\x01\x10\x09\x00")
        / inner,
    ]
    for header in headers:
        lab.ran.send(outer / header)
        lab.expect_uplink(inner)


def outer_header_without_checksum_or_with_options(lab):
    lab.session()
    inner = udp(lab.ue, SERVER)
    without = lab.tunnel(inner)
    without[UDP].chksum = 0
    lab.ran.send(without)
    lab.expect_uplink(inner)
    with_options = lab.tunnel(inner)
    with_options[IP].options = [b"\x01\x01\x01\x00"]
    lab.ran.send(with_options)
    lab.expect_uplink(inner)


def inner_headers_with_options_and_fragments(lab):
    lab.session()
    routed = udp(lab.ue, SERVER, options=[b"\x01\x01\x01\x00"])
    lab.up(routed)
    lab.expect_uplink(routed)
    for fragment in (
        IP(src=lab.ue, dst=SERVER, id=9, flags="MF", proto=17) / Raw(b"\x13\x88\x1b\x58\x00\x18\x00\x00" + bytes(8)),
        IP(src=lab.ue, dst=SERVER, id=9, frag=2, proto=17) / Raw(bytes(8)),
    ):
        lab.up(fragment)
        lab.expect_uplink(fragment)


def frame_padding_is_removed(lab):
    lab.session()
    inner = udp(SERVER, lab.ue, b"")
    lab.dn.send(inner / Raw(b""))
    lab.expect_downlink(inner)
    padded = bytes(inner) + bytes(18)
    lab.dn.send(Raw(padded))
    lab.dn.raw.send(bytes(Ether(src=lab.dn.own, dst=lab.dn.core, type=0x0800)) + padded)
    lab.expect_downlink(inner)


def spoofed_sources_are_dropped(lab):
    lab.session()
    lab.up(udp("10.45.0.250", SERVER))
    lab.up(udp(UPF_N6, SERVER))
    lab.up(udp("0.0.0.0", SERVER))
    lab.expect_no_uplink()


def packets_of_other_flows_than_the_sessions_are_dropped(lab):
    lab.session()
    for qfi in (0, QFI - 1, QFI + 1, 63):
        packet = lab.tunnel(udp(lab.ue, SERVER))
        packet[GTPPDUSessionContainer].QFI = qfi
        lab.ran.send(packet)
    lab.expect_no_uplink()


def wrong_lengths_are_dropped(lab):
    lab.session()
    inner = udp(lab.ue, SERVER)
    lab.up(inner, length=4)
    lab.up(inner, length=2000)
    long_inner = udp(lab.ue, SERVER)
    long_inner[IP].len = 1000
    lab.up(long_inner)
    short = udp(lab.ue, SERVER)
    short[IP].ihl = 4
    lab.up(short)
    chain = GTP_U_Header(gtp_type=G_PDU, teid=lab.teid, E=1, next_ex=SESSION_CONTAINER) / Raw(b"\xff" * 16)
    lab.ran.send(IP(src=GNB, dst=UPF_N3) / UDP(sport=GTPU_PORT, dport=GTPU_PORT) / chain)
    endless = GTP_U_Header(gtp_type=G_PDU, teid=lab.teid, E=1, next_ex=SESSION_CONTAINER) / Raw(b"\x00" * 16)
    lab.ran.send(IP(src=GNB, dst=UPF_N3) / UDP(sport=GTPU_PORT, dport=GTPU_PORT) / endless)
    lab.expect_no_uplink()


def other_gtp_versions_are_dropped(lab):
    lab.session()
    inner = udp(lab.ue, SERVER)
    lab.up(inner, version=0)
    lab.up(inner, version=2)
    lab.up(inner, PT=0)
    lab.expect_no_uplink()


def unknown_teid_gets_error_indication(lab):
    lab.session()
    lab.up(udp(lab.ue, SERVER), teid=0x77777777)
    packet = lab.ran.receive(is_gtpu, "Error Indication")
    gtp = bytes(packet)[42:]
    # TS 29.281 7.3.1: TEID Data I (type 16) and GTP-U Peer Address (type 133).
    assert gtp[1] == ERROR_INDICATION and gtp[4:8] == bytes(4), gtp.hex()
    body = gtp[12:] if gtp[0] & 7 else gtp[8:]
    same(body, b"\x10\x77\x77\x77\x77\x85\x00\x04" + socket.inet_aton(UPF_N3), "Error Indication")


def echo_request_is_answered(lab):
    lab.session()
    echo = GTP_U_Header(gtp_type=ECHO_REQUEST, teid=0, S=1, seq=0x1234)
    lab.ran.send(IP(src=GNB, dst=UPF_N3) / UDP(sport=41000, dport=GTPU_PORT) / echo)
    packet = lab.ran.receive(lambda p: UDP in p and p[UDP].sport == GTPU_PORT, "Echo Response")
    gtp = bytes(packet)[42:]
    assert packet[UDP].dport == 41000 and gtp[1] == ECHO_RESPONSE, packet.summary()
    # TS 29.281 7.2.2: the Recovery IE is present, with the value 0, which the receiver ignores.
    same(gtp, bytes.fromhex("32020006000000001234 0000 0e00".replace(" ", "")), "Echo Response")


def packets_at_a_closed_gate_are_dropped(lab):
    lab.session(uplink_gate=1)
    lab.up(udp(lab.ue, SERVER))
    inner = udp(SERVER, lab.ue)
    lab.dn.send(inner)
    lab.expect_downlink(inner)
    lab.smf.modify(IE_UpdateQER(IE_list=[IE_QER_Id(id=1), IE_GateStatus(ul=0, dl=1)]))
    lab.dn.send(udp(SERVER, lab.ue, b"not this"))
    lab.expect_no_uplink()
    lab.smf.modify(IE_UpdateQER(IE_list=[IE_QER_Id(id=1), IE_GateStatus(ul=0, dl=0)]))
    lab.expect_no_downlink()


def packets_for_an_idle_ue_are_buffered_in_order(lab):
    lab.session(downlink=[IE_ApplyAction(BUFF=1, NOCP=1)])
    waiting = [udp(SERVER, lab.ue, f"{number}".encode()) for number in range(20)]
    for inner in waiting:
        lab.dn.send(inner)
    while not lab.smf.reports:
        lab.smf.next()
    assert element(lab.smf.reports[0], IE_ReportType).DLDR and elements(lab.smf.reports[0], IE_PDR_Id)
    lab.smf.modify(update_far(IE_ApplyAction(FORW=1), tunnel_update(lab.gnb_teid)))
    for inner in waiting:
        lab.expect_downlink(inner)
    lab.expect_no_downlink()
    assert len(lab.smf.reports) == 1, "one report"


def tunnel_change_sends_an_end_marker(lab):
    lab.session()
    lab.expect_no_downlink()
    new = lab.gnb_teid + 0x1000
    lab.smf.modify(update_far(IE_ApplyAction(FORW=1), tunnel_update(new, IE_PFCPSMReqFlags(SNDEM=1))))
    marker = bytes(lab.ran.receive(is_gtpu, "End Marker"))[42:]
    assert marker[1] == END_MARKER and int.from_bytes(marker[4:8], "big") == lab.gnb_teid, marker.hex()
    inner = udp(SERVER, lab.ue)
    lab.dn.send(inner)
    lab.expect_downlink(inner, teid=new)


def unknown_extension_header_is_refused_if_required(lab):
    lab.session()
    # Long PDCP PDU Number (TS 29.281 5.2.1, 5.2.2.2A): comprehension is required.
    header = GTP_U_Header(gtp_type=G_PDU, teid=lab.teid, E=1, next_ex=0x82) / Raw(b"\x02" + bytes(6) + b"\x00")
    lab.ran.send(IP(src=GNB, dst=UPF_N3) / UDP(sport=GTPU_PORT, dport=GTPU_PORT) / header / udp(lab.ue, SERVER))
    gtp = bytes(lab.ran.receive(is_gtpu, "Supported Extension Headers Notification"))[42:]
    # TS 29.281 7.2.3: Extension Header Type List (type 141) with the container's.
    body = gtp[12:] if gtp[0] & 7 else gtp[8:]
    assert gtp[1] == SUPPORTED_EXTENSION_HEADERS, gtp.hex()
    same(body, bytes([141, 1, SESSION_CONTAINER]), "Supported Extension Headers Notification")
    lab.expect_no_uplink()


def expired_ttl_is_answered_with_time_exceeded(lab):
    lab.session()
    last = udp(lab.ue, SERVER)
    last[IP].ttl = 1
    lab.up(last)
    packet = lab.ran.receive(is_gtpu, "Time Exceeded for the UE")
    is_time_exceeded(IP(bytes(packet)[58:]), lab.ue, last)
    last = udp(SERVER, lab.ue)
    last[IP].ttl = 1
    lab.dn.send(last)
    packet = lab.dn.receive(lambda p: ICMP in p, "Time Exceeded for the data network")
    is_time_exceeded(packet[IP], SERVER, last)
    lab.expect_no_uplink()
    lab.expect_no_downlink()


def is_time_exceeded(packet, to, about):
    """RFC 792: ICMP type 11, with the first octets of the expired packet."""
    assert packet.dst == to and ICMP in packet and packet[ICMP].type == 11, packet.summary()
    same(bytes(packet[ICMP])[8:36], bytes(about)[:28], "quoted packet")


def reported_usage_is_exact(lab):
    lab.session()
    uplink = [udp(lab.ue, SERVER, bytes(size)) for size in (0, 100, 1000)]
    downlink = [udp(SERVER, lab.ue, bytes(size)) for size in (1, 200)]
    for inner in uplink:
        lab.up(inner)
        lab.expect_uplink(inner)
    for inner in downlink:
        lab.dn.send(inner)
        lab.expect_downlink(inner)
    lab.up(udp("10.45.0.250", SERVER))
    volume = element(lab.smf.delete(), IE_VolumeMeasurement)
    lab.smf.seid = None
    expected = sum(map(len, uplink)), sum(map(len, downlink))
    assert (volume.uplink, volume.downlink) == expected, f"{volume.uplink}, {volume.downlink}, not {expected}"


def packets_after_session_deletion_are_dropped(lab):
    lab.session()
    lab.smf.delete()
    lab.smf.seid = None
    lab.dn.send(udp(SERVER, lab.ue))
    lab.up(udp(lab.ue, SERVER))
    gtp = bytes(lab.ran.receive(is_gtpu, "Error Indication"))[42:]
    assert gtp[1] == ERROR_INDICATION, gtp.hex()


def closed_destinations_are_dropped(lab):
    lab.session()
    forged = GTP_U_Header(gtp_type=G_PDU, teid=lab.gnb_teid) / udp(SERVER, lab.ue, b"forged")
    closed = [UPF_N3, GNB, "10.210.0.77", "10.210.0.255", UPF_N6, "10.211.0.255", "10.45.0.1", "10.45.255.255", "127.0.0.1"]
    closed += ["127.0.0.7", "0.0.0.0", "169.254.169.254", "224.0.0.1", "239.255.255.250", "255.255.255.255"]
    for destination in closed:
        head = IP(src=lab.ue, dst=destination)
        for port in (GTPU_PORT, PFCP_PORT, 38412, 7777, 53):
            lab.up(head / UDP(sport=GTPU_PORT, dport=port) / forged)
            lab.up(head / TCP(sport=40000, dport=port, flags="S"))
        # SCTP's INIT, IP in IP, a later fragment, options.
        lab.up(IP(src=lab.ue, dst=destination, proto=132) / Raw(b"\x9c\x40\x96\x0c" + bytes(8) + b"\x01\x00\x00\x14" + bytes(16)))
        lab.up(head / udp(SERVER, UPF_N3))
        lab.up(IP(src=lab.ue, dst=destination, frag=9, proto=17) / Raw(bytes(16)))
        lab.up(IP(src=lab.ue, dst=destination, options=[b"\x01\x01\x01\x00"]) / UDP(dport=GTPU_PORT) / forged)
    lab.expect_no_uplink()
    lab.expect_no_downlink()


def gateway_answers_only_pings(lab):
    lab.session()
    lab.up(IP(src=lab.ue, dst="10.45.0.1", ttl=64) / ICMP(type=8, id=7, seq=1) / b"ping")
    packet = IP(bytes(lab.ran.receive(is_gtpu, "Echo Reply"))[58:])
    assert (packet.src, packet.dst, packet[ICMP].type) == ("10.45.0.1", lab.ue, 0), packet.summary()
    for kind in (3, 5, 13, 17):
        lab.up(IP(src=lab.ue, dst="10.45.0.1", ttl=64) / ICMP(type=kind) / b"ping")
    lab.up(IP(src=lab.ue, dst=UPF_N6, ttl=64) / ICMP(type=8) / b"ping")
    lab.expect_no_downlink()


def unknown_n3_peer_gets_only_an_echo_response(lab):
    lab.session()
    lab.expect_no_downlink()
    send_as_unknown_peer = lambda message: lab.ran.send(IP(src=UNKNOWN_PEER, dst=UPF_N3) / UDP(sport=GTPU_PORT, dport=GTPU_PORT) / message)
    send_as_unknown_peer(GTP_U_Header(gtp_type=ECHO_REQUEST, teid=0, S=1, seq=7))
    answer = bytes(lab.ran.receive(lambda p: IP in p and p[IP].dst == UNKNOWN_PEER, "Echo Response"))[42:]
    assert answer[1] == ECHO_RESPONSE, answer.hex()
    forged = lab.tunnel(udp(lab.ue, SERVER, b"forged"))
    forged[IP].src = UNKNOWN_PEER
    lab.ran.send(forged)
    send_as_unknown_peer(GTP_U_Header(gtp_type=END_MARKER, teid=lab.teid))
    indication = b"\x10" + lab.gnb_teid.to_bytes(4, "big") + b"\x85\x00\x04" + socket.inet_aton(GNB)
    send_as_unknown_peer(GTP_U_Header(gtp_type=ERROR_INDICATION, teid=0, S=1, seq=8) / Raw(indication))
    lab.expect_no_uplink()
    lab.expect_no_downlink()
    assert not lab.smf.reports, "no report to the SMF"


CASES = [
    uplink_packets_of_all_sizes,
    downlink_packets_of_all_sizes,
    tcp_icmp_and_unknown_protocols_both_ways,
    gtpu_headers_with_and_without_options,
    outer_header_without_checksum_or_with_options,
    inner_headers_with_options_and_fragments,
    frame_padding_is_removed,
    spoofed_sources_are_dropped,
    closed_destinations_are_dropped,
    packets_of_other_flows_than_the_sessions_are_dropped,
    gateway_answers_only_pings,
    unknown_n3_peer_gets_only_an_echo_response,
    wrong_lengths_are_dropped,
    other_gtp_versions_are_dropped,
    unknown_teid_gets_error_indication,
    echo_request_is_answered,
    packets_at_a_closed_gate_are_dropped,
    packets_for_an_idle_ue_are_buffered_in_order,
    tunnel_change_sends_an_end_marker,
    unknown_extension_header_is_refused_if_required,
    expired_ttl_is_answered_with_time_exceeded,
    reported_usage_is_exact,
    packets_after_session_deletion_are_dropped,
]


# The cases with NAT, which the same kernel does for the first packets of a connection and XDP for others.


def translated(inner, port):
    """`inner` as a router with NAT forwards it: from its own address and this port."""
    packet = forwarded(inner)
    layer = TCP if TCP in packet else UDP
    packet[IP].src, packet[layer].sport = UPF_N6, port
    del packet[layer].chksum
    return packet


def public_port(lab, inner):
    """Sends the first packet of a connection, and returns its public port."""
    lab.up(inner)
    layer = TCP if TCP in inner else UDP
    packet = lab.dn.receive(lambda p: layer in p and p[IP].src == UPF_N6, "translated packet")
    port = packet[layer].sport
    same(bytes(packet)[14:], bytes(translated(inner, port)))
    return port


def expect_translated(lab, inner, port):
    packet = lab.dn.receive(lambda p: IP in p and p[IP].src in (UPF_N6, lab.ue), "packet at the data network")
    expected = Ether(src=lab.dn.core, dst=lab.dn.own) / translated(inner, port)
    same(bytes(packet), bytes(expected))


def answered(lab, port, body):
    """A packet of the server to the public port, and what the UE is to get of it."""
    reply = IP(src=SERVER, dst=UPF_N6, ttl=64, id=8) / body(port)
    return reply, IP(src=SERVER, dst=lab.ue, ttl=64, id=8) / body(5000)


def udp_connections_are_translated_both_ways(lab):
    lab.session()
    port = public_port(lab, udp(lab.ue, SERVER))
    for size in (0, 1, 2, 17, 18, 63, 64, 511, 1371, 1372):
        inner = udp(lab.ue, SERVER, bytes([size % 251]) * size)
        lab.up(inner)
        expect_translated(lab, inner, port)
        body = lambda to: UDP(sport=7000, dport=to) / Raw(bytes([size % 253]) * size)
        reply, expected = answered(lab, port, body)
        lab.dn.send(reply)
        lab.expect_downlink(expected)


def tcp_connections_are_translated_from_start_to_end(lab):
    lab.session()
    up = lambda flags, seq, ack, data=b"": (
        IP(src=lab.ue, dst=SERVER, ttl=64, id=7) / TCP(sport=5000, dport=7000, flags=flags, seq=seq, ack=ack) / Raw(data)
    )
    down = lambda flags, seq, ack, data=b"": answered(
        lab, port, lambda to: TCP(sport=7000, dport=to, flags=flags, seq=seq, ack=ack, window=65535) / Raw(data)
    )
    port = public_port(lab, up("S", 100, 0))
    reply, expected = down("SA", 500, 101)
    lab.dn.send(reply)
    lab.expect_downlink(expected)
    sent = 101
    # Within the server's window, which connection tracking checks where it sees all segments.
    for data in (b"", *[bytes([n]) * 1300 for n in range(1, 45)]):
        inner = up("A", sent, 501, data)
        lab.up(inner)
        expect_translated(lab, inner, port)
        sent += len(data)
    for flags, data in (("PA", b"answer"), ("FA", b"")):
        reply, expected = down(flags, 501 + (6 if flags == "FA" else 0), sent, data)
        lab.dn.send(reply)
        lab.expect_downlink(expected)
    for flags in ("FA", "A"):
        inner = up(flags, sent + (flags == "A"), 508)
        lab.up(inner)
        expect_translated(lab, inner, port)


def pings_are_translated(lab):
    lab.session()
    for number in range(3):
        lab.up(IP(src=lab.ue, dst=SERVER, ttl=64) / ICMP(type=8, id=77, seq=number) / b"ping")
        packet = lab.dn.receive(lambda p: ICMP in p and p[ICMP].type == 8, "echo request")
        assert packet[IP].src == UPF_N6, packet.summary()
        lab.dn.send(IP(src=SERVER, dst=UPF_N6, ttl=64) / ICMP(type=0, id=packet[ICMP].id, seq=number) / b"ping")
        lab.expect_downlink(IP(src=SERVER, dst=lab.ue, ttl=64) / ICMP(type=0, id=77, seq=number) / b"ping")


def icmp_errors_quote_the_ues_own_packet(lab):
    lab.session()
    inner = udp(lab.ue, SERVER)
    port = public_port(lab, inner)
    lab.up(inner)
    expect_translated(lab, inner, port)
    quoted = bytes(translated(inner, port))[:28]
    lab.dn.send(IP(src=SERVER, dst=UPF_N6, ttl=64) / ICMP(type=3, code=4, nexthopmtu=1300) / Raw(quoted))
    packet = lab.ran.receive(is_gtpu, "ICMP error at the gNB")
    error = IP(bytes(packet)[14 + 20 + 8 + 16 :])
    assert (error.src, error.dst, error[ICMP].type, error[ICMP].code) == (SERVER, lab.ue, 3, 4), error.summary()
    about = IP(bytes(error[ICMP].payload))
    ports = bytes(about.payload)[:4]
    assert (about.src, about.dst, ports) == (lab.ue, SERVER, b"\x13\x88\x1b\x58"), about.summary()


def packets_of_strangers_to_a_public_port_are_dropped(lab):
    lab.session()
    port = public_port(lab, udp(lab.ue, SERVER))
    stranger, _ = answered(lab, port, lambda to: UDP(sport=7001, dport=to) / b"stranger")
    lab.dn.send(stranger)
    reply, expected = answered(lab, port, lambda to: UDP(sport=7000, dport=to) / b"answer")
    lab.dn.send(reply)
    lab.expect_downlink(expected)


def spoofed_sources_are_not_translated(lab):
    lab.session()
    inner = udp(lab.ue, SERVER)
    port = public_port(lab, inner)
    lab.up(udp("10.45.0.250", SERVER))
    lab.up(udp(UPF_N6, SERVER))
    lab.up(inner)
    expect_translated(lab, inner, port)


NAT_CASES = [
    udp_connections_are_translated_both_ways,
    tcp_connections_are_translated_from_start_to_end,
    pings_are_translated,
    icmp_errors_quote_the_ues_own_packet,
    packets_of_strangers_to_a_public_port_are_dropped,
    spoofed_sources_are_not_translated,
]


def main():
    conf.verb = 0
    cases = NAT_CASES if sys.argv[1:] == ["nat"] else CASES
    smf, ran, dn = Smf(), Wire("ran"), Wire("dn")
    failed = 0
    for number, case in enumerate(cases, start=10):
        lab, problem = Lab(smf, ran, dn, number), None
        smf.seid, smf.reports = None, []
        try:
            case(lab)
            if smf.seid:
                smf.delete()
        except (AssertionError, TimeoutError) as error:
            problem, failed = error, failed + 1
        print(f"{case.__name__.replace('_', ' '):<60} {'FAILED' if problem else 'ok':>6}", flush=True)
        if problem:
            print("    " + str(problem).replace("\n", "\n    "))
    print(f"\n{len(cases) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
