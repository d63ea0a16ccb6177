# SPDX-License-Identifier: MIT
"""Errors: how --on-error handles a server that dies, hangs, comes back, refuses or answers with errors. No error is
missing in the figures and the log, and each is counted in its class, with the time of the first and the last.
"""

import itertools
import json
import signal
import time

import pytest

from fake import after_greeting
from harness import Load, ft, kill, load

CLASSES = {
    ft.STATUS_ERROR_REPLY: "error reply",
    ft.STATUS_TIMEOUT: "no answer",
    ft.STATUS_RESET: "connection lost",
    ft.STATUS_WRONG: "wrong reply",
    ft.STATUS_UNSENT: "never sent",
}


def ended(run: Load, status: int) -> Load:
    """Waits for its end. Log and figures have the same counts of every class."""
    run.done(status)
    assert run.json["exit_status"] == status
    logged = {name: run.log.with_status(number) for number, name in CLASSES.items()}
    assert {name: run.total["errors_by_kind"].get(name, 0) for name in logged} == logged
    assert run.total["errors"] == sum(logged.values())
    return run


def times_within(run: Load, name: str, since_ns: int, until_ns: int) -> None:
    """The first and last time of a class are between two instants."""
    times = run.figures["error_times"][name]
    assert times["count"] > 0
    assert since_ns <= times["first_ns"] <= times["last_ns"] <= until_ns


@pytest.mark.parametrize("mode", [["--rate", 2000], ["--think", "2ms"]], ids=["open", "closed"])
def test_reconnect_continues_when_the_server_is_back(mortal_redis, start_load, mode):
    redis = mortal_redis()
    run = start_load(
        "-s", redis.socket, "--on-error", "reconnect", "--backoff", "10ms", "-c", 8, "--duration", 4, *mode
    )
    run.under_way()
    before = time.monotonic_ns()
    kill(redis)
    time.sleep(0.5)
    mortal_redis()
    time.sleep(0.3)  # the longest pause by then
    after = time.monotonic_ns()
    ended(run, 0)
    assert run.json["reason"] == "done"
    # Of a connection the request under way, and one that the dying server's kernel still accepted.
    assert run.log.with_status(ft.STATUS_RESET) <= 16
    times_within(run, "connection lost", before, after)
    times_within(run, "refused", before, after + 2_000_000_000)
    assert run.figures["connects_failed"] > 0
    assert run.figures["connections_broken"] == 8
    assert "connects refused" in run.out
    if "--rate" in mode:
        assert len(run.log.requests) == 8000
        kinds = (ft.STATUS_OK, ft.STATUS_MISS, ft.STATUS_RESET)
        assert sum(map(run.log.with_status, kinds)) == 8000
    # On every connection, answers arrived again after the outage.
    q = run.log.requests
    again = set(q.connection[(q.start_ns > after) & (q.status <= ft.STATUS_MISS)])
    assert again >= set(q.connection) - {2**32 - 1}


@pytest.mark.parametrize("mode", ["--blocking", "--no-wait"])
def test_reconnect_with_blocking_calls_and_answers_read_later(mortal_redis, start_load, mode):
    redis = mortal_redis()
    run = start_load(
        "-s", redis.socket, "--on-error", "reconnect", "--backoff", "10ms", "-c", 3, "--duration", 3, mode, "-P", 5,
        "--think", "1ms",
    )  # fmt: skip
    run.under_way()
    kill(redis)
    time.sleep(0.3)
    mortal_redis()
    ended(run, 0)
    q = run.log.requests
    lost = q.status == ft.STATUS_RESET
    assert lost.any()
    assert q.end_ns[~lost].max() > q.end_ns[lost].max()


def test_a_server_that_stays_away_is_reported_as_lost(mortal_redis, start_load):
    redis = mortal_redis()
    run = start_load(
        "-s", redis.socket, "--on-error", "reconnect", "--backoff", "20ms", "-c", 4, "--duration", "2500ms", "--think",
        "5ms",
    )  # fmt: skip
    run.under_way()
    kill(redis)
    ended(run, 3)
    assert "all 4 connections were lost" in run.err
    assert run.err.count("\n") == 1
    assert run.json["reason"] == "server lost"


def test_continue_uses_the_remaining_connections(mortal_redis, start_load):
    redis = mortal_redis()
    run = start_load("-s", redis.socket, "-c", 4, "--duration", 30, "--think", "1ms")
    run.under_way()
    kill(redis)
    ended(run, 3)
    assert run.json["reason"] == "server lost"
    assert run.log.with_status(ft.STATUS_RESET) <= 4


@pytest.mark.parametrize("busy", [["-c", 4, "--think", "1ms"], ["-c", 20, "--think", "20s"]], ids=["busy", "idle"])
def test_stop_ends_at_the_first_lost_connection(mortal_redis, start_load, busy):
    redis = mortal_redis()
    run = start_load("-s", redis.socket, "--duration", 30, "--on-error", "stop", *busy)
    run.under_way()
    kill(redis)
    ended(run, 3)
    assert "--on-error stop" in run.err
    assert run.json["reason"] == "errors"


