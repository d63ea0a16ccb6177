# SPDX-License-Identifier: MIT
"""Requests seen in the server's kernel when clients are hostile, events are lost, or the helper process dies: memory is
bounded, nothing is invented, and the rest of the recording is whole.
"""

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from harness import eventually, ft, needs_root, run_program
from recorder_processes import helpers, status
from seen_requests import compare, note, seen_commands
from server_counts import calls

pytestmark = needs_root

HOSTILE = Path(__file__).parent / "clients/hostile.py"


def own_bytes(pid):
    """Its own memory: without the ring, which is mapped."""
    return int(status(pid)["RssAnon"].split()[0]) * 1024


@pytest.mark.quiet
def test_hostile_clients_neither_grow_the_recorder_nor_invent_requests(redis, record, start_load):
    recorder = record("--pid", redis.pid, "--requests=1/1")
    (helper,) = helpers(recorder, "forktail-reqs")
    assert own_bytes(helper) > 0
    limits = {pid: own_bytes(pid) + (64 << 20) for pid in (recorder.pid, helper)}
    for kind in ("garbage", "halves", "announced", "large", "name", "unread", "connections"):
        ended = run_program("/usr/bin/python3", HOSTILE, redis.socket, kind)
        assert ended.status == 0, kind + ended.err
        for pid, limit in limits.items():
            assert own_bytes(pid) < limit, kind
    called = {name: calls(redis, name.lower()) for name in ("SET", "GET", "PING", "DEL")}
    sent = start_load("-s", redis.socket, "-n", 2000, "-t", "lpush").done()
    kernel = recorder.stop()
    assert kernel.whole
    seen = seen_commands(kernel)
    for name, count in called.items():
        assert seen[name] <= count, note(kernel)
    assert seen["SET"] > 0
    assert seen["GET"] >= 2
    assert seen["PING"] > 100
    a = compare(sent.log, kernel)
    assert (a.sent, a.invented, a.missed) == (len(sent.log.requests), 0, 0), a


@pytest.mark.quiet
@pytest.mark.parametrize("tcp", [False, True], ids=["unix-pipeline", "tcp"])
def test_a_helper_that_stands_still_loses_requests_but_confuses_none(serve, record, start_load, tcp):
    redis = serve("redis", tcp=tcp)
    recorder = record("--pid", redis.pid, "--requests=1/1")
    (helper,) = helpers(recorder, "forktail-reqs")
    pipeline = [] if tcp else ["-P", 16]
    load = start_load(*redis.load_words(), "-c", 20, "-t", "get", "-n", 400_000, "--rate", 100_000, *pipeline)
    time.sleep(0.5)
    os.kill(helper, signal.SIGSTOP)
    before = calls(redis, "get")
    assert eventually(lambda: calls(redis, "get") - before > 200_000, 60)  # more than the helper's ring has room for
    os.kill(helper, signal.SIGCONT)
    continued_ns = time.monotonic_ns()
    load.done()
    kernel = recorder.stop()
    dropped = note(kernel)["dropped_events"]
    assert 0 < dropped <= kernel.dropped()
    a = compare(load.log, kernel)
    assert a.missed > 0
    assert a.invented == 0, a
    assert a.late <= (0 if tcp else a.sent // 200), a
    assert (kernel.requests.start_ns > continued_ns).sum() > 1000


@pytest.mark.quiet
def test_a_helper_that_ended_is_started_again_and_requests_are_recorded_from_then_on(redis, record, start_load):
    recorder = record("--pid", redis.pid, "--requests=1/1")
    (helper,) = helpers(recorder, "forktail-reqs")
    load = start_load("-s", redis.socket, "-c", 20, "-t", "set", "--duration", "3s")
    time.sleep(0.7)
    os.kill(helper, signal.SIGKILL)
    killed_ns = time.monotonic_ns()
    assert eventually(lambda: (now := helpers(recorder, "forktail-reqs")) and now[0] != helper)
    again_ns = time.monotonic_ns()
    assert load.wait().status == 0
    kernel = recorder.stop()
    assert recorder.err.count("the helper process that finds requests ended. It is started again") == 1
    assert kernel.whole
    start_ns = kernel.requests.start_ns
    assert (start_ns < killed_ns).sum() > 500
    assert (start_ns > again_ns + 500_000_000).sum() > 500
    slices = [one["on"] for one in kernel.notes if one.get("kind") == "requests-slice"]
    assert sorted(slices) == [False, True]
    assert (kernel.spans.start_ns > killed_ns + 500_000_000).any()


def ping_from(address, port):
    """A connection from an address of this host, with one answered PING."""
    with socket.create_connection(("127.0.0.1", port), source_address=(address, 0)) as client:
        client.sendall(b"*1\r\n$4\r\nPING\r\n")
        assert client.recv(16)


def test_addresses_of_clients_can_be_hashed(serve, record):
    # Else it refuses clients of other addresses than 127.0.0.1.
    redis = serve("redis", "--protected-mode", "no", tcp=True)

    def recorded(*options):
        """The addresses of three clients, of which the first and the last have the same, and the flags of all."""
        recorder = record("--pid", redis.pid, "--requests=1/1", *options)
        for address in ("127.0.0.1", "127.0.0.2", "127.0.0.1"):
            ping_from(address, redis.port)
        connections = [c for _, c in sorted(recorder.stop().connections.items()) if c.local_port]
        first, second, third = (c.client_address.tobytes() for c in connections)
        assert first == third != second
        return first, second, {int(c.client_flags) for c in connections}

    one, other, plain = recorded("--hash-clients"), recorded("--hash-clients"), recorded()
    assert (one[2], other[2], plain[2]) == ({ft.CLIENT_HASHED}, {ft.CLIENT_HASHED}, {0})
    assert one[0] != other[0] and one[1] != other[1]
    assert plain[0].endswith(b"\x7f\0\0\1")
    for address in (*one[:2], *other[:2]):
        assert b"\x7f\0\0\1" not in address
