# SPDX-License-Identifier: MIT
"""Metrics of a real server with known stalls: the HTTP answers of forktail-guard, Debian's Prometheus as their reader,
hostile clients, and the file for node_exporter.
"""

import json
import os
import random
import signal
import stat
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from forktail.programs import program
from forktail.servers.listen import free_port
from harness import TREE, eventually, needs, needs_root, run_program
from scrape import get, send, series, values


@pytest.fixture
def guard(background) -> Callable:
    """guard(path, where, *words): a forktail-guard of a recording or a ring that serves metrics at `where`."""

    def start(path, where, *words):
        started = background(program("forktail-guard"), path, "--metrics", where, *words)
        assert eventually(lambda: get(where).status, 20), started.err
        return started

    return start


@pytest.fixture
def prometheus(background, tmp_path) -> Callable:
    """prometheus(where): a query to a Prometheus that reads the metrics there every second."""

    def start(where):
        at = f"http://127.0.0.1:{free_port()}"
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: forktail\n"
            f"    static_configs:\n      - targets: ['{where}']\n"
        )
        started = background(
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={at.removeprefix('http://')}",
        )  # fmt: skip

        def ready():
            with suppress(urllib.error.URLError, ConnectionError):
                return urllib.request.urlopen(f"{at}/-/ready", timeout=5).status == 200

        def query(expression, *by):
            words = urllib.parse.urlencode({"query": expression})
            with urllib.request.urlopen(f"{at}/api/v1/query?{words}", timeout=20) as answer:
                found = json.load(answer)["data"]["result"]
            return {tuple(one["metric"].get(label, "") for label in by): float(one["value"][1]) for one in found}

        assert eventually(ready, 30), started.err
        return query

    return start


@needs_root
@needs("prometheus")
@pytest.mark.quiet
def test_a_prometheus_scrapes_what_a_servers_threads_did_and_rates_sum_to_one(
    serve, record, guard, prometheus, background
):
    redis = serve("redis", "--enable-debug-command", "yes", tcp=True)
    assert redis.ask("DEBUG", "POPULATE", "300000", "key", "100") == ["OK"]
    where = f"127.0.0.1:{free_port()}"
    guard(record("--pid", redis.pid).path, where)
    query, server = prometheus(where), f"redis-server:{redis.port}"
    # Events before the recorder has written the server's threads are not counted.
    assert eventually(lambda: series("forktail_server_up", server=server) in get(where).body, 15)

    background("redis-benchmark", "-p", redis.port, "-t", "set", "-r", 300000, "-n", 100_000_000, "-c", 4, "-q")
    redis.ask("BGSAVE")
    time.sleep(1)
    assert redis.ask("DEBUG", "SLEEP", "0.06") == ["OK"]
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    redis.send_signal(signal.SIGCONT)
    time.sleep(11)

    rates = {}

    def sum_to_one():
        nonlocal rates
        rates = query("sum by (server, thread) (rate(forktail_thread_seconds_total[10s]))", "server", "thread")
        ended = {(server, "snapshot child"), (server, "child")}
        # Time is counted in slots of 50 ms.
        return all(abs(rate - 1) <= 0.02 for thread, rate in rates.items() if thread not in ended)

    # The guard reads twice a second. If Prometheus scrapes just then, the first and the last of ten seconds may have
    # half a second more or less.
    assert eventually(lambda: sum_to_one() or time.sleep(1), 20), rates
    assert (server, "redis-server") in rates
    assert len(rates) >= 4  # its helpers too
    own_code = '{thread="redis-server",cause="own-code"}'
    own = query(f"rate(forktail_thread_seconds_total{own_code}[10s])", "server")
    assert own[(server,)] > 0.01

    v = values(get(where).body)

    def value(name, **labels):
        return v[series(name, server=server, **labels)]

    assert value("forktail_stalls_total", cause="stopped") >= 1
    assert value("forktail_stall_duration_seconds_sum", cause="stopped") == pytest.approx(0.2, abs=0.15)
    assert value("forktail_stall_duration_seconds_sum", cause="sleep") >= 0.06
    iterations = "forktail_event_loop_turn_seconds"
    assert value(f"{iterations}_count") - value(f"{iterations}_bucket", le="0.016384") >= 1
    causes = ("sleep", "stopped", "run-queue", "own-code", "fork")
    assert sum(value("forktail_episodes_total", cause=cause) for cause in causes) >= 1
    assert value("forktail_fork_duration_seconds_count") == 1
    # Redis' own figure includes the fork's wait for a CPU.
    of_redis = float(redis.instance.connection().read_info()["latest_fork_usec"])
    assert 0 < value("forktail_fork_duration_seconds_sum") <= of_redis * 1.05e-6 + 1e-4
    info = redis.instance.connection().read_info()
    role = {"role": "snapshot child"}
    assert value("forktail_last_child_fork_seconds", **role) == value("forktail_fork_duration_seconds_sum")
    assert 0 < value("forktail_last_child_seconds", **role) < 12
    # Redis reports what is private in the child, which copies a few pages itself.
    of_redis = int(info["rdb_last_cow_size"])
    assert value("forktail_last_child_copied_bytes", **role) == pytest.approx(of_redis, rel=0.1, abs=3e6)
    assert value("forktail_server_up") == 1
    assert v["forktail_recording"] == 1
    assert v["forktail_buffer_bytes"] > 0


