# SPDX-License-Identifier: MIT
"""For benchmarks of the recorder on a large host: a process with many threads, and how long the recorder's threads held
a CPU in one piece: from a switch to a thread until the switch from it, with the interrupts on top of it, according to
the kernel's sched_switch events.
"""
import os
import re
import subprocess
import sys

THREADS = """
import sys, threading, time
threading.stack_size(65536)
for i in range(int(sys.argv[1])):
    threading.Thread(target=lambda: [time.sleep(5) for _ in iter(int, 1)], daemon=True).start()
print("ready", flush=True)
time.sleep(3600)
"""
SWITCH = re.compile(r"\[(\d+)\] \S+ +([\d.]+): sched_switch: prev_comm=(.*) prev_pid=\d+ prev_prio=\d+ prev_state=\S+ "
                    r"==> next_comm=(.*) next_pid=\d+ next_prio=\d+")


def many_threads(count):
    """A process with so many threads, each of which wakes every five seconds. They have started."""
    process = subprocess.Popen([sys.executable, "-c", THREADS, str(count)], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def is_recorder(comm):
    return comm == "block-writer" or comm.startswith("forktail-") and comm != "forktail-load"


class Switches:
    """The kernel's record of switches to and from the threads of one process and its descendants."""

    def __init__(self):
        self.path = f"/sys/kernel/tracing/instances/forktail-bench-{os.getpid()}"
        os.mkdir(self.path)
        for name, value in (("buffer_size_kb", "32768"), ("trace_clock", "mono"), ("options/event-fork", "1")):
            self.put(name, value)

    def put(self, name, value):
        with open(os.path.join(self.path, name), "w") as f:
            f.write(value)

    def begin(self):
        """In the process to trace, before its program starts."""
        self.put("set_event_pid", str(os.getpid()))
        self.put("events/sched/sched_switch/enable", "1")

    def pieces(self):
        """(end in s of CLOCK_MONOTONIC, thread, length in ms) of the pieces since the last call after which another thread
        got the CPU: it may have waited for it."""
        since, found = {}, []
        with open(os.path.join(self.path, "trace")) as f:
            for line in f:
                switch = SWITCH.search(line)
                if not switch:
                    continue
                cpu, now, before, after = switch.group(1), float(switch.group(2)), switch.group(3), switch.group(4)
                begun = since.pop(cpu, None)
                if begun and is_recorder(before) and not after.startswith("swapper"):
                    found.append((now, before, 1000 * (now - begun)))
                if is_recorder(after):
                    since[cpu] = now
        self.put("trace", "")
        return found

    def close(self):
        self.put("events/sched/sched_switch/enable", "0")
        os.rmdir(self.path)
