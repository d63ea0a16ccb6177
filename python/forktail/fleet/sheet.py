# SPDX-License-Identifier: MIT
"""A job's result: a table, which is printed, written as Parquet and CSV and shown on the page, and its charts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Causes = dict[str, dict[str, str]]  # name -> its colours in the shades light and dark
Chart = Callable[[Causes], str]  # to SVG


@dataclass
class Sheet:
    name: str  # of the files
    title: str
    frame: Any  # Spark's, most important rows first
    note: str = ""
    top: int = 20  # printed rows; the page has ten times as many
    charts: list[Chart] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)  # column -> column with the path of its link


def cell(name: str, value: Any) -> str:
    """A value as text; the column's name has the unit."""
    if value is None:
        return "-"
    if name.endswith("_ns"):
        return duration(value)
    if name.endswith("_bytes"):
        return f"{value / 2**20:,.1f} MiB"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def duration(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(ns) >= size:
            return f"{ns / size:,.3f} {unit}"
    return f"{ns} ns"


def heading(name: str) -> str:
    return name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")


def text_table(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    cells = [[cell(n, v) for n, v in zip(names, row, strict=True)] for row in rows]
    head = [heading(n) for n in names]
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(names))]
    right = [all(isinstance(row[i], (int, float)) or row[i] is None for row in rows) for i in range(len(names))]
    lines = [
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)).rstrip()
        for line in [head, *cells]
    ]
    return "\n".join(lines)
