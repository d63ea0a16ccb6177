# SPDX-License-Identifier: MIT
"""Injections into one thread of servers that have several. Redis 7 waits for all of its helpers. The threads of
memcached, Redis 8 and HAProxy have their own connections. Valkey's helpers have jobs."""
import contextlib
import os
import threading
import time

import redis

import host
import kernel
from cases_network import memcached
from registry import case
from trial import CLIENT_CPU, SERVER_CPU, wait_for

BOTH = f"{SERVER_CPU},{CLIENT_CPU}"
# Redis 7 and Valkey give helpers work when several clients send at the same time: 8 of them, each millisecond. So the
# main thread begins to wait for a helper within a millisecond after it was stopped.
BURSTS = {"rate": None, "connections": 32, "load": ["--profile", "steps:160000x0.05ms,0x0.95ms,repeat"]}
# The same for four helpers, which must be parked in between. Otherwise five threads spin on two CPUs, and nothing else
# happens. A single request parks them.
RARE_BURSTS = {"rate": None, "connections": 64, "load": ["--profile", "steps:640000x0.1ms,500x49.9ms,repeat"]}


def redis7(t, threads, **how):
    return parted(t.redis("--io-threads", str(threads), "--io-threads-do-reads", "yes", cpu=BOTH, **how), threads - 1)


def newer_redis(t, kind, threads, *config):
    return parted(t.redis("--io-threads", str(threads), *config, cpu=BOTH, kind=kind), threads - 1)


def parted(server, count):
    """Helpers spin, which takes all of a CPU, so they must not use the main thread's CPU."""
    helpers = lambda: [tid for tid, comm in kernel.threads(server.tid).items() if comm.startswith("io_thd")]
    wait_for("the helpers' names", lambda: len(helpers()) == count)
    for tid in kernel.threads(server.tid):
        os.sched_setaffinity(tid, {CLIENT_CPU if tid in helpers() else SERVER_CPU})
    return server


def thread(process, name):
    return [tid for tid, comm in kernel.threads(process.pid).items() if comm == name][0]


def stop(t, tid, ms, **more):
    """Stops one thread of a process. The injector's clock has the time."""
    with t.injecting("ptrace", f"{ms} ms", tid, culprit=str(os.getpid()), thread=tid, **more) as done:
        done["stall_ns"] = host.traced_for(tid, ms)


def stop_helper(t, server, magnitudes, name="io_thd_1"):
    tid = thread(server.process, name)
    for ms in magnitudes:
        stop(t, tid, ms)


def stop_its_connections(t, process, where, tid_of, magnitudes, **load):
    """Stops one of several threads that have their own connections: only requests on these wait for it."""
    t.begin(where, **load)
    reads = kernel.Reads(t, process.pid)
    time.sleep(0.5)
    by = reads.by_descriptor()
    tid = tid_of(by)
    served = kernel.served(t.load.pid, process.pid)
    connections = [i for i, fd in enumerate(served) if by.get(fd) == {tid}]
    if not 0 < len(connections) < len(served):
        raise RuntimeError(f"thread {tid} reads {len(connections)} of {len(served)} connections")
    for ms in magnitudes:
        stop(t, tid, ms, connections=connections)


@case(27, "redis7-helper-stop", ["ptrace"], (10, 20, 60), threshold="4ms")
def redis7_helper_stop(t, magnitudes):
    server = redis7(t, 2)
    t.begin(["-s", server.socket], **BURSTS)
    stop_helper(t, server, magnitudes)


@case(27, "redis7-helper-stop-tcp", ["ptrace"], (10, 20, 60), threshold="4ms")
def redis7_helper_stop_tcp(t, magnitudes):
    server = redis7(t, 2, tcp=True)
    t.begin(["-p", str(server.port)], **BURSTS)
    stop_helper(t, server, magnitudes)


@case(27, "redis7-two-helpers", ["ptrace"], (90, 180), threshold="8ms")
def redis7_two_helpers(t, magnitudes):
    """Stops two of four: the main thread waits for all of them, so for the one that is stopped longer, from the next
    burst on. Five spinning threads also take two CPUs from each other."""
    server = redis7(t, 5)
    short, long = thread(server.process, "io_thd_1"), thread(server.process, "io_thd_3")
    t.begin(["-s", server.socket], **RARE_BURSTS)
    for ms in magnitudes:
        with t.injecting("ptrace", f"{ms} ms, another {ms // 3}", long, culprit=str(os.getpid()), thread=long, among=2):
            host.traced({short: ms / 3, long: ms})


