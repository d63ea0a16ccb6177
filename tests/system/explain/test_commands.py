# SPDX-License-Identifier: MIT
"""Commands as their clients sent them: the slow log and the requests that the kernel saw name a slow command and its
client, where its function alone does not.
"""

import os
import socket
import time
from pathlib import Path

import pytest

from harness import explain, forktail, needs_root

pytestmark = [pytest.mark.quiet, needs_root]

MEMBERS, KEYS = 200_000, 40_000


def own_name():
    """This process, as a recording names it."""
    return f"{Path('/proc/self/comm').read_text().strip()} ({os.getpid()})"


def first_sentence(recorder):
    answer = forktail("explain", recorder.path, "--slow", "1ms").out
    return " ".join(answer.split("\n\n")[0].split())


def test_a_command_of_a_shared_function_is_named_with_its_client_and_dated(serve, record, start_load):
    redis = serve("redis", "--slowlog-log-slower-than", "5000", tcp=True)
    fill = "for i = 1, ARGV[1] do redis.call('SADD', 'set', 'member:' .. i) end"
    redis.ask("EVAL", fill, "0", str(MEMBERS))
    for name in ("a", "b"):
        redis.ask("SET", name, os.urandom(2000).hex())
    recorder = record("--pid", redis.pid)
    load = start_load(*redis.load_words(), "--rate", 1000, "--duration", 3, observer=True)
    time.sleep(1)
    with socket.create_connection(("127.0.0.1", redis.port)) as client:
        name = "{}:{}".format(*client.getsockname())
        client.sendall(b"LCS a b\r\nPING\r\n")
        answer = b""
        while not answer.endswith(b"+PONG\r\n"):
            answer += client.recv(1 << 20)
    load.done()
    recorder.stop()
    run = recorder.path.parent / "run"
    run.mkdir()
    recorder.path.rename(run / "server.forktail")
    load.log_path.rename(run / "load.forktail")

    explained = explain(run, "--slow", "20ms")
    sentences = [s for e in explained["episodes"] for s in e["evidence"] if "Redis' slow log lists LCS" in s]
    assert len(sentences) == 1  # of no other episode
    assert f" from {name}, in the event-loop iteration that began at " in sentences[0]
    touched = [s for e in explained["episodes"] for s in e["evidence"] if "new memory, " in s]
    assert touched
    assert all(s.endswith(", during LCS") for s in touched), touched


def test_a_large_request_among_small_ones_is_named_with_its_client(serve, record):
    memcached = serve("memcached", "-t", "1", tcp=True)
    recorder = record("--pid", memcached.pid, "--requests=1/1")
    with socket.create_connection(("127.0.0.1", memcached.port)) as client:
        name = f"{own_name()}, port {client.getsockname()[1]}"
        for _ in range(20):
            client.sendall(b"get small\r\n")
            assert client.recv(100) == b"END\r\n"
        client.sendall(b"get" + b"".join(b" key%06d" % i for i in range(KEYS)) + b"\r\n")
        assert client.recv(100) == b"END\r\n"
        client.sendall(b"get small\r\n")
        assert client.recv(100) == b"END\r\n"
        time.sleep(0.3)
    recorder.stop()
    first = first_sentence(recorder)
    # Its own code, or the memory that it took, was longest.
    assert "one get of about 40,000 keys from " + name.lower() in first.lower()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--keys", 6], 'of a key that begins with "cart:1" from billing, '),
        (["--keys", 20], 'of the key "cart:123" from billing, '),
        (["--keys", 20, "--hash-keys"], 'of the key "key-'),
        ([], "SORT from billing, "),
    ],
    ids=["begin", "whole", "hashed", "none"],
)
def test_a_slow_command_is_named_with_its_key_and_the_name_that_its_client_gave(serve, record, options, expected):
    redis = serve("redis", tcp=True)
    fill = "for i = 1, ARGV[1] do redis.call('SADD', KEYS[1], 'member:' .. i) end"
    redis.ask("EVAL", fill, "1", "cart:123", str(MEMBERS))
    recorder = record("--pid", redis.pid, "--requests=1/1", *options)
    with socket.create_connection(("127.0.0.1", redis.port)) as client:
        client.sendall(b"CLIENT SETNAME billing\r\n")
        assert client.recv(100) == b"+OK\r\n"
        for _ in range(100):
            client.sendall(b"GET user:7\r\n")
            assert client.recv(100) == b"$-1\r\n"
        for _ in range(3):
            client.sendall(b"SORT cart:123 ALPHA LIMIT 0 1\r\n")
            assert client.recv(1000)
        time.sleep(0.3)
    kernel = recorder.stop()
    first = first_sentence(recorder)
    assert "SORT" in first and expected in first, first
    keys = [note["key"] for note in kernel.notes if note.get("kind") == "key"]
    assert bool(keys) == bool(options)
    assert "user:7" not in keys  # it was fast
    if "--hash-keys" in options:
        assert all(key.startswith("key-") for key in keys)
