# SPDX-License-Identifier: MIT
"""Runs a scenario: its points one after another, groups of them on the same servers, and repeats; or the single
recording of a scenario that prints its explanation.

It writes the results to a directory, described in docs/reference/lab-and-scenarios.md. A point is written before the
next one starts, so an interrupted run can be resumed.
"""

import os
import re
import shutil
import statistics
import time
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import groupby

import forktail
from forktail.failure import Failure
from forktail.files import holds_nothing, make_directory, read_file, replace_file
from forktail.host.keeper import Leftover
from forktail.host.machine import available_memory_bytes, choose_size_mb, cpu_name, host_name, kernel_release, room_in
from forktail.host.network import Link, make_link
from forktail.host.session import Session
from forktail.host.settings import restore_host
from forktail.host.swap import make_swap, remove_swap
from forktail.lab.point_run import PointRun, make_plan
from forktail.lab.programs import find_programs
from forktail.lab.progress import say
from forktail.lab.results import Point, Results, read_results, write_results
from forktail.lab.scenario import Scale, Scenario, Values, expand, matches, parse_memory, points_of
from forktail.lab.steps import explain_steps, print_explanation, run_step
from forktail.servers import Instance, Topology, instances_of, start_servers, stop_servers
from forktail.text import format_duration

BUSY = 0.5  # load average above which other work disturbs an experiment
# The file in a run directory that identifies the run: scale and repeats, then the scenario's file.
IDENTITY_FILE, IDENTITY_END = "scenario.txt", "\n\n"


@dataclass
class ExperimentOptions:
    scale: Scale
    scale_text: str  # as typed
    # Must not exist, unless resume. For a scenario that prints an explanation it is the recording's directory, which
    # remains only on success.
    out: str
    load_average: float  # of the machine before the first scenario of the command, over one minute
    repeats: int = 1  # of the whole sweep, so that drift affects all points
    reverse: bool = False  # groups of points from the last to the first
    resume: bool = False
    command: str = ""  # as typed
    settings: dict[str, str] = field(default_factory=dict)  # changed constants and sizes
    # For users who do not know the scenario's file: messages have no line numbers and name servers by their programs.
    plain: bool = False
    no_client: bool = False  # also set in the scenario's steps


@dataclass
class _Task:
    """One point, once."""

    values: Values
    name: str  # of its directory under points/
    group: str  # tasks of a group share their servers
    label: str  # for messages


def exists_text(out: str) -> str:
    """Why a directory is not used."""
    return f"{out} exists: name another directory, or use --resume to continue in it"


def _say_server(one: Instance) -> None:
    """ "redis-server 7.0.15, pid 13640, on a Unix socket in /tmp/forktail-lab.x/redis"."""
    assert one.child
    where = one.address() if one.port else f"a Unix socket in {one.directory}"
    say(f"{os.path.basename(one.child.command.argv[0])} {one.version}, pid {one.child.pid}, on {where}")


def merge(repeats: list[Point]) -> Point:
    """A point of its repeats: all figures, and their medians."""
    merged = replace(repeats[-1], repeats=len(repeats))
    if len(repeats) > 1:
        names = {name for point in repeats for name in point.numbers}
        merged.runs = {name: [point.numbers.get(name) for point in repeats] for name in names}
        merged.numbers = {
            name: statistics.median(number for number in each if number is not None)
            for name, each in merged.runs.items()
        }
    return merged


