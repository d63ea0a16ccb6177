# SPDX-License-Identifier: MIT
"""A scenario describes an experiment: servers, load, events, recording, tables, charts, and published figures to
compare with.

It is a TOML file (docs/reference/lab-and-scenarios.md). Errors have file, line and reason.

Texts marked "template" may contain {name}, the value of a sweep's variable, a size or a constant, and {name*2/3},
arithmetic rounded down to a whole number (see expand).
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from forktail import toml
from forktail.failure import USAGE, Failure
from forktail.lab.format import Format
from forktail.lab.formula import FormulaError, calculate, check_formula, names_in, with_row, with_values
from forktail.lab.published import figures_at
from forktail.servers.kinds import find_kind, kind_names
from forktail.text import format_bytes, format_count, parse_duration

# Selects points: sweep variable -> allowed values, in the order of names. Empty: all points.
Filter = dict[str, list[str]]
Values = dict[str, str]  # a point of a sweep: values of variables, sizes and constants


@dataclass
class Size:
    name: str
    full: float = 0  # at scale 1
    least: float = 0  # never less than this
    at: dict[str, float] = field(default_factory=dict)  # exactly this at a named scale: "small"
    fixed: bool = False  # `full` at every scale


@dataclass
class Sweep:
    name: str = ""
    title: str = ""
    values: list[str] = field(default_factory=list)
    also: dict[str, list[str]] = field(default_factory=dict)  # further names with one value per value
    at: dict[str, list[str]] = field(default_factory=dict)  # fewer values at a named scale: "small"
    line: int = 0
    keep_servers: bool = False  # servers and their data remain from one value to the next


@dataclass
class ServerSpec:
    name: str = ""  # instances of several are name1, name2 ...
    kind: str = ""  # redis, redis8, valkey, keydb, memcached, nutcracker, haproxy, sentinel
    count: str = "1"  # template
    program: str = ""  # instead of the kind's program; not in files
    # Templates: further arguments (nutcracker: lines of its pool; haproxy: of `global`).
    config: list[str] = field(default_factory=list)
    listen: str = "unix"  # template: unix or tcp
    cpus: str = ""  # template: "0-1"; "each": instance i on CPU i modulo their number; "": all
    memory: str = ""  # template: limit of a cgroup around all instances together, "256MiB"
    of: str = ""  # nutcracker, haproxy: the servers behind it; sentinel: the primary that it watches
    replica_of: str = ""
    replicas: str = ""  # template; with cluster: replicas of each primary
    cluster: bool = False  # the instances form a Redis Cluster
    later: bool = False  # started by a step or event
    # It may end during a load (with `errors`): the text STEP.NAME.ended says how, "" if it runs. Later steps, and later
    # points on the same servers, are not run.
    may_end: bool = False
    say: bool = False  # print its program and address
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class Action:
    """An action on a server. Exactly one of the first group is set."""

    ask: str = ""  # template: a Redis command, "BGSAVE", sent to each instance of `server`
    start: str = ""  # a server that is `later`
    kill: str = ""  # kill -9 of an instance
    move_slots: str = ""  # template: the number of slots, from `server` (an instance) to `to`
    await_: str = ""  # `await` in files: what to wait for: snapshot, rewrite, replicas
    # Soft interrupts of the network, else of the loopback interface, on which CPUs: "on" (all), "off" or a list.
    spread: str = ""  # templates; by RPS and XPS
    napi_threads: str = ""  # by kernel threads
    host: str = ""  # template: a setting of the host and its value, "/proc/sys/vm/swappiness 10"
    wait: str = ""  # "2s"
    note: str = ""  # name: the figures of all servers now

    server: str = ""
    to: str = ""
    # The command of `ask` forks: the server's report about the child is printed and stored with the recording.
    report: bool = False
    say: str = ""  # printed when it is done, see expand_text
    at: str = ""  # of an event: "25%" of the load's duration or requests, or "2s"
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class LogMark:
    """The time of a log message: the first line with this text in the logs of the server's instances, after the load's
    first event."""

    name: str = ""  # of the figure
    server: str = ""
    text: str = ""
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class Query:
    """SQL about a step's recording. Its result is a figure if it is one number, else a text: values of a row are joined
    by blanks, rows by commas."""

    name: str = ""  # of the figure or text: STEP.name
    sql: str = ""
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class StepSpec:
    """One step of a point: a load, or an action."""

    name: str = ""  # the prefix of its figures
    load: str = ""  # template: arguments of forktail-load, without server and outputs
    to: str = ""  # template: the server, proxy, cluster or Sentinels
    by: str = "forktail-load"  # template; or redis-benchmark, then `load` has its arguments
    cpus: str = ""  # template: of the load generator
    record: bool = False  # record the servers, log all requests, explain
    client: bool = True  # record the load generator, too
    requests: str = ""  # sample of `--requests`, "1/16"; "": the kernel logs no requests
    slow: str = ""  # threshold of slow requests for explain, "5ms"; "": the default
    say: str = ""  # printed instead of the load's arguments, see expand_text
    errors: bool = False  # requests may fail: a load that lost its server is not a failure
    events: list[Action] = field(default_factory=list)
    logs: list[LogMark] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)  # of a recorded step
    action: Action = field(default_factory=Action)  # if there is no load
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class Column:
    """A figure of a table or chart.

    `value` is the name of a text, or a formula of figures: "run.SET.rps / 1000". {row} is the row's name. `base.` takes
    a figure from the point selected by `against`, so "run.rps / base.run.rps" is a ratio. A formula with a missing
    figure has no value ("-").
    """

    title: str = ""
    value: str = ""
    format: Format = Format.COUNT
    where: Filter = field(default_factory=dict)  # the point of the row: variable -> one value
    against: Values = field(default_factory=dict)  # of `base.`: changed values of variables
    published: dict[str, float] = field(default_factory=dict)  # row -> figure in the printed unit
    # The place of the published figures in published.csv, "A3: {key}: TCP requests/s": {key} is the row's key, or the
    # value on a chart's axis, {row} the chart's name. Adds them to `published`.
    cell: str = ""
    detail: bool = False  # not in documents, whose tables are short
    line: int = 0


@dataclass
class Table:
    """Rows are names, or points of some variables ("8/tcp": their values joined by "/"), or all names for each point.

    Each column has its value and, if there is one, the published value.
    """

    title: str = ""
    note: str = ""
    names: list[str] = field(default_factory=list)  # `rows` in files: rows by name; {row} in formulas
    by: list[str] = field(default_factory=list)  # rows by variables
    main: list[str] = field(default_factory=list)  # the rows in documents, named as in `published`; empty: all
    where: Filter = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    line: int = 0


@dataclass
class Conclusion:
    """What a comparison shows, as a sentence that is made from the figures of all repeats."""

    say: str = ""  # what is compared: "SET over a Unix socket against TCP"
    value: str = ""  # a ratio of figures: "run.SET.rps / base.run.SET.rps"
    where: Filter = field(default_factory=dict)  # the point
    against: Values = field(default_factory=dict)  # of `base.`: changed values of variables
    each: str = ""  # a variable: a conclusion for each of its values; {variable} in `say` is the value
    line: int = 0


@dataclass
class Line:
    """A straight line through the measurements of all points and repeats, as a sentence."""

    say: str = ""  # "fork time with pages of 4 kB"
    x: str = ""  # formulas of figures
    y: str = ""
    unit: str = ""  # of y
    per: str = ""  # of x
    where: Filter = field(default_factory=dict)  # the points
    line: int = 0


@dataclass
class Chart:
    """Lines over a variable's values (numbers: an axis; else bars)."""

    title: str = ""
    x: str = ""  # the variable
    y: str = ""  # the title of the axis
    log_x: bool = False
    log_y: bool = False
    heat: bool = False  # a heat map: a column per value of the variable, a row per series
    each: list[str] = field(default_factory=list)  # one chart per name, which is {row}; empty: one chart
    where: Filter = field(default_factory=dict)
    series: list[Column] = field(default_factory=list)  # `published`: by the variable's value, drawn dashed
    line: int = 0


