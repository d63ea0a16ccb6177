# SPDX-License-Identifier: MIT
"""The facts that `forktail forecast` needs, read without slowing the server: INFO twice, files of /proc and /sys, and a
fork of this process for the price of a page here.

/proc/PID/smaps_rollup is the only expensive file: its walk holds the lock of the server's memory. It is read at most
once, only where huge pages are likely, and not for servers above 256 MB.
"""

import mmap
import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from forktail.failure import CANNOT, Failure
from forktail.forecast.model import HUGE, PAGE, Earlier, Facts
from forktail.host.cgroups import groups_of, memory_left
from forktail.host.machine import available_memory_bytes, fields, first_line
from forktail.recording import open as open_run

_WALKED_BYTES = 256 << 20
_MEASURED_BYTES, _MEASURED_SHARE = 256 << 20, 8  # at most, and at most a part of so many of the available memory
_FORKS = 5


def _fork_ns(prepare: Callable[[], None] = lambda: None) -> float:
    """The median time of a fork of this process after `prepare`."""
    times = []
    for _ in range(_FORKS):
        prepare()
        before = time.monotonic_ns()
        pid = os.fork()
        if not pid:
            os._exit(0)
        times.append(time.monotonic_ns() - before)
        os.waitpid(pid, 0)
    return statistics.median(times)


