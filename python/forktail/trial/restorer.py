# SPDX-License-Identifier: MIT
"""A process that puts a setting back when the one that changed it ends, however that happens: done, interrupted, or
killed with SIGKILL.

It is in a separate session, so signals to the terminal's group do not reach it, and waits at a pipe of which only
the other process holds the writing end. If the server does not answer, it tries again for ten minutes: one that
restarts has its old value from its configuration file already. Start it before a Session, whose keeper waits for the
end of every process that has its socket.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

FOR_S = 600.0
_EVERY_S = 0.5
_DONE = b"\0"


def current(server: Any, name: str) -> str:
    """The value of a setting. Raises what redis-py raises."""
    return str(next(iter(server.config_get(name).values()), ""))


def put_back(connect: Callable[[], Any], name: str, old: str, new: str, seconds: float = FOR_S) -> str | None:
    """Sets the old value where the server still has the new one, as it writes it ("": it is not known, so any other).
    A third value is another client's, and stays. Returns the value that it has then; None: it could not be reached in
    so many seconds."""
    limit = time.monotonic() + seconds
    while True:
        with contextlib.suppress(Exception):  # of a library and of a server that may be ending
            server = connect()
            now = current(server, name)
            if now == new or (not new and now != old):
                server.config_set(name, old)
                now = current(server, name)
            return now
        if time.monotonic() > limit:
            return None
        time.sleep(_EVERY_S)


class Restorer:
    """Start it before the setting is changed. connect: makes a new client of redis-py."""

    def __init__(self, connect: Callable[[], Any], name: str, old: str) -> None:
        read, self._write = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(read)
            return
        try:
            os.setsid()
            os.close(self._write)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            said = b""
            while more := os.read(read, 4096):
                said += more
            if not said.endswith(_DONE):
                put_back(connect, name, old, said.decode(errors="surrogateescape"))
        finally:
            os._exit(0)

    def tell(self, new: str) -> None:
        """The new value, as the server writes it."""
        os.write(self._write, new.encode(errors="surrogateescape"))

    def close(self) -> None:
        """The old value is back already."""
        with contextlib.suppress(OSError):
            os.write(self._write, _DONE)
            os.close(self._write)
            os.waitpid(self.pid, 0)
