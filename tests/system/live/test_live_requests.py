# SPDX-License-Identifier: MIT
"""Metrics and watch of a recorder with --requests: every request of real clients is counted exactly once, for its
server and command, as the server itself counts it.
"""

import json
import signal
import time

import pytest

from forktail.servers.listen import free_port
from harness import eventually, forktail, needs, needs_root, run_program
from scrape import get, series, values
from server_counts import calls

pytestmark = needs_root


class Ring:
    """A recorder of a ring whose guard serves metrics."""

    def __init__(self, record, directory, *targets):
        self.path, self._metrics = directory / "ring", str(directory / "metrics.sock")
        self.recorder = record(
            "--keep", "1m,200MB", "--requests=1/1", "--metrics", self._metrics, *targets, path=self.path
        )  # fmt: skip
        assert eventually(lambda: self.text, 30), self.recorder.err

    @property
    def text(self):
        return get(self._metrics).body

    def counts(self, kinds):
        """The requests so far of each (server, command, outcome)."""
        v, labels = values(self.text), ("server", "command", "outcome")
        names = {
            kind: series("forktail_request_seconds_count", **dict(zip(labels, kind, strict=True))) for kind in kinds
        }
        return {kind: v.get(name, 0) for kind, name in names.items()}

    def check(self, expected):
        """These are the counts, at the latest when the guard has read what the recorder writes twice a second."""

        def reached():
            counts = self.counts(expected)
            return all(counts[kind] >= count for kind, count in expected.items())

        eventually(lambda: reached() or time.sleep(0.1), 20)
        assert self.counts(expected) == expected


@pytest.fixture
def ring(record, tmp_path):
    return lambda *targets: Ring(record, tmp_path, *targets)


def benchmark(*words):
    ran = run_program("redis-benchmark", "-q", *words, timeout=120)
    assert ran.status == 0, ran.err


def clients(ring):
    """Requests by client in the last minute, as watch prints them."""
    once = forktail("watch", ring, "--once", "--json")
    assert once.status == 0, once.err
    counts = {}
    for server in json.loads(once.out)["servers"]:
        for one in server["clients"]:
            counts[one["client"]] = counts.get(one["client"], 0) + one["count"]
    return counts


@needs("promtool")
@pytest.mark.quiet  # on a busy machine events may be lost
def test_metrics_count_every_request_once_as_the_server_does(serve, ring):
    tcp, local = serve("redis", tcp=True), serve("redis")
    r = ring("--pid", tcp.pid, "--pid", local.pid)
    tcp.ask("CONFIG", "RESETSTAT")
    local.ask("CONFIG", "RESETSTAT")
    benchmark("-p", tcp.port, "-t", "set,get", "-n", 20_000, "-c", 10)
    benchmark("-p", tcp.port, "-t", "get", "-n", 60_000, "-c", 7, "-P", 16)
    benchmark("-p", tcp.port, "-t", "set", "-n", 3000, "-c", 10, "-k", 0)
    benchmark("-s", local.socket, "-t", "incr", "-n", 20_000, "-c", 10)
    errors_and_misses = "HSET key:__rand_int__ f v\nGET none\n" * 50
    assert run_program("redis-cli", "-p", tcp.port, input=errors_and_misses).status == 0

    at_port, at_socket = f"redis-server:{tcp.port}", f"redis-server:{local.socket}"
    assert (calls(tcp, "get"), calls(tcp, "set")) == (80_050, 23_000)
    expected = {
        (at_port, "GET", "ok"): 80_000,
        (at_port, "SET", "ok"): 23_000,
        (at_socket, "INCR", "ok"): 20_000,
        (at_port, "HSET", "error"): 50,
        (at_port, "GET", "miss"): 50,
        (at_socket, "GET", "ok"): 0,
        (at_port, "HSET", "ok"): 0,
        ("other", "GET", "ok"): 0,
    }
    r.check(expected)
    time.sleep(1.5)  # nothing more comes
    assert r.counts(expected) == expected
    text = r.text
    v = values(text)
    assert v["forktail_request_sample"] == 1
    assert v["forktail_requests_recorded_seconds_total"] > 1
    of_get = {"server": at_port, "command": "GET", "outcome": "ok"}
    assert v[series("forktail_request_seconds_bucket", **of_get, le="+Inf")] == 80_000
    assert v[series("forktail_request_seconds_bucket", **of_get, le="1e-06")] == 0
    assert v[series("forktail_request_seconds_sum", **of_get)] > 80_000 * 1e-6
    at_each = {"server": at_port, "client": "redis-benchmark"}, {"server": at_socket, "client": "redis-benchmark"}
    by_port, by_socket = (v[series("forktail_client_requests_total", **labels)] for labels in at_each)
    # Of many connections in a short time the kernel does not report some: these clients are an address.
    assert 102_900 <= by_port < 103_050 and 20_000 <= by_socket < 20_050
    assert v[series("forktail_client_requests_total", server=at_port, client="redis-cli")] >= 100
    assert v[series("forktail_client_request_time_seconds_total", **at_each[0])] > 103_000 * 1e-6
    checked = run_program("promtool", "check", "metrics", input=text)
    assert (checked.out, checked.err) == ("", "")

    # The same requests by client, once watch shows the second in which they ended. Each benchmark also sends a few to
    # learn the server's settings.
    by_client = {}

    def shown():
        nonlocal by_client
        by_client = clients(r.path)
        return by_client.get("redis-benchmark", 0) >= 122_900 and by_client.get("redis-cli", 0) >= 100

    assert eventually(shown, 20), by_client
    assert by_client["redis-benchmark"] < 123_100
    assert by_client["redis-cli"] < 110


def test_requests_of_a_server_that_begins_later_have_its_name_at_once(background, ring, tmp_path):
    port = free_port()

    def start():
        return background("redis-server", "--port", port, "--save", "", cwd=tmp_path)

    def answers():
        return eventually(lambda: run_program("redis-cli", "-p", port, "PING").out == "PONG\n", 10)

    redis = start()
    assert answers()
    r = ring("--port", port)
    benchmark("-p", port, "-t", "set", "-n", 2000, "-c", 5)
    redis.signal(signal.SIGKILL)
    redis.wait(10)
    start()
    assert eventually(lambda: "began" in r.recorder.err, 30), r.recorder.err
    assert answers()
    time.sleep(0.5)
    benchmark("-p", port, "-t", "set", "-n", 3000, "-c", 5)
    r.check({(f"redis-server:{port}", "SET", "ok"): 5000, ("other", "SET", "ok"): 0})


def test_requests_at_a_port_that_a_server_opens_later_have_its_name_at_once(serve, ring):
    redis = serve("redis")
    r = ring("--pid", redis.pid)
    port = free_port()
    named, other = (f"redis-server:{port}", "SET", "ok"), ("other", "SET", "ok")
    assert redis.ask("CONFIG", "SET", "port", str(port)) == ["OK"]

    def counted():
        benchmark("-p", port, "-t", "set", "-n", 100, "-c", 5)
        time.sleep(1)
        return any(r.counts([named, other]).values())

    assert eventually(counted, 30)
    counts = r.counts([named, other])
    assert counts[named] > 0
    assert counts[other] == 0
