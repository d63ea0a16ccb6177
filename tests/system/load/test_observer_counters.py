# SPDX-License-Identifier: MIT
"""What the observer notes of the counters of a real server: of its commands at the start and at the end, of its I/O
threads every second.
"""

import re
import signal
import threading
import time
from itertools import pairwise

import pytest
from observation import Observation

from forktail.servers.listen import connect_to
from harness import Recording, kill, load
from server_counts import info


@pytest.fixture
def observe(tmp_path, closing):
    """observe(redis, ...): an Observation, which is killed at the end of the test."""
    return lambda redis, *words: closing(Observation(tmp_path / "observed", "-s", redis.socket, *words))


def counters(note):
    """The commands of a note of counters, by name."""
    return {command["name"]: command for command in note["commands"]}


@pytest.mark.parametrize("kind", ["redis", "redis8", "valkey"])
def test_the_counters_of_each_command_are_noted_at_the_start_and_at_the_end(serve, observe, kind):
    redis = serve(kind)
    for _ in range(40):
        redis.ask("SET", "key", "before")
    o = observe(redis)
    o.await_note("command-latency")
    o.rounds(2)
    for _ in range(300):
        redis.ask("SET", "key", "value")
    refused = redis.instance.connection().reply
    for _ in range(70):
        refused("LPUSH", "key", "of another type")
    refused("GET")
    o.end()
    now = info(redis)
    for noted in ("command-stats", "command-latency"):
        first, last = o.notes(noted)
        assert first["t_ns"] < last["t_ns"]
        assert first["run_id"] == last["run_id"] == now["run_id"]
        assert [counters(note)["set"]["calls"] for note in (first, last)] == [40, 340]
        assert "lpush" not in counters(first)
    stats = counters(o.notes("command-stats")[1])
    assert f"calls=340,usec={stats['set']['usec']}," in now["cmdstat_set"]
    assert stats["lpush"]["failed_calls"] == 70
    assert stats["get"]["rejected_calls"] == 1
    slots = counters(o.notes("command-latency")[1])["set"]["slots"]
    assert slots[-1][1] == 340
    assert all(one[0] < following[0] and one[1] < following[1] for one, following in pairwise(slots))


def test_info_has_the_connections_of_each_io_thread_that_client_list_has(serve, observe, closing):
    redis = serve("redis8", "--io-threads", "3")
    o = observe(redis)

    def counted():
        clients = re.findall(r" io-thread=(\d+)$", redis.ask("CLIENT", "LIST")[0], re.MULTILINE)
        listed = [clients.count(thread) for thread in "12"]
        known = [o.values(f"redis.io_thread_{thread}.clients")[-1:] for thread in "12"]
        return known == [[count] for count in listed] and sum(listed) >= 9

    for _ in range(9):
        closing(connect_to(redis.instance.endpoint))
    o.until(counted)


def test_the_manifest_has_the_commands_that_the_server_counts_not_the_names_of_tests(redis, tmp_path):
    log = tmp_path / "log"
    assert load("-s", redis.socket, "-t", "lrange_100,set", "-n", 10, "-q", "-o", log).status == 0
    manifest = Recording(log).manifest
    commands = zip(manifest["ops"], manifest["commands"], strict=True)
    assert set(commands) == {("LRANGE_100", "LRANGE"), ("SET", "SET")}


def test_a_stop_in_the_middle_of_a_question_does_not_lose_the_last_counters(serve, observe):
    redis = serve("redis")
    o = observe(redis)
    o.await_note("command-latency")
    redis.ask("SET", "key", "value")
    redis.send_signal(signal.SIGSTOP)
    time.sleep(1.2)  # it sends a command and gets no answer
    later = threading.Timer(0.3, redis.send_signal, [signal.SIGCONT])
    later.start()
    o.end()
    later.join()
    _, last = o.notes("command-stats")
    assert counters(last)["set"]["calls"] == 1
    assert o.count("command-latency") == 2


def test_the_counters_of_another_process_are_noted_from_its_start_on(mortal_redis, observe):
    redis = mortal_redis()
    o = observe(redis, "--on-error", "reconnect")
    o.await_note("command-stats")
    kill(redis)
    mortal_redis()
    o.await_note("command-stats", 2)
    o.rounds(2)
    o.end()
    first, second, third = (note["run_id"] for note in o.notes("command-stats"))
    assert first != second == third
