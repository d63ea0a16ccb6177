# SPDX-License-Identifier: MIT
"""What is attached, and what is recorded without it: by default no system call is traced, so forks, vforks and the
iterations of a loop that never waits are found in other ways.
"""

import json
import os
import time
from pathlib import Path

import pytest

from forktail.programs import program
from harness import eventually, forktail, ft, helper, needs_root, needs_two_cpus, run_program
from pinned_redis import PinnedRedis, busy_script

pytestmark = needs_root

MS = 1_000_000


def test_system_calls_have_programs_only_on_request_and_interrupts_not_with_light(redis, record):
    def recorded(*how):
        recorder = record("--pid", redis.pid, *how)
        assert run_program("redis-benchmark", "-s", redis.socket, "-n", 50000, "-t", "get", "-q").status == 0
        return recorder.stop()

    r = recorded()
    assert not {"enter_epoll_wait", "enter_close"} & set(r.manifest["programs"])
    assert "softirq_entry" in r.manifest["programs"]
    assert r.count(redis.pid, ft.HARDIRQ) > 0

    light = recorded("--light")
    assert not {"softirq_entry", "local_timer_entry"} & set(light.manifest["programs"])
    assert "sched_switch" in light.manifest["programs"]
    assert light.count(redis.pid, ft.HARDIRQ) == 0
    assert "--light was given" in str(light.manifest)


@pytest.fixture
def empty_redis(serve):
    """Without memory that it used before."""
    return serve("redis")


@pytest.fixture
def counted(empty_redis, record):
    """counted(*options): a recording of a server that touches new memory and then does not."""

    def recorded(*options):
        recorder = record("--pid", empty_redis.pid, *options)
        empty_redis.ask("EVAL", "for i = 1, 200000 do redis.call('SET', i, string.rep('x', 500)) end", "0")
        empty_redis.ask("EVAL", busy_script(300), "0")
        empty_redis.ask("FLUSHALL")
        return recorder.stop()

    return recorded


@pytest.mark.alone
def test_cpu_samples_count_software_events_on_request(empty_redis, counted):
    r = counted("--counters", "software")
    assert r.manifest["counters"] == "software"
    # jemalloc's thread may have run, too: it returns the memory that FLUSHALL freed.
    assert set(r.counters.tid) <= {t.tid for t in r.threads.values() if t.tgid == empty_redis.pid}
    c = r.counters[r.counters.tid == empty_redis.pid]
    assert (c.flags & ft.COUNTED_SOFTWARE != 0).all()
    assert not c.cache_misses.any()  # context switches: the thread kept its CPU
    ns, faults = int(c.duration_ns.sum()), int(c.instructions.sum())
    assert int(c.cycles.sum()) == pytest.approx(ns, rel=0.01)
    assert faults > 10_000  # 100 MB in pages
    assert c.duration_ns[c.instructions == 0].sum() > 100 * MS
    threads = json.loads(forktail("explain", "--json", r.path).out)["account"]["threads"]
    (explained,) = (one["counters"] for one in threads if one["tid"] == empty_redis.pid)
    assert (explained["software"], explained["ns"], explained["instructions"]) == (True, ns, faults)


def test_cpu_samples_read_no_counters_on_request(counted):
    r = counted("--counters", "none")
    assert len(r.counters) == 0
    assert r.manifest["counters"] == "none"


def test_cpu_samples_read_the_counters_of_a_pmu_where_there_is_one(counted):
    # Without a PMU a recording has no counters, and lacks nothing for that. With one, doctor says so.
    r = counted()
    pmu = "yes  hardware counters" in run_program(program("forktail-record"), "--doctor").out
    assert r.manifest["counters"] == ("hardware" if pmu else "none")
    assert (len(r.counters) > 0) == pmu
    assert "PMU" not in str(r.manifest)


@pytest.mark.alone
def test_a_vfork_is_a_fork_and_so_is_the_wait_for_its_child(background, record, tmp_path):
    line = tmp_path / "line"
    os.mkfifo(line)
    vforker = background("sh", "-c", f"exec '{helper('vforker')}' 30 <>'{line}'")
    assert eventually(lambda: Path(f"/proc/{vforker.pid}/comm").read_text() == "vforker\n")
    recorder = record("--pid", vforker.pid)
    line.write_text("\n")
    time.sleep(0.3)
    r = recorder.stop()
    wait = r.longest(lambda s: (s.tid == vforker.pid) & (s.off_cpu != 0) & (s.owner == ft.FORK))
    assert wait.blocked_ns >= 29 * MS
    assert r.accounted_ns(vforker.pid) > 0


@pytest.fixture
def saturated(background):
    """A Redis that always has work: its clients keep more requests outstanding than it answers in an iteration."""
    with PinnedRedis(cpu=0) as redis:
        background("redis-benchmark", "-s", redis.socket, "-n", 100_000_000, "-c", 20, "-P", 16, "-t", "get", "-q")
        info = redis.instance.connection().read_info
        assert eventually(lambda: float(info()["instantaneous_ops_per_sec"]) > 1000)
        yield redis


@pytest.mark.alone
@needs_two_cpus
def test_a_stall_in_a_loop_that_never_waits_is_one_iteration_to_the_precision_of_samples(saturated, record):
    recorder = record("--pid", saturated.pid)
    time.sleep(0.5)
    since_ns = time.monotonic_ns()
    # So long that the recorder, which raises the sampling rate, gets some of a saturated CPU meanwhile.
    assert run_program(*saturated.eval(busy_script(600))).status == 0
    until_ns = time.monotonic_ns()
    time.sleep(0.5)
    r = recorder.stop()
    iteration = r.longest(lambda s: s.owner == ft.ITERATION)
    begin, end = int(iteration.start_ns), int(iteration.start_ns + iteration.duration_ns)
    assert begin >= since_ns - 5 * MS
    assert end <= until_ns + 5 * MS
    assert end - begin >= 580 * MS

    # Once it was found to be long it was sampled more often, and the samples represent the time it ran.
    s = r.spans
    within = (s.start_ns >= begin) & (s.start_ns + s.duration_ns <= end)
    ran_ns = end - begin - int(s.duration_ns[(s.tid == iteration.tid) & (s.off_cpu != 0) & within].sum())
    samples = r.cpu_samples
    assert (samples.period % 16 != 0).all()  # else in step with a timer of whole milliseconds
    fast = samples.period < 32  # 2 ms
    assert fast.sum() >= 100
    assert (~fast).sum() >= 50
    inside = samples.period[(samples.t_ns >= begin) & (samples.t_ns < end)]
    assert int(inside.sum()) * MS / 16 == pytest.approx(ran_ns, rel=0.2)


@pytest.mark.alone
@needs_two_cpus
def test_with_exact_each_iteration_is_known_and_how_many_connections_were_accepted_in_it(saturated, record):
    recorder = record("--pid", saturated.pid, "--exact", "--min-span", "1us")
    time.sleep(0.2)  # what is accepted in the iteration that began before is not all known
    for _ in range(5):
        assert run_program("redis-cli", "-s", saturated.socket, "PING").out == "PONG\n"
    time.sleep(1)
    s = recorder.stop().spans
    s = s[(s.owner == ft.ITERATION) & (s.tid == saturated.pid)]
    assert len(s) > 500
    assert (s.arg[:, 1] >> 32 & 0xFFFF).sum() == 5
    assert (s.flags & ft.SPAN_SAMPLED != 0).sum() <= 2  # the first, which began before, and the last
