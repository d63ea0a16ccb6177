# SPDX-License-Identifier: MIT
"""The observer of a load on real servers: what it writes into a recording, and that no failure of a server (refusing,
hanging, dying) prevents it from ending or makes it report something twice.
"""

import os
import re
import signal
import time

import pytest
from observation import Observation

from fake import after_greeting
from forktail.servers.listen import connect_to
from harness import kill
from server_counts import info

# Well below the ten seconds that the observer waits for an answer.
SOON = 5


@pytest.fixture
def observe(tmp_path, closing):
    """observe("-s", socket, ...): an Observation, which is killed at the end of the test."""
    return lambda *words, **options: closing(Observation(tmp_path / "observed", *words, **options))


def ids(notes):
    return [note["id"] for note in notes]


def has_command_with(notes, word):
    return any(word in note["command"] for note in notes)


def disconnect_observer(redis):
    """Closes its connection."""
    [own] = re.findall(r"id=(\d+) .*name=forktail-observer", redis.ask("CLIENT", "LIST")[0])
    redis.ask("CLIENT", "KILL", "ID", own)


def test_every_number_of_info_becomes_a_series(redis, observe):
    redis.ask("SET", "key", "value")
    o = observe("-s", redis.socket)
    o.rounds(3)
    assert "name=forktail-observer" in redis.ask("CLIENT", "LIST")[0]
    r = o.end()
    names = [series["name"] for series in r.series.values()]
    assert len(set(names)) == len(names) > 80
    assert all(name.startswith("redis.") for name in names)
    assert all((series["unit"], series["labels"]) == ("", {}) for series in r.series.values())
    assert min(r.series) >= 1
    numbers = {
        "used_memory", "connected_clients", "used_cpu_sys", "mem_fragmentation_ratio", "rdb_last_bgsave_time_sec",
        "db0.keys", "total_forks",
    }  # fmt: skip
    texts = {"redis_version", "role", "used_memory_human", "db0"}
    assert {name for name in numbers | texts if f"redis.{name}" in names} == numbers
    assert set(r.samples.series.tolist()) <= set(r.series)
    assert (r.samples.t_ns[1:] >= r.samples.t_ns[:-1]).all()
    connected, *_ = [note for note in r.notes if note["kind"] != "load-start"]
    now = info(redis)
    assert connected == {
        "kind": "observer-connected", "t_ns": connected["t_ns"], "server": "redis", "role": "master",
        "version": now["redis_version"], "run_id": now["run_id"],
    }  # fmt: skip
    assert o.count("observer-connected") == 1


def test_the_counters_of_the_server_are_in_the_samples(redis, observe):
    o = observe("-s", redis.socket)
    o.rounds(1)
    for i in range(321):
        redis.ask("SET", f"key{i}", "x")
    o.until(lambda: o.values("redis.db0.keys")[-1:] == [321])
    assert len(o.values("redis.tcp_port")) == 1  # an unchanged value is written once


def test_slow_log_entries_are_noted_once_from_the_start_of_the_observer_on_with_their_time(serve, observe):
    redis = serve("redis", "--slowlog-log-slower-than", "0")
    redis.ask("SET", "before", "it")
    o = observe("-s", redis.socket)
    o.rounds(2)
    before_ns = time.monotonic_ns()
    redis.ask("SET", "marked", "\x01\x00z\udcff")
    redis.ask("SET", "long", "v" * 1000)
    after_ns = time.monotonic_ns()
    o.until(lambda: has_command_with(o.notes("slowlog"), "long"))
    o.rounds(2)
    notes = o.notes("slowlog")
    first = notes[0]["id"]
    assert ids(notes) == list(range(first, first + len(notes)))
    assert all(note["unix_s"] > 1_700_000_000 for note in notes)
    assert all(isinstance(note["duration_us"], int) and note["duration_us"] >= 0 for note in notes)
    assert not has_command_with(notes, "before")
    # Its own commands are visible, with their own name.
    assert any(note["client_name"] == "forktail-observer" for note in notes)
    [marked] = [note for note in notes if "marked" in note["command"]]
    assert marked["command"] == ["SET", "marked", r"\x01\x00z\xff"]
    assert redis.socket in marked["client"]
    assert marked["t_ns"] - marked["t_error_ns"] <= after_ns
    assert marked["t_ns"] + marked["t_error_ns"] >= before_ns
    [long] = [note for note in notes if "long" in note["command"]]
    assert long["command"] == ["SET", "long", "v" * 128]
    assert o.count("slowlog-missed") == 0


