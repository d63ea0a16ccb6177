# SPDX-License-Identifier: MIT
"""forktail sql: the views that DuckDB gets, when a run is exported again, and that results are appended to a file."""

import subprocess
from pathlib import Path

import pytest

from forktail.programs import find_program
from forktail.sql import _look, _views

TREE = Path(__file__).resolve().parents[3]


def test_a_view_over_the_files_of_all_runs(tmp_path: Path) -> None:
    runs = [tmp_path / "it's", tmp_path / "b"]
    for run in runs:
        run.mkdir()
        for name in ("spans.parquet", "causes.parquet", "README"):
            (run / name).touch()
    quoted = f"'{tmp_path}/it''s/causes.parquet', '{tmp_path}/b/causes.parquet'"
    assert _views(runs).splitlines() == [
        "SET TimeZone = 'UTC';",
        f"CREATE TEMP VIEW causes AS SELECT * FROM read_parquet([{quoted}], "
        "union_by_name = true, hive_partitioning = false);",
        f"CREATE TEMP VIEW spans AS SELECT * FROM read_parquet([{quoted.replace('causes', 'spans')}], "
        "union_by_name = true, hive_partitioning = false);",
    ]


@pytest.mark.parametrize(
    "name, seen",
    [
        ("load.forktail", True),
        ("run.json", True),
        ("marks", True),
        ("hosts/a/server.forktail", True),
        ("report.html", False),
        ("hosts/marks", False),
    ],
)
def test_a_run_is_exported_again_if_its_recordings_change(tmp_path: Path, name: str, seen: bool) -> None:
    (tmp_path / "hosts/a").mkdir(parents=True)
    before = _look(tmp_path)
    (tmp_path / name).write_text("x")
    there = _look(tmp_path)
    (tmp_path / name).write_text("xy")
    assert (there != before, _look(tmp_path) != there) == (seen, seen)


def test_a_file_and_its_marks(tmp_path: Path) -> None:
    run = tmp_path / "server.forktail"
    run.touch()
    before = _look(run)
    Path(f"{run}.marks").touch()
    assert _look(run) != before


@pytest.mark.parametrize("form", ["--csv", "--json", "table"])
def test_results_are_appended_to_a_file(tmp_path: Path, form: str) -> None:
    forktail, python = find_program("forktail"), TREE / "build-python/bin/python"
    if not forktail or not python.exists() or not find_program("forktail-parquet"):
        pytest.skip("needs the programs, and DuckDB in build-python (script/python)")
    out = tmp_path / "out"
    out.write_text("before\n")
    words = [
        forktail,
        "sql",
        TREE / "tests/compat/0.1/run",
        "SELECT 42 AS answer",
        *([form] if form != "table" else []),
    ]
    with out.open("a") as file:
        subprocess.run(words, stdout=file, check=True, env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    text = out.read_text()
    assert text.startswith("before\n") and "answer" in text and "42" in text
