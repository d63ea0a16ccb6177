# SPDX-License-Identifier: MIT
"""One trial: a real server under open-loop load, recorded, with stalls injected at known times.

The injections are written next to the recordings (injections.json), with CLOCK_MONOTONIC times, so that a scorer can compare
them with forktail's explanation. A trial ends everything it started, by pid, whatever happens in it.
"""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import redis

from tools import Running

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "python"))
import forktail  # noqa: E402
from forktail.host.keeper import Leftover  # noqa: E402
from forktail.host.session import Session  # noqa: E402
from forktail.load_generator import Load  # noqa: E402
from forktail.programs import program  # noqa: E402
from forktail.servers import Server  # noqa: E402

SERVER_CPU, CLIENT_CPU = 0, 1
RATE = 4000
LOAD = ("-r", "10000", "-d", "100", "--seed", "7")
CALM_S = 0.7  # between injections: backlogs drain, episodes end


class Skip(Exception):
    """This machine cannot inject that."""


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def wait_for(what, condition, limit_s=30.0):
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise RuntimeError(f"{what} did not happen within {limit_s:.0f} s")


def end(process, sign=signal.SIGTERM, limit_s=20):
    """Ends a child process, which may be stopped or have ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.send_signal(sign)
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def stopped_for(process, ms, then=lambda: None):
    """Stops a process for this long, and calls `then` once it is stopped. Returns how long it was, in ns."""
    process.send_signal(signal.SIGSTOP)
    since = now_ns()
    then()
    time.sleep(ms / 1000)
    process.send_signal(signal.SIGCONT)
    return now_ns() - since


def waited_for_cpu_ns(pids):
    """How long all threads of these processes were runnable and did not run."""
    total = 0
    for path in [path for pid in pids for path in glob.glob(f"/proc/{pid}/task/*/schedstat")]:
        with contextlib.suppress(OSError):  # a thread that has ended
            with open(path) as f:
                total += int(f.read().split()[1])
    return total


def pinned(cpu, argv):
    return ["taskset", "-c", str(cpu)] + argv


class Trial:
    record_options = []  # options of every recorder, besides the case's
    explained = ""  # the file of the run that is explained; "": all
    tools = ()  # other tools that run beside the injection (tools.py)

    def __init__(self, name, delays, threshold="1ms"):
        self.name, self.delays, self.threshold = name, delays, threshold
        self.slow_ns = int(threshold[:-2]) * {"ms": 1_000_000, "us": 1000}[threshold[-2:]]
        self.stack = contextlib.ExitStack()
        self.session = self.stack.enter_context(Session())
        self.directory = tempfile.mkdtemp(prefix="forktail-truth-")  # without the case's name: tools print paths
        self.session.keeper.keep(Leftover.DIRECTORY, self.directory)
        self.stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        self.run = os.path.join(self.directory, "run")
        os.mkdir(self.run)
        self.injections = []
        self.wholes = []  # (name in expected.py, directory, slow) of whole runs whose first line is judged
        self.whole_run = None  # the times of the last of them, as of an injection
        self.load = self.recorder = None
        self.load_ns = self.finished_ns = 0  # when the load began, and when finish() saw its end
        self.reached_by = {"CASE": name}  # for other tools
        self.running = None
        self.targets = []
        self.innocent = []  # threads to which no time may be assigned

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stack.close()

    def start(self, argv, **how):
        """A process that lives until the trial ends."""
        how.setdefault("stdout", subprocess.DEVNULL)
        how.setdefault("stderr", subprocess.DEVNULL)
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **how)
        self.stack.callback(end, process)
        return process

    def serve(self, kind, *arguments, cpu=SERVER_CPU, target=True, **how):
        """A server that lives until the trial ends."""
        try:
            server = self.stack.enter_context(Server(kind, *arguments, cpus=cpu, **how))
        except forktail.Failure as why:
            if "no program is installed" in str(why):
                raise Skip(why) from None
            raise
        if target:
            self.targets.append(server.pid)
        return server

    def redis(self, *config, kind="redis", name="redis", data="", tcp=False, **how):
        """A redis-server, or a compatible server, on a socket of this name, its files in the directory `data`. Returns
        a client connected to it, with its process as .process."""
        directory = os.path.join(self.directory, name)
        socket = os.path.join(directory, kind, "redis.sock")
        if tcp:
            config = ("--unixsocket", socket, *config)
        if data:
            config = ("--dir", data, *config)
        process = self.serve(kind, "--enable-debug-command", "yes", "--slowlog-log-slower-than", "1000",
                             "--latency-monitor-threshold", "1", *config, tcp=tcp, directory=directory, **how)
        client = redis.Redis(unix_socket_path=socket)
        client.process, client.socket, client.port, client.tid = process, socket, process.port, process.pid
        self.reached_by.setdefault("SOCKET", socket)
        return client

    def record(self):
        """Starts the recorder, as begin does."""
        self.recorder = forktail.record(pid=self.targets, out=os.path.join(self.run, "server.forktail"),
                                        options=self.record_options).start()
        self.stack.callback(self.recorder.stop)

    def begin(self, where, rate=RATE, ratio="1:4", cpu=CLIENT_CPU, connections=20, load=(), recorded=True,
              duration="1h", observer=False):
        """Starts the recorder, unless `recorded` is false, and then the load at `where` (arguments of forktail-load
        that name the server). Without a rate `load` has the arrival options, without a ratio the commands. With an
        observer the load generator reads the server's own reports, as it does by default."""
        if recorded:
            self.record()
        if duration != "1h":  # all of the run is what happens
            self.start_tools()
        self.load_ns = now_ns()
        log = os.path.join(self.run, "load.forktail")
        self.load = self.stack.enter_context(Load(
            # Before the suite itself, which shares its CPU and reads answers of slow commands.
            prefix=pinned(cpu, ["nice", "-n", "-10"]), connections=connections, rate=rate, duration=duration, out=log,
            options=[*LOAD, *(("--ratio", ratio) if ratio else ()), *(() if observer else ("--no-observer",)), "--on-error", "continue",
                     *where, *load]))
        enough = 10000 if duration == "1h" else 0  # a short run would be over
        wait_for("the load's first second", lambda: os.path.exists(log) and os.path.getsize(log) > enough)

    def calm(self):
        """Waits until earlier effects are over: queues drained, memory returned. The load shows it: its log grows at
        the normal rate only when its requests are answered."""
        log = os.path.join(self.run, "load.forktail")
        for _ in range(20):
            before = os.path.getsize(log)
            time.sleep(CALM_S)
            if os.path.getsize(log) > before:
                return

    def waited(self):
        """{cause: ns} that the load generator and the recorded processes have waited for a CPU so far, by the scheduler's
        account."""
        return {"client-late": waited_for_cpu_ns([self.load.pid]), "run-queue": waited_for_cpu_ns(self.targets)}

    @contextlib.contextmanager
    def injecting(self, cause, magnitude, tid=0, truth=None, **more):
        """Times the injection made within the block. `truth`: an independent function of the thread that returns, in
        ns, how much the thread has lost so far, or the cause's name in the kernel's delay accounting. The record may be
        extended: stall_ns, where the truth is known from elsewhere."""
        self.start_tools()
        self.calm()
        if isinstance(truth, str):
            name = truth
            truth = lambda t: self.delays.of(t)[name]
        record = {"cause": cause, "magnitude": magnitude, "tid": tid, "slow_ns": self.slow_ns, **more}
        before = truth(tid) if truth else 0
        waited = self.waited()
        record["start_ns"] = now_ns()
        yield record
        record["end_ns"] = now_ns()
        record["waited"] = {cause: ns - waited[cause] for cause, ns in self.waited().items()}
        if truth:
            record["stall_ns"] = truth(tid) - before
        self.injections.append(record)
        time.sleep(0.25)  # so that the next one is a separate episode
        self.stop_tools()

    def start_tools(self):
        if self.tools:
            self.running = Running(self.tools, self.run, {"PID": str(self.targets[0]), **self.reached_by})
            self.stack.callback(self.running.kill)
            self.running.start()

    def stop_tools(self):
        if self.running:
            self.running.stop()

    def whole(self, name, directory=None, slow=None, start_ns=None, stall_ns=None):
        """Has the first line of the whole run judged by the fact of this name. `directory`: another than the trial's.
        `slow`: requests of this length are, instead of the slowest percent. What happened began at `start_ns` (None: with
        the load), lasted until the load's end, and took `stall_ns`, if that is known."""
        self.wholes.append((name, directory or self.run, slow))
        self.whole_run = {"start_ns": start_ns or self.load_ns, "end_ns": self.finished_ns, "stall_ns": stall_ns}

    def finish(self, limit_s=30):
        """Waits until the load's duration is over and the recorder has written everything."""
        self.load.wait(limit_s)
        self.finished_ns = now_ns()
        self.stop_tools()
        self.recorder.stop()

    def explain(self):
        """Ends load and recorder, writes the injections, and returns forktail's explanation."""
        time.sleep(CALM_S)
        self.load.stop()
        self.recorder.stop()
        with open(os.path.join(self.run, "injections.json"), "w") as f:
            json.dump(self.injections, f, indent=1)
        explained = subprocess.run(
            [program("forktail"), "explain", "--json", "--requests", "--slow", self.threshold, os.path.join(self.run, self.explained)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if explained.returncode != 0:
            raise RuntimeError("forktail explain: " + explained.stderr)
        with open(os.path.join(self.run, "explain.json"), "w") as f:
            f.write(explained.stdout)
        return json.loads(explained.stdout)
