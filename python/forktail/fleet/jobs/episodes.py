# SPDX-License-Identifier: MIT
"""The episodes with the most request time, with explain's evidence and the paths of the recordings."""

from pyspark.sql import functions as F

from .. import svg
from ..data_set import DataSet, day_of
from ..sheet import Sheet

HELP = "the 100 episodes with the most request time, and the paths of their recordings"
TABLES = ("episodes", "evidence")
TOP = 100


def run(data: DataSet) -> list[Sheet]:
    keys = ["run_id", "episode"]
    worst = (
        data.table("episodes")
        .withColumn("day", day_of("start_time"))
        .orderBy(F.desc("time_ns"), "run_id", "episode")
        .limit(TOP)
    )
    evidence = data.table("evidence").where("position = 0").select(*keys, "sentence")
    runs = data.table("runs").select(
        "run_id", F.col("run").alias("recordings"), F.col("first_ns").alias("run_first_ns")
    )
    found = (
        worst.join(F.broadcast(runs.join(worst.select("run_id").distinct(), "run_id", "left_semi")), "run_id", "left")
        .join(evidence, keys, "left")
        .withColumn("at", F.format_string("+%.3f", (F.col("start_ns") - F.col("run_first_ns")) / 1e9))
        .withColumn(
            "explain",
            F.concat(
                F.lit("forktail explain '"),
                F.regexp_replace("recordings", "'", "'\\\\\\\\''"),
                F.lit("' --around "),
                F.col("at"),
                F.lit("s"),
            ),
        )
        .select(
            "day",
            "host",
            "at",
            "time_ns",
            "worst_ns",
            "requests",
            "cause",
            "share",
            "sentence",
            "recordings",
            "explain",
            "run_id",
            "episode",
        )
        .orderBy(F.desc("time_ns"), "run_id", "episode")
        .persist()
    )
    rows = found.collect()
    by_day: dict[tuple[str, str], float] = {}
    for r in rows:
        by_day[(r.day, r.cause)] = by_day.get((r.day, r.cause), 0) + r.time_ns / 1e9
    return [
        Sheet(
            "episodes",
            f"The {TOP} worst episodes",
            found,
            top=TOP,
            links={"recordings": "recordings"},
            charts=[
                svg.stacked(
                    "Request-seconds of these episodes by main cause",
                    sorted({d for d, _ in by_day}),
                    [(d, c, v) for (d, c), v in by_day.items()],
                )
            ],
        )
    ]
