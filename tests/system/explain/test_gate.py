# SPDX-License-Identifier: MIT
"""docs/guides/ci.md exactly as written: its script measures a real server, its limits are checked, and the commands
of its two pipelines without an action are run. Then the gate's report on the run is compared with explain's and the
load generator's.
"""

import json
import os
import re

import pytest

from harness import BIN, TREE, needs, needs_root, run_program

pytestmark = [needs_root, needs("redis-server"), needs("redis-cli")]

PAGE = (TREE / "docs/guides/ci.md").read_text()


def blocks(language):
    """The page's blocks in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


[LIMITS], [SCRIPT], PIPELINES = blocks("toml"), blocks("sh"), blocks("yaml")
# The commands of the pipelines that belong to this project.
COMMANDS = [
    re.findall(r"(?:sh ci/|forktail gate ).*", pipeline) for pipeline in PIPELINES if "forktail gate" in pipeline
]


class Project:
    def __init__(self, directory):
        self.directory = directory
        (directory / "ci").mkdir()
        (directory / "ci/limits.toml").write_text(LIMITS)
        (directory / "ci/latency.sh").write_text(SCRIPT)

    def run(self, *words):
        """A command in the project, with forktail in PATH."""
        return run_program(*words, cwd=self.directory, env={"PATH": f"{BIN}:{os.environ['PATH']}"})

    def gate(self, *limits):
        return self.run("forktail", "gate", "run", *limits)

    def explain(self, *words):
        return self.run("forktail", "explain", "run", *words)

    def read(self, name):
        return (self.directory / name).read_text()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that has measured its server as the page says."""
    project = Project(tmp_path_factory.mktemp("project"))
    measured = project.run("sh", "-c", COMMANDS[0][0])
    assert measured.status == 0, measured.err
    return project


def test_both_pipelines_have_the_same_two_commands():
    assert len(COMMANDS) == 2
    assert COMMANDS[0] == COMMANDS[1]
    assert len(COMMANDS[0]) == 2


def test_the_pipelines_check_reports_every_limit_of_the_page(project):
    gated = project.run("sh", "-c", COMMANDS[0][1])
    assert gated.status in (0, 1), gated.err  # the speed of this machine is not tested
    limits = len(LIMITS.splitlines()) - 3  # slow, and the list's two brackets
    junit = project.read("gate.xml")
    assert f'tests="{limits}"' in junit
    assert 'errors="0"' in junit
    assert "NONE" not in gated.out
    assert "snapshots don't stall: fork max is " in gated.out


def test_the_gates_figures_are_explains_and_the_load_generators(project):
    explain = json.loads(project.explain("--json", "--requests", "--slow", "100us").out)
    load = json.loads(project.read("run/load.json"))["runs"][0]
    parts = [part for request in explain["slow_requests"] for part in request["parts"]]
    longest = max((p["direct_ns"] + p["queued_ns"] for p in parts if p["cause"] == "fork"), default=0)
    assert longest > 0  # the script makes the server fork
    get, put, total = load["operations"]["GET"], load["operations"]["SET"], load["total"]
    figures = {
        "p99.9": explain["requests"]["latency_ns"]["p99.9"],
        "p50": total["latency_ns"]["p50"],
        "p95": total["latency_ns"]["p95"],
        "min": total["latency_ns"]["min"],
        "GET.p99.9": get["latency_ns"]["p99.9"],
        "set.p99": put["latency_ns"]["p99"],
        "SET.max": put["latency_ns"]["max"],
        "GET.requests": get["requests"],
        "requests": explain["requests"]["count"],
        "episodes": len(explain["episodes"]),
        "fork.max": longest,
    }
    limits = [f"{name} >= 0" if name.endswith(("requests", "episodes")) else f"{name} < 1000s" for name in figures]
    gate = json.loads(project.gate("--slow", "100us", "--json", *limits).out)
    assert dict(zip(figures, [limit["value"] for limit in gate["limits"]], strict=True)) == figures
    assert all(limit["kept"] is True for limit in gate["limits"])


def test_the_reason_of_a_broken_limit_comes_first(project):
    answer = json.loads(project.explain("--json").out)["answer"]
    assert answer
    assert json.loads(project.gate("p50 < 100s", "--json").out)["answer"] == answer
    broken = project.gate("p50 < 0.001us", "errors = 0")
    assert broken.status == 1
    first, second, third, *_ = broken.out.splitlines()
    assert first == answer
    assert second.startswith("FAIL p50 is ")
    assert third.startswith("ok   errors is 0")


def test_limits_that_hold_are_listed(project):
    kept = project.gate("p99.9 < 100s", "errors = 0", "requests = 12000")
    assert kept.status == 0
    assert kept.out.startswith("ok   p99.9 is ")
    assert "All 3 limits are met.\n" in kept.out


@pytest.mark.parametrize(
    ("limits", "status", "out", "err"),
    [
        (["errors = 0", "p50 5ms"], 2, "", 'the limit "p50 5ms" has no comparison'),
        (["NIX.p99 < 1s", "errors = 0"], 4, "NONE NIX p99 is unknown", ""),
        (["p99 no worse than BASE"], 2, "", "no base run is given"),
        ([], 2, "", "no limit to check"),
        (["no worse than BASE", "--base", "run"], 0, "ok   p50 is ", ""),
        (["p99 < 100s", "--base", "nowhere"], 3, "", "no run at nowhere"),
        (["p99 < 100s", "--junit", "no/such/place.xml"], 3, "", "cannot write no/such/place.xml"),
    ],
)
def test_exit_statuses_of_the_gate(project, limits, status, out, err):
    ended = project.gate(*limits)
    assert (ended.status, ended.out[: len(out)]) == (status, out)
    assert err in ended.err
    assert (ended.out == "") == (err != "")  # either a report or an error


def test_a_run_that_does_not_exist_is_an_error_in_the_builds_list_of_tests(project):
    assert project.run("forktail", "gate", "nowhere", "p99 < 1s", "--junit", "none.xml").status == 3
    assert '<error message="no run at nowhere' in project.read("none.xml")


def test_explain_fails_if_a_limit_is_broken_and_prints_the_same(project):
    plain = project.explain()
    kept = project.explain("--fail-if", "p99>100s", "--fail-if", "errors>0")
    broken = project.explain("--fail-if", "p50>0.001us", "--fail-if", "errors>0")
    assert (plain.status, kept.status, broken.status) == (0, 0, 1)
    assert kept.err == ""
    assert broken.out == plain.out
    assert broken.err.startswith("forktail: p50 is ")
    assert broken.err.count("\n") == 1


@pytest.mark.parametrize(("limit", "status"), [("p50", 2), ("p50 no worse than BASE", 2), ("NIX.p50>1ms", 4)])
def test_exit_statuses_of_explain_with_a_limit_that_cannot_be_checked(project, limit, status):
    assert project.explain("--fail-if", limit).status == status
