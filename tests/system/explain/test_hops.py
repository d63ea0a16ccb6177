# SPDX-License-Identifier: MIT
"""Several recorded server processes: a stall made in one of them is found there, and requests to the others are not
blamed on it.
"""

import time
from collections import Counter
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from forktail.servers import Server
from harness import eventually, evidence, explain, needs, needs_root
from real_run import MS, RealRun, check_parts, episode_in, info, serve_more, stop_for

pytestmark = [pytest.mark.quiet, needs_root]


class Instances:
    """Three servers and any proxies in front of them, and a run of requests to them, until its `with` block ends."""

    def __init__(self, path):
        self._ends = ExitStack()
        self.servers = [self._start("redis", "--enable-debug-command", "yes") for _ in range(3)]
        self.addresses = [one.address() for one in self.servers]
        self.names = [f"redis-server {address}" for address in self.addresses]
        self.behind = ["--behind", ",".join(f"server{i + 1}={at}" for i, at in enumerate(self.addresses))]
        self.run = self._ends.enter_context(RealRun(path))

    def _start(self, kind, *words, **options):
        return self._ends.enter_context(Server(kind, *words, tcp=True, **options))

    def start_proxy(self):
        return self._start("nutcracker", of=self.addresses)

    def start_run(self, *words, proxies=()):
        """The caller asks for more connections than requests that can be delayed at once, so that no request waits for
        another one's connection."""
        self.run.record(*(one.pid for one in [*proxies, *self.servers]))
        self.run.load("--no-observer", "--rate", 1500, "--duration", 120, "-r", 100_000, *words)
        serve_more(self.servers, 1000)

    def stop(self, server):
        """Stops a server, and waits until all serve again. Returns when it was stopped."""
        stopped = stop_for(server.pid, 0.3)
        serve_more(self.servers, 200)
        return stopped

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self._ends.__exit__(*error)


@pytest.fixture
def instances(tmp_path):
    with Instances(tmp_path / "run") as instances:
        yield instances


def explained(path, slow):
    explanation = explain(path, "--requests", "--slow", slow)
    check_parts(explanation)
    return explanation


def check_stop(explanation, stopped, name):
    """The worst episode of an interval is a stop, nearly all of it at this hop. Returns the episode."""
    episode = episode_in(explanation, *stopped)
    assert episode["causes"][0]["cause"] == "stopped"
    assert episode["hops"][0]["name"] == name
    assert episode["hops"][0]["share"] > 0.9
    return episode


def stopped_ns(explanation, interval, behind=None):
    """How long the requests due in an interval were stopped, by hop; only those to a server behind the proxy, if
    given."""
    at = Counter()
    for one in explanation["slow_requests"]:
        if interval[0] <= one["start_ns"] < interval[1] and behind in (None, one.get("behind")):
            for part in one["parts"]:
                if part["cause"] == "stopped":
                    at[part.get("hop")] += part["direct_ns"] + part["queued_ns"]
    return at


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """Requests to three instances through a proxy. The second instance and the proxy are stopped, the third one forks.

    slow: the explanation with requests of 20 ms; every: with all of them.
    """
    path = tmp_path_factory.mktemp("proxied") / "run"
    with Instances(path) as instances:
        proxy = instances.start_proxy()
        forking = instances.servers[2]
        forking.ask("DEBUG", "POPULATE", "2000000", "key", "100")
        instances.start_run("-p", proxy.port, *instances.behind, "-c", 600, proxies=[proxy])
        instance_stopped, proxy_stopped = instances.stop(instances.servers[1]), instances.stop(proxy)
        assert forking.ask("BGSAVE") == ["Background saving started"]
        assert eventually(lambda: info(forking, "rdb_bgsave_in_progress") == "0", 60)
        serve_more(instances.servers, 200)
        instances.run.stop()
        text = instances.run.text("--slow", "20ms", "--all")
    return SimpleNamespace(
        slow=explained(path, "20ms"), every=explained(path, "1us"), text=text, proxy=f"nutcracker {proxy.address()}",
        addresses=instances.addresses, names=instances.names, instance_stopped=instance_stopped,
        proxy_stopped=proxy_stopped,
    )  # fmt: skip


