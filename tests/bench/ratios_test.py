#!/usr/bin/env python3
"""The arithmetic of bench/peers/run, and its behaviour without peers."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEERS = os.path.join(ROOT, "bench", "peers")
sys.path.insert(0, PEERS)

import ratios  # noqa: E402


class Ratios(unittest.TestCase):
    def test_medians_of_rounds_are_compared(self):
        r = ratios.row("step", "images/s", [100, 1, 110], "peer", [50, 40, 1000], (">=", 1.05))
        self.assertEqual((r["ours"], r["peer"], r["ratio"]), (100, 50, 2))
        self.assertTrue(r["reached"])
        self.assertFalse(ratios.row("", "", [10], "", [10], (">=", 1.05))["reached"])
        self.assertTrue(ratios.row("", "", [5], "", [10], ("<=", 0.6))["reached"])
        self.assertFalse(ratios.row("", "", [7], "", [10], ("<=", 0.6))["reached"])
        self.assertIsNone(ratios.row("", "", [7], "", [10])["reached"])

    def test_a_bound_of_our_own_needs_no_peer(self):
        r = ratios.row("start", "s", [0.2], "import", [], ("<=", 0.3, "ours"), "no torch")
        self.assertTrue(r["reached"])
        self.assertIsNone(r["ratio"])
        self.assertEqual(r["skipped"], "no torch")
        self.assertFalse(ratios.row("", "s", [0.4], "", [0.1], ("<=", 0.3, "ours"))["reached"])

    def test_nothing_measured_is_never_reached(self):
        for ours, peer in (([], []), ([], [1]), ([1], [])):
            r = ratios.row("step", "", ours, "peer", peer, (">=", 0))
            self.assertIsNone(r["reached"])
            self.assertEqual(r["skipped"], "no result")

    def test_the_peer_is_at_its_best_setting(self):
        rounds = [{"a": 1, "b": 3, "c": 99}, {"a": 5, "b": 3}, {"a": 1, "b": 4}]
        self.assertEqual(ratios.best_setting(rounds), ("b", [3, 3, 4]))
        self.assertEqual(ratios.best_setting([]), (None, []))
        self.assertEqual(ratios.best_setting([{"a": 1}, {"b": 1}]), (None, []))

    def test_efficiency(self):
        self.assertAlmostEqual(ratios.efficiency(190, 98, 102), 0.95)

    def test_table(self):
        text = ratios.table([
            ratios.row("x", "s", [1], "p", [4], ("<=", 0.6)),
            ratios.row("y", "s", [3], "p", [4], ("<=", 0.6)),
            ratios.row("z", "s", [3], "p", [], None, "no torch")])
        x, y, z = text.splitlines()[2:]
        self.assertIn("| 0.250 | <= 0.6 | reached |", x)
        self.assertIn("**not reached**", y)
        self.assertIn("skipped: no torch", z)
        self.assertEqual({line.count("|") for line in text.splitlines()}, {9})

    def test_facts_that_forbid_a_comparison_are_named(self):
        first = {"cpu": "a", "governor": "performance", "allowed_cores": 2, "load_average": 0.1}
        second = dict(first, governor="powersave", load_average=3)
        self.assertEqual(ratios.differing_facts(first, second), ["governor"])
        self.assertEqual(ratios.differing_facts(first, {"cpu": "a"}), ["allowed_cores", "governor"])


class Run(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([sys.executable, "-B", os.path.join(PEERS, "run"), *arguments],
                              capture_output=True, text=True, timeout=60)

    def test_programs_that_are_not_built_fail_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_it("--quick", "--only", "start", "--bin", folder, "--json", "-")
        self.assertEqual(done.returncode, 1)
        result = json.loads(done.stdout)
        self.assertIn("is not built", result["rows"][0]["skipped"])
        for fact in ("cpu", "allowed_cores", "governor"):
            self.assertIn(fact, result["machine"])
        for key in ("commit", "started", "load_at_start", "load_at_end", "command", "build"):
            self.assertIn(key, result)

    def test_results_of_different_machines_are_not_compared(self):
        result = {"schema": "lockstep.peers", "quick": True, "threads_per_rank": 1, "peers": "none",
                  "machine": {"cpu": "a", "governor": "performance"},
                  "build": {"compiler": "GCC", "flags": "-O3"},
                  "rows": [ratios.row("start", "s", [0.2], "", [])]}
        other = json.loads(json.dumps(result))
        other["rows"][0]["ours"] = 0.1
        with tempfile.TemporaryDirectory() as folder:
            old, new = os.path.join(folder, "old"), os.path.join(folder, "new")

            def compare(*flags):
                with open(old, "w") as file:
                    json.dump(result, file)
                with open(new, "w") as file:
                    json.dump(other, file)
                return subprocess.run(
                    [sys.executable, "-B", os.path.join(PEERS, "compare"), *flags, old, new],
                    capture_output=True, text=True, timeout=60)

            same = compare()
            self.assertEqual(same.returncode, 0, same.stderr)
            self.assertIn("| start | s | 0.200 | 0.100 | 0.500 |", same.stdout)
            other["machine"]["governor"] = "powersave"
            refused = compare()
            self.assertEqual((refused.returncode, refused.stdout), (1, ""))
            self.assertIn("governor differs: 'performance' and 'powersave'", refused.stderr)
            self.assertEqual(compare("--force").returncode, 0)

    def test_unknown_parts_are_refused(self):
        self.assertEqual(self.run_it("--only", "nothing").returncode, 2)


if __name__ == "__main__":
    unittest.main()
