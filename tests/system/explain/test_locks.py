# SPDX-License-Identifier: MIT
"""A server whose main thread waits for a lock that another of its threads holds. Requests are explained by the holder's
activity, at that thread, for as long as a clock in the server measures.
"""

import struct
import time
from collections import Counter

import pytest

from forktail import open as open_run
from harness import eventually, evidence, ft, helper, needs_root
from real_run import MS, RealRun, info

pytestmark = [pytest.mark.quiet, needs_root]


class LockedServer:
    """A redis-server with a keeper (lock_keeper.c), under an even load with a disturbance.

    keeper: its thread id. waited_ms: how long the main thread waited for the lock, by the server's clock.
    resolved_ms: how long it waited for the keeper's activity, and then for a CPU, by an explanation of all requests.
    at_keeper, elsewhere: parts of the slow requests' time in ms, by cause, at the keeper and at other threads.
    sentences: all evidence.
    """

    def __init__(self, serve, directory, how, ms):
        self._run = directory / "run"
        self._clock = directory / "clock"
        self._clock.write_bytes(bytes(16))
        self.redis = serve(
            "redis",
            env={
                "LD_PRELOAD": str(helper("lock_keeper")),
                "FORKTAIL_KEEP": how,
                "FORKTAIL_KEEP_MS": str(ms),
                "FORKTAIL_KEEP_CLOCK": str(self._clock),
            },
        )

    def _shown(self):
        return struct.unpack("QQ", self._clock.read_bytes())

    @property
    def keeper(self):
        return self._shown()[0]

    def during(self, disturb=lambda: None):
        with RealRun(self._run) as run:
            run.record(self.redis.pid)
            words = ["-t", "get", "--rate", 200, "--duration", "3s", "-c", 2, "--no-observer"]
            run.load(*self.redis.load_words(), *words)
            # What its connections ask first is in no log.
            assert eventually(lambda: int(info(self.redis, "keyspace_misses")) > 10)
            self._since_ns, before_ns = time.monotonic_ns(), self._shown()[1]
            disturb()
            run.client.wait()
            self.waited_ms = (self._shown()[1] - before_ns) / MS
            self._recording = run.stop()
            explanation = run.explain("--slow", "2ms")
        self.sentences = evidence(*explanation["episodes"])
        self.at_keeper, self.elsewhere = Counter(), Counter()
        for hop in explanation["hops"]:
            there = self.at_keeper if "keeper" in hop["name"] else self.elsewhere
            there.update({cause["cause"]: cause["time_ns"] / MS for cause in hop["causes"]})

    @property
    def resolved_ms(self):
        spans = self._recording.spans
        waits = spans[(spans.tid == self.redis.pid) & (spans.owner == ft.LOCK_WAIT) & (spans.off_cpu != 0)]
        waits = waits[waits.start_ns + waits.duration_ns > self._since_ns]
        with open_run(self._run, slow="1ns") as run:
            keeper = next(hop["hop"] for hop in run.hops if hop["tid"] == self.keeper)
            at_keeper = Counter()
            for part in run.parts:
                at_keeper[part["request"]] += part["direct_ns"] * (part["hop"] == keeper)
            requests = list(run.slow)
        ns = int(waits.runnable_ns.sum())
        for wait in waits:  # which one request at least met from its begin to its end, and the shortest one no other
            start_ns, end_ns = wait.start_ns, wait.start_ns + wait.blocked_ns
            met = (request for request in requests if request["due_ns"] <= start_ns and end_ns <= request["end_ns"])
            ns += at_keeper[min(met, key=lambda request: request["latency_ns"])["request"]]
        return ns / MS


@pytest.fixture
def locked_server(serve, tmp_path):
    """locked_server(how, ms): a LockedServer."""
    return lambda how, ms: LockedServer(serve, tmp_path, how, ms)


def test_a_lock_that_another_thread_holds_while_it_computes_is_lock_wait_at_that_thread(locked_server):
    server = locked_server("code", 15)
    server.during()
    assert server.waited_ms > 100
    assert server.at_keeper["lock-wait"] > 20 * server.elsewhere["lock-wait"]
    assert server.resolved_ms == pytest.approx(server.waited_ms, abs=1 + 0.02 * server.waited_ms)
    assert f"redis-server ({server.redis.pid}) waited " in server.sentences
    assert " for a lock that this thread held; meanwhile this thread was in keep_computing" in server.sentences


def test_a_holders_wait_in_the_kernel_is_the_cause_of_the_lock_wait(locked_server):
    server = locked_server("pipe", 15)
    server.during()
    assert server.waited_ms > 100
    assert server.resolved_ms == pytest.approx(server.waited_ms, abs=1 + 0.02 * server.waited_ms)
    assert server.at_keeper["syscall"] > 0.8 * server.waited_ms
    assert server.elsewhere["lock-wait"] < 0.1 * server.waited_ms
    assert "keeper: blocked in read() of fd " in server.sentences
    assert " for a lock that this thread held" in server.sentences


def test_a_holder_that_a_debugger_stops_makes_the_lock_wait_the_debuggers(locked_server, background):
    server = locked_server("code", 60)

    def stop():
        assert background(helper("tracer"), server.keeper, 20, 40).wait(30).status == 0

    server.during(stop)
    assert server.at_keeper["ptrace"] > 50
    assert server.elsewhere["ptrace"] == 0
    assert server.at_keeper["lock-wait"] > 50
    assert "keeper: was stopped " in server.sentences
