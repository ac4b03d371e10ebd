"""A hostile UE for scripts/faults: `attack UE` sends from the UE's namespace, through its session, to every address and port of
the core, the gNB and the host; `watch SECONDS FILE DEVICE...` counts, in another namespace, those of its packets that arrive."""

import os
import select
import socket
import struct
import sys
import time

MARK = b"hostile UE"
CORE, GNB, HOST_N6, GATEWAY = "10.210.0.1", "10.210.0.2", "10.211.0.1", "10.45.0.1"
CLOSED = [CORE, GNB, "10.210.0.77", "10.210.0.255", HOST_N6, "10.211.0.255", GATEWAY, "10.45.255.255", "127.0.0.1", "127.0.0.5",
          "127.0.0.7", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255"]
# N2, GTP-U, PFCP, SBI, REST API, DNS, and all reserved ports.
PORTS = [38412, 2152, 8805, 7777, 5100, 53, *range(1, 1024)]
UDP, TCP, SCTP, IP_IN_IP, GRE = 17, 6, 132, 4, 47


def address(text):
    return socket.inet_aton(text)


def packet(source, destination, protocol, payload, fragment=0):
    """An IPv4 packet with a header checksum of 0."""
    length = 20 + len(payload)
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 7, fragment, 64, protocol, 0, address(source), address(destination)) + payload


def udp(port, payload, source_port=2152):
    return struct.pack("!HHHH", source_port, port, 8 + len(payload), 0) + payload


def gpdu(teid, inner):
    return struct.pack("!BBHI", 0x30, 255, len(inner), teid) + inner


def syn(port):
    return struct.pack("!HHIIBBHHH", 40000, port, 1, 0, 0x50, 2, 65535, 0, 0) + MARK


def sctp(port):
    """An INIT."""
    return struct.pack("!HHII", 40000, port, 0, 0) + struct.pack("!BBHIIHHI", 1, 0, 20, 1, 65536, 1, 1, 1) + MARK


def packets(ue):
    for port in range(1, 65536):
        yield packet(ue, CORE, UDP, udp(port, MARK))
        yield packet(ue, CORE, TCP, syn(port))
    forged = packet("10.211.0.2", "10.45.0.3", UDP, udp(7000, MARK))
    for closed in CLOSED:
        for port in PORTS:
            yield packet(ue, closed, UDP, udp(port, MARK))
            yield packet(ue, closed, TCP, syn(port))
        yield packet(ue, closed, SCTP, sctp(38412))
        yield packet(ue, closed, IP_IN_IP, packet(ue, CORE, UDP, udp(2152, MARK)))
        yield packet(ue, closed, GRE, b"\0\0\x08\0" + packet(ue, CORE, UDP, udp(2152, MARK)))
        # A later fragment has no ports.
        yield packet(ue, closed, UDP, MARK * 2, fragment=9)
        for teid in range(1, 200):
            yield packet(ue, closed, UDP, udp(2152, gpdu(teid, forged)))
    for spoofed in ("10.45.0.250", GATEWAY, CORE, GNB, "10.211.0.2", "127.0.0.1", "8.8.8.8"):
        for destination in ("10.211.0.2", CORE, GNB):
            yield packet(spoofed, destination, UDP, udp(2152, gpdu(1, forged)))


def attack(ue):
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    device = next(name for _, name in socket.if_nameindex() if name != "lo")
    sent = 0
    for octets in packets(ue):
        octets = bytearray(octets)
        words = struct.unpack("!10H", octets[:20])
        total = sum(words)
        total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into("!H", octets, 10, ~(total + (total >> 16)) & 0xFFFF)
        while True:
            try:
                raw.sendto(octets, (device, 0x0800))
                break
            except OSError:
                time.sleep(0.0005)
        sent += 1
        if sent % 64 == 0:
            # The queue of the simulated UE is short.
            time.sleep(0.0008)
    print(sent)


def watch(seconds, devices):
    """Counts frames with the mark that arrive on these devices."""
    sockets = []
    for device in devices:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        raw.bind((device, 3))
        raw.setblocking(False)
        sockets.append(raw)
    print("watching", flush=True)
    end, seen = time.monotonic() + seconds, []
    while (left := end - time.monotonic()) > 0 and not os.path.exists(sys.argv[3]):
        for raw in select.select(sockets, [], [], min(left, 0.2))[0]:
            frame, (device, _, kind, _, _) = raw.recvfrom(65535)
            if kind != socket.PACKET_OUTGOING and MARK in frame:
                seen.append(f"{device}: {frame[:120].hex()}")
    for line in seen[:10]:
        print(line)
    print(len(seen), "arrived")
    return len(seen) > 0


if __name__ == "__main__":
    if sys.argv[1] == "attack":
        attack(sys.argv[2])
    else:
        sys.exit(watch(float(sys.argv[2]), sys.argv[4:]))
