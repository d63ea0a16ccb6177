# SPDX-License-Identifier: MIT
"""Injections outside of the server's thread: the load generator, the path to the server, other kinds of server."""
import ctypes
import os
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import host
import kernel
from registry import case
from trial import CLIENT_CPU, SERVER_CPU, Skip, now_ns, stopped_for, wait_for


def many_descriptors():
    """Thousands of connections need as many descriptors in this process and, inherited, in its servers."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit < 11000:
        raise Skip(f"no process may have more than {limit} files open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


@case(16, "client-stop", ["client-late"], (10, 50, 200))
def client_stop(t, magnitudes):
    server = t.redis()
    t.begin(["-s", server.socket])
    for ms in magnitudes:
        with t.injecting("client-late", f"{ms} ms", server.tid) as done:
            done["stall_ns"] = stopped_for(t.load.process, ms)


@case(16, "client-hog", ["client-late"], (10, 50, 150))
def client_hog(t, magnitudes):
    server = t.redis()
    t.begin(["-s", server.socket])
    for ms in magnitudes:
        process = host.hog(t, CLIENT_CPU, "chrt", "-f", "50")
        os.sched_setaffinity(0, {SERVER_CPU})  # so that it can be ended
        with t.injecting("client-late", f"{ms} ms", server.tid) as done:
            since = now_ns()
            host.let_run(process, ms / 1000)
            done["stall_ns"] = now_ns() - since
        os.sched_setaffinity(0, {CLIENT_CPU})


class DelayingProxy(threading.Thread):
    """Relays bytes between a port and a server's socket. With .delay_s it delays each piece by that."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.delay_s = path, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.path)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(source, sink, source is client), daemon=True).start()

    def carry(self, source, sink, towards_server):
        try:
            while data := source.recv(65536):
                if towards_server and self.delay_s:
                    time.sleep(self.delay_s)
                sink.sendall(data)
        except OSError:
            pass  # the other side's end
        source.close()
        sink.close()


@case(17, "network", ["network"], (8, 20, 60), threshold="4ms")
def network(t, magnitudes):
    server = t.redis()
    proxy = DelayingProxy(server.socket)
    t.stack.callback(proxy.listener.close)
    t.begin(["-h", "127.0.0.1", "-p", str(proxy.port)], rate=100, connections=20)
    for ms in magnitudes:
        with t.injecting("network", f"{ms} ms", server.tid) as done:
            proxy.delay_s = ms / 1000
            time.sleep(0.3)
            proxy.delay_s = 0
            time.sleep(ms / 1000)
        done["stall_ns"] = ms * 1_000_000


@case(18, "full-sync", ["fork"], (200, 400, 600))
def full_sync(t, magnitudes):
    server = t.redis("--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--bgsave_cpulist", str(CLIENT_CPU), tcp=True)
    t.begin(["-s", server.socket])
    for i, megabytes in enumerate(magnitudes):
        server.execute_command("DEBUG", "POPULATE", megabytes * 900, "fill", 1000)
        forks = server.info("stats")["total_forks"]
        replica = t.redis(name=f"replica{i}", cpu=CLIENT_CPU, target=False)
        with t.injecting("fork", f"{megabytes} MB", server.tid) as done:
            waited = kernel.run_delay_ns(server.tid)
            replica.execute_command("REPLICAOF", "127.0.0.1", server.port)
            wait_for("the fork", lambda: server.info("stats")["total_forks"] > forks)
            waited = kernel.run_delay_ns(server.tid) - waited
        done["stall_ns"] = server.info("stats")["latest_fork_usec"] * 1000 - waited
        wait_for("the replica's synchronisation", lambda: replica.info("replication")["master_link_status"] == "up", 60)
        replica.shutdown(nosave=True)


def memcached(t, *options, **how):
    server = t.serve("memcached", "-t", "1", *options, tcp=True, **how)
    t.reached_by["PORT"] = str(server.port)
    return server, server.port


