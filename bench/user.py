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


def costs(result, field="ns_per_packet"):
    """Nanoseconds of CPU a packet, by path and sessions, on one CPU or on those of its part."""
    ns = {}
    for row in result.get("paths", []):
        ns.setdefault(row["name"], {})[row["sessions"]] = row[field]
    return ns


def only(of_sessions):
    """The figure of a path with one row, or None."""
    return next(iter(of_sessions.values()), None)


def print_xdp(ns, gross):
    """XDP beside the kernel, and with few sessions and many."""
    kernel = only(ns.get("kernel-forward", {}))
    for name in ("xdp-full-ul", "xdp-full-dl"):
        each = ns.get(name, {})
        if not kernel or len(each) < 3:
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
    kernel = only(gross.get("kernel-forward", {}))
    for name in ("xdp-scattered-ul", "xdp-scattered-dl"):
        net, all_of_it = only(ns.get(name, {})), only(gross.get(name, {}))
        if not net or not kernel:
            continue
        part = all_of_it / kernel
        print(f"{name:<32} {net:.0f} ns net, {part:.2f} of kernel forwarding gross ({kernel:.0f}), of 260 or 0.75: {verdict(net <= 260 or part <= 0.75)}")
    for way in ("destinations", "filters", "quota"):
        for name in (f"xdp-{way}-ul", f"xdp-{way}-dl"):
            usual = only(ns.get(f"xdp-single-{name[-2:]}", {}))
            if usual and (own := only(ns.get(name, {}))):
                print(f"{name:<32} {own:.0f} ns net, {own - usual:+.0f} ns against 1,000 usual sessions")


def print_nat(gross):
    """The default configuration, NAT and single packets, beside the kernel's masquerading of as many connections: gross."""
    for of, sessions in (("", "1,000"), ("-one", "1"), ("-scattered", "100,000")):
        kernel = only(gross.get("kernel-masquerade" + ("-scattered" if of == "-scattered" else ""), {}))
        for name in (f"default-nat{of}-ul", f"default-nat{of}-dl"):
            own = only(gross.get(name, {}))
            if not kernel or not own:
                continue
            part = own / kernel
            goal = f", of 450 ns or 0.6: {verdict(own <= 450 or part <= 0.6)}" if not of else ""
            print(f"{name:<32} {own:.0f} ns gross with {sessions} sessions, {part:.2f} of the kernel's masquerading ({kernel:.0f}){goal}")


def print_cores(rows):
    """What two CPUs forward, against one, by the CPU time of a packet."""
    gross = {(row["name"], row["cores"]): row["gross"] for row in rows if "-cores" in row["name"]}
    for name in sorted({name for name, _ in gross}):
        one, two = gross.get((name, 1)), gross.get((name, 2))
        if not one or not two:
            continue
        # What else runs on the machine disturbs medians more than the lowest runs.
        middle, lowest = (2 * one[kind] / two[kind] for kind in ("median", "least"))
        goal = f", of 1.7: {verdict(min(middle, lowest) >= 1.7)}" if not name.startswith("kernel") else ""
        print(f"{name:<32} two CPUs {middle:.2f} times one by medians ({one['median']:.0f} and {two['median']:.0f} ns gross), {lowest:.2f} by the lowest runs ({one['least']:.0f} and {two['least']:.0f}){goal}")


def print_ambr(gross, ns):
    """A session at its AMBR."""
    for name, most in (("at-ambr-tcp", 1200), ("at-ambr-ect1", 600)):
        if own := only(ns.get(name, {})):
            print(f"{name:<32} {own:.0f} ns net, {only(gross[name]):.0f} gross, of {most}: {verdict(own <= most)}")


def print_portable(ns):
    """The portable path beside a loop of one packet a call, over the same wire."""
    goals = {"portable-ul": 3, "portable-dl": 3, "portable-single-ul": 1.3, "portable-single-dl": 1.3}
    most = {"portable-single-ul": 2500, "portable-single-dl": 2000}
    for name, of_sessions in ns.items():
        if not name.startswith("portable"):
            continue
        own, simple = only(of_sessions), only(ns.get(name.replace("portable", "one-packet"), {}))
        if not simple:
            continue
        text = f"{name:<32} {own:.0f} ns, {simple / own:.1f} times one packet a call"
        if least := goals.get(name):
            text += f", of {least}: {verdict(simple / own >= least)}"
        if bound := most.get(name):
            text += f"; of {bound} ns: {verdict(own <= bound)}"
        print(text)


