# SPDX-License-Identifier: MIT
"""Prints the settings of a server and its host that cause spikes: the second part of `forktail doctor TARGET`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forktail.failure import Failure
from forktail.options import Command, Option
from forktail.servers.running import OPTIONS, connect, failures_of
from forktail.settings.facts import Facts, read_facts
from forktail.settings.rows import ROWS

COMMAND = Command(
    "forktail doctor --settings",
    "Print the settings of a running Redis server and its host that cause latency spikes here, each with the value "
    "seen and why (docs/guides/settings.md).",
    [
        *OPTIONS,
        Option("--json", "Print JSON"),
        Option("--json-schema", "Print the JSON Schema of --json"),
        Option("--optional", "If the server cannot be asked, say so in a line and succeed"),
    ],
    examples=("sudo forktail doctor --port 6379 --settings",),
)


@dataclass
class Finding:
    """A row that applies to a server."""

    setting: str
    cause: str
    seen: str
    why: str
    command: str
    loses: str


def findings(facts: Facts) -> list[Finding]:
    """The rows that apply, in the table's order."""
    return [
        Finding(row.id, row.cause, row.seen(facts), row.why(facts), row.command, row.loses)
        for row in ROWS
        if row.applies(facts)
    ]


def _text(address: str, found: list[Finding], facts: Facts) -> str:
    unread = "" if facts.config else " The server's own settings could not be read (CONFIG GET)."
    if not found:
        return f"Settings of {address}: none of {len(ROWS)} that cause spikes applies here.{unread}\n"
    lines = [f"Settings of {address} that cause spikes here: {len(found)} of {len(ROWS)}.{unread}"]
    for one in found:
        lines += [
            f"  {one.seen[0].upper()}{one.seen[1:]}" + (f" ({one.cause})" if one.cause else ""),
            f"    Why here: {one.why}.",
            f"    To change it: {one.command}." + (f" It may lose {one.loses}." if one.loses else ""),
        ]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Exit status: 0 none applies, 1 some do, 2 wrong usage, 3 the server cannot be read."""
    _, options = COMMAND.parse(words)
    if options["json_schema"]:
        print((Path(__file__).parent / "settings.schema.json").read_text(), end="")
        return 0
    try:
        server, pid, address = connect(options)
        with failures_of(address):
            facts = read_facts(server, pid)
    except Failure as failure:
        if not options["optional"]:
            raise
        print(f"Settings are not checked: {failure}.")
        return 0
    found = findings(facts)
    if options["json"]:
        result: dict[str, Any] = {
            "server": address, "pid": pid, "looked_at": len(ROWS), "config_read": bool(facts.config),
            "settings": [vars(one) for one in found],
        }  # fmt: skip
        print(json.dumps(result, indent=2))
    else:
        print(_text(address, found, facts), end="")
    return 1 if found else 0
