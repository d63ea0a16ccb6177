# SPDX-License-Identifier: MIT
"""One explanation of several load generators' requests to one server: percentiles are checked against those of all
their requests together, which the test reads and sorts itself.
"""

import os
import time

import numpy as np
import pytest

from forktail.programs import program
from harness import Recording, explain, run_program


@pytest.fixture
def address():
    """The server's host as the others see it. A loopback address would mean each host itself."""
    number = os.getpid()
    address = f"10.78.{number >> 8 & 255}.{number & 255}"
    words = [f"{address}/32", "dev", "lo"]
    if run_program("ip", "addr", "add", *words).status != 0:
        pytest.skip("needs root to add an address")
    yield address
    run_program("ip", "addr", "del", *words)


def check_percentiles(explanation, *logs):
    """The figures are those of all requests of these logs, by the nearest rank."""
    latencies = np.sort(np.concatenate([log.latencies() for log in logs]))
    requests = explanation["requests"]
    assert (requests["count"], requests["errors"]) == (len(latencies), 0)
    # In ten thousandths, so that it is a whole number.
    of_10000 = {"p50": 5000, "p90": 9000, "p99": 9900, "p99.9": 9990, "p99.99": 9999, "max": 10000}
    expected = {name: latencies[(len(latencies) * of + 9999) // 10000 - 1] for name, of in of_10000.items()}
    assert {name: requests["latency_ns"][name] for name in expected} == expected


def figures(cause):
    """All numbers of a cause, by their keys."""
    numbers = cause | {f"what_if.{key}": value for key, value in (cause["what_if"] or {}).items()}
    return {key: value for key, value in numbers.items() if isinstance(value, int | float)}


@pytest.mark.quiet
def test_several_hosts_requests_are_one_log_and_a_stall_is_found_in_each_hosts_requests(
    address, serve, record, background, tmp_path
):
    config = ["--bind", "0.0.0.0", "--protected-mode", "no", "--enable-debug-command", "yes"]
    redis = serve("redis", *config, tcp=True)
    a, b, c = (tmp_path / "hosts" / name for name in "abc")
    for host in (a, b, c):
        host.mkdir(parents=True)
    recorder = record("--pid", redis.pid, path=c / "server.forktail")

    def load(host, rate, seconds):
        words = ["-q", "--server", f"{address}:{redis.port}", "-o", host / "load.forktail"]
        words += ["--rate", rate, "-c", 4, "-t", "get", "--duration", seconds]
        return background(program("forktail"), "load", *words)

    loads = [load(a, 9000, 4), load(b, 3000, 3)]
    time.sleep(1.5)
    assert redis.ask("DEBUG", "SLEEP", "0.2") == ["OK"]
    assert [one.wait().status for one in loads] == [0, 0]
    assert recorder.interrupt().status == 0

    first, second = (Recording(host / "load.forktail") for host in (a, b))
    whole = explain(tmp_path)
    check_percentiles(whole, first, second)
    # In many windows of the log, too.
    bit_by_bit = explain(tmp_path, "--memory", "16M")
    check_percentiles(bit_by_bit, first, second)
    for one, other in zip(bit_by_bit["causes"], whole["causes"], strict=True):
        assert (one["cause"], one["requests"]) == (other["cause"], other["requests"])
        # Shares of a queue are rounded to ns once per window.
        assert figures(one) == pytest.approx(figures(other), rel=1e-9, abs=100)

    assert whole["causes"][0]["cause"] == "sleep"
    assert len(whole["loads"]) == 2
    (hop,) = whole["hops"]
    assert " on c" in hop["name"]

    # The complete part of a cut log counts, together with the other log.
    log = b / "load.forktail"
    os.truncate(log, log.stat().st_size * 2 // 3)
    left = Recording(log)
    assert len(left.requests) < len(second.requests)
    check_percentiles(explain(tmp_path), first, left)
