# SPDX-License-Identifier: MIT
"""The actions of a scenario: send a command, start, kill, move slots, wait, spread soft interrupts.

All waiting is done in small steps, so that signals and the end of a server are noticed.
"""

import re
import time

from forktail.failure import Failure
from forktail.host.settings import set_host
from forktail.host.steering import LOOPBACK_INTERFACE, spread_softirqs, thread_softirqs
from forktail.lab.counters import add_moment, read_counters
from forktail.lab.point_run import PointRun
from forktail.lab.progress import say
from forktail.lab.scenario import Action, expand, expand_text, matches, parse_due, split_words
from forktail.servers import kill_instance, move_slots, start_servers
from forktail.servers.redis import RedisInfo, number
from forktail.servers.topology import Instance, Topology, instances_of

AWAIT_S = 300
POLL_MS = 50


def one_instance(topology: Topology, name: str) -> Instance:
    """The only instance of that name."""
    instances = instances_of(topology, name)
    if not instances:
        raise Failure(f"unknown server {name}")
    if len(instances) > 1:
        raise Failure(f"{name} has several instances: name one, such as {name}1")
    return instances[0]


def _running(run: PointRun, server: str) -> list[Instance]:
    instances = instances_of(run.topology, server)
    if not instances:
        raise Failure(f"the server {server} is not running")
    return instances


def _ask(run: PointRun, action: Action) -> None:
    text = expand(action.ask, run.point.values)
    words = split_words(text)
    if not words:
        raise Failure(f'"{text}" is not a command')
    instances = _running(run, action.server)
    say(f"{action.server}: {text}")
    for instance in instances:
        instance.connection().ask(*words)


def _replicas_in_step(info: RedisInfo) -> bool:
    """True if all replicas of a primary are synchronized."""
    replicas, offset = number(info, "connected_slaves"), number(info, "master_repl_offset")
    for i in range(replicas):
        replica = info.get(f"slave{i}", "")
        reached = re.search(r"offset=(\d+)", replica)
        if "state=online" not in replica or not reached or int(reached[1]) < offset:
            return False
    return replicas > 0


def _over(what: str, info: RedisInfo) -> bool:
    if what == "replicas":
        return _replicas_in_step(info)
    if what == "snapshot":
        return number(info, "rdb_bgsave_in_progress") == 0
    return number(info, "aof_rewrite_in_progress") == 0 and number(info, "aof_rewrite_scheduled") == 0


def _await(run: PointRun, action: Action) -> None:
    instances = _running(run, action.server)
    say(f"waiting for the {action.await_} of {action.server}")
    late = time.monotonic() + AWAIT_S
    for instance in instances:
        if not instance.redis:
            raise Failure(f"{instance.name} has no {action.await_}")
        while not _over(action.await_, instance.redis.read_info()):
            if time.monotonic() > late:
                raise Failure(f"the {action.await_} of {instance.name} did not finish within {AWAIT_S} s")
            run.session.step(POLL_MS)


def _start_later(run: PointRun, name: str) -> None:
    spec = next((spec for spec in run.scenario.servers if spec.name == name), None)
    if not spec:
        raise Failure(f"unknown server {name}")
    say(f"starting {name}")
    plan = run.plan(spec)
    plan.by_program = run.plain
    start_servers(run.session, plan, run.logs, run.topology)


def _move(run: PointRun, action: Action) -> None:
    source, target = one_instance(run.topology, action.server), one_instance(run.topology, action.to)
    slots = expand(action.move_slots, run.point.values)
    say(f"moving {slots} slots from {action.server} to {action.to}")
    start_ns = time.monotonic_ns()
    move_slots(run.topology, source, target, int(slots))
    run.point.numbers[f"{run.step}.move_time"] = time.monotonic_ns() - start_ns


def _steer(run: PointRun, action: Action) -> None:
    cpus = expand(action.spread or action.napi_threads, run.point.values)
    set_cpus = spread_softirqs if action.spread else thread_softirqs
    link = run.link.interfaces if run.link else []
    try:
        for interface in link or [LOOPBACK_INTERFACE]:
            set_cpus(None if link else run.session, interface, cpus)
    except Failure as lack:
        if cpus != "off" and str(lack) not in run.notes:
            run.notes.append(str(lack))


def _wait(run: PointRun, text: str) -> None:
    due = parse_due(text)
    assert due  # the scenario is checked
    run.session.wait(due.seconds)


def say_text(run: PointRun, text: str) -> None:
    """Prints a step's `say` text with the values of this point."""
    say(expand_text(text, run.point.values, run.point.numbers.get))


def run_action(run: PointRun, action: Action) -> None:
    """Does it, if it is meant for this point. If this host does not support `spread` or `napi_threads`, that is a note,
    not a failure."""
    if not matches(action.only, run.point.values):
        return
    if action.ask:
        _ask(run, action)
    elif action.start:
        _start_later(run, action.start)
    elif action.kill:
        victim = one_instance(run.topology, action.kill)
        say(f"killing {victim.name}")
        kill_instance(run.session, victim)
    elif action.move_slots:
        _move(run, action)
    elif action.await_:
        _await(run, action)
    elif action.spread or action.napi_threads:
        _steer(run, action)
    elif action.host:
        path, _, value = expand(action.host, run.point.values).partition(" ")
        set_host(run.session, path, value)
    elif action.wait:
        _wait(run, action.wait)
    else:
        add_moment(action.note, run.topology, read_counters(run.topology), run.point)
    if action.say:
        say_text(run, action.say)
