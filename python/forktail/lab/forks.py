# SPDX-License-Identifier: MIT
"""Children of BGSAVE and BGREWRITEAOF, and the server's own report about them: duration of the fork and copy-on-write
memory. It is stored with a recording to check the recorded forks.

The fork is over when the reply to the command arrives, so INFO directly after it describes this fork.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from forktail.failure import Failure
from forktail.lab.actions import one_instance
from forktail.lab.point_run import PointRun
from forktail.lab.progress import say, say_meanwhile
from forktail.lab.scenario import Action
from forktail.servers.redis import RedisInfo, number
from forktail.servers.topology import Instance
from forktail.text import format_bytes, format_duration


@dataclass(frozen=True)
class ForkJob:
    """A command and the INFO fields of its child."""

    command: str
    kind: str
    running: str
    status: str
    cow: str


JOBS = (
    ForkJob("BGSAVE", "bgsave", "rdb_bgsave_in_progress", "rdb_last_bgsave_status", "rdb_last_cow_size"),
    ForkJob(
        "BGREWRITEAOF", "bgrewriteaof", "aof_rewrite_in_progress", "aof_last_bgrewrite_status", "aof_last_cow_size"
    ),
)
LOOK_NS = 100_000_000  # rarely, so that INFO adds no load
JOB_S = 30  # how long a child may run after the load


@dataclass
class ForkReport:
    job: ForkJob
    asked_ns: int  # the fork is between this
    t_ns: int  # and this
    fork_us: int  # INFO's, right after t_ns, as the next two
    used_memory: int
    used_memory_rss: int
    ended_ns: int = 0  # 0: its end was not seen
    cow_bytes: int = 0  # after its end


@dataclass
class Forks:
    """The forks of one load."""

    reports: list[ForkReport] = field(default_factory=list)
    server: Instance | None = None  # of the last report, while its child runs
    looked_ns: int = 0


def _look(forks: Forks) -> RedisInfo:
    """Reads INFO, and notes in the last report if the child has ended."""
    server, report = forks.server, forks.reports[-1]
    assert server and server.child
    job, info = report.job, server.connection().read_info()
    if number(info, job.running) != 0:
        return info
    status = info.get(job.status, "")
    if status != "ok":
        raise Failure(f"{job.command} failed ({job.status} is {status}){server.child.last_words()}")
    report.ended_ns = time.monotonic_ns()
    report.cow_bytes = number(info, job.cow)
    say(
        f"{job.command} done after {format_duration(report.ended_ns - report.asked_ns)}; "
        f"Redis reports {format_bytes(report.cow_bytes)} copied on write"
    )
    forks.server = None
    return info


def ask_for_fork(run: PointRun, action: Action, forks: Forks) -> None:
    """Starts the next fork; none may run."""
    server = one_instance(run.topology, action.server)
    job = next((job for job in JOBS if job.command == action.ask), None)
    if not server.redis or not job:
        raise Failure(f"{server.name} does not support {action.ask}")
    asked_ns = time.monotonic_ns()
    server.redis.ask(job.command)
    t_ns = time.monotonic_ns()
    info = server.redis.read_info()
    report = ForkReport(
        job, asked_ns, t_ns, *(number(info, name) for name in ("latest_fork_usec", "used_memory", "used_memory_rss"))
    )
    say(f"{action.ask} started; Redis reports that its fork took {format_duration(report.fork_us * 1000)}")
    forks.reports.append(report)
    forks.server = server


def look_at_fork(forks: Forks) -> None:
    """Checks periodically whether the child has ended."""
    if forks.server and time.monotonic_ns() - forks.looked_ns >= LOOK_NS:
        forks.looked_ns = time.monotonic_ns()
        _look(forks)


def await_fork(run: PointRun, forks: Forks) -> None:
    """Waits for the child, which may outlive the load: the copied memory is known only after its end."""
    if not forks.server:
        return
    command = forks.reports[-1].job.command
    start = shown = time.monotonic()
    say(f"waiting for {command} to end")
    while forks.server and time.monotonic() - start < JOB_S:
        run.session.step(100)
        info = _look(forks)
        total = number(info, "current_save_keys_total")
        if forks.server and total and time.monotonic() - shown >= 1:
            shown = time.monotonic()
            say_meanwhile(f"{100 * number(info, 'current_save_keys_processed') // total} % of the keys written")
    if forks.server:
        say(f"{command} did not finish within {JOB_S} s: its copied memory is not known")
