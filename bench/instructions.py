#!/usr/bin/env python3
"""Instructions of the core for each UE (registration with session), by residency, counted by callgrind (valgrind).

Instructions are steady on a noisy machine, where CPU time is not. The core runs under callgrind; the simulator does not. Counting
begins when the core is ready. Each residency is measured with two numbers of UEs, and the figure is the difference divided by the
difference of UEs, so that what a core does without UEs is not in it. One UE after another registers: a program under callgrind is
some fifty times slower, and with many UEs at once `soft` would write each context in many intervals of 200 ms. Contexts are in a
file, subscribers too.

    python3 bench/instructions.py --residencies none soft durable

Needs valgrind (apt-get install valgrind). Callgrind does not know the processor's SHA instructions, and counts nothing of the kernel. The profiles remain in
target/bench/callgrind.RESIDENCY.UES (callgrind_annotate shows them; build with CARGO_PROFILE_RELEASE_DEBUG=line-tables-only for
lines). Writes target/bench/instructions.json and prints a table.
"""

import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import control

UES = (100, 300)


def run(options, namespace, residency, ues):
    """Instructions of a core until that many UEs are registered, with a session each, and their contexts are stored."""
    work = tempfile.mkdtemp()
    profile = f"target/bench/callgrind.{residency}.{ues}"
    for old in glob.glob(f"{profile}*"):
        os.remove(old)
    core = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", options.pith, "up", "--test-network",
            "--subscribers", str(ues), "--set", f"store.path={work}/pith.db", "--set", f"residency={residency}"]
    simulator = [options.ran, "run", "--test-network", "--amf", "127.0.0.5:38412", "--ues", str(ues), "--gnbs", "1",
                 "--in-flight", str(options.in_flight), "--timeout", "600", "--hold"]
    core = control.Process(core, namespace, "instructions")
    running = []
    try:
        core.wait_until(r"ready in (\d+) ms")
        time.sleep(1)
        control_callgrind("--zero", core)
        running.append(control.Process(simulator, namespace, "instructions-ran"))
        wait_for(r"holding", "target/bench/instructions-ran.log", 600)
        # `soft` writes up to 200 ms after a change. The end of the gNB, which changes all contexts again, is not counted.
        time.sleep(1)
        control_callgrind("--dump", core)
        with open(f"{profile}.1") as file:
            return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.MULTILINE).group(1))
    finally:
        for process in [*running, core]:
            process.process.terminate()
            process.process.wait(120)
            process.log.close()
        shutil.rmtree(work)


def control_callgrind(command, core):
    subprocess.run(["callgrind_control", command, str(core.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(text, log, seconds):
    for _ in range(seconds * 10):
        with open(log) as file:
            if re.search(text, file.read()):
                return
        time.sleep(0.1)
    sys.exit(f"bench: the simulator does not get ready; see {log}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pith", default="target/release/pith")
    parser.add_argument("--ran", default="target/release/pith-ran")
    parser.add_argument("--residencies", nargs="*", default=["none", "soft", "durable"])
    parser.add_argument("--ues", type=int, nargs=2, default=UES, help="the two numbers of UEs")
    parser.add_argument("--in-flight", type=int, default=1, help="UEs that register at once")
    parser.add_argument("--runs", type=int, default=1, help="of each residency; the table has medians")
    options = parser.parse_args()
    few, many = sorted(options.ues)
    os.makedirs("target/bench", exist_ok=True)
    namespace = f"pith-bench-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    found = {residency: [] for residency in options.residencies}
    try:
        for _ in range(options.runs):
            for residency in options.residencies:
                counts = [run(options, namespace, residency, ues) for ues in (few, many)]
                found[residency].append((counts[1] - counts[0]) / (many - few))
    finally:
        subprocess.run(["ip", "netns", "del", namespace])
    rows, none = [], statistics.median(found["none"]) if "none" in found else None
    print(f"{'residency':<11} {'instructions a UE':>17} {'range':>24} {'of none':>8}")
    for residency, values in found.items():
        middle = statistics.median(values)
        ratio = middle / none if none else None
        shown = f"{ratio:.3f}" if ratio else "-"
        print(f"{residency:<11} {middle:>17,.0f} {f'{min(values):,.0f} to {max(values):,.0f}':>24} {shown:>8}")
        rows.append({"residency": residency, "instructions_per_ue": round(middle), "runs": [round(value) for value in values],
                     "of_none": round(ratio, 4) if ratio else None})
    with open("target/bench/instructions.json", "w") as file:
        json.dump({"ues": [few, many], "in_flight": options.in_flight, "rows": rows}, file, indent=1)
    print("written to target/bench/instructions.json")


if __name__ == "__main__":
    main()
