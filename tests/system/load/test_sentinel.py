# SPDX-License-Identifier: MIT
"""Load on a primary monitored by real Sentinels: found, followed through a failover, its replicas read and waited for.
Also Sentinels that do not help.
"""

import signal
import time

import pytest
from load_run import check_refused

from forktail.servers.listen import free_port
from forktail.servers.logs import find_in_log
from forktail.servers.topology import SENTINEL_MASTER
from harness import eventually, ft, load
from server_counts import calls
from topologies import Servers


class Sentinels:
    """A primary, two replicas and three Sentinels that monitor them.

    down_ms: how long the primary has to be silent before a Sentinel counts it as dead. It is long, so that a busy
    machine causes no failover by itself.
    """

    def __init__(self, servers, down_ms=30000):
        settings = {"tcp": True, "config": ["--repl-diskless-sync-delay", "0"]}
        [self.primary] = servers.start("redis", **settings)
        self.replicas = servers.start("redis", "replica", replica_of="redis", count=2, **settings)
        patience = [f"down-after-milliseconds {down_ms}", "failover-timeout 3000"]
        self.sentinels = servers.start("sentinel", of="redis", count=3, tcp=True, config=patience)

    @property
    def words(self):
        """The options for a load on the primary."""
        named = [word for one in self.sentinels[:2] for word in ("--sentinel", one.address())]
        return [*named, "--master", SENTINEL_MASTER]


@pytest.fixture(scope="module")
def _sentinels(module_servers):
    return Sentinels(module_servers)


@pytest.fixture
def sentinels(_sentinels):
    """Sentinels with an empty primary, which tests share that cause no failover."""
    _sentinels.primary.connection().ask("FLUSHALL")
    _sentinels.primary.connection().ask("CONFIG", "RESETSTAT")
    return _sentinels


def test_the_primary_that_sentinels_name_gets_the_load_and_replicas_the_reads_if_requested(sentinels, start_load):
    primary = sentinels.primary.address()
    start_load(*sentinels.words, "--fill", 500, "-c", 2).done()
    assert sentinels.primary.connection().ask("DBSIZE") == ["500"]
    for replica in sentinels.replicas:
        assert eventually(lambda: replica.connection().ask("DBSIZE") == ["500"])  # noqa: B023
    run = start_load(
        *sentinels.words, "--ratio", "1:4", "-r", 500, "-n", 4000, "-c", 2, "--read-from", "replica"
    ).done()  # fmt: skip
    assert (run.total["errors"], run.total["misses"]) == (0, 0)
    requests = {node["server"]: node["requests"] for node in run.figures["nodes"]}
    assert len(requests) == 3
    assert requests[primary] == run.figures["operations"]["SET"]["requests"]

    # Without Sentinel the primary's own information is enough.
    reads = ["--ratio", "0:1", "-r", 500, "-n", 1000, "-c", 2, "--read-from", "replica"]
    run = start_load("--server", primary, *reads).done()
    assert primary not in [node["server"] for node in run.figures["nodes"]]
    replica = sentinels.replicas[0].address()
    ran = load("--server", replica, "-q", "--no-observer", "-n", 10, "--read-from", "any")
    assert ran.status == 3
    assert "is a replica" in ran.err


def late_s(start_load):
    """The primary dies. How long after a Sentinel named the next one its first answer came."""
    with Servers() as servers:
        sentinels = Sentinels(servers, down_ms=2000)
        primary = sentinels.primary.address()
        run = start_load(*sentinels.words, "--rate", 1000, "--duration", 14, "-r", 1000, "-c", 8)
        run.under_way()
        time.sleep(1)
        sentinels.primary.child.send_signal(signal.SIGKILL)
        run.done()
        assert run.total["requests"] == 14000
        [outage] = run.figures["outages"]
        assert outage["server"] == primary
        assert outage["after"] != primary
        assert outage["delayed"] > 100
        assert outage["failed"] == run.total["errors"] == run.log.with_status(ft.STATUS_RESET)
        assert "keys without a server for" in run.out
        notes = [(note["kind"], note.get("what"), note.get("to")) for note in run.log.notes]
        assert ("topology", "primary", outage["after"]) in notes
        # The Sentinel that leads the failover names the new primary from "+promoted-slave" on, the others from
        # "+switch-master" on.
        events = [(one.log, event) for one in sentinels.sentinels for event in ("+promoted-slave", "+switch-master")]
        named_ns = min(filter(None, (find_in_log(path, event, 0) for path, event in events)))
        return (run.log.realtime_ns(outage["first_ok_ns"]) - named_ns) / 1e9


@pytest.mark.quiet
def test_the_primary_dies_and_the_next_one_gets_the_load_after_the_gap_that_sentinel_reports(start_load):
    # A busy machine may delay either side, so one of three tries has to be as close as on an idle machine.
    for _ in range(3):
        late = late_s(start_load)
        print(f"the first answer came {late:.3f} s after a Sentinel named the new primary")
        assert late > -0.002
        if late <= 0.1:
            return
    pytest.fail("three times more than 0.1 s")


def test_after_a_requested_failover_requests_that_the_old_primary_refuses_as_a_replica_go_to_the_new_one(
    servers, start_load
):
    sentinels = Sentinels(servers)
    run = start_load(*sentinels.words, "--rate", 1000, "--duration", 10, "-r", 1000, "-c", 4)
    run.under_way()
    sentinel = sentinels.sentinels[0].connection()
    assert eventually(lambda: sentinel.reply("SENTINEL", "FAILOVER", SENTINEL_MASTER) == "OK")
    run.done()
    assert run.total["requests"] == 10000
    assert run.figures["error_replies"] == {}
    nodes = [node for node in run.figures["nodes"] if node["server"] != sentinels.primary.address()]
    assert sum(node["requests"] for node in nodes) > 1000


def test_writes_wait_for_the_requested_number_of_replicas(sentinels, start_load):
    run = start_load(*sentinels.words, "--ratio", "1:1", "-r", 100, "-n", 1000, "-c", 2, "--wait", "2,2s").done()
    assert (run.total["requests"], run.total["errors"]) == (1000, 0)
    # A round trip to replicas is in every write and in no read.
    writes = run.figures["operations"]["SET"]
    assert writes["latency_ns"]["min"] > 0
    assert calls(sentinels.primary.connection(), "wait") == writes["requests"] > 0


def test_writes_that_fewer_replicas_have_are_errors(sentinels, start_load):
    run = start_load(*sentinels.words, "--ratio", "1:1", "-r", 100, "-n", 20, "-c", 2, "--wait", "3,10ms")
    run.wait()
    writes = run.figures["operations"]["SET"]["requests"]
    assert run.total["errors"] == run.figures["error_replies"]["NOREPLICAS"] == writes


def test_sentinels_that_do_not_know_the_primary_or_do_not_exist(sentinels):
    nobody = f"127.0.0.1:{free_port()}"
    known = ["--master", SENTINEL_MASTER]
    at = sentinels.sentinels[2].address()
    check_refused('no primary named "another"', "--sentinel", at, "--master", "another", "-q")
    check_refused("", "--sentinel", nobody, "-q")
    check_refused("", "--sentinel", sentinels.primary.address(), *known, "-q")
    # The first does not exist, the second does.
    both = ["--sentinel", nobody, "--sentinel", sentinels.sentinels[0].address()]
    ran = load(*both, *known, "-q", "-n", 100, "-c", 1)
    assert ran.status == 0, ran.err
