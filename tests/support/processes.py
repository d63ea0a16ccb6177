# SPDX-License-Identifier: MIT
"""Runs tested programs. Their output goes to files, so a program with much output never blocks. The kernel kills them
if the test itself is killed.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _begin() -> None:
    """In the new process: it dies with the test. Ctrl-C ends it, also if a shell without job control started pytest."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Closing:
    """Its `with` block ends with close()."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Ended:
    """How a program ended. status: its exit status, or minus the signal's number. peak_bytes: its largest memory, or
    the test's own if that is larger (run_measured)."""

    status: int
    out: str
    err: str
    peak_bytes: int = 0


class Program(Closing):
    """A program in the background. It is killed at the end of its `with` block, or by close().

    words: program and arguments. env: additions to the environment; a value of None removes the variable. input: its
    standard input, a text or bytes; none: /dev/null. prefix is part of words: ["taskset", "-c", 1, ...].
    """

    def __init__(
        self,
        *words: str | int | float | Path,
        env: Mapping[str, str | None] | None = None,
        input: str | bytes | None = None,
        cwd: str | Path | None = None,
        **more: Any,
    ) -> None:
        self.words = [str(word) for word in words]
        self._out, self._err, stdin = (tempfile.TemporaryFile() for _ in range(3))  # noqa: SIM115
        if input is not None:
            stdin.write(input.encode() if isinstance(input, str) else input)
            stdin.seek(0)
        all_env = {**os.environ, **(env or {})}
        self.process = subprocess.Popen(
            self.words,
            stdin=stdin if input is not None else subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            env={name: value for name, value in all_env.items() if value is not None},
            cwd=cwd,
            preexec_fn=_begin,
            **more,
        )
        self.pid = self.process.pid
        stdin.close()
        self._peak_bytes = 0

    @staticmethod
    def _read(file: Any) -> str:
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), size, 0).decode(errors="replace")

    @property
    def out(self) -> str:
        """Everything that it has printed so far."""
        return self._read(self._out)

    @property
    def err(self) -> str:
        """Everything that it has printed to standard error so far."""
        return self._read(self._err)

    @property
    def running(self) -> bool:
        """It has not ended."""
        return self._poll(os.WNOHANG)

    def _poll(self, flags: int) -> bool:
        if self.process.returncode is None:
            pid, status, usage = os.wait4(self.pid, flags)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self._peak_bytes = usage.ru_maxrss * 1024
        return self.process.returncode is None

    def signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.running:
            os.kill(self.pid, number)

    def wait(self, timeout: float = 60) -> Ended:
        """Waits for its end. Fails the test, with its output, if it still runs after `timeout` seconds."""
        if not eventually(lambda: not self.running, timeout):
            self.close()
            raise AssertionError(f"{self.words} still ran after {timeout} s\n{self.out}\n{self.err}")
        return Ended(self.process.returncode, self.out, self.err, self._peak_bytes)

    def interrupt(self, timeout: float = 60) -> Ended:
        """Ends it as Ctrl-C does."""
        self.signal(signal.SIGINT)
        return self.wait(timeout)

    def close(self) -> None:
        """Kills it if it runs."""
        self.signal(signal.SIGKILL)
        self._poll(0)


def run(*words: str | int | float | Path, timeout: float = 60, **options: Any) -> Ended:
    """Runs a program to its end. Options as for Program."""
    with Program(*words, **options) as program:
        return program.wait(timeout)


# Linux counts what a program's parent used until the fork as the program's, so a small process has to start it.
_STARTER = """
import os, sys
_, status, usage = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)
status = os.waitstatus_to_exitcode(status)
print(end=f"\\0{usage.ru_maxrss}", file=sys.stderr)
sys.exit(status if status >= 0 else 128 - status)
"""


def run_measured(*words: str | int | float | Path, **options: Any) -> Ended:
    """As run, with the peak of the program's own memory, however small. A signal's status is 128 + its number."""
    ended = run(sys.executable, "-ISc", _STARTER, *words, **options)
    err, _, peak = ended.err.rpartition("\0")
    return Ended(ended.status, ended.out, err, int(peak) * 1024)


def eventually(done: Callable[[], Any], timeout: float = 10) -> Any:
    """Waits until done() is true, and returns its value; false after `timeout` seconds. For states of other processes
    that cannot be waited for."""
    end = time.monotonic() + timeout
    while not (value := done()):
        if time.monotonic() > end:
            return value
        time.sleep(0.005)
    return value


def is_gone(pid: int) -> bool:
    """A process has ended. A zombie counts, because the test does not control when an orphan is reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
