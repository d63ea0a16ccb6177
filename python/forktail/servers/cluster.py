# SPDX-License-Identifier: MIT
"""A Redis Cluster: created with the commands of redis-cli --cluster create; slots are moved with those of redis-cli
--cluster reshard. They are sent here to notice signals and dead servers, and to wait for states instead of fixed
times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from forktail.failure import Failure
from forktail.host.session import Session
from forktail.servers.listen import await_true
from forktail.servers.topology import Instance, Topology, instances_of

_SLOTS = 16384
_FORM_S = 120
_KEYS_AT_ONCE = "10"  # as in redis-cli
_MIGRATE_MS = "10000"


@dataclass
class _Node:
    """A line of CLUSTER NODES: id, address, flags, primary, three times and counts, link, slots."""

    flags: list[str]
    slots: list[str]


def _nodes(node: Instance) -> list[_Node]:
    rows = [line.split() for line in node.connection().ask("CLUSTER", "NODES")[0].splitlines()]
    return [_Node(row[2].split(","), row[8:]) for row in rows]


def _with(nodes: list[_Node], flag: str) -> int:
    return sum(flag in node.flags for node in nodes)


def _await_each(session: Session, nodes: list[Instance], late: str, look: Callable[[int, Instance], bool]) -> None:
    for i, node in enumerate(nodes):
        await_true(session, _FORM_S, f"{node.name} {late}", lambda: look(i, node))  # noqa: B023


def form_cluster(session: Session, nodes: list[Instance], primaries: int) -> None:
    """Creates a Cluster of the nodes, the primaries first, and waits until it serves."""
    for i in range(primaries):
        slots = range(_SLOTS * i // primaries, _SLOTS * (i + 1) // primaries)
        nodes[i].connection().ask("CLUSTER", "SET-CONFIG-EPOCH", str(i + 1))
        nodes[i].connection().ask("CLUSTER", "ADDSLOTS", *map(str, slots))
    # Introduces every pair of nodes instead of waiting for gossip.
    for i, node in enumerate(nodes):
        for other in nodes[:i]:
            node.connection().ask("CLUSTER", "MEET", "127.0.0.1", str(other.port))

    def met(_i: int, node: Instance) -> bool:
        known = _nodes(node)
        return len(known) == len(nodes) and _with(known, "handshake") == 0

    _await_each(session, nodes, "did not find the other nodes", met)
    for i, replica in enumerate(nodes[primaries:]):
        replica.connection().ask("CLUSTER", "REPLICATE", _id(nodes[i % primaries]))

    def serves(i: int, node: Instance) -> bool:
        if i >= primaries and node.connection().read_info().get("master_link_status") != "up":
            return False
        state = node.connection().ask("CLUSTER", "INFO")[0]
        return "cluster_state:ok" in state and _with(_nodes(node), "slave") == len(nodes) - primaries

    _await_each(session, nodes, "did not report cluster_state:ok with all replicas", serves)


def _id(node: Instance) -> str:
    return node.connection().ask("CLUSTER", "MYID")[0]


def _first_slots(node: Instance, count: int) -> list[int]:
    own = next(one for one in _nodes(node) if "myself" in one.flags)
    # Words in brackets are slots that are being moved.
    ends = [(word.partition("-")) for word in own.slots if not word.startswith("[")]
    slots = [slot for first, _, last in ends for slot in range(int(first), int(last or first) + 1)]
    if len(slots) < count:
        raise Failure(f"{node.name} has {len(slots)} slots: cannot move {count}")
    return slots[:count]


def _move_keys(source: Instance, target: Instance, slot: str) -> None:
    while keys := source.connection().ask("CLUSTER", "GETKEYSINSLOT", slot, _KEYS_AT_ONCE):
        source.connection().ask("MIGRATE", "127.0.0.1", str(target.port), "", "0", _MIGRATE_MS, "KEYS", *keys)


def move_slots(topology: Topology, source: Instance, target: Instance, slots: int | list[int]) -> None:
    """Moves the first `slots` slots of one running node to another, or these slots, ten keys at a time like redis-cli
    --cluster reshard."""
    for node in (source, target):
        if not node.redis:
            raise Failure(f"{node.name} does not run: cannot move slots")
    numbers = _first_slots(source, slots) if isinstance(slots, int) else slots
    source_id, target_id = _id(source), _id(target)
    # The target first: it must know its new slot before the source redirects clients there.
    informed = [target, source]
    for node in instances_of(topology, source.server):
        if node not in informed and node.redis and node.redis.read_info().get("role") == "master":
            informed.append(node)
    for slot in map(str, numbers):
        target.connection().ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        source.connection().ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        _move_keys(source, target, slot)
        for node in informed:
            node.connection().ask("CLUSTER", "SETSLOT", slot, "NODE", target_id)
