# SPDX-License-Identifier: MIT
"""The list of cases: case files register into it, and the suite runs it."""

import random

CASES = []  # in order of registration. See in_order


def drawn(magnitude, draw):
    """0.7 to 1.4 times the magnitude. One that is no plain number stays what it is."""
    if not isinstance(magnitude, (int, float)):
        return magnitude
    other = magnitude * draw.uniform(0.7, 1.4)
    return max(1, round(other)) if isinstance(magnitude, int) else other


class Case:
    def __init__(self, number, name, causes, magnitudes, threshold, fixed, runs, in_short, function):
        self.number, self.name, self.causes, self.magnitudes = number, name, causes, magnitudes
        self.threshold, self.fixed, self.runs, self.in_short, self.function = threshold, fixed, runs, in_short, function

    def chosen(self, short, seed):
        """The magnitudes to inject: all, or in the short form the middle one, and a third of a control's length. With a
        seed, others near them."""
        if short and not self.causes:
            return tuple(max(1, m // 3) for m in self.magnitudes)
        middle = len(self.magnitudes) // 2
        picked = self.magnitudes[middle:middle + 1] if short else self.magnitudes
        if seed is None or self.fixed or not self.causes:
            return picked
        draw = random.Random(f"{seed} {self.name}")
        return tuple(drawn(m, draw) for m in picked)


def in_order():
    """By number, pairs and controls last."""
    return sorted(CASES, key=lambda c: (isinstance(c.number, str), c.number))


def case(number, name, causes, magnitudes, threshold="1ms", fixed=False, runs=(), in_short=True):
    """Registers function(trial, magnitudes), which injects `causes` once at each magnitude. `number` is the case's
    number in docs/results/truth.md. `threshold` defines which requests are slow in it. `fixed`: only these magnitudes
    make sense. `runs`: names in expected.py of the whole runs that it makes (Trial.whole). `in_short`: whether the short
    form has it. A control has no causes, and its one magnitude is its length in seconds."""

    def register(function):
        CASES.append(Case(number, name, causes, magnitudes, threshold, fixed, runs, in_short, function))
        return function

    return register
