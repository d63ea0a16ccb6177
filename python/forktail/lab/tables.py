# SPDX-License-Identifier: MIT
"""A scenario's tables, from its results, with our figures and the published ones, as text, Markdown, HTML or CSV.

A cell belongs to the point that its row and column select; several points are an error, none is "-".
"""

import html
import itertools
import random
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from forktail.failure import Failure
from forktail.lab.format import Format, format_figure, format_published, in_unit, with_unit
from forktail.lab.formula import names_in, with_row, with_values, work_out
from forktail.lab.results import Point, Results
from forktail.lab.scenario import Column, Conclusion, Filter, Line, Scenario, Table, matches, parse_number, title_of
from forktail.text import format_percent, visible_lines

_NO_VALUE = "-"
_BASE = "base."
_OF_CAUSES = (".time", ".percent")  # figures of a cause that are 0 without it
SHORTEST_S = 1  # a load that ran for less is compared with nothing


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
    detail: bool = False  # not in documents


@dataclass
class MadeTable:
    title: str
    note: str = ""
    heads: list[Head] = field(default_factory=list)
    rows: list[list[Cell]] = field(default_factory=list)  # each as long as heads
    main: list[str] = field(default_factory=list)  # rows in documents: their key cells joined by "/"; empty: all


def find_point(scenario: Scenario, results: Results, filters: Sequence[Filter]) -> Point | None:
    """The only point that matches all filters. Raises Failure if several match: it names a variable in which they
    differ."""
    first = None
    for point in results.points:
        if not all(matches(where, point.values) for where in filters):
            continue
        if first:
            differs = "nothing"
            for sweep in scenario.sweeps:
                if point.values.get(sweep.name) != first.values.get(sweep.name):
                    differs = f'"{sweep.name}"'
            raise Failure(f"several points match. They differ in {differs}: select one with `where`")
        first = point
    return first


def base_of(scenario: Scenario, results: Results, column: Column | Conclusion, point: Point) -> Point | None:
    """The point selected by `against`, with otherwise equal sweep variables."""
    if not column.against:
        return None
    chosen = point.values | column.against
    wanted = {sweep.name: [chosen[sweep.name]] for sweep in scenario.sweeps if sweep.name in chosen}
    return next((candidate for candidate in results.points if matches(wanted, candidate.values)), None)


def _value_in(formula: str, point: Point, base: Point | None, repeat: int) -> float | None:
    """The value of a formula at a point in a repeat; None: a figure is missing, or the result is not a number.

    A name is a figure of the point, else a variable, size or constant that is a number; after "base." it is one of
    `base` in the same repeat. {variable} in a name is its value. A cause that an explained load does not list took no
    time. Raises Failure for an invalid formula.
    """

    def figure(name: str) -> float | None:
        of = base if name.startswith(_BASE) else point
        name = name.removeprefix(_BASE)
        if not of:
            return None

        def measured(name: str) -> float | None:
            if name in of.runs:
                return of.runs[name][repeat] if repeat < len(of.runs[name]) else None
            return of.numbers.get(name)

        value = measured(name)
        step, cause, kind = name.partition(".cause.")
        if value is None and cause and kind.endswith(_OF_CAUSES) and measured(f"{step}.explained_percent") is not None:
            return 0
        return parse_number(of.values.get(name, "")) if value is None else value

    return work_out(with_values(formula, point.values), figure)


def evaluate(formula: str, point: Point, base: Point | None) -> list[float]:
    """The values of a formula at a point, one of each repeat that has one. Raises Failure for an invalid formula."""
    values = [_value_in(formula, point, base, repeat) for repeat in range(point.repeats)]
    return [value for value in values if value is not None]


def _shortest_s(formula: str, point: Point, base: Point | None) -> float | None:
    """How long the shortest of the loads ran whose figures the formula has. None: unknown."""
    seconds = []
    for name in names_in(formula):
        of = base if name.startswith(_BASE) else point
        step, *operation = name.removeprefix(_BASE).split(".")[:2]
        for load in (".".join([step, *operation]), step):
            if of and f"{load}.seconds" in of.numbers:
                seconds.append(of.numbers[f"{load}.seconds"])
                break
    return min(seconds, default=None)


