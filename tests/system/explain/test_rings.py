# SPDX-License-Identifier: MIT
"""A server whose event loop uses io_uring: it is idle where it waits for its ring, it stalls where it is stopped, it
has iterations, and notes report what cannot be recorded.
"""

import time

import pytest

from harness import eventually, forktail, ft, helper, load, needs_root
from real_run import MS, RealRun, check_accounts, stop_for

NO_RING = 77  # the server's exit status without io_uring


# The kernel's own workers of a ring are not the server's threads. Where system calls are traced, too, its iterations
# are found by its waits.
@pytest.mark.quiet
@needs_root
@pytest.mark.parametrize(
    ("server_words", "recorder_words"),
    [([], []), (["workers"], []), ([], ["--exact"])],
    ids=["plain", "workers", "exact"],
)
def test_a_server_over_io_uring_is_idle_where_it_waits_for_its_ring(background, tmp_path, server_words, recorder_words):
    socket = tmp_path / "uring.sock"
    server = background(helper("uring_server"), socket, *server_words)
    assert eventually(lambda: socket.exists() or not server.running)
    if not server.running and server.wait().status == NO_RING:
        pytest.skip(f"this kernel refuses rings: {server.err}")
    words = ["-s", socket, "-t", "get", "--rate", 2000, "-c", 4, "--no-observer"]
    if "workers" in server_words:  # they exist before the recording begins
        assert load("-q", *words, "--duration", 1).status == 0
    with RealRun(tmp_path / "run") as run:
        run.record(server.pid, options=recorder_words)
        run.load(*words, "--duration", 3)
        time.sleep(1.5)
        stop_for(server.pid, 0.1)
        recording = run.finish()
        explanation = run.explain("--requests", "--slow", "20ms")

    assert recording.manifest["targets"][0]["io_uring"] is True
    # Most are too short to be recorded, or merged where the CPU is busy.
    assert recording.count(server.pid, ft.ITERATION) > 20
    # Nothing is recorded of the kernel's threads.
    assert {t.tid for t in recording.threads.values() if t.tgid == server.pid} == {server.pid}
    assert any("uses io_uring" in warning for warning in explanation["warnings"])
    assert_requests_were_stopped(explanation)
    check_accounts(explanation)
    assert_server_was_idle(explanation["account"]["threads"], server.pid)


def assert_requests_were_stopped(explanation):
    parts = [part for request in explanation["slow_requests"] for part in request["parts"]]
    assert not {"syscall", "unknown"} & {part["cause"] for part in parts}
    assert max(part["direct_ns"] for part in parts if part["cause"] == "stopped") >= 90 * MS
    assert "stopped" in [episode["causes"][0]["cause"] for episode in explanation["episodes"]]


def assert_server_was_idle(threads, pid):
    server = next(thread for thread in threads if thread["tid"] == pid)
    assert server["serving"]
    assert server["by_cause"].get("idle", 0) > 0.3 * server["wall_ns"]
    assert server["by_cause"].get("syscall", 0) < 0.01 * server["wall_ns"]


@needs_root
def test_for_a_server_with_epoll_there_is_no_note_about_rings(serve, record):
    redis = serve("redis")
    recorder = record("--pid", redis.pid)
    redis.ask("SET", "a", "1")
    assert recorder.stop().manifest["targets"][0]["io_uring"] is False


def test_doctor_says_what_is_recorded_of_servers_on_rings():
    doctor = forktail("doctor").out
    assert "servers on io_uring: " in doctor
    assert "Requests (--requests) have times and sizes, and no commands" in doctor
