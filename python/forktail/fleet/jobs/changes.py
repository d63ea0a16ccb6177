# SPDX-License-Identifier: MIT
"""The days on which a cause's cost on a host changed.

Each host and cause has a series by day: request-seconds per million requests (so a day with fewer requests is no
change). PELT (ruptures; Killick 2012) finds change points on logarithms, with segments of at least four days and a
penalty of 3 log n times the noise between neighbouring days. Mann-Whitney's rank test then compares both sides. Of all
candidates of the fleet, Benjamini and Hochberg's procedure selects those with a false discovery rate of 5 %. The same
days chose the point and are tested, so p is somewhat too small: use it for ranking.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from pyspark.sql import functions as F

from .. import svg
from ..data_set import DataSet, day_of
from ..sheet import Sheet

HELP = "days on which a cause's cost on a host changed"
TABLES = ("parts",)
SEGMENT = 4  # days; with fewer a rank test shows nothing
FLOOR_NS = 1_000_000  # per million requests: lower values are negligible
SHARE = 0.05  # false discovery rate


def changes_of(days: list[str], values: list[int]) -> list[tuple[str, int, int, float]]:
    """The changes of one series: (day of change, median before, median after, p)."""
    import numpy as np
    import ruptures
    from scipy.stats import mannwhitneyu

    if len(values) < 2 * SEGMENT:
        return []
    logs = np.log10(np.maximum(np.array(values, dtype=float), FLOOR_NS))
    # Between neighbours, so that a change does not count as noise.
    noise = max(1.4826 * float(np.median(np.abs(np.diff(logs)))) / 2**0.5, 0.02)
    ends = ruptures.Pelt(model="l2", min_size=SEGMENT, jump=1).fit(logs / noise).predict(pen=3 * np.log(len(logs)))
    found, begin = [], 0
    for at, until in pairwise(ends):
        before, after = values[begin:at], values[at:until]
        p = float(mannwhitneyu(before, after, alternative="two-sided").pvalue)
        found.append((days[at], int(np.median(before)), int(np.median(after)), p))
        begin = at
    return found


def series_of(rows: Iterable[Any]) -> Iterator[tuple[str, str, str, int, int, float]]:
    """The changes of (host, cause, [(day, value)]) rows. Runs on the workers."""
    for host, cause, points in rows:
        points = sorted((p[0], p[1]) for p in points)
        for change in changes_of([p[0] for p in points], [p[1] for p in points]):
            yield (host, cause, *change)


def significant(rows: list[Any]) -> list[Any]:
    """The significant rows by Benjamini and Hochberg's procedure."""
    ordered = sorted(rows, key=lambda r: r[-1])
    last = max((i + 1 for i, r in enumerate(ordered) if r[-1] <= SHARE * (i + 1) / len(ordered)), default=0)
    return ordered[:last]


def run(data: DataSet) -> list[Sheet]:
    cost = (
        data.table("parts")
        .withColumn("day", day_of("due_time"))
        .groupBy("host", "cause", "day")
        .agg(F.sum("total_ns").alias("total_ns"))
    )
    days = (
        data.table("runs")
        .groupBy("host", F.col("date").alias("day"))
        .agg(F.sum("requests").alias("requests"))
        .where("requests > 0")
    )
    # A day without the cause has 0 ns.
    causes = cost.select("host", "cause").distinct()
    series = (
        days.join(causes, "host")
        .join(cost, ["host", "cause", "day"], "left")
        .withColumn(
            "value", F.expr("cast(cast(coalesce(total_ns, 0) as decimal(38,0)) * 1000000 / requests as bigint)")
        )
        .groupBy("host", "cause")
        .agg(F.collect_list(F.struct("day", "value")).alias("points"))
    ).persist()
    candidates = series.rdd.mapPartitions(series_of).collect()
    rows = [
        (host, cause, day, before, after, max(after, FLOOR_NS) / max(before, FLOOR_NS), p)
        for host, cause, day, before, after, p in significant(candidates)
    ]
    rows.sort(key=lambda r: (-abs(r[4] - r[3]), r[0], r[1], r[2]))
    top = {(r[0], r[1]): r for r in rows[:6][::-1]}
    drawn = (
        {
            (s.host, s.cause): sorted((p[0], p[1]) for p in s.points)
            for s in series.where(F.concat_ws("\n", "host", "cause").isin(["\n".join(k) for k in top])).collect()
        }
        if top
        else {}
    )
    schema = (
        "host string, cause string, day string, before_ns_per_million long, after_ns_per_million long, "
        "times double, p double"
    )
    note = (
        f"{series.count():,} series (one per host and cause), {len(candidates):,} candidates, "
        f"{len(rows):,} significant. "
        "Values: request-ns per million requests, medians before the day and from the day on."
    )
    return [
        Sheet(
            "changes",
            "Changes, largest first",
            data.spark.createDataFrame(rows, schema),
            note,
            charts=[
                svg.steps(
                    f"{host}: {cause}, request-seconds per million requests",
                    [(day, value / 1e9) for day, value in drawn[(host, cause)]],
                    cause,
                    [r[2] for r in rows if r[:2] == (host, cause)],
                )
                for host, cause in sorted(drawn, key=lambda k: -abs(top[k][4] - top[k][3]))
            ],
        ),
    ]