@case(19, "memcached-worker", ["ptrace"], (10, 50, 200))
def memcached_worker(t, magnitudes):
    """Stops one worker thread of memcached with ptrace, and no other."""
    process, port = memcached(t)
    worker = [tid for tid, name in kernel.threads(process.pid).items() if name == "mc-worker"][0]
    t.begin(["-p", str(port)], load=["--protocol", "memcache_text"])
    for ms in magnitudes:
        with t.injecting("ptrace", f"{ms} ms", worker, culprit=str(os.getpid())) as done:
            done["stall_ns"] = host.traced_for(worker, ms)


@case(19, "memcached-slabs", ["run-queue"], (5, 20, 60), threshold="500us")
def memcached_slabs(t, magnitudes):
    """memcached's slab mover takes pages from one class for another, and uses the worker's CPU meanwhile."""
    process, port = memcached(t, "-m", "256", "-o", "slab_reassign,no_slab_automove")
    control = socket.create_connection(("127.0.0.1", port))
    t.stack.callback(control.close)

    def ask(text):
        control.sendall(text.encode() + b"\r\n")
        reply = control.recv(65536)
        while not reply.endswith(b"\r\n"):
            reply += control.recv(65536)
        return reply.decode()

    for base in range(0, 800_000, 1000):
        control.sendall(b"".join(b"set small:%d 0 0 100 noreply\r\n%s\r\n" % (i, b"x" * 100) for i in range(base, base + 1000)))
    ask("set large 0 0 10000\r\n" + "x" * 10000)
    classes = sorted({int(line.split()[1].split(":")[0]) for line in ask("stats slabs").splitlines() if ":chunk_size" in line})
    worker = [tid for tid, name in kernel.threads(process.pid).items() if name == "mc-worker"][0]
    t.begin(["-p", str(port)], load=["--protocol", "memcache_text", "--key-prefix", "small:"])
    for pages in magnitudes:
        with t.injecting("run-queue", f"{pages} pages", worker, truth=kernel.run_delay_ns, culprit="mc-slabmaint"):
            moved = 0
            while moved < pages:
                answer = ask(f"slabs reassign {classes[0]} {classes[-1]}")
                if answer.startswith("OK"):
                    moved += 1
                elif not answer.startswith("BUSY"):
                    raise Skip("memcached moved no page: " + answer.strip())
                time.sleep(0.001)


@case(20, "proxy-stop", ["stopped"], (10, 50, 200))
def proxy_stop(t, magnitudes):
    """Stops a proxy in front of an idle Redis."""
    server = t.redis(tcp=True)
    proxy = t.serve("nutcracker", tcp=True, of=[f"127.0.0.1:{server.port}"], cpu="")
    t.begin(["-p", str(proxy.port)])
    for ms in magnitudes:
        with t.injecting("stopped", f"{ms} ms", proxy.pid) as done:
            done["stall_ns"] = stopped_for(proxy, ms)


def softirq_ms(cpu):
    """The kernel's own coarse count of a CPU's time in soft interrupts."""
    with open("/proc/stat") as f:
        fields = [line for line in f if line.startswith(f"cpu{cpu} ")][0].split()
    return int(fields[7]) * 1000 / os.sysconf("SC_CLK_TCK")


# Stops itself when it is ready, and sends a packet every few milliseconds once it is continued. Each is a lot of work,
# which the kernel does at once. For many packets it would leave most of the work to ksoftirqd, for which a server waits
# on the run queue.
PACKETS = """
import os, signal, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.77.0.1", 9))
os.kill(os.getpid(), signal.SIGSTOP)
until = time.monotonic() + %f
while time.monotonic() < until:
    try: s.send(b"x")
    except OSError: pass
    time.sleep(0.004)
"""
LISTENERS = 250  # each reads every packet of the interface, as captures do
FILTER = 1000  # instructions of each one's filter: together about a millisecond of work


def listening(t, interface):
    """Many listeners read each packet of the interface, in soft interrupts, and drop it."""
    load_byte, refuse = struct.pack("HBBI", 0x30, 0, 0, 0), struct.pack("HBBI", 0x06, 0, 0, 0)
    program = ctypes.create_string_buffer(load_byte * (FILTER - 1) + refuse)
    for _ in range(LISTENERS):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        t.stack.callback(s.close)
        s.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", FILTER, ctypes.addressof(program)))  # SO_ATTACH_FILTER
        s.bind((interface, 0))


