# SPDX-License-Identifier: MIT
"""A real recorder with a ring on a real server: parts of it are saved as snapshots and explained while it continues,
and after it was killed.
"""

import json
import signal
import time

import pytest

from disks import small_disk
from harness import eventually, explain, forktail, load, needs_root


@pytest.fixture
def keep(record):
    """keep(redis, ring): a recorder with a ring, once it is recording."""
    return lambda redis, ring: record("--pid", redis.pid, "--keep", "60s", path=ring)


def has_segments(ring, count):
    return eventually(lambda: len(list(ring.glob("segment-*.forktail"))) >= count, 30)


def sleep_ns(explanation):
    """How long the sleeps in an explanation's slow iterations were."""
    return next((one["time_ns"] for one in explanation["causes"] if one["cause"] == "sleep"), 0)


def warnings(explanation, part):
    return [warning for warning in explanation["warnings"] if part in warning]


@needs_root
@pytest.mark.quiet
def test_a_part_of_a_ring_is_saved_while_its_recorder_continues_and_after_it_was_killed(serve, keep, tmp_path):
    ring, now, everything = tmp_path / "ring", tmp_path / "now", tmp_path / "all"
    redis = serve("redis", "--enable-debug-command", "yes")
    recorder = keep(redis, ring)
    assert has_segments(ring, 2)
    assert forktail("mark", ring, "deploy 42").status == 0
    redis.ask("DEBUG", "SLEEP", "0.2")
    time.sleep(1.5)  # events are written within a second
    taken = forktail("snapshot", ring, "--last", "5s", "-o", now)
    assert taken.status == 0, taken.err
    assert taken.out.startswith(f"{now}: ")
    assert recorder.running
    # The sleep is in the snapshot, and in the explanation of the ring itself.
    for explanation in (explain(now), explain(ring, "--since", "-6s")):
        assert sleep_ns(explanation) >= 199e6
        assert warnings(explanation, "segment") == []
        assert [mark["text"] for mark in explanation["marks"]] == ["deploy 42"]
    assert has_segments(ring, 3), (recorder.err, sorted(ring.iterdir()))
    recorder.signal(signal.SIGKILL)
    recorder.wait(10)

    # One sentence, and everything up to then.
    killed = explain(ring)
    assert len(warnings(killed, "the file has no end")) == 1
    assert sleep_ns(killed) >= 199e6
    assert killed["account"]["threads"]

    again = keep(redis, ring)
    assert has_segments(ring, 4)
    redis.ask("DEBUG", "SLEEP", "0.3")
    time.sleep(1.5)
    assert forktail("snapshot", ring, "-o", everything).status == 0
    again.signal(signal.SIGTERM)
    assert again.wait(20).status == 0
    explanation = explain(everything)
    assert sleep_ns(explanation) >= 499e6
    assert explanation["requests"]["from"] == "iterations"


@pytest.mark.parametrize(
    "directory, words, status",
    [
        ("", [""], 2),
        ("", ["two\nlines"], 2),
        ("", ["x" * 201], 2),
        ("", ["x", "--at", "yesterday"], 2),
        ("nothing", ["x"], 3),
    ],
)
def test_a_mark_that_cannot_be_made_is_one_sentence(tmp_path, directory, words, status):
    refused = forktail("mark", tmp_path / directory, *words)
    assert (refused.status, refused.err.count("\n")) == (status, 1), refused.err
    assert list(tmp_path.iterdir()) == []


def test_a_mark_has_the_time_that_it_is_given(tmp_path):
    assert forktail("mark", tmp_path, "x", "--at", "1764000000.5").status == 0
    assert (tmp_path / "marks").read_text() == "1764000000.500000000 x\n"


@needs_root
def test_every_command_for_runs_accepts_a_ring_with_a_request_log_while_it_is_written(redis, keep, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"

    def record_with_load(ring):
        recorder = keep(redis, ring)
        assert has_segments(ring, 1)
        words = ["-s", redis.socket, "--rate", 1000, "-n", 2000, "-q", "-o", ring / "load.forktail"]
        assert load(*words).status == 0
        assert has_segments(ring, 2)
        return recorder

    recorder = record_with_load(one)
    recorder.signal(signal.SIGTERM)
    assert recorder.wait(20).status == 0
    recorder = record_with_load(two)

    def printed(*words):
        ran = forktail(*words)
        assert ran.status == 0, ran.err
        return ran.out

    assert explain(two)["requests"]["count"] == 2000
    assert "\n2000\n" in printed("sql", two, "--csv", "select count(*) from requests")
    for form in ("parquet", "csv", "perfetto", "hlog", "folded", "speedscope", "otlp", "openmetrics"):
        printed("export", two, "--to", form, "-o", tmp_path / form)
        assert (tmp_path / form).exists()
    page = tmp_path / "page.html"
    printed("report", two, "-o", page)
    assert page.stat().st_size > 10_000
    compared = json.loads(forktail("diff", one, two, "--json").out)
    assert compared["a"]["runs"][0]["p99.9_ns"] > 0
    assert [forktail("gate", two, f"p50 < {limit}").status for limit in ("1s", "1us")] == [0, 1]
    assert recorder.running


@pytest.mark.parametrize(
    "words, status, why",
    [
        (["{0}", "-o", "{0}/run"], 3, "{0} holds no ring (segment-*.forktail)"),
        (["{0}/none", "-o", "{0}/run"], 3, "{0}/none does not exist"),
        (["{0}"], 2, "-o"),
        (["{0}", "-o", "{0}/run", "--last", "x"], 2, "--last needs a duration such as 60s or 5m, not 'x'"),
        (["{0}", "-o", "{0}/run", "--last", "5s", "--since", "-5s"], 2, "--since"),
        (["{0}", "-o", "{0}/run", "--since", "soon"], 2, "--since takes a time"),
    ],
)
def test_a_part_that_cannot_be_saved_from_a_ring_is_one_sentence_and_leaves_nothing(tmp_path, words, status, why):
    refused = forktail("snapshot", *(word.format(tmp_path) for word in words))
    assert (refused.status, refused.out, refused.err.count("\n")) == (status, "", 1), refused.err
    assert why.format(tmp_path) in refused.err
    assert list(tmp_path.iterdir()) == []


@needs_root
def test_a_full_disk_has_no_incomplete_snapshot(redis, keep, tmp_path):
    ring = tmp_path / "ring"
    recorder = keep(redis, ring)
    assert has_segments(ring, 2)
    recorder.signal(signal.SIGTERM)
    assert recorder.wait(20).status == 0
    assert f"{tmp_path} exists." in forktail("snapshot", ring, "-o", tmp_path).err
    nothing = forktail("snapshot", ring, "--since", "+1h", "-o", tmp_path / "run")
    assert nothing.status == 3
    assert f"{ring} has no data at that time: the run lasts from +0 s to" in nothing.err

    with small_disk(tmp_path / "disk", "16k") as disk:
        full = forktail("snapshot", ring, "-o", disk / "run")  # copies: another file system
        assert full.status == 3
        assert "No space left on device" in full.err
        assert list(disk.iterdir()) == []
