# SPDX-License-Identifier: MIT
"""Properties of the open loop: requests are due by the clock and not by the server, each is sent and counted however
late, and its latency includes its lateness.
"""

import signal
import time
from collections import Counter

import numpy as np
import pytest

from harness import eventually, ft
from recorded import percentile
from server_counts import calls


@pytest.fixture
def start(start_load):
    """start(redis, ...): a load with its observer."""
    return lambda redis, *words: start_load("-s", redis.socket, *words, observer=True)


def await_load(redis):
    """Waits until the load is running."""
    assert eventually(lambda: calls(redis, "get") > 100, 30)


def evenly(count, each_ns):
    return np.arange(count, dtype=np.uint64) * np.uint64(each_ns)


def test_constant_arrivals_as_many_as_due_evenly_spaced_none_early(redis, start):
    run = start(redis, "--rate", 5000, "--duration", 1, "-c", 20).done()
    log, q, latency = run.log, run.log.requests, run.total["latency_ns"]
    assert np.array_equal(log.schedule(), evenly(5000, 200_000))
    assert (q.start_ns >= q.intended_ns).all()
    assert (q.end_ns > q.start_ns).all()
    assert (q.status <= ft.STATUS_MISS).all()
    assert (log.manifest["arrival"], log.manifest["rate"]) == ("constant", 5000)
    assert run.figures["exact"] is True
    ordered = log.latencies()
    assert (latency["p99"], latency["max"]) == (percentile(ordered, 99), ordered[-1])
    assert run.figures["sent_late_ns"]["max"] > 0
    assert "open loop at 5000/s (constant)" in run.out
    assert "sent late" in run.out


def test_poisson_arrivals_the_number_due_and_the_same_instants_for_the_same_seed(redis, start):
    def due(seed):
        words = ["--rate", 3000, "--arrival", "poisson", "--duration", 1, "--threads", 2, "--seed", seed]
        schedule = start(redis, *words).done().log.schedule()
        assert len(schedule) == pytest.approx(3000, abs=5 * 55)
        return list(schedule)

    first, same, other = due(11), due(11), due(12)
    assert first == same
    assert first != other


def test_a_number_of_requests_ends_an_open_loop_too(redis, start):
    assert len(start(redis, "--rate", 20000, "-n", 3001, "--threads", 2).done().log.requests) == 3001


def test_a_stalled_server_is_charged_for_every_request_due_meanwhile_and_none_is_lost(serve, start):
    redis = serve("redis")
    run = start(redis, "--rate", 2000, "--duration", 2, "-c", 10)
    await_load(redis)
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    redis.send_signal(signal.SIGCONT)
    log = run.done().log
    assert np.array_equal(log.schedule(), evenly(4000, 500_000))
    assert log.with_status(ft.STATUS_OK) + log.with_status(ft.STATUS_MISS) == 4000
    # 1000 of 4000 were due in the half second, from 0.5 s before its end to its end: p90 is near 0.3 s. A closed loop
    # would have 10 slow requests, the p99.75 and above.
    latency = run.total["latency_ns"]
    assert latency["max"] >= 490_000_000
    assert latency["p99"] >= 400_000_000
    assert latency["p90"] >= 200_000_000


@pytest.mark.quiet  # a delay of 0.25 s would make all connections busy
def test_with_pipelining_idle_connections_are_used_before_busy_ones(redis, start):
    # Far fewer outstanding requests than connections: none ever has to wait behind another.
    log = start(redis, "--rate", 200, "--duration", 1, "-c", 50, "-P", 16).done().log
    q = log.requests
    per_connection = Counter(q.connection)
    assert len(per_connection) == 50
    for number in per_connection:
        own = q[q.connection == number]
        assert (own.start_ns[1:] >= own.end_ns[:-1]).all()
    # Each was answered before the next was due, so each connection sent as many. Answers that arrive together change
    # the order.
    if log.latencies()[-1] < 5_000_000:
        assert set(per_connection.values()) == {4}


def test_more_than_the_server_can_handle_the_backlog_is_sent_and_awaited_after_the_end(serve, start):
    redis = serve("redis")
    run = start(redis, "--rate", 4000, "--duration", 1, "-c", 1)
    await_load(redis)
    redis.send_signal(signal.SIGSTOP)
    time.sleep(1.2)  # beyond the end
    redis.send_signal(signal.SIGCONT)
    log = run.done().log
    assert len(log.requests) == 4000
    assert log.with_status(ft.STATUS_UNSENT) == log.with_status(ft.STATUS_TIMEOUT) == 0


@pytest.mark.parametrize(
    "plan",
    [
        ["--duration", 2],
        ["-n", 2000, "--threads", 2],
        ["--duration", 2, "--blocking"],
        ["--duration", 2, "--on-error", "reconnect", "--drain", "100ms"],
    ],
    ids=["duration", "number", "blocking", "reconnect"],
)
def test_what_falls_due_after_the_servers_death_until_the_planned_end_was_never_sent_and_is_in_the_log(
    serve, start, plan
):
    redis = serve("redis")
    run = start(redis, "--rate", 1000, "-c", 4, *plan)
    await_load(redis)
    redis.send_signal(signal.SIGKILL)
    run.done(3)
    assert "requests that were due by the planned end were never sent" in run.err
    q = run.log.requests
    assert len(q) == 2000
    unsent, last_ns = q[q.status == ft.STATUS_UNSENT], q.intended_ns.max()
    assert len(unsent) > 1000
    assert last_ns - q.intended_ns.min() > 1_990_000_000
    assert (unsent.end_ns + 10_000_000 >= last_ns).all()  # waited for the end
    times = run.figures["error_times"]["never sent"]
    assert (times["count"], times["last_ns"]) == (len(unsent), last_ns)
    assert run.total["errors_by_kind"]["never sent"] == len(unsent)


def test_if_a_server_never_answers_again_due_requests_are_logged_unanswered_or_unsent_with_their_wait(serve, start):
    redis = serve("redis")
    run = start(redis, "--rate", 1000, "--duration", 2, "-c", 5, "--drain", "300ms")
    await_load(redis)
    redis.send_signal(signal.SIGSTOP)
    run.done(3)
    assert "were not answered" in run.err
    q = run.log.requests
    unsent = q[q.status == ft.STATUS_UNSENT]
    assert len(q) == 2000
    assert run.log.with_status(ft.STATUS_TIMEOUT) == 5
    assert len(unsent) > 300
    assert (unsent.end_ns - unsent.intended_ns >= 290_000_000).all()
    assert run.total["errors_by_kind"]["never sent"] == len(unsent)
    assert run.total["latency_ns"]["p99"] > 290_000_000
    assert "never sent" in run.out
