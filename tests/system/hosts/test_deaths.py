# SPDX-License-Identifier: MIT
"""A process that dies in a run on several hosts is named, the other recordings are complete, and nothing is left on
any host.
"""

import os
import signal

import pytest

from harness import Recording, eventually
from network_hosts import Hosts

LOGS = ["client-a/load.forktail", "client-b/load.forktail"]
FILES = ["redis-a/server.forktail", *LOGS]


class ThreeHosts(Hosts):
    """A server and two clients."""

    def __init__(self, directory):
        super().__init__(directory, "redis-a", "client-a", "client-b")
        self.serve_redis("redis-a")

    def begin_loads(self, duration, head=""):
        super().begin(
            self.plan(duration, self.record("redis-a"), self.load("client-a"), self.load("client-b"), head=head)
        )

    def begin_and_wait(self, duration, head=""):
        """Waits for the load of both clients."""
        self.begin_loads(duration, head)
        self.await_load("from 2 loads")

    def kill(self, name, program):
        os.kill(self.find(name, program), signal.SIGKILL)

    def check_complete(self, *files):
        """These files exist and have their end."""
        assert [file for file in files if Recording(self.file(file)).damage.no_trailer] == []

    def are_idle(self, *names):
        """No process of the run is left on these hosts."""
        return not any(self.inside(name) for name in names)


@pytest.fixture
def hosts(open_directory):
    with ThreeHosts(open_directory) as started:
        yield started


@pytest.mark.parametrize("name", ["redis-a", "client-a", "client-b"])
def test_a_rank_that_is_killed_is_named_all_recordings_are_complete_and_nothing_is_left(hosts, name):
    hosts.begin_and_wait("60s")
    hosts.kill(name, "forktail-rank")
    said = hosts.finish(1)
    assert f"the rank on {name}" in said
    assert "was killed by signal 9" in said
    hosts.check_complete(*FILES)
    assert len(hosts.json["troubles"]) == 1
    hosts.check_nothing_is_left()


def test_rank_0_which_leads_the_others_up_to_the_load_is_named_when_it_is_killed_and_nothing_is_left(hosts):
    hosts.begin_loads("60s")
    # It waits for the recorder, which takes some time to load its programs.
    assert eventually(lambda: hosts.find("redis-a", "forktail-record"), 30)
    os.kill(hosts.leader(), signal.SIGKILL)
    assert "rank 0, on this host, was killed by signal 9" in hosts.finish(3)  # nothing had started
    assert len(hosts.json["troubles"]) >= 1
    hosts.check_nothing_is_left()


def test_a_host_that_is_lost_is_named_and_the_run_ends_with_the_others_files(hosts):
    hosts.begin_and_wait("3s")
    hosts.shell("ip link set ft3 down")  # client-b's
    said = hosts.finish(1, 150)
    assert "client-b (load) has not reported for " in said
    assert f"cannot fetch the files of client-b: they are still in {hosts.scratch}" in said
    hosts.check_complete("redis-a/server.forktail", "client-a/load.forktail")
    assert not hosts.file("client-b/load.forktail").exists()
    assert len(hosts.json["troubles"]) >= 1
    assert hosts.requests("client-a/load.forktail")["count"] == 1500
    assert eventually(lambda: hosts.are_idle("redis-a", "client-a"), 15)


def test_a_dead_load_generator_is_named_and_ends_the_run(hosts):
    hosts.begin_and_wait("60s")
    hosts.kill("client-b", "forktail-load")
    assert "client-b: the load (load) was killed by signal 9" in hosts.finish(1)
    hosts.check_complete("redis-a/server.forktail", "client-a/load.forktail")
    hosts.check_nothing_is_left()


def test_a_dead_recorder_is_named_and_the_others_continue_if_the_plan_says_so(hosts):
    hosts.begin_and_wait("4s", 'on_death = "continue"\n')
    hosts.kill("redis-a", "forktail-record")
    assert "redis-a: the recorder (server) was killed by signal 9" in hosts.finish(1)
    # 500 per second for all of 4 s: they were not ended.
    assert [hosts.requests(log)["count"] for log in LOGS] == [2000, 2000]
    hosts.check_nothing_is_left()


def test_ctrl_c_ends_everything(hosts):
    hosts.begin_and_wait("60s")
    hosts.forktail.signal(signal.SIGINT)
    hosts.finish(1)
    hosts.check_complete(*FILES)
    assert len(hosts.json["troubles"]) == 1
    hosts.check_nothing_is_left()


def test_the_death_of_forktail_itself_ends_everything(hosts):
    hosts.begin_and_wait("60s")
    hosts.forktail.signal(signal.SIGKILL)
    hosts.forktail.wait(10)
    # Nothing gathers now, but all programs end.
    assert eventually(lambda: hosts.are_idle(*hosts.names), 30)
    recordings = list(hosts.scratch.rglob("*.forktail"))
    assert len(recordings) == 5  # and how two hosts' clocks compare with the first one's
    assert [file for file in recordings if Recording(file).damage.no_trailer] == []
