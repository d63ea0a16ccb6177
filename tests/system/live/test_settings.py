# SPDX-License-Identifier: MIT
"""forktail doctor --settings on real servers: a healthy one has one line, another one the setting that it was given."""

import json

import pytest

from harness import forktail, needs_root

pytestmark = needs_root
pytest.importorskip("redis", reason="needs python3-redis")


def asked(server, *words):
    at = ["--port", server.port] if server.port else ["--unix", server.socket]
    return forktail("doctor", *at, "--settings", *words)


@pytest.mark.parametrize("tcp", [True, False])
def test_a_healthy_server_gets_one_line(serve, tcp):
    ended = asked(serve("redis", "--save", "", "--maxmemory", "100mb", tcp=tcp))
    assert (ended.status, ended.out.count("\n")) == (0, 1), ended.out
    assert "none of" in ended.out and "applies here" in ended.out


@pytest.mark.parametrize(
    ("words", "setting", "seen"),
    [
        (["--appendonly", "yes", "--appendfsync", "always"], "appendfsync", "appendfsync is always"),
        (["--io-threads", "64"], "io-threads", "io-threads is 64, and the server may use"),
        (["--tcp-backlog", "100000"], "somaxconn", "and tcp-backlog 100000"),
    ],
)
def test_a_setting_that_matters_is_found(serve, words, setting, seen):
    server = serve("redis", "--save", "", "--maxmemory", "100mb", *words, tcp=True)
    ended = asked(server, "--json")
    found = json.loads(ended.out)
    assert ended.status == 1 and found["pid"] == server.pid and found["config_read"]
    assert [one["setting"] for one in found["settings"]] == [setting]
    assert seen in found["settings"][0]["seen"]
    text = asked(server).out
    assert "Why here: " in text and "What to do: " in text


def test_doctor_prints_them_after_the_explanation_with_their_part_in_it(serve, start_load):
    words = ["--appendonly", "yes", "--appendfsync", "always", "--latency-monitor-threshold", "10"]
    server = serve("redis", "--save", "", *words, tcp=True)
    start_load("-p", server.port, "-t", "set", "--duration", "60s")
    ended = forktail("doctor", "--port", server.port, "--duration", "2s")
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()[-6:]
    assert "that cause spikes here: 1 of" in lines[0], ended.out
    assert lines[3].startswith("    In the recording fsync took ") and "iterations' time" in lines[3], ended.out


def test_a_recording_that_cannot_be_read_gets_one_sentence(serve, tmp_path):
    ended = asked(serve("redis", tcp=True), "--run", tmp_path / "none")
    assert ended.status == 3 and "none" in ended.err and ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (["--settings"], 2, "forktail: --settings needs a server: --port, --pid, --name or --unix"),
        (["--settings", "--port", "1"], 3, "forktail: 127.0.0.1:1: "),
    ],
)
def test_mistakes_get_one_sentence(words, status, why):
    ended = forktail("doctor", *words)
    assert ended.status == status and ended.err.startswith(why) and ended.err.count("\n") == 1
