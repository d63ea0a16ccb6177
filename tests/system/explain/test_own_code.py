# SPDX-License-Identifier: MIT
"""A real server's own code, from the CPU samples of a real recording: work that the test requests is reported under its
name.
"""

import time

import pytest

from forktail import open as open_run
from harness import Recorder, eventually, evidence, explain, forktail, needs_root
from real_run import during, episodes_in, info

pytestmark = needs_root

KEYS = 1_000_000
DEBUG = ["--enable-debug-command", "yes"]


def apart(act):
    """The instants before and after an act, with some quiet after it, so that the next one is in another episode."""
    interval = during(act)
    time.sleep(0.1)
    return interval


def most_sampled(explanation, interval):
    """The episode with the most samples, of those in an interval. Without a load generator episodes are long event-loop
    iterations."""
    samples = [(sum(a["samples"] for a in e["activities"]), e) for e in episodes_in(explanation, *interval)]
    most, episode = max(samples, key=lambda one: one[0], default=(0, None))
    assert most > 0
    return episode


def samples_of(own_code, name):
    return sum(a["samples"] for a in own_code["activities"] if a["name"] == name)


def populate(redis):
    redis.ask("DEBUG", "POPULATE", str(KEYS), "key", "10")


@pytest.fixture(scope="module")
def slow_commands(module_serve, tmp_path_factory):
    """A recording, its explanation, and when the server did each slow work."""
    redis = module_serve("redis", *DEBUG, "--list-max-listpack-size", "1")
    ask = redis.ask
    populate(redis)
    elements = (
        "local t = {} for i = 1, 1000 do t[i] = i end for i = 1, 1000 do redis.call('rpush', 'list', unpack(t)) end"
    )
    ask("EVAL", elements, "0")
    ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    ask("EVAL", "for i = 1, 200000 do redis.call('set', 'px' .. i, i, 'px', 1) end", "0")

    def expire():
        ask("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        assert eventually(lambda: int(info(redis, "expired_keys")) >= 150_000, 60)

    with Recorder(tmp_path_factory.mktemp("slow") / "server.forktail", "--pid", redis.pid) as recorder:
        when = {
            "KEYS": apart(lambda: ask("KEYS", "*z")),
            "EVAL": apart(lambda: ask("EVAL", "local n = 0 for i = 1, 1e7 do n = n + i % 7 end return n", "0")),
            "DEL": apart(lambda: ask("DEL", "list")),
            "expiry": apart(expire),
        }
        assert recorder.stop().dropped() == 0
    return recorder.path, explain(recorder.path), when


@pytest.mark.parametrize("command", ["KEYS", "EVAL", "DEL"])
def test_slow_commands_and_a_script_are_named_by_what_the_server_ran(slow_commands, command):
    functions_of = {"DEL": ("DEL", "DEL or UNLINK")}.get(command, (command,))
    _, explanation, when = slow_commands
    episode = most_sampled(explanation, when[command])
    # The episode is the command's, by its samples, and reports it.
    activities = episode["activities"]
    ran = activities[0]["name"].removeprefix("command/")
    assert ran in functions_of
    assert activities[0]["share"] > 0.5
    assert sum(a["share"] for a in activities) == pytest.approx(1)
    assert f"the server ran {ran} for " in evidence(episode)
    if command == "EVAL":
        assert activities[0]["lua_samples"] == activities[0]["samples"]  # it called no command


def test_expiry_is_named_by_what_the_server_ran(slow_commands):
    _, explanation, when = slow_commands
    # Removing so many keys also makes a table too large: some iterations rehash as much as they expire.
    episodes = episodes_in(explanation, *when["expiry"])
    assert sum(samples_of(e, "expire") for e in episodes) > 20
    assert "was expiring keys for " in evidence(*episodes)


def test_the_own_code_of_a_run_is_the_serving_threads(slow_commands):
    path, explanation, _ = slow_commands
    own = explanation["own_code"]
    assert [t["own_code"] for t in explanation["account"]["threads"] if t["serving"]] == [own]
    assert samples_of(own, "command/KEYS") > 20
    assert samples_of(own, "expire") > 20
    assert "\ncommand/KEYS " in forktail("explain", path, "--all").out


@pytest.mark.parametrize("kind", ["redis", "redis8", "valkey"])
class TestServersWithoutSymbols:
    def test_a_redis_function_is_named(self, serve, record, kind):
        redis = serve(kind)
        loop = "local n = 0 for i = 1, 1e7 do n = n + i % 7 end return n"
        library = f"#!lua name=test\nredis.register_function('busy', function() {loop} end)"
        redis.ask("FUNCTION", "LOAD", library)
        recorder = record("--pid", redis.pid)
        function = during(lambda: redis.ask("FCALL", "busy", "0"))
        recorder.stop()
        script = most_sampled(explain(recorder.path), function)
        assert script["activities"][0]["name"] in ("script", "command/FCALL")

    def test_a_large_transaction_is_named(self, serve, record, kind):
        redis = serve(kind)
        recorder = record("--pid", redis.pid, "--requests=1/1")  # a smaller sample may leave it out
        redis.ask("PING")
        redis.ask("MULTI")
        for i in range(20_000):
            redis.ask("SET", f"key{i}", "value")
        transaction = during(lambda: redis.ask("EXEC"))
        recorder.stop()
        episode = most_sampled(explain(recorder.path), transaction)
        assert "mostly in one transaction (EXEC) of 20,000 commands; " in evidence(episode)


def test_unwanted_samples_are_not_taken(serve, record):
    redis = serve("redis", *DEBUG)
    populate(redis)
    recorder = record("--pid", redis.pid, "--no-samples")
    redis.ask("KEYS", "*z")
    redis.ask("PING")  # the long iteration has ended
    recorder.stop()
    explanation = explain(recorder.path)
    assert explanation["own_code"] == {"samples": 0, "activities": []}
    first = explanation["episodes"][0]
    assert first["activities"] == []
    assert "(a slow command or a long batch)" in evidence(first)


def test_a_program_without_symbols_is_named_by_its_files_and_needs_no_event_loop(background, record):
    busy = background("dash", "-c", "while :; do :; done")
    recorder = record("--pid", busy.pid)
    time.sleep(0.5)
    recorder.stop()
    with open_run(recorder.path) as run:
        # Samples in interrupts are of no activity.
        activities = [sample["activity"] for sample in run.samples if sample["activity"] is not None]
    assert len(activities) > 10
    assert all(name.startswith("module/") or name == "allocate" for name in activities)
    assert "module/dash" in activities


def test_a_childs_samples_are_named_like_its_parents_also_after_its_end(serve, record):
    redis = serve("redis", *DEBUG)
    populate(redis)
    recorder = record("--pid", redis.pid)
    redis.ask("BGSAVE")
    assert eventually(lambda: info(redis, "rdb_bgsave_in_progress") == "0", 60)
    child = recorder.stop().role("snapshot child")
    threads = explain(recorder.path)["account"]["threads"]
    own = next(t["own_code"] for t in threads if t["tid"] == child.tid)
    assert own["samples"] > 20
    assert samples_of(own, "rdb-save") > 0
