# SPDX-License-Identifier: MIT
"""Fixtures for tests of programs: real servers, forktail's own programs, servers that misbehave, and expected outputs.

A test marked `alone` needs an idle machine, because it looks for kernel events of a certain length; script/test runs
these after the others, one at a time. All others may run side by side.
"""

import difflib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("cgroups", "export_readers", "harness", "processes", "recorded")

from fake import FakeServer, Peer  # noqa: E402
from forktail.servers import Server, find_server  # noqa: E402
from harness import Load, Program, Recorder  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the expected outputs again, for review by git diff"
    )


@pytest.fixture
def start_load(tmp_path: Path) -> Iterator[Callable[..., Load]]:
    """start_load(*words): a Load, which is killed at the end of the test."""
    started: list[Load] = []

    def start(*words: Any, **options: Any) -> Load:
        started.append(Load(tmp_path / f"load{len(started)}", *words, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Callable[..., Recorder]]:
    """record("--pid", pid, ...): a Recorder, which is killed at the end of the test."""
    started: list[Recorder] = []

    def start(*words: Any, **options: Any) -> Recorder:
        path = options.pop("path", tmp_path / f"server{len(started) or ''}.forktail")
        started.append(Recorder(path, *words, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def background() -> Iterator[Callable[..., Program]]:
    """background(*words): a Program, which is killed at the end of the test."""
    started: list[Program] = []

    def start(*words: Any, **options: Any) -> Program:
        started.append(Program(*words, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


def _serving() -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(kind: str, *arguments: str, **options: Any) -> Server:
        if find_server(kind) is None:
            pytest.skip(f"no {kind} on this machine")
        started.append(Server(kind, *arguments, **options))
        return started[-1]

    yield start
    for one in reversed(started):
        one.close()


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
def open_directory() -> Iterator[Path]:
    """A directory in which every user finds what he knows the name of; root alone can enter tmp_path."""
    with tempfile.TemporaryDirectory(prefix="ft-") as path:
        os.chmod(path, 0o711)
        yield Path(path)


@pytest.fixture
def fake_server(tmp_path: Path) -> Iterator[Callable[..., FakeServer]]:
    """fake_server(talk, unix=True): a FakeServer on a Unix socket, or on TCP."""
    started: list[FakeServer] = []

    def start(talk: Callable[[Peer], object], unix: bool = True) -> FakeServer:
        started.append(FakeServer(talk, tmp_path / f"fake{len(started)}" if unix else None))
        return started[-1]

    yield start
    for one in started:
        one.close()


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
