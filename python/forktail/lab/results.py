# SPDX-License-Identifier: MIT
"""The results of a scenario's points: figures and texts by name, stored in results.json, so that a run can be printed again, compared and resumed.

A name has the step and the figure: run.SET.p99 (ns), run.redis.cpu_percent, before.redis.used_memory (bytes).
docs/reference/lab-and-scenarios.md lists them. Characters other than letters and digits become "_" between dots: run.p99_9,
run.READ_MODIFY_WRITE.rps.
"""

from dataclasses import dataclass, field
from pathlib import Path

from forktail.lab.scenario import Values


@dataclass
class Point:
    values: Values = field(default_factory=dict)  # variables, sizes and constants
    numbers: dict[str, float] = field(default_factory=dict)  # figure -> value; with repeats the median
    texts: dict[str, str] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)  # with repeats: the smallest value
    most: dict[str, float] = field(default_factory=dict)  # with repeats: the largest value
    recorded: list[str] = field(default_factory=list)  # run directories under the scenario's, one per recorded step
    repeats: int = 1


@dataclass
class Results:
    scenario: str = ""
    title: str = ""
    host: str = ""  # where
    kernel: str = ""
    cpu: str = ""
    versions: dict[str, str] = field(default_factory=dict)  # forktail, redis ...
    scale: str = ""
    command: str = ""  # as typed
    seconds: float = 0  # duration
    started_unix: int = 0
    notes: list[str] = field(default_factory=list)  # what this host does not support, and why
    points: list[Point] = field(default_factory=list)  # in the order of points_of


def write_results(path: Path | str, results: Results) -> None:
    """Replaces the file atomically. NaN and infinite figures are left out. Raises Failure."""
    raise NotImplementedError


def read_results(path: Path | str) -> Results:
    """Raises Failure: one sentence, if the file cannot be read or is damaged."""
    raise NotImplementedError