def test_redis_is_not_asked_for_the_logs_that_only_valkey_has(serve, observe):
    redis = serve("redis")
    o = observe("-s", redis.socket)
    o.rounds(3)
    assert o.count("observer-refused") == 0
    assert "errorstat_ERR" not in redis.ask("INFO", "errorstats")[0]


def test_the_logs_of_large_requests_and_replies_of_valkey_are_noted_too(serve, observe):
    valkey = serve("valkey")
    valkey.ask("SET", "before", "b" * (2 << 20))
    o = observe("-s", valkey.socket)
    o.rounds(2)
    valkey.ask("SET", "large", "v" * (3 << 20))
    valkey.ask("GET", "large")
    o.until(lambda: o.count("large-request") == o.count("large-reply") == 1)
    o.rounds(2)
    for kind in ("large-request", "large-reply"):
        [note] = o.notes(kind)  # each once
        assert 3 << 20 < note["bytes"] < (3 << 20) + 1000
        assert note["command"][1] == "large"
        assert note["t_error_ns"] < 1_100_000_000
    assert [o.count(f"{kind}-missed") for kind in ("slowlog", "large-request", "large-reply")] == [0, 0, 0]


def test_entries_that_came_faster_than_they_could_be_fetched_are_counted(serve, observe):
    redis = serve("redis", "--slowlog-log-slower-than", "0")
    o = observe("-s", redis.socket)
    o.rounds(2)
    for _ in range(1000):
        redis.ask("GET", "key")
    redis.ask("GET", "last")
    o.until(lambda: has_command_with(o.notes("slowlog"), "last"))
    seen = ids(o.notes("slowlog"))
    assert len(set(seen)) == len(seen)
    missed = sum(note["count"] for note in o.notes("slowlog-missed"))
    assert missed > 0
    assert max(seen) - min(seen) + 1 == len(seen) + missed


def test_a_stall_is_in_the_latency_monitor_the_slow_log_and_the_wait_of_the_observer(serve, observe):
    # Thresholds that no command reaches by a delay on a busy machine.
    redis = serve(
        "redis", "--enable-debug-command", "yes", "--latency-monitor-threshold", "1000", "--slowlog-log-slower-than",
        "1000000",
    )  # fmt: skip
    redis.ask("DEBUG", "SLEEP", "1.1")  # an old event
    o = observe("-s", redis.socket)
    o.rounds(1)
    before_ns = time.monotonic_ns()
    redis.ask("DEBUG", "SLEEP", "1.5")
    after_ns = time.monotonic_ns()
    event, *_ = o.await_note("latency-event")
    assert event["event"] == "command"
    assert event["latest_ms"] >= 1500
    assert event["max_ms"] >= 1500
    slow, *_ = o.await_note("slowlog")
    assert slow["command"] == ["DEBUG", "SLEEP", "1.5"]
    assert slow["duration_us"] >= 1_500_000
    assert slow["t_ns"] + slow["t_error_ns"] >= before_ns
    assert slow["t_ns"] - slow["t_error_ns"] <= after_ns
    # One question per second: one of them had to wait.
    waited, *_ = o.await_note("observer-slow")
    assert waited["duration_ns"] > 100_000_000
    assert waited["t_ns"] < after_ns
    o.rounds(2)
    assert o.count("latency-event") == 1  # reported once, though it stays the latest
    assert o.count("slowlog") == 1


def test_forks_snapshots_and_a_changed_role_are_noted(serve, observe):
    redis = serve("redis", "--rdb-key-save-delay", "100000")
    for i in range(30):
        redis.ask("SET", f"key{i}", "x")
    o = observe("-s", redis.socket)
    o.rounds(1)
    before_ns = time.monotonic_ns()
    redis.ask("BGSAVE")  # takes three seconds
    o.await_note("redis-state", 2)
    [fork] = o.notes("fork")
    assert fork["latest_fork_usec"] == int(info(redis)["latest_fork_usec"])
    assert fork["forks"] == 1
    assert fork["t_ns"] > before_ns
    redis.ask("REPLICAOF", "127.0.0.1", "1")
    states = o.await_note("redis-state", 3)
    assert [(state["field"], state["from"], state["to"]) for state in states[:3]] == [
        ("rdb_bgsave_in_progress", "0", "1"),
        ("rdb_bgsave_in_progress", "1", "0"),
        ("role", "master", "slave"),
    ]


