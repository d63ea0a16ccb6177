# SPDX-License-Identifier: MIT
"""forktail sql: runs as tables in DuckDB, which is its own shell or, if that is not installed, the Python package.

Each run is exported to Parquet once, into a cache, and again when its files change. DuckDB gets a view per table over
all runs.
"""

import contextlib
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from forktail import __version__
from forktail.failure import CANNOT, NO, USAGE, Failure
from forktail.options import Command, Option
from forktail.wheel import missing, parquet_program

COMMAND = Command(
    "forktail sql",
    "Query runs as tables with DuckDB (docs/reference/exports-and-sql.md). Without a query, open its shell.",
    [
        Option("RUN", "Run directories or .forktail files, then the query", required=True, several=True),
        Option("-c,--command", "Run this query", "QUERY"),
        Option(
            "--slow",
            "Treat requests at or above this duration (1ms) or percentile (p99.9) as slow (default: p99)",
            "THRESHOLD",
        ),
        Option("--csv", "Print the result as CSV", excludes="--json"),
        Option("--json", "Print the result as JSON", excludes="--csv"),
        Option(
            "--confined",
            "Run an untrusted query: one SELECT on the runs' tables, at most 1,000 rows and 1 GB of memory, no other "
            "file and no network",
            excludes="--csv",
        ),
    ],
    examples=('forktail sql monday "select op, max(latency_ns) from requests group by op"', "forktail sql monday"),
)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _cache() -> Path:
    """The directory for tables, created if it does not exist."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(chosen) if chosen.startswith("/") else Path(os.environ.get("HOME") or "/tmp") / ".cache"
    try:
        (base / "forktail").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sentence = f"cannot create {base / 'forktail'}, the cache for tables of runs: {error.strerror}"
        raise Failure(sentence) from None
    return base / "forktail"


def _look(run: Path) -> str:
    """Names, sizes and times of a run's files, also of its hosts: they differ if it is recorded again or gets another
    file.
    """
    marks = run / "marks" if run.is_dir() else Path(f"{run}.marks")
    files = run.rglob("*") if run.is_dir() else [run, marks]
    lines = []
    for file in files:
        if file.suffix in (".forktail", ".json") or file in (run, marks):
            with contextlib.suppress(OSError):
                about = file.stat()
                lines.append(f"{os.path.relpath(file, run)} {about.st_size} {about.st_mtime_ns}")
    return "\n".join([__version__, *sorted(lines)])


def _tables_of(run: str, slow: str | None) -> Path:
    """The directory of a run's tables, exported if it does not exist. Exits with the status of a failed export."""
    try:
        path = Path(run).resolve(strict=True)
    except OSError as error:
        raise Failure(f"cannot read {run}: {error.strerror}") from None
    cache = _cache()
    stem = _digest(str(path)) + "-"
    directory = cache / (stem + _digest(f"{_look(path)}\n{slow}"))
    if directory.exists():
        return directory
    program, environment = parquet_program()
    words = [program, str(path), "--to", "parquet", "-o", str(directory), *(["--slow", slow] if slow else [])]
    status = subprocess.run(words, env=environment, check=False).returncode
    if status:
        raise SystemExit(status if status > 0 else CANNOT)
    for old in cache.glob(stem + "*"):  # of what was there before the run changed
        if old != directory:
            shutil.rmtree(old, ignore_errors=True)
    return directory


def _views(directories: list[Path]) -> str:
    statements = ["SET TimeZone = 'UTC';\n"]
    for table in sorted(file.stem for file in directories[0].glob("*.parquet")):
        files = ", ".join("'" + str(d / f"{table}.parquet").replace("'", "''") + "'" for d in directories)
        statements.append(
            f"CREATE TEMP VIEW {table} AS SELECT * FROM read_parquet([{files}], "
            "union_by_name = true, hive_partitioning = false);\n"
        )
    return "".join(statements)


CONFINED_ROWS = 1000
_CONFINED_BYTES = 2 << 30  # of address space


