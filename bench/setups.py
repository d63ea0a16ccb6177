# SPDX-License-Identifier: MIT
"""The loads of bench/overhead: one redis-server on CPU 0, reached over a Unix socket, over TCP on loopback, or over TCP
from a separate network namespace, by a client on CPU 1.

A setup's name consists of a path (unix, tcp, veth) and a mode. No suffix: GET from 50 connections of redis-benchmark,
each waiting for its answer. -p16: with 16 outstanding requests per connection. -c5000: from 5,000 connections. -half:
forktail-load's open loop at half the rate that these connections reach when each waits for its answer.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import bench
import quiet

WHERE, HOW = ("unix", "tcp", "veth"), ("", "p16", "c5000", "half")
CONNECTIONS, MANY_CONNECTIONS, KEYS = "50", "5000", "100000"
PIPELINE = 16
PIPELINE_REQUESTS = 8  # times as many requests, because it would end too soon otherwise
LIMIT_S = 120
HOST_SIDE, CLIENT_SIDE = "198.18.103.1", "198.18.103.2"  # an address range reserved for benchmarks


class Setup:
    def __init__(self, name):
        self.name = name
        self.where, _, self.how = name.partition("-")
        if self.where not in WHERE or self.how not in HOW:
            sys.exit(f"no setup {name}: use {', '.join(WHERE)}, alone or with -p16, -c5000 or -half")


class Veth:
    """A pair of interfaces, one end in a network namespace. Both end with the block."""

    def __init__(self):
        self.namespace = f"ftbench-{os.getpid()}"
        self.host, self.client = f"ftb{os.getpid()}h", f"ftb{os.getpid()}c"

    def __enter__(self):
        self.sweep()
        try:
            self.ip("netns", "add", self.namespace)
            self.ip("link", "add", self.host, "type", "veth", "peer", "name", self.client, "netns", self.namespace)
            self.ip("addr", "add", HOST_SIDE + "/30", "dev", self.host)
            self.ip("link", "set", self.host, "up")
            self.ip("-n", self.namespace, "addr", "add", CLIENT_SIDE + "/30", "dev", self.client)
            self.ip("-n", self.namespace, "link", "set", self.client, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # The interface first: a namespace that another process still uses stays alive, and with it its end of the pair.
        for what in (["link", "del", self.host], ["netns", "del", self.namespace]):
            subprocess.run(["ip", *what], capture_output=True)

    def sweep(self):
        """Removes what a killed run left behind, because it has the same address."""
        for name in re.findall(r"ftbench-(\d+)", subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout):
            if not os.path.exists(f"/proc/{name}"):
                subprocess.run(["ip", "link", "del", f"ftb{name}h"], capture_output=True)
                subprocess.run(["ip", "netns", "del", f"ftbench-{name}"], capture_output=True)

    def ip(self, *what):
        done = subprocess.run(["ip", *what], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"ip {' '.join(what)}: {done.stderr.strip()}")


class Measured:
    """One measurement: the server's CPU seconds per million requests, requests per second, latencies (None if the
    client does not report them), and the period."""

    def __init__(self, stretch, requests, latency_ns):
        self.stretch = stretch
        self.cost = stretch.server_s / requests * 1e6
        self.rate = requests / stretch.wall_s
        self.p50, self.p99 = (latency_ns["p50"], latency_ns["p99"]) if latency_ns else (None, None)


class Bed(bench.servers.Server):
    """The server and what is measured on it. Ends with its block."""

    def __init__(self, directory, requests, load, veth):
        """`load`: forktail-load; `veth`: a Veth, or None."""
        self.scratch, self.requests, self.load, self.veth = directory, requests, load, veth
        self.most = {}  # path -> requests per second of forktail-load's closed loop
        self.unix = os.path.join(directory, "redis.sock")
        # Only this host can reach these addresses, so no password is needed.
        super().__init__("redis", "--bind", "127.0.0.1", *([HOST_SIDE] if veth else []), "--protected-mode", "no", "--unixsocket",
                         self.unix, tcp=True, cpus=bench.SERVER_CPU)

    def client(self, where, program, *options, connections=CONNECTIONS):
        address = {"unix": ["-s", self.unix], "tcp": ["-h", "127.0.0.1", "-p", str(self.port)],
                   "veth": ["-h", HOST_SIDE, "-p", str(self.port)]}[where]
        inside = ["ip", "netns", "exec", self.veth.namespace] if where == "veth" else []
        return [*inside, program, *address, "-t", "get", "-c", connections, "-r", KEYS, "-q", *options]

    def measure(self, setup, recorder=(), requests=None):
        """Measures while `recorder`, a list of process ids, records. `requests` replaces the default number."""
        if setup.how == "half":
            return self.measure_open(setup, recorder, requests)
        count, options = requests or self.requests, []
        if setup.how == "p16":
            count, options = count if requests else count * PIPELINE_REQUESTS, ["-P", str(PIPELINE)]
        connections = MANY_CONNECTIONS if setup.how == "c5000" else CONNECTIONS
        stretch = self.run(recorder, self.client(setup.where, "redis-benchmark", "-n", str(count), *options,
                                                 connections=connections))
        return Measured(stretch, count, None)

    def measure_open(self, setup, recorder, requests):
        if setup.where not in self.most:
            tries = [self.run_load([], setup.where, "-n", str(self.requests)) for _ in range(3)]
            self.most[setup.where] = max(total["requests"] / stretch.wall_s for stretch, total in tries)
        rate = self.most[setup.where] / 2
        stretch, total = self.run_load(recorder, setup.where, "--rate", f"{rate:.0f}", "-n",
                                       str(requests or self.requests // 2))
        return Measured(stretch, total["requests"], total["latency_ns"])

    def run_load(self, recorder, where, *options):
        with tempfile.NamedTemporaryFile(dir=self.scratch) as figures:
            stretch = self.run(recorder, self.client(where, self.load, "--no-observer", "--json", figures.name, *options))
            return stretch, json.load(figures)["runs"][0]["total"]

    def run(self, recorder, client):
        before = quiet.Look(self.pid, recorder)
        ended = bench.run(client, LIMIT_S)
        return quiet.Stretch(before, quiet.Look(self.pid, recorder), ended.cpu_s)
