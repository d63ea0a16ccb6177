# SPDX-License-Identifier: MIT
"""Fixtures for tests of programs: real servers, forktail's own programs, servers that misbehave, and expected outputs.

A test marked `quiet` needs a machine that is not busy, because it looks for kernel events of a certain length;
script/test runs these after the others, two at a time, which leaves a CPU idle most of the time. One marked `alone`
keeps a CPU busy itself: these run last, one at a time.
"""

import difflib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite(
    "cgroups", "chi_squared", "disks", "export_readers", "harness", "lab_runs", "load_run", "monitor", "network_hosts",
    "notify_service", "observation", "processes", "real_run", "recorded", "schemas", "server_counts", "topologies",
)  # fmt: skip

from fake import FakeServer, Peer  # noqa: E402
from forktail.servers import Server, find_server  # noqa: E402
from harness import Load, Program, Recorder  # noqa: E402
from topologies import Cluster, Servers  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the expected outputs again, for review by git diff"
    )


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file run one after the other, so that its servers and recordings are made once."""
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            # The lab's tests make compressed block devices and look whether any is left.
            one = "lab" if item.path.parent.name == "lab" and item.get_closest_marker("quiet") else str(item.path)
            item.add_marker(pytest.mark.xdist_group(one.replace("/", "-")))


@pytest.fixture
def closing() -> Iterator[Callable[[Any], Any]]:
    """closing(thing): the thing. At the end of the test, things are closed, the last one first."""
    with ExitStack() as things:
        yield things.enter_context


@pytest.fixture
def start_load(tmp_path: Path, closing: Callable[[Any], Any]) -> Callable[..., Load]:
    """start_load(*words): a Load, which is killed at the end of the test."""
    names = map("load{}".format, itertools.count())
    return lambda *words, **options: closing(Load(tmp_path / next(names), *words, **options))


@pytest.fixture
def record(tmp_path: Path, closing: Callable[[Any], Any]) -> Callable[..., Recorder]:
    """record("--pid", pid, ...): a Recorder, which is killed at the end of the test. path: of its file, if not
    server.forktail, server1.forktail, ..."""
    names = itertools.chain(["server.forktail"], map("server{}.forktail".format, itertools.count(1)))

    def start(*words: Any, **options: Any) -> Recorder:
        path = options.pop("path", tmp_path / next(names))
        return closing(Recorder(path, *words, **options))

    return start


@pytest.fixture
def background(closing: Callable[[Any], Any]) -> Callable[..., Program]:
    """background(*words): a Program, which is killed at the end of the test."""
    return lambda *words, **options: closing(Program(*words, **options))


def _serving() -> Iterator[Callable[..., Server]]:
    with ExitStack() as servers:

        def start(kind: str, *arguments: str, **options: Any) -> Server:
            if find_server(kind) is None:
                pytest.skip(f"no {kind} on this machine")
            return servers.enter_context(Server(kind, *arguments, **options))

        yield start


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """serve("redis", "--appendonly", "yes", tcp=True): a server of the test, as forktail.servers.Server."""
    yield from _serving()


@pytest.fixture(scope="module")
def module_serve() -> Iterator[Callable[..., Server]]:
    """As serve, for servers that all tests of the module share."""
    yield from _serving()


@pytest.fixture(scope="module")
def _module_redis(module_serve: Callable[..., Server]) -> Server:
    return module_serve("redis")


@pytest.fixture
def redis(_module_redis: Server) -> Server:
    """An empty redis-server on a Unix socket, which all tests of the module share: for tests that change no setting."""
    _module_redis.ask("FLUSHALL")
    _module_redis.ask("CONFIG", "RESETSTAT")
    return _module_redis


@pytest.fixture(scope="module")
def _module_memcached(module_serve: Callable[..., Server]) -> Server:
    return module_serve("memcached")


@pytest.fixture
def memcached(_module_memcached: Server) -> Server:
    """A memcached on a Unix socket, which all tests of the module share."""
    return _module_memcached


@pytest.fixture
def mortal_redis(serve: Callable[..., Server], tmp_path: Path) -> Callable[..., Server]:
    """mortal_redis("--opt", "v"): a redis-server. After it was killed, the next one has its data and its socket."""
    return lambda *arguments: serve("redis", *arguments, directory=str(tmp_path / "mortal"))


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Servers of the test."""
    with Servers() as started:
        yield started


@pytest.fixture(scope="module")
def module_servers() -> Iterator[Servers]:
    """Servers that all tests of the module share."""
    with Servers() as started:
        yield started


@pytest.fixture(scope="module")
def _module_cluster(module_servers: Servers) -> Cluster:
    return Cluster(module_servers)


@pytest.fixture
def cluster(_module_cluster: Cluster) -> Cluster:
    """An empty Cluster, which all tests of the module share: for tests that move no slot and kill no node."""
    for node in _module_cluster.primaries:
        node.connection().ask("FLUSHALL")
    return _module_cluster


@pytest.fixture
def own_cluster(servers: Servers) -> Cluster:
    """A Cluster of the test."""
    return Cluster(servers)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory in which every user finds what he knows the name of; root alone can enter tmp_path."""
    with tempfile.TemporaryDirectory(prefix="ft-") as path:
        os.chmod(path, 0o711)
        yield Path(path)


@pytest.fixture
def fake_server(tmp_path: Path, closing: Callable[[Any], Any]) -> Callable[..., FakeServer]:
    """fake_server(talk, unix=True): a FakeServer on a Unix socket, or on TCP."""
    names = map("fake{}".format, itertools.count())

    def start(talk: Callable[[Peer], object], unix: bool = True) -> FakeServer:
        return closing(FakeServer(talk, tmp_path / next(names) if unix else None))

    return start


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(text, name): the text is the one in golden/NAME beside the test. Fails with a diff."""

    def compare(text: str, name: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        expected = path.read_text()
        if text != expected:
            lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path), "printed", lineterm="")
            pytest.fail("\n".join(lines), pytrace=False)

    return compare