@dataclass
class SwapSpec:
    kind: str = ""  # zram, file, or empty: no own swap
    size: str = ""  # template: "512MiB"
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class NetworkSpec:
    """A link between some servers and everybody else."""

    rate: str = ""  # template: of each direction, in tc's format: "100mbit"; "": no limit
    queue: str = "1500000"  # template: bytes that wait for the link; more are dropped
    napi: bool = False  # its ends poll, like a network card's driver
    servers: list[str] = field(default_factory=list)  # behind the link; they listen on tcp
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class Scenario:
    name: str = ""  # the file's name without .toml
    file: str = ""
    title: str = ""
    about: str = ""
    explanation: bool = False  # prints the explanation of the only recorded step instead of tables
    fit: str = ""  # a size in MiB that is reduced if memory or disk is short; or ""
    report: str = ""  # "A"
    source: str = ""  # its source: hardware and versions
    question: str = ""  # the open question of the report; may be empty
    scales: dict[str, float] = field(default_factory=dict)  # small, tiny
    sizes: list[Size] = field(default_factory=list)
    constants: Values = field(default_factory=dict)
    sweeps: list[Sweep] = field(default_factory=list)
    swap: SwapSpec = field(default_factory=SwapSpec)
    network: NetworkSpec = field(default_factory=NetworkSpec)
    servers: list[ServerSpec] = field(default_factory=list)
    steps: list[StepSpec] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    conclusions: list[Conclusion] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)


@dataclass
class Scale:
    """The scale of a run: a factor, or one of the named scales."""

    name: str = ""  # "" for a number
    factor: float = 1


@dataclass
class Due:
    """The due time of an event: a share of the load, or a time after its start."""

    is_share: bool = False
    share: float = 0  # 0 to 1
    seconds: float = 0  # if it is no share


# Texts of scenarios


def parse_number(text: str) -> float | None:
    """A finite number without blanks or a sign +, else None."""
    if not re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text, re.ASCII):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def number_text(number: float) -> str:
    """A number as a command-line argument, without decimals if it is whole."""
    return f"{number:.15g}"


