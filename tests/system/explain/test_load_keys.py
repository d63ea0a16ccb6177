# SPDX-License-Identifier: MIT
"""forktail load --keys: explain names the key of the slow command, with and without a recording of the server."""

import re
import subprocess

import pytest

from harness import TREE, explain, forktail, needs_root

# On a busy machine these commands would take all of the time, so that nothing distinguishes their key.
pytestmark = pytest.mark.alone

SLOW, MEMBERS = "cart:123", 100_000


@pytest.fixture
def slow_load(serve, start_load, tmp_path):
    """A server with a large set, and a function that starts a load in which few commands sort it."""
    redis = serve("redis", "--slowlog-log-slower-than", "5000")
    fill = "for i = 1, ARGV[1] do redis.call('SADD', KEYS[1], 'member:' .. i) end"
    redis.ask("EVAL", fill, "1", SLOW, str(MEMBERS))
    commands = tmp_path / "commands"
    commands.write_text(f"1 SORT {SLOW} ALPHA LIMIT 0 1\n150 GET user:__key_number__\n")

    def start(*words, **options):
        words = [*redis.load_words(), "--commands", commands, "-r", 1000, "--rate", 200, "--duration", 4, *words]
        return start_load(*words, "-c", 20, "--seed", 1, **options)

    return redis, start


def first_paragraph(run):
    return " ".join(forktail("explain", run).out.split("\n\n")[0].split())


def test_without_a_recording_the_key_with_most_of_the_time_is_named(slow_load):
    load = slow_load[1]("--keys", 6).done()
    assert "the server was not recorded" in first_paragraph(load.log_path)
    assert 'of a key that begins with "cart:1" took ' in first_paragraph(load.log_path)

    requests = explain(load.log_path, "--requests", "--slow", "1ms")["slow_requests"]
    for r in requests:
        long_after_sent = r["start_ns"] + r["latency_ns"] - r["sent_ns"] > 1_000_000
        text = "cart:1" if r["op"] == "SORT" else "user:0"
        assert r.get("key") == ({"text": text, "begin": True} if long_after_sent else None)
    slowest = next(r for r in requests if r["op"] == "SORT")
    shown = forktail("explain", load.log_path, "--slow", "1ms", "--request", slowest["id"]).out
    assert ', of a key that begins with "cart:1"' in " ".join(shown.split())


def test_a_whole_key_is_not_called_a_begin(slow_load):
    load = slow_load[1]("--keys", len(SLOW)).done()
    assert f'of the key "{SLOW}" took ' in first_paragraph(load.log_path)


def test_a_key_that_all_requests_have_is_not_named(slow_load):
    # "" of both: the prefix tells nothing of those that only waited.
    redis, start = slow_load
    redis.ask("RENAME", SLOW, "user:sort")
    load = start("--command", "SORT user:sort ALPHA LIMIT 0 1", "--keys", 5).done()
    assert "begins with" not in first_paragraph(load.log_path)


def test_hashed_keys_show_none_of_their_bytes(slow_load):
    load = slow_load[1]("--keys", 20, "--hash-keys", observer=True)
    ended = load.wait()
    assert ended.status == 0, ended.err
    assert re.search(r'of the key "key-[0-9a-f]{16}" took ', first_paragraph(load.log_path))
    content = subprocess.run([TREE / "build/tests/dump_recording", load.log_path], stdout=subprocess.PIPE, check=True)
    for bytes_of_keys in (b"cart", b"user:"):
        assert bytes_of_keys not in content.stdout
        assert bytes_of_keys not in load.log_path.read_bytes()
    hashed = [note["key"] for note in load.log.notes if note["kind"] == "key"]
    assert len(set(hashed)) > 1
    slow = {note["command"][0] for note in load.log.notes if note["kind"] == "slowlog"}
    assert slow == {"SORT"}
    assert all(len(note["command"]) == 1 for note in load.log.notes if note["kind"] == "slowlog")


@needs_root
@pytest.mark.parametrize("recorder_words", [[], ["--requests=1/1", "--keys", "6"]], ids=["load", "both"])
def test_with_a_recording_the_command_is_named_with_its_key_once(slow_load, record, tmp_path, recorder_words):
    redis, start = slow_load
    recorder = record("--pid", redis.pid, *recorder_words)
    load = start("--keys", 6).done()
    recorder.stop()
    run = tmp_path / "run"
    run.mkdir()
    recorder.path.rename(run / "server.forktail")
    load.log_path.rename(run / "load.forktail")
    first = first_paragraph(run)
    assert 'SORT of a key that begins with "cart:1"' in first
    assert first.count("cart:1") == 1
