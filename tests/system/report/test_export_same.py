# SPDX-License-Identifier: MIT
"""One real run in every format, read with third-party readers: DuckDB and pyarrow, Perfetto's trace processor,
HdrHistogram's reader, OpenTelemetry's messages, Prometheus' parser. All results have to equal explain's: totals by
cause, percentiles, counts. The readers are export_readers.py and export_perfetto_read.mjs.
"""

import json
import os
import shutil
import warnings

import pytest

from export_readers import HDRHISTOGRAM, PYTHON, hlog_equals, needs_readers, tables_equal, texts_equal, with_libraries
from harness import TREE, explain, forktail, needs, needs_root, run_program, synthetic_run
from real_run import record_two_saves

pytestmark = [needs_root, needs_readers, needs("node")]

FILES = ["hlog", "folded", "speedscope.json", "otlp.jsonl", "openmetrics", "prom", "pftrace"]
DIRECTORIES = ["parquet", "csv"]
SLOW = ["--slow", "1ms"]  # less than a fork, however slow the host makes the other requests


@pytest.fixture(scope="module")
def run(module_serve, tmp_path_factory):
    """A server saved twice under load, over TCP."""
    run = tmp_path_factory.mktemp("runs") / "run"
    record_two_saves(run, module_serve("redis", "--enable-debug-command", "yes", tcp=True))
    return run


def export_all(path, to):
    """All formats of the run at `path`, in the directory `to`. Returns the standard error of each, by format."""
    to.mkdir()
    messages = {}
    for name, more in [*((name, []) for name in FILES), *((name, ["--to", name]) for name in DIRECTORIES)]:
        ended = forktail("export", path, *SLOW, "-o", to / f"run.{name}", *more)
        assert (ended.status, ended.out) == (0, ""), ended.err
        messages[name] = ended.err
    return messages


def check_same(path, to, holds):
    """holds: what the trace's reader expects in it."""
    export_all(path, to)
    explained = explain(path, *SLOW)
    with_libraries(tables_equal, explained, to / "run.parquet", to / "run.csv")
    with_libraries(texts_equal, explained, to)
    if HDRHISTOGRAM:
        with_libraries(hlog_equals, explained, to / "run.hlog")
    else:
        warnings.warn(
            "no hdrhistogram for this machine (tests/python/requirements.txt): run.hlog is not read", stacklevel=2
        )
    (to / "explain.json").write_text(json.dumps(explained))
    trace_reader = TREE / "tests/system/report/export_perfetto_read.mjs"
    read = run_program("node", trace_reader, PYTHON, to / "run.pftrace", to / "explain.json", holds)
    assert read.status == 0, read.out + read.err


@pytest.mark.parametrize(
    ("part", "holds"), [(".", "fork"), ("server.forktail", "no requests"), ("load.forktail", "no server")]
)
def test_every_reader_finds_explains_results_in_an_export(run, tmp_path, part, holds):
    check_same(run / part, tmp_path / "export", holds)


def test_every_reader_finds_explains_results_in_an_export_of_cut_recordings(run, tmp_path):
    cut = tmp_path / "run"
    shutil.copytree(run, cut)
    for recording in cut.iterdir():
        os.truncate(recording, recording.stat().st_size * 2 // 3)
    check_same(cut, tmp_path / "export", "a cut recording")


def without_run_id(table):
    """A table without its first column, which names the recordings."""
    return [line.partition(",")[2] for line in table.read_text().splitlines()]


def test_a_recording_of_another_boot_has_another_clock_and_is_in_no_export_with_a_message(run, tmp_path):
    whole, boots = tmp_path / "whole", tmp_path / "boots"
    export_all(run, whole)
    other = synthetic_run(tmp_path / "other", 0.01)
    left_out = run / "a.forktail"
    shutil.copy(other / "server.forktail", left_out)
    try:
        messages = export_all(run, boots)
    finally:
        left_out.unlink()
    assert [name for name, text in messages.items() if "; a.forktail is ignored" not in text] == []
    for name in FILES:
        assert (boots / f"run.{name}").read_bytes() == (whole / f"run.{name}").read_bytes(), name
    tables = list((whole / "run.csv").iterdir())
    assert tables
    for table in tables:
        assert without_run_id(boots / "run.csv" / table.name) == without_run_id(table), table.name
