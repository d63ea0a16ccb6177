# SPDX-License-Identifier: MIT
"""Page faults distinguished by the kernel's action, on a process that touches memory on request (page_toucher.py).
Also faults that never end: of profilers that follow invalid frame pointers, of signals, of many threads.
"""

import ctypes
import mmap
import os
import platform
import signal
import struct
import sys
import time
import warnings
from pathlib import Path

import pytest

from forktail.programs import program
from harness import Program, Recording, eventually, ft, needs_root, run_program

pytestmark = [pytest.mark.quiet, needs_root]

MS = 1_000_000
PAGE, PAGES, THREADS = 4096, 2000, 100  # as in page_toucher.py
OWN = 60  # pages of a program's own (stack, heap, the C library's data) that it touches in addition


class Toucher(Program):
    """A process that performs one step after the other, each on request."""

    def __init__(self, *words):
        super().__init__(sys.executable, "-I", Path(__file__).with_name("page_toucher.py"), *words)
        assert eventually(lambda: self.out), self.err

    def next(self):
        before = self.out.count("done\n")
        self.signal(signal.SIGUSR1)
        assert eventually(lambda: self.out.count("done\n") > before), self.err


@pytest.fixture
def toucher(closing):
    """toucher(memory, step...): a Toucher, which is killed at the end of the test."""
    return lambda *words: closing(Toucher(*words))


@pytest.fixture
def recorded(record):
    """recorded(toucher): what is recorded of its next step."""

    def of_next(toucher):
        recorder = record("--pid", toucher.pid)
        toucher.next()
        return recorder.stop()

    return of_next


def check_account(r, tid):
    """What is recorded of a thread amounts to its wall time."""
    (t,) = (t for t in r.threads.values() if t.tid == tid)
    assert r.accounted_ns(tid) == pytest.approx(int(t.end_ns) - int(t.start_ns), rel=0.0001)


def check_near(r, tid, owner, wanted=PAGES):
    """A thread had this many faults of a kind. If not, prints what it had: a page that was swapped out, a skipped
    program and a lost event each leave a different trace. After a switch that the kernel did not report
    (docs/how-it-works/attribution.md), a thread's faults are not seen until its next switch."""
    count = r.count(tid, owner)
    kinds = ("PAGE_ZERO", "COW_COPY", "COW_REUSE", "PAGE_IN", "PAGE_FILE", "FAULT_OTHER")
    had = {kind: r.count(tid, getattr(ft, kind)) for kind in kinds}
    had |= {"off the CPU": r.owned_ns(tid, ft.RUN_QUEUE), "missed": r.missed(), "dropped": r.dropped()}
    assert count <= wanted + OWN, had
    if unseen := r.unseen_switches():
        warnings.warn(f"{unseen} switches were not reported: whether faults are missing is not checked", stacklevel=2)
    else:
        assert count + r.missed() >= wanted, had  # the kernel counts those for which it skipped the program


def test_memory_read_before_it_is_written_to_is_new_memory_twice_and_nothing_is_copied(toucher, recorded):
    p = toucher("anonymous", "read", "write")
    check_near(recorded(p), p.pid, ft.PAGE_ZERO)
    r = recorded(p)
    check_near(r, p.pid, ft.PAGE_ZERO)
    assert r.count(p.pid, ft.COW_COPY) <= OWN
    check_account(r, p.pid)


def test_pages_shared_with_a_child_are_copied_one_by_one_other_pages_are_not(toucher, recorded):
    p = toucher("anonymous", "write", "fork,write", "kill,write")
    alone = recorded(p)
    check_near(alone, p.pid, ft.PAGE_ZERO)
    assert alone.count(p.pid, ft.COW_COPY) <= OWN
    shared = recorded(p)
    check_near(shared, p.pid, ft.COW_COPY)
    check_account(shared, p.pid)
    assert recorded(p).count(p.pid, ft.COW_COPY) <= OWN


def test_a_private_files_page_is_the_files_until_it_is_copied_and_ordinary_memory_after_that(
    toucher, recorded, tmp_path
):
    data = tmp_path / "data"
    data.touch()
    os.truncate(data, PAGES * PAGE)
    p = toucher(data, "read", "write", "fork,write")
    p.next()
    copied = recorded(p)
    check_near(copied, p.pid, ft.PAGE_FILE)
    assert copied.count(p.pid, ft.COW_COPY) <= OWN
    check_near(recorded(p), p.pid, ft.COW_COPY)


