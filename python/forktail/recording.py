# SPDX-License-Identifier: MIT
"""A run from Python: the answer of explain, and the recordings as tables for NumPy, pandas, Polars and Arrow.

The program forktail explains and exports a run at the first use. The tables are Parquet files where Arrow is
installed, else CSV, in a temporary directory that is removed with the run. A column is read when a caller asks for it.
It stays in an array: ten million requests are 80 MB a column, and not ten million Python objects.
"""

import csv
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from forktail.failure import CANNOT, USAGE, Failure
from forktail.programs import find_program, program
from forktail.wheel import parquet_program

# What a column holds, by its type in a CSV export's schema.json. Others: "time", "text".
_KINDS = {"int64": "whole", "int32": "whole", "double": "real", "bool": "flag"}
_CSV_ROWS = 1 << 16  # rows of a CSV table that are texts at a time


def _library(name: str, package: str) -> Any:
    """A library that only some methods need. Raises Failure with the package to install."""
    try:
        return import_module(name)
    except ImportError:
        raise Failure(f"cannot import {name}. Install {package}") from None


class Table:
    """One table of a run (docs/reference/exports-and-sql.md#tables). Iterating gives rows as dicts; len() counts them.

    Columns named *_ns are nanoseconds: instants of CLOCK_MONOTONIC, or durations. *_time are instants in UTC.
    Each to_...() takes the names of columns; without any it returns all. A name that is none raises Failure (status 2).
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path
        self._arrow = path.suffix == ".parquet"

    def __repr__(self) -> str:
        return f"<table {self.name}: {len(self):,} rows of {', '.join(self.columns)}>"

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the export."""
        return list(self._kinds)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """What each column holds: whole, real, flag, time or text."""
        if not self._arrow:
            schema = json.loads((self._path.parent / "schema.json").read_text())
            return {name: _KINDS.get(kind, kind) for name, kind in schema[self.name]}
        of = import_module("pyarrow").types
        known = {"whole": of.is_integer, "real": of.is_floating, "flag": of.is_boolean, "time": of.is_timestamp}
        schema = import_module("pyarrow.parquet").read_schema(self._path)
        return {one.name: next((kind for kind, holds in known.items() if holds(one.type)), "text") for one in schema}

    @cached_property
    def _rows(self) -> int:
        if self._arrow:
            return int(import_module("pyarrow.parquet").read_metadata(self._path).num_rows)
        with self._path.open(newline="") as file:
            return sum(1 for _ in csv.reader(file)) - 1

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows as dicts: int, float, bool, str, or None if not known. A time is a text, as the CSV export has it.

        For small tables such as causes and episodes; needs no library.
        """
        if self._arrow:
            source = import_module("pyarrow.parquet").ParquetFile(self._path)
            pc = import_module("pyarrow.compute")
            for batch in source.iter_batches(_CSV_ROWS):
                for i, name in enumerate(batch.schema.names):
                    if self._kinds[name] == "time":  # ns, which Python's datetime does not have
                        iso = pc.strftime(batch.column(i), format="%Y-%m-%dT%H:%M:%SZ")
                        batch = batch.set_column(i, name, iso)
                yield from batch.to_pylist()
            return
        read: dict[str, Callable[[str], Any]] = {"whole": int, "real": float, "flag": "true".__eq__}
        readers = [read.get(self._kinds[column], str) for column in self.columns]
        with self._path.open(newline="") as file:
            rows = csv.reader(file)
            next(rows)
            for row in rows:
                yield {
                    name: reader(cell) if cell else None
                    for name, reader, cell in zip(self.columns, readers, row, strict=True)
                }

    def __getitem__(self, column: str) -> Any:
        """One column as a NumPy array, as in to_numpy()."""
        return self.to_numpy(column)[column]

    def _chosen(self, columns: tuple[str, ...]) -> list[str]:
        for column in columns:
            if column not in self.columns:
                raise Failure(f"the table {self.name} has no column {column}. It has {', '.join(self.columns)}", USAGE)
        return list(columns or self.columns)

    def to_numpy(self, *columns: str) -> dict[str, Any]:
        """{name: array of len(table)}: int64, float64, bool, datetime64[ns] in UTC, or object (texts).

        Unknown values: NaN, NaT, None in a column of texts, and of int64 or bool a masked array (numpy.ma).
        Equal texts of a column are one object, so a row takes eight bytes. From CSV, an empty text is unknown.
        Needs NumPy.
        """
        _library("numpy", "python3-numpy")
        chosen = self._chosen(columns)
        if self._arrow:
            return {column: self._from_arrow(column) for column in chosen}
        return self._from_csv(chosen)

    def to_pandas(self, *columns: str) -> Any:
        """A pandas.DataFrame. Whole numbers with unknown values are Int64, times have the time zone UTC."""
        pd = _library("pandas", "python3-pandas")
        np = import_module("numpy")
        series = {}
        for name, values in self.to_numpy(*columns).items():
            if isinstance(values, np.ma.MaskedArray):
                make = pd.arrays.BooleanArray if values.dtype == bool else pd.arrays.IntegerArray
                values = make(values.data, np.ma.getmaskarray(values))
            series[name] = pd.DatetimeIndex(values, tz="UTC") if self._kinds[name] == "time" else values
        return pd.DataFrame(series, copy=False)

    def to_polars(self, *columns: str) -> Any:
        """A polars.DataFrame. Unknown values are null."""
        pl = _library("polars", "polars from PyPI")
        if self._arrow:
            return pl.read_parquet(self._path, columns=self._chosen(columns))
        np = _library("numpy", "python3-numpy")
        frame = []
        for name, values in self.to_numpy(*columns).items():
            kind = self._kinds[name]
            if kind == "text":
                one = pl.Series(name, values.tolist(), dtype=pl.String)
            else:
                one = pl.Series(name, np.ma.getdata(values), nan_to_null=True)
            if isinstance(values, np.ma.MaskedArray):
                one = one.set(pl.Series(np.ma.getmaskarray(values)), None)
            frame.append(one.dt.replace_time_zone("UTC") if kind == "time" else one)
        return pl.DataFrame(frame)

    def to_arrow(self, *columns: str) -> Any:
        """A pyarrow.Table, with the types of the Parquet export."""
        pa = _library("pyarrow", "pyarrow from PyPI")
        if self._arrow:
            return import_module("pyarrow.parquet").read_table(self._path, columns=self._chosen(columns))
        np = _library("numpy", "python3-numpy")
        arrays = {}
        for name, values in self.to_numpy(*columns).items():
            mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
            kind = {"text": pa.string(), "time": pa.timestamp("ns", "UTC")}.get(self._kinds[name])
            arrays[name] = pa.array(np.ma.getdata(values), type=kind, mask=mask, from_pandas=True)
        return pa.table(arrays)

    def _from_arrow(self, column: str) -> Any:
        """One column of the Parquet file; only that one is in memory twice."""
        np, pa, pc = import_module("numpy"), import_module("pyarrow"), import_module("pyarrow.compute")
        values = import_module("pyarrow.parquet").read_table(self._path, columns=[column]).column(0)
        kind = self._kinds[column]
        if kind == "text":
            coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
            coded = coded.unify_dictionaries().combine_chunks()
            coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
            texts = np.array(
                [*coded.dictionary.to_pylist(), None], dtype=object
            )  # -1, the code of unknown, is its last
            return texts[pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)]
        if kind == "whole":
            values = values.cast(pa.int64())
        if kind in ("real", "time") or not values.null_count:
            return values.to_numpy()
        return np.ma.MaskedArray(
            pc.fill_null(values, 0 if kind == "whole" else False).to_numpy(), values.is_null().to_numpy()
        )

    def _from_csv(self, columns: list[str]) -> dict[str, Any]:
        """The columns of the CSV file, read in parts."""
        np = import_module("numpy")
        parts: dict[str, list[Any]] = {column: [] for column in columns}
        known: dict[str, dict[str, str | None]] = {column: {"": None} for column in columns}
        pick = itemgetter(*map(self.columns.index, columns))
        with self._path.open(newline="") as file:
            rows = csv.reader(file)
            next(rows)
            while part := list(islice(rows, _CSV_ROWS)):
                cells = zip(*map(pick, part), strict=True) if len(columns) > 1 else [tuple(map(pick, part))]
                for column, texts in zip(columns, cells, strict=True):
                    parts[column].append(_array(self._kinds[column], texts, known[column]))
        arrays = {}
        for column, kind in ((column, self._kinds[column]) for column in columns):
            chunks = parts.pop(column) or [_array(kind, (), {})]
            masked = any(isinstance(chunk, np.ma.MaskedArray) for chunk in chunks)
            arrays[column] = (np.ma.concatenate if masked else np.concatenate)(chunks)
        return arrays


def _array(kind: str, texts: tuple[str, ...], known: dict[str, str | None]) -> Any:
    """An array of CSV cells. `known`: the texts of the column so far, so that equal ones are one object."""
    np = import_module("numpy")
    if kind == "text":
        return np.array([known.setdefault(text, text) for text in texts] or [], dtype=object)
    cells = np.array(texts, dtype=str)
    unknown = cells == ""
    if kind == "time":
        return np.where(unknown, "NaT", np.char.rstrip(cells, "Z")).astype("datetime64[ns]")
    if kind == "real":
        return np.where(unknown, "nan", cells).astype(float)
    values = cells == "true" if kind == "flag" else np.where(unknown, "0", cells).astype("int64")
    return np.ma.MaskedArray(values, unknown) if unknown.any() else values


class _Named:
    """An attribute of a run that is the table of the same name."""

    def __init__(self, about: str) -> None:
        self.__doc__ = about

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, run: "Run", owner: type) -> Table:
        return run.table(self._name)


class Run:
    """A run directory or one .forktail file, as open() returns it. `with` or close() removes its temporary tables."""

    runs = _Named("The run: one row.")
    requests = _Named("One row per request: due, sent, answered, latency in ns, operation, status.")
    slow = _Named("One row per slow request.")
    parts = _Named("One row per cause and hop of a slow request. The totals of a request amount to its latency.")
    causes = _Named("One row per cause: slow requests, direct and queued time, percentiles without it. Largest first.")
    hops = _Named("One row per process or thread on the path of requests.")
    episodes = _Named("One row per episode, a group of slow requests that overlap.")
    episode_causes = _Named("One row per cause of an episode.")
    evidence = _Named("One row per sentence about an episode.")
    threads = _Named("One row per recorded thread.")
    spans = _Named("One row per interval of a thread: its cause, time on a CPU, runnable and blocked.")
    tallies = _Named("One row per cause and window: sums of intervals too short for a span.")
    iterations = _Named("One row per event-loop iteration.")
    samples = _Named("One row per CPU sample.")
    stacks = _Named("One row per stack of samples.")
    disk = _Named("One row per block request.")
    metrics = _Named("One row per value of a series.")
    connections = _Named("One row per connection of the request log.")
    drops = _Named("One row per loss of events.")
    marks = _Named("One row per mark.")

    def __init__(self, path: str | Path, options: list[str]) -> None:
        self.path = Path(path)
        self._options = options
        try:
            self.path.stat()
        except OSError as error:
            raise Failure(f"cannot read {path}: {error.strerror}") from None

    def __repr__(self) -> str:
        return f"forktail.open({str(self.path)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes the tables. A later use exports them again."""
        if scratch := self.__dict__.pop("_scratch", None):
            scratch.cleanup()

    def explain(self, *options: str) -> str:
        """What `forktail explain` prints, with further options such as "--all" or "--episode", "1"."""
        return _output([str(program("forktail")), "explain", str(self.path), *self._options, *options])

    @cached_property
    def explanation(self) -> dict[str, Any]:
        """The JSON of `forktail explain --json` (docs/reference/explain.md#json)."""
        found: dict[str, Any] = json.loads(self.explain("--json"))
        return found

    @property
    def answer(self) -> str:
        """The first sentence: what made the slow requests slow."""
        return str(self.explanation["answer"])

    @property
    def latency_ns(self) -> dict[str, float]:
        """p50, p90, p99, p99.9, p99.99, max and mean of all answered requests, in ns."""
        latency: dict[str, float] = self.explanation["requests"]["latency_ns"]
        return latency

    def table(self, name: str) -> Table:
        """A table by its name. The first one exports all of them. Raises Failure (status 2) for a name that is none."""
        files = {file.stem: file for file in self._tables.iterdir() if file.suffix != ".json"}
        if name not in files:
            raise Failure(f"a run has no table {name}. It has {', '.join(sorted(files))}", USAGE)
        return Table(name, files[name])

    @property
    def _tables(self) -> Path:
        if "_scratch" not in self.__dict__:
            scratch = tempfile.TemporaryDirectory(prefix="forktail-tables-")
            words, environment = _exporter()
            _output([*words, str(self.path), "-o", f"{scratch.name}/tables", *self._options], environment)
            self._scratch = scratch
        return Path(self._scratch.name) / "tables"


