#!/usr/bin/env python3
"""Processes of Pith that are killed (kill -9) under load, again and again.

`real`: one process (`pith up`) is killed at random moments, `--kills` times, under 500 UEs a second: one half of the UEs are
registered with a session, and alternate between idle and connected; the others register, establish a session and deregister. No
UE may lose its registration or session or be sent a NAS COUNT twice, and in the end exactly the sessions of the registered UEs
exist. Then a core with 100,000 idle UEs is killed, and the time until the first service request is measured.

`split`: each NF has a process of its own. In the midst of a closed loop of service requests one process is killed and started
again at once. The gap is the longest time without an accepted service request.

Simulator and core are separate processes; SCTP and PFCP are real, on the loopback of a network namespace that this program makes
and removes. Writes target/bench/kill-real.json, or target/bench/kill-split.json and kill-split.svg, and prints a table.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import control
import plot

AMF = "127.0.0.5:38412"
# UEs that stay registered, and those that come and go; procedures of both together are 500 a second.
STAYING, PASSING, PAUSE_MS = 1000, 300, 2500
# Seconds from the last kill to the end of the load: longer than T3510, T3511 and T3521, after which UEs try again.
CALM = 40
# Seconds of a start, at most on average.
START = 0.5


class Core:
    """A core whose processes can be killed and started again."""

    def __init__(self, options, namespace, nfs, subscribers, settings=()):
        self.options, self.namespace = options, namespace
        self.work = tempfile.mkdtemp()
        shared = [f"store.path={self.work}/pith.db", f"sbi.pki={self.work}/pki", f"api.socket={self.work}/api.sock", *settings]
        self.settings = [part for setting in shared for part in ("--set", setting)]
        self.nfs, self.subscribers, self.processes = nfs, subscribers, {}
        for nf in nfs:
            self.start(nf)
        if "smf" in self.processes and "upf" in self.processes:
            self.processes["smf"].wait_until(" associated")

    def start(self, nf):
        """Starts a process, and waits until it is ready; returns its time."""
        command = [self.options.pith, "up"] if nf == "up" else [self.options.pith, "nf", nf]
        network = ["--test-network", "--subscribers", str(self.subscribers)] if nf in ("up", "udr") else []
        name = f"kill-{nf}"
        began = time.time()
        self.processes[nf] = control.Process([*command, *network, *self.settings], self.namespace, name)
        if nf != "upf":
            self.processes[nf].wait_until(r"ready in (\d+) ms")
        return time.time() - began

    def kill(self, nf):
        process = self.processes[nf]
        process.process.send_signal(signal.SIGKILL)
        process.process.wait()
        process.log.close()

    def ask(self, *words):
        command = ["ip", "netns", "exec", self.namespace, self.options.pith, "--json", *words, "--set", f"api.socket={self.work}/api.sock"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def stop(self):
        for process in reversed(self.processes.values()):
            process.stop()
        shutil.rmtree(self.work)


def simulate(options, namespace, name, *arguments):
    """Starts a simulator; its result is in target/bench/NAME.json."""
    command = ["ip", "netns", "exec", namespace, options.ran, "run", "--test-network", "--amf", AMF, "--reconnect", "--persistent",
               "--quiet", "--json", f"target/bench/{name}.json", *map(str, arguments)]
    with open(f"target/bench/{name}.log", "w") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def result(simulator, name, seconds):
    simulator.wait(seconds)
    with open(f"target/bench/{name}.json") as file:
        return json.load(file)


def real(options, namespace):
    """Kills under load, and what the UEs say of it."""
    core = Core(options, namespace, ["up"], STAYING + PASSING, ["workers=2", "amf.timers.t3502=20s"])
    rng = random.Random(options.seed)
    load = 10 + options.kills * (options.interval + START) + CALM
    end = time.time() + load - CALM
    common = ["--pause", PAUSE_MS, "--duration", int(load), "--timeout", int(load + 120), "--rate", 250]
    staying = simulate(options, namespace, "kill-staying", "--local-n2", "127.0.0.2", "--gnbs", 2, "--ues", STAYING, "--profile", "idle", *common)
    passing = simulate(options, namespace, "kill-passing", "--local-n2", "127.0.0.3", "--gnbs", 2, "--gnb-id", 11, "--ues", PASSING,
                       "--supi", f"imsi-99970{STAYING + 1:010}", "--profile", "deregister", *common)
    time.sleep(10)
    ready_s = []
    try:
        while len(ready_s) < options.kills and time.time() < end:
            time.sleep(rng.uniform(0, 2 * options.interval))
            if core.processes["up"].process.poll() is not None:
                sys.exit("kill: the core ended by itself; see target/bench/kill-up.log")
            core.kill("up")
            ready_s.append(core.start("up"))
        stays, passes = result(staying, "kill-staying", load + 180), result(passing, "kill-passing", 180)
        time.sleep(3)
        ues, sessions = core.ask("ue", "list"), core.ask("session", "list")
        restored = core.ask("status").get("contexts")
    finally:
        for simulator in (staying, passing):
            simulator.poll() is None and simulator.kill()
        core.stop()
    row = {
        "kills": len(ready_s),
        "procedures": sum(of[name]["count"] for of in (stays, passes) for name in ("registration_ms", "session_ms", "service_ms", "deregistration_ms")),
        "ready_ms": {"p50": round(statistics.median(ready_s) * 1e3, 1), "max": round(max(ready_s) * 1e3, 1)},
        "begun_again": stays["lost_connections"] + passes["lost_connections"],
        "staying": {key: stays[key] for key in ("ues", "ok", "failed", "failures", "violations")},
        "registrations_of_staying": stays["registration_ms"]["count"],
        "passing": {key: passes[key] for key in ("ues", "ok", "failed", "failures", "violations")},
        "ues_at_end": sum(ue["rm"] == "RM-REGISTERED" for ue in ues),
        "sessions_at_end": len(sessions),
        "contexts": restored,
    }
    return row


def first_service(options, namespace, ues):
    """Kills a core with that many idle UEs, and requests service as soon as it accepts an association."""
    core = Core(options, namespace, ["up"], ues, ["workers=2", "amf.max_ues=1048576", "smf.data_networks=[{name: internet, pool: 10.64.0.0/12}]"])
    try:
        parked = simulate(options, namespace, "kill-parked", "--local-n2", "127.0.0.2", "--gnbs", 8, "--ues", ues, "--profile", "parked", "--in-flight", 64,
                          "--services", 100, "--service-seconds", 30, "--timeout", 900, "--timeline", "target/bench/kill-parked.csv")
        # A UE has four documents; the list of sessions is long.
        while core.ask("status")["contexts"]["operations"]["writes"] < 4 * ues or len(core.ask("session", "list")) < ues:
            if parked.poll() is not None:
                sys.exit("kill: the simulator ended; see target/bench/kill-parked.log")
            time.sleep(5)
        time.sleep(5)
        core.kill("up")
        killed = time.time()
        ready_s = core.start("up")
        report = result(parked, "kill-parked", 600)
    finally:
        parked.poll() is None and parked.kill()
        core.stop()
    with open("target/bench/kill-parked.csv") as file:
        accepted = sorted(float(line.split(",")[0]) for line in file)
    first = next((at for at in accepted if at > killed), None)
    return {"ues": ues, "ready_s": round(ready_s, 3), "first_service_s": first and round(first - killed, 3), "failed": report["failed"],
            "failures": report["failures"], "services": report["services"]}


def split(options, namespace, nf):
    """One process of nine is killed in a closed loop of service requests."""
    core = Core(options, namespace, control.NFS, options.ues)
    simulator = simulate(options, namespace, f"kill-{nf}", "--local-n2", "127.0.0.2", "--gnbs", 2, "--ues", options.ues, "--profile", "idle", "--pause", 10,
                         "--duration", options.at + options.after, "--timeout", options.at + options.after + 60, "--timeline", f"target/bench/kill-{nf}.csv")
    try:
        began = time.time()
        time.sleep(options.at)
        core.kill(nf)
        killed = time.time()
        ready_s = core.start(nf)
        report = result(simulator, f"kill-{nf}", options.after + 120)
    finally:
        simulator.poll() is None and simulator.kill()
        core.stop()
    with open(f"target/bench/kill-{nf}.csv") as file:
        points = sorted(tuple(map(float, line.split(","))) for line in file)
    around = [at for at, _ in points if killed - 1 < at < killed + options.after - 1]
    gap = max((after - before for before, after in zip(around, around[1:])), default=None)
    before = [latency for at, latency in points if began + 5 < at < killed]
    after = [latency for at, latency in points if killed <= at]
    p99 = lambda values: round(statistics.quantiles(values, n=100)[98], 2) if len(values) > 100 else None
    return {"nf": nf, "gap_s": gap and round(gap, 3), "ready_s": round(ready_s, 3), "services": len(points), "p99_before_ms": p99(before), "p99_after_ms": p99(after),
            "max_after_ms": max(after, default=None), "failed": report["failed"], "failures": report["failures"],
            "violations": report["violations"]["count"]}, [(at - killed, latency) for at, latency in points]


def draw(panels, target):
    """Latency over time, a panel for each NF: the median and the maximum of each tenth of a second."""
    width, height, left, top, out = 760, 90, 60, 10, []
    for name, points in panels.items():
        near = [(at, latency) for at, latency in points if -5 <= at <= 10]
        highest = max([latency for _, latency in near] + [1])
        x = lambda at: left + (at + 5) / 15 * (width - left - 20)
        y = lambda latency: top + 20 + height * (1 - min(latency, highest) / highest)
        out.append(f'<text x="{left}" y="{top + 14}" font-weight="bold">{name} killed at 0 s</text>')
        out.append(f'<text x="{left - 6}" y="{y(highest) + 10:.0f}" text-anchor="end">{highest:.0f} ms</text>')
        out.append(f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{y(highest):.1f}" y2="{y(0):.1f}" stroke="#d1603d"/>')
        out.append(f'<line x1="{x(-5)}" x2="{x(10)}" y1="{y(0):.1f}" y2="{y(0):.1f}" stroke="#999"/>')
        for second in range(-5, 11):
            out.append(f'<text x="{x(second):.1f}" y="{y(0) + 14:.1f}" text-anchor="middle">{second} s</text>')
        slots = {}
        for at, latency in near:
            slots.setdefault(int((at + 5) * 10), []).append(latency)
        for slot, latencies in slots.items():
            at = slot / 10 - 5 + 0.05
            out.append(f'<circle cx="{x(at):.1f}" cy="{y(max(latencies)):.1f}" r="2" fill="{plot.COLOURS[1]}"/>')
            out.append(f'<circle cx="{x(at):.1f}" cy="{y(statistics.median(latencies)):.1f}" r="2" fill="{plot.COLOURS[0]}"/>')
        top += height + 50
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" font-family="sans-serif" font-size="11">'
    with open(target, "w") as file:
        file.write("\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *out, "</svg>\n"]))


def run_real(options, namespace):
    row = real(options, namespace)
    print(json.dumps(row, indent=1), flush=True)
    rows = {"load": row}
    if options.parked:
        rows["first_service"] = first_service(options, namespace, options.parked)
        print(json.dumps(rows["first_service"], indent=1), flush=True)
    with open("target/bench/kill-real.json", "w") as file:
        json.dump(rows, file, indent=1)
    stays, passes = row["staying"], row["passing"]
    lost = stays["failed"] + passes["failed"] + stays["violations"]["count"] + passes["violations"]["count"]
    is_kept = row["registrations_of_staying"] == STAYING and row["ues_at_end"] == STAYING and row["sessions_at_end"] == STAYING
    print(f"{row['kills']} kills: {'no UE lost, nothing left' if is_kept and not lost else 'BROKEN'}; written to target/bench/kill-real.json")
    return is_kept and not lost


def run_split(options, namespace):
    rows, panels = [], {}
    print(f"{'killed':<6} {'gap s':>7} {'ready s':>8} {'services':>9} {'p99 before':>11} {'after':>9} {'max ms':>9} {'failed':>7} {'violations':>11}")
    for nf in options.nfs:
        row, panels[nf] = split(options, namespace, nf)
        rows.append(row)
        print(f"{nf:<6} {row['gap_s'] or 0:>7} {row['ready_s']:>8} {row['services']:>9} {row['p99_before_ms'] or 0:>11} {row['p99_after_ms'] or 0:>9}"
              f" {row['max_after_ms'] or 0:>9.1f} {row['failed']:>7} {row['violations']:>11} {row['failures'] or ''}", flush=True)
    draw(panels, "target/bench/kill-split.svg")
    with open("target/bench/kill-split.json", "w") as file:
        json.dump(rows, file, indent=1)
    print("written to target/bench/kill-split.json and kill-split.svg")
    return all(row["failed"] == 0 and row["violations"] == 0 for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["real", "split"])
    parser.add_argument("--pith", default="target/release/pith")
    parser.add_argument("--ran", default="target/release/pith-ran")
    parser.add_argument("--kills", type=int, default=1000, help="real: kills (1000)")
    parser.add_argument("--interval", type=float, default=1.0, help="real: mean seconds from start to kill (1)")
    parser.add_argument("--parked", type=int, default=100_000, help="real: idle UEs of the core whose first service request is measured; 0: none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nfs", nargs="*", default=["amf", "smf", "ausf", "udm", "udr", "pcf", "nrf", "nssf", "upf"], help="split: processes to kill")
    parser.add_argument("--ues", type=int, default=32, help="split: UEs of the closed loop")
    parser.add_argument("--at", type=int, default=40, help="split: seconds until the kill")
    parser.add_argument("--after", type=int, default=20, help="split: seconds after it")
    options = parser.parse_args()
    os.makedirs("target/bench", exist_ok=True)
    namespace = f"pith-kill-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    try:
        passed = run_real(options, namespace) if options.what == "real" else run_split(options, namespace)
    finally:
        subprocess.run(["ip", "netns", "del", namespace])
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
