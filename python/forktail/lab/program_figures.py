# SPDX-License-Identifier: MIT
"""Figures from the output of other programs: forktail-load --json, redis-benchmark --csv, forktail explain --json.

Times become ns, so that tables have one unit. docs/reference/lab-and-scenarios.md lists the names. `step` is the first
part of each name; `names` maps addresses of servers to the scenario's names.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from forktail.failure import Failure
from forktail.files import read_file
from forktail.lab.formula import figure_name
from forktail.lab.results import Point
from forktail.text import format_count, format_duration, format_share

Json = Any
CAUSES_SHOWN, WORST_SHOWN = 4, 3
LEAST_SHARE = 0.01  # smaller causes are not named
BENCHMARK_FIGURES = ("rps", "mean", "min", "p50", "p95", "p99", "max")


@dataclass
class SearchedRate:
    """A part of a run in which forktail-load's search ran a rate: the highest that held, or the next that failed."""

    name: str  # "highest", "beyond"
    since: str  # seconds since 1970
    until: str
    client_at_limit: bool


@contextmanager
def _output_of(program: str, path: str) -> Iterator[Json]:
    """The JSON object in a file. What is missing in it or has another type is a Failure that names the program."""
    try:
        document = json.loads(read_file(path))
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Failure(f"{path} does not contain JSON")
    try:
        yield document
    except KeyError as missing:
        raise Failure(f"{path} is not output of {program}: key {missing} not found") from missing
    except (TypeError, ValueError, AttributeError) as wrong:
        raise Failure(f"{path} is not output of {program}: {wrong}") from wrong


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"type must be number, but is {type(value).__name__}")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"type must be array, but is {type(value).__name__}")
    return value


def _bucket_name(bucket: Json) -> str:
    """ "25ms", or "100us" if it is not a whole number of ms; "over"."""
    if "up_to_ns" not in bucket:
        return "over"
    ms, rest = divmod(int(_number(bucket["up_to_ns"])), 1_000_000)
    return f"{rest // 1000 + ms * 1000}us" if rest else f"{ms}ms"


def _add_operation(name: str, operation: Json, point: Point) -> None:
    """Figures of an operation or of all."""
    requests, errors = _number(operation["requests"]), _number(operation["errors"])
    latency = operation["latency_ns"]
    figures = {
        "requests": requests,
        "succeeded": requests - errors,
        "errors": errors,
        "misses": _number(operation["misses"]),
        "error_percent": 100 * errors / requests if requests > 0 else 0,
        "rps": _number(operation["requests_per_s"]),
        "mb_s": _number(operation["mb_per_s"]),
    }
    if latency.get("count", 0) > 0:
        figures |= {figure_name(figure): _number(value) for figure, value in latency.items()}
    for bucket in operation.get("buckets", ()):
        figures[f"bucket_{_bucket_name(bucket)}"] = _number(bucket["requests"])
    _add(name, figures, point)


def _add(name: str, figures: Mapping[str, float], point: Point) -> None:
    for figure, value in figures.items():
        point.numbers[f"{name}.{figure}"] = value


def _add_outages(name: str, outages: Json, point: Point) -> None:
    figures = {
        "outages": len(outages),
        "outage": max((outage.get("gap_ns", 0) for outage in outages), default=0),
        "outage_failed": sum(outage.get("failed", 0) for outage in outages),
        "outage_delayed": sum(outage.get("delayed", 0) for outage in outages),
    }
    _add(name, figures, point)


def _add_nodes(step: str, nodes: Json, names: Mapping[str, str], point: Point) -> None:
    for node in nodes:
        name = names.get(node["server"])
        if name is not None:
            figures = {count: _number(node[count]) for count in ("requests", "errors")}
            figures |= {figure_name(time): _number(node[time + "_ns"]) for time in ("p50", "p99", "p99.9", "max")}
            _add(f"{step}.{name}", figures, point)


