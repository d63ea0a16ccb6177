# SPDX-License-Identifier: MIT
"""Runs a point's steps: loads with their events, recording and counters, and actions in between.

The recorder runs from before the first request until after the last, and counters are read before and after both.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from forktail.failure import CANNOT, NO, Failure
from forktail.files import make_directory
from forktail.host.memory import oom_kills
from forktail.host.session import Child, Command
from forktail.lab.actions import run_action, say_text
from forktail.lab.counters import add_difference, read_counters
from forktail.lab.forks import LOOK_NS, Forks, ask_for_fork, await_fork, look_at_fork
from forktail.lab.point_run import PointRun
from forktail.lab.program_figures import (
    add_answer,
    add_benchmark_figures,
    add_explanation,
    add_load_figures,
    add_search,
    name_cause,
)
from forktail.lab.programs import run_forktail, start_recorder
from forktail.lab.progress import say, say_meanwhile
from forktail.lab.run_json import write_run_json
from forktail.lab.scenario import Action, StepSpec, expand, matches, parse_due, split_words
from forktail.servers import instances_of, load_words
from forktail.servers.logs import find_in_log
from forktail.servers.topology import Topology
from forktail.text import command_line, parse_duration

RECORDER_S = 30  # to write its data
CAUSE_KNOWN_S = 0.2
LOG_TICK_NS = 1_000_000  # logs have milliseconds, so a line in the event's millisecond may look earlier
LONGEST_WAIT_S = 1
CHORE_S = 0.02

TimedEvent = tuple[float, Action]  # an event and its due time in seconds after the start of the load


@dataclass
class Load:
    """A running load."""

    run: PointRun
    step: StepSpec
    directory: str  # its files
    figures: str  # forktail-load's JSON
    words: list[str]
    events: list[TimedEvent]  # those that did not run yet
    child: Child
    recorder: Child | None
    started_unix: int
    forks: Forks = field(default_factory=Forks)
    first_event_ns: int = 0  # of CLOCK_REALTIME


@contextmanager
def _located(run: PointRun, line: int) -> Iterator[None]:
    """A failure names the scenario's file and line, unless the user does not know the file."""
    try:
        yield
    except Failure as failure:
        if run.plain:
            raise
        raise Failure(f"{run.scenario.file}:{line}: {failure}", failure.status) from failure


def _duration_s(words: list[str]) -> float:
    """The load's --duration in seconds; 0 without one, or if forktail-load refuses it."""
    given = [value for option, value in zip(words, words[1:], strict=False) if option == "--duration"]
    ns = (parse_duration(given[-1]) or parse_duration(given[-1] + "s") or 0) if given else 0
    return ns / 1e9


def event_times(step: StepSpec, words: list[str]) -> list[TimedEvent]:
    """A step's events by due time. `words` are the load's arguments; shares are of its --duration."""
    events = []
    for event in step.events:
        due = parse_due(event.at)
        assert due  # the scenario is checked
        events.append((due.share * _duration_s(words) if due.is_share else due.seconds, event))
    return sorted(events, key=lambda one: one[0])


def _names_of(topology: Topology) -> dict[str, str]:
    """Maps forktail-load's names of servers (addresses) to the scenario's."""
    return {one.address(): one.name for one in topology.instances}


def _argv(
    run: PointRun, step: StepSpec, by: str, to: list[str], words: list[str], figures: str, directory: str
) -> list[str]:
    if by == "redis-benchmark":
        return [by, *to, *words, "--csv"]
    argv = [f"{run.programs}/{by}" if by == "forktail-load" else by, *to, *words, "--json", figures, "--progress"]
    if not any(word.startswith("--buckets") for word in words):
        argv.append("--buckets")
    return argv + (["-o", f"{directory}/load.forktail"] if step.record else [])


def _start_tracing(run: PointRun, step: StepSpec, directory: str) -> Child:
    instances = run.topology.instances
    pids = [one.child.pid for one in instances if one.child and not one.child.ended and one.kind.carries]
    options = [] if step.client else ["--no-client"]
    options += [f"--requests={step.requests}"] if step.requests else []
    say("starting the recorder")
    return start_recorder(run.session, run.programs, pids, options, f"{directory}/server.forktail")


