# SPDX-License-Identifier: MIT
"""forktail.load and forktail.record on a real server: figures, statuses, how they begin and how they end."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import forktail
import forktail.programs
from forktail.load_generator import Load
from forktail.recorder import record


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("redis")
    words = [
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        f"{directory}/s",
        "--save",
        "",
        "--dir",
        str(directory),
    ]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while not (directory / "s").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.socket = f"{directory}/s"
    yield process
    process.terminate()
    process.wait()


@pytest.fixture
def recordable():
    if os.geteuid() != 0 or not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("needs root and BTF")


def test_a_load_returns_its_figures(server, tmp_path):
    result = forktail.load(
        server.socket,
        rate=1000,
        duration="500ms",
        out=tmp_path / "log",
        options=["--ratio", "0:1"],
    )
    assert result.status == 0 and result.total["requests"] == 500
    assert 0 < result.latency_ns["p50"] <= result.latency_ns["max"]
    assert result.log.exists() and "GET" in result.table


def test_the_answer_no_is_a_result_and_everything_else_a_failure(server):
    assert forktail.load(server.socket, options=["-n", 10, "--fail-if", "rps>0"]).status == 1
    for options, status, words in (
        (["--nonsense"], 2, "--nonsense"),
        (["-n", "10", "-s", "/no/socket"], 3, "/no/socket"),
    ):
        with pytest.raises(forktail.Failure, match=words) as failure:
            forktail.load(options=options)
        assert failure.value.status == status
        assert forktail.load(options=options, allowed=(status,)).status == status


def test_a_load_ends_with_its_block(server):
    with Load(server.socket, rate=500, duration="1h") as load:
        time.sleep(0.5)
        load.process.send_signal(signal.SIGSTOP)  # it is continued to end
    assert load.result.status == 0 and load.result.figures["reason"] == "interrupted"
    with pytest.raises(subprocess.TimeoutExpired):
        forktail.load(server.socket, rate=10, duration=60, timeout_s=0.2)
    assert not subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "forktail-load"], capture_output=True).stdout


def test_a_block_is_recorded_from_its_first_request(server, tmp_path, recordable):
    with forktail.record(pid=server.pid, out=tmp_path / "server.forktail", options=["--light"]) as recorder:
        assert recorder.messages.startswith("recording redis-server") and recorder.process.poll() is None
        forktail.load(server.socket, rate=2000, duration=1, out=tmp_path / "load.forktail")
    assert recorder.process.returncode == 0 and "recorded " in recorder.messages
    with forktail.open(tmp_path) as run:
        assert len(run.requests) == 2000
        first, begin = (
            run.requests["due_ns"].min(),
            run.explanation["account"]["threads"][0]["start_ns"],
        )
        assert begin < first
        assert server.pid in [row["pid"] for row in run.threads]


def test_a_recorder_that_cannot_record(server, tmp_path, recordable):
    for targets, status, words in (
        ({"pid": [2**22]}, 3, "no process"),
        ({}, 2, "no target"),
        ({"unix": "/no"}, 3, "/no"),
    ):
        with pytest.raises(forktail.Failure, match=words) as failure:
            record(out=tmp_path / "x", **targets).start()
        assert failure.value.status == status
    recorder = record(pid=server.pid, out=tmp_path / "x", wait_s=0.001)
    with pytest.raises(forktail.Failure, match="did not record within 0.001 s"):
        recorder.start()
    assert recorder.process.returncode is not None


def test_the_end_of_a_block(server, tmp_path, recordable):
    with (
        pytest.raises(forktail.Failure),
        record(pid=server.pid, out=tmp_path / "x") as recorder,
    ):
        recorder.process.kill()
        recorder.process.wait()
    with (
        pytest.raises(KeyError),
        record(pid=server.pid, out=tmp_path / "y") as recorder,
    ):
        raise KeyError  # is not hidden, and the recording is complete
    assert recorder.process.returncode == 0 and (tmp_path / "y").exists()


def test_where_programs_are(tmp_path, monkeypatch):
    own = tmp_path / "forktail-load"
    own.write_text("#!/bin/sh\n")
    monkeypatch.setenv("FORKTAIL_BIN_DIR", str(tmp_path))
    assert forktail.programs.find_program("forktail-load") is None  # not executable
    own.chmod(0o755)
    assert forktail.programs.program("forktail-load") == own
    with pytest.raises(forktail.Failure, match="cannot find forktail-record"):
        forktail.programs.program("forktail-record")
