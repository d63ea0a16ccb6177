# SPDX-License-Identifier: MIT
"""Servers that cannot run while requests wait: frozen cgroups of both versions, and tracers. None of that time is idle,
whatever the server was about to do.
"""

import time
from collections import Counter

import pytest

from cgroups import Freezer
from harness import eventually, evidence, ft, helper, needs, needs_root
from real_run import MS, RealRun

pytestmark = needs_root


@pytest.fixture
def disturbed(tmp_path):
    """disturbed(redis, f): the explanation of a server under an even load, during which f() disturbs it."""

    def explanation(redis, disturb):
        with RealRun(tmp_path / "run") as run:
            run.record(redis.pid)
            run.load(*redis.load_words(), "-t", "get", "--rate", 1000, "--duration", "3s", "-c", 5)
            time.sleep(0.5)
            disturb()
            run.finish()
            return run.explain()

    return explanation


def shares(explanation):
    """Each cause's share of the time of the requests that took 50 ms or more."""
    times = Counter()
    for episode in explanation["episodes"]:
        if episode["worst_ns"] >= 50 * MS:
            times.update({cause["cause"]: cause["time_ns"] for cause in episode["causes"]})
    return Counter({cause: ns / times.total() for cause, ns in times.items()})


@pytest.fixture
def freezer(request):
    with Freezer(request.param) as group:
        yield group


# The group before the server, which ends first, because a group with members cannot be removed.
@pytest.mark.quiet
@pytest.mark.parametrize("freezer", [1, 2], indirect=True, ids=["v1", "v2"])
def test_a_server_in_a_frozen_cgroup_is_frozen_and_not_idle(freezer, serve, disturbed):
    redis = serve("redis")
    freezer.add(redis.pid)

    def freeze():
        for _ in range(3):
            with freezer.frozen():
                time.sleep(0.1)
            time.sleep(0.2)

    explanation = disturbed(redis, freeze)
    share = shares(explanation)
    assert share["frozen"] >= 0.95
    assert share["network"] < 0.03
    sentence = f"the server's cgroup {freezer.name} (container ffffffffffff) was frozen for "
    assert sentence in evidence(*explanation["episodes"])


@pytest.mark.quiet
def test_a_server_stopped_by_a_debugger_has_that_cause_with_the_number_of_stops(serve, background, disturbed):
    redis = serve("redis")
    tracer = []

    def stop():
        tracer.append(background(helper("tracer"), redis.pid, 3, 100))
        assert tracer[0].wait(30).status == 0

    explanation = disturbed(redis, stop)
    share = shares(explanation)
    assert share["ptrace"] >= 0.95
    assert share["network"] < 0.03
    assert f"was stopped 1 time by tracer (pid {tracer[0].pid}), 1" in evidence(*explanation["episodes"])


@needs("strace")
def test_strace_stops_a_server_in_every_call_and_all_stops_count(serve, record, background):
    redis = serve("redis")
    recorder = record("--pid", redis.pid)
    strace = background("strace", "-o", "/dev/null", "-p", redis.pid)
    assert eventually(lambda: "attached" in strace.err)
    for _ in range(100):
        redis.ask("PING")
    recording = recorder.stop()
    # read, write and epoll_wait of each command, at their begin and at their end.
    assert recording.count(redis.pid, ft.PTRACED) >= 600
    assert recording.count(redis.pid, ft.STOPPED) == 0
    tracer = {"kind": "tracer", "pid": strace.pid, "comm": "strace"}
    assert any(tracer.items() <= note.items() for note in recording.notes)
