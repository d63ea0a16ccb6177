# SPDX-License-Identifier: MIT
"""System calls that fail or take long, one at a time, in the recorder, its helpers and the guard of a flight recorder.

Each cell of the matrix is one recording. While it runs, one call of one process fails (inject.c). Afterwards:
- the recorder still records, or has ended with status 3 and a sentence;
- it ends within 5 s of SIGTERM; if a call of the recorder itself never returns, of SIGKILL, as a service manager sends it.
  SIGBUS to the recorder itself, which maps no file of others, ends it;
- no BPF program is left attached, and the recording can be read.
The suite runs a part (--short), script/faults the whole.
"""
import argparse
import collections
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from faults import BIN, ENDS_S, SKIPPED, Recorder, check, descendants, names, programs, wait_for

FAULTS = ("EIO", "ENOMEM", "EMFILE", "ENOSPC", "SIGBUS", "1s", "forever")
READING = ("openat", "read", "pread64", "newfstatat", "readlink", "readlinkat", "statx", "mmap", "munmap", "close", "lseek")
MESSAGES = ("sendmsg", "recvmsg", "poll")
CALLS = {
    "forktail-record": (*READING, *MESSAGES, "write", "pwritev2", "pwritev", "fallocate", "ftruncate", "fstatfs", "getdents64",
                        "unlinkat", "flock", "fcntl", "bpf", "ioctl", "socketpair", "futex"),
    "block-writer": ("write", "pwrite64", "pwritev2", "pwritev", "fallocate", "ftruncate", "lseek", "futex", "openat", "close"),
    "forktail-files": (*READING, *MESSAGES),
    "forktail-unwind": (*READING, *MESSAGES),
    "forktail-spawn": ("recvmsg", "sendmsg", "close", "clone", "fcntl"),
    "forktail-stats": ("read", "write", "bpf", "close"),
    "forktail-guard": (*READING, "write", "sendmsg", "getdents64", "mkdir", "rename", "renameat2", "link", "unlink", "clone",
                       "epoll_wait", "copy_file_range", "fcntl", "flock"),
    "forktail-run": ("read", "recvfrom", "sendto", "clone", "poll", "wait4"),
}
SHORT = (("block-writer", "pwritev", "ENOSPC"), ("forktail-record", "read", "EIO"), ("forktail-record", "sendmsg", "1s"),
         ("forktail-files", "openat", "forever"), ("forktail-files", "readlink", "EIO"), ("forktail-files", "read", "SIGBUS"),
         ("forktail-unwind", "pread64", "forever"), ("forktail-unwind", "pread64", "SIGBUS"), ("forktail-spawn", "clone", "ENOMEM"),
         ("forktail-stats", "bpf", "forever"), ("forktail-guard", "openat", "EMFILE"), ("forktail-guard", "write", "ENOSPC"))
MADE_S = 8  # for the call: a snapshot and a new target are within, on a busy machine
RUNS_S = 1.5  # after it
CONFIG = '[snapshots]\nbefore = "1s"\nafter = "500ms"\n[[trigger]]\non = "drops > 0"\n'
LOST_S = 1.0  # of the target's time, at most, unless drops are counted


