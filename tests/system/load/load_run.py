# SPDX-License-Identifier: MIT
"""Loads that have ended: with the figures of each test of -t, or refused."""

import json
import tempfile
from pathlib import Path

from harness import load


def key(number):
    """The name of a key."""
    return f"key:{number:012}"


def check_refused(sentence, *words, status=3, **options):
    """A load with these words prints one line with this sentence, nothing else, and exits with this status. Returns how
    it ended."""
    ran = load(*words, **options)
    assert ran.status == status, ran.out + ran.err
    assert ran.out == ""
    assert sentence in ran.err
    assert ran.err.startswith("forktail load: ")
    assert ran.err.count("\n") == 1
    return ran


class LoadRun:
    """A load that has ended with this exit status (None: any), without log and observer.

    runs: the figures of each test, from --json; totals: those of all its operations; total: the first test's.
    status, out, err: how it ended.
    """

    def __init__(self, *words, status=0):
        with tempfile.TemporaryDirectory() as directory:
            figures = Path(directory) / "json"
            ended = load(*words, "-q", "--no-observer", "--json", figures)
            assert status in (None, ended.status), ended.err
            self.runs = json.loads(figures.read_text())["runs"]
        self.status, self.out, self.err = ended.status, ended.out, ended.err
        self.totals = [run["total"] for run in self.runs]
        self.total = self.totals[0]

    def requests(self, operation):
        """Of an operation of the first test."""
        return self.runs[0]["operations"].get(operation, {"requests": 0})["requests"]

    def each(self, *names):
        """These figures of every test: each("requests", "errors") is [(500, 0), ...]."""
        return [tuple(total[name] for name in names) for total in self.totals]
