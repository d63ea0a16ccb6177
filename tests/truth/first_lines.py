# SPDX-License-Identifier: MIT
"""The first line that `forktail explain` prints for each injected stall: docs/results/first-lines.md.

The first line speaks of all slow requests of a run, and a trial's set-up makes slow requests too (it fills the
server). So the line is of the requests that were due around the injection.
"""
import json
import os
import subprocess

from trial import BIN, ROOT

PAGE = os.path.join(ROOT, "docs", "results", "first-lines.md")
AROUND_NS = 20_000_000  # before and after what was injected


def first_line(trial, explained, injection):
    """The answer for requests due around an injection; "" if none was slow enough to be explained."""
    to_realtime = explained["requests"]["first_realtime_ns"] - explained["requests"]["first_ns"]
    since, until = (f"{(ns + to_realtime) / 1e9:.6f}" for ns in
                    (injection["start_ns"] - AROUND_NS, injection["end_ns"] + AROUND_NS))
    answer = subprocess.run(
        [os.path.join(BIN, "forktail"), "explain", "--json", "--slow", trial.threshold, "--since", since, "--until", until,
         trial.run], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return json.loads(answer.stdout)["answer"] if answer.returncode == 0 else ""


def table(outcomes):
    """A row per cause: the longest injection of its first case, and the line about it."""
    rows = {}
    for outcome in outcomes:
        for injection, line in outcome.first_lines:
            cause = injection.get("activity", injection["cause"])
            case, longest, _ = rows.get(cause, (outcome.case.name, 0, ""))
            length = injection["end_ns"] - injection["start_ns"]
            if line and case == outcome.case.name and length >= longest:
                rows[cause] = case, length, line
    return "\n".join(["| injected | first line |", "|---|---|"] +
                     [f"| `{cause}` | {line.replace('|', '/')} |" for cause, (_, _, line) in rows.items()])
