# SPDX-License-Identifier: MIT
"""The commands `forktail lab list`, `show`, `run` and `compare`.

Everything is checked before the start: names, files, scales, and the arguments of each load (by forktail-load --check).
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from forktail.failure import USAGE, Failure
from forktail.files import read_file, replace_file
from forktail.host.session import Command, Session, Stopped
from forktail.lab.compare import compare_results
from forktail.lab.experiment import IDENTITY_END, IDENTITY_FILE, ExperimentOptions, exists_text, run_experiment
from forktail.lab.output import make_output, write_tables
from forktail.lab.page import IndexEntry, find_section, index_of, page_of, text_of, write_section
from forktail.lab.programs import find_programs
from forktail.lab.progress import say
from forktail.lab.results import Results, read_results
from forktail.lab.scenario import (
    Action,
    Filter,
    Scale,
    Scenario,
    Values,
    expand,
    matches,
    parse_scale,
    parse_scenario,
    points_of,
    read_scenario,
    split_words,
)
from forktail.servers import check_words, find_kind
from forktail.text import visible_lines

CHECK_S = 10
WIDTH = 160  # of tables that are not printed on a terminal


@dataclass
class RunOptions:
    names: list[str]  # scenarios, files, or "all"
    scale: str = "small"
    out: str = ""  # empty: runs/NAME-<time>
    repeats: int = 1
    reverse: bool = False
    resume: bool = False
    no_client: bool = False  # do not record load generators, whatever the scenario says
    document: str = ""  # Markdown file with sections to replace, see write_section
    command: str = ""  # as typed
    settings: dict[str, str] = field(default_factory=dict)  # changed constants and sizes
    plain: bool = False  # as in ExperimentOptions


@contextmanager
def wrong_usage() -> Iterator[None]:
    """What fails in it is wrong usage, because nothing was started. Stopped is raised unchanged."""
    try:
        yield
    except Stopped:
        raise
    except Failure as failure:
        raise Failure(str(failure), USAGE) from failure


def scenario_directory() -> str:
    """Directory of forktail's own scenarios: $FORKTAIL_SCENARIOS, else the package's."""
    return os.environ.get("FORKTAIL_SCENARIOS") or str(Path(__file__).parent / "scenarios")


def _terminal_width() -> int:
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    return columns if columns > 40 else WIDTH


def _files_in(directory: str) -> list[str]:
    """Scenario files, sorted by name."""
    files = sorted(str(file) for file in Path(directory).glob("*.toml"))
    if not files:
        raise Failure(f"no scenarios in {directory}: name their directory with --scenarios")
    return files


def _load(directory: str, name: str, settings: Values) -> Scenario:
    path = name if name.endswith(".toml") else f"{directory}/{name}.toml"
    if not os.path.exists(path):
        raise Failure(f"unknown scenario {name}: forktail lab list prints all scenarios")
    return read_scenario(path, settings)


def list_scenarios(directory: str) -> None:
    """Prints each scenario's name, report and title."""
    for file in _files_in(directory):
        scenario = read_scenario(file)
        print(f"{scenario.name:<20} {scenario.report:<3} {scenario.title}")


def _filters_text(where: Filter) -> str:
    text = ", ".join(f"{name} is {' or '.join(values)}" for name, values in where.items())
    return f" (if {text})" if text else ""


def _action_text(action: Action) -> str:
    if action.ask:
        text = f"ask {action.server}: {action.ask}"
    elif action.start:
        text = f"start {action.start}"
    elif action.kill:
        text = f"kill -9 {action.kill}"
    elif action.move_slots:
        text = f"move {action.move_slots} slots from {action.server} to {action.to}"
    elif action.await_:
        text = f"wait for the {action.await_} of {action.server}"
    elif action.spread:
        text = f"spread soft interrupts: {action.spread}"
    elif action.napi_threads:
        text = f"poll the network in threads: {action.napi_threads}"
    elif action.host:
        text = f"set {action.host}"
    elif action.wait:
        text = f"wait {action.wait}"
    else:
        text = f"note figures as {action.note}"
    return text + _filters_text(action.only)


