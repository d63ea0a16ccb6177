# SPDX-License-Identifier: MIT
"""Kinds of servers, each a row of a table: programs, start, readiness, counters, and options for forktail-load. A new
kind needs a row here, a test, and a separate file if it starts in another way; see CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from forktail.servers import haproxy, memcached, node, nutcracker, sentinel
from forktail.servers.redis import RedisInfo
from forktail.servers.starting import Starting
from forktail.servers.topology import SENTINEL_MASTER, Instance


class Made(Enum):
    """When to use the program built by script/servers."""

    NO = 0
    IF_MISSING = 1  # if none is installed
    ALWAYS = 2


@dataclass(frozen=True)
class ServerKind:
    """What one kind of server needs."""

    name: str  # in scenarios
    programs: tuple[str, ...]  # the preferred one first
    start: Callable[[Starting, int, Instance], None]  # instance `number`, from 0; it then listens
    # Waits until all instances serve; None: they serve when they listen.
    ready: Callable[[Starting], None] | None = None
    # Counters of an instance; None: INFO with the Redis protocol, else none.
    counters: Callable[[Instance], RedisInfo] | None = None
    load_words: tuple[str, ...] = ()  # options of forktail-load in addition to addresses
    # The option before each address for servers that only name other servers (Sentinels); "": it is a target itself.
    guide_option: str = ""
    of: str = ""  # its relation to the servers it needs: "in front of"
    proxy: bool = False  # the servers behind it define the protocol
    speaks_redis: bool = False  # supports data, replication and Cluster
    needs_tcp: bool = False  # others must reach it
    carries: bool = True  # requests pass through it, so it is recorded
    made: Made = Made.NO


def _redis_kind(name: str, program: str, made: Made = Made.NO) -> ServerKind:
    return ServerKind(name, (program,), node.start, node.await_serving, speaks_redis=True, made=made)


_KINDS = [
    _redis_kind("redis", "redis-server"),
    # I/O threads that each have their own clients: config = ["--io-threads", "4"]. Debian 12 has Redis 7.
    _redis_kind("redis8", "redis-server", Made.ALWAYS),
    # A fork of Redis with its own I/O threads. Debian 12 does not package it.
    _redis_kind("valkey", "valkey-server", Made.IF_MISSING),
    # A fork of Redis older than 7.0 whose threads share one data set with config = ["--server-threads", "2"].
    _redis_kind("keydb", "keydb-server"),
    ServerKind(
        "memcached",
        ("memcached",),
        memcached.start,
        counters=memcached.read_stats,
        load_words=("--protocol", "memcache_text"),
    ),
    ServerKind("nutcracker", ("nutcracker",), nutcracker.start, of="in front of", proxy=True),
    ServerKind("haproxy", ("haproxy",), haproxy.start, of="in front of", proxy=True),
    # A redis-server with --sentinel.
    ServerKind(
        "sentinel",
        ("redis-server", "valkey-server"),
        sentinel.start,
        sentinel.await_sentinels,
        load_words=("--master", SENTINEL_MASTER),
        guide_option="--sentinel",
        of="watching",
        needs_tcp=True,
        carries=False,
    ),
]


def find_kind(name: str) -> ServerKind | None:
    """The row of a kind; None: unknown."""
    return next((kind for kind in _KINDS if kind.name == name), None)


def kind_names() -> str:
    """ "redis, valkey and memcached"."""
    names = [kind.name for kind in _KINDS]
    return ", ".join(names[:-1]) + " and " + names[-1]
