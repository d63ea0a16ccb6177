# SPDX-License-Identifier: MIT
"""How `forktail` starts its Python package: isolated from the user's Python, and with optional libraries, or one
sentence without them. Needs none of them.
"""

import os
import platform
import shutil
import signal
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from forktail.programs import program
from harness import TREE

PROGRAM = '#!/bin/sh\nprintf "%s\\n" "forktail-parquet $*" "$LD_LIBRARY_PATH"\n'
HOSTILE = 'open("{}", "a").write("ran\\n")\nraise SystemExit("code of another user")\n'

pytestmark = [
    pytest.mark.skipif(Path("/opt/forktail").exists(), reason="/opt/forktail exists, and forktail would use it"),
    *(
        pytest.mark.skipif(
            find_spec(name) is not None, reason=f"{sys.executable} has {name}, and forktail would use it"
        )
        for name in ("pyarrow", "duckdb", "pyspark")
    ),
]


def execute(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, **options)


class Installed:
    """forktail, copied to a separate directory, or it would find the tree's build-python/ and build-spark/."""

    def __init__(self, directory):
        self.directory, self.path = directory, directory / "path"
        self.program = directory / "a/b/bin/forktail"
        self.program.parent.mkdir(parents=True)
        self.path.mkdir()
        shutil.copy(program("forktail"), self.program)
        self.version = execute(self.program, "--version").stdout.split()[1]
        self.words = {
            "export": ["export", directory, "-o", directory / "x.parquet"],
            "sql": ["sql", directory, "SELECT 1"],
            "fleet": ["fleet", "causes", "--data", directory],
        }

    def add_package(self):
        """The package beside the program, as script/install and Debian's packages have it."""
        package = self.directory / "a/b/lib/forktail/python"
        return shutil.copytree(TREE / "python", package, ignore=shutil.ignore_patterns("__pycache__"))

    def add_wheel(self):
        """The wheel as the package installs it, beside the Python package."""
        file = self.add_package().parent / f"forktail-{self.version}-py3-none-linux_{platform.machine()}.whl"
        file.touch()
        return file

    def add_python(self, name, packages=None):
        """A Python of a virtual environment that has only the packages in the directory `packages`."""
        home = self.directory / f"venv-{name}"
        venv.create(home, symlinks=True)
        if packages:
            site = next(home.glob("lib/python3*/site-packages"))
            (site / "more.pth").write_text(f"{packages}\n")
        return self.add_program(name, f'#!/bin/sh\nexec {home}/bin/python3 "$@"\n')

    def add_program(self, name, text):
        """A program on PATH."""
        return write_program(self.path / name, text)

    def packages(self, name, version=None):
        """A directory with the wheel's content, for which pyarrow is empty and forktail-parquet prints how it was
        started."""
        where = self.directory / name
        (where / "pyarrow").mkdir(parents=True)
        (where / "pyarrow/__init__.py").touch()
        (where / "forktail").mkdir()
        write_program(where / "forktail/forktail-parquet", PROGRAM)
        about = where / f"forktail-{version or self.version}.dist-info/METADATA"
        about.parent.mkdir()
        about.write_text(f"Metadata-Version: 2.1\nName: forktail\nVersion: {version or self.version}\n")
        return where

    def run(self, command, **environment):
        own = {"PATH": str(self.path), "XDG_CACHE_HOME": str(self.directory / "cache")}
        return execute(self.program, *self.words[command], cwd=self.directory, env={**own, **environment})


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def installed(tmp_path):
    return Installed(tmp_path)


def check_missing(done, sentence):
    """Status 3, and one line with this sentence."""
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1), done.stderr
    assert sentence in done.stderr


def check_found(installed, done, packages):
    """The forktail-parquet of these packages was started, with their libraries."""
    directory = installed.directory
    words = f"forktail-parquet {directory} -o {directory}/x.parquet\n{packages}/pyarrow\n"
    assert (done.returncode, done.stdout) == (0, words), done.stderr


@pytest.mark.parametrize(
    ("command", "who", "missing", "extra"),
    [
        ("export", "forktail", "forktail-parquet", ""),
        ("sql", "forktail", "forktail-parquet", ""),
        ("fleet", "forktail fleet", "the Python package pyspark", "[fleet]"),
    ],
)
def test_without_the_wheel_the_commands_that_install_it_are_printed(installed, command, who, missing, extra):
    wheel = installed.add_wheel()
    check_missing(
        installed.run(command),
        f"{who}: cannot find {missing} for forktail {installed.version}. Install python3-venv, then run as root: "
        f"python3 -m venv /opt/forktail && /opt/forktail/bin/pip install '{wheel}{extra}'\n",
    )


def test_sql_without_duckdb(installed):
    chosen = installed.add_python("python3", installed.packages("found"))
    installed.add_program(
        "forktail-parquet", '#!/bin/sh\necho "$*" >&2\nwhile [ $# -gt 1 ]; do shift; done\nmkdir "$1"\n'
    )
    done = installed.run("sql", FORKTAIL_PYTHON=str(chosen), PATH=f"{installed.path}:/bin")
    exported, _, done.stderr = done.stderr.partition("\n")
    assert f"--to parquet -o {installed.directory}/cache/forktail/" in exported
    check_missing(done, "cannot find DuckDB's shell or Python package")


