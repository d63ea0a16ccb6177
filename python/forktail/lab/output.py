# SPDX-License-Identifier: MIT
"""The tables and the charts of a scenario's run, made once for whatever shows them.

All tables are made before any chart is drawn, so that errors are found early.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from forktail.files import replace_file
from forktail.host.session import Session
from forktail.lab.charts import DrawnChart, draw_charts, make_charts
from forktail.lab.results import Results
from forktail.lab.scenario import Scenario
from forktail.lab.tables import MadeTable, conclude_all, make_tables, table_csv

_MANY_ROWS = 12
_OF_UNIT = {"%": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass
class Output:
    """What pages, documents and the terminal show."""

    tables: list[MadeTable] = field(default_factory=list)
    charts: list[DrawnChart] = field(default_factory=list)
    conclusions: list[str] = field(default_factory=list)  # a sentence each
    note: str = ""  # why there are no charts; empty: there are


def make_output(session: Session, scenario: Scenario, results: Results) -> Output:
    """Raises Failure: it says which table or chart is wrong, or that a signal asked to stop."""
    tables = make_tables(scenario, results)
    charts, note = draw_charts(session, make_charts(scenario, results))
    return Output(tables, charts, conclude_all(scenario, results), note)


def _main_causes(text: str) -> str:
    """The first cause of "fork 61 %, run-queue 7 %" or "fork 43.7 ms, run-queue 310 us", and those with at least a
    tenth of 100 % or of the longest time. Other texts are returned as they are."""
    causes = text.split(", ")
    sizes = []
    for cause in causes:
        size = re.fullmatch(r"\S+ ([\d.,]+) (%|s|ms|us|ns)", cause)
        if not size:
            return text
        sizes.append(float(size[1].replace(",", "")) * _OF_UNIT[size[2]])
    whole = _OF_UNIT["%"] * 100 if causes[0].endswith("%") else max(sizes)
    others = [cause for cause, size in zip(causes[1:], sizes[1:], strict=True) if size >= whole / 10]
    return ", ".join([causes[0], *others])


def _short_table(table: MadeTable) -> MadeTable:
    keys = [i for i, head in enumerate(table.heads) if head.key]
    published = [i for i, head in enumerate(table.heads) if head.published]
    rows = table.rows
    if table.main:
        rows = [row for row in rows if "/".join(row[i].text for i in keys) in table.main]
    elif published and len(rows) > _MANY_ROWS:
        rows = [row for row in rows if any(row[i].text != "-" for i in published)]
    stay = [i for i, head in enumerate(table.heads) if not head.detail]
    if published:
        stay = [i for i in stay if i in keys or not table.heads[i].number or {i, i + 1} & set(published)]
    texts = [i for i, head in enumerate(table.heads) if not head.key and not head.number]
    rows = [[replace(row[i], text=_main_causes(row[i].text)) if i in texts else row[i] for i in stay] for row in rows]
    return replace(table, heads=[table.heads[i] for i in stay], rows=rows)


def short_output(output: Output, parts: str) -> Output:
    """The short form of an output, for a document: the first table without details, the conclusions but not with
    " table" in `parts`, and the first chart with " chart".

    A table has only its main rows, if it names any. One with published figures keeps its keys, its texts, and the
    columns with published figures; with more than 12 rows and no main ones, only the rows with published figures.
    Causes below a tenth are left out.
    """
    tables = [_short_table(table) for table in output.tables[:1]]
    conclusions = [] if " table" in parts else output.conclusions
    return Output(tables, output.charts[:1] if " chart" in parts else [], conclusions, output.note)


def write_tables(directory: Path | str, name: str, output: Output) -> None:
    """Every table in full as NAME-1.csv, NAME-2.csv ..."""
    for number, table in enumerate(output.tables, 1):
        replace_file(f"{directory}/{name}-{number}.csv", table_csv(table))


def write_charts(directory: Path | str, name: str, output: Output) -> None:
    """Writes each chart to a file NAME-1.svg. Raises Failure."""
    for i, chart in enumerate(output.charts, 1):
        replace_file(Path(directory) / f"{name}-{i}.svg", chart.svg)
