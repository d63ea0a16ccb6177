# SPDX-License-Identifier: MIT
"""From a real server under real load to its explanation: stalls made by the test, one of each kind, are reported with
their names, times and lengths, and every account adds up.
"""

import json
import signal
import time
from types import SimpleNamespace

import pytest

from forktail.servers import Server
from harness import eventually, evidence, explain, forktail, ft, needs_root, needs_two_cpus
from real_run import MS, RealRun, check_accounts, check_parts, during, episode_at, info, stop_for

pytestmark = [pytest.mark.quiet, needs_root]


@pytest.fixture
def run(tmp_path):
    with RealRun(tmp_path / "run") as run:
        yield run


def length(interval):
    return interval[1] - interval[0]


def episode_of(explanation, interval):
    """The episode that contains the middle of an interval."""
    return episode_at(explanation, sum(interval) // 2)


@pytest.fixture(scope="module")
def stalls(tmp_path_factory):
    """A run with several stalls, and when they were. all: its explanation with all requests; slow: with those of 5
    ms."""
    path = tmp_path_factory.mktemp("stalls") / "run"
    with Server("redis", "--enable-debug-command", "yes", "--appendonly", "yes") as server, RealRun(path) as run:
        server.ask("DEBUG", "POPULATE", "2000000", "key", "100")
        run.record(server.pid)
        run.load(
            "-s", server.socket, "--rate", 2000, "--duration", 120, "-c", 20, "-r", 2_000_000, "-d", 200, "--ratio",
            "1:4",
        )  # fmt: skip
        time.sleep(1.5)
        assert server.ask("BGSAVE") == ["Background saving started"]
        forked_ns = time.monotonic_ns()
        assert eventually(lambda: info(server, "rdb_bgsave_in_progress") == "0", 60)
        redis_fork_ns = int(info(server, "latest_fork_usec")) * 1000
        redis_cow = int(info(server, "rdb_last_cow_size"))
        time.sleep(0.5)
        stopped = stop_for(server.pid, 0.2)
        time.sleep(1)
        asleep = during(lambda: server.ask("DEBUG", "SLEEP", "0.15"))
        time.sleep(1)
        script = "local n = 0 for i = 1, 2e7 do n = n + i % 7 end return n"
        busy = during(lambda: server.ask("EVAL", script, "0"))
        time.sleep(0.5)
        recording = run.stop()
    return SimpleNamespace(
        path=path, pid=server.pid, recording=recording, forked_ns=forked_ns, redis_fork_ns=redis_fork_ns,
        redis_cow=redis_cow,
        stopped=stopped, asleep=asleep, busy=busy, all=explain(path, "--requests", "--slow", "1us"),
        slow=explain(path, "--slow", "5ms"),
    )  # fmt: skip


def serving_ns(explanation, cause):
    """A cause's time in the serving thread's account."""
    (serving,) = (one for one in explanation["account"]["threads"] if one["serving"])
    return serving["by_cause"].get(cause, 0)


def check_most_direct(explanation, cause):
    """The most direct time of a cause in one request is that of one due before the cause began, because one is due
    every half a millisecond. A load generator that waits for a CPU at the start takes its part of that request."""
    parts = (part for one in explanation["slow_requests"] for part in one["parts"] if part["cause"] == cause)
    most = max(part["direct_ns"] for part in parts)
    own = serving_ns(explanation, cause)
    assert own - 10 * MS <= most <= own + 1 * MS


def test_every_account_adds_up(stalls):
    check_accounts(stalls.all)
    check_parts(stalls.all)
    requests = stalls.all["requests"]
    assert stalls.all["slow"]["count"] == requests["count"]
    # Requests due when the load was ended may not have been sent.
    assert requests["errors"] == requests["by_status"].get("unsent", 0)
    # Runs that the kernel skipped, and samples for which a busy machine had no time, are not an error here.
    assert {one["source"] for one in stalls.all["drops"]["intervals"]} <= {"missed", "unwinding"}


def test_a_stop_is_named_with_its_length(stalls):
    episode = episode_of(stalls.slow, stalls.stopped)
    assert episode["causes"][0]["cause"] == "stopped"
    assert "the server was stopped (SIGSTOP) for" in evidence(episode)
    assert serving_ns(stalls.all, "stopped") == pytest.approx(length(stalls.stopped), rel=0.1)
    check_most_direct(stalls.all, "stopped")


def test_a_sleep_is_named_with_its_length(stalls):
    episode = episode_of(stalls.slow, stalls.asleep)
    assert episode["causes"][0]["cause"] == "sleep"
    assert "blocked in" in evidence(episode)
    # The kernel sleeps a little longer than requested, never shorter.
    assert 150 * MS <= serving_ns(stalls.all, "sleep") <= length(stalls.asleep)
    check_most_direct(stalls.all, "sleep")


def test_a_slow_command_is_the_servers_own_code(stalls):
    episode = episode_of(stalls.slow, stalls.busy)
    # On a busy machine it may have waited for a CPU as well. The time it ran was its own code.
    shares = {one["cause"]: one["share"] for one in episode["causes"]}
    assert shares.get("server-busy", 0) + shares.get("run-queue", 0) > 0.9
    assert shares["server-busy"] > 0.1
    assert "in one event-loop iteration of" in evidence(episode)


def test_a_fork_is_as_long_as_redis_reports(stalls):
    spans = stalls.recording.spans
    spans = spans[spans.tid == stalls.pid]
    forks = spans[(spans.owner == ft.FORK) & (spans.off_cpu == 0) & (spans.start_ns < stalls.forked_ns)]
    fork = forks[forks.start_ns.argmax()]
    start_ns, fork_ns = int(fork.start_ns), int(fork.duration_ns)
    # Redis reads its clock before and after. A CPU wait in between is in its figure and not in the fork's.
    near = (spans.start_ns + spans.duration_ns + MS > start_ns) & (spans.start_ns < start_ns + fork_ns + MS)
    waited_ns = int(spans.runnable_ns[near & (spans.off_cpu != 0) & (spans.depth == 0)].sum())
    assert fork_ns * 0.9 <= stalls.redis_fork_ns <= (fork_ns + waited_ns) * 1.1 + 0.3 * MS

    times = {one["cause"]: one["time_ns"] for one in stalls.all["causes"]}
    assert times["fork"] > 0
    assert times["cow-copy"] > 0
    # A request due at its beginning waited for all of it.
    slow = explain(stalls.path, "--slow", f"{fork_ns // 2}ns")
    assert "as BGSAVE started snapshot child" in evidence(episode_at(slow, start_ns + fork_ns // 2))


def test_stalls_of_another_client_are_found_without_a_request_log(run, serve, background):
    server = serve("redis", "--enable-debug-command", "yes")
    run.record(server.pid)
    client = background("redis-benchmark", "-s", server.socket, "-c", 10, "-n", 100_000_000, "-q", "-t", "get")
    time.sleep(1)
    asleep = during(lambda: server.ask("DEBUG", "SLEEP", "0.15"))
    time.sleep(0.5)
    client.signal(signal.SIGTERM)
    client.wait(10)
    run.stop()

    explanation = run.explain()
    assert explanation["requests"]["from"] == "iterations"
    assert explanation["slow"]["threshold_ns"] == 1_000_000
    check_accounts(explanation)
    episode = episode_of(explanation, asleep)
    assert episode["causes"][0]["cause"] == "sleep"
    assert episode["worst_ns"] == pytest.approx(length(asleep), rel=0.1)
    assert "No request log: stalls are found from" in run.text("--all")


@needs_two_cpus
def test_iterations_show_that_a_server_was_woken_late(run, serve, background):
    server = serve("redis", cpus=0)
    # Real-time priority, so that the server, which is woken for every request, has to wait.
    spin = "while :; do i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; sleep 0.02; done"
    background("taskset", "-c", 0, "chrt", "-f", 1, "sh", "-c", spin)
    run.record(server.pid)
    words = ["-s", server.socket, "-c", 1, "-n", 2000, "-q", "-t", "get"]
    background("taskset", "-c", 1, "redis-benchmark", *words).wait(60)
    run.stop()

    explanation = run.explain("--slow", "1ms")
    assert explanation["requests"]["from"] == "iterations"
    assert explanation["slow"]["count"] > 0
    assert explanation["causes"][0]["cause"] == "run-queue"


def test_a_server_that_dies_under_load_leaves_a_run_that_can_be_explained(run, serve):
    server = serve("redis")
    run.record(server.pid)
    run.load("-s", server.socket, "--rate", 1000, "--duration", 3, "-c", 5)
    time.sleep(1.5)
    server.send_signal(signal.SIGKILL)
    run.client.wait(60)
    run.recorder.interrupt(60)

    explanation = run.explain("--requests")
    check_parts(explanation)
    check_accounts(explanation)
    assert explanation["requests"]["errors"] > 0
    assert explanation["requests"]["count"] > 1000


def test_a_snapshot_is_one_thing_with_the_servers_own_figures(stalls):
    (one,) = stalls.all["snapshots"]
    assert (one["command"], one["ended"], one["server_pid"]) == ("BGSAVE", True, stalls.pid)
    assert one["start_ns"] <= stalls.forked_ns + 1 * MS
    # Redis' clock is around the call; ours is between the kernel's events.
    assert 0.8 * stalls.redis_fork_ns < one["fork_ns"] < 1.05 * stalls.redis_fork_ns + 1 * MS
    # Redis reports what is private in the child, which has its own dirty pages too.
    copied = one["copied_bytes"] + 4096 * one["child_copies"]
    assert abs(copied - stalls.redis_cow) < max(0.05 * stalls.redis_cow, 2e6)
    assert one["requests"] > 100 and one["slowed"] > 0 and one["writes"] > 10
    assert one["copies"] / one["writes"] == pytest.approx(one["pages_per_write"])
    assert one["rss_bytes"] < one["peak_bytes"] < 1.5 * one["rss_bytes"]
    assert one["available_bytes"] > 0 and one["written_bytes"] > 50_000_000
    assert one["latency_ns"]["max"] >= one["fork_ns"] / 2
    outside = stalls.all["outside_snapshots"]
    assert outside["requests"] + one["requests"] == stalls.all["requests"]["count"]


def test_snapshots_are_printed_tabled_and_charted(stalls):
    text = " ".join(forktail("explain", stalls.path, "--snapshots").out.split())
    assert text.startswith("BGSAVE at +1.") and "pages per write" in text and "were left" in text
    (row,) = json.loads(forktail("sql", stalls.path, "--json", "-c", "select * from snapshots").out)
    assert row["command"] == "BGSAVE" and row["copies"] == stalls.all["snapshots"][0]["copies"]
    (row,) = json.loads(
        forktail(
            "sql", stalls.path, "--json", "-c",
            "select max(value) as most from metrics where metric = 'target.snapshot_copied'",
        ).out
    )  # fmt: skip
    assert row["most"] == stalls.all["snapshots"][0]["copied_bytes"]


def test_of_a_part_of_the_recording_a_snapshot_says_how_much_is_explained(stalls):
    (whole,) = stalls.all["snapshots"]
    assert whole["explained_ns"] == whole["duration_ns"]

    def part(option):
        return json.loads(forktail("explain", stalls.path, "--json", option).out)["snapshots"]

    (late,) = part(f"--since=+{whole['t_s'] + whole['duration_ns'] / 2e9:.3f}s")
    assert late["fork_ns"] is None and late["peak_bytes"] is None
    assert 0.3 * whole["duration_ns"] < late["explained_ns"] < 0.7 * whole["duration_ns"]
    assert late["copies"] < whole["copies"] and late["requests"] < whole["requests"]
    assert "fork not in the part explained" in late["text"] and "explained of" in late["text"]
    assert part(f"--until=+{whole['t_s'] - 0.3:.3f}s") == []
