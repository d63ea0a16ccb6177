# SPDX-License-Identifier: MIT
"""Runs of real servers, and what tests of explain look up in their explanations."""

import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from forktail.programs import program
from harness import Program, Recorder, eventually, explain, forktail
from processes import Closing

MS = 1_000_000  # ns


class RealRun(Closing):
    """A run directory that a recorder and a load generator write into. Both are killed at the end of its `with` block.

    recorder, client: these programs, once started.
    """

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.recorder = self.client = None

    def record(self, *pids, options=()):
        self.recorder = Recorder(self.path / "server.forktail", "--pid", ",".join(map(str, pids)), *options)

    def load(self, *words, prefix=(), log=True):
        """prefix: what starts the load generator, such as taskset. log: it writes a request log into the run."""
        own = ["-q", *(["-o", self.path / "load.forktail"] if log else [])]
        self.client = Program(*prefix, program("forktail-load"), *own, *words)

    def add_log(self, load):
        """Adds the log of a Load that has ended."""
        shutil.copy(load.log_path, self.path / "load.forktail")

    def end_load(self):
        """Ends the load generator as Ctrl-C does."""
        ended = self.client.interrupt(120)
        assert ended.status == 0, ended.err

    def stop(self):
        """Ends both as Ctrl-C does, and reads the recording."""
        if self.client:
            self.end_load()
        return self.recorder.stop()

    def finish(self):
        """Waits for the load generator's own end, and then does as `stop`."""
        self.client.wait()
        return self.stop()

    def explain(self, *words):
        return explain(self.path, *words)

    def text(self, *words):
        ended = forktail("explain", self.path, *words)
        assert ended.status == 0, ended.err
        return ended.out

    def close(self):
        for one in (self.client, self.recorder):
            if one:
                one.close()


def record_two_saves(path, redis):
    """Records a load on a Redis with so much memory that fork() takes milliseconds, and which saves twice."""
    assert redis.ask("DEBUG", "POPULATE", "1000000", "key", "100") == ["OK"]
    with RealRun(path) as run:
        run.record(redis.pid)
        words = ["--rate", 5000, "--duration", 4, "-c", 10, "-r", 100_000, "--ratio", "1:1"]
        run.load(*redis.load_words(), *words)
        for _ in range(2):
            time.sleep(1)
            redis.instance.connection().reply("BGSAVE")  # refused while the one before continues
        run.finish()


def info(server, name):
    """A value of a server's INFO."""
    return server.instance.connection().read_info()[name]


def serve_more(servers, commands):
    """Waits until each server has executed that many more commands."""
    for server in servers:
        before = int(info(server, "total_commands_processed"))
        assert eventually(lambda: int(info(server, "total_commands_processed")) > before + commands, 60)  # noqa: B023


def await_stopped(pid):
    """Waits until a process has been stopped by SIGSTOP."""
    assert eventually(lambda: ") T " in Path(f"/proc/{pid}/stat").read_text())


def stop_for(pid, seconds):
    """Stops a child process by SIGSTOP for some time. Returns the instants before and after."""
    start_ns = time.monotonic_ns()
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
    return start_ns, time.monotonic_ns()


def during(act):
    """The instants before and after an act."""
    start_ns = time.monotonic_ns()
    act()
    return start_ns, time.monotonic_ns()


def time_by_cause(request):
    """A slow request's time by cause, in ns."""
    times = Counter()
    for part in request["parts"]:
        times[part["cause"]] += part["direct_ns"] + part["queued_ns"]
    return times


def check_parts(explanation):
    """The parts of each slow request amount to its latency, and the shares of the causes to 1. Needs --requests."""
    requests = explanation["slow_requests"]
    assert len(requests) == explanation["slow"]["count"]
    for one in requests:
        assert time_by_cause(one).total() == one["latency_ns"], one
    assert sum(cause["share"] for cause in explanation["causes"]) == pytest.approx(1, rel=1e-5)


def check_accounts(explanation):
    """Each thread's account amounts to its wall time, within 0.1 % (and a microsecond, for short-lived threads)."""
    assert explanation["account"]["threads"]
    for one in explanation["account"]["threads"]:
        assert abs(one["accounted_ns"] - one["wall_ns"]) <= one["wall_ns"] * 0.001 + 1000, one


def episodes_in(explanation, start_ns, end_ns):
    """The episodes that overlap an interval."""
    return [
        one
        for one in explanation["episodes"]
        if one["start_ns"] < end_ns and one["start_ns"] + one["duration_ns"] > start_ns
    ]


def episode_in(explanation, start_ns, end_ns):
    """The episode with the most time among those that overlap an interval."""
    overlapping = episodes_in(explanation, start_ns, end_ns)
    assert overlapping, (start_ns, end_ns, explanation["episodes"])
    return max(overlapping, key=lambda one: one["time_ns"])


def episode_at(explanation, t_ns):
    """The episode that contains an instant."""
    return episode_in(explanation, t_ns, t_ns + 1)