class _Experiment:
    def __init__(self, session: Session, scenario: Scenario, options: ExperimentOptions, results: Results) -> None:
        self.session, self.scenario, self.options, self.results = session, scenario, options, results
        self.programs = find_programs()
        self.out = options.out if scenario.explanation else os.path.abspath(options.out)
        self.scratch = ""  # a temporary directory
        self.topology = Topology()
        self.swap = ""  # its device or file
        self.link: Link | None = None
        self.prepare()

    def prepare(self) -> None:
        """Creates directories and tasks."""
        scenario = self.scenario
        if scenario.explanation and not (self.options.resume and os.path.exists(self.out)):
            self.make_run_directory()
        if scenario.explanation or scenario.fit:
            self.scratch = self.session.make_temp_directory()
        if scenario.fit:
            self.fit()
        self.tasks = self.make_tasks()
        if not scenario.explanation:
            self.check_names()
            self.open_directory()

    def make_run_directory(self) -> None:
        """The keeper removes the directory unless all steps succeed."""
        path = os.path.abspath(self.out)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.mkdir(path, 0o755)
        except OSError as error:
            raise Failure(f"cannot create the run directory {self.out}: {error.strerror}") from error
        self.session.keeper.keep(Leftover.DIRECTORY, path)

    def fit(self) -> None:
        """Reduces the data set to the size that this machine has space for."""
        scenario = self.scenario
        wanted_mb = int(points_of(scenario, self.options.scale)[0][scenario.fit])
        size_mb, why = choose_size_mb(wanted_mb, available_memory_bytes(), room_in(self.scratch))
        if size_mb == 0:
            raise Failure(f"{why}: that is too little for the scenario {scenario.name}")
        if size_mb != wanted_mb:
            say(f"the data set is {size_mb} MiB instead of {wanted_mb}: {why}")
            size = next(size for size in scenario.sizes if size.name == scenario.fit)
            size.full = size.least = size_mb
            size.fixed = True

    def make_tasks(self) -> list[_Task]:
        tasks = []
        sweeps, repeats = self.scenario.sweeps, self.options.repeats
        for repeat in range(repeats):
            for values in points_of(self.scenario, self.options.scale):
                chosen = [(sweep, values[sweep.name]) for sweep in sweeps]
                label = ", ".join(f"{sweep.name} {value}" for sweep, value in chosen)
                plain = [f"{sweep.name}={re.sub('[^A-Za-z0-9.-]', '_', value)}" for sweep, value in chosen] or ["point"]
                group = "".join(f"{value}/" for sweep, value in chosen if not sweep.keep_servers) + str(repeat)
                if repeats > 1:
                    plain.append(f"repeat={repeat + 1}")
                    label += f" ({repeat + 1} of {repeats})"
                tasks.append(_Task(values, ",".join(plain), group, label))
        return tasks

    def check_names(self) -> None:
        """Points must have different directory names: small scales and replaced characters can make them equal."""
        seen: set[str] = set()
        for task in self.tasks:
            if task.name in seen:
                raise Failure(f"{self.scenario.file}: two points are the same at this scale: {task.label}")
            seen.add(task.name)

    def identity(self) -> str:
        """Of a run directory, so that no other run continues in it."""
        options = self.options
        settings = "".join(f"\nset {name}={value}" for name, value in sorted(options.settings.items()))
        client = "\nno client" if options.no_client else ""
        head = f"scale {options.scale_text}\nrepeats {options.repeats}{settings}{client}"
        return head + IDENTITY_END + read_file(self.scenario.file)

    def open_directory(self) -> None:
        identity, out = f"{self.out}/{IDENTITY_FILE}", self.options.out
        if os.path.exists(self.out):
            if not self.options.resume:
                raise Failure(exists_text(out))
            if not holds_nothing(self.out):
                if read_file(identity) == self.identity():
                    return
                raise Failure(f"{out} was started with another scenario file, settings, scale or number of repeats")
        make_directory(f"{self.out}/points", out)
        replace_file(identity, self.identity())

    def directory_of(self, task: _Task) -> str:
        return self.out if self.scenario.explanation else f"{self.out}/points/{task.name}"

    def logs_of(self, task: _Task) -> str:
        return self.directory_of(task) + ("" if self.scenario.explanation else "/logs")

    def file_of(self, task: _Task) -> str:
        return f"{self.directory_of(task)}/point.json"

    def drop_swap(self) -> None:
        swap, self.swap = self.swap, ""
        if swap:
            remove_swap(self.session, swap)

    def drop_link(self) -> None:
        link, self.link = self.link, None
        if link:
            link.close(self.session)

    def set_swap(self, values: Values) -> None:
        """Swap stays for all points of a group: removing it would read all pages back."""
        spec = self.scenario.swap
        self.drop_swap()
        if not spec.kind or not matches(spec.only, values):
            return
        size = expand(spec.size, values)
        size_bytes = parse_memory(size)
        if size_bytes is None:
            raise Failure(f'"{size}" is not a size for swap, such as 256MiB')
        self.swap = make_swap(self.session, spec.kind, size_bytes, self.session.make_temp_directory())

    def set_link(self, values: Values) -> None:
        """A link stays for all points of a group, whose servers are behind it."""
        spec = self.scenario.network
        self.drop_link()
        if not spec.servers or not matches(spec.only, values):
            return
        try:
            rate, queue = expand(spec.rate, values), int(expand(spec.queue, values))
            self.link = make_link(self.session, rate, queue, spec.napi)
        except Failure as failure:
            raise Failure(f"{self.scenario.file}:{spec.line}: {failure}", failure.status) from failure

    def start_group(self, task: _Task) -> None:
        stop_servers(self.session, self.topology)
        restore_host(self.session)
        self.set_swap(task.values)
        self.set_link(task.values)
        for spec in self.scenario.servers:
            if spec.later or not matches(spec.only, task.values):
                continue
            try:
                plan = make_plan(spec, task.values, self.link if spec.name in self.scenario.network.servers else None)
                plan.by_program = self.options.plain
                start_servers(self.session, plan, self.logs_of(task), self.topology)
            except Failure as failure:
                if self.options.plain:
                    raise
                raise Failure(f"{self.scenario.file}:{spec.line}: {failure}", failure.status) from failure
            for instance in instances_of(self.topology, spec.name) if spec.may_end else ():
                if instance.child:
                    instance.child.needed = False
            if spec.say:
                for instance in instances_of(self.topology, spec.name):
                    _say_server(instance)
        self.results.versions |= {one.kind.name: one.version for one in self.topology.instances}

    def point_run(self, task: _Task, done: Results) -> PointRun:
        return PointRun(
            session=self.session,
            scenario=self.scenario,
            programs=self.programs,
            directory=self.directory_of(task),
            logs=self.logs_of(task),
            topology=self.topology,
            point=done.points[0],
            notes=done.notes,
            plain=self.options.plain,
            link=self.link,
        )

    def ended(self, task: _Task) -> list[Instance]:
        """Servers that may end, and have."""
        may_end = {spec.name for spec in self.scenario.servers if spec.may_end and matches(spec.only, task.values)}
        return [one for one in self.topology.instances if one.server in may_end and one.child and one.child.ended]

    def run_task(self, task: _Task, fresh: bool) -> None:
        directory = self.directory_of(task)
        shutil.rmtree(directory, ignore_errors=True)
        make_directory(f"{directory}/logs", directory)
        done = Results(points=[Point(values=task.values)])
        if fresh:
            self.start_group(task)
        run = self.point_run(task, done)
        for one in self.ended(task):  # at an earlier point with the same servers
            run.point.texts |= {
                f"{step.name}.{one.name}.ended": "ended before" for step in self.scenario.steps if step.name
            }
        for step in self.scenario.steps:
            if not self.ended(task):
                run_step(run, step)
        explain_steps(run)
        done.versions = self.results.versions
        run.point.recorded = [f"points/{task.name}/{step}" for step in run.point.recorded]
        write_results(self.file_of(task), done)

    @property
    def results_file(self) -> str:
        return f"{self.out}/results.json"

    def is_complete(self) -> bool:
        """True if every point was measured and collected."""
        measured = [self.results_file, *map(self.file_of, self.tasks)]
        return not self.scenario.explanation and all(map(os.path.exists, measured))

    def run_tasks(self) -> None:
        # Points on the same servers must be repeated together, because the servers' data depends on the earlier points.
        undone = {task.group for task in self.tasks if not os.path.exists(self.file_of(task))}
        groups = [list(group) for _, group in groupby(self.tasks, lambda task: task.group)]
        left = [
            task
            for group in (reversed(groups) if self.options.reverse else groups)
            for task in group
            if task.group in undone
        ]
        start_ns = time.monotonic_ns()
        for i, task in enumerate(left):
            number = len(self.tasks) - len(left) + i + 1
            label = f": {task.label}" if task.label else ""
            each_ns = (time.monotonic_ns() - start_ns) // i if i else 0
            time_left = f"; about {format_duration(each_ns * (len(left) - i))} left" if i else ""
            say(f"{self.scenario.name}, point {number} of {len(self.tasks)}{label}{time_left}")
            self.run_task(task, i == 0 or left[i - 1].group != task.group)
        stop_servers(self.session, self.topology)
        self.drop_swap()
        self.drop_link()

    def run_recording(self) -> None:
        """The one recording of a scenario that prints its explanation."""
        if self.options.resume and os.path.exists(self.out):
            return  # it exists only if it is complete
        task = self.tasks[0]
        done = Results(points=[Point(values=task.values)])
        run = self.point_run(task, done)
        run.scratch = self.scratch
        self.start_group(task)
        for step in self.scenario.steps:
            run_step(run, step)
        stop_servers(self.session, self.topology)
        self.drop_swap()
        self.drop_link()
        self.session.keeper.release(Leftover.DIRECTORY, os.path.abspath(self.out))
        for note in done.notes:
            say(f"note: {note}")
        print_explanation(run)

    def collect(self) -> None:
        """Collects the points' results, also in results.json."""
        results, points = self.results, len(self.tasks) // self.options.repeats
        for i in range(points):
            read = [read_results(self.file_of(task)) for task in self.tasks[i::points]]
            for one in read:
                results.versions = one.versions | results.versions
                results.notes += [note for note in one.notes if note not in results.notes]
            results.points.append(merge([one.points[0] for one in read]))
        write_results(self.results_file, results)

    def restore(self) -> None:
        """Restores the machine for the next experiment of the session."""
        self.session.end_children()
        with suppress(Failure):
            stop_servers(self.session, self.topology)
        with suppress(Failure):
            self.drop_swap()
        with suppress(Failure):
            self.drop_link()


