# SPDX-License-Identifier: MIT
"""forktail try on a real server: what it finds, and that the old value comes back on every way out."""

import json
import random
import signal
import time
from pathlib import Path

import pytest

from harness import eventually, forktail, needs_root, program, run_program

pytestmark = [pytest.mark.quiet, needs_root]
pytest.importorskip("redis", reason="needs python3-redis")

SHORT = ("--pairs", "2")
TIME = ("--duration", "4s")


@pytest.fixture
def server(serve):
    return serve("redis", "--save", "", "--enable-debug-command", "yes", tcp=True)


def value(server, name):
    return server.ask("CONFIG", "GET", name)[1]


def recorders_of(pid):
    """The command lines of recorders of this process."""
    lines = (text_of(path).split("\0") for path in Path("/proc").glob("[0-9]*/cmdline"))
    return [words for words in lines if "forktail-record" in words[0] and str(pid) in words]


def text_of(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def load(start_load, server):
    return start_load("-p", server.port, "--rate", 2000, "--duration", 60, "-c", 4, "-r", 1000)


def tried(server, setting, *words):
    ended = forktail("try", f"config set {setting}", "--port", server.port, *SHORT, *TIME, *words)
    assert ended.status == 0, ended.err
    return json.loads(ended.out) if "--json" in words else ended.out


def test_a_setting_that_does_nothing_shows_no_difference_and_is_put_back(server, load):
    said = tried(server, "slowlog-log-slower-than 20000", "--json")
    assert (said["old"], said["new"], said["pairs"]) == ("10000", "20000", 2)
    assert {row["figure"] for row in said["rows"]} >= {"p50", "p99", "p99.9", "max"}
    assert all(row["old"] > 0 and row["new"] > 0 and len(row["ratios"]) == 2 for row in said["rows"][:4])
    assert value(server, "slowlog-log-slower-than") == "10000"


def test_on_an_idle_server_nothing_can_be_compared(server):
    ended = forktail("try", "config set hz 20", "--port", server.port, *SHORT, *TIME)
    assert ended.status == 0, ended.err
    assert "It is '10' again." in ended.out and value(server, "hz") == "10"


def test_a_setting_that_costs_shows_its_cause(serve, start_load):
    server = serve("redis", "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", tcp=True)
    start_load("-p", server.port, "--rate", 500, "--duration", 60, "-c", 4, "-r", 1000, "--ratio", "1:0")
    said = tried(server, "appendfsync always", "--json")
    (fsync,) = (row for row in said["rows"] if row["figure"] == "fsync")
    assert fsync["new"] > fsync["old"]
    assert value(server, "appendfsync") == "everysec"


def test_a_value_in_another_form_is_put_back_too(server, load):
    out = tried(server, "client-output-buffer-limit 'normal 1mb 0 0'")
    assert "It is 'normal 0 0 0" in out
    assert value(server, "client-output-buffer-limit").startswith("normal 0 0 0")


@pytest.mark.parametrize("seed", range(10))
def test_killed_at_a_random_time_it_is_put_back(server, load, background, seed):
    trial = background(program("forktail"), "try", "config set hz 77", "--port", server.port, *SHORT, *TIME)
    assert eventually(lambda: value(server, "hz") == "77", 20)
    time.sleep(random.Random(seed).uniform(0, 2.5))
    trial.signal(signal.SIGKILL)
    assert eventually(lambda: value(server, "hz") == "10", 10)
    assert eventually(lambda: not recorders_of(server.pid), 10)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_is_put_back(server, load, background, number):
    trial = background(program("forktail"), "try", "config set hz 77", "--port", server.port, *SHORT, *TIME)
    assert eventually(lambda: value(server, "hz") == "77", 20)
    trial.signal(number)
    assert trial.wait(20).status == 3 and "stopped by" in trial.err
    assert value(server, "hz") == "10"


def test_another_clients_value_stays(server, load, background):
    trial = background(program("forktail"), "try", "config set hz 77", "--port", server.port, *SHORT, *TIME)
    assert eventually(lambda: value(server, "hz") == "77", 20)
    server.ask("CONFIG", "SET", "hz", "33")
    assert trial.wait(20).status == 3
    assert "another client set hz to '33': it stays so" in trial.err
    assert value(server, "hz") == "33"


def test_a_server_that_ends_and_comes_back_has_its_old_value(server, background, start_load, tmp_path):
    trial = background(program("forktail"), "try", "config set hz 77", "--port", server.port, *SHORT, *TIME)
    assert eventually(lambda: value(server, "hz") == "77", 20)
    port = server.port
    server.send_signal(signal.SIGKILL)
    again = background("redis-server", "--port", port, "--dir", tmp_path, "--save", "", "--hz", "12")
    assert trial.wait(60).status == 3 and "was restarted" in trial.err
    assert run_program("redis-cli", "-p", port, "CONFIG", "GET", "hz").out.split() == ["hz", "12"]
    again.close()


@pytest.mark.parametrize(
    ("setting", "words", "status", "why"),
    [
        ("hz 10", (), 1, ""),
        ("appendfsync no", (), 2, "forktail: 'appendfsync no' may lose writes of up to 30 seconds"),
        ("dir /tmp", (), 2, "forktail: dir is not tried"),
        ("hz 77", ("--duration", "3s"), 2, "forktail: --duration: 2 pairs need at least 4 s"),
    ],
)
def test_what_is_not_tried_changes_nothing(server, setting, words, status, why):
    ended = forktail("try", f"config set {setting}", "--port", server.port, *SHORT, *(words or TIME))
    assert ended.status == status
    assert ended.err.startswith(why) and ended.err.count("\n") <= 1
    assert value(server, "hz") == "10"


def test_a_server_that_does_not_answer_gets_its_value_back_later(server, background):
    trial = background(program("forktail"), "try", "config set hz 77", "--port", server.port, *SHORT, *TIME)
    assert eventually(lambda: value(server, "hz") == "77", 20)
    server.send_signal(signal.SIGSTOP)
    trial.signal(signal.SIGINT)
    assert trial.wait(60).status == 3
    assert "hz may still be '77'. A process tries for 10 minutes to set it back to '10'" in trial.err
    server.send_signal(signal.SIGCONT)
    assert eventually(lambda: value(server, "hz") == "10", 60)


def test_a_value_that_the_server_refuses_gets_its_reason(server):
    ended = forktail("try", "config set hz many", "--port", server.port, *SHORT, *TIME)
    assert ended.status == 3 and ended.err.startswith(f"forktail: 127.0.0.1:{server.port}: "), ended.err
    assert ended.err.count("\n") == 1 and value(server, "hz") == "10"
