# SPDX-License-Identifier: MIT
"""A load generator's log and a kernel log of the same requests at a real server: they are joined, and a stopped server
is named while the network has little of the time.
"""

import signal
import time

import pytest

from harness import needs_root
from real_run import MS, RealRun, await_stopped, check_parts, time_by_cause

pytestmark = [pytest.mark.quiet, needs_root]


def test_requests_of_a_load_that_the_servers_kernel_saw_too_while_the_server_was_stopped(serve, start_load, tmp_path):
    server = serve("redis", tcp=True)
    with RealRun(tmp_path / "run") as run:
        run.record(server.pid, options=["--requests=1/1"])
        load = start_load("-p", server.port, "-c", 4, "--rate", 2000, "--duration", "4s", "--arrival-times")
        load.under_way()
        server.send_signal(signal.SIGSTOP)
        await_stopped(server.pid)
        stop_ns = time.monotonic_ns()
        time.sleep(0.05)
        go_ns = time.monotonic_ns()
        server.send_signal(signal.SIGCONT)
        load.done()
        run.add_log(load)
        run.stop()
        explanation = run.explain("--requests", "--slow", "20ms")
    assert [one["source"] for one in explanation["loads"]] == ["load-generator"]
    requests = explanation["requests"]
    split = requests["network_split"]
    # Those sent before the recorder saw their connection's socket may be missing.
    assert split["known"] > requests["count"] * 95 // 100
    assert split["requests"] > 0
    check_parts(explanation)

    found = 0
    for one in explanation["slow_requests"]:
        due_ns, latency_ns, own = one["start_ns"], one["latency_ns"], one.get("network_split")
        if own and due_ns < go_ns < due_ns + latency_ns:
            found += 1
            at_server_ns = time_by_cause(one)["stopped"]
            assert at_server_ns >= (go_ns - max(due_ns, stop_ns)) * 9 // 10, one
            elsewhere_ns = own["to_server_ns"] + own["to_client_ns"] + own["unread_at_server_ns"]
            assert elsewhere_ns <= latency_ns - at_server_ns, one
    assert found > 0
    total_ns = sum(one["latency_ns"] for one in explanation["slow_requests"])
    assert split["to_server_ns"] + split["to_client_ns"] < total_ns
    assert explanation["causes"][0]["cause"] == "stopped"
    assert total_ns >= 20 * MS
