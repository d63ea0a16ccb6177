# SPDX-License-Identifier: MIT
"""The state of one start_servers() call, for the files of the kinds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forktail.failure import Failure
from forktail.host.session import Command, Session
from forktail.servers.topology import Behind, Instance, ServerPlan, Topology, instances_of

if TYPE_CHECKING:
    from forktail.servers.kinds import ServerKind

_PATIENCE_S, _LIMITED_PATIENCE_S = 20, 180


@dataclass
class Starting:
    """One plan on its way to running servers."""

    session: Session
    plan: ServerPlan
    kind: ServerKind
    topology: Topology
    program: str
    version: str
    cgroup: str = ""  # "": no limit

    @property
    def patience_s(self) -> float:
        """Time limit for a server's start and answers: at its memory limit, each page may have to be read from swap."""
        return _LIMITED_PATIENCE_S if self.cgroup else _PATIENCE_S

    def instances(self) -> list[Instance]:
        """The plan's instances that were started so far."""
        return instances_of(self.topology, self.plan.name)

    def command(self, instance: Instance, *words: str) -> Command:
        """The command of an instance: name, cgroup, CPUs and log, and the program with these arguments."""
        program = os.path.basename(self.program)
        return Command(
            name=program if self.plan.by_program else f"{instance.name} ({program})",
            argv=[*self.plan.under, self.program, *words],
            output=instance.log,
            err_to_output=True,
            cgroup=instance.cgroup,
            cpus=instance.cpus,
            environment=self.plan.environment,
        )

    def behind(self) -> list[Behind]:
        """The servers behind the plan's proxy."""
        return self.plan.behind + [
            Behind(server.name, server.address()) for server in instances_of(self.topology, self.plan.of)
        ]


def need_tcp(instance: Instance, what: str) -> None:
    """Raises unless the instance listens on TCP; `what` is the reason in the error ("sentinel cannot watch it")."""
    if not instance.port:
        raise Failure(f'{instance.name} listens on a Unix socket: {what}. Set `listen = "tcp"`.')
