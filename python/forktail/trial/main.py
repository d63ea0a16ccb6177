# SPDX-License-Identifier: MIT
"""The command line of `forktail try`: alternates a setting, records, compares, puts the old value back."""

import json
import shlex
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from forktail.failure import CANNOT, USAGE, Failure
from forktail.forecast.server import connect
from forktail.lab.tables import Comparison
from forktail.options import Command, Option
from forktail.programs import program
from forktail.text import format_duration, format_share, parse_duration
from forktail.trial.restorer import Restorer, current, put_back
from forktail.trial.settings import SETTINGS

COMMAND = Command(
    "forktail try",
    "Try a setting on a live Redis server: alternate the old and the new value while it records, say what changed, and "
    "put the old value back (docs/guides/try.md).",
    [
        Option("SETTING", "What to try: 'config set NAME VALUE'", required=True),
        Option("--port", "The server on this port of 127.0.0.1", "N", kind="UINT", limits=(1, 65535)),
        Option("--socket", "The server on this Unix socket", "PATH"),
        Option("--pid", "The server with this process id", "PID", kind="UINT", limits=(1, 1 << 22)),
        Option("--name", "The only server whose process has this name", "NAME"),
        Option("--user", "Log in as this user; the password is in $REDISCLI_AUTH", "NAME"),
        Option("--duration", "Try for TIME", "TIME", default="60s"),
        Option("--pairs", "Alternate N times between old and new", "N", default=5, kind="UINT", limits=(2, 100)),
        Option("--accept-data-loss", "Also try a value that weakens durability while it is tried"),
        Option("-o,--out", "Keep the recording in DIR", "DIR"),
        Option("--json", "Print JSON"),
    ],
    examples=("sudo forktail try 'config set lazyfree-lazy-user-del yes' --port 6379 --duration 60s",),
)

_LEAST_SLICE_S = 1.0
_SETTLE = 0.1  # share of a slice that is not compared
_RECORDER_S = 30
_LOST_S = 30
_SHOWN = ("p50", "p99", "p99.9", "max")
_CAUSES = 6


@dataclass
class Slice:
    """A stretch of time with one value."""

    is_new: bool
    since: float  # seconds since 1970
    until: float
    latency_ns: dict[str, float] = field(default_factory=dict)
    causes: dict[str, float] = field(default_factory=dict)  # ns of slow requests' time per second
    requests: int = 0


