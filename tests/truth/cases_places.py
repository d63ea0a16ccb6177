# SPDX-License-Identifier: MIT
"""Waits that look like the network and are none: the server waits for a peer inside an event-loop iteration, or holds
requests that it has read, or a process between client and server waits. And the other way round: a link that is down."""
import contextlib
import os
import select
import socket
import signal
import subprocess
import threading
import time

import host
from registry import case
from trial import CLIENT_CPU, SERVER_CPU, Skip, now_ns, stopped_for, wait_for


class LateResolver(threading.Thread):
    """A name server that answers each query with "no such name" after .delay_s."""

    ADDRESS = "127.0.0.77"

    def __init__(self, t):
        super().__init__(daemon=True)
        self.delay_s, self.waited_ns = 0, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        t.stack.callback(self.socket.close)
        try:
            self.socket.bind((self.ADDRESS, 53))
        except OSError as e:
            raise Skip(f"{self.ADDRESS}:53: {e.strerror}") from e
        self.path = os.path.join(t.directory, "resolv.conf")
        with open(self.path, "w") as f:
            f.write(f"nameserver {self.ADDRESS}\noptions timeout:5 attempts:1\n")
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                queries = [self.socket.recvfrom(1500)]
                since = now_ns()
                time.sleep(self.delay_s)
                while select.select([self.socket], [], [], 0)[0]:  # getaddrinfo asks for both families at once
                    queries.append(self.socket.recvfrom(1500))
                for query, sender in queries:
                    self.socket.sendto(query[:2] + b"\x81\x83" + query[4:], sender)
                self.waited_ns += now_ns() - since


@case(36, "name-resolution", ["peer-wait"], (60, 200, 500), threshold="4ms")
def name_resolution(t, magnitudes):
    """REPLICAOF with a name: the main thread resolves it, in poll(), again each second."""
    resolver = LateResolver(t)
    server = t.redis(under=["unshare", "-m", "sh", "-c", f'mount --bind {resolver.path} /etc/resolv.conf && exec "$@"', "sh"])
    t.begin(["-s", server.socket])
    for ms in magnitudes:
        resolver.delay_s = ms / 1000
        with t.injecting("peer-wait", f"{ms} ms", server.tid, truth=lambda _tid: resolver.waited_ns):
            before = resolver.waited_ns
            server.execute_command("REPLICAOF", "primary.example.invalid.", "6379")
            wait_for("the query", lambda: resolver.waited_ns > before)
            server.execute_command("REPLICAOF", "NO", "ONE")


def migrate(t, magnitudes, target_is_recorded):
    server = t.redis()
    target = t.redis(name="target", cpu=CLIENT_CPU, tcp=True, target=target_is_recorded)
    server.execute_command("DEBUG", "POPULATE", 1000, "moves", 100)
    t.begin(["-s", server.socket])
    for i, ms in enumerate(magnitudes):
        with t.injecting("peer-wait", f"{ms} ms", server.tid, **({"line_only": True} if target_is_recorded else {})) as done:
            moved = threading.Thread(target=server.execute_command, args=(
                "MIGRATE", "127.0.0.1", target.port, f"moves:{i}", 0, 10_000))
            done["stall_ns"] = stopped_for(target.process, ms, moved.start)
            moved.join()


@case(36, "migrate", ["peer-wait"], (50, 150, 400), threshold="4ms")
def migrate_to_stopped(t, magnitudes):
    """MIGRATE writes to its target and reads the answer inside of the command. The target is stopped."""
    migrate(t, magnitudes, False)


@case(36, "migrate-recorded", ["peer-wait"], (50, 150, 400), threshold="4ms", in_short=False)
def migrate_to_recorded(t, magnitudes):
    """The target is recorded too: what it did meanwhile is known."""
    migrate(t, magnitudes, True)


class HalfPrimary(threading.Thread):
    """A primary that answers a replica's PING in two halves, .delay_s apart, and then closes the connection."""

    def __init__(self, t):
        super().__init__(daemon=True)
        self.delay_s, self.waited_ns = 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        t.stack.callback(self.listener.close)
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                replica, _ = self.listener.accept()
                with replica, contextlib.suppress(OSError):
                    replica.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    replica.recv(1500)
                    replica.sendall(b"+PO")
                    since = now_ns()
                    time.sleep(self.delay_s)
                    replica.sendall(b"NG\r\n")
                    self.waited_ns += now_ns() - since


@case(36, "half-a-reply", ["peer-wait"], (60, 200, 500), threshold="4ms", in_short=False)
def half_a_reply(t, magnitudes):
    """A replica reads its primary's answers with a blocking read of a line."""
    primary = HalfPrimary(t)
    server = t.redis()
    t.begin(["-s", server.socket], ratio="0:1")
    for ms in magnitudes:
        primary.delay_s = ms / 1000
        with t.injecting("peer-wait", f"{ms} ms", server.tid, truth=lambda _tid: primary.waited_ns):
            before = primary.waited_ns
            server.execute_command("REPLICAOF", "127.0.0.1", primary.port)
            wait_for("the replica's PING", lambda: primary.waited_ns > before)
            server.execute_command("REPLICAOF", "NO", "ONE")


