# SPDX-License-Identifier: MIT
"""Load threads that never sleep generate the same load as others, in every way of sending, and do not sleep."""

import re
import signal
from pathlib import Path

import pytest

from harness import eventually, ft, needs_two_cpus
from server_counts import commands_run

pytestmark = needs_two_cpus


def sleeps(pid):
    """How often the load thread of a process gave up its CPU to wait."""
    (task,) = (task for task in Path(f"/proc/{pid}/task").iterdir() if (task / "comm").read_text() == "load-0\n")
    return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text())[1])


@pytest.mark.quiet  # counts how often a thread sleeps
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "sleeping"])
def test_a_busy_thread_does_not_sleep_between_requests_nor_while_it_waits_for_answers(redis, start_load, busy):
    run = start_load("-s", redis.socket, "-l", "--rate", 2000, "-c", 4, *["--busy-poll"] * busy)
    run.under_way()
    before, then = sleeps(run.pid), commands_run(redis)
    assert eventually(lambda: commands_run(redis) > then + 2000, 30)
    slept = sleeps(run.pid) - before
    assert (slept < 100) == busy  # others sleep once or twice per request
    run.signal(signal.SIGINT)
    assert run.done().log.manifest["busy_poll"] is busy


@pytest.mark.parametrize(
    "how, count, tcp",
    [
        (["-n", 3000], 3000, False),
        (["-n", 3000, "-P", 8], 3000, False),
        (["--rate", 3000, "--duration", 1], 3000, False),
        (["--rate", 3000, "-n", 3000, "--reconnect", 100], 3000, False),
        (["-n", 300, "-c", 3, "--think", "2ms"], 300, False),
        (["-n", 3000, "--arrival-times"], 3000, True),
    ],
    ids=["closed", "pipeline", "open", "reconnect", "think", "arrival-times"],
)
def test_everything_due_is_sent_nothing_early_and_runs_end_as_usual(serve, start_load, how, count, tcp):
    run = start_load(*serve("redis", tcp=tcp).load_words(), "--busy-poll", *how).done()
    q = run.log.requests
    assert len(q) == count
    assert run.total["errors"] == 0
    assert (q.start_ns >= q.intended_ns).all()


def test_a_load_that_never_sleeps_ends_although_the_server_does_not_answer(serve, start_load):
    server = serve("redis")
    words = ["--busy-poll", "--rate", 1000, "--duration", 3, "--drain", "500ms", "-c", 2]
    run = start_load("-s", server.socket, *words)
    run.under_way()
    server.send_signal(signal.SIGSTOP)
    run.wait(60)
    assert len(run.log.requests) == 3000
    assert run.log.with_status(ft.STATUS_TIMEOUT) == 2
    assert run.log.with_status(ft.STATUS_UNSENT) > 0
