# SPDX-License-Identifier: MIT
"""The recorder and its disk: a hung disk delays only the file, and what a killed recorder leaves. Also its CPUs and
priority next to a pinned server.
"""

import os
import time
from pathlib import Path

import pytest

from disks import StandingDisk
from harness import Recording, eventually, forktail, ft, needs_root, needs_two_cpus
from recorder_processes import children

pytestmark = needs_root

MB = 1 << 20
SECOND = 1_000_000_000


@pytest.fixture
def disk(tmp_path):
    with StandingDisk(tmp_path) as disk:
        yield disk


@pytest.fixture
def busy(redis, background):
    """busy(): a client that keeps the server busy with SETs."""
    return lambda: background("redis-benchmark", "-s", redis.socket, "-n", 100_000_000, "-t", "set", "-q")


def last_tally_ns(r, tid):
    return int(r.tallies.end_ns[r.tallies.tid == tid].max(initial=0))


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.quiet
def test_a_hung_disk_loses_events_once_the_queue_is_full_and_none_before(disk, redis, busy, record):
    # Each wait of the server is a span: at least 80 bytes per request.
    recorder = record("--pid", redis.pid, "--min-span", "1us", path=disk.path / "r")
    client = busy()
    time.sleep(1)
    disk.freeze()
    time.sleep(0.5)
    disk.thaw()  # the queue has this much room
    time.sleep(1)
    hung_ns = time.monotonic_ns()
    disk.freeze()
    try:
        # Its memory shows how much waits for the disk: the maximum of 16 MB, less what waited already.
        before = resident_bytes(recorder.pid)
        assert eventually(lambda: resident_bytes(recorder.pid) > before + 14 * MB, 200)
        time.sleep(1.5)
        assert resident_bytes(recorder.pid) < before + 24 * MB  # half as much again for names and similar data
    finally:
        disk.thaw()  # nothing can end a recorder that waits for its disk
    resumed_ns = time.monotonic_ns()
    time.sleep(1)
    client.close()
    r = recorder.stop()
    assert r.error == ""
    assert not r.damage.no_trailer
    assert r.damage.blocks_missing == 0

    drops = r.drops
    assert (drops.source == ft.DROP_DISK).all()  # the ring buffer was emptied all the time
    # Lost events may have begun before, such as an idle thread's wait.
    assert (drops.start_ns <= drops.end_ns).all()
    assert (drops.end_ns > hung_ns).all()
    assert (drops.end_ns < resumed_ns + 2 * SECOND).all()
    dropped = int(drops["count"].sum())
    assert dropped > 10_000
    assert r.summary["dropped"] == dropped
    assert f"{dropped} events DROPPED" in recorder.err
    # Thread records and names are there nevertheless.
    assert r.role("redis-server") is not None
    assert {*r.spans.detail} <= {0, *r.details}
    assert last_tally_ns(r, redis.pid) > resumed_ns

    # Missing events are missing as time, within the intervals of the drops.
    wall_ns = sum(int(t.end_ns) - int(t.start_ns) for t in r.threads.values() if t.tid == redis.pid)
    holes = drops[(drops.detail == ft.BLOCK_SPAN) | (drops.detail == ft.BLOCK_TALLY)]
    hole_ns = until = 0
    for start, end in sorted(zip(holes.start_ns.tolist(), holes.end_ns.tolist(), strict=True)):
        hole_ns += max(end - max(start, until), 0)
        until = max(until, end)
    assert wall_ns - hole_ns <= r.accounted_ns(redis.pid) < wall_ns

    explained = forktail("explain", recorder.path, "--all")
    assert "(the recorder's disk was too slow)" in explained.out, explained.err


@pytest.mark.quiet
def test_a_killed_recorder_loses_less_than_a_second(redis, busy, record):
    recorder = record("--pid", redis.pid)
    busy()
    time.sleep(2.5)
    killed_ns = time.monotonic_ns()
    recorder.close()
    r = Recording(recorder.path)
    assert r.error == ""
    assert r.damage.no_trailer
    assert r.damage.gaps <= 1
    assert r.damage.blocks_missing == 0
    assert r.dropped() == 0
    assert killed_ns - last_tally_ns(r, redis.pid) < SECOND
    assert killed_ns - int(r.samples[-1].t_ns) < SECOND
    # The server is not affected.
    assert redis.ask("PING") == ["PONG"]


def with_descendants(pid):
    return [pid, *(one for child in children(pid) for one in with_descendants(child))]


@needs_two_cpus
def test_the_recorder_lowers_its_own_priority(redis, record):
    recorder = record("--pid", redis.pid)
    for process in with_descendants(recorder.pid):
        assert os.sched_getaffinity(process) == os.sched_getaffinity(0)
    for thread in map(int, os.listdir(f"/proc/{recorder.pid}/task")):
        assert os.sched_getscheduler(thread) == os.SCHED_BATCH
        assert os.getpriority(os.PRIO_PROCESS, thread) == 10
    recorder.stop()


@needs_two_cpus
def test_with_a_pinned_server_the_recorder_avoids_its_cpus(serve, record):
    redis = serve("redis", cpus=0)
    recorder = record("--pid", redis.pid)
    processes = with_descendants(recorder.pid)
    assert len(processes) >= 4
    for process in processes:
        assert os.sched_getaffinity(process) == os.sched_getaffinity(0) - {0}
    recorder.stop()