# Speaks enough of Redis' protocol for the load generator's reads. On a signal it asks its backend, in recv(), before it
# answers the next request.
FRONT = """
import select, signal, socket, sys
ask = []
signal.signal(signal.SIGUSR1, lambda *_: ask.append(1))
backend = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
loop, clients = select.epoll(), {}
loop.register(listener, select.EPOLLIN)
while True:
    for fd, _ in loop.poll():
        if fd == listener.fileno():
            client = listener.accept()[0]
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            clients[client.fileno()] = client
            loop.register(client, select.EPOLLIN)
            continue
        data = clients[fd].recv(65536)
        if not data:
            loop.unregister(fd)
            clients.pop(fd).close()
            continue
        if ask:
            ask.clear()
            backend.send(b"?")
            backend.recv(1)
        clients[fd].sendall(b"".join(b"+PONG\\r\\n" if w == b"PING" else b"$-1\\r\\n" if w == b"GET" else b"-ERR unknown\\r\\n"
                                     for a in data.split(b"*")[1:] for w in [a.split(b"\\r\\n")[2].upper()]))
"""


@case(36, "backend-recv", ["peer-wait"], (50, 150, 400), threshold="4ms")
def backend_recv(t, magnitudes):
    """A server with an epoll loop that is not Redis waits in recv() for its backend, here this suite."""
    listener = socket.create_server(("127.0.0.1", 0))
    t.stack.callback(listener.close)
    front = t.start(["/usr/bin/python3", "-c", FRONT, str(listener.getsockname()[1])], stdout=subprocess.PIPE, text=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_CPU}))
    backend = listener.accept()[0]
    t.stack.callback(backend.close)
    port = front.stdout.readline().strip()
    t.targets.append(front.pid)
    t.begin(["-p", port], rate=1000, ratio="0:1")
    for ms in magnitudes:
        with t.injecting("peer-wait", f"{ms} ms", front.pid) as done:
            os.kill(front.pid, signal.SIGUSR1)
            backend.recv(1)
            since = now_ns()
            time.sleep(ms / 1000)
            done["stall_ns"] = now_ns() - since
            backend.sendall(b"!")


def pause(t, magnitudes, what):
    """CLIENT PAUSE. The load generator's own reads of the server's INFO and commandstats can show it."""
    server = t.redis()
    t.begin(["-s", server.socket], rate=1000, ratio="1:1", observer=True)
    for ms in magnitudes:
        with t.injecting("held", f"{ms} ms", server.tid, stall_ns=ms * 1_000_000):
            server.execute_command("CLIENT", "PAUSE", ms, what)
            time.sleep(ms / 1000)


@case(37, "client-pause", ["held"], (60, 200, 500), threshold="4ms")
def client_pause(t, magnitudes):
    pause(t, magnitudes, "WRITE")


@case(37, "client-pause-all", ["held"], (60, 200, 500), threshold="4ms", in_short=False)
def client_pause_all(t, magnitudes):
    """All clients, also those that read INFO. The kernel's arrival times show that the server had the requests."""
    t.record_options = [*t.record_options, "--requests"]
    pause(t, magnitudes, "ALL")


def with_replica(t, *config):
    """A server and its replica, which is up."""
    server = t.redis(*config, tcp=True)
    replica = t.redis("--replicaof", f"127.0.0.1 {server.port}", name="replica", cpu=CLIENT_CPU, target=False, tcp=True)
    wait_for("the replica", lambda: replica.info("replication")["master_link_status"] == "up")
    return server, replica


@case(37, "failover", ["held"], (200, 400, 800), threshold="4ms", in_short=False)
def failover(t, magnitudes):
    """FAILOVER pauses writes until the replica has all data. The replica is stopped, so it is given up after a time."""
    server, replica = with_replica(t, "--repl-diskless-sync-delay", "0")
    t.begin(["-s", server.socket], rate=1000, ratio="1:1", observer=True)
    for ms in magnitudes:
        with t.injecting("held", f"{ms} ms", server.tid) as done:
            replica.process.send_signal(signal.SIGSTOP)
            since = now_ns()
            server.execute_command("FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", ms)
            wait_for("the end of the failover", lambda: server.info("replication")["master_failover_state"] == "no-failover")
            done["stall_ns"] = now_ns() - since
            replica.process.send_signal(signal.SIGCONT)
        wait_for("the replica", lambda: replica.info("replication")["master_link_status"] == "up")


@case(37, "wait", ["held"], (60, 200, 500), threshold="4ms")
def wait(t, magnitudes):
    """Some of the requests are WAIT, for a replica that is stopped."""
    server, replica = with_replica(t, "--repl-diskless-sync-delay", "0")
    t.begin(["-s", server.socket], rate=1000, ratio=None, observer=True,
            load=["--command", "SET __key__ __data__", "--command-ratio", "4", "--command", "WAIT 1 1000"])
    for ms in magnitudes:
        with t.injecting("held", f"{ms} ms", server.tid) as done:
            done["stall_ns"] = stopped_for(replica.process, ms)


