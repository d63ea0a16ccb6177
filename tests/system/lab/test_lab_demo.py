# SPDX-License-Identifier: MIT
"""The demo from start to end on a small data set: the files it leaves, and that forktail's figures equal Redis' own."""

import json

import pytest

from harness import explain, ft
from lab_runs import Lab
from recorded import Recording

pytestmark = pytest.mark.quiet

# How far Redis' time of a fork may differ from the recorder's. Redis counts microseconds, and starts and stops around
# clone.
CLOCK_ERROR_NS = 200_000


def fork_within(spans, since_ns, until_ns):
    """The fork of the server's main thread in this time."""
    is_fork = (spans.owner == ft.FORK) & (spans.off_cpu == 0)
    return spans[is_fork & (spans.start_ns >= since_ns) & (spans.start_ns + spans.duration_ns <= until_ns)][0]


def waits_behind(spans, fork, until_ns):
    """Off-CPU time of the fork's thread directly after it, up to until_ns."""
    waits = spans[(spans.tid == fork.tid) & (spans.off_cpu != 0) & (spans.depth == 0)]
    behind = (waits.start_ns >= fork.start_ns + fork.duration_ns) & (waits.start_ns + waits.duration_ns <= until_ns)
    return int(waits.duration_ns[behind].sum())


@pytest.fixture(scope="module")
def demo():
    """A demo that has ended. A small data set and a long load: the snapshot must end before the rewrite begins on a
    busy machine too."""
    with Lab() as lab:
        lab.start_demo(seconds=12)
        lab.ends(0, 100)
        yield lab


@pytest.fixture(scope="module")
def about(demo):
    """What its run.json has."""
    return json.loads((demo.run / "run.json").read_text())


def test_the_demo_leaves_the_run_and_nothing_else(demo):
    demo.check_nothing_left()
    files = ["server.forktail", "load.forktail", "run.json", "report.html", "redis.log"]
    assert [name for name in files if not (demo.run / name).stat().st_size] == []
    assert " requests in " in demo.out
    assert demo.out.endswith(f"\nreport: {demo.run}/report.html\n")


def test_run_json_has_the_server_and_what_it_reported(about):
    assert about["versions"]["redis"][0] >= "6"
    assert (about["redis_config"]["appendonly"], about["redis_config"]["appendfsync"]) == ("yes", "everysec")
    assert about["used_memory_bytes"] > 90 << 20
    assert len(about["commands"]) == 4
    bgsave, rewrite = about["server_reports"]
    assert (bgsave["kind"], rewrite["kind"]) == ("bgsave", "bgrewriteaof")
    assert bgsave["rdb_last_cow_size"] > 0 and rewrite["aof_last_cow_size"] > 0


def test_the_explanation_names_what_redis_was_told_to_do(demo):
    # Requests delayed by the fork waited for more than a millisecond, however busy the machine is otherwise.
    explanation = explain(demo.run, "--slow", "1ms")
    assert explanation["requests"]["count"] > 100_000
    assert explanation["requests"]["errors"] == 0
    # The load's threads are traced too, by default.
    assert any(thread["client"] and thread["comm"] == "load-0" for thread in explanation["account"]["threads"])
    causes = {cause["cause"]: cause for cause in explanation["causes"]}
    for name in ("fork", "cow-copy"):
        assert causes[name]["time_ns"] > 0 and causes[name]["requests"] > 0, causes


def test_forks_lasted_as_long_as_redis_reports(demo, about):
    # Redis stops its clock in user space, so its time includes a CPU wait between clone's return and that. As many CPU
    # hogs as CPUs show it. Other time in between (interrupts, the first copy-on-write faults, waits too short for a
    # span) is in tallies, and on a busy machine takes up to a millisecond.
    spans = Recording(demo.run / "server.forktail").spans
    for report in about["server_reports"]:
        fork = fork_within(spans, report["asked_ns"], report["t_ns"])
        redis_ns = report["latest_fork_usec"] * 1000
        waited_ns = waits_behind(spans, fork, fork.start_ns + redis_ns + CLOCK_ERROR_NS)
        assert int(fork.duration_ns) + waited_ns == pytest.approx(redis_ns, rel=0.1, abs=1_000_000), (fork, waited_ns)
