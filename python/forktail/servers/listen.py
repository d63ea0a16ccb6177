# SPDX-License-Identifier: MIT
"""Starts a server on a Unix socket or a free port, of 127.0.0.1 unless it runs in a network namespace. If another
process takes the port before the server binds it, another port is tried.

/proc shows which process listens on a port, so that a foreign server is never used by mistake.
"""

import errno
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forktail.failure import Failure
from forktail.host.session import Child, Command, Session

LOOPBACK = "127.0.0.1"
_LOWEST_PORT, _HIGHEST_PORT = 10_000, 22_767
_BUS_OFFSET = 10_000  # as in Redis
_PORT_TRIES, _START_TRIES = 1000, 5
_SOCKET_PATH_LIMIT = 107


@dataclass
class Endpoint:
    """The address of a server: a socket's path, or a port."""

    socket: str = ""  # "" with TCP
    port: int = 0  # 0 with a Unix socket
    host: str = LOOPBACK

    def address(self) -> str:
        """The path, or "127.0.0.1:7001"."""
        return self.socket or f"{self.host}:{self.port}"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: ignores closed connections
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port() -> int:
    """A free port below 22768 whose port + 10000, the cluster bus port, is free as well. Both are below the kernel's
    client ports (32768 and up by default), so no load's connection takes them."""
    for _ in range(_PORT_TRIES):
        port = random.randint(_LOWEST_PORT, _HIGHEST_PORT)
        if _is_free(port) and _is_free(port + _BUS_OFFSET):
            return port
    raise Failure(f"no free TCP port from {_LOWEST_PORT} to {_HIGHEST_PORT}")


def connect_to(endpoint: Endpoint, seconds: float = 1) -> socket.socket:
    """A connection whose operations take at most `seconds`. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX if endpoint.socket else socket.AF_INET)
    try:
        connection.settimeout(seconds)
        connection.connect(endpoint.socket or (endpoint.host, endpoint.port))
    except OSError:
        connection.close()
        raise
    return connection


def _listening(pid: int, table: str, is_open: Callable[[list[str]], bool], inode: int) -> list[list[str]]:
    """The rows of a table of /proc/PID/net that are sockets of this process and listen. inode: that word of a row. A
    process that ended has none; another one may accept connections on the same port."""
    try:
        rows = [line.split() for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
        rows = [row for row in rows if len(row) > inode and is_open(row)]
        own = {os.readlink(fd.path) for fd in os.scandir(f"/proc/{pid}/fd")} if rows else set()
    except OSError:
        return []  # it ended, or a descriptor was closed: the next look shows it
    return [row for row in rows if f"socket:[{row[inode]}]" in own]


def listening_ports(pid: int) -> set[int]:
    """The TCP ports on which a process listens, in its network namespace."""
    # "0: 0100007F:1F90 00000000:0000 0A ... inode": 0A is LISTEN, the inode the tenth word.
    rows = [row for table in ("tcp", "tcp6") for row in _listening(pid, table, lambda row: row[3] == "0A", 9)]
    return {int(row[1].rpartition(":")[2], 16) for row in rows}


def listening_sockets(pid: int) -> set[str]:
    """The Unix sockets on which a process listens."""
    # Num RefCount Protocol Flags Type St Inode Path; flag 0x10000: it listens. Without a path it is not in the list.
    rows = _listening(pid, "unix", lambda row: bool(int(row[3], 16) & 0x10000), 6)
    return {row[7] for row in rows if len(row) > 7}


def _is_up(child: Child, endpoint: Endpoint) -> bool:
    if not endpoint.socket:
        return endpoint.port in listening_ports(child.pid)
    try:
        connect_to(endpoint).close()
    except OSError:
        return False
    return True


def start_listening(
    session: Session, socket_path: str, command: Callable[[Endpoint], Command], seconds: float, host: str = LOOPBACK
) -> tuple[Endpoint, Child]:
    """Starts a server on `socket_path`, or on a port of `host` if that is empty, and waits until it listens. `command`
    returns the command for each attempt. The child becomes `needed`."""
    if len(os.fsencode(socket_path)) > _SOCKET_PATH_LIMIT:
        raise Failure(
            f"the path of the temporary directory is too long for a Unix socket ({socket_path}). "
            "Set TMPDIR to a shorter path."
        )
    for _ in range(_START_TRIES):
        endpoint = Endpoint(socket_path) if socket_path else Endpoint(port=free_port(), host=host)
        child = session.start(command(endpoint))
        limit = time.monotonic() + seconds
        while not child.ended and not _is_up(child, endpoint):
            session.step(10)
            if not child.ended and time.monotonic() > limit:
                child.send_signal(signal.SIGKILL)
                late = f"{child.command.name} did not listen on {endpoint.address()} within {int(seconds)} s"
                raise Failure(late + child.last_words())
        if not child.ended:
            child.needed = True
            return endpoint, child
        if os.strerror(errno.EADDRINUSE) not in child.last_words():
            break
    raise Failure(child.how_it_ended())


def await_true(session: Session, seconds: float, late: str, look: Callable[[], bool]) -> None:
    """Calls `look` every 20 ms until it is true. `late` is the error text after the time limit."""
    limit = time.monotonic() + seconds
    while not look():
        session.step(20)
        if time.monotonic() > limit:
            raise Failure(f"{late} after {int(seconds)} s")
