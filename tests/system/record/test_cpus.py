# SPDX-License-Identifier: MIT
"""A CPU goes offline and comes back while the recorder runs, as after a suspend: its perf events are gone then."""

import os
import subprocess
from pathlib import Path

import pytest

from harness import eventually, forktail, ft, needs_root, needs_two_cpus
from processes import Closing

# A CPU that was offline before should stay so.
pytestmark = [pytest.mark.alone, needs_root, needs_two_cpus]

CPU = 1
ONLINE = Path(f"/sys/devices/system/cpu/cpu{CPU}/online")
PAGE, PAGES = 4096, 2000


class Offline(Closing):
    """The CPU is offline until close(). A separate process brings it back, also if this test is killed."""

    def __init__(self):
        self._guard = subprocess.Popen(
            ["sh", "-c", f"cat; echo 1 >{ONLINE}"], stdin=subprocess.PIPE, start_new_session=True
        )  # fmt: skip
        try:
            ONLINE.write_text("0")
        except OSError as error:
            self.close()
            pytest.skip(f"cannot take CPU {CPU} offline by {ONLINE}: {error.strerror}")

    def close(self):
        self._guard.stdin.close()
        self._guard.wait()


@pytest.fixture
def take_offline(closing):
    """take_offline(): an Offline, which ends with the test."""
    return lambda: closing(Offline())


@pytest.fixture
def server(serve):
    """A server whose snapshot takes long, with memory for it."""
    server = serve("redis", "--rdb-key-save-delay", "20000000")
    server.ask("SETRANGE", "pages", str(PAGES * PAGE), "x")
    return server


def work(server):
    """On that CPU: computes for a while, and writes to pages that a snapshot child shares."""
    os.sched_setaffinity(server.pid, {CPU})
    server.ask("EVAL", "for i = 1, 20000000 do end", "0")
    assert server.ask("BGSAVE") == ["Background saving started"]
    for page in range(PAGES):
        server.ask("SETRANGE", "pages", str(page * PAGE), "x")
    assert server.instance.connection().read_info()["rdb_bgsave_in_progress"] == "1"


def check_recorded(server, recorder, offline):
    """The CPU comes back, the server works on it, and all of that is recorded."""
    offline.close()
    assert eventually(lambda: f"CPU {CPU} came online" in recorder.err)
    work(server)
    r = recorder.stop()
    assert r.count(server.pid, ft.COW_COPY) + r.missed() >= PAGES or r.unseen_switches()
    for table in (r.cpu_samples, r.counters):
        assert ((table.cpu == CPU) & (table.tid == server.pid)).any()
    explained = forktail("explain", "--all", r.path)
    assert f"Not recorded: page faults and CPU samples on CPU {CPU} for a moment" in explained.out, explained.err


def test_on_a_cpu_that_was_offline_page_faults_and_samples_are_recorded_again(server, record, take_offline):
    recorder = record("--pid", server.pid, "--counters", "software")
    check_recorded(server, recorder, take_offline())


def test_a_cpu_that_comes_online_for_the_first_time_while_recording_is_recorded_too(server, record, take_offline):
    offline = take_offline()
    recorder = record("--pid", server.pid, "--counters", "software")
    check_recorded(server, recorder, offline)