def test_in_the_source_tree_the_scripts_that_fetch_libraries_are_named(installed):
    why = "Run script/python, and build again, in forktail's source tree"
    check_missing(installed.run("export"), why)
    check_missing(installed.run("fleet"), "Run script/spark in forktail's source tree")


@pytest.mark.parametrize("command", ["export", "sql", "fleet"])
def test_a_chosen_python_that_does_not_exist(installed, command):
    why = "forktail: cannot run $FORKTAIL_PYTHON, which is /nonexistent/python3. Set it to the path of Python 3.11 or "
    check_missing(installed.run(command, FORKTAIL_PYTHON="/nonexistent/python3"), why + "later\n")


def test_a_python_with_the_wheel(installed):
    found = installed.packages("found")
    installed.add_python("python3", found)
    check_found(installed, installed.run("export"), found)


def test_libraries_of_the_user_come_second(installed):
    found = installed.packages("found")
    installed.add_python("python3", found)
    done = installed.run("export", LD_LIBRARY_PATH="/nowhere")
    assert done.stdout.splitlines()[1] == f"{found}/pyarrow:/nowhere"


def test_the_wheels_own_python_comes_before_python3(installed):
    found = installed.packages("found")
    installed.add_python("python3", installed.packages("other"))
    installed.add_python("forktail-python", found)
    check_found(installed, installed.run("export"), found)


def test_the_variable_comes_first_and_is_the_only_one(installed):
    found = installed.packages("found")
    installed.add_python("forktail-python", installed.packages("other"))
    mine, empty = installed.add_python("mine", found), installed.add_python("empty")
    check_found(installed, installed.run("export", FORKTAIL_PYTHON=str(mine)), found)
    wheel = installed.add_wheel()
    why = f"with $FORKTAIL_PYTHON, which is {empty}. Run: {empty} -m pip install '{wheel}'\n"
    check_missing(installed.run("export", FORKTAIL_PYTHON=str(empty)), why)


def test_a_wheel_of_another_version_is_not_used(installed):
    """Its numbers might differ from explain's."""
    installed.add_python("python3", installed.packages("other", "0.9.0"))
    check_missing(installed.run("export"), f"cannot find forktail-parquet for forktail {installed.version}")


@pytest.fixture
def hostile(installed):
    """A directory with modules of another user, which write to the file `ran` next to it."""
    directory = installed.packages("hostile")
    text = HOSTILE.format(installed.directory / "ran")
    for name in ("json", "contextlib", "sitecustomize", "usercustomize", "start", "forktail/__init__"):
        (directory / f"{name}.py").write_text(text)
    (directory / "home/.local/lib").mkdir(parents=True)
    return directory


COMMANDS = {
    "lab list": 0,
    "fleet --help": 0,
    "sql nowhere SELECT": 3,
    "export nowhere -o x.parquet": 3,
}


@pytest.mark.parametrize("packaged", [False, True], ids=["tree", "installed"])
def test_code_of_the_user_does_not_run(installed, hostile, packaged):
    """Variables, a virtual environment, and the working directory, which may belong to another user."""
    ran = installed.directory / "ran"
    if packaged:
        installed.add_package()
    active = installed.directory / "active"
    venv.create(active, symlinks=True)
    shutil.copytree(hostile / "forktail", next(active.glob("lib/python3*/site-packages")) / "forktail")
    variables = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE")
    environment = {
        **{name: str(hostile) for name in variables},
        "PYTHONSTARTUP": str(hostile / "start.py"), "PYTHONINSPECT": "1", "PYTHONPLATLIBDIR": "hostile",
        "VIRTUAL_ENV": str(active), "PATH": f"{active}/bin:{installed.path}", "HOME": str(hostile / "home"),
    }  # fmt: skip
    for words, status in COMMANDS.items():
        outcomes = []
        for env, where in (({"PATH": str(installed.path)}, installed.directory), (environment, hostile)):
            done = execute(installed.program, *words.split(), cwd=where, env=env, stdin=subprocess.DEVNULL)
            assert not ran.exists(), (words, env, done.stderr)
            outcomes.append((done.returncode, done.stdout, done.stderr))
        assert outcomes[0] == outcomes[1], words
        assert outcomes[0][0] == status, words
    # The same code does run where nothing prevents it, or this test would show nothing.
    done = execute(sys.executable, TREE / "python", "sql", "--help", env={"PYTHONPATH": str(hostile)})
    assert ran.exists(), done.stderr


def test_the_shell_sees_that_a_closed_pipe_ended_the_command(installed):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        words = [installed.program, "sql", "--help"]
        done = subprocess.run(words, stdout=closed, stderr=subprocess.PIPE, env={"PATH": str(installed.path)})
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_jobs_without_spark(installed):
    """As when a user calls Python directly."""
    words = [sys.executable, "-I", "-S", TREE / "python", "fleet", "causes", "--data", installed.directory]
    check_missing(
        execute(*words, env={"PATH": str(installed.path)}), "forktail fleet: cannot find the Python package pyspark"
    )
