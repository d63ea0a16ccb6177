# SPDX-License-Identifier: MIT
"""forktail lab serve: servers of each kind listen at the printed addresses, and nothing of them is left, whatever ends
it or its parent.
"""

import json
import os
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGSTOP, SIGTERM

import pytest

from forktail.servers import Endpoint, find_server
from forktail.servers.listen import connect_to
from harness import eventually, run_program
from lab_runs import Lab


class Serving(Lab):
    """Its standard input is a FIFO that the test keeps open. servers: as it printed them."""

    def __init__(self, *words, under_parent=False, env=None):
        super().__init__()
        fifo = self.directory / "held"
        os.mkfifo(fifo, 0o600)
        self._input = os.open(fifo, os.O_RDWR)
        shell = '"$@" <"$0" & wait' if under_parent else 'exec "$@" <"$0"'
        self.start("serve", *words, before=["sh", "-c", shell, fifo], env=env)
        eventually(lambda: "\n" in self.out or not self.program.running, 90)
        self.servers = json.loads(self.out)["servers"] if self.out else []

    def let_go(self):
        """Closes its standard input, unless that is done."""
        if self._input is not None:
            os.close(self._input)
            self._input = None

    def pid(self, number=0):
        return self.servers[number]["pid"]

    def ask(self, *words, number=0):
        """What redis-cli prints as a server's answer."""
        one = self.servers[number]
        where = ["-s", one["socket"]] if one["socket"] else ["-p", one["port"]]
        return run_program("redis-cli", *where, *words).out

    def about(self, file):
        """A file in /proc of the first server."""
        return Path(f"/proc/{self.pid()}/{file}").read_text()

    def check_nothing_left(self):
        eventually(lambda: not self.alive() and not self.left(), 30)
        super().check_nothing_left()

    def close(self):
        self.let_go()
        super().close()


@pytest.fixture
def start_serving(closing):
    """start_serving("redis", ...): a Serving, which is killed at the end of the test."""
    return lambda *words, **options: closing(Serving(*words, **options))


KINDS = {
    "redis": "server",
    "redis --count 2 --tcp": "server server",
    "redis --replicas 1": "primary replica",
    "redis --cluster --count 3 --replicas 1": "primary primary primary replica replica replica",
    "memcached": "server",
    "memcached --tcp": "server",
    "nutcracker": "server proxy",
    "haproxy --tcp": "server proxy",
    "sentinel --count 2 --replicas 1": "primary replica sentinel sentinel",
}


@pytest.mark.parametrize(("words", "roles"), KINDS.items(), ids=KINDS)
def test_servers_of_each_kind_listen_at_the_printed_addresses_until_standard_input_closes(start_serving, words, roles):
    kind, roles = words.split()[0], roles.split()
    if find_server(kind) is None:
        pytest.skip(f"no {kind} on this machine")
    serving = start_serving(*words.split())
    assert [server["role"] for server in serving.servers] == roles, serving.err
    assert serving.out.index("\n") == len(serving.out) - 1
    for number, server in enumerate(serving.servers):
        os.kill(server["pid"], 0)
        endpoint = Endpoint(server["socket"], server["port"])
        assert server["address"] == endpoint.address()
        assert "." in server["version"]
        assert Path(server["directory"]).is_dir() and Path(server["log"]).exists(), server
        with connect_to(endpoint, 10) as connection:
            if server["kind"] == "memcached":
                connection.sendall(b"version\r\n")
                assert connection.recv(100).startswith(b"VERSION ")
            else:
                assert "Could not" not in serving.ask("get", "key", number=number)
    if roles[-1] == "replica":
        assert serving.ask("role", number=-1).startswith("slave\n")
    if roles[-1] == "proxy":
        assert serving.ask("set", "key", "value", number=1) == "OK\n"
    serving.let_go()
    serving.ends(0, 30)
    assert serving.err == ""
    serving.check_nothing_left()


@pytest.mark.parametrize(("number", "status"), [(SIGINT, 0), (SIGTERM, 0), (SIGKILL, -SIGKILL)])
def test_no_server_is_left_after_a_signal(start_serving, number, status):
    serving = start_serving("redis", "--count", 2)
    assert len(serving.servers) == 2
    serving.program.signal(number)
    serving.ends(status, 30)
    serving.check_nothing_left()


def test_no_server_is_left_after_kill_9_of_a_parent_whose_end_of_standard_input_another_process_keeps_open(
    start_serving,
):
    serving = start_serving("memcached", "--tcp", under_parent=True)
    assert len(serving.servers) == 1
    serving.program.signal(SIGKILL)
    serving.ends(-SIGKILL, 30)
    serving.check_nothing_left()