class Cell:
    """One recording with one fault."""

    def __init__(self, directory, words, process, call, fault):
        self.ring, self.words = directory / "ring", words
        self.process, self.call, self.fault = process, call, fault
        self.victims = []
        self.log = directory / "inject.log"
        self.config = directory / "record.toml"
        self.config.write_text(CONFIG)
        shutil.rmtree(self.ring, ignore_errors=True)
        self.ring.mkdir(mode=0o700)

    def victim(self, name, program):
        self.victims.append(subprocess.Popen([program, name], stdin=subprocess.DEVNULL))
        return self.victims[-1]

    def run(self):
        """False: the process makes no such call."""
        try:
            return self.recorded()
        finally:
            for victim in self.victims:
                victim.kill()
                victim.wait()

    def recorded(self):
        name = f"fault-{os.getpid()}"[:15]
        first = self.victim(name, self.words.victim)
        with open(self.log, "w", encoding="utf-8") as log:
            recorder = Recorder(self.ring.parent, "--name", name, "--keep", "60s,64MB", "--config", self.config, "-o", self.ring,
                                behind=(self.words.inject, self.call, self.process, self.fault), said=log)
        begun = time.monotonic()
        try:
            wait_for("the guard", lambda: "forktail-run" in names(recorder).values())
            recorder.process.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
            copy = self.ring.parent / "copy"  # a file that is not known yet
            copy.unlink(missing_ok=True)
            self.victim(name, shutil.copy(self.words.victim, copy))
            if self.process == "forktail-spawn":
                kill(next(pid for pid, name in names(recorder).items() if name == "forktail-unwind"))
            for pid in descendants(recorder.process.pid)[1:2]:
                os.kill(pid, signal.SIGUSR1)  # a snapshot
            until = time.monotonic() + MADE_S
            while not self.log.read_text() and time.monotonic() < until:
                time.sleep(0.1)
            made = bool(self.log.read_text())
            if made:
                time.sleep(RUNS_S)
                self.ended(recorder, first, begun)
        finally:
            for pid in reversed(descendants(recorder.process.pid)):
                if pid != recorder.process.pid:
                    kill(pid)
            recorder.process.wait()
        return made

    def ended(self, recorder, first, begun):
        lasted = time.monotonic() - begun
        processes = descendants(recorder.process.pid)[1:]
        early = recorder.process.poll()
        own = self.fault in ("forever", "SIGBUS") and self.process in ("forktail-record", "block-writer")
        if early is None:
            recorder.process.send_signal(signal.SIGTERM)
            try:
                early = recorder.process.wait(ENDS_S)
            except subprocess.TimeoutExpired:
                check(own, f"it did not end within {ENDS_S} s: {recorder.err}")
                kill(processes[0])
                early = recorder.process.wait(ENDS_S)
                check(early == 128 + signal.SIGKILL, f"status {early}")
        check(early in (0, 3) or own, f"status {early}: {recorder.err}")
        check(early != 3 or recorder.err.strip(), "it ended without a word")
        wait_for("the end of what is attached", lambda: not programs(processes), ENDS_S)
        explained = subprocess.run([BIN / "forktail", "explain", self.ring, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                                   text=True, timeout=60)
        # If the first write never returns, there is nothing to read.
        check(explained.returncode in ((0, 3) if own else (0,)), f"the recording cannot be read: {explained.stderr}")
        if early == 3 or own:
            return
        run = json.loads(explained.stdout)
        wall = sum(t["wall_ns"] for t in run["account"]["threads"] if t["tgid"] == first.pid) / 1e9
        check(wall > lasted - LOST_S or run["drops"]["count"], f"{wall:.1f} of {lasted:.1f} s are recorded: {recorder.err}")


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def cells(short):
    if short:
        yield from SHORT
    else:
        for cell in itertools.chain.from_iterable(itertools.product((p,), calls, FAULTS) for p, calls in CALLS.items()):
            # glibc ends a program whose futex() fails as no kernel lets it fail.
            if not (cell[1] == "futex" and cell[2].startswith("E")):
                yield cell


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--victim", required=True)
    parser.add_argument("--inject", required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("only", nargs="*", metavar="PROCESS:CALL:FAULT")
    words = parser.parse_args()
    if os.geteuid() != 0:
        print("SKIPPED: it records, which needs root")
        return SKIPPED
    held, failed, never = collections.Counter(), [], set()
    asked = [tuple(o.split(":")) for o in words.only]
    with tempfile.TemporaryDirectory(prefix="forktail-matrix-") as directory:
        for process, call, fault in asked or cells(words.short):
            if (process, call) in never:
                continue
            try:
                if Cell(pathlib.Path(directory), words, process, call, fault).run():
                    held[process] += 1
                else:
                    never.add((process, call))
                    check(not words.short, f"{process} does not call {call}")
            except (AssertionError, subprocess.TimeoutExpired) as e:
                failed.append(f"{process} {call} {fault}: {e}")
                print(f"FAILED {failed[-1]}", flush=True)
    for process, count in held.items():
        print(f"{process}: {count} faults held, {sum(f.startswith(process + ' ') for f in failed)} did not")
    if never:
        print("not called while recording: " + ", ".join(f"{p} {c}" for p, c in sorted(never)))
    print(f"{sum(held.values())} of {sum(held.values()) + len(failed)} faults held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
