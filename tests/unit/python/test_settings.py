# SPDX-License-Identifier: MIT
"""The settings that cause spikes: for each row a server to which it applies, and one to which it does not."""

import re
from dataclasses import replace
from typing import Any

import pytest

from forktail.settings.facts import Facts, _slow
from forktail.settings.main import _text, causes_of, findings, remedies
from forktail.settings.rows import ROWS
from forktail.trial.settings import SETTINGS

GB = 10**9
CONFIG = {
    "save": "", "appendonly": "no", "appendfsync": "everysec", "disable-thp": "yes", "maxmemory": "4000000000",
    "io-threads": "1", "tcp-backlog": "511", "latency-monitor-threshold": "0",
    "repl-backlog-size": "1048576",
    "lazyfree-lazy-user-del": "no", "lazyfree-lazy-user-flush": "no", "activedefrag": "no",
    "rdb-save-incremental-fsync": "yes", "aof-rewrite-incremental-fsync": "yes",
    "client-output-buffer-limit": "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
}  # fmt: skip
HEALTHY = Facts(
    config=CONFIG, info={"used_memory": GB}, resident=GB, writable=GB, cpus=8, thp="madvise", memory=16 * GB,
    available=12 * GB, swap=2 * GB, swappiness=60, overcommit=0, commit_left=8 * GB, somaxconn=4096,
)  # fmt: skip


def facts(change: dict[str, Any]) -> Facts:
    own = dict(change)
    config = CONFIG | own.pop("config", {})
    info = HEALTHY.info | own.pop("info", {})
    return replace(HEALTHY, config=config, info=info, **own)


SAVES = {"config": {"save": "3600 1"}}
AOF = {"config": {"appendonly": "yes"}}
REPLICA = {"connected_slaves": 1}
# The row, what makes it apply to a healthy server, and what of that does not suffice.
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("thp", {"thp": "always", "thp_defrag": "always", "config": {"disable-thp": "no"}},
     {"thp": "always", "thp_defrag": "madvise", "config": {"disable-thp": "no"}}),
    ("overcommit", {"overcommit": 2, "commit_left": 0, **SAVES}, {"overcommit": 2, "commit_left": 0}),
    ("overcommit", {"writable": 20 * GB, **SAVES}, {"writable": 20 * GB, "overcommit": 1, **SAVES}),
    ("swapped", {"swapped": 50_000_000}, {"swapped": 500_000}),
    ("swappiness", {"resident": 10 * GB}, {"resident": 10 * GB, "swappiness": 1}),
    ("maxmemory", {"resident": 3 * GB, "cgroup_limit": 4 * GB, "config": {"maxmemory": "0"}},
     {"config": {"maxmemory": "0"}}),
    ("maxmemory-snapshots", {"cgroup_limit": 4 * GB, **SAVES}, {"cgroup_limit": 4 * GB}),
    ("one-disk", {"config": {"appendonly": "yes", "save": "3600 1"}}, SAVES),
    ("appendfsync", {"config": {"appendonly": "yes", "appendfsync": "always"}}, {"config": {"appendfsync": "always"}}),
    ("fsync-on-rewrite",
     {"info": {"aof_delayed_fsync": 12}, "config": {"appendonly": "yes", "no-appendfsync-on-rewrite": "no"}},
     {"info": {"aof_delayed_fsync": 0}, "config": {"appendonly": "yes", "no-appendfsync-on-rewrite": "no"}}),
    ("incremental-fsync", {"config": {"save": "3600 1", "rdb-save-incremental-fsync": "no"}},
     {"config": {"rdb-save-incremental-fsync": "no"}}),
    ("save", {"info": {"latest_fork_usec": 40_000}, **SAVES}, {"info": {"latest_fork_usec": 900}, **SAVES}),
    ("latency-monitor", {"slow": {"KEYS": 50_000}}, {"slow": {"KEYS": 500}}),
    ("io-threads", {"cpus": 2, "config": {"io-threads": "4"}}, {"config": {"io-threads": "4"}}),
    ("interrupts", {"pinned": {0}, "received": {0: 50_000, 1: 100}}, {"pinned": {1}, "received": {0: 50_000, 1: 100}}),
    ("quota", {"quota_cpus": 0.5}, {"quota_cpus": 4}),
    ("quota", {"quota_cpus": 4, "throttled": 9}, {"quota_cpus": 4}),
    ("somaxconn", {"somaxconn": 128}, {"somaxconn": 511}),
    ("replica-buffer", {"info": {**REPLICA, "used_memory": 8 * GB}, "config": {"repl-backlog-size": "100000000"}},
     {"info": {"used_memory": 8 * GB}}),
    ("repl-backlog", {"info": REPLICA}, {"info": REPLICA, "config": {"repl-backlog-size": "100000000"}}),
    ("diskless-sync",
     {"info": REPLICA,
      "config": {"appendonly": "yes", "repl-diskless-sync": "no", "repl-backlog-size": "100000000"}},
     {"info": REPLICA, "config": {"appendonly": "yes", "repl-diskless-sync": "yes"}}),
    ("lazyfree", {"slow": {"DEL": 90_000}, "slow_del": 90_000, "config": {"latency-monitor-threshold": "10"}},
     {"slow": {"DEL": 90_000}, "config": {"latency-monitor-threshold": "10"}}),  # of many small values
    ("lazyfree", {"slow_del": 90_000, "config": {"latency-monitor-threshold": "10"}},
     {"slow_del": 90_000, "config": {"lazyfree-lazy-user-del": "yes", "latency-monitor-threshold": "10"}}),
    ("lazy-flush", {"slow": {"FLUSHALL": 90_000}, "config": {"latency-monitor-threshold": "10"}},
     {"slow": {"FLUSHALL": 90}}),
    ("activedefrag", {"config": {"activedefrag": "yes"}, "info": {"active_defrag_running": 12}},
     {"config": {"activedefrag": "yes"}}),
]  # fmt: skip


