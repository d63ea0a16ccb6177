# SPDX-License-Identifier: MIT
"""Servers for experiments, tests and benchmarks: redis-server (or valkey-server), memcached, nutcracker, HAProxy,
Redis Sentinel; alone, as replicas, as a Cluster or behind proxies.

They listen on free ports or Unix sockets in the session's temporary directory, can be pinned and limited, and end
with the session. Primaries of other servers, servers watched by Sentinels, Cluster nodes and Sentinels listen on TCP.
"""

from forktail.servers.cluster import move_slots
from forktail.servers.kinds import ServerKind, find_kind, kind_names
from forktail.servers.listen import Endpoint
from forktail.servers.load_words import check_words, load_words
from forktail.servers.programs import find_server, version_of
from forktail.servers.run import kill_instance, start_servers, stop_servers
from forktail.servers.server import Server
from forktail.servers.topology import Behind, Instance, ServerPlan, Topology, instances_of

__all__ = [
    "Behind", "Endpoint", "Instance", "Server", "ServerKind", "ServerPlan", "Topology", "check_words", "find_kind",
    "find_server", "instances_of", "kill_instance", "kind_names", "load_words", "move_slots", "start_servers",
    "stop_servers", "version_of",
]  # fmt: skip