@dataclass
class Comparison:
    """A figure against that of another point. Each repeat is a pair, because they ran in turn."""

    ratios: list[float]  # of each pair
    shortest_s: float | None  # the shortest of the compared loads
    all_zero: bool = False  # the figures are 0 in both points, in each pair

    @property
    def too_short(self) -> bool:
        return self.shortest_s is not None and self.shortest_s < SHORTEST_S

    @property
    def none_shown(self) -> bool:
        """True if some pairs differ in one direction and some in the other."""
        return len(self.ratios) > 1 and min(self.ratios) <= 1 <= max(self.ratios)

    @property
    def inconclusive(self) -> bool:
        """True if one of at least five pairs contradicts all others: a disturbed repeat, perhaps."""
        sides = (sum(ratio > 1 for ratio in self.ratios), sum(ratio < 1 for ratio in self.ratios))
        return len(self.ratios) >= 5 and max(sides) == len(self.ratios) - 1


def compare(formula: str, point: Point, base: Point | None) -> Comparison:
    """Of a formula that is a ratio to `base`. 0 against 0 is a ratio of 1."""
    ratios, zeros = [], 0
    for repeat in range(point.repeats):
        ratio = _value_in(formula, point, base, repeat)
        if ratio is None and all(_value_in(name, point, base, repeat) == 0 for name in names_in(formula)):
            ratio, zeros = 1.0, zeros + 1
        if ratio is not None:
            ratios.append(ratio)
    return Comparison(ratios, _shortest_s(formula, point, base), zeros == point.repeats)


def _is_comparison(column: Column) -> bool:
    return bool(column.against) and "/" in column.value and _BASE in column.value


def make_cell(scenario: Scenario, results: Results, column: Column, point: Point, row: str) -> Cell:
    """A column's value at a point, and its text. `row` replaces {row}. Raises Failure."""
    formula = with_row(column.value, row)
    form = column.format
    if form == Format.TEXT:
        if formula in point.texts:
            return Cell(" ".join(re.findall(r"[^ \t\n\v\f\r]+", point.texts[formula])))
        return Cell(point.values.get(formula, _NO_VALUE))
    base = base_of(scenario, results, column, point)
    values = evaluate(formula, point, base)
    if not values:
        return Cell()
    value = statistics.median(values)
    write = _ratio_text if _is_comparison(column) and form == Format.DECIMALS2 else partial(format_figure, form=form)
    cell = Cell(write(value), in_unit(value, form))
    if point.repeats > 1:
        cell.least, cell.most = in_unit(min(values), form), in_unit(max(values), form)
        low, high = write(min(values)), write(max(values))
        if low != high:
            cell.text += f" ({low}-{high})"
    if _is_comparison(column) and base is not point:
        compared = compare(formula, point, base)
        if compared.too_short:
            cell.text = "too short"
        elif compared.none_shown:
            cell.text = f"{'inconclusive' if compared.inconclusive else 'no difference shown'} ({low}-{high})"
    return cell


@dataclass
class _Row:
    """The values that select its point, its name ("" without names), and its key cells."""

    fixed: Filter
    name: str
    keys: list[str]


def _rows_of(table: Table, results: Results) -> Iterator[_Row]:
    points: Iterable[tuple[str, ...]] = [()]
    if table.by:
        selected = [point.values for point in results.points if matches(table.where, point.values)]
        points = dict.fromkeys(tuple(values.get(name, _NO_VALUE) for name in table.by) for values in selected)
    for keys in points:
        fixed = {name: [key] for name, key in zip(table.by, keys, strict=False)}
        for name in table.names or [""]:
            yield _Row(fixed, name, [*keys, *([name] if table.names else [])])


