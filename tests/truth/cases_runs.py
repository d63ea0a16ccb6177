# SPDX-License-Identifier: MIT
"""Whole runs that have one answer: more requests than can be answered, a server that ends, recordings that lack the
answer, several causes of which one matters most. No injection in them has a time; their first lines are judged."""
import contextlib
import os
import shutil
import signal
import time

import redis

import host
from cases_code import LOOP, ask
from cases_division import child
from cases_memory import SLOW_CHILD, end_child, fill
from registry import case
from trial import CLIENT_CPU, SERVER_CPU, Skip, now_ns, pinned, wait_for

NOTHING_SLOW = "60000ms"  # of a run in which all requests are: only its first line is asked for


def single_run(number, name, causes, seconds=4, **more):
    """A case that is one run, named as the case."""
    return case(number, name, causes, (seconds,), runs=(name,), fixed=True, **more)


def overloaded(t, where, seconds, name, **load):
    t.begin(where, duration=f"{seconds}s", observer=True, **load)
    t.finish()
    t.whole(name)


@single_run(43, "overload", ["overload"], seconds=3, threshold=NOTHING_SLOW)
def overload(t, magnitudes):
    overloaded(t, ["-s", t.redis().socket], magnitudes[0], "overload", rate=400_000, ratio="0:1", load=["--drain", "1s"])


@single_run(43, "overload-script", ["overload"], threshold=NOTHING_SLOW, in_short=False)
def overload_script(t, magnitudes):
    server = t.redis()
    sha = server.script_load(LOOP)
    overloaded(t, ["-s", server.socket], magnitudes[0], "overload-script", rate=2000, ratio=None,
          load=["--command", f"EVALSHA {sha} 0 100000", "--drain", "1s"])


@single_run(43, "overload-quota", ["overload"], threshold=NOTHING_SLOW, in_short=False)
def overload_quota(t, magnitudes):
    group = host.Cgroup(t, "cpu")
    server = t.redis()
    group.set("cpu.cfs_period_us", 20_000)
    group.set("cpu.cfs_quota_us", 1000)
    group.add(server.tid)
    overloaded(t, ["-s", server.socket], magnitudes[0], "overload-quota", rate=20_000, load=["--drain", "1s"])


@single_run(43, "overload-client", ["overload"], threshold=NOTHING_SLOW, in_short=False)
def overload_client(t, magnitudes):
    """The server could answer; the load generator has a tenth of a CPU."""
    group = host.Cgroup(t, "cpu")
    server = t.redis()
    group.set("cpu.cfs_period_us", 20_000)
    group.set("cpu.cfs_quota_us", 2000)
    t.begin(["-s", server.socket], duration=f"{magnitudes[0]}s", rate=50_000, load=["--drain", "1s"])
    group.add(t.load.pid)
    t.finish(60)
    t.whole("overload-client")


def ending(t, magnitudes, name, end_server, restart=False, **how):
    """A server that ends in the middle of the run."""
    server = t.redis(**how)
    seconds = magnitudes[0]
    t.begin(["-s", server.socket], rate=1000, duration=f"{seconds}s", observer=True,
            load=["--drain", "1s"] + ["--on-error", "reconnect"] * restart)
    time.sleep(seconds / 2)
    ended_ns = now_ns()
    end_server(server)
    server.process.wait(30)
    if restart:
        time.sleep(0.5)
        t.redis(target=False, **how)
    t.finish(30)
    t.whole(name, start_ns=ended_ns)


@single_run(44, "killed", ["outage"])
def killed(t, magnitudes):
    ending(t, magnitudes, "killed", lambda server: server.process.send_signal(signal.SIGKILL))


@single_run(44, "restarted", ["outage"])
def restarted(t, magnitudes):
    """As a service manager restarts a server: SIGTERM, a pause, another process at the same address."""
    ending(t, magnitudes, "restarted", lambda server: server.process.send_signal(signal.SIGTERM), restart=True)


@single_run(44, "oom", ["outage"])
def oom(t, magnitudes):
    group = host.Cgroup(t, "memory")

    def outgrow(server):
        group.set("memory.limit_in_bytes", 32 << 20)
        group.add(server.tid)  # memory that it has already does not count here
        with contextlib.suppress(redis.exceptions.RedisError):  # its connection ends with it
            server.setrange("grows", (64 << 20) - 1, b"x")
        if "oom_kill 1" not in group.get("memory.oom_control"):
            raise Skip("the kernel ended no process of a full memory cgroup")

    ending(t, magnitudes, "oom", outgrow)


