# SPDX-License-Identifier: MIT
"""A server that is busy for the whole recording, or at its end, alone on its CPU without any context switch: it is
recorded from the first instant, and so is the event-loop iteration that never ended.
"""

import signal
import time
from pathlib import Path

import pytest

from harness import eventually, forktail, ft, needs_root, needs_two_cpus
from pinned_redis import PinnedRedis, busy_script

pytestmark = [pytest.mark.alone, needs_root, needs_two_cpus]

MS = 1_000_000


@pytest.fixture
def redis():
    with PinnedRedis(cpu=1) as server:
        yield server


@pytest.fixture
def be_busy(background):
    """be_busy(redis, ms): the client of a script that runs for this long, from about now on. It touches new memory."""
    # A string has 512 MB at most. Little new memory, because a virtual machine's host may take far longer than the
    # kernel to provide it.
    work = (
        "for i = 1, 1000 do n = n + i end c = c + 1 if c % 500000 == 0 then redis.call('DEL', 'k') end "
        "redis.call('APPEND', 'k', string.rep('x', 200))"
    )

    def start(redis, ms):
        def ran_ns():  # CPU time of the server's main thread
            return int(Path(f"/proc/{redis.pid}/schedstat").read_text().split()[0])

        before_ns = ran_ns()
        client = background(*redis.eval(busy_script(ms, work)))
        assert eventually(lambda: ran_ns() > before_ns + 100 * MS, 30)
        return client

    return start


def main_thread(r, redis):
    return next(t for (tid, _), t in r.threads.items() if tid == redis.pid)


def check_busy(r, redis, at_least_ns):
    """The whole account is known, and own code is most of it."""
    tid, thread = redis.pid, main_thread(r, redis)
    assert r.accounted_ns(tid) == thread.end_ns - thread.start_ns
    # Not all of it: when a SCHED_FIFO thread takes a CPU for long, the kernel gives other threads a part.
    assert r.owned_ns(tid, ft.OWN_CODE) > at_least_ns / 2, (
        f"waited for the CPU {r.owned_ns(tid, ft.RUN_QUEUE)}, new memory {r.owned_ns(tid, ft.PAGE_ZERO)}, "
        f"switches not reported {r.unseen_switches()}"
    )
    # Events during it are recorded: the timer, new memory.
    assert r.count(tid, ft.HARDIRQ) > 0
    assert r.count(tid, ft.PAGE_ZERO) > 0


def unfinished(r, redis):
    """The only event-loop iteration that was open when the server's account closed."""
    s = r.spans
    found = s[(s.tid == redis.pid) & (s.owner == ft.ITERATION) & (s.flags & ft.SPAN_UNFINISHED != 0)]
    assert len(found) == 1
    return found[0]


def check_explained(recorder):
    explained = forktail("explain", recorder.path)
    assert explained.status == 0, explained.err
    assert "server-busy" in explained.out
    assert "nothing to explain" not in explained.err


def test_a_server_busy_from_before_the_recording_until_after_it_has_one_iteration_of_own_code(redis, record, be_busy):
    be_busy(redis, 60_000)
    recorder = record("--pid", redis.pid, "--duration", "700ms")
    r = recorder.finished()
    check_busy(r, redis, 600 * MS)
    thread, iteration = main_thread(r, redis), unfinished(r, redis)
    assert thread.start_ns <= iteration.start_ns < thread.start_ns + 100 * MS
    assert iteration.start_ns + iteration.duration_ns == thread.end_ns
    check_explained(recorder)


def test_an_iteration_cut_by_the_recordings_end_is_recorded_up_to_there(record, be_busy):
    # If the server was held up, it reads the end of the PING's connection and the script without a wait between them.
    # The script's iteration is then known only from a CPU sample on, without its read. So it has three tries.
    for _ in range(3):
        with PinnedRedis(cpu=1) as redis:
            recorder = record("--pid", redis.pid)
            redis.ask("PING")
            since_ns = time.monotonic_ns()
            be_busy(redis, 60_000)
            time.sleep(0.5)
            r = recorder.stop()
            check_busy(r, redis, 500 * MS)
            iteration = unfinished(r, redis)
            assert iteration.start_ns >= since_ns
            assert iteration.duration_ns > 500 * MS
            check_explained(recorder)
        if not iteration.flags & ft.SPAN_SAMPLED:
            break
    assert int(iteration.arg[1]) & 0xFFFF >= 1  # it read its request


def test_a_recording_that_begins_in_the_middle_of_an_iteration_has_the_rest_of_it(redis, record, be_busy):
    client = be_busy(redis, 8000)
    recorder = record("--pid", redis.pid)
    client.wait()
    redis.ask("PING")
    r = recorder.stop()
    iteration = r.longest(lambda s: (s.tid == redis.pid) & (s.owner == ft.ITERATION))
    # Its begin was not recorded. If the next request was read before the loop waited, the loop itself is unknown, too.
    assert iteration.flags & ~ft.SPAN_UNFINISHED == ft.SPAN_SAMPLED
    assert iteration.start_ns < main_thread(r, redis).start_ns + 100 * MS
    assert iteration.duration_ns > 300 * MS
    check_busy(r, redis, int(iteration.duration_ns))


def test_a_server_that_is_killed_in_the_middle_of_an_iteration_leaves_the_iteration(redis, record, be_busy):
    recorder = record("--pid", redis.pid)
    redis.ask("PING")
    be_busy(redis, 60_000)
    time.sleep(0.3)
    redis.send_signal(signal.SIGKILL)
    assert unfinished(recorder.finished(), redis).duration_ns > 300 * MS
