# SPDX-License-Identifier: MIT
"""Injections that public reports describe and no other file has: the reader of a log, nodes.conf, the flush before a full
synchronization, one request of many keys, a low rate (public.py)."""
import os
import signal
import socket
import statistics
import time

import host
import kernel
from cases_network import memcached
from registry import case
from trial import CLIENT_CPU, Skip, now_ns, pinned, wait_for

from forktail.servers.logs import find_in_log  # after trial, which makes the package known

WRITE = {"aarch64": "64"}.get(os.uname().machine, "1")  # the system call's number


def waits_in_write_to_stdout(tid):
    """Whether a thread sleeps in write() to descriptor 1, and still does 10 ms later: it may only have lost its CPU there."""
    def sleeps():
        with open(f"/proc/{tid}/syscall") as call, open(f"/proc/{tid}/stat") as stat:
            return call.read().split()[:2] == [WRITE, "0x1"] and stat.read().rpartition(")")[2].split()[0] == "S"
    if not sleeps():
        return False
    time.sleep(0.01)
    return sleeps()


def connect_until(condition, path):
    """Makes connections and closes them, each of which a verbose server logs."""
    for _ in range(5000):
        if condition():
            return
        with socket.socket(socket.AF_UNIX) as s:
            s.setblocking(False)
            s.connect_ex(path)
    raise Skip("the pipe of the log did not fill")


@case(48, "log-pipe", ["syscall"], (100, 300, 600), threshold="4ms", in_short=False)
def log_pipe(t, magnitudes):
    """A container's log is a pipe. Its reader is stopped, and many clients connect, which a verbose server logs."""
    fifo = os.path.join(t.directory, "log")
    os.mkfifo(fifo)
    reader = t.start(pinned(CLIENT_CPU, ["cat", fifo]))
    server = t.redis("--logfile", "", "--loglevel", "verbose", under=["sh", "-c", f'exec "$@" >{fifo}', "sh"])
    t.begin(["-s", server.socket], rate=1000)
    for ms in magnitudes:
        with t.injecting("syscall", f"{ms} ms", server.tid, line_only=True) as done:
            reader.send_signal(signal.SIGSTOP)
            connect_until(lambda: waits_in_write_to_stdout(server.tid), server.socket)
            since = now_ns()
            time.sleep(ms / 1000)
            done["stall_ns"] = now_ns() - since
            reader.send_signal(signal.SIGCONT)


@case(48, "nodes-conf", ["fsync"], (4,), threshold="4ms", fixed=True, in_short=False)
def nodes_conf(t, magnitudes):
    """A new epoch of the cluster's configuration. Redis syncs nodes.conf before it sleeps."""
    clock = host.CallsClock(t)
    disk = host.Disk(t)
    with socket.create_server(("127.0.0.1", 0)) as free:
        bus = free.getsockname()[1]
    server = t.redis("--cluster-enabled", "yes", "--cluster-port", str(bus), data=disk.path, env=clock.environment, tcp=True)
    server.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
    wait_for("the cluster", lambda: "cluster_state:ok" in str(server.execute_command("CLUSTER", "INFO")))
    t.begin(["-s", server.socket], rate=1000)
    for iops in magnitudes:
        with t.injecting("fsync", f"{iops} writes/s", server.tid, truth=clock.of("fsync")):
            with disk.limited("write_iops", iops):
                server.execute_command("CLUSTER", "BUMPEPOCH")
                server.ping()


@case(48, "resync", ["server-busy"], (100_000, 300_000, 800_000), threshold="4ms", in_short=False)
def resync(t, magnitudes):
    """A server with data becomes a replica. The true time is from Redis' log, which has a time before and after the flush."""
    server = t.redis()
    primary = t.redis("--repl-diskless-sync-delay", "0", name="primary", cpu=CLIENT_CPU, target=False, tcp=True)
    t.begin(["-s", server.socket], rate=1000, ratio="0:1")
    for keys in magnitudes:
        server.execute_command("DEBUG", "POPULATE", keys, "fill", 100)
        with t.injecting("server-busy", f"{keys} keys", server.tid, line_only=True) as done:
            since = time.time_ns()
            server.execute_command("REPLICAOF", "127.0.0.1", primary.port)
            wait_for("the synchronization", lambda: server.info("replication")["master_link_status"] == "up")
        flushing, loading = (find_in_log(server.process.log, text, since) for text in ("Flushing old data", "Loading DB"))
        done["stall_ns"] = loading - flushing
        server.execute_command("REPLICAOF", "NO", "ONE")


@case(48, "multiget", ["server-busy"], (10_000, 40_000, 100_000), threshold="4ms", in_short=False)
def multiget(t, magnitudes):
    """One request of many keys, at a worker that serves others, too."""
    process, port = memcached(t, "-m", "256")
    client = socket.create_connection(("127.0.0.1", port))
    t.stack.callback(client.close)
    for base in range(0, max(magnitudes), 1000):
        client.sendall(b"".join(b"set many:%d 0 0 100 noreply\r\n%s\r\n" % (i, b"x" * 100) for i in range(base, base + 1000)))
    worker = [tid for tid, name in kernel.threads(process.pid).items() if name == "mc-worker"][0]
    t.begin(["-p", str(port)], rate=1000, load=["--protocol", "memcache_text"])
    for keys in magnitudes:
        request = b"get " + b" ".join(b"many:%d" % i for i in range(keys)) + b"\r\n"
        with t.injecting("server-busy", f"{keys} keys", worker, line_only=True):
            client.sendall(request)
            tail = b""
            while not tail.endswith(b"END\r\n"):
                tail = (tail + client.recv(1 << 20))[-5:]


def round_trip_ns(server, pause_s):
    """The median time of a PING, each this long after the one before."""
    times = []
    for _ in range(200):
        time.sleep(pause_s)
        since = now_ns()
        server.ping()
        times.append(now_ns() - since)
    return statistics.median(times)


@case(48, "low-rate", ["idle"], (3,), threshold="100us", fixed=True, runs=("low-rate",), in_short=False)
def low_rate(t, magnitudes):
    """The same server answers the suite itself, before the run, once with pauses and once without."""
    server = t.redis()
    paused, busy = round_trip_ns(server, 0.01), round_trip_ns(server, 0)
    t.begin(["-s", server.socket], rate=100, duration=f"{magnitudes[0]}s")
    t.finish()
    t.whole("low-rate", stall_ns=max(0, paused - busy))
