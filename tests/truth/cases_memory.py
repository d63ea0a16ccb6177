# SPDX-License-Identifier: MIT
"""Injections into memory: forks, copy-on-write, swap, reclaim."""
import os
import signal
import statistics
import subprocess
import time

import host
import kernel
from registry import case
from trial import CLIENT_CPU, RATE, Skip, end, pinned, wait_for

# A snapshot child that sleeps between keys: it lives as long as an injection needs it and takes no CPU time.
SLOW_CHILD = ("--rdb-key-save-delay", "1000000", "--rdbcompression", "no", "--stop-writes-on-bgsave-error", "no",
              "--bgsave_cpulist", str(CLIENT_CPU))


def fill(server, megabytes):
    """Adds `mb` of data, in values of 1 kB."""
    keys = server.dbsize()
    server.execute_command("DEBUG", "POPULATE", keys + megabytes * 900, f"fill{megabytes}", 1000)


def end_child(server):
    for key in ("rdb_bgsave_in_progress", "aof_rewrite_in_progress"):
        if server.info("persistence")[key]:
            for pid in open(f"/proc/{server.tid}/task/{server.tid}/children").read().split():
                os.kill(int(pid), signal.SIGKILL)
    wait_for("the child's end", lambda: not server.info("persistence")["rdb_bgsave_in_progress"])


def bgsave_ns(server):
    """Starts a snapshot. Returns how long the fork took by Redis' clock, without the time that another task had the CPU."""
    waited = kernel.run_delay_ns(server.tid)
    server.bgsave()
    waited = kernel.run_delay_ns(server.tid) - waited
    return server.info("stats")["latest_fork_usec"] * 1000 - waited


@case(1, "fork", ["fork"], (200, 400, 800))
def fork(t, magnitudes):
    server = t.redis(*SLOW_CHILD)
    server.execute_command("DEBUG", "POPULATE", 1, "x", 1)
    t.begin(["-s", server.socket])
    for megabytes in magnitudes:
        fill(server, megabytes)
        with t.injecting("fork", f"{server.info('memory')['used_memory_rss'] >> 20} MB", server.tid) as done:
            done["stall_ns"] = bgsave_ns(server)
        end_child(server)


PAGES = (2000, 8000, 32000)
BIG = 192 << 20  # bytes: more pages than are written, because a write behind the end would make the value longer
# Writes one byte into each of this many pages of a value.
WRITE = "for i = 0, ARGV[1] - 1 do redis.call('SETRANGE', KEYS[1], i * 4096 + ARGV[2], 'y') end"


def write_pages(server, pages, offset):
    """Returns the time that Redis reports for it, less the time that other tasks had the CPU."""
    server.slowlog_reset()
    waited = kernel.run_delay_ns(server.tid)
    server.eval(WRITE, 1, "big", pages, offset)
    waited = kernel.run_delay_ns(server.tid) - waited
    took = max((e["duration"] for e in server.slowlog_get(10) if e["command"].startswith(b"EVAL")), default=0)
    return took * 1000 - waited


def huge_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return int([line for line in f if line.startswith("AnonHugePages")][0].split()[1])


def big_value(server):
    """A value with this many pages that were not copied yet."""
    server.delete("big")
    server.setrange("big", BIG - 1, b"x")
    for offset in range(0, BIG, 1 << 20):  # not all in one stall
        server.setrange("big", offset, b"x" * (1 << 20))


def cost_of_copies(server, pages):
    """How much longer these writes take while a child lives, in ns, without a recorder."""
    big_value(server)
    without = statistics.median(write_pages(server, pages, 1) for _ in range(5))
    server.bgsave()
    took = write_pages(server, pages, 2)
    end_child(server)
    return took - without


def copy_on_write(t, server, magnitudes, huge=False):
    """The same writes with a child and without: the difference is the cost of copying. It is measured before the
    recorder runs, which makes each fault slower without being part of it. The command that writes the pages is own code,
    which may take longer than the copies."""
    big_value(server)
    if huge and huge_kb(server.tid) < 100 << 10:
        raise Skip(f"only {huge_kb(server.tid)} kB of the server's memory are in huge pages")
    costs = {pages: statistics.median(cost_of_copies(server, pages) for _ in range(3)) for pages in magnitudes}
    big_value(server)
    t.begin(["-s", server.socket])
    for pages in magnitudes:
        server.bgsave()
        with t.injecting("cow-copy", f"{pages} pages", server.tid, among=2) as done:
            write_pages(server, pages, 2)
            done["stall_ns"] = costs[pages]
        end_child(server)


