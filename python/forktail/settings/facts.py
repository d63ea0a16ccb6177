# SPDX-License-Identifier: MIT
"""What the rows of rows.py ask about: settings and INFO of a server, its process, and its host. Reading it changes
nothing.
"""

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forktail.host.cgroups import cpu_quota, groups_of, memory_limit
from forktail.host.machine import fields, first_line

_SECONDS = 1.0  # between two readings of counters


@dataclass
class Facts:
    """Sizes are bytes. What could not be read is 0, "" or empty."""

    config: dict[str, str] = field(default_factory=dict)  # CONFIG GET *
    info: dict[str, Any] = field(default_factory=dict)
    slow: dict[str, int] = field(default_factory=dict)  # commands of the slow log: the longest, in us
    slow_del: int = 0  # likewise, of a DEL whose values are large, so that a background thread would free them
    resident: int = 0
    swapped: int = 0
    writable: int = 0  # private writable memory
    cpus: int = 1  # that the process may use
    pinned: set[int] = field(default_factory=set)  # these, if not all of the host's
    thp: str = ""  # always, madvise or never
    thp_defrag: str = ""  # always, defer, defer+madvise, madvise or never
    memory: int = 0  # of the host
    available: int = 0
    swap: int = 0
    swappiness: int = 0
    overcommit: int = 0
    commit_left: int = 0
    somaxconn: int = 0
    cgroup_limit: int = 0  # of memory; 0: none
    quota_cpus: float = 0  # CPU quota in CPUs; 0: none
    throttled: int = 0  # times since the group began
    received: dict[int, float] = field(default_factory=dict)  # network soft interrupts per second by CPU

    def text(self, name: str) -> str:
        return self.config.get(name, "")

    def size(self, name: str) -> int:
        value = self.config.get(name, "")
        return int(value) if value.isdigit() else 0

    @property
    def persists(self) -> bool:
        """It forks: for snapshots, its append-only file or replicas."""
        return bool(self.text("save")) or self.text("appendonly") == "yes" or self.replicas > 0

    @property
    def replicas(self) -> int:
        return int(self.info.get("connected_slaves", 0))

    @property
    def delayed_writes(self) -> int:
        """Writes to the append-only file that waited for its fsync, since the server's start."""
        return int(self.info.get("aof_delayed_fsync", 0))

    @property
    def fork_ms(self) -> float:
        return float(self.info.get("latest_fork_usec", 0)) / 1000

    @property
    def limit(self) -> int:
        """The memory that the server can have: of its cgroup, else of the host."""
        return min(self.cgroup_limit or self.memory, self.memory)


def _number(path: str) -> int:
    text = first_line(path)
    return int(text) if text.isdigit() else 0


def _chosen(path: str) -> str:
    """Of "always [madvise] never" the word in brackets; "": the file is missing."""
    chosen = re.search(r"\[(.+?)\]", first_line(path))
    return chosen[1] if chosen else ""


def _received() -> dict[int, int]:
    for line in Path("/proc/softirqs").read_text().splitlines():
        if line.split()[0:1] == ["NET_RX:"]:
            return dict(enumerate(map(int, line.split()[1:])))
    return {}


def _quota(pid: int) -> tuple[float, int]:
    """The smallest CPU quota, in CPUs, and how often its group was throttled. 0: none."""
    quotas = [(quota, group) for group in groups_of(pid, "cpu") if (quota := cpu_quota(group))]
    if not quotas:
        return 0, 0
    smallest, group = min(quotas)
    return smallest, fields(group / "cpu.stat").get("nr_throttled", 0)


_LARGE_VALUE_US = 100  # a value that takes so long to free has many elements


def _arguments(words: list[bytes]) -> int:
    """Without the command's name. The slow log truncates them: "... (399970 more arguments)"."""
    more = re.search(rb"\.\.\. \((\d+) more arguments\)$", b" ".join(words))
    return len(words) - 1 + (int(more[1]) - 4 if more else 0)


def _slow(server: Any) -> tuple[dict[str, int], int]:
    """Facts.slow and Facts.slow_del."""
    longest: dict[str, int] = {}
    slow_del = 0
    with suppress(Exception):  # SLOWLOG may be forbidden
        for entry in server.slowlog_get(128):
            words = entry["command"].split()
            name, took = words[0].decode(errors="replace").upper() if words else "", int(entry["duration"])
            if name in ("FLUSHALL", "FLUSHDB") and len(words) > 1:
                name += " " + words[1].decode(errors="replace").upper()
            if name == "DEL" and took >= _LARGE_VALUE_US * _arguments(words):
                slow_del = max(slow_del, took)
            longest[name] = max(longest.get(name, 0), took)
    return longest, slow_del


def read_facts(server: Any, pid: int) -> Facts:
    """server: a client of redis-py. Raises what redis-py raises for INFO."""
    before, began = _received(), time.monotonic()
    info = server.info()
    config: dict[str, str] = {}
    with suppress(Exception):  # CONFIG may be forbidden: then only the host is looked at
        config = server.config_get("*")
    slow, slow_del = _slow(server)
    time.sleep(max(_SECONDS - (time.monotonic() - began), 0))
    seconds, after = time.monotonic() - began, _received()
    status, memory = fields(f"/proc/{pid}/status"), fields("/proc/meminfo")
    own: set[int] = set()
    with suppress(OSError):
        own = os.sched_getaffinity(pid)
    quota, throttled = _quota(pid)
    return Facts(
        config=config,
        info=info,
        slow=slow,
        slow_del=slow_del,
        resident=status.get("VmRSS", 0),
        swapped=status.get("VmSwap", 0),
        writable=status.get("VmData", 0),
        cpus=len(own) or 1,
        pinned=own if len(own) < (os.cpu_count() or 1) else set(),
        thp=_chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        thp_defrag=_chosen("/sys/kernel/mm/transparent_hugepage/defrag"),
        memory=memory.get("MemTotal", 0),
        available=memory.get("MemAvailable", 0),
        swap=memory.get("SwapTotal", 0),
        swappiness=_number("/proc/sys/vm/swappiness"),
        overcommit=_number("/proc/sys/vm/overcommit_memory"),
        commit_left=memory.get("CommitLimit", 0) - memory.get("Committed_AS", 0),
        somaxconn=_number("/proc/sys/net/core/somaxconn"),
        cgroup_limit=min(filter(None, map(memory_limit, groups_of(pid, "memory"))), default=0),
        quota_cpus=quota,
        throttled=throttled,
        received={cpu: (count - before.get(cpu, 0)) / seconds for cpu, count in after.items()},
    )
