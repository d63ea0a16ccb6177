# SPDX-License-Identifier: MIT
"""What only forktail's wheel and its dependencies bring: forktail-parquet with the Arrow libraries of pyarrow, DuckDB,
Spark.

Without them a command raises one sentence with the command that installs them. The wheel also installs the program
forktail-python, by which forktail finds the Python that has them (cli/python.h).
"""

import os
import shutil
import sys
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

from forktail import __version__
from forktail.failure import Failure
from forktail.programs import find_program

_VENV = "/opt/forktail"  # where an administrator installs the wheel for all users


def missing(what: str, extra: str = "", script: str = "script/python") -> Failure:
    """`what` is missing, and how to install it: from the package's wheel with its extra "[...]", or with the tree's
    script.
    """
    chosen = os.environ.get("FORKTAIL_PYTHON")
    wheel = next(Path(__file__).resolve().parents[2].glob(f"forktail-{__version__}-*.whl"), None)
    install = f"install '{wheel}{extra}'"
    if not wheel:
        how = f"Run {script} in forktail's source tree"
    elif chosen:
        how = f"Run: {chosen} -m pip {install}"
    else:
        how = f"Install python3-venv, then run as root: python3 -m venv {_VENV} && {_VENV}/bin/pip {install}"
    where = f" with $FORKTAIL_PYTHON, which is {chosen}" if chosen else ""
    return Failure(f"cannot find {what} for forktail {__version__}{where}. {how}")


def parquet_program() -> tuple[str, dict[str, str]]:
    """The path of forktail-parquet and its environment: the one beside forktail or on PATH, else the wheel's."""
    environment = dict(os.environ)
    if built := find_program("forktail-parquet") or shutil.which("forktail-parquet"):
        return str(built), environment
    arrow = find_spec("pyarrow")
    for wheel in distributions(name="forktail"):
        program = str(wheel.locate_file("forktail/forktail-parquet"))
        if arrow and arrow.submodule_search_locations and wheel.version == __version__ and os.access(program, os.X_OK):
            libraries = [arrow.submodule_search_locations[0], environment.get("LD_LIBRARY_PATH")]
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
            return program, environment
    raise missing("forktail-parquet", script="script/python, and build again,")


def main(words: list[str]) -> int:
    """Becomes forktail-parquet."""
    program, environment = parquet_program()
    os.execve(program, [program, *words], environment)


def python() -> None:
    """Becomes this Python: the program forktail-python."""
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
