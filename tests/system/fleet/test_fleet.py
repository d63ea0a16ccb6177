# SPDX-License-Identifier: MIT
"""Data sets of real runs, and the jobs over them: Spark and explain agree, on a cluster too, and foreign or incomplete files in
the data set are reported and ignored.

    FORKTAIL=build/bin/forktail build-spark/bin/python -m unittest tests/system/fleet/test_fleet.py

Exit status 77, with the reason: Spark, Java or forktail-parquet is missing.
"""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "python"
sys.path[:0] = [str(HERE), str(PACKAGE)]
FORKTAIL = os.environ.get("FORKTAIL", str(PACKAGE.parent / "build/bin/forktail"))


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


if not shutil.which("java"):
    skip("there is no java (default-jre-headless)")
if not Path(FORKTAIL).with_name("forktail-parquet").exists():
    skip("forktail-parquet was built without Arrow (script/python)")
try:
    import pyspark  # noqa: F401
    import ruptures  # noqa: F401
except ImportError:
    skip("there is no build-spark/ (script/spark)")

from agree import SMALL, differences, explained, export, sheets_of  # noqa: E402
from cluster import Cluster  # noqa: E402
from forktail.failure import Failure  # noqa: E402
from forktail.fleet.data_set import DataSet  # noqa: E402
from forktail.fleet.jobs.changes import changes_of, significant  # noqa: E402
from forktail.fleet.jobs.fork import fit  # noqa: E402
from forktail.fleet.jobs.regressions import compare, holm, interval  # noqa: E402
from forktail.fleet.spark import session  # noqa: E402

RUNS = 3


def make_run(path):
    """A server with some memory under load, with a snapshot."""
    path.mkdir()
    with tempfile.TemporaryDirectory() as work:
        socket = work + "/redis.sock"
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--dir", work, "--save", "",
                                   "--enable-debug-command", "yes"], stdout=subprocess.DEVNULL)
        try:
            cli = ["redis-cli", "-s", socket]
            while subprocess.run([*cli, "PING"], capture_output=True).stdout != b"PONG\n":
                time.sleep(0.05)
            subprocess.run([*cli, "DEBUG", "POPULATE", "400000", "key", "100"], check=True, capture_output=True)
            recorder = subprocess.Popen([FORKTAIL, "record", "--pid", str(server.pid), "-o", str(path / "server.forktail")],
                                        stderr=subprocess.PIPE, text=True)
            recorder.stderr.readline()  # it records now
            load = subprocess.Popen([FORKTAIL, "load", "-q", "-s", socket, "-o", str(path / "load.forktail"), "--rate", "3000",
                                     "--duration", "2", "-r", "100000", "--ratio", "1:1"])
            time.sleep(0.8)
            subprocess.run([*cli, "BGSAVE"], check=True, capture_output=True)
            if load.wait(60):
                raise RuntimeError("the load failed")
            recorder.terminate()
            recorder.communicate(timeout=60)
        finally:
            server.terminate()
            server.wait(30)