@case(28, "redis7-helper-hog", ["run-queue"], (10, 30), threshold="4ms")
def redis7_helper_hog(t, magnitudes):
    """The main thread, the load and this suite share one CPU meanwhile. The helper has the other one, and then loses
    it."""
    server = redis7(t, 2)
    helper = thread(server.process, "io_thd_1")
    t.begin(["-s", server.socket], cpu=SERVER_CPU, **BURSTS)
    for ms in magnitudes:
        process = host.hog(t, CLIENT_CPU, "chrt", "-f", "50")
        os.sched_setaffinity(0, {SERVER_CPU})  # so that it can be ended
        with t.injecting("run-queue", f"{ms} ms", helper, truth=kernel.run_delay_ns, culprit=str(process.pid), thread=helper):
            host.let_run(process, ms / 1000)
            time.sleep(0.01)  # its wait is accounted when it runs again
        os.sched_setaffinity(0, {CLIENT_CPU})


@case(28, "redis7-helper-quota", ["cpu-quota"], (50, 100), threshold="4ms")
def redis7_helper_quota(t, magnitudes):
    """A CPU cgroup with the helper alone: it spins, so it uses up any quota."""
    group = host.Cgroup(t, "cpu")
    server = redis7(t, 2)
    helper = thread(server.process, "io_thd_1")
    group.set("tasks", helper)
    group.set("cpu.cfs_quota_us", 200_000)  # no limit in effect, but the recorder has to know that there is one
    t.begin(["-s", server.socket], **BURSTS)

    def throttled_ns(_tid):
        return int(dict(line.split() for line in group.get("cpu.stat").splitlines())["throttled_time"])

    for period_ms in magnitudes:
        with t.injecting("cpu-quota", f"0.3 CPUs, {period_ms} ms periods", helper, truth=throttled_ns, thread=helper):
            group.set("cpu.cfs_period_us", period_ms * 1000)
            group.set("cpu.cfs_quota_us", period_ms * 300)
            time.sleep(0.5)
            group.set("cpu.cfs_quota_us", 200_000)


@case(29, "redis7-helper-burns", ["io-thread"], (10, 20, 60), threshold="4ms")
def redis7_helper_burns(t, magnitudes):
    """The helper is busy with its work while the main thread waits for it."""
    shim = host.ThreadShim(t)
    server = redis7(t, 2, env=shim.environment)
    t.begin(["-s", server.socket], **BURSTS)
    for ms in magnitudes:
        ordered(t, shim, "io-thread", "io_thd_1", "write", ms, burn=True)


def ordered(t, shim, cause, comm, call, ms, burn=False, named=False, **more):
    """Has the shim carry out one order. Its time is the shim's measurement."""
    with t.injecting(cause, f"{ms} ms", **more) as done:
        shim.order(comm, call, ms, burn)
        who = wait_for(f"the order to {comm}", shim.done)
    done.update(who, stall_ns=who["end_ns"] - who["start_ns"], thread=who["tid"])
    if named:
        done["culprit"] = str(who["tid"])


@case(30, "redis7-parked-helper", [], (10,), threshold="4ms")
def redis7_parked_helper(t, magnitudes):
    """One client alone is never work for helpers: they wait for a mutex that the main thread holds, and no thread waits
    for them."""
    server = redis7(t, 4)
    helper = thread(server.process, "io_thd_1")
    t.innocent.append(helper)
    t.begin(["-s", server.socket], connections=1, rate=2000)
    until = time.monotonic() + magnitudes[0]
    while time.monotonic() < until:
        host.traced_for(helper, 30)
        time.sleep(0.2)


@case(31, "memcached-worker-of-4", ["ptrace"], (10, 50, 200), threshold="4ms")
def memcached_worker_of_4(t, magnitudes):
    process, port = memcached(t, "-t", "4", cpu=BOTH)
    stop_its_connections(t, process, ["-p", str(port)], lambda by: worker_of(process, by), magnitudes,
                         load=["--protocol", "memcache_text"])


@case(31, "memcached-worker-unix", ["ptrace"], (10, 50, 200), threshold="4ms")
def memcached_worker_unix(t, magnitudes):
    process = t.serve("memcached", "-t", "4", cpu=BOTH)
    stop_its_connections(t, process, ["-s", process.socket], lambda by: worker_of(process, by), magnitudes,
                         load=["--protocol", "memcache_text"])


def worker_of(process, by):
    """A memcached thread that has connections."""
    workers = {tid for tid, comm in kernel.threads(process.pid).items() if comm == "mc-worker"}
    return max(workers, key=lambda tid: sum(tids == {tid} for tids in by.values()))


@case(31, "memcached-reconnects", ["ptrace"], (10, 50, 200), threshold="4ms")
def memcached_reconnects(t, magnitudes):
    """Connections that close and open continuously, each time with another worker."""
    process, port = memcached(t, "-t", "4", cpu=BOTH)
    t.begin(["-p", str(port)], load=["--protocol", "memcache_text", "--reconnect", "100"])
    for ms in magnitudes:
        stop(t, thread(process, "mc-worker"), ms)


