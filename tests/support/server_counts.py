# SPDX-License-Identifier: MIT
"""What a server has counted, and commands of memcached."""

from forktail.servers.listen import connect_to
from forktail.servers.memcached import read_stats


def info(redis):
    """INFO, all sections, as texts by name."""
    lines = (line.partition(":") for line in redis.ask("INFO", "everything")[0].splitlines())
    return {name: value for name, colon, value in lines if colon}


def commands_run(redis):
    """How many commands a Redis has run."""
    return int(info(redis)["total_commands_processed"])


def calls(redis, command):
    """How often a Redis has run a command, such as "set"."""
    return int(info(redis).get(f"cmdstat_{command}", "calls=0,").partition("=")[2].partition(",")[0])


def stats(memcached):
    """memcached's counters, by name. Reading them takes a connection, which is counted."""
    return {name: int(value) for name, value in read_stats(memcached.instance).items() if value.isdecimal()}


def tell(memcached, command, until="\r\n"):
    """Sends a text command and returns the answer including `until`: tell(server, "get k", "END\\r\\n")."""
    with connect_to(memcached.instance.endpoint, 10) as connection:
        connection.sendall(f"{command}\r\n".encode())
        answer = b""
        while not answer.endswith(until.encode()):
            more = connection.recv(1 << 16)
            assert more, f"memcached closed the connection after {answer!r}"
            answer += more
        return answer.decode()
