# SPDX-License-Identifier: MIT
"""Whether hosts with another kernel, server version or huge-page setting are slower.

A host counts once in each group, with the median of its runs, because runs of one host are not independent. Each group
has the median over hosts, with an interval from order statistics (binomial, at least 95 %, for any distribution), and
Mann-Whitney's rank test against the group with the most hosts, with Holm's correction over all tests of a sheet. It
shows that groups differ, not why: kernels are not assigned to hosts at random.
"""

from typing import Any

from pyspark.sql import functions as F

from ..data_set import DataSet
from ..exact import percentiles
from ..sheet import Sheet

HELP = "latency and stalls by kernel, server version and huge-page setting"
TABLES = ()
GROUPS = ("kernel", "server_version", "thp")
FIGURES = ("p99_ns", "p99_9_ns", "slow_ns_per_million")
FEW = 4  # hosts in each of two groups: with fewer the rank test cannot reach 5 %


def interval(values: list[int], level: float = 0.95) -> tuple[int, int] | None:
    """The median's interval by order statistics; None for too few values."""
    from scipy.stats import binom

    ordered, n = sorted(values), len(values)
    below = int(binom.ppf((1 - level) / 2, n, 0.5))
    while below > 0 and 2 * binom.cdf(below - 1, n, 0.5) > 1 - level:
        below -= 1
    return (ordered[below - 1], ordered[n - below]) if below >= 1 else None


def middle(values: list[int]) -> int:
    """The value of the median's rank: like other percentiles here, a measured one."""
    return sorted(values)[(len(values) + 1) // 2 - 1]


def holm(ps: list[float | None]) -> list[float | None]:
    """Holm's correction for the number of tests; None stays."""
    order = sorted((p, i) for i, p in enumerate(ps) if p is not None)
    corrected, least = list(ps), 0.0
    for rank, (p, i) in enumerate(order):
        least = max(least, min(1.0, p * (len(order) - rank)))
        corrected[i] = least
    return corrected


def compare(hosts: dict[str, dict[str, int]]) -> list[list[Any]]:
    """{group: {host: value}} -> a row for each group, the one with the most hosts first."""
    from scipy.stats import mannwhitneyu

    names = sorted(hosts, key=lambda g: (-len(hosts[g]), g))
    base, rows = list(hosts[names[0]].values()), []
    for name in names:
        values = list(hosts[name].values())
        bounds = interval(values)
        enough = name != names[0] and min(len(values), len(base)) >= FEW
        p = float(mannwhitneyu(values, base, alternative="two-sided").pvalue) if enough else None
        rows.append(
            [name, len(values), middle(values), *(bounds or (None, None)), middle(values) / max(middle(base), 1), p]
        )
    return rows


def run(data: DataSet) -> list[Sheet]:
    runs = (
        data.table("runs")
        .where("requests > 0")
        .withColumn(
            "slow_ns_per_million", F.expr("cast(cast(slow_ns as decimal(38,0)) * 1000000 / requests as bigint)")
        )
    )
    sheets = []
    for group in GROUPS:
        rows: list[tuple[Any, ...]] = []
        for figure in FIGURES:
            known = runs.where(F.col(group).isNotNull()).select(F.col(group).alias("value"), "host", figure)
            hosts: dict[str, dict[str, int]] = {}
            for r in percentiles(known, ("value", "host"), figure, {"median": 500_000}).collect():
                hosts.setdefault(r["value"], {})[r.host] = r["median"]
            rows += [(figure.removesuffix("_ns"), *row) for row in (compare(hosts) if hosts else [])]
        rows = [(*row[:-1], p) for row, p in zip(rows, holm([row[-1] for row in rows]), strict=True)]
        schema = (
            "figure string, value string, hosts long, median_ns long, from_ns long, to_ns long, "
            "times_the_first double, p double"
        )
        sheets.append(
            Sheet(
                group,
                f"By {group.replace('_', ' ')}",
                data.spark.createDataFrame(rows, schema),
                top=60,
                note="from and to: 95 % interval of the median. p: corrected by Holm's method over this table, for "
                f"groups of at least {FEW} hosts. slow ns per million: slow requests' time per million requests.",
            )
        )
    return sheets
