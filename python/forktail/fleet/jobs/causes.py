# SPDX-License-Identifier: MIT
"""Request-seconds by day, host and cause: the time that slow requests spent on each cause."""

from pyspark.sql import functions as F

from .. import svg
from ..data_set import DataSet, day_of
from ..sheet import Sheet

HELP = "request-seconds by day, host and cause"
TABLES = ("parts",)


def run(data: DataSet) -> list[Sheet]:
    # A part is a request's time at one hop. A request delayed by a cause at two hops has two parts, and counts once.
    parts = (
        data.table("parts")
        .withColumn("day", day_of("due_time"))
        .groupBy("day", "host", "cause", "run_id", "request")
        .agg(*[F.sum(c).alias(c) for c in ("direct_ns", "queued_ns", "total_ns")])
    )
    by_host = (
        parts.groupBy("day", "host", "cause")
        .agg(F.count(F.lit(1)).alias("requests"), *[F.sum(c).alias(c) for c in ("direct_ns", "queued_ns", "total_ns")])
        .persist()
    )
    totals = (
        by_host.groupBy("cause")
        .agg(
            F.countDistinct("host").alias("hosts"),
            F.sum("requests").alias("requests"),
            F.sum("direct_ns").alias("direct_ns"),
            F.sum("queued_ns").alias("queued_ns"),
            F.sum("total_ns").alias("total_ns"),
        )
        .orderBy(F.desc("total_ns"), "cause")
    ).persist()
    days = by_host.groupBy("day", "cause").agg(F.sum("total_ns").alias("total_ns")).collect()
    worst = [
        r.host
        for r in by_host.groupBy("host")
        .agg(F.sum("total_ns").alias("t"))
        .orderBy(F.desc("t"), "host")
        .limit(20)
        .collect()
    ]
    hosts = (
        by_host.where(F.col("host").isin(worst))
        .groupBy("host", "cause")
        .agg(F.sum("total_ns").alias("total_ns"))
        .collect()
    )
    return [
        Sheet(
            "causes",
            "Request-seconds by cause, all hosts and days",
            totals,
            top=40,
            charts=[
                svg.stacked(
                    "Request-seconds per day",
                    sorted({r.day for r in days}),
                    [(r.day, r.cause, r.total_ns / 1e9) for r in days],
                )
            ],
        ),
        Sheet(
            "hosts",
            "By day, host and cause",
            by_host.orderBy(F.desc("total_ns"), "day", "host", "cause"),
            charts=[
                svg.stacked(
                    "The 20 hosts with the most request-seconds",
                    worst,
                    [(r.host, r.cause, r.total_ns / 1e9) for r in hosts],
                )
            ],
        ),
    ]
