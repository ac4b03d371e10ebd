#!/usr/bin/env python3
"""Control-plane benchmark: UEs that all start at once register and open a session.

Core and simulator are separate processes; SCTP is real, on the loopback of a network namespace that
this program makes and removes. CPU is that of the core alone, by the scheduler's own clock
(/proc/PID/task/*/schedstat, nanoseconds), from before the first UE starts until 50 ms after the last is
done; the simulator reads it, so that NG Setup and the departure of the gNB are not in it.

Writes target/bench/control.json and prints a table.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

RUNS = [1, 32, 100, 256, 1000]


def rss_kb(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


class Core:
    """`pith up --test-network` in a namespace."""

    def __init__(self, binary, namespace, subscribers):
        self.log = open("target/bench/core.log", "w")
        command = ["ip", "netns", "exec", namespace, binary, "up", "--test-network", "--subscribers", str(subscribers)]
        environment = dict(os.environ, PITH_CONFIG="")
        environment.pop("PITH_CONFIG")
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log, env=environment)
        self.start_ms = self.wait_until_ready()
        self.pid = self.process.pid

    def wait_until_ready(self):
        for _ in range(200):
            with open("target/bench/core.log") as file:
                found = re.search(r"ready in (\d+) ms", file.read())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit("bench: the core does not get ready; see target/bench/core.log")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


def simulate(binary, namespace, ues, core):
    command = ["ip", "netns", "exec", namespace, binary, "run", "--test-network", "--amf", "127.0.0.5:38412",
               "--ues", str(ues), "--gnbs", "1", "--at-once", "--json", "--watch-cpu", str(core)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"bench: the simulator gave no result:\n{done.stdout}\n{done.stderr}")


def run(options, namespace, ues):
    core = Core(options.pith, namespace, ues)
    try:
        time.sleep(1.0)
        idle_kb = rss_kb(core.pid)
        result = simulate(options.ran, namespace, ues, core.pid)
        after_kb = rss_kb(core.pid)
    finally:
        core.stop()
    row = {
        "ues": ues,
        "ok": result["ok"],
        "registration_ms": {key: result["registration_ms"][key] for key in ("p50", "p99")},
        "session_ms": {key: result["session_ms"][key] for key in ("p50", "p99")},
        "total_s": result["total_s"],
        "core_cpu_ms_per_ue": round(result["watched_cpu_ms"] / ues, 4),
        "rss_mb": round(after_kb / 1024, 1),
    }
    return core.start_ms, idle_kb, row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pith", default="target/release/pith")
    parser.add_argument("--ran", default="target/release/pith-ran")
    parser.add_argument("--ues", type=int, nargs="*", default=RUNS)
    options = parser.parse_args()
    os.makedirs("target/bench", exist_ok=True)
    namespace = f"pith-bench-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    rows, starts, idles = [], [], []
    try:
        print(f"{'UEs':>5} {'ok':>5} {'reg p50':>8} {'reg p99':>8} {'ses p50':>8} {'ses p99':>8} {'total s':>8} {'CPU ms/UE':>10} {'RSS MB':>7}")
        for ues in options.ues:
            start_ms, idle_kb, row = run(options, namespace, ues)
            rows.append(row), starts.append(start_ms), idles.append(idle_kb)
            registration, session = row["registration_ms"], row["session_ms"]
            print(f"{ues:>5} {row['ok']:>5} {registration['p50']:>8.2f} {registration['p99']:>8.2f} {session['p50']:>8.2f}"
                  f" {session['p99']:>8.2f} {row['total_s']:>8.3f} {row['core_cpu_ms_per_ue']:>10.3f} {row['rss_mb']:>7.1f}", flush=True)
    finally:
        subprocess.run(["ip", "netns", "del", namespace])
    result = {"start_ms": sorted(starts)[len(starts) // 2], "idle_rss_mb": round(max(idles) / 1024, 1), "runs": rows}
    with open("target/bench/control.json", "w") as file:
        json.dump(result, file, indent=1)
    print(f"start {result['start_ms']} ms, idle {result['idle_rss_mb']} MB; written to target/bench/control.json")


if __name__ == "__main__":
    main()
