# SPDX-License-Identifier: MIT
"""forktail forecast on real servers: what it says before a snapshot, beside what the snapshot then does. Whether times
are right is for bench/forecasts to measure; here it is whether they are there, and whether what cannot fit is foretold.
"""

import json
import time

import pytest

from cgroups import MemoryCgroup
from forktail.servers import find_server
from forktail.servers.listen import free_port, listening_ports
from harness import BIN, eventually, forktail, needs_root

pytestmark = needs_root
pytest.importorskip("redis", reason="needs python3-redis")

FAST = ("--look", "300ms")
MB = 1_000_000


def forecast(*words):
    ended = forktail("forecast", *FAST, "--json", *words)
    return ended.status, json.loads(ended.out) if ended.out else ended.err


@pytest.fixture(scope="module")
def server(module_serve):
    server = module_serve("redis", "--enable-debug-command", "yes", "--save", "", tcp=True)
    server.ask("DEBUG", "POPULATE", "200000", "key", "300")
    return server


def test_a_forecast_has_every_figure_with_a_range_and_a_reason(server):
    status, said = forecast("--port", server.port)
    assert status == 0
    assert said["server"]["pid"] == server.pid and said["server"]["rss_bytes"] > 60 * MB
    assert [one["command"] for one in said["forecasts"]] == [
        "BGSAVE",
        "BGREWRITEAOF",
        "a replica's full synchronization",
    ]
    for one in said["forecasts"]:
        assert one["fits"] == "yes" and one["host_left"] > 0
        for figure in ("fork_ns", "duration_ns", "copied", "peak"):
            assert 0 <= one[figure]["low"] <= one[figure]["likely"] <= one[figure]["high"] and one[figure]["reason"]
        assert one["fork_ns"]["likely"] > 100_000
        assert one["peak"]["low"] >= said["server"]["rss_bytes"]


@pytest.mark.parametrize("by", ["--port", "--pid", "--socket"])
def test_a_server_is_found_by_port_process_or_socket(server, serve, by):
    one = serve("redis") if by == "--socket" else server
    word = {"--port": one.port, "--pid": one.pid, "--socket": one.socket}[by]
    status, said = forecast(by, word, "--for", "bgsave")
    assert status == 0 and said["server"]["pid"] == one.pid


def test_writes_are_counted_and_reads_are_not(server, start_load):
    for ratio, written in (("1:0", True), ("0:1", False)):
        load = start_load("-p", server.port, "--rate", 2000, "--duration", 30, "--ratio", ratio, "-r", 1000)
        time.sleep(0.5)
        rate = forecast("--port", server.port)[1]["server"]["writes_per_s"]
        load.close()
        assert (rate > 200) == written


def test_then_does_it_and_prints_forecast_beside_fact(server):
    ended = forktail("forecast", *FAST, "--port", server.port, "--for", "bgsave", "--then")
    assert ended.status == 0, ended.err
    assert "BGSAVE would fit now." in ended.out
    _, _, facts = ended.out.partition("BGSAVE, forecast and fact\n")
    assert [line.split()[0] for line in facts.splitlines()] == ["fork", "duration", "copied"]
    assert int(server.ask("LASTSAVE")[0]) > 0


def test_an_earlier_snapshot_in_a_recording_decides(server, record):
    recorder = record("--pid", server.pid)
    server.ask("BGSAVE")
    assert eventually(lambda: "rdb_bgsave_in_progress:0" in server.ask("INFO")[0], 60)
    time.sleep(0.5)
    recorder.stop()
    status, said = forecast("--port", server.port, "--ring", recorder.path, "--for", "bgsave")
    assert status == 0 and said["earlier_snapshots"] == 1
    assert "its last fork took" in said["forecasts"][0]["fork_ns"]["reason"]
    status, said = forecast("--port", server.port, "--ring", "/nonexistent")
    assert status == 3 and "/nonexistent" in said


def test_what_the_server_would_refuse_does_not_fit(server):
    server.ask("CONFIG", "SET", "rdb-key-save-delay", "100")
    server.ask("BGSAVE")
    try:
        status, said = forecast("--port", server.port, "--for", "bgsave")
        assert status == 1 and said["forecasts"][0]["why"] == ["the server would refuse it: a snapshot runs"]
    finally:
        server.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
        assert eventually(lambda: "rdb_bgsave_in_progress:0" in server.ask("INFO")[0], 60)


