# SPDX-License-Identifier: MIT
"""Requests of clients that nobody here wrote, by command: as many in the recording as the server has counted (INFO
commandstats), under the client that sent them. What is left out is counted in the recording's note.
"""

import json
import os
import re
import socket
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from harness import TREE, Recorder, eventually, forktail, ft, needs, needs_root, run_program
from seen_requests import note, seen_commands
from server_counts import stats

pytestmark = [pytest.mark.quiet, needs_root]

CLIENTS = Path(__file__).parent / "clients"
JAVA = TREE / "build-java"
PYTHON = "/usr/bin/python3"
DEBIAN = {"NODE_PATH": "/usr/share/nodejs"}


def calls_by_command(redis):
    """How often a Redis has run each command. Subcommands count as their command."""
    counts = Counter()
    for name, calls in re.findall(r"cmdstat_([^|:]+).*?calls=(\d+)", redis.ask("INFO", "commandstats")[0]):
        counts[name.upper()] += int(calls)
    return counts


def run_client(redis, *words):
    """Runs a client. Returns what it did, as the server counts it: .counts, .begin_ns, .end_ns."""
    before, begin_ns = calls_by_command(redis), time.monotonic_ns()
    ended = run_program(*words, env=DEBIAN)
    end_ns = time.monotonic_ns()
    assert ended.status == 0, ended.err
    counts = calls_by_command(redis) - before
    del counts["INFO"]
    return SimpleNamespace(counts=counts, begin_ns=begin_ns, end_ns=end_ns)


def kernel_counts(kernel, ran):
    """Requests by command while a client ran."""
    q = kernel.requests
    return seen_commands(kernel, (q.start_ns >= ran.begin_ns) & (q.start_ns <= ran.end_ns))


def benchmark(words):
    return None, ("redis-benchmark", "-p", "PORT", "-q", *words.split())


# By name: a command that fails without the client's library, and the client.
PROGRAMS = {
    "redis-benchmark": benchmark(
        "-n 1000 -t ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"
    ),
    "redis-benchmark, pipelines": benchmark("-n 20000 -P 16 -r 1000 -t set,get,incr,lpush"),
    "redis-benchmark, large answers": benchmark("-n 2000 -P 8 -t lrange_600"),
    "redis-benchmark, new connections": benchmark("-n 1000 -k 0 -t set"),
    "redis-benchmark, threads": benchmark("-n 1000 --threads 2 -t set,get -3"),
    "redis-py": ((PYTHON, "-c", "import redis"), (PYTHON, CLIENTS / "pipelines.py", "PORT")),
    "phpredis": (("php", "-r", "new Redis();"), ("php", CLIENTS / "client.php", "PORT")),
    "redis-rb": (("ruby", "-e", "require 'redis'"), ("ruby", CLIENTS / "client.rb", "PORT")),
    "node-redis": (("node", "-e", "require('redis')"), ("node", CLIENTS / "client.js", "PORT")),
    # script/java fetches Jedis and Lettuce.
    "Jedis and Lettuce": (("test", "-e", JAVA / "made"), ("java", "-cp", f"{JAVA}/*:{JAVA}", "Clients", "PORT")),
}


def exists(words):
    try:
        return run_program(*words, env=DEBIAN).status == 0
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def all_clients(module_serve, tmp_path_factory):
    """A recording in which all clients ran that this machine has, and what each of them did."""
    redis = module_serve("redis", tcp=True)
    with Recorder(tmp_path_factory.mktemp("clients") / "r", "--pid", redis.pid, "--requests=1/1") as recorder:
        ran = {
            name: run_client(redis, *(redis.port if word == "PORT" else word for word in words))
            for name, (needed, words) in PROGRAMS.items()
            if needed is None or exists(needed)
        }
        return recorder.stop(), ran


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_command_of_a_client_is_seen_as_often_as_the_server_counts_it(all_clients, name):
    kernel, all_ran = all_clients
    if name not in all_ran:
        pytest.skip(f"no {name}: see CONTRIBUTING.md")
    ran = all_ran[name]
    seen = kernel_counts(kernel, ran)
    if not ran.counts["CLIENT"]:
        del seen["CLIENT"]  # SETINFO, which Redis 7.0 refuses and does not count
    named = Counter()  # commands that the recording does not name are one
    for command, count in ran.counts.items():
        named[command if command in kernel.manifest["ops"] else "other"] += count
    assert seen == named, note(kernel)


def test_each_client_program_of_one_host_is_a_row_with_as_many_requests_as_it_sent(all_clients):
    kernel, all_ran = all_clients
    requests = Counter()
    for client in json.loads(forktail("explain", kernel.path, "--json").out)["clients"]:
        requests[client["pid"]] += client["requests"]
    q = kernel.requests
    processes = set()
    for name, ran in all_ran.items():
        own = np.unique(q.connection[(q.start_ns >= ran.begin_ns) & (q.start_ns <= ran.end_ns)])
        of_process = Counter(int(kernel.connections[c].client_pid) for c in own)
        # Of many connections in a short time the kernel skips some.
        unknown = of_process.pop(0, 0)
        assert len(of_process) == 1 and unknown <= len(own) // 50, (name, of_process, unknown)
        (pid,) = of_process
        missing = sum(kernel_counts(kernel, ran).values()) - requests[pid]
        assert missing == unknown, name  # of the short ones each has one request
        processes.add(pid)
    assert len(processes) == len(all_ran) > 5


def ask(client, *words):
    client.sendall(b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)]))
    assert client.recv(10000)


