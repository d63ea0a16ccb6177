# SPDX-License-Identifier: MIT
"""The options with which forktail-load reaches running servers."""

from forktail.servers.kinds import find_kind
from forktail.servers.listen import LOOPBACK
from forktail.servers.topology import Topology, instances_of


def load_words(topology: Topology, name: str, logged: bool = False) -> list[str]:
    """Options for a server, proxy, Cluster or Sentinels: ["-s", PATH], ["--server", ...]; none if it does not run.
    logged: also the servers behind a proxy, for the request log."""
    instances = instances_of(topology, name)
    plan = next((plan for plan in topology.plans if instances and plan.name == instances[0].server), None)
    if not plan:
        return []
    kind = instances[0].kind
    # Clusters and Sentinels report their members, so killed nodes are not named. Without any address, forktail-load
    # would use the default port.
    if option := "--server" if plan.cluster else kind.guide_option:
        words = [word for one in instances if one.redis for word in (option, one.address())]
        return words and ["--cluster"] * plan.cluster + words + [*kind.load_words]
    if len(instances) > 1:
        words = [word for one in instances for word in ("--server", one.address())]
    elif instances[0].port:
        words = ["-h", instances[0].endpoint.host, "-p", str(instances[0].port)]
    else:
        words = ["-s", instances[0].socket]
    if kind.proxy and plan.of:  # all proxies have the same servers
        behind = instances_of(topology, plan.of)
        if logged:
            words += [word for server in behind for word in ("--behind", f"{server.name}={server.address()}")]
        kind = behind[0].kind
    return words + [*kind.load_words]


def check_words(kind: str, cluster: bool) -> list[str]:
    """The same for a server that does not run yet, so that forktail-load can check a load's other arguments."""
    row = find_kind(kind)
    assert row, kind
    if cluster:
        return ["--cluster", "--server", LOOPBACK]
    if row.guide_option:
        return [row.guide_option, LOOPBACK]
    return [*row.load_words, "-h", LOOPBACK]