def test_a_server_that_never_forked_copies_nothing_however_many_requests_it_serves(serve, record):
    redis = serve("redis")
    recorder = record("--pid", redis.pid)
    words = ["-n", 300_000, "-r", 300_000, "-d", 64, "-P", 16, "-t", "set,get", "-q"]
    assert run_program("redis-benchmark", "-s", redis.socket, *words).status == 0
    r = recorder.stop()
    assert r.count(redis.pid, ft.PAGE_ZERO) > 1000
    assert (r.count(redis.pid, ft.COW_COPY), r.count(redis.pid, ft.COW_REUSE)) == (0, 0)


@pytest.fixture
def profile():
    """profile(pid): samples a thread and the stack from its frame pointers, as `perf record -g` does. Returns a
    function for the number of bytes sampled so far."""
    call = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    software, cpu_clock, ip, callchain, cloexec = 1, 0, 1, 1 << 5, 8
    opened = []

    def start(pid):
        attributes = struct.pack("=2I5Q2IQ", software, 64, cpu_clock, 500_000, ip | callchain, 0, 0, 0, 0, 0)
        event = ctypes.CDLL(None).syscall(call, attributes, pid, -1, -1, cloexec)
        assert event >= 0
        ring = mmap.mmap(event, 65 * PAGE)
        os.close(event)  # the mapping keeps the event
        opened.append(ring)
        return lambda: struct.unpack_from("=Q", ring, 1024)[0]  # perf_event_mmap_page.data_head

    yield start
    for ring in opened:
        ring.close()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its code is x86-64's")
def test_a_profiler_that_follows_invalid_frame_pointers_does_not_change_the_account(toucher, recorded, profile):
    p = toucher("anonymous", "run_with_garbage")
    sampled = profile(p.pid)
    r = recorded(p)
    assert sampled() > 1000  # bytes: it did profile
    check_account(r, p.pid)
    assert r.cost["faults_abandoned"] == 0
    assert r.cost["fault_begins"] == r.cost["fault_ends"] or r.missed()
    # It ran for 400 ms, except for CPU time of others: that is its own code, and interrupts end.
    s = r.spans[r.spans.tid == p.pid]
    own_ns, interrupts_ns = r.owned_ns(p.pid, ft.OWN_CODE), r.owned_ns(p.pid, ft.HARDIRQ)
    away_ns = r.owned_ns(p.pid, ft.RUN_QUEUE) + int(s.runnable_ns[s.off_cpu != 0].sum())
    assert own_ns + away_ns > 320 * MS, (own_ns, away_ns, interrupts_ns)
    assert interrupts_ns < 40 * MS
    assert s.duration_ns[s.owner == ft.HARDIRQ].max(initial=0) <= 20 * MS


def test_a_fault_that_became_a_signal_keeps_its_time_where_it_was_as_own_code(toucher, record):
    p = toucher("anonymous", "write_forbidden")
    recorder = record("--pid", p.pid)
    since_ns = time.monotonic_ns()
    p.next()
    until_ns = time.monotonic_ns()
    time.sleep(0.3)  # the last window is not its window
    r = recorder.stop()
    check_account(r, p.pid)
    fault = r.longest(lambda s: (s.tid == p.pid) & (s.flags & ft.SPAN_ABANDONED != 0))
    assert fault is not None
    assert fault.owner == ft.OWN_CODE
    assert fault.arg[0] == int(p.out.split()[1])  # the address
    assert fault.duration_ns >= 60 * MS
    assert since_ns <= fault.start_ns <= fault.start_ns + fault.duration_ns <= until_ns
    assert r.cost["faults_abandoned"] == 1
    assert r.cost["fault_begins"] == r.cost["fault_ends"] + 1 or r.missed()


def test_the_faults_of_a_hundred_threads_are_watched_within_few_open_files(toucher, background, tmp_path):
    p = toucher("anonymous", "start_threads", "touch_in_threads")
    p.next()
    # It may open 128 files, or up to 300 after raising the limit.
    limited = ["prlimit", "--nofile=128:300", "setpriv", "--bounding-set", "-sys_resource", "--"]
    path = tmp_path / "server.forktail"
    recorder = background(*limited, program("forktail-record"), "--pid", p.pid, "--no-client", "-o", path)
    assert eventually(lambda: "recording " in recorder.err, 30)
    p.next()
    ended = recorder.interrupt()
    assert ended.status == 0
    assert "cannot attach" not in ended.err
    r = Recording(path)
    assert len(r.threads) == THREADS
    for tid, _ in r.threads:
        check_account(r, tid)
    # This is the number of watched threads. It does not check that all of their faults were recorded: with a hundred
    # threads on two busy CPUs a context switch may be missed, which loses a thread's faults until the next switch.
    assert sum(r.count(tid, ft.PAGE_ZERO) > OWN for tid, _ in r.threads) >= THREADS - 3
    assert r.cost["fault_ends"] + r.cost["faults_abandoned"] >= r.cost["fault_begins"]
