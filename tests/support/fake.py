# SPDX-License-Identifier: MIT
"""A server for tests of behaviour that real servers do not show: it sends what the test chooses, byte by byte, over TCP
or a Unix socket. It runs in threads of the test, so that a test can count what it received.
"""

import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from processes import Closing


class Peer:
    """A connection as `talk` sees it. number: in the order of arrival, from 0."""

    def __init__(self, server: "FakeServer", connection: socket.socket, number: int) -> None:
        self.number, self.socket, self._server = number, connection, server

    @property
    def over(self) -> bool:
        """The test is over."""
        return self._server.over

    def hear(self) -> bytes:
        """The next data from the other side; b"" once it has closed, or the test is over."""
        while not self.over:
            if not select.select([self.socket], [], [], 0.05)[0]:
                continue
            try:
                return self.socket.recv(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            except OSError:
                return b""
        return b""

    def say(self, data: bytes) -> bool:
        """Sends all. False: the other side reads nothing any more, or the test is over."""
        view = memoryview(data)
        while view:
            if self.over:
                return False
            try:
                view = view[self.socket.send(view, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                select.select([], [self.socket], [], 0.05)
            except OSError:
                return False
        return True

    def say_on(self, data: bytes, times: int = 1 << 62) -> None:
        """Sends `data` repeatedly, until it is not read any more or `times` is reached."""
        for _ in range(times):
            if not self.say(data):
                return

    def trickle(self, data: bytes, pause_s: float = 0) -> bool:
        """Sends a byte at a time, with a pause after each."""
        for i in range(len(data)):
            if not self.say(data[i : i + 1]):
                return False
            time.sleep(pause_s)
        return True


class FakeServer(Closing):
    """Listens until its `with` block ends. talk(peer) runs in a thread per connection, which is closed when it returns.

    unix: the path of its socket; without it a free port of 127.0.0.1. accepted: when connections came, by
    time.monotonic().
    """

    def __init__(self, talk: Callable[[Peer], object], unix: str | Path | None = None) -> None:
        self.over = False
        self.accepted: list[float] = []
        self.path, self.port = str(unix or ""), 0
        self._talk = talk
        self._listening = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self._listening.bind(str(unix) if unix else ("127.0.0.1", 0))
        if not unix:
            self.port = self._listening.getsockname()[1]
        self._listening.listen(1000)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def where(self) -> list[str]:
        """The options with which forktail-load finds it."""
        return ["-s", self.path] if self.path else ["-p", str(self.port)]

    def _accept(self) -> None:
        while not self.over:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            if not self.path:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection, len(self.accepted)), daemon=True)
            self.accepted.append(time.monotonic())
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection:
            self._talk(Peer(self, connection, number))

    def close(self) -> None:
        """Ends all connections."""
        self.over = True
        self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for thread in self._threads[1:]:
            thread.join()
        self._listening.close()


def binary_reply(
    opcode: int,
    status: int = 0,
    extras: bytes = b"",
    value: bytes = b"",
    body_bytes: int | None = None,
    opaque: int = 0,
) -> bytes:
    """memcached's binary header and its body: a reply as a correct server sends it."""
    size = len(extras) + len(value) if body_bytes is None else body_bytes
    return struct.pack(">BBHBBHIIQ", 0x81, opcode, 0, len(extras), 0, status, size, opaque, 0) + extras + value


def greeting_answer(request: bytes) -> bytes:
    """The answer to a client's questions before its load, or b"" for anything else."""
    for asked, answer in (
        (b"\r\nPING\r\n", b"+PONG\r\n"),
        (b"\r\nINFO\r\n", b"$0\r\n\r\n"),
        (b"\r\nSETNAME\r\n", b"+OK\r\n"),
        (b"\r\nHELLO\r\n", b"%1\r\n$5\r\nproto\r\n:3\r\n"),
    ):
        if asked in request:
            return answer
    if request in (b"version\r\n", b"mn\r\n"):
        return b"VERSION 1.6.18\r\n" if request == b"version\r\n" else b"MN\r\n"
    if len(request) == 24 and request[0] == 0x80 and request[1] in (0x0A, 0x0B):
        return binary_reply(request[1], value=b"1.6.18" if request[1] == 0x0B else b"")
    return b""


def all_slots(port: int) -> bytes:
    """The answer to CLUSTER SLOTS of one node that serves all slots at `port`."""
    return b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % port


def with_opaque(answer: bytes, request: bytes) -> bytes:
    """An answer to a meta command, with O@ in the answer replaced by its request's opaque."""
    opaque = next((word for word in request.split() if word.startswith(b"O0")), b"O@")
    return answer.replace(b"O@", opaque, 1)


_NAME = b"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$8\r\nforktail\r\n"


def after_greeting(act: Callable[[Peer, bytes], bool]) -> Callable[[Peer], None]:
    """A server that greets correctly and answers everything else with `act`, request by request (one per read, at
    -P 1), until that returns False."""

    def talk(peer: Peer) -> None:
        while request := peer.hear():
            # A reopened connection sets its name and sends its first request at once.
            if len(request) > len(_NAME) and request.startswith(_NAME):
                if not peer.say(b"+OK\r\n"):
                    return
                request = request[len(_NAME) :]
            answer = greeting_answer(request)
            if not (peer.say(answer) if answer else act(peer, request)):
                return

    return talk
