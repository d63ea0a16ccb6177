# SPDX-License-Identifier: MIT
"""A scenario's charts, from its results: lines over a variable with numbers, else bars side by side, or heat maps;
drawn as SVG with gnuplot.

Published figures have the color of their series, dashed.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from forktail.failure import Failure
from forktail.files import read_file
from forktail.host.session import Command, Session, Stopped
from forktail.lab.format import Format, format_decimals, format_figure, format_published, with_unit
from forktail.lab.results import Results, source_text
from forktail.lab.scenario import Chart, Column, Scenario, matches, parse_number, title_of
from forktail.lab.tables import Cell, escape_html, find_point, make_cell

# Dark enough for white; neighbors are distinguishable for color-blind readers. The same as on the run page.
_COLOURS = ["#1a56c4", "#d9730d", "#0f766e", "#b01e68", "#7c3aed", "#8a6d00", "#52606d", "#2f9e44"]
_POINTS = [7, 5, 9, 11, 13, 7, 5, 9]
_WIDTH, _HEIGHT = 640, 360  # without the key below
_KEY_ROW_HEIGHT, _KEY_SAMPLE_WIDTH = 18, 60
_AXIS_HEIGHT = 66  # of the x axis' tics and title
_AXIS_WIDTH, _CHARACTER_WIDTH = 540, 7  # approximate: of the x axis, and of a character of its labels
_BARS_WIDTH = 0.8  # share of a place
_DRAW_S = 60


@dataclass
class Dot:
    """One point of a line, or a bar."""

    x: float  # the variable's value; of bars its index, from 0
    y: float  # in the unit of the axis
    least: float | None = None  # with repeats
    most: float | None = None


@dataclass
class Series:
    """One line, or the bars of one color."""

    title: str
    published: bool = False  # of the series before it
    dots: list[Dot] = field(default_factory=list)  # by x


@dataclass
class MadeChart:
    """What gnuplot draws."""

    title: str
    x_title: str = ""
    y_title: str = ""
    log_x: bool = False
    log_y: bool = False
    format: Format = Format.COUNT  # of y
    places: list[str] = field(default_factory=list)  # labels below bars; empty: lines
    heat: bool = False  # a heat map: a column per place, a row per series
    source: str = ""  # command, host and date, in the picture
    series: list[Series] = field(default_factory=list)


@dataclass
class DrawnChart:
    """A chart as a file."""

    title: str
    svg: str  # a complete file; identical for identical data
    png: bytes = b""  # the same picture, for documents that take no SVG


def make_charts(scenario: Scenario, results: Results) -> list[MadeChart]:
    """One chart per name in `each`, which replaces {row} in titles (or is appended) and figures. Raises Failure.

    Keys of `published` are the variable's values: "100", with `each` "100/SET". Charts without dots are left out.
    """
    made = [_make_chart(scenario, results, chart, row) for chart in scenario.charts for row in chart.each or [""]]
    return [chart for chart in made if any(series.dots for series in chart.series)]


def _published(column: Column, chart: Chart, row: str) -> dict[str, float]:
    """The published figures of a row by the variable's values."""
    end = f"/{row}" if chart.each else ""
    published = sorted(column.published.items())
    return {key.removesuffix(end): figure for key, figure in published if key.endswith(end) and key != end}


def _make_chart(scenario: Scenario, results: Results, chart: Chart, row: str) -> MadeChart:
    title = chart.title.replace("{row}", row)
    if chart.each and title == chart.title:
        title += f": {row}"
    # Values of points, then values that only the publication has: numbers, or else texts.
    points = [point.values for point in results.points if matches(chart.where, point.values)]
    known = [values[chart.x] for values in points if chart.x in values]
    places = list(dict.fromkeys(known + [x for column in chart.series for x in _published(column, chart, row)]))
    numbers = {place: number for place in places if (number := parse_number(place)) is not None}
    lines = len(numbers) == len(places) and not chart.heat
    at = numbers if lines else {place: float(i) for i, place in enumerate(places)}
    form = chart.series[0].format if chart.series else Format.COUNT
    made = MadeChart(
        title,
        title_of(scenario, chart.x),
        with_unit(chart.y, form),
        chart.log_x and lines,
        chart.log_y,
        form,
        [] if lines else places,
        chart.heat,
        source_text(results),
    )
    for column in chart.series:
        name = column.title.replace("{row}", row)
        ours, theirs = Series(name), Series(f"{name} (published)", published=True)
        for place in places:
            try:
                point = find_point(scenario, results, [chart.where, column.where, {chart.x: [place]}])
                cell = make_cell(scenario, results, column, point, row) if point else Cell()
            except Failure as failure:
                raise Failure(f'chart "{chart.title}", series "{column.title}" at "{place}": {failure}') from None
            if cell.value is not None:
                ours.dots.append(Dot(at[place], cell.value, cell.least, cell.most))
        theirs.dots = [Dot(at[x], figure) for x, figure in _published(column, chart, row).items()]
        for series in (ours, theirs):
            series.dots = _shown(made, series.dots)
        # Our series are added even if empty, so that colors are the same in all charts.
        made.series += [ours, theirs] if theirs.dots else [ours]
    return made


