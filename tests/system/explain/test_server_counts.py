# SPDX-License-Identifier: MIT
"""What a real server counted of its commands and threads, as explain shows it beside the requests of a load and the
kernel's account.
"""

from pathlib import Path

import pytest

from harness import Recorder, Recording, explain, forktail, load, needs_root
from server_counts import calls

pytestmark = [pytest.mark.quiet, needs_root]

CONNECTIONS = 6
SECOND = 1_000_000_000


@pytest.fixture(scope="module", params=["redis", "redis8", "valkey"])
def counted(request, module_serve, tmp_path_factory):
    """A server that was under load, the run, and its account."""
    redis = module_serve(request.param, "--io-threads", "3")
    run = tmp_path_factory.mktemp("run")
    words = ["-c", CONNECTIONS, "--ratio", "1:1", "--rate", 500, "--duration", 4, "-q", "-o", run / "load.forktail"]
    with Recorder(run / "server.forktail", "--pid", redis.pid, "--requests=1/1") as recorder:
        loaded = load("-s", redis.socket, *words)
        assert loaded.status == 0, loaded.out + loaded.err
        recorder.stop()
    return redis, run, explain(run)["account"]


@pytest.mark.parametrize("op", ["GET", "SET"])
def test_what_a_server_counted_of_its_commands_is_beside_the_requests(counted, op):
    redis, run, account = counted
    assert account["server_commands"]["ns"] > SECOND
    commands = {one["name"]: one for one in account["server_commands"]["commands"]}
    in_all = calls(redis, op.lower())
    command = commands[op.lower()]
    requests = command["requests"]
    # The first reading of the counters was before the load, or some requests after its begin.
    assert in_all * 9 // 10 < command["calls"] <= in_all
    # Those on their way during a reading; on a busy machine several on a connection.
    assert abs(command["difference"]) <= requests // 100
    assert command["calls"] - command["difference"] == requests
    assert requests <= Recording(run / "load.forktail").with_op(op)
    assert (command["rejected"], command["failed"]) == (0, 0)
    assert 1000 <= command["p50_ns"] <= command["p99_ns"]
    assert command["served"] > requests * 9 // 10
    assert command["service_ns"] > command["mean_ns"]
    assert "requests" not in commands.get("info", {})


def test_what_a_server_counted_of_its_threads_is_beside_the_kernels_account(counted):
    redis, _, account = counted
    main, *others = account["server_threads"]["threads"]
    assert (main["name"], main["tid"]) == ("main", redis.pid)
    # The kernel counts context switches, and not what a hypervisor took away.
    assert main["kernel_cpu_ns"] // 2 < main["cpu_ns"] < main["kernel_cpu_ns"] * 2
    assert main["cpu_difference_ns"] == main["cpu_ns"] - main["kernel_cpu_ns"]
    assert [t["name"] for t in others] == (["io_thd_1", "io_thd_2"] if redis.kind == "redis8" else [])
    for thread in others:
        assert Path(f"/proc/{redis.pid}/task/{thread['tid']}/comm").read_text() == thread["name"] + "\n"
        assert thread["kernel_cpu_ns"] > 0
        assert "cpu_ns" not in thread
    if others:
        assert sum(t["connections"] for t in others) >= CONNECTIONS
        assert sum(t["reads"] for t in others) > 500


def test_both_are_printed(counted):
    redis, run, _ = counted
    text = forktail("explain", "--all", run).out
    assert "Commands as the server counted them" in text
    assert "Threads as the server counted them" in text
    # The event loop that the server counts is its main thread's.
    assert ("By its own count" in text) == (redis.kind != "redis")
    if redis.kind != "redis":
        of_thread = text.partition("By its own count")[0].partition(f"({redis.pid}): ")[2]
        assert of_thread
        assert "Server thread" not in of_thread
