# SPDX-License-Identifier: MIT
"""Compares two runs of a scenario, for example before and after a change of the server, the kernel or a setting.

Figures are paired by table, row and column, so that runs at different scales can be compared where they overlap.
"""

import math

from forktail.failure import Failure
from forktail.lab.format import Format, format_figure
from forktail.lab.results import Results, versions_text
from forktail.lab.scenario import Scenario
from forktail.lab.tables import Cell, Head, MadeTable, make_tables, table_text
from forktail.text import format_percent

_APART = "*"


def _differences(first: Results, second: Results) -> str:
    """Differences between the runs other than figures, one sentence each."""
    pairs = {
        "scales": (first.scale, second.scale),
        "hosts": (first.host, second.host),
        "CPUs": (first.cpu, second.cpu),
        "kernels": (first.kernel, second.kernel),
        "versions": (versions_text(first), versions_text(second)),
    }
    return "".join(
        f"The {what} differ: {one or 'unknown'} and {other or 'unknown'}.\n"
        for what, (one, other) in pairs.items()
        if one != other
    )


def _repeats(results: Results) -> int:
    """The smallest number of repeats of a point; 0 without points."""
    return min((point.repeats for point in results.points), default=0)


def _chance_apart(first: int, second: int) -> float:
    """The probability that the ranges of identical runs do not overlap: of all orders of the figures, which are equally
    likely, two have all of one side before all of the other."""
    return 2 / math.comb(first + second, first)


def _ratio(first: Cell, second: Cell) -> str:
    if first.value is None or second.value is None or first.value == 0:
        return "-"
    ratio = second.value / first.value
    return format_figure(ratio, Format.DECIMALS2 if ratio >= 0.1 else Format.NUMBER)


def _apart(first: Cell, second: Cell) -> bool:
    if first.least is None or first.most is None or second.least is None or second.most is None:
        return False
    return first.most < second.least or second.most < first.least


def _rows_by_keys(table: MadeTable) -> dict[tuple[str, ...], list[Cell]]:
    rows: dict[tuple[str, ...], list[Cell]] = {}
    for row in table.rows:
        keys = tuple(cell.text for cell, head in zip(row, table.heads, strict=True) if head.key)
        rows.setdefault(keys, row)
    return rows


def _compared(first: MadeTable, second: MadeTable) -> MadeTable:
    """The figures of each row, one line each; only the first line has the keys."""
    heads = [Head(head.title, key=True) for head in first.heads if head.key] + [Head("", key=True)]
    heads += [Head(title, number=True) for title in ("first", "second", "ratio")] + [Head("")]
    compared = MadeTable(first.title, heads=heads)
    ours, theirs = _rows_by_keys(first), _rows_by_keys(second)
    for keys in ours | theirs:
        texts = list(keys)
        for i, head in enumerate(first.heads):
            one = ours[keys][i] if keys in ours else Cell()
            other = theirs[keys][i] if keys in theirs else Cell()
            if head.key or head.published or not head.number or (one.value is None and other.value is None):
                continue
            apart = _APART if _apart(one, other) else ""
            cells = [Cell(text) for text in (*texts, head.title)]
            compared.rows.append([*cells, one, other, Cell(_ratio(one, other)), Cell(apart)])
            texts = [""] * len(texts)
    return compared


def compare_results(scenario: Scenario, first: Results, second: Results, width: int) -> str:
    """Differences of scale, host and versions, then every figure of every table with both values and their ratio, for a
    terminal of `width` columns.

    With repeats a figure is marked if the ranges do not overlap, and the text has the probability of that by chance.
    Texts are not compared. Raises Failure if the runs are of different scenarios.
    """
    if first.scenario != second.scenario:
        raise Failure(f"cannot compare runs of two scenarios: {first.scenario} and {second.scenario}")
    ours, theirs = make_tables(scenario, first), make_tables(scenario, second)
    text = _differences(first, second)
    once, again = _repeats(first), _repeats(second)
    repeated = once > 1 and again > 1
    if not repeated:
        text += "A single run cannot distinguish a change from noise: run both with --repeat 4 or more.\n"
    for one, other in zip(ours, theirs, strict=True):
        compared = _compared(one, other)
        if compared.rows:
            text += ("\n" if text else "") + f"{compared.title}\n\n{table_text(compared, width)}"
    if repeated:
        chance = format_percent(_chance_apart(once, again))
        text += (
            f"\n{_APART}: the ranges of the repeats do not overlap. With {once} and {again} repeats of identical runs, "
            f"this happens by chance for {chance} of the figures.\n"
        )
    return text
