# SPDX-License-Identifier: MIT
"""The remedy after the answer: it fits what a real server did and how it is set. There is no remedy if the setting
already has that value, or is not in the recording.
"""

import json
import shutil
import time

import pytest

from harness import Recording, explain, forktail, needs_root
from real_run import RealRun, record_two_saves

pytestmark = [pytest.mark.alone, needs_root]

BIG = "for i = 1, 400000 do redis.call('hset', KEYS[1], i, i) end"


@pytest.fixture
def recorded(serve, tmp_path):
    """recorded(act, *settings): the run in which act(redis) happened under load, and the server's settings."""

    def make(act, *settings, before=lambda redis: None):
        redis = serve("redis", "--save", "", "--enable-debug-command", "yes", *settings)
        before(redis)
        with RealRun(tmp_path / "run") as run:
            run.record(redis.pid)
            run.load(*redis.load_words(), "--rate", 1000, "-c", 4, "--duration", 4, "-t", "get")
            time.sleep(2)
            act(redis)
            run.finish()
        return redis, run

    return make


def remedies(run):
    return {one["id"]: one for one in run.explain("--slow", "1ms")["remedies"]}


def fill(redis):
    assert redis.ask("EVAL", BIG, "1", "big") == [""]


@pytest.mark.parametrize("lazy", ["no", "yes"])
def test_a_large_value_that_del_frees_and_the_setting_for_it(recorded, lazy):
    settings = ("--lazyfree-lazy-user-del", lazy)
    redis, run = recorded(lambda redis: redis.ask("DEL", "big"), *settings, before=fill)
    found = remedies(run)
    if lazy == "yes":
        assert "lazyfree" not in found
        return
    assert "lazyfree" in found, run.text("--all")
    one = found["lazyfree"]
    assert one["cause"] == "server-busy" and one["seen"] == "lazyfree-lazy-user-del is no"
    answer = run.explain("--slow", "1ms")
    (figure, at_best), *others = one["what_if"].items()
    assert not others and at_best < answer["requests"]["latency_ns"][figure]
    text = " ".join(run.text("--slow", "1ms").split())
    assert (
        "What to do: free deleted hashes, lists and sets in a background thread (CONFIG SET lazyfree-lazy-user-del "
        "yes), because lazyfree-lazy-user-del is no. At best " in text
    )
    assert f"forktail try 'config set lazyfree-lazy-user-del yes' --unix {redis.socket} " in text
    assert (
        json.loads(forktail("explain", run.path, "--slow", "1ms", "--features").out)["remedy"].removesuffix(".") in text
    )
    page = run.path / "report.html"
    assert forktail("report", run.path, "--slow", "1ms", "-o", page).status == 0
    assert '<p class="remedy">What to do: free deleted hashes' in page.read_text()


@pytest.mark.parametrize(
    "words", [["FLUSHALL", "SYNC"], ["DEL", *(f"key:{i}" for i in range(300_000))]], ids=["a flush", "small values"]
)
def test_what_no_setting_would_have_freed_in_the_background(recorded, words):
    def before(redis):
        assert redis.ask("DEBUG", "POPULATE", "300000") == ["OK"]

    _, run = recorded(lambda redis: redis.ask(*words), before=before)
    assert not {"lazyfree", "lazy-flush"} & set(remedies(run))


def test_a_setting_that_changed_meanwhile_makes_no_advice(recorded):
    def act(redis):
        redis.ask("DEL", "big")
        assert redis.ask("CONFIG", "SET", "lazyfree-lazy-user-del", "yes") == ["OK"]

    _, run = recorded(act, before=fill)
    notes = [n["settings"] for n in Recording(run.path / "load.forktail").notes if n["kind"] == "settings"]
    assert [one["lazyfree-lazy-user-del"] for one in notes] == ["no", "yes"]
    assert "lazyfree" not in remedies(run)


def test_keys_is_to_be_scan(recorded):
    def before(redis):
        assert redis.ask("DEBUG", "POPULATE", "500000") == ["OK"]

    _, run = recorded(lambda redis: redis.ask("KEYS", "*none*"), before=before)
    assert remedies(run)["scan"]["text"] == "Use SCAN in place of KEYS"


@pytest.mark.parametrize("act", ["a client", "a save point"])
def test_who_began_a_snapshot_decides_what_to_do(serve, tmp_path, act):
    redis = serve("redis", "--enable-debug-command", "yes", "--save", "" if act == "a client" else "1 1000")
    if act == "a client":
        record_two_saves(tmp_path / "run", redis)
    else:
        assert redis.ask("DEBUG", "POPULATE", "1000000", "key", "100") == ["OK"]
        with RealRun(tmp_path / "run") as run:
            run.record(redis.pid)
            run.load(*redis.load_words(), "--rate", 5000, "--duration", 4, "-c", 10, "-r", 100_000, "--ratio", "1:1")
            run.finish()
    answer = explain(tmp_path / "run")
    if not {"fork", "cow-copy"} & set(answer["verdict"]["causes"]):
        pytest.skip("the machine was too busy: the snapshot does not lead")
    found = {one["id"]: one for one in answer["remedies"]}
    if act == "a client":
        assert "save" not in found and found["bgsave"]["seen"] in ("clients sent it once", "clients sent it 2 times")
    else:
        assert "bgsave" not in found
        assert found["save"]["seen"] == "save is '1 1000' and no client sent BGSAVE"


def test_without_the_settings_there_is_no_advice(recorded):
    """The server refuses CONFIG to the load generator: the recording says so, and explain gives no advice."""

    def before(redis):
        fill(redis)
        assert redis.ask("ACL", "SETUSER", "default", "-config") == ["OK"]

    _, run = recorded(lambda redis: redis.ask("DEL", "big"), before=before)
    notes = Recording(run.path / "load.forktail").notes
    assert [n["command"] for n in notes if n["kind"] == "observer-refused"] == ["CONFIG GET"]
    assert not [n for n in notes if n["kind"] == "settings"]
    assert "lazyfree" not in remedies(run)


def test_the_settings_are_of_one_server_and_have_no_secrets(recorded, tmp_path):
    redis, run = recorded(lambda redis: None, "--masterauth", "a-secret")
    (settings,) = [n["settings"] for n in Recording(run.path / "load.forktail").notes if n["kind"] == "settings"]
    assert settings["appendonly"] == "no" and settings["save"] == ""
    assert b"a-secret" not in (run.path / "load.forktail").read_bytes()
    assert redis.ask("CONFIG", "GET", "masterauth") == ["masterauth", "a-secret"]
    shutil.rmtree(run.path)
