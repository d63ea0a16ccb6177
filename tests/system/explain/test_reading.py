# SPDX-License-Identifier: MIT
"""`forktail explain` on difficult input: a log that grows, one with its blocks in another order, and one on a slow
disk. On the latter it reports progress, locks nothing, and ends at once on a signal.
"""

import fcntl
import os
import pty
import signal
import struct
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from disks import StandingDisk
from harness import BIN, eventually, explain, ft, load, needs_root
from processes import Closing
from real_run import RealRun, time_by_cause


def load_words(redis, log, duration):
    return [
        "-s", redis.socket, "-q", "-o", log, "--rate", 20_000, "-c", 8, "-t", "get", "--duration", duration,
    ]  # fmt: skip


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def test_a_growing_log_is_explained_up_to_its_end(redis, background, tmp_path):
    log = tmp_path / "load.forktail"
    growing = background(BIN / "forktail-load", *load_words(redis, log, "6s"))
    assert eventually(lambda: size_of(log) > 100_000)
    counts = []
    while growing.running:
        requests = explain(tmp_path)["requests"]
        assert requests["latency_ns"]["max"] >= requests["latency_ns"]["p50"]
        counts.append(requests["count"])
    ended = growing.wait(20)
    assert ended.status == 0, ended.err
    assert len(counts) > 1
    counts.append(explain(tmp_path)["requests"]["count"])
    assert counts == sorted(counts)
    assert counts[-1] == 120_000


def blocks_of(recording):
    """The kinds and the bytes of a recording's blocks (docs/reference/recording-format.md)."""
    header = struct.Struct("<4sHBB7I")
    blocks, at = [], 0
    while at < len(recording):
        magic, kind, _, _, _, _, _, stored_bytes, *_ = header.unpack_from(recording, at)
        assert magic == b"FTBK"
        end = at + header.size + stored_bytes
        blocks.append((kind, recording[at:end]))
        at = end
    return blocks


def test_blocks_of_requests_in_another_order_are_the_same_requests(redis, tmp_path):
    in_order, reversed_ = tmp_path / "in-order", tmp_path / "reversed"
    in_order.mkdir()
    reversed_.mkdir()
    assert load(*load_words(redis, in_order / "load.forktail", "4s")).status == 0
    blocks = blocks_of((in_order / "load.forktail").read_bytes())
    requests = [block for kind, block in blocks if kind == ft.BLOCK_REQUEST]
    assert len(requests) > 3
    # Without the summary, the index and the trailer, as if the writer had been killed.
    end = (ft.BLOCK_SUMMARY, ft.BLOCK_INDEX, ft.BLOCK_TRAILER)
    others = [block for kind, block in blocks if kind not in (ft.BLOCK_REQUEST, *end)]
    (reversed_ / "load.forktail").write_bytes(b"".join(others + requests[::-1]))

    expected, found = explain(in_order), explain(reversed_)
    for key in ("count", "latency_ns"):
        assert found["requests"][key] == expected["requests"][key]
    assert found["slow"] == expected["slow"]
    assert sum(one["time_ns"] for one in found["causes"]) == found["slow"]["time_ns"]


@needs_root
def test_a_part_without_sent_requests_is_explained_as_it_is_in_the_whole_run(serve, tmp_path):
    redis = serve("redis")
    with RealRun(tmp_path / "run") as run:
        run.record(redis.pid)
        # Requests due after the server stopped wait for its two connections until the end.
        run.load("-s", redis.socket, "--rate", 3000, "-c", 2, "-t", "get", "--duration", 60)
        time.sleep(1)
        redis.send_signal(signal.SIGSTOP)
        time.sleep(3)
        run.client.interrupt(60)
        redis.send_signal(signal.SIGCONT)
        run.recorder.stop()
    words = ["--requests", "--slow", "100ms"]
    part = run.explain(*words, "--since", "+2s", "--until", "+3s")
    assert list(part["requests"]["by_status"]) == ["unsent"]
    every = run.explain(*words)
    assert every["causes"][0]["cause"] == "stopped"
    whole = {one["start_ns"]: time_by_cause(one) for one in every["slow_requests"]}
    both = [one for one in part["slow_requests"] if one["start_ns"] in whole]
    assert both
    moved_ns = 0
    for one in both:
        moved = Counter(time_by_cause(one))
        moved.subtract(whole[one["start_ns"]])
        moved_ns += sum(map(abs, moved.values()))
    assert moved_ns < sum(one["latency_ns"] for one in both) // 50


@pytest.fixture
def slow_disk(tmp_path, closing):
    """A StandingDisk from which processes in a cgroup read 200,000 bytes per second; and the cgroup."""
    blkio = Path("/sys/fs/cgroup/blkio")
    if not (blkio / "blkio.throttle.read_bps_device").exists():
        pytest.skip("a slow disk needs the blkio controller (version 1)")
    disk, group = closing(StandingDisk(tmp_path)), blkio / f"forktail-test-{os.getpid()}"
    device = disk.path.stat().st_dev
    group.mkdir()
    limit = f"{os.major(device)}:{os.minor(device)} 200000"
    (group / "blkio.throttle.read_bps_device").write_text(limit)
    yield disk, group
    assert eventually(lambda: (group / "cgroup.procs").read_text() == "")
    group.rmdir()


def drop_from_memory(file):
    """Whoever reads the file next reads it from the disk."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class OnTerminal(Closing):
    """A command with a terminal, in a cgroup. It is killed at the end of its `with` block.

    out: what it has printed so far. status: as from waitpid(), once it has ended.
    """

    def __init__(self, words, group):
        self.out, self.ended, self.status = b"", False, 0
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # also if a shell without job control started pytest
                (group / "cgroup.procs").write_text("0")  # 0: the calling process
                os.execvp(words[0], list(map(str, words)))
            finally:
                os._exit(127)
        os.set_blocking(self._terminal, False)

    def look(self):
        """Reads what it has printed, and whether it has ended."""
        with suppress(OSError):  # EAGAIN: that was all; EIO: it has closed the terminal
            while more := os.read(self._terminal, 4096):
                self.out += more
        if not self.ended:
            pid, self.status = os.waitpid(self.pid, os.WNOHANG)
            self.ended = pid == self.pid
        return self

    def type(self, keys):
        os.write(self._terminal, keys)

    def close(self):
        if not self.look().ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._terminal)


@needs_root
def test_on_a_slow_disk_a_report_shows_progress_locks_nothing_and_ends_at_once_on_a_signal(redis, slow_disk, tmp_path):
    disk, group = slow_disk
    log, pages = disk.path / "load.forktail", tmp_path / "pages"
    pages.mkdir()
    loaded = load(*load_words(redis, log, "6s"))
    assert loaded.status == 0, loaded.err
    assert log.stat().st_size > 600_000
    drop_from_memory(log)
    with OnTerminal([BIN / "forktail", "report", log, "-o", pages / "page.html"], group) as report:
        assert eventually(lambda: report.look().ended or b" %\x1b[K" in report.out, 30), report.out
        assert not report.ended, report.out
        assert b"reading " in report.out
        with log.open("r+b") as file:  # the writer of the log is not blocked
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        report.type(b"\3")
        assert eventually(lambda: report.look().ended)
        assert os.WIFSIGNALED(report.status)
    assert list(pages.iterdir()) == []
