# SPDX-License-Identifier: MIT
"""A real server's work for its clients, by name and by count: answers to thousands of subscribers, connections opened
and closed, and the kernel's part in plain requests.
"""

import resource
import socket
import struct
import time
from collections import Counter
from contextlib import ExitStack

import pytest

from harness import eventually, evidence, explain, ft, load, needs_root
from real_run import episodes_in, info

pytestmark = [pytest.mark.quiet, needs_root]

SUBSCRIBERS, STORM = 5000, 8000


@pytest.fixture(autouse=True)
def descriptors():
    """As many connections are allowed, here and in servers started from now on."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(20_000, before[0]), max(20_000, before[1])))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def sockets():
    """sockets(family, count): a list of sockets, not yet connected. Reading from one fails after a minute."""
    with ExitStack() as ends:

        def make(family, count):
            made = [ends.enter_context(socket.socket(family)) for _ in range(count)]
            for one in made:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 60, 0))
            return made

        yield make


def iterations_of(recording):
    """Calls in a recording's iterations: arrays of writes, accepted and closed connections."""
    calls = recording.spans[recording.spans.owner == ft.ITERATION].arg[:, 1]
    return calls >> 16 & 0xFFFF, calls >> 32 & 0xFFFF, calls >> 48


def reported_in(explanation, start_ns, end_ns):
    """All evidence about the episodes that overlap an interval, and the share of each activity of own code in them."""
    episodes = episodes_in(explanation, start_ns, end_ns)
    samples = Counter()
    for activity in (activity for one in episodes for activity in one["activities"]):
        samples[activity["name"]] += activity["samples"]
    all_samples = max(samples.total(), 1)
    return evidence(*episodes), Counter({name: count / all_samples for name, count in samples.items()})


def test_a_publish_to_thousands_is_reported_as_answers_to_as_many(serve, sockets, record):
    redis = serve("redis", "--maxclients", "10000")
    subscribers = sockets(socket.AF_UNIX, SUBSCRIBERS)
    for one in subscribers:
        one.connect(redis.socket)
        one.sendall(b"SUBSCRIBE news\r\n")
        assert one.recv(4096)
    # It is connected before, so that the loop has waited when the message arrives: without a wait, what an iteration
    # did before its first sample is not known.
    (publisher,) = sockets(socket.AF_UNIX, 1)
    publisher.connect(redis.socket)
    # An iteration of 10 ms has few samples. For one of them to be in the kernel it sometimes takes a second iteration.
    for _ in range(5):
        recorder = record("--pid", redis.pid)
        start_ns = time.monotonic_ns()
        publisher.sendall(b"PUBLISH news " + b"x" * 100 + b"\r\n")
        assert publisher.recv(4096) == f":{SUBSCRIBERS}\r\n".encode()
        assert all(one.recv(4096) for one in subscribers)
        end_ns = time.monotonic_ns()
        redis.ask("PING")  # the long iteration has ended
        recording = recorder.stop()
        assert recording.dropped() == 0

        writes, _, _ = iterations_of(recording)
        assert writes.max() == SUBSCRIBERS + 1  # one per subscriber, and the answer to the publisher
        text, shares = reported_in(explain(recorder.path), start_ns, end_ns)
        # If the loop did not wait before it read the PING, several iterations are recorded as one, and only calls are
        # counted.
        assert (
            "was sending replies to about 5,000 clients for " in text or "was sending replies (in at least 5,00" in text
        ), text
        assert shares["kernel/send"] + shares["answer"] > 0.3, shares
        if " in the kernel: " in text:
            break
    else:
        pytest.fail(f"no sample was in the kernel\n{text}")


def test_opened_and_closed_connections_are_reported_and_counted(serve, sockets, record):
    redis = serve("redis", "--maxclients", "10000", tcp=True)
    recorder = record("--pid", redis.pid, "--exact", "--min-span", "1us")  # shorter than any accept
    redis.ask("PING")  # and before any
    before = int(info(redis, "total_connections_received"))
    clients = sockets(socket.AF_INET, STORM)
    start_ns = time.monotonic_ns()
    address = ("127.0.0.1", redis.port)
    for one in clients:
        one.connect(address)
    for one in clients:
        one.sendall(b"PING\r\n")
    assert all(one.recv(4096) for one in clients)
    for one in clients:
        one.close()
    assert eventually(lambda: info(redis, "connected_clients") == "1", 60)
    end_ns = time.monotonic_ns()
    assert int(info(redis, "total_connections_received")) - before == STORM
    recording = recorder.stop()
    # The sockets are reset: so many at once are only counted, and no loss.
    assert recording.drops["count"].sum() == 0

    # On a busy machine an iteration's end may be missed, and with it its counts.
    _, accepted, closed = iterations_of(recording)
    assert STORM * 3 / 4 < accepted.sum() <= STORM
    assert STORM * 3 / 4 < closed.sum() <= STORM
    text, shares = reported_in(explain(recorder.path), start_ns, end_ns)
    assert "the server was accepting " in text
    assert "freeing " in text
    assert sum(shares[name] for name in ("kernel/accept", "kernel/close", "accept", "free-client")) > 0.3, shares


def check_calls(recording):
    """A sample's system call comes from the kernel, its innermost function from unwinding the stack. libc's `write` is
    in the system call of that name, or in none."""
    samples, names = recording.cpu_samples, recording.manifest["syscalls"]
    in_kernel = samples[(samples.owner == ft.OWN_CODE) & (samples.flags & ft.CPU_SAMPLE_KERNEL != 0)]
    in_call = samples[samples.syscall != 0]
    assert (in_call.owner == ft.OWN_CODE).all()
    assert (in_call.flags & ft.CPU_SAMPLE_KERNEL != 0).all()
    assert len(in_call) > 0.8 * len(in_kernel)
    pairs = []
    for one in in_call:
        frames = recording.stacks.get(int(one.stack), {}).get("frames")
        if frames and frames[0][0] in ("read", "write", "sendmsg", "epoll_wait"):
            pairs.append((names.get(str(one.syscall - 1)), frames[0][0]))
    assert len(pairs) > 20
    assert [(call, function) for call, function in pairs if call != function] == []


@pytest.fixture
def own_code(record):
    """own_code(server): on-CPU time of a server by function, in two seconds of plain load."""

    def explain_load(server):
        recorder = record("--pid", server.pid)
        loaded = load("-q", "-c", 50, "--duration", "2s", *server.load_words())
        assert loaded.status == 0, loaded.err
        check_calls(recorder.stop())
        return explain(recorder.path)["own_code"]["activities"]

    return explain_load


def shares_of(activities):
    """The share of each activity; 0 of one that does not occur."""
    return Counter({one["name"]: one["share"] for one in activities})


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
def test_under_plain_load_the_kernels_sending_has_its_name_and_its_share(serve, own_code, tcp):
    activities = own_code(serve("redis", tcp=tcp))
    assert activities[0]["name"].startswith("kernel/")
    assert activities[0]["kernel_samples"] == activities[0]["samples"]
    shares = shares_of(activities)
    assert shares["kernel/send"] > 0.2
    assert shares["kernel/receive"] > 0.05
    assert shares["module/libc.so.6"] < 0.1
    assert shares["event-loop"] < 0.1


def test_a_server_without_symbols_has_the_kernels_activities_too(serve, own_code):
    shares = shares_of(own_code(serve("memcached", "-t", "1")))
    assert shares["kernel/send"] > 0.2
    assert shares["kernel/receive"] > 0.05