def test_a_refusal_of_the_server_is_noted_once_and_the_question_is_not_repeated(serve, observe):
    redis = serve("redis")
    redis.ask("ACL", "SETUSER", "watcher", "on", ">secret-word", "+info", "+auth", "+get", "allkeys")
    o = observe("-s", redis.socket, "--user", "watcher", env={"FORKTAIL_PASSWORD": "secret-word"})
    o.rounds(4)
    o.end()
    refused = o.notes("observer-refused")
    assert [note["command"] for note in refused] == [
        "SLOWLOG GET", "LATENCY LATEST", "LATENCY HISTOGRAM", "CONFIG GET",
    ]  # fmt: skip
    assert all("NOPERM" in note["error"] for note in refused)
    assert b"secret-word" not in o.log_path.read_bytes()


@pytest.mark.parametrize("password, asked", [("wrong", "AUTH"), (None, "PING")], ids=["wrong", "missing"])
def test_a_login_that_is_refused_or_missing_is_noted_once(serve, observe, password, asked):
    redis = serve("redis")
    o = observe("-s", redis.socket, env={"FORKTAIL_PASSWORD": password})
    o.rounds(1)
    redis.ask("CONFIG", "SET", "requirepass", "right")
    disconnect_observer(redis)  # so that it logs in
    o.await_note("observer-refused")
    time.sleep(1.5)
    r = o.end()
    [refused] = o.notes("observer-refused")
    assert refused["command"] == asked
    assert r.notes[-1] == refused
    assert r.samples.t_ns.max() < refused["t_ns"]


def test_a_server_that_dies_and_comes_back_is_found_again_and_its_log_begins_again(mortal_redis, observe):
    logging = ["--slowlog-log-slower-than", "0"]  # every command
    redis = mortal_redis(*logging)
    o = observe("-s", redis.socket, "--on-error", "reconnect")
    o.rounds(2)
    kill(redis)
    o.await_note("observer-lost")
    time.sleep(1.5)  # several attempts
    lost = o.notes("observer-lost")
    assert lost[-1]["t_ns"] < time.monotonic_ns()
    assert len(lost) == 1
    mortal_redis(*logging)
    o.await_note("observer-connected", 2)
    o.rounds(2)
    assert o.notes("observer-lost") == lost
    notes = o.so_far().notes
    connected = [note for note in notes if note["kind"] == "observer-connected"]
    assert len(connected) == 2
    assert connected[0]["run_id"] != connected[1]["run_id"]
    again = notes.index(connected[1])
    for part in (notes[:again], notes[again:]):
        seen = ids(note for note in part if note["kind"] == "slowlog")
        assert len(set(seen)) == len(seen)
    assert 0 in seen  # everything that the new process has logged
    assert o.count("slowlog-missed") == 0


def test_a_server_that_hangs_does_not_delay_a_stop(serve, observe):
    redis = serve("redis")
    o = observe("-s", redis.socket)
    o.rounds(1)
    redis.send_signal(signal.SIGSTOP)
    time.sleep(1.2)  # it sends a command and gets no answer
    o.interrupt(SOON)


def test_a_server_that_has_ended_does_not_delay_a_stop(mortal_redis, observe):
    redis = mortal_redis()
    o = observe("-s", redis.socket, "--on-error", "reconnect")
    o.rounds(1)
    kill(redis)
    os.unlink(redis.socket)
    o.await_note("observer-lost")
    time.sleep(1)  # in a pause between attempts
    o.interrupt(SOON)
    assert o.count("observer-lost") == 1


def test_the_numbers_of_memcached_become_series(serve, observe):
    memcached = serve("memcached", tcp=True)
    words = ["-h", "localhost", "-p", memcached.port, "--protocol", "memcache_text", "--on-error", "reconnect"]
    o = observe(*words)
    o.rounds(3, "memcached.uptime")
    assert o.values("memcached.pid") == [memcached.pid]
    assert len(o.values("memcached.curr_connections")) >= 1
    assert o.values("memcached.version") == []
    connected, *_ = o.notes("observer-connected")
    assert (connected["server"], connected["process_id"]) == ("memcached", str(memcached.pid))
    kill(memcached)
    assert len(o.await_note("observer-lost")) == 1
    o.interrupt()
    assert o.log.whole
    assert len(o.log.series) > 30
    assert all(series["name"].startswith("memcached.") for series in o.log.series.values())


def test_a_server_of_another_kind_is_noted(redis, fake_server, observe):
    """The load is answered as by memcached, and the observer by Redis."""

    def act(peer, request):
        if request != b"stats\r\n":
            return peer.say(b"END\r\n")
        with connect_to(redis.instance.endpoint) as real:
            real.sendall(request)
            return peer.say(real.recv(1000))

    o = observe(*fake_server(after_greeting(act)).where, "--protocol", "memcache_text")
    [refused] = o.await_note("observer-refused")
    assert refused["command"] == "stats"
    assert o.end().series == {}
