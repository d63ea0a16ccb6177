# SPDX-License-Identifier: MIT
"""The shape of a load on real servers: how many requests, when, over which connections, by which calls; warm-up.
Everything is counted, by the server or in the log.
"""

import math
import os
import resource
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from harness import Recording, eventually, ft, load, needs_ipv6, sanitized
from recorded import percentile
from server_counts import commands_run, info, stats

NO_CONNECTION = 2**32 - 1  # of requests that were due when Ctrl-C came


def due_s(run):
    """Due times since the start of the load."""
    return (run.log.requests.intended_ns.astype(np.int64) - run.figures["start_ns"]) * 1e-9


def by_connection(run):
    """Requests of each connection, in the order of their start."""
    q = run.log.requests
    ordered = q[np.argsort(q.start_ns, kind="stable")]
    return {number: ordered[ordered.connection == number] for number in set(q.connection)}


def used(log):
    """The connections that sent a request."""
    return set(log.requests.connection) - {NO_CONNECTION}


def status_line(directory, name):
    """A line of the `status` of a process or thread, without its name."""
    lines = (line.partition(":") for line in (directory / "status").read_text().splitlines())
    return next((value.strip() for word, _, value in lines if word == name), "")


ALL = (0, math.inf)


@pytest.mark.parametrize(
    "words, counts",  # by the time from and to: how many, within
    [
        (
            ["--profile", "steps:200x500ms,1000x500ms,400x500ms"],
            {ALL: (800, 0), (0, 0.5): (100, 0), (0.5, 1): (500, 0), (1, 1.5): (200, 0)},
        ),
        (["--profile", "ramp:0-1000x1s"], {ALL: (500, 1), (0, 0.5): (125, 2)}),
        (
            ["--profile", "square:100,900,1s", "--duration", 2, "--threads", 2],
            {ALL: (1000, 2), (0, 0.5): (50, 3), (0.5, 1): (450, 3), (1, 1.5): (50, 3), (1.5, 2): (450, 3)},
        ),
        (
            ["--profile", "sine:100,900,1s", "--duration", 1],
            # 500 + 400 sin: its upper half has 250 + 400 / pi.
            {ALL: (500, 2), (0, 0.5): (250 + 400 / math.pi, 3)},
        ),
        (["--profile", "square:100,900,1s", "-n", 77], {ALL: (77, 0)}),
    ],
    ids=["steps", "ramp", "square", "sine", "counted"],
)
def test_profiles_of_the_rate_as_many_requests_are_due_in_each_part_as_the_shape_has(redis, start_load, words, counts):
    run = start_load("-s", redis.socket, *words).done()
    due, q = due_s(run), run.log.requests
    assert {part: ((due >= part[0]) & (due < part[1])).sum() for part in counts} == {
        part: pytest.approx(count, abs=margin) for part, (count, margin) in counts.items()
    }
    assert (q.start_ns >= q.intended_ns).all()
    assert (q.status <= ft.STATUS_MISS).all()
    assert "rate by profile" in run.out


def test_a_profile_of_connections_only_that_many_send(redis, start_load):
    profile = ["--profile", "connections:steps:2x700ms,8x700ms", "-c", 8, "--duration", "1400ms", "--think", "5ms"]
    run = start_load("-s", redis.socket, *profile).done()
    q, start = run.log.requests, run.figures["start_ns"]
    assert set(q.connection[q.start_ns < start + 600_000_000]) == {0, 1}
    assert len(set(q.connection[q.start_ns > start + 900_000_000])) == 8


def test_a_profile_of_connections_in_an_open_loop(redis, start_load):
    profile = ["--profile", "connections:steps:1x400ms,3x10s", "-c", 4, "--rate", 500, "--duration", 1]
    run = start_load("-s", redis.socket, *profile).done()
    assert len(run.log.requests) == 500
    assert set(run.log.requests.connection) == {0, 1, 2}