def parse_memory(text: str) -> int | None:
    """ "256MiB", "1GiB", "4096" -> bytes. None: not such a size."""
    match = re.fullmatch(r"(\d+)(|KiB|MiB|GiB|TiB)", text, re.ASCII)
    size = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2][:1]] if match else 0
    return size if match and size < 1 << 64 else None


def split_words(text: str) -> list[str] | None:
    """Splits at blanks; '...' and "..." group words. None: a quote is not closed."""
    words = [match[0] for match in re.finditer(r"""('[^']*'|"[^"]*"|[^\s'"])+|['"]""", text)]
    if "'" in words or '"' in words:
        return None
    return [re.sub(r"""'([^']*)'|"([^"]*)\"""", lambda quoted: quoted[1] or quoted[2] or "", word) for word in words]


def parse_due(text: str) -> Due | None:
    """When an event happens: "25%", "2s" or "500ms". None: invalid text."""
    if text.endswith("%"):
        percent = parse_number(text[:-1])
        return Due(True, percent / 100, 0) if percent is not None and 0 <= percent <= 100 else None
    ns = parse_duration(text) if text.endswith("s") else None  # a load of minutes has a share
    return None if ns is None else Due(False, 0, ns / 1e9)


def matches(where: Filter, values: Values) -> bool:
    """True if the filter selects the point."""
    return all(values.get(name) in allowed for name, allowed in where.items())


def _replace(text: str, fill: Callable[[str], str]) -> str:
    """Replaces the parts in braces by the results of `fill`."""

    def value(match: re.Match[str]) -> str:
        if not match[2]:
            raise Failure("a { has no closing }", USAGE)
        return fill(match[1])

    return re.sub(r"\{([^}]*)(\}?)", value, text) if "{" in text else text


def _fill_in(inside: str, values: Values) -> str:
    """The value of a name, or of arithmetic rounded down."""
    if inside in values:
        return values[inside]
    numbers = {name: number for name in names_in(inside) if (number := parse_number(values.get(name, ""))) is not None}
    try:
        number = calculate(inside, numbers)
    except FormulaError as error:
        raise Failure(f"{{{inside}}} cannot be evaluated: {error}", USAGE) from None
    if not math.isfinite(number):
        raise Failure(f"{{{inside}}} is not a number", USAGE)
    return number_text(math.floor(number))


def expand(text: str, values: Values) -> str:
    """Replaces every {...} in the text. Raises Failure: it names the unknown name or invalid formula."""
    return _replace(text, lambda inside: _fill_in(inside, values))


def expand_text(text: str, values: Values, figure: Callable[[str], float | None]) -> str:
    """Expands a message: like a template, but a name may also be a figure, {name:count} becomes "94,042" and
    {name:bytes} "106 MB"."""

    def fill(inside: str) -> str:
        name, _, form = inside.rpartition(":")
        if form not in ("count", "bytes") or not name:
            name, form = inside, ""
        number = figure(name)
        value = _fill_in(name, values) if number is None else number_text(number)
        number = parse_number(value) if form else None
        if number is None or number < 0:
            return value
        return format_count(int(number)) if form == "count" else format_bytes(int(number))

    return _replace(text, fill)


def title_of(scenario: Scenario, variable: str) -> str:
    """The title of a variable in tables and charts: the title of its sweep, else its name."""
    return next((sweep.title for sweep in scenario.sweeps if sweep.name == variable and sweep.title), variable)


# Scales and points


def parse_scale(scenario: Scenario, text: str) -> Scale:
    """Parses "small" or "0.1". Raises Failure, also if a size of the scenario is 0 at that scale."""
    named = text in scenario.scales
    factor = scenario.scales[text] if named else parse_number(text)
    if factor is None or not (named or 0 < factor <= 1000):
        names = "".join(f", or {name}" for name in scenario.scales)
        raise Failure(f'a scale must be a number above 0 and at most 1000{names}, not "{text}"', USAGE)
    scale = Scale(text if named else "", factor)
    for size in scenario.sizes:
        if _size_at(size, scale) == 0:
            raise Failure(f"{scenario.file}: the size {size.name} is 0 at scale {text}: use a larger scale", USAGE)
    return scale


def _size_at(size: Size, scale: Scale) -> float:
    full = size.full * (1 if size.fixed else scale.factor)
    scaled = max(size.least, math.floor(full + 0.5))
    return scaled if size.fixed else size.at.get(scale.name, scaled)


