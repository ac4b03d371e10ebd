#!/usr/bin/env python3
"""Memory and CPU of a core with many registered UEs, and service requests among them.

For each number of UEs a new core: the control plane in one process (`pith nf` with all NFs), the UPF in another, so that the
memory of its tables is shown apart. The simulator is one process with several gNBs. UEs register in a closed loop, each
establishes a session and becomes idle. Then random idle UEs request service at a fixed rate; each is released as soon as its
user plane is active. SCTP and PFCP are real, on the loopback of a network namespace that this program makes and removes.

`rss_mb` is the control plane's resident memory when all UEs are idle, `upf_mb` the UPF's, `ran_mb` the simulator's;
`core_cpu_ms_per_ue` the control plane's CPU for a registration with a session and the release. The program stops before a
point for which the machine has too little memory. `service_idle_percent` is the machine's idle CPU time during service requests:
when it is near 0, their latency is the machine's queue.

Writes target/bench/scale.json and prints a table.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

UES = [1_000, 10_000, 100_000, 1_000_000]
CONTROL_PLANE = ["nrf", "udr", "udm", "ausf", "pcf", "nssf", "smf", "amf"]
# Memory of a UE in all three processes, for the check before a point; and what the machine needs besides.
NEEDED_BYTES, SPARE_MB = 18_000, 1_500
LIMITS = {"rss_mb": 10_240, "service_request_p99_ms": 20}


def rss_mb(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024


def available_mb():
    with open("/proc/meminfo") as file:
        return int(re.search(r"MemAvailable:\s+(\d+)", file.read()).group(1)) / 1024


class Idle:
    """The machine's idle CPU time, sampled while a point is measured: when it is near 0, latency is the machine's queue."""

    def __init__(self):
        self.samples = []

    def sample(self):
        with open("/proc/stat") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        self.samples.append((time.monotonic(), ticks[3] + ticks[4], sum(ticks)))

    def percent(self, seconds):
        """Idle percent of all CPUs in the last seconds before the newest sample."""
        end = self.samples[-1]
        begin = next((one for one in reversed(self.samples) if end[0] - one[0] >= seconds), self.samples[0])
        return round(100 * (end[1] - begin[1]) / max(end[2] - begin[2], 1), 1)


class Process:
    def __init__(self, command, namespace, name):
        self.path = f"target/bench/scale-{name}.log"
        self.log = open(self.path, "w")
        environment = {key: value for key, value in os.environ.items() if key != "PITH_CONFIG"}
        command = ["ip", "netns", "exec", namespace, *command]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
        self.pid = self.process.pid

    def wait_until(self, text, seconds):
        for _ in range(seconds * 20):
            with open(self.path) as file:
                if re.search(text, file.read()):
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"bench: '{text}' is not in {self.path}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.log.close()


def settings(ues):
    values = [
        f"amf.max_ues={max(1000, ues + ues // 8)}",
        f"upf.sessions={min(ues + 1000, 1 << 20)}",
        "smf.data_networks=[{name: internet, pool: 10.0.0.0/9, gateway: 10.0.0.1}]",
        "upf.nat=false", "upf.datapath=portable",
        "sbi.security=none", "sbi.oauth2='off'",
    ]
    return [part for value in values for part in ("--set", value)]


def measure(options, namespace, ues):
    work = tempfile.mkdtemp()
    extra = [part for setting in options.set for part in ("--set", setting)]
    # A store of its own: contexts of an earlier run would be restored.
    common = ["--set", f"store.path={work}/pith.db", "--set", f"sbi.pki={work}/pki", *settings(ues), *extra]
    control = [options.pith, "nf", *CONTROL_PLANE, "--test-network", "--subscribers", str(ues), *common]
    processes = []
    try:
        processes.append(Process([options.pith, "nf", "upf", *common], namespace, "upf"))
        processes.append(Process(control, namespace, "core"))
        upf, core = processes
        core.wait_until("ready in", options.start_seconds)
        core.wait_until(" associated", 30)
        empty_mb, upf_empty_mb = rss_mb(core.pid), rss_mb(upf.pid)
        result = f"{work}/ran.json"
        simulator = Process(
            [options.ran, "run", "--test-network", "--amf", "127.0.0.5:38412", "--ues", str(ues), "--gnbs", str(options.gnbs),
             "--profile", "parked", "--in-flight", str(options.in_flight), "--services", str(options.services),
             "--service-seconds", str(options.service_seconds), "--watch-cpu", str(core.pid),
             "--timeout", str(options.timeout), "--quiet", "--hold", "--json", result], namespace, "ran")
        processes.append(simulator)
        idle = Idle()
        idle.sample()
        while not os.path.exists(result) and simulator.process.poll() is None:
            time.sleep(0.5)
            idle.sample()
        time.sleep(1.0)
        with open(result) as file:
            report = json.load(file)
        services = report.get("services") or {}
        return {
            "ues": ues,
            "ok": report["ok"],
            "rss_mb": round(report["watched_rss_mb"], 1),
            "rss_kb_per_ue": round((report["watched_rss_mb"] - empty_mb) * 1024 / ues, 2),
            "rss_after_services_mb": round(rss_mb(core.pid), 1),
            "upf_mb": round(rss_mb(upf.pid), 1),
            "upf_kb_per_ue": round((rss_mb(upf.pid) - upf_empty_mb) * 1024 / ues, 2),
            "ran_mb": round(rss_mb(simulator.pid), 1),
            "empty_mb": round(empty_mb, 1),
            "total_s": report["total_s"],
            "registration_p99_ms": report["registration_ms"]["p99"],
            "core_cpu_ms_per_ue": round(report["watched_cpu_ms"] / ues, 4),
            "services_per_s": round(services.get("per_second", 0), 1),
            "service_request_p50_ms": report["service_ms"]["p50"],
            "service_request_p99_ms": report["service_ms"]["p99"],
            "service_cpu_ms": services.get("watched_cpu_ms_per_request"),
            "service_idle_percent": idle.percent(options.service_seconds),
            "failures": report["failures"],
            "violations": report["violations"]["count"],
        }
    finally:
        for process in reversed(processes):
            process.stop()
        shutil.rmtree(work)


def print_point(point):
    print(f"{point['ues']:>9} {point['ok']:>9} {point['rss_mb']:>9.0f} {point['rss_kb_per_ue']:>8.2f} {point['upf_mb']:>8.0f} {point['ran_mb']:>8.0f}"
          f" {point['core_cpu_ms_per_ue']:>10.3f} {point['services_per_s']:>9.0f} {point['service_request_p50_ms']:>8.2f}"
          f" {point['service_request_p99_ms']:>8.2f} {point['service_idle_percent']:>7.0f}", flush=True)
    for what, count in point["failures"].items():
        print(f"          {count} {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pith", default="target/release/pith")
    parser.add_argument("--ran", default="target/release/pith-ran")
    parser.add_argument("--ues", type=int, nargs="*", default=UES)
    parser.add_argument("--gnbs", type=int, default=8)
    parser.add_argument("--in-flight", type=int, default=64, help="UEs that register at once")
    parser.add_argument("--services", type=float, default=2500, help="service requests a second")
    parser.add_argument("--service-seconds", type=int, default=30)
    parser.add_argument("--timeout", type=int, default=7200)
    parser.add_argument("--start-seconds", type=int, default=300)
    parser.add_argument("--set", action="append", default=[], help="a setting of the core")
    options = parser.parse_args()
    os.makedirs("target/bench", exist_ok=True)
    namespace = f"pith-scale-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    points, skipped = [], []
    try:
        print(f"{'UEs':>9} {'ok':>9} {'core MB':>9} {'kB/UE':>8} {'UPF MB':>8} {'ran MB':>8} {'CPU ms/UE':>10} {'service/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'idle %':>7}", flush=True)
        for ues in options.ues:
            needed = ues * NEEDED_BYTES / (1 << 20) + SPARE_MB
            if available_mb() < needed:
                skipped.append(ues)
                print(f"{ues:>9} needs {needed:.0f} MB, and {available_mb():.0f} MB are available: skipped")
                continue
            points.append(measure(options, namespace, ues))
            print_point(points[-1])
    finally:
        subprocess.run(["ip", "netns", "del", namespace])
    with open("target/bench/scale.json", "w") as file:
        json.dump({"points": points, "skipped": skipped}, file, indent=1)
    largest = points[-1] if points else None
    if largest:
        kept = all(largest[key] <= limit for key, limit in LIMITS.items()) and largest["ok"] == largest["ues"]
        print(f"{largest['ues']} UEs: 10 GB and 20 ms {'kept' if kept else 'MISSED'}; written to target/bench/scale.json")


if __name__ == "__main__":
    main()
