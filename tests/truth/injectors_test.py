# SPDX-License-Identifier: MIT
"""The injectors affect one thread of a server, for the right time and no other thread: checked with /proc, the thread's
own clocks, and a client of the server. Exit status 3: not root."""
import os
import socket
import sys
import threading
import time
import unittest

import host
import kernel
from cases_network import memcached
from trial import Trial, now_ns


def state(tid):
    with open(f"/proc/{tid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


class Watch(threading.Thread):
    """Reads threads' states until it is ended: {tid: how often it was stopped by a tracer}."""

    def __init__(self, tids):
        super().__init__()
        self.stopped, self.ended = dict.fromkeys(tids, 0), threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.001):
            for tid in self.stopped:
                self.stopped[tid] += state(tid) == "t"

    def seen(self):
        self.ended.set()
        self.join()
        return self.stopped


class Injectors(unittest.TestCase):
    def setUp(self):
        self.trial = self.enterContext(Trial("injectors", None))
        self.shim = host.ThreadShim(self.trial)
        self.process, self.port = memcached(self.trial, "-t", "2", cpu="0,1", env=self.shim.environment)
        self.clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(4)]
        for client in self.clients:
            self.addCleanup(client.close)
            self.ask(client)
        self.workers = [tid for tid, comm in kernel.threads(self.process.pid).items() if comm == "mc-worker"]

    def ask(self, client, text=b"get key\r\n"):
        """Returns how long the answer took, in ns."""
        since = now_ns()
        client.sendall(text)
        self.assertEqual(client.recv(100), b"END\r\n")
        return now_ns() - since

    def test_threads_are_stopped_each_for_its_time(self):
        watch = Watch(kernel.threads(self.process.pid))
        times = host.traced({self.workers[0]: 60, self.workers[1]: 20})
        seen = watch.seen()
        for tid, ms in zip(self.workers, (60, 20)):
            self.assertGreaterEqual(times[tid][1] - times[tid][0], ms * 1_000_000)
            self.assertGreater(seen[tid], 0)
        self.assertGreater(times[self.workers[0]][1], times[self.workers[1]][1])
        for tid in set(seen) - set(self.workers):
            self.assertEqual(seen[tid], 0)
        self.assertNotIn("t", map(state, seen))

    def test_the_trace_tells_who_reads_what(self):
        reads = kernel.Reads(self.trial, self.process.pid)
        for client in self.clients:
            self.ask(client)
        by = reads.by_descriptor()
        served = kernel.served(os.getpid(), self.process.pid)
        self.assertEqual(len(served), len(self.clients))
        self.assertEqual([len(by[fd]) for fd in served], [1] * len(served))
        self.assertEqual({tid for fd in served for tid in by[fd]}, set(self.workers))
        # A stopped thread delays the requests of its connections, by the trace, and no others.
        theirs = [client for client, fd in zip(self.clients, served) if by[fd] == {self.workers[0]}]
        took = {}
        stop = threading.Thread(target=lambda: took.update(stop=host.traced_for(self.workers[0], 100)))
        stop.start()
        while state(self.workers[0]) != "t":
            time.sleep(0.001)
        for client in theirs:
            client.sendall(b"get key\r\n")
        for client in set(self.clients) - set(theirs):
            self.ask(client)
        self.assertEqual(state(self.workers[0]), "t")
        stop.join()
        for client in theirs:
            self.assertEqual(client.recv(100), b"END\r\n")

    def test_a_thread_sleeps_or_burns_where_it_is_told_to(self):
        for call in ("read", "write"):
            for burn in (False, True):
                with self.subTest(call=call, burn=burn):
                    self.shim.order("mc-worker", call, 20, burn)
                    took = self.ask(self.clients[0])
                    done = self.shim.done()
                    self.assertIn(done["tid"], self.workers)
                    self.assertGreaterEqual(done["end_ns"] - done["start_ns"], 20_000_000)
                    self.assertGreaterEqual(took, 20_000_000)
                    self.assertEqual(done["cpu_ns"] > 1_000_000, burn)

    def test_a_name_that_nobody_has_is_nobody(self):
        self.shim.order("mc-nobody", "write", 1000)
        for client in self.clients:
            self.ask(client)
        self.assertIsNone(self.shim.done())

    def test_a_lock_is_held_that_others_want(self):
        asking = threading.Event()

        def load(client):
            while not asking.is_set():
                self.ask(client)

        loads = [threading.Thread(target=load, args=(client,)) for client in self.clients]
        for one in loads:
            one.start()
        self.shim.order("mc-worker", "lock", 100)
        waited = set()
        until = time.monotonic() + 20
        while not self.shim.done() and time.monotonic() < until:
            waited |= {tid for tid in self.workers if in_futex(tid)}
        asking.set()
        for one in loads:
            one.join()
        done = self.shim.done()
        self.assertIn(done["tid"], self.workers)
        self.assertEqual(waited, set(self.workers) - {done["tid"]})


def in_futex(tid):
    with open(f"/proc/{tid}/syscall") as f:
        return f.read().split()[0] == "202"  # on x86-64


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("injectors_test: must run as root to stop threads. Use sudo.", file=sys.stderr)
        sys.exit(3)
    unittest.main()
