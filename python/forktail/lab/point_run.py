# SPDX-License-Identifier: MIT
"""A running point of a scenario: the state that its steps, events and actions share.

Templates are expanded when a server is started, because count, memory and address differ between points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forktail.failure import Failure
from forktail.lab.results import Point
from forktail.lab.scenario import Scenario, ServerSpec, Values, expand, parse_memory
from forktail.servers.listen import LOOPBACK
from forktail.servers.topology import ServerPlan, Topology

if TYPE_CHECKING:
    from forktail.host.network import Link
    from forktail.host.session import Session


@dataclass
class PointRun:
    session: Session
    scenario: Scenario
    programs: str  # directory of forktail's programs
    directory: str  # of the point
    logs: str  # of its servers
    topology: Topology
    point: Point
    notes: list[str]  # what this host does not support
    # For files of unrecorded steps, so that the point's directory only has those of the recorded step; "": all files
    # are in the point's directory.
    scratch: str = ""
    plain: bool = False  # as in ExperimentOptions
    commands: list[str] = field(default_factory=list)  # of the loads so far
    step: str = ""  # the current load
    link: Link | None = None  # the scenario's network

    def plan(self, spec: ServerSpec) -> ServerPlan:
        """Of a server of the scenario at this point."""
        return make_plan(spec, self.point.values, self.link if spec.name in self.scenario.network.servers else None)


def make_plan(spec: ServerSpec, values: Values, link: Link | None = None) -> ServerPlan:
    """Expands a server of a scenario at a point. link: the network that it is behind."""
    memory = expand(spec.memory, values)
    memory_bytes = parse_memory(memory) if memory else 0
    if memory_bytes is None:
        raise Failure(f'"{memory}" is not a size of memory, such as 256MiB')
    return ServerPlan(
        name=spec.name,
        kind=spec.kind,
        program=spec.program,
        count=int(expand(spec.count, values)),
        tcp=expand(spec.listen, values) == "tcp",
        of=spec.of,
        replica_of=spec.replica_of,
        replicas=int(expand(spec.replicas, values) or 0),
        cluster=spec.cluster,
        cpus=expand(spec.cpus, values),
        memory_bytes=memory_bytes,
        config=[expand(word, values) for word in spec.config],
        host=link.host if link else LOOPBACK,
        under=link.under if link else [],
    )