@needs_root
@needs("promtool")
def test_the_answers_follow_the_format_specifications(redis, record, guard, tmp_path):
    where = str(tmp_path / "metrics.sock")
    guard(record("--pid", redis.pid).path, where)
    assert stat.S_IMODE(os.stat(where).st_mode) == 0o600
    line = f'forktail_thread_seconds_total{{server="redis-server:{redis.socket}"'
    assert eventually(lambda: line in get(where).body, 15)

    plain = get(where)
    assert plain.status == "HTTP/1.1 200 OK"
    assert "text/plain; version=0.0.4" in plain.headers
    checked = run_program("promtool", "check", "metrics", input=plain.body)
    assert (checked.status, checked.out, checked.err) == (0, "", "")

    open_metrics = get(where, "/metrics", "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert "application/openmetrics-text; version=1.0.0" in open_metrics.headers
    assert "# TYPE forktail_thread_seconds counter\n" in open_metrics.body
    assert open_metrics.body.endswith("# EOF\n")
    assert "0.0.4" in get(where, "/metrics", "Accept: application/openmetrics-text;q=0").headers

    head = send(where, b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (head.status, head.body) == ("HTTP/1.1 200 OK", "")
    for path in ("/", "/metrics/../../etc/passwd"):
        assert get(where, path).status == "HTTP/1.1 404 Not Found"
    for method in ("POST", "PUT", "DELETE", "TRACE", "NONSENSE"):
        refused = send(where, f"{method} /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert not any("forktail_" in part for part in refused), method
        assert " 200 " not in "".join(refused), method


# A thousand connections that send nothing, or a byte now and then.
CROWD = """
import socket, sys, time
crowd = []
for i in range(1000):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", int(sys.argv[1])))
    crowd.append(one)
print("there", flush=True)
while True:
    for one in crowd:
        try:
            one.send(b"G")
        except OSError:
            pass
    time.sleep(0.2)
"""


def test_hostile_clients_change_nothing(guard, background, tmp_path):
    port = free_port()
    where, config = f"127.0.0.1:{port}", tmp_path / "record.toml"
    config.write_text('[[trigger]]\nname = "deploy"\n')
    # The answer does not wait for a recording to exist.
    guarding = guard(tmp_path, where, "--config", config)
    assert get(where).status == "HTTP/1.1 200 OK"

    def descriptors():
        return len(list(Path(f"/proc/{guarding.pid}/fd").iterdir()))

    before = descriptors()
    crowd = background(sys.executable, "-c", CROWD, port)
    assert eventually(lambda: crowd.out == "there\n", 60)
    assert descriptors() < before + 80
    assert get(where).status == "HTTP/1.1 200 OK"

    million = "x" * (1 << 20)
    for refused in (
        get(where, "/metrics", f"X: {million}"),
        get(where, f"/{million}"),
        get(where, "/metrics", "Content-Length: 4000000000"),
    ):
        assert " 200 " not in refused.status
    # A name that leads here only for a browser's page.
    for path, host in (
        ("/metrics", "evil.example"),
        ("/metrics", "127.0.0.1.evil.example:80"),
        ("http://evil.example/metrics", "localhost"),
    ):
        assert " 403 " in send(where, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()).status, (path, host)
    for nonsense in (random.Random(1).randbytes(100_000), b"GET /metrics\0 HTTP/1.1\r\n\r\n", b"\r\n\r\n\r\n"):
        send(where, nonsense)
    answer = get(where)
    assert answer.status == "HTTP/1.1 200 OK"
    assert 'forktail_build_info{version="' in answer.body
    # The guard still does its other work, which it does between answers.
    config.write_text("[snapshots]\nkeep = 2\n")
    assert eventually(lambda: "reloaded the configuration: 0 triggers" in guarding.err), guarding.err
    crowd.close()
    assert eventually(lambda: descriptors() <= before, 20)


@needs_root
def test_a_metrics_file_is_always_complete(serve, record, tmp_path):
    redis = serve("redis", "--enable-debug-command", "yes")
    ring, where, file = tmp_path / "ring", str(tmp_path / "metrics.sock"), tmp_path / "forktail.prom"
    recorder = record(
        "--keep", "1m,100MB", "--pid", redis.pid, "--on", "iteration > 50ms", "--metrics", where,
        "--metrics-textfile", tmp_path, path=ring,
    )  # fmt: skip
    assert eventually(lambda: get(where).status and file.exists(), 30), recorder.err
    redis.ask("DEBUG", "SLEEP", "0.1")
    made, last = series("forktail_snapshots_total", trigger="iteration"), get(where).body.splitlines()[-1]

    def complete_with_snapshot():
        text = file.read_text()
        assert text.endswith(f"\n{last}\n")
        return values(text).get(made) == 1

    assert eventually(complete_with_snapshot, 60), recorder.err
    assert eventually(lambda: values(file.read_text()).keys() == values(get(where).body).keys(), 20)


def test_a_metrics_file_that_cannot_be_written_is_one_sentence(guard, tmp_path):
    guarding = guard(tmp_path, str(tmp_path / "metrics.sock"), "--metrics-textfile", tmp_path / "gone")
    sentence = f"forktail-guard: cannot write {tmp_path}/gone/forktail.prom: No such file or directory\n"
    assert eventually(lambda: sentence in guarding.err), guarding.err


@needs("promtool")
def test_the_alerts_fire_when_they_should():
    ran = run_program("promtool", "test", "rules", TREE / "contrib/prometheus/forktail.rules.test.yml")
    assert ran.status == 0, ran.out + ran.err