def add_load_figures(step: str, path: str, names: Mapping[str, str], point: Point) -> None:
    """Adds STEP.rps, .p99, .errors, .SET.rps, .bucket_25ms, .outage ..., and for each of several servers
    STEP.redis1.p99."""
    with _output_of("forktail-load", path) as document:
        requests = errors = seconds = cpu_s = 0.0
        runs = _list(document["runs"])
        for run in runs:
            for operation, figures in run["operations"].items():
                name = f"{step}.{figure_name(operation)}"
                _add_operation(name, figures, point)
                _add(name, {"seconds": _number(run["seconds"])}, point)
            if len(runs) == 1:
                _add_operation(step, run["total"], point)
            requests += _number(run["total"]["requests"])
            errors += _number(run["total"]["errors"])
            seconds += _number(run["seconds"])
            cpu_s += _number(run["client"]["cpu_s"])
            _add(step, {f"late_{what}": _number(run["sent_late_ns"][what]) for what in ("mean", "max")}, point)
            _add_nodes(step, run.get("nodes", ()), names, point)
            for redirect, count in run.get("redirects", {}).items():
                point.numbers[f"{step}.redirects_{redirect}"] = _number(count)
            if "outages" in run:
                _add_outages(step, run["outages"], point)
        _add(step, {"requests": requests, "errors": errors, "seconds": seconds, "client_cpu_s": cpu_s}, point)
        if requests > 0:
            point.numbers[f"{step}.client_us_per_request"] = cpu_s * 1e6 / requests


def add_benchmark_figures(step: str, path: str, point: Point) -> None:
    """The same names, as far as redis-benchmark prints them."""
    # "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_...","p99_...","max_latency_ms"
    tests = 0
    for fields in csv.reader(read_file(path).splitlines()):
        # The commands that fill its lists are not tests.
        if len(fields) < 8 or fields[0] == "test" or "needed to benchmark" in fields[0]:
            continue
        name = f"{step}.{figure_name(fields[0].split(' ')[0])}"
        for figure, text in zip(BENCHMARK_FIGURES, fields[1:], strict=False):
            try:
                point.numbers[f"{name}.{figure}"] = float(text) * (1 if figure == "rps" else 1e6)
            except ValueError:
                raise Failure(f'{path} is not output of redis-benchmark: "{text}"') from None
        tests += 1
    if not tests:
        raise Failure(f"redis-benchmark printed no results ({path})")


def _seconds_text(us: Json) -> str:
    """ "1795378503.123456"."""
    seconds, rest = divmod(int(_number(us)), 1_000_000)
    return f"{seconds}.{rest:06d}"


def add_search(step: str, path: str, point: Point) -> list[SearchedRate]:
    """Adds what forktail-load's search found, if the load searched, and returns the rates that have a run.

    STEP.highest and .beyond (requests per second), .highest.runs and .highest.held, .rps (answers per second at the
    highest rate), and the text STEP.search (its result).
    """
    rates = []
    with _output_of("forktail-load", path) as document:
        search = document.get("search")
        if search is None:
            return []
        point.texts[f"{step}.search"] = search["result"]
        for name in ("highest", "beyond"):
            rate = search.get(name)
            if rate is None:
                continue
            point.numbers[f"{step}.{name}"] = _number(rate["rate"])
            _add(f"{step}.{name}", {what: _number(rate[what]) for what in ("runs", "held")}, point)
            since, until = _seconds_text(rate["start_unix_us"]), _seconds_text(rate["end_unix_us"])
            rates.append(SearchedRate(name, since, until, rate["client_at_limit"]))
        for run in search["curve"]:
            if "highest" in search and run["rate"] == search["highest"]["rate"]:
                point.numbers[f"{step}.rps"] = _number(run["requests_per_s"])
    return rates


def name_cause(name: str, client_at_limit: bool, point: Point) -> None:
    """Adds the text NAME.named, from what add_explanation added under the same name.

    It is the largest cause, of server-busy with the own code that took most, or that the client was at its limit.
    """

    def first(text: str) -> str:
        return point.texts.get(f"{name}.{text}", "").split(",")[0]

    named = "client at its limit" if client_at_limit else first("causes")
    if named.startswith("server-busy "):
        named += ": " + first("own")
    point.texts[f"{name}.named"] = named


