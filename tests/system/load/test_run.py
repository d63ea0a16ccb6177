# SPDX-License-Identifier: MIT
"""forktail-load on a real redis-server: every option does what the manual says, and table, JSON and log are
consistent.
"""

from collections import Counter
from pathlib import Path

import pytest

from harness import ft, load, needs_ipv6
from recorded import percentile
from server_counts import calls, info

PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99.9": 99.9, "p99.99": 99.99}


@pytest.fixture
def run(start_load):
    """run(redis, ...): a load that has ended, with its observer."""
    return lambda redis, *words, status=0, **options: start_load(
        *redis.load_words(), *words, observer=True, **options
    ).done(status)


@pytest.fixture
def served_twice(serve, tmp_path):
    """A redis-server on TCP, and the path of its Unix socket."""
    path = tmp_path / "redis.sock"
    return serve("redis", "--bind", "127.0.0.1", "-::1", "--unixsocket", str(path), tcp=True), path


def test_the_log_has_every_request_and_table_and_json_equal_it(redis, run):
    ran = run(redis, "-n", 20000, "-r", 1000, "--ratio", "1:4", "-c", 10, "--seed", 5)
    log, figures, latency = ran.log, ran.figures, ran.total["latency_ns"]
    gets, sets = log.with_op("GET"), log.with_op("SET")
    assert len(log.requests) == 20000
    assert ran.total["errors"] == 0
    assert figures["exact"] is True
    assert {name: one["requests"] for name, one in figures["operations"].items()} == {"GET": gets, "SET": sets}
    assert figures["operations"]["GET"]["misses"] == log.with_status(ft.STATUS_MISS)
    assert (calls(redis, "get"), calls(redis, "set")) == (gets, sets)
    assert sets == pytest.approx(4000, rel=0.1)

    ordered = log.latencies()
    assert latency["mean"] == pytest.approx(ordered.sum() / 20000, rel=1e-6)
    expected = {name: percentile(ordered, p) for name, p in PERCENTILES.items()}
    expected |= {"min": ordered[0], "max": ordered[-1]}
    assert {name: latency[name] for name in expected} == expected
    for row in ("requests/s", "MB/s", "average", "minimum", "p99.99", "maximum", "standard deviation"):
        assert row in ran.out
    assert "exact, from the log" in ran.out
    assert f"{latency['p99'] * 1e-6:.3f}" in ran.out
    assert ran.err == ""


def test_times_are_in_order_and_in_a_closed_loop_requests_are_due_when_sent(redis, run):
    log = run(redis, "-n", 20000, "-c", 10).log
    q = log.requests
    assert (q.intended_ns == q.start_ns).all()
    assert (q.start_ns < q.end_ns).all()
    assert len(log.connections) == 10
    assert set(q.connection) == set(log.connections)
    for number, connection in log.connections.items():
        own = q[q.connection == number]
        assert (own.start_ns > connection.opened_ns).all()
        assert (own.end_ns <= connection.closed_ns).all()
    inodes = {connection.inode for connection in log.connections.values()}
    assert len(inodes) == 10
    assert 0 not in inodes


def test_the_log_describes_the_run_and_its_server(redis, run):
    ran = run(redis, "-n", 1000, "--seed", 5)
    log, manifest = ran.log, ran.log.manifest
    expected = {
        "program": "forktail-load",
        "ops": ["GET", "SET"],
        "commands": ["GET", "SET"],
        "servers": [f"unix:{redis.socket}"],
        "arrival": "closed",
        "seed": 5,
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    }
    assert {name: manifest[name] for name in expected} == expected
    server = manifest["server_info"][0]
    assert (server["pid"], server["version"]) == (redis.pid, info(redis)["redis_version"])
    assert len(log.clocks) > 0
    assert log.summary["reason"] == "done"
    assert log.summary["runs"] == ran.json["runs"]


