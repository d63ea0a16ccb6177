# SPDX-License-Identifier: MIT
"""A session is everything that one run has started: programs, temporary directories, and the one loop (`step`) in
which it waits. `step` returns within milliseconds after a stop signal or the end of a needed program, so no wait
outlasts either.

A session ends with `close`, with its `with` block, or with the death of its process, which the keeper notices. A
program that it started ends with the thread that started it, because the kernel sends SIGKILL then.
"""

import ctypes
import os
import selectors
import signal
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from forktail.failure import Failure
from forktail.host.keeper import Keeper, Leftover

_TAIL_LINES = 6
_LINE_BYTES = 64 << 10
_GROUP_GONE_S = 5
_NOT_STARTED = 127  # the exit status of a child that could not run its program
_PR_SET_PDEATHSIG = 1
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_prctl = ctypes.CDLL(None).prctl

OnLine = Callable[[str], None]


class Stopped(Failure):
    """A stop signal (SIGINT, SIGTERM, SIGHUP) arrived."""


@dataclass
class Command:
    """What is started. Its standard input is /dev/null."""

    name: str  # for messages: "redis-server"
    argv: list[str]  # argv[0]: a path, or a name that is looked up in PATH
    output: str = ""  # a file to which its standard output is appended; "": our own standard output
    err_to_output: bool = False  # its standard error goes to `output`, too
    on_line: OnLine | None = None  # called for each line of standard error; not with err_to_output
    cgroup: str = ""  # directory of the cgroup to enter; "": ours
    cpus: str = ""  # where it may run, in taskset's format ("0-1,3"); "": where we may
    environment: dict[str, str] = field(default_factory=dict)  # in addition to ours, or replacing ours


@dataclass(eq=False)
class Child:
    """A started program: it runs, or it has `ended`."""

    command: Command
    pid: int
    pidfd: int
    err: int  # the descriptor of its standard error; -1 at its end
    on_line: OnLine | None
    needed: bool = False  # `step` fails when it ends
    ended: bool = False
    status: int = 0  # once ended: its exit status, or the negative number of the signal that killed it
    last: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))  # lines of standard error
    _part: bytes = b""

    def send_signal(self, number: int) -> None:
        """To the program, not to its group. Does nothing if it has ended."""
        if not self.ended:
            signal.pidfd_send_signal(self.pidfd, number)

    def how_it_ended(self) -> str:
        """ "redis-server ended with status 1" and its last messages."""
        if self.status < 0:
            how = f"was killed by signal {-self.status} ({signal.strsignal(-self.status)})"
        else:
            how = f"ended with status {self.status}"
        return f"{self.command.name} {how}{self.last_words()}"

    def last_words(self) -> str:
        """ "; its last messages:" and the last lines of its standard error, else of its output; "" without any."""
        last = self.last
        if not last and self.command.output:
            try:
                with open(self.command.output, errors="surrogateescape") as file:
                    last = deque((line.rstrip("\n") for line in file if line.strip()), _TAIL_LINES)
            except OSError:
                pass
        return "; its last messages:" + "".join(f"\n    {line}" for line in last) if last else ""

    def check(self) -> None:
        """Raises Failure with `how_it_ended` unless it exited with status 0."""
        if self.status != 0:
            raise Failure(self.how_it_ended())

    def _read(self) -> None:
        """Passes on the complete lines so far, and at the end of its standard error what remains. A carriage return
        ends a line, too, because progress is redrawn after it; empty lines are skipped."""
        while self.err >= 0:
            try:
                data = os.read(self.err, 1 << 16)
            except BlockingIOError:
                return
            self._part += data
            *lines, self._part = self._part.replace(b"\r", b"\n").split(b"\n")
            if not data or len(self._part) >= _LINE_BYTES:
                lines.append(self._part)
                self._part = b""
            for line in filter(None, lines):
                text = line.decode(errors="surrogateescape")
                self.last.append(text)
                if self.on_line:
                    self.on_line(text)
            if not data:
                self._close_err()

    def _close_err(self) -> None:
        if self.err >= 0:
            os.close(self.err)
        self.err = -1


