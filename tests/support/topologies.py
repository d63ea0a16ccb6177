# SPDX-License-Identifier: MIT
"""Servers that belong together, for tests: a Cluster, Sentinels and their primary, servers behind a proxy."""

from typing import Any

import pytest

from forktail.host.session import Session
from forktail.servers import Instance, ServerPlan, Topology, find_server, move_slots, start_servers
from processes import Closing


class Servers(Closing):
    """Starts servers, which end with its `with` block."""

    def __init__(self) -> None:
        self._session = Session()
        self.topology = Topology(self._session.make_temp_directory())

    def start(self, kind: str, name: str = "", **plan: Any) -> list[Instance]:
        """Starts what a ServerPlan says, and waits until it serves. Skips the test if there is no such program."""
        if find_server(kind) is None:
            pytest.skip(f"no {kind} on this machine")
        logs = f"{self.topology.directory}/logs"
        started = start_servers(self._session, ServerPlan(name or kind, kind, **plan), logs, self.topology)
        for one in started:
            assert one.child
            one.child.needed = False  # tests may end servers at any time
        return started

    def close(self) -> None:
        self._session.close()


class Cluster:
    """Three primaries with a replica each. nodes: the primaries first, then their replicas in the same order.

    timeout_ms: how long a node is silent before it counts as dead. It is long, so that a busy machine causes no
    failover by itself.
    """

    def __init__(self, servers: Servers, timeout_ms: int = 15000) -> None:
        settings = ["--cluster-node-timeout", str(timeout_ms), "--repl-diskless-sync-delay", "0"]
        self._topology = servers.topology
        self.nodes = servers.start("redis", cluster=True, count=3, replicas=1, tcp=True, config=settings)
        self.primaries, self.replicas = self.nodes[:3], self.nodes[3:]

    @property
    def words(self) -> list[str]:
        """The options for a load on it. Its second node is asked for the others, so that a test may kill the first."""
        return ["--cluster", "--server", self.nodes[1].address()]

    def move(self, first: int, last: int, source: int, target: int) -> None:
        """Moves slots first..last from one primary to another, as redis-cli does."""
        move_slots(self._topology, self.nodes[source], self.nodes[target], list(range(first, last + 1)))
