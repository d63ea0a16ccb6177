# SPDX-License-Identifier: MIT
"""How `forktail` starts its Python package: isolated from the user's Python, and with optional libraries, or one sentence
without them. Needs none of them.

    FORKTAIL=build/bin/forktail python3 tests/system/report/python_packages_test.py
"""
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv
from importlib.util import find_spec
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
FORKTAIL = os.environ.get("FORKTAIL", str(TREE / "build/bin/forktail"))
WELL_KNOWN = Path("/opt/forktail")
PROGRAM = '#!/bin/sh\nprintf "%s\\n" "forktail-parquet $*" "$LD_LIBRARY_PATH"\n'
HOSTILE = 'open("{}", "a").write("ran\\n")\nraise SystemExit("code of another user")\n'


class Packages(unittest.TestCase):
    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="forktail-python-packages-"))
        self.addCleanup(shutil.rmtree, self.directory)
        # Installed outside its tree, or it would find the tree's build-python/ and build-spark/.
        self.forktail = self.directory / "a/b/bin/forktail"
        self.forktail.parent.mkdir(parents=True)
        shutil.copy(FORKTAIL, self.forktail)
        self.path = self.directory / "path"
        self.path.mkdir()
        self.version = subprocess.run([FORKTAIL, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        self.commands = {"export": ["export", self.directory, "-o", self.directory / "x.parquet"],
                         "sql": ["sql", self.directory, "SELECT 1"],
                         "fleet": ["fleet", "causes", "--data", self.directory]}

    def install(self):
        """The package beside the program, as script/install and Debian's packages have it."""
        package = self.directory / "a/b/lib/forktail/python"
        shutil.copytree(TREE / "python", package, ignore=shutil.ignore_patterns("__pycache__"))
        return package

    def python(self, name, packages=None):
        """A Python of a virtual environment that has only the packages in the directory `packages`."""
        home = self.directory / f"venv-{name}"
        venv.create(home, symlinks=True)
        if packages:
            site = next(home.glob("lib/python3*/site-packages"))
            (site / "more.pth").write_text(f"{packages}\n")
        program = self.path / name
        program.write_text(f'#!/bin/sh\nexec {home}/bin/python3 "$@"\n')
        program.chmod(0o755)
        return program

    def packages(self, name, version=None):
        """A directory with the wheel's content, for which pyarrow is empty and forktail-parquet prints how it was started."""
        where = self.directory / name
        (where / "pyarrow").mkdir(parents=True)
        (where / "pyarrow/__init__.py").touch()
        program = where / "forktail/forktail-parquet"
        program.parent.mkdir()
        program.write_text(PROGRAM)
        program.chmod(0o755)
        about = where / f"forktail-{version or self.version}.dist-info/METADATA"
        about.parent.mkdir()
        about.write_text(f"Metadata-Version: 2.1\nName: forktail\nVersion: {version or self.version}\n")
        return where

    def wheel(self):
        """The wheel as the package installs it, beside the Python package."""
        file = self.install().parent / f"forktail-{self.version}-py3-none-linux_{platform.machine()}.whl"
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
        wheel = self.wheel()
        for command, missing, extra in (("export", "forktail-parquet", ""), ("sql", "forktail-parquet", ""),
                                        ("fleet", "the Python package pyspark", "[fleet]")):
            program = "forktail fleet" if command == "fleet" else "forktail"
            self.check_missing(self.run_with(command),
                               f"{program}: cannot find {missing} for forktail {self.version}. Install python3-venv, then run as root: "
                               f"python3 -m venv /opt/forktail && /opt/forktail/bin/pip install '{wheel}{extra}'\n")

    def test_sql_without_duckdb(self):
        self.python("python3", self.packages("found"))
        chosen = self.path / "python3"
        program = self.path / "forktail-parquet"
        program.write_text('#!/bin/sh\necho "$*" >&2\nwhile [ $# -gt 1 ]; do shift; done\nmkdir "$1"\n')
        program.chmod(0o755)
        done = self.run_with("sql", FORKTAIL_PYTHON=str(chosen), PATH=f"{self.path}:/bin")
        self.assertIn(f"--to parquet -o {self.directory}/cache/forktail/", done.stderr)
        done.stderr = done.stderr.split("\n", 1)[1]
        self.check_missing(done, "cannot find DuckDB's shell or Python package")

    def test_the_source_tree(self):
        self.check_missing(self.run_with("export"), "Run script/python, and build again, in forktail's source tree")
        self.check_missing(self.run_with("fleet"), "Run script/spark in forktail's source tree")

    def test_no_python(self):
        for command in self.commands:
            self.check_missing(self.run_with(command, FORKTAIL_PYTHON="/nonexistent/python3"),
                               "forktail: cannot run $FORKTAIL_PYTHON, which is /nonexistent/python3. Set it to the path of Python 3.11 or later\n")

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

    def test_code_of_the_user_does_not_run(self):
        """Variables, a virtual environment, and the working directory, which may belong to another user."""
        ran = self.directory / "ran"
        hostile = self.packages("hostile")
        for name in ("json", "forktail", "contextlib", "sitecustomize", "usercustomize", "start"):
            if name == "forktail":
                (hostile / "forktail/__init__.py").write_text(HOSTILE.format(ran))
            else:
                (hostile / f"{name}.py").write_text(HOSTILE.format(ran))
        (hostile / "home/.local/lib").mkdir(parents=True)
        active = self.directory / "active"
        venv.create(active, symlinks=True)
        site = next(active.glob("lib/python3*/site-packages"))
        shutil.copytree(hostile / "forktail", site / "forktail")
        expected = {}
        environment = {"PYTHONPATH": str(hostile), "PYTHONHOME": str(hostile), "PYTHONSTARTUP": str(hostile / "start.py"),
                       "PYTHONUSERBASE": str(hostile), "PYTHONINSPECT": "1", "PYTHONPLATLIBDIR": "hostile",
                       "VIRTUAL_ENV": str(active), "PATH": f"{active}/bin:{self.path}", "HOME": str(hostile / "home")}
        for installed in (False, True):
            if installed:
                self.install()
            for words in (["lab", "list"], ["fleet", "--help"], ["sql", "nowhere", "SELECT 1"], ["export", "nowhere", "-o", "x.parquet"]):
                for variables, where in (({"PATH": str(self.path)}, self.directory), (environment, hostile)):
                    done = subprocess.run([self.forktail, *words], capture_output=True, text=True, cwd=where, env=variables,
                                          stdin=subprocess.DEVNULL)
                    self.assertFalse(ran.exists(), (words, variables, done.stderr))
                    outcome = (done.returncode, done.stdout, done.stderr)
                    self.assertEqual(outcome, expected.setdefault((installed, *words), outcome), (words, variables))
        self.assertEqual([e[0] for e in expected.values()], 2 * [0, 0, 3, 3])
        # The same code does run where nothing prevents it, or this test would show nothing.
        done = subprocess.run([sys.executable, TREE / "python", "sql", "--help"], capture_output=True, env={"PYTHONPATH": str(hostile)})
        self.assertTrue(ran.exists(), done.stderr)

    def test_signals_and_a_closed_pipe(self):
        """The shell sees how the command ended."""
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([self.forktail, "sql", "--help"], stdout=writer, stderr=subprocess.PIPE, env={"PATH": str(self.path)})
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (-13, b""))

    def test_jobs_without_spark(self):
        """As when a user calls Python directly."""
        done = subprocess.run([sys.executable, "-I", "-S", TREE / "python", "fleet", "causes", "--data", self.directory], capture_output=True,
                              text=True, env={"PATH": str(self.path)})
        self.check_missing(done, "forktail fleet: cannot find the Python package pyspark")


if __name__ == "__main__":
    if WELL_KNOWN.exists():
        print(f"SKIPPED: {WELL_KNOWN} exists, and forktail would use it")
        sys.exit(77)
    for module in ("pyarrow", "duckdb", "pyspark"):
        if find_spec(module):
            print(f"SKIPPED: {sys.executable} has {module}, and forktail would use it")
            sys.exit(77)
    unittest.main()