def print_delay(result):
    """The delay that each path adds, against the kernel's at the same part of its capacity."""
    rows = result.get("delay", [])
    if rows:
        print(f"{'delay':<32} the CPU was taken away {sum(row['pauses'] for row in rows):,} times while {sum(row['packets'] for row in rows):,} packets were sent")
    of = {(row["name"], row["load"]): row for row in rows}
    for kind, since in (("delay_ns", "since due"), ("since_sent_ns", "since sent")):
        for name, load in of:
            row, kernel = of[name, load], of.get(("kernel-masquerade" if name.startswith("default") else "kernel-forward", load))
            if name.startswith("kernel") or not kernel:
                continue
            own, bound = row[kind]["p999"], kernel[kind]["p999"]
            text = f"{'delay of ' + name:<32} {since}: p99.9 {own / 1000:.1f} µs at {load}%, the kernel's {bound / 1000:.1f}"
            if kind == "delay_ns" and (is_overloaded(row) or is_overloaded(kernel)):
                print(f"{text}: no comparison, the machine forwarded less than at the calibration")
            else:
                goal = f", of 1.5: {verdict(own <= 1.5 * bound)}" if load == 80 else ""
                print(f"{text}, {own / bound:.2f} of it{goal}")


def is_overloaded(row):
    """Whether packets waited so long for the CPU that it cannot have been idle between: more was offered than it forwarded."""
    return row["delay_ns"]["p99"] > 100 * row["since_sent_ns"]["p50"]


def print_voice(result):
    """Voice on its own GBR flow beside bulk traffic."""
    for row in result.get("voice", []):
        name = f"voice, {row['path']}"
        print(f"{name:<32} {row['beside']}: delay p50 {row['p50_us']:.0f}, p99 {row['p99_us']:.0f} µs, jitter {row['jitter_us']:.0f} µs, {row['lost']} of {row['packets'] + row['lost']} lost")


def print_memory(result):
    """What a session takes in XDP."""
    if memory := result.get("memory"):
        size = memory["session_maps"]
        print(f"{'memory of a session':<32} {size} octets in BPF maps, {memory['session_rss']} of RSS, of 512: {verdict(size <= 512)}")


def print_paths(result):
    """What a packet costs by each path, the targets between them, and TCP through a tunnel."""
    rows = result.get("paths", [])
    ns, gross = costs(result), costs(result, "ns_gross")
    if rows:
        print(f"{'path':<28} {'sessions':>9} {'cores':>5} {'kpps':>8} {'gross ns: median, range':>26} {'net ns: median, range':>26}")
        for row in rows:
            spread = " ".join(f"{row[kind]['median']:>10.0f} ({row[kind]['least']:.0f} to {row[kind]['most']:.0f})".rjust(26) for kind in ("gross", "net"))
            print(f"{row['name']:<28} {row['sessions']:>9} {row['cores']:>5} {row['kpps']:>8.0f} {spread}")
    print_xdp(ns, gross)
    print_nat(gross)
    print_cores(rows)
    print_ambr(gross, ns)
    print_portable(ns)
    print_delay(result)
    print_voice(result)
    print_memory(result)
    for way in result.get("tcp", []):
        name = f"TCP through GTP, {way['way']}"
        print(f"{name:<32} {way['gbit']:.2f} Gbit/s by the portable path, {way['core'] * 100:.0f}% of a core, of 5: {verdict(way['gbit'] >= 5)}")


def print_control(result):
    """How fast sessions come, and how soon new rules hold."""
    for case in result.get("pfcp_socket", []):
        name = "sessions by a UDP socket"
        goal = f", of 50,000: {verdict(case['per_second'] >= 50_000)}" if case["window"] > 1 else ""
        print(f"{name:<32} {case['per_second']:,} a second with {case['window']} unanswered, {case['cpu_us']:.1f} µs of the UPF's CPU{goal}")
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
        print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
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