def _shown(chart: MadeChart, dots: list[Dot]) -> list[Dot]:
    """The dots by x. A logarithmic axis cannot show 0."""
    shown = [dot for dot in dots if not (chart.log_y and dot.y <= 0) and not (chart.log_x and dot.x <= 0)]
    for dot in shown:
        if chart.log_y and dot.least is not None and dot.least <= 0:
            dot.least = dot.y
    return sorted(shown, key=lambda dot: dot.x)


# gnuplot. Ranges and tics are computed here, so that tics have the format of tables and axes with one or no point need
# no special case.

_Tics = list[tuple[float, str]]  # where, and the label
_Range = tuple[float, float]


def _number(number: float) -> str:
    return f"{number:.10g}"


def _quoted(text: str) -> str:
    """In single quotes gnuplot only interprets '."""
    return "'" + re.sub("[\0-\x1f]", " ", text.replace("'", "''")) + "'"


def _tic_label(at: float, step: float, form: Format) -> str:
    """Like format_figure, for a number that is already in its unit."""
    if form == Format.BYTES:
        return format_figure(at, form)
    return format_decimals(at, min(max(math.ceil(-math.log10(step) - 1e-9), 0), 9))


def _step_for(width: float) -> float:
    """1, 2 or 5 times a power of ten: about five steps in the range."""
    power = math.pow(10, math.floor(math.log10(width / 5)))
    return next((power * factor for factor in (1, 2, 5) if width / (power * factor) <= 6), power * 10)


def _linear_tics(least: float, most: float, form: Format) -> tuple[_Range, _Tics]:
    least, most = min(least, 0), max(most, 0)
    if least == most:
        most = 1
    step = _step_for(most - least)
    first, last = math.floor(least / step), math.ceil(most / step)
    tics = [(i * step, _tic_label(i * step, step, form)) for i in range(first, last + 1)]
    return (first * step, last * step), tics


def _log_tics(least: float, most: float, form: Format) -> tuple[_Range, _Tics]:
    first = math.floor(math.log10(least) + 1e-9)
    last = math.ceil(math.log10(most) - 1e-9)
    last += first == last
    every = math.ceil((last - first) / 8)  # a label for each decade if they fit
    tics = []
    for decade in range(first, last + 1):
        power = math.pow(10, decade)
        if (decade - first) % every == 0:
            tics.append((power, _tic_label(power, power, form)))
        if last - first <= 2 and decade < last:
            tics += [(power * factor, _tic_label(power * factor, power, form)) for factor in (2, 5)]
    return (math.pow(10, first), math.pow(10, last)), tics


def _y_tics(chart: MadeChart) -> tuple[_Range, _Tics]:
    dots = [dot for series in chart.series for dot in series.dots]
    values = [y for dot in dots for y in (dot.y, dot.least, dot.most) if y is not None]
    tics = _log_tics if chart.log_y else _linear_tics
    return tics(min(values), max(values), chart.format)


def _x_tics(chart: MadeChart) -> tuple[_Range, _Tics]:
    """The existing values whose labels fit without overlap."""
    values = sorted({dot.x for series in chart.series for dot in series.dots})
    places = [math.log10(x) if chart.log_x else x for x in values]
    left, width = places[0], places[-1] - places[0]
    tics: _Tics = []
    free = -math.inf
    for x, place in zip(values, places, strict=True):
        label = format_published(x, Format.NUMBER)
        half = (len(label) + 1) * _CHARACTER_WIDTH / 2
        at = (place - left) / width * _AXIS_WIDTH if width > 0 else 0
        if at - half >= free:
            free = at + half
            tics.append((x, label))
    margin = width * 0.03 if width > 0 else 1
    least, most = left - margin, left + width + margin
    return (math.pow(10, least), math.pow(10, most)) if chart.log_x else (least, most), tics