def test_without_a_log_the_percentiles_are_the_histograms(redis):
    ran = load("-s", redis.socket, "-n", 2000)
    assert ran.status == 0
    assert "0.1 %" in ran.out
    assert calls(redis, "get") + calls(redis, "set") == 2000


def test_the_letters_of_redis_benchmark(serve, run):
    redis = serve("redis")
    log = run(redis, "-t", "set", "-n", 5000, "-d", 77, "-r", 50, "-P", 16, "-c", 3, "--dbnum", 5).log
    assert (calls(redis, "set"), calls(redis, "get")) == (5000, 0)
    assert len(log.connections) == 3
    assert redis.ask("DBSIZE") == ["0"]
    redis.ask("SELECT", "5")
    assert redis.ask("DBSIZE") == ["50"]
    for key in ("key:000000000000", "key:000000000049"):
        assert redis.ask("STRLEN", key) == ["77"]
    assert log.manifest["server_info"][0]["database"] == 5
    # A connection has at most 16 outstanding requests, and reaches that number.
    assert max(Counter(zip(log.requests.connection, log.requests.start_ns, strict=True)).values()) == 16


def test_tests_run_one_after_the_other_set_before_get_each_with_its_own_table(redis, start_load):
    ran = start_load("-s", redis.socket, "-t", "get,SET", "-n", 1000, observer=True)
    assert ran.wait().status == 0
    sets, gets = ran.json["runs"]
    assert (sets["name"], gets["name"]) == ("SET", "GET")
    assert gets["total"]["misses"] == 0
    assert gets["exact"] is True
    assert sets["end_ns"] <= gets["start_ns"]
    assert len(ran.log.requests) == 2000
    assert "SET, 50 connections" in ran.out
    assert "GET, 50 connections" in ran.out
    # Connections continue to be numbered, so that the log distinguishes the tests.
    assert len(ran.log.connections) == 100


def test_without_r_there_is_one_key(redis, run):
    run(redis, "-t", "set", "-n", 1000)
    assert redis.ask("KEYS", "*") == ["key:000000000000"]
    assert redis.ask("STRLEN", "key:000000000000") == ["3"]


@pytest.mark.quiet
def test_a_duration_ends_the_run(redis, run):
    ran = run(redis, "--duration", "700ms", "-c", 4)
    assert ran.figures["seconds"] == pytest.approx(0.7, abs=0.5)
    assert (ran.log.requests.status <= ft.STATUS_MISS).all()


def test_a_number_of_requests_ends_the_run_before_its_duration(redis, run):
    assert len(run(redis, "--duration", 60, "-n", 500).log.requests) == 500


def test_threads_share_connections_and_requests(redis, run):
    log = run(redis, "--threads", 3, "-c", 8, "-n", 10001, "-P", 4).log
    assert len(log.requests) == 10001
    assert Counter(connection.thread for connection in log.connections.values()) == {0: 3, 1: 3, 2: 2}
    (start,) = (note for note in log.notes if note["kind"] == "load-start")  # in addition to the observer's
    assert len(start["tids"]) == 3


@pytest.mark.parametrize(
    "host, name",
    [(None, "127.0.0.1"), ("localhost", None), pytest.param("::1", "[::1]", marks=needs_ipv6)],
    ids=["IPv4", "name", "IPv6"],
)
def test_tcp_over_ipv4_and_ipv6_by_address_and_by_name(served_twice, start_load, host, name):
    port = served_twice[0].port
    words = ["-h", host] if host else []
    log = start_load("-p", port, "-n", 1000, "-c", 2, *words, observer=True).done().log
    assert len(log.requests) == 1000
    if name:
        assert log.manifest["servers"] == [f"{name}:{port}"]
    assert all(connection.local_port > 1023 for connection in log.connections.values())


