# SPDX-License-Identifier: MIT
"""--keys: the keys of slow requests in the log. The server is stopped to make requests slow."""

import signal
import time
from collections import Counter

import pytest

STOPPED_S = 0.1


def stop_for_a_moment(server):
    server.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    server.send_signal(signal.SIGCONT)


@pytest.fixture
def load_with_a_stop(start_load):
    """The log of a load during which the server stopped for a moment."""

    def run(server, *words):
        load = start_load(*server.load_words(), "--duration", 2.5, *words)
        time.sleep(1)
        stop_for_a_moment(server)
        ended = load.wait()
        assert ended.status == 0, ended.err
        return load.log

    return run


def keys_of(log):
    return [note for note in log.notes if note["kind"] == "key"]


@pytest.mark.parametrize("protocol", ["redis", "memcache_text", "memcache_binary", "memcache_meta"])
def test_a_slow_request_has_its_key(serve, load_with_a_stop, protocol):
    server = serve("redis" if protocol == "redis" else "memcached")
    # A busy machine makes most requests of a closed loop slow, and only 200 a second have their keys.
    words = ["--protocol", protocol, "--ratio", "0:1", "-r", 1000, "-c", 2, "--rate", 80, "--keys", 7]
    log = load_with_a_stop(server, *words)
    slow = {
        (r.start_ns, r.connection): r.end_ns - r.start_ns for r in log.requests if r.end_ns - r.start_ns > 1_000_000
    }
    keys = keys_of(log)
    assert {(k["t_ns"], k["connection"]): k["took_ns"] for k in keys} == slow
    assert max(slow.values()) >= STOPPED_S * 1e9 / 2  # due some time after the stop began
    assert {(k["key"], k["begin"]) for k in keys} == {("key:000", True)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--command", "MGET first __key__"], {("first", False)}),
        (["--command", "INCR counter:__int__"], {("counter:", True)}),
        (["--command", "GET __other_key__"], set()),
        (["--ratio", "0:1", "-P", 4], set()),  # sent together: it is not known which of them was slow
        (["-t", "ping_mbulk"], set()),
    ],
    ids=["first", "drawn", "unknown", "pipeline", "none"],
)
def test_no_more_of_a_key_than_is_known(serve, load_with_a_stop, words, expected):
    log = load_with_a_stop(serve("redis"), *words, "-c", 1, "--keys", 32)
    assert max(r.end_ns - r.start_ns for r in log.requests) > STOPPED_S * 1e9
    assert {(k["key"], k.get("begin", False)) for k in keys_of(log)} == expected


def test_replayed_commands_have_their_keys(serve, load_with_a_stop, tmp_path):
    recorded = tmp_path / "recorded.csv"
    recorded.write_text("".join(f"{i / 1000},a,GET,user:{i % 2}\n" for i in range(2500)))
    log = load_with_a_stop(serve("redis"), "--replay", recorded, "--keys", 32)
    assert {k["key"] for k in keys_of(log)} <= {"user:0", "user:1"}
    assert keys_of(log)


def test_at_most_200_keys_a_second_are_stored_and_others_counted(serve, load_with_a_stop):
    log = load_with_a_stop(serve("redis"), "--ratio", "0:1", "-c", 700, "--threads", 2, "--keys", 3)
    slow = sum(r.end_ns - r.start_ns > 1_000_000 for r in log.requests)
    keys = keys_of(log)
    (total,) = [note for note in log.notes if note["kind"] == "keys"]
    assert slow > 200
    assert (total["keys"], total["keys"] + total["keys_left_out"]) == (len(keys), slow)
    by_second = Counter((k["t_ns"] + k["took_ns"]) // 1_000_000_000 for k in keys)
    assert max(by_second.values()) <= 200


def test_only_requests_of_the_log_have_keys(serve, load_with_a_stop):
    words = ["--ratio", "0:1", "-c", 2, "--log", "slow:50ms"]
    load = load_with_a_stop(serve("redis"), *words, "--keys", 3)
    assert keys_of(load)
    assert all(k["took_ns"] >= 50_000_000 for k in keys_of(load))


def test_without_the_option_nothing_of_keys_is_stored(serve, load_with_a_stop):
    log = load_with_a_stop(serve("redis"), "--ratio", "0:1", "-c", 2)
    assert max(r.end_ns - r.start_ns for r in log.requests) > STOPPED_S * 1e9
    assert not [note for note in log.notes if note["kind"] in ("key", "keys")]
