# SPDX-License-Identifier: MIT
"""Compares two runs of a scenario, for example before and after a change of the server, the kernel or a setting.

Figures are paired by table, row and column, so that runs at different scales can be compared where they overlap.
"""

from forktail.lab.results import Results
from forktail.lab.scenario import Scenario


def compare_results(scenario: Scenario, first: Results, second: Results, width: int) -> str:
    """Differences of scale, host and versions, then every figure of every table with both values and their ratio, for a terminal of `width` columns.

    With repeats a figure is marked if the ranges do not overlap, and the text has the probability of that by chance. Texts are
    not compared. Raises Failure if the runs are of different scenarios.
    """
    raise NotImplementedError
