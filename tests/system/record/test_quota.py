# SPDX-License-Identifier: MIT
"""CPU quotas on a real redis-server: throttled time is distinguished from waits for a CPU, and checked against the
kernel's own count.
"""

import time

import pytest

from cgroups import CpuCgroup
from harness import Program, eventually, forktail, ft, needs_root, run_program

pytestmark = [pytest.mark.quiet, needs_root]


@pytest.fixture
def group():
    with CpuCgroup() as group:
        yield group


@pytest.fixture
def redis(group, serve):
    """A server in the group."""
    redis = serve("redis")
    group.add(redis.pid)
    return redis


@pytest.fixture
def hog(redis, background):
    """A process that is busy on CPU 0, to which the server is pinned as well."""
    assert run_program("taskset", "-a", "-cp", 0, redis.pid).status == 0
    hog = background("taskset", "-c", 0, "sh", "-c", "while :; do :; done")
    time.sleep(0.5)  # it is taskset before it is sh
    return hog


def throttled_ns(r, tid):
    s, t = r.spans[r.spans.tid == tid], r.tallies[r.tallies.tid == tid]
    in_spans = s.runnable_ns[s.flags & ft.SPAN_THROTTLED != 0]
    return int(in_spans.sum() + t.total_ns[t.owner == ft.CPU_QUOTA].sum())


def record_throttled(recorder, group, redis, *before):
    """A recording of a server that has used up its quota ten times. The throttled time in it is the kernel's."""
    before_ns = group.throttled_ns
    words = ["redis-benchmark", "-s", redis.socket, "-n", 100_000_000, "-P", 16, "-t", "set,get", "-q"]
    with Program(*before, *words):
        assert eventually(lambda: group.throttles >= 10, 60)
    # The last throttling ends, and remaining requests are answered.
    redis.ask("PING")
    kernel_ns = group.throttled_ns - before_ns
    r = recorder.stop()
    assert throttled_ns(r, redis.pid) == pytest.approx(kernel_ns, rel=0.1)
    return r


def test_a_cgroup_that_has_used_up_its_quota_is_cpu_quota_for_as_long_as_the_kernel_says(group, redis, record):
    group.set_quota(20_000)
    r = record_throttled(record("--pid", redis.pid), group, redis)
    wanted = {"cgroup": group.name, "quota_us": 20_000, "period_us": 100_000}
    notes = [note for note in r.notes if note["kind"] == "cpu-quota"]
    assert wanted in [{name: note[name] for name in wanted} for note in notes]
    explained = forktail("explain", r.path, "--all")
    reason = f"the cgroup {group.name} had used up its CPU quota (20.0 ms of every 100 ms)"
    assert reason in explained.out, explained.out + explained.err


def test_a_hog_on_the_servers_cpu_is_run_queue_with_a_quota_that_is_not_used_up(group, redis, hog, record):
    group.set_quota(1_000_000)
    recorder = record("--pid", redis.pid)
    # Both want the CPU all of a second.
    now = "local function now() local t = redis.call('TIME') return t[1] + t[2] / 1e6 end "
    redis.ask("EVAL", now + "local till = now() + 1 while now() < till do end", "0")
    assert group.throttles == 0
    r = recorder.stop()
    assert throttled_ns(r, redis.pid) == 0
    assert r.owned_ns(redis.pid, ft.RUN_QUEUE) > 100_000_000  # the hog takes its half of that second


def test_a_quota_and_a_hog_at_the_same_time_are_both_reported(group, redis, hog, record):
    group.set_quota(20_000)
    r = record_throttled(record("--pid", redis.pid), group, redis, "taskset", "-c", 1)
    waits = r.spans[(r.spans.tid == redis.pid) & (r.spans.flags & ft.SPAN_THROTTLED == 0)]
    waits = waits[waits.runnable_ns > 0]
    assert any(r.held_ns(wait, hog.pid) > wait.runnable_ns / 2 for wait in waits)