def forktail(*argv):
    done = subprocess.run([FORKTAIL, *argv], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = Path(tempfile.mkdtemp(prefix="forktail-fleet-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.temp)
        cls.runs = [str(cls.temp / f"run{n}") for n in range(RUNS)]
        for run in cls.runs:
            make_run(Path(run))
        cls.data = str(cls.temp / "data")
        export(FORKTAIL, cls.data, cls.runs)
        cls.explanations = explained(FORKTAIL, cls.runs)
        cls.spark = session("test", "local[2]", SMALL)
        cls.sheets = sheets_of(cls.spark, cls.data)

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def copy(self, name):
        data = self.temp / name
        shutil.copytree(self.data, data)
        self.addCleanup(shutil.rmtree, data)
        return data, sorted(data.glob("date=*/host=*/run_id=*"))

    def test_1_spark_and_explain_agree(self):
        self.assertEqual(differences(self.spark, self.data, self.explanations, self.sheets), [])
        columns, rows = self.sheets[("fork", "forks")]
        self.assertGreaterEqual(sum(row[columns.index("forks")] for row in rows), RUNS)
        self.assertTrue(all(row[columns.index("rss_bytes")] > 40 << 20 for row in rows))
        runs = DataSet(self.spark, self.data).need().table("runs").collect()
        version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split("v=")[1].split()[0]
        thp = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().split("[")[1].split("]")[0]
        self.assertEqual({(r.server_version, r.thp, r.kernel) for r in runs}, {(version, thp, os.uname().release)})

    def test_2_a_run_is_there_once(self):
        before = {p: p.stat().st_mtime_ns for p in Path(self.data).rglob("*") if p.name != "_pending"}
        status, _, said = forktail("export", self.runs[0], self.runs[0] + "/", "--to", "parquet", "--data-set", self.data)
        self.assertEqual((status, said.count("is already in")), (0, 2), said)
        self.assertEqual({p: p.stat().st_mtime_ns for p in Path(self.data).rglob("*") if p.name != "_pending"}, before)
        self.assertEqual(list((Path(self.data) / "_pending").iterdir()), [])

    def test_3_what_is_not_whole_is_named_and_left_out(self):
        data, places = self.copy("broken")
        cut = places[0] / "parts.parquet"
        cut.write_bytes(cut.read_bytes()[:-20])
        (places[1] / "episodes.parquet").unlink()
        (places[2] / "notes.txt").write_text("mine")
        (data / "parts.parquet").write_bytes((places[2] / "parts.parquet").read_bytes())
        (data / "_pending" / "run.elsewhere.1.part").mkdir()
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            found = sheets_of(self.spark, str(data), ["causes", "latency"])
        for sentence in (f"{places[0]} is incomplete: its parts.parquet has no end; ignored",
                         f"{places[1]} is incomplete: it has no episodes.parquet; ignored",
                         f"{places[2]}/notes.txt is not part of the data set; ignored",
                         f"{data}/parts.parquet is not part of the data set; ignored"):
            self.assertIn(sentence, said.getvalue())
        whole = [t for t in self.explanations if t["run"] in {r.run for r in DataSet(self.spark, self.data).need().table("runs")
                                                      .where(f"run_id = '{places[2].name[7:]}'").collect()}]
        self.assertEqual(len(whole), 1)
        self.assertEqual(differences_quiet(self.spark, str(data), whole, found), [])
        status, _, sentences = forktail("export", self.runs[0], "--to", "parquet", "--data-set", str(data))
        self.assertEqual(status, 0)
        self.assertIn(f"{data}/parts.parquet is not part of the data set", sentences)
        self.assertIn(f"{places[1]} is incomplete", sentences)

    def test_4_another_schema_is_refused(self):
        data, _ = self.copy("other")
        about = json.loads((data / "_forktail.json").read_text())
        about["schema"] = 2
        (data / "_forktail.json").write_text(json.dumps(about))
        with self.assertRaisesRegex(Failure, "has schema 2, and this forktail reads 1"):
            DataSet(self.spark, str(data))
        status, _, said = forktail("export", self.runs[0], "--to", "parquet", "--data-set", str(data))
        self.assertEqual((status, said.count("\n")), (3, 1), said)
        self.assertIn("has schema 2, and this forktail writes 1", said)
        foreign = self.temp / "foreign"
        foreign.mkdir()
        (foreign / "letter.txt").write_text("mine")
        with self.assertRaisesRegex(Failure, "is not a forktail data set"):
            DataSet(self.spark, str(foreign))
        self.assertEqual(forktail("export", self.runs[0], "--to", "parquet", "--data-set", str(foreign))[0], 3)
        self.assertEqual(os.listdir(foreign), ["letter.txt"])

    def test_5_some_tables(self):
        data = str(self.temp / "some")
        self.assertEqual(forktail("export", self.runs[0], "--data-set", data, "--tables", "parts,causes")[0], 0)
        self.assertEqual(sorted(p.name for p in Path(data).glob("date=*/host=*/run_id=*/*")),
                         ["causes.parquet", "parts.parquet", "runs.parquet"])
        self.assertEqual(forktail("export", self.runs[1], "--data-set", data)[0], 0)  # with the tables that the data set has
        self.assertEqual(forktail("export", self.runs[1], "--data-set", data, "--tables", "spans")[0], 3)
        with self.assertRaisesRegex(Failure, "has no table requests"):
            DataSet(self.spark, data).need("requests")

    def test_6_the_command(self):
        out = self.temp / "out"
        # Code of another user, which neither forktail nor Spark's workers run.
        hostile = self.temp / "hostile"
        hostile.mkdir()
        for name in ("json", "forktail", "numpy", "pyspark", "sitecustomize"):
            (hostile / f"{name}.py").write_text(f"raise SystemExit('{name} of another user')\n")
        done = subprocess.run([FORKTAIL, "fleet", "episodes", "--data", self.data, "-o", str(out), "--conf",
                               "spark.driver.host=127.0.0.1", "--conf", "spark.sql.shuffle.partitions=2"],
                              capture_output=True, text=True, cwd=hostile, env={**os.environ, "PYTHONPATH": str(hostile)})
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (out / "episodes.html").read_text()
        self.assertIn(f'href="file://{self.runs[0]}"', page)
        self.assertNotRegex(page, r"<script|src=|https?://")
        rows = self.spark.read.parquet(str(out / "episodes" / "episodes.parquet")).count()
        self.assertEqual(rows, min(100, sum(len(t["episodes"]) for t in self.explanations)))
        bare = {"PATH": str(self.temp), "HOME": str(self.temp)}
        done = subprocess.run([sys.executable, "-I", PACKAGE, "fleet", "causes", "--data", self.data], capture_output=True, text=True,
                              env=bare)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1))
        self.assertIn("default-jre-headless", done.stderr)

    def test_7_a_cluster_finds_the_same(self):
        """The last test, because a process has one Spark session at a time."""
        work = self.temp / "cluster"
        work.mkdir()
        jobs = ["causes", "latency", "changes", "episodes"]
        type(self).spark.stop()
        cluster = Cluster(work)
        try:
            type(self).spark = session("test", cluster.url, {**SMALL, "spark.executor.memory": "512m", "spark.cores.max": "2"})
            executors = self.spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos
            found = sheets_of(self.spark, self.data, jobs)
            self.assertEqual(len(executors()), 3)  # two, and the driver
            for key, sheet in found.items():
                self.assertEqual(sheet, self.sheets[key], key)
        finally:
            self.spark.stop()
            cluster.stop()


def differences_quiet(spark, data, explanations, sheets):
    with contextlib.redirect_stderr(io.StringIO()):
        return differences(spark, data, explanations, sheets)


class Judgement(unittest.TestCase):
    """Computations on Spark's results."""

    def test_outliers_do_not_move_the_line(self):
        points = [(gib << 30, gib * 9_000_000 * (1 + 0.02 * (i % 5 - 2))) for i, gib in enumerate(list(range(1, 41)) * 2)]
        points += [(gib << 30, gib * 90_000_000) for gib in (30, 33, 36, 39)]  # ten times as long
        level, slope, spread = fit(points)
        self.assertAlmostEqual(slope, 1, delta=0.05)
        self.assertLess(spread, 0.1)
        self.assertIsNone(fit(points[:2]))

    def test_changes_are_found_on_their_day(self):
        days = [f"2026-10-{d:02}" for d in range(1, 31)]
        level = [10**9 * (1 + 0.1 * ((d * 7) % 5 - 2)) for d in range(30)]
        changed = [int(v * (4 if d >= 17 else 1)) for d, v in enumerate(level)]
        self.assertEqual([(c[0]) for c in changes_of(days, changed)], ["2026-10-18"])
        self.assertLess(changes_of(days, changed)[0][3], 0.001)
        self.assertEqual(changes_of(days, [int(v) for v in level]), [])
        self.assertEqual(changes_of(days[:7], changed[14:21]), [])
        self.assertEqual(len(significant([(1, 0.0001), (2, 0.04), (3, 0.9)])), 1)

    def test_groups_are_distinguished(self):
        old = {f"a{i}": 1000 + i for i in range(12)}
        new = {f"b{i}": 1500 + i for i in range(8)}
        rows = compare({"6.1": old, "6.12": new, "6.18": {"c": 900}})
        self.assertEqual([r[0] for r in rows], ["6.1", "6.12", "6.18"])
        self.assertEqual(rows[1][2], 1503)
        self.assertLess(rows[1][-1], 0.001)
        self.assertIsNone(rows[2][-1])
        self.assertEqual(holm([0.01, None, 0.04]), [0.02, None, 0.04])
        self.assertIsNone(interval([1, 2, 3, 4, 5]))
        self.assertEqual(interval([1, 2, 3, 4, 5, 6]), (1, 6))  # 1 - 2 / 64 is 97 %, and no narrower interval has 95 %


if __name__ == "__main__":
    unittest.main()
