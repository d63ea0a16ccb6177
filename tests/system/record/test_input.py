# SPDX-License-Identifier: MIT
"""The recorder's error messages: one clear sentence, the right exit status, nothing lost."""

import socket

import pytest

from disks import small_disk
from forktail.programs import program
from harness import AS_NOBODY, Recording, needs_root, run_program


@pytest.fixture
def refused(tmp_path):
    """refused(status, options, *words): the recorder ends with this status and one line that contains all the words."""

    def check(status, options, *words, by=()):
        ended = run_program(*by, program("forktail-record"), *options.split(), cwd=tmp_path)
        assert ended.status == status, ended.err
        assert ended.err.count("\n") == 1, ended.err
        assert [word for word in words if word not in ended.err] == [], ended.err

    return check


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-o x", ["--pid", "--port", "--unix", "--name"]),
        ("--pid 1", ["-o FILE"]),
        ("--pid abc -o x", ["abc"]),
        ("--pid 0 -o x", ["0"]),
        ("--port 70000 -o x", ["65535"]),
        ("--pid 1 --duration soon -o x", ["soon", "30s"]),
        ("--pid 1 --duration 0 -o x", ["--duration"]),
        ("--pid 1 --requests=1/3 -o x", ["--requests", "power of two", "1/3"]),
        ("--pid 1 --hash-clients -o x", ["--hash-clients needs --requests"]),
        ("--pid 1 --keys 8 -o x", ["--keys needs --requests"]),
        ("--pid 1 --requests --keys 33 -o x", ["--keys: expected a number from 1 to 32", "33"]),
        ("--pid 1 --requests --hash-keys -o x", ["--hash-keys needs --keys"]),
        ("--pid 1 --min-span 10ns -o x", ["--min-span", "1us"]),
        ("redis -o x", ["redis", "--name"]),
    ],
)
def test_wrong_usage_is_exit_status_2(refused, options, words):
    refused(2, options, *words)


def test_an_unknown_option_is_exit_status_2():
    ended = run_program(program("forktail-record"), "--what")
    assert ended.status == 2
    assert "--what" in ended.err


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("--pid 4194303", "no process 4194303"),
        ("--port {port}", "nothing listens on port"),
        ("--unix /nowhere/redis.sock", "nothing listens on /nowhere/redis.sock"),
        ("--name no-such-server", "no process is named no-such-server"),
    ],
    ids=["pid", "port", "unix", "name"],
)
def test_a_missing_target_is_exit_status_3(refused, target, why):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # no other program can listen on its port
        refused(3, f"{target.format(port=silent.getsockname()[1])} -o x", why)


@needs_root
def test_without_root_it_exits_with_3_and_mentions_sudo(redis, refused):
    refused(3, f"--pid {redis.pid} -o x", "sudo", by=AS_NOBODY)


@needs_root
def test_an_output_that_cannot_be_created_is_exit_status_3(redis, refused):
    refused(3, f"--pid {redis.pid} -o /proc/nowhere/x.forktail", "/proc/nowhere/x.forktail")


@needs_root
def test_a_full_disk_ends_the_recording_cleanly_with_a_message_and_exit_status_3(redis, background, tmp_path):
    with small_disk(tmp_path / "disk", "256k") as disk:
        path = disk / "server.forktail"
        recorder = background(program("forktail-record"), "--pid", redis.pid, "-o", path)
        background("redis-benchmark", "-s", redis.socket, "-n", 10_000_000, "-t", "set", "-q")
        ended = recorder.wait()
        assert ended.status == 3
        assert "No space left on device" in ended.err
        r = Recording(path)
    assert r.error == ""
    assert not r.damage.no_trailer
    assert r.damage.gaps == 0
    assert len(r.tallies) > 0
