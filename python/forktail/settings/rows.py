# SPDX-License-Identifier: MIT
"""The settings that cause spikes, a row each: when they apply to this server, what was seen, and why it matters here. A
row applies only if its reason holds for this server's size, load and persistence: a healthy server has none. The cause
and the remedy are those of the table of remedies with the same id (analysis/timeline/include/analysis/remedies.def),
which `forktail causes --json` prints.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forktail.settings.facts import Facts
from forktail.text import format_bytes

GB = 10**9
_LARGE = 256 * 10**6  # a data set whose fork takes milliseconds


@dataclass
class Row:
    """id: of the remedy. seen, why: sentences without a full stop."""

    id: str
    applies: Callable[[Facts], bool]
    seen: Callable[[Facts], str]
    why: Callable[[Facts], str]


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _replica_limit(f: Facts) -> int:
    """The hard output-buffer limit of replicas; 0: none."""
    words = f.text("client-output-buffer-limit").split()
    for name, hard in zip(words, words[1:], strict=False):
        if name in ("slave", "replica") and hard.isdigit():
            return int(hard)
    return 0


def _busiest(f: Facts) -> int:
    """The CPU with most network soft interrupts, if it has nearly all of many; else -1."""
    whole = sum(f.received.values())
    if whole < 5000:
        return -1
    cpu = max(f.received, key=lambda one: f.received[one])
    return cpu if f.received[cpu] > 0.8 * whole else -1


ROWS = [
    Row(
        "thp",
        lambda f: f.thp == "always" and f.thp_defrag == "always" and f.text("disable-thp") == "no",
        lambda f: "huge pages and their defrag are always on, and disable-thp is no",
        lambda f: "where no huge page is free, the server compacts memory itself before it can use new memory",
    ),
    Row(
        "overcommit",
        lambda f: f.persists and (
            (f.overcommit == 2 and f.writable > f.commit_left) or (f.overcommit == 0 and f.writable > f.memory + f.swap)
        ),
        lambda f: f"vm.overcommit_memory is {f.overcommit}, and private memory {format_bytes(f.writable)}",
        lambda f: f"fork() for a snapshot or rewrite {'fails' if f.overcommit == 2 else 'may fail'}: this memory "
        "cannot be committed twice",
    ),
    Row(
        "swapped",
        lambda f: f.swapped > 1 << 20,
        lambda f: f"{format_bytes(f.swapped)} of the server are in swap",
        lambda f: "the server waits for each page that it touches there, and a snapshot reads all of them",
    ),
    Row(
        "swappiness",
        lambda f: f.swap > 0 and f.swappiness > 10 and f.resident > 0.5 * f.memory,
        lambda f: f"vm.swappiness is {f.swappiness}; the server has {100 * f.resident / f.memory:.0f} % of the memory",
        lambda f: "the kernel swaps out pages of the server in favour of the file cache that snapshots fill",
    ),
    Row(
        "maxmemory",
        lambda f: f.size("maxmemory") == 0 and f.limit > 0 and f.resident > 0.5 * f.limit,
        lambda f: f"maxmemory is 0, and the server has {format_bytes(f.resident)} of {format_bytes(f.limit)}",
        lambda f: "it grows until the kernel reclaims in its own allocations, swaps, or kills it",
    ),
    Row(
        "maxmemory-snapshots",
        lambda f: f.persists and f.limit > 0 and f.size("maxmemory") > 0.75 * f.limit,
        lambda f: f"maxmemory is {format_bytes(f.size('maxmemory'))} of {format_bytes(f.limit)}",
        lambda f: "a snapshot may copy up to the whole of it: forktail forecast says how much",
    ),
    Row(
        "one-disk",
        lambda f: f.text("appendonly") == "yes" and bool(f.text("save")) and f.text("appendfsync") != "no"
        and f.resident > _LARGE,
        lambda f: f"snapshots ({_cut(f.text('save'))}) and the append-only file are in one directory",
        lambda f: "a snapshot's writes can delay the file's fsync, and the server waits if that takes two seconds",
    ),
    Row(
        "appendfsync",
        lambda f: f.text("appendonly") == "yes" and f.text("appendfsync") == "always",
        lambda f: "appendfsync is always",
        lambda f: "every write waits for the disk",
    ),
    Row(
        "fsync-on-rewrite",
        lambda f: f.text("appendonly") == "yes" and f.text("no-appendfsync-on-rewrite") == "no"
        and f.text("appendfsync") == "everysec" and f.delayed_writes > 0,
        lambda f: f"no-appendfsync-on-rewrite is no, and {f.delayed_writes} writes waited for the append-only file's "
        "fsync (aof_delayed_fsync)",
        lambda f: "while a child writes to the same disk, that fsync is slow, and writes wait if it takes two seconds",
    ),
    Row(
        "incremental-fsync",
        lambda f: f.persists and f.resident > _LARGE
        and "no" in (f.text("rdb-save-incremental-fsync"), f.text("aof-rewrite-incremental-fsync")),
        lambda f: "rdb-save-incremental-fsync or aof-rewrite-incremental-fsync is no",
        lambda f: "a child's file reaches the disk all at once at its end, and other writes wait behind it",
    ),
    Row(
        "save",
        lambda f: bool(f.text("save")) and f.fork_ms >= 10,
        lambda f: f"save is '{_cut(f.text('save'))}', and the last fork took {f.fork_ms:.0f} ms",
        lambda f: "every snapshot stops the server for that long",
    ),
    Row(
        "latency-monitor",
        lambda f: f.text("latency-monitor-threshold") == "0" and max(f.slow.values(), default=0) > 10_000,
        lambda f: f"latency-monitor-threshold is 0, and {max(f.slow, key=lambda name: f.slow[name])} took "
        f"{max(f.slow.values()) / 1000:.0f} ms",
        lambda f: "the server does not note its slow events (LATENCY LATEST), which forktail load would record",
    ),
    Row(
        "io-threads",
        lambda f: f.size("io-threads") > 1 and f.size("io-threads") >= f.cpus,
        lambda f: f"io-threads is {f.size('io-threads')}, and the server may use {f.cpus} CPUs",
        lambda f: "its threads spin while they wait for each other, and take the CPU from the one that works",
    ),
    Row(
        "interrupts",
        lambda f: len(f.pinned) == 1 and _busiest(f) in f.pinned,
        lambda f: f"its only CPU is {min(f.pinned, default=0)}, which runs nearly all network soft interrupts",
        lambda f: "each packet interrupts the server",
    ),
    Row(
        "quota",
        lambda f: 0 < f.quota_cpus < (2 if f.persists else 1) or (f.quota_cpus > 0 and f.throttled > 0),
        lambda f: f"its cgroup may use {f.quota_cpus:.2g} CPUs, and was throttled {f.throttled} times",
        lambda f: "a throttled server answers nothing until the next period; a snapshot's child uses the same quota",
    ),
    Row(
        "somaxconn",
        lambda f: 0 < f.somaxconn < f.size("tcp-backlog"),
        lambda f: f"net.core.somaxconn is {f.somaxconn}, and tcp-backlog {f.size('tcp-backlog')}",
        lambda f: "of many clients that connect at once some wait a second for their next attempt",
    ),
    Row(
        "replica-buffer",
        lambda f: f.replicas > 0 and 0 < _replica_limit(f) < 0.1 * float(f.info.get("used_memory", 0)),
        lambda f: f"a replica's output buffer is limited to {format_bytes(_replica_limit(f))}",
        lambda f: "a replica that falls behind is dropped and synchronizes all over, with a fork each time",
    ),
    Row(
        "repl-backlog",
        lambda f: f.replicas > 0 and f.size("repl-backlog-size") <= 1 << 20 and f.resident > _LARGE,
        lambda f: f"repl-backlog-size is {format_bytes(f.size('repl-backlog-size'))}",
        lambda f: "a replica that was away for moments needs a full synchronization, with a fork",
    ),
    Row(
        "diskless-sync",
        lambda f: f.replicas > 0 and f.text("repl-diskless-sync") == "no" and f.text("appendonly") == "yes"
        and f.resident > _LARGE,
        lambda f: "repl-diskless-sync is no, with an append-only file",
        lambda f: "a full synchronization writes the whole data to the disk, and the append-only file waits behind it",
    ),
    Row(
        "lazyfree",
        lambda f: f.text("lazyfree-lazy-user-del") == "no" and f.slow_del > 10_000,
        lambda f: f"lazyfree-lazy-user-del is no, and a DEL took {f.slow_del / 1000:.0f} ms",
        lambda f: "the server frees a large value while all others wait",
    ),
    Row(
        "lazy-flush",
        lambda f: f.text("lazyfree-lazy-user-flush") == "no"
        and max(f.slow.get("FLUSHALL", 0), f.slow.get("FLUSHDB", 0)) > 10_000,
        lambda f: "lazyfree-lazy-user-flush is no, and a flush is in the slow log",
        lambda f: "the server frees all keys while everybody waits",
    ),
    Row(
        "activedefrag",
        lambda f: f.text("activedefrag") == "yes" and float(f.info.get("active_defrag_running", 0)) > 0,
        lambda f: f"active defragmentation runs, with {f.info.get('active_defrag_running')} % of a CPU",
        lambda f: "it takes its time from the serving thread",
    ),
]  # fmt: skip
