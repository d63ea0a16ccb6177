# SPDX-License-Identifier: MIT
"""What the jobs of `forktail fleet` take: seconds, CPU seconds and shuffled bytes, from Spark's event log, with 1 and 2
workers of one core, over data sets of 10, 100 and 1,000 host-days (fleet_days.py).

    build-spark/bin/python bench/fleet.py REAL_DATA_SET WORK_DIR [--host-days 10,100,1000] [--workers 1,2] [--jobs causes,...]

REAL_DATA_SET holds a few real runs: fleet_agree --keep DIR makes DIR/data, or use forktail export. Prints a Markdown
table.
"""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/system/fleet"))

from cluster import Cluster  # noqa: E402


def made(source, work, host_days):
    """The data set, made once. A host has up to ten days."""
    target = work / f"days-{host_days}"
    if not target.exists():
        days = min(10, host_days)
        subprocess.run([ROOT / "build-python/bin/python", ROOT / "bench/fleet_days.py", source, target.with_suffix(".part"),
                        "--hosts", str(host_days // days), "--days", str(days)], check=True)
        target.with_suffix(".part").rename(target)
    return target


def used(directory):
    """(CPU seconds of tasks, shuffled bytes) of the application whose events are in the directory. Bytes read are not
    reported: Spark takes them from Hadoop's per-thread file system counters, which omit vectored reads. Nearly all of
    Parquet's reads are vectored (5 kB of 24 MB were counted in a trial)."""
    cpu = shuffled = 0
    for path in directory.rglob("events_*"):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            metrics = event.get("Task Metrics") if event["Event"] == "SparkListenerTaskEnd" else None
            if metrics:
                cpu += metrics["Executor CPU Time"] / 1e9
                shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return cpu, shuffled


def measure(job, data, url, work):
    events = work / f"events-{time.time_ns()}"
    events.mkdir()
    begin = time.monotonic()
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{events}", "spark.eventLog.compress": "false",
                "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "4"}
    words = [w for name, value in settings.items() for w in ("--conf", f"{name}={value}")]
    subprocess.run([sys.executable, "-I", ROOT / "python", "fleet", job, "--data", str(data), "--master", url, *words], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin, *used(events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--host-days", default="10,100,1000")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--jobs", default="causes,latency,fork,regressions,changes,episodes")
    asked = parser.parse_args()
    work = asked.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    print("| job | host-days | workers | wall, s | CPU of tasks, s | shuffled, kB |\n|---|---|---|---|---|---|")
    for host_days in map(int, asked.host_days.split(",")):
        data = made(asked.source.resolve(), work, host_days)
        for workers in map(int, asked.workers.split(",")):
            cluster = Cluster(work, workers, "2g")
            try:
                for job in asked.jobs.split(","):
                    wall, cpu, shuffled = measure(job, data, cluster.url, work)
                    print(f"| {job} | {host_days:,} | {workers} | {wall:.1f} | {cpu:.1f} | {shuffled / 1e3:,.1f} |", flush=True)
            finally:
                cluster.stop()


if __name__ == "__main__":
    main()
