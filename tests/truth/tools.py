# SPDX-License-Identifier: MIT
"""Other tools beside an injection: commands that run while it happens, and commands that ask afterwards. What both print is
NAME.txt in the run's directory, where they also run.

The environment has PID (of the first recorded server), SOCKET (a Redis' Unix socket) or PORT (memcached's), and CASE. A command
is started four seconds before the injection, because bpftrace and perf need some, and gets SIGINT after it.
"""
import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass

HEAD_S, END_S, AFTER_S = 4, 20, 60


@dataclass(frozen=True)
class Tool:
    name: str
    beside: str = ""  # a shell command, from before the injection until SIGINT
    after: str = ""  # a shell command after it


def bpftrace(program):
    return f"exec bpftrace -e '{program}'"


# With tracepoints only: kernels without kprobes have them too. Their names are those of the tools in bpftrace's package.
OPERATORS = (
    Tool("slowlog", 'redis-cli -s "$SOCKET" slowlog reset >/dev/null', 'redis-cli -s "$SOCKET" slowlog get 5'),
    Tool("latency-doctor", 'redis-cli -s "$SOCKET" latency reset >/dev/null', 'redis-cli -s "$SOCKET" latency doctor'),
    Tool("perf-sched", "exec perf sched record -q -o perf.data",
         "perf sched timehist -i perf.data --pid $PID 2>&1 | { sed -u 3q; sort -k4,4nr | head -n 5; }; rm -f perf.data"),
    Tool("runqlat", bpftrace(
        "tracepoint:sched:sched_wakeup /args->pid == '$PID'/ { @q = nsecs; } "
        "tracepoint:sched:sched_switch /args->prev_pid == '$PID' && args->prev_state == 0/ { @q = nsecs; } "
        "tracepoint:sched:sched_switch /args->next_pid == '$PID' && @q/ { @usecs = hist((nsecs - @q) / 1000); @q = 0; } "
        "END { clear(@q); }")),
    Tool("biolatency", bpftrace(
        "tracepoint:block:block_rq_issue { @at[args->dev, args->sector] = nsecs; } "
        "tracepoint:block:block_rq_complete /@at[args->dev, args->sector]/ "
        "{ @usecs = hist((nsecs - @at[args->dev, args->sector]) / 1000); delete(@at[args->dev, args->sector]); } "
        "END { clear(@at); }")),
    Tool("fsync", bpftrace(
        "tracepoint:syscalls:sys_enter_fsync,tracepoint:syscalls:sys_enter_fdatasync { @at[tid] = nsecs; } "
        "tracepoint:syscalls:sys_exit_fsync,tracepoint:syscalls:sys_exit_fdatasync /@at[tid]/ "
        "{ @usecs[comm, probe] = hist((nsecs - @at[tid]) / 1000); delete(@at[tid]); } END { clear(@at); }")),
    Tool("offcputime", bpftrace(
        "tracepoint:sched:sched_switch /args->prev_pid == '$PID'/ { @t = nsecs; @k = kstack; @u = ustack; } "
        "tracepoint:sched:sched_switch /args->next_pid == '$PID' && @t/ { @usecs[@k, @u] = sum((nsecs - @t) / 1000); @t = 0; } "
        "END { clear(@t); clear(@k); clear(@u); }")),
)


def as_tools(beside, after):
    """Tools from words NAME=COMMAND; those of one name are one tool. Raises ValueError with a sentence."""
    rows = {}
    for kind, words in (("beside", beside), ("after", after)):
        for word in words:
            name, equals, command = word.partition("=")
            if not name.replace("-", "").replace("_", "").isalnum() or not equals or not command.strip():
                raise ValueError(f"--{kind} {word}: must be NAME=COMMAND, its name of letters, digits, - and _")
            rows.setdefault(name, {})[kind] = command
    return tuple(Tool(name, **commands) for name, commands in rows.items())


class Running:
    """The tools of one trial. `environment`: additions to ours."""

    def __init__(self, tools, directory, environment):
        self.tools, self.directory = tools, directory
        self.environment = {**os.environ, **environment}
        self.processes = []

    def path(self, tool):
        return os.path.join(self.directory, f"{tool.name}.txt")

    def begin(self, tool, command):
        with open(self.path(tool), "a") as output:
            # SIGINT may be ignored in a script's background, which processes inherit.
            return subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                    cwd=self.directory, env=self.environment, process_group=0,
                                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def start(self):
        self.processes = [self.begin(tool, tool.beside) for tool in self.tools if tool.beside]
        if self.processes:
            time.sleep(HEAD_S)

    def end(self, sign, limit_s):
        """Sends a signal to those that still run, and waits until they have ended, or for so long."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
        until = time.monotonic() + limit_s
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0, until - time.monotonic()))

    def stop(self):
        """Ends what runs, and asks those that answer afterwards."""
        self.end(signal.SIGINT, END_S)
        self.kill()
        for tool in self.tools:
            if tool.after:
                self.processes = [self.begin(tool, tool.after)]
                self.end(0, AFTER_S)
                self.kill()

    def kill(self):
        self.end(signal.SIGKILL, END_S)
        self.processes = []