def _heads_of(scenario: Scenario, table: Table) -> list[Head]:
    heads = [Head(title_of(scenario, name), key=True) for name in table.by]
    if table.names:
        heads.append(Head("", key=True))
    for column in table.columns:
        heads.append(
            Head(with_unit(column.title, column.format), number=column.format != Format.TEXT, detail=column.detail)
        )
        if column.published:
            heads.append(Head("published", published=True, number=True, detail=column.detail))
    return heads


def make_table(scenario: Scenario, table: Table, results: Results) -> MadeTable:
    """Keys in a column's `published` are the row's key cells joined by "/": "SET", "8/tcp", "8/tcp/SET". Raises
    Failure."""
    made = MadeTable(table.title, table.note, _heads_of(scenario, table), main=table.main)
    for row in _rows_of(table, results):
        key = "/".join(row.keys)
        cells = [Cell(text) for text in row.keys]
        for column in table.columns:
            try:
                point = find_point(scenario, results, [table.where, row.fixed, column.where])
                cells.append(make_cell(scenario, results, column, point, row.name) if point else Cell())
            except Failure as failure:
                where = f', row "{key}"' if key else ""
                raise Failure(f'table "{table.title}", column "{column.title}"{where}: {failure}') from None
            if column.published:
                figure = column.published.get(key)
                cells.append(Cell() if figure is None else Cell(format_published(figure, column.format), figure))
        made.rows.append(cells)
    for i, head in enumerate(made.heads):
        if head.key:  # right-aligned if all are numbers
            head.number = bool(made.rows) and not any(row[i].text.strip("0123456789.") for row in made.rows)
    return made


def make_tables(scenario: Scenario, results: Results) -> list[MadeTable]:
    """All tables of the scenario. Raises Failure."""
    return [make_table(scenario, table, results) for table in scenario.tables]


def _ratio_text(ratio: float) -> str:
    """ "2.25", "0.0028"."""
    return f"{ratio:.2g}" if 0 < ratio < 0.1 else format_figure(ratio, Format.DECIMALS2)


def conclude(scenario: Scenario, results: Results, conclusion: Conclusion) -> str:
    """A sentence with the ratio and its range, or why there is none. Raises Failure."""
    point = find_point(scenario, results, [conclusion.where])
    base = base_of(scenario, results, conclusion, point) if point else None
    compared = compare(conclusion.value, point, base) if point else None
    say = conclusion.say
    if not compared or not compared.ratios:
        return f"{say}: not measured here."
    if compared.all_zero:
        return f"{say}: 0 in both."
    if compared.too_short:
        return f"{say}: not compared, because a load ran for only {compared.shortest_s:.2g} s."
    ratio = _ratio_text(statistics.median(compared.ratios))
    pairs = len(compared.ratios)
    if pairs == 1:
        return f"{say}: {ratio} times in one run. Run it with --repeat 5 before you conclude."
    low, high = (_ratio_text(end) for end in (min(compared.ratios), max(compared.ratios)))
    spread = f"{low} to {high} in {pairs} pairs"
    if compared.inconclusive:
        return f"{say}: inconclusive ({spread}, one of them on the other side)."
    if compared.none_shown:
        return f"{say}: no difference shown ({spread})."
    return f"{say}: {ratio} times ({spread})."


def chance_note(conclusions: list[str]) -> str:
    """How often all pairs agree although nothing differs, for the conclusions that show a difference; empty without."""
    found = (re.search(r" times \(.* in (\d+) pairs\)\.$", sentence) for sentence in conclusions)
    pairs = sorted({int(one[1]) for one in found if one})
    chances = ", ".join(f"all {count} pairs still agree in {format_percent(2 * 0.5**count)} of runs" for count in pairs)
    return f"If nothing differs, {chances}." if pairs else ""


_RESAMPLES = 2000


