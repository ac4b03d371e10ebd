"""Plots as SVG, with nothing but the standard library."""

import csv
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, BELOW = 760, 170, 50, 28, 40
COLOURS = ["#1f5fa8", "#d1603d", "#3a8f5c", "#8a5bb0", "#b8952a", "#4aa3b5", "#c2477f", "#6b6b6b"]


def read(path):
    """Series by case and flow: lists of (seconds, Mbit/s)."""
    cases = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            flows = cases.setdefault(row["case"], {})
            flows.setdefault(row["flow"], []).append((float(row["seconds"]), float(row["mbit"])))
    return cases


def panel(name, flows, top):
    """One case: axes, a line a flow, a legend."""
    longest = max(seconds for series in flows.values() for seconds, _ in series) or 1
    highest = 12
    x = lambda seconds: LEFT + seconds / longest * (WIDTH - LEFT - 150)
    y = lambda mbit: top + TOP + HEIGHT * (1 - min(mbit, highest) / highest)
    out = [f'<text x="{LEFT}" y="{top + 16}" font-weight="bold">{escape(name)}</text>']
    for mbit in range(0, highest + 1, 2):
        out.append(f'<line x1="{LEFT}" x2="{x(longest):.1f}" y1="{y(mbit):.1f}" y2="{y(mbit):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(mbit) + 4:.1f}" text-anchor="end">{mbit}</text>')
    for seconds in range(int(longest) + 1):
        out.append(f'<text x="{x(seconds):.1f}" y="{y(0) + 16:.1f}" text-anchor="middle">{seconds} s</text>')
    for number, (flow, series) in enumerate(flows.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(seconds):.1f},{y(mbit):.1f}" for seconds, mbit in series)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4"/>')
        legend = top + TOP + 12 + number * 16
        out.append(f'<text x="{WIDTH - 140}" y="{legend}" fill="{colour}">{escape(flow)}</text>')
    return out


def fairness(source, target):
    """Draws the rates of each case's flows over time, in Mbit/s."""
    out, top = [], 10
    for name, flows in read(source).items():
        out += panel(name, flows, top)
        top += TOP + HEIGHT + BELOW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" font-family="sans-serif" font-size="12">'
    with open(target, "w") as file:
        file.write("\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *out, "</svg>\n"]))
