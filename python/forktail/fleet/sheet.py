# SPDX-License-Identifier: MIT
"""A job's result: a table, which is printed, written as Parquet and CSV and shown on the page, and its charts."""
from dataclasses import dataclass, field


@dataclass
class Sheet:
    name: str  # of the files
    title: str
    frame: object  # Spark's, most important rows first
    note: str = ""
    top: int = 20  # printed rows; the page has ten times as many
    charts: list = field(default_factory=list)  # functions from DataSet.causes to SVG
    links: dict = field(default_factory=dict)  # column -> column with the path of its link


def cell(name, value):
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


def duration(ns):
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(ns) >= size:
            return f"{ns / size:,.3f} {unit}"
    return f"{ns} ns"


def heading(name):
    return name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")


def text_table(names, rows):
    cells = [[cell(n, v) for n, v in zip(names, row)] for row in rows]
    head = [heading(n) for n in names]
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(names))]
    right = [all(isinstance(row[i], (int, float)) or row[i] is None for row in rows) for i in range(len(names))]
    lines = ["  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right)).rstrip() for line in [head, *cells]]
    return "\n".join(lines)
