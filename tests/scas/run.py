#!/usr/bin/env python3
"""Runs the security assurance cases (3GPP SCAS) of tests/scas/cases.json against this checkout.

A case lists its tests: "crate test::path" of cargo, "crate/binary test::path" if several test binaries of the crate have
that path ("lib", or the name of a file of tests/), or "live NAME" for a check of scripts/scas-live, which runs a core of
several processes. A case passes if each of its tests ran and passed. A missing test fails it; a test that was skipped
because this machine cannot run it makes it "not run". "na" and "not_yet" give the reason why a case has no test.

Writes target/scas.json and, if no results of an earlier run are in it, docs/scas.md. The exit status is 1 if a case failed,
77 if none failed and one did not run.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PASSED, SKIPPED = "ok", "skipped: "


def binary_of(source):
    """The name of a test binary by the file that cargo names: src/lib.rs, tests/paths.rs, tests/sctp/main.rs."""
    parts = source.split("/")
    if parts[0] == "tests":
        return parts[1].removesuffix(".rs")
    return parts[-1].removesuffix(".rs")


def read_results(crate, output, skipped):
    """Outcome of each (crate, binary, path) in what 'cargo test' printed; 'skipped' is what tests wrote to PITH_SKIPPED."""
    reasons = dict(line.split(": ", 1) for line in skipped.splitlines() if ": " in line)
    results, binary = {}, ""
    for line in output.splitlines():
        if running := re.match(r"\s*Running (?:unittests )?(\S+) \(", line):
            binary = binary_of(running[1])
        elif outcome := re.match(r"test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", line):
            path, word = outcome.groups()
            if word == "ignored":
                word = SKIPPED + "it is ignored"
            if word == PASSED and path in reasons:
                word = SKIPPED + reasons[path]
            results[crate, binary, path] = word
    return results


def outcome_of(test, results):
    """Outcome of a test by its name in cases.json."""
    if test.startswith("live "):
        return results.get(test, "no such check")
    place, path = test.split(" ")
    crate, _, binary = place.partition("/")
    found = {key[1]: outcome for key, outcome in results.items()
             if key[0] == crate and key[2] == path and binary in ("", key[1])}
    if len(found) > 1:
        return f"several binaries have this test: write {' or '.join(f'{crate}/{name}' for name in sorted(found))}"
    return next(iter(found.values()), "no such test")


def cargo_results(tests):
    """Outcome of each (crate, binary, path)."""
    by_crate = collections.defaultdict(set)
    for test in tests:
        place, path = test.split(" ")
        by_crate[place.split("/")[0]].add(path)
    results = {}
    for crate, paths in sorted(by_crate.items()):
        command = ["scripts/cargo", "test", "--locked", "-p", crate, "--tests", "--no-fail-fast", "--", "--exact", *sorted(paths)]
        with tempfile.NamedTemporaryFile("r", prefix="pith-skipped-") as skipped:
            environment = {**os.environ, "PITH_SKIPPED": skipped.name, "CARGO_TERM_COLOR": "never"}
            done = subprocess.run(command, cwd=ROOT, env=environment, text=True, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            of_crate = read_results(crate, done.stdout, skipped.read())
        results.update(of_crate)
        if done.returncode and "FAILED" not in of_crate.values():
            sys.stderr.write(done.stdout[-3000:])
    return results


def live_results(names):
    """Outcome of each "live NAME"."""
    if not names:
        return {}
    done = subprocess.run(["scripts/scas-live"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    results = {}
    for name, outcome, seen in re.findall(r"^scas (\S+) (pass|fail|skip) ?(.*)$", done.stdout, re.M):
        results[f"live {name}"] = {"pass": PASSED, "fail": f"FAILED: {seen}", "skip": SKIPPED + seen}[outcome]
    if done.returncode:
        print(done.stdout[-3000:], file=sys.stderr)
    return results


def passed_before():
    """Cases that passed in the last run, and the commit at which they ran, by id."""
    with open(os.path.join(ROOT, "target", "scas.json")) as file:
        return {case["id"]: case.get("ran_at", "") for case in json.load(file)["cases"] if case["result"] == "pass"}


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def judge(case, results):
    """(result, detail) of a case."""
    for key, result in (("na", "not applicable"), ("not_yet", "not yet")):
        if key in case:
            return result, case[key]
    outcomes = [(test, outcome_of(test, results)) for test in case["tests"]]
    those = lambda wanted: "; ".join(f"{test}: {outcome}" for test, outcome in outcomes if wanted(outcome))
    if not outcomes:
        return "fail", "it names no test"
    if failed := those(lambda outcome: outcome != PASSED and not outcome.startswith(SKIPPED)):
        return "fail", failed
    skipped = those(lambda outcome: outcome != PASSED)
    return ("not run", skipped) if skipped else ("pass", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-live", action="store_true", help="do not run scripts/scas-live: its cases are 'not run'")
    parser.add_argument("--failed", action="store_true",
                        help="run only the cases that did not pass in the last run (target/scas.json); the others are reported as passes of that run")
    parser.add_argument("--check", action="store_true", help="fail if docs/scas.md changes")
    arguments = parser.parse_args()
    cases = json.load(open(os.path.join(HERE, "cases.json")))
    before = passed_before() if arguments.failed else {}
    tests = sorted({test for case in cases if case["id"] not in before for test in case.get("tests", [])})
    results = cargo_results([test for test in tests if not test.startswith("live ")])
    live = [test for test in tests if test.startswith("live ")]
    results.update({test: SKIPPED + "--no-live" for test in live} if arguments.no_live else live_results(live))

    judged, now = [], commit()
    for case in cases:
        is_old = case["id"] in before
        result, detail = ("pass", "") if is_old else judge(case, results)
        judged.append({"id": case["id"], "clause": case["clause"], "title": case["title"], "result": result, "detail": detail,
                       "tests": case.get("tests", []), "ran_at": before[case["id"]] if is_old else now, "earlier_run": is_old})
    os.makedirs(os.path.join(ROOT, "target"), exist_ok=True)
    with open(os.path.join(ROOT, "target", "scas.json"), "w") as file:
        json.dump({"cases": judged}, file, indent=1)
        file.write("\n")
    counts = collections.Counter(case["result"] for case in judged)
    earlier = sum(case["earlier_run"] for case in judged)
    for case in judged:
        note = f" (in an earlier run, at {case['ran_at'] or 'an unknown commit'})" if case["earlier_run"] else ""
        print(f"{case['clause']:<24} {case['id']:<48} {case['result']}{note}")
        if case["result"] in ("fail", "not run"):
            print(f"    {case['detail']}")
    of_earlier = f" ({earlier} of them in an earlier run)" if earlier else ""
    print(f"\n{counts['pass']} passed{of_earlier}, {counts['fail']} failed, {counts['not run']} not run, "
          f"{counts['not applicable']} not applicable, {counts['not yet']} not yet")
    if earlier:
        print("docs/scas.md was not written: it shows complete runs only")
    else:
        write_page(table(judged), arguments.check)
    sys.exit(1 if counts["fail"] else 77 if counts["not run"] else 0)


def write_page(page, must_not_change):
    path = os.path.join(ROOT, "docs", "scas.md")
    before = open(path).read() if os.path.exists(path) else ""
    with open(path, "w") as file:
        file.write(page)
    if must_not_change and page != before:
        sys.exit("docs/scas.md is out of date: commit the file that 'make scas' wrote")


def table(judged):
    lines = [
        "# Security assurance cases (3GPP SCAS)",
        "",
        "Generated by `make scas` from `tests/scas/cases.json`; do not edit. The table lists the cases of TS 33.512 (AMF), 33.513 (UPF),",
        "33.514 (UDM), 33.515 (SMF), 33.516 (AUSF), 33.518 (NRF) and 33.117 (general) that can be tested without special equipment.",
        'A case passes if all its tests pass. "Not applicable": this core does not perform the tested function. "Not yet": the function is missing.',
        "",
        "| TS and clause | case | result | tests, or reason |",
        "|---|---|---|---|",
    ]
    for case in judged:
        shown = ", ".join(f"`{test.split(' ')[1].split('::')[-1]}`" for test in case["tests"])
        lines.append(f"| {case['clause']} | {case['id']}: {case['title']} | {case['result']} | {case['detail'] or shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
