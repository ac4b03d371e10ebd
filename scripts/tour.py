#!/usr/bin/env python3
"""The tour of the demo (scripts/demo --tour): a UE goes through the procedures of mobility while packets flow.

It runs in the demo's namespaces, which scripts/demo has made, against the core that it has started. pith-ran is the UE and its two
gNBs; the kernel of namespace 'ran' uses the UE's session through the interface ue1. For each step of the tour it measures latency,
lost packets and the longest interruption of a ping every 2 ms, and of a TCP stream from the data network to the UE.
"""

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

DN, UPF_N6 = "10.211.0.2", "10.211.0.1"
DN6 = "2001:db8:211::2"
PORT = 5201
# Interval of pings in seconds; octets a second of the TCP stream.
INTERVAL, STREAM = 0.002, 2_500_000
# Port of the server whose packets have the RQI, packets exchanged with it, and smf.timers.rq_timer of tour.sh in seconds.
REFLECTED, EXCHANGES, RQ_TIMER = 5202, 20, 4
# Handovers of each kind, and the time between two.
HANDOVERS, PAUSE = 10, 0.1
ECHO = re.compile(rb"\[(\d+\.\d+)\] \d+ bytes from .* icmp_seq=(\d+) .*time=([\d.]+) ms")


def within(namespace, *command):
    return ["ip", "netns", "exec", namespace, *command]


class TourError(Exception):
    pass