def parse_setting(text: str) -> tuple[str, str]:
    """The name and value of "config set NAME VALUE". Raises Failure."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if len(words) < 4 or [word.lower() for word in words[:2]] != ["config", "set"] or len(words) != 4:
        raise Failure(f"expected 'config set NAME VALUE', not '{text}'", USAGE)
    name, value = words[2].lower(), words[3]
    if name not in SETTINGS:
        raise Failure(
            f"{name} is not tried: it is not among the settings that can be undone at once (docs/guides/try.md)", USAGE
        )
    return name, value


class Trial:
    """One trial on one server."""

    def __init__(self, options: dict[str, Any], name: str, new: str) -> None:
        self.options, self.name, self.new = options, name, new
        self.server, self.pid, self.address = connect(options)
        self.old = current(self.server, name)
        self.run_id = self.server.info("server")["run_id"]
        self.rewrites = self._rewrites()

    def _rewrites(self) -> int:
        stats = self.server.info("commandstats")
        return int(stats.get("cmdstat_config|rewrite", {}).get("calls", 0))

    def _patiently(self, ask: Any) -> Any:
        """The answer of the server, which may need some time to be back."""
        limit = time.monotonic() + _LOST_S
        while True:
            try:
                return ask()
            except Exception as error:
                if time.monotonic() > limit:
                    raise Failure(f"{self.address}: {error}", CANNOT) from None
                time.sleep(0.5)

    def check(self, expected: str) -> None:
        """Raises Failure if the trial must not go on: another client changed the setting or wrote the file, or the
        server was restarted."""
        if self._patiently(lambda: self.server.info("server"))["run_id"] != self.run_id:
            raise Failure(f"{self.address} was restarted: the trial ends", CANNOT)
        now = self._patiently(lambda: current(self.server, self.name))
        if now != expected:
            raise Failure(f"another client set {self.name} to '{now}': it stays so, and the trial ends", CANNOT)
        if self._patiently(self._rewrites) != self.rewrites:
            where = "the configuration file may have the new value" if expected == self.new else "check the file"
            raise Failure(f"CONFIG REWRITE was called during the trial: {where}. The trial ends", CANNOT)

    def set(self, value: str) -> str:
        """Sets the value, and returns it as the server writes it: 100mb is 104857600."""
        self._patiently(lambda: self.server.config_set(self.name, value))
        return str(self._patiently(lambda: current(self.server, self.name)))

    def slices(self, seconds: float, restorer: Restorer) -> list[Slice]:
        """Alternates old new, new old, old new ... so that a drift affects both alike."""
        made, value, told = [], self.old, False
        for pair in range(self.options["pairs"]):
            for is_new in (False, True) if pair % 2 == 0 else (True, False):
                self.check(value)
                wanted = self.new if is_new else self.old
                if wanted != value:
                    value = self.set(wanted)
                if is_new and not told:
                    self.new, told = value, True
                    restorer.tell(value)
                begin = time.time()
                time.sleep(seconds)
                made.append(Slice(is_new, begin + _SETTLE * seconds, time.time()))
        self.check(value)
        return made


def _start_recorder(pid: int, path: str) -> subprocess.Popen[str]:
    argv = [str(program("forktail-record")), "--pid", str(pid), "--requests", "-o", path]
    recorder = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert recorder.stderr
    lines = []
    for line in recorder.stderr:
        if line.startswith("recording "):
            return recorder
        lines.append(line.rstrip("\n"))
    recorder.wait()
    raise Failure(lines[-1].removeprefix("forktail record: ") if lines else "the recorder ended", CANNOT)


def _stop(recorder: subprocess.Popen[str]) -> None:
    if recorder.poll() is None:
        recorder.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        recorder.communicate(timeout=_RECORDER_S)


def _explain(run: str, one: Slice) -> None:
    since, until = (f"{t:.6f}" for t in (one.since, one.until))
    argv = [str(program("forktail")), "explain", run, "--json", "--since", since, "--until", until]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        return  # no request was due in it
    said = json.loads(done.stdout)
    one.requests = said["requests"]["count"]
    one.latency_ns = said["requests"]["latency_ns"]
    seconds = one.until - one.since
    one.causes = {cause["cause"]: cause["time_ns"] / seconds for cause in said["causes"]}


def _verdict(old: list[float], new: list[float]) -> tuple[str, Comparison]:
    pairs = [b / a for a, b in zip(old, new, strict=True) if a > 0]
    compared = Comparison(pairs, None)
    if not pairs:
        return "not measured", compared
    low, high = min(pairs), max(pairs)
    if compared.inconclusive:
        return f"inconclusive ({low:.2f} to {high:.2f} times)", compared
    if compared.none_shown:
        return f"no difference shown ({low:.2f} to {high:.2f} times)", compared
    word = "lower" if statistics.median(pairs) < 1 else "higher"
    return f"{word}: {statistics.median(pairs):.2f} times ({low:.2f} to {high:.2f})", compared


def compare(slices: list[Slice]) -> list[dict[str, Any]]:
    """A row per percentile and cause: name, median of old and new in ns (of a cause ns per second), and the verdict.
    Slices with too few requests are left out with their partner."""
    old, new = ([one for one in slices if one.is_new == is_new] for is_new in (False, True))
    known = [(a, b) for a, b in zip(old, new, strict=False) if a.requests and b.requests]
    if not known:
        return []
    causes: dict[str, float] = {}
    for a, b in known:
        for one in (a, b):
            for name, value in one.causes.items():
                causes[name] = causes.get(name, 0) + value
    named = [name for name in sorted(causes, key=lambda name: -causes[name]) if name != "unknown"][:_CAUSES]
    rows = []
    for kind, names in (("latency_ns", _SHOWN), ("causes", named)):
        for name in names:
            values = [[getattr(one, kind).get(name, 0.0) for one in side] for side in zip(*known, strict=True)]
            verdict, compared = _verdict(values[0], values[1])
            rows.append(
                {
                    "figure": name,
                    "kind": "percentile" if kind == "latency_ns" else "cause",
                    "old": statistics.median(values[0]),
                    "new": statistics.median(values[1]),
                    "ratios": compared.ratios,
                    "verdict": verdict,
                }
            )
    return rows


def _text(trial: Trial, rows: list[dict[str, Any]], pairs: int, seconds: float) -> str:
    lines = [
        f"{trial.name} of {trial.address}: '{trial.old}' against '{trial.new}', {pairs} pairs of {seconds:.3g} s. "
        f"It is '{trial.old}' again.",
        "",
    ]
    if not rows:
        return lines[0] + "\nNo request was recorded in both: nothing can be compared.\n"
    lines.append(f"{'':<16} {'old':>10} {'new':>10}  change")
    for row in rows:
        if row["kind"] == "percentile":
            old, new = (format_duration(int(row[side])) for side in ("old", "new"))
        else:
            old, new = (format_share(row[side] / 1e9) for side in ("old", "new"))
        lines.append(f"{row['figure']:<16} {old:>10} {new:>10}  {row['verdict']}")
    lines.append("\nOf a cause: its time in slow requests, as a share of the time.")
    return "\n".join(lines) + "\n"


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise Failure(f"stopped by {signal.strsignal(number)}", CANNOT)


def _try(trial: Trial, seconds: float, run: str) -> list[Slice]:
    """The slices of the trial. The old value is back at its end, however it ends."""

    def again() -> Any:
        return connect({**trial.options, "pid": None, "name": None, **_address_of(trial)})[0]

    recorder = _start_recorder(trial.pid, f"{run}/server.forktail")
    restorer = Restorer(again, trial.name, trial.old)
    try:
        return trial.slices(seconds, restorer)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if put_back(lambda: trial.server, trial.name, trial.old, trial.new):
            restorer.close()
        _stop(recorder)


def _address_of(trial: Trial) -> dict[str, Any]:
    host, _, port = trial.address.rpartition(":")
    return {"port": int(port), "socket": None} if host else {"port": None, "socket": trial.address}


def main(words: list[str]) -> int:
    """Exit status: 0 done, 1 the setting has that value already, 2 wrong usage, 3 it could not be tried."""
    _, options = COMMAND.parse(words)
    name, new = parse_setting(options["setting"])
    duration_ns = parse_duration(options["duration"])
    seconds = (duration_ns or 0) / 1e9 / (2 * options["pairs"])
    if seconds < _LEAST_SLICE_S:
        raise Failure(
            f"--duration: {options['pairs']} pairs need at least {2 * options['pairs'] * _LEAST_SLICE_S:.0f} s", USAGE
        )
    trial = Trial(options, name, new)
    if trial.old == new:
        print(f"{name} of {trial.address} is '{new}' already.")
        return 1
    loses = SETTINGS[name].warns_of(new, trial.old)
    if loses and not options["accept_data_loss"]:
        raise Failure(
            f"'{name} {new}' may lose {loses} if the server or its host ends meanwhile: --accept-data-loss tries it",
            USAGE,
        )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    run = options["out"] or tempfile.mkdtemp(prefix="forktail-try-")
    if options["out"]:
        Path(run).mkdir(parents=True, exist_ok=True)
    try:
        slices = _try(trial, seconds, run)
        for one in slices:
            _explain(run, one)
        rows = compare(slices)
    finally:
        if not options["out"]:
            shutil.rmtree(run, ignore_errors=True)
    if options["json"]:
        print(
            json.dumps(
                {
                    "server": trial.address, "setting": name, "old": trial.old, "new": new, "pairs": options["pairs"],
                    "slice_s": seconds, "rows": rows,
                },
                indent=2,
            )
        )  # fmt: skip
    else:
        print(_text(trial, rows, options["pairs"], seconds), end="")
    return 0
