# SPDX-License-Identifier: MIT
"""Several independent servers: the same keys go to the same server as through a real twemproxy, for Redis and
memcached, and a dead server delays no other.
"""

import signal

import numpy as np
import pytest
from load_run import check_refused

from fake import greeting_answer
from forktail.servers import Behind
from harness import ft, load


def each(addresses):
    """The options with which a load distributes its keys over these servers."""
    return [word for address in addresses for word in ("--server", address)]


def addresses_of(instances):
    return [one.address() for one in instances]


def proxy_of(servers, names, instances, *settings):
    """A twemproxy's socket. Without names ("") it hashes the servers' addresses."""
    behind = [Behind(name, one.address()) for name, one in zip(names, instances, strict=True)]
    return servers.start("nutcracker", behind=behind, config=list(settings))[0].socket


def test_redis_has_the_same_keys_on_the_same_instances_with_the_proxy_and_without_it(servers, start_load):
    instances = servers.start("redis", count=4, tcp=True)
    redis = [one.connection() for one in instances]
    proxy = proxy_of(servers, [""] * 4, instances)
    fill = ["--fill", 5000, "-c", 4, "--key-prefix", "some key:"]
    ran = load("-q", "--no-observer", "-s", proxy, *fill)
    assert ran.status == 0, ran.err
    by_proxy = [sorted(one.ask("KEYS", "*")) for one in redis]
    assert all(by_proxy)  # the ports decide how many each gets
    for one in redis:
        one.ask("FLUSHALL")
    run = start_load(*each(addresses_of(instances)), *fill).done()
    assert [sorted(one.ask("KEYS", "*")) for one in redis] == by_proxy
    assert [node["requests"] for node in run.figures["nodes"]] == [len(keys) for keys in by_proxy]


def test_memcached_has_the_same_keys_on_the_same_instances_in_each_protocol(servers, start_load):
    instances = servers.start("memcached", count=3, tcp=True)
    proxy = proxy_of(servers, [""] * 3, instances, "redis: false")
    ran = load(
        "-q", "--no-observer", "-s", proxy, "--protocol", "memcache_text", "--fill", 2000, "-c", 3, "-P", 1
    )  # fmt: skip
    assert ran.status == 0, ran.err
    # All values set through the proxy are found without it, so every key is where it was looked for.
    for protocol in ("memcache_text", "memcache_binary", "memcache_meta"):
        run = start_load(
            *each(addresses_of(instances)), "--protocol", protocol, "--ratio", "0:1", "-r", 2000, "--key-pattern",
            "sequential", "-n", 2000, "-c", 3, "-P", 4,
        ).done()  # fmt: skip
        figures = (run.total["requests"], run.total["misses"], len(run.figures["nodes"]))
        assert figures == (2000, 0, 3), protocol


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_the_log_has_the_server_behind_the_proxy_for_each_request(servers, start_load, named):
    instances = servers.start("redis", count=3, tcp=True)
    redis, addresses = [one.connection() for one in instances], addresses_of(instances)
    names = ["server0", "server1", "server2"] if named else ["", "", ""]
    proxy = proxy_of(servers, names, instances)
    behind = ",".join(f"{name}={address}" if name else address for name, address in zip(names, addresses, strict=True))

    def through(*words):
        return start_load("-s", proxy, "--behind", behind, *words).done().log

    def counts(log):
        return np.bincount(log.requests.behind, minlength=4).tolist()

    def keys():
        return [int(one.ask("DBSIZE")[0]) for one in redis]

    fill = through("--fill", 20000, "-c", 4)
    assert counts(fill) == [0, *keys()]
    expected = [(name or address, address) for name, address in zip(names, addresses, strict=True)]
    assert [(one["name"], one["address"]) for one in fill.manifest["behind"]] == expected
    # A custom command's only key is known too. One with several keys has none, and neither has PING.
    for one in redis:
        one.ask("FLUSHALL")
    sadd = ["--command", "SADD set:__int__ x", "-r", 1000, "--key-pattern", "sequential", "-n", 1000, "-c", 1]
    assert counts(through(*sadd)) == [0, *keys()]
    assert counts(through("--command", "MGET a __key__", "-n", 50))[0] == 50
    assert counts(through("--command", "PING", "-n", 50))[0] == 50


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--behind a:1", "Name the log with -o"),
        ("--behind a:1,b:2,a:1 -o x", "names a:1 twice"),
        ("--behind =a:1 -o x", "has no name before its ="),
        ("--behind a:1, -o x", "--behind"),
        ("--behind redis://a:1 -o x", "got a URI"),
        ("--behind a:1 -o x --cluster --server b:1", "servers of a proxy"),
        ("--behind a:1 -o x --latency", "Remove --replay, --pubsub"),
        ("--server 127.0.0.1:1 --server 127.0.0.1:2 --read-from any", ""),
    ],
)
def test_options_that_exclude_several_servers_or_servers_behind_a_proxy(words, says):
    check_refused(says, *words.split(), status=2)


def test_when_one_of_several_servers_dies_requests_for_its_keys_end_and_the_others_continue(servers, start_load):
    a, b = servers.start("redis", count=2, tcp=True)
    run = start_load(*each(addresses_of([a, b])), "--rate", 1000, "--duration", 6, "-r", 1000, "-c", 4, "--retry", "1s")
    run.under_way()
    a.child.send_signal(signal.SIGKILL)
    run.wait()
    assert run.total["requests"] == len(run.log.requests) == 6000
    [outage] = run.figures["outages"]
    assert (outage["server"], outage["failed"]) == (a.address(), run.total["errors"])
    assert run.total["errors"] > 100
    errors = {node["server"]: node["errors"] for node in run.figures["nodes"]}
    assert errors[b.address()] == 0


def test_where_servers_close_when_a_connection_sets_its_name_as_proxies_do_a_reopened_one_sets_none(
    fake_server, start_load
):
    def talk(peer):
        answers = 0
        while (request := peer.hear()) and b"SETNAME" not in request:
            greeting = greeting_answer(request)
            answers += not greeting
            if not peer.say(greeting or b"$1\r\nx\r\n") or answers == 5:
                return

    two = [f"127.0.0.1:{fake_server(talk, unix=False).port}" for _ in range(2)]
    run = start_load(
        *each(two), "-t", "get", "-n", 200, "-r", 1000, "-c", 1, "--backoff", "1ms", "--retry", "5s"
    )  # fmt: skip
    run.wait()
    assert len(run.log.requests) == 200
    # At most one in six met the end of a connection.
    assert run.log.with_status(ft.STATUS_OK) >= 150


def test_a_server_that_does_not_exist_or_is_named_twice(serve):
    check_refused("", *each(["127.0.0.1:1"] * 2), "-q")
    ran = load(*each([serve("redis", tcp=True).address()] * 2), "-q")
    assert ran.status != 0
    assert "named twice" in ran.err
