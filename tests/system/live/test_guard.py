# SPDX-License-Identifier: MIT
"""The guard of a ring, started by its recorder, on a real redis-server: what fires, what the snapshot contains, which
user runs the command, and what callers of the control socket cannot do.
"""

import json
import shutil
import signal
import socket
import stat
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from cgroups import MemoryCgroup
from forktail.programs import program
from harness import BIN, Program, eventually, forktail, needs_root
from processes import Closing

pytestmark = needs_root


class Guarded(Closing):
    """A recorder with a guard, on a ring of the user nobody in a directory that others cannot enter, and a command that
    prints its user.

    within: a command that runs the recorder, which is in the directory `bin`.
    """

    def __init__(self, directory, redis, within=(), bin=BIN):
        self.ring, self.said = directory / "ring", directory / "said/by"
        self.control = self.ring / "control"
        self.said.parent.mkdir()
        self.said.parent.chmod(0o777)
        command, config = directory / "command.sh", directory / "record.toml"
        command.write_text('#!/bin/sh\necho "$(id -un) $FORKTAIL_TRIGGER $2" >> "$1"\n')
        command.chmod(0o755)
        config.write_text(f"""
[snapshots]
before = "3s"
after = "500ms"
cooldown = "1s"
keep = 2
exec = ["{command}", "{self.said}"]
[control]
socket = "{self.control}"
[[trigger]]
on = "stall(stopped) > 50ms"
[[trigger]]
name = "deploy"
""")
        config.chmod(0o644)
        ring = ["--keep", "1m,100MB", "--user", "nobody", "-o", self.ring, "--config", config]
        self.recorder = Program(*within, bin / "forktail-record", "--pid", redis.pid, *ring)
        # The guard may answer before the recorder has begun. A snapshot requested then has no recorded time.
        began = eventually(lambda: self.control.exists() and "recording " in self.recorder.err, 20)
        if not began:
            self.recorder.close()
        assert began, self.recorder.err

    def snapshot(self, file, timeout):
        """The first snapshot that contains this file."""
        found = eventually(lambda: list(self.ring.glob(f"snapshots/*/{file}")), timeout)
        assert found, self.recorder.err
        return found[0].parent

    def trigger(self, name):
        """The exit status of forktail trigger, and what it says."""
        asked = forktail("trigger", self.ring, name)
        return asked.status, (asked.out or asked.err).removeprefix("forktail: ").rstrip("\n")

    def close(self):
        self.recorder.close()


@pytest.mark.quiet
def test_a_stopped_server_is_in_a_snapshot_that_names_the_stop_and_the_command_has_run_as_the_rings_user(
    serve, open_directory
):
    redis = serve("redis")
    with Guarded(open_directory, redis) as guarded:
        time.sleep(3)
        # While idle: requests at that time would have waited too.
        redis.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        redis.send_signal(signal.SIGCONT)
        # At idle priority, so it is late on a busy machine.
        snapshot = guarded.snapshot("explain.json", 120)
        assert "-stall-stopped" in snapshot.name
        fired = json.loads((snapshot / "trigger.json").read_text())["fired"][0]
        assert fired["trigger"] == "stall-stopped"
        assert fired["what"].startswith("stopped for ")
        assert "stopped" in (snapshot / "explain.txt").read_text()
        assert "stopped" in json.dumps(json.loads((snapshot / "explain.json").read_text())["causes"])
        assert [file for file in snapshot.iterdir() if file.name.startswith(".")] == []
        assert eventually(lambda: guarded.said.exists() and guarded.said.read_text(), 10)
        assert guarded.said.read_text() == f"nobody stall-stopped {snapshot}\n"
        assert stat.S_IMODE(snapshot.stat().st_mode) & 0o077 == 0


def test_callers_can_name_triggers_and_do_nothing_else(redis, open_directory):
    with Guarded(open_directory, redis) as guarded, ExitStack() as callers:
        assert guarded.trigger("nosuch") == (1, "the configuration has no trigger of that name")
        assert guarded.trigger("stall-stopped") == (1, "that trigger has a rule. It fires only by its rule.")
        assert guarded.trigger("x" * 199 + "\x1b[2J")[0] == 1

        # A thousand that connect and send nothing, or no complete line.
        for i in range(1000):
            caller = callers.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            with suppress(OSError):
                caller.connect(str(guarded.control))
                caller.send(bytes(4096 if i % 2 else 0))
        assert eventually(lambda: guarded.trigger("deploy")[0] == 0, 15)
        callers.close()
        guarded.snapshot("trigger.json", 30)
        assert guarded.recorder.running


def test_an_explanation_may_use_half_of_the_cgroups_memory_and_the_kernel_kills_it_before_the_recorder(
    redis, open_directory
):
    limit = 256 << 20
    bin = open_directory / "bin"
    bin.mkdir()
    for name in ("forktail-record", "forktail-guard"):
        shutil.copy(program(name), bin)
    # In place of an explanation: its limits.
    (bin / "forktail").write_text('#!/bin/sh\ncat /proc/self/oom_score_adj\nulimit -d\necho "$*"\n')
    (bin / "forktail").chmod(0o755)
    with MemoryCgroup(limit) as group:
        if not group.usable:
            pytest.skip("cannot make a cgroup with a memory limit")
        with Guarded(open_directory, redis, group.within(), bin) as guarded:
            assert guarded.trigger("deploy")[0] == 0
            limits = (guarded.snapshot("explain.txt", 60) / "explain.txt").read_text()
            assert limits.startswith(f"1000\n{limit // 2 // 1024}\n")
            assert f" --memory {64 << 20}" in limits
            of_recorder = Path(f"/proc/{guarded.recorder.pid}/oom_score_adj").read_text()
            assert of_recorder == Path("/proc/self/oom_score_adj").read_text()
