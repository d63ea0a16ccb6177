# SPDX-License-Identifier: MIT
"""Fork time against memory: the duration of serving threads' forks, and the memory of their process at that time.

The time to copy page tables is proportional to the number of pages, so a fleet's forks are near a line. A fork above it
has a further cause: huge pages that are off, a hypervisor without nested paging, memory of another NUMA node. The line
is fitted to logarithms with a loss that is robust against outliers (Huber's, scipy.optimize.least_squares). The median
of the distances (MAD) defines outliers. Each host and day is one point, by medians, so that frequent forks have no more
weight.
"""

import math
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from .. import svg
from ..data_set import DataSet, day_of
from ..exact import percentiles
from ..sheet import Sheet

HELP = "fork time against memory over all hosts, with outliers"
TABLES = ("spans", "threads", "metrics")
FAR = 3.5  # times the spread: Iglewicz and Hoaglin's limit for outliers
MEDIAN = {"median": 500_000}


def forks_of(data: DataSet) -> Any:
    """Each fork of a serving thread: its time, its duration, and its process's memory just before."""
    serving = data.table("threads").where("serving").select("run_id", "thread", "pid")
    forks = (
        data.table("spans")
        .where("cause = 'fork' and not off_cpu")
        .join(serving, ["run_id", "thread"])
        .select(
            "date",
            "host",
            "run_id",
            "pid",
            "start_ns",
            "start_time",
            "duration_ns",
            F.lit(None).cast("double").alias("rss"),
        )
    )
    memory = (
        data.table("metrics")
        .where("metric = 'target.rss'")
        .select(
            "date",
            "host",
            "run_id",
            F.get_json_object("labels", "$.pid").cast("int").alias("pid"),
            F.col("t_ns").alias("start_ns"),
            F.lit(None).cast("long").alias("start_time"),
            F.lit(None).cast("long").alias("duration_ns"),
            F.col("value").alias("rss"),
        )
    )
    # Forks and readings in one sequence: each fork gets the last reading before it, or else the first one.
    of = Window.partitionBy("run_id", "pid").orderBy("start_ns")
    before = of.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    after = of.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    return (
        forks.unionByName(memory)
        .withColumn(
            "rss_bytes", F.coalesce(F.last("rss", True).over(before), F.first("rss", True).over(after)).cast("long")
        )
        .where("duration_ns is not null and rss_bytes > 0")
        .withColumn("day", day_of("start_time"))
        .drop("rss", "date")
    )


def fit(points: list[tuple[float, float]]) -> tuple[float, float, float] | None:
    """(memory, time) pairs -> (log of time at 1 byte, exponent, spread of logarithms); None for fewer than three."""
    import numpy as np
    from scipy.optimize import least_squares

    if len(points) < 3:
        return None
    x, y = np.log([p[0] for p in points]), np.log([p[1] for p in points])
    middle = float(np.median(x))  # decorrelates the two parameters
    start = [float(np.median(y)), 1.0]
    if float(np.ptp(x)) < 0.1:  # all of the same size: no slope can be fitted
        level, slope = start
    else:
        scale = spread(y - start[0] - (x - middle)) or 1e-3
        level, slope = least_squares(lambda p: p[0] + p[1] * (x - middle) - y, start, loss="huber", f_scale=scale).x
    return float(level - slope * middle), float(slope), max(spread(y - level - slope * (x - middle)), 1e-3)


def spread(values: Any) -> float:
    """The standard deviation, estimated from the median distance from the median."""
    import numpy as np

    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def run(data: DataSet) -> list[Sheet]:
    forks = forks_of(data).persist()
    time = percentiles(forks, ("day", "host"), "duration_ns", MEDIAN).select(
        "day",
        "host",
        F.col("count").alias("forks"),
        F.col("median").alias("fork_ns"),
        F.col("max_ns").alias("longest_ns"),
    )
    memory = percentiles(forks, ("day", "host"), "rss_bytes", MEDIAN).select(
        "day", "host", F.col("median").alias("rss_bytes")
    )
    days = time.join(memory, ["day", "host"]).orderBy("day", "host").persist()
    points = days.collect()
    line = fit([(p.rss_bytes, p.fork_ns) for p in points if p.fork_ns > 0])
    schema = (
        "day string, host string, forks long, rss_bytes long, fork_ns long, longest_ns long, expected_ns long, "
        "times double, distance double, outlier boolean"
    )
    rows: list[tuple[Any, ...]] = []
    for p in points:
        if not line or p.fork_ns <= 0:
            rows.append((p.day, p.host, p.forks, p.rss_bytes, p.fork_ns, p.longest_ns, None, None, None, False))
            continue
        expected = line[0] + line[1] * math.log(p.rss_bytes)
        distance = (math.log(p.fork_ns) - expected) / line[2]
        rows.append(
            (
                p.day,
                p.host,
                p.forks,
                p.rss_bytes,
                p.fork_ns,
                p.longest_ns,
                round(math.exp(expected)),
                p.fork_ns / math.exp(expected),
                distance,
                abs(distance) > FAR,
            )
        )
    rows.sort(key=lambda r: (-(r[8] or 0), r[0], r[1]))
    note = "Fewer than three host-days have forks: too few to fit a line."
    if line:
        at_gib = math.exp(line[0] + line[1] * math.log(2**30))
        note = (
            f"{len(points)} host-days. Fitted line: {at_gib / 1e6:.2f} ms at 1 GiB, "
            f"proportional to memory^{line[1]:.2f}. "
            f"{sum(r[9] for r in rows)} outliers are more than {FAR} times the usual spread from the line."
        )
    return [
        Sheet(
            "forks",
            "Fork time against memory, farthest above the line first",
            data.spark.createDataFrame(rows, schema),
            note,
            charts=[
                svg.scatter(
                    "Fork time (ms) against memory (GiB), medians per host and day",
                    [(r[3] / 2**30, r[4] / 1e6, r[9], f"{r[1]} {r[0]}") for r in rows if r[4] > 0],
                    line and (lambda gib: math.exp(line[0] + line[1] * math.log(gib * 2**30)) / 1e6),
                )
            ],
        ),
    ]
