# SPDX-License-Identifier: MIT
"""Each cause that can delay a thread is made on a real redis-server and must be in the recording under its own name.
The truth suite does this with times and scores; here it only shows that each probe works.
"""

import bisect
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from cgroups import MemoryCgroup
from disks import on_a_disk
from harness import forktail, ft, needs_root, needs_two_cpus, run_program

pytestmark = [pytest.mark.quiet, needs_root]

MS = 1_000_000


def benchmark(redis, *words):
    at = ["-p", redis.port] if redis.port else ["-s", redis.socket]
    assert run_program("redis-benchmark", *at, "-q", *words).status == 0


def test_a_stopped_server_is_stopped_and_not_blocked_in_something(redis, record):
    recorder = record("--pid", redis.pid)
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    redis.send_signal(signal.SIGCONT)
    redis.ask("PING")
    r = recorder.stop()
    stop = r.longest(lambda s: (s.owner == ft.STOPPED) & (s.tid == redis.pid))
    assert 290 * MS <= stop.blocked_ns < 2000 * MS


@pytest.fixture
def wakeups_of():
    """wakeups_of(pid): traces a thread's wakeups. Returns a function that ends the tracing, and returns a pair for each
    wakeup: when it began and when it ended, in us."""
    trace = Path(f"/sys/kernel/tracing/instances/forktail-{os.getpid()}")
    events = ("sched_waking", "sched_wakeup")

    def start(pid):
        try:
            trace.mkdir()
        except OSError as e:
            pytest.skip(f"cannot make an instance of tracefs here: {e}")
        (trace / "trace_clock").write_text("mono")
        for event in events:
            (trace / "events/sched" / event / "filter").write_text(f"pid=={pid}")
            (trace / "events/sched" / event / "enable").write_text("1")
        return stop

    def stop():
        found = {}
        begin = None
        lines = re.findall(r"\] +\S+ +(\d+)\.(\d{6}): (sched_wak\w+)", (trace / "trace").read_text())
        for s, us, event in lines:
            t = int(s) * 1_000_000 + int(us)
            if event == "sched_waking":
                begin = t
            elif begin:
                found[begin] = t
        trace.rmdir()
        return sorted(found.items())

    yield start
    if trace.exists():
        trace.rmdir()


@needs_two_cpus
def test_a_wait_ends_when_the_thread_is_woken_not_when_it_runs(redis, record, wakeups_of):
    stop_tracing = wakeups_of(redis.pid)
    recorder = record("--pid", redis.pid)
    for _ in range(300):
        redis.ask("PING")
        time.sleep(0.001)
    r = recorder.stop()
    wakeups = stop_tracing()
    begins = ends = 0
    s = r.spans
    for wait in s[(s.tid == redis.pid) & (s.off_cpu != 0) & (s.owner == ft.IDLE)]:
        woken_us = int(wait.start_ns + wait.blocked_ns) // 1000
        i = bisect.bisect(wakeups, (woken_us + 2,)) - 1
        if i < 0:
            continue
        since_us, until_us = wakeups[i]
        ran_us = int(wait.start_ns + wait.duration_ns) // 1000
        if until_us < since_us + 3 or not woken_us - 1 <= until_us <= ran_us + 1:
            continue  # at once, or another one's
        if woken_us < since_us or woken_us - since_us < until_us - woken_us:
            begins += 1
        else:
            ends += 1
    assert len(wakeups) > 100
    # The hypervisor may take a CPU between the tracing's reading of the clock and ours.
    assert begins > 2 * ends


def test_debug_sleep_is_sleep_with_its_system_call_and_kernel_stack(serve, record):
    redis = serve("redis", "--enable-debug-command", "yes")
    recorder = record("--pid", redis.pid)
    redis.ask("DEBUG", "SLEEP", "0.2")
    redis.ask("PING")  # the iteration that slept has ended
    r = recorder.stop()
    sleep = r.longest(lambda s: (s.owner == ft.SLEEP) & (s.tid == redis.pid))
    assert sleep.blocked_ns >= 199 * MS
    assert sleep.syscall in (35, 230)  # nanosleep, clock_nanosleep
    assert "nanosleep" in str(r.detail(sleep))
    iteration = r.longest(lambda s: (s.owner == ft.ITERATION) & (s.tid == redis.pid))
    assert iteration.duration_ns >= 199 * MS
    assert iteration.start_ns <= sleep.start_ns


