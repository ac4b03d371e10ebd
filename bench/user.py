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


def go_first():
    """What else runs on the machine is not measured: neither in this session nor, where the kernel shares a CPU out by session, in others."""
    os.nice(-15 if os.geteuid() == 0 else 0)
    try:
        with open("/proc/self/autogroup", "w") as group:
            group.write("-15")
    except OSError:
        pass


def run(part):
    """Builds and runs a part's example, in a session of its own."""
    cargo = ["--release", "--locked", "-p", "pith-datapath", "--example", PARTS[part]]
    subprocess.run(["scripts/cargo", "build", "-q", *cargo], check=True)
    print(f"== {part}", flush=True)
    environment = dict(os.environ, BENCH_DIR=FOLDER)
    subprocess.run(["scripts/cargo", "run", "-q", *cargo], check=True, env=environment, start_new_session=True, preexec_fn=go_first)


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


def costs(result):
    """Nanoseconds of CPU a packet, by path and sessions installed."""
    ns = {}
    for row in result.get("paths", []):
        ns.setdefault(row["name"], {})[row["sessions"]] = row["ns_per_packet"]
    return ns


def print_xdp(ns):
    """XDP beside the kernel, and with few sessions and many."""
    kernel = ns.get("kernel-forward", {}).get(0)
    for name in ("xdp-full-ul", "xdp-full-dl"):
        each = ns.get(name, {})
        if not kernel or not each:
            continue
        slowest = kernel / max(each.values())
        print(f"{name:<32} {kernel / each[1]:.2f} times the kernel's forwarding, {slowest:.2f} with {max(each):,} sessions, of 2.5: {verdict(slowest >= 2.5)}")
        spread = (max(each.values()) / min(each.values()) - 1) * 100
        print(f"{'':<32} {spread:.0f}% between 1, 1,000 and 100,000 sessions, all with traffic (trains of 16), of 15: {verdict(spread <= 15)}")
        some = dict(ns.get(name.replace("full", "installed"), {}))
        if some:
            some.update({count: each[count] for count in (1, 1000)})
            spread = (max(some.values()) / min(some.values()) - 1) * 100
            print(f"{'':<32} {spread:.0f}% between 1, 1,000 and 100,000 installed, traffic for 1,000 at most, of 15: {verdict(spread <= 15)}")
        scattered = ns.get(name.replace("full", "scattered"), {})
        if scattered:
            print(f"{'':<32} each packet another session's: " + ", ".join(f"{cost:.0f} ns of {count:,}" for count, cost in scattered.items()))


def print_nat(rows):
    """The default configuration, NAT and single packets of 1,000 UEs, beside the kernel's masquerading: gross."""
    gross = {row["name"]: row["gross_ns"]["median"] for row in rows}
    kernel = gross.get("kernel-masquerade")
    for name in ("default-nat-ul", "default-nat-dl"):
        own = gross.get(name)
        if not kernel or not own:
            continue
        part = own / kernel
        print(f"{name:<32} {own:.0f} ns gross, {part:.2f} of the kernel's masquerading ({kernel:.0f}), of 450 ns or 0.6: {verdict(own <= 450 or part <= 0.6)}")


def print_portable(ns):
    """The portable path beside a loop of one packet a call, over the same wire."""
    for way, sessions, least in (("ul", 1, 3), ("dl", 1, 3), ("ul", 1000, 1.3)):
        for wire, target in (("", least), ("-singly", least if sessions > 1 else None)):
            own = ns.get(f"portable-{way}{wire}", {}).get(sessions)
            if not own:
                continue
            times = ns[f"one-packet-{way}{wire}"][sessions] / own
            name = f"portable-{way}, {sessions} flows"
            on = "packets come one by one" if wire else "trains of 40 on the wire"
            end = f", of {target}: {verdict(times >= target)}" if target else " (the target is that of trains)"
            print(f"{name:<32} {times:.1f} times one packet a call, {on}{end}")


def print_paths(result):
    """What a packet costs by each path, the targets between them, and TCP through a tunnel."""
    ns = costs(result)
    if rows := result.get("paths"):
        print(f"{'path':<24} {'sessions':>9} {'kpps':>8} {'ns/packet':>10}")
        for row in rows:
            print(f"{row['name']:<24} {row['sessions']:>9} {row['kpps']:>8.0f} {row['ns_per_packet']:>10.0f}")
    print_xdp(ns)
    print_nat(result.get("paths", []))
    print_portable(ns)
    for way in result.get("tcp", []):
        name = f"TCP through GTP, {way['way']}"
        print(f"{name:<32} {way['gbit']:.2f} Gbit/s by the portable path, {way['core'] * 100:.0f}% of a core, of 5: {verdict(way['gbit'] >= 5)}")


def print_control(result):
    """How fast sessions come, and how soon new rules hold."""
    for case in result.get("establishment", []):
        name = f"sessions, {case['path']}"
        print(f"{name:<32} {case['per_second']:,} a second by {case['through']}, of 10,000: {verdict(case['per_second'] >= 10_000)}")
    for case in result.get("update", []):
        name = f"update, {case['path']}"
        # One that no packet met before the next came counts as 3 ms.
        reached = case["p99_us"] < 1000
        print(f"{name:<32} seen after {case['p50_us']:.0f} µs by {case['through']}, p99 {case['p99_us']:.0f}, at most {case['most_us']:.0f} of {case['updates'] - case['paused']}; p99 under 1 ms: {verdict(reached)}")


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
    print_control(result)


if __name__ == "__main__":
    main()
