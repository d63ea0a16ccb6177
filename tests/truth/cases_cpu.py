# SPDX-License-Identifier: MIT
"""Injections into who has the CPU: stopped processes, hogs, quotas."""
import os
import signal
import subprocess
import time

import host
import kernel
from cases_code import LOOP
from registry import case
from trial import SERVER_CPU, now_ns


@case(10, "stop", ["stopped"])
def stop(t, magnitudes):
    server = t.redis()
    t.begin(["-s", server.socket])
    for ms in magnitudes or (5, 30, 150):
        with t.injecting("stopped", f"{ms} ms", server.tid) as done:
            server.process.send_signal(signal.SIGSTOP)
            since = now_ns()
            time.sleep(ms / 1000)
            server.process.send_signal(signal.SIGCONT)
            done["stall_ns"] = now_ns() - since


@case(6, "hog", ["run-queue"])
def hog(t, magnitudes):
    """The same priority, a higher one, real time: each is told by the scheduler's own account of the wait."""
    server = t.redis()
    hogs = [("same nice, 300 ms", 0.3, []), ("nice -20, 100 ms", 0.1, ["nice", "-n", "-20"]),
            ("SCHED_FIFO, 30 ms", 0.03, ["chrt", "-f", "50"])]
    t.begin(["-s", server.socket])
    for label, seconds, how in hogs if magnitudes is None else hogs[1:2]:
        process = t.start(how + host.HOG_ASLEEP, preexec_fn=host.pin_here(SERVER_CPU))
        host.wait_stopped(process.pid)
        with t.injecting("run-queue", label, server.tid, truth=kernel.run_delay_ns, culprit=str(process.pid)):
            process.send_signal(signal.SIGCONT)
            time.sleep(seconds)
            process.kill()
            process.wait()
            server.ping()


@case(14, "cpu-quota", ["cpu-quota"])
def cpu_quota(t, magnitudes):
    """A CPU cgroup that has used up its quota; its own account says for how long."""
    group = host.Cgroup(t, "cpu")
    server = t.redis()
    group.add(server.tid)
    t.begin(["-s", server.socket])

    def throttled_ns(tid):
        return int(dict(line.split() for line in group.get("cpu.stat").splitlines())["throttled_time"])

    for period_ms in magnitudes and [50] or (20, 50, 100):
        group.set("cpu.cfs_quota_us", -1)
        group.set("cpu.cfs_period_us", period_ms * 1000)
        group.set("cpu.cfs_quota_us", period_ms * 300)  # enough for the load, not for what comes
        with t.injecting("cpu-quota", f"0.3 CPUs, {period_ms} ms periods", server.tid, truth=throttled_ns):
            server.eval(LOOP, 0, 8_000_000)
            time.sleep(0.3)  # what queued up meets the quota too
