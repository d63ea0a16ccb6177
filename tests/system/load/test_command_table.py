# SPDX-License-Identifier: MIT
"""The table of commands (common/text/commands.c), compared with what each server's COMMAND says of its commands, and
with its replies. The rows are read from the source, because no program prints them.
"""

import re
from typing import NamedTuple

import pytest

from forktail.servers.listen import connect_to
from harness import TREE


class Row(NamedTuple):
    """A row, without the prefixes of its enumerators: harm is "BLOCKS" or "", a kind of reply "VALUE" or ""."""

    key: int
    split: int
    harm: str
    writes: str
    flags: set[str]
    reply: str
    miss: str
    words: int


class Reported(NamedTuple):
    """What a server reports of a command."""

    flags: set[str]
    key: int
    last: int
    step: int
    parts: set[str]


def read_row(key, rest):
    def member(name, default=""):
        found = re.search(rf"\.{name} = (\{{[^}}]*\}}|[^,]+)", rest)
        return found[1].strip("{}") if found else default

    kinds = [kind.strip().removeprefix("REPLY_").replace("ANY", "") for kind in member("reply").split(",")]
    reply, miss, words = [*kinds, *["", "", "0"][len(kinds) :]]
    harm, flags = member("harm").removeprefix("HARM_"), set(member("flags").split(" | "))
    return Row(int(key), int(member("split", 0)), harm, member("writes"), flags, reply, miss, int(words))


@pytest.fixture(scope="module")
def table():
    """The rows by name."""
    source = (TREE / "common/text/commands.c").read_text()
    header = (TREE / "common/text/include/common/commands.h").read_text()
    rows = re.findall(r'\bROW\("([^"]+)", (\d+)((?:[^()"]|"[^"]*"|\([^()]*\))*)\)', source)
    assert len(rows) == int(re.search(r"COMMAND_ROWS = (\d+)", header)[1])
    return {name: read_row(key, rest) for name, key, rest in rows}


def upper(name):
    return name.upper().replace("|", " ")


def reported_by(server):
    """The elements of COMMAND, by name."""
    return {
        upper(name): Reported(set(flags), int(key), int(last), int(step), {upper(part[0]) for part in more[3]})
        for name, _arity, flags, key, last, step, *more in server.instance.connection().reply("COMMAND")
    }


@pytest.mark.parametrize("kind", ["redis", "redis8", "valkey"])
def test_the_table_of_commands_agrees_with_what_servers_report(serve, table, kind):
    reported = reported_by(serve(kind))

    def commands(flag):
        return {name for name, one in reported.items() if flag in one.flags}

    def rows(matches):
        return {name for name, row in table.items() if matches(row)}

    own_tests = {"PFDEBUG", "PFSELFTEST"}  # of Redis itself
    assert commands("admin") - own_tests <= rows(lambda row: row.harm)
    blocking = rows(lambda row: row.flags & {"BLOCKING", "BLOCK_OPTION"})
    assert commands("blocking") <= blocking
    subscribing = {name for name in reported if name.endswith("SUBSCRIBE")}
    assert subscribing <= rows(lambda row: row.harm == "PROTOCOL")
    pushing = rows(lambda row: "PUSHES" in row.flags)
    assert subscribing & pushing == {name for name in subscribing if not name.endswith("UNSUBSCRIBE")}

    known = table.keys() & reported.keys()
    assert len(known) > 200
    assert {name: table[name].key for name in known} == {name: reported[name].key for name in known}
    assert known & rows(lambda row: row.writes == "WRITES") == known & commands("write")
    assert rows(lambda row: row.writes == "MAY_WRITE") == {"EVAL", "EVALSHA", "FCALL"}
    split = known & rows(lambda row: row.split)
    keys = {name: (reported[name].key, reported[name].last, reported[name].step) for name in split}
    assert keys == {name: (1, -1, table[name].split) for name in split}
    # WAIT has had the flag since 7.2.
    assert known & rows(lambda row: "BLOCKING" in row.flags) <= commands("blocking") | {"WAIT"}
    assert known & rows(lambda row: row.harm == "BLOCKS") == known & blocking
    assert not commands("readonly") & rows(lambda row: row.harm not in ("", "BLOCKS", "PROTOCOL"))

    parts = {name for name in table if " " in name and (name != "COMMANDLOG RESET" or "COMMANDLOG" in reported)}
    assert parts <= set().union(*(one.parts for one in reported.values()))


def kind_of(reply):
    if reply.startswith((b"$-1", b"*-1")):
        return "NIL"
    return {b"+": "LINE", b":": "INTEGER", b"$": "VALUE", b"*": "LIST"}.get(reply[:1], "")


def test_replies_have_the_kinds_of_the_table(redis, table):
    succeed = [
        "PING", "SET k v", "GET k", "INCR n", "LPUSH l a", "RPUSH l b", "LRANGE l 0 9", "LPOP l", "RPOP l", "SADD s m",
        "SMEMBERS s", "SPOP s", "HSET h f v", "HGET h f", "HGETALL h", "HMSET h g w", "ZADD z 1 m", "ZPOPMIN z",
        "ZRANGEBYSCORE z 0 9", "MSET a 1 b 2", "XADD x * f v",
    ]  # fmt: skip
    miss = ["GET none", "LPOP l", "RPOP l", "SPOP s", "HGET h none"]
    assert {command.split()[0] for command in succeed} == {name for name, row in table.items() if row.reply}
    assert {command.split()[0] for command in miss} == {name for name, row in table.items() if row.miss}
    rows = {command: table[command.split()[0]] for command in succeed + miss}
    assert all(row.words == 0 or len(command.split()) <= row.words for command, row in rows.items())
    with connect_to(redis.instance.endpoint) as connection:

        def kind(command):
            connection.sendall(f"{command}\r\n".encode())
            return kind_of(connection.recv(1000))

        assert {command: kind(command) for command in succeed} == {command: rows[command].reply for command in succeed}
        assert {command: kind(command) for command in miss} == {command: rows[command].miss for command in miss}
