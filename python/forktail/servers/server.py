# SPDX-License-Identifier: MIT
"""One server with a separate session, for programs that need nothing else: tests, benchmarks, notebooks."""

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from forktail.failure import Failure
from forktail.host.session import Session
from forktail.servers.kinds import find_kind, kind_names
from forktail.servers.load_words import load_words
from forktail.servers.run import start_servers
from forktail.servers.topology import Behind, Instance, ServerPlan, Topology


class Server:
    """A running server: .pid, .socket or .port, .directory of its data, .log. It ends with its `with` block, by
    `close`, with the thread that started it, or when this program is killed.

    kind: "redis", "memcached", ... arguments: of its program; of nutcracker and haproxy, lines of their
    configuration. tcp: on a free port of 127.0.0.1 instead of a Unix socket. cpus: where it runs, in taskset's
    format. env: added to our own. of: addresses of the servers behind a proxy. directory: of its data and
    log, which remain (default: a temporary one). under: a command that starts the program in its own place, such as
    nsenter. Raises Failure if it does not start.
    """

    def __init__(
        self,
        kind: str,
        *arguments: str,
        tcp: bool = False,
        cpus: str | int = "",
        env: Mapping[str, str] | None = None,
        of: Iterable[str] = (),
        directory: str = "",
        under: Iterable[str] = (),
    ) -> None:
        if not find_kind(kind):
            raise Failure(f'unknown kind of server "{kind}": use {kind_names()}')
        behind = [Behind(f"server{i + 1}", address) for i, address in enumerate(of)]
        plan = ServerPlan(
            kind, kind, config=list(arguments), tcp=tcp, cpus=str(cpus), environment=dict(env or {}), behind=behind,
            under=list(under),
        )  # fmt: skip
        self._session = Session()
        try:
            self._topology = Topology(os.path.abspath(directory) if directory else self._session.make_temp_directory())
            start_servers(self._session, plan, f"{self._topology.directory}/logs", self._topology)
        except BaseException:
            self._session.close()
            raise
        assert self.instance.child
        self.instance.child.needed = False  # its end is the caller's affair
        self.kind, self.pid = kind, self.instance.child.pid
        self.socket, self.port = self.instance.socket, self.instance.port
        self.directory, self.log, self.version = self.instance.directory, self.instance.log, self.instance.version

    @property
    def instance(self) -> Instance:
        """Its place in a topology."""
        return self._topology.instances[0]

    def address(self) -> str:
        """The socket's path, or "127.0.0.1:7001"."""
        return self.socket or f"127.0.0.1:{self.port}"

    def load_words(self) -> list[str]:
        """The options with which forktail-load reaches it."""
        return load_words(self._topology, self.kind)

    def ask(self, *words: str) -> list[str]:
        """A Redis command's reply: the elements of an array, or one. Raises Failure, for an error reply, too."""
        return self.instance.connection().ask(*words)

    def send_signal(self, number: int) -> None:
        """To its process. One that ends stays a zombie until `wait` or `close`."""
        if self.instance.child:
            self.instance.child.send_signal(number)

    def wait(self, seconds: float) -> None:
        """Waits until it has ended by itself."""
        if self.instance.child:
            self._session.wait_for_end(self.instance.child, 0, seconds)

    def close(self) -> None:
        """Kills it and removes its temporary directory."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