@case(37, "blocking-command", ["held"], (60, 200, 500), threshold="4ms", in_short=False)
def blocking_command(t, magnitudes):
    """Some of the requests take an element from a list and put it back. For a while the list is empty."""
    server = t.redis()
    server.rpush("queue", *range(100))
    t.begin(["-s", server.socket], rate=1000, ratio=None, observer=True,
            load=["--command", "GET __key__", "--command-ratio", "9", "--command", "BLMOVE queue queue LEFT RIGHT 5"])
    for ms in magnitudes:
        with t.injecting("held", f"{ms} ms", server.tid) as done:
            server.rename("queue", "away")
            since = now_ns()
            time.sleep(ms / 1000)
            done["stall_ns"] = now_ns() - since
            server.rename("away", "queue")


# A relay that sends each answer in two pieces, without TCP_NODELAY: the second waits for the client's delayed ACK.
PIECES = """
import select, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
loop, other, ends = select.epoll(), {}, {}
loop.register(listener, select.EPOLLIN)
while True:
    for fd, _ in loop.poll():
        if fd == listener.fileno():
            client, server = listener.accept()[0], socket.create_connection(("127.0.0.1", int(sys.argv[1])))
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for a, b in ((client, server), (server, client)):
                ends[a.fileno()], other[a.fileno()] = a, b
                loop.register(a, select.EPOLLIN)
            continue
        data = ends[fd].recv(65536)
        if not data:
            for end in (ends[fd], other[fd]):
                loop.unregister(end)
                end.close()
            continue
        half = len(data) // 2
        other[fd].send(data[:half])
        other[fd].send(data[half:])
"""


def delayed_acks():
    """How many acknowledgements this host has sent late so far."""
    with open("/proc/net/netstat") as f:
        names, values = [line.split() for line in f if line.startswith("TcpExt:")]
    return int(values[names.index("DelayedACKs")])


@case(38, "nagle", ["network"], (3,), runs=("nagle",), fixed=True)
def nagle(t, magnitudes):
    """A closed loop: a client that sends each request right after an answer is one whose ACKs the kernel delays."""
    server = t.redis(tcp=True)
    relay = t.start(["/usr/bin/python3", "-c", PIECES, str(server.port)], stdout=subprocess.PIPE, text=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_CPU}))
    t.targets.append(relay.pid)
    before = delayed_acks()
    t.begin(["-p", relay.stdout.readline().strip()], rate=None, ratio="0:1", connections=4, duration=f"{magnitudes[0]}s")
    t.finish()
    if delayed_acks() - before < 10:
        raise Skip("the kernel delayed no acknowledgements")
    t.whole("nagle", slow="20ms")


@case(38, "nutcracker-backend", ["stopped"], (50, 150, 300), threshold="4ms")
def nutcracker_backend(t, magnitudes):
    """One of two servers behind a proxy is stopped. All three are recorded; which of the two answered is not known."""
    servers = [t.redis(name=name, tcp=True, cpu=CLIENT_CPU) for name in ("one", "other")]
    proxy = t.serve("nutcracker", tcp=True, of=[f"127.0.0.1:{server.port}" for server in servers], cpu=SERVER_CPU)
    t.begin(["-p", str(proxy.port)], rate=2000)
    for ms in magnitudes:
        with t.injecting("stopped", f"{ms} ms", servers[0].tid, line_only=True) as done:
            done["stall_ns"] = stopped_for(servers[0].process, ms)


@case(39, "link-down", ["network"], (50, 150, 400), threshold="4ms", in_short=False)
def link_down(t, magnitudes):
    """The server is in a network namespace. Its link loses all packets for a while; TCP repeats them later."""
    name = f"fl{os.getpid()}"
    host.sh("ip", "netns", "add", name)
    t.stack.callback(subprocess.run, ["ip", "netns", "del", name])
    host.sh("ip", "link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
    host.sh("ip", "addr", "add", "10.78.0.1/24", "dev", f"{name}a")
    host.sh("ip", "link", "set", f"{name}a", "up")
    host.sh("ip", "-n", name, "addr", "add", "10.78.0.2/24", "dev", f"{name}b")
    for interface in (f"{name}b", "lo"):
        host.sh("ip", "-n", name, "link", "set", interface, "up")
    server = t.redis("--bind", "0.0.0.0", "--protected-mode", "no", tcp=True, under=["nsenter", f"--net=/var/run/netns/{name}"])
    t.begin(["-h", "10.78.0.2", "-p", str(server.port)], rate=1000)
    for ms in magnitudes:
        with t.injecting("network", f"{ms} ms", server.tid, line_only=True) as done:
            since = now_ns()
            host.sh("tc", "qdisc", "replace", "dev", f"{name}a", "root", "tbf", "rate", "8bit", "burst", "1", "limit", "1")
            time.sleep(ms / 1000)
            host.sh("tc", "qdisc", "del", "dev", f"{name}a", "root")
            done["stall_ns"] = now_ns() - since
            time.sleep(0.5)  # packets are repeated after 200 ms, then after 400 ms