def _axis_text(name: str, limits: _Range, tics: _Tics, log: bool) -> str:
    labels = ", ".join(f"{_quoted(label)} {_number(at)}" for at, label in tics)
    least, most = map(_number, limits)
    scale = f"set logscale {name}\n" if log else ""
    return f"{scale}set {name}range [{least}:{most}]\nset {name}tics ({labels})\n"


def _colours(chart: MadeChart) -> Iterator[tuple[Series, int]]:
    """The series with dots, and the indices of their colors."""
    colour = -1
    for series in chart.series:
        colour += not series.published
        if series.dots:
            yield series, max(colour, 0) % len(_COLOURS)


def _plots(chart: MadeChart) -> Iterator[tuple[Series, float, str]]:
    """What is plotted: a series, its shift to the right, and how."""
    shown = list(_colours(chart))
    width = _BARS_WIDTH / len(shown)
    for bar, (series, colour) in enumerate(shown):
        ranges = any(dot.least is not None and dot.most is not None for dot in series.dots)
        line = f" lc rgb {_quoted(_COLOURS[colour])}"
        title = f" title {_quoted(series.title)}"
        if not chart.places:
            how = "using 1:2:3:4 with yerrorlines" if ranges else "using 1:2 with linespoints"
            point, dash = (6, "(6,5)") if series.published else (_POINTS[colour], "1")
            yield series, 0, f"{how}{line} lw 1.6 ps 0.6 pt {point} dt {dash}{title}"
            continue
        shift = (bar + 0.5) * width - _BARS_WIDTH / 2
        fill = " dt (6,5) fill solid 0.15" if series.published else " fill solid 0.85"
        yield series, shift, f"using 1:2:({_number(width * 0.92)}) with boxes{line}{fill} border{line}{title}"
        if ranges:
            yield series, shift, "using 1:2:3:4 with yerrorbars ps 0 lc rgb '#1b2330' notitle"


def _terminal(output: str, height: int) -> str:
    if output.endswith(".png"):
        return f"pngcairo size {2 * _WIDTH},{2 * height} fontscale 2 linewidth 2 pointscale 2"
    return f"svg size {_WIDTH},{height}"


def _head(chart: MadeChart, output: str, height: int) -> str:
    """The script's settings that all charts share."""
    return f"""reset
set encoding utf8
set terminal {_terminal(output, height)} noenhanced font 'sans-serif,12' background '#ffffff'
set output {_quoted(output)}
set border 3 lc rgb '#7b8694'
set tics nomirror out scale 0.6 textcolor rgb '#3c4654'
set xtics offset 0,0.3
set label {_quoted(chart.source)} at screen 0.995, screen 0.985 right font 'sans-serif,8' textcolor rgb '#7b8694'
set title {_quoted(chart.title)} font 'sans-serif,14' textcolor rgb '#1b2330'
set xlabel {_quoted(chart.x_title)} offset 0,0.6 textcolor rgb '#3c4654'
"""


def _heat_script(chart: MadeChart, output: str) -> str:
    """Each place and series is a field with its number."""
    rows = [series for series in chart.series if series.dots]
    most = max(dot.y for series in rows for dot in series.dots) or 1
    data = labels = ""
    for row, series in enumerate(rows):
        for dot in series.dots:
            data += f"{_number(dot.x)} {row} {_number(dot.y)}\n"
            colour = "#ffffff" if dot.y > most / 2 else "#1b2330"
            at = f"at {_number(dot.x)},{row} center front textcolor rgb '{colour}'"
            labels += f"set label {_quoted(format_published(dot.y, chart.format))} {at}\n"
    x_tics = [(float(i), place) for i, place in enumerate(chart.places)]
    y_tics = [(float(i), series.title) for i, series in enumerate(rows)]
    margin = max(len(series.title) for series in rows) + 3
    return f"""{_head(chart, output, 130 + 44 * len(rows))}set lmargin {margin}
set palette defined (0 '#f3f6fb', 1 '#1a56c4')
set cbrange [0:{_number(most)}]
unset colorbox
unset key
{labels}{_axis_text("x", (-0.5, len(chart.places) - 0.5), x_tics, False)}\
{_axis_text("y", (len(rows) - 0.5, -0.5), y_tics, False)}\
$data << end_of_data
{data}end_of_data
plot $data using 1:2:3 with image
"""


