# SPDX-License-Identifier: MIT
"""The recorded facts of a futex wait: which word, the lock's owner by the lock's own data, and the thread's waker."""

import os
import signal
import time

import pytest

from harness import Program, eventually, ft, helper, needs_root
from recorder_processes import children
from server_counts import stats, tell

pytestmark = [pytest.mark.quiet, needs_root]

MS = 1_000_000


class LockServer(Program):
    """A server delayed by its own threads (lock_holder.c)."""

    def __init__(self, how, hold_ms, *under):
        super().__init__(*under, helper("lock_holder"), how, hold_ms)
        eventually(self.numbers)

    def numbers(self):
        """The holder's thread id, and how long each wait has taken so far, in ns."""
        return [int(line) for line in self.out.splitlines(keepends=True) if line.endswith("\n")]

    @property
    def holder(self):
        return self.numbers()[0]

    def wait_times(self, times):
        """Makes it wait this many times, one after the other."""
        for _ in range(times):
            before = len(self.numbers())
            self.signal(signal.SIGUSR1)
            assert eventually(lambda: len(self.numbers()) > before)  # noqa: B023
            time.sleep(0.02)


@pytest.fixture
def lock_server(closing):
    """lock_server(how, hold_ms, *under): a LockServer, which is killed at the end of the test."""
    return lambda *words: closing(LockServer(*words))


class Wait:
    """The longest lock wait of a thread."""

    def __init__(self, r, tid):
        span = r.longest(lambda s: (s.owner == ft.LOCK_WAIT) & (s.tid == tid))
        assert span is not None
        self.address, self.blocked_ns = int(span.arg[0]), int(span.blocked_ns)
        self.owner, self.waker = int(span.arg[1]) & 0xFFFFFFFF, int(span.arg[1]) >> 32


def thread_called(r, comm):
    return next(int(t.tid) for t in r.threads.values() if t.comm == comm.encode())


@pytest.mark.parametrize("how", ["code", "inherit", "fastlock"])
def test_a_wait_for_a_lock_has_its_holder_and_its_waker(lock_server, record, how):
    server = lock_server(how, 15)
    recorder = record("--pid", server.pid)
    server.wait_times(3)
    wait = Wait(recorder.stop(), server.pid)
    assert wait.blocked_ns > 5 * MS
    assert wait.address != 0
    assert (wait.owner, wait.waker) == (server.holder, server.holder)


def test_a_wait_for_a_condition_has_its_waker_and_no_holder(lock_server, record):
    server = lock_server("condition", 15)
    recorder = record("--pid", server.pid)
    server.wait_times(3)
    wait = Wait(recorder.stop(), server.pid)
    assert wait.blocked_ns > 5 * MS
    assert (wait.owner, wait.waker) == (0, server.holder)


def test_of_two_threads_that_wait_for_a_lock_one_is_woken_by_the_other_which_waited_for_the_same_word(
    lock_server, record
):
    server = lock_server("chain", 30)
    recorder = record("--pid", server.pid)
    server.wait_times(5)
    r = recorder.stop()
    middle = thread_called(r, "middle")
    last, first = Wait(r, server.pid), Wait(r, middle)
    assert (last.owner, last.waker) == (server.holder, middle)
    assert (first.owner, first.waker) == (server.holder, server.holder)
    assert first.address == last.address


def test_a_futex_wait_that_a_timer_ends_has_no_waker(lock_server, record):
    server = lock_server("nobody", 15)
    recorder = record("--pid", server.pid)
    server.wait_times(3)
    wait = Wait(recorder.stop(), server.pid)
    assert wait.blocked_ns > 14 * MS
    assert wait.address != 0
    assert wait.waker == 0


def test_a_holder_in_another_pid_namespace_is_known_by_the_recorders_ids(lock_server, record):
    # Its own ids are 1, 2 and so on.
    unshare = lock_server("code", 15, "unshare", "--pid", "--fork", "--kill-child")
    if not (servers := children(unshare.pid)):
        pytest.skip(f"cannot make a pid namespace here: {unshare.err}")
    (server,) = servers
    recorder = record("--pid", server)
    for _ in range(3):
        os.kill(server, signal.SIGUSR1)
        time.sleep(0.1)
    r = recorder.stop()
    holder = thread_called(r, "holder")
    assert unshare.holder != holder
    wait = Wait(r, server)
    assert wait.blocked_ns > 5 * MS
    assert (wait.owner, wait.waker) == (holder, holder)


def test_memcacheds_workers_wait_for_a_lock_of_the_thread_that_grows_its_hash_table(serve, record):
    memcached = serve("memcached", "-t", "4", "-o", "hashpower=13")
    # It holds the lock for a few microseconds each time.
    recorder = record("--pid", memcached.pid, "--min-span", "1us")
    # Five times twice as large.
    sets = "".join(f"set key{i} 0 0 1 noreply\r\nx\r\n" for i in range(400_000))
    assert tell(memcached, f"{sets}get key1", "END\r\n").startswith("VALUE key1")

    # It checks once per second whether it should.
    def has_grown():
        counters = stats(memcached)
        return (counters["hash_power_level"], counters["hash_is_expanding"]) == (18, 0)

    assert eventually(has_grown, 30)
    r = recorder.stop()
    grower = thread_called(r, "mc-assocmaint")
    lock_waits = r.spans[r.spans.owner == ft.LOCK_WAIT]
    assert (lock_waits.arg[:, 1] == grower | grower << 32).any()  # its holder and waker
