# SPDX-License-Identifier: MIT
"""A small scenario and its results, for the tests of tables, charts, pages and comparisons."""

from forktail.lab.format import Format
from forktail.lab.results import Point, Results
from forktail.lab.scenario import Column, Filter, Scenario, StepSpec, Sweep


def column(
    title: str, value: str, form: Format = Format.COUNT, where: Filter | None = None, **published: float
) -> Column:
    """Published figures of rows named "20": _20=184928."""
    rows = {row.strip("_"): figure for row, figure in published.items()}
    return Column(title, value, form, where or {}, published=rows)


def sample_scenario() -> Scenario:
    """Two sweeps: clients 8 and 20, listen unix and tcp."""
    return Scenario(
        name="sample",
        title="A sample",
        about="What a test needs.",
        sweeps=[Sweep("clients", "connections", ["8", "20"]), Sweep("listen", "", ["unix", "tcp"])],
        steps=[StepSpec("run", "-t set", record=True)],
    )


def sample_results() -> Results:
    """run.SET.rps is 1000 times the clients; over tcp it is half of that."""
    points = []
    for clients, listen in [("8", "unix"), ("8", "tcp"), ("20", "unix"), ("20", "tcp")]:
        rps = float(clients) * (500 if listen == "tcp" else 1000)
        point = Point({"clients": clients, "listen": listen, "keys": "5000"})
        point.numbers = {"run.SET.rps": rps, "run.SET.p99_9": rps * 1234, "run.LRANGE_100.rps": rps / 10}
        point.numbers |= {"run.redis.cpu_percent": 61.44, "run.redis.used_memory": 84e6}
        point.texts = {
            "run.causes": "fork 61 %, run queue 20 %",
            "run.worst": "the fork held the server for 58.9 ms\n  it copied page tables\nanother\n",
        }
        point.recorded = [f"point-{clients}-{listen}"]
        points.append(point)
    return Results(
        scenario="sample",
        title="A sample",
        host="box",
        kernel="6.1.0",
        cpu="Some CPU",
        versions={"forktail": "0.1.0", "redis": "7.0.15"},
        scale="small",
        command="forktail lab run sample --scale small",
        seconds=12.5,
        started_unix=1700000000,
        load_average=0.25,
        notes=["no zram here: the module is missing"],
        points=points,
    )
