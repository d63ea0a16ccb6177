# SPDX-License-Identifier: MIT
"""A flight recorder on real servers: segments are separate recordings whose accounts add up, targets are followed,
and neither a full disk nor a kill loses more than it must.
"""

import os
import shlex
import shutil
import signal
import time

import numpy as np
import pytest

from disks import small_disk
from forktail.programs import program
from forktail.servers.listen import free_port
from harness import Program, Recording, eventually, ft, needs_root, run_program
from recorder_processes import status

# The recorder gives way to other programs, so on a busy machine it reports what happened much later.
pytestmark = [pytest.mark.quiet, needs_root]

NOBODY = 65534


class Keeper(Program):
    """A running forktail-record --keep."""

    def __init__(self, ring, *words, by=None):
        self.ring = ring
        super().__init__(by or program("forktail-record"), "-o", ring, *words)
        if not self.prints("recording "):
            self.close()
            raise AssertionError(f"forktail-record did not start: {self.err}")

    def prints(self, text):
        """Whether it prints this, in 30 seconds."""
        eventually(lambda: text in self.err or not self.running, 30)
        return text in self.err

    def segments(self):
        return sorted(self.ring.glob("*.forktail"))

    def end(self):
        ended = self.interrupt()
        assert ended.status == 0, ended.err
        assert "is not on the recorder's list" not in ended.err


@pytest.fixture
def keep(tmp_path, closing):
    """keep(*words): a Keeper whose ring is tmp_path/ring, which is killed at the end of the test."""
    return lambda *words, ring=tmp_path / "ring", **options: closing(Keeper(ring, *words, **options))


@pytest.fixture
def load(background):
    """load(redis): keeps a server busy with SETs."""
    return lambda redis: background("redis-benchmark", "-s", redis.socket, "-n", 10_000_000, "-t", "set", "-q")


def check_account(segments, tid):
    """The time of a thread from the first to the last instant in consecutive segments is accounted for."""
    times, accounted_ns = [], 0
    for r in segments:
        s, t = r.spans, r.tallies
        s, t = s[(s.tid == tid) & (s.owner != ft.ITERATION) & (s.depth == 0)], t[t.tid == tid]
        times += [s.start_ns, s.start_ns + s.duration_ns, t.start_ns, t.end_ns]
        accounted_ns += r.accounted_ns(tid)
    wall_ns = int(np.ptp(np.concatenate(times)))
    # A frame open at a begin or end is there with its inner frames on one side only.
    assert accounted_ns == pytest.approx(wall_ns, abs=0.01 * wall_ns + 3e6)


def check_complete(r):
    """Everything that a record refers to is in the same file."""
    assert r.error == ""
    assert not r.damage.no_trailer
    assert r.damage.blocks_missing == 0
    assert "windows" in r.cost
    assert set(np.unique(r.spans.detail)) <= {0, *r.details}
    assert set(np.unique(r.spans.tid)) <= {tid for tid, _ in r.threads}
    assert set(np.unique(r.samples.series)) <= {*r.series}
    assert set(np.unique(r.cpu_samples.stack)) <= {0, *r.stacks}
    assert len(r.samples) > 0
    assert len(r.loops) > 0


def open_at_end(r):
    """The owners of the last open spans of its threads, by thread."""
    assert (r.opens.flags & ft.SPAN_UNFINISHED != 0).all()
    return {int(s.tid): int(s.owner) for s in r.opens if s.owner != ft.ITERATION}