def test_stop_ends_at_an_error_reply(redis, start_load):
    redis.ask("LPUSH", "key:000000000000", "x")
    run = ended(start_load("-s", redis.socket, "-t", "get", "-c", 1, "-n", 1000, "--on-error", "stop"), 3)
    assert len(run.log.requests) == run.log.with_status(ft.STATUS_ERROR_REPLY) == 1


def test_max_errors_ends_the_run_at_that_error(redis, start_load):
    redis.ask("LPUSH", "key:000000000000", "x")
    run = ended(start_load("-s", redis.socket, "-t", "get", "-c", 1, "-n", 1000, "--max-errors", 25), 3)
    assert len(run.log.requests) == run.log.with_status(ft.STATUS_ERROR_REPLY) == 25
    assert "--max-errors" in run.err
    assert run.err.count("\n") == 1
    assert run.json["reason"] == "errors"

    # 3 because all of them failed
    fewer = ended(start_load("-s", redis.socket, "-t", "get", "-c", 1, "-n", 20, "--max-errors", 25), 3)
    assert "every request failed: WRONGTYPE" in fewer.err
    assert fewer.json["reason"] == "done"


@pytest.mark.parametrize("mode", [["--rate", 500], ["--think", "5ms"]], ids=["open", "closed"])
def test_requests_to_a_hung_server_time_out_and_it_is_found_again(serve, start_load, mode):
    redis = serve("redis")
    run = start_load(
        "-s", redis.socket, "--on-error", "reconnect", "--backoff", "10ms", "-c", 5, "--timeout", "200ms",
        "--duration", 3, *mode,
    )  # fmt: skip
    run.under_way()
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.8)
    redis.send_signal(signal.SIGCONT)
    ended(run, 0)
    q = run.log.requests
    late = q[q.status == ft.STATUS_TIMEOUT]
    assert len(late) >= 5
    assert (late.end_ns - late.start_ns >= 200_000_000).all()
    if "--rate" in mode:
        assert len(q) == 1500
    assert q[-1].status <= ft.STATUS_MISS


LARGE = ["-d", 3_000_000, "-t", "set"]


@pytest.mark.parametrize(
    "mode",
    [["--blocking"], ["--no-wait", "-P", 10], ["--blocking", *LARGE], ["--no-wait", *LARGE, "-P", 3], LARGE],
    ids=["blocking", "no-wait", "blocking-large", "no-wait-large", "large"],
)
def test_timeout_with_blocking_calls_and_requests_that_the_server_does_not_read(serve, start_load, mode):
    redis = serve("redis")
    run = start_load("-s", redis.socket, "-c", 2, "--timeout", "300ms", "--think", "10ms", "-l", *mode)
    run.under_way()
    redis.send_signal(signal.SIGSTOP)
    ended(run, 3)
    assert "all 2 connections were lost: no answer within --timeout" in run.err
    assert run.log.with_status(ft.STATUS_TIMEOUT) >= 2


@pytest.mark.parametrize(
    "mode",
    [["--blocking"], ["--no-wait", "-P", 10], ["--blocking", *LARGE]],
    ids=["blocking", "no-wait", "blocking-large"],
)
def test_ctrl_c_ends_blocking_calls_on_a_hung_server(serve, start_load, mode):
    redis = serve("redis")
    run = start_load("-s", redis.socket, "-c", 2, "-l", "--think", "5ms", *mode)
    run.under_way()
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    run.signal(signal.SIGINT)
    ended(run, run.wait().status)
    assert run.json["reason"] == "interrupted"
    assert run.log.with_status(ft.STATUS_TIMEOUT) >= 2


def test_error_replies_are_counted_by_their_first_word(serve, start_load):
    full = serve("redis", "--maxmemory", "1", "--maxmemory-policy", "noeviction")
    oom = ended(start_load("-s", full.socket, "-t", "set", "-n", 100, "-c", 3), 3)
    assert "every request failed: OOM command not allowed when used memory" in oom.err
    assert "first: OOM command not allowed when used memory" in oom.out
    assert "-OOM" in oom.out
    assert "OOM command not allowed" in oom.figures["error_texts"]["OOM"]
    assert oom.figures["error_replies"] == {"OOM": 100}
    assert oom.log.with_status(ft.STATUS_ERROR_REPLY) == 100
    assert oom.figures["error_times"]["OOM"]["count"] == 100

    replica = serve("redis")
    replica.ask("REPLICAOF", "127.0.0.1", "1")
    readonly = ended(start_load("-s", replica.socket, "-t", "set", "-n", 50, "-c", 3), 3)
    assert readonly.figures["error_replies"] == {"READONLY": 50}


