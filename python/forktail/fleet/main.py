# SPDX-License-Identifier: MIT
"""forktail fleet: runs a job over a data set, prints the result and writes it.

spark-submit starts it through python/__main__.py.
"""

import argparse
import os
from typing import Any

from ..failure import Failure
from .sheet import Sheet, text_table
from .spark import first_line, session, submitted, write_text


def arguments(argv: list[str]) -> argparse.Namespace:
    # The jobs are listed here without importing Spark, so that --help works without it.
    jobs = {
        "causes": "request-seconds by day, host and cause",
        "latency": "exact percentiles per run, and per host and day",
        "fork": "fork time against memory over all hosts, with outliers",
        "regressions": "latency and stalls by kernel, server version and huge-page setting",
        "changes": "days on which a cause's cost on a host changed",
        "episodes": "the 100 episodes with the most request time, and the paths of their recordings",
    }
    parser = argparse.ArgumentParser(
        prog="forktail fleet",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run a Spark job over the exported runs of many hosts (docs/reference/fleet.md).",
        epilog="jobs:\n" + "\n".join(f"  {name:<12} {text}" for name, text in jobs.items()),
    )
    parser.add_argument("job", choices=sorted(jobs), metavar="JOB", help="the job to run: one of the list below")
    parser.add_argument(
        "--data",
        required=True,
        metavar="DIR",
        help="Read the data set at DIR (made by forktail export --data-set). A path, s3a:// or hdfs://",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="Use this Spark master, such as spark://HOST:7077 (default: local[*], this process)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="Also write Parquet and CSV to DIR/JOB and a page to DIR/JOB.html (default: print only)",
    )
    parser.add_argument(
        "--since", metavar="DATE", help="Only runs that started on or after DATE, such as 2026-11-23 (default: all)"
    )
    parser.add_argument("--until", metavar="DATE", help="Only runs that started before DATE (default: all)")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="Set a Spark setting. Repeatable"
    )
    options = parser.parse_args(argv)
    for setting in options.conf:
        if "=" not in setting:
            parser.error(f"--conf {setting}: expected NAME=VALUE")
    return options


def write(where: str, sheet: Sheet, frame: Any) -> None:
    frame.write.mode("overwrite").parquet(f"{where}/{sheet.name}.parquet")
    frame.coalesce(1).write.mode("overwrite").option("header", "true").csv(f"{where}/{sheet.name}.csv")


def run(options: argparse.Namespace) -> None:
    spark = session(options.job, options.master, dict(s.split("=", 1) for s in options.conf))
    try:
        from .data_set import DataSet
        from .jobs import JOBS
        from .page import page

        job = JOBS[options.job]
        data = DataSet(spark, options.data, options.since, options.until).need(*job.TABLES)
        shown, where = [], options.output and f"{options.output.rstrip('/')}/{options.job}"
        for sheet in job.run(data):
            frame = sheet.frame.persist()
            rows = [tuple(r) for r in frame.limit(10 * sheet.top).collect()]
            count = frame.count()
            print(
                f"\n{sheet.title}\n"
                + (sheet.note + "\n" if sheet.note else "")
                + "\n"
                + text_table(frame.columns, rows[: sheet.top])
            )
            if count > sheet.top:
                print(f"... {count - sheet.top:,} more rows" + ("" if where else ". -o DIR writes all rows"))
            if where:
                write(where, sheet, frame)
            shown.append((sheet, frame.columns, rows, count))
        if where:
            facts = {
                "data": options.data,
                "ignored": f"{len(data.ignored)} incomplete runs",
                "days": f"{options.since or ''} .. {options.until or ''}",
            }
            write_text(spark, where + ".html", page(f"Fleet: {options.job}", facts, shown, data.causes))
    finally:
        spark.stop()


def main(words: list[str]) -> int:
    options = arguments(words)
    if not submitted():
        # Spark's workers are not started isolated. They get nothing of the user's Python either.
        for name in [name for name in os.environ if name.startswith("PYTHON")]:
            del os.environ[name]
        os.environ["PYTHONSAFEPATH"] = "1"
    try:
        run(options)
    except Failure:
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        raise Failure(f"Spark failed: {first_line(error)}") from None
    return 0
