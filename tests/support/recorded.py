# SPDX-License-Identifier: MIT
"""A recording for tests: every record, as the library's own reader returns it (dump_recording.c).

Tests of the recorder and of the load generator check records, not their analysis.
"""

import json
import math
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

TREE = Path(__file__).resolve().parents[2]
DUMP = TREE / "build/tests/dump_recording"


def _numbers() -> SimpleNamespace:
    """The enumerators of the recording's headers: ft.FORK is FT_FORK."""
    text = "".join((TREE / "recording/include/recording" / name).read_text() for name in ("owners.h", "recording.h"))
    return SimpleNamespace(**{name: int(value) for name, value in re.findall(r"\bFT_([A-Z0-9_]+) =\s+(-?\d+)", text)})


ft = _numbers()


class _Row(np.record):  # type: ignore[misc]
    """A record whose attribute `flags` is its field, and not NumPy's own."""

    @property
    def flags(self) -> Any:
        return self["flags"]


class _Table(np.recarray):
    """Records of that kind, likewise. NumPy would make them np.record again whenever the type is set."""

    def __array_finalize__(self, made_from: Any) -> None:
        pass

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def flags(self) -> Any:
        return self["flags"]


class Recording:
    """A .forktail file. Tables are NumPy record arrays in file order: spans, tallies, io, writes, slices, loops,
    sockets, drops, samples, cpu_samples, counters, load_tcp, clocks, probes, opens, requests, connection_records,
    thread_records. A row's fields are attributes: `row.start_ns`. Texts are bytes.

    manifest, summary, cost: the JSON of the last such block, {} without one. notes, histograms: lists of JSON.
    details, series, stacks: JSON by id. threads: the last record by (tid, start_ns). connections: the last record by
    id. connection_sockets: likewise, by (id, opened_ns). error: why it cannot be read, or "". damage: .gaps ...
    blocks: the number of each kind.
    """

    def __init__(self, path: str | Path) -> None:
        dump = subprocess.run([DUMP, path], capture_output=True, check=True).stdout
        lines = _Lines(dump)
        layout = {
            name: np.dtype(
                {
                    "names": [field[0] for field in kind["fields"]],
                    "formats": [(field[1], (field[2],)) if field[2] > 1 else field[1] for field in kind["fields"]],
                    "offsets": [field[3] for field in kind["fields"]],
                    "itemsize": kind["bytes"],
                }
            )
            for name, kind in lines.line()["layout"].items()
        }
        self.path = Path(path)
        self.manifest: Any = {}
        self.summary: Any = {}
        self.cost: Any = {}
        self.notes: list[Any] = []
        self.histograms: list[Any] = []
        self.details: dict[int, Any] = {}
        self.series: dict[int, Any] = {}
        self.stacks: dict[int, Any] = {}
        self.blocks: dict[str, int] = defaultdict(int)
        parts: dict[str, list[Any]] = defaultdict(list)
        while "kind" in (head := lines.line()):
            kind, payload = head["kind"], lines.bytes(head["bytes"])
            self.blocks[kind] += 1
            if kind in layout:
                parts[kind].append(np.frombuffer(payload, layout[kind]))
            elif kind in ("note", "histogram"):
                {"note": self.notes, "histogram": self.histograms}[kind].append(json.loads(payload))
            elif kind in ("detail", "series", "stack"):
                one = json.loads(payload)
                {"detail": self.details, "series": self.series, "stack": self.stacks}[kind][one["id"]] = one
            else:
                setattr(self, kind, json.loads(payload))
        self.error: str = head["error"]
        self.damage = SimpleNamespace(**head.get("damage", {}))

        def table(kind: str) -> Any:
            rows = np.concatenate(parts[kind]) if parts[kind] else np.empty(0, layout[kind])
            return rows.view(np.dtype((_Row, rows.dtype)), _Table)

        self.spans, self.tallies, self.io, self.writes = map(table, ("span", "tally", "io", "writes"))
        self.slices, self.loops, self.sockets, self.drops = map(table, ("slice", "loop", "socket", "drop"))
        self.samples, self.cpu_samples, self.counters = map(table, ("sample", "cpu_sample", "counters"))
        self.clocks, self.probes, self.opens, self.requests = map(table, ("clock", "probe", "open", "request"))
        self.thread_records, self.connection_records = table("thread"), table("connection")
        self.load_tcp = table("load_tcp")
        self.threads = {(int(t.tid), int(t.start_ns)): t for t in self.thread_records}
        self.connections = {int(c.id): c for c in self.connection_records}
        self.connection_sockets = {(int(c.id), int(c.opened_ns)): c for c in self.connection_records}

    @property
    def whole(self) -> bool:
        """It can be read, and nothing is missing or damaged."""
        d = self.damage
        return not self.error and not (d.no_trailer or d.bytes_skipped or d.blocks_missing)

    # --- request logs

    def with_status(self, status: int) -> int:
        """The number of requests with a status: ft.STATUS_OK."""
        return int((self.requests.status == status).sum())

    def with_op(self, op: int | str) -> int:
        """The number of requests of an operation, by its number or by its name in the manifest."""
        number = self.manifest["ops"].index(op) if isinstance(op, str) else op
        return int((self.requests.op == number).sum())

    def schedule(self) -> Any:
        """Due times of the requests in ns, sorted and relative to the first."""
        due = np.sort(self.requests.intended_ns)
        return due - due[0] if len(due) else due

    def latencies(self) -> Any:
        """Latencies of the requests in ns, sorted."""
        return np.sort(self.requests.end_ns - self.requests.intended_ns)

    def realtime_ns(self, monotonic_ns: int) -> int:
        """A time of CLOCK_MONOTONIC in ns since 1970, by the first clock record."""
        clock = self.clocks[0]
        return int(clock.realtime_ns) + int(monotonic_ns) - int(clock.monotonic_ns)

    # --- recordings of a server

    def dropped(self) -> int:
        """Lost events, without those of skipped programs. CPU samples whose callers were not named in time are not
        lost: how many these are depends on what else needs the CPUs."""
        lost = (self.drops.source != ft.DROP_MISSED) & (self.drops.source != ft.DROP_UNWIND)
        return int(self.drops["count"][lost].sum())

    def missed(self) -> int:
        """Events of programs that the kernel skipped."""
        return int(self.drops["count"][self.drops.source == ft.DROP_MISSED].sum())

    def unseen_switches(self) -> int:
        """Switches that the kernel did not report: until the next one, a thread's faults are not seen."""
        return int(self.cost.get("switches_unseen", 0))

    def owned_ns(self, tid: int, owner: int) -> int:
        """Own time of one owner on one thread: spans and tallies."""
        spans = self.spans[(self.spans.tid == tid) & (self.spans.owner == owner)]
        tallies = self.tallies[(self.tallies.tid == tid) & (self.tallies.owner == owner)]
        return int((spans.on_cpu_ns + spans.runnable_ns + spans.blocked_ns).sum() + tallies.total_ns.sum())

    def count(self, tid: int, owner: int) -> int:
        """Number of intervals of one owner on one thread."""
        spans = self.spans[(self.spans.tid == tid) & (self.spans.owner == owner)]
        inner = (spans.off_cpu != 0) & (spans.depth != 0)
        tallies = self.tallies[(self.tallies.tid == tid) & (self.tallies.owner == owner)]
        return int((~inner).sum() + tallies["count"].sum())

    def accounted_ns(self, tid: int) -> int:
        """Sum of all own times of one thread."""
        spans = self.spans[(self.spans.tid == tid) & (self.spans.owner < ft.OWNER_LIMIT)]
        tallies = self.tallies[self.tallies.tid == tid]
        return int((spans.on_cpu_ns + spans.runnable_ns + spans.blocked_ns).sum() + tallies.total_ns.sum())

    def longest(self, wanted: Callable[[Any], Any]) -> Any:
        """The longest span of those that `wanted` selects, a function of the table: `lambda s: s.owner == ft.FORK`.
        None without any."""
        spans = self.spans[wanted(self.spans)]
        return spans[spans.duration_ns.argmax()] if len(spans) else None

    def held_ns(self, wait: Any, tid: int, comm: str = "") -> int:
        """How long a task held the CPU during a wait for it, by its CPU slices; under the name `comm`, if given."""
        since, until = int(wait.start_ns + wait.blocked_ns), int(wait.start_ns + wait.duration_ns)
        ends: dict[int, int] = defaultdict(int)  # by start: the same slice may be there twice
        for one in self.slices[(self.slices.tid == tid) & (self.slices.cpu + 1 == wait.queue_cpu)]:
            if one.start_ns < until and one.end_ns > since and comm in ("", one.comm.decode()):
                ends[int(one.start_ns)] = max(ends[int(one.start_ns)], int(one.end_ns))
        return sum(min(end, until) - max(start, since) for start, end in ends.items())

    def detail(self, span: Any) -> Any:
        """The detail of a span as JSON, {} if it has none."""
        return self.details.get(int(span.detail), {})

    def role(self, role: str) -> Any:
        """The thread with this role, or None."""
        return next((t for t in self.threads.values() if t.role.decode() == role), None)


def percentile(ordered: Any, p: float) -> int:
    """Nearest rank, of sorted values."""
    rank = math.ceil(p * len(ordered) / 100 - 1e-9)
    return int(ordered[max(rank, 1) - 1])


class _Lines:
    """The output of dump_recording: lines of JSON, and bytes between them."""

    def __init__(self, dump: bytes) -> None:
        self._dump, self._at = dump, 0

    def line(self) -> Any:
        end = self._dump.index(b"\n", self._at)
        line, self._at = self._dump[self._at : end], end + 1
        return json.loads(line)

    def bytes(self, count: int) -> bytes:
        self._at += count
        return self._dump[self._at - count : self._at]
