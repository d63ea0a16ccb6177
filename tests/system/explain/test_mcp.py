# SPDX-License-Identifier: MIT
"""forktail mcp, as an agent uses it: a client of the mcp package, and hostile arguments.

The client runs in the Python that has the package (script/python), because the tests' own has none.
"""

import json
import os
import subprocess
import sys

import pytest

from harness import BIN, TREE, forktail

PYTHON = TREE / "build-python/bin/python3"
RUN = TREE / "tests/compat/0.1/run"

CLIENT = """
import asyncio, json, sys
from mcp import StdioServerParameters
from mcp.client.client import Client

async def main(calls, words):
    env = {"HOME": "/nowhere", "XDG_CACHE_HOME": words[-1]}
    server = StdioServerParameters(command=words[0], args=words[1:], env=env)
    answers = []
    async with Client(server) as client:
        tools = [{"name": t.name, "reads": t.annotations.read_only_hint} for t in (await client.list_tools()).tools]
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            answers.append([result.is_error, "".join(part.text for part in result.content)])
    print(json.dumps([tools, answers]))

asyncio.run(main(json.load(sys.stdin), sys.argv[1:]))
"""


def has_mcp():
    return PYTHON.exists() and not subprocess.run([PYTHON, "-c", "import mcp.client.client"], check=False).returncode


needs_mcp = pytest.mark.skipif(not has_mcp(), reason="no Python package mcp: run script/python")