def _largest(shares: Iterable[Json], name: str) -> str:
    """The largest shares by name: "fork 52 %, run-queue 33 %". `name` is the member that names one."""
    shown: list[str] = []
    for one in shares:
        share = _number(one["share"])
        if len(shown) == CAUSES_SHOWN or share < LEAST_SHARE:
            break
        shown.append(f"{one[name]} {format_share(share)}")
    return ", ".join(shown)


def _longest(requests: Json) -> str:
    """The causes of the longest request: "fork 8.20 ms, run-queue 3.10 ms"."""
    if not _list(requests):
        return ""
    longest: Json = max(requests, key=lambda request: _number(request["latency_ns"]))
    shown: list[str] = []
    for part in longest["parts"]:
        ns = part["direct_ns"] + part["queued_ns"]
        if len(shown) == CAUSES_SHOWN or ns < LEAST_SHARE * longest["latency_ns"]:
            break
        shown.append(f"{part['cause']} {format_duration(ns)}")
    return ", ".join(shown)


def add_answer(name: str, path: str, point: Point) -> None:
    """Adds the answer of `forktail sql --json`: a figure if it is one number, else a text, "a 1, b 2": values of a row
    are joined by blanks, rows by commas."""
    try:
        rows = json.loads(read_file(path))
        rows = [list(row.values()) for row in rows]
    except (ValueError, AttributeError, TypeError):
        raise Failure(f"{path} is not output of forktail sql") from None
    if len(rows) == 1 and len(rows[0]) == 1 and isinstance(rows[0][0], (int, float)):
        point.numbers[name] = rows[0][0]
    else:
        point.texts[name] = ", ".join(" ".join("-" if value is None else str(value) for value in row) for row in rows)


def _episode_text(episode: Json) -> str:
    head = (
        f"+{_number(episode['t_s']):.3f} s: {format_count(episode['requests'])} requests, "
        f"worst {format_duration(episode['worst_ns'])}: {_largest(episode['causes'], 'cause')}"
    )
    return "\n  ".join([head, *episode["evidence"]])


def add_explanation(step: str, path: str, names: Mapping[str, str], point: Point) -> None:
    """Adds STEP.cause.fork.percent, .explained_percent ...; texts STEP.causes (the largest), STEP.own (the server's own
    code), and STEP.worst (the worst episodes and their evidence)."""
    with _output_of("forktail explain", path) as document:
        slow, hops = document["slow"], document.get("hops", [])
        _add(step, {"slow_from": _number(slow["threshold_ns"]), "slow": _number(slow["count"])}, point)
        unknown = 0.0
        for cause in _list(document["causes"]):
            share = _number(cause["share"])
            if cause["cause"] == "unknown":
                unknown = share
            figures = {"percent": 100 * share, "time": _number(cause["time_ns"])}
            figures |= {f"without_{figure_name(p)}": _number(value) for p, value in cause["what_if"].items()}
            _add(f"{step}.cause.{figure_name(cause['cause'])}", figures, point)
        point.numbers[f"{step}.explained_percent"] = 100 * (1 - unknown)
        own = _list(document["own_code"]["activities"])
        for activity in own:
            point.numbers[f"{step}.own.{figure_name(activity['name'])}.percent"] = 100 * _number(activity["share"])
        shown = []
        for hop in hops:
            name, share = names.get(hop.get("address", "")) or hop["name"], _number(hop["share"])
            point.numbers[f"{step}.hop.{figure_name(name)}.percent"] = 100 * share
            shown += [f"{name} {format_share(share)}"] if share >= LEAST_SHARE else []
        episodes = sorted(_list(document["episodes"]), key=lambda episode: -_number(episode["worst_ns"]))
        point.texts |= {
            f"{step}.hops": ", ".join(shown),
            f"{step}.causes": _largest(document["causes"], "cause"),
            f"{step}.own": _largest(own, "name"),
            f"{step}.longest": _longest(document["slow_requests"]),
            f"{step}.worst": "\n".join(map(_episode_text, episodes[:WORST_SHOWN])),
        }
