# SPDX-License-Identifier: MIT
"""One connection for commands to a redis-server, a compatible server or a Sentinel. It waits in the session's `step`,
so that a server that is stuck in a fork delays neither a stop signal nor the notice that another server has ended.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

from forktail.failure import Failure
from forktail.host.session import Child, Session
from forktail.servers.listen import Endpoint

RedisInfo = dict[str, str]


def _library(module: str) -> Any:
    """A module of redis-py, which `--help` does not need."""
    try:
        return importlib.import_module(f"redis.{module}")
    except ImportError:
        raise Failure("cannot talk to Redis servers: Python's redis is missing. Install python3-redis") from None


class Redis:
    """A running server's connection, opened by the first command.

    patience_s: time limit for each reply; a fork or fsync may take long.
    """

    def __init__(self, session: Session, child: Child, endpoint: Endpoint, patience_s: float = 20) -> None:
        self.session, self.child, self.endpoint, self.patience_s = session, child, endpoint, patience_s
        self._connection: Any = None

    def ask(self, *words: str) -> list[str]:
        """Sends a command and waits for the reply: the elements of an array, or one. Raises Failure, for an error
        reply, too. If the server closes the connection but runs, the command is sent once more."""
        reply = self.reply(*words)
        if isinstance(reply, Exception):
            raise Failure(f"{self.child.command.name} refused {words[0]}: {reply}")
        return ["" if one is None else str(one) for one in (reply if isinstance(reply, list) else [reply])]

    def reply(self, *words: str) -> Any:
        """The same, as redis-py returns it, but an error reply is returned and not raised."""
        try:
            return self._exchange(words)
        except _library("exceptions").ConnectionError:
            # Servers close connections when a Sentinel changes their role, or because they end.
            self.session.step(100)
            self.session.step(100)
        self.close()
        try:
            return self._exchange(words)
        except _library("exceptions").ConnectionError as e:
            raise Failure(f"lost the connection to {self.child.command.name}: {e}") from e

    def read_info(self) -> RedisInfo:
        """INFO, all sections, as name -> value."""
        lines = (line.partition(":") for line in self.ask("INFO")[0].splitlines() if not line.startswith("#"))
        return {name: value for name, colon, value in lines if colon}

    def close(self) -> None:
        """Closes the connection, not the server."""
        if self._connection:
            self._connection.disconnect()
        self._connection = None

    def _exchange(self, words: tuple[str, ...]) -> Any:
        connection = self._connection = self._connection or self._connect()
        late = f"{self.child.command.name} did not answer {words[0]} within {int(self.patience_s)} s"
        limit = time.monotonic() + self.patience_s
        try:
            connection.send_command(*words)
            # A blocking read would not notice signals and the end of the server.
            while not connection.can_read(0):
                self.session.step(max(0, limit - time.monotonic()) * 1000, connection._sock.fileno())
                if time.monotonic() > limit:
                    raise TimeoutError
            return connection.read_response()
        except _library("exceptions").ResponseError as e:
            return e
        except (TimeoutError, _library("exceptions").TimeoutError):
            self.close()  # otherwise its late reply would be taken for the next command's
            raise Failure(late) from None

    def _connect(self) -> Any:
        connection, exceptions = _library("connection"), _library("exceptions")

        class Parser(connection.DefaultParser):  # type: ignore[misc, name-defined]
            """Error replies stay as the server wrote them."""

            def parse_error(self, response: str) -> Any:
                return exceptions.ResponseError(response)

        options = {
            "parser_class": Parser, "decode_responses": True, "encoding_errors": "surrogateescape",
            "socket_timeout": self.patience_s,
        }  # fmt: skip
        if self.endpoint.socket:
            made = connection.UnixDomainSocketConnection(path=self.endpoint.socket, **options)
        else:
            made = connection.Connection(host="127.0.0.1", port=self.endpoint.port, **options)
        try:
            made.connect()
        except exceptions.RedisError as e:
            raise Failure(f"cannot connect to {self.child.command.name}: {e}") from e
        return made


def number(info: RedisInfo, name: str) -> int:
    """A number from INFO; 0 if it is missing."""
    try:
        return int(info[name])
    except (KeyError, ValueError):
        return 0