def _start_load(run: PointRun, step: StepSpec, directory: str, figures: str) -> Load:
    values = run.point.values
    text, by, cpus, to = (expand(template, values) for template in (step.load, step.by, step.cpus, step.to))
    words = split_words(text)
    if words is None:
        raise Failure("a quote in the load's arguments is not closed")
    if not load_words(run.topology, to):
        raise Failure(f"the server {to} is not running")
    started_unix = int(time.time())
    events = event_times(step, words)
    recorder = _start_tracing(run, step, directory) if step.record else None
    if recorder:
        recorder.needed = not _may_end(run)  # it ends with its targets
    argv = _argv(run, step, by, load_words(run.topology, to, step.record), words, figures, directory)
    output = f"{directory}/{'load.txt' if by == 'forktail-load' else 'load.csv'}"
    if step.say:
        say_text(run, step.say)
    else:
        say(f"{step.name}: {by} {text}")
    run.commands += [command_line(recorder.command.argv)] if recorder else []
    run.commands.append(command_line(argv))
    child = run.session.start(Command(name=by, argv=argv, cpus=cpus, output=output, on_line=say_meanwhile))
    return Load(run, step, directory, figures, words, events, child, recorder, started_unix)


def _check_end(load: Load) -> None:
    """Raises Failure unless the load succeeded. If it lost its server, its end may be seen before the end of the
    server, which is the cause."""
    status = load.child.status
    searches = any(word.partition("=")[0] == "--find" for word in load.words)
    if (load.step.errors and status == CANNOT) or (searches and status == NO):
        return  # a search that found no rate has figures too
    try:
        load.child.check()
    except Failure:
        load.run.session.wait(CAUSE_KNOWN_S)
        raise


def _run_event(load: Load) -> None:
    _, event = load.events.pop(0)
    meant = matches(event.only, load.run.point.values)
    if meant and not load.first_event_ns:
        load.first_event_ns = time.time_ns()
    with _located(load.run, event.line):
        if event.report and meant:
            ask_for_fork(load.run, event, load.forks)
        else:
            run_action(load.run, event)


def _follow(load: Load) -> None:
    """Waits for the end of the load and runs its events.

    An event that forks waits for the previous fork to end. Late events run after the load because later steps may need
    them; late forks are skipped because no request can notice them. It wakes only when there is something to do, so
    that it does not disturb the load.
    """
    run, start = load.run, time.monotonic()
    while not load.child.ended:
        wait = LONGEST_WAIT_S if not run.session.chores else CHORE_S
        if load.forks.server:
            wait = min(wait, LOOK_NS / 1e9)
        if load.events and not (load.events[0][1].report and load.forks.server):
            wait = min(wait, max(0, start + load.events[0][0] - time.monotonic()))
        run.session.step(wait * 1000)
        look_at_fork(load.forks)
        if not load.events or load.child.ended:
            continue
        at, event = load.events[0]
        if time.monotonic() - start >= at and not (event.report and load.forks.server):
            _run_event(load)
    _check_end(load)
    while load.events:
        _, event = load.events[0]
        if event.report:
            run.notes.append(f"the load ended before {event.ask} could start")
            del load.events[0]
            continue
        if matches(event.only, run.point.values):
            run.notes.append(
                f'the load "{load.step.name}" ended before its event at {event.at}, which ran after the load'
            )
        _run_event(load)


def _add_log_marks(load: Load) -> None:
    run = load.run
    if not load.first_event_ns:
        return  # no event ran at this point
    for mark in load.step.logs:
        if not matches(mark.only, run.point.values):
            continue
        instances = instances_of(run.topology, mark.server)
        times = [find_in_log(one.log, mark.text, load.first_event_ns - LOG_TICK_NS) for one in instances]
        if any(times):
            run.point.numbers[f"{load.step.name}.{mark.name}"] = min(filter(None, times)) - load.first_event_ns


def _may_end(run: PointRun) -> set[str]:
    """The servers of this point that may end."""
    return {spec.name for spec in run.scenario.servers if spec.may_end and matches(spec.only, run.point.values)}


def _add_ends(run: PointRun, step: str) -> None:
    """How servers ended that may end, and what the kernel killed for memory."""
    may_end = _may_end(run)
    for one in run.topology.instances:
        if one.server not in may_end or not one.child:
            continue
        kills = oom_kills(one.cgroup) if one.cgroup else 0
        run.point.numbers[f"{step}.{one.name}.oom_kills"] = kills
        how = ""
        if one.child.ended:
            killed = kills and one.child.status == -signal.SIGKILL
            how = "killed by the OOM killer" if killed else one.child.how_it_ended().partition(";")[0]
        run.point.texts[f"{step}.{one.name}.ended"] = how