def test_fill_sets_each_key_once_in_order_and_prints_how_fast(redis, run):
    ran = run(redis, "--fill", 10007, "-d", 20, "--threads", 2)
    assert calls(redis, "set") == 10007
    assert redis.ask("DBSIZE") == ["10007"]
    for key in ("key:000000000000", "key:000000010006"):
        assert redis.ask("STRLEN", key) == ["20"]
    assert ran.figures["name"] == "fill"
    assert (ran.log.manifest["fill"], ran.log.manifest["pipeline"]) == (10007, 64)


@pytest.mark.parametrize(
    "environment",
    [
        {"FORKTAIL_PASSWORD": "pass word"},
        {"REDISCLI_AUTH": "pass word"},
        {"FORKTAIL_PASSWORD": "pass word", "REDISCLI_AUTH": "another"},
        {},
    ],
    ids=["ours", "redis-cli's", "ours-first", "file"],
)
def test_a_password_comes_from_the_environment_or_a_file_and_is_not_shown_anywhere_else(
    serve, run, tmp_path, environment
):
    file = tmp_path / "password"
    file.write_text("pass word\nsecond line\n")
    words = [] if environment else ["--password-file", file]
    ran = run(serve("redis", "--requirepass", "pass word"), "-n", 500, *words, env=environment)
    assert len(ran.log.requests) == 500
    written = [path.read_bytes() for path in ran.log_path.parent.iterdir()]  # log and JSON
    assert len(written) == 2
    assert not any(b"pass word" in shown for shown in [*written, ran.out.encode(), ran.err.encode()])


def test_an_acl_user_logs_in_by_name_also_one_that_may_only_use_get_and_set(serve, run):
    redis = serve("redis")
    redis.ask("ACL", "SETUSER", "alice", "on", ">secret", "~*", "-@all", "+get", "+set")
    redis.ask("ACL", "SETUSER", "default", "off")
    ran = run(redis, "-n", 500, "--user", "alice", env={"FORKTAIL_PASSWORD": "secret"})
    assert len(ran.log.requests) == 500
    assert ran.total["errors"] == 0
    assert ran.log.manifest["server_info"][0]["user"] == "alice"


def test_a_seed_repeats_the_keys_another_one_does_not(redis, run):
    def keys(seed):
        redis.ask("FLUSHALL")
        run(redis, "-t", "set", "-n", 200, "-r", 1000000, "-c", 7, "--seed", seed)
        return sorted(redis.ask("KEYS", "*"))

    first, same, other = keys(1), keys(1), keys(2)
    assert len(first) > 190
    assert len(other) > 190
    assert first == same
    assert first != other


def test_misses_are_no_errors(redis, run):
    ran = run(redis, "-t", "get", "-n", 1000, "-r", 100)
    assert (ran.total["misses"], ran.total["errors"]) == (1000, 0)
    assert ran.log.with_status(ft.STATUS_MISS) == 1000


def test_error_replies_are_counted_by_their_first_word(redis, run):
    redis.ask("LPUSH", "key:000000000000", "x")
    ran = run(redis, "-t", "get", "-n", 1000, "-P", 7, status=3)
    assert ran.total["errors"] == 1000
    assert ran.figures["error_replies"]["WRONGTYPE"] == 1000
    assert ran.total["errors_by_kind"]["error reply"] == 1000
    assert ran.log.with_status(ft.STATUS_ERROR_REPLY) == 1000
    assert "-WRONGTYPE" in ran.out


def test_replies_larger_than_the_read_buffer_and_requests_larger_than_the_sockets(served_twice, start_load):
    redis, path = served_twice
    words = ["-n", 300, "-P", 8, "-c", 3]
    sets = start_load("-p", redis.port, "-t", "set", "-d", 1000000, *words, observer=True).done()
    assert sets.total["errors"] == 0
    assert redis.ask("STRLEN", "key:000000000000") == ["1000000"]
    gets = start_load("-s", path, "-t", "get", *words, observer=True).done()
    assert gets.total["errors"] == 0
    assert gets.total["bytes"] > 300_000_000
