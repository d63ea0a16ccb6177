# SPDX-License-Identifier: MIT
"""Requests seen in the server's kernel, against those that the load generator logged itself, with each kind of server,
protocol, pipeline and size.
"""

import warnings

import pytest

from harness import Recording, load, needs_root
from seen_requests import compare, note

pytestmark = [pytest.mark.quiet, needs_root]

TCP = pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])


@pytest.fixture
def check(record, tmp_path):
    """check(server, loads): records the server while the loads run one after the other, and compares their logs.

    Every request of a load has to be seen. Those that are missing in `inexact` loads have to be counted as lost, and
    those with inexact ends as exchanges. The same if the machine was too busy for the helper. behind: a server to
    record as well. Returns the Agreement of each load.
    """

    def check_all(server, loads, inexact=(), behind=None, requests="1/1"):
        pids = [word for one in (server, behind) if one for word in ("--pid", one.pid)]
        recorder = record(*pids, f"--requests={requests}")
        logs = []
        for words in [*loads, *inexact]:
            log = tmp_path / str(len(logs))
            ended = load(*server.load_words(), "-q", "--no-observer", "-o", log, *words.split())
            assert ended.status == 0, ended.err
            logs.append(Recording(log))
        kernel = recorder.stop()
        assert not kernel.error
        left_out = note(kernel)
        dropped = left_out["dropped_events"] > 0
        if dropped:
            warnings.warn("not compared exactly: events were dropped", stacklevel=2)
        agreements = [compare(log, kernel) for log in logs]
        for i, (words, a) in enumerate(zip([*loads, *inexact], agreements, strict=True)):
            exact = i < len(loads) and not dropped
            # Over a Unix socket the answer leaves just before the kernel's program runs: if that is interrupted, the
            # client may be earlier.
            may_be_late = 0 if server.port else a.sent // 200
            what = f"{words}: {a}, {left_out}"
            assert a.sockets > 0, what
            assert a.late <= (may_be_late if exact else left_out["exchanges"]), what
            assert a.invented <= (0 if exact else left_out["exchanges"]), what
            assert a.missed == 0 or (not exact and (left_out["lost"] > 0 or dropped)), what
            assert dropped or a.seen > a.sent / 4, what
        return agreements

    return check_all


@TCP
def test_every_request_to_redis_is_seen_in_order_and_within_the_clients_times(serve, check, tcp):
    check(
        serve("redis", tcp=tcp),
        [
            "-n 5000 -c 1 -t set,get",
            "-n 5000 -c 1000 -t set,get",
            *(f"-n 10000 -c 10 -t set,get -P {pipeline}" for pipeline in (2, 16, 64)),
            "-n 200 -c 3 -t set,get -d 1000000",
            "-n 200 -c 5 -t set,get -d 3-100000 -r 100",
            "-n 700 -c 10 -t get -k 0 --rate 1000",
        ],
        inexact=["-n 100 -c 3 -t set,get -d 1000000 -P 4", "-n 200 -c 3 -t set,get -d 3-100000 -P 8 -r 100"],
    )


@TCP
def test_every_request_to_memcached_is_seen_in_each_of_its_protocols(serve, check, tcp):
    check(
        serve("memcached", "-t", "4", "-I", "2m", tcp=tcp),
        [
            f"-t set,get --protocol {protocol} {words}"
            for protocol in ("memcache_text", "memcache_meta", "memcache_binary")
            for words in (*(f"-n 2000 -c 20 -P {pipeline}" for pipeline in (1, 2, 16, 64)), "-n 100 -c 3 -d 1000000")
        ],
    )


@pytest.mark.parametrize("kind", ["redis", "redis8", "valkey"])
def test_requests_to_servers_that_read_and_write_in_several_threads_are_seen(serve, check, kind):
    # Waiting I/O threads occupy CPUs, of which the helper that reads the ring needs its share.
    server = serve(kind, "--io-threads", "2", "--io-threads-do-reads", "yes", tcp=True)
    check(server, [f"-n 5000 -c 50 -t set,get -P {pipeline}" for pipeline in (1, 2, 16, 64)])


def test_a_sample_of_connections_has_all_of_their_requests(serve, check):
    (a,) = check(serve("redis", tcp=True), ["-n 10000 -c 200 -t get"], requests="1/4")
    assert 10 < a.sockets < 120


@pytest.mark.parametrize("proxy", ["nutcracker", "haproxy"])
def test_requests_at_a_proxy_are_seen_there(serve, check, proxy):
    tcp = proxy == "nutcracker"
    redis = serve("redis", tcp=tcp)
    check(
        serve(proxy, of=[redis.address()], tcp=tcp),
        ["-n 5000 -c 20 -t set,get", "-n 100 -c 3 -t set,get -d 100000"],
        inexact=["-n 5000 -c 5 -t set,get -P 16"],
        behind=redis,
    )
