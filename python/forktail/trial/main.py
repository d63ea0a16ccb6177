# SPDX-License-Identifier: MIT
"""The command line of `forktail try`: alternates a setting, records, compares, puts the old value back."""

import json
import shlex
import signal
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forktail.failure import CANNOT, USAGE, Failure
from forktail.files import make_directory
from forktail.host.session import Child, Session
from forktail.lab.programs import find_programs, run_forktail, start_recorder
from forktail.lab.tables import Comparison
from forktail.options import JSON_OPTIONS, Command, Option
from forktail.servers.running import OPTIONS, NoAnswer, connect, failures_of
from forktail.text import format_duration, format_percent, format_share, parse_duration
from forktail.trial.restorer import FOR_S, Restorer, current, put_back
from forktail.trial.settings import SETTINGS

COMMAND = Command(
    "forktail try",
    "Try a setting on a live Redis server: alternate the old and the new value while it records, say what changed, and "
    "put the old value back (docs/guides/try.md).",
    [
        Option("SETTING", "What to try: 'config set NAME VALUE'", required=True),
        *OPTIONS,
        Option("--duration", "Try for TIME", "TIME", default="60s"),
        Option("--pairs", "Alternate N times between old and new", "N", default=5, kind="UINT", limits=(2, 100)),
        Option("--accept-data-loss", "Also try a value that weakens durability while it is tried"),
        Option("-o,--out", "Keep the recording in DIR", "DIR"),
        *JSON_OPTIONS,
    ],
    examples=("sudo forktail try 'config set lazyfree-lazy-user-del yes' --port 6379 --duration 60s",),
    schema=Path(__file__).parent / "try.schema.json",
)

_LEAST_SLICE_S = 1.0
_SETTLE = 0.1  # share of a slice that is not compared
_RECORDER_S = 30
_LOST_S = 30  # a server that does not answer for so long ends the trial
_BACK_S = 5  # at its end this process tries so long to put the old value back; then the restorer does
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
    if len(words) != 4 or [word.lower() for word in words[:2]] != ["config", "set"]:
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
        with failures_of(self.address):
            self.old = current(self.server, name)
            self.run_id = self.server.info("server")["run_id"]
            self.rewrites = self._rewrites()
        self.seen = ""  # the new value as the server writes it: 100mb is 104857600. "": not known yet
        self.left: str | None = self.old  # the value after the trial; None: unknown

    def _connect_again(self) -> Any:
        host, _, port = self.address.rpartition(":")
        where = {"port": int(port), "socket": None} if host else {"port": None, "socket": self.address}
        return connect({**self.options, "pid": None, "name": None, **where})[0]

    def _rewrites(self) -> int:
        stats = self.server.info("commandstats")
        return int(stats.get("cmdstat_config|rewrite", {}).get("calls", 0))

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """The answer of the server, which may need some time to be back."""
        limit = time.monotonic() + _LOST_S
        while True:
            try:
                with failures_of(self.address):
                    return ask()
            except NoAnswer:
                if time.monotonic() > limit:
                    raise
            self.session.wait(0.5)

    def check(self, expected: str) -> None:
        """Raises Failure if the trial must not go on: another client changed the setting or wrote the file, or the
        server was restarted."""
        if self._patiently(lambda: self.server.info("server"))["run_id"] != self.run_id:
            raise Failure(f"{self.address} was restarted: the trial ends", CANNOT)
        now = self._patiently(lambda: current(self.server, self.name))
        if now != expected:
            raise Failure(f"another client set {self.name} to '{now}': it stays so, and the trial ends", CANNOT)
        if self._patiently(self._rewrites) != self.rewrites:
            raise Failure(
                f"CONFIG REWRITE was called during the trial: see which value of {self.name} is in the server's "
                "configuration file. The trial ends",
                CANNOT,
            )

    def _set(self, value: str) -> str:
        """Returns it as the server writes it."""
        self._patiently(lambda: self.server.config_set(self.name, value))
        return str(self._patiently(lambda: current(self.server, self.name)))

    def slices(self, recorder: Child, restorer: Restorer, seconds: float) -> list[Slice]:
        """Alternates old new, new old, old new ... so that a drift affects both alike."""
        made, value = [], self.old
        for pair in range(self.options["pairs"]):
            for is_new in (False, True) if pair % 2 == 0 else (True, False):
                self.check(value)
                wanted = (self.seen or self.new) if is_new else self.old
                if wanted != value:
                    value = self._set(wanted)
                if is_new and not self.seen:
                    self.seen = value
                    restorer.tell(value)
                begin = time.time()
                self.session.wait(seconds)
                made.append(Slice(is_new, begin + _SETTLE * seconds, time.time()))
        self.check(value)
        if recorder.ended:
            raise Failure(recorder.how_it_ended(), CANNOT)
        return made

    def run(self, seconds: float) -> list[Slice]:
        """Records the slices, and explains them. The old value is back at the end of the recording, however it ends."""
        programs, restorer = find_programs(), Restorer(self._connect_again, self.name, self.old)
        with Session(catch_stops=True) as self.session:
            session = self.session
            directory = self.options["out"] or session.make_temp_directory()
            path = f"{directory}/server.forktail"
            try:
                recorder = start_recorder(session, programs, [self.pid], ["--requests"], path, lambda line: None)
                recorder.needed = False  # it ends with the server, of which `check` says more
                made = self.slices(recorder, restorer, seconds)
            finally:
                self._put_back(restorer)
            session.wait_for_end(recorder, signal.SIGINT, _RECORDER_S)
            threshold = ""
            for number, one in enumerate(made):
                threshold = _explain(session, programs, directory, one, f"{directory}/{number}.json", threshold)
        return made

    def _put_back(self, restorer: Restorer) -> None:
        self.left = put_back(lambda: self.server, self.name, self.old, self.seen, _BACK_S)
        if self.left is not None:
            restorer.close()
            return
        print(
            f"forktail: {self.address} does not answer: {self.name} may still be '{self.new}'. A process tries for "
            f"{FOR_S / 60:.0f} minutes to set it back to '{self.old}'",
            file=sys.stderr,
        )


