# SPDX-License-Identifier: MIT
"""redis-server and compatible servers: alone, as a replica, or as a Cluster node. They take no snapshots unless
configured, so that experiments control forks.
"""

from forktail.failure import Failure
from forktail.host.session import Command
from forktail.servers.cluster import form_cluster
from forktail.servers.listen import LOOPBACK, Endpoint, await_true, start_listening
from forktail.servers.redis import ErrorReply, Redis
from forktail.servers.starting import Starting, need_tcp
from forktail.servers.topology import Instance, instances_of

_IN_STEP_S = 900  # a full synchronization under load


def start(starting: Starting, number: int, instance: Instance) -> None:
    """Starts instance `number`."""
    plan = starting.plan
    config = list(plan.config)
    if not any(word == "--save" or word.startswith("--save ") for word in config):
        config += ["--save", ""]
    if plan.cluster:
        config += ["--cluster-enabled", "yes"]
    if plan.replica_of:
        primaries = instances_of(starting.topology, plan.replica_of)
        if not primaries:
            raise Failure(f"{plan.name} cannot replicate {plan.replica_of}, which does not run")
        primary = primaries[number % len(primaries)]
        need_tcp(primary, f"{plan.name} cannot replicate it")
        config += ["--replicaof", f"{primary.endpoint.host} {primary.port}"]
    start_instance(starting, instance, config)


def start_instance(starting: Starting, instance: Instance, config: list[str], file: str = "") -> None:
    """Starts an instance with the Redis protocol and waits until it answers: a configuration file (or ""), then these
    arguments."""
    tcp = starting.plan.tcp or starting.plan.cluster or starting.kind.needs_tcp

    def command(endpoint: Endpoint) -> Command:
        bound = ["--bind", endpoint.host] if endpoint.port else ["--unixsocket", endpoint.socket]
        if endpoint.port and endpoint.host != LOOPBACK:
            bound += ["--protected-mode", "no"]  # the other side of the link is not the loopback interface
        words = [*([file] if file else []), "--dir", instance.directory, "--port", str(endpoint.port), *bound]
        return starting.command(instance, *words, *config)

    instance.endpoint, instance.child = start_listening(
        starting.session,
        "" if tcp else f"{instance.directory}/redis.sock",
        command,
        starting.patience_s,
        starting.plan.host,
    )
    redis = Redis(starting.session, instance.child, instance.endpoint, starting.patience_s)

    def answers() -> bool:
        # An error is an answer, too (NOAUTH), except LOADING.
        reply = redis.reply("PING")
        return not (isinstance(reply, ErrorReply) and reply.startswith("LOADING"))

    late = f"{instance.child.command.name} is still loading its data"
    await_true(starting.session, starting.patience_s, late, answers)
    instance.redis = redis


def await_serving(starting: Starting) -> None:
    """Waits until the Cluster is formed, or the replicas are synchronized."""
    if starting.plan.cluster:
        form_cluster(starting.session, starting.instances(), starting.plan.count)
    elif starting.plan.replica_of:
        for replica in starting.instances():
            redis = replica.connection()

            def synchronized() -> bool:
                return redis.read_info().get("master_link_status") == "up"  # noqa: B023

            late = f"{replica.name} is not synchronized with its primary"
            await_true(starting.session, _IN_STEP_S, late, synchronized)
