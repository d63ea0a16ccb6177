# SPDX-License-Identifier: MIT
"""The command line of `forktail lab`. Opens a session for commands that start programs, so that signals and errors
leave nothing behind.

Exit status: 0 done, 1 a checked table is impossible, 2 wrong usage, 3 the environment cannot, or a part failed. After a
stop signal it cleans up and dies of that signal.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

from forktail.failure import CANNOT, USAGE, Failure, die_of
from forktail.host.session import Session
from forktail.lab import commands, pairs, serve
from forktail.lab.commands import RunOptions
from forktail.lab.experiment import needs_root
from forktail.lab.pairs import PairsOptions
from forktail.lab.plausible import check_file
from forktail.options import Command, Option
from forktail.servers import ServerPlan
from forktail.text import visible_lines

_NO_CLIENT = Option("--no-client", "Do not record the threads of the load generator")
_RESUME = Option("--resume", "Continue an interrupted run in its directory")
_SCALE = Option(
    "--scale", "Run at this scale: small, another scale of the scenario, or a factor", type="F", default="small"
)
_SET = "Change a constant or a size of the scenario"

LAB = Command(
    "forktail lab",
    "Experiments: start servers, a load and the recorder, and explain what happened.",
    [Option("--scenarios", "Read scenarios from DIR (default: forktail's own)", type="DIR")],
    [
        Command(
            "forktail lab demo",
            "Record one redis-server under load while it takes a snapshot and rewrites its AOF.",
            [
                Option("-o,--out", "Create this run directory (default: runs/demo-<time>)", type="DIR"),
                Option("--seconds", "Run the load for S seconds", "S", 30, kind="FLOAT", limits=(1, 3600)),
                Option("--rate", "Send R requests per second", "R", 10000, kind="FLOAT", limits=(1, 10e6)),
                Option(
                    "--size-mb",
                    "Fill the server with a data set of N MiB of its memory",
                    type="N",
                    default=1024,
                    kind="UINT",
                    limits=(1, 1 << 20),
                ),
                _NO_CLIENT,
            ],
        ),
        Command("forktail lab list", "List all scenarios."),
        Command(
            "forktail lab show",
            "Describe a scenario.",
            [
                Option("NAME", "Name of a scenario, or its file", required=True),
                Option(
                    "--scale",
                    "Describe it at this scale: a scale of the scenario, or a factor (default: 1)",
                    type="F",
                ),
            ],
        ),
        Command(
            "forktail lab run",
            "Run scenarios and print their tables.",
            [
                Option("NAME", "Name of a scenario, its file, or all", required=True, several=True),
                _SCALE,
                Option("-o,--out", "Create this directory (default: runs/NAME-<time>)", type="DIR"),
                Option("--repeat", "Run every point N times and print medians", "N", 1, kind="INT", limits=(1, 1000)),
                Option("--reverse", "Run the points in reverse order; those on the same servers stay in order"),
                Option("--write", "Also write tables and charts to this Markdown file", type="FILE"),
                Option("--set", _SET, type="NAME=VALUE", several=True),
                _RESUME,
                _NO_CLIENT,
            ],
        ),
        Command(
            "forktail lab pairs",
            "Run a scenario in pairs, for forktail diff: base against new, in random order.",
            [
                Option("SCENARIO", "Name of a scenario, or its file", required=True),
                Option(
                    "--base",
                    "The base side: a server program, a file with server settings, or NAME=VALUE settings of the "
                    "server or the scenario (default: the scenario unchanged)",
                    type="TEXT",
                ),
                Option("--new", "The new side, in the same formats", type="TEXT"),
                Option("--pairs", "Run N pairs", "N", 8, kind="INT", limits=(1, 1000)),
                Option("--seed", "Seed for the order of the runs and for the loads", "N", 1, kind="UINT"),
                Option("-o,--out", "Create this directory", type="DIR", required=True),
                _SCALE,
                Option("--set", f"{_SET} on both sides", type="NAME=VALUE", several=True),
                _RESUME,
                _NO_CLIENT,
            ],
        ),
        Command(
            "forktail lab serve",
            "Start servers, print their addresses as one line of JSON, and stop them when standard input closes.",
            [
                Option("KIND", "redis, memcached or another kind of server in scenarios", required=True),
                Option("ARGUMENT", "After --: more arguments for the servers", several=True),
                Option("--count", "Start N servers", "N", 1, kind="INT", limits=(1, 100)),
                Option("--tcp", "Listen on free ports of 127.0.0.1 (default: on Unix sockets)"),
                Option("--cluster", "Join the servers as primaries of a Redis Cluster"),
                Option("--replicas", "Start N replicas of each primary", "N", 0, kind="INT", limits=(0, 100)),
                Option("--of", "Forward to the server at this address; repeatable", type="ADDRESS", several=True),
                Option("--cpus", "Run all servers on these CPUs, or each on its own CPU", type="LIST|each"),
                Option(
                    "--env",
                    "Set an environment variable of the servers; repeatable",
                    type="NAME=VALUE",
                    several=True,
                ),
                Option("--program", "Run this program (default: the usual program of the kind)", type="FILE"),
                Option(
                    "--directory",
                    "Keep data, sockets and logs in DIR (default: a temporary directory, removed at the end)",
                    type="DIR",
                ),
            ],
        ),
        Command(
            "forktail lab check",
            "Check whether a table of measurements can be true.",
            [
                Option(
                    "FILE",
                    "A CSV file with columns of these names: rate (requests/s), clients (connections times "
                    "pipeline depth), mean_us, min_us, max_us, p50_us, p95_us, p99_us, bytes "
                    "(of a request with its reply), requests, failures, connections",
                    required=True,
                ),
                Option("--limits", 'A TOML file with the host\'s limits: link = "1Gbit", memory = "20GB"', type="FILE"),
            ],
        ),
        Command(
            "forktail lab compare",
            "Compare the tables of two runs of a scenario.",
            [
                Option("FIRST", "Directory of a run", required=True),
                Option("SECOND", "Directory of another run", required=True),
            ],
        ),
    ],
    (
        "forktail lab demo",
        "forktail lab run d1-value-size -o runs/value-size",
        "forktail lab pairs d1-value-size --new /usr/local/bin/redis-server -o pairs",
    ),
)


def _complain(failure: Failure) -> int:
    # The text may contain output of a server.
    print(f"forktail lab: {visible_lines(str(failure))}", file=sys.stderr)
    return failure.status


def _in_session(work: Callable[[Session], None]) -> int:
    """Runs `work` in a session, which is always cleaned up. Returns the exit status."""
    try:
        session = Session(catch_stops=True)
    except Failure as failure:
        return _complain(failure)
    status = 0
    try:
        work(session)
    except Failure as failure:
        status = _complain(failure)
    finally:
        try:
            session.close()
        except Failure as left:
            status = _complain(left)
    if status and session.stop_signal:
        die_of(session.stop_signal)
    return status


def _need_root(why: str) -> None:
    if os.geteuid() != 0:
        raise Failure(f"{why}, which needs root: use sudo", CANNOT)


def _settings(words: list[str]) -> dict[str, str]:
    """ "NAME=VALUE" settings by name."""
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise Failure(f"--set needs NAME=VALUE, not {word}", USAGE)
        settings[name] = value
    return settings


def _options(values: dict[str, Any], command: str) -> RunOptions:
    return RunOptions(
        names=values.get("name", []),
        scale=values["scale"],
        out=values["out"] or "",
        repeats=values.get("repeat", 1),
        reverse=values.get("reverse", False),
        resume=values["resume"],
        no_client=values["no_client"],
        document=values.get("write") or "",
        settings=_settings(values["set"]),
        command=command,
    )


def _run(directory: str, options: RunOptions) -> int:
    with commands.wrong_usage():
        scenarios = commands.load_scenarios(directory, options)
    for scenario in scenarios:
        if needs_root(scenario):
            _need_root(f"the scenario {scenario.name} records or limits its servers")
    return _in_session(lambda session: commands.run_scenarios(session, scenarios, options))


def _demo(directory: str, values: dict[str, Any], command: str) -> int:
    """Converts the demo's options to constants of its scenario."""
    _need_root("lab demo records with BPF programs")
    settings = {
        "seconds": f"{values['seconds']:.10g}",
        "rate": f"{values['rate']:.10g}",
        "size_mb": str(values["size_mb"]),
    }
    options = RunOptions(
        names=["demo"],
        scale="1",
        out=values["out"] or "",
        no_client=values["no_client"],
        settings=settings,
        command=command,
        plain=True,
    )
    return _run(directory, options)


