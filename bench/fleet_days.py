# SPDX-License-Identifier: MIT
"""Makes a data set of any number of host-days out of real runs: each host-day gets --runs runs of the given data set,
drawn at random, moved to that day and assigned to that host. The recorded values stay unchanged.

    build-python/bin/python bench/fleet_days.py FROM TO --hosts 10 --days 10 [--runs 1] [--seed 1]
"""
import argparse
import datetime
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DAY_NS = 86_400 * 10**9
EPOCH = datetime.date(1970, 1, 1)


def tables_of(place):
    return {path.stem: pq.read_table(path) for path in place.glob("*.parquet")}


def moved(table, run_id, host, days):
    """The same rows as a run of another host, `days` days later."""
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_timestamp(field.type):
            shifted = pc.add(column.cast(pa.int64()), days * DAY_NS).cast(field.type)
            table = table.set_column(i, field, shifted)
        elif field.name in ("run_id", "host"):
            value = run_id if field.name == "run_id" else host
            table = table.set_column(i, field, pa.array([value] * len(table), pa.string()).cast(field.type))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="FROM", type=Path)
    parser.add_argument("target", metavar="TO", type=Path)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--days", type=int, required=True)
    parser.add_argument("--runs", type=int, default=1, help="runs per host-day (default: 1)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    places = sorted(asked.source.glob("date=2*/host=*/run_id=*"))
    real = [(datetime.date.fromisoformat(p.parts[-3][5:]), tables_of(p)) for p in places]
    draw = random.Random(asked.seed)
    asked.target.mkdir(parents=True)
    shutil.copy(asked.source / "_forktail.json", asked.target)
    first = max(date for date, _ in real)
    for day in range(asked.days):
        date = first + datetime.timedelta(day)
        for n in range(asked.hosts):
            for _ in range(asked.runs):
                recorded, tables = draw.choice(real)
                run_id, host = f"{draw.getrandbits(64):016x}", f"host-{n:05}"
                place = asked.target / f"date={date}" / f"host={host}" / f"run_id={run_id}"
                place.mkdir(parents=True)
                for name, table in tables.items():
                    pq.write_table(moved(table, run_id, host, (date - recorded).days), place / f"{name}.parquet",
                                   compression="zstd")


if __name__ == "__main__":
    main()
