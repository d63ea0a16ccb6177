# SPDX-License-Identifier: MIT
"""Redis Sentinels: started with their own configuration files, which they rewrite. They are ready when they know each
other and all replicas, because only then they can fail over.
"""

from forktail.failure import Failure
from forktail.files import replace_file
from forktail.servers.listen import await_true
from forktail.servers.node import start_instance
from forktail.servers.starting import Starting, need_tcp
from forktail.servers.topology import SENTINEL_MASTER, Instance, instances_of

_KNOWN_S = 60  # they announce themselves every 2 s and read replicas every 10 s


def _find_primary(starting: Starting) -> Instance:
    plan = starting.plan
    found = instances_of(starting.topology, plan.of)
    if not found or not found[0].redis:
        raise Failure(f"{plan.name} cannot watch {plan.of}, which does not run")
    need_tcp(found[0], f"{plan.name} cannot watch it")
    return found[0]


def start(starting: Starting, _number: int, instance: Instance) -> None:
    """Starts an instance."""
    plan = starting.plan
    primary = _find_primary(starting)
    lines = [f"sentinel monitor {SENTINEL_MASTER} 127.0.0.1 {primary.port} {plan.count // 2 + 1}\n"]
    arguments = ["--sentinel"]
    words = " ".join(plan.config).split()
    if len(words) % 2:
        raise Failure(f"{plan.name}'s setting {words[-1]} has no value")
    for setting, value in zip(words[::2], words[1::2], strict=True):
        if setting.startswith("--"):
            arguments += [setting, value]
        else:
            lines.append(f"sentinel {setting} {SENTINEL_MASTER} {value}\n")
    file = f"{instance.directory}/sentinel.conf"
    replace_file(file, "".join(lines))
    start_instance(starting, instance, arguments, file)


def await_sentinels(starting: Starting) -> None:
    """Waits until they know each other and all replicas."""
    replicas = _find_primary(starting).connection().read_info().get("connected_slaves")
    wanted = {"flags": "master", "num-slaves": replicas, "num-other-sentinels": str(starting.plan.count - 1)}
    for sentinel in starting.instances():
        redis = sentinel.connection()

        def knows() -> bool:
            reply = redis.ask("SENTINEL", "MASTER", SENTINEL_MASTER)  # noqa: B023
            about = dict(zip(reply[::2], reply[1::2], strict=True))
            return all(about.get(name) == value for name, value in wanted.items())

        await_true(starting.session, _KNOWN_S, f"{sentinel.name} does not know all replicas and Sentinels", knows)
