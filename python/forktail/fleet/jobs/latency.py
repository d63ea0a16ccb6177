# SPDX-License-Identifier: MIT
"""Exact percentiles of all answered requests: per run, and per host and day over all runs."""

from pyspark.sql import functions as F

from ..data_set import DataSet, day_of
from ..exact import percentiles
from ..sheet import Sheet

HELP = "exact percentiles per run, and per host and day"
TABLES = ("requests",)


def run(data: DataSet) -> list[Sheet]:
    answered = (
        data.table("requests")
        .where(F.col("status").isin("ok", "miss"))
        .withColumn("day", day_of("due_time"))
        .select("day", "host", "run_id", "latency_ns")
    )
    by_host = percentiles(answered, ("day", "host"), "latency_ns")
    by_run = percentiles(answered, ("host", "run_id"), "latency_ns")
    return [
        Sheet("hosts", "By day and host, all runs together", by_host.orderBy(F.desc("p99_9_ns"), "day", "host")),
        Sheet("runs", "By run", by_run.orderBy(F.desc("p99_9_ns"), "host", "run_id")),
    ]