def points_of(scenario: Scenario, scale: Scale) -> list[Values]:
    """All points of the sweeps at a scale, the last variable fastest.

    Each has all variables, sizes and constants. A scenario without sweeps has one point. A value that is an invalid
    template stays unchanged; reading the scenario refuses it.
    """

    def expand_values(point: Values, names: Iterator[str]) -> None:
        for name in names:
            try:
                point[name] = expand(point[name], point)
            except Failure:
                continue

    first = dict(scenario.constants)
    for size in scenario.sizes:
        first[size.name] = number_text(_size_at(size, scale))
    expand_values(first, iter(scenario.constants))
    sweeps = scenario.sweeps
    points = []
    for chosen in itertools.product(*(sweep.at.get(scale.name, sweep.values) for sweep in sweeps)):
        point = dict(first)
        for sweep, value in zip(sweeps, chosen, strict=True):
            point[sweep.name] = value
            # A value of a scale that is not in `values` is refused.
            index = sweep.values.index(value) if value in sweep.values else 0
            point |= {name: also[index] for name, also in sweep.also.items() if index < len(also)}
        expand_values(point, (sweep.name for sweep in sweeps))
        expand_values(point, (name for sweep in sweeps for name in sweep.also))
        points.append(point)
    return points


# Reading

_ACTION = "ask start kill move_slots await spread napi_threads host wait note say report server to only"
_COLUMN = "title value format where against published cell detail"
_LOAD = "load name to by cpus record client requests slow say errors only"
_LOG = "name server text only"
_SERVER = "name kind count config listen cpus memory of replica_of replicas cluster later may_end say only"
_SAMPLES = ["auto", *(f"1/{1 << i}" for i in range(11))]


def _read_format(table: toml.Table, key: str) -> Format:
    form = table.text(key)
    forms = {form.value: form for form in Format}
    if form not in forms:
        table.refuse(f'unknown format "{form}": use one of {", ".join(sorted(forms))}')
    return forms[form]


_Target = TypeVar("_Target")
_READERS: dict[Any, Callable[[toml.Table, str], Any]] = {
    str: toml.Table.text,
    bool: toml.Table.flag,
    float: toml.Table.number,
    list[str]: toml.Table.words,
    Values: toml.Table.texts,
    Filter: toml.Table.lists,
    dict[str, float]: toml.Table.numbers,
    Format: _read_format,
}


def _fill(table: toml.Table, target: _Target, keys: str, required: str = "", others: str = "") -> _Target:
    """Reads keys into the fields of these names, by the fields' types. `others` are keys that the caller reads."""
    table.allow(*keys.split(), *others.split())
    table.require(*required.split())
    types: dict[str, Any] = {field.name: field.type for field in fields(cast(Any, target))}
    if "line" in types:
        setattr(target, "line", table.line)  # noqa: B010
    for key in keys.split():
        name = {"await": "await_", "rows": "names", "scale": "scales"}.get(key, key)
        if key in table.node:
            setattr(target, name, _READERS[types[name]](table, key))
    return target


def _read_step(table: toml.Table) -> StepSpec:
    if table.node.get("load", "") == "":
        action = _fill(table, Action(), _ACTION, others="load")
        only, action.only = action.only, {}
        return StepSpec(action=action, only=only, line=table.line)
    step = _fill(table, StepSpec(), _LOAD, "name", "event log query")
    if step.requests and step.requests not in _SAMPLES:
        wanted = "auto, or 1/N with a power of two up to 1024, such as 1/16"
        table.refuse(f'`requests` must be {wanted}, not "{step.requests}"', "requests")
    if step.requests and not step.record:
        table.refuse("`requests` needs `record`", "requests")
    step.events = [_fill(event, Action(), f"at {_ACTION}", "at") for event in table.each("event", "an event")]
    step.queries = [_fill(one, Query(), "name sql only", "name sql") for one in table.each("query", "a query")]
    step.logs = [_fill(log, LogMark(), _LOG, "name server text") for log in table.each("log", "a log")]
    return step


def _figures_of(column: Column, row: str) -> dict[str, float]:
    return figures_at(column.cell, row, column.format) if column.cell else {}


def _check_cell(table: toml.Table, column: Column) -> None:
    if column.cell and not column.published:
        table.refuse(f'no published report has a cell "{column.cell}"')


def _read_table(table: toml.Table) -> Table:
    made = _fill(table, Table(), "title note rows by main where", "title", "column")
    made.columns = [_fill(one, Column(), _COLUMN, "title value") for one in table.each("column", "a column")]
    for column in made.columns:
        column.published |= _figures_of(column, "")
        _check_cell(table, column)
    return made


def _read_chart(table: toml.Table) -> Chart:
    chart = _fill(table, Chart(), "title x y log_x log_y heat each where", "title x", "series")
    chart.series = [_fill(one, Column(), _COLUMN, "title value") for one in table.each("series", "a series")]
    for series in chart.series:
        for row in chart.each or [""]:
            end = f"/{row}" if row else ""
            series.published |= {key + end: figure for key, figure in _figures_of(series, row).items()}
        _check_cell(table, series)
    return chart


def _conclusions_of(conclusion: Conclusion, sweeps: list[Sweep]) -> list[Conclusion]:
    """Itself, or with `each` one for each value of that variable; with an unknown one, itself."""
    values = next((sweep.values for sweep in sweeps if sweep.name == conclusion.each), [])
    return [
        replace(
            conclusion,
            say=conclusion.say.replace(f"{{{conclusion.each}}}", value),
            where=conclusion.where | {conclusion.each: [value]},
        )
        for value in values
    ] or [conclusion]


