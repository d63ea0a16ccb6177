# SPDX-License-Identifier: MIT
"""The list of cases: what a case file registers and the suite goes through."""

CASES = []  # in order of registration; see in_order


class Case:
    def __init__(self, number, name, causes, magnitudes, threshold, function):
        self.number, self.name, self.causes, self.magnitudes = number, name, causes, magnitudes
        self.threshold, self.function = threshold, function

    def chosen(self, short):
        """The magnitudes to inject: all, or in the short form the middle one."""
        middle = len(self.magnitudes) // 2
        return self.magnitudes[middle:middle + 1] if short else self.magnitudes


def in_order():
    """By number, pairs and controls last."""
    return sorted(CASES, key=lambda c: (isinstance(c.number, str), c.number))


def case(number, name, causes, magnitudes, threshold="1ms"):
    """Registers function(trial, magnitudes), which injects `causes` once at each of these. `number` is the case's in the
    list of docs/results/truth.md; `threshold` is what counts as slow in it. A control has no causes; its one magnitude is its
    length in seconds."""

    def register(function):
        CASES.append(Case(number, name, causes, magnitudes, threshold, function))
        return function

    return register