def _print_servers(scenario: Scenario) -> None:
    print("\nservers")
    for server in scenario.servers:
        kind = find_kind(server.kind)
        facts = [f"  {server.name}: {server.kind}"]
        if server.count != "1":
            facts.append(f"{server.count} instances")
        if server.cluster:
            facts.append("a Cluster" + (f" with {server.replicas} replicas each" if server.replicas else ""))
        if server.of and kind:
            facts.append(f"{kind.of} {server.of}")
        if server.replica_of:
            facts.append(f"replica of {server.replica_of}")
        if server.later:
            facts.append("later")
        facts.append(server.listen)
        if server.memory:
            facts.append(f"at most {server.memory} of memory")
        if server.cpus:
            facts.append(f"CPUs {server.cpus}")
        print(" ".join([", ".join(facts), *server.config]) + _filters_text(server.only))
    network = scenario.network
    if network.servers:
        rate = network.rate or "without a limit"
        print(f"  network: {rate} to and from {', '.join(network.servers)}{_filters_text(network.only)}")


def _print_steps(scenario: Scenario) -> None:
    print("\nsteps of each point")
    for step in scenario.steps:
        if not step.load:
            print(f"  {_action_text(step.action)}{_filters_text(step.only)}")
            continue
        recorded = ", recorded" if step.record else ""
        print(f"  {step.name}: {step.by} to {step.to}{recorded}: {step.load}{_filters_text(step.only)}")
        for event in step.events:
            print(f"    at {event.at} {_action_text(event)}")


def show_scenario(directory: str, name: str, scale_text: str) -> None:
    """Prints what a scenario does. scale_text: "" for scale 1."""
    scenario = _load(directory, name, {})
    scale = parse_scale(scenario, scale_text) if scale_text else Scale()
    print(f"{scenario.name}: {scenario.title}\n\n{scenario.about}")
    if scenario.question:
        print(f"\n{scenario.question}")
    if scenario.source:
        print(f"\npublished: report {scenario.report}, {scenario.source}")
    points = points_of(scenario, scale)
    print(f"\n{len(points)} point{'' if len(points) == 1 else 's'} at scale {scale_text or 1}")
    for sweep in scenario.sweeps:
        values = ", ".join(sweep.at.get(scale.name, sweep.values))
        print(f"  {sweep.name}: {values}{' (on the same servers)' if sweep.keep_servers else ''}")
    for size in scenario.sizes:
        print(f"  {size.name}: {points[0][size.name]}")
    _print_servers(scenario)
    _print_steps(scenario)
    if scenario.tables:
        print("\ntables", *(f"  {table.title}" for table in scenario.tables), sep="\n")
    if scenario.charts:
        print("\ncharts", *(f"  {chart.title}" for chart in scenario.charts), sep="\n")


def load_scenarios(directory: str, options: RunOptions) -> list[Scenario]:
    """Reads and checks all scenarios and their scales before the first one starts."""
    names: list[str] = [name for name in options.names if name != "all"]
    for file in _files_in(directory) if "all" in options.names else ():
        # "all" only means scenarios with tables.
        if not _load(directory, file, options.settings).explanation:
            names.append(file)
    scenarios = []
    for name in names:
        scenario = _load(directory, name, options.settings)
        parse_scale(scenario, options.scale)
        if scenario.explanation and (options.repeats > 1 or options.document):
            raise Failure(f"--repeat and --write need a scenario with tables: {scenario.name} has no tables")
        if options.document:
            find_section(options.document, scenario.name)
        for step in scenario.steps:
            step.client = step.client and not options.no_client
        scenarios.append(scenario)
    if options.resume and not options.out:
        raise Failure("--resume needs --out with the directory to continue in")
    return scenarios


def _kind_words(scenario: Scenario, to: str, values: Values) -> list[str]:
    """Arguments of forktail-load for the kind of server `to`."""
    for server in scenario.servers:
        if matches(server.only, values) and to.rstrip("0123456789") == server.name:
            return check_words(server.kind, server.cluster)
    return check_words("redis", False)


def _check_loads(session: Session, scenario: Scenario, scale: Scale, programs: str) -> None:
    """Checks every load's arguments with forktail-load. Raises Failure with "FILE:LINE: " and its message."""
    seen = set()
    for values in points_of(scenario, scale):
        for step in scenario.steps:
            if not step.load or not matches(step.only, values) or expand(step.by, values) != "forktail-load":
                continue
            where = f"{scenario.file}:{step.line}: "
            words = split_words(expand(step.load, values))
            if words is None:
                raise Failure(f"{where}a quote in the load's arguments is not closed")
            argv = [
                f"{programs}/forktail-load",
                "--check",
                *_kind_words(scenario, expand(step.to, values), values),
                *words,
            ]
            if tuple(argv) in seen:
                continue
            seen.add(tuple(argv))
            child = session.start(Command(name="forktail-load", argv=argv, output="/dev/null"))
            session.wait_for_end(child, 0, CHECK_S)
            if child.status != 0:
                raise Failure(where + (child.last[0] if child.last else "forktail-load does not accept the arguments"))


