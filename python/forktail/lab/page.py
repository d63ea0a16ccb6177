# SPDX-License-Identifier: MIT
"""The outputs of a scenario's run: a page with tables, charts and worst moments, the same as text and as a Markdown section, and an index page of several scenarios.

Pages are self-contained and have no scripts. Texts of scenarios and servers are escaped where they are inserted.
"""

from dataclasses import dataclass
from pathlib import Path

from forktail.lab.output import Output
from forktail.lab.results import Results
from forktail.lab.scenario import Scenario


@dataclass
class IndexEntry:
    name: str
    title: str
    state: str = ""  # "done", "failed: ..."
    seconds: float = 0
    link: str = ""  # relative; empty: no page


def text_of(results: Results, output: Output, width: int) -> str:
    """Tables for a terminal of `width` columns, followed by the notes of the run."""
    raise NotImplementedError


def page_of(scenario: Scenario, results: Results, output: Output, directory: Path | str) -> str:
    """`directory` is the directory of report.html, with the run directories of recorded steps below it; existing pages are linked."""
    raise NotImplementedError


def markdown_of(scenario: Scenario, results: Results, output: Output, charts: str) -> str:
    """A section with a second-level title. Its charts are files in `charts`, a path relative to the document: "experiments" -> experiments/NAME-1.svg."""
    raise NotImplementedError


def index_of(entries: list[IndexEntry], where: Results) -> str:
    """`where` is one of the runs: host, versions and command are the same for all."""
    raise NotImplementedError


def write_section(document: Path | str, scenario: Scenario, results: Results, output: Output) -> None:
    """Puts the tables and charts into a Markdown document, between the lines "<!-- lab:NAME -->" and "<!-- /lab:NAME -->". Raises Failure.

    The rest of the document stays. With "<!-- lab:NAME short -->" the section has only the main table, with "<!-- lab:NAME short
    chart -->" also the first chart (short_output). Charts are written to the directory with the document's name without ".md".
    """
    raise NotImplementedError


def time_taken(seconds: float) -> str:
    """ "12.5 s", "3 min 20 s"."""
    raise NotImplementedError