def open(
    path: str | Path,
    *,
    slow: str | None = None,
    since: str | None = None,
    until: str | None = None,
    around: str | None = None,
    memory: str | None = None,
) -> Run:
    """A run directory or a .forktail file. Nothing is read before the first use.

    slow: which requests are slow, a duration ("1ms") or a percentile ("p99.9"); default p99.
    since, until, around: a part of the run; memory: an approximate limit. All as in `forktail explain`.
    Raises Failure if the run does not exist.
    """
    given = {"--slow": slow, "--since": since, "--until": until, "--around": around, "--memory": memory}
    return Run(path, [f"{option}={value}" for option, value in given.items() if value is not None])


def _exporter() -> tuple[list[str], dict[str, str]]:
    """The words of an export to tables, and its environment."""
    if find_spec("pyarrow"):
        if parquet := find_program("forktail-parquet"):
            return [str(parquet), "--to", "parquet"], dict(os.environ)
        try:
            name, environment = parquet_program()
            return [name, "--to", "parquet"], environment
        except Failure:
            pass
    return [str(program("forktail")), "export", "--to", "csv", "--raw-csv"], dict(os.environ)


def _output(words: list[str], environment: dict[str, str] | None = None) -> str:
    """Standard output of a program of forktail. Raises Failure with its own sentence."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1].removeprefix("forktail: ") if lines else f"{words[0]} ended with status {done.returncode}"
        raise Failure(why, USAGE if done.returncode == USAGE else CANNOT)
    return done.stdout.decode(errors="replace")