@pytest.mark.parametrize("mode", [["--rate", 1000], ["--think", "1ms"]], ids=["open", "closed"])
def test_warm_up_is_in_the_log_and_not_in_the_figures_which_are_exact(redis, start_load, mode):
    words = ["--warmup", "500ms", "--duration", "500ms", "-c", 4, "--series", "/dev/null", "--buckets=1ms"]
    run = start_load("-s", redis.socket, *words, *mode)
    assert run.wait().status == 0
    assert run.log.whole
    q, start, total = run.log.requests, run.figures["start_ns"], run.total
    counted = q[q.intended_ns >= start]
    latencies = np.sort(counted.end_ns - counted.intended_ns)
    warm = len(q) - len(counted)
    assert warm > 0
    if "--rate" in mode:
        assert (warm, len(counted)) == (500, 500)
    assert total["requests"] == len(counted)
    expected = {f"p{p}": percentile(latencies, p) for p in (50, 90, 99, 99.9)}
    expected |= {"min": latencies[0], "max": latencies[-1]}
    assert {name: total["latency_ns"][name] for name in expected} == expected
    assert run.figures["exact"] is True
    assert total["buckets"][0]["requests"] == (latencies <= 1_000_000).sum()
    assert run.log.notes[0]["warmup_end_ns"] == start


@pytest.mark.parametrize(
    "words, count", [(["--requests", 1234], 1234), (["-n", 50, "--duration", 30, "--threads", 3], 50)]
)
def test_a_load_ends_after_a_number_of_requests(redis, start_load, words, count):
    assert len(start_load("-s", redis.socket, *words).done().log.requests) == count


@pytest.mark.quiet
def test_a_load_ends_after_a_time_before_the_number_of_requests(redis, start_load):
    run = start_load("-s", redis.socket, "-n", 100_000_000, "--duration", "400ms", "--think", "1ms").done()
    assert len(run.log.requests) < 100_000_000
    assert (run.log.requests.start_ns < run.figures["start_ns"] + 400_000_000 + 50_000_000).all()


def test_a_load_ends_with_ctrl_c(redis, start_load):
    run = start_load("-s", redis.socket, "-l", "--think", "1ms")
    run.under_way()
    assert run.interrupt(10).status == 0
    summary = run.done().log.summary
    assert summary["reason"] == "interrupted"
    assert summary["runs"][0]["total"]["requests"] == len(run.log.requests)


@pytest.mark.parametrize("pipeline, batch", [(1, 0), (16, 0), (16, 4), (8, 8), (10, 3)])
def test_pipelines_and_batches_that_many_outstanding_that_many_in_a_write(redis, start_load, pipeline, batch):
    words = ["-n", 4800, "-c", 3, "-P", pipeline, *(["--batch", batch] if batch else [])]
    run = start_load("-s", redis.socket, *words).done()
    assert len(run.log.requests) == 4800
    written = batch or pipeline
    writes, outstanding = [], []
    for own in by_connection(run).values():
        writes += Counter(own.start_ns).values()
        times = np.concatenate([own.start_ns, own.end_ns])
        steps = np.repeat([1, -1], len(own))
        outstanding.append(steps[np.lexsort((steps, times))].cumsum().max())  # ends before starts at the same instant
    assert written <= max(outstanding) <= pipeline
    assert max(writes) == written
    assert sum(count < written for count in writes) <= 3  # the last one of a connection


@pytest.fixture(scope="module")
def guarded(module_serve, tmp_path_factory):
    """A redis-server with a password on TCP, and the path of its Unix socket."""
    path = str(tmp_path_factory.mktemp("guarded") / "redis.sock")
    redis = module_serve("redis", "--requirepass", "secret", "--unixsocket", path, tcp=True)
    redis.ask("AUTH", "secret")
    return redis, path


