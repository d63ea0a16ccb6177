# SPDX-License-Identifier: MIT
"""Exact percentiles as in forktail: the value of a rank in the sorted values, without approximation."""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F

POINTS = {"p50_ns": 500_000, "p90_ns": 900_000, "p99_ns": 990_000, "p99_9_ns": 999_000, "p99_99_ns": 999_900}


def percentiles(frame: Any, by: Iterable[str], value: str, points: dict[str, int] = POINTS) -> Any:
    """A row for each group: the number of values, the percentiles, the maximum. `points`: column -> millionths.

    Equal values are counted before sorting, so that only distinct values and their counts are shuffled. The percentile
    p is the smallest value that at least that share of the values does not exceed.
    """
    by = list(by)
    counted = frame.where(F.col(value).isNotNull()).groupBy(*by, value).agg(F.count(F.lit(1)).alias("n"))
    ordered = Window.partitionBy(*by).orderBy(value).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = counted.select(
        *by, value, F.sum("n").over(ordered).alias("upto"), F.sum("n").over(Window.partitionBy(*by)).alias("count")
    )
    found = [
        F.min(F.when(F.col("upto") >= F.expr(f"(count * {millionths} + 999999) div 1000000"), F.col(value))).alias(name)
        for name, millionths in points.items()
    ]
    return ranked.groupBy(*by).agg(F.max("count").alias("count"), *found, F.max(value).alias("max_ns"))