@case(2, "copy-on-write", ["cow-copy"], PAGES)
def copy_on_write_small_pages(t, magnitudes):
    copy_on_write(t, t.redis(*SLOW_CHILD), magnitudes)


@case(2, "copy-on-write-thp", ["cow-copy"], PAGES)
def copy_on_write_huge_pages(t, magnitudes):
    enabled = "/sys/kernel/mm/transparent_hugepage/enabled"
    if not os.path.exists(enabled):
        raise Skip("this kernel has no transparent huge pages")
    with open(enabled) as f:
        before = f.read().split("[")[1].split("]")[0]
    t.stack.callback(host.write, enabled, before)
    host.write(enabled, "always")
    copy_on_write(t, t.redis(*SLOW_CHILD, "--disable-thp", "no"), magnitudes, huge=True)


TOUCH = "for i = ARGV[1], ARGV[2] do redis.call('GETRANGE', 'cold:' .. i, 2000, 2001) end"


def swapping_server(t, *config, swapped=True, rate=RATE, **how):
    """A server whose keys cold:* are in swap, on a separate device (or, for comparison, could be)."""
    group = host.Cgroup(t, "memory")
    disk = host.Loop(t, 512)
    host.sh("mkswap", disk.device)
    host.sh("swapon", disk.device)
    t.stack.callback(subprocess.run, ["swapoff", disk.device])
    server = t.redis(*config, **how)
    group.add(server.tid)
    for first in range(0, 4000, 100):
        server.mset({f"cold:{i}": b"c" * 4000 for i in range(first, first + 100)})
    t.begin(["-s", server.socket], rate=rate, load=["-r", "100"])
    if swapped:
        swap_out(t, group, server)
    return server, disk, group


def swap_out(t, group, server):
    def swapped_kb():
        with open(f"/proc/{server.tid}/status") as f:
            return int([line for line in f if line.startswith("VmSwap")][0].split()[1])

    for _ in range(10):
        group.set("memory.force_empty", "0")
        if swapped_kb() > 12000:
            break
    else:
        raise Skip(f"the kernel swapped out only {swapped_kb()} kB")
    time.sleep(2)  # pages that the server itself and the load need come back


@case(8, "swap-in", ["page-in"], (150, 300, 600))
def swap_in(t, magnitudes):
    server, disk, group = swapping_server(t)
    first = 0
    for count in magnitudes:
        with t.injecting("page-in", f"{count} keys", server.tid, truth="block-io"):
            with disk.limited("read_iops", 1000):
                server.eval(TOUCH, 0, first, first + count - 1)
        first += 1000


@case(9, "reclaim", ["reclaim"], (4, 16, 48))
def reclaim(t, magnitudes):
    """A full memory cgroup: a process that needs a page there must first get another one compressed."""
    group = host.Cgroup(t, "memory")
    host.compressed_swap(t, 512)
    server = t.redis()
    group.add(server.tid)
    for first in range(0, 30_000, 100):
        server.mset({f"cold:{i}": os.urandom(4000) for i in range(first, first + 100)})
    t.begin(["-s", server.socket])
    for megabytes in magnitudes:
        group.set("memory.limit_in_bytes", int(group.get("memory.usage_in_bytes")) + (1 << 20))
        with t.injecting("reclaim", f"{megabytes} MB", server.tid, truth="reclaim"):
            server.setrange(f"grows:{megabytes}", (megabytes << 20) - 1, b"x")
        group.set("memory.limit_in_bytes", -1)


@case(24, "mmap-lock", ["mmap-lock"], (100_000, 200_000, 400_000))
def mmap_lock(t, magnitudes):
    """A monitor repeatedly reads a large server's memory details while the server requests more memory: the kernel
    walks its page tables under the lock that a new mapping needs. New memory is also zeroed, which takes longer."""
    clock = host.MapClock(t)
    server = t.redis(env=clock.environment)
    t.begin(["-s", server.socket])
    for keys in magnitudes:
        for part in range(server.dbsize(), keys, 2_000):  # not all in one stall
            server.execute_command("DEBUG", "POPULATE", 2_000, f"part{part}", 16_000)
        monitor = t.start(pinned(CLIENT_CPU, ["sh", "-c", f"while cat /proc/{server.tid}/smaps_rollup; do :; done"]))
        with t.injecting("mmap-lock", f"{keys} keys", server.tid, truth=clock.spent_ns, among=2):
            for i in range(5):
                server.setrange(f"grows:{keys}:{i}", (8 << 20) - 1, b"x")
        end(monitor)
