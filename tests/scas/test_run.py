"""Tests of tests/scas/run.py: python3 tests/scas/test_run.py"""

import unittest

import run

OUTPUT = """
    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.21s
     Running unittests src/lib.rs (target/debug/deps/pith_x-1)
running 2 tests
test a::passes ... ok
test both ... ok
     Running tests/paths.rs (target/debug/deps/paths-2)
test both ... FAILED
test lab ... ok
test peer ... ignored, a subprocess
     Running tests/sctp/main.rs (target/debug/deps/sctp-3)
test in_sctp ... ok
"""
RESULTS = run.read_results("pith-x", OUTPUT, "lab: no right to make a network namespace\na case of in_sctp: no SCTP\n")


def judged(*tests):
    return run.judge({"tests": list(tests)}, {**RESULTS, "live seen": "ok", "live not": "skipped: no ss"})


class Judging(unittest.TestCase):
    def test_a_test_that_ran_and_passed_passes(self):
        self.assertEqual(judged("pith-x a::passes", "pith-x/sctp in_sctp", "live seen"), ("pass", ""))

    def test_a_test_that_was_skipped_or_ignored_did_not_run(self):
        self.assertEqual(judged("pith-x a::passes", "pith-x lab")[0], "not run")
        self.assertIn("network namespace", judged("pith-x lab")[1])
        self.assertEqual(judged("pith-x peer")[0], "not run")
        self.assertEqual(judged("live not")[0], "not run")

    def test_equal_paths_in_two_binaries_are_distinguished(self):
        self.assertEqual(judged("pith-x/lib both"), ("pass", ""))
        self.assertEqual(judged("pith-x/paths both")[0], "fail")
        result, detail = judged("pith-x both")
        self.assertEqual(result, "fail")
        self.assertIn("pith-x/lib or pith-x/paths", detail)

    def test_a_missing_test_fails(self):
        for tests in [("pith-x nothing",), ("pith-y a::passes",), ("pith-x/paths a::passes",), ("live nothing",), ()]:
            self.assertEqual(judged(*tests)[0], "fail", tests)

    def test_a_failure_outweighs_a_skip(self):
        self.assertEqual(judged("pith-x lab", "pith-x/paths both")[0], "fail")


if __name__ == "__main__":
    unittest.main()