@needs("nutcracker")
def test_each_process_is_one_hop_with_its_requests(proxied):
    hops, requests = proxied.every["hops"], proxied.every["requests"]
    assert sorted((one["name"], one["role"], one["comm"]) for one in hops) == [
        (proxied.proxy, "proxy", "nutcracker"),
        *((name, "instance", "redis-server") for name in sorted(proxied.names)),
    ]
    served = {one["name"]: one["served"] for one in hops}
    assert served.pop(proxied.proxy) == requests["count"]
    # Requests that were not sent have no server behind.
    assert sum(served.values()) + requests["by_status"].get("unsent", 0) == requests["count"]
    for one in hops:
        assert sum(cause["time_ns"] for cause in one["causes"]) == one["time_ns"]
    assert sum(one["time_ns"] for one in hops) <= proxied.every["slow"]["time_ns"]


@needs("nutcracker")
def test_a_stop_behind_a_proxy_is_found_at_its_instance(proxied):
    _, name, _ = proxied.names
    episode = check_stop(proxied.slow, proxied.instance_stopped, name)
    assert f"{name}: the server was stopped" in evidence(episode)
    at = {one: stopped_ns(proxied.every, proxied.instance_stopped, one) for one in proxied.addresses}
    one, stopped, other = proxied.addresses
    assert (at[one], at[other]) == ({}, {})
    assert list(at[stopped]) == [name]
    # 500 requests per second for 300 ms, each of which waited half of it on average.
    assert at[stopped][name] > 50 * 150 * MS


@needs("nutcracker")
def test_a_stop_of_the_proxy_is_found_at_the_proxy_whichever_server_requests_were_for(proxied):
    episode = check_stop(proxied.slow, proxied.proxy_stopped, proxied.proxy)
    assert f"{proxied.proxy}: the server was stopped" in evidence(episode)
    for address in proxied.addresses:
        assert list(stopped_ns(proxied.every, proxied.proxy_stopped, address)) == [proxied.proxy]


@needs("nutcracker")
def test_a_fork_is_found_at_the_instance_that_forked(proxied):
    parts = [part for one in proxied.every["slow_requests"] for part in one["parts"] if part["cause"] == "fork"]
    assert {part["hop"] for part in parts} == {proxied.names[2]}
    assert sum(part["direct_ns"] for part in parts) > 1 * MS


@needs("nutcracker")
def test_the_text_has_a_table_of_hops(proxied):
    assert "\nhop " in proxied.text
    assert f"\n{proxied.proxy}" in proxied.text
    assert f"\n{proxied.names[1]}" in proxied.text


@needs("nutcracker")
@pytest.mark.parametrize("in_kernel", [False, True], ids=["log-of-the-load", "log-of-the-kernel"])
def test_a_server_that_was_not_recorded_is_named_and_the_wait_for_it_is_not_the_network(serve, tmp_path, in_kernel):
    redis = serve("redis", tcp=True)
    proxy = serve("nutcracker", tcp=True, of=[redis.address()])
    with RealRun(tmp_path / "run") as run:
        run.record(proxy.pid, options=["--requests=1/1"] if in_kernel else [])
        words = ["--no-observer", "-p", proxy.port, "--rate", 1000, "--duration", 3, "-c", 100]
        run.load(*words, log=not in_kernel)
        time.sleep(1.5)
        stop_for(redis.pid, 0.3)
        assert run.client.wait().status == 0
        run.stop()
        explanation = run.explain()
    assert explanation["requests"]["unrecorded_peers"] == [redis.address()]
    assert "no recorded cause" in explanation["answer"]
    assert f"waiting for {redis.address()}, which was not recorded" in explanation["answer"]


@needs("nutcracker")
def test_with_two_proxies_in_front_of_the_same_instances_the_time_is_found_at_the_right_one(instances):
    one, other = instances.start_proxy(), instances.start_proxy()
    where = ["--server", one.address(), "--server", other.address()]
    instances.start_run(*where, *instances.behind, "-c", 300, proxies=[one, other])
    instance_stopped, one_stopped = instances.stop(instances.servers[1]), instances.stop(one)
    instances.run.stop()
    slow = explained(instances.run.path, "20ms")
    assert len(slow["hops"]) == 5
    check_stop(slow, instance_stopped, instances.names[1])
    check_stop(slow, one_stopped, f"nutcracker {one.address()}")


def test_without_a_proxy_the_hop_of_a_request_is_that_of_its_connection(instances):
    where = [word for address in instances.addresses for word in ("--server", address)]
    instances.start_run("-c", 200, *where)
    stopped = instances.stop(instances.servers[1])
    instances.run.stop()
    slow = explained(instances.run.path, "20ms")
    assert len(slow["hops"]) == 3
    episode = episode_in(slow, *stopped)
    assert episode["hops"][0]["name"] == instances.names[1]
    assert episode["causes"][0]["cause"] == "stopped"
    assert list(stopped_ns(slow, stopped)) == [instances.names[1]]
