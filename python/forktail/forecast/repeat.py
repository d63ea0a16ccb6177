# SPDX-License-Identifier: MIT
"""`forktail forecast --every TIME`: forecasts again and again, as metrics for node_exporter's textfile collector. What
the server did between two forecasts is compared with the earlier one, and the next ones are made from it.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from forktail.failure import CANNOT, Failure
from forktail.forecast.model import Earlier, Facts, Forecast, Range
from forktail.servers.running import NoAnswer, failures_of

FILE = "forktail_forecast.prom"
_KEPT = 8  # snapshots of which forecasts are made
_BOUNDS = ("low", "likely", "high")


class Seen:
    """What the server did last, by INFO: compared over two answers."""

    def __init__(self, info: dict[str, Any]) -> None:
        self.info = info

    def _grew(self, later: "Seen", *names: str) -> bool:
        """By the first of these fields that the server has."""
        for name in names:
            if name in later.info:
                return bool(later.info[name] != self.info.get(name))
        return False

    def since(self, facts: Facts, later: "Seen") -> list[Earlier]:
        """The last BGSAVE and the last rewrite that ended between the two. facts: at the first one. INFO has the time
        of the last fork: it is known if only one of them ended."""
        if later.info.get("run_id") != self.info.get("run_id"):
            return []
        ended = []
        if self._grew(later, "rdb_saves", "rdb_last_save_time") and later.info["rdb_last_bgsave_time_sec"] >= 0:
            ended.append(("BGSAVE", "rdb_last_bgsave_time_sec", "rdb_last_cow_size"))
        if self._grew(later, "aof_rewrites", "aof_last_rewrite_time_sec"):
            ended.append(("BGREWRITEAOF", "aof_last_rewrite_time_sec", "aof_last_cow_size"))
        fork_ns = int(later.info.get("latest_fork_usec", 0)) * 1000 if len(ended) == 1 else None
        return [
            # INFO has whole seconds: 0 is half of one.
            Earlier(command, facts.resident, fork_ns, int(max(later.info[lasted], 0.5) * 1e9), later.info[cow], None)
            for command, lasted, cow in ended
        ]


def inside(one: Forecast, fact: Earlier) -> dict[str, bool]:
    """Whether the fact is in the forecast's range, by figure. Copied memory is not compared for a child of under a
    second, of which INFO does not have the duration."""
    compared: dict[str, tuple[Range, int | None]] = {
        "fork": (one.fork_ns, fact.fork_ns),
        "copied": (one.copied, fact.copied if fact.duration_ns >= 10**9 else None),
    }
    return {name: of.low <= value <= of.high for name, (of, value) in compared.items() if value is not None}


class Page:
    """The metrics; counters last as long as this object."""

    def __init__(self, address: str) -> None:
        os.environ.setdefault("PROMETHEUS_DISABLE_CREATED_SERIES", "True")  # it doubles the counters
        try:
            import prometheus_client  # only here: it is needed for nothing else
        except ModuleNotFoundError as missing:
            how = "install python3-prometheus-client, or pip install prometheus-client"
            raise Failure(f"--metrics-textfile needs prometheus-client: {how}", CANNOT) from missing
        self._write, self._registry = prometheus_client.write_to_textfile, prometheus_client.CollectorRegistry()
        self._address = address
        gauge = partial(prometheus_client.Gauge, registry=self._registry)
        counter = partial(prometheus_client.Counter, registry=self._registry)
        server, command = ["server"], ["server", "command"]
        ranges, figure = [*command, "bound"], [*command, "figure"]
        self._ranges = {
            "fork_ns": (gauge("forktail_forecast_fork_seconds", "Time of the fork now", ranges), 1e9),
            "duration_ns": (gauge("forktail_forecast_duration_seconds", "Until the child ends", ranges), 1e9),
            "copied": (gauge("forktail_forecast_copied_bytes", "Memory that writes copy meanwhile", ranges), 1),
            "peak": (gauge("forktail_forecast_peak_bytes", "Parent and child together", ranges), 1),
        }
        self._fits = gauge("forktail_forecast_fits", "1 if it fits now, 0.5 if it may not, 0 if not", command)
        self._left = gauge("forktail_forecast_left_bytes", "Memory left after the high end", [*command, "of"])
        self._made = gauge("forktail_forecast_timestamp_seconds", "When the forecast was made", server)
        self._compared = counter("forktail_forecast_compared", "Forecasts that a snapshot followed", figure)
        self._inside = counter("forktail_forecast_inside", "Those whose range had the fact", figure)

    def take(self, facts: Facts, made: list[Forecast]) -> None:
        for one in made:
            of = (self._address, one.command)
            for name, (gauge, unit) in self._ranges.items():
                for bound in _BOUNDS:
                    gauge.labels(*of, bound).set(getattr(getattr(one, name), bound) / unit)
            self._fits.labels(*of).set({"yes": 1, "perhaps": 0.5, "no": 0}[one.fits])
            self._left.labels(*of, "host").set(one.host_left)
            if one.cgroup_left is not None:
                self._left.labels(*of, "cgroup").set(one.cgroup_left)
        self._made.labels(self._address).set(time.time())

    def compare(self, command: str, figure: str, good: bool) -> None:
        of = (self._address, command, figure)
        self._compared.labels(*of).inc()
        self._inside.labels(*of).inc(int(good))

    def write(self, directory: str) -> None:
        """Replaces the file as a whole."""
        try:
            self._write(str(Path(directory) / FILE), self._registry)
        except OSError as error:
            raise Failure(f"cannot write {directory}/{FILE}: {error.strerror}", CANNOT) from error


class Repeated:
    """Forecasts one after another. ask: an answer to INFO. look: what is known and forecast now, given earlier
    snapshots."""

    def __init__(
        self,
        page: Page,
        ask: Callable[[], dict[str, Any]],
        look: Callable[[list[Earlier]], tuple[Facts, list[Forecast]]],
    ) -> None:
        self._page, self._ask, self._look = page, ask, look
        self._known: list[Earlier] = []
        self._before: tuple[Seen, Facts, list[Forecast]] | None = None

    def again(self) -> None:
        seen = Seen(self._ask())
        if self._before:
            last, facts, made = self._before
            for fact in last.since(facts, seen):
                self._known = [*self._known, fact][-_KEPT:]
                for one in made:
                    if one.command == fact.command:
                        for figure, good in inside(one, fact).items():
                            self._page.compare(one.command, figure, good)
        self._before = (seen, *self._look(self._known))
        self._page.take(*self._before[1:])


def forecast_every(seconds: float, directory: str, page: Page, repeated: Repeated, address: str) -> None:
    """Does not return. A server that does not answer is asked again later: its metrics keep their time."""
    while True:
        began = time.monotonic()
        try:
            with failures_of(address):
                repeated.again()
        except NoAnswer as failure:
            print(f"forktail: {failure}", file=sys.stderr, flush=True)
        page.write(directory)
        time.sleep(max(seconds - (time.monotonic() - began), 0))
