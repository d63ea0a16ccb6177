# SPDX-License-Identifier: MIT
"""Runs forktail-parquet with the libraries of pyarrow. Also the program forktail-python, by which forktail finds this Python."""
import importlib.util
import os
import sys
from pathlib import Path

PROGRAM = str(Path(__file__).resolve().with_name("forktail-parquet"))


def parquet():
    arrow = importlib.util.find_spec("pyarrow").submodule_search_locations[0]
    os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [arrow, os.environ.get("LD_LIBRARY_PATH")]))
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])


def python():
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


if __name__ == "__main__":
    parquet()
