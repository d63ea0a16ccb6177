# SPDX-License-Identifier: MIT
"""`forktail lab serve`: servers for programs in other languages. It prints their addresses, and stops them on request
or when its caller ends.

Standard input holds the servers: the parent's end of the pipe closes however it ends. The end of a parent whose input
outlives it, such as a terminal, is noticed by its process id.
"""

import json
import os
import select
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from forktail.failure import USAGE, Failure
from forktail.host.session import Session, Stopped
from forktail.servers import (
    Behind,
    Instance,
    ServerPlan,
    Topology,
    find_kind,
    instances_of,
    kind_names,
    start_servers,
)
from forktail.text import visible_lines

_LOOK_MS = 100


@dataclass
class ServeOptions:
    """What was asked for on the command line."""

    plan: ServerPlan  # kind, number and options
    directory: str = ""  # of data, sockets and logs, which remain; "": a temporary one
    of: list[str] = field(default_factory=list)  # addresses of the servers that a proxy is in front of
    environment: list[str] = field(default_factory=list)  # "NAME=VALUE"


def plan_serve(options: ServeOptions) -> list[ServerPlan]:
    """The plans to start one after another: the requested servers, after those they need. Raises Failure with USAGE
    if the options are invalid."""
    plan, kind = replace(options.plan), find_kind(options.plan.kind)
    if not kind:
        raise Failure(f'unknown kind of server "{plan.kind}": use {kind_names()}', USAGE)
    if not kind.proxy and options.of:
        raise Failure(f"--of needs a proxy: {plan.kind} is not a proxy", USAGE)
    if plan.cluster and not kind.speaks_redis:
        raise Failure(f"--cluster needs servers with the Redis protocol, not {plan.kind}", USAGE)
    if plan.replicas > 0 and not kind.speaks_redis and (not kind.of or options.of):
        raise Failure(f"--replicas: {plan.kind} does not support replicas", USAGE)
    for variable in options.environment:
        if not variable.partition("=")[1] or variable.startswith("="):
            raise Failure(f"--env needs NAME=VALUE, not {variable}", USAGE)
    plan.name = plan.kind
    plan.environment = dict(variable.split("=", 1) for variable in options.environment)
    plan.behind = [Behind(f"server{i + 1}", address) for i, address in enumerate(options.of)]
    first = plan
    if kind.of and not options.of:
        first = ServerPlan(name="redis", kind="redis", tcp=plan.tcp or plan.replicas > 0 or kind.needs_tcp)
        plan.of = first.name
    else:
        plan.tcp = plan.tcp or plan.replicas > 0
    plans = [first]
    if plan.replicas > 0 and not plan.cluster:
        replicas = replace(first, name="replica", count=first.count * plan.replicas, replicas=0, replica_of=first.name)
        plans.append(replicas)
    return plans + [plan] if plan.of else plans


def _role(plans: list[ServerPlan], instance: Instance, number: int) -> str:
    plan = next(plan for plan in plans if plan.name == instance.server)
    if plan.cluster:
        return "primary" if number < plan.count else "replica"
    if plan.replica_of:
        return "replica"
    if any(other.replica_of == instance.server for other in plans):
        return "primary"
    return "proxy" if instance.kind.proxy else "sentinel" if instance.kind.guide_option else "server"


def _described(plans: list[ServerPlan], topology: Topology) -> dict[str, Any]:
    servers = [
        {
            "name": one.name,
            "kind": one.kind.name,
            "role": _role(plans, one, i),
            "pid": one.child.pid if one.child else 0,
            "address": one.address(),
            "socket": one.socket,
            "port": one.port,
            "directory": one.directory,
            "log": one.log,
            "version": one.version,
        }
        for plan in plans
        for i, one in enumerate(instances_of(topology, plan.name))
    ]
    return {"directory": topology.directory, "servers": servers}


def _input_closed() -> bool:
    """Data on standard input is ignored."""
    try:
        return bool(select.select([0], [], [], 0)[0]) and not os.read(0, 4096)
    except OSError:
        return True


def _hold(session: Session, topology: Topology, parent: int) -> None:
    """Waits until the servers must end. Servers that end by themselves are reported, the others continue."""
    children = [one.child for one in topology.instances if one.child]
    for child in children:
        child.needed = False
    while True:
        try:
            session.step(_LOOK_MS, 0)
        except Stopped:
            return
        if os.getppid() != parent:
            return
        running = [child for child in children if not child.ended]
        for child in children:
            if child.ended and len(topology.instances) > 1:
                print(f"forktail lab: {visible_lines(child.how_it_ended())}", file=sys.stderr)
        if not running:
            raise Failure(child.how_it_ended() if len(topology.instances) == 1 else "no server is left")
        children = running
        if _input_closed():
            return


def serve(session: Session, options: ServeOptions, plans: list[ServerPlan]) -> None:
    """Starts the servers, prints one line of JSON, and waits until standard input closes, the parent or all servers
    end, or a signal arrives. Raises Failure if servers did not start, or none is left."""
    parent = os.getppid()
    topology = Topology(os.path.abspath(options.directory) if options.directory else session.make_temp_directory())
    for plan in plans:
        start_servers(session, plan, f"{topology.directory}/logs", topology)
    text = json.dumps(_described(plans, topology), separators=(",", ":"), ensure_ascii=False)
    sys.stdout.buffer.write(text.encode(errors="replace") + b"\n")
    sys.stdout.flush()
    _hold(session, topology, parent)