def gnuplot_script(chart: MadeChart, output: str) -> str:
    """The gnuplot script for one chart; `output` is its output file, .svg or .png."""
    if chart.heat:
        return _heat_script(chart, output)
    count = sum(bool(series.dots) for series in chart.series)
    longest = max(len(series.title.encode(errors="surrogateescape")) for series in chart.series)
    # The key is below the plot, whose height does not depend on it.
    columns = _AXIS_WIDTH // (_KEY_SAMPLE_WIDTH + longest * _CHARACTER_WIDTH)
    columns = min(max(columns, 1), max(count, 1))
    key_height = math.ceil(count / columns) * _KEY_ROW_HEIGHT
    height = _HEIGHT + key_height
    y, y_tics = _y_tics(chart)
    if chart.places:
        x, x_tics = (-0.5, len(chart.places) - 0.5), [(float(i), place) for i, place in enumerate(chart.places)]
    else:
        x, x_tics = _x_tics(chart)
    data, plots = "", []
    for i, (series, shift, how) in enumerate(_plots(chart)):
        data += f"$data{i} << end_of_data\n"
        for dot in series.dots:
            low = dot.y if dot.least is None else dot.least
            high = dot.y if dot.most is None else dot.most
            data += " ".join(map(_number, (dot.x + shift, dot.y, low, high))) + "\n"
        data += "end_of_data\n"
        plots.append(f"$data{i} {how}")
    plot = ", \\\n     ".join(plots)
    return f"""{_head(chart, output, height)}set grid ytics lc rgb '#e2e6ea' lt 1 lw 0.7
set key at screen 0.53, screen {_number(6 / height)} center bottom horizontal maxcols {columns}\
 Left reverse samplen 2.5 textcolor rgb '#1b2330'
set bmargin at screen {_number((_AXIS_HEIGHT + key_height) / height)}
set ylabel {_quoted(chart.y_title)} textcolor rgb '#3c4654'
{_axis_text("x", x, x_tics, chart.log_x)}{_axis_text("y", y, y_tics, chart.log_y)}{data}plot {plot}
"""


def _tidy(svg: str, title: str, prefix: str) -> str:
    """Removes gnuplot's version and numbered titles, and prefixes ids, which would otherwise collide in one page."""
    svg = re.sub(r"<desc>.*?</desc>\n|<title>gnuplot_plot.*?</title>", "", svg, flags=re.S)
    svg = re.sub(r"<title>.*?</title>\n", "", svg, flags=re.S)
    # gnuplot escapes < and > in texts.
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r""" id=['"]|href='#|url\(#""", rf"\g<0>{prefix}", tag[0]), svg)
    head, svg_tag, rest = svg.partition("<svg")
    attributes, end, rest = rest.partition(">")
    return f'{head}{svg_tag} role="img"{attributes}{end}\n<title>{escape_html(title)}</title>{rest}'


def draw_charts(session: Session, charts: list[MadeChart]) -> tuple[list[DrawnChart], str]:
    """The charts, and a note: the reason if gnuplot is missing or fails, else "". Raises Stopped on a stop signal."""
    if not charts:
        return [], ""
    directory = Path(session.make_temp_directory())
    files = [directory / f"{i + 1}.svg" for i in range(len(charts))]
    script = directory / "script"
    pictures = [file.with_suffix(".png") for file in files]
    named = list(zip(charts, files, strict=True)) + list(zip(charts, pictures, strict=True))
    texts = [gnuplot_script(chart, str(file)) for chart, file in named]
    try:
        script.write_text("".join(texts) + "unset output\n", errors="surrogateescape")
    except OSError:
        return [], f"no charts: cannot write {script}"
    # -d: without user settings
    command = Command("gnuplot", ["gnuplot", "-d", str(script)], output="/dev/null")
    try:
        child = session.start(command)
    except Failure as failure:
        return [], f"no charts: {failure}; install gnuplot-nox"
    try:
        session.wait_for_end(child, 0, _DRAW_S)
        child.check()
    except Stopped:
        raise
    except Failure as failure:
        return [], f"no charts: {failure}"
    return [
        DrawnChart(chart.title, _tidy(read_file(file), chart.title, f"chart{i}-"), picture.read_bytes())
        for i, (chart, file, picture) in enumerate(zip(charts, files, pictures, strict=True), 1)
    ], ""
