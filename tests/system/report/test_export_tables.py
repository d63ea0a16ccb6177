# SPDX-License-Identifier: MIT
"""A real run as tables, with explain's options: DuckDB and pyarrow read the same results as explain prints (for the
whole run see test_export_same.py), the page's queries run, and no incomplete file ever has the requested name.
"""

import json
import re
import shutil
import signal

import pytest

from disks import small_disk
from export_readers import needs_readers, tables_equal, with_libraries
from harness import BIN, TREE, eventually, explain, forktail, needs_root, run_program, synthetic_run
from real_run import RealRun, record_two_saves

SLOW = ["--slow", "1ms"]


def export(path, to, form, *more, **options):
    return forktail("export", path, "--to", form, "-o", to, *more, **options)


def check_tables(path, directory, *more):
    """Exports both ways and compares with explain."""
    directory.mkdir(exist_ok=True)
    for form in ("parquet", "csv"):
        ended = export(path, directory / form, form, *more)
        assert (ended.status, ended.out) == (0, ""), ended.err
    with_libraries(tables_equal, explain(path, *more), directory / "parquet", directory / "csv")


@pytest.fixture(scope="module")
def real_run(module_serve, tmp_path_factory):
    """A server saved twice under load."""
    run = tmp_path_factory.mktemp("runs") / "run"
    record_two_saves(run, module_serve("redis", "--enable-debug-command", "yes"))
    return run


@needs_root
@needs_readers
@pytest.mark.parametrize("options", [["--slow", "p50"], ["--since", "+1s", "--until", "+2s"]], ids=["slow", "part"])
def test_tables_of_a_part_of_a_run_or_with_another_threshold_equal_explains_results_for_it(real_run, tmp_path, options):
    check_tables(real_run, tmp_path, *options)


@needs_root
@needs_readers
class TestSql:
    @pytest.fixture
    def sql(self, tmp_path):
        """sql(*words): `forktail sql` with a separate cache."""
        return lambda *words: forktail("sql", *words, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})

    @pytest.fixture
    def copy(self, real_run, tmp_path):
        return shutil.copytree(real_run, tmp_path / "another")

    def test_the_pages_queries_run(self, sql, real_run):
        page = (TREE / "docs/reference/exports-and-sql.md").read_text()
        queries = re.findall(r"^```sql\n(.*?)```", page, re.DOTALL | re.MULTILINE)
        assert len(queries) >= 5
        for query in queries:
            ended = sql(real_run, *SLOW, "--json", "-c", query)
            assert ended.status == 0, query + ended.err
            assert json.loads(ended.out), query

    def test_an_unchanged_run_is_exported_once_and_two_runs_are_one_data_set(self, sql, real_run, copy, tmp_path):
        assert sql(real_run, *SLOW, "--csv", "select count(*) n from runs").out.split() == ["n", "1"]
        [cached] = (tmp_path / "cache/forktail").iterdir()
        made = cached.stat().st_mtime_ns
        ended = sql(real_run, copy, *SLOW, "--csv", "select count(*) n from runs")
        assert ended.status == 0, ended.err
        assert ended.out.split() == ["n", "2"]
        assert cached.stat().st_mtime_ns == made

    def test_a_hosts_file_that_comes_later_is_seen(self, sql, copy):
        words = [copy, *SLOW, "--csv", "select count(*) n from threads"]
        before = sql(*words).out
        (copy / "hosts/second").mkdir(parents=True)
        shutil.copy(copy / "server.forktail", copy / "hosts/second")
        assert sql(*words).out != before

    def test_a_mark_that_comes_later_is_seen(self, sql, copy):
        words = [copy, *SLOW, "--csv", "select text from marks"]
        assert "deploy 42" not in sql(*words).out
        first_s = explain(copy, *SLOW)["requests"]["first_realtime_ns"] // 1_000_000_000
        assert forktail("mark", copy, "deploy 42", "--at", first_s + 1).status == 0
        assert "deploy 42" in sql(*words).out

    def test_exit_statuses(self, sql, real_run, tmp_path):
        assert sql(real_run, *SLOW, "select nothing_of_that").status == 1
        assert sql(real_run, "--csv").status == 2
        assert sql(tmp_path / "nowhere").status == 3


@needs_root
@needs_readers
def test_what_the_servers_kernel_knows_of_requests_is_in_the_tables(serve, tmp_path):
    redis = serve("redis", tcp=True)
    with RealRun(tmp_path / "run") as run:
        run.record(redis.pid, options=["--requests"])
        words = ["-c", 4, "-n", 4000, "-r", 1000, "--ratio", "1:1", "--no-observer"]
        run.load(*redis.load_words(), *words)
        run.finish()
    for path in (run.path, run.path / "server.forktail"):
        check_tables(path, tmp_path / f"tables of {path.stem}")


@needs_readers
def test_all_slow_requests_are_exported_however_many_explain_prints(tmp_path):
    check_tables(synthetic_run(tmp_path / "run", 0.4), tmp_path, "--slow", "1ns", "--memory", "64M")


def test_a_format_is_needed_and_a_run(tmp_path):
    run, out = synthetic_run(tmp_path / "run", 0.01), tmp_path / "out"
    unknown = export(run, out, "xlsx")
    assert unknown.status == 2
    assert "unknown format 'xlsx'" in unknown.err
    assert forktail("export", run, "-o", out).status == 2  # no extension either
    assert export(tmp_path / "nowhere", out, "csv").status == 3


def test_what_exists_is_not_replaced_by_tables(tmp_path):
    run, out, file = synthetic_run(tmp_path / "run", 0.01), tmp_path / "out", tmp_path / "file"
    out.mkdir()
    for mine in (out / "mine", file):
        mine.write_text("kept")
    refused = export(run, out, "csv")
    assert refused.status == 3
    assert "already exists" in refused.err
    assert list(out.iterdir()) == [out / "mine"]
    assert export(run, file, "csv").status == 3
    assert file.read_text() == "kept"


def test_forktail_alone_without_the_program_that_writes_parquet(tmp_path):
    run, out = synthetic_run(tmp_path / "run", 0.01), tmp_path / "p.parquet"
    alone = shutil.copy(BIN / "forktail", tmp_path / "forktail")
    ended = run_program(alone, "export", run, "-o", out, env={"PATH": "/usr/bin:/bin"})
    assert ended.status == 3
    assert "cannot find forktail-parquet" in ended.err
    assert not out.exists()


def test_a_killed_export_leaves_nothing_under_the_name(background, tmp_path):
    run, directory = synthetic_run(tmp_path / "run", 1), tmp_path / "killed"
    directory.mkdir()
    out = directory / "again"
    killed = background(BIN / "forktail", "export", run, "--to", "csv", "-o", out)

    def bytes_written():
        return sum(file.stat().st_size for file in directory.glob("*/requests.csv"))

    assert eventually(lambda: bytes_written() > 1 << 20, 60)
    # The partial output has another name.
    killed.signal(signal.SIGKILL)
    assert killed.wait(10).status == -signal.SIGKILL
    assert not out.exists()
    assert export(run, out, "csv").status == 0
    assert (out / "requests.csv").exists()


@needs_root
@pytest.mark.parametrize("form", ["csv", pytest.param("parquet", marks=needs_readers)])
def test_a_full_disk_is_reported_in_one_sentence(tmp_path, form):
    run = synthetic_run(tmp_path / "run", 0.2)
    with small_disk(tmp_path / "disk", "1m") as disk:
        ended = export(run, disk / "out", form)
        assert ended.status == 3
        assert "o space left on device" in ended.err
        assert ended.err.count("\n") == 1
        assert list(disk.iterdir()) == []