@pytest.mark.parametrize(
    "how, each",
    [
        (["--reconnect", 10], 10),
        (["--reconnect", 10, "-P", 4], 10),
        (["-k", 0], 1),
        (["--reconnect", 10, "--rate", 4000], 10),
        (["-k", 0, "--rate", 2000], 1),
        (["--reconnect", 10, "--blocking"], 10),
        (["--reconnect", 10, "--no-wait", "-P", 5], 10),
        (["-k", 0, "--think", "1ms"], 1),
    ],
    ids=lambda value: "".join(map(str, value)) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
def test_a_new_connection_every_n_requests_with_login_and_database(guarded, start_load, tcp, how, each):
    redis, path = guarded
    redis.ask("FLUSHALL")
    before = int(info(redis)["total_connections_received"])
    words = ["-t", "set", "-r", 400, "--key-pattern", "sequential", "-n", 400, "-c", 4, "--dbnum", 3]
    where = ["-p", redis.port] if tcp else ["-s", path]
    run = start_load(*where, *words, *how, env={"FORKTAIL_PASSWORD": "secret"}).done()
    assert run.total["errors"] == 0
    assert len(run.log.requests) == 400
    assert run.figures["connections_broken"] == 0
    counted = info(redis)
    # The search for an address, the probe, and the load's connections. A pipeline is cut at N; of the last requests a
    # connection may have fewer.
    opened = int(counted["total_connections_received"]) - before
    assert 400 // each + 2 <= opened <= 400 // each + 2 + 8
    assert counted["db3"].startswith("keys=400,")
    assert "db0" not in counted
    # The log knows the socket of each request.
    sockets = run.log.connection_sockets
    assert len(sockets) >= 400 // each
    assert len({socket.inode for socket in sockets.values()}) == len(sockets)
    for number, own in by_connection(run).items():
        lives = sorted((one.opened_ns, one.closed_ns) for (of, _), one in sockets.items() if of == number)
        opened_ns, closed_ns = np.array(lives).T
        life = np.searchsorted(opened_ns, own.start_ns, side="right") - 1
        assert (life >= 0).all()
        assert (own.end_ns <= closed_ns[life]).all()
        if "--think" in how:
            assert (own.start_ns[1:] >= own.end_ns[:-1] + 1_000_000).all()


@pytest.mark.parametrize(
    "tcp, protocol", [(False, "memcache_text"), (False, "memcache_binary"), (True, "memcache_text")]
)
def test_a_new_connection_every_n_requests_to_memcached(serve, start_load, tcp, protocol):
    server = serve("memcached", tcp=tcp)
    where = ["-p", server.port] if tcp else ["-s", server.socket]
    before = stats(server)["total_connections"]
    run = start_load(*where, "--protocol", protocol, "--reconnect", 5, "-n", 200, "-c", 2).done()
    assert run.total["errors"] == 0
    assert len(run.log.requests) == 200
    assert 40 + 2 <= stats(server)["total_connections"] - before <= 40 + 2 + 4 + 1


@pytest.mark.parametrize("mode", ["--threads=1", "--blocking", "-P2"])
def test_think_time_is_between_an_answer_and_the_next_request(redis, start_load, mode):
    run = start_load("-s", redis.socket, "--think", "3ms", "-n", 60, "-c", 3, mode).done()
    assert len(run.log.requests) == 60
    for own in by_connection(run).values():
        start, previous = own.start_ns[1:], own[:-1]
        assert ((start == previous.start_ns) | (start >= previous.end_ns + 3_000_000)).all()


@pytest.mark.parametrize(
    "mode",
    [
        ["--blocking"],
        ["--blocking", "-P", 7],
        ["--no-wait"],
        ["--no-wait", "-P", 50],
        ["--blocking", "--rate", 3000],
        ["--no-wait", "--rate", 3000, "-P", 20],
        ["--no-wait", "-P", 30, "--reconnect", 45],
        ["--blocking", "-d", 100_000, "-P", 20],
        ["--no-wait", "-d", 100_000, "-P", 100],
    ],
    ids=lambda mode: "".join(map(str, mode)),
)
def test_blocking_calls_and_answers_read_later_everything_is_answered_in_order(redis, start_load, mode):
    before = commands_run(redis)
    run = start_load("-s", redis.socket, "-n", 2003, "-c", 3, *mode).done()
    q = run.log.requests
    assert len(q) == 2003
    assert run.total["errors"] == 0
    assert commands_run(redis) - before >= 2003
    assert (q.end_ns > q.start_ns).all()
    # The log has a connection's requests in the order of their ends. Their starts must have the same order.
    assert len(set(q.connection)) == 3
    for number in set(q.connection):
        start = q.start_ns[q.connection == number]
        assert (start[1:] >= start[:-1]).all()


@pytest.mark.parametrize("protocol", ["memcache_text", "memcache_binary"])
@pytest.mark.parametrize("mode", ["--blocking", "--no-wait"])
def test_blocking_calls_and_answers_read_later_of_memcached(memcached, start_load, protocol, mode):
    run = start_load("-s", memcached.socket, "--protocol", protocol, "-n", 2003, "-c", 2, mode).done()
    assert len(run.log.requests) == 2003
    assert run.total["errors"] == 0


def test_each_load_thread_runs_on_its_assigned_cpu(redis, start_load):
    last = str(os.cpu_count() - 1)
    run = start_load("-s", redis.socket, "-l", "--threads", 2, "--cpus", f"0,{last}", "--think", "1ms")

    def allowed():
        tasks = list(Path(f"/proc/{run.pid}/task").iterdir())
        return {status_line(task, "Name"): status_line(task, "Cpus_allowed_list") for task in tasks}

    assert eventually(lambda: allowed().items() >= {"load-0": "0", "load-1": last}.items())
    assert run.interrupt(10).status == 0
    assert load("-s", redis.socket, "--cpus", 1023, "-n", 1).status == 2


def test_idle_connections_are_open_and_send_nothing(serve, start_load):
    redis = serve("redis")
    run = start_load("-s", redis.socket, "-l", "-c", 5, "--idle", 200, "--think", "1ms")
    assert eventually(lambda: info(redis)["connected_clients"] == "206")
    assert run.interrupt(10).status == 0
    assert eventually(lambda: info(redis)["connected_clients"] == "1")


@pytest.mark.parametrize("count", [1000, 10000])
def test_thousands_of_connections_each_used_within_32_mb_and_200_bytes_for_each(serve, start_load, count):
    redis = serve("redis", "--maxclients", "15000")
    run = start_load("-s", redis.socket, "-c", count, "-l", "--rate", 20000)
    assert eventually(lambda: int(info(redis)["connected_clients"]) > count, 30)
    assert eventually(lambda: run.log_path.exists() and len(used(Recording(run.log_path))) == count, 30)
    kb = int(status_line(Path(f"/proc/{run.pid}"), "VmHWM").split()[0])
    assert run.interrupt(20).status == 0
    assert run.log.whole
    assert len(used(run.log)) == count
    assert kb > 0
    if not sanitized():
        assert kb * 1024 < (32 << 20) + 200 * count


def test_30000_connections_over_tcp_to_one_address_from_several(serve, start_load):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 31000 and os.geteuid() != 0:
        pytest.skip("too few descriptors")
    redis = serve("redis", "--maxclients", "31000", "--tcp-backlog", "4096", tcp=True)
    if redis.ask("CONFIG", "GET", "maxclients") != ["maxclients", "31000"]:
        pytest.skip("redis-server has too few descriptors")
    run = start_load("-p", redis.port, "-c", 30000, "-n", 60000).done()
    assert run.total["errors"] == 0
    assert len(set(run.log.requests.connection)) == 30000


@needs_ipv6
def test_memcached_over_ipv6(serve):
    server = serve("memcached", "-l", "::1", tcp=True)
    ran = load("-h", "::1", "-p", server.port, "--protocol", "memcache_text", "-n", 500, "-q")
    assert ran.status == 0
    assert "500" in ran.out
