# SPDX-License-Identifier: MIT
"""Verifies what-if: compares the percentile that forktail predicts without a cause with a real run without it.

Pairs of runs are equal in everything (the same seed gives the same keys and the same due times) except the cause. The
first of each is explained, and its causes[].what_if is compared with the percentile of the second.
"""
import statistics
import time

import host
from cases_code import LOOP
from cases_disk import aof_server
from cases_memory import SLOW_CHILD, TOUCH, big_value, end_child, fill, swapping_server, write_pages
from trial import SERVER_CPU, Trial

PERCENTILE = "p99.9"


def forks(t, really):
    server = t.redis(*SLOW_CHILD)
    fill(server, 600)
    t.begin(["-s", server.socket])
    for _ in range(4):
        time.sleep(1.5)
        if really:
            server.bgsave()
            end_child(server)


def copies(t, really):
    """Both fork and write the same pages. In one of them the child still lives then."""
    server = t.redis(*SLOW_CHILD)
    big_value(server)
    t.begin(["-s", server.socket])
    for _ in range(4):
        time.sleep(1.2)
        server.bgsave()
        if not really:
            end_child(server)
        time.sleep(0.3)  # so that the fork is a separate episode
        write_pages(server, 8000, 2)
        if really:
            end_child(server)


def scripts(t, really):
    server = t.redis()
    t.begin(["-s", server.socket])
    for _ in range(8):
        time.sleep(0.7)
        if really:
            server.eval(LOOP, 0, 4_000_000)


def fsyncs(t, really):
    """The disk is slow at times. A server that waited for it all of the time would be blocked whenever the machine's other
    tasks run, and these decide the percentile of the run without fsync."""
    server, disk, clock = aof_server(t, "always" if really else "no")
    t.begin(["-s", server.socket], rate=2000)
    for _ in range(8):
        time.sleep(0.7)
        with disk.limited("write_iops", 100):
            time.sleep(0.1)


def hogs(t, really):
    server = t.redis()
    t.begin(["-s", server.socket])
    for _ in range(8):
        time.sleep(0.7)
        if really:
            host.let_run(host.hog(t, SERVER_CPU, "nice", "-n", "-20"), 0.05)


def swap_ins(t, really):
    """Both read the same keys. In one of them they are in swap."""
    server, disk, group = swapping_server(t, swapped=really)
    for i in range(8):
        time.sleep(0.5)
        with disk.limited("read_iops", 1000):
            server.eval(TOUCH, 0, 400 * i, 400 * i + 199)


# By the cause that is there or not. Of server-busy, it is an EVAL.
SCENES = {"fork": forks, "cow-copy": copies, "fsync": fsyncs, "server-busy": scripts, "run-queue": hogs, "page-in": swap_ins}


def one(scene, really, delays):
    with Trial("what-if", delays) as t:
        scene(t, really)
        return t.explain()


def verify(cause, pairs, delays):
    """[(with the cause, predicted without it, real without it)] in ns."""
    found = []
    for i in range(pairs):
        order = (True, False) if i % 2 == 0 else (False, True)
        run = {really: one(SCENES[cause], really, delays) for really in order}
        latency = run[True]["requests"]["latency_ns"][PERCENTILE]
        predicted = next((c["what_if"][PERCENTILE] for c in run[True]["causes"] if c["cause"] == cause), latency)
        found.append((latency, predicted, run[False]["requests"]["latency_ns"][PERCENTILE]))
    return found


def table(results):
    out = [f"| cause, pairs | {PERCENTILE} with it, ms | predicted without | really without | predicted / real: median (range) | "
           "taken off, predicted / real: median (range) |", "|---|---:|---:|---:|---:|---:|"]
    for cause, pairs in results.items():
        ratios = sorted(predicted / real for _, predicted, real in pairs)
        taken = sorted((latency - predicted) / (latency - real) for latency, predicted, real in pairs if latency != real)
        middle = [statistics.median(p[i] for p in pairs) / 1e6 for i in range(3)]
        out.append(f"| {cause}, {len(pairs)} | {middle[0]:.3g} | {middle[1]:.3g} | {middle[2]:.3g} | "
                   f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}) | "
                   f"{statistics.median(taken):.2f} ({taken[0]:.2f}-{taken[-1]:.2f}) |")
    return "\n".join(out)
