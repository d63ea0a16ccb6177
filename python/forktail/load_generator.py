# SPDX-License-Identifier: MIT
"""forktail-load from Python: put load on a server, and get its figures as parsed JSON with the exit status.

load() waits for the end. Load is the same as a context manager, for a load that runs while something else is done.
Options are those of forktail-load (docs/reference/load.md), as words. What most callers give has its own parameter.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from forktail.failure import CANNOT, NO, USAGE, Failure
from forktail.programs import end, program

Words = Sequence[str | int | float | Path]


@dataclass(frozen=True)
class LoadResult:
    """What a load printed, and how it ended.

    status: 0 done, 1 the answer is no (--fail-if, --verify, --find), 2 usage, 3 it cannot; negative: the signal.
    figures: the JSON of --json (docs/reference/load.md#json), times in ns. Empty if the load wrote none.
    table, messages: standard output and standard error. log: the request log that `out` named.
    """

    status: int
    figures: dict[str, Any]
    table: str
    messages: str
    log: Path | None

    @property
    def total(self) -> dict[str, Any]:
        """The figures of all operations of the last test: requests, errors, requests_per_s, latency_ns{}, ..."""
        total: dict[str, Any] = self.figures["runs"][-1]["total"]
        return total

    @property
    def latency_ns(self) -> dict[str, float]:
        """Latencies of the last test in ns: count, mean, min, p50, ..., max, stddev."""
        latency: dict[str, float] = self.total["latency_ns"]
        return latency


class Load:
    """A forktail-load that runs until its options end it, or stop(). Its process is `.process`, its log `.log`.

    The end of a `with` block ends it by SIGINT if it still runs. It then sends no more, waits at most a second for
    answers, and writes its figures and its log.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        port: int | None = None,
        rate: float | None = None,
        duration: str | float | None = None,
        connections: int | None = None,
        out: str | Path | None = None,
        options: Words = (),
        prefix: Words = (),
        env: Mapping[str, str] | None = None,
        executable: str | Path | None = None,
    ) -> None:
        """Starts the load and returns at once. The parameters are those of load()."""
        self.log = Path(out) if out is not None else None
        self.result: LoadResult | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="forktail-load-")
        scratch = Path(self._scratch.name)
        self._json, self._table, self._messages = scratch / "json", scratch / "table", scratch / "messages"
        given = {
            "--server": server,
            "--port": port,
            "--rate": rate,
            "--duration": duration,
            "--connections": connections,
            "--output": out,
        }
        words = [*prefix, executable or program("forktail-load")]
        words += [word for option, value in given.items() if value is not None for word in (option, value)]
        self.words = [str(word) for word in [*words, "--quiet", "--json", self._json, *options]]
        try:
            with self._table.open("wb") as table, self._messages.open("wb") as messages:
                self.process = subprocess.Popen(
                    self.words,
                    stdin=subprocess.DEVNULL,
                    stdout=table,
                    stderr=messages,
                    env={**os.environ, **env} if env else None,
                )
        except OSError as error:
            raise Failure(f"cannot start {self.words[0]}: {error.strerror}") from None

    @property
    def pid(self) -> int:
        """The process id of what was started: of the first word of `prefix`, if that does not become the load."""
        return self.process.pid

    def wait(self, timeout_s: float | None = None) -> LoadResult:
        """Waits for the end. Raises subprocess.TimeoutExpired after timeout_s seconds; the load then still runs."""
        if self.result is None:
            status = self.process.wait(timeout_s)
            try:
                figures = json.loads(self._json.read_bytes())
            except (OSError, ValueError):  # it refused its options, or was killed
                figures = {}
            table, messages = (path.read_text(errors="replace") for path in (self._table, self._messages))
            self.result = LoadResult(status, figures, table, messages, self.log)
            self._scratch.cleanup()
        return self.result

    def stop(self, sign: int = signal.SIGINT, timeout_s: float = 30) -> LoadResult:
        """Ends the load by a signal, after timeout_s seconds by SIGKILL. Returns its result, also if it had ended."""
        end(self.process, sign, timeout_s)
        return self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def load(
    server: str | None = None,
    *,
    port: int | None = None,
    rate: float | None = None,
    duration: str | float | None = None,
    connections: int | None = None,
    out: str | Path | None = None,
    options: Words = (),
    prefix: Words = (),
    env: Mapping[str, str] | None = None,
    executable: str | Path | None = None,
    allowed: Collection[int] = (0, NO),
    timeout_s: float | None = None,
) -> LoadResult:
    """Puts load on a server, waits for the end and returns the figures.

    server: HOST, HOST:PORT, a Unix socket's path or a URI (--server). port: with 127.0.0.1, if there is no `server`.
    rate: requests a second of an open loop; without it a closed loop.
    duration: seconds, or a text with a unit ("500ms", "2m"). Without it the load's default number of requests.
    out: the file of the request log. options: further words, e.g. ["--ratio", "0:1", "-P", 16].
    prefix: words before the program, e.g. ["taskset", "-c", 1] or ["ip", "netns", "exec", "client"].
    env: additions to the environment. executable: another forktail-load than the package's.

    Raises Failure with the load's own message if its exit status is not in `allowed`, and subprocess.TimeoutExpired
    after timeout_s seconds. The load does not outlive the call.
    """
    with Load(
        server,
        port=port,
        rate=rate,
        duration=duration,
        connections=connections,
        out=out,
        options=options,
        prefix=prefix,
        env=env,
        executable=executable,
    ) as running:
        result = running.wait(timeout_s)
    if result.status not in allowed:
        why = result.messages.strip() or f"forktail-load ended with status {result.status}"
        raise Failure(why, result.status if result.status in (NO, USAGE) else CANNOT)
    return result
