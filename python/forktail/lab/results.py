# SPDX-License-Identifier: MIT
"""The results of a scenario's points: figures and texts by name, stored in results.json, so that a run can be printed
again, compared and resumed.

A name has the step and the figure: run.SET.p99 (ns), run.redis.cpu_percent, before.redis.used_memory (bytes).
docs/reference/lab-and-scenarios.md lists them. Characters other than letters and digits become "_" between dots:
run.p99_9, run.READ_MODIFY_WRITE.rps.
"""

import json
import lzma
import math
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from forktail.failure import Failure
from forktail.files import write_json
from forktail.lab.scenario import Values

_VERSION = 2


@dataclass
class Point:
    values: Values = field(default_factory=dict)  # variables, sizes and constants
    numbers: dict[str, float] = field(default_factory=dict)  # figure -> value; with repeats the median
    texts: dict[str, str] = field(default_factory=dict)
    # With repeats: a figure in each of them, in their order; None where it is missing.
    runs: dict[str, list[float | None]] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)  # run directories under the scenario's, one per recorded step
    repeats: int = 1


@dataclass
class Results:
    scenario: str = ""
    title: str = ""
    host: str = ""  # where
    kernel: str = ""
    cpu: str = ""
    versions: dict[str, str] = field(default_factory=dict)  # forktail, redis ...
    scale: str = ""
    command: str = ""  # as typed
    seconds: float = 0  # duration
    started_unix: int = 0
    load_average: float = 0  # of the machine before the first scenario of the command, over one minute
    notes: list[str] = field(default_factory=list)  # what this host does not support, and why
    points: list[Point] = field(default_factory=list)  # in the order of points_of


def versions_text(results: Results) -> str:
    """ "forktail 0.1.0, redis 7.0.15"."""
    return ", ".join(f"{name} {version}" for name, version in sorted(results.versions.items()))


def source_text(results: Results) -> str:
    """ "forktail lab run a3-suite --scale small --repeat 5; host; 2026-11-21": where a picture's figures come from.

    The command is as typed, without the files that it wrote."""
    command = re.sub(r" (-o ?|--out[ =]|--write[ =])\S+", "", results.command)
    day = time.strftime("%Y-%m-%d", time.gmtime(results.started_unix)) if results.started_unix else ""
    return "; ".join(filter(None, (command, results.host, day)))


def _finite(numbers: dict[str, float]) -> dict[str, float]:
    """JSON has no NaN and no infinity: such figures are left out."""
    return {name: float(value) for name, value in sorted(numbers.items()) if math.isfinite(value)}


def _finite_or_none(number: float | None) -> float | None:
    return float(number) if number is not None and math.isfinite(number) else None


def _point_json(point: Point) -> dict[str, Any]:
    return {
        "values": dict(sorted(point.values.items())),
        "numbers": _finite(point.numbers),
        "texts": dict(sorted(point.texts.items())),
        "recorded": point.recorded,
        "repeats": point.repeats,
        "runs": {name: [_finite_or_none(number) for number in each] for name, each in sorted(point.runs.items())},
    }


def _results_json(results: Results) -> dict[str, Any]:
    fields = asdict(results) | {
        "versions": dict(sorted(results.versions.items())),
        "points": [_point_json(point) for point in results.points],
    }
    return {"version": _VERSION} | fields


def write_results(path: Path | str, results: Results) -> None:
    """Replaces the file atomically. NaN and infinite figures are left out. Raises Failure."""
    write_json(path, _results_json(results), "\t")


def packed_results(results: Results) -> bytes:
    """The same content as the file, compressed (xz)."""
    return lzma.compress(json.dumps(_results_json(results)).encode())


_KINDS = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def _member(node: dict[str, Any], key: str, kind: type) -> Any:
    """Raises ValueError if it is missing or of another kind; `kind` float: any number."""
    if key not in node:
        raise ValueError(f"key '{key}' not found")
    return _checked(node[key], kind)


def _checked(value: Any, kind: type) -> Any:
    if _KINDS[type(value)] != _KINDS[kind]:
        raise ValueError(f"type must be {_KINDS[kind]}, but is {_KINDS[type(value)]}")
    return kind(value)


def _map(node: dict[str, Any], key: str, kind: type) -> dict[str, Any]:
    return {name: _checked(value, kind) for name, value in _member(node, key, dict).items()}


def _point_of(node: Any) -> Point:
    node = _checked(node, dict)
    return Point(
        values=_map(node, "values", str),
        numbers=_map(node, "numbers", float),
        texts=_map(node, "texts", str),
        runs={
            name: [None if number is None else _checked(number, float) for number in _checked(each, list)]
            for name, each in _member(node, "runs", dict).items()
        },
        recorded=[_checked(run, str) for run in _member(node, "recorded", list)],
        repeats=_member(node, "repeats", int),
    )


def _results_of(node: dict[str, Any]) -> Results:
    results = Results(
        **{key: _member(node, key, str) for key in ("scenario", "title", "host", "kernel", "cpu", "scale", "command")},
        versions=_map(node, "versions", str),
        seconds=_member(node, "seconds", float),
        started_unix=_member(node, "started_unix", int),
        load_average=_member(node, "load_average", float),
        notes=[_checked(note, str) for note in _member(node, "notes", list)],
    )
    results.points = [_point_of(point) for point in _member(node, "points", list)]
    return results


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number")
    return number


def read_results(path: Path | str) -> Results:
    """A file ending in .xz is unpacked. Raises Failure: one sentence, if it cannot be read or is damaged."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    try:
        if str(path).endswith(".xz"):
            text = lzma.decompress(text)
        node = json.loads(text.decode(), parse_constant=_finite_number, parse_float=_finite_number)
        json.dumps(node, ensure_ascii=False).encode()  # refuses halves of characters
    except (ValueError, RecursionError, lzma.LZMAError):
        node = None
    if not isinstance(node, dict):
        raise Failure(f"{path} is damaged, or no results of a scenario: it holds no JSON object")
    if node.get("version") != _VERSION:
        raise Failure(f"{path} is damaged, or of another version of forktail: its version is not {_VERSION}")
    try:
        return _results_of(node)
    except (ValueError, OverflowError) as error:
        raise Failure(f"{path} is damaged: {error}") from None
