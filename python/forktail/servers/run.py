# SPDX-License-Identifier: MIT
"""Starts and ends servers: the parts common to all kinds, which are program, directory, CPUs and limit of each
instance. The rest is in the kinds (kinds.py).
"""

import os
import shutil
import signal

from forktail.failure import Failure
from forktail.files import make_directory
from forktail.host.keeper import Leftover
from forktail.host.memory import limit_memory, remove_group
from forktail.host.session import Session
from forktail.servers.kinds import Made, find_kind
from forktail.servers.programs import find_server, version_of
from forktail.servers.starting import Starting
from forktail.servers.topology import Instance, ServerPlan, Topology

_GONE_S = 60  # freeing a lot of memory, partly swapped


def _find(session: Session, plan: ServerPlan, topology: Topology) -> Starting:
    kind = find_kind(plan.kind)
    found = (plan.program, version_of(plan.program)) if plan.program and kind else find_server(plan.kind)
    if kind and found:
        return Starting(session, plan, kind, topology, *found)
    if kind and plan.by_program:
        raise Failure(f"{kind.programs[0]} is not installed. Install it")
    built = ": script/servers builds one" if kind and kind.made != Made.NO else ""
    raise Failure(f"no program is installed for a server of kind {plan.kind} ({plan.name}){built}")


def start_servers(session: Session, plan: ServerPlan, logs: str, topology: Topology) -> list[Instance]:
    """Starts all instances of a plan and waits until they serve: a replica until it is synchronized with its primary,
    a Cluster until every node reports cluster_state:ok, Sentinels until they know each other and every replica. Logs
    go to the directory `logs`. Returns them."""
    starting = _find(session, plan, topology)
    make_directory(logs)
    topology.directory = topology.directory or session.make_temp_directory()
    if plan.memory_bytes:
        starting.cgroup = limit_memory(session, plan.name, plan.memory_bytes)
        topology.cgroups.append(starting.cgroup)
    topology.plans.append(plan)
    count = plan.count * (1 + plan.replicas if plan.cluster else 1)
    allowed = sorted(os.sched_getaffinity(0))
    for number in range(count):
        name = f"{plan.name}{number + 1}" if count > 1 else plan.name
        instance = Instance(
            name=name, server=plan.name, kind=starting.kind, version=starting.version, cgroup=starting.cgroup,
            cpus=str(allowed[number % len(allowed)]) if plan.cpus == "each" else plan.cpus,
            directory=f"{topology.directory}/{name}", log=f"{logs}/{name}.log",
        )  # fmt: skip
        make_directory(instance.directory)
        topology.instances.append(instance)
        starting.kind.start(starting, number, instance)
    if starting.kind.ready:
        starting.kind.ready(starting)
    return starting.instances()


def kill_instance(session: Session, instance: Instance) -> None:
    """kill -9, without a failure of the session. Returns when the instance has ended."""
    _disconnect(instance)
    if instance.child:
        session.wait_for_end(instance.child, signal.SIGKILL, _GONE_S)


def stop_servers(session: Session, topology: Topology) -> None:
    """Ends all servers of the topology and removes their data and cgroups."""
    children = [one.child for one in topology.instances if one.child]
    # All at once, so that replicas do not react to the end of their primary.
    for child in children:
        child.needed = False
        child.send_signal(signal.SIGKILL)
    for child in children:
        session.wait_for_end(child, 0, _GONE_S)
    for instance in topology.instances:
        _disconnect(instance)
    for cgroup in topology.cgroups:
        remove_group(session, cgroup)
    if topology.directory:
        try:
            shutil.rmtree(topology.directory)
        except OSError as e:
            raise Failure(f"cannot remove {topology.directory}: {e.strerror}") from e
        session.keeper.release(Leftover.DIRECTORY, topology.directory)
    topology.directory = ""
    for running in (topology.plans, topology.instances, topology.cgroups):
        running.clear()


def _disconnect(instance: Instance) -> None:
    if instance.redis:
        instance.redis.close()
    instance.redis = None
