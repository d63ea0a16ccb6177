# SPDX-License-Identifier: MIT
"""The tables and the charts of a scenario's run, made once for whatever shows them.

All tables are made before any chart is drawn, so that errors are found early.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from forktail.lab.charts import DrawnChart
from forktail.lab.results import Results
from forktail.lab.scenario import Scenario
from forktail.lab.tables import MadeTable

if TYPE_CHECKING:
    from forktail.host.session import Session


@dataclass
class Output:
    tables: list[MadeTable] = field(default_factory=list)
    charts: list[DrawnChart] = field(default_factory=list)
    note: str = ""  # why there are no charts; empty: there are


def make_output(session: "Session", scenario: Scenario, results: Results) -> Output:
    """Raises Failure: it says which table or chart is wrong, or that a signal asked to stop."""
    raise NotImplementedError


def short_output(output: Output, chart: bool) -> Output:
    """The short form of an output, for a document: the first table and, with `chart`, the first chart.

    A table with published figures keeps its keys, its texts, and the columns with published figures. With more than 12 rows it
    keeps only the rows with published figures.
    """
    raise NotImplementedError


def write_charts(directory: Path | str, name: str, output: Output) -> None:
    """Writes each chart to a file NAME-1.svg. Raises Failure."""
    raise NotImplementedError
