#!/usr/bin/env python3
"""Runs the security assurance cases (3GPP SCAS) of tests/scas/cases.json against this checkout.

A case names the tests that show it: "crate test::path" of cargo, or "live NAME" for a check of scripts/scas-live, which
runs a core of several processes. A case passes if each of its tests ran and passed; a test that is not there fails it. "na" and
"not_yet" carry the reason why there is none.

Writes target/scas.json and docs/scas.md.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def cargo_results(tests):
    """Outcome of each "crate test::path"."""
    by_crate = collections.defaultdict(list)
    for test in tests:
        crate, path = test.split(" ")
        by_crate[crate].append(path)
    results = {}
    for crate, paths in sorted(by_crate.items()):
        command = ["scripts/cargo", "test", "--locked", "-p", crate, "--tests", "--no-fail-fast", "--", "--exact", *paths]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        for path, outcome in re.findall(r"^test (\S+) \.\.\. (ok|FAILED|ignored)", done.stdout, re.M):
            results[f"{crate} {path}"] = outcome
        if done.returncode and not any(results.get(f"{crate} {path}") == "FAILED" for path in paths):
            sys.stderr.write(done.stderr[-3000:])
    return results


def live_results(names):
    """Outcome of each "live NAME"."""
    if not names:
        return {}
    done = subprocess.run(["scripts/scas-live"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    results = {}
    for name, outcome, seen in re.findall(r"^scas (\S+) (pass|fail|skip) ?(.*)$", done.stdout, re.M):
        results[f"live {name}"] = {"pass": "ok", "fail": f"FAILED: {seen}", "skip": f"ignored: {seen}"}[outcome]
    if done.returncode:
        print(done.stdout[-3000:], file=sys.stderr)
    return results


def passed_before():
    """Ids of the cases that passed in the last run."""
    with open(os.path.join(ROOT, "target", "scas.json")) as file:
        return {case["id"] for case in json.load(file)["cases"] if case["result"] == "pass"}


def judge(case, results):
    """(result, what is said of it) of a case."""
    for key, result in (("na", "not applicable"), ("not_yet", "not yet")):
        if key in case:
            return result, case[key]
    outcomes = {test: results.get(test, "there is no such test") for test in case["tests"]}
    failed = [f"{test}: {outcome}" for test, outcome in outcomes.items() if outcome != "ok"]
    return ("fail", "; ".join(failed)) if failed else ("pass", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-live", action="store_true", help="leave scripts/scas-live out: its cases fail")
    parser.add_argument("--failed", action="store_true", help="run only the cases that did not pass in the last run (target/scas.json)")
    parser.add_argument("--check", action="store_true", help="fail if docs/scas.md would change")
    arguments = parser.parse_args()
    cases = json.load(open(os.path.join(HERE, "cases.json")))
    passed = passed_before() if arguments.failed else set()
    tests = sorted({test for case in cases if case["id"] not in passed for test in case.get("tests", [])})
    results = cargo_results([test for test in tests if not test.startswith("live ")])
    live = [test for test in tests if test.startswith("live ")]
    results.update({} if arguments.no_live else live_results(live))

    judged = []
    for case in cases:
        result, said = ("pass", "") if case["id"] in passed else judge(case, results)
        judged.append({"id": case["id"], "clause": case["clause"], "title": case["title"], "result": result, "said": said,
                       "tests": case.get("tests", [])})
    os.makedirs(os.path.join(ROOT, "target"), exist_ok=True)
    with open(os.path.join(ROOT, "target", "scas.json"), "w") as file:
        json.dump({"cases": judged}, file, indent=1)
        file.write("\n")
    page = table(judged)
    path = os.path.join(ROOT, "docs", "scas.md")
    before = open(path).read() if os.path.exists(path) else ""
    with open(path, "w") as file:
        file.write(page)
    counts = collections.Counter(case["result"] for case in judged)
    for case in judged:
        print(f"{case['clause']:<24} {case['id']:<48} {case['result']}")
        if case["result"] == "fail":
            print(f"    {case['said']}")
    print(f"\n{counts['pass']} passed, {counts['fail']} failed, {counts['not applicable']} not applicable, {counts['not yet']} not yet")
    if arguments.check and page != before:
        sys.exit("docs/scas.md is out of date: commit what 'make scas' wrote")
    sys.exit(1 if counts["fail"] else 0)


def table(judged):
    lines = [
        "# Security assurance cases (3GPP SCAS)",
        "",
        "Generated by `make scas` from `tests/scas/cases.json`; do not edit. Cases of TS 33.512 (AMF), 33.513 (UPF), 33.514 (UDM),",
        "33.515 (SMF), 33.516 (AUSF), 33.518 (NRF) and 33.117 (general) that software alone can run against this core.",
        "",
        "| TS and clause | case | result | shown by, or the reason |",
        "|---|---|---|---|",
    ]
    for case in judged:
        shown = ", ".join(f"`{test.split(' ')[1].split('::')[-1]}`" for test in case["tests"])
        lines.append(f"| {case['clause']} | {case['id']}: {case['title']} | {case['result']} | {case['said'] or shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
