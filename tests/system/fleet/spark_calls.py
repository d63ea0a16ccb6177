# SPDX-License-Identifier: MIT
"""Spark for test_fleet.py, in build-spark/'s Python, which has no pytest: calls functions below. A line of JSON on
standard input has a function's name and its arguments; a line on standard output has what it returned, the message of
its Failure, and what it printed to standard error.
"""

import contextlib
import io
import json
import os
import sys
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "python")]

import agree  # noqa: E402
from cluster import Cluster  # noqa: E402

from forktail.failure import Failure  # noqa: E402
from forktail.fleet.data_set import DataSet  # noqa: E402
from forktail.fleet.jobs.changes import changes_of, significant  # noqa: E402
from forktail.fleet.jobs.fork import fit  # noqa: E402
from forktail.fleet.jobs.regressions import compare, holm, interval  # noqa: E402
from forktail.fleet.spark import session  # noqa: E402

clusters = []


@cache
def spark():
    """The session: on the cluster, if one was started."""
    if not clusters:
        return session("test", "local[2]", agree.SMALL)
    limits = {"spark.executor.memory": "512m", "spark.cores.max": "2"}
    return session("test", clusters[0].url, {**agree.SMALL, **limits})


def start_cluster(directory):
    clusters.append(Cluster(directory))


def executors():
    """Their number, and one for the driver."""
    return len(spark().sparkContext._jsc.sc().statusTracker().getExecutorInfos())


def sheets(data, jobs=tuple(agree.JOBS)):
    """The sheets of jobs: {"JOB SHEET": [columns, rows]}."""
    return {" ".join(key): sheet for key, sheet in agree.sheets_of(spark(), data, jobs).items()}


def differences(data, explanations, found):
    """Between sheets and the explanations of all complete runs of the data set."""
    return agree.differences(spark(), data, explanations, {tuple(key.split(" ", 1)): found[key] for key in found})


def need(data, *tables):
    DataSet(spark(), data).need(*tables)


def runs(data):
    return [row.asDict() for row in DataSet(spark(), data).need().table("runs").collect()]


def count_rows(path):
    return spark().read.parquet(path).count()


FUNCTIONS = [
    changes_of, compare, count_rows, differences, executors, fit, holm, interval, need, runs, sheets, significant,
    start_cluster,
]  # fmt: skip


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Spark prints, too
    functions = {function.__name__: function for function in FUNCTIONS}
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        printed = io.StringIO()
        answer = {}
        with contextlib.redirect_stderr(printed):
            try:
                answer["returned"] = functions[name](*arguments)
            except Failure as failure:
                answer["failure"] = str(failure)
        print(json.dumps({**answer, "printed": printed.getvalue()}), file=answers, flush=True)
    if spark.cache_info().currsize:
        spark().stop()
    for cluster in clusters:
        cluster.stop()


if __name__ == "__main__":
    main()