def _read_sweep(table: toml.Table, scales: Mapping[str, float]) -> Sweep:
    here = [scale for scale in scales if scale in table.node]
    sweep = _fill(table, Sweep(), "name title values keep_servers also", "name values", " ".join(here))
    sweep.at = {scale: table.words(scale) for scale in here}
    return sweep


def _read_all(table: toml.Table) -> Scenario:
    scenario = _fill(
        table,
        Scenario(),
        "title about fit report source question scale constants",
        "title about scale",
        "print sizes sweep swap network server step table conclusion line chart",
    )
    kind = table.text("print") if "print" in table.node else "tables"
    if kind not in ("tables", "explanation"):
        table.refuse(f"`print` must be tables or explanation, not {kind}")
    scenario.explanation = kind == "explanation"
    for name, size in table.each_named("sizes", "a size"):
        here = [scale for scale in scenario.scales if scale in size.node]
        made = _fill(size, Size(name), "full least", "full", " ".join(here))
        made.at = {scale: size.number(scale) for scale in here}
        scenario.sizes.append(made)
    scenario.sweeps = [_read_sweep(sweep, scenario.scales) for sweep in table.each("sweep", "a sweep")]
    swap = table.inner("swap")
    if swap:
        scenario.swap = _fill(swap, SwapSpec(), "kind size only", "kind size")
    network = table.inner("network")
    if network:
        scenario.network = _fill(network, NetworkSpec(), "rate queue napi servers only", "servers")
    for server in table.each("server", "a server"):
        scenario.servers.append(_fill(server, ServerSpec(), _SERVER, "name kind"))
    scenario.steps = [_read_step(step) for step in table.each("step", "a step")]
    scenario.tables = [_read_table(one) for one in table.each("table", "a table")]
    for one in table.each("conclusion", "a conclusion"):
        conclusion = _fill(one, Conclusion(), "say value each where against", "say value against")
        scenario.conclusions += _conclusions_of(conclusion, scenario.sweeps)
    for one in table.each("line", "a line"):
        scenario.lines.append(_fill(one, Line(), "say x y unit per where", "say x y unit per"))
    scenario.charts = [_read_chart(chart) for chart in table.each("chart", "a chart")]
    return scenario


def _set(scenario: Scenario, settings: Mapping[str, str]) -> None:
    """Applies changed constants and sizes."""
    for name, value in sorted(settings.items()):
        if name in scenario.constants:
            scenario.constants[name] = value
            continue
        size = next((size for size in scenario.sizes if size.name == name), None)
        if not size:
            raise Failure(f'{scenario.file}: unknown constant or size "{name}"', USAGE)
        number = parse_number(value)
        if number is None or number <= 0:
            raise Failure(f"{scenario.file}: the size {name} must be above 0, not {value}", USAGE)
        size.full = size.least = number
        size.fixed = True  # the same at every scale


def parse_scenario(text: str | bytes, path: Path | str, settings: Mapping[str, str] | None = None) -> Scenario:
    """Reads and checks the content of a file; `settings` changes constants and sizes.

    Raises Failure (status USAGE): "FILE:LINE: reason".
    """
    scenario = _read_all(toml.read_table(text, str(path), "a scenario", templates=True))
    scenario.file = str(path)
    scenario.name = Path(path).stem
    _set(scenario, settings or {})
    _Check(scenario).all()
    return scenario


def read_scenario(path: Path | str, settings: Mapping[str, str] | None = None) -> Scenario:
    """The same for a file."""
    try:
        text = Path(path).read_bytes()
    except OSError:
        raise Failure(f"cannot read the scenario {path}", USAGE) from None
    return parse_scenario(text, path, settings)


# Checking beyond types: names exist, templates can be expanded, each step has one action

_MOST_INSTANCES = 100
_BEHIND = "servers of kind redis, valkey, keydb or memcached"
_NOT_BEHIND = ("nutcracker", "haproxy", "sentinel")  # a link: they are reached by addresses of others
_FORKS = ("BGSAVE", "BGREWRITEAOF")
_AWAITED = ("snapshot", "rewrite", "replicas")


def _is_name(text: str) -> bool:
    return re.fullmatch("[A-Za-z][A-Za-z0-9_]*", text) is not None


def _is_count(text: str, least: int) -> bool:
    """Whole numbers in expanded templates: "3", not "3x" or "2.5"."""
    return re.fullmatch(r"-?\d{1,9}", text, re.ASCII) is not None and least <= int(text) <= _MOST_INSTANCES


