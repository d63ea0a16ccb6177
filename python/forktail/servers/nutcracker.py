# SPDX-License-Identifier: MIT
"""twemproxy (program: nutcracker): in front of other servers of the topology. It distributes keys by their names."""

from forktail.failure import Failure
from forktail.files import replace_file
from forktail.host.session import Command
from forktail.servers.listen import Endpoint, free_port, start_listening
from forktail.servers.starting import Starting
from forktail.servers.topology import Instance, instances_of


def _pool(starting: Starting, listen: str) -> str:
    plan = starting.plan
    servers = instances_of(starting.topology, plan.of)
    speaks_redis = not servers or servers[0].kind.speaks_redis
    # The settings of twemproxy's example, and one connection per server, its default.
    settings = {
        "hash": "hash: fnv1a_64",
        "distribution": "distribution: ketama",
        "server_connections": "server_connections: 1",
        "redis": f"redis: {'true' if speaks_redis else 'false'}",
    }
    # ketama distributes keys by names; without names, by ports and paths, which differ in every run.
    lines = [f"listen: {listen}"]
    own = [line for line in plan.config if ":" in line]
    lines += [line for name, line in settings.items() if name not in {line.partition(":")[0] for line in own}]
    lines += [*own, "servers:", *(f" - {one.address}:1 {one.name}".rstrip() for one in starting.behind())]
    return "forktail:\n" + "".join(f"  {line}\n" for line in lines)


def start(starting: Starting, _number: int, instance: Instance) -> None:
    """Starts an instance."""
    plan = starting.plan
    if not starting.behind():
        raise Failure(f"{plan.name} has no server behind it: {plan.of} does not run")
    pool = f"{instance.directory}/pool.yml"
    arguments = [word for line in plan.config if ":" not in line for word in line.split()]

    def command(endpoint: Endpoint) -> Command:
        replace_file(pool, _pool(starting, endpoint.address()))
        # It always needs a port for its statistics.
        words = ["-c", pool, "-o", instance.log, "-a", "127.0.0.1", "-s", str(free_port())]
        return starting.command(instance, *words, *arguments)

    instance.endpoint, instance.child = start_listening(
        starting.session, "" if plan.tcp else f"{instance.directory}/proxy.sock", command, starting.patience_s
    )
