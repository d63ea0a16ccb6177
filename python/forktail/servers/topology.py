# SPDX-License-Identifier: MIT
"""Data of a run's servers: plans, running instances, and the topology. Only data and lookup."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forktail.failure import Failure
from forktail.host.session import Child
from forktail.servers.listen import LOOPBACK, Endpoint
from forktail.servers.redis import Redis

if TYPE_CHECKING:
    from forktail.servers.kinds import ServerKind

SENTINEL_MASTER = "forktail"  # the Sentinels' name of the primary


@dataclass
class Behind:
    """A server behind a proxy."""

    name: str  # "": the proxy uses its address
    address: str  # "127.0.0.1:7001", or a socket's path


@dataclass
class ServerPlan:
    """What to start: `count` instances of a kind, alone, as replicas, as a Cluster or in front of other servers."""

    name: str = ""
    kind: str = ""
    count: int = 1
    program: str = ""  # instead of the kind's program; "": the kind's
    # Further arguments: ["--appendonly", "yes"]. nutcracker: lines of its pool ("timeout: 400"); entries without a
    # colon are arguments ("-m 512"). haproxy: lines of its global section ("nbthread 4"). Sentinels: settings of the
    # primary ("down-after-milliseconds 1000"); "--loglevel debug" is an argument.
    config: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)  # in addition to ours
    under: list[str] = field(default_factory=list)  # a command that starts the program in its own place: nsenter
    tcp: bool = False
    host: str = LOOPBACK  # its address, where `under` is another network namespace; Redis and memcached only
    cpus: str = ""  # a list in taskset's format; "each"; or ""
    memory_bytes: int = 0  # 0: no limit
    of: str = ""  # nutcracker, haproxy: the servers behind it; sentinel: the primary
    behind: list[Behind] = field(default_factory=list)  # nutcracker, haproxy: the same, for external servers
    replica_of: str = ""  # instance i replicates instance i of that server, modulo their number
    replicas: int = 0  # of each primary, with cluster
    cluster: bool = False
    by_program: bool = False  # messages name an instance by its program


@dataclass(eq=False)
class Instance:
    """A running server, or one that has ended (`child.ended`)."""

    name: str  # "redis", or "redis3" of several
    server: str  # its plan's name: "redis"
    kind: ServerKind
    directory: str
    log: str
    version: str = ""  # "7.0.15"
    cgroup: str = ""  # of its memory limit, or ""
    cpus: str = ""  # its CPUs, or ""
    endpoint: Endpoint = field(default_factory=Endpoint)
    child: Child | None = None  # None only while its start fails
    redis: Redis | None = None  # a connection to it; None unless it runs and has the Redis protocol

    @property
    def socket(self) -> str:
        return self.endpoint.socket

    @property
    def port(self) -> int:
        return self.endpoint.port

    def address(self) -> str:
        """The socket's path, or "127.0.0.1:7001"."""
        return self.endpoint.address()

    def connection(self) -> Redis:
        """Its connection for Redis commands. Raises Failure if it has none."""
        if not self.redis:
            raise Failure(f"{self.name} does not accept Redis commands")
        return self.redis


@dataclass
class Topology:
    """All servers that run, in the order of their start."""

    directory: str = ""  # of all data
    plans: list[ServerPlan] = field(default_factory=list)  # of running servers
    instances: list[Instance] = field(default_factory=list)
    cgroups: list[str] = field(default_factory=list)


def instances_of(topology: Topology, name: str) -> list[Instance]:
    """The instances of a server ("redis": all of them; of a Cluster its primaries first, then their replicas in the
    same order) or the one instance ("redis3")."""
    return [one for one in topology.instances if name in (one.server, one.name)]