def test_a_healthy_server_has_none() -> None:
    assert findings(HEALTHY) == []
    assert findings(Facts()) == []  # of which nothing could be read


@pytest.mark.parametrize(
    ("row", "applies", "not_enough"), CASES, ids=[f"{case[0]}-{i}" for i, case in enumerate(CASES)]
)
def test_a_row_applies_where_its_reason_holds_and_only_there(
    row: str, applies: dict[str, Any], not_enough: dict[str, Any]
) -> None:
    (found,) = findings(facts(applies))
    assert found.setting == row
    for sentence in (found.seen, found.why, found.text):
        assert sentence and not sentence.endswith(".") and "None" not in sentence
    assert row not in [one.setting for one in findings(facts(not_enough))]


def test_a_recording_says_what_the_causes_took_and_orders_the_rows() -> None:
    slow = {
        "requests": {"from": "iterations", "latency_ns": {"p99.9": 5_000_000}},
        "causes": [
            {"cause": "server-busy", "share": 0.6, "what_if": {"p99.9": 100}},
            {"cause": "fsync", "share": 0.3, "what_if": {"p99.9": 2_000_000}},
        ],
    }
    server = facts(
        {
            "swapped": 50_000_000,
            "config": {"appendonly": "yes", "appendfsync": "always"},
            "slow": {"DEL": 90_000},
            "slow_del": 90_000,
        }
    )
    assert [one.setting for one in findings(server)] == ["swapped", "appendfsync", "latency-monitor", "lazyfree"]
    found = findings(server, causes_of(slow))
    assert [one.setting for one in found] == ["appendfsync", "swapped", "latency-monitor", "lazyfree"]
    fsync, page_in, _, own = (one.in_recording for one in found)
    assert fsync and (fsync.things, fsync.share, fsync.without_ns) == ("iterations", 0.3, 2_000_000)
    assert page_in and page_in.share == 0
    assert own is None  # its own code has many reasons
    text = _text("x", found, server)
    assert "fsync took 30 % of the slow iterations' time; without it p99.9 would be 2.00 ms instead of 5.00 ms." in text
    assert "In the recording page-in took no noticeable part of the slow iterations' time." in text


def test_every_row_has_a_case_and_a_remedy() -> None:
    assert {case[0] for case in CASES} == {row.id for row in ROWS}
    assert {row.id for row in ROWS} <= set(remedies())


def test_what_can_be_tried_is_what_try_accepts() -> None:
    for one in remedies().values():
        if found := re.match(r"CONFIG SET ([a-z-]+)", one["command"]):
            setting = SETTINGS.get(found[1])
            assert (setting is not None) == (one["change"] == "live"), found[1]
            assert bool(one["loses"]) == (setting is not None and bool(setting.loses)), found[1]


@pytest.mark.parametrize(
    ("command", "duration", "slow", "slow_del"),
    [
        (b"del big", 90_000, "DEL", 90_000),
        (b"DEL k:0 k:1 ... (399970 more arguments)", 200_000, "DEL", 0),
        (b"FLUSHALL", 90_000, "FLUSHALL", 0),
        (b"flushall sync", 90_000, "FLUSHALL SYNC", 0),
        (b"", 90_000, "", 0),
    ],
)
def test_what_the_slow_log_has_of_large_values(command, duration, slow, slow_del):
    class Server:
        def slowlog_get(self, most):
            return [{"command": command, "duration": duration}]

    assert _slow(Server()) == ({slow: duration}, slow_del)
