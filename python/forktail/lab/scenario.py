# SPDX-License-Identifier: MIT
"""A scenario describes an experiment: servers, load, events, recording, tables, charts, and published figures to compare with.

It is a TOML file (docs/reference/lab-and-scenarios.md). Errors have file, line and reason.

Texts marked "template" may contain {name}, the value of a sweep's variable, a size or a constant, and {name*2/3}, arithmetic
rounded down to a whole number (see expand).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from forktail.lab.format import Format

Filter = dict[str, list[str]]  # selects points: sweep variable -> allowed values, in the order of names; empty: all points
Values = dict[str, str]  # a point of a sweep: values of variables, sizes and constants


@dataclass
class Size:
    name: str
    full: float = 0  # at scale 1
    least: float = 0  # never less than this
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
    config: list[str] = field(default_factory=list)  # templates: further arguments (nutcracker: lines of its pool; haproxy: of `global`)
    listen: str = "unix"  # template: unix or tcp
    cpus: str = ""  # template: "0-1"; "each": instance i on CPU i modulo their number; "": all
    memory: str = ""  # template: limit of a cgroup around all instances together, "256MiB"
    of: str = ""  # nutcracker, haproxy: the servers behind it; sentinel: the primary that it watches
    replica_of: str = ""
    replicas: str = ""  # template; with cluster: replicas of each primary
    cluster: bool = False  # the instances form a Redis Cluster
    later: bool = False  # started by a step or event
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
    spread: str = ""  # "on" or "off": soft interrupts over all CPUs (RPS and XPS)
    wait: str = ""  # "2s"
    note: str = ""  # name: the figures of all servers now

    server: str = ""
    to: str = ""
    report: bool = False  # the command of `ask` forks: the server's report about the child is printed and stored with the recording
    say: str = ""  # printed when it is done, see expand_text
    at: str = ""  # of an event: "25%" of the load's duration or requests, or "2s"
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class LogMark:
    """The time of a log message: the first line with this text in the logs of the server's instances, after the load's first event."""

    name: str = ""  # of the figure
    server: str = ""
    text: str = ""
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
    action: Action = field(default_factory=Action)  # if there is no load
    only: Filter = field(default_factory=dict)
    line: int = 0


@dataclass
class Column:
    """A figure of a table or chart.

    `value` is the name of a text, or a formula of figures: "run.SET.rps / 1000". {row} is the row's name. `base.` takes a figure
    from the point selected by `against`, so "run.rps / base.run.rps" is a ratio. A formula with a missing figure has no value ("-").
    """

    title: str = ""
    value: str = ""
    format: Format = Format.COUNT
    where: Filter = field(default_factory=dict)  # the point of the row: variable -> one value
    against: Values = field(default_factory=dict)  # of `base.`: changed values of variables
    published: dict[str, float] = field(default_factory=dict)  # row -> figure in the printed unit
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
    where: Filter = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    line: int = 0


@dataclass
class Chart:
    """Lines over a variable's values (numbers: an axis; else bars)."""

    title: str = ""
    x: str = ""  # the variable
    y: str = ""  # the title of the axis
    log_x: bool = False
    log_y: bool = False
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
    servers: list[ServerSpec] = field(default_factory=list)
    steps: list[StepSpec] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
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


def read_scenario(path: Path | str, settings: Mapping[str, str] = {}) -> Scenario:
    """Reads and checks a file; `settings` changes constants and sizes. Raises Failure: "FILE:LINE: reason"."""
    raise NotImplementedError


def parse_scenario(text: str, path: Path | str, settings: Mapping[str, str] = {}) -> Scenario:
    """The same for the content of a file."""
    raise NotImplementedError


def parse_scale(scenario: Scenario, text: str) -> Scale:
    """Parses "small" or "0.1". Raises Failure."""
    raise NotImplementedError


def points_of(scenario: Scenario, scale: Scale) -> list[Values]:
    """All points of the sweeps at a scale, the last variable fastest.

    Each has all variables, sizes and constants. A scenario without sweeps has one point.
    """
    raise NotImplementedError


def matches(where: Filter, values: Values) -> bool:
    """True if the filter selects the point."""
    raise NotImplementedError


def expand(text: str, values: Values) -> str:
    """Replaces every {...} in the text. Raises Failure: it names the unknown name or invalid formula."""
    raise NotImplementedError


def expand_text(text: str, values: Values, figure: Callable[[str], float | None]) -> str:
    """Expands a message: like a template, but a name may also be a figure, {name:count} becomes "94,042" and {name:bytes} "106 MB"."""
    raise NotImplementedError


def title_of(scenario: Scenario, variable: str) -> str:
    """The title of a variable in tables and charts: the title of its sweep, else its name."""
    raise NotImplementedError


def parse_due(text: str) -> Due | None:
    """When an event happens: "25%" or "2s". None: invalid text."""
    raise NotImplementedError


def parse_memory(text: str) -> int | None:
    """ParseBytes in C++: "256MiB", "1GiB", "4096" -> bytes. None: not such a size."""
    raise NotImplementedError


def split_words(text: str) -> list[str] | None:
    """Splits at blanks; '...' and "..." group words. None: a quote is not closed."""
    raise NotImplementedError