_NONE_DUE = ("has no data at that time", "no request was due in that time")  # of explain


def _explain(session: Session, programs: str, run: str, one: Slice, file: str, threshold: str) -> str:
    """Adds what the recording says of a slice. threshold: from which latency on a request is slow, the same for all
    slices; "" of the first one, which decides it. Returns it."""
    words = ["explain", run, "--json", "--since", f"{one.since:.6f}", "--until", f"{one.until:.6f}"]
    words += ["--slow", threshold] if threshold else []
    try:
        run_forktail(session, programs, words, file, lambda line: None)
    except Failure as failure:
        if not any(sentence in str(failure) for sentence in _NONE_DUE):
            raise
        return threshold
    said = json.loads(Path(file).read_text())
    one.requests = said["requests"]["count"]
    one.latency_ns = said["requests"]["latency_ns"]
    seconds = one.until - one.since
    one.causes = {cause["cause"]: cause["time_ns"] / seconds for cause in said["causes"]}
    return f"{said['slow']['threshold_ns']}ns"


def _verdict(old: list[float], new: list[float]) -> tuple[str, Comparison]:
    pairs = [b / a for a, b in zip(old, new, strict=True) if a > 0]
    compared = Comparison(pairs, None)
    if len(pairs) < len(old):
        return "only with the new value" if not any(old) and all(new) else "not in all slices", compared
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
        f"{trial.name} of {trial.address}: '{trial.old}' against '{trial.new}', {pairs} pairs of {seconds:.3g} s.",
        "",
    ]
    if trial.left == trial.old:
        lines[0] += f" It is '{trial.old}' again."
    elif trial.left is not None:
        lines[0] += f" It is '{trial.left}', which another client set."
    if not rows:
        return lines[0] + "\nNo request was recorded in both: nothing can be compared.\n"
    lines.append(f"{'':<16} {'old':>10} {'new':>10}  change")
    for row in rows:
        if row["kind"] == "percentile":
            old, new = (format_duration(int(row[side])) for side in ("old", "new"))
        else:
            old, new = (format_share(row[side] / 1e9) for side in ("old", "new"))
        lines.append(f"{row['figure']:<16} {old:>10} {new:>10}  {row['verdict']}")
    agreeing = len(rows[0]["ratios"])
    lines += [
        "",
        "Of a cause: its time in slow requests, as a share of the time.",
        f"If nothing differs, all {agreeing} pairs of a row still agree in"
        f" {format_percent(2 * 0.5**agreeing)} of trials.",
    ]
    return "\n".join(lines) + "\n"


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
    if options["out"]:
        make_directory(options["out"])
    rows = compare(trial.run(seconds))
    if options["json"]:
        print(
            json.dumps(
                {
                    "server": trial.address, "setting": name, "old": trial.old, "new": new, "left": trial.left,
                    "pairs": options["pairs"], "slice_s": seconds, "rows": rows,
                },
                indent=2,
            )
        )  # fmt: skip
    else:
        print(_text(trial, rows, options["pairs"], seconds), end="")
    return 0