def _pairs(directory: str, values: dict[str, Any], command: str) -> int:
    run = _options(values, command)
    run.names = [values["scenario"]]
    options = PairsOptions(run, values["base"] or "", values["new"] or "", values["pairs"], values["seed"])
    with commands.wrong_usage():
        pairs.check_pairs(directory, options)
    _need_root("lab pairs records with BPF programs")
    return _in_session(lambda session: pairs.run_pairs(session, directory, options))


def _serve(values: dict[str, Any]) -> int:
    plan = ServerPlan(
        kind=values["kind"],
        config=values["argument"],
        count=values["count"],
        tcp=values["tcp"],
        cluster=values["cluster"],
        replicas=values["replicas"],
        cpus=values["cpus"] or "",
        program=values["program"] or "",
    )
    options = serve.ServeOptions(plan, values["directory"] or "", values["of"], values["env"])
    plans = serve.plan_serve(options)
    return _in_session(lambda session: serve.serve(session, options, plans))


def main(words: list[str]) -> int:
    """Runs `forktail lab WORDS`. Returns the exit status, or raises Failure."""
    chosen, values = LAB.parse(words)
    command = chosen.name.split()[-1]
    typed = " ".join(["forktail lab", *words])
    directory = values["scenarios"] or commands.scenario_directory()
    if command == "demo":
        return _demo(directory, values, typed)
    if command == "run":
        return _run(directory, _options(values, typed))
    if command == "pairs":
        return _pairs(directory, values, typed)
    if command == "serve":
        return _serve(values)
    if command == "check":
        return check_file(values["file"], values["limits"] or "")
    if command == "compare":
        commands.compare_runs(values["first"], values["second"])
        return 0
    with commands.wrong_usage():
        if command == "list":
            commands.list_scenarios(directory)
        else:
            commands.show_scenario(directory, values["name"], values["scale"] or "")
    return 0