def fit_line(xs: list[float], ys: list[float]) -> list[tuple[float, float, float]]:
    """The slope and the value at 0 of the least-squares line, each with the range of 95 % of bootstrap resamples of the
    measurements (Efron 1979, percentile method). At least three different xs."""
    line = statistics.linear_regression(xs, ys)
    chosen = random.Random(0)
    lines: list[tuple[float, float]] = []
    while len(lines) < _RESAMPLES:
        sample = [chosen.randrange(len(xs)) for _ in xs]
        if len({xs[i] for i in sample}) > 1:
            slope, at_0 = statistics.linear_regression([xs[i] for i in sample], [ys[i] for i in sample])
            lines.append((slope, at_0))
    made = []
    for k in (0, 1):
        values = sorted(one[k] for one in lines)
        made.append((line[k], values[int(0.025 * _RESAMPLES)], values[int(0.975 * _RESAMPLES) - 1]))
    return made


def line_sentence(results: Results, line: Line) -> str:
    """A sentence with slope and intercept, or that it was not measured. Raises Failure."""
    xs, ys = [], []
    for point in results.points:
        if matches(line.where, point.values):
            pair = evaluate(line.x, point, None), evaluate(line.y, point, None)
            for x, y in zip(*pair, strict=False):
                xs.append(x)
                ys.append(y)
    if len(set(xs)) < 3:
        return f"{line.say}: not measured here at three sizes."
    (slope, low, high), (at_0, least, most) = fit_line(xs, ys)
    return (
        f"{line.say}: {slope:.3g} {line.unit} per {line.per} ({low:.3g} to {high:.3g}), {at_0:.3g} {line.unit} at 0 "
        f"({least:.3g} to {most:.3g}); 95 % intervals of {len(xs)} measurements."
    )


def conclude_all(scenario: Scenario, results: Results) -> list[str]:
    """The sentences of all conclusions and lines. Raises Failure."""
    sentences = [
        conclude(scenario, results, conclusion)
        for conclusion in scenario.conclusions
        if not conclusion.each or find_point(scenario, results, [conclusion.where])
    ]
    return sentences + [line_sentence(results, line) for line in scenario.lines]


# Text: titles are wrapped to the width of their figures, long texts are wrapped

_TEXT_WIDTH = 48  # of a column of texts
_TITLE_WIDTH = 9  # minimum for any title: "published"
_GAP = "  "


def _wrap(text: str, width: int) -> list[str]:
    """Wraps between words only."""
    lines = [""]
    for word in text.split(" "):
        if not lines[-1]:
            lines[-1] = word
        elif len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


class _LaidOut:
    """A column, laid out as lines."""

    def __init__(self, table: MadeTable, index: int) -> None:
        head = table.heads[index]
        self.right = head.number
        texts = [row[index].text for row in table.rows]
        self.cells = [[text] if head.number else _wrap(text, _TEXT_WIDTH) for text in texts]
        width = max((len(line) for lines in self.cells for line in lines), default=0)
        self.head = _wrap(head.title, max(width, _TITLE_WIDTH))
        self.width = max(width, *map(len, self.head))


def _line(columns: list[_LaidOut], texts: Iterable[str]) -> str:
    cells = [
        text.rjust(column.width) if column.right else text.ljust(column.width)
        for column, text in zip(columns, texts, strict=True)
    ]
    return _GAP.join(cells).rstrip(" ") + "\n"


def _block(columns: list[_LaidOut], rows: int) -> str:
    """Rows of several lines: titles are aligned to the bottom, cells to the top."""
    height = max(len(column.head) for column in columns)
    heads = zip(*([""] * (height - len(column.head)) + column.head for column in columns), strict=True)
    lines = [*heads, ["-" * column.width for column in columns]]
    for row in range(rows):
        lines += itertools.zip_longest(*(column.cells[row] for column in columns), fillvalue="")
    return "".join(_line(columns, texts) for texts in lines)


