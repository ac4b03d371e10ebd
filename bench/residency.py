#!/usr/bin/env python3
"""Benchmark of residencies: UEs that all start at once register and open a session, with contexts in a server of Valkey or Redis.

Core and simulator are separate processes; with `--split` each NF is a process, too, and `embedded` differs from `shared`.  SCTP is real, on the loopback of a network namespace that this program makes and
removes. The server is started by this program on a Unix socket, without persistence, and stopped again. Every run has a new core
and an empty server. Runs of all cases alternate, so that a change of the machine's load meets all.

Operations are documents read, written and deleted; requests are those on the wire; bytes are those in both directions with the
protocol. CPU is that of the core alone; that of the server is shown apart. In the first table a procedure is a registration or the
establishment of a session, half of what a UE causes. Then, with `--procedures` UEs, a table for each procedure as the core counts
them (`pith status --json`, contexts.procedures): each UE registers, establishes a session, becomes idle, requests service, and
deregisters; residencies that keep a copy of a UE's context beside those that read it for each message.

A third table has the time between transactions (contexts.betweenTransactions): from the end of a context's transaction to the begin
of its next one, for UE contexts of the AMF, for sessions of the SMF, and for sessions whose next transaction begins with a message on N4.
The core counts a quarter of all contexts, if it stores them.

Writes target/bench/residency.json and target/bench/residency.svg, and prints a table with medians and the range of the completion
time.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import control
from plot import COLOURS

UES = list(range(100, 1001, 100))
# Residency and write. `none` stores nothing.
CASES = [("none", "replace")] + [(residency, write) for residency in ("soft", "durable", "procedural", "stateless", "shared", "embedded") for write in ("replace", "update")]
# Procedures as the core counts them. A UE does each once.
COUNTED = ("registration", "sessionEstablishment", "anRelease", "serviceRequest", "sessionRelease", "deregistration")
# Savings that the literature reports, with each NF in a process of its own (`--split`).
PUBLISHED = "published: replace saves 6 to 9% of update; embedded saves 33% of stateless and 22% of shared"
# What the core counts of intervals between transactions.
INTERVAL = ("count", "meanMs", "p50Ms", "p99Ms")
# `soft` writes at most 200 ms after a change.
SETTLE = 0.5


class Server:
    """A server of Valkey or Redis on a Unix socket."""

    def __init__(self):
        program = shutil.which("valkey-server") or shutil.which("redis-server")
        if not program:
            sys.exit("bench: no server program: apt-get install redis-server")
        self.work = tempfile.mkdtemp()
        self.socket = f"{self.work}/redis.sock"
        command = [program, "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no", "--dir", self.work]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.ask("PING")
                break
            except OSError:
                time.sleep(0.05)
        else:
            sys.exit("bench: the server does not start")
        self.name = os.path.basename(program)

    def ask(self, *words):
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(5)
            stream.connect(self.socket)
            stream.sendall((" ".join(words) + "\r\n").encode())
            return stream.recv(4096)

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.work)


class Connection(http.client.HTTPConnection):
    """HTTP over the Unix socket of a core."""

    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Core:
    """`pith up --test-network` with contexts in the server, or `pith nf` for each NF."""

    def __init__(self, binary, namespace, subscribers, case, server, split):
        residency, write = case
        self.split = split
        self.work = tempfile.mkdtemp()
        settings = [f"store.path={self.work}/pith.db", f"residency={residency}"]
        if residency != "none":
            settings += ["state.engine=redis", f"state.redis.url=unix://{server.socket}", f"state.write={write}"]
        settings = [part for setting in settings for part in ("--set", setting)]
        command = [binary, "up", "--test-network", "--subscribers", str(subscribers), *settings]
        if not split:
            self.processes = [control.Process(command, namespace, "residency")]
            self.processes[0].wait_until(r"ready in (\d+) ms")
            self.sockets = [f"{self.work}/api.sock"]
            return
        # Cleartext: TLS would hide what residencies cost.
        settings += ["--set", "sbi.security=none", "--set", "sbi.oauth2='off'"]
        extra = {"udr": ["--test-network", "--subscribers", str(subscribers)]}
        self.processes = []
        for nf in control.NFS:
            self.processes.append(control.Process([binary, "nf", nf, *extra.get(nf, []), *settings], namespace, f"residency-{nf}"))
            # The UDR makes the key file, which the others need.
            if nf == "udr":
                wait_for_file(f"{self.work}/pith.db.key")
        for nf, process in zip(control.NFS, self.processes):
            if nf != "upf":
                process.wait_until("ready in")
        self.processes[control.NFS.index("smf")].wait_until(" associated")
        self.sockets = [f"{self.work}/api-{nf}.sock" for nf in ("amf", "smf", "pcf")]

    def cpu_ms(self):
        return sum(control.cpu_ms(process.pid) for process in self.processes)

    def operations(self):
        """Totals by name, and those of each procedure as (procedure, name)."""
        total = {}
        for path in self.sockets:
            connection = Connection(path)
            connection.request("GET", "/v1/status")
            status = json.loads(connection.getresponse().read())
            connection.close()
            contexts = status.get("contexts", {})
            if contexts.get("error"):
                sys.exit(f"bench: contexts are not stored: {contexts['error']}")
            for name, count in contexts.get("operations", {}).items():
                total[name] = total.get(name, 0) + count
            for procedure, counts in contexts.get("procedures", {}).items():
                for name, count in counts.items():
                    total[procedure, name] = total.get((procedure, name), 0) + count
        return total

    def between_transactions(self):
        """Intervals of UEs, sessions and N4 since the start, each from the process that counts them."""
        found = {}
        for path in self.sockets:
            connection = Connection(path)
            connection.request("GET", "/v1/status")
            status = json.loads(connection.getresponse().read())
            connection.close()
            for name, of in status.get("contexts", {}).get("betweenTransactions", {}).items():
                if of["count"]:
                    found[name] = {field: of[field] for field in INTERVAL}
        return found

    def stop(self):
        for process in reversed(self.processes):
            process.stop()
        shutil.rmtree(self.work)


def wait_for_file(path):
    for _ in range(200):
        if os.path.exists(path) and os.path.getsize(path):
            return
        time.sleep(0.05)
    sys.exit(f"bench: there is no {path}")


def costs(before, after, counts):
    """What each procedure has cost between two counts of `Core.operations`."""
    found = {}
    for procedure, times in counts.items():
        delta = lambda *names: sum(after.get((procedure, name), 0) - before.get((procedure, name), 0) for name in names)
        found[procedure] = {
            "operations": round(delta("writes", "reads") / times, 3),
            "reads": round(delta("reads") / times, 3),
            "requests": round(delta("requests") / times, 3),
            "bytes": round(delta("octetsWritten", "octetsRead") / times, 1),
            "us": round(delta("us") / times, 1),
        }
    return found


def procedures(options, namespace, ues, case, server):
    """The costs of each procedure: UEs register, establish a session, become idle and request service; others deregister."""
    server.ask("FLUSHALL")
    core = Core(options.pith, namespace, 2 * ues, case, server, options.split)
    try:
        time.sleep(1.0)
        before = core.operations()
        for profile, first in (("idle", 1), ("deregister", ues + 1)):
            command = [options.ran, "run", "--test-network", "--amf", "127.0.0.5:38412", "--ues", str(ues), "--gnbs", "1", "--gnb-id", str(first),
                       "--supi", f"imsi-99970{first:010}", "--profile", profile, "--in-flight", "16", "--hold"]
            ran = control.Process(command, namespace, "residency-ran")
            ran.wait_until("holding")
            time.sleep(SETTLE)
            after = core.operations()
            # The end of the gNB, which releases all UEs, is not counted.
            ran.stop()
            if profile == "idle":
                first_costs = costs(before, after, dict.fromkeys(COUNTED, ues))
                time.sleep(SETTLE)
                before = core.operations()
        second_costs = costs(before, after, dict.fromkeys(COUNTED, ues))
        intervals = core.between_transactions()
    finally:
        core.stop()
    both = {}
    for procedure in COUNTED:
        both[procedure] = first_costs[procedure] if first_costs[procedure]["operations"] else second_costs[procedure]
    return {"residency": case[0], "write": case[1], "ues": ues, "has_ue_cache": case[0] in ("soft", "durable", "procedural"), "procedures": both,
            "between_transactions": intervals}


def print_procedures(rows):
    names = list(COUNTED)
    print(f"\ndocument operations / requests / bytes of a procedure, {rows[0]['ues']} UEs")
    print(f"{'residency':<11} {'write':<8} {'UE cache':<8} " + " ".join(f"{name:>22}" for name in names))
    for row in rows:
        cells = []
        for name in names:
            cost = row["procedures"][name]
            cells.append(f"{cost['operations']:.2f} / {cost['requests']:.2f} / {cost['bytes']:.0f}")
        print(f"{row['residency']:<11} {row['write']:<8} {'yes' if row['has_ue_cache'] else 'no':<8} " + " ".join(f"{cell:>22}" for cell in cells))


def print_intervals(title, rows):
    names = {"ues": "UE", "sessions": "session", "n4": "session, by N4"}
    print(f"\ntime between transactions of a context: median / p99 / mean in ms (number counted), {title}")
    print(f"{'residency':<11} {'write':<8} " + " ".join(f"{title:>40}" for title in names.values()))
    for row in rows:
        cells = []
        for name in names:
            of = row["between_transactions"].get(name)
            cells.append("-" if of is None else f"{of['p50Ms']:.2f} / {of['p99Ms']:.1f} / {of['meanMs']:.1f} ({of['count']:.0f})")
        print(f"{row['residency']:<11} {row['write']:<8} " + " ".join(f"{cell:>40}" for cell in cells))


def run(options, namespace, ues, case, server):
    server.ask("FLUSHALL")
    core = Core(options.pith, namespace, ues, case, server, options.split)
    try:
        time.sleep(1.0)
        before, server_before = core.operations(), control.cpu_ms(server.process.pid)
        result, spent = control.simulate(options.ran, namespace, ues, core)
        time.sleep(SETTLE)
        after, server_after = core.operations(), control.cpu_ms(server.process.pid)
        intervals = core.between_transactions()
    finally:
        core.stop()
    delta = lambda *names: sum(after.get(name, 0) - before.get(name, 0) for name in names)
    procedures = 2 * ues
    return {
        "residency": case[0],
        "write": case[1],
        "ues": ues,
        "ok": result["ok"],
        "total_s": result["total_s"],
        "p99_ms": result["registration_ms"]["p99"],
        "session_p99_ms": result["session_ms"]["p99"],
        "core_cpu_ms_per_ue": round(spent / ues, 4),
        "store_cpu_ms_per_ue": round((server_after - server_before) / ues, 4),
        "operations_per_procedure": round(delta("writes", "reads") / procedures, 4),
        "reads_per_procedure": round(delta("reads") / procedures, 4),
        "requests_per_procedure": round(delta("requests") / procedures, 4),
        "bytes_per_procedure": round(delta("octetsWritten", "octetsRead") / procedures, 1),
        "store_us_per_procedure": round(delta("writeUs", "readUs") / procedures, 1),
        "failures": delta("failures"),
        "procedures": costs(before, after, {"registration": ues, "sessionEstablishment": ues}),
        "between_transactions": intervals,
    }


def median_row(rows):
    """Medians of the runs of a case, and the range of the completion time."""
    row = {}
    for name, value in rows[0].items():
        values = [each[name] for each in rows]
        if isinstance(value, dict):
            # An interval that no UE of a run had is in the others.
            middle = lambda of, field: statistics.median(each[of][field] for each in values if of in each)
            row[name] = {of: {field: middle(of, field) for field in fields} for of, fields in value.items()}
            continue
        row[name] = value if isinstance(value, str) or name == "ues" else statistics.median(values)
    row["ok"] = min(each["ok"] for each in rows)
    row["failures"] = max(each["failures"] for each in rows)
    row["runs"] = len(rows)
    row["total_s_range"] = [pick(each["total_s"] for each in rows) for pick in (min, max)]
    return row


def print_row(row):
    low, high = row["total_s_range"]
    print(f"{row['residency']:<11} {row['write']:<8} {row['ues']:>5} {row['ok']:>5} {row['total_s']:>8.3f} {low:>7.3f} to {high:<7.3f} {row['p99_ms']:>9.1f}"
          f" {row['session_p99_ms']:>9.1f} {row['core_cpu_ms_per_ue']:>9.3f} {row['store_cpu_ms_per_ue']:>9.3f} {row['operations_per_procedure']:>7.2f}"
          f" {row['requests_per_procedure']:>8.3f} {row['bytes_per_procedure']:>8.0f}", flush=True)


def plot(rows, target):
    """Completion time over the number of UEs, a line for each case."""
    width, height, left, top = 760, 420, 60, 30
    most_ues, most_s = max(row["ues"] for row in rows), max(row["total_s"] for row in rows) * 1.1
    x = lambda ues: left + ues / most_ues * (width - left - 190)
    y = lambda seconds: top + (height - top - 50) * (1 - seconds / most_s)
    out = [f'<text x="{left}" y="18" font-weight="bold">Registration with session, UEs at once: completion time</text>']
    for step in range(6):
        seconds = most_s * step / 5
        out.append(f'<line x1="{left}" x2="{x(most_ues):.1f}" y1="{y(seconds):.1f}" y2="{y(seconds):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y(seconds) + 4:.1f}" text-anchor="end">{seconds:.2f} s</text>')
    for ues in sorted({row["ues"] for row in rows}):
        out.append(f'<text x="{x(ues):.1f}" y="{y(0) + 18:.1f}" text-anchor="middle">{ues}</text>')
    cases = list(dict.fromkeys((row["residency"], row["write"]) for row in rows))
    for number, case in enumerate(cases):
        colour = COLOURS[number % len(COLOURS)]
        points = sorted((row["ues"], row["total_s"]) for row in rows if (row["residency"], row["write"]) == case)
        line = " ".join(f"{x(ues):.1f},{y(seconds):.1f}" for ues, seconds in points)
        dash = ' stroke-dasharray="5 3"' if case[1] == "update" else ""
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        name = case[0] if case[0] == "none" else f"{case[0]}, {case[1]}"
        out.append(f'<text x="{width - 175}" y="{top + 14 + number * 16}" fill="{colour}">{name}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
    with open(target, "w") as file:
        file.write("\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *out, "</svg>\n"]))


def targets(rows):
    """The figures to reach, at the largest number of UEs."""
    ues = max(row["ues"] for row in rows)
    of = {(row["residency"], row["write"]): row for row in rows if row["ues"] == ues}
    none = of.get(("none", "replace"))
    judge = lambda is_reached: "reached" if is_reached else "MISSED"
    for residency, limit in (("soft", 1.05), ("durable", 1.15)):
        row = of.get((residency, "replace"))
        if none and row:
            ratio = row["core_cpu_ms_per_ue"] / none["core_cpu_ms_per_ue"]
            print(f"{residency}: {ratio:.2f} times the CPU a UE of none, of {limit} at most: {judge(ratio <= limit)}")
    if soft := of.get(("soft", "replace")):
        operations = soft["operations_per_procedure"]
        print(f"soft: {operations:.2f} operations a procedure, of 1.1 at most: {judge(operations <= 1.1)}")
    for residency in ("soft", "durable", "procedural", "stateless", "shared", "embedded"):
        replace, update = of.get((residency, "replace")), of.get((residency, "update"))
        if replace and update:
            print(f"{residency}: replace takes {replace['total_s'] / update['total_s'] - 1:+.1%} of the completion time of update,"
                  f" and {replace['bytes_per_procedure'] / max(update['bytes_per_procedure'], 1) - 1:+.0%} of its bytes")
    embedded = of.get(("embedded", "replace"))
    for residency in ("stateless", "shared"):
        other = of.get((residency, "replace"))
        if embedded and other:
            print(f"embedded takes {embedded['total_s'] / other['total_s'] - 1:+.1%} of the completion time of {residency},"
                  f" and {embedded['requests_per_procedure'] / max(other['requests_per_procedure'], 0.001) - 1:+.0%} of its requests")
    print(PUBLISHED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pith", default="target/release/pith")
    parser.add_argument("--ran", default="target/release/pith-ran")
    parser.add_argument("--ues", type=int, nargs="*", default=UES)
    parser.add_argument("--runs", type=int, default=10, help="of each case; the table has medians")
    parser.add_argument("--procedures", type=int, default=256, help="UEs of the table for each procedure; 0: without")
    parser.add_argument("--split", action="store_true", help="each NF is a process, in cleartext")
    parser.add_argument("--residencies", nargs="*", default=None, help="such as none soft")
    options = parser.parse_args()
    cases = [case for case in CASES if options.residencies is None or case[0] in options.residencies]
    os.makedirs("target/bench", exist_ok=True)
    namespace = f"pith-bench-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    server, measured, single = Server(), {}, []
    try:
        for _ in range(options.runs):
            for ues in options.ues:
                for case in cases:
                    measured.setdefault((case, ues), []).append(run(options, namespace, ues, case, server))
        for case in cases if options.procedures else ():
            if case[0] != "none":
                single.append(procedures(options, namespace, options.procedures, case, server))
    finally:
        server.stop()
        subprocess.run(["ip", "netns", "del", namespace])
    print(f"{'residency':<11} {'write':<8} {'UEs':>5} {'ok':>5} {'total s':>8} {'range':>18} {'reg p99':>9} {'ses p99':>9} {'CPU ms/UE':>9} {'store CPU':>9} {'ops':>7} {'requests':>8} {'bytes':>8}")
    rows = [median_row(measured[case, ues]) for case in cases for ues in options.ues]
    for row in rows:
        print_row(row)
    targets(rows)
    most = max(options.ues)
    print_intervals(f"{most} UEs at once register and establish a session", [row for row in rows if row["ues"] == most and row["residency"] != "none"])
    if single:
        print_procedures(single)
        print_intervals(f"{options.procedures} UEs in the procedures of that table, 16 at once", single)
    plot(rows, "target/bench/residency.svg")
    with open("target/bench/residency.json", "w") as file:
        json.dump({"server": server.name, "split": options.split, "runs": rows, "by_procedure": single}, file, indent=1)
    print("written to target/bench/residency.json and target/bench/residency.svg")


if __name__ == "__main__":
    main()
