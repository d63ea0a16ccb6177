# SPDX-License-Identifier: MIT
"""Data sets of real runs, and the jobs over them: Spark and explain agree, on a cluster too, and foreign or incomplete
files in the data set are reported and ignored.
"""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from forktail.failure import Failure
from forktail.programs import program
from forktail.servers import Server, find_server
from harness import BIN, TREE, Program, Recorder, explain, forktail, run_program

PYTHON = TREE / "build-spark/bin/python"

pytestmark = [
    pytest.mark.xdist_group("fleet"),  # the runs and Spark's start are for all tests
    pytest.mark.skipif(not shutil.which("java"), reason="no java (script/spark)"),
    pytest.mark.skipif(not (BIN / "forktail-parquet").exists(), reason="no forktail-parquet (script/python)"),
    pytest.mark.skipif(not (TREE / "build-spark/made").exists(), reason="no build-spark/ (script/spark)"),
]


class Spark:
    """A Python with Spark, until the end of its `with` block. It has the functions of spark_calls.py:
    spark.need(data, "requests"). printed: what the last call printed to standard error.
    """

    def __init__(self, log):
        self.log, self.printed = log, ""
        with log.open("w") as file:
            self._python = subprocess.Popen(
                [PYTHON, Path(__file__).with_name("spark_calls.py")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
            )  # fmt: skip

    def __getattr__(self, name):
        def call(*arguments):
            self._python.stdin.write(json.dumps([name, *arguments]) + "\n")
            self._python.stdin.flush()
            line = self._python.stdout.readline()
            assert line, self.log.read_text()
            answer = json.loads(line)
            self.printed = answer["printed"]
            if "failure" in answer:
                raise Failure(answer["failure"])
            return answer["returned"]

        return call

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._python.communicate(timeout=120)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with Spark(tmp_path_factory.mktemp("spark") / "log") as one:
        yield one


def make_run(path):
    """A server with some memory under load, with a snapshot."""
    path.mkdir()
    with Server("redis", "--enable-debug-command", "yes") as server:
        server.ask("DEBUG", "POPULATE", "400000", "key", "100")
        words = ["-o", path / "load.forktail", "--rate", 3000, "--duration", 2, "-r", 100000, "--ratio", "1:1"]
        with (
            Recorder(path / "server.forktail", "--pid", server.pid) as recorder,
            Program(program("forktail-load"), "-q", *server.load_words(), *words) as load,
        ):
            time.sleep(0.8)
            server.ask("BGSAVE")
            ended = load.wait()
            assert ended.status == 0, ended.err
            recorder.stop()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three runs."""
    directories = [tmp_path_factory.getbasetemp() / f"fleet-run{number}" for number in range(3)]
    for directory in directories:
        make_run(directory)
    return [str(directory) for directory in directories]


@pytest.fixture(scope="module")
def explanations(recorded):
    return [explain(run) for run in recorded]


def export(data, *runs, status=0):
    """Adds runs to a data set."""
    ended = forktail("export", *runs, "--to", "parquet", "--data-set", data)
    assert ended.status == status, ended.err
    return ended.err


@pytest.fixture(scope="module")
def data(recorded, tmp_path_factory):
    """A data set of the runs."""
    directory = str(tmp_path_factory.mktemp("fleet") / "data")
    export(directory, *recorded)
    return directory


@pytest.fixture(scope="module")
def sheets(spark, data):
    return spark.sheets(data)


@pytest.fixture
def copied(data, tmp_path):
    """A copy of the data set, to be changed."""
    return Path(shutil.copytree(data, tmp_path / "copied"))


def test_spark_and_explain_agree(spark, recorded, explanations, data, sheets):
    assert spark.differences(data, explanations, sheets) == []
    columns, rows = sheets["fork forks"]
    forks = [dict(zip(columns, row, strict=True)) for row in rows]
    assert sum(fork["forks"] for fork in forks) >= len(recorded)
    assert all(fork["rss_bytes"] > 40 << 20 for fork in forks)
    thp = re.search(r"\[(.*)\]", Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text())[1]
    runs = spark.runs(data)
    assert len(runs) == len(recorded)
    assert {(run["server_version"], run["thp"], run["kernel"]) for run in runs} == {
        (find_server("redis")[1], thp, os.uname().release)
    }


def test_a_run_is_there_once(recorded, data):
    def written():
        return {path: path.stat().st_mtime_ns for path in Path(data).rglob("*") if path.name != "_pending"}

    before = written()
    assert export(data, recorded[0], recorded[0] + "/").count("is already in") == 2
    assert written() == before
    assert list((Path(data) / "_pending").iterdir()) == []


def test_what_is_not_whole_is_named_and_left_out(spark, recorded, explanations, copied):
    places = sorted(copied.glob("date=*/host=*/run_id=*"))
    cut = places[0] / "parts.parquet"
    cut.write_bytes(cut.read_bytes()[:-20])
    (places[1] / "episodes.parquet").unlink()
    (places[2] / "notes.txt").write_text("mine")
    shutil.copy(places[2] / "parts.parquet", copied)
    (copied / "_pending" / "run.elsewhere.1.part").mkdir()
    found = spark.sheets(str(copied), ["causes", "latency"])
    for sentence in (
        f"{places[0]} is incomplete: its parts.parquet has no end; ignored",
        f"{places[1]} is incomplete: it has no episodes.parquet; ignored",
        f"{places[2]}/notes.txt is not part of the data set; ignored",
        f"{copied}/parts.parquet is not part of the data set; ignored",
    ):
        assert sentence in spark.printed
    whole = {run["run"] for run in spark.runs(str(copied)) if run["run_id"] == places[2].name[7:]}
    explained = [one for one in explanations if one["run"] in whole]
    assert len(explained) == 1
    assert spark.differences(str(copied), explained, found) == []
    printed = export(copied, recorded[0])
    assert f"{copied}/parts.parquet is not part of the data set" in printed
    assert f"{places[1]} is incomplete" in printed


def test_another_schema_is_refused(spark, recorded, copied):
    about = json.loads((copied / "_forktail.json").read_text())
    (copied / "_forktail.json").write_text(json.dumps({**about, "schema": 2}))
    with pytest.raises(Failure, match="has schema 2, and this forktail reads 1"):
        spark.need(str(copied))
    printed = export(copied, recorded[0], status=3)
    assert printed.count("\n") == 1
    assert "has schema 2, and this forktail writes 1" in printed


def test_a_foreign_directory_is_refused_and_not_touched(spark, recorded, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("mine")
    with pytest.raises(Failure, match="is not a forktail data set"):
        spark.need(str(foreign))
    export(foreign, recorded[0], status=3)
    assert [path.name for path in foreign.iterdir()] == ["letter.txt"]


def test_a_data_set_with_some_tables(spark, recorded, tmp_path):
    some = tmp_path / "some"
    assert forktail("export", recorded[0], "--data-set", some, "--tables", "parts,causes").status == 0
    files = sorted(path.name for path in some.glob("date=*/host=*/run_id=*/*"))
    assert files == ["causes.parquet", "parts.parquet", "runs.parquet"]
    assert forktail("export", recorded[1], "--data-set", some).status == 0  # with the tables that the data set has
    assert forktail("export", recorded[1], "--data-set", some, "--tables", "spans").status == 3
    with pytest.raises(Failure, match="has no table requests"):
        spark.need(str(some), "requests")


def test_the_command_writes_a_page_and_a_table(spark, recorded, explanations, data, tmp_path):
    out = tmp_path / "out"
    # Code of another user, which neither forktail nor Spark's workers run.
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for name in ("json", "forktail", "numpy", "pyspark", "sitecustomize"):
        (hostile / f"{name}.py").write_text(f"raise SystemExit('{name} of another user')\n")
    settings = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.sql.shuffle.partitions=2"]
    ended = forktail(
        "fleet", "episodes", "--data", data, "-o", out, *settings, cwd=hostile, env={"PYTHONPATH": str(hostile)},
        timeout=300,
    )  # fmt: skip
    assert ended.status == 0, ended.err
    page = (out / "episodes.html").read_text()
    assert f'href="file://{recorded[0]}"' in page
    assert re.findall(r"<script|src=|https?://", page) == []
    episodes = sum(len(one["episodes"]) for one in explanations)
    assert spark.count_rows(str(out / "episodes/episodes.parquet")) == min(100, episodes)


def test_the_command_without_java_says_so(data, tmp_path):
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "JAVA_HOME": None}
    ended = run_program(PYTHON, "-I", TREE / "python", "fleet", "causes", "--data", data, env=env)
    assert (ended.status, ended.err.count("\n")) == (3, 1)
    assert "default-jre-headless" in ended.err


def test_a_cluster_finds_the_same(data, sheets, tmp_path):
    with Spark(tmp_path / "log") as spark:
        spark.start_cluster(str(tmp_path))
        found = spark.sheets(data, ["causes", "latency", "changes", "episodes"])
        assert spark.executors() == 3  # two, and the driver
    assert found == {key: sheets[key] for key in found}


# Computations on Spark's results


def test_outliers_do_not_move_the_line(spark):
    points = [(gib << 30, gib * 9e6 * (1 + 0.02 * (i % 5 - 2))) for i, gib in enumerate(list(range(1, 41)) * 2)]
    points += [(gib << 30, gib * 9e7) for gib in (30, 33, 36, 39)]  # ten times as long
    _level, slope, spread = spark.fit(points)
    assert slope == pytest.approx(1, abs=0.05)
    assert spread < 0.1
    assert spark.fit(points[:2]) is None


def test_changes_are_found_on_their_day(spark):
    days = [f"2026-10-{day:02}" for day in range(1, 31)]
    level = [10**9 * (1 + 0.1 * ((day * 7) % 5 - 2)) for day in range(30)]
    changed = [int(value * (4 if day >= 17 else 1)) for day, value in enumerate(level)]
    found = spark.changes_of(days, changed)
    assert [change[0] for change in found] == ["2026-10-18"]
    assert found[0][3] < 0.001
    assert spark.changes_of(days, [int(value) for value in level]) == []
    assert spark.changes_of(days[:7], changed[14:21]) == []
    assert len(spark.significant([(1, 0.0001), (2, 0.04), (3, 0.9)])) == 1


def test_groups_are_distinguished(spark):
    old = {f"a{number}": 1000 + number for number in range(12)}
    new = {f"b{number}": 1500 + number for number in range(8)}
    rows = spark.compare({"6.1": old, "6.12": new, "6.18": {"c": 900}})
    assert [row[0] for row in rows] == ["6.1", "6.12", "6.18"]
    assert rows[1][2] == 1503
    assert rows[1][-1] < 0.001
    assert rows[2][-1] is None
    assert spark.holm([0.01, None, 0.04]) == [0.02, None, 0.04]
    assert spark.interval([1, 2, 3, 4, 5]) is None
    assert spark.interval([1, 2, 3, 4, 5, 6]) == [1, 6]  # 1 - 2 / 64 is 97 %, and no narrower interval has 95 %
