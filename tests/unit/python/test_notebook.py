# SPDX-License-Identifier: MIT
"""contrib/notebooks/latency.ipynb runs from top to bottom on two recorded runs, and its answers agree with explain."""

import json
import os
import subprocess

import pytest

from conftest import TREE

NOTEBOOK = TREE / "contrib/notebooks/latency.ipynb"
PYTHON = TREE / "build-python/bin/python"
RUNS = {
    "RUN": TREE / "tests/compat/1.0-arm64/run",
    "OTHER": TREE / "tests/compat/0.1/run",
}

# Executes the cells in one namespace, as Jupyter does, then compares what they computed.
EXECUTE = """
import json, sys
sys.path.insert(0, sys.argv[1])
names = {}
for cell in json.load(open(sys.argv[2]))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
run, plt = names["run"], names["plt"]
assert len(plt.get_fignums()) == 3 and all(plt.figure(n).axes for n in plt.get_fignums())
slow = sum(len(ms) for _, ms in names["largest_causes"](run).values())
assert slow == run.explanation["slow"]["count"], slow
whole, first, second, both = names["without"]
causes = {row["cause"]: row["what_if"]["p99.9"] for row in run.explanation["causes"]}
assert whole == run.latency_ns["p99.9"] / 1e6
# Of server-busy explain's figure is at most 0.1 % and 100 ns low.
for ms, cause in zip((first, second), names["two"]):
    assert -0.001 <= ms - causes[cause] / 1e6 <= 0.001 * ms + 0.001, (ms, cause, causes[cause])
assert both <= min(first, second)
assert len(names["tails"]) == len(set(run.requests["connection"]))
"""


def test_the_notebook_runs_and_agrees_with_explain():
    needed = "import numpy, matplotlib, pyarrow"
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", needed], capture_output=True).returncode:
        pytest.skip("needs Arrow and Matplotlib in build-python (script/python)")
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        **{name: str(path) for name, path in RUNS.items()},
    }
    words = [PYTHON, "-I", "-c", EXECUTE, TREE / "python", NOTEBOOK]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "p99.9 without both: " in done.stdout and "connections: median" in done.stdout


def test_the_notebook_has_no_output():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
