# SPDX-License-Identifier: MIT
"""A scenario's charts, from its results: lines over a variable with numbers, else bars side by side; drawn as SVG with gnuplot.

Published figures have the color of their series, dashed.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forktail.lab.format import Format
from forktail.lab.results import Results
from forktail.lab.scenario import Scenario

if TYPE_CHECKING:
    from forktail.host.session import Session


@dataclass
class Dot:
    x: float  # the variable's value; of bars its index, from 0
    y: float  # in the unit of the axis
    least: float | None = None  # with repeats
    most: float | None = None


@dataclass
class Series:
    title: str
    published: bool = False  # of the series before it
    dots: list[Dot] = field(default_factory=list)  # by x


@dataclass
class MadeChart:
    title: str
    x_title: str = ""
    y_title: str = ""
    log_x: bool = False
    log_y: bool = False
    format: Format = Format.COUNT  # of y
    places: list[str] = field(default_factory=list)  # labels below bars; empty: lines
    series: list[Series] = field(default_factory=list)


@dataclass
class DrawnChart:
    title: str
    svg: str  # a complete file; identical for identical data


def make_charts(scenario: Scenario, results: Results) -> list[MadeChart]:
    """One chart per name in `each`, which replaces {row} in titles (or is appended) and figures. Raises Failure.

    Keys of `published` are the variable's values: "100", with `each` "100/SET". Charts without dots are left out.
    """
    raise NotImplementedError


def draw_charts(session: "Session", charts: list[MadeChart]) -> tuple[list[DrawnChart], str]:
    """The charts, and a note: the reason if gnuplot is missing or fails, else "". Raises Failure on a stop signal."""
    raise NotImplementedError


def gnuplot_script(chart: MadeChart, output: str) -> str:
    """The gnuplot script for one chart; `output` is its output file."""
    raise NotImplementedError
