# SPDX-License-Identifier: MIT
"""Writes run.json of a recording: how it was made, for explain and report.

docs/reference/lab-and-scenarios.md describes its keys. Settings and memory are written only if there is one server,
because explain could not assign them to one of several.
"""

from typing import Any

import forktail
from forktail.files import write_json
from forktail.host.machine import host_name, kernel_release
from forktail.lab.forks import ForkReport, Forks
from forktail.lab.point_run import PointRun
from forktail.servers.redis import Redis, number
from forktail.text import command_line

# Settings that matter to latency.
_SETTINGS = (
    "appendonly",
    "appendfsync",
    "save",
    "auto-aof-rewrite-percentage",
    "aof-use-rdb-preamble",
    "no-appendfsync-on-rewrite",
    "rdbcompression",
    "io-threads",
    "maxmemory",
    "disable-thp",
)


def _server(redis: Redis) -> dict[str, Any]:
    # One by one: old servers accept no more, and an unknown setting has an empty reply.
    replies = [redis.ask("CONFIG", "GET", name) for name in _SETTINGS]
    info = redis.read_info()
    return {
        "redis_config": {
            name: value for reply in replies for name, value in zip(reply[::2], reply[1::2], strict=False)
        },
        "used_memory_bytes": number(info, "used_memory"),
        "rss_bytes": number(info, "used_memory_rss"),
    }


def _report(fork: ForkReport) -> dict[str, Any]:
    report = {
        "t_ns": fork.t_ns,
        "kind": fork.job.kind,
        "asked_ns": fork.asked_ns,
        "latest_fork_usec": fork.fork_us,
        "used_memory": fork.used_memory,
        "used_memory_rss": fork.used_memory_rss,
    }
    return report | ({"ended_ns": fork.ended_ns, fork.job.cow: fork.cow_bytes} if fork.ended_ns else {})


def write_run_json(run: PointRun, step: str, forks: Forks, started_unix: int, path: str) -> None:
    """`forks` are those of the step's load."""
    instances = run.topology.instances
    document = {
        "host": host_name(),
        "kernel": kernel_release(),
        "scenario": run.scenario.name,
        "step": step,
        "values": dict(sorted(run.point.values.items())),
        "versions": {"forktail": forktail.__version__} | {one.kind.name: one.version for one in instances},
        "commands": [command_line(one.child.command.argv) for one in instances if one.child] + run.commands,
        "server_reports": [_report(fork) for fork in forks.reports],
        "started_unix": started_unix,
    }
    servers = [one.redis for one in instances if one.redis and one.child and not one.child.ended]
    if len(servers) == 1:
        document |= _server(servers[0])
    write_json(path, document, 2)
