# SPDX-License-Identifier: MIT
"""The memory of `forktail explain` and `forktail report`. A run is read in stretches, as many as --memory requires.
Their number must not change the result, for any kind of run. With the default the run's length must not change the
memory.
"""

import json
import time
from itertools import chain, islice, zip_longest

import pytest

from cgroups import MemoryCgroup
from harness import BIN, forktail, needs_root, synthetic_run
from processes import run_measured
from real_run import RealRun, stop_for

# Small enough for one or two seconds of a busy server to be several stretches, and large enough for each of the runs
# below to be one.
LITTLE, MUCH = "32M", "2G"
DEFAULT_BYTES = 256 << 20


@pytest.fixture
def recorded_load(tmp_path):
    """recorded_load(servers, *words, disturb=f, after=s): the directory of a run of a load on these servers. f() is
    called s seconds after the load began. log: whether the run has a request log."""

    def make(servers, *words, disturb, after, log=True):
        with RealRun(tmp_path / "run") as run:
            run.record(*(server.pid for server in servers))
            run.load(*words, log=log)
            time.sleep(after)
            disturb()
            run.finish()
        return run.path

    return make


def save(redis):
    assert redis.ask("BGSAVE") == ["Background saving started"]


def stall(redis):
    redis.ask("DEBUG", "SLEEP", "0.1")


def explained(run, memory, *words):
    """An explanation with this much memory, as text and as JSON."""
    as_json = run.parent / "explanation"
    ended = forktail("explain", run, *words, "--json-to", as_json, "--memory", memory)
    assert ended.status == 0, ended.err
    return ended.out, as_json.read_text()


def differences(one, other, place=""):
    """The places where two JSON values differ."""
    if type(one) is type(other) is dict:
        both = ((f".{key}", one.get(key), other.get(key)) for key in {**one, **other})
    elif type(one) is type(other) is list:
        both = ((f"[{i}]", *pair) for i, pair in enumerate(zip_longest(one, other)))
    else:
        return [] if one == other else [f"{place}: {one} rather than {other}"]
    return chain.from_iterable(differences(a, b, place + key) for key, a, b in both)


def assert_same(little, much):
    """Two explanations as JSON are equal, byte for byte."""
    if little != much:
        first = islice(differences(json.loads(little), json.loads(much)), 5)
        pytest.fail("\n".join(first) or "the same values in other words")


def sums_of(explanation):
    """What is reported about all slow requests together. The answer names the culprit of the episodes."""
    return {
        k: v for k, v in json.loads(explanation).items() if k not in ("answer", "episodes", "warnings", "slow_requests")
    }


def assert_same_for_any_memory(run, *requests):
    """requests: ["--requests"], to compare each slow one. Returns an explanation of the slower half of the requests."""
    (little_text, little), (much_text, much) = (explained(run, memory, *requests) for memory in (LITTLE, MUCH))
    assert little_text == much_text
    assert_same(little, much)
    (_, little), (_, much) = (explained(run, memory, "--slow", "p50") for memory in (LITTLE, MUCH))
    if sums_of(little) != sums_of(much):  # with little memory, --slow p50 loses some slow requests
        assert_same(little, much)
    return json.loads(much)


