# SPDX-License-Identifier: MIT
"""Commands as their clients sent them: the slow log and the requests that the kernel saw name a slow command and its
client, where its function alone does not.
"""

import os
import socket
import time

import pytest

from harness import explain, forktail, needs_root

pytestmark = [pytest.mark.quiet, needs_root]

MEMBERS, KEYS = 200_000, 40_000


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
        name = "{}:{}".format(*client.getsockname())
        for _ in range(20):
            client.sendall(b"get small\r\n")
            assert client.recv(100) == b"END\r\n"
        client.sendall(b"get" + b"".join(b" key%06d" % i for i in range(KEYS)) + b"\r\n")
        assert client.recv(100) == b"END\r\n"
        client.sendall(b"get small\r\n")
        assert client.recv(100) == b"END\r\n"
        time.sleep(0.3)
    recorder.stop()
    answer = forktail("explain", recorder.path, "--slow", "1ms").out
    first = " ".join(answer.split("\n\n")[0].split())
    # Its own code, or the memory that it took, was longest.
    assert "one get of about 40,000 keys from " + name in first.lower(), answer
