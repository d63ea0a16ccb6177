# SPDX-License-Identifier: MIT
"""Tests the arithmetic of bench/overhead --toggle (bench/toggle.py) with series whose ratio is known."""
import math
import os
import random
import statistics
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bench"))
import toggle  # noqa: E402

RATIOS = {"off": 1.0, "on": 1.05, "old": 1.04}


def series(states, rounds, cost_ns, chance=None):
    """Slices in rounds of the states, as measure() makes them. cost_ns(number of the slice): without a recorder."""
    order = [state for _ in range(rounds) for state in (chance.sample(states, len(states)) if chance else states)]
    return [toggle.Slice(state, 0.5 * number, cost_ns(number) * RATIOS[state], 10000) for number, state in enumerate(order)]


def noisy(chance):
    """The machine becomes slower or faster by 1 % from slice to slice, a slice scatters by 3 %, one in 20 is disturbed."""
    walk = [0.0]

    def cost_ns(_):
        walk[0] += chance.gauss(0, 0.01)
        return 6000 * math.exp(walk[0] + chance.gauss(0, 0.03)) * (1.5 if chance.random() < 0.05 else 1)
    return cost_ns


class Compare(unittest.TestCase):
    def test_a_steady_change_of_the_machine_cancels_out(self):
        result = toggle.compare(series(["off", "on"], 20, lambda number: 6000 + 20 * number), "on", "off")
        self.assertAlmostEqual(result.ratio, 1.05, 3)
        self.assertLess(result.error, 0.001)
        self.assertEqual(result.slices, 19)  # the last one has no slice after it

    def test_builds_are_compared_directly(self):
        slices = series(["off", "old", "on"], 20, lambda number: 6000)
        self.assertAlmostEqual(toggle.compare(slices, "on", "old").ratio, 1.05 / 1.04, 9)

    def test_disturbed_slices(self):
        slices = series(["off", "on"], 20, lambda number: 60000 if number % 10 == 3 else 6000)
        self.assertAlmostEqual(toggle.compare(slices, "on", "off").ratio, 1.05, 9)

    def test_too_few_slices(self):
        self.assertIsNone(toggle.compare(series(["off", "on"], 4, lambda number: 6000), "on", "off"))
        self.assertIsNone(toggle.compare(series(["off"], 40, lambda number: 6000), "on", "off"))

    def test_the_standard_error_is_the_scatter_of_results(self):
        results = []
        for seed in range(40):
            chance = random.Random(seed)
            results.append(toggle.compare(series(["off", "on"], 40, noisy(chance), chance), "on", "off", chance))
        scatter = statistics.stdev(result.ratio for result in results)
        self.assertLess(abs(statistics.mean(result.ratio for result in results) - 1.05), 2 * scatter / math.sqrt(len(results)))
        self.assertTrue(0.7 < statistics.mean(result.error for result in results) / scatter < 1.3)


if __name__ == "__main__":
    unittest.main()