def _publish(session: Session, scenario: Scenario, results: Results, directory: str, document: str) -> None:
    """Writes tables to standard output, DIR/tables.txt and table-N.csv, the charts, the page, and
    the section of a document."""
    output = make_output(session, scenario, results)
    print(f"{visible_lines(scenario.title)}\n{text_of(results, output, _terminal_width())}", flush=True)
    replace_file(f"{directory}/tables.txt", text_of(results, output, WIDTH))
    replace_file(f"{directory}/report.html", page_of(scenario, results, output, directory))
    write_tables(directory, "table", output)
    for number, chart in enumerate(output.charts, 1):
        replace_file(f"{directory}/chart-{number}.svg", chart.svg)
        replace_file(f"{directory}/chart-{number}.png", chart.png)
    print(f"report: {directory}/report.html\n", flush=True)
    if document:
        write_section(document, scenario, results, output)


def _run_one(session: Session, scenario: Scenario, options: RunOptions, directory: str, load_average: float) -> Results:
    experiment = ExperimentOptions(
        scale=parse_scale(scenario, options.scale),
        scale_text=options.scale,
        out=directory,
        load_average=load_average,
        repeats=options.repeats,
        reverse=options.reverse,
        resume=options.resume and os.path.exists(directory),
        command=options.command,
        settings=options.settings,
        plain=options.plain,
        no_client=options.no_client,
    )
    results = run_experiment(session, scenario, experiment)
    if scenario.explanation:
        print(f"\nreport: {directory}/report.html", flush=True)
    else:
        _publish(session, scenario, results, directory, options.document)
    return results


def _out_directory(options: RunOptions) -> str:
    name = Path(options.names[0]).stem if len(options.names) == 1 else "lab"
    return options.out or f"runs/{name}{time.strftime('-%Y%m%d-%H%M%S')}"


def run_scenarios(session: Session, scenarios: list[Scenario], options: RunOptions) -> None:
    """Runs the scenarios, prints their tables and writes their pages.

    After a failure the next one runs, unless a signal asked to stop; then Failure is raised. It is raised with USAGE if
    nothing was started, because forktail-load rejects a load.
    """
    out, programs = _out_directory(options), find_programs()
    load_average = os.getloadavg()[0]  # later it has the load of the scenarios
    for scenario in scenarios:
        with wrong_usage():
            _check_loads(session, scenario, parse_scale(scenario, options.scale), programs)
    if len(scenarios) == 1:
        _run_one(session, scenarios[0], options, out, load_average)
        return
    if os.path.exists(out) and not options.resume:
        raise Failure(exists_text(out))
    index, where = [], Results()
    for scenario in scenarios:
        entry = IndexEntry(scenario.name, scenario.title, "done", link=f"{scenario.name}/report.html")
        try:
            where = _run_one(session, scenario, options, f"{out}/{scenario.name}", load_average)
            entry.seconds = where.seconds
        except Failure as failure:
            if session.stop_signal:
                raise
            say(f"{scenario.name} failed: {failure}")
            entry.state, entry.link = f"failed: {failure}", ""
        index.append(entry)
    replace_file(f"{out}/index.html", index_of(index, where))
    print(f"all: {out}/index.html", flush=True)
    failed = [entry for entry in index if not entry.link]
    if failed:
        reasons = [f"\n{entry.name}: {entry.state.removeprefix('failed: ')}" for entry in failed]
        raise Failure(f"{len(failed)} of {len(scenarios)} scenarios failed:{''.join(reasons)}")


def _scenario_of(directory: str, name: str) -> Scenario:
    """The scenario as it was when it ran, from the run directory."""
    path = f"{directory}/{IDENTITY_FILE}"
    _, end, text = read_file(path).partition(IDENTITY_END)
    if not end:
        raise Failure(f"{path} does not contain the scenario of the run")
    scenario = parse_scenario(text, path)
    scenario.name = name
    return scenario


def compare_runs(first: str, second: str) -> None:
    """Prints the comparison of two run directories."""
    one, other = (read_results(f"{directory}/results.json") for directory in (first, second))
    print(compare_results(_scenario_of(first, one.scenario), one, other, _terminal_width()), end="")
