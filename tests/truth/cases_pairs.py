# SPDX-License-Identifier: MIT
"""Two injections at once, and none."""
import signal
import time

import host
import kernel
from cases_memory import SLOW_CHILD, TOUCH, end_child, fill, swapping_server
from registry import case
from trial import SERVER_CPU


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
            before = kernel.run_delay_ns(server.tid)
            server.bgsave()
            waited = kernel.run_delay_ns(server.tid) - before
            hog.kill()
            hog.wait()
            server.ping()
        # Redis' clock also ran while the hog had the CPU.
        forked = server.info("stats")["latest_fork_usec"] * 1000 - waited
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