def table_text(table: MadeTable, width: int) -> str:
    """For a terminal of `width` columns (0: unlimited). A wider table continues below with its key columns repeated."""
    columns = [_LaidOut(table, i) for i in range(len(table.heads))]
    keys = list(itertools.takewhile(lambda i: table.heads[i].key, range(len(columns))))

    def wide(part: list[int]) -> int:
        return sum(columns[i].width + len(_GAP) for i in part)

    blocks = [list(keys)]
    i = len(keys)
    while i < len(columns):
        # A published column stays next to ours.
        together = [i, i + 1] if i + 1 < len(columns) and table.heads[i + 1].published else [i]
        if width and len(blocks[-1]) > len(keys) and wide(blocks[-1] + together) > width + len(_GAP):
            blocks.append(list(keys))
        blocks[-1] += together
        i += len(together)
    return "\n".join(_block([columns[i] for i in block], len(table.rows)) for block in blocks)


# Markdown, HTML and CSV


def escape_html(text: str) -> str:
    """In elements and in quoted attributes. More is escaped than a parser needs, so that the result is text in every
    context."""
    return html.escape(visible_lines(text)).replace("&#x27;", "&#39;")


def escape_markdown(text: str) -> str:
    """In a line or in a table's cell. LRANGE_100 needs no escape and is easier to read without it."""
    visible = visible_lines(text).replace("\n", " ")
    return re.sub(r"[\\`*\[\]<>|#~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\\g<0>", visible)


def table_markdown(table: MadeTable) -> str:
    """A table of Markdown, with published figures' titles in italics, and an empty cell where none was published."""
    titles = [f"*{head.title}*" if head.published else escape_markdown(head.title) for head in table.heads]
    rules = ["---:" if head.number else "---" for head in table.heads]
    empty = ["" if head.published else _NO_VALUE for head in table.heads]
    rows = [
        [none if cell.text == _NO_VALUE else escape_markdown(cell.text) for none, cell in zip(empty, row, strict=True)]
        for row in table.rows
    ]
    return "".join(f"|{''.join(f' {text} |' for text in row)}\n" for row in [titles, rules, *rows])


def table_html(table: MadeTable) -> str:
    """A <table>, with classes `number` and `published`."""

    def element(name: str, head: Head, content: str) -> str:
        classes = [word for word, on in (("number", head.number), ("published", head.published)) if on]
        attribute = f' class="{" ".join(classes)}"' if classes else ""
        return f"<{name}{attribute}>{content}</{name.split()[0]}>"

    def content(cell: Cell) -> str:
        """The range of repeats is shown below the median to save width."""
        median, space, spread = cell.text.partition(" (") if cell.least is not None else (cell.text, "", "")
        return escape_html(median) + (f' <span class="range">{escape_html(f"({spread}")}</span>' if space else "")

    heads = [element('th scope="col"', head, escape_html(head.title)) for head in table.heads]
    rows = [
        "".join(
            element('th scope="row"' if head.key else "td", head, content(cell))
            for head, cell in zip(table.heads, row, strict=True)
        )
        for row in table.rows
    ]
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return f"<table>\n<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def table_csv(table: MadeTable) -> str:
    """Numbers without separators; columns for least and most with repeats."""

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.10g}"

    ranges = [any(row[i].least is not None for row in table.rows) for i in range(len(table.heads))]
    # Columns must have different titles for CSV readers.
    titles = [
        f"{before.title} (published)" if head.published else head.title
        for before, head in itertools.pairwise([Head(""), *table.heads])
    ]
    lines: list[list[str]] = [[]]
    for title, spread in zip(titles, ranges, strict=True):
        lines[0] += [title, f"{title} (least)", f"{title} (most)"] if spread else [title]
    for row in table.rows:
        lines.append([])
        for head, cell, spread in zip(table.heads, row, ranges, strict=True):
            lines[-1].append(number(cell.value) if head.number and not head.key else cell.text)
            lines[-1] += [number(cell.least), number(cell.most)] if spread else []
    return "".join(",".join(map(_csv_field, line)) + "\n" for line in lines)


def _csv_field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if re.search('[,"\r\n]', text) else text
