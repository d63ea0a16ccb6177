# SPDX-License-Identifier: MIT
"""Prints the settings of a server and its host that cause spikes: the second part of `forktail doctor TARGET`."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from forktail.failure import Failure
from forktail.options import JSON_OPTIONS, Command, Option
from forktail.programs import program
from forktail.recording import open as open_run
from forktail.servers.running import OPTIONS, connect, failures_of
from forktail.settings.facts import Facts, read_facts
from forktail.settings.rows import ROWS, Row
from forktail.text import format_duration, format_share

# Causes with so many reasons that their time says nothing about one setting.
_OF_MANY_REASONS = ("server-busy", "network")
_NOTICEABLE = 0.01  # of the slow requests' time

COMMAND = Command(
    "forktail doctor --settings",
    "Print the settings of a running Redis server and its host that cause latency spikes here, each with the value "
    "seen and why (docs/guides/settings.md).",
    [
        *OPTIONS,
        Option("--run", "Say what each one's cause took in this recording of the server, the largest first", "DIR"),
        *JSON_OPTIONS,
        Option("--optional", "If the server cannot be asked, say so in a line and succeed"),
    ],
    examples=("sudo forktail doctor --port 6379 --settings",),
    schema=Path(__file__).parent / "settings.schema.json",
)


@dataclass
class Seen:
    """What a cause took in a recording."""

    things: str  # "requests" or "iterations"
    share: float  # of the slow ones' time
    p99_9_ns: int
    without_ns: int  # the same percentile without the cause


@dataclass
class Finding:
    """A row that applies to a server."""

    setting: str
    cause: str
    seen: str
    why: str
    text: str
    command: str
    loses: str
    measured: str
    in_recording: Seen | None = None  # None: no recording, or nothing that it could say


@cache
def remedies() -> dict[str, Any]:
    """The table of remedies by id, as `forktail causes --json` prints it. Raises Failure if forktail is missing."""
    words = [str(program("forktail")), "causes", "--json"]
    printed = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout
    return {one["id"]: one for one in json.loads(printed)["remedies"]}


def _cause(row: Row) -> str:
    """Its first one; "": none."""
    return str((remedies()[row.id]["causes"] or [""])[0])


def _finding(row: Row, facts: Facts, recorded: Mapping[str, Seen]) -> Finding:
    remedy, cause = remedies()[row.id], _cause(row)
    return Finding(
        row.id, cause, row.seen(facts), row.why(facts), remedy["text"], remedy["command"], remedy["loses"],
        remedy["measured"], recorded.get(cause),
    )  # fmt: skip


def findings(facts: Facts, recorded: Mapping[str, Seen] | None = None) -> list[Finding]:
    """The rows that apply, in the table's order; with what a recording has about causes, by their time in it."""
    found = [_finding(row, facts, recorded or {}) for row in ROWS if row.applies(facts)]
    return sorted(found, key=lambda one: -one.in_recording.share if one.in_recording else 0)


def causes_of(explanation: Mapping[str, Any]) -> dict[str, Seen]:
    """What a recording's explanation says about each cause of a row."""
    requests = explanation["requests"]
    things = "requests" if requests["from"] == "request-log" else "iterations"
    now = requests["latency_ns"]["p99.9"]
    seen = {cause: Seen(things, 0, now, now) for cause in map(_cause, ROWS) if cause}
    for one in explanation["causes"]:
        seen[one["cause"]] = Seen(things, one["share"], now, one["what_if"]["p99.9"])
    return {cause: one for cause, one in seen.items() if cause not in _OF_MANY_REASONS}


def _seen_text(cause: str, seen: Seen) -> str:
    if seen.share < _NOTICEABLE:
        return f"    In the recording {cause} took no noticeable part of the slow {seen.things}' time."
    text = f"    In the recording {cause} took {format_share(seen.share)} of the slow {seen.things}' time"
    if seen.without_ns < seen.p99_9_ns:
        without, now = format_duration(seen.without_ns), format_duration(seen.p99_9_ns)
        text += f"; without it p99.9 would be {without} instead of {now}"
    return text + "."


def _text(address: str, found: list[Finding], facts: Facts) -> str:
    unread = "" if facts.config else " The server's own settings could not be read (CONFIG GET)."
    if not found:
        return f"Settings of {address}: none of {len(ROWS)} that cause spikes applies here.{unread}\n"
    lines = [f"Settings of {address} that cause spikes here: {len(found)} of {len(ROWS)}.{unread}"]
    for one in found:
        lines += [
            f"  {one.seen[0].upper()}{one.seen[1:]}" + (f" ({one.cause})" if one.cause else ""),
            f"    Why here: {one.why}.",
            *([_seen_text(one.cause, one.in_recording)] if one.in_recording else []),
            f"    What to do: {one.text[0].lower()}{one.text[1:]}" + (f" ({one.command})." if one.command else "."),
            *([f"    A crash may then lose {one.loses}."] if one.loses else []),
        ]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Exit status: 0 none applies, 1 some do, 2 wrong usage, 3 the server cannot be read."""
    _, options = COMMAND.parse(words)
    try:
        server, pid, address = connect(options)
        with failures_of(address):
            facts = read_facts(server, pid)
        recorded = causes_of(open_run(options["run"]).explanation) if options["run"] else None
    except Failure as failure:
        if not options["optional"]:
            raise
        print(f"Settings are not checked: {failure}.")
        return 0
    found = findings(facts, recorded)
    if options["json"]:
        result: dict[str, Any] = {
            "server": address, "pid": pid, "looked_at": len(ROWS), "config_read": bool(facts.config),
            "settings": [asdict(one) for one in found],
        }  # fmt: skip
        print(json.dumps(result, indent=2))
    else:
        print(_text(address, found, facts), end="")
    return 1 if found else 0
