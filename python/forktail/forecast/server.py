# SPDX-License-Identifier: MIT
"""A running Redis or compatible server on this host, by port, process or name: its process and a connection."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from forktail.failure import CANNOT, USAGE, Failure

try:
    import redis
except ImportError:
    redis = None

_SECONDS = 20  # for a reply: the server may fork meanwhile


def _comm(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    return ""


def _inodes(pid: int) -> set[str]:
    """Of the sockets that a process has open."""
    found = set()
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
                if match:
                    found.add(match[1])
    return found


def _rows(path: str) -> list[list[str]]:
    with suppress(OSError):
        return [line.split() for line in Path(path).read_text().splitlines()[1:]]
    return []


def listens(pid: int) -> tuple[set[int], set[str]]:
    """The TCP ports and the Unix sockets on which a process listens, in its network namespace."""
    inodes = _inodes(pid)
    ports, sockets = set(), set()
    for name in ("tcp", "tcp6"):
        for row in _rows(f"/proc/{pid}/net/{name}"):
            if len(row) > 9 and row[3] == "0A" and row[9] in inodes:
                ports.add(int(row[1].rpartition(":")[2], 16))
    for row in _rows(f"/proc/{pid}/net/unix"):
        # Num RefCount Protocol Flags Type St Inode Path; flag 0x10000: it listens.
        if len(row) > 7 and int(row[3], 16) & 0x10000 and row[6] in inodes:
            sockets.add(row[7])
    return ports, sockets


def _pids_named(name: str) -> list[int]:
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in pids if _comm(pid) == name]


def _process(options: dict[str, Any]) -> int:
    """The process that the options name; 0: by its address."""
    if options["name"]:
        pids = _pids_named(options["name"])
        if len(pids) != 1:
            found = "no process is" if not pids else f"{len(pids)} processes are"
            raise Failure(f"{found} named {options['name']}: use --pid or --port", CANNOT)
        return pids[0]
    pid = options["pid"] or 0
    if pid and not _comm(pid):
        raise Failure(f"there is no process {pid}", CANNOT)
    return pid


def connect(options: dict[str, Any]) -> tuple[Any, int, str]:
    """A client of redis-py, the server's process and its address. options: port, socket, pid, name, user. The password
    is in the environment, REDISCLI_AUTH. Raises Failure."""
    if redis is None:
        raise Failure("this needs redis-py: install python3-redis, or pip install redis", CANNOT)
    if sum(options[key] not in (None, "") for key in ("port", "socket", "pid", "name")) != 1:
        raise Failure("name one server: --port, --socket, --pid or --name", USAGE)
    pid, port, socket = _process(options), options["port"], options["socket"]
    if pid:
        ports, sockets = listens(pid)
        if not ports and not sockets:
            raise Failure(f"process {pid} does not listen, or you may not see it. Try as root", CANNOT)
        port, socket = (min(ports), "") if ports else (None, min(sockets))
    address = socket or f"127.0.0.1:{port}"
    where = {"unix_socket_path": socket} if socket else {"host": "127.0.0.1", "port": port}
    who = {"username": options["user"] or None, "password": os.environ.get("REDISCLI_AUTH")}
    client = redis.Redis(**where, **who, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)
    try:
        own = int(client.info("server")["process_id"])
    except (redis.RedisError, KeyError, ValueError) as error:
        raise Failure(f"{address}: {error}", CANNOT) from None
    if not pid:
        pid = own
        if not os.access(f"/proc/{pid}/fd", os.R_OK):
            raise Failure(f"you may not see which process listens on {address}. Try as root", CANNOT)
        ports, sockets = listens(pid)
        if port not in ports and socket not in sockets:
            raise Failure(f"the process of {address} calls itself {own}, which is another one here: use --pid", CANNOT)
    return client, pid, address
