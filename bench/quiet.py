# SPDX-License-Identifier: MIT
"""How much CPU time each process took in a period, and whether the machine was idle otherwise.

The CPU time of a process is its CPU clock: the time its threads ran, including ended threads, to the nanosecond. It
includes interrupts on top of them where the kernel does not account interrupts separately (CONFIG_IRQ_TIME_ACCOUNTING).
A server's children are not included, a recorder's are added one by one. A child that was reaped before the end of the
period is missed.

The time of all other processes is the rest: CPUs x time, less what /proc/stat counts as idle, waiting for a disk or
stolen (idle time is exact on kernels without a periodic tick, the busy states are estimated at each tick), less the
time of server, client, recorder and this script. It includes interrupts on an idle CPU and the work of kernel threads,
even if they worked on a recorder's file.
"""
import os
import time

# In percent of one CPU. Interrupts on idle CPUs amount to a few percent where the server often sleeps.
OTHERS_LIMIT, STEAL_LIMIT = 12, 3
LOAD_LIMIT = 0.5
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    try:
        return time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED of that process
    except OSError:
        return 0.0


def read(path):
    """A file's text. Empty for a process that has ended."""
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def names(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def tree(pids):
    """These processes and all their descendants."""
    found, left = [], list(pids)
    while left:
        pid = left.pop()
        found.append(pid)
        for tid in names(f"/proc/{pid}/task"):
            left += [int(child) for child in read(f"/proc/{pid}/task/{tid}/children").split()]
    return found


def field(path, name):
    for line in read(path).splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0


def resident_kb(pids):
    """Memory with each page counted once, however often it is mapped (the ring is mapped twice), if the processes share
    it."""
    return sum(field(f"/proc/{pid}/smaps_rollup", "Pss") for pid in tree(pids))


def wakeups(pids):
    """How often their threads slept voluntarily."""
    return sum(field(f"/proc/{pid}/task/{tid}/status", "voluntary_ctxt_switches")
               for pid in tree(pids) for tid in names(f"/proc/{pid}/task"))


class Look:
    """The counters at one instant."""

    def __init__(self, server, recorder):
        """`recorder`: the processes that were started for it. Empty: nothing records."""
        self.wakeups = wakeups(recorder)
        self.recorder_s = sum(cpu_s(pid) for pid in tree(recorder))
        self.server_s = cpu_s(server)
        self.own_s = time.process_time()
        states = read("/proc/stat").split("\n", 1)[0].split()[1:]
        self.idle_s = (int(states[3]) + int(states[4])) / TICKS
        self.steal_s = int(states[7]) / TICKS
        self.at = time.monotonic()


class Stretch:
    """The differences between two readings, and the CPU time of a client that ran between them."""

    def __init__(self, before, after, client_s):
        self.wall_s = after.at - before.at
        self.server_s = after.server_s - before.server_s
        self.client_s = client_s
        self.recorder_s = after.recorder_s - before.recorder_s
        self.wakeups = after.wakeups - before.wakeups
        stolen_s = after.steal_s - before.steal_s
        busy_s = os.cpu_count() * self.wall_s - (after.idle_s - before.idle_s) - stolen_s
        others_s = (busy_s - self.server_s - self.recorder_s - client_s - (after.own_s - before.own_s))
        self.others = 100 * others_s / self.wall_s
        self.steal = 100 * stolen_s / self.wall_s

    def disturbed(self):
        return self.others > OTHERS_LIMIT or self.steal > STEAL_LIMIT


def limits():
    return f"others {OTHERS_LIMIT} % of a CPU, steal {STEAL_LIMIT} %"
