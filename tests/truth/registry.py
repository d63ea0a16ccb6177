# SPDX-License-Identifier: MIT
"""The list of cases: case files register into it, and the suite runs it."""

CASES = []  # in order of registration. See in_order


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
    """Registers function(trial, magnitudes), which injects `causes` once at each magnitude. `number` is the case's
    number in docs/results/truth.md. `threshold` defines which requests are slow in it. A control has no causes, and its
    one magnitude is its length in seconds."""

    def register(function):
        CASES.append(Case(number, name, causes, magnitudes, threshold, function))
        return function

    return register
