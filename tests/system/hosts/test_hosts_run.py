# SPDX-License-Identifier: MIT
"""Runs on several hosts: docs/guides/many-hosts.md exactly as written; two servers behind a proxy under one mpirun; a
host whose link is down for a while; runs that cannot start.
"""

import os
import re
import signal
import time
from contextlib import suppress

import pytest

from forktail.programs import program
from harness import BIN, TREE, Recording, eventually, explain, needs, run_program
from network_hosts import Hosts, need_hosts, shell


@pytest.fixture
def hosts_of(open_directory, closing):
    """hosts_of(*names): the test's hosts."""
    return lambda *names: closing(Hosts(open_directory, *names))


def page_script():
    """The page's commands and its plan, in order, as a script."""
    blocks = re.findall(r"^```(sh|toml)\n(.*?)^```$", (TREE / "docs/guides/many-hosts.md").read_text(), re.M | re.S)
    as_file = {"sh": "{}", "toml": "cat >plan.toml <<'END_OF_PLAN'\n{}END_OF_PLAN\n"}
    return "".join(as_file[kind].replace("{}", text) for kind, text in blocks)


@pytest.mark.quiet
def test_the_guide_many_hosts_exactly_as_written(tmp_path):
    need_hosts()
    # The page's names of namespaces and links are visible to the page alone.
    private = ["unshare", "--net", "--mount", "sh", "-euc"]
    private += ['mkdir -p /run/netns; mount -t tmpfs tmpfs /run/netns; ip link set lo up; exec "$0" "$@"']
    try:
        ran = shell(page_script(), *private, cwd=tmp_path, env={"PATH": f"{BIN}:{os.environ['PATH']}"})
    except AssertionError:
        with suppress(OSError):
            os.kill(int((tmp_path / "redis.pid").read_text()), signal.SIGKILL)
        raise
    assert "from 2 loads" in ran.err
    assert "10,000 requests" in ran.out  # explain's report on both logs
    for file in ("redis-a/server.forktail", "client-a/load.forktail", "client-b/load.forktail"):
        assert (tmp_path / "run/hosts" / file).exists()


def serve_proxy(hosts):
    """nutcracker on "proxy" in front of "redis-a" and "redis-b". Returns its address."""
    at, config = f"{hosts.address('proxy')}:22121", hosts.directory / "proxy.yml"
    servers = "".join(f"   - {hosts.address(name)}:6379:1\n" for name in ("redis-a", "redis-b"))
    config.write_text(
        f"pool:\n  listen: {at}\n  redis: true\n  distribution: ketama\n  hash: fnv1a_64\n  servers:\n{servers}"
    )
    proxy = hosts.serve("proxy", "nutcracker", "-c", config, "-s", "22222")
    ask = hosts.on("proxy", "redis-cli", "-h", hosts.address("proxy"), "-p", 22121, "get", "x")
    assert eventually(lambda: run_program(*ask).status == 0), proxy.err
    return at


def forked_by(explanation):
    """The load generators whose requests met a fork at redis-a, and the hops where requests met one elsewhere."""
    first = explanation["loads"][0]["connections"]
    clients, elsewhere = set(), []
    for request in explanation["slow_requests"]:
        for part in request["parts"]:
            if part["cause"] not in ("fork", "page-table-copy"):
                continue
            if "redis-server 10.77.0.1:6379" in part.get("hop", ""):
                clients.add("client-a" if request["connection"] < first else "client-b")
            else:
                elsewhere.append(part)
    return clients, elsewhere


@needs("nutcracker")
@pytest.mark.quiet
def test_two_clients_a_proxy_and_two_servers_under_one_mpirun_gathered_from_another_file_system(hosts_of):
    hosts = hosts_of("redis-a", "redis-b", "proxy", "client-a", "client-b")
    hosts.serve_redis("redis-a")
    hosts.serve_redis("redis-b")
    assert hosts.redis("redis-a", "DEBUG", "POPULATE", "1500000", "filler", "100").startswith("OK")
    to = serve_proxy(hosts)
    behind = ["--behind", ",".join(f"{hosts.address(name)}:6379" for name in ("redis-a", "redis-b"))]

    hosts.put_scratch_in_memory()
    recorders = [hosts.record("redis-a"), hosts.record("redis-b"), hosts.record("proxy", 22121)]
    loads = [hosts.load(name, to, *behind, rate=2000) for name in ("client-a", "client-b")]
    hosts.begin(hosts.plan("3s", *recorders, *loads))
    hosts.await_load("from 2 loads")
    # A few hundred megabytes take several milliseconds each time.
    for _ in range(6):
        hosts.redis("redis-a", "BGSAVE")
        time.sleep(0.4)
    hosts.finish(0)
    hosts.check_nothing_is_left()

    for name in ("redis-a", "redis-b", "proxy"):
        recording = Recording(hosts.file(f"{name}/server.forktail"))
        assert (recording.error, recording.damage.no_trailer) == ("", 0), name
        assert recording.threads, name
    for name in ("client-a", "client-b"):
        assert hosts.requests(f"{name}/load.forktail")["count"] == 6000
    assert forked_by(explain(hosts.run, "--requests", "--slow", "1ms")) == ({"client-a", "client-b"}, [])
    run = hosts.json
    assert run["troubles"] == []
    assert [host["name"] for host in run["hosts"]] == list(hosts.names)
    assert [host["host_name"] for host in run["hosts"]] == list(hosts.names)
    assert all(host["programs"] for host in run["hosts"])
    assert run["hosts"][4]["roles"] == "load"