@case(32, "memcached-lock", ["lock-wait"], (15, 40), threshold="4ms")
def memcached_lock(t, magnitudes):
    """All clients read one key, so all workers need its lock. One of them sleeps while it holds it. What it does is
    what the others wait for. Its own requests wait for the sleep, a second cause."""
    shim = host.ThreadShim(t)
    process, port = memcached(t, "-t", "4", cpu=BOTH, env=shim.environment)
    t.begin(["-p", str(port)], load=["--protocol", "memcache_text", "-r", "1"], ratio="0:1")
    for ms in magnitudes:
        ordered(t, shim, "lock-wait", "mc-worker", "lock", ms, named=True, among=2)


@case(33, "redis8-helper-stop", ["ptrace"], (10, 30, 100), threshold="4ms")
def redis8_helper_stop(t, magnitudes):
    # Its timer, usually ten times per second, makes the main thread wait for all helpers, and the load for that.
    server = newer_redis(t, "redis8", 3, "--hz", "1", "--dynamic-hz", "no")
    stop_its_connections(t, server.process, ["-s", server.socket], lambda _by: thread(server.process, "io_thd_1"), magnitudes)


@case(33, "redis8-pubsub", ["ptrace"], (10, 30, 100), threshold="4ms")
def redis8_pubsub(t, magnitudes):
    """In addition to the load, other clients move between the main thread, which has all subscribers, and a helper."""
    server = newer_redis(t, "redis8", 3, "--hz", "1", "--dynamic-hz", "no")

    def change():
        clients = [redis.Redis(unix_socket_path=server.socket) for _ in range(4)]

        def once():
            for client in clients:
                with client.pubsub() as p:
                    p.subscribe("news")
                    p.get_message(timeout=1)
                client.ping()

        return once

    with meanwhile(change):
        stop_its_connections(t, server.process, ["-s", server.socket], lambda _by: thread(server.process, "io_thd_1"), magnitudes)


@contextlib.contextmanager
def meanwhile(begin):
    """Calls the result of begin() every 2 ms, in a thread."""
    over = threading.Event()

    def go_on():
        once = begin()
        while not over.wait(0.002):
            once()

    asking = threading.Thread(target=go_on)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


@case(34, "valkey-helper-stop", ["ptrace"], (10, 20, 60), threshold="4ms")
def valkey_helper_stop(t, magnitudes):
    """Its only helper, which also polls for the main thread: more helpers would take their only CPU from each other."""
    server = newer_redis(t, "valkey", 2)
    t.begin(["-s", server.socket], **BURSTS)
    stop_helper(t, server, magnitudes)


@case(34, "valkey-client-list", ["ptrace"], (10, 20, 60), threshold="4ms")
def valkey_client_list(t, magnitudes):
    """CLIENT LIST makes the main thread wait for each client's helper, whatever that is doing."""
    server = newer_redis(t, "valkey", 2)
    t.begin(["-s", server.socket], **BURSTS)

    def ask():
        client = redis.Redis(unix_socket_path=server.socket)
        return lambda: client.client_list()

    with meanwhile(ask):
        stop_helper(t, server, magnitudes)


@case(35, "haproxy-thread-stop", ["ptrace"], (10, 50, 200), threshold="4ms")
def haproxy_thread_stop(t, magnitudes):
    process, port = haproxy(t, t.redis())

    def another(by):
        """One that has connections and is not the process' first."""
        return max(set(kernel.threads(process.pid)) - {process.pid}, key=lambda tid: sum(tids == {tid} for tids in by.values()))

    stop_its_connections(t, process, ["-p", str(port)], another, magnitudes)


def haproxy(t, server):
    """HAProxy with two threads, which forwards connections to a server."""
    proxy = t.serve("haproxy", tcp=True, of=[server.socket], cpu=BOTH)
    wait_for("haproxy's threads", lambda: len(kernel.threads(proxy.pid)) == 2)
    time.sleep(0.5)
    return proxy, proxy.port


@case("control", "nothing-redis7", [], (10,), threshold="4ms")
def nothing_redis7(t, magnitudes):
    server = redis7(t, 2)
    t.begin(["-s", server.socket], **BURSTS)
    time.sleep(magnitudes[0])


@case("control", "nothing-memcached", [], (10,), threshold="4ms")
def nothing_memcached(t, magnitudes):
    _process, port = memcached(t, "-t", "4", cpu=BOTH)
    t.begin(["-p", str(port)], load=["--protocol", "memcache_text"])
    time.sleep(magnitudes[0])


@case("control", "nothing-redis8", [], (10,), threshold="4ms")
def nothing_redis8(t, magnitudes):
    server = newer_redis(t, "redis8", 3)
    t.begin(["-s", server.socket])
    time.sleep(magnitudes[0])


@case("control", "nothing-valkey", [], (10,), threshold="4ms")
def nothing_valkey(t, magnitudes):
    server = newer_redis(t, "valkey", 3)
    t.begin(["-s", server.socket], **BURSTS)
    time.sleep(magnitudes[0])


@case("control", "nothing-haproxy", [], (10,), threshold="4ms")
def nothing_haproxy(t, magnitudes):
    _process, port = haproxy(t, t.redis())
    t.begin(["-p", str(port)])
    time.sleep(magnitudes[0])