def test_connections_of_one_process_are_told_apart_by_the_names_that_they_have(serve, record):
    redis = serve("redis", tcp=True)
    address = ("127.0.0.1", redis.port)
    with socket.create_connection(address) as older:
        ask(older, b"CLIENT", b"SETNAME", b"before")  # the recorder does not see this
        recorder = record("--pid", redis.pid, "--requests=1/1")
        with socket.create_connection(address) as named, socket.create_connection(address) as other:
            ask(older, b"PING")
            ask(named, b"PING")
            ask(named, b"CLIENT", b"SETNAME", b"billing")
            ask(named, b"CLIENT", b"SETINFO", b"LIB-NAME", b"own-library")  # Redis 7.0 refuses it
            ask(other, b"HELLO", b"3", b"SETNAME", b"web")
            ask(other, b"PING")
            kernel = recorder.stop()
    own = f"{Path('/proc/self/comm').read_text().strip()} ({os.getpid()})"
    explained = json.loads(forktail("explain", kernel.path, "--json", "--by", "connection").out)
    rows = {client["name"]: client["requests"] for client in explained["clients"]}
    assert rows == {own: 1, f"billing, {own}, own-library": 3, f"web, {own}": 2}
    assert len(explained["connections"]) == 3
    assert "connection" in forktail("explain", kernel.path, "--by", "connection").out
    table = forktail("explain", kernel.path, "--by", "size").out
    assert re.search(r"^request to 64 B, reply to 64 B\s+5\b", table, re.M), table


def test_processes_and_names_of_tcp_clients_are_left_out_where_addresses_are_hashed(serve, record):
    redis = serve("redis", tcp=True)
    recorder = record("--pid", redis.pid, "--requests=1/1", "--hash-clients")
    with socket.create_connection(("127.0.0.1", redis.port)) as client:
        ask(client, b"CLIENT", b"SETNAME", b"billing")
        ask(client, b"PING")
        kernel = recorder.stop()
    (client,) = json.loads(forktail("explain", kernel.path, "--json").out)["clients"]
    assert re.fullmatch(r"client-[0-9a-f]{16}", client["name"])
    assert (client["pid"], client["comm"], client["client_name"]) == (0, "", "")


def test_above_10_000_requests_per_second_the_sample_becomes_1_in_16_and_the_whole_log_is_of_it(serve, record):
    redis = serve("redis", tcp=True)
    recorder = record("--pid", redis.pid, "--requests")
    words = "-n 4000000 -c 200 -P 16 -t get"
    ran = run_client(redis, "redis-benchmark", "-p", redis.port, "-q", *words.split())
    kernel = recorder.stop()
    reduced = note(kernel, "requests-sample")
    assert reduced["sample"] == 16

    # Connections of the sample have all of their requests, the others none since the note.
    q = kernel.requests[kernel.requests.op == kernel.manifest["ops"].index("GET")]
    unsampled = [id for id, c in kernel.connections.items() if c.client_flags & ft.CLIENT_UNSAMPLED]
    others = q.start_ns[np.isin(q.connection, unsampled)]
    assert (others < reduced["t_ns"] + 100_000_000).all()
    assert len(set(q.connection)) == 200
    sampled = len(q) - len(others)
    assert 0 < sampled < ran.counts["GET"] / 4
    explained = json.loads(forktail("explain", recorder.path, "--by", "command", "--json").out)
    assert explained["loads"][0]["sample"] == 16
    assert {one["name"]: one["requests"] for one in explained["commands"]}["GET"] == sampled


def test_what_has_no_answer_of_its_own_is_left_out_and_counted_and_later_requests_are_right(serve, record):
    if not exists((PYTHON, "-c", "import redis")):
        pytest.skip("redis-py is missing")
    redis = serve("redis", "--repl-diskless-sync-delay", "0", tcp=True)
    recorder = record("--pid", redis.pid, "--requests=1/1")
    ran = run_client(redis, PYTHON, CLIENTS / "pushes.py", redis.port)
    replica = serve("redis", tcp=True)
    replica.ask("REPLICAOF", "127.0.0.1", str(redis.port))
    info = replica.instance.connection().read_info
    assert eventually(lambda: info().get("master_link_status") == "up", 30)
    kernel = recorder.stop()
    seen, counted = kernel_counts(kernel, ran), ran.counts
    answered = ("ECHO", "GET", "PUBLISH", "RPUSH", "PING", "HELLO")
    assert {name: seen[name] for name in answered} == {name: counted[name] for name in answered}
    assert not set(seen) & {"BLPOP", "XREAD", "SUBSCRIBE", "MONITOR", "PSYNC"}
    left_out = note(kernel)
    assert left_out["blocking"] == counted["BLPOP"] + counted["XREAD"]
    assert left_out["no_reply"] >= 50 + 1 + 20
    assert left_out["pushes"] >= 4  # SUBSCRIBE, UNSUBSCRIBE, MONITOR, the replica's
    assert left_out["lost"] == 0


@needs("memcslap")
@pytest.mark.parametrize("protocol", [[], ["--binary"]], ids=["text", "binary"])
def test_libmemcacheds_requests_are_seen_as_often_as_memcached_counts_them(serve, record, protocol):
    memcached = serve("memcached", "-t", "4", tcp=True)
    recorder = record("--pid", memcached.pid, "--requests=1/1")
    words = f"--servers=127.0.0.1:{memcached.port} --concurrency=5 --execute-number=500 --flush --initial-load=500"
    for test in ("set", "get"):
        ended = run_program("memcslap", *words.split(), f"--test={test}", *protocol)
        assert ended.status == 0, ended.out + ended.err
    kernel = recorder.stop()
    seen, counted = seen_commands(kernel), stats(memcached)
    assert (seen["SET"], seen["GET"]) == (counted["cmd_set"], counted["cmd_get"]), note(kernel)
