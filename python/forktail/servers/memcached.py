# SPDX-License-Identifier: MIT
"""memcached: on a Unix socket or TCP, with counters from `stats`."""

import os

from forktail.host.session import Command
from forktail.servers.listen import Endpoint, connect_to, start_listening
from forktail.servers.redis import RedisInfo
from forktail.servers.starting import Starting
from forktail.servers.topology import Instance

_STATS_S = 5


def start(starting: Starting, _number: int, instance: Instance) -> None:
    """Starts an instance."""
    as_root = ["-u", "root"] if os.geteuid() == 0 else []  # it refuses to run as root without this

    def command(endpoint: Endpoint) -> Command:
        listen = ["-s", endpoint.socket]
        if endpoint.port:
            listen = ["-l", endpoint.host, "-p", str(endpoint.port), "-U", "0"]
        return starting.command(instance, *listen, *as_root, *starting.plan.config)

    instance.endpoint, instance.child = start_listening(
        starting.session,
        "" if starting.plan.tcp else f"{instance.directory}/memcached.sock",
        command,
        starting.patience_s,
    )


def read_stats(instance: Instance) -> RedisInfo:
    """Reads "stats": lines "STAT name value" up to "END". Empty if it does not answer in time."""
    text = b""
    try:
        with connect_to(instance.endpoint, _STATS_S) as connection:
            connection.sendall(b"stats\r\n")
            while not text.endswith(b"END\r\n") and (data := connection.recv(1 << 16)):
                text += data
    except OSError:
        pass
    rows = (line.split() for line in text.decode(errors="replace").splitlines())
    return {row[1]: row[2] for row in rows if len(row) == 3 and row[0] == "STAT"}
