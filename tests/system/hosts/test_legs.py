# SPDX-License-Identifier: MIT
"""A delay in one direction between two hosts whose clocks are a day apart. The load generator is in a time namespace,
and a relay between it and the server delays one direction. Explain must find it in that direction, or report that it
cannot decide.
"""

import sys
from pathlib import Path

import pytest

from forktail.programs import program
from harness import eventually, explain, forktail
from network_hosts import A_DAY_AHEAD, Hosts, need_time_namespaces

pytestmark = pytest.mark.quiet

RELAY = ("10.77.0.254", 6400)  # on this host, which is neither the load generator's nor the server's
DELAY_MS = 5
LEGS = ("late_ns", "to_server_ns", "at_server_ns", "from_server_ns", "unread_ns", "unknown_ns")


@pytest.fixture
def hosts(open_directory):
    with Hosts(open_directory, "redis-a", "client-a") as started:
        need_time_namespaces()
        started.serve_redis("redis-a")
        yield started


@pytest.mark.parametrize("delayed", ["requests", "answers"])
def test_a_delay_in_one_direction_is_on_that_leg_or_the_clocks_cannot_decide(hosts, background, tmp_path, delayed):
    there_ms, back_ms = (DELAY_MS, 0) if delayed == "requests" else (0, DELAY_MS)
    server, run = hosts.address("redis-a"), tmp_path / "run"
    run.mkdir()

    def start(says, *words):
        started = background(*words)
        if says:
            assert eventually(lambda: says in started.out + started.err, 60), started.err
        return started

    def ended(started, interrupt=False):
        end = started.interrupt(30) if interrupt else started.wait(30)
        assert end.status == 0, end.err

    # Three seconds with 50 requests per second on one connection.
    relay = [sys.executable, Path(__file__).with_name("delay_relay.py"), *RELAY, server, 6379, there_ms, back_ms]
    start("listening", *hosts.here.within, *relay)
    on_server = hosts.on("redis-a", program("forktail"))
    serve = start("answering on", *on_server, "clock", "serve", "--listen", f"{server}:7380")
    recorder = start("recording ", *on_server, "record", "--port", 6379, "-o", run / "server.forktail")
    ahead = hosts.on("client-a", *A_DAY_AHEAD, program("forktail"))
    probe = start(
        "comparing clocks with", *ahead, "clock", "probe", f"{server}:7380", "-o", run / "clock.forktail",
        "--interval", "20ms", "--duration", "6s",
    )  # fmt: skip
    load = start(
        "", *ahead, "load", "-q", "--server", "{}:{}".format(*RELAY), "-o", run / "load.forktail", "--rate", 50,
        "-c", 1, "--duration", 3, "--arrival-times",
    )  # fmt: skip
    ended(load)
    ended(probe)  # unshare does not forward signals to it
    ended(recorder, interrupt=True)
    ended(serve, interrupt=True)

    slow = explain(run, "--requests", "--slow", "3ms")["slow_requests"]
    assert len(slow) > 100
    one = forktail("explain", "--slow", "3ms", "--request", slow[50]["id"], run)
    assert "Legs between the hosts (clocks known to within " in one.out, one.err
    assert "request on the network" in one.out

    assert [sum(one["legs"][leg] for leg in LEGS) for one in slow] == [one["latency_ns"] for one in slow]
    latency, bound = sum(one["latency_ns"] for one in slow), max(one["legs"]["bound_ns"] for one in slow)
    share = {leg: sum(one["legs"][leg] for one in slow) / latency for leg in LEGS}
    right, wrong = share["to_server_ns"], share["from_server_ns"]
    if delayed == "answers":
        right, wrong = wrong, right
    assert bound > 0
    assert share["at_server_ns"] < 0.2  # it did nothing unusual
    assert wrong < 0.2
    assert right + share["unknown_ns"] > 0.6
    if bound < 1e6:  # nothing prevented a decision
        assert right > 0.5