# On a busy machine, whatever makes requests slow may take longer than a stretch of little memory. What is reported
# about such an episode depends on the memory.
@pytest.mark.quiet
@needs_root
class TestInOneStretchAndInMany:
    def test_an_open_loop_with_a_snapshot_has_the_same_explanation(self, serve, recorded_load):
        redis = serve("redis", "--enable-debug-command", "yes")
        redis.ask("DEBUG", "POPULATE", "500000", "key", "100")
        words = ["--rate", 20_000, "--duration", 4, "-r", 500_000, "-d", 100, "--ratio", "1:4"]
        run = recorded_load([redis], *redis.load_words(), *words, disturb=lambda: save(redis), after=1)
        explanation = assert_same_for_any_memory(run, "--requests")
        assert explanation["requests"]["count"] == 80_000
        assert len(explanation["causes"]) > 2

        # A part, of which more is read than itself: its first requests may have waited from before.
        words = ["--since", "+2s", "--until", "+3s"]
        part = {memory: explained(run, memory, *words)[1] for memory in (LITTLE, "64M", MUCH)}
        explanation = json.loads(part[MUCH])
        assert explanation["requests"]["count"] == 20_000
        assert explanation["episodes"]
        assert_same(part[LITTLE], part[MUCH])
        assert_same(part["64M"], part[MUCH])

    def test_a_pipelined_closed_loop_has_the_same_explanation_with_less_memory(self, serve, recorded_load):
        redis = serve("redis", "--enable-debug-command", "yes")
        words = ["-n", 1_000_000, "-P", 16, "-c", 20, "-r", 100_000]
        run = recorded_load([redis], *redis.load_words(), *words, disturb=lambda: stall(redis), after=1)
        assert assert_same_for_any_memory(run, "--requests")["requests"]["count"] == 1_000_000
        little, much = (run_measured(BIN / "forktail", "explain", run, "--memory", size) for size in (LITTLE, MUCH))
        assert (little.status, much.status) == (0, 0), little.err + much.err
        assert 0 < little.peak_bytes < much.peak_bytes

    def test_requests_through_a_proxy_have_the_same_explanation(self, serve, recorded_load):
        servers = [serve("redis", "--enable-debug-command", "yes", tcp=True) for _ in range(2)]
        addresses = [server.address() for server in servers]
        proxy = serve("nutcracker", tcp=True, of=addresses)
        behind = ",".join(f"server{i + 1}={address}" for i, address in enumerate(addresses))
        words = ["-p", proxy.port, "--behind", behind, "-n", 200_000, "-P", 16, "-c", 20, "-r", 100_000]
        run = recorded_load([*servers, proxy], *words, disturb=lambda: stall(servers[1]), after=0.5)
        explanation = assert_same_for_any_memory(run, "--requests")
        assert explanation["requests"]["count"] == 200_000
        assert len(explanation["hops"]) == 3

    def test_a_memcached_with_threads_has_the_same_explanation(self, serve, recorded_load):
        memcached = serve("memcached", "-t", "4")
        words = ["-n", 150_000, "-c", 40, "-r", 100_000]
        run = recorded_load(
            [memcached], *memcached.load_words(), *words, disturb=lambda: stop_for(memcached.pid, 0.1), after=0.5
        )
        explanation = assert_same_for_any_memory(run, "--requests")
        assert explanation["requests"]["count"] == 150_000
        assert len(explanation["hops"]) > 1

    def test_iterations_instead_of_requests_have_the_same_explanation(self, serve, recorded_load):
        redis = serve("redis", "--enable-debug-command", "yes")
        redis.ask("DEBUG", "POPULATE", "500000", "key", "100")
        words = ["--rate", 20_000, "--duration", 3, "-r", 500_000]
        run = recorded_load([redis], *redis.load_words(), *words, disturb=lambda: save(redis), after=1, log=False)
        requests = assert_same_for_any_memory(run)["requests"]
        assert requests["from"] == "iterations"
        assert requests["count"] > 0

        little, much = (explained(run, memory, "--requests")[1] for memory in (LITTLE, MUCH))
        assert_same(little, much)
        ids = [request["id"] for request in json.loads(much)["slow_requests"]]
        assert len(set(ids)) == len(ids)


@pytest.fixture
def limited():
    """limited(*words): the standard output of a forktail that has no more memory than documented for the default."""
    with MemoryCgroup(DEFAULT_BYTES) as cgroup:

        def run(*words):
            ended = run_measured(*cgroup.within(BIN / "forktail", *words), timeout=120)
            assert ended.status == 0, ended.err  # 137: the kernel killed it for lack of memory
            assert 0 < ended.peak_bytes < DEFAULT_BYTES
            return ended.out

        yield run


# These do not test speed. When runs were loaded completely, they took 0.4 to 2 GB.
def test_20_million_requests_take_no_more_memory_than_documented(limited, tmp_path):
    run, explanation = synthetic_run(tmp_path / "run", 20, 50_000), tmp_path / "explanation"
    limited("explain", run, "--json-to", explanation)
    assert json.loads(explanation.read_text())["requests"]["count"] == 20_000_000


def test_a_page_or_only_slow_requests_take_no_more_memory_than_documented(limited, tmp_path):
    run, page = synthetic_run(tmp_path / "run", 4, 50_000), tmp_path / "page.html"
    limited("report", run, "-o", page)
    assert page.stat().st_size > 100_000
    assert json.loads(limited("explain", run, "--json", "--slow", "1us"))["slow"]["count"] == 4_000_000


def test_a_long_time_of_a_servers_spans_and_tallies_takes_no_more_memory_than_documented(limited, tmp_path):
    run = synthetic_run(tmp_path / "run", 0.04, 100)
    requests = json.loads(limited("explain", run, "--json"))["requests"]
    assert requests["count"] == 40_000
    assert requests["duration_ns"] == pytest.approx(400e9, rel=0.001)
    # Each request is then a separate episode, because they do not overlap.
    limited("explain", run, "--slow", "1us")
    limited("report", run, "-o", tmp_path / "page.html")
