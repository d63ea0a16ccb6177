# SPDX-License-Identifier: MIT
"""HAProxy: a TCP proxy with several threads. It forwards connections without knowing commands, so it has exactly one
server behind it.
"""

from forktail.failure import Failure
from forktail.files import replace_file
from forktail.host.session import Command
from forktail.servers.listen import Endpoint, start_listening
from forktail.servers.starting import Starting
from forktail.servers.topology import Instance


def _bound(address: str) -> str:
    return ("unix@" if address.startswith("/") else "") + address


def start(starting: Starting, _number: int, instance: Instance) -> None:
    """Starts an instance."""
    plan, behind = starting.plan, starting.behind()
    if len(behind) != 1:
        raise Failure(
            f"{plan.name} forwards connections to exactly one server, but {plan.of} has {len(behind)} instances"
        )
    config = f"{instance.directory}/haproxy.cfg"

    def command(endpoint: Endpoint) -> Command:
        # The timeouts allow long idle times of the load. Later lines of a section override earlier ones.
        settings = ["nbthread 2", "maxconn 4000", *plan.config]
        replace_file(
            config,
            "global\n" + "".join(f"  {line}\n" for line in settings) + "defaults\n  mode tcp\n  timeout connect 5s\n"
            "  timeout client 24d\n  timeout server 24d\n"
            f"listen forktail\n  bind {_bound(endpoint.address())}\n"
            f"  server {behind[0].name} {_bound(behind[0].address)}\n",
        )
        return starting.command(instance, "-db", "-f", config)

    instance.endpoint, instance.child = start_listening(
        starting.session, "" if plan.tcp else f"{instance.directory}/haproxy.sock", command, starting.patience_s
    )
