# SPDX-License-Identifier: MIT
"""A load generator on the server's host. The recorder traces when its threads run, unless disabled. A disturbance by
the test is named as the load generator's and never as the server's.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from harness import BIN, evidence, ft, needs_root, needs_two_cpus, run_program
from real_run import MS, RealRun, check_accounts, check_parts, serve_more, stop_for

pytestmark = [pytest.mark.quiet, needs_root]

# Takes CPU 1 for 200 ms from all tasks except the kernel's own. It ends by its own clock, and if that fails by the
# kernel's, because a task on the same CPU could not end it.
TAKE_CPU = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_RTTIME, (400_000, 400_000))  # us
os.sched_setaffinity(0, [1])
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
end = time.monotonic() + 0.2
while time.monotonic() < end:
    pass
"""


@pytest.fixture
def disturb(serve, tmp_path):
    """Records a load that is disturbed for 200 ms: it is stopped, or (starved) another task takes its CPU. Returns the
    explanation of requests that took at least 20 ms as JSON and as text, and the recording.

    before: the load starts before the recording, or during it. record, load: options of the recorder and of the load
    generator. It usually has many connections. A request that is due during the disturbance is late by itself only if a
    connection is free then. Of four connections none may be free, because the test's own work can take the server's CPU
    for milliseconds before the disturbance.
    """

    def disturb(before=False, record=(), starved=False, load=("--rate", 2000, "-c", 100)):
        server = serve("redis", cpus=0)
        with RealRun(tmp_path / "run") as run:

            def start_load():
                run.load("-s", server.socket, *load, "--duration", 120, prefix=["taskset", "-c", 1])

            if before:
                start_load()
            run.record(server.pid, options=record)
            if not before:
                start_load()
            serve_more([server], 2000)
            if starved:
                assert run_program(sys.executable, "-c", TAKE_CPU).status == 0
            else:
                stop_for(run.client.pid, 0.2)
            serve_more([server], 1000)
            run.end_load()
            assert run.recorder.running  # a load generator's end is not a target's end
            recording = run.recorder.stop()
            explanation = run.explain("--slow", "20ms", "--requests")
            check_parts(explanation)
            check_accounts(explanation)
            for one in explanation["account"]["threads"]:
                assert one["client"] == (one["role"] == "load generator")
                assert not (one["client"] and one["serving"])
            text = run.text("--slow", "20ms", "--all")
            return SimpleNamespace(json=explanation, text=text, recording=recording)

    return disturb


def client_ns(explanation, cause):
    """A cause's time in the account of the load generator's thread."""
    accounts = (
        one["by_cause"] for one in explanation["account"]["threads"] if one["client"] and one["comm"] == "load-0"
    )
    return max((one.get(cause, 0) for one in accounts), default=0)


def longest_direct(explanation, cause):
    """The longest direct time of a cause in a request, and the request's episode. The request with the longest own
    wait for the load generator was due when the disturbance began."""
    longest_ns, episode = max(
        (part["direct_ns"], request["episode"])
        for request in explanation["slow_requests"]
        for part in request["parts"]
        if part["cause"] == cause
    )
    return longest_ns, explanation["episodes"][episode]


def check_late(disturbed, cause, sentence):
    assert client_ns(disturbed.json, cause) >= 150 * MS
    late_ns, episode = longest_direct(disturbed.json, "client-late")
    assert late_ns >= 150 * MS
    causes = [one["cause"] for one in episode["causes"]]
    assert causes[0] == "client-late"
    assert "stopped" not in causes  # the server was never late
    assert "the load generator's thread load-0 (" in evidence(episode)
    assert sentence in evidence(episode)
    assert "did not run" not in disturbed.text  # the known disturbance


@needs_two_cpus
def test_a_load_generator_that_starts_during_the_recording_and_is_stopped_is_late_by_itself(disturb):
    check_late(disturb(), "stopped", "was stopped by SIGSTOP for ")


@needs_two_cpus
def test_a_load_generator_that_ran_before_is_late_by_itself_too_and_only_its_run_states_are_traced(disturb):
    disturbed = disturb(before=True)
    check_late(disturbed, "stopped", "was stopped by SIGSTOP for ")

    recording = disturbed.recording
    clients = {one.tid for one in recording.threads.values() if one.flags & ft.THREAD_CLIENT}
    assert len(clients) >= 2  # its main thread and its load thread

    def of_clients(table):
        return table[np.isin(table.tid, list(clients))]

    assert (of_clients(recording.spans).off_cpu != 0).all()  # no faults, interrupts, calls or iterations
    softirqs = range(ft.SOFTIRQ, ft.SOFTIRQ + ft.SOFTIRQ_VECTORS)
    tallied = set(of_clients(recording.tallies).owner)
    assert tallied.isdisjoint({ft.HARDIRQ, *softirqs, ft.PAGE_ZERO, ft.PAGE_FILE})
    assert len(of_clients(recording.cpu_samples)) == 0


@needs_two_cpus
def test_a_load_generator_whose_cpu_is_taken_is_late_by_itself_and_the_cpu_holder_is_named(disturb):
    check_late(disturb(starved=True), "run-queue", " for a CPU, held by ")


def check_unrecorded_client(disturbed):
    """The load generator's threads are not recorded, so its stop is not known."""
    assert not any(one.flags & ft.THREAD_CLIENT for one in disturbed.recording.threads.values())
    assert client_ns(disturbed.json, "stopped") == 0
    causes = {part["cause"] for one in disturbed.json["slow_requests"] for part in one["parts"]}
    assert "stopped" not in causes
    assert "the load generator's thread" not in disturbed.text


@needs_two_cpus
def test_without_its_threads_the_log_alone_shows_that_requests_were_sent_late(disturb):
    disturbed = disturb(before=True, record=["--no-client"])
    check_unrecorded_client(disturbed)
    late_ns, episode = longest_direct(disturbed.json, "client-late")
    assert late_ns >= 100 * MS
    assert "the load generator sent requests late, by " in evidence(episode)


@needs_two_cpus
def test_without_its_threads_an_answer_that_it_did_not_read_is_network_with_a_note(disturb):
    closed_loop = ["-c", 4]  # each connection has a request in flight
    disturbed = disturb(before=True, record=["--no-client"], load=closed_loop)
    check_unrecorded_client(disturbed)
    unread_ns, episode = longest_direct(disturbed.json, "network")
    assert unread_ns >= 100 * MS
    assert "or the load generator (not recorded) did not run" in evidence(episode)


def test_a_load_generator_can_be_the_target_of_a_recording(redis, record, background):
    # Without a rate, so that it is on the CPU when samples are taken, and with one connection, so that it waits.
    load = background(BIN / "forktail-load", "-q", "-s", redis.socket, "-c", 1, "--duration", 120)
    serve_more([redis], 100)
    recorder = record("--pid", load.pid)
    serve_more([redis], 30_000)
    recording = recorder.stop()
    assert recording.count(load.pid, ft.IDLE) > 0
    assert len(recording.cpu_samples) > 0
    own = [one for one in recording.threads.values() if one.tgid == load.pid]
    assert own and not any(one.flags & ft.THREAD_CLIENT for one in own)
