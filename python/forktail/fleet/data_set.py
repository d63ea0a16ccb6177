# SPDX-License-Identifier: MIT
"""A data set as forktail writes it, DIR/date=D/host=H/run_id=ID/TABLE.parquet, and other files in it.

Spark lists the files. Foreign files and incomplete runs are reported and ignored. After an interrupted copy a run lacks
a table, or a file lacks its end, where Parquet has its index. Ends are checked only in file systems, because object
stores have only complete files.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..failure import Failure
from .sheet import Causes
from .spark import first_line, read_text

SCHEMA = 1
TYPES = {
    "int32": T.IntegerType,
    "int64": T.LongType,
    "double": T.DoubleType,
    "bool": T.BooleanType,
    "time": T.LongType,
    "text": T.StringType,
}
KEYS = ("date", "host", "run_id")
PLACE = re.compile(r"/date=([^/]+)/host=([^/]+)/run_id=([^/]+)/([^/]+)\.parquet$")
NAMED = 20  # maximum number of ignored files and runs that are listed


def ends_well(path: str) -> bool:
    """Whether a Parquet file has its end."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size < 12:
                return False
            file.seek(size - 8)
            tail = file.read(8)
            file.seek(0)
            return file.read(4) == tail[4:] == b"PAR1" and int.from_bytes(tail[:4], "little") + 12 <= size
    except OSError:
        return False


def broken_ends(paths: Iterable[str]) -> Iterator[str]:
    """Yields the paths of truncated files. Runs on the workers."""
    for path in paths:
        if not ends_well(path):
            yield path


def local(path: str) -> str | None:
    """The local path of a file: URI; None for others."""
    return unquote(re.sub(r"^file:/+", "/", path)) if path.startswith("file:") else None


class DataSet:
    def __init__(self, spark: Any, path: str, since: str | None = None, until: str | None = None) -> None:
        self.spark, self.path = spark, path.rstrip("/")
        self.since, self.until = since, until
        text = read_text(spark, self.path + "/_forktail.json")
        if text is None:
            raise Failure(f"{path} is not a forktail data set (no _forktail.json)")
        try:
            self.about = json.loads(text)
            schema = self.about["schema"]
        except (ValueError, KeyError, TypeError):
            raise Failure(f"{path}/_forktail.json was not written by forktail") from None
        if schema != SCHEMA:
            raise Failure(
                f"{path} has schema {schema}, and this forktail reads {SCHEMA}. Use the forktail version that wrote it"
            )
        self.causes: Causes = self.about.get("causes", {})
        self.ignored: list[str] = []
        self.deep = False

    def need(self, *tables: str) -> "DataSet":
        """Checks that these tables, and runs, are there. Reports what is ignored."""
        wanted = sorted({"runs", *tables})
        lacking = [t for t in wanted if t not in self.about["tables"]]
        if lacking:
            raise Failure(
                f"{self.path} has no table {lacking[0]}: it was exported with --tables. "
                "Export the data set with all tables"
            )
        try:
            rows = (
                self.spark.read.format("binaryFile")
                .option("recursiveFileLookup", "true")
                .load(self.path)
                .select("path", "length")
                .collect()
            )
        except Exception as error:
            raise Failure(f"cannot list {self.path}: {first_line(error)}") from None
        runs: dict[str, dict[str, str]] = {}
        foreign = []
        for row in rows:
            place = PLACE.search(row.path)
            if place and place[4] in self.about["tables"] and self._beside(row.path[: place.start()]):
                key = "/".join(unquote(p) for p in place.groups()[:3])
                runs.setdefault(key, {})[place[4]] = row.path
            else:
                foreign.append(row.path)
                self.deep |= row.path.endswith(".parquet")
        if not runs:
            raise Failure(f"{self.path} holds no run")
        for path in sorted(foreign)[:NAMED]:
            warn(f"{local(path) or path} is not part of the data set; ignored")
        self._ignore_incomplete(runs, wanted)
        return self

    def _beside(self, directory: str) -> bool:
        return (local(directory) or directory).endswith(local_or_same(self.path))

    def _ignore_incomplete(self, runs: dict[str, dict[str, str]], wanted: list[str]) -> None:
        incomplete = {}
        for key, tables in runs.items():
            gone = [t for t in self.about["tables"] if t not in tables]
            if gone:
                incomplete[key] = f"it has no {gone[0]}.parquet"
        files = {
            here: (key, table)
            for key, tables in runs.items()
            if key not in incomplete
            for table, path in tables.items()
            if table in wanted and (here := local(path))
        }
        if files:
            slices = max(1, min(len(files) // 500, 200))
            for path in self.spark.sparkContext.parallelize(list(files), slices).mapPartitions(broken_ends).collect():
                key, table = files[path]
                incomplete[key] = f"its {table}.parquet has no end"
        first: dict[str, str] = {}
        for key in sorted(runs):
            run = key.rsplit("/", 1)[1]
            if key not in incomplete and first.setdefault(run, key) != key:
                incomplete[key] = f"the same run is also in {as_path(first[run])}"
        for key in sorted(incomplete)[:NAMED]:
            what = "is a duplicate" if "same run" in incomplete[key] else "is incomplete"
            warn(f"{self.path}/{as_path(key)} {what}: {incomplete[key]}; ignored")
        self.ignored = sorted(incomplete)
        if len(incomplete) == len(runs):
            raise Failure(f"{self.path} holds no complete run")

    def table(self, name: str) -> Any:
        """One of need()'s tables, of all complete runs, with date, host and run_id."""
        fields = [
            T.StructField(column, TYPES[kind]()) for column, kind in self.about["tables"][name] if column not in KEYS
        ]
        fields += [T.StructField(key, T.StringType()) for key in KEYS]
        below = "/date=*/host=*/run_id=*" if self.deep else "/date=*"
        frame = (
            self.spark.read.schema(T.StructType(fields))
            .option("basePath", self.path)
            .option("pathGlobFilter", name + ".parquet")
            .parquet(self.path + below)
        )
        if self.since:
            frame = frame.where(F.col("date") >= self.since)
        if self.until:
            frame = frame.where(F.col("date") < self.until)
        if self.ignored:
            frame = frame.where(~F.concat_ws("/", *KEYS).isin(self.ignored))
        return frame


def day_of(time_ns: str) -> Any:
    """The day of an instant in ns since 1970; if it is unknown, the day on which the run began."""
    return F.coalesce(
        F.date_format(F.timestamp_seconds(F.expr(f"{time_ns} div 1000000000")), "yyyy-MM-dd"), F.col("date")
    )


def local_or_same(path: str) -> str:
    return os.path.abspath(local(path) or path) if "://" not in path else path


def as_path(key: str) -> str:
    return "/".join(f"{name}={value}" for name, value in zip(KEYS, key.split("/"), strict=True))


def warn(sentence: str) -> None:
    print(f"forktail fleet: {sentence}", file=sys.stderr)
