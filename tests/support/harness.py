# SPDX-License-Identifier: MIT
"""What tests of programs run: forktail, a load with its log and figures, a recorder with its recording; and why a test
is skipped.
"""

import json
import os
import re
import shutil
import signal
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from processes import Ended, Program, eventually
from processes import run as run_program
from recorded import Recording, ft

TREE = Path(__file__).resolve().parents[2]
BIN = TREE / "build/bin"
HELPERS = TREE / "build/tests"
sys.path.insert(0, str(TREE / "python"))
os.environ["FORKTAIL_BIN_DIR"] = str(BIN)

import schemas  # noqa: E402
from forktail.programs import program  # noqa: E402
from forktail.servers import Server  # noqa: E402


def helper(name: str) -> Path:
    """A program or library in C that tests need, by its target's name."""
    return next(path for path in (HELPERS / name, HELPERS / f"lib{name}.so") if path.exists())


def forktail(*words: Any, **options: Any) -> Ended:
    """Runs `forktail words...` to its end. Options as for processes.Program, and timeout. JSON that it prints has to be
    as its schema says."""
    ended = run_program(program("forktail"), *words, **options)
    schemas.check_output(words, ended.out)
    return ended


def load(*words: Any, **options: Any) -> Ended:
    """Runs `forktail-load words...` to its end. Options as for processes.Program, and timeout."""
    return run_program(program("forktail-load"), *words, **options)


def explain(path: str | Path, *words: Any, **options: Any) -> Any:
    """The JSON of `forktail explain PATH words...`, which has to succeed."""
    ended = forktail("explain", path, "--json", *words, **options)
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def synthetic_run(path: Path, millions: float, per_second: int = 50_000) -> Path:
    """A run of so many million requests in a new directory, made without a server. Returns the directory."""
    path.mkdir()
    made = run_program(BIN / "bench_explain_run", path, millions, per_second)
    assert made.status == 0, made.err
    return path


def evidence(*episodes: Any) -> str:
    """The sentences about episodes of an explanation, one a line."""
    return "".join(f"{sentence}\n" for episode in episodes for sentence in episode["evidence"])


class Load(Program):
    """A forktail-load in the background, or to its end by wait(), whose log and figures are then read.

    log: the request log. json: the document of --json; figures: its only run; total: that run's figures of all
    operations.
    """

    def __init__(self, directory: Path, *words: Any, observer: bool = False, **options: Any) -> None:
        directory.mkdir(exist_ok=True)
        self.log_path, self._json_path = directory / "log", directory / "json"
        own = ["-q", "-o", self.log_path, "--json", self._json_path, *["--no-observer"] * (not observer)]
        super().__init__(program("forktail-load"), *own, *words, **options)

    @cached_property
    def log(self) -> Recording:
        return Recording(self.log_path)

    @cached_property
    def json(self) -> Any:
        return json.loads(self._json_path.read_text())

    @property
    def figures(self) -> Any:
        assert len(self.json["runs"]) == 1
        return self.json["runs"][0]

    @property
    def total(self) -> Any:
        return self.figures["total"]

    def under_way(self) -> None:
        """Waits until some requests are in the log. Blocks are written after a second."""
        assert eventually(lambda: self.log_path.exists() and len(Recording(self.log_path).requests) > 10, 30), self.err

    def done(self, status: int = 0, timeout: float = 120) -> "Load":
        """Waits for the end with this exit status, and checks that log and figures agree."""
        ended = self.wait(timeout)
        assert ended.status == status, ended.out + ended.err
        assert self.log.whole and len(self.log.drops) == 0
        assert self.total["requests"] == len(self.log.requests)
        return self


class Recorder(Program):
    """A running forktail-record. Once made, it is recording."""

    def __init__(self, path: Path, *words: Any, **options: Any) -> None:
        self.path = path
        super().__init__(program("forktail-record"), "-o", path, *words, **options)
        # Its first line, which it may write in parts.
        recording = re.compile("recording .*\n")
        eventually(lambda: recording.match(self.err) or not self.running, 30)
        if not (self.running and recording.match(self.err)):
            self.close()
            raise AssertionError(f"forktail-record did not start: {self.err}")

    def stop(self) -> Recording:
        """Ends it as Ctrl-C does, and returns what `finished` does."""
        self.signal(signal.SIGINT)
        return self.finished()

    def finished(self) -> Recording:
        """Waits for its own end, and reads its file. Fails the test if its exit status is not 0, or if it used a system
        call that its filter does not allow."""
        ended = self.wait()
        assert ended.status == 0, ended.err
        assert "is not on the recorder's list" not in ended.err
        return Recording(self.path)


def kill(server: Server) -> None:
    """Kills a server, and waits until it has ended."""
    server.send_signal(signal.SIGKILL)
    server.wait(10)


def sanitized() -> bool:
    """The programs are built with a sanitizer, whose memory does not count as theirs."""
    return any(mark in program("forktail-load").read_bytes() for mark in (b"__asan_init", b"__tsan_init"))


_IPV6_ADDRESSES = Path("/proc/net/if_inet6")

# The words before a command that is to run without any rights.
AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
needs_ipv6 = pytest.mark.skipif(not _IPV6_ADDRESSES.exists() or not _IPV6_ADDRESSES.read_text(), reason="no IPv6")
needs_two_cpus = pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="needs CPUs 0 and 1")


def needs(name: str) -> Any:
    """A mark for tests of a program that this machine may lack."""
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"no {name}")


__all__ = ["AS_NOBODY", "BIN", "TREE", "Ended", "Load", "Program", "Recorder", "Recording", "eventually", "evidence",
           "explain", "forktail", "ft", "helper", "kill", "load", "needs", "needs_ipv6", "needs_root", "needs_two_cpus",
           "run_program", "sanitized", "synthetic_run"]  # fmt: skip
