#!/usr/bin/env python3
"""Control-plane benchmark: UEs that all start at once register and open a session.

Core and simulator are separate processes; SCTP is real, on the loopback of a network namespace that
this program makes and removes. CPU is that of the core alone, by the scheduler's own clock
(/proc/PID/task/*/schedstat, nanoseconds), from before the first UE starts until 50 ms after the last is
done; the simulator reads it, so that NG Setup and the departure of the gNB are not in it.

Each number of UEs is measured several times, in turns with contexts stored (`residency: durable` over a file, what `pith up` does
by default) and without (subscribers in memory); the table has medians, and for CPU the range. Then come UEs with subscribers in a
file and contexts that are not stored, or stored later, and with an NF in each process: over TLS with access tokens, as `pith nf` does by default,
and in cleartext without tokens. Of several processes, CPU is measured from before the simulator starts until it has ended.

Then, with the default and without stored contexts, UEs that are registered perform each procedure of mobility at once: service request, paging
by a downlink packet, Xn handover and N2 handover, several times, one procedure after the other. Latency is that of a UE: of paging from the packet of the data
network to its delivery, of an Xn handover from the UE's departure to PATH SWITCH REQUEST ACKNOWLEDGE, of an N2 handover from HANDOVER REQUIRED to HANDOVER NOTIFY.
CPU is from before the first UE until 50 ms after the last.

Writes target/bench/control.json and prints tables.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = [1, 32, 100, 256, 1000]
# UEs of the procedures of mobility, and how often each performs them in a run.
MOBILITY = {1: 40, 32: 10, 256: 4, 1000: 2}
# The steps of a round, and those of them that have a row. The UPF learns that a UE is idle after its gNB (TS 23.502 4.2.6); until then it
# forwards packets to the gNB, which drops them. So the packets that page come later.
ROUND = ["idle", "service", "idle", "wait:300", "page", "xn", "n2"]
PROCEDURES = ["service request", "paging", "Xn handover", "N2 handover"]
# Aims: core CPU of a handover, and paging from the packet to its delivery with one UE.
HANDOVER_MS, PAGING_MS = 0.1, 3.0
# UEs of the cases that compare settings.
COMPARED = 1000
RESULT = "target/bench/control.json"
NFS = ["nrf", "udr", "upf", "udm", "ausf", "pcf", "nssf", "smf", "amf"]
# Settings of each case, and whether each NF is a process of its own.
DEFAULT, MEMORY = "file, durable", "memory, none"
CASES = {
    DEFAULT: (["store.path={work}/pith.db"], False),
    MEMORY: ([], False),
    "file, none": (["store.path={work}/pith.db", "residency=none"], False),
    "file, soft": (["store.path={work}/pith.db", "residency=soft"], False),
    "split, TLS and tokens": (["store.path={work}/pith.db", "sbi.pki={work}/pki"], True),
    "split, cleartext": (["store.path={work}/pith.db", "sbi.security=none", "sbi.oauth2='off'"], True),
}


def rss_kb(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def cpu_ms(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                total += int(file.read().split()[0])
        except FileNotFoundError:
            pass
    return total / 1e6


class Process:
    """A process of Pith in a namespace."""

    def __init__(self, command, namespace, log):
        self.name = log
        self.log = open(f"target/bench/{log}.log", "w")
        environment = {key: value for key, value in os.environ.items() if key != "PITH_CONFIG"}
        command = ["ip", "netns", "exec", namespace, *command]
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log, env=environment)
        self.pid = self.process.pid

    def wait_until(self, text):
        for _ in range(400):
            with open(f"target/bench/{self.name}.log") as file:
                if found := re.search(text, file.read()):
                    return found
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"bench: the core does not get ready; see target/bench/{self.name}.log")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


class Core:
    """`pith up --test-network`, or `pith nf` for each NF."""

    def __init__(self, binary, namespace, subscribers, case):
        settings, split = CASES[case]
        self.work = tempfile.mkdtemp()
        settings = [part for setting in settings for part in ("--set", setting.format(work=self.work))]
        network = ["--test-network", "--subscribers", str(subscribers)]
        self.split = split
        if not split:
            self.processes = [Process([binary, "up", *network, *settings], namespace, "core")]
            self.start_ms = int(self.processes[0].wait_until(r"ready in (\d+) ms").group(1))
            return
        extra = {"udr": network}
        self.processes = [Process([binary, "nf", nf, *extra.get(nf, []), *settings], namespace, f"core-{nf}") for nf in NFS]
        for process in self.processes:
            if process.name != "core-upf":
                process.wait_until("ready in")
        self.processes[NFS.index("smf")].wait_until(" associated")
        self.start_ms = 0

    def rss_kb(self):
        return sum(rss_kb(process.pid) for process in self.processes)

    def cpu_ms(self):
        return sum(cpu_ms(process.pid) for process in self.processes)

    def stop(self):
        for process in reversed(self.processes):
            process.stop()
        shutil.rmtree(self.work)


def simulate(binary, namespace, ues, core, *extra, gnbs=1):
    command = ["ip", "netns", "exec", namespace, binary, "run", "--test-network", "--amf", "127.0.0.5:38412",
               "--ues", str(ues), "--gnbs", str(gnbs), "--at-once", "--json", *extra]
    if not core.split:
        command += ["--watch-cpu", str(core.processes[0].pid)]
    before = core.cpu_ms()
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    spent = core.cpu_ms() - before
    try:
        result = json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"bench: the simulator gave no result:\n{done.stdout}\n{done.stderr}")
    return result, result.get("watched_cpu_ms") or spent


def run(options, namespace, ues, case):
    core = Core(options.pith, namespace, ues, case)
    try:
        time.sleep(1.0)
        idle_kb = core.rss_kb()
        result, spent = simulate(options.ran, namespace, ues, core)
        after_kb = core.rss_kb()
    finally:
        core.stop()
    row = {
        "ues": ues,
        "ok": result["ok"],
        "registration_ms": {key: result["registration_ms"][key] for key in ("p50", "p99")},
        "session_ms": {key: result["session_ms"][key] for key in ("p50", "p99")},
        "total_s": result["total_s"],
        "core_cpu_ms_per_ue": round(spent / ues, 4),
        "rss_mb": round(after_kb / 1024, 1),
    }
    return core.start_ms, idle_kb, row


def run_mobility(options, namespace, ues, case):
    """All UEs perform each procedure at once, several times: a row for each."""
    core = Core(options.pith, namespace, ues, case)
    try:
        time.sleep(1.0)
        # The packets of paging come from this namespace, whose route to the UEs is the UPF's TUN interface.
        steps = ",".join(ROUND * MOBILITY.get(ues, 2))
        result, _ = simulate(options.ran, namespace, ues, core, "--then", steps, gnbs=2)
    finally:
        core.stop()
    if result["violations"]["count"]:
        print(f"bench: {result['violations']}", file=sys.stderr)
    return {name: mobility_row(ues, [step for step in result["steps"] if step["step"] == name]) for name in PROCEDURES}


def mobility_row(ues, steps):
    """The rounds of one run: medians of latency, the mean of CPU."""
    return {
        "ues": ues,
        "ok": min(step["ok"] for step in steps),
        "rounds": len(steps),
        "ms": {key: round(statistics.median(step["ms"][key] for step in steps), 4) for key in ("p50", "p99")},
        "core_cpu_ms_per_ue": round(statistics.mean(step["watched_cpu_ms_per_ue"] for step in steps), 4),
    }


def median_mobility(rows):
    """Medians of several runs."""
    cpu = [row["core_cpu_ms_per_ue"] for row in rows]
    return {
        "ues": rows[0]["ues"],
        "ok": min(row["ok"] for row in rows),
        "runs": len(rows),
        "rounds": rows[0]["rounds"],
        "ms": {key: statistics.median(row["ms"][key] for row in rows) for key in ("p50", "p99")},
        "core_cpu_ms_per_ue": statistics.median(cpu),
        "core_cpu_ms_range": [min(cpu), max(cpu)],
    }


def bench_mobility(options, namespace):
    """The rows of the procedures of mobility, as a table, and as a list for the result."""
    rows = []
    print(f"\n{'contexts':<18} {'procedure':<16} {'UEs':>5} {'ok':>5} {'ms p50':>9} {'ms p99':>9} {'CPU ms/UE':>10} {'range':>17}")
    for case in (DEFAULT, MEMORY):
        for ues in options.mobility:
            runs = [run_mobility(options, namespace, ues, case) for _ in range(options.runs)]
            for name in PROCEDURES:
                row = {"case": case, "procedure": name, **median_mobility([run[name] for run in runs])}
                rows.append(row)
                low, high = row["core_cpu_ms_range"]
                print(f"{case:<18} {name:<16} {ues:>5} {row['ok']:>5} {row['ms']['p50']:>9.3f} {row['ms']['p99']:>9.3f}"
                      f" {row['core_cpu_ms_per_ue']:>10.4f} {low:>7.4f} to {high:<7.4f}", flush=True)
    judge_mobility(rows)
    return rows


def judge_mobility(rows):
    """The aims, for the default."""
    mine = [row for row in rows if row["case"] == DEFAULT]
    handovers = [row["core_cpu_ms_per_ue"] for row in mine if "handover" in row["procedure"] and row["ues"] == max(row["ues"] for row in mine)]
    paging = [row["ms"]["p50"] for row in mine if row["procedure"] == "paging" and row["ues"] == 1]
    if handovers:
        print(f"a handover takes {max(handovers):.4f} ms of core CPU, of {HANDOVER_MS} at most: {'reached' if max(handovers) <= HANDOVER_MS else 'MISSED'}")
    if paging:
        print(f"paging of one UE takes {paging[0]:.3f} ms, of {PAGING_MS} at most: {'reached' if paging[0] <= PAGING_MS else 'MISSED'}")


def median_row(rows):
    """Medians of runs of one case, and the range of its CPU."""
    middle = lambda values: statistics.median(values)
    return {
        "ues": rows[0]["ues"],
        "ok": min(row["ok"] for row in rows),
        "runs": len(rows),
        **{name: {key: middle([row[name][key] for row in rows]) for key in ("p50", "p99")} for name in ("registration_ms", "session_ms")},
        **{name: middle([row[name] for row in rows]) for name in ("total_s", "core_cpu_ms_per_ue", "rss_mb")},
        "core_cpu_ms_range": [pick(row["core_cpu_ms_per_ue"] for row in rows) for pick in (min, max)],
    }


def print_row(row, name):
    registration, session, cpu = row["registration_ms"], row["session_ms"], row["core_cpu_ms_range"]
    print(f"{name:<22} {row['ues']:>5} {row['ok']:>5} {registration['p50']:>8.2f} {registration['p99']:>8.2f} {session['p50']:>8.2f}"
          f" {session['p99']:>8.2f} {row['total_s']:>8.3f} {row['core_cpu_ms_per_ue']:>10.3f} {cpu[0]:>6.3f} to {cpu[1]:<6.3f} {row['rss_mb']:>7.1f}", flush=True)


def write_result(result):
    with open(RESULT, "w") as file:
        json.dump(result, file, indent=1)


def main_mobility(options, namespace):
    try:
        mobility = bench_mobility(options, namespace)
    finally:
        subprocess.run(["ip", "netns", "del", namespace])
    result = {}
    if os.path.exists(RESULT):
        with open(RESULT) as file:
            result = json.load(file)
    write_result({**result, "mobility": mobility})
    print(f"written to {RESULT}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pith", default="target/release/pith")
    parser.add_argument("--ran", default="target/release/pith-ran")
    parser.add_argument("--ues", type=int, nargs="*", default=RUNS)
    parser.add_argument("--runs", type=int, default=5, help="of each case; the table has medians")
    parser.add_argument("--cases", nargs="*", choices=list(CASES)[2:], default=list(CASES)[2:], help="compared with the default")
    parser.add_argument("--mobility", type=int, nargs="*", default=list(MOBILITY), metavar="UES", help="UEs of the procedures of mobility")
    parser.add_argument("--only-mobility", action="store_true", help="only these; target/bench/control.json keeps its other rows")
    options = parser.parse_args()
    os.makedirs("target/bench", exist_ok=True)
    namespace = f"pith-bench-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    if options.only_mobility:
        return main_mobility(options, namespace)
    rows, compared, starts, idles = [], {}, [], []
    try:
        print(f"{'contexts':<22} {'UEs':>5} {'ok':>5} {'reg p50':>8} {'reg p99':>8} {'ses p50':>8} {'ses p99':>8} {'total s':>8} {'CPU ms/UE':>10} {'range':>16} {'RSS MB':>7}")
        swept = [DEFAULT, MEMORY]
        measured = {(case, ues): [] for case in swept for ues in options.ues}
        for _ in range(options.runs):
            for ues in options.ues:
                for case in swept:
                    start_ms, idle_kb, row = run(options, namespace, ues, case)
                    measured[case, ues].append(row)
                    if case == DEFAULT:
                        starts.append(start_ms), idles.append(idle_kb)
        for case in swept:
            for ues in options.ues:
                rows.append({"case": case, **median_row(measured[case, ues])})
                print_row(rows[-1], case)
        cost = [durable["core_cpu_ms_per_ue"] / none["core_cpu_ms_per_ue"] for durable, none in zip(rows, rows[len(options.ues):])]
        print(f"durable takes {min(cost):.2f} to {max(cost):.2f} times the CPU of none, median {statistics.median(cost):.2f}")
        others = {case: [] for case in options.cases}
        for _ in range(options.runs):
            for case in options.cases:
                others[case].append(run(options, namespace, COMPARED, case)[2])
        for case in options.cases:
            compared[case] = median_row(others[case])
            print_row(compared[case], case)
        mobility = bench_mobility(options, namespace)
    finally:
        subprocess.run(["ip", "netns", "del", namespace])
    secure, clear = compared.get("split, TLS and tokens"), compared.get("split, cleartext")
    if secure and clear:
        ratio = secure["core_cpu_ms_per_ue"] / clear["core_cpu_ms_per_ue"]
        print(f"TLS and tokens take {ratio:.2f} times the CPU of cleartext, of 1.3 at most: {'reached' if ratio <= 1.3 else 'MISSED'}")
    result = {"start_ms": statistics.median(starts), "idle_rss_mb": round(max(idles) / 1024, 1), "runs": rows[:len(options.ues)], "memory": rows[len(options.ues):], "cases": compared, "mobility": mobility}
    write_result(result)
    print(f"start {result['start_ms']} ms, idle {result['idle_rss_mb']} MB; written to {RESULT}")


if __name__ == "__main__":
    main()
