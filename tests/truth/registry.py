# SPDX-License-Identifier: MIT
"""The list of cases: what a case file registers and the suite goes through."""

CASES = []  # in order of registration; see in_order


class Case:
    def __init__(self, number, name, causes, function, threshold):
        self.number, self.name, self.causes, self.function, self.threshold = number, name, causes, function, threshold


def in_order():
    """By number, pairs and controls last."""
    return sorted(CASES, key=lambda c: (isinstance(c.number, str), c.number))


def case(number, name, causes, threshold="1ms"):
    """Registers function(trial, magnitudes): it injects `causes` at three magnitudes, or at one if `magnitudes` is a
    list of one. `number` is the case's in the list of docs/truth.md; `threshold` is what counts as slow in it."""

    def register(function):
        CASES.append(Case(number, name, causes, function, threshold))
        return function

    return register
