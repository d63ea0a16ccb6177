# SPDX-License-Identifier: MIT
"""forktail-record from Python: a context manager that records a server while its block runs.

The block begins when all BPF programs are attached, about a second after the start, so what happens in it is recorded.
At its end SIGINT ends the recorder, which completes the file. Needs root, as the program does.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from forktail.failure import CANNOT, USAGE, Failure
from forktail.programs import end, program

Words = Sequence[str | int | float | Path]
END_S = 30.0  # for the end of a recorder: it compresses and writes what is queued


class record:
    """Records servers while its block runs: `with forktail.record(port=6379, out="runs/x/server.forktail") as r:`.

    pid, port, unix, name, cgroup, container, unit: the targets. pid is a number or several.
    out: the file, or with --keep the directory.
    options: further words of forktail-record (docs/reference/record.md), e.g. ["--light"].
    prefix: words before the program, e.g. ["taskset", "-c", 1]. env: additions to the environment.
    executable: another forktail-record than the package's.
    wait_s: how many seconds it may take until it records.

    start() and stop() are for those who need no block. The process is `.process`.
    Raises Failure with the recorder's own message and exit status if it cannot record. The end of the block raises it
    too if the recorder ended with an error, unless the block raised something else.
    """

    def __init__(
        self,
        *,
        out: str | Path,
        pid: int | Iterable[int] | None = None,
        port: int | None = None,
        unix: str | Path | None = None,
        name: str | None = None,
        cgroup: str | None = None,
        container: str | None = None,
        unit: str | None = None,
        options: Words = (),
        prefix: Words = (),
        env: Mapping[str, str] | None = None,
        executable: str | Path | None = None,
        wait_s: float = 60,
    ) -> None:
        self.out = Path(out)
        given = {
            "--pid": pid if pid is None or isinstance(pid, int) else ",".join(map(str, pid)),
            "--port": port,
            "--unix": unix,
            "--name": name,
            "--cgroup": cgroup,
            "--container": container,
            "--unit": unit,
            "--output": out,
        }
        words = [*prefix, executable or program("forktail-record")]
        words += [word for option, value in given.items() if value is not None for word in (option, value)]
        self.words = [str(word) for word in [*words, *options]]
        self._env = {**os.environ, **env} if env else None
        self._wait_s = wait_s
        self._changed = threading.Event()  # it records, or it ended
        self._recording = False
        self._lines: list[str] = []

    @property
    def messages(self) -> str:
        """What the recorder has written to standard error so far."""
        return "".join(self._lines)

    @property
    def pid(self) -> int:
        """The process id of what was started: of the first word of `prefix`, if that does not become the recorder."""
        return self.process.pid

    def start(self) -> Self:
        """Starts the recorder and returns when it records. Raises Failure."""
        try:
            self.process = subprocess.Popen(
                self.words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=self._env,
            )
        except OSError as error:
            raise Failure(f"cannot start {self.words[0]}: {error.strerror}") from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            changed = self._changed.wait(self._wait_s)
        except BaseException:
            self.stop()
            raise
        if not self._recording:
            late = "" if changed else f"forktail-record did not record within {self._wait_s:g} s"
            raise self._failure(self.stop(), late)
        return self

    def stop(self, sign: int = signal.SIGINT, timeout_s: float = END_S) -> int:
        """Ends the recorder by a signal, after timeout_s by SIGKILL. Returns its exit status, also if it had ended."""
        status = end(self.process, sign, timeout_s)
        self._reader.join(timeout_s)  # a helper of a killed recorder may have the pipe for a moment longer
        return status

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        status = self.stop()
        if status and kind is None:
            raise self._failure(status)

    def _read(self) -> None:
        """Reads messages until the recorder closes the pipe, so that it never waits for a reader."""
        assert self.process.stderr
        with self.process.stderr as pipe:
            for line in pipe:
                self._lines.append(line.decode(errors="replace"))
                if line.startswith(b"recording "):
                    self._recording = True
                    self._changed.set()
        self._changed.set()

    def _failure(self, status: int, instead: str = "") -> Failure:
        why = instead or self.messages.strip() or f"forktail-record ended with status {status}"
        return Failure(why, USAGE if status == USAGE else CANNOT)
