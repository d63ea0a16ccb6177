# SPDX-License-Identifier: MIT
"""The keeper cleans up after a session, however the session ends: done, interrupted, crashed or kill -9.

It is a separate process in its own session, so Ctrl-C does not reach it. It holds one end of a socket whose other end
only the session's process holds. The session sends it every process group that it starts, every temporary directory,
and every change of the machine: swap, cgroups, settings. When the socket closes, the keeper undoes all of that,
processes first. It is the only mechanism for cleaning up: the session only closes the socket and waits.
PR_SET_PDEATHSIG is not enough, because it does not cover grandchildren (a snapshot child) and files.

This file is also the keeper's program (`python3 -I keeper.py`, with the socket as standard input), so it imports
nothing of forktail at its start. The functions that undo wait while something is busy, and succeed if there is
nothing to undo.
"""

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

_BUSY_S = 10  # a killed process leaves its cgroup after its memory is freed; a block device is busy while udev reads it
_GONE_S = 20  # killed groups: a process in an uninterruptible write ends after the write
_MESSAGE_BYTES = 3 * 4096  # a path, and the content of a file in /sys (at most a page)


class Leftover(StrEnum):
    """What a session leaves behind, and how the keeper removes it."""

    GROUP = "G"  # a process group, by its number: killed
    DIRECTORY = "D"  # absolute: removed
    SWAP = "S"  # a device or file: switched off and removed
    CGROUP = "C"  # removed
    SETTING = "W"  # a file: `content` is written into it


class Keeper:
    """The session's side. Make it before anything that it has to clean up."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", __file__], stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid

    def keep(self, kind: Leftover, name: str, content: str = "") -> None:
        """The keeper undoes this at the end, unless it is released. Of a setting the first content counts."""
        self._send(f"+{kind}{name}\0{content}")

    def release(self, kind: Leftover, name: str) -> None:
        """The keeper forgets it: it is gone already, or it must remain."""
        self._send(f"-{kind}{name}\0")

    def close(self) -> bool:
        """Lets the keeper clean up and waits for it. False: something remains. A second call does nothing.

        Reap your own children first: an unreaped child still exists for the keeper.
        """
        with contextlib.suppress(OSError):  # closed before, or the keeper was killed
            self._socket.shutdown(socket.SHUT_RDWR)  # a child between fork and exec has it open, too
        self._socket.close()
        return bool(self._process.wait() == 0)

    def _send(self, message: str) -> None:
        with contextlib.suppress(OSError):  # if the keeper was killed, only PR_SET_PDEATHSIG remains
            self._socket.send(os.fsencode(message))


def _until_not_busy(attempt: Callable[[], None]) -> None:
    limit = time.monotonic() + _BUSY_S
    while True:
        try:
            return attempt()
        except OSError as e:
            if e.errno != errno.EBUSY or time.monotonic() > limit:
                raise
        time.sleep(0.01)


def remove_cgroup(path: str) -> None:
    """Waits for the end of a cgroup's processes and removes it. Raises OSError."""

    def attempt() -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(path)

    _until_not_busy(attempt)


def remove_swap_device(path: str) -> None:
    """Switches swap off and removes its device (/dev/zramN) or file. Takes as long as reading back the pages of running
    processes. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.swapoff(os.fsencode(path)) != 0 and ctypes.get_errno() not in (errno.EINVAL, errno.ENOENT):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if not path.startswith("/dev/zram"):
        return Path(path).unlink(missing_ok=True)
    number = path.removeprefix("/dev/zram")
    _until_not_busy(lambda: write_setting(f"/sys/block/zram{number}/reset", "1"))
    _until_not_busy(lambda: write_setting("/sys/class/zram-control/hot_remove", number))


def write_setting(path: str, text: str) -> None:
    """Writes the text to an existing file with one write, as files in /sys require. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if os.write(fd, os.fsencode(text)) != len(os.fsencode(text)):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    finally:
        os.close(fd)


def _exists(group: str) -> bool:
    try:
        os.killpg(int(group), 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True


def _kill_groups(groups: dict[str, str]) -> bool:
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(int(group), signal.SIGKILL)
    # Files are removed after processes, which could recreate them.
    limit = time.monotonic() + _GONE_S
    while any(map(_exists, groups)):
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


def _undo(kind: Leftover, name: str, content: str) -> bool:
    try:
        if kind == Leftover.SWAP:
            remove_swap_device(name)
        elif kind == Leftover.CGROUP:
            remove_cgroup(name)
        elif kind == Leftover.SETTING:
            write_setting(name, content)
        elif os.path.exists(name):
            shutil.rmtree(name)
    except OSError:
        return False
    return True


def _keep() -> int:
    """The keeper's process: reads messages until the session ends, then undoes what is left. Returns its exit
    status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    Path("/proc/self/comm").write_text("forktail-keeper")
    leftovers: dict[Leftover, dict[str, str]] = {kind: {} for kind in Leftover}
    with socket.socket(fileno=0) as held:
        # A message is one packet: keep or release, a letter for the kind, the group's number or a path, a NUL, the
        # content.
        while message := os.fsdecode(held.recv(_MESSAGE_BYTES)):
            name, _, content = message[2:].partition("\0")
            names = leftovers[Leftover(message[1])]
            if message[0] == "+":
                names.setdefault(name, content)
            else:
                names.pop(name, None)
    clean = [_kill_groups(leftovers[Leftover.GROUP])]
    for kind in (Leftover.SWAP, Leftover.CGROUP, Leftover.SETTING, Leftover.DIRECTORY):
        clean += [_undo(kind, name, content) for name, content in leftovers[kind].items()]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(_keep())
