# SPDX-License-Identifier: MIT
"""Which thread serves which connection: the recording of a server with a loop in each of its threads, checked against
the kernel's data about these threads.
"""

import os
import socket
import time
from collections import defaultdict
from pathlib import Path

import pytest

from forktail.servers.listen import Endpoint, connect_to, free_port
from harness import eventually, ft, helper, needs_root
from processes import Closing

pytestmark = needs_root

TCP = pytest.mark.parametrize("tcp", [True, False], ids=["tcp", "unix"])


class Client(Closing):
    """A connection that has got one answer, so that a worker owns it."""

    def __init__(self, endpoint):
        self.socket = connect_to(endpoint, 10)
        self.ask("version\r\n")
        self.port = self.socket.getsockname()[1] if self.socket.family == socket.AF_INET else 0
        self.inode = os.fstat(self.socket.fileno()).st_ino

    def close(self):
        self.socket.close()

    def ask(self, text):
        self.socket.sendall(text.encode())
        answer = self.socket.recv(256)
        assert answer
        return answer.decode()


@pytest.fixture
def connect(closing):
    """connect(endpoint, count): that many Clients, which are closed at the end of the test."""
    return lambda endpoint, count: [closing(Client(endpoint)) for _ in range(count)]


def ask_for_a_second(clients, text):
    """The recorder learns at once which threads have loops, and attaches its program after that."""
    for _ in range(10):
        for client in clients:
            client.ask(text)
        time.sleep(0.1)


def waiting_threads(pid):
    """From the kernel: the threads that wait for each epoll instance of a process."""
    threads = defaultdict(set)
    for task in Path(f"/proc/{pid}/task").iterdir():
        number, *arguments = (task / "syscall").read_text().split()
        if number in ("232", "281"):  # epoll_wait, epoll_pwait
            threads[int(arguments[0], 16)].add(int(task.name))
    return threads


def members(pid, epoll):
    """From the kernel: the inodes in an epoll instance."""
    lines = Path(f"/proc/{pid}/fdinfo/{epoll}").read_text().splitlines()
    return {int(line.partition(" ino:")[2].split()[0], 16) for line in lines if " ino:" in line}


@TCP
def test_each_connection_of_a_server_with_several_threads_has_the_thread_that_reads_it(serve, record, connect, tcp):
    memcached = serve("memcached", "-t", "4", tcp=tcp)
    at = memcached.instance.endpoint
    clients = connect(at, 6)
    recorder = record("--pid", memcached.pid)
    clients += connect(at, 6)
    ask_for_a_second(clients, "version\r\n")
    waiting = waiting_threads(memcached.pid)
    assert len(waiting) >= 5  # four workers and the listener
    threads = defaultdict(set)  # by inode
    for epoll, of_epoll in waiting.items():
        for inode in members(memcached.pid, epoll):
            threads[inode] |= of_epoll
    sockets = recorder.stop().sockets

    assert len(sockets) == len(clients)
    readers = set()
    for client in clients:
        mine = sockets.peer_port == client.port if tcp else sockets.peer_inode == client.inode
        (found,) = sockets[mine]
        assert (found.tgid, found.local_port) == (memcached.pid, memcached.port)
        assert threads[found.inode] == {found.reader}
        readers.add(found.reader)
    assert len(readers) == 4  # it distributes them in rotation


@pytest.mark.alone
def test_a_connection_is_closed_by_the_thread_that_read_it(serve, record, connect):
    memcached = serve("memcached", "-t", "4", tcp=True)
    clients = connect(memcached.instance.endpoint, 8)
    recorder = record("--pid", memcached.pid)
    ask_for_a_second(clients, "version\r\n")
    for client in clients:
        client.close()
    time.sleep(0.5)
    sockets = recorder.stop().sockets

    gone = sockets.epoll == ft.SOCKET_GONE % 2**32
    readers = {s.peer_port: s.reader for s in sockets[~gone]}
    closed = [(s.peer_port, s.reader, s.local_port) for s in sockets[gone]]
    assert sorted(closed) == sorted((client.port, readers[client.port], memcached.port) for client in clients)


@pytest.mark.alone
def test_threads_that_listen_on_one_port_have_their_accepted_and_their_moved_connections(background, record, connect):
    port = free_port()
    server = background(helper("loops_server"), port, 3)
    assert eventually(lambda: server.out == "listening\n")
    clients = connect(Endpoint(port=port), 12)
    recorder = record("--pid", server.pid)
    ask_for_a_second(clients, "who\n")
    # From the server itself: which thread reads it.
    before = [int(client.ask("who\n")) for client in clients]
    moved_ns = time.monotonic_ns()
    for client in clients[:4]:
        client.ask("move\n")
    after = [int(client.ask("who\n")) for client in clients]
    sockets = recorder.stop().sockets

    for i, client in enumerate(clients):
        stays = sockets[sockets.peer_port == client.port]
        readers = [before[i], after[i]] if i < 4 else [before[i]]
        assert list(stays.reader) == readers
        assert after[i] == readers[-1]
        if i < 4:
            assert stays[1].seen_ns > moved_ns
    assert len(set(before)) > 1


def test_the_readers_of_a_server_with_one_loop_are_not_recorded(serve, record):
    redis = serve("redis", tcp=True)
    recorder = record("--pid", redis.pid)
    for _ in range(10):
        redis.ask("PING")
        time.sleep(0.1)
    r = recorder.stop()
    assert len(r.sockets) == 0
    assert len(r.loops) > 0
