# SPDX-License-Identifier: MIT
"""What TCP did, in a network namespace whose only link goes down for a while: the kernel sends segments again, and
explain says so. A run in which it does not has nothing of it.
"""

import time

import pytest

from harness import eventually, needs_root
from processes import Program
from processes import run as run_program
from real_run import MS, RealRun

pytestmark = [pytest.mark.quiet, needs_root]
PORT = 7831
OUTAGE_S = 0.3


@pytest.fixture
def inside(background):
    """Words before a program that run it in a network namespace of the test."""
    keeper = background("unshare", "--net", "sleep", "infinity")
    words = ["nsenter", f"--net=/proc/{keeper.pid}/ns/net"]
    assert eventually(lambda: run_program(*words, "ip", "link", "set", "lo", "up").status == 0)
    assert eventually(lambda: "UP" in run_program(*words, "ip", "-br", "link", "show", "lo").out)
    return words


@pytest.fixture
def server(inside, tmp_path, background):
    words = ["--port", PORT, "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path]
    redis: Program = background(*inside, "redis-server", *words)
    ping = [*inside, "redis-cli", "-p", PORT, "ping"]
    assert eventually(lambda: "PONG" in run_program(*ping).out)
    return redis


def recorded(path, inside, server, outage):
    with RealRun(path) as run:
        run.record(server.pid)
        words = ["-p", PORT, "-c", 4, "--rate", 500, "--duration", 3, "-r", 100, "--ratio", "0:1"]
        run.load(*words, prefix=inside)
        if outage:
            time.sleep(1)
            for state in ("down", "up"):
                assert run_program(*inside, "ip", "link", "set", "lo", state).status == 0
                time.sleep(OUTAGE_S if state == "down" else 0)
        run.finish()
        return run.explain(), run.text()


def test_retransmitted_segments_explain_the_network(inside, server, tmp_path):
    explained, text = recorded(tmp_path / "run", inside, server, outage=True)
    tcp = explained["requests"]["tcp"]
    assert tcp["retransmitted"] >= 1
    assert 0 < tcp["first_after_ns"] <= explained["requests"]["latency_ns"]["max"]
    assert OUTAGE_S * 1000 * MS / 2 < tcp["retransmission_ns"] <= tcp["network_ns"]
    assert "retransmitted" in text.split(":")[0], text


def test_nothing_is_said_of_tcp_that_only_did_its_work(inside, server, tmp_path):
    explained, text = recorded(tmp_path / "run", inside, server, outage=False)
    assert "tcp" not in explained["requests"]
    assert "retransmitted" not in text
    assert "dropped" not in text.replace("No events were dropped", "")