@needs_two_cpus
def test_a_run_queue_wait_names_the_cpu_holder(serve, record, background):
    redis = serve("redis", cpus=0)
    # It is taskset and nice before it is sh. Waits should have its final name.
    hog = background("sh", "-c", "exec taskset -c 0 nice -n -10 sh -c 'while :; do :; done'")
    time.sleep(0.5)
    recorder = record("--pid", redis.pid)
    run_program("taskset", "-c", 1, "redis-benchmark", "-s", redis.socket, "-n", 30000, "-t", "set,get", "-q")
    r = recorder.stop()
    # Not the longest sleep, after which it waited briefly.
    s = r.spans
    waits = s[(s.off_cpu != 0) & (s.tid == redis.pid) & (s.runnable_ns > s.blocked_ns)]
    waits = waits[np.argsort(waits.duration_ns)[::-1]]
    longest = next(wait for wait in waits if r.held_ns(wait, hog.pid) > wait.runnable_ns / 2)
    assert longest.runnable_ns > MS
    assert r.held_ns(longest, hog.pid, "sh") > MS  # so long, with its name


def test_appendfsync_always_is_fsync_on_the_main_thread_blocked(serve, record):
    redis = serve("redis", "--appendonly", "yes", "--appendfsync", "always")
    recorder = record("--pid", redis.pid)
    for i in range(50):
        redis.ask("SET", f"k{i}", "v")
    assert recorder.stop().count(redis.pid, ft.FSYNC) >= 50


@pytest.fixture
def memory_group():
    with MemoryCgroup(32 << 20) as group:
        if not group.usable:
            pytest.skip("cannot make a cgroup with a memory limit here")
        yield group


def test_a_memory_cgroups_limit_is_direct_reclaim(memory_group, serve, record):
    redis = serve("redis", "--enable-debug-command", "yes", "--rdbcompression", "no")
    (memory_group.path / "cgroup.procs").write_text(str(redis.pid))
    recorder = record("--pid", redis.pid)
    # Data within the limit, and the snapshot's page cache beyond it: writing it has to reclaim memory.
    redis.ask("DEBUG", "POPULATE", "30000", "key", "500")
    for _ in range(3):
        redis.ask("SAVE")
    time.sleep(1.5)  # the cgroup's counter is read once more
    r = recorder.stop()
    assert r.count(redis.pid, ft.RECLAIM) >= 1
    assert r.owned_ns(redis.pid, ft.RECLAIM) > 0
    counter = memory_group.path / "memory.failcnt"
    if counter.exists() and int(counter.read_text()) == 0:
        pytest.skip("the kernel reclaimed the group's memory without counting that it reached its limit")
    explained = forktail("explain", recorder.path, "--all")
    assert f"the memory limit was reached by the cgroup /{memory_group.path.name} (" in explained.out


def test_what_the_server_receives_of_its_own_sends_over_loopback_is_its_own_code_other_softirqs_have_their_vector(
    serve, record
):
    redis = serve("redis", tcp=True)
    recorder = record("--pid", redis.pid, "--min-span", "2us")
    benchmark(redis, "-n", 50000, "-t", "get")
    r = recorder.stop()
    net_rx = 3
    counts = [r.count(redis.pid, ft.SOFTIRQ + vector) for vector in range(ft.SOFTIRQ_VECTORS)]
    assert sum(counts) - counts[net_rx] > 0
    # There is one for each of 50,000 answers. After a hardware interrupt it may be for others' packets.
    assert counts[net_rx] < 10_000
    assert r.count(redis.pid, ft.HARDIRQ) > 0


def test_first_touch_is_page_zero_a_write_after_fork_cow_copy_the_programs_text_page_file(serve, record):
    redis = serve("redis", "--rdb-key-save-delay", "200", "--enable-debug-command", "yes")
    recorder = record("--pid", redis.pid)
    redis.ask("DEBUG", "POPULATE", "20000", "key", "3000")
    redis.ask("BGSAVE")
    benchmark(redis, "-n", 20000, "-r", 20000, "-d", 3000, "-t", "set")
    r = recorder.stop()
    assert r.count(redis.pid, ft.PAGE_ZERO) > 5000
    assert r.count(redis.pid, ft.COW_COPY) > 100
    child = r.role("snapshot child")
    assert r.count(child.tid, ft.PAGE_FILE) + r.count(redis.pid, ft.PAGE_FILE) >= 1


def test_a_write_that_waits_for_the_disk_is_file_write_and_names_the_file(background, record, tmp_path):
    # A process that writes to the disk: its write() blocks for that each time. It has more to write than a recorder
    # needs to begin, however busy the machine is, and ends with the test.
    if not on_a_disk(tmp_path):
        pytest.skip("temporary directories are not on a disk here")
    writer = background("dd", "if=/dev/zero", f"of={tmp_path}/journal.aof", "bs=64k", "count=20000", "oflag=dsync")
    recorder = record("--pid", writer.pid)
    time.sleep(0.5)
    r = recorder.stop()
    # For the disk, not for a CPU after that: such a wait names the CPU holder.
    write = r.longest(
        lambda s: (s.owner == ft.FILE_WRITE) & (s.tid == writer.pid) & (s.off_cpu != 0) & (s.blocked_ns > s.runnable_ns)
    )
    assert write.syscall == 1
    assert "journal.aof" in str(r.detail(write))
    assert (r.io.write == 1).any()