def price_of_pages() -> tuple[float, float, float]:
    """What a fork costs here in ns: by itself, per page of 4 kB, per huge page. Measured with up to 256 MB, so that
    nested page tables of a virtual machine are in it."""
    size_bytes = min(_MEASURED_BYTES, available_memory_bytes() // _MEASURED_SHARE) // HUGE * HUGE or HUGE
    base = _fork_ns()
    prices = []
    for advice, size in ((mmap.MADV_NOHUGEPAGE, PAGE), (mmap.MADV_HUGEPAGE, HUGE)):
        # Private: a fork copies no entries of shared memory.
        with mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            with suppress(OSError):  # a kernel without huge pages
                memory.madvise(advice)

            # Written before each fork, as a server does: a fork finds entries cheaper that an earlier one protected.
            def write(memory: mmap.mmap = memory) -> None:
                memory[::PAGE] = b"x" * (size_bytes // PAGE)

            prices.append(max(_fork_ns(write) - base, 0) / (size_bytes / size))
    return base, prices[0], min(prices[1], prices[0] * HUGE / PAGE)


def _huge(pid: int, anonymous: int) -> tuple[int, int]:
    """At least and at most of the anonymous memory in huge pages."""
    if "[always]" not in first_line("/sys/kernel/mm/transparent_hugepage/enabled"):
        return 0, 0  # only where a program asks for them; Redis and its allocator do not
    if fields(f"/proc/{pid}/status").get("THP_enabled", 1) == 0:
        return 0, 0  # Redis' disable-thp
    if anonymous > _WALKED_BYTES:
        return 0, anonymous
    huge = fields(f"/proc/{pid}/smaps_rollup").get("AnonHugePages")
    return (0, anonymous) if huge is None else (huge, huge)


def _cgroup_left(pid: int) -> tuple[int | None, str]:
    """Bytes until the nearest memory limit of a cgroup of the process, and its name. None: no limit."""
    lefts = [(left, str(group)) for group in groups_of(pid, "memory") if (left := memory_left(group)) is not None]
    return min(lefts) if lefts else (None, "")


def earlier_snapshots(recording: str, pid: int) -> list[Earlier]:
    """Of this process, from a ring, run or recording. Raises Failure."""
    return [
        Earlier(
            one["command"], one["rss_bytes"] or 0, one["fork_ns"], one["duration_ns"], one["copied_bytes"],
            one["writes"], one.get("latency_ns", {}).get("p99.9"),
        )
        for one in open_run(recording).explanation["snapshots"]
        if one["ended"] and one["server_pid"] == pid and one["rss_bytes"]
    ]  # fmt: skip


def _write_commands(server: Any) -> set[str]:
    """Names of commands that change data, in lower case, by the flags of COMMAND."""

    def text(word: Any) -> str:
        return word.decode(errors="replace") if isinstance(word, bytes) else str(word)

    rows = server.execute_command("COMMAND")
    pairs = (
        ((name, row["flags"]) for name, row in rows.items())
        if isinstance(rows, dict)
        else ((row[0], row[2]) for row in rows)
    )
    return {text(name).lower() for name, flags in pairs if "write" in map(text, flags)}


def _calls(server: Any, names: set[str]) -> int:
    stats = server.info("commandstats")
    return sum(one["calls"] for name, one in stats.items() if name.removeprefix("cmdstat_").partition("|")[0] in names)


def _refusals(info: dict[str, Any]) -> dict[str, str]:
    refused = {}
    if info.get("loading"):
        refused = {command: "it loads its data set" for command in ("BGSAVE", "BGREWRITEAOF")}
    if info.get("rdb_bgsave_in_progress"):
        refused["BGSAVE"] = "a snapshot runs"
    if info.get("aof_rewrite_in_progress"):
        refused["BGREWRITEAOF"] = "a rewrite runs"
        refused["BGSAVE"] = "an AOF rewrite runs"
    return refused


def _disk(server: Any, pid: int) -> tuple[int | None, int | None]:
    """Bytes free where the server writes its file, and bytes of the last one. None: unknown."""
    with suppress(Exception):  # CONFIG may be forbidden or renamed: then this is not known
        directory = server.config_get("dir")["dir"]
        name = server.config_get("dbfilename")["dbfilename"]
        place = Path(f"/proc/{pid}/root") / directory.lstrip("/")
        space = os.statvfs(place)
        file = place / name
        return space.f_bavail * space.f_frsize, file.stat().st_size if file.exists() else None
    return None, None


def look(server: Any, pid: int, seconds: float, recording: str) -> Facts:
    """server: a client of redis-py. recording: a ring or run with earlier snapshots, or "". Raises Failure, and what
    redis-py raises."""
    status = fields(f"/proc/{pid}/status")
    if "RssAnon" not in status:
        raise Failure(f"cannot read the memory of process {pid}. Is it on this host, and are you root?", CANNOT)
    writes = _write_commands(server)
    before, began = _calls(server, writes), time.monotonic()
    base, page, huge_page = price_of_pages()
    time.sleep(max(seconds - (time.monotonic() - began), 0))
    info = server.info()
    rate = (_calls(server, writes) - before) / (time.monotonic() - began)
    memory = fields("/proc/meminfo")
    cgroup_left, cgroup = _cgroup_left(pid)
    overcommit = first_line("/proc/sys/vm/overcommit_memory")
    free, last = _disk(server, pid)
    last_seconds = {
        "BGSAVE": info.get("rdb_last_bgsave_time_sec", -1),
        "BGREWRITEAOF": info.get("aof_last_rewrite_time_sec", -1),
    }
    return Facts(
        anonymous=status["RssAnon"],
        resident=status["VmRSS"],
        swapped=status.get("VmSwap", 0),
        page_tables=status.get("VmPTE", 0),
        huge=_huge(pid, status["RssAnon"]),
        data=int(info.get("used_memory", status["RssAnon"])),
        fork_base_ns=base,
        page_ns=page,
        huge_page_ns=huge_page,
        writes_per_s=rate,
        available=memory.get("MemAvailable", 0),
        swap_free=memory.get("SwapFree", 0),
        cgroup_left=cgroup_left,
        cgroup_name=cgroup,
        commit_left=memory.get("CommitLimit", 0) - memory.get("Committed_AS", 0) if overcommit == "2" else None,
        writable=status.get("VmData", 0),
        disk_free=free,
        last_file=last,
        last_seconds={command: value for command, value in last_seconds.items() if value > 0},
        earlier=earlier_snapshots(recording, pid) if recording else [],
        refused=_refusals(info),
    )
