# SPDX-License-Identifier: MIT
"""A running Redis or compatible server on this host, by port, socket, process or name: its process and a connection."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forktail.failure import CANNOT, USAGE, Failure
from forktail.host.machine import first_line
from forktail.options import Option
from forktail.servers.listen import LOOPBACK, listening_ports, listening_sockets

try:
    import redis
except ImportError:
    redis = None

OPTIONS = [
    Option("--port", "The server on this port of 127.0.0.1", "N", kind="UINT", limits=(1, 65535)),
    Option("--socket", "The server on this Unix socket", "PATH"),
    Option("--pid", "The server with this process id", "PID", kind="UINT", limits=(1, 1 << 22)),
    Option("--name", "The only server whose process has this name", "NAME"),
    Option("--user", "Log in as this user; the password is in $REDISCLI_AUTH", "NAME"),
]
_SECONDS = 20  # for a reply: the server may fork meanwhile


def _pids_named(name: str) -> list[int]:
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in pids if first_line(f"/proc/{pid}/comm") == name]


def _process(options: dict[str, Any]) -> int:
    """The process that the options name; 0: by its address."""
    if options["name"]:
        pids = _pids_named(options["name"])
        if len(pids) != 1:
            found = "no process is" if not pids else f"{len(pids)} processes are"
            raise Failure(f"{found} named {options['name']}: use --pid or --port", CANNOT)
        return pids[0]
    pid = options["pid"] or 0
    if pid and not first_line(f"/proc/{pid}/comm"):
        raise Failure(f"there is no process {pid}", CANNOT)
    return pid


def _is_ours(pid: int, namespace: str) -> bool:
    """The process is in this process's namespace: "net", "mnt"."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{namespace}") == os.readlink(f"/proc/self/ns/{namespace}")
    except OSError as error:
        raise Failure(f"you may not see process {pid}: {error.strerror}. Try as root", CANNOT) from None


def _address_of(pid: int) -> tuple[int | None, str]:
    """A port on which a process can be reached from here, or the path of its Unix socket."""
    ports, sockets = listening_ports(pid), listening_sockets(pid)
    if ports and _is_ours(pid, "net"):
        return min(ports), ""
    if sockets:
        return None, min(sockets) if _is_ours(pid, "mnt") else f"/proc/{pid}/root{min(sockets)}"
    if ports:
        raise Failure(
            f"process {pid} listens in another network namespace: use nsenter --net --target {pid} before this command",
            CANNOT,
        )
    raise Failure(f"process {pid} does not listen, or you may not see it. Try as root", CANNOT)


def _own_id(pid: int) -> int:
    """The id that a process has for itself: another one than here in a container."""
    lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), pid)


class NoAnswer(Failure):
    """The server does not answer: it is busy, it loads its data, it ended, or the connection broke."""


@contextmanager
def failures_of(address: str) -> Iterator[None]:
    """An error of the server becomes a Failure; a missing answer becomes NoAnswer."""
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise NoAnswer(f"{address}: {error}", CANNOT) from None
    except redis.RedisError as error:
        raise Failure(f"{address}: {error}", CANNOT) from None


def connect(options: dict[str, Any]) -> tuple[Any, int, str]:
    """A client of redis-py, the server's process and its address. options: the values of OPTIONS. The password is in
    the environment, REDISCLI_AUTH. Raises Failure."""
    if redis is None:
        raise Failure("this needs redis-py: install python3-redis, or pip install redis", CANNOT)
    if sum(options[key] not in (None, "") for key in ("port", "socket", "pid", "name")) != 1:
        raise Failure("name one server: --port, --socket, --pid or --name", USAGE)
    pid = _process(options)
    port, socket = _address_of(pid) if pid else (options["port"], options["socket"])
    address = socket or f"{LOOPBACK}:{port}"
    where = {"unix_socket_path": socket} if socket else {"host": LOOPBACK, "port": port}
    who = {"username": options["user"] or None, "password": os.environ.get("REDISCLI_AUTH")}
    client = redis.Redis(**where, **who, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)
    with failures_of(address):
        told = int(client.info("server").get("process_id", 0))
    if pid:
        if _own_id(pid) != told:
            raise Failure(f"{address}, where process {pid} listens, is answered by another process ({told})", CANNOT)
        return client, pid, address
    if not os.access(f"/proc/{told}/fd", os.R_OK):
        raise Failure(f"you may not see which process listens on {address}. Try as root", CANNOT)
    if port not in listening_ports(told) and socket not in listening_sockets(told):
        raise Failure(f"the process of {address} calls itself {told}, which is another one here: use --pid", CANNOT)
    return client, told, address