@single_run(44, "segfault", ["outage"], in_short=False)
def segfault(t, magnitudes):
    def crash(server):
        with contextlib.suppress(redis.exceptions.RedisError):  # its connection ends with it
            server.execute_command("DEBUG", "SEGFAULT")

    ending(t, magnitudes, "segfault", crash)


@case(45, "unrecorded", ["unattributed"], (4,), fixed=True, runs=("no-server", "empty-server", "cut-server"))
def unrecorded(t, magnitudes):
    """Slow commands all along, in a run whose recording of the server is lost, empty, or cut."""
    server = t.redis()
    t.begin(["-s", server.socket], duration=f"{magnitudes[0]}s", observer=True)
    until = time.monotonic() + magnitudes[0] - 1
    while time.monotonic() < until:
        ask(server, ("EVAL", LOOP, "0", 2_000_000))
        time.sleep(0.1)
    t.finish()
    with open(os.path.join(t.run, "server.forktail"), "rb") as f:
        recorded = f.read()
    for name, kept in (("no-server", None), ("empty-server", 0), ("cut-server", 0.4)):
        directory = os.path.join(t.directory, name)
        os.mkdir(directory)
        shutil.copy(os.path.join(t.run, "load.forktail"), directory)
        if kept is not None:
            with open(os.path.join(directory, "server.forktail"), "wb") as f:
                f.write(recorded[:int(kept * len(recorded))])
        t.whole(name, directory)


def neighbour(t, cpu, nice, busy_s, idle_s):
    """A process that takes a CPU again and again for a short time."""
    return t.start(pinned(cpu, ["nice", "-n", str(nice), "/usr/bin/python3", "-c",
                                "import time\nwhile True:\n until = time.monotonic() + " f"{busy_s}\n"
                                f" while time.monotonic() < until: pass\n time.sleep({idle_s})"]))


@single_run(46, "rank-fork", ["fork", "run-queue"], seconds=6)
def rank_fork(t, magnitudes):
    """The neighbour takes more of the slow requests' time, but the fork decides p99.9: it is longer."""
    server = t.redis(*SLOW_CHILD)
    fill(server, 300)
    t.begin(["-s", server.socket], duration=f"{magnitudes[0]}s", observer=True)
    neighbour(t, SERVER_CPU, -10, 0.008, 0.04)
    time.sleep(magnitudes[0] / 2)
    server.bgsave()
    end_child(server)
    t.finish()
    t.whole("rank-fork")


@single_run(46, "rank-client", ["run-queue", "client-late"], in_short=False)
def rank_client(t, magnitudes):
    """The load generator waits for its CPU often and shortly, the server more seldom and much longer."""
    server = t.redis()
    t.begin(["-s", server.socket], duration=f"{magnitudes[0]}s", observer=True)
    neighbour(t, SERVER_CPU, -20, 0.04, 0.5)
    neighbour(t, CLIENT_CPU, -15, 0.004, 0.01)
    t.finish()
    t.whole("rank-client")


def chroot_of_redis(t):
    """A directory with redis-server and its libraries."""
    root = os.path.join(t.directory, "root")
    program = os.path.realpath(shutil.which("redis-server") or "")
    if not program:
        raise Skip("redis-server is not installed")
    files = [(program, "/app/redis-server")]
    files += [(os.path.realpath(word), word) for word in host.sh("ldd", program).split() if word.startswith("/")]
    for source, path in files:
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(source, root + path)
    for name in ("proc", "data"):
        os.mkdir(os.path.join(root, name))
    return root


@case(47, "chroot", ["server-busy"], (8_000_000,), fixed=True)
def chroot(t, magnitudes):
    """A server as in a container: its program's path is of another mount namespace. `forktail lab serve` starts none there."""
    root = chroot_of_redis(t)
    path = os.path.join(root, "data", "redis.sock")
    unshared = t.start(pinned(SERVER_CPU, ["unshare", "-m", "-p", "-f", "--kill-child", "chroot", root, "/app/redis-server", "--port", "0",
                                           "--unixsocket", "/data/redis.sock", "--save", "", "--dir", "/data"]))
    wait_for("the server", lambda: os.path.exists(path))
    server = redis.Redis(unix_socket_path=path)
    server.tid = int(child(unshared.pid))
    t.stack.callback(os.kill, server.tid, signal.SIGKILL)  # unshare waits for it
    t.targets.append(server.tid)
    t.reached_by["SOCKET"] = path
    t.begin(["-s", path], observer=True, rate=1000)
    for n in magnitudes:
        with t.injecting("server-busy", str(n), server.tid, line_only=True):
            server.eval(LOOP, 0, n)
    time.sleep(1)  # the observer reads the slow log
