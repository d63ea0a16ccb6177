# SPDX-License-Identifier: MIT
"""How `forktail` finds Python packages: `export` to Parquet, `sql` and `fleet` with and without them. Needs none of them.

    FORKTAIL=build/bin/forktail python3 tests/system/report/python_packages_test.py
"""
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
FORKTAIL = os.environ.get("FORKTAIL", str(TREE / "build/bin/forktail"))
WELL_KNOWN = Path("/opt/forktail")
PROGRAM = '#!/bin/sh\nprintf "%s\\n" "forktail-parquet $*" "$LD_LIBRARY_PATH"\n'


class Packages(unittest.TestCase):
    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="forktail-python-packages-"))
        self.addCleanup(shutil.rmtree, self.directory)
        # Outside its tree, or it would find the tree's build-python/ and build-spark/.
        self.forktail = self.directory / "a/b/bin/forktail"
        self.forktail.parent.mkdir(parents=True)
        shutil.copy(FORKTAIL, self.forktail)
        self.path = self.directory / "path"
        self.path.mkdir()
        self.version = subprocess.run([FORKTAIL, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        self.commands = {"export": ["export", self.directory, "-o", self.directory / "x.parquet"],
                         "sql": ["sql", self.directory, "SELECT 1"],
                         "fleet": ["fleet", "causes", "--data", self.directory]}

    def python(self, name, packages=""):
        """A Python without packages but those in the directory `packages`."""
        program = self.path / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} -S "$@"\n')
        program.chmod(0o755)
        return program

    def packages(self, name, version=None):
        """A directory with the wheel's content, for which pyarrow is empty and forktail-parquet prints how it was started."""
        where = self.directory / name
        (where / "pyarrow").mkdir(parents=True)
        (where / "pyarrow/__init__.py").touch()
        shutil.copytree(TREE / "cli/wheel/forktail_parquet", where / "forktail_parquet")
        program = where / "forktail_parquet/forktail-parquet"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        about = where / f"forktail-{version or self.version}.dist-info/METADATA"
        about.parent.mkdir()
        about.write_text(f"Metadata-Version: 2.1\nName: forktail\nVersion: {version or self.version}\n")
        return where

    def wheel(self):
        """The wheel as the package installs it."""
        file = self.directory / f"a/b/lib/forktail/forktail-{self.version}-py3-none-linux_{platform.machine()}.whl"
        file.parent.mkdir(parents=True)
        file.touch()
        return file

    def run_with(self, command, **environment):
        return subprocess.run([self.forktail, *self.commands[command]], capture_output=True, text=True, cwd=self.directory,
                              env={"PATH": str(self.path), "XDG_CACHE_HOME": str(self.directory / "cache"), **environment})

    def check_missing(self, done, sentence):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(sentence, done.stderr)

    def check_found(self, done, packages):
        self.assertEqual(done.returncode, 0, done.stderr)
        words, libraries = done.stdout.splitlines()
        self.assertEqual(words, f"forktail-parquet {self.directory} -o {self.directory}/x.parquet")
        self.assertEqual(libraries, f"{packages}/pyarrow")

    def test_installed_without_the_wheel(self):
        self.python("python3")
        wheel = self.wheel()
        for command, missing, extra in (("export", "forktail-parquet", ""), ("sql", "forktail-parquet", ""),
                                        ("fleet", "the Python packages pyspark and forktail_fleet", "[fleet]")):
            self.check_missing(self.run_with(command),
                               f"forktail: cannot find {missing} for forktail {self.version}. Install python3-venv, then run as root: "
                               f"python3 -m venv /opt/forktail && /opt/forktail/bin/pip install '{wheel}{extra}'\n")

    def test_sql_without_duckdb(self):
        self.python("python3", self.packages("found"))
        done = self.run_with("sql")
        self.assertIn(f"--to parquet -o {self.directory}/cache", done.stdout)
        done.stdout = ""
        self.check_missing(done, "cannot find DuckDB's shell or Python package")

    def test_the_source_tree(self):
        self.python("python3")
        self.check_missing(self.run_with("export"), "Run script/python, and build again, in forktail's source tree")
        self.check_missing(self.run_with("fleet"), "Run script/spark in forktail's source tree")

    def test_no_python(self):
        for command in self.commands:
            self.check_missing(self.run_with(command), "cannot find ")

    def test_a_python_with_the_wheel(self):
        found = self.packages("found")
        self.python("python3", found)
        self.check_found(self.run_with("export"), found)

    def test_libraries_of_the_user_come_second(self):
        found = self.packages("found")
        self.python("python3", found)
        done = self.run_with("export", LD_LIBRARY_PATH="/nowhere")
        self.assertEqual(done.stdout.splitlines()[1], f"{found}/pyarrow:/nowhere")

    def test_the_wheels_own_python_comes_before_python3(self):
        other, found = self.packages("other"), self.packages("found")
        self.python("python3", other)
        self.python("forktail-python", found)
        self.check_found(self.run_with("export"), found)

    def test_the_variable_comes_first_and_is_the_only_one(self):
        other, found = self.packages("other"), self.packages("found")
        self.python("forktail-python", other)
        mine, empty = self.python("mine", found), self.python("empty")
        self.check_found(self.run_with("export", FORKTAIL_PYTHON=str(mine)), found)
        wheel = self.wheel()
        self.check_missing(self.run_with("export", FORKTAIL_PYTHON=str(empty)),
                           f"with $FORKTAIL_PYTHON, which is {empty}. Run: {empty} -m pip install '{wheel}'\n")

    def test_the_wheel_of_another_version(self):
        """Its numbers might differ from explain's."""
        self.python("python3", self.packages("other", "0.9.0"))
        self.check_missing(self.run_with("export"), f"cannot find forktail-parquet for forktail {self.version}")

    def test_modules_in_the_working_directory(self):
        """A directory with a run may belong to another user."""
        self.packages(".")
        self.python("python3")
        self.check_missing(self.run_with("export"), "cannot find forktail-parquet")

    def test_jobs_without_spark(self):
        """As when a user calls Python directly."""
        stub = self.path / "java"
        stub.write_text("#!/bin/sh\n")
        stub.chmod(0o755)
        done = subprocess.run([sys.executable, "-S", "-m", "forktail_fleet", "causes", "--data", self.directory], capture_output=True,
                              text=True, env={"PATH": str(self.path), "PYTHONPATH": str(TREE / "analysis/fleet")})
        self.check_missing(done, "forktail fleet: cannot find Spark. Install forktail's wheel with its extra fleet, or run script/spark")


if __name__ == "__main__":
    if WELL_KNOWN.exists():
        print(f"SKIPPED: {WELL_KNOWN} exists, and forktail would use it")
        sys.exit(77)
    unittest.main()
