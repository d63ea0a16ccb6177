# SPDX-License-Identifier: MIT
"""A load generator that requests arrival times. The time that answers wait unread while it is stopped is its own, to
the nanosecond and without recording it. The server's time is not.
"""

import signal
import time
from types import SimpleNamespace

import pytest

from harness import evidence, needs_root
from real_run import MS, RealRun, await_stopped, check_parts, time_by_cause


def known_arrivals(load):
    """The requests with an arrival time, which is between sending and the end."""
    known = load.log.requests[load.log.requests.arrival_ns != 0]
    assert (known.start_ns <= known.arrival_ns).all()
    assert (known.arrival_ns <= known.end_ns).all()
    return known


@pytest.fixture
def closed_load(start_load):
    """closed_load(server): a load of which every connection always has a request at the server."""

    def start(server):
        load = start_load("-p", server.port, "-c", 4, "-l", "--arrival-times")
        load.under_way()
        return load

    return start


def stop_both(server, load):
    """Every connection has a request at a server that does not answer. Then answers arrive at a load generator that
    does not read. Returns when the server continued, when it had answered, and when the load continued."""
    server.send_signal(signal.SIGSTOP)
    await_stopped(server.pid)
    time.sleep(0.05)
    load.signal(signal.SIGSTOP)
    await_stopped(load.pid)
    server_on = time.monotonic_ns()
    server.send_signal(signal.SIGCONT)
    # Earlier requests are answered in the event-loop iteration that has the first of these.
    for _ in range(2):
        assert server.ask("PING") == ["PONG"]
    answered = time.monotonic_ns()
    time.sleep(0.03)
    load_on = time.monotonic_ns()
    load.signal(signal.SIGCONT)
    return SimpleNamespace(server_on=server_on, answered=answered, load_on=load_on)


def end(load):
    time.sleep(1.2)  # more than one block of the log
    load.signal(signal.SIGINT)
    return load.done()


@pytest.mark.quiet
def test_an_answer_that_arrives_while_the_load_generator_is_stopped_is_unread_until_it_continues(serve, closed_load):
    server = serve("redis", "--enable-debug-command", "yes", tcp=True)
    load = closed_load(server)
    at = stop_both(server, load)
    time.sleep(0.1)
    asked = time.monotonic_ns()
    server.ask("DEBUG", "SLEEP", "0.05")  # the control: a server that is late
    awake = time.monotonic_ns()
    end(load)

    known, q = known_arrivals(load), load.log.requests
    unread = q[(q.start_ns < at.server_on) & (q.end_ns > at.load_on)]
    assert len(unread) == 4
    assert (unread.arrival_ns >= at.server_on).all()
    assert (unread.arrival_ns <= at.answered).all()
    # Also a request sent a little after the sleep began.
    slept = q[(q.start_ns < awake) & (q.end_ns > asked) & (q.end_ns - q.start_ns >= 40 * MS)]
    assert len(slept) >= 4
    assert (slept.arrival_ns > asked + 50 * MS).all()
    # The first ones may have been sent before the kernel began to stamp.
    assert len(known) > len(q) * 9 // 10
    assert load.log.manifest["arrival_times"] is True
    arrivals = load.figures["by_arrival"]
    assert arrivals["latency_ns"]["count"] == len(known)
    assert arrivals["unread_ns"]["max"] >= 29 * MS
    assert "time until answers arrived (ms" in load.out
    assert "socket-buffer wait (ms)" in load.out


@pytest.fixture(scope="module")
def tcp_redis(module_serve):
    return module_serve("redis", tcp=True)


def test_without_the_option_there_are_no_arrival_times(tcp_redis, start_load):
    load = start_load("-p", tcp_redis.port, "-n", 1000).done()
    assert (load.log.requests.arrival_ns == 0).all()
    assert "by_arrival" not in load.figures
    assert "arrived" not in load.out


@pytest.mark.parametrize(
    "words",
    [["-P", 16], ["--blocking", "-c", 2], ["--reconnect", 50], ["-d", 300_000, "-t", "get", "-n", 2000]],
    ids=["pipelined", "blocking", "reopened", "long-answers"],
)
def test_most_arrival_times_are_known(tcp_redis, start_load, words):
    load = start_load("-n", 5000, "--arrival-times", "-p", tcp_redis.port, *words).done()
    assert len(known_arrivals(load)) > len(load.log.requests) // 2


@pytest.mark.quiet
@needs_root
def test_unread_time_is_client_late_exactly_and_the_servers_stop_is_not(serve, closed_load, tmp_path):
    server = serve("redis", tcp=True)
    load = closed_load(server)
    with RealRun(tmp_path / "run") as run:
        run.record(server.pid)
        time.sleep(0.3)
        at = stop_both(server, load)
        run.add_log(end(load))
        run.stop()
        explanation = run.explain("--requests", "--slow", "20ms")
        text = run.text("--all")
    assert explanation["requests"]["by_arrival"]["count"] > 1000
    assert explanation["requests"]["by_arrival"]["longest_unread_ns"] >= 29 * MS
    check_parts(explanation)

    unread = [
        one
        for one in explanation["slow_requests"]
        if one["start_ns"] < at.server_on and one["start_ns"] + one["latency_ns"] > at.load_on
    ]
    assert len(unread) == 4
    for one in unread:
        times = time_by_cause(one)
        unread_ns = one["start_ns"] + one["latency_ns"] - one["arrived_ns"]
        assert unread_ns <= times["client-late"] < unread_ns + 5 * MS, one
        assert unread_ns >= 29 * MS, one
        assert times["stopped"] >= 45 * MS, one
        episode = explanation["episodes"][one["episode"]]
        assert episode["answers"]["known"] >= 4
        assert "replies were unread at the client for " in evidence(episode)
    assert "Until replies arrived at the client: p50 " in text
