# SPDX-License-Identifier: MIT
"""What a blocked call was on: the reader of a full pipe, the file of an fsync, a file system that was frozen, and a
program that a chroot in another mount namespace hides.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from disks import StandingDisk
from forktail.servers import find_server
from harness import eventually, evidence, explain, needs_root
from processes import Program, run

pytestmark = [pytest.mark.quiet, needs_root]


def kernel_function_of(pid):
    return Path(f"/proc/{pid}/wchan").read_text()


def test_the_stopped_reader_of_a_servers_log_is_named(serve, record):
    redis = serve("redis", "--loglevel", "verbose", under=["bash", "-c", 'exec "$@" > >(exec cat > /dev/null)', "bash"])
    reader = int(run("pgrep", "-P", redis.pid, "-x", "cat").out)
    recorder = record("--pid", redis.pid)
    os.kill(reader, signal.SIGSTOP)
    try:
        for _ in range(5000):  # the server logs each connection
            with suppress(OSError), socket.socket(socket.AF_UNIX) as one:
                one.settimeout(0.1)
                one.connect(redis.socket)
            if "pipe_write" in kernel_function_of(redis.pid):
                break
        assert "pipe_write" in kernel_function_of(redis.pid)
        time.sleep(0.5)
    finally:
        os.kill(reader, signal.SIGCONT)
    redis.ask("PING")
    recorder.stop()

    explanation = explain(recorder.path)
    on = f"write() to fd 1 (stdout), a pipe whose reader cat ({reader}) was stopped, for "
    assert f"blocked in {on}" in evidence(*explanation["episodes"])
    assert on in explanation["answer"]


def test_a_frozen_file_system_is_the_reason_of_a_wait_and_its_disk_is_not(serve, record, tmp_path):
    with StandingDisk(tmp_path) as disk:
        redis = serve("redis", "--appendonly", "yes", "--appendfsync", "no", "--dir", str(disk.path))
        recorder = record("--pid", redis.pid)
        disk.freeze()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(redis.socket)
            client.sendall(b"SET a 1\r\n")
            assert eventually(lambda: kernel_function_of(redis.pid).startswith(("percpu_rwsem_wait", "__percpu_down")))
            time.sleep(0.3)
            disk.thaw()
            assert client.recv(100) == b"+OK\r\n"
        recorder.stop()
    explanation = explain(recorder.path)
    reason = "for its file system, which was frozen (fsfreeze, or a snapshot of the disk)"
    assert reason in explanation["answer"]
    assert ".aof waited " in explanation["answer"]
    sentences = evidence(*explanation["episodes"])
    assert f"it waited {reason}" in sentences
    assert "meanwhile block device" not in sentences


def test_functions_of_a_program_in_a_chroot_of_another_mount_namespace_are_named(record, tmp_path):
    program, _ = find_server("redis")
    root = tmp_path / "root"
    for file in [program, *(word for word in run("ldd", program).out.split() if word.startswith("/"))]:
        inside = root / str(file).lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(file), inside)
    path = "/redis.sock"
    server = ["chroot", root, program, "--port", 0, "--unixsocket", path, "--save", ""]
    with Program("unshare", "--mount", "--fork", "--kill-child", *server) as unshare:
        assert eventually((root / path[1:]).exists)
        redis = int(run("pgrep", "-P", unshare.pid).out)
        recorder = record("--pid", redis)
        script = "local n = 0 for i = 1, 2e7 do n = n + i % 7 end return n"
        asked = subprocess.run(["redis-cli", "-s", root / path[1:], "EVAL", script, "0"], capture_output=True)
        assert asked.returncode == 0
        recorder.stop()
    assert "EVAL (Lua script)" in explain(recorder.path)["answer"]
