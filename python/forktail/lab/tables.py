# SPDX-License-Identifier: MIT
"""A scenario's tables, from its results, with our figures and the published ones, as text, Markdown, HTML or CSV.

A cell belongs to the point that its row and column select; several points are an error, none is "-".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from forktail.lab.results import Point, Results
from forktail.lab.scenario import Column, Filter, Scenario, Table


@dataclass
class Cell:
    text: str = "-"  # "-": no value
    value: float | None = None  # in the printed unit; None: a text or no value
    least: float | None = None  # with repeats
    most: float | None = None


@dataclass
class Head:
    title: str
    key: bool = False  # a key column
    published: bool = False  # the published figures of the column before it
    number: bool = False  # right-aligned


@dataclass
class MadeTable:
    title: str
    note: str = ""
    heads: list[Head] = field(default_factory=list)
    rows: list[list[Cell]] = field(default_factory=list)  # each as long as heads


def find_point(scenario: Scenario, results: Results, filters: Sequence[Filter]) -> Point | None:
    """The only point that matches all filters. Raises Failure if several match: it names a variable in which they differ."""
    raise NotImplementedError


def make_cell(scenario: Scenario, results: Results, column: Column, point: Point, row: str) -> Cell:
    """A column's value at a point, and its text. `row` replaces {row}. Raises Failure."""
    raise NotImplementedError


def make_table(scenario: Scenario, table: Table, results: Results) -> MadeTable:
    """Keys in a column's `published` are the row's key cells joined by "/": "SET", "8/tcp", "8/tcp/SET". Raises Failure."""
    raise NotImplementedError


def make_tables(scenario: Scenario, results: Results) -> list[MadeTable]:
    """All tables of the scenario. Raises Failure."""
    raise NotImplementedError


def table_text(table: MadeTable, width: int) -> str:
    """For a terminal of `width` columns (0: unlimited). A wider table continues below with its key columns repeated."""
    raise NotImplementedError


def table_markdown(table: MadeTable) -> str:
    raise NotImplementedError


def table_html(table: MadeTable) -> str:
    raise NotImplementedError


def table_csv(table: MadeTable) -> str:
    """Numbers without separators; columns for least and most with repeats."""
    raise NotImplementedError
