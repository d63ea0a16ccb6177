# SPDX-License-Identifier: MIT
"""A server with a thread that holds its process' mmap lock: the main thread's wait for it is mmap-lock."""

import struct
from collections import Counter

import pytest

from harness import evidence, explain, helper, needs_root
from real_run import MS

pytestmark = [pytest.mark.quiet, needs_root]


def test_waiting_for_the_process_mmap_lock_is_mmap_lock(serve, record, tmp_path):
    clock = tmp_path / "clock"
    clock.write_bytes(bytes(8))

    def in_mmap_ns():
        """What the main thread has spent in mmap so far (mmap_lock_holder.c)."""
        return struct.unpack("Q", clock.read_bytes())[0]

    holder = {
        "LD_PRELOAD": str(helper("mmap_lock_holder")),
        "FORKTAIL_HOLD_MB": "128",
        "FORKTAIL_HOLD_CLOCK": str(clock),
    }
    redis = serve("redis", env=holder)
    recorder = record("--pid", redis.pid)
    before_ns = in_mmap_ns()
    # Each value is a new mapping. Without a holder that takes microseconds.
    for i in range(10):
        redis.ask("SETRANGE", f"big{i}", str(24 << 20), "x")
    redis.ask("PING")  # the iteration that waited has ended
    waited_ns = in_mmap_ns() - before_ns
    recorder.stop()

    explanation = explain(recorder.path)
    assert "for its process' mmap lock, in mmap()" in evidence(*explanation["episodes"])
    assert waited_ns > 50 * MS
    # In mmap it waits for the lock and then for a CPU, and does almost nothing else.
    ns = Counter({cause["cause"]: cause["direct_ns"] for cause in explanation["causes"]})
    assert ns["mmap-lock"] < 1.05 * waited_ns
    assert ns["mmap-lock"] + ns["run-queue"] > 0.9 * waited_ns
    assert ns["mmap-lock"] > 20 * ns["syscall"]
