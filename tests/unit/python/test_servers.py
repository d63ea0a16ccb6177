# SPDX-License-Identifier: MIT
"""Real servers: each kind starts and answers, a Cluster forms and moves slots, Sentinels watch, and nothing remains of
them."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import TREE
from forktail.failure import USAGE, Failure
from forktail.host.session import Session
from forktail.lab.serve import ServeOptions, plan_serve
from forktail.servers import (
    Behind,
    Endpoint,
    Instance,
    Server,
    ServerPlan,
    Topology,
    check_words,
    find_kind,
    find_server,
    instances_of,
    kill_instance,
    kind_names,
    load_words,
    move_slots,
    start_servers,
    stop_servers,
    version_of,
)
from forktail.servers.listen import free_port
from forktail.servers.logs import find_in_log, time_of_line
from forktail.servers.redis import ErrorReply, number


@dataclass
class Lab:
    """A session with servers."""

    session: Session
    logs: str
    topology: Topology = field(default_factory=Topology)

    def start(self, kind: str, name: str = "", **more: object) -> list[Instance]:
        if not find_server(kind):
            pytest.skip(f"no {kind} is installed")
        plan = ServerPlan(name or kind, kind, **more)  # type: ignore[arg-type]
        return start_servers(self.session, plan, self.logs, self.topology)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with Session() as session:
        yield Lab(session, str(tmp_path / "logs"))


def speak(endpoint: Endpoint, words: str) -> str:
    with socket.socket(socket.AF_UNIX if endpoint.socket else socket.AF_INET) as connection:
        connection.settimeout(10)
        connection.connect(endpoint.socket or ("127.0.0.1", endpoint.port))
        connection.sendall(words.encode())
        return connection.recv(4096).decode()


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("kind", ["redis", "redis8", "valkey", "keydb", "memcached", "nutcracker", "haproxy"])
def test_each_kind_starts_and_answers(lab: Lab, kind: str, tcp: bool) -> None:
    row = find_kind(kind)
    assert row
    behind = lab.start("redis", "store", tcp=tcp) if row.proxy else []
    (server,) = lab.start(kind, tcp=tcp, of="store" if row.proxy else "")
    assert (server.port > 0, server.socket != "") == (tcp, not tcp)
    assert server.child and server.version[0].isdigit() and "." in server.version
    if kind == "memcached":
        assert row.counters and speak(server.endpoint, "version\r\n").startswith("VERSION ")
        assert int(row.counters(server)["pid"]) == server.child.pid
    else:
        assert speak(server.endpoint, "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n") == "+OK\r\n"
    expected = ["-h", "127.0.0.1", "-p", str(server.port)] if tcp else ["-s", server.socket]
    assert load_words(lab.topology, kind) == expected + [*row.load_words]
    if behind:
        logged = load_words(lab.topology, kind, logged=True)
        assert logged == [*expected, "--behind", f"store={behind[0].address()}"]
    assert Path(server.log).exists() and Path(server.directory).is_dir()
    stop_servers(lab.session, lab.topology)
    assert server.child.ended and not Path(server.directory).exists() and lab.topology == Topology()


def test_several_instances_on_their_cpus(lab: Lab) -> None:
    one, other = lab.start("redis", count=2, cpus="each", tcp=True, config=["--maxmemory", "1mb", "--save", "60 1"])
    assert (one.name, other.name, one.port == other.port) == ("redis1", "redis2", False)
    cpus = sorted(os.sched_getaffinity(0))
    for i, server in enumerate((one, other)):
        assert server.child and os.sched_getaffinity(server.child.pid) == {cpus[i % len(cpus)]}
        assert server.connection().ask("CONFIG", "GET", "maxmemory") == ["maxmemory", "1048576"]
        assert server.connection().ask("CONFIG", "GET", "save") == ["save", "60 1"]
    assert load_words(lab.topology, "redis") == [w for s in (one, other) for w in ("--server", s.address())]
    assert load_words(lab.topology, "redis2") != [] and instances_of(lab.topology, "redis2") == [other]
    assert load_words(lab.topology, "none") == []


def test_commands_and_their_errors(lab: Lab) -> None:
    (server,) = lab.start("redis")
    redis = server.connection()
    assert redis.ask("SET", "k", "ä\udcff") == ["OK"] and redis.ask("GET", "k") == ["ä\udcff"]
    assert redis.ask("GET", "none") == [""] and redis.ask("INCR", "n") == ["1"]
    assert redis.ask("RPUSH", "list", "a", "b") == ["2"] and redis.ask("LRANGE", "list", "0", "-1") == ["a", "b"]
    long = "x" * 1_000_000
    assert redis.ask("SETRANGE", "long", "0", long) == ["1000000"] and redis.ask("GET", "long") == [long]
    with pytest.raises(Failure, match=r"^redis \(redis-server\) refused INCR: WRONGTYPE Operation"):
        redis.ask("INCR", "list")
    with pytest.raises(Failure, match=r"^redis \(redis-server\) refused NOSUCH: ERR unknown command"):
        redis.ask("NOSUCH")
    info = redis.read_info()
    assert server.child and number(info, "process_id") == server.child.pid
    assert number(info, "nonesuch") == 0 and info["role"] == "master"
    for i in range(3):  # a new connection after the server has closed this one
        redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
        assert redis.ask("INCRBY", "n", "1") == [str(i + 2)]


def test_a_late_reply_is_not_the_next_ones(lab: Lab) -> None:
    (server,) = lab.start("redis", config=["--enable-debug-command", "yes"])
    redis = server.connection()
    redis.patience_s = 1
    with pytest.raises(Failure, match=r"^redis \(redis-server\) did not answer DEBUG within 1 s$"):
        redis.ask("DEBUG", "SLEEP", "2")
    redis.patience_s = 20
    assert redis.ask("ECHO", "hello") == ["hello"]


def test_the_end_of_a_needed_server_ends_every_wait(lab: Lab) -> None:
    (server,) = lab.start("redis")
    other = lab.start("memcached")[0]
    assert other.child
    os.kill(other.child.pid, signal.SIGKILL)
    with pytest.raises(Failure, match=r"^memcached \(memcached\) was killed by signal 9 \(Killed\)$"):
        lab.session.wait(10)
    kill_instance(lab.session, server)
    assert server.redis is None
    with pytest.raises(Failure, match="^redis does not accept Redis commands$"):
        server.connection()


def test_replicas_are_synchronized(lab: Lab) -> None:
    primaries = lab.start("redis", count=2, tcp=True, config=["--repl-diskless-sync-delay", "0"])
    for primary in primaries:
        primary.connection().ask("SET", "who", primary.name)
    for i, replica in enumerate(lab.start("redis", "copy", count=4, replica_of="redis")):
        assert replica.connection().ask("GET", "who") == [primaries[i % 2].name]


def test_a_cluster_forms_moves_slots_and_loses_a_node(lab: Lab) -> None:
    nodes = lab.start("redis", cluster=True, count=3, replicas=1)
    assert [one.name for one in nodes] == [f"redis{i}" for i in range(1, 7)]
    source, target, third = nodes[:3]
    keys = 0
    for i in range(300):
        keys += not isinstance(source.connection().reply("SET", f"key{i}", "value"), ErrorReply)
    moved = sum(int(source.connection().ask("CLUSTER", "COUNTKEYSINSLOT", str(slot))[0]) for slot in range(300))
    assert 0 < moved < keys
    move_slots(lab.topology, source, target, 300)
    sizes = [int(node.connection().ask("DBSIZE")[0]) for node in (source, target)]
    assert sizes == [keys - moved, moved]
    for node in (source, target, third):
        rows = node.connection().ask("CLUSTER", "NODES")[0].splitlines()
        owned = [row.split()[8:] for row in rows if "master" in row]
        assert sorted(owned) == [["0-299", "5461-10921"], ["10922-16383"], ["300-5460"]]
    move_slots(lab.topology, target, source, [7, 9])
    rows = source.connection().ask("CLUSTER", "NODES")[0].splitlines()
    assert [row.split()[8:] for row in rows if "myself" in row] == [["7", "9", "300-5460"]]
    with pytest.raises(Failure, match="^redis3 has 5462 slots: cannot move 6000$"):
        move_slots(lab.topology, third, source, 6000)
    kill_instance(lab.session, third)
    with pytest.raises(Failure, match="^redis3 does not run: cannot move slots$"):
        move_slots(lab.topology, third, source, 1)
    running = [word for one in nodes if one is not third for word in ("--server", one.address())]
    assert load_words(lab.topology, "redis") == ["--cluster", *running]


def test_sentinels_fail_over(lab: Lab) -> None:
    (primary,) = lab.start("redis", tcp=True)
    (replica,) = lab.start("redis", "replica", replica_of="redis", tcp=True)
    settings = ["down-after-milliseconds 500", "failover-timeout 3000", "--loglevel debug"]
    watchers = lab.start("sentinel", count=2, of="redis", config=settings)
    words = [word for one in watchers for word in ("--sentinel", one.address())]
    assert load_words(lab.topology, "sentinel") == [*words, "--master", "forktail"]
    killed_ns = time.time_ns()
    kill_instance(lab.session, primary)
    limit = time.monotonic() + 30
    while replica.connection().read_info()["role"] != "master":
        assert time.monotonic() < limit
        lab.session.step(50)
    found = [find_in_log(one.log, "+odown", killed_ns - 1_000_000) for one in watchers]
    assert all(0 <= t - killed_ns < 30e9 for t in found if t) and any(found)


def test_proxies_distribute_keys_by_name(lab: Lab) -> None:
    stores = lab.start("redis", "store", count=3)
    config = ["timeout: 400", "redis: true", "-m 512"]
    (proxy,) = lab.start("nutcracker", of="store", config=config)
    pool = Path(proxy.directory, "pool.yml").read_text().splitlines()
    assert pool[1].strip() == f"listen: {proxy.socket}" and pool.count("  redis: true") == 1
    assert [line.strip() for line in pool[-3:]] == [f"- {one.address()}:1 {one.name}" for one in stores]
    assert proxy.child and "-m\000512" in Path(f"/proc/{proxy.child.pid}/cmdline").read_text()
    for i in range(300):
        key = f"{i * 7919:04}"[-4:]
        assert speak(proxy.endpoint, f"*3\r\n$3\r\nset\r\n$4\r\n{key}\r\n$1\r\nv\r\n") == "+OK\r\n"
    assert sorted(int(one.connection().ask("DBSIZE")[0]) > 0 for one in stores) == [True] * 3
    why = "^haproxy forwards connections to exactly one server, but store has 3 instances$"
    with pytest.raises(Failure, match=why):
        lab.start("haproxy", of="store")


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (ServerPlan("x", "floppy"), "no program is installed for a server of kind floppy (x)"),
        (
            ServerPlan("x", "redis", replica_of="store"),
            'store listens on a Unix socket: x cannot replicate it. Set `listen = "tcp"`.',
        ),
        (ServerPlan("x", "redis", replica_of="none"), "x cannot replicate none, which does not run"),
        (ServerPlan("x", "sentinel", of="none"), "x cannot watch none, which does not run"),
        (
            ServerPlan("x", "sentinel", of="store"),
            'store listens on a Unix socket: x cannot watch it. Set `listen = "tcp"`.',
        ),
        (ServerPlan("x", "nutcracker", of="none"), "x has no server behind it: none does not run"),
        (ServerPlan("x", "redis", program="/nonexistent"), "cannot start x (nonexistent) (/nonexistent): No such file"),
        (ServerPlan("x", "redis", config=["--nonesuch", "1"]), "x (redis-server) ended with status 1; its last mess"),
        (
            ServerPlan("x", "redis", config=["--nonesuch"], by_program=True),
            "redis-server ended with status 1; its last",
        ),
    ],
)
def test_what_does_not_start_says_why(lab: Lab, plan: ServerPlan, why: str) -> None:
    lab.start("redis", "store")
    with pytest.raises(Failure) as failure:
        start_servers(lab.session, plan, lab.logs, lab.topology)
    assert str(failure.value).startswith(why)


def test_a_sentinel_setting_needs_a_value(lab: Lab) -> None:
    lab.start("redis", tcp=True)
    with pytest.raises(Failure, match="^sentinel's setting quorum has no value$"):
        lab.start("sentinel", of="redis", config=["quorum"])


def test_a_long_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"is too long for a Unix socket \(.*redis.sock\). Set TMPDIR to a shorter pa"):
        Server("redis", directory=str(tmp_path / ("x" * 100)))


def test_a_taken_port_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        ports = [taken.getsockname()[1], free_port()]
        monkeypatch.setattr("forktail.servers.listen.free_port", lambda: ports.pop(0))
        with Server("memcached", tcp=True) as server:
            assert ports == [] and speak(Endpoint(port=server.port), "version\r\n").startswith("VERSION")


KILLED = """
from forktail.servers import Server
one, other = Server("redis"), Server("memcached", tcp=True, cpus="0")
print(one.pid, other.pid, one.directory, other.directory, flush=True)
one.wait(1000)
"""


def test_kill_9_leaves_no_server() -> None:
    code = f"import sys; sys.path.insert(0, {str(TREE / 'python')!r}){KILLED}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        words = process.stdout.readline().split()
        process.kill()
    left = [f"/proc/{pid}" for pid in words[:2]] + words[2:]
    limit = time.monotonic() + 30
    while any(map(os.path.exists, left)):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_one_server(tmp_path: Path) -> None:
    directory = str(tmp_path / "kept")
    with Server("memcached", env={"ONE": "1"}) as server:
        assert "ONE=1" in Path(f"/proc/{server.pid}/environ").read_text().split("\0")
    with Server("redis", "--maxmemory", "1mb", directory=directory, under=["nice", "-n", "1"]) as server:
        assert server.ask("CONFIG", "GET", "maxmemory") == ["maxmemory", "1048576"]
        assert os.getpriority(os.PRIO_PROCESS, server.pid) == 1 + os.getpriority(os.PRIO_PROCESS, 0)
        assert server.load_words() == ["-s", server.address()] and server.socket == f"{directory}/redis/redis.sock"
        with Server("nutcracker", of=[server.socket]) as proxy:
            assert speak(Endpoint(proxy.socket), "*2\r\n$3\r\nget\r\n$1\r\nk\r\n") == "$-1\r\n"
        server.send_signal(signal.SIGTERM)
        server.wait(20)
    assert Path(server.log).exists()
    with pytest.raises(Failure, match='^unknown kind of server "floppy": use redis, redis8, valkey, keydb, memcached'):
        Server("floppy")


def test_programs_and_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "redis-server"
    built.write_text("#!/bin/sh\necho Redis server v=8.9.1 sha=0\n")
    built.chmod(built.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("FORKTAIL_SERVERS", str(tmp_path))
    assert find_server("redis8") == (str(built), "8.9.1")
    assert find_server("redis") != find_server("redis8")
    assert (find_server("floppy"), version_of("/nonexistent"), version_of(str(built))) == (None, "", "8.9.1")
    assert kind_names() == "redis, redis8, valkey, keydb, memcached, nutcracker, haproxy and sentinel"


def test_words_for_checking_a_load() -> None:
    assert check_words("redis", True) == ["--cluster", "--server", "127.0.0.1"]
    assert check_words("sentinel", False) == ["--sentinel", "127.0.0.1"]
    assert check_words("memcached", False) == ["--protocol", "memcache_text", "-h", "127.0.0.1"]


@pytest.mark.parametrize(
    ("line", "ns"),
    [
        ("123:M 21 Nov 2026 12:39:49.419 * text", 419_000_000),
        ("123:X 21 Nov 2026 12:39:49.4190 text", None),
        ("21 Nov 2026 12:39:49.419", None),
        ("123:M 41 Nov 2026 12:39:49.419 *", None),
        ("", None),
    ],
)
def test_times_in_logs(line: str, ns: int | None) -> None:
    second = int(time.mktime((2026, 11, 21, 12, 39, 49, 0, 0, -1)))
    assert time_of_line(line) == (0 if ns is None else second * 1_000_000_000 + ns)


def test_the_first_line_in_a_log_from_a_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines = [f"1:M 21 Nov 2026 12:39:{second}.000 * {text}" for second, text in ((48, "+x"), (49, "-"), (50, "+x"))]
    log.write_text("\n".join(lines))
    first, last = time_of_line(lines[0]), time_of_line(lines[2])
    found = [find_in_log(str(log), *what) for what in (("+x", 0), ("+x", first + 1), ("+x", last + 1), ("y", 0))]
    assert found == [first, last, 0, 0] and find_in_log("/nonexistent", "", 0) == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (ServeOptions(ServerPlan(kind="floppy")), f'unknown kind of server "floppy": use {kind_names()}'),
        (ServeOptions(ServerPlan(kind="redis"), of=["a"]), "--of needs a proxy: redis is not a proxy"),
        (ServeOptions(ServerPlan(kind="memcached", cluster=True)),
         "--cluster needs servers with the Redis protocol, not memcached"),
        (ServeOptions(ServerPlan(kind="memcached", replicas=1)), "--replicas: memcached does not support replicas"),
        (ServeOptions(ServerPlan(kind="haproxy", replicas=1), of=["a"]),
         "--replicas: haproxy does not support replicas"),
        (ServeOptions(ServerPlan(kind="redis"), environment=["A=1", "=1"]), "--env needs NAME=VALUE, not =1"),
        (ServeOptions(ServerPlan(kind="redis"), environment=["A"]), "--env needs NAME=VALUE, not A"),
    ],
)  # fmt: skip
def test_what_cannot_be_served(options: ServeOptions, why: str) -> None:
    with pytest.raises(Failure) as failure:
        plan_serve(options)
    assert (str(failure.value), failure.value.status) == (why, USAGE)


@pytest.mark.parametrize(
    ("options", "plans"),
    [
        (ServeOptions(ServerPlan(kind="redis", count=2)), [ServerPlan("redis", "redis", 2)]),
        (ServeOptions(ServerPlan(kind="redis", count=2, replicas=3)),
         [ServerPlan("redis", "redis", 2, tcp=True, replicas=3),
          ServerPlan("replica", "redis", 6, tcp=True, replica_of="redis")]),
        (ServeOptions(ServerPlan(kind="redis", cluster=True, replicas=1)),
         [ServerPlan("redis", "redis", cluster=True, replicas=1, tcp=True)]),
        (ServeOptions(ServerPlan(kind="haproxy"), of=["/a", "b:1"], environment=["A=1=2"]),
         [ServerPlan("haproxy", "haproxy", environment={"A": "1=2"},
                     behind=[Behind("server1", "/a"), Behind("server2", "b:1")])]),
        (ServeOptions(ServerPlan(kind="nutcracker")),
         [ServerPlan("redis", "redis"), ServerPlan("nutcracker", "nutcracker", of="redis")]),
        (ServeOptions(ServerPlan(kind="sentinel", count=3, replicas=1)),
         [ServerPlan("redis", "redis", tcp=True),
          ServerPlan("replica", "redis", tcp=True, replica_of="redis"),
          ServerPlan("sentinel", "sentinel", 3, replicas=1, of="redis")]),
    ],
)  # fmt: skip
def test_what_is_served_first(options: ServeOptions, plans: list[ServerPlan]) -> None:
    assert plan_serve(options) == plans