def test_an_oom_kill_in_a_memory_cgroup_is_foretold(background, start_load, tmp_path):
    if find_server("redis") is None:
        pytest.skip("no redis on this machine")
    port = free_port()
    with MemoryCgroup(100 << 20) as group:
        if not group.usable:
            pytest.skip("cannot make a cgroup with a memory limit here")
        words = [
            "--port",
            port,
            "--save",
            "",
            "--enable-debug-command",
            "yes",
            "--dir",
            tmp_path,
            "--rdb-key-save-delay",
            "100",
        ]
        server = background(*group.within("redis-server", *words))
        assert eventually(lambda: forecast("--port", port)[0] == 0, 20)
        load = start_load("-p", port, "--fill", 70_000, "-d", 1000)
        assert load.wait(60).status == 0
        writes = start_load("-p", port, "--rate", 20_000, "--duration", 60, "--ratio", "1:0", "-r", 70_000, "-d", 1000)
        time.sleep(1)
        status, said = forecast("--port", port, "--for", "bgsave")
        assert status == 1 and said["forecasts"][0]["fits"] == "no", said
        assert "the memory limit of /" in said["forecasts"][0]["why"][0]
        ended = forktail("forecast", *FAST, "--port", port, "--for", "bgsave", "--then")
        assert ended.status == 1 and "is not sent, because it may not fit" in ended.err
        assert forktail("load", "-p", port, "--command", "BGSAVE", "-n", 1, "--no-observer").status == 0
        killed = eventually(lambda: any("oom_kill 0" not in text for text in oom_texts(group)), 60)
        writes.close()
        assert killed
        server.close()


def oom_texts(group):
    """The lines of the group that count killed processes."""
    files = (group.path / name for name in ("memory.oom_control", "memory.events"))
    return [
        line
        for file in files
        if file.exists()
        for line in file.read_text().splitlines()
        if line.startswith("oom_kill ")
    ]


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        ([], 2, "name one server: --port, --socket, --pid or --name"),
        (["--port", "1", "--pid", "1"], 2, "name one server"),
        (["--port", "1"], 3, "127.0.0.1:1: "),
        (["--pid", "4194303"], 3, "there is no process 4194303"),
        (["--name", "no-such-server"], 3, "no process is named no-such-server"),
        (["--port", "6379", "--for", "tea"], 2, '--for: expected bgsave, rewrite or replica, not "tea"'),
        (["--port", "6379", "--look", "soon"], 2, '--look: expected a time up to 1h such as 5s, not "soon"'),
        (["--port", "6379", "--for", "replica", "--then"], 2, "--then does BGSAVE or BGREWRITEAOF"),
    ],
)
def test_mistakes_get_one_sentence(words, status, why):
    ended = forktail("forecast", *words)
    assert (ended.status, ended.out) == (status, "")
    assert ended.err.startswith(f"forktail: {why}") and ended.err.count("\n") == 1


def test_a_server_that_forbids_commands_gets_one_sentence(serve):
    server = serve("redis", tcp=True)
    server.ask("ACL", "SETUSER", "default", "-command")
    ended = forktail("forecast", *FAST, "--port", server.port)
    assert ended.status == 3 and ended.err.startswith(f"forktail: 127.0.0.1:{server.port}: "), ended.err
    assert ended.err.count("\n") == 1


def test_a_process_in_another_network_is_not_taken_for_one_here(server, background, tmp_path):
    words = ["redis-server", "--bind", "0.0.0.0", "--port", server.port, "--dir", tmp_path]
    other = background("unshare", "--net", *words)
    assert eventually(lambda: server.port in listening_ports(other.pid), 20)
    status, said = forecast("--pid", other.pid)
    assert status == 3 and f"process {other.pid} listens in another network namespace" in said
    other.close()


def test_forecasts_are_metrics_and_the_next_snapshot_is_compared(server, tmp_path, background):
    pytest.importorskip("prometheus_client", reason="needs python3-prometheus-client")
    page = tmp_path / "forktail_forecast.prom"
    words = (
        "--port",
        server.port,
        "--look",
        "300ms",
        "--for",
        "bgsave",
        "--every",
        "1s",
        "--metrics-textfile",
        tmp_path,
    )
    again = background(BIN / "forktail", "forecast", *words)
    of = f'{{command="BGSAVE",server="127.0.0.1:{server.port}"}}'
    assert eventually(lambda: page.exists() and f"forktail_forecast_fits{of} 1.0" in page.read_text(), 60)
    compared = 'forktail_forecast_compared_total{command="BGSAVE",figure="fork",'
    assert compared not in page.read_text()
    server.ask("BGSAVE")
    assert eventually(lambda: compared in page.read_text(), 60), (page.read_text(), again.err)
    # A fork is forecast from this server's own now, so that its range is 0.8 to 1.25 times that.
    low, likely, high = (
        float(line.split()[-1])
        for bound in ("low", "likely", "high")
        for line in page.read_text().splitlines()
        if line.startswith("forktail_forecast_fork_seconds{") and f'bound="{bound}"' in line
    )
    assert low == pytest.approx(0.8 * likely) and high == pytest.approx(1.25 * likely)
    ended = again.interrupt(30)
    assert (ended.status, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--every", "1m"], "belong together"),
        (["--every", "1s", "--metrics-textfile", "/tmp"], "at least twice --look"),
        (["--every", "1m", "--metrics-textfile", "/tmp", "--json"], "--every only writes metrics"),
    ],
)
def test_mistakes_of_repeated_forecasts_get_one_sentence(words, why):
    ended = forktail("forecast", "--port", 1, *words)
    assert ended.status == 2 and why in ended.err and ended.err.count("\n") == 1
