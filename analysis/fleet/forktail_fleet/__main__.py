# SPDX-License-Identifier: MIT
"""forktail fleet: runs a job over a data set, prints what it found, and writes it. Exit status: 0; 2 usage; 3 it can't."""
import argparse
import sys

from .spark import Cant, first_line, session, write_text


def arguments(argv):
    # What jobs there are is told without Spark, so that --help works where it is missing.
    jobs = {"causes": "request-seconds by day, host and cause",
            "latency": "exact percentiles of each run, and of each host's day over all of its runs",
            "fork": "fork time against memory over all hosts, with the outliers",
            "regressions": "latency and stalls by kernel, server version and huge pages",
            "changes": "days on which what a cause costs a host changed",
            "episodes": "the 100 episodes with the most request-time, and where their recordings lie"}
    parser = argparse.ArgumentParser(
        prog="forktail fleet", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Computes over the runs of many hosts, with Spark (docs/reference/fleet.md).",
        epilog="jobs:\n" + "\n".join(f"  {name:<12} {text}" for name, text in jobs.items()))
    parser.add_argument("job", choices=sorted(jobs), metavar="JOB", help="one of those below")
    parser.add_argument("--data", required=True, metavar="DIR", help="data set of forktail export --data-set; s3a:// and hdfs:// too")
    parser.add_argument("--master", metavar="URL", help="Spark's master, spark://HOST:7077; default: this process (local[*])")
    parser.add_argument("-o", "--output", metavar="DIR", help="also write Parquet, CSV and a page there, into DIR/JOB")
    parser.add_argument("--since", metavar="DATE", help="runs that began on that day or later, 2026-11-23")
    parser.add_argument("--until", metavar="DATE", help="runs that began before that day")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark's")
    options = parser.parse_args(argv)
    for setting in options.conf:
        if "=" not in setting:
            parser.error(f"--conf {setting}: NAME=VALUE is meant")
    return options


def write(spark, where, sheet, frame):
    frame.write.mode("overwrite").parquet(f"{where}/{sheet.name}.parquet")
    frame.coalesce(1).write.mode("overwrite").option("header", "true").csv(f"{where}/{sheet.name}.csv")


def run(options):
    spark = session(options.job, options.master, dict(s.split("=", 1) for s in options.conf))
    try:
        from .data_set import DataSet
        from .jobs import JOBS
        from .page import page
        from .sheet import text_table

        job = JOBS[options.job]
        data = DataSet(spark, options.data, options.since, options.until).need(*job.TABLES)
        shown, where = [], options.output and f"{options.output.rstrip('/')}/{options.job}"
        for sheet in job.run(data, options):
            frame = sheet.frame.persist()
            rows = [tuple(r) for r in frame.limit(10 * sheet.top).collect()]
            count = frame.count()
            print(f"\n{sheet.title}\n" + (sheet.note + "\n" if sheet.note else "") + "\n" + text_table(frame.columns, rows[:sheet.top]))
            if count > sheet.top:
                print(f"... {count - sheet.top:,} more" + ("" if where else "; -o DIR writes all"))
            if where:
                write(spark, where, sheet, frame)
            shown.append((sheet, frame.columns, rows, count))
        if where:
            facts = {"data": options.data, "left out": f"{len(data.left_out)} runs", "days": f"{options.since or ''} .. {options.until or ''}"}
            write_text(spark, where + ".html", page(f"Fleet: {options.job}", facts, shown, data.causes))
    finally:
        spark.stop()


def main(argv=None):
    options = arguments(argv)
    try:
        run(options)
    except Cant as error:
        print(f"forktail fleet: {error}", file=sys.stderr)
        return 3
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        print(f"forktail fleet: Spark could not do it: {first_line(error)}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