def run_experiment(session: Session, scenario: Scenario, options: ExperimentOptions) -> Results:
    """Runs all missing points and collects the results, also in OUT/results.json.

    Raises Failure with one sentence; finished points stay for resume.
    """
    start = time.monotonic()
    results = Results(
        scenario=scenario.name,
        title=scenario.title,
        host=host_name(),
        kernel=kernel_release(),
        cpu=cpu_name(),
        versions={"forktail": forktail.__version__},
        scale=options.scale_text,
        command=options.command,
        started_unix=int(time.time()),
        load_average=options.load_average,
    )
    experiment = _Experiment(session, deepcopy(scenario), options, results)
    if options.resume and experiment.is_complete():
        return read_results(experiment.results_file)  # with the time and the load of the measurement
    if results.load_average > BUSY and not scenario.explanation:
        busy = f"the machine was busy at the start: load average {results.load_average:.2f}"
        results.notes.append(f"{busy}. Repeat the run on an idle machine")
        say(f"{busy}. Wait until it is below {BUSY} for figures that can be compared")
    try:
        if scenario.explanation:
            experiment.run_recording()
        else:
            experiment.run_tasks()
    except BaseException:
        experiment.restore()
        raise
    results.seconds = time.monotonic() - start
    if not scenario.explanation:
        experiment.collect()
    return results


def needs_root(scenario: Scenario) -> bool:
    """True if the scenario needs root: to record, limit memory, use swap or spread soft interrupts."""
    return (
        bool(scenario.swap.kind or scenario.network.servers)
        or any(server.memory for server in scenario.servers)
        or any(
            step.record or any(one.spread or one.napi_threads or one.host for one in (step.action, *step.events))
            for step in scenario.steps
        )
    )
