# SPDX-License-Identifier: MIT
"""Checks whether a table of measurements can be true: `forktail lab check`.

A table that breaks one of these laws measured something else than its title says: error replies, requests cut off at
the end, or another unit. Nothing here needs the program or the host that measured.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from forktail import toml
from forktail.failure import USAGE, Failure
from forktail.lab.scenario import parse_number
from forktail.text import format_count

_SPEEDS = {"kbit": 125, "Mbit": 125_000, "Gbit": 125_000_000, "kB": 1000, "MB": 10**6, "GB": 10**9}  # bytes/s
_SHARE = 0.15  # by which rate and latency may miss Little's law: a mean over other requests than the rate
_NEAR = 0.9  # of a link's speed: frames and acknowledgements have their part
_SAME_DIGITS = 6  # two measured rates rarely agree in so many digits


@dataclass
class Row:
    """A line of the table; None: the table has no such column, or the cell is empty."""

    rate: float | None = None  # requests/s
    clients: float | None = None  # connections times pipeline depth: the most requests in flight
    mean_us: float | None = None
    min_us: float | None = None
    max_us: float | None = None
    p50_us: float | None = None
    p95_us: float | None = None
    p99_us: float | None = None
    bytes: float | None = None  # of a request with its reply
    requests: float | None = None
    failures: float | None = None
    connections: float | None = None


@dataclass
class Limits:
    """What the host had, in bytes/s; None: unknown."""

    link: float | None = None
    memory: float | None = None


@dataclass
class Finding:
    impossible: bool  # else the row is possible, but does not show what its column says
    text: str


def parse_speed(text: str) -> float | None:
    """ "1Gbit", "100Mbit", "20GB" -> bytes/s. None: not such a speed."""
    for unit, factor in _SPEEDS.items():
        if text.endswith(unit):
            try:
                return float(text[: -len(unit)]) * factor
            except ValueError:
                return None
    return None


def read_limits(path: str) -> Limits:
    """A TOML file with `link` and `memory`, such as link = "1Gbit". Raises Failure."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", USAGE) from None
    table = toml.read_table(text, path, "a file of limits")
    table.allow("link", "memory")
    limits = Limits()
    for key in ("link", "memory"):
        if key in table.node:
            speed = parse_speed(table.text(key))
            if speed is None or speed <= 0:
                table.refuse(f'`{key}` must be a speed such as 1Gbit or 20GB, not "{table.text(key)}"', key)
            setattr(limits, key, speed)
    return limits


def read_rows(path: str) -> list[tuple[str, Row]]:
    """The lines of a CSV file with their names: their other columns, or else their line. Raises Failure."""
    known = [one.name for one in fields(Row)]
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            heads = reader.fieldnames or []
            if not set(heads) & set(known):
                raise Failure(f"{path}: no column that can be checked. Name columns {', '.join(known)}", USAGE)
            rows = []
            for line in reader:
                row = Row()
                for name in known:
                    text = (line.get(name) or "").strip().replace(",", "")
                    if not text:
                        continue
                    number = parse_number(text)
                    if number is None or number < 0:
                        raise Failure(f'{path}:{reader.line_num}: {name} must be a number from 0, not "{text}"', USAGE)
                    setattr(row, name, number)
                names = [line[head] for head in heads if head not in known and line[head]]
                rows.append((" ".join(names) or f"line {reader.line_num}", row))
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", USAGE) from None
    except (UnicodeDecodeError, csv.Error):
        raise Failure(f"{path} is not a CSV file", USAGE) from None
    return rows


def _number(value: float) -> str:
    return format_count(int(value + 0.5)) if value >= 100 else f"{value:.3g}"


def _speed(value: float) -> str:
    unit, factor = next((one for one in (("GB", 1e9), ("MB", 1e6)) if value >= one[1]), ("kB", 1e3))
    return f"{value / factor:.3g} {unit}/s"


def _in_flight(row: Row) -> Iterator[Finding]:
    """Little's law: the requests in flight are their rate times their mean time."""
    if row.rate is None or not row.mean_us or not row.clients:
        return
    flying = row.rate * row.mean_us / 1e6
    text = f"{_number(row.rate)} requests/s of {_number(row.mean_us)} us are {flying:.3g} in flight"
    if flying > row.clients * (1 + _SHARE):
        yield Finding(True, f"{text}, more than {_number(row.clients)} clients can have, unless they pipeline")
    elif flying < row.clients * (1 - _SHARE):
        idle = "so the clients waited for something else, or the mean leaves requests out"
        yield Finding(False, f"{text}, of {_number(row.clients)} clients: {idle}")


