# SPDX-License-Identifier: MIT
"""One connection for commands to a redis-server, a compatible server or a Sentinel. It waits in the session's `step`,
so that a server that is stuck in a fork delays neither a stop signal nor the notice that another server has ended.
Libraries for Redis wait in a read of their own.
"""

from __future__ import annotations

import socket
import time

from forktail.failure import Failure
from forktail.host.session import Child, Session
from forktail.servers.listen import Endpoint, connect_to

RedisInfo = dict[str, str]


class ErrorReply(str):
    """An error reply, as the server wrote it: "ERR unknown command ..."."""


Reply = str | list["Reply"]


class _Incomplete(Exception):
    """More of the reply has to be read."""


def _parse(data: bytes, at: int) -> tuple[Reply, int]:
    """The reply at this place, and the place behind it. Numbers are texts, what does not exist is ""."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise _Incomplete
    kind, text, at = data[at : at + 1], data[at + 1 : end], end + 2
    if kind == b"*":
        replies: list[Reply] = []
        for _ in range(int(text)):
            one, at = _parse(data, at)
            replies.append(one)
        return replies, at
    if kind == b"$":
        size = int(text)
        text = data[at : at + size] if size >= 0 else b""
        at += size + 2 if size >= 0 else 0  # a missing text has the size -1 and no end
        if len(data) < at:
            raise _Incomplete
    word = text.decode(errors="surrogateescape")
    return (ErrorReply(word) if kind == b"-" else word), at


class Redis:
    """A running server's connection, opened by the first command.

    patience_s: time limit for each reply; a fork or fsync may take long.
    """

    def __init__(self, session: Session, child: Child, endpoint: Endpoint, patience_s: float = 20) -> None:
        self.session, self.child, self.endpoint, self.patience_s = session, child, endpoint, patience_s
        self._connection: socket.socket | None = None

    def ask(self, *words: str) -> list[str]:
        """Sends a command and waits for the reply: the elements of an array, or one. Raises Failure, for an error
        reply, too. If the server closes the connection but runs, the command is sent once more."""
        reply = self.reply(*words)
        if isinstance(reply, ErrorReply):
            raise Failure(f"{self.child.command.name} refused {words[0]}: {reply}")
        return [str(one) for one in reply] if isinstance(reply, list) else [reply]

    def reply(self, *words: str) -> Reply:
        """The same, but an error reply is returned and not raised."""
        try:
            return self._exchange(words)
        except ConnectionError:
            # Servers close connections when a Sentinel changes their role, or because they end.
            self.close()
            self.session.wait(0.2)
        try:
            return self._exchange(words)
        except ConnectionError as e:
            raise Failure(f"lost the connection to {self.child.command.name}: {e.strerror or e}") from e

    def read_info(self) -> RedisInfo:
        """INFO, all sections, as name -> value."""
        lines = (line.partition(":") for line in self.ask("INFO")[0].splitlines() if not line.startswith("#"))
        return {name: value for name, colon, value in lines if colon}

    def close(self) -> None:
        """Closes the connection, not the server."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _connect(self) -> socket.socket:
        try:
            return connect_to(self.endpoint)
        except OSError as e:
            raise Failure(f"cannot connect to {self.child.command.name}: {e.strerror or e}") from e

    def _exchange(self, words: tuple[str, ...]) -> Reply:
        connection = self._connection = self._connection or self._connect()
        limit = time.monotonic() + self.patience_s
        texts = [word.encode(errors="surrogateescape") for word in words]
        request = b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)
        data = b""
        try:
            connection.settimeout(self.patience_s)
            connection.sendall(request)
            connection.settimeout(0)
            while True:
                self.session.step(max(0, limit - time.monotonic()) * 1000, connection.fileno())
                try:
                    more = connection.recv(1 << 16)
                except BlockingIOError:
                    if time.monotonic() > limit:
                        raise TimeoutError from None
                    continue
                if not more:
                    raise ConnectionError("Server closed the connection")
                data += more
                try:
                    return _parse(data, 0)[0]
                except _Incomplete:
                    pass
        except TimeoutError:
            self.close()  # otherwise its late reply would be taken for the next command's
            late = f"{self.child.command.name} did not answer {words[0]} within {int(self.patience_s)} s"
            raise Failure(late) from None


def number(info: RedisInfo, name: str) -> int:
    """A number from INFO; 0 if it is missing."""
    try:
        return int(info[name])
    except (KeyError, ValueError):
        return 0
