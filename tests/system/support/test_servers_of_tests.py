# SPDX-License-Identifier: MIT
"""Servers as tests use them: each answers at its address, reports why it cannot start, and has ended afterwards, also
one that is stopped. What is more general is in tests/unit/python/test_servers.py.
"""

from pathlib import Path
from signal import SIGSTOP

import pytest

from forktail.failure import Failure
from forktail.servers import find_server
from harness import run_program
from server_counts import info, stats, tell

TCP = pytest.mark.parametrize("tcp", [False, True], ids=["socket", "port"])


def end(*servers):
    """Ends them in this order: nothing is left."""
    for server in servers:
        server.close()
        assert not Path(f"/proc/{server.pid}").exists()
        assert not Path(server.directory).exists()


def redis_cli(server, *words):
    where = ["-s", server.socket] if server.socket else ["-p", server.port]
    return run_program("redis-cli", *where, *words).out


@TCP
def test_a_redis_answers_and_has_ended_afterwards(serve, tcp):
    redis = serve("redis", "--appendonly", "yes", tcp=tcp)
    assert redis.ask("PING") == ["PONG"]
    assert redis.ask("SET", "k", "a\0b") == ["OK"]
    assert redis.ask("GET", "k") == ["a\0b"]
    assert redis.ask("INCR", "n") == ["1"]
    assert redis.ask("MGET", "n", "none") == ["1", ""]
    counts = info(redis)
    assert (counts["process_id"], counts["tcp_port"], counts["aof_enabled"]) == (str(redis.pid), str(redis.port), "1")
    assert redis_cli(redis, "GET", "n") == "1\n"
    end(redis)


@TCP
def test_a_memcached_answers_and_has_ended_afterwards(serve, tcp):
    memcached = serve("memcached", "-m", "32", tcp=tcp)
    assert (memcached.socket == "", memcached.port != 0) == (tcp, tcp)
    assert tell(memcached, "set k 5 0 3\r\na\r\n") == "STORED\r\n"
    assert tell(memcached, "get k none", "END\r\n") == "VALUE k 5 3\r\na\r\n\r\nEND\r\n"
    assert tell(memcached, "nonsense") == "ERROR\r\n"
    counts = stats(memcached)
    assert (counts["pid"], counts["curr_items"], counts["limit_maxbytes"]) == (memcached.pid, 1, 32 << 20)
    end(memcached)


def test_stopped_servers_end_too(serve):
    memcached = serve("memcached")
    proxies = [serve(kind, of=[memcached.address()]) for kind in ("nutcracker", "haproxy")]
    servers = [serve("redis"), *proxies, memcached]
    for server in servers:
        server.send_signal(SIGSTOP)
    end(*servers)


@pytest.mark.parametrize(
    ("kind", "words", "of", "why"),
    [
        ("redis", ["--maxmemory", "nonsense"], [], "maxmemory"),
        ("memcached", ["-I", "nonsense"], [], "Item max size"),
        ("nutcracker", ["distribution: nonsense"], ["127.0.0.1:1"], "distribution"),
        ("haproxy", ["nbthread 100000"], ["/nowhere"], "nbthread"),
    ],
)
def test_a_server_that_cannot_start_reports_why(serve, kind, words, of, why):
    with pytest.raises(Failure, match=why):
        serve(kind, *words, of=of)


@TCP
def test_twemproxy_spreads_keys_over_memcached_servers(serve, tcp):
    stores = [serve("memcached"), serve("memcached", tcp=True)]
    proxy = serve("nutcracker", "redis: false", tcp=tcp, of=[store.address() for store in stores])
    assert (proxy.socket == "", proxy.port != 0) == (tcp, tcp)
    found = []
    for key in (f"key:{number}" for number in range(50)):
        assert tell(proxy, f"set {key} 0 0 1\r\nv") == "STORED\r\n"
        assert tell(proxy, f"get {key}", "END\r\n") == f"VALUE {key} 0 1\r\nv\r\nEND\r\n"
        found += [number for number, store in enumerate(stores) if tell(store, f"get {key}", "END\r\n") != "END\r\n"]
    assert len(found) == 50
    assert set(found) == {0, 1}
    assert "nutcracker" in Path(proxy.log).read_text()
    end(proxy)


def test_twemproxy_answers_an_error_for_a_dead_server(serve):
    settings = ["redis: false", "distribution: modula", "timeout: 1000"]
    assert tell(serve("nutcracker", *settings, of=["127.0.0.1:1"]), "get k").startswith("SERVER_ERROR ")


def test_twemproxy_in_front_of_redis_servers(serve):
    stores = [serve("redis"), serve("redis", tcp=True)]
    proxy = serve("nutcracker", "distribution: modula", tcp=True, of=[store.address() for store in stores])
    for key in (f"key:{number}" for number in range(20)):
        assert redis_cli(proxy, "SET", key, "value") == "OK\n"
        assert redis_cli(proxy, "GET", key) == "value\n"
        assert sorted(store.ask("GET", key)[0] for store in stores) == ["", "value"]
    assert all(store.ask("DBSIZE") != ["0"] for store in stores)


@TCP
def test_haproxy_forwards_a_servers_answers_with_two_threads(serve, tcp):
    memcached = serve("memcached", tcp=not tcp)
    proxy = serve("haproxy", tcp=tcp, of=[memcached.address()])
    assert tell(proxy, "set k 0 0 1\r\nv") == "STORED\r\n"
    assert tell(memcached, "get k", "END\r\n") == "VALUE k 0 1\r\nv\r\nEND\r\n"
    assert len(list(Path(f"/proc/{proxy.pid}/task").iterdir())) == 2
    proxy.send_signal(SIGSTOP)
    end(proxy)


@pytest.mark.parametrize(("kind", "name"), [("redis8", "redis"), ("valkey", "valkey")])
def test_servers_of_a_later_debian_run_with_this_machines_paths_and_have_helpers(serve, kind, name):
    server = serve(kind, "--io-threads", "2", tcp=True)
    assert server.ask("SET", "k", "v") == ["OK"]
    assert info(server)[f"{name}_version"].startswith("8.")
    process = Path(f"/proc/{server.pid}")
    # Its own file, by a path of this machine.
    assert (process / "exe").readlink() == Path(find_server(kind)[0]).resolve()
    assert (process / "comm").read_text() == f"{name}-server\n"
    assert "io_thd_1\n" in [(thread / "comm").read_text() for thread in (process / "task").iterdir()]
