# SPDX-License-Identifier: MIT
"""The settings that cause spikes, a row each: the cause that they lead to, when they apply to this server, what was
seen, why it matters here, and what changes it. A row applies only if its reason holds for this server's size, load and
persistence: a healthy server has none.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forktail.settings.facts import Facts
from forktail.text import format_bytes

GB = 10**9
_LARGE = 256 * 10**6  # a data set whose fork takes milliseconds


@dataclass
class Row:
    """seen, why: sentences without a full stop. command: what changes it. loses: what the change may lose."""

    id: str
    cause: str
    applies: Callable[[Facts], bool]
    seen: Callable[[Facts], str]
    why: Callable[[Facts], str]
    command: str
    loses: str = ""


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
        "thp", "compaction",
        lambda f: f.thp == "always" and f.thp_defrag == "always" and f.text("disable-thp") == "no",
        lambda f: "huge pages and their defrag are always on, and disable-thp is no",
        lambda f: "where no huge page is free, the server compacts memory itself before it can use new memory",
        "echo defer > /sys/kernel/mm/transparent_hugepage/defrag",
    ),
    Row(
        "overcommit", "",
        lambda f: f.persists and (
            (f.overcommit == 2 and f.writable > f.commit_left) or (f.overcommit == 0 and f.writable > f.memory + f.swap)
        ),
        lambda f: f"vm.overcommit_memory is {f.overcommit}, and private memory {format_bytes(f.writable)}",
        lambda f: f"fork() for a snapshot or rewrite {'fails' if f.overcommit == 2 else 'may fail'}: this memory "
        "cannot be committed twice",
        "sysctl vm.overcommit_memory=1",
    ),
    Row(
        "swapped", "page-in",
        lambda f: f.swapped > 1 << 20,
        lambda f: f"{format_bytes(f.swapped)} of the server are in swap",
        lambda f: "the server waits for each page that it touches there, and a snapshot reads all of them",
        "give the host more memory, or the server a smaller maxmemory",
    ),
    Row(
        "swappiness", "page-in",
        lambda f: f.swap > 0 and f.swappiness > 10 and f.resident > 0.5 * f.memory,
        lambda f: f"vm.swappiness is {f.swappiness}; the server has {100 * f.resident / f.memory:.0f} % of the memory",
        lambda f: "the kernel swaps out pages of the server in favour of the file cache that snapshots fill",
        "sysctl vm.swappiness=1",
    ),
    Row(
        "maxmemory", "reclaim",
        lambda f: f.size("maxmemory") == 0 and f.limit > 0 and f.resident > 0.5 * f.limit,
        lambda f: f"maxmemory is 0, and the server has {format_bytes(f.resident)} of {format_bytes(f.limit)}",
        lambda f: "it grows until the kernel reclaims in its own allocations, swaps, or kills it",
        "CONFIG SET maxmemory, with a maxmemory-policy",
    ),
    Row(
        "maxmemory-snapshots", "reclaim",
        lambda f: f.persists and f.limit > 0 and f.size("maxmemory") > 0.75 * f.limit,
        lambda f: f"maxmemory is {format_bytes(f.size('maxmemory'))} of {format_bytes(f.limit)}",
        lambda f: "a snapshot may copy up to the whole of it: forktail forecast says how much",
        "CONFIG SET maxmemory to a smaller value",
    ),
    Row(
        "one-disk", "file-write",
        lambda f: f.text("appendonly") == "yes" and bool(f.text("save")) and f.text("appendfsync") != "no"
        and f.resident > _LARGE,
        lambda f: f"snapshots ({_cut(f.text('save'))}) and the append-only file are in one directory",
        lambda f: "a snapshot's writes can delay the file's fsync, and the server waits if that takes two seconds",
        "CONFIG SET save '' on this server, and take snapshots on a replica",
    ),
    Row(
        "appendfsync", "fsync",
        lambda f: f.text("appendonly") == "yes" and f.text("appendfsync") == "always",
        lambda f: "appendfsync is always",
        lambda f: "every write waits for the disk",
        "CONFIG SET appendfsync everysec", "writes of a second",
    ),
    Row(
        "fsync-on-rewrite", "file-write",
        lambda f: f.text("appendonly") == "yes" and f.text("no-appendfsync-on-rewrite") == "no"
        and f.text("appendfsync") == "everysec" and f.delayed_writes > 0,
        lambda f: f"no-appendfsync-on-rewrite is no, and {f.delayed_writes} writes waited for the append-only file's "
        "fsync (aof_delayed_fsync)",
        lambda f: "while a child writes to the same disk, that fsync is slow, and writes wait if it takes two seconds",
        "CONFIG SET no-appendfsync-on-rewrite yes", "the writes since a snapshot or rewrite began",
    ),
    Row(
        "incremental-fsync", "file-write",
        lambda f: f.persists and f.resident > _LARGE
        and "no" in (f.text("rdb-save-incremental-fsync"), f.text("aof-rewrite-incremental-fsync")),
        lambda f: "rdb-save-incremental-fsync or aof-rewrite-incremental-fsync is no",
        lambda f: "a child's file reaches the disk all at once at its end, and other writes wait behind it",
        "CONFIG SET rdb-save-incremental-fsync yes and aof-rewrite-incremental-fsync yes",
    ),
    Row(
        "save", "fork",
        lambda f: bool(f.text("save")) and f.fork_ms >= 10,
        lambda f: f"save is '{_cut(f.text('save'))}', and the last fork took {f.fork_ms:.0f} ms",
        lambda f: "every snapshot stops the server for that long",
        "CONFIG SET save with rarer points, or snapshots on a replica", "more writes between snapshots",
    ),
    Row(
        "latency-monitor", "",
        lambda f: f.text("latency-monitor-threshold") == "0" and max(f.slow.values(), default=0) > 10_000,
        lambda f: f"latency-monitor-threshold is 0, and {max(f.slow, key=lambda name: f.slow[name])} took "
        f"{max(f.slow.values()) / 1000:.0f} ms",
        lambda f: "the server does not note its slow events (LATENCY LATEST), which forktail load would record",
        "CONFIG SET latency-monitor-threshold 10",
    ),
    Row(
        "io-threads", "run-queue",
        lambda f: f.size("io-threads") > 1 and f.size("io-threads") >= f.cpus,
        lambda f: f"io-threads is {f.size('io-threads')}, and the server may use {f.cpus} CPUs",
        lambda f: "its threads spin while they wait for each other, and take the CPU from the one that works",
        "io-threads below the number of CPUs, in redis.conf",
    ),
    Row(
        "interrupts", "softirq/net_rx",
        lambda f: len(f.pinned) == 1 and _busiest(f) in f.pinned,
        lambda f: f"its only CPU is {min(f.pinned, default=0)}, which runs nearly all network soft interrupts",
        lambda f: "each packet interrupts the server",
        "taskset -p another CPU, or move the interrupts (/proc/irq, or rps_cpus of the interface)",
    ),
    Row(
        "quota", "cpu-quota",
        lambda f: 0 < f.quota_cpus < (2 if f.persists else 1) or (f.quota_cpus > 0 and f.throttled > 0),
        lambda f: f"its cgroup may use {f.quota_cpus:.2g} CPUs, and was throttled {f.throttled} times",
        lambda f: "a throttled server answers nothing until the next period; a snapshot's child uses the same quota",
        "a larger quota, or none",
    ),
    Row(
        "somaxconn", "network",
        lambda f: 0 < f.somaxconn < f.size("tcp-backlog"),
        lambda f: f"net.core.somaxconn is {f.somaxconn}, and tcp-backlog {f.size('tcp-backlog')}",
        lambda f: "of many clients that connect at once some wait a second for their next attempt",
        "sysctl net.core.somaxconn to at least tcp-backlog, and restart the server",
    ),
    Row(
        "replica-buffer", "fork",
        lambda f: f.replicas > 0 and 0 < _replica_limit(f) < 0.1 * float(f.info.get("used_memory", 0)),
        lambda f: f"a replica's output buffer is limited to {format_bytes(_replica_limit(f))}",
        lambda f: "a replica that falls behind is dropped and synchronizes all over, with a fork each time",
        "CONFIG SET client-output-buffer-limit 'replica 1gb 512mb 60'",
    ),
    Row(
        "repl-backlog", "fork",
        lambda f: f.replicas > 0 and f.size("repl-backlog-size") <= 1 << 20 and f.resident > _LARGE,
        lambda f: f"repl-backlog-size is {format_bytes(f.size('repl-backlog-size'))}",
        lambda f: "a replica that was away for moments needs a full synchronization, with a fork",
        "CONFIG SET repl-backlog-size 100mb",
    ),
    Row(
        "diskless-sync", "file-write",
        lambda f: f.replicas > 0 and f.text("repl-diskless-sync") == "no" and f.text("appendonly") == "yes"
        and f.resident > _LARGE,
        lambda f: "repl-diskless-sync is no, with an append-only file",
        lambda f: "a full synchronization writes the whole data to the disk, and the append-only file waits behind it",
        "CONFIG SET repl-diskless-sync yes",
    ),
    Row(
        "lazyfree", "server-busy",
        lambda f: f.text("lazyfree-lazy-user-del") == "no" and f.slow.get("DEL", 0) > 10_000,
        lambda f: f"lazyfree-lazy-user-del is no, and a DEL took {f.slow.get('DEL', 0) / 1000:.0f} ms",
        lambda f: "the server frees a large value while all others wait",
        "CONFIG SET lazyfree-lazy-user-del yes",
    ),
    Row(
        "lazy-flush", "server-busy",
        lambda f: f.text("lazyfree-lazy-user-flush") == "no"
        and max(f.slow.get("FLUSHALL", 0), f.slow.get("FLUSHDB", 0)) > 10_000,
        lambda f: "lazyfree-lazy-user-flush is no, and a flush is in the slow log",
        lambda f: "the server frees all keys while everybody waits",
        "CONFIG SET lazyfree-lazy-user-flush yes",
    ),
    Row(
        "activedefrag", "server-busy",
        lambda f: f.text("activedefrag") == "yes" and float(f.info.get("active_defrag_running", 0)) > 0,
        lambda f: f"active defragmentation runs, with {f.info.get('active_defrag_running')} % of a CPU",
        lambda f: "it takes its time from the serving thread",
        "CONFIG SET active-defrag-cycle-max to a smaller value, or activedefrag no",
    ),
    Row(
        "hz", "server-busy",
        lambda f: f.size("hz") > 100,
        lambda f: f"hz is {f.text('hz')}",
        lambda f: "the server's background work runs that often, and interrupts requests",
        "CONFIG SET hz 10",
    ),
]  # fmt: skip