@pytest.fixture
def agent(tmp_path):
    """agent(directories, [(tool, arguments), ...], timeout): the tools, and (is an error, text) of each call."""

    def call(directories, calls, timeout="20s"):
        cache = tmp_path / "cache"
        words = [BIN / "forktail", "mcp", "--timeout", timeout, *directories]
        if cache not in directories:
            cache.mkdir(exist_ok=True)
            words.append(cache)  # also where tables are stored: CLIENT's last word
        ended = subprocess.run(
            [PYTHON, "-c", CLIENT, *map(str, words)], input=json.dumps(calls), capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return call


@needs_mcp
def test_an_agent_finds_cause_evidence_and_remedy(agent):
    tools, [runs, explained, cause, episode, rows, request, gate, doctor, snapshots, forecast] = agent(
        [RUN.parent],
        [
            ("runs", {}),
            ("explain", {"run": "run"}),
            ("causes", {"cause": "sleep", "run": str(RUN)}),
            ("episode", {"run": "run"}),
            ("sql", {"run": "run", "query": "select request, latency_ns from slow order by 2 desc limit 1"}),
            ("request", {"run": "run", "id": 0}),
            ("gate", {"run": "run", "limits": ["p99.9 < 1ms", "sleep.max < 1ms"]}),
            ("doctor", {}),
            ("snapshots", {"run": "run"}),
            ("forecast", {"port": 1}),
        ],
    )
    assert {one["name"] for one in tools} == {
        "runs", "explain", "episode", "request", "snapshots", "causes", "gate", "sql", "forecast", "doctor"
    }  # fmt: skip
    assert all(one["reads"] for one in tools)
    assert json.loads(runs[1]) == {"runs": [str(RUN)], "complete": True}
    assert explained == [False, forktail("explain", RUN, "--features").out]
    assert json.loads(explained[1])["verdict"]["causes"][0] == "sleep"
    assert "blocked in clock_nanosleep() for 20.1 ms" in cause[1]
    assert "Find the client or module that asked for it" in cause[1] and "task state" not in cause[1]
    assert episode == [False, forktail("explain", RUN, "--episode=1", env={"COLUMNS": "120", "LC_ALL": "C.UTF-8"}).out]
    assert not rows[0] and json.loads(rows[1])["rows"][0]["latency_ns"] > 20_000_000, rows
    assert request[0] and "0" in request[1]  # not a slow one
    assert not json.loads(gate[1])["kept"] and not gate[0]
    assert json.loads(doctor[1])["features"]
    assert not snapshots[0] and snapshots[1].startswith("BGSAVE at +0.802 s: fork 1.73 ms; copied ")
    assert forecast[0] and ("127.0.0.1:1: " in forecast[1] or "redis-py" in forecast[1])


@needs_mcp
def test_hostile_arguments_get_a_sentence(agent, tmp_path):
    inside = tmp_path / "inside"
    (inside / "linked").mkdir(parents=True)
    (inside / "run").symlink_to(RUN)  # out of what is served
    (inside / "linked/server.forktail").symlink_to(RUN / "server.forktail")
    (inside / "pipe").mkdir()
    os.mkfifo(inside / "pipe/server.forktail")
    (inside / "junk").mkdir()
    (inside / "junk/server.forktail").write_bytes(b"\x1b[2Jforktail" * 100)
    (inside / "good").mkdir()
    for file in RUN.iterdir():
        (inside / "good" / file.name).write_bytes(file.read_bytes())
    written = tmp_path / "written"
    endless = "select count(*) from range(1000000000000)"
    cases = [
        ("explain", "run", str(RUN), "is not a run below"),
        ("explain", "run", "../../etc", "is not a run below"),
        ("explain", "run", "run", "is not a run below"),
        ("explain", "run", "a\0b", "is not a run below"),
        ("explain", "run", "linked", "is a link to a file outside"),
        ("explain", "run", "pipe", "is not a regular file"),
        ("explain", "run", "junk", "junk"),
        ("explain", "run", f"--json-to={written}", "is not a run below"),
        ("explain", "slow", f"p99 --json-to={written}", "--slow"),
        ("episode", "number", 10**6, "episode"),
        ("causes", "cause", "../../../etc/passwd", "unknown cause"),
        ("causes", "cause", "nothing", "unknown cause"),
        ("gate", "limits", [f"--junit={written}"], "junit"),
        ("gate", "limits", ["x" * 100_000], "more than 20,000 bytes"),
        ("sql", "query", f"copy requests to '{written}'", "needs one SELECT"),
        ("sql", "query", "select 1; drop table requests", "needs one SELECT"),
        ("sql", "query", "select * from read_text('/etc/passwd')", "disabled by configuration"),
        ("sql", "query", f"select * from glob('{tmp_path}/*')", "disabled by configuration"),
        ("sql", "query", "select repeat('x', 3000) from requests", "larger than 200,000 bytes"),
        ("sql", "query", "select string_agg(repeat('x', 1000000)) from requests", "Out of Memory"),
    ]
    slow = [("sql", "query", endless, "took longer than 3 s")]

    def ask(some, limit):
        return agent([inside], [(tool, {"run": "good", name: value}) for tool, name, value, _ in some], limit)[1]

    answers = ask(cases, "30s") + ask(slow, "3s")
    wrong = [
        (case[:3], text)
        for case, (is_error, text) in zip(cases + slow, answers, strict=True)
        if not is_error or case[3] not in text or "\n" in text or "\x1b" in text or len(text) > 1000
    ]
    assert wrong == []
    assert not written.exists()


@needs_mcp
def test_a_result_has_at_most_a_thousand_rows_and_says_so(agent):
    _, [many, few] = agent(
        [RUN], [("sql", {"run": str(RUN), "query": f"select 1 a from range({n})"}) for n in (100_000, 10)]
    )
    assert len(json.loads(many[1])["rows"]) == 1000 and not json.loads(many[1])["complete"]
    assert len(json.loads(few[1])["rows"]) == 10 and json.loads(few[1])["complete"]


def test_without_the_package_one_sentence_says_how_to_install_it():
    ended = forktail("mcp", RUN, env={"FORKTAIL_PYTHON": sys.executable})
    assert ended.status == 3 and ended.err.count("\n") == 1
    assert "cannot find the Python package mcp, version 2" in ended.err and "script/python" in ended.err


def test_a_directory_that_does_not_exist_is_refused(tmp_path):
    ended = forktail("mcp", tmp_path / "none")
    assert ended.status == 3 and "none" in ended.err
