# SPDX-License-Identifier: MIT
"""The models of forktail forecast, on facts made by hand."""

import os
import socket
from dataclasses import replace

import pytest

from forktail.forecast.look import price_of_pages
from forktail.forecast.model import HUGE, PAGE, Earlier, Facts, copied, duration, forecast, fork_time, percentile
from forktail.forecast.repeat import Seen, inside
from forktail.servers.listen import listening_ports, listening_sockets

GB = 10**9
FACTS = Facts(
    anonymous=GB, resident=GB + 10_000_000, swapped=0, page_tables=2_000_000, huge=(0, 0), data=900_000_000,
    fork_base_ns=300_000, page_ns=150, huge_page_ns=600, writes_per_s=1000, available=8 * GB, swap_free=0,
)  # fmt: skip
BEFORE = Earlier("BGSAVE", GB // 2, 20_000_000, 4 * GB, 50_000_000, 20_000, 12_000_000)


def test_a_fork_costs_its_pages() -> None:
    fork = fork_time(FACTS)
    assert fork.likely == pytest.approx(300_000 + GB / PAGE * 150)
    assert fork.low < fork.likely < fork.high and "150 ns" in fork.reason
    swapped = fork_time(replace(FACTS, swapped=GB))
    assert swapped.likely == pytest.approx(300_000 + 2 * GB / PAGE * 150)
    huge = fork_time(replace(FACTS, huge=(GB, GB)))
    assert huge.likely == pytest.approx(300_000 + GB / HUGE * 600)
    unknown = fork_time(replace(FACTS, huge=(0, GB)))
    assert unknown.low < huge.likely and unknown.high > fork.likely and "not known" in unknown.reason


def test_own_earlier_snapshots_decide() -> None:
    known = replace(FACTS, earlier=[BEFORE])
    assert fork_time(known).likely == pytest.approx(20_000_000 * FACTS.resident / BEFORE.rss)
    lasts = duration(known, "BGSAVE")
    assert lasts.likely == pytest.approx(4 * GB * FACTS.resident / BEFORE.rss)
    # Of another command the time is not known.
    assert duration(known, "BGREWRITEAOF").reason.endswith("it has written none yet")
    copies = copied(known, "BGSAVE", lasts)
    assert copies.low < copies.likely < copies.high <= 1.7 * copies.low
    # As many pages per write as then: 50 MB of 500 MB for 20,000 writes, of which some came back to a page.
    per_write = copies.likely / PAGE / (1000 * lasts.likely / 1e9)
    assert 0.5 < per_write < 0.75
    assert percentile(known, 0.999, fork_time(known), lasts).likely == 12_000_000
    timed = replace(FACTS, earlier=[replace(BEFORE, writes=None)])
    assert copied(timed, "BGSAVE", lasts).likely == pytest.approx(50_000_000 * lasts.likely / 4e9, rel=0.1)


def test_without_earlier_ones_ranges_are_wide_but_not_wider_than_four() -> None:
    for rate in (10, 1000, 100_000):
        facts = replace(FACTS, writes_per_s=rate)
        copies = copied(facts, "BGSAVE", duration(facts, "BGSAVE"))
        assert copies.high <= 4.001 * copies.low
        assert copies.high <= FACTS.anonymous + 2_000_000
    assert duration(replace(FACTS, last_seconds={"BGSAVE": 8}), "BGSAVE").likely == 8e9


def test_a_percentile_waits_for_the_fork() -> None:
    one = forecast(FACTS, "BGSAVE")
    whole = one.fork_ns.likely + one.duration_ns.likely
    assert one.p99_9_ns.likely == pytest.approx(max(one.fork_ns.likely - 0.001 * whole, 0))
    assert one.p99_ns.likely == 0  # fewer than one in a hundred was due during the fork


@pytest.mark.parametrize(
    ("change", "fits", "why"),
    [
        ({}, "yes", ""),
        ({"available": 10_000_000}, "no", "memory of the host and swap: 10 MB are left"),
        ({"available": 10_000_000, "swap_free": GB}, "yes", "the host would swap"),
        ({"cgroup_left": 10_000_000, "cgroup_name": "/pods/x"}, "no", "the memory limit of /pods/x: 10 MB are left"),
        ({"cgroup_left": GB, "cgroup_name": "/pods/x"}, "yes", ""),
        ({"commit_left": 500_000_000, "writable": GB}, "no", "fork() would fail: vm.overcommit_memory is 2"),
        ({"commit_left": 2 * GB, "writable": GB}, "yes", ""),
        ({"disk_free": 100_000_000}, "no", "the disk has 100 MB left for a file of 900 MB"),
        ({"disk_free": 100_000_000, "last_file": 90_000_000}, "yes", ""),
        ({"refused": {"BGSAVE": "a snapshot runs"}}, "no", "the server would refuse it: a snapshot runs"),
    ],
)
def test_whether_it_fits(change: dict[str, object], fits: str, why: str) -> None:
    one = forecast(replace(FACTS, **change), "BGSAVE")  # type: ignore[arg-type]
    assert one.fits == fits
    assert why in " ".join(one.why) and bool(one.why) == bool(why)


def test_what_lies_between_may_not_fit() -> None:
    sure = forecast(FACTS, "BGSAVE")
    between = int(sure.copied.likely + sure.copied.high) // 2 + FACTS.page_tables + (16 << 20)
    assert forecast(replace(FACTS, available=between), "BGSAVE").fits == "perhaps"


def test_a_page_has_a_price() -> None:
    base, page, huge = price_of_pages()
    # Of a page of shared memory a fork copies nothing: then it would be 0.
    assert base > 0 and 10 < page < 100_000 and huge <= page * HUGE / PAGE


def test_a_process_listens_on_its_sockets(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        unix.bind(str(tmp_path / "s"))
        ports, sockets = listening_ports(os.getpid()), listening_sockets(os.getpid())
        tcp.listen()
        unix.listen()
        assert tcp.getsockname()[1] in listening_ports(os.getpid()) - ports
        assert str(tmp_path / "s") in listening_sockets(os.getpid()) - sockets


INFO = {
    "run_id": "a", "rdb_saves": 3, "aof_rewrites": 1, "rdb_last_bgsave_time_sec": 4, "aof_last_rewrite_time_sec": 0,
    "rdb_last_cow_size": 50_000_000, "aof_last_cow_size": 7_000_000, "latest_fork_usec": 12_000,
}  # fmt: skip


def test_what_ended_between_two_answers_is_an_earlier_snapshot() -> None:
    def since(**changed: object) -> list[Earlier]:
        return Seen(INFO).since(FACTS, Seen(INFO | changed))

    assert since() == []
    assert since(run_id="b", rdb_saves=1) == []  # another process
    (one,) = since(rdb_saves=4)
    assert (one.command, one.fork_ns, one.duration_ns, one.copied) == ("BGSAVE", 12_000_000, 4 * 10**9, 50_000_000)
    assert one.rss == FACTS.resident and one.writes is None
    both = since(rdb_saves=5, aof_rewrites=2)
    assert [(one.command, one.fork_ns, one.duration_ns) for one in both] == [
        ("BGSAVE", None, 4 * 10**9), ("BGREWRITEAOF", None, 5 * 10**8),
    ]  # fmt: skip


def test_a_fact_is_compared_only_where_it_is_known() -> None:
    one = forecast(FACTS, "BGSAVE")
    fact = Earlier("BGSAVE", FACTS.resident, int(one.fork_ns.likely), 2 * 10**9, int(one.copied.high) + 1, None)
    assert inside(one, fact) == {"fork": True, "copied": False}
    assert inside(one, replace(fact, fork_ns=None, duration_ns=5 * 10**8)) == {}