def _confine(db: Any, directories: list[Path]) -> None:
    """Statements can read the tables' files from now on, and nothing else; no statement changes that."""
    import duckdb

    # Of large texts DuckDB counts only a part.
    resource.setrlimit(resource.RLIMIT_AS, (_CONFINED_BYTES, _CONFINED_BYTES))
    try:
        files = ", ".join("'" + str(file).replace("'", "''") + "'" for d in directories for file in d.glob("*.parquet"))
        db.execute(
            f"SET allowed_paths = [{files}]; SET memory_limit = '1GB'; SET temp_directory = ''; SET threads = 1; "
            "SET enable_external_access = false; SET lock_configuration = true;"
        )
    except duckdb.Error as error:
        raise Failure(f"this version of DuckDB, {duckdb.__version__}, cannot be confined: {error}") from None


def _only_select(db: Any, query: str) -> None:
    """Raises Failure for anything but one SELECT: the tables' files may be written, too."""
    import duckdb

    kinds = [statement.type for statement in db.extract_statements(query)]
    if kinds != [duckdb.StatementType.SELECT]:
        raise Failure("--confined needs one SELECT statement", USAGE)


def _show(db: Any, query: str, form: str, most: int = 0) -> None:
    """`most`: how many rows at most; 0: all."""
    result = db.sql(query)
    if result is None:
        return
    result = result.limit(most) if most else result
    if form == "csv":
        with tempfile.TemporaryDirectory() as directory:  # DuckDB would truncate a standard output that is a file
            result.write_csv(f"{directory}/rows.csv", header=True)
            with open(f"{directory}/rows.csv", "rb") as rows:
                shutil.copyfileobj(rows, sys.stdout.buffer)
    elif form == "json":
        rows = result.query("r", "select to_json(r)::varchar from r").fetchall()
        print("[" + ",\n".join(row[0] for row in rows) + "]")
    elif sys.stdout.isatty():
        result.show()
    else:
        result.show(max_width=250, max_rows=10000)


def _read_statements(db: Any, error: type[Exception]) -> None:
    """Answers statements on standard input until .quit or its end."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 # input() edits lines with it
    tables = ", ".join(row[0] for row in db.execute("show tables").fetchall())
    print("A statement ends with ; and .quit ends. Tables: " + tables)
    text = ""
    while True:
        try:
            line = input("... " if text else "sql> ")
        except EOFError:
            return
        except KeyboardInterrupt:
            text = ""
            print()
            continue
        if not text and line.strip() in (".quit", ".exit"):
            return
        text += line + "\n"
        if not text.rstrip().endswith(";"):
            text = text if text.strip() else ""
            continue
        try:
            _show(db, text, "table")
        except (error, KeyboardInterrupt) as problem:
            print(problem)
        text = ""


def _ask(directories: list[Path], query: str | None, form: str, confined: bool) -> int:
    views = _views(directories)
    if not confined and (shell := shutil.which("duckdb")):
        asked = ["-box" if form == "table" else f"-{form}", "-c", query] if query else []
        os.execv(shell, [shell, "-cmd", views, *asked])
    try:
        import duckdb
    except ImportError:
        raise missing("DuckDB's shell or Python package") from None
    db = duckdb.connect()
    db.execute(views)
    if not query:
        _read_statements(db, duckdb.Error)
        return 0
    try:
        if confined:
            _confine(db, directories)
            _only_select(db, query)
        _show(db, query, form, CONFINED_ROWS if confined else 0)
    except MemoryError:
        raise Failure("the query needs more memory than --confined allows", NO) from None
    except duckdb.Error as error:
        raise Failure(str(error), NO) from None
    return 0


def main(words: list[str]) -> int:
    _, asked = COMMAND.parse(words)
    runs, query = asked["run"], asked["command"]
    if not query and len(runs) > 1 and not Path(runs[-1]).exists():
        query = runs.pop()
    form = "csv" if asked["csv"] else "json" if asked["json"] else "table"
    if not query and form != "table":
        raise Failure("--csv and --json need a query. Give it after the runs or with -c.", USAGE)
    if asked["confined"] and not query:
        raise Failure("--confined needs a query. Give it after the runs or with -c.", USAGE)
    directories = list(dict.fromkeys(_tables_of(run, asked["slow"]) for run in runs))
    return _ask(directories, query, form, asked["confined"])