def packets_on(t, cpu):
    """A network namespace whose packets to 10.77.0.1 arrive on this CPU, where many listeners read each of them."""
    name = f"ft{os.getpid()}"
    host.sh("ip", "netns", "add", name)
    t.stack.callback(subprocess.run, ["ip", "netns", "del", name])
    host.sh("ip", "link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
    host.sh("ip", "addr", "add", "10.77.0.1/24", "dev", f"{name}a")
    host.sh("ip", "link", "set", f"{name}a", "up")
    host.sh("ip", "-n", name, "addr", "add", "10.77.0.2/24", "dev", f"{name}b")
    host.sh("ip", "-n", name, "link", "set", f"{name}b", "up")
    host.write(f"/sys/class/net/{name}a/queues/rx-0/rps_cpus", f"{1 << cpu:x}")
    listening(t, f"{name}a")
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    t.stack.callback(sink.close)
    sink.bind(("10.77.0.1", 9))
    return name


@case(7, "softirq", ["softirq"], (0.2, 0.4, 1.0), threshold="500us")
def softirq(t, magnitudes):
    """Packets that arrive on the server's CPU: sent from a network namespace, steered there, and read by many
    listeners."""
    packets(t, magnitudes)


@case(7, "softirq-sampled", ["softirq"], (0.2, 0.4, 1.0), threshold="500us")
def softirq_sampled(t, magnitudes):
    """The same, as it is recorded on a host with very many soft interrupts."""
    t.record_options = [*t.record_options, "--softirqs=sampled"]
    packets(t, magnitudes)


def packets(t, magnitudes):
    name = packets_on(t, SERVER_CPU)
    server = t.redis()
    t.begin(["-s", server.socket])
    for seconds in magnitudes:
        flood = t.start(["ip", "netns", "exec", name, "nice", "-n", "-5", "taskset", "-c", str(CLIENT_CPU), "/usr/bin/python3", "-c",
                         PACKETS % seconds])
        host.wait_stopped(flood.pid)
        # Many at once are executed by a thread, for which the server waits.
        with t.injecting("softirq", f"{seconds} s", server.tid, also={"run-queue": f"ksoftirqd/{SERVER_CPU}"}) as done:
            before = softirq_ms(SERVER_CPU)
            flood.send_signal(signal.SIGCONT)
            flood.wait()
            done["happened"] = softirq_ms(SERVER_CPU) - before > 100 * seconds


def connected(path, count):
    """This many connections to a server's socket."""
    for _ in range(count):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        yield s


@case(25, "publish", ["server-busy"], (2000, 4000, 6500))
def publish(t, magnitudes):
    """One message to thousands of subscribers: the command is short, sending is not."""
    many_descriptors()
    server = t.redis("--maxclients", "10000")
    t.begin(["-s", server.socket])
    subscribers = []
    t.stack.callback(lambda: [s.close() for s in subscribers])
    for count in magnitudes:
        for s in connected(server.socket, count - len(subscribers)):
            s.sendall(b"SUBSCRIBE news\r\n")
            subscribers.append(s)
        wait_for("the subscriptions", lambda: server.pubsub_numsub("news")[0][1] == count)
        with t.injecting("server-busy", f"{count} subscribers", server.tid, activity="answer",
                         or_named=["kernel/send"]):
            server.publish("news", "x" * 100)
            server.ping()


HOLDER = """
import socket, sys, time
held = [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[2]))]
for s in held:
    s.connect(sys.argv[1])
time.sleep(1000)
"""


@case(26, "connections", ["server-busy"], (2000, 4000, 6500))
def connections(t, magnitudes):
    """A client with thousands of connections dies: they all end at once."""
    many_descriptors()
    server = t.redis("--maxclients", "10000")
    t.begin(["-s", server.socket])
    for count in magnitudes:
        holder = t.start(["/usr/bin/python3", "-c", HOLDER, server.socket, str(count)])
        wait_for("the connections", lambda: server.info("clients")["connected_clients"] > count)
        with t.injecting("server-busy", f"{count} connections", server.tid, activity="free-client",
                         or_named=["kernel/close"]):
            holder.kill()
            wait_for("their end", lambda: server.info("clients")["connected_clients"] < 100)