def test_no_server_is_left_after_kill_9_of_a_parent_with_its_end_of_standard_input(start_serving):
    serving = start_serving("redis", under_parent=True)
    assert len(serving.servers) == 1
    serving.program.signal(SIGKILL)
    serving.let_go()
    serving.check_nothing_left()


def test_a_stopped_server_is_not_left(start_serving):
    serving = start_serving("redis")
    os.kill(serving.pid(), SIGSTOP)
    serving.let_go()
    serving.ends(0, 30)
    serving.check_nothing_left()


def test_when_servers_end_by_themselves_the_last_one_ends_lab_serve(start_serving):
    serving = start_serving("redis", "--count", 2)
    os.kill(serving.pid(0), SIGKILL)
    assert serving.prints("forktail lab: redis1 (redis-server) was killed by signal 9 (Killed)"), serving.err
    assert serving.ask("ping", number=1) == "PONG\n"
    assert serving.program.running
    serving.ask("shutdown", "nosave", number=1)
    serving.ends(3, 30)
    assert "redis2 (redis-server) ended with status 0" in serving.err
    serving.check_nothing_left()


def test_options_say_where_servers_run_and_with_which_settings(start_serving):
    serving = start_serving("redis", "--cpus", 0, "--", "--maxmemory", "12345678", "--save", "")
    assert len(serving.servers) == 1, serving.err
    assert "Cpus_allowed_list:\t0\n" in serving.about("status")
    assert serving.about("comm") == "redis-server\n"
    assert serving.ask("config", "get", "maxmemory") == "maxmemory\n12345678\n"
    assert serving.ask("config", "get", "save") == "save\n\n"


def test_options_set_the_environment_of_servers(start_serving):
    serving = start_serving("memcached", "--env", "FT_ONE=1", "--env", "FT_TWO=a b")
    assert {"FT_ONE=1", "FT_TWO=a b"} <= set(serving.about("environ").split("\0"))
    assert serving.about("comm") == "memcached\n"


def test_a_chosen_directory_is_preserved(start_serving, open_directory):
    serving = start_serving("redis", "--directory", open_directory)
    assert serving.servers[0]["socket"] == f"{open_directory}/redis/redis.sock"
    assert serving.ask("save") == "OK\n"
    serving.let_go()
    serving.ends(0, 30)
    assert (open_directory / "redis/dump.rdb").exists()
    assert (open_directory / "logs/redis.log").exists()


@pytest.mark.parametrize("kind", ["nutcracker", "haproxy"])
def test_a_proxy_of_running_servers_and_a_chosen_program(start_serving, kind):
    server = start_serving("redis", "--program", "/usr/bin/redis-server")
    assert server.ask("set", "key", "value") == "OK\n"
    proxy = start_serving(kind, "--of", server.servers[0]["socket"])
    assert [one["role"] for one in proxy.servers] == ["proxy"], proxy.err
    assert proxy.ask("get", "key") == "value\n"


def test_a_server_with_a_password(start_serving):
    serving = start_serving("redis", "--", "--requirepass", "secret")
    assert serving.ask("-a", "secret", "ping") == "PONG\n"


def test_a_server_that_reads_its_data_first(start_serving, open_directory):
    words = ["redis", "--directory", open_directory, "--", "--enable-debug-command", "yes"]
    first = start_serving(*words)
    first.ask("debug", "populate", "1000000")
    assert first.ask("save") == "OK\n"
    first.let_go()
    first.ends(0, 30)
    assert start_serving(*words).ask("dbsize") == "1000000\n"


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("nonsense", 2, 'forktail lab: unknown kind of server "nonsense": use redis, redis8, valkey, keydb, '
         "memcached, nutcracker, haproxy and sentinel\n"),
        ("", 2, "KIND is required"),
        ("redis --count 0", 2, "--count"),
        ("redis --of /s", 2, "--of needs a proxy: redis is not a proxy\n"),
        ("memcached --cluster", 2, "--cluster needs servers with the Redis protocol"),
        ("memcached --replicas 1", 2, "--replicas: memcached does not support replicas\n"),
        ("redis --env FT", 2, "--env needs NAME=VALUE, not FT\n"),
        ("redis8", 3, "no program is installed for a server of kind redis8"),
        ("memcached --program /nowhere/memcached", 3, "/nowhere/memcached"),
        ("redis -- --maxmemory nonsense", 3, "maxmemory"),
    ],
)  # fmt: skip
def test_lab_serve_reports_what_it_cannot_do_and_why(start_serving, words, status, sentence):
    serving = start_serving(*words.split(), env={"FORKTAIL_SERVERS": "/nowhere"})
    serving.ends(status, 30)
    assert sentence in serving.err
    assert serving.out == ""
    serving.check_nothing_left()
