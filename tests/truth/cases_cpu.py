# SPDX-License-Identifier: MIT
"""Injections into the use of the CPU: stopped processes, hogs, quotas."""
import os
import time

import host
import kernel
from cases_code import LOOP
from registry import case
from trial import SERVER_CPU, now_ns, stopped_for


@case(10, "stop", ["stopped"], (5, 30, 150))
def stop(t, magnitudes):
    server = t.redis()
    t.begin(["-s", server.socket])
    for ms in magnitudes:
        with t.injecting("stopped", f"{ms} ms", server.tid) as done:
            done["stall_ns"] = stopped_for(server.process, ms)


def freeze(t, magnitudes, group, name, on, off):
    """Freezes the server's cgroup, as `docker pause` does."""
    server = t.redis()
    group.add(server.tid)
    t.begin(["-s", server.socket])
    for ms in magnitudes:
        with t.injecting("frozen", f"{ms} ms", server.tid) as done:
            group.set(name, on)
            since = now_ns()
            time.sleep(ms / 1000)
            group.set(name, off)
            done["stall_ns"] = now_ns() - since


@case(21, "freeze", ["frozen"], (20, 100, 300))
def freeze_v1(t, magnitudes):
    freeze(t, magnitudes, host.Cgroup(t, "freezer"), "freezer.state", "FROZEN", "THAWED")


@case(21, "freeze-v2", ["frozen"], (20, 100, 300))
def freeze_v2(t, magnitudes):
    freeze(t, magnitudes, host.Cgroup(t), "cgroup.freeze", 1, 0)


@case(22, "ptrace", ["ptrace"], (5, 30, 150))
def ptrace(t, magnitudes):
    """Stops the server with ptrace. This suite is the debugger."""
    server = t.redis()
    t.begin(["-s", server.socket])
    for ms in magnitudes:
        with t.injecting("ptrace", f"{ms} ms", server.tid, culprit=str(os.getpid())) as done:
            done["stall_ns"] = host.traced_for(server.tid, ms)


HOGS = (("same nice, 300 ms", 0.3, []), ("nice -20, 100 ms", 0.1, ["nice", "-n", "-20"]),
        ("SCHED_FIFO, 30 ms", 0.03, ["chrt", "-f", "50"]))


@case(6, "hog", ["run-queue"], HOGS)
def hog(t, magnitudes):
    """The same priority, a higher one, real time: the scheduler's own account has each wait."""
    server = t.redis()
    t.begin(["-s", server.socket])
    for label, seconds, how in magnitudes:
        process = host.hog(t, SERVER_CPU, *how)
        with t.injecting("run-queue", label, server.tid, truth=kernel.run_delay_ns, culprit=str(process.pid)):
            host.let_run(process, seconds)
            server.ping()


@case(14, "cpu-quota", ["cpu-quota"], (20, 50, 100))
def cpu_quota(t, magnitudes):
    """A CPU cgroup that has used up its quota. Its own account has the throttled time."""
    group = host.Cgroup(t, "cpu")
    server = t.redis()
    group.add(server.tid)
    t.begin(["-s", server.socket])

    def throttled_ns(tid):
        return int(dict(line.split() for line in group.get("cpu.stat").splitlines())["throttled_time"])

    for period_ms in magnitudes:
        group.set("cpu.cfs_quota_us", -1)
        group.set("cpu.cfs_period_us", period_ms * 1000)
        group.set("cpu.cfs_quota_us", period_ms * 300)  # enough for the load, not for the injection
        with t.injecting("cpu-quota", f"0.3 CPUs, {period_ms} ms periods", server.tid, truth=throttled_ns):
            server.eval(LOOP, 0, 30_000_000)
            time.sleep(0.3)  # queued requests are throttled too