def test_segments_are_complete_their_accounts_add_up_and_a_kill_leaves_the_ring(redis, keep, load, tmp_path):
    keeper = keep("--pid", redis.pid, "--keep", "40s,100MB")
    # Segments of 5 s: from a second before the first one's end until after the second one's.
    time.sleep(4)
    client = load(redis)
    redis.ask("BGSAVE")
    assert eventually(lambda: len(keeper.segments()) >= 3, 20)
    client.signal(signal.SIGTERM)
    client.wait(10)
    # A thread that runs while it is read is not in this reading. The next one has it.
    assert eventually(lambda: open_at_end(Recording(keeper.segments()[-1])).get(redis.pid) == ft.IDLE, 20)
    second = run_program(program("forktail-record"), "--pid", redis.pid, "--keep", "40s", "-o", keeper.ring)
    assert second.status == 3
    assert "another recorder is writing to it" in second.err
    keeper.close()
    killed = len(keeper.segments()) - 1  # the current one; the third one, unless everything is slow
    assert killed >= 2

    keep("--pid", redis.pid, "--keep", "40s,100MB").end()
    files = keeper.segments()
    assert len(files) == killed + 2
    assert files[-1].name == f"segment-000000000{killed + 2}.forktail"
    segments = [Recording(file) for file in files]
    check_complete(segments[0])
    check_complete(segments[1])
    assert segments[0].summary["reason"] == "segment"
    assert segments[1].manifest["segment"] == 2
    assert segments[1].manifest["keep"] == "40s,100MB"
    assert segments[killed].damage.no_trailer
    assert segments[killed].damage.bytes_skipped == 0
    assert not segments[-1].damage.no_trailer
    for part in (segments[:1], segments[1:2], segments[:2], segments[1 : killed + 1]):
        check_account(part, redis.pid)
    # It waits for events and its threads for work. These waits began before the ring.
    waiting = open_at_end(segments[killed])
    assert waiting.pop(redis.pid) == ft.IDLE
    assert sum(owner == ft.LOCK_WAIT for owner in waiting.values()) >= 3


def test_targets_that_start_end_and_restart_are_followed_with_a_note_and_a_signal_ends_it(keep, background, tmp_path):
    port = free_port()
    # As another user, and with the smallest ring.
    keeper = keep("--port", port, "--keep", "40s", "--user", "nobody", "--no-samples")
    assert keeper.err.startswith("recording nothing yet")
    pids = []
    for number in (signal.SIGUSR1, signal.SIGHUP):
        # Its child lives long enough for the recorder to find out what it is.
        words = ["--port", port, "--save", "", "--dir", tmp_path, "--rdb-key-save-delay", 100_000]
        server = background("redis-server", *words)
        pids.append(server.pid)
        assert keeper.prints(f"redis-server ({server.pid}) began")
        run_program("redis-benchmark", "-p", port, "-n", 2000, "-t", "set", "-q")
        run_program("redis-cli", "-p", port, "bgsave")
        keeper.signal(number)
        time.sleep(0.2)
        server.signal(signal.SIGTERM)
        assert keeper.prints(f"redis-server ({server.pid}) ended")
        server.wait(30)
    keeper.end()
    segments = [Recording(file) for file in keeper.segments()]
    assert all(any(r.count(pid, ft.IDLE) for r in segments) for pid in pids)
    assert any(r.role("snapshot child") is not None for r in segments)
    notes = [note for r in segments for note in r.notes]
    # A snapshot's child has the name and is not a target.
    assert [note["pid"] for note in notes if note["kind"] == "target-began"] == pids
    assert [note["pid"] for note in notes if note["kind"] == "target-ended"] == pids
    assert [note["name"] for note in notes if note["kind"] == "trigger"] == ["SIGUSR1"]


def test_a_child_whose_begin_was_lost_in_a_full_ring_buffer_is_announced_later(serve, keep):
    redis = serve("redis", "--rdb-key-save-delay", "100000")  # its child lives for minutes
    keeper = keep("--pid", redis.pid, "--keep", "60s", "--min-span", "1us")
    keeper.signal(signal.SIGSTOP)
    # The ring buffer of one server has 4 MB. Each request of one connection is a wait: an event of at least 80 bytes.
    words = ["-c", 1, "-n", 100_000, "-r", 10_000, "-t", "set", "-q"]
    run_program("redis-benchmark", "-s", redis.socket, *words)
    redis.ask("BGSAVE")
    keeper.signal(signal.SIGCONT)

    def announced():
        segments = [Recording(file) for file in keeper.segments()]
        return any(r.role("snapshot child") is not None for r in segments) and segments

    segments = eventually(announced, 30)
    assert segments
    drops = np.concatenate([r.drops for r in segments])
    lost = (drops["source"] == ft.DROP_RING) & (drops["detail"] == ft.DROP_THREAD_EVENT)
    assert lost.any()  # otherwise this has tested nothing
    keeper.end()