@needs("nutcracker")
@pytest.mark.quiet
def test_recorders_on_the_hosts_of_a_proxy_and_its_servers_see_each_request_once_and_the_server_it_went_to(hosts_of):
    hosts = hosts_of("redis-a", "redis-b", "proxy", "client")
    redis = hosts.serve_redis("redis-a")
    hosts.serve_redis("redis-b")
    to = serve_proxy(hosts)
    ports = {"redis-a": 6379, "redis-b": 6379, "proxy": 22121}
    recorders = [hosts.record(name, port, "--requests=1/1") for name, port in ports.items()]
    hosts.begin(hosts.plan("3s", *recorders, hosts.load("client", to, rate=2000)))
    hosts.await_load("from 1 load")
    time.sleep(1)
    redis.signal(signal.SIGSTOP)
    time.sleep(0.2)
    redis.signal(signal.SIGCONT)
    hosts.finish(0)
    log = hosts.file("client/load.forktail")
    sent = explain(log)["requests"]["count"]

    def check(explanation):
        # The load generator asks for the server's INFO, which the recorders see too.
        assert sent <= explanation["requests"]["count"] < sent + 100
        assert explanation["causes"][0]["cause"] == "stopped", explanation["answer"]
        assert explanation["causes"][0]["share"] > 0.8
        assert len(explanation["hops"]) >= 2
        assert ":6379 on redis-a" in explanation["hops"][0]["name"]

    # With the load generator's log, and with what the recorders saw alone.
    check(explain(hosts.run, "--slow", "20ms"))
    log.unlink()
    check(explain(hosts.run, "--slow", "20ms"))


def test_a_file_that_cannot_be_read_stays_on_its_host_with_all_other_files_of_that_host(hosts_of):
    hosts = hosts_of("redis-a", "client-a")
    hosts.serve_redis("redis-a")
    in_memory = hosts.put_scratch_in_memory()
    hosts.begin(hosts.plan("3s", hosts.record("redis-a"), hosts.load("client-a")))
    hosts.await_load("from 1 load")
    # A directory cannot be read as a file, not even by root.
    (kept,) = in_memory.glob("*-client-a")
    (kept / "unreadable").mkdir()
    said = hosts.finish(1)
    assert f"client-a: cannot read {hosts.scratch}" in said
    assert "unreadable: Is a directory" in said
    assert f"client-a: its files are still in {hosts.scratch}" in said
    assert (kept / "load.forktail").exists()
    assert hosts.requests("client-a/load.forktail")["count"] == 1500
    assert explain(hosts.file("redis-a/server.forktail"))
    assert len(hosts.json["troubles"]) >= 2


def test_a_host_whose_link_is_down_for_two_seconds_continues_and_the_run_is_complete(hosts_of):
    hosts = hosts_of("redis-a", "client-a", "client-b")
    hosts.serve_redis("redis-a")
    hosts.begin(hosts.plan("6s", hosts.record("redis-a"), hosts.load("client-a"), hosts.load("client-b")))
    hosts.await_load("from 2 loads")
    hosts.shell("ip link set ft3 down; sleep 2; ip link set ft3 up")
    hosts.finish(0)
    hosts.check_nothing_is_left()
    a, b = (hosts.requests(f"{name}/load.forktail") for name in ("client-a", "client-b"))
    assert (a["count"], b["count"]) == (3000, 3000)
    assert b["latency_ns"]["max"] > 1e9  # the host with that link


@pytest.fixture
def refused(hosts_of):
    """refused(sentence, plan): a run with this plan ends with the sentence, and leaves nothing. hosts, plan: of a good
    run."""

    def refuse(sentence, plan):
        hosts.begin(plan)
        assert sentence in hosts.finish(3)
        hosts.check_nothing_is_left()

    refuse.hosts = hosts = hosts_of("redis-a", "client-a")
    hosts.serve_redis("redis-a")
    refuse.plan = hosts.plan("2s", hosts.record("redis-a"), hosts.load("client-a"))
    return refuse


def test_a_recorder_without_root_cannot_start(refused):
    refused.hosts.write_agent('exec setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c "$*"')
    refused.hosts.scratch.chmod(0o1777)
    refused("redis-a: forktail-record ended with status 3", refused.plan)


def test_a_program_of_another_version_is_refused(refused):
    old = refused.hosts.directory / "old"
    old.mkdir()
    for name in ("forktail-clock", "forktail-rank", "forktail-record"):
        (old / name).symlink_to(program(name))
    (old / "forktail-load").write_text("#!/bin/sh\necho forktail-load 0.0.9\n")
    (old / "forktail-load").chmod(0o755)
    host = f'network = "{refused.hosts.address("client-a")}"\n'
    plan = refused.plan.replace(host, f'{host}programs = "{old}"\n')
    refused(f"client-a: {old}/forktail-load has version 0.0.9, but this run needs ", plan)


def test_a_recorder_with_nothing_to_record_cannot_start(refused):
    last = "forktail record: nothing listens on port 6380"
    sentence = f"redis-a: forktail-record ended with status 3; its last messages: {last}"
    refused(sentence, refused.hosts.plan("2s", refused.hosts.record("redis-a", 6380)))


def test_a_run_without_mpirun_cannot_start(refused):
    refused.hosts.path = str(refused.hosts.directory)
    refused("cannot find mpirun on PATH. Install openmpi-bin.", refused.plan)


def test_a_host_that_cannot_be_reached_is_the_reason(refused):
    plan = refused.plan.replace('name = "client-a"\n', 'name = "client-a"\naddress = "nowhere"\n')
    refused("forktail: mpirun ended with status ", plan)
