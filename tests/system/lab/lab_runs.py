# SPDX-License-Identifier: MIT
"""Runs `forktail lab` so that everything it leaves behind is found."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from forktail.programs import program
from harness import Program, eventually
from processes import Closing, is_gone

HEAD = 'title = "A test"\nabout = "What a test needs."\nscale = { small = 1, tiny = 0.5 }\n'
REDIS = '[[server]]\nname = "redis"\nkind = "redis"\n'


class Lab(Closing):
    """A lab in a separate directory, which every program that it starts has in its command line, its environment or
    its working directory. It is killed at the end of its `with` block.

    run: the run directory that it makes. scenario: the file of its scenario. temp: its TMPDIR. program: the last one
    that was started.
    """

    def __init__(self, scenario=""):
        # pytest's own directories are too long for the paths of Unix sockets.
        self.directory = Path(tempfile.mkdtemp(prefix="ft-lab-"))
        self.run, self.temp, self.scenario = (self.directory / name for name in ("run", "temp", "s.toml"))
        self.temp.mkdir()
        self.scenario.write_text(scenario)
        self.program = None

    @property
    def out(self):
        return self.program.out

    @property
    def err(self):
        return self.program.err

    def start(self, *words, by=None, env=None, before=()):
        """Starts `forktail lab WORDS...`. by: another program forktail. before: what starts it, such as a shell."""
        self.program = Program(
            *before, by or program("forktail"), "lab", *words, env={"TMPDIR": str(self.temp), **(env or {})}
        )

    def start_demo(self, seconds=6, out=None, **options):
        """Starts a demo with 100 MiB of data."""
        self.start("demo", "--out", out or self.run, "--size-mb", 100, "--seconds", seconds, **options)

    def start_scenario(self, *words):
        self.start("run", self.scenario, "--out", self.run, *words)

    def run_scenario(self, *words, status=0):
        """Runs its scenario at scale small to the end, which has this exit status."""
        self.start_scenario(*words)
        self.ends(status)

    def ends(self, status, timeout=90):
        assert self.program.wait(timeout).status == status, self.err + self.out

    def prints(self, text, after=""):
        """Waits until it prints `text` on standard error, after the last `after`. False if it ends first, or does not
        print it in time."""
        eventually(lambda: self._printed(text, after) or not self.program.running, 60)
        return self._printed(text, after)

    def _printed(self, text, after):
        before, found, rest = self.err.rpartition(after) if after else ("", True, self.err)
        return bool(found) and text in rest

    def alive(self):
        """Its processes including itself: {pid: command line}. Zombies do not count."""
        processes = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes()
                about = [command, (process / "environ").read_bytes(), bytes((process / "cwd").readlink())]
            except OSError:
                continue  # it ended meanwhile
            pid = int(process.name)
            if any(str(self.directory).encode() in one for one in about) and not is_gone(pid):
                processes[pid] = command.replace(b"\0", b" ").decode(errors="replace")
        return processes

    def find(self, text):
        """The pid of its living process whose command line contains `text`."""
        return next(pid for pid, command in self.alive().items() if text in command)

    def changed(self):
        """Its changes of the machine that are not reverted: its cgroups, its swap files."""
        roots = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")]
        groups = [str(path) for root in roots for path in root.glob(f"forktail-lab-{self.program.pid}-*")]
        swaps = Path("/proc/swaps").read_text().splitlines()
        return groups + [line for line in swaps if str(self.directory) in line]

    def left(self):
        """The files in its TMPDIR."""
        return list(self.temp.iterdir())

    def check_nothing_left(self):
        """No process, no temporary data, no change of the machine. It cleans up before it ends."""
        assert (self.alive(), self.left(), self.changed()) == ({}, [], [])

    def results(self):
        """The points of its results.json."""
        return json.loads((self.run / "results.json").read_text())["points"]

    def has_empty_cell(self):
        """A cell of its tables has no figure."""
        return "-" in (self.run / "tables.txt").read_text().split()

    def close(self):
        if self.program:
            self.program.close()
        eventually(lambda: not self.alive(), 30)  # its keeper still runs
        shutil.rmtree(self.directory, ignore_errors=True)


def skip_without_memory_limits(err):
    """Skips the test if that is what the lab has printed: this host cannot limit memory or swap."""
    for lack in (": this host has no ", ": cannot swap ", ": cannot limit memory"):
        if lack in err:
            pytest.skip(err)