def test_a_full_disk_is_reported_once_and_ends_nothing(redis, keep, load, tmp_path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        keeper = keep("--pid", redis.pid, "--keep", "10s,100MB", ring=disk / "ring")
        client = load(redis)
        # All the remaining room, however much: it writes until that fails.
        run_program("dd", "if=/dev/zero", f"of={disk / 'hog'}", "bs=4k")
        assert keeper.prints("No space left on device. Events are lost until writing works again")
        time.sleep(2.5)
        assert keeper.running
        (disk / "hog").unlink()
        assert keeper.prints(f"writing to {keeper.ring} works again")
        time.sleep(2)
        client.signal(signal.SIGTERM)
        keeper.end()
        assert keeper.err.count("No space left") == 1
        segments = [Recording(file) for file in keeper.segments()]
    assert sum(int(r.drops["count"][r.drops.source == ft.DROP_DISK].sum()) for r in segments) > 0
    last = segments[-1]
    assert not last.damage.no_trailer
    assert last.count(redis.pid, ft.IDLE) + len(last.tallies) > 0


def test_ring_and_guard_belong_to_the_rings_user_and_the_recorder_writes_with_that_users_rights(
    redis, keep, open_directory
):
    ring, bin = open_directory / "ring", open_directory / "bin"
    bin.mkdir(0o755)
    guard = bin / "forktail-guard"
    shutil.copy(program("forktail-record"), bin)
    words = ["--pid", redis.pid, "--keep", "10s", "--user", "nobody", "--on", "iteration > 50ms", "--control"]

    def start():
        return keep(*words, ring=ring, by=bin / "forktail-record")

    def guard_is(script, mode=0o755):
        guard.write_text(f"#!/bin/sh\n{script}\n")
        guard.chmod(mode)

    with pytest.raises(AssertionError, match="which must be in the directory of forktail-record"):
        start()
    guard_is("exit 2", 0o700)  # root can run it, the ring's user cannot
    with pytest.raises(AssertionError, match="accessible to the ring's user: Permission denied"):
        start()
    guard_is("exit 2")
    alone = start()
    assert alone.prints("forktail-guard did not accept its options. The recording continues without")
    alone.end()

    # Writes into the ring how it was started, and dies the first time.
    guard_is(
        'echo "$*" >>$1/args; grep -E "Cap|NoNew|Uid" /proc/self/status >>$1/args\n'
        "test -e $1/again && exec sleep 1000; touch $1/again; exit 3"
    )
    keeper = start()
    line = f"{ring} --on iteration > 50ms --control\n"
    assert eventually(lambda: (ring / "args").exists() and (ring / "args").read_text().count(line) == 2)
    assert keeper.prints("forktail-guard exited; restarting it in 1 s")
    first, again = ((ring / "args").read_text()).split(line)[1:]
    assert dict(row.split(":\t") for row in first.splitlines()) == {
        "Uid": "\t".join([str(NOBODY)] * 4),
        **dict.fromkeys(["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"], "0" * 16),
        "NoNewPrivs": "1",
    }
    assert first.startswith(again)
    # Files are created as their user. For file systems the recorder is that user.
    of_recorder = status(keeper.pid)
    assert of_recorder["Uid"] == f"0\t0\t0\t{NOBODY}"
    assert of_recorder["CapEff"] == "0000008000080004"
    assert eventually(lambda: len(keeper.segments()) >= 2, 20)
    owners = {path.name: (path.stat().st_uid, path.stat().st_mode & 0o7777) for path in (ring, *keeper.segments())}
    assert owners == {name: (NOBODY, 0o700 if name == "ring" else 0o600) for name in owners}
    keeper.end()


@pytest.mark.parametrize(
    ("words", "exit_status", "why"),
    [
        ("--keep 5s -o x", 2, "--keep: expected a time from 10s to 7d and a size of at least 4MB"),
        ("--user nobody -o x", 2, "--user needs --keep"),
        ("--on 'iteration > 1s' -o x", 2, "--on needs --keep"),
        ("--keep 10m --user nosuchuser -o ring", 3, "no such user: nosuchuser"),
        ("--keep 10m -o no/such/place", 3, "No such file or directory"),
        ("--keep 10m -o .", 3, "other users have access to it. Run chmod 0700 on it"),
    ],
)
def test_invalid_requests_for_a_ring_are_refused_in_a_sentence(tmp_path, words, exit_status, why):
    tmp_path.chmod(0o755)
    ended = run_program(program("forktail-record"), "--pid", os.getpid(), *shlex.split(words), cwd=tmp_path)
    assert ended.status == exit_status
    assert why in ended.err
    assert ended.err.count("\n") == 1