def _speeds(row: Row, limits: Limits) -> Iterator[Finding]:
    if row.rate is None or row.bytes is None:
        return
    speed = row.rate * row.bytes
    text = f"{_number(row.rate)} requests/s of {_number(row.bytes)} bytes are {_speed(speed)}"
    for name, limit in (("memory", limits.memory), ("the link", limits.link)):
        if limit is not None and speed > limit:
            why = "so the replies were not these: errors, for example"
            yield Finding(True, f"{text}, but {name} moves {_speed(limit)}, {why}")
            return
    if limits.link is not None and speed > _NEAR * limits.link:
        yield Finding(False, f"{text}: the link ({_speed(limits.link)}) was nearly full")


def _order(row: Row) -> Iterator[Finding]:
    """The least time, the mean and the percentiles in their order."""
    order = [("the minimum", row.min_us), ("p50", row.p50_us), ("p95", row.p95_us), ("p99", row.p99_us)]
    order.append(("the maximum", row.max_us))
    known = [(name, value) for name, value in order if value is not None]
    zeros = [name for name, value in known if value == 0 and name.startswith("p")]
    if zeros and row.mean_us:
        wide = "the buckets of that histogram are wider than the times"
        yield Finding(False, f"{' and '.join(zeros)} are 0 beside a mean of {_number(row.mean_us)} us: {wide}")
        known = [(name, value) for name, value in known if name not in zeros]
    for (name, value), (next_name, next_value) in zip(known, known[1:], strict=False):
        if value > next_value:
            yield Finding(True, f"{name} ({_number(value)} us) is above {next_name} ({_number(next_value)} us)")
            return
    for name, bound, sign in (("minimum", row.min_us, 1), ("maximum", row.max_us, -1)):
        if row.mean_us is not None and bound is not None and sign * (bound - row.mean_us) > 0:
            where = "above" if sign > 0 else "below"
            yield Finding(True, f"the {name} ({_number(bound)} us) is {where} the mean ({_number(row.mean_us)} us)")


def _failures(row: Row) -> Iterator[Finding]:
    connections = row.connections or row.clients
    if not row.failures or not connections:
        return
    if row.requests and row.failures > row.requests:
        yield Finding(True, f"{_number(row.failures)} failures of {_number(row.requests)} requests")
    elif row.failures <= connections:
        each = f"{row.failures / connections:.2g} failures per connection"
        yield Finding(False, f"{each}: it may be the end of the run and not a failure rate")


def check_rows(rows: list[tuple[str, Row]], limits: Limits) -> list[Finding]:
    """What cannot be true in a table, or shows something else, in the order of its rows."""
    findings = []
    seen: dict[str, str] = {}
    for name, row in rows:
        for part in (_in_flight(row), _speeds(row, limits), _order(row), _failures(row)):
            findings += [Finding(one.impossible, f"{name}: {one.text}") for one in part]
        digits = f"{row.rate:.12g}" if row.rate is not None else ""
        if len(digits.replace(".", "").rstrip("0")) >= _SAME_DIGITS:
            if digits in seen:
                same = f"{digits} requests/s is also the rate of {seen[digits]}"
                findings.append(Finding(False, f"{name}: {same}: a copied cell, or run times that were rounded"))
            seen.setdefault(digits, name)
    return findings


def check_file(path: str, limits: str) -> int:
    """Prints a line for each finding, and how many rows were checked. limits: a file, or empty. Returns the exit
    status: 1 if a row is impossible. Raises Failure."""
    rows = read_rows(path)
    findings = check_rows(rows, read_limits(limits) if limits else Limits())
    for finding in findings:
        print(f"{'impossible' if finding.impossible else 'note      '}  {finding.text}.")
    impossible = sum(finding.impossible for finding in findings)
    print(f"{len(rows)} rows, {impossible} impossible, {len(findings) - impossible} notes.")
    return 1 if impossible else 0