def parse_cpus(text: str) -> list[int]:
    """A list of CPUs in the format of taskset and the kernel: "0-1,3" -> [0, 1, 3]. Raises ValueError."""
    cpus: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not all(number.isascii() and number.isdigit() for number in ([first, last] if dash else [first])):
            raise ValueError(text)
        more = range(int(first), int(last if dash else first) + 1)
        if not more or more[-1] >= 1024:
            raise ValueError(text)
        cpus += more
    return cpus


class Session:
    """What one run has started. `chores` are called at each step, by name.

    catch_stops: SIGINT, SIGTERM and SIGHUP end every wait with Stopped; `stop_signal` remembers the last one.
    Otherwise they act as usual in Python (KeyboardInterrupt).
    """

    def __init__(self, catch_stops: bool = False) -> None:
        try:
            self.keeper = Keeper()
        except OSError as e:
            raise Failure(f"cannot start the keeper: {e.strerror}") from e
        self.children: list[Child] = []
        self.chores: dict[str, Callable[[], None]] = {}
        self.stop_signal = 0
        self.settings: dict[str, str] = {}  # of the host: files, and what the keeper writes into them at the end
        self._selector = selectors.PollSelector()  # epoll refuses files and /dev/null
        self._handlers: dict[int, Any] = {}
        self._wakeup: tuple[socket.socket, socket.socket] | None = None
        if catch_stops and threading.current_thread() is threading.main_thread():
            self._catch_stops()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Failure:
            if error is None:
                raise  # else the first error is reported

    def _catch_stops(self) -> None:
        def stop(number: int, _frame: FrameType | None) -> None:
            self.stop_signal = number

        # A signal just before a wait must end the wait, so it is also written to a descriptor that the wait watches.
        self._wakeup = socket.socketpair()
        for end in self._wakeup:
            end.setblocking(False)
        self._selector.register(self._wakeup[0], selectors.EVENT_READ)
        signal.set_wakeup_fd(self._wakeup[1].fileno(), warn_on_full_buffer=False)
        for number in _STOPS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                self._handlers[number] = signal.signal(number, stop)

    def close(self) -> None:
        """Kills all running programs and removes the temporary directories. A second call does nothing."""
        self.end_children()
        if self._wakeup:
            signal.set_wakeup_fd(-1)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            for end in self._wakeup:
                end.close()
            self._wakeup = None
        self._selector.close()
        if not self.keeper.close():
            raise Failure("cannot remove all processes, temporary files, cgroups and swap of the run")

    def end_children(self) -> None:
        """Kills all running programs. The session continues."""
        running = [child for child in self.children if not child.ended]
        for child in running:
            child.on_line = None  # the listener may be gone
            child.send_signal(signal.SIGKILL)
        for child in running:
            self._finish(child)

    def make_temp_directory(self) -> str:
        """A new directory under TMPDIR (else /tmp), removed when the session ends."""
        base = os.environ.get("TMPDIR") or "/tmp"
        if not base.startswith("/"):
            raise Failure(f"TMPDIR must be an absolute path, not {base}/forktail-lab.XXXXXX")
        try:
            path = tempfile.mkdtemp(prefix="forktail-lab.", dir=base)
        except OSError as e:
            raise Failure(f"cannot create a temporary directory {base}/forktail-lab.XXXXXX: {e.strerror}") from e
        self.keeper.keep(Leftover.DIRECTORY, path)
        return path

    def start(self, command: Command) -> Child:
        """Starts a program in its own process group and waits until it runs. Ctrl-C on the terminal only reaches the
        session's process, which then ends its programs. When the program ends, the rest of its group is killed."""
        try:
            cpus = parse_cpus(command.cpus) if command.cpus else []
        except ValueError:
            raise Failure(
                f"cannot start {command.name} on CPUs {command.cpus}: expected a list such as 0-1,3"
            ) from None
        parent = os.getpid()
        try:
            err, their_err = os.pipe()
            report, their_report = os.pipe()
            pid = os.fork()
        except OSError as e:
            raise Failure(f"cannot start {command.name}: {e.strerror}") from e
        if pid == 0:
            self._become(command, cpus, parent, their_err, their_report)
        os.close(their_err)
        os.close(their_report)
        os.set_blocking(err, False)
        child = Child(command, pid, os.pidfd_open(pid), err, command.on_line)
        with open(report, "rb") as file:
            failed = file.read()
        if failed:
            where, number = failed.decode(errors="surrogateescape").rsplit(" ", 1)
            self._finish(child)
            raise Failure(f"cannot start {command.name}{where}: {os.strerror(int(number))}")
        self.children.append(child)
        self._selector.register(child.pidfd, selectors.EVENT_READ, child)
        self._selector.register(child.err, selectors.EVENT_READ, child)
        return child

    def _become(self, command: Command, cpus: list[int], parent: int, err: int, report: int) -> None:
        """The child between fork and exec. Never returns; what failed goes to `report`, which exec closes."""
        where = f" ({command.argv[0]})"
        try:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(_NOT_STARTED)
            os.setpgid(0, 0)
            # Before the program runs, so that the keeper also ends its children.
            self.keeper.keep(Leftover.GROUP, str(os.getpid()))
            signal.set_wakeup_fd(-1)
            for number in (*_STOPS, signal.SIGCHLD, signal.SIGUSR1, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # outside the terminal's foreground group it may still print
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            if command.cgroup:
                where = f" in the cgroup {command.cgroup}"
                Path(command.cgroup, "cgroup.procs").write_text("0")  # 0: the calling process
            if cpus:
                where = f" on CPUs {command.cpus}"
                os.sched_setaffinity(0, cpus)
            where = f" ({command.argv[0]})"
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            if command.output:
                os.dup2(os.open(command.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 1)
            os.dup2(1 if command.err_to_output else err, 2)
            os.execvpe(command.argv[0], command.argv, os.environ | command.environment)
        except OSError as e:
            os.write(report, f"{where} {e.errno}".encode(errors="surrogateescape"))
        finally:
            os._exit(_NOT_STARTED)

    def step(self, ms: float, fd: int = -1) -> None:
        """Waits up to `ms` for output or the end of a child, or for `fd` (if not negative) to be readable. Raises
        Stopped after a stop signal, and Failure when a needed child has ended."""
        for chore in list(self.chores.values()):
            chore()
        if fd >= 0:
            self._selector.register(fd, selectors.EVENT_READ)
        try:
            ready = self._selector.select(ms / 1000) if not self.stop_signal else []
        finally:
            if fd >= 0:
                self._selector.unregister(fd)
        cause = None
        for key, _ in ready:
            child = key.data
            if child is None or child.ended:
                continue
            if key.fd == child.pidfd:
                self._finish(child)
                # The end of one may end the others: the first is the cause.
                cause = cause or (child if child.needed else None)
            elif key.fd == child.err:
                child._read()
                if child.err < 0:
                    self._selector.unregister(key.fd)
        if self.stop_signal:
            raise Stopped(f"stopped by {signal.strsignal(self.stop_signal)}")
        if cause:
            raise Failure(cause.how_it_ended())

    def wait_for_end(self, child: Child, number: int, seconds: float) -> None:
        """Sends a signal (0: none) and waits for the end of the child. Raises as `step`, or if it runs after
        `seconds`."""
        child.needed = False
        if number:
            child.send_signal(number)
        limit = time.monotonic() + seconds
        while not child.ended:
            self.step(min(100, max(0, limit - time.monotonic()) * 1000))
            if not child.ended and time.monotonic() > limit:
                raise Failure(f"{child.command.name} did not end within {int(seconds)} s")

    def wait(self, seconds: float) -> None:
        """Waits. Raises as `step`."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            self.step(left * 1000)

    def _finish(self, child: Child) -> None:
        """Waits for a child's end, kills the rest of its group, reads its last lines and reaps it."""
        # Until it is reaped its pid, which is also its group's, cannot be reused.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        _kill_group(child.pid, signal.SIGKILL)
        child.status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        child.ended = True
        limit = time.monotonic() + _GROUP_GONE_S
        # A snapshot child exists until it has freed its memory.
        while _kill_group(child.pid, 0) and time.monotonic() < limit:
            time.sleep(0.001)
        for fd in (child.pidfd, child.err):
            if fd >= 0 and fd in self._selector.get_map():
                self._selector.unregister(fd)
        os.close(child.pidfd)
        child._read()
        child._close_err()
        self.keeper.release(Leftover.GROUP, str(child.pid))


def _kill_group(group: int, number: int) -> bool:
    """False: there is no such group."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