class Simulator:
    """pith-ran with --commands: a line of JSON for each step."""

    def __init__(self, options, result, *arguments, address="10.210.0.2"):
        self.result = result
        command = [f"{options.bin}/pith-ran", "run", "--test-network", "--amf", "10.210.0.1:38412", "--local-n2", address,
                   "--n3", address, "--quiet", "--commands", "--json", result, *arguments]
        self.process = subprocess.Popen(within("ran", *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.profile = self.read()
        if self.profile["ok"] != self.profile["ues"]:
            self.end()
            raise TourError(f"the profile failed: {json.dumps(self.report.get('failures'))}")

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise TourError("the simulator has ended")
        return json.loads(line)

    def step(self, step):
        """Carries out a step of the UE, and returns its milliseconds."""
        self.process.stdin.write(step + "\n")
        self.process.stdin.flush()
        done = self.read()
        if done.get("ok") != 1:
            raise TourError(f"{step}: {json.dumps(done)}")
        return done["ms"]["p50"]

    def end(self):
        """Ends it, and reads its result."""
        self.process.stdin.close()
        self.process.wait(20)
        with open(self.result) as file:
            self.report = json.load(file)
        return self.report


class Ping:
    """`ping` from one namespace to an address, and its replies."""

    def __init__(self, namespace, to, *options, interval=INTERVAL):
        self.interval = interval
        command = ["ping", "-D", "-i", str(interval), *options, to]
        self.process = subprocess.Popen(within(namespace, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def stop(self):
        """Ends it half a second after the last request that matters; requests without a reply are lost."""
        self.process.send_signal(signal.SIGINT)
        return self.read(self.process.communicate(timeout=20)[0])

    def wait(self):
        """Waits until it has sent all its requests."""
        return self.read(self.process.communicate(timeout=60)[0])

    def read(self, text):
        replies = [(float(at), int(sequence), float(ms)) for at, sequence, ms in ECHO.findall(text)]
        found = re.search(rb"(\d+) packets transmitted, (\d+) received", text)
        if not found:
            raise TourError(f"ping: {text.decode(errors='replace')}")
        sent, received = map(int, found.groups())
        # Requests that were on their way when the ping ended are not lost.
        last = max((sequence for _, sequence, _ in replies), default=0)
        pending = sum(1 for sequence in range(last + 1, sent + 1) if (sent - sequence) * self.interval < 0.2) if last else 0
        times = [at for at, _, _ in replies]
        gaps = [after - before for before, after in zip(times, times[1:])]
        duplicates = len(replies) - len({sequence for _, sequence, _ in replies})
        order = [sequence for _, sequence, _ in replies]
        return {
            "sent": sent - pending,
            "lost": sent - pending - (received - duplicates),
            "out_of_order": sum(1 for before, after in zip(order, order[1:]) if after < before),
            # Of the time between two replies, what is beyond the usual.
            "interruption_ms": round((max(gaps) - statistics.median(gaps)) * 1e3, 2) if gaps else None,
            "first_ms": replies[0][2] if replies else None,
        }


class Stream:
    """A TCP stream from the data network to the UE: the longest time without an octet, and retransmitted segments."""

    def __init__(self, work):
        own = [sys.executable, os.path.abspath(__file__)]
        self.source = subprocess.Popen(within("dn", *own, "--source"), stdout=subprocess.PIPE, text=True)
        self.source.stdout.readline()
        self.sink = subprocess.Popen(within("ran", *own, "--sink"), stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        if not self.sink.stdout.readline():
            raise TourError("the UE's TCP connection to the data network failed")

    def stop(self):
        result = json.loads(self.sink.communicate("\n", timeout=20)[0])
        result.update(json.loads(self.source.communicate(timeout=20)[0]))
        return result


def run_source():
    """Sends a steady stream to the first client, until the client has ended."""
    server = socket.create_server((DN, PORT))
    print("listening", flush=True)
    client, _ = server.accept()
    client.settimeout(10)
    sent, began = 0, time.monotonic()
    retransmitted = 0
    try:
        while True:
            time.sleep(0.002)
            due = int((time.monotonic() - began) * STREAM) - sent
            if due > 0:
                client.sendall(bytes(due))
                sent += due
            retransmitted = retransmissions(client)
    except OSError:
        pass
    print(json.dumps({"sent_octets": sent, "retransmitted": retransmitted}))


def retransmissions(client):
    """tcpi_total_retrans of struct tcp_info (linux/tcp.h)."""
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return int.from_bytes(info[100:104], sys.byteorder)


def run_sink():
    """Receives the stream until standard input says something."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"ue1")
    client.settimeout(5)
    client.connect((DN, PORT))
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    received, longest, last = 0, 0.0, None
    client.settimeout(0.2)
    print("connected", flush=True)
    while not stop.is_set():
        try:
            octets = len(client.recv(65536))
        except TimeoutError:
            continue
        if octets == 0:
            break
        now = time.monotonic()
        longest = max(longest, now - (last or now))
        received, last = received + octets, now
    print(json.dumps({"received_octets": received, "stall_ms": round(longest * 1e3, 2)}))


def run_echo():
    """Returns datagrams of port REFLECTED, but for the last."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((DN, REFLECTED))
    print("listening", flush=True)
    for _ in range(EXCHANGES):
        data, client = server.recvfrom(2048)
        server.sendto(data, client)
    server.recvfrom(2048)


def run_client(pause):
    """Exchanges datagrams with that port, and sends one more after a pause of so many seconds."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"ue1")
    client.settimeout(5)
    client.connect((DN, REFLECTED))
    for number in range(EXCHANGES):
        client.send(bytes([number]))
        client.recv(2048)
    time.sleep(pause)
    client.send(b"late")


class Tour:
    def __init__(self, options):
        self.options, self.rows = options, []

    def add(self, name, latencies, ping=None, stream=None, **more):
        """A row: milliseconds of each time the step was taken, and what packets met meanwhile."""
        row = {"step": name, "times": len(latencies), **more}
        if latencies:
            row["ms"] = {"median": round(statistics.median(latencies), 2), "max": round(max(latencies), 2)}
        if ping:
            row["ping"] = {key: ping[key] for key in ("sent", "lost", "out_of_order", "interruption_ms")}
        if stream:
            row["tcp"] = stream
        self.rows.append(row)
        if not self.options.json:
            print(line(row), flush=True)

    def under_load(self, name, steps):
        """Takes steps while a ping and a TCP stream run."""
        ping, stream = Ping("ran", DN, "-I", "ue1"), Stream(self.options.work)
        time.sleep(0.5)
        latencies = []
        for step in steps:
            if step == "nothing":
                time.sleep(PAUSE)
                continue
            latencies.append(self.sim.step(step))
            time.sleep(PAUSE)
        time.sleep(0.5)
        self.add(name, latencies, ping.stop(), stream.stop())

    def run(self):
        if not self.options.json:
            print(HEAD)
        own = ["--gnbs", "2", "--profile", "register", "--tun", "ue", "--reflective-qos"]
        self.sim = Simulator(self.options, f"{self.options.work}/ran-1.json", *own)
        self.add("registration", [self.sim.profile["registration_ms"]["p50"]])
        session = self.sim.step("session")
        address = ue_address()
        subprocess.run(["ip", "-n", "ran", "route", "add", "10.211.0.0/24", "dev", "ue1"], check=True)
        ping = Ping("ran", DN, "-I", "ue1", "-c", "200")
        self.add("PDU session, IPv4", [session], ping.wait())
        self.under_load("no handover, to compare", ["nothing"] * HANDOVERS)
        self.page(address)
        self.under_load("Xn handover", ["xn"] * HANDOVERS)
        self.under_load("N2 handover", ["n2"] * HANDOVERS)
        self.under_load("there and back, Xn and N2", ["xn", "xn-back", "n2", "n2-back"] * 3)
        self.under_load("dual connectivity, and back", ["dc", "dc-back"] * 5)
        self.qos_flow(address)
        self.reflective_qos(address)
        self.side_tours()
        self.add("deregistration", [self.sim.step("deregister")])
        report = self.sim.end()
        if not self.options.json:
            print(f"{report['end_markers']} End Markers, {report['violations']['count']} violations of the specifications")
        return report

    def qos_flow(self, address):
        """The packets of the ping get a QoS flow with a guaranteed rate, and return to the default one, while they flow."""
        flow = ["--5qi", "1", "--guaranteed", "1 Mbps", "--flow", f"permit out 1 from {DN} to {address}"]
        ping, stream = Ping("ran", DN, "-I", "ue1"), Stream(self.options.work)
        time.sleep(0.5)
        latencies = []
        for _ in range(HANDOVERS):
            for command in (["add", "imsi-999700000000001", "1", "tour", *flow], ["remove", "imsi-999700000000001", "1", "tour"]):
                began = time.monotonic()
                self.pith("qos", *command)
                latencies.append((time.monotonic() - began) * 1e3)
                time.sleep(PAUSE)
        time.sleep(0.5)
        self.add("GBR flow added, removed live", latencies, ping.stop(), stream.stop())

    def reflective_qos(self, address):
        """A server's packets have the RQI: the UE's next packets to it take their QoS flow, until the RQ timer has expired."""
        rule = ["--5qi", "7", "--reflective", "--flow", f"permit out 17 from {DN} {REFLECTED} to {address}"]
        began = time.monotonic()
        self.pith("qos", "add", "imsi-999700000000001", "1", "reflected", *rule)
        latencies = [(time.monotonic() - began) * 1e3]
        flows = self.uplink_flows(address)
        server = subprocess.Popen(within("dn", sys.executable, os.path.abspath(__file__), "--echo"), stdout=subprocess.PIPE, text=True)
        server.stdout.readline()
        client = [sys.executable, os.path.abspath(__file__), "--client", str(RQ_TIMER + 1)]
        done = subprocess.run(within("ran", *client), capture_output=True, text=True)
        server.kill()
        if done.returncode:
            raise TourError(f"packets to port {REFLECTED}: {done.stderr}")
        now = self.uplink_flows(address)
        sent = {qfi: now[qfi] - flows.get(qfi, 0) for qfi in now}
        # The first packet, and that after the RQ timer has expired, are in the default flow.
        if sent.get(2) != EXCHANGES - 1 or sent.get(1, 0) < 2:
            raise TourError(f"reflective QoS: uplink packets by flow {sent}")
        self.pith("qos", "remove", "imsi-999700000000001", "1", "reflected")
        self.add("reflective QoS", latencies)

    def uplink_flows(self, address):
        """The uplink packets that the UPF has got, by QFI."""
        flows = json.loads(self.pith("--json", "upf", "counters", address))
        return {flow["qfi"]: flow["offered"]["packets"] for flow in flows if flow["direction"] == "uplink"}

    def pith(self, *command):
        command = [f"{self.options.bin}/pith", "--config", f"{self.options.work}/pith.yaml", *command]
        done = subprocess.run(within("core", *command), capture_output=True, text=True)
        if done.returncode:
            raise TourError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def page(self, address):
        """The UE is idle, and a ping of the data network pages it."""
        idle, first, lost, sent = [], [], 0, 0
        for _ in range(5):
            idle.append(self.sim.step("idle"))
            time.sleep(0.2)
            ping = Ping("dn", address, "-c", "20", interval=0.02).wait()
            first.append(ping["first_ms"])
            lost, sent = lost + ping["lost"], sent + ping["sent"]
            time.sleep(0.2)
        self.add("release to idle", idle)
        self.add("paging, to the first reply", first, {"sent": sent, "lost": lost, "out_of_order": None, "interruption_ms": None})

    def side_tours(self):
        """Other UEs, at other gNBs, while the first UE is registered."""
        self.side_tour("IPv6 session", 10, "--supi", "imsi-999700000000002", "--pdu-type", "ipv6", "--ping", DN6)
        slices = ["--slice", "1", "--slice", "2", "--each-slice"]
        self.side_tour("two slices, a session in each", 20, "--supi", "imsi-999700000000003", *slices, "--ping", DN)

    def side_tour(self, name, gnb, *arguments):
        gnbs = ["--gnbs", "2", "--gnb-id", str(gnb), "--count", "100", "--interval", "5"]
        steps = ["--profile", "moving", "--then", "deregister"]
        result = f"{self.options.work}/ran-{gnb}.json"
        side = Simulator(self.options, result, *gnbs, *steps, *arguments, address="10.210.0.3")
        report = side.end()
        if not report["passed"]:
            raise TourError(f"{name}: {json.dumps({key: report[key] for key in ('failures', 'violations')})}")
        ping = report["ping"]
        sessions = report["session_ms"]
        row = {"sent": ping["sent"], "lost": ping["lost"], "out_of_order": None, "interruption_ms": None}
        self.add(name, [sessions["p50"]] * sessions["count"], row)


def ue_address():
    text = subprocess.run(["ip", "-n", "ran", "-4", "-o", "addr", "show", "dev", "ue1"], capture_output=True, text=True, check=True).stdout
    return re.search(r"inet ([\d.]+)", text).group(1)


HEAD = f"{'step':<30} {'times':>5} {'ms':>8} {'max ms':>8} {'pings':>6} {'lost':>5} {'longest gap ms':>15} {'TCP stall ms':>13} {'resent':>7}"


def line(row):
    show = lambda value, form="": "" if value is None else format(value, form)
    ms, ping, tcp = row.get("ms", {}), row.get("ping", {}), row.get("tcp", {})
    return (f"{row['step']:<30} {row['times'] or '':>5} {show(ms.get('median'), '.2f'):>8} {show(ms.get('max'), '.2f'):>8} {show(ping.get('sent')):>6}"
            f" {show(ping.get('lost')):>5} {show(ping.get('interruption_ms'), '.2f'):>15} {show(tcp.get('stall_ms'), '.2f'):>13} {show(tcp.get('retransmitted')):>7}")


def verdict(rows, report):
    """What is wrong with the result, as sentences."""
    wrong = [f"{row['step']}: {row['ping']['lost']} pings lost" for row in rows if row.get("ping", {}).get("lost")]
    wrong += [f"{row['step']}: pings out of order" for row in rows if row.get("ping", {}).get("out_of_order")]
    if report["violations"]["count"]:
        wrong.append(f"violations: {json.dumps(report['violations']['by_clause'])}")
    if report["failures"]:
        wrong.append(f"failures: {json.dumps(report['failures'])}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release")
    parser.add_argument("--work", default=".")
    parser.add_argument("--json", help="write the result to this file, and no table")
    parser.add_argument("--source", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--sink", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.source or options.sink:
        return run_source() if options.source else run_sink()
    if options.echo or options.client:
        return run_echo() if options.echo else run_client(options.client)
    tour = Tour(options)
    try:
        report = tour.run()
    except TourError as error:
        sys.exit(f"tour: {error}")
    wrong = verdict(tour.rows, report)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"steps": tour.rows, "endMarkers": report["end_markers"], "wrong": wrong}, file, indent=1)
    for sentence in wrong:
        print(f"tour: {sentence}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