class _Check:
    """Each check covers every point of every scale, because values differ between them. The first mistake is raised."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.points: list[Values] = []  # at all scales
        self.figures: set[str] = set()  # the steps that produce figures
        self.variables = {sweep.name: sweep for sweep in scenario.sweeps}
        self.values_of = {sweep.name: sweep.values for sweep in scenario.sweeps}
        for sweep in scenario.sweeps:
            self.values_of |= sweep.also

    def all(self) -> None:
        self.sweeps()
        scales = [Scale(), *(Scale(name, factor) for name, factor in self.scenario.scales.items())]
        self.points = [point for scale in scales for point in points_of(self.scenario, scale)]
        self.values()
        self.servers()
        self.instances()
        self.swap()
        self.network()
        if not self.scenario.steps:
            self.fail(1, "a scenario needs a [[step]]")
        for step in self.scenario.steps:
            self.step(step)
        self.explanation()
        self.step_names()
        for table in self.scenario.tables:
            self.table(table)
        for conclusion in self.scenario.conclusions:
            self.conclusion(conclusion)
        for line in self.scenario.lines:
            for formula in (line.x, line.y):
                self.column(Column(value=formula, where=line.where, line=line.line), [])
        for chart in self.scenario.charts:
            self.chart(chart)

    def fail(self, line: int, reason: str) -> NoReturn:
        raise Failure(f"{self.scenario.file}:{line}: {reason}", USAGE)

    def at(self, *filters: Filter) -> list[Values]:
        """The points that all filters select."""
        return [point for point in self.points if all(matches(where, point) for where in filters)]

    def filter(self, where: Filter, line: int) -> None:
        for name, values in where.items():
            if name not in self.values_of:
                self.variable(name, line)
            known = self.values_of[name]
            for value in values:
                # Values of formulas differ between scales.
                if value not in known and "{" not in known[0]:
                    self.fail(line, f'"{name}" has no value "{value}"')

    def variable(self, name: str, line: int) -> Sweep:
        if name not in self.variables:
            self.fail(line, f'unknown sweep variable "{name}"')
        return self.variables[name]

    def expand(self, text: str, point: Values, line: int) -> str:
        try:
            return expand(text, point)
        except Failure as failure:
            self.fail(line, str(failure))

    def template(self, line: int, only: Filter, *texts: str) -> None:
        for text in texts:
            for point in self.at(only) if "{" in text else []:
                self.expand(text, point, line)

    def server_name(self, name: str, line: int) -> None:
        """ "redis", "redis3" of several, or "redis{i}"."""
        group = name.split("{")[0]
        names = [server.name for server in self.scenario.servers]
        if group not in names and group.rstrip("0123456789") not in names:
            self.fail(line, f'unknown server "{name}"')

    def sweeps(self) -> None:
        scenario = self.scenario
        names = set()

        def once(name: str, line: int) -> None:
            if not _is_name(name):
                self.fail(line, f'"{name}" is not a name: use letters, digits and _, starting with a letter')
            if name in names:
                self.fail(line, f'"{name}" is defined twice')
            names.add(name)

        for size in scenario.sizes:
            once(size.name, 1)
            if size.full <= 0 or size.least < 0 or min(size.at.values(), default=1) <= 0:
                self.fail(1, f"the size {size.name} must be above 0")
        for name in scenario.constants:
            once(name, 1)
        kept = False
        for sweep in scenario.sweeps:
            once(sweep.name, sweep.line)
            if len(set(sweep.values)) < len(sweep.values):
                self.fail(sweep.line, f'"{sweep.name}" has the same value twice')
            if kept and not sweep.keep_servers:
                why = "because nothing else may change between their values"
                self.fail(sweep.line, f"sweeps with `keep_servers` must come last, {why}")
            kept = sweep.keep_servers
            if not sweep.values:
                self.fail(sweep.line, f'the sweep "{sweep.name}" has no values')
            for name, also in sweep.also.items():
                once(name, sweep.line)
                if len(also) != len(sweep.values):
                    self.fail(sweep.line, f"`also.{name}` needs a value for each of `values`")
            for scale, values in sweep.at.items():
                for value in values:
                    if value not in sweep.values:
                        none = f'is none of the values of "{sweep.name}"'
                        self.fail(sweep.line, f'"{value}" at scale {scale} {none}')
        for name, factor in scenario.scales.items():
            if not _is_name(name) or factor <= 0:
                self.fail(1, f'the scale "{name}" must be a factor above 0')

    def values(self) -> None:
        """points_of() expands templates in values; invalid ones remain unchanged."""
        names = {name: 1 for name in self.scenario.constants}
        for part in (names, {name: sweep.line for sweep in self.scenario.sweeps for name in (sweep.name, *sweep.also)}):
            for point in self.points:
                for name, line in part.items():
                    self.expand(point[name], point, line)

    def servers(self) -> None:
        names = set()
        for server in self.scenario.servers:
            line = server.line
            if not _is_name(server.name) or server.name[-1].isdigit():
                wanted = "must be a name that does not end with a digit"
                self.fail(line, f'the name of a server {wanted}, not "{server.name}"')
            names.add(server.name)
            kind = find_kind(server.kind)
            if not kind:
                self.fail(line, f'unknown kind of server "{server.kind}": use {kind_names()}')
            for other in (server.of, server.replica_of):
                if other and other not in names:
                    self.fail(line, f'the server "{other}" must come before "{server.name}"')
            if kind.of and not server.of:
                self.fail(line, f"a {server.kind} needs `of` with the servers behind it")
            self.filter(server.only, line)
            texts = (server.count, server.listen, server.cpus, server.memory, server.replicas, *server.config)
            self.template(line, server.only, *texts)

    def instances(self) -> None:
        for point in self.points:
            here = set()
            for server in self.scenario.servers:
                if not matches(server.only, point):
                    continue
                if server.name in here:
                    self.fail(server.line, f'a point has two servers "{server.name}"')
                here.add(server.name)
                texts = (server.memory, server.count, server.listen, server.replicas)
                memory, count, listen, replicas = (expand(text, point) for text in texts)
                if memory and parse_memory(memory) is None:
                    self.fail(server.line, f'"{memory}" is not a size of memory such as 256MiB')
                if not _is_count(count, 1):
                    self.fail(server.line, f"`count` must be 1 to 100, not {count}")
                if replicas and not _is_count(replicas, 0):
                    self.fail(server.line, f"`replicas` must be 0 to 100, not {replicas}")
                if listen not in ("unix", "tcp"):
                    self.fail(server.line, f"`listen` must be unix or tcp, not {listen}")

    def swap(self) -> None:
        swap = self.scenario.swap
        if swap.kind not in ("", "zram", "file"):
            self.fail(swap.line, f'unknown kind of swap "{swap.kind}": use zram or file')
        self.filter(swap.only, swap.line)
        for point in self.at(swap.only):
            size = self.expand(swap.size, point, swap.line)
            if swap.kind and parse_memory(size) is None:
                self.fail(swap.line, f'"{size}" is not a size of swap such as 256MiB')

    def say(self, text: str, only: Filter, line: int) -> None:
        """The text of `say` may contain figures of its step and of earlier steps."""

        def figure(name: str) -> float | None:
            step, dot, _ = name.partition(".")
            return 1 if dot and step in self.figures else None

        for point in self.at(only) if "{" in text else []:
            try:
                expand_text(text, point, figure)
            except Failure as failure:
                self.fail(line, str(failure))

    def action(self, action: Action, only: Filter, line: int) -> None:
        things = "ask, start, kill, move_slots, await, spread, napi_threads, host, wait"
        if sum(bool(getattr(action, name.replace("await", "await_"))) for name in f"{things}, note".split(", ")) != 1:
            self.fail(line, f"a step needs exactly one of load, {things} and note")
        self.filter(action.only, line)
        self.template(line, only, action.ask, action.move_slots, action.spread, action.napi_threads, action.host)
        if (action.ask or action.move_slots or action.await_) and not action.server:
            self.fail(line, "`server` is missing: name the server of this step")
        for name in filter(None, (action.start, action.kill, action.server, action.to)):
            self.server_name(name, line)
        for point in self.at(only) if action.move_slots else []:
            slots = self.expand(action.move_slots, point, line)
            if not re.fullmatch(r"\d{1,5}", slots, re.ASCII):
                self.fail(line, f"`move_slots` must be a number of slots, not {slots}")
        if action.move_slots and not action.to:
            self.fail(line, "`move_slots` needs `to` with the node that receives the slots")
        if action.await_ and action.await_ not in _AWAITED:
            self.fail(line, f'unknown `await` "{action.await_}": use snapshot, rewrite or replicas')
        for name, text in (("spread", action.spread), ("napi_threads", action.napi_threads)):
            for point in self.at(only) if text else []:
                cpus = self.expand(text, point, line)
                if cpus not in ("on", "off") and not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", cpus, re.ASCII):
                    self.fail(line, f'`{name}` must be "on", "off" or a list of CPUs such as 0-1, not "{cpus}"')
        for point in self.at(only) if action.host else []:
            path, _, value = self.expand(action.host, point, line).partition(" ")
            if not path.startswith(("/sys/", "/proc/sys/")) or ".." in path or not value:
                self.fail(line, f'`host` must be a file below /sys or /proc/sys and its value, not "{action.host}"')
        if action.napi_threads and not self.scenario.network.napi:
            self.fail(line, "`napi_threads` needs a [network] with `napi = true`")
        due = parse_due(action.wait)
        if action.wait and (not due or due.is_share):
            self.fail(line, f'`wait` must be a time such as 2s, not "{action.wait}"')
        if action.note:
            if not _is_name(action.note):
                self.fail(line, f'"{action.note}" is not a name for figures')
            self.figures.add(action.note)
        self.say(action.say, only, line)
        if action.report and (not action.at or action.ask not in _FORKS):
            self.fail(line, "`report` needs an event that sends BGSAVE or BGREWRITEAOF")

    def step(self, step: StepSpec) -> None:
        self.filter(step.only, step.line)
        if not step.load:
            self.action(step.action, step.only, step.line)
            return
        if not _is_name(step.name):
            self.fail(step.line, f'"{step.name}" is not a name for figures')
        self.say(step.say, step.only, step.line)
        self.figures.add(step.name)
        self.template(step.line, step.only, step.load, step.by, step.cpus)
        points = self.at(step.only)
        for by in (expand(step.by, point) for point in points):
            if by not in ("forktail-load", "redis-benchmark"):
                self.fail(step.line, f"`by` must be forktail-load or redis-benchmark, not {by}")
            if by == "redis-benchmark" and step.record:
                why = "because redis-benchmark does not log requests"
                self.fail(step.line, f"`record` needs forktail-load, {why}")
        if not step.to:
            self.fail(step.line, "`to` is missing: name the server for the load")
        self.template(step.line, step.only, step.to)
        for point in points:
            to = expand(step.to, point)
            self.server_name(to, step.line)
            group = to.rstrip("0123456789")
            if not any(server.name == group and matches(server.only, point) for server in self.scenario.servers):
                self.fail(step.line, f'some points of the step have no server "{to}": restrict the step with `only`')
        for event in step.events:
            due = parse_due(event.at)
            if not due:
                wanted = "a share of the load such as 25% or a time such as 2s"
                self.fail(event.line, f'`at` must be {wanted}, not "{event.at}"')
            if due.is_share and "--duration " not in step.load:
                self.fail(event.line, "`at` with a share of the load needs a load with --duration")
            self.action(event, step.only, event.line)
        for query in step.queries:
            self.filter(query.only, query.line)
            if not _is_name(query.name):
                self.fail(query.line, f'"{query.name}" is not a name for a figure')
            if not step.record:
                self.fail(query.line, "a [[step.query]] asks the recording, but the step has no `record`")
        for mark in step.logs:
            self.filter(mark.only, mark.line)
            self.server_name(mark.server, mark.line)
            if not _is_name(mark.name):
                self.fail(mark.line, f'"{mark.name}" is not a name for a figure')
            if not step.events:
                why = "but the step has no event"
                self.fail(mark.line, f"a [[step.log]] measures time from the first event, {why}")

    def network(self) -> None:
        network = self.scenario.network
        self.filter(network.only, network.line)
        self.template(network.line, network.only, network.rate, network.queue)
        for name in network.servers:
            self.server_name(name, network.line)
        for server in self.scenario.servers:
            if server.name not in network.servers:
                continue
            if not find_kind(server.kind) or server.kind in _NOT_BEHIND or server.cluster:
                self.fail(network.line, f"a link needs {_BEHIND}: {server.name}")
            if server.listen != "tcp":
                self.fail(network.line, f'a link needs `listen = "tcp"`: {server.name}')

    def explanation(self) -> None:
        """A scenario that prints an explanation has one recording."""
        scenario = self.scenario
        if scenario.fit and scenario.fit not in [size.name for size in scenario.sizes]:
            self.fail(1, f'`fit` must name a size: "{scenario.fit}" is not a size')
        recorded = sum(step.record for step in scenario.steps)
        if scenario.explanation and (recorded != 1 or scenario.sweeps or scenario.tables or scenario.charts):
            one = "one recorded step and no sweeps, tables or charts"
            self.fail(1, f"a scenario that prints an explanation must have {one}")

    def step_names(self) -> None:
        """Two loads with the same name would share figures and files."""
        for point in self.points:
            here = set()
            for step in self.scenario.steps:
                name = step.name if step.load else step.action.note
                if name and matches(step.only, point):
                    if name in here:
                        self.fail(step.line, f'a point has two steps "{name}"')
                    here.add(name)

    def column(self, column: Column, rows: list[str]) -> None:
        self.filter(column.where, column.line)
        for name, value in column.against.items():
            self.filter({name: [value]}, column.line)
        if column.format != Format.TEXT:
            try:
                check_formula(column.value)
            except Failure as failure:
                self.fail(column.line, str(failure))
        for row in rows or ["row"]:
            for name in names_in(column.value):
                figure = with_values(with_row(name, row), self.points[0])
                if unknown := re.search(r"\{(\w+)\}", figure):
                    self.fail(column.line, f'unknown variable "{unknown[1]}" in "{name}"')
                self.figure(column, figure)

    def figure(self, column: Column, name: str) -> None:
        """A figure or variable in a formula."""
        if name.startswith("base."):
            if not column.against:
                self.fail(column.line, f'"{name}" needs `against`')
            name = name.removeprefix("base.")
        first, dot, _ = name.partition(".")
        if first not in (self.figures if dot else self.points[0]):
            self.fail(column.line, f'no step produces "{name}"')

    def table(self, table: Table) -> None:
        if not table.names and not table.by:
            self.fail(table.line, "a table needs `rows` (names) or `by` (variables)")
        if not table.columns:
            self.fail(table.line, "a table needs a [[table.column]]")
        for name in table.by:
            self.variable(name, table.line)
        self.filter(table.where, table.line)
        for column in table.columns:
            self.column(column, table.names)

    def conclusion(self, conclusion: Conclusion) -> None:
        value, line = conclusion.value, conclusion.line
        if "/" not in value or "base." not in value:
            self.fail(line, f'`value` must be a ratio to `base.`, such as "run.rps / base.run.rps", not "{value}"')
        if conclusion.each:
            self.variable(conclusion.each, line)
        self.column(Column(value=value, where=conclusion.where, against=conclusion.against, line=line), [])

    def chart(self, chart: Chart) -> None:
        self.variable(chart.x, chart.line)
        if not chart.series:
            self.fail(chart.line, "a chart needs a [[chart.series]]")
        self.filter(chart.where, chart.line)
        for series in chart.series:
            self.column(series, chart.each)