def _run_load(run: PointRun, step: StepSpec) -> None:
    if run.scratch:
        directory = run.directory if step.record else f"{run.scratch}/{step.name}"
        figures = f"{run.scratch}/load.json"
    else:
        directory = f"{run.directory}/{step.name}"
        figures = f"{directory}/load.json"
    make_directory(directory)
    run.step = step.name
    before = read_counters(run.topology)
    load = _start_load(run, step, directory, figures)
    _follow(load)
    if _may_end(run):
        run.session.wait(CAUSE_KNOWN_S)  # connections of a killed process end before the process
    after = read_counters(run.topology)
    if load.recorder:
        run.session.wait_for_end(load.recorder, signal.SIGINT, RECORDER_S)
        load.recorder.check()
    await_fork(run, load.forks)
    if load.recorder:
        write_run_json(run, step.name, load.forks, load.started_unix, f"{directory}/run.json")
    if load.child.command.name == "forktail-load":
        add_load_figures(step.name, figures, _names_of(run.topology), run.point)
    else:
        add_benchmark_figures(step.name, f"{directory}/load.csv", run.point)
    requests = run.point.numbers.get(f"{step.name}.requests", 0)
    add_difference(step.name, run.topology, before, after, requests, run.point)
    _add_log_marks(load)
    _add_ends(run, step.name)
    if step.record:
        run.point.recorded.append(step.name)


def run_step(run: PointRun, step: StepSpec) -> None:
    """Runs a step, if it is meant for this point."""
    if matches(step.only, run.point.values):
        with _located(run, step.line):
            if step.load:
                _run_load(run, step)
            else:
                run_action(run, step.action)


def _words(run: PointRun, command: str, directory: str, step: str) -> list[str]:
    """Arguments of explain or report for a directory, with the threshold of the scenario."""
    words = [command, directory]
    for spec in run.scenario.steps:
        if spec.name == step and spec.slow and matches(spec.only, run.point.values):
            words += ["--slow", spec.slow]
    return words


def _write_report(run: PointRun, directory: str, step: str) -> None:
    words = [*_words(run, "report", directory, step), "-o", f"{directory}/report.html"]
    run_forktail(run.session, run.programs, words, "/dev/null")


def _explain(run: PointRun, name: str, words: list[str], file: str) -> None:
    run_forktail(run.session, run.programs, [*words, "--json", "--requests"], file)
    add_explanation(name, file, _names_of(run.topology), run.point)


def _ask(run: PointRun, step: StepSpec, directory: str) -> None:
    """Asks the step's questions about its recording."""
    for query in step.queries:
        if matches(query.only, run.point.values):
            file = f"{directory}/{query.name}.json"
            run_forktail(run.session, run.programs, ["sql", directory, "--json", "-c", query.sql], file)
            add_answer(f"{step.name}.{query.name}", file, run.point)


def explain_steps(run: PointRun) -> None:
    """Explains what the point's steps recorded, and writes their report pages.

    If a load searched for a rate, it also explains the runs at the highest that held and at the next one.
    """
    for step in run.point.recorded:
        directory = f"{run.directory}/{step}"
        words = _words(run, "explain", directory, step)
        say(f"explaining {step}: {' '.join(['forktail', *words])}")
        _explain(run, step, words, f"{directory}/explain.json")
        for rate in add_search(step, f"{directory}/load.json", run.point):
            name = f"{step}.{rate.name}"
            part = [*words, "--since", rate.since, "--until", rate.until]
            _explain(run, name, part, f"{directory}/{rate.name}.json")
            name_cause(name, rate.client_at_limit, run.point)
        for spec in run.scenario.steps:
            if spec.name == step and matches(spec.only, run.point.values):
                _ask(run, spec, directory)
        _write_report(run, directory, step)


def print_explanation(run: PointRun) -> None:
    """Explains the only recorded step to standard output, for a scenario that prints it."""
    step, directory = run.point.recorded[0], run.directory
    words = _words(run, "explain", directory, step)
    say(f"explaining it: {' '.join(['forktail', *words])}")
    try:
        run_forktail(run.session, run.programs, words, "")
        _write_report(run, directory, step)
    except Failure as failure:
        raise Failure(f"{failure}\nThe recordings are in {directory}", failure.status) from failure
