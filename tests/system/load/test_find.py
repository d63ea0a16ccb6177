# SPDX-License-Identifier: MIT
"""The search for a rate on real servers: one whose capacity is known because each command sleeps, limits that no rate
can meet, and what is refused.
"""

import itertools
import json

import pytest

from harness import Recording, load, needs
from server_counts import info


def find(redis, limit, *words):
    """Adds the server and short runs to the words of a search."""
    short = ["--duration", "400ms", "--warmup", "100ms", "--repeat", 2, "--seed", 1, "--no-observer"]
    return load("-s", redis.socket, "--find", limit, *short, *words, timeout=120)


def test_a_server_that_sleeps_10_ms_per_command_takes_at_most_100_requests_per_second(serve, tmp_path):
    redis = serve("redis", "--enable-debug-command", "yes")
    figures, csv, log = tmp_path / "json", tmp_path / "csv", tmp_path / "log"
    words = ["--command", "DEBUG SLEEP 0.01", "-c", 8, "--json", figures, f"--csv={csv}", "-o", log]
    ran = find(redis, "p50 < 40ms", *words)
    assert ran.status == 0, ran.out + ran.err
    document = json.loads(figures.read_text())
    search = document["search"]
    highest, beyond, curve = search["highest"], search["beyond"], search["curve"]
    assert search["limit"] == "p50 < 40ms"
    assert search["result"] in ("found", "undecided")  # on a busy host the runs may vary too much
    assert search["closed_loop_per_s"] <= 101
    assert highest["rate"] <= 105  # answers may be 10 ms of 400 behind
    assert highest["rate"] < beyond["rate"]
    assert 2 * highest["held"] > highest["runs"]
    assert 2 * beyond["held"] < beyond["runs"]
    assert highest["end_ns"] - highest["start_ns"] > 300_000_000
    assert "<- highest" in ran.out
    assert f"p50 < 40ms holds up to {highest['rate']:.10g} requests/s" in ran.out

    # Each run says what it found, and the log has where each began.
    rates = [point["rate"] for point in curve]
    assert rates[0] > 0
    assert all(one < following for one, following in itertools.pairwise(rates))
    runs = [run for run in document["runs"] if "rate" in run]
    assert len(runs) == len(document["runs"]) - 1  # without the closed loop
    assert all(run["why"] for run in runs)
    assert all(run["total"]["latency_ns"]["p50"] < 40_000_000 for run in runs if run["held"])
    lines = csv.read_text()
    assert lines.startswith("rate,requests_per_s,mean_ms,p50_ms,")
    assert lines.count("\n") == len(curve) + 1
    starts = [note for note in Recording(log).notes if note["kind"] == "load-start" and note["rate"] > 0]
    assert len(starts) == len(runs)


def test_a_limit_that_no_rate_meets_is_answered_with_status_1(redis, tmp_path):
    figures = tmp_path / "json"
    words = ["--duration", "20ms", "--warmup", "5ms", "--rate", 4000, "-c", 2, "--json", figures]
    ran = find(redis, "min < 1us", *words)
    assert ran.status == 1
    assert "at no rate down to " in ran.out
    search = json.loads(figures.read_text())["search"]
    assert search["result"] == "none held"
    assert "highest" not in search


@pytest.fixture
def failing(redis):
    """Words of a load of which every request fails."""
    redis.ask("SET", "text", "abc")
    return ["--command", "INCR text", "--duration", "50ms", "-c", 2]


def test_failed_requests_do_not_count_as_held(redis, failing):
    ran = find(redis, "max < 10s", *failing, "--rate", 500)
    assert ran.status == 1
    assert "at no rate down to" in ran.out
    assert "errors  held" in ran.out


def test_without_a_rate_to_begin_with_the_closed_loop_shows_that_every_request_fails(redis, failing):
    ran = find(redis, "max < 10s", *failing)
    assert ran.status == 3
    assert "every request failed: ERR value is not an integer" in ran.err


def test_a_limit_may_allow_failed_requests(redis, failing, tmp_path):
    figures = tmp_path / "json"
    find(redis, "max < 10s", *failing, "--rate", 500, "--find", "errors < 101", "--json", figures)
    search = json.loads(figures.read_text())["search"]
    assert search["limit"] == "max < 10s and errors < 101"
    assert search["highest"]["rate"] <= 2020  # 50 ms at 2,000/s are 100 errors


@needs("gnuplot")
def test_a_chart_is_drawn_with_gnuplot(redis, tmp_path):
    svg = tmp_path / "curve.svg"
    ran = find(redis, "p99 < 5s", "--rate", 400, "--duration", "50ms", "-c", 2, "--svg", svg)
    assert ran.status == 0, ran.err
    assert "<svg" in svg.read_text()
    assert "requests due per second" in svg.read_text()


@pytest.mark.parametrize(
    "limit, words, sentence",
    [
        ("p99", [], "has no comparison"),
        ("fork.share < 1%", [], "needs a recording"),
        ("GETT.p99 < 1ms", [], '--find: the load has no operation "GETT"'),
        ("p99 < 1ms", ["-t", "ping"], "one test, but -t names 2"),
        ("p99 < 1ms", ["-n", "10"], "Remove -n and -l"),
        ("p99 < 1ms", ["--fill", "10"], "--fill sets N keys and stops"),
        ("p99 < 1ms", ["--pubsub", "2"], "Remove --fill, --replay, --pubsub"),
        ("p99 < 1ms", ["--profile", "ramp:1-2x1s"], "--profile changes it"),
        ("p99 < 1ms", ["--fail-if", "p99>1s"], "--fail-if checks one"),
        (None, ["--svg", "x.svg"], ""),
    ],
)
def test_a_search_that_cannot_be_made_is_refused_before_any_request(redis, limit, words, sentence):
    ran = load("-s", redis.socket, *(["--find", limit] if limit else []), *words)
    assert ran.status == 2, ran.err
    assert sentence in ran.err
    assert "cmdstat_get" not in info(redis)
