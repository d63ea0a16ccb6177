# SPDX-License-Identifier: MIT
"""Two injections at once, and none."""
import signal
import time

import host
import kernel
from cases_code import LONG_EVICTIONS, LOOP, ask, evict_some, evicting_server
from cases_disk import aof_server
from cases_memory import SLOW_CHILD, TOUCH, bgsave_ns, end_child, fill, swapping_server
from registry import case
from trial import CLIENT_CPU, LOAD, SERVER_CPU, forktail, pinned


@case("pair", "fork-and-hog", ["fork", "run-queue"], (300, 600, 1200))
def fork_and_hog(t, magnitudes):
    """The hog takes half of the CPU from the fork. Each has its own independent measurement."""
    server = t.redis(*SLOW_CHILD)
    t.begin(["-s", server.socket])
    for megabytes in magnitudes:
        fill(server, megabytes - server.dbsize() // 900)
        hog = host.hog(t, SERVER_CPU, "nice", "-n", "-5")
        label = f"{megabytes} MB"
        with t.injecting("run-queue", label, server.tid, truth=kernel.run_delay_ns, culprit=str(hog.pid), among=2) as queue:
            hog.send_signal(signal.SIGCONT)
            time.sleep(0.02)
            forked = bgsave_ns(server)
            hog.kill()
            hog.wait()
            server.ping()
        t.injections.append(dict(queue, cause="fork", stall_ns=forked, culprit=None))
        end_child(server)


@case("pair", "fsync-and-swap-in", ["fsync", "page-in"], (150, 300, 600), threshold="8ms")
def fsync_and_swap_in(t, magnitudes):
    clock = host.CallsClock(t)
    aof = host.Disk(t)
    server, swap, group = swapping_server(
        t, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0", data=aof.path,
        env=clock.environment, rate=300)
    first = 0
    for count in magnitudes:
        label = f"{count} keys, 20 writes/s"
        server.slowlog_reset()
        with t.injecting("page-in", label, server.tid, among=2) as paging:
            synced = clock.of("fsync")(server.tid)
            with swap.limited("read_iops", 1000), aof.limited("write_iops", 20):
                server.eval(TOUCH, 0, first, first + count - 1)
                time.sleep(0.2)
            server.set("after", "x")
            synced = clock.of("fsync")(server.tid) - synced
        # Redis' time for the script that reads them ends before the fsync.
        paging["stall_ns"] = max(e["duration"] for e in server.slowlog_get(10)) * 1000
        t.injections.append(dict(paging, cause="fsync", stall_ns=synced))
        first += 1000


@case("pair", "fsync-and-fork", ["fork", "fsync"], (300, 600, 1200), threshold="4ms")
def fsync_and_fork(t, magnitudes):
    """A snapshot begins while each write waits for a slow disk."""
    server, disk, clock = aof_server(t, "always", *SLOW_CHILD, "--auto-aof-rewrite-percentage", "0")
    t.begin(["-s", server.socket], rate=500)
    for megabytes in magnitudes:
        fill(server, megabytes - server.dbsize() // 900)
        label = f"{megabytes} MB, 50 writes/s"
        with t.injecting("fsync", label, server.tid, truth=clock.of("fsync"), among=2) as synced:
            with disk.limited("write_iops", 50):
                time.sleep(0.15)
                forked = bgsave_ns(server)
            server.set("after", "x")
        t.injections.append(dict(synced, cause="fork", stall_ns=forked))
        end_child(server)


@case("pair", "snapshot-and-eviction", ["cow-copy", "server-busy"], (20, 60, 200))
def snapshot_and_eviction(t, magnitudes):
    """Eviction while a snapshot child shares the pages of the evicted keys. Neither has a time to compare with: the
    copies are part of Redis' own account of evictions."""
    server = evicting_server(t, *SLOW_CHILD, *LONG_EVICTIONS)
    t.begin(["-s", server.socket])
    for megabytes in magnitudes:
        evicted = evict_some(t, server, megabytes, server.bgsave, among=2)
        t.injections.append({**{k: v for k, v in evicted.items() if k != "activity"}, "cause": "cow-copy"})
        end_child(server)


@case("pair", "second-server", ["run-queue"], (8_000_000, 16_000_000, 32_000_000))
def second_server(t, magnitudes):
    """Two servers on one CPU, both recorded. One runs a script; the other's requests wait for the CPU."""
    server, other = t.redis(), t.redis(name="other")
    t.begin(["-s", server.socket])
    for n in magnitudes:
        with t.injecting("run-queue", f"script of {n}", server.tid, truth=kernel.run_delay_ns, culprit=str(other.tid)):
            ask(other, ("EVAL", LOOP, "0", n))
            server.ping()


def throughput(t, server):
    """Requests per second of the same load in a closed loop."""
    return forktail.load(server.socket, connections=20, duration=2, prefix=pinned(CLIENT_CPU, []), options=["--ratio", "1:4", *LOAD],
                         allowed=[0]).total["requests_per_s"]


@case("control", "nothing-at-80-percent", [], (5,), threshold="4ms")
def nothing_at_80_percent(t, magnitudes):
    """As many requests as take 80 % of the server's capacity."""
    server = t.redis()
    t.begin(["-s", server.socket], rate=int(0.8 * throughput(t, server)))
    time.sleep(magnitudes[0])


@case("control", "nothing", [], (10,))
def nothing(t, magnitudes):
    server = t.redis()
    t.begin(["-s", server.socket])
    time.sleep(magnitudes[0])


@case("control", "nothing-aof", [], (10,), threshold="8ms")
def nothing_aof(t, magnitudes):
    server = t.redis("--appendonly", "yes")
    t.begin(["-s", server.socket])
    time.sleep(magnitudes[0])
