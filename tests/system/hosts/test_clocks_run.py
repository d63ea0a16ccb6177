# SPDX-License-Identifier: MIT
"""A run whose requests were timed by another clock than the server's. The load generator is in a time namespace, which
shifts its clock by a known offset, so that the estimated offset can be checked.
"""

import signal
import time

import pytest

from forktail.programs import program
from forktail.servers.listen import free_port
from harness import eventually, explain, needs_root
from network_hosts import A_DAY_AHEAD, AHEAD_S, need_time_namespaces


@needs_root
@pytest.mark.quiet
def test_a_stall_is_found_on_requests_timed_by_another_clock_and_the_clocks_difference_is_known(
    serve, record, background, tmp_path
):
    need_time_namespaces()
    redis = serve("redis", tcp=True)
    forktail, clock_at, clock = program("forktail"), f"127.0.0.1:{free_port()}", tmp_path / "clock.forktail"
    answering = background(forktail, "clock", "serve", "--listen", clock_at)
    assert eventually(lambda: "answering on" in answering.err, 60)
    recorder = record("--pid", redis.pid)
    limits = ["--interval", "50ms", "--duration", "6s"]
    probe = background(*A_DAY_AHEAD, forktail, "clock", "probe", clock_at, "-o", clock, *limits)
    rate = ["--rate", 2000, "-c", 4, "--duration", 4]
    words = ["load", "-q", "--server", f"127.0.0.1:{redis.port}", "-o", tmp_path / "load.forktail", *rate]
    load = background(*A_DAY_AHEAD, forktail, *words)
    time.sleep(2)
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    redis.send_signal(signal.SIGCONT)
    ended = [load.wait(), probe.wait(), recorder.interrupt(), answering.interrupt()]
    assert [one.status for one in ended] == [0, 0, 0, 0], ended

    explanation = explain(tmp_path, "--slow", "100ms")
    _own, other = explanation["clocks"]["hosts"]
    assert abs(other["offset_ns"] + AHEAD_S * 1_000_000_000) <= other["bound_ns"]
    assert other["bound_ns"] < 10_000_000  # a larger bound would be useless here
    assert explanation["causes"][0]["cause"] == "stopped"
    assert explanation["causes"][0]["share"] > 0.5
    assert explanation["episodes"]

    # Without the round trips nothing is known about the server.
    clock.unlink()
    alone = explain(tmp_path, "--slow", "100ms")
    assert "clocks" not in alone
    assert "use different clocks" in str(alone)
    assert "stopped" not in [cause["cause"] for cause in alone["causes"]]
