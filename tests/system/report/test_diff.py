# SPDX-License-Identifier: MIT
"""`forktail diff` on real runs of a real server: what differs, what changed, and why. Times are not tested, only that
they are reported.
"""

import json
import shutil

import pytest

from forktail.servers import Server
from harness import explain, forktail, load, needs_root
from real_run import RealRun

pytestmark = [pytest.mark.quiet, needs_root]


def record_run(path, keys, rate):
    """A short run of a server with this many keys, which takes a snapshot during it."""
    with Server("redis") as redis, RealRun(path) as run:
        assert load("-q", *redis.load_words(), "--fill", keys, "-d", 100).status == 0
        run.record(redis.pid)
        run.load(*redis.load_words(), "--rate", rate, "--duration", 3, "-c", 8, "-r", keys)
        assert "Background" in redis.ask("BGSAVE")[0]
        run.finish()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A directory with the runs a and b that differ, `server` without a load's log, and without `none`."""
    runs = tmp_path_factory.mktemp("runs")
    record_run(runs / "a", 1000, 2000)
    record_run(runs / "b", 600_000, 1000)
    (runs / "server").mkdir()
    shutil.copy(runs / "a/server.forktail", runs / "server")
    return runs


@pytest.fixture
def diff(runs):
    """diff(*words): `forktail diff` in that directory."""
    return lambda *words: forktail("diff", *words, cwd=runs)


def test_two_runs_that_differ(diff, runs):
    ended = diff("a", "b", "--json", "--junit", "diff.xml", "--html", "diff.html")
    assert ended.status == 0, ended.err  # one pair alone fails nothing
    found = json.loads(ended.out)
    assert found["verdict"] == "advisory"
    assert 0 < found["fork_longest"]["a"] < found["fork_longest"]["b"]
    assert found["rss"]["change"] > 30e6
    assert found["throughput"]["b"] < found["throughput"]["a"]
    differs = json.dumps(found["differs"])
    assert '"rate"' in differs
    assert "kernel" not in differs
    assert "<skipped" in (runs / "diff.xml").read_text()
    assert "</html>" in (runs / "diff.html").read_text()
    # The same percentiles as explain's.
    assert found["a"]["runs"][0]["p99.9_ns"] == explain(runs / "a")["requests"]["latency_ns"]["p99.9"]


def test_two_runs_that_differ_as_text_and_as_markdown(diff):
    text, markdown = diff("a", "b").out, diff("a", "b", "--markdown").out
    assert text.startswith("advisory: only one pair of runs")
    assert "load: rate" in text
    assert "| p99.9 |" in markdown
    assert markdown.startswith("**forktail diff: advisory**")
    assert diff("a", "and", "b").out == text


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["a", "a"], 2, "on both sides"),
        (["a", "none"], 3, " does not exist"),
        (["a"], 2, "two runs are needed"),
        (["a", "server"], 3, "no answered requests"),
        (["a", "b", "--slow", "p99"], 2, "a duration"),
        (["a", "b", "--allow", "much"], 2, "a percentage"),
        (["a", "b", "--alike", "a"], 2, "needs more to measure"),
        (["a", "b", "--junit", "no/such/file.xml"], 3, "file.xml"),
        (["a", "b", "--html", "no/such/page.html"], 3, "page.html"),
    ],
)
def test_runs_that_cannot_be_compared(diff, words, status, message):
    ended = diff(*words)
    assert (ended.status, ended.out) == (status, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
