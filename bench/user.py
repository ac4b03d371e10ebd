#!/usr/bin/env python3
"""User-plane benchmark: runs each part, merges what they wrote, prints the targets beside the figures.

Parts are examples of crates/datapath, each of which writes target/bench/user-PART.json; they make
network namespaces of their own, so this needs root. Writes target/bench/user.json, and
target/bench/fairness.svg from the time series in target/bench/fairness.csv.

    bench/user.py [PART...]     only these parts, and what others wrote before
"""

import glob
import json
import os
import subprocess
import sys

import plot

FOLDER = "target/bench"
# Parts by the example that measures them, in the order they run.
PARTS = {"fairness": "fairness", "shaped": "shaped", "paths": "user_paths"}


def run(part):
    """Builds and runs a part's example."""
    example = PARTS[part]
    print(f"== {part}", flush=True)
    command = ["scripts/cargo", "run", "-q", "--release", "--locked", "-p", "pith-datapath", "--example", example]
    subprocess.run(command, check=True, env=dict(os.environ, BENCH_DIR=FOLDER))


def merged():
    """What all parts wrote, side by side."""
    result = {}
    for path in sorted(glob.glob(f"{FOLDER}/user-*.json")):
        with open(path) as file:
            result.update(json.load(file))
    return result


def verdict(reached):
    return "reached" if reached else "MISSED"


def expected(case):
    """What a QoS flow and the rest are to get, in Mbit/s."""
    qos = min(case["gbr"] + (case["ambr"] - case["gbr"]) / 2, case["mbr"])
    return qos, case["ambr"] - qos


def print_fairness(result):
    """Shares beside the exact ones, delay and take-over beside their bounds."""
    for case in result.get("fairness", []):
        qos, rest = expected(case)
        near = abs(case["qos"] - qos) <= 0.02 * qos and abs(case["rest"] - rest) <= 0.02 * rest
        name = f"GBR {case['gbr']} MBR {case['mbr']}, {case['qos_traffic']} against {case['rest_traffic']}"
        print(f"{name:<32} {case['qos']:.2f} / {case['rest']:.2f} of {qos:.1f} / {rest:.1f} within 2%: {verdict(near)}")
        print(f"{'':<32} p99 delay {case['p99_ms']} ms under 25: {verdict(case['p99_ms'] < 25)}")
    if many := result.get("max_min"):
        worst = many["worst_percent"]
        print(f"{'eight flows':<32} worst {worst}% off the exact solution, within 3%: {verdict(worst <= 3)}")
    if over := result.get("take_over"):
        slowest = max(over["after_stop_ms"], over["after_start_ms"])
        print(f"{'share taken over':<32} {slowest} ms, within 100: {verdict(slowest <= 100)}")


def print_paths(result):
    """Nanoseconds of CPU a packet, and the targets between them."""
    ns = {}
    for row in result.get("paths", []):
        ns.setdefault(row["name"], {})[row["sessions"]] = row["ns_per_packet"]
    kernel = ns.get("kernel-forward", {}).get(0)
    for name in ("xdp-full-ul", "xdp-full-dl"):
        each = ns.get(name, {})
        if kernel and each:
            print(f"{name:<32} {kernel / each[1]:.2f} times the kernel's forwarding, of 2.5: {verdict(kernel / each[1] >= 2.5)}")
            spread = max(each.values()) / min(each.values())
            print(f"{'':<32} {spread * 100 - 100:.0f}% between 1 and 100,000 sessions (trains of 16), of 15: {verdict(spread <= 1.15)}")
            scattered = ns.get(name.replace("full", "scattered"), {})
            if scattered:
                print(f"{'':<32} each packet another session's: " + ", ".join(f"{cost:.0f} ns of {count:,}" for count, cost in scattered.items()))
    for way, sessions, least in (("ul", 1, 3), ("dl", 1, 3), ("ul", 1000, 1.3)):
        if own := ns.get(f"portable-{way}", {}).get(sessions):
            times = ns[f"one-packet-{way}"][sessions] / own
            name = f"portable-{way}, {sessions} flows"
            print(f"{name:<32} {times:.1f} times one packet a call, of {least}: {verdict(times >= least)}")


def print_shaping(result):
    """What a thousand sessions get and take of a core, and what became of packets for idle UEs."""
    if shaping := result.get("shaping"):
        gbit, core = shaping["gbit"], shaping["core"]
        reached = gbit >= 3.9 and core <= 1
        name = f"{shaping['sessions']} sessions, shaped to 4 Gbit/s"
        print(f"{name:<32} {gbit:.2f} of {shaping['offered_gbit']:.2f} offered, {core * 100:.0f}% of a core: {verdict(reached)}")
    for burst in result.get("paging", []):
        lost, left = burst["held"] - burst["delivered"], burst["left_over"]
        reached = not (lost or left or burst["out_of_order"] or burst["dropped"])
        print(f"{'paging, ' + burst['path']:<32} {burst['held']} held, {lost} lost, {burst['out_of_order']} out of order, {left} left over: {verdict(reached)}")


def main():
    parts = sys.argv[1:] or PARTS
    # What else runs on the machine is not measured.
    os.nice(-15 if os.geteuid() == 0 else 0)
    os.makedirs(FOLDER, exist_ok=True)
    for part in parts:
        run(part)
    result = merged()
    with open(f"{FOLDER}/user.json", "w") as file:
        json.dump(result, file)
    if os.path.exists(f"{FOLDER}/fairness.csv"):
        plot.fairness(f"{FOLDER}/fairness.csv", f"{FOLDER}/fairness.svg")
    print_fairness(result)
    print_paths(result)
    print_shaping(result)


if __name__ == "__main__":
    main()
