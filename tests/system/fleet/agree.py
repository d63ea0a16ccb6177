# SPDX-License-Identifier: MIT
"""Compares Spark's results with `forktail explain --json` of each run: sums by cause to the ns, and exact percentiles.
Also checks that jobs give the same results with another master.

    agree.py FORKTAIL DIR [--master URL] RUN...

exports the runs into DIR/data, unless they are there, and prints the differences.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from forktail.fleet.data_set import DataSet  # noqa: E402
from forktail.fleet.jobs import JOBS  # noqa: E402
from forktail.fleet.spark import session  # noqa: E402

SMALL = {"spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
POINTS = {
    "p50": "p50_ns",
    "p90": "p90_ns",
    "p99": "p99_ns",
    "p99.9": "p99_9_ns",
    "p99.99": "p99_99_ns",
    "max": "max_ns",
}


def explained(forktail, runs):
    """The explanation of each run."""
    return [
        json.loads(subprocess.run([forktail, "explain", "--json", run], check=True, capture_output=True).stdout)
        for run in runs
    ]


def export(forktail, data, runs):
    subprocess.run([forktail, "export", *runs, "--to", "parquet", "--data-set", data], check=True, capture_output=True)


def sheets_of(spark, data, jobs=JOBS):
    """{(job, sheet): (columns, rows)} of jobs."""
    found = {}
    for name in jobs:
        job = JOBS[name]
        for sheet in job.run(DataSet(spark, data).need(*job.TABLES)):
            found[(name, sheet.name)] = (sheet.frame.columns, [tuple(r) for r in sheet.frame.collect()])
    return found


def differences(spark, data, explanations, sheets):
    """One sentence for each difference between Spark and explain."""
    found = []
    sums = {}
    for one in explanations:
        for cause in one["causes"]:
            total = sums.setdefault(cause["cause"], [0, 0, 0, 0])
            for i, key in enumerate(("requests", "direct_ns", "queued_ns", "time_ns")):
                total[i] += cause[key]
    ours = {row[0]: list(row[2:]) for row in sheets[("causes", "causes")][1]}
    for cause in sorted({*sums, *ours}):
        if ours.get(cause) != sums.get(cause):
            found.append(f"{cause}: Spark has {ours.get(cause)}, explain {sums.get(cause)}")
    ids = {r.run: r.run_id for r in DataSet(spark, data).need().table("runs").collect()}
    columns, rows = sheets[("latency", "runs")]
    by_run = {row[columns.index("run_id")]: dict(zip(columns, row, strict=True)) for row in rows}
    for one in explanations:
        if one["requests"]["from"] != "request-log":
            continue
        ours = by_run[ids[one["run"]]]
        answered = one["requests"]["count"] - one["requests"]["errors"]
        if ours["count"] != answered:
            found.append(f"{one['run']}: Spark counts {ours['count']}, explain {answered}")
        for point, column in POINTS.items():
            if point in one["requests"]["latency_ns"] and ours[column] != one["requests"]["latency_ns"][point]:
                found.append(
                    f"{one['run']}: {point} is {ours[column]}, explain says {one['requests']['latency_ns'][point]}"
                )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forktail")
    parser.add_argument("directory")
    parser.add_argument("--master")
    parser.add_argument("runs", nargs="+", metavar="RUN")
    asked = parser.parse_args()
    runs = [str(Path(run).resolve()) for run in asked.runs]
    data = str(Path(asked.directory).resolve() / "data")
    export(asked.forktail, data, runs)
    spark = session("agree", asked.master, SMALL)
    sheets = sheets_of(spark, data)
    for (job, sheet), (columns, rows) in sheets.items():
        first = (f"  {dict(zip(columns, row, strict=True))}" for row in rows[:2])
        print(f"{job} {sheet}: {len(rows)} rows", *first, sep="\n")
    wrong = differences(spark, data, explained(asked.forktail, runs), sheets)
    spark.stop()
    print(f"{len(runs)} runs, {len(wrong)} differences", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