@pytest.mark.parametrize("protocol", ["memcache_text", "memcache_binary"])
def test_error_replies_of_memcached_are_counted(memcached, start_load, protocol):
    words = ["--protocol", protocol, "-t", "set", "-n", 10, "-c", 1, "-d", 2_000_000]
    run = ended(start_load("-s", memcached.socket, *words), 3)
    assert run.log.with_status(ft.STATUS_ERROR_REPLY) == 10
    assert len(run.figures["error_replies"]) == 1


def test_a_test_of_which_all_requests_fail_is_reported_and_the_tests_after_it_run(redis, tmp_path):
    redis.ask("LPUSH", "key:000000000000", "x")
    figures = tmp_path / "json"
    ran = load("-s", redis.socket, "-t", "get,incr", "-n", 20, "-c", 2, "-q", "--json", figures)
    assert ran.status == 0
    assert ran.err.count("\n") == 1
    assert "GET: every request failed: WRONGTYPE Operation against a key" in ran.err
    assert [one["total"]["errors"] for one in json.loads(figures.read_text())["runs"]] == [20, 0]


def redis_that(answers):
    """Answers of a Redis; the load gets `answers`, one after the other."""
    return after_greeting(lambda peer, _request: peer.say(next(answers)))


def test_many_moved_and_loading_in_mid_run_are_errors_and_do_not_end_the_run(fake_server, start_load):
    answers = itertools.chain(
        [b"$3\r\nabc\r\n"] * 100,
        [b"-LOADING Redis is loading the dataset in memory\r\n"] * 50,
        [b"-MOVED 3999 127.0.0.1:6381\r\n"] * 30,
        itertools.repeat(b"$3\r\nabc\r\n"),
    )
    run = ended(start_load(*fake_server(redis_that(answers)).where, "-t", "get", "-n", 300, "-c", 4), 3)
    assert (
        "30 of 300 requests were answered with MOVED (first: MOVED 3999 127.0.0.1:6381), because the server is a node "
        "of a cluster. Use --cluster" in run.err
    )
    assert run.figures["error_replies"] == {"LOADING": 50, "MOVED": 30}
    assert run.log.with_status(ft.STATUS_OK) == 220
    assert len(run.log.requests) == 300
    times = run.figures["error_times"]
    assert times["LOADING"]["first_ns"] <= times["MOVED"]["first_ns"]


def test_of_more_than_sixteen_words_of_error_replies_the_rest_are_counted_together(fake_server, start_load):
    answers = (f"-W{i % 20} x\r\n".encode() for i in itertools.count())
    run = start_load(*fake_server(redis_that(answers)).where, "-t", "get", "-n", 200, "-c", 1)
    replies = ended(run, 3).figures["error_replies"]
    assert (len(replies), replies["other"], replies["W0"]) == (16, 50, 10)


def test_errors_of_the_warm_up_are_in_the_log_and_in_no_figure(redis, start_load):
    redis.ask("LPUSH", "key:000000000000", "x")
    run = start_load("-s", redis.socket, "-t", "get", "--rate", 200, "--warmup", "500ms", "--duration", "500ms")
    assert run.wait().status == 3  # every request failed
    assert run.log.with_status(ft.STATUS_ERROR_REPLY) == 200
    assert run.total["errors"] == 100
    assert run.figures["error_replies"]["WRONGTYPE"] == 100
    assert run.figures["error_times"]["error reply"]["count"] == 100


def test_the_pause_before_connecting_again_doubles(fake_server, start_load):
    refuse = after_greeting(lambda _peer, _request: False)
    server = fake_server(lambda peer: refuse(peer) if peer.number < 3 else None)
    run = start_load(
        *server.where, "-t", "get", "-n", 100, "-c", 1, "--on-error", "reconnect", "--backoff", "100ms", "--max-errors",
        6,
    )  # fmt: skip
    ended(run, 3)
    at = server.accepted
    assert len(at) >= 7  # the search for an address, the probe, the connection, and the reconnections
    # Never sooner. On a busy machine it may be later.
    for i, (one, following) in enumerate(itertools.pairwise(at[2:])):
        assert following - one > 0.099 * 2**i


def test_a_server_that_refuses_the_login_of_a_reopened_connection(serve, start_load):
    redis = serve("redis", "--requirepass", "old")
    run = start_load(
        "-s", redis.socket, "-c", 2, "-l", "--on-error", "reconnect", "--backoff", "1ms", "--max-errors", 20,
        "--think", "5ms", env={"FORKTAIL_PASSWORD": "old"},
    )  # fmt: skip
    run.under_way()
    redis.ask("AUTH", "old")
    redis.ask("CONFIG", "SET", "requirepass", "new")
    redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert run.wait(20).status == 3
    assert "--max-errors" in run.err
    assert run.log.whole
