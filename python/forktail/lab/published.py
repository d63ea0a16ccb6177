# SPDX-License-Identifier: MIT
"""The figures of the five published reports that experiments are compared with, once, as data (published.csv).

A row of the file is a cell of a report: the number of its table ("A3"), the names of its row and column, the value as
printed, its true unit, and what a reader must know about it. bench/published.py compares the file with the reports'
texts and checks their arithmetic.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from forktail.lab.format import Format, unit_of

_NS = {"s": 1e9, "ms": 1e6, "us": 1e3}
_BINARY = {"K": 1 << 10, "M": 1 << 20}  # as Redis prints memory


@dataclass
class Cell:
    row: str
    column: str
    value: float  # in `unit`
    unit: str  # s, ms, us, /s, kB/s, %, B, or empty: a number

    def in_unit_of(self, form: Format) -> float:
        """The value in the unit that a column with this format prints. Times in columns without unit are seconds."""
        return self.value * _NS[self.unit] / _NS[unit_of(form) or "s"] if self.unit in _NS else self.value


@cache
def published_tables() -> dict[str, list[Cell]]:
    """The cells of each table of the reports."""
    tables: dict[str, list[Cell]] = {}
    with (Path(__file__).parent / "published.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            value = float(line["value"].rstrip("KM")) * _BINARY.get(line["value"][-1], 1)
            tables.setdefault(line["table"], []).append(Cell(line["row"], line["column"], value, line["unit"]))
    return tables


def figures_at(place: str, row: str, form: Format) -> dict[str, float]:
    """The figures at a place "TABLE: ROW: COLUMN" by what stands for {key} in it, in the unit of `form`. {row} is
    replaced by `row`. Empty: no report has such a cell."""
    table, _, rest = place.partition(": ")
    pattern = "(?P<key>.+)".join(re.escape(part) for part in rest.replace("{row}", row).split("{key}"))
    figures = {}
    for cell in published_tables().get(table, []):
        match = re.fullmatch(pattern, f"{cell.row}: {cell.column}")
        if match:
            figures[match.groupdict().get("key", "")] = cell.in_unit_of(form)
    return figures
