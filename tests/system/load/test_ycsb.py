# SPDX-License-Identifier: MIT
"""YCSB's core workloads on a real redis-server: records, index and commands exactly as in YCSB's Redis binding. Names,
hashes and probabilities are computed here independently, from its published definitions.
"""

import bisect
import math

import numpy as np
import pytest
from chi_squared import assert_fits
from load_run import LoadRun
from monitor import Monitor

from server_counts import calls, info

RECORDS = 1000


def fnv(numbers):
    """The hash of each number: the absolute value of a Java long."""
    numbers = np.array(numbers, np.uint64)
    hashes = np.full(numbers.shape, 0xCBF29CE484222325, np.uint64)
    for _ in range(8):
        hashes = (hashes ^ (numbers & np.uint64(0xFF))) * np.uint64(1099511628211)
        numbers = numbers >> np.uint64(8)
    return np.abs(hashes.view(np.int64)).view(np.uint64)


def records(count):
    """Names of the records 0 .. count - 1."""
    return [f"user{number}" for number in fnv(range(count)).tolist()]


def java_hash(text):
    number = 0
    for byte in text.encode():
        number = (31 * number + byte) % 2**32
    return number - 2**32 if number >= 2**31 else number


def check_share(count, of, share):
    mean = of * share
    assert count == pytest.approx(mean, abs=5 * math.sqrt(mean * (1 - share)) + 1)  # five standard deviations


def pairs(words):
    return dict(zip(words[::2], words[1::2], strict=True))


@pytest.fixture
def loaded(redis):
    """A server with the records 0 .. 999."""
    ran = LoadRun("-s", redis.socket, "--ycsb", "load", "-r", RECORDS, "-c", 7)
    assert (ran.total["errors"], ran.requests("INSERT")) == (0, RECORDS)
    redis.ask("CONFIG", "RESETSTAT")
    return redis


@pytest.fixture
def run(loaded):
    """run("A", ...): a workload that has ended without errors."""

    def start(letter, *words):
        ran = LoadRun("-s", loaded.socket, "--ycsb", letter, "-r", RECORDS, "--seed", 8, *words)
        assert ran.total["errors"] == 0
        return ran

    return start


def test_the_load_phase_writes_records_fields_and_index(redis):
    ran = LoadRun("-s", redis.socket, "--ycsb", "load", "-r", 1000)
    assert (ran.runs[0]["name"], ran.requests("INSERT")) == ("YCSB load", 1000)
    assert (calls(redis, "hmset"), calls(redis, "zadd")) == (1000, 1000)
    assert redis.ask("DBSIZE") == ["1001"]
    assert redis.ask("ZCARD", "_indices") == ["1000"]
    names = records(1000)
    assert [names[i] for i in (0, 1, 2, 999)] == [
        "user6284781860667377211", "user8517097267634966620", "user1820151046732198393", "user2071219101098386137",
    ]  # fmt: skip
    index = pairs(redis.ask("ZRANGE", "_indices", "0", "-1", "WITHSCORES"))
    assert {name: float(score) for name, score in index.items()} == {name: java_hash(name) for name in names}
    values = set()
    for name in names:
        fields = pairs(redis.ask("HGETALL", name))  # a hash of long values has no order
        assert sorted(fields) == [f"field{i}" for i in range(10)]
        assert all(len(value) == 100 and value.isascii() and value.isprintable() for value in fields.values())
        values.update(fields.values())
    assert len(values) == 10_000  # each drawn again


@pytest.mark.parametrize("letter, reads", [("A", 0.5), ("B", 0.95), ("C", 1)])
def test_a_b_and_c_read_all_fields_and_update_one_by_the_count_of_the_server(loaded, run, letter, reads):
    monitor = Monitor(loaded)
    ran = run(letter, "-n", 10_000, "-P", 4)
    assert ran.runs[0]["name"] == f"YCSB {letter}"
    read, updated = calls(loaded, "hgetall"), calls(loaded, "hmset")
    assert read + updated == 10_000
    assert (ran.requests("READ"), ran.requests("UPDATE")) == (read, updated)
    check_share(read, 10_000, reads)
    assert calls(loaded, "zadd") == 0
    assert loaded.ask("DBSIZE") == ["1001"]
    assert info(loaded)["keyspace_misses"] == "0"
    updates = [seen.words for seen in monitor.commands("HMSET")]
    assert len(updates) == updated
    assert all(len(words) == 4 and len(words[3]) == 100 for words in updates)
    if updated:
        fields = [f"field{i}" for i in range(10)]
        written = [words[2] for words in updates]
        assert set(written) == set(fields)
        assert_fits([written.count(field) for field in fields], [0.1] * 10)


def popularity():
    """How probable each record is: Gray's zipfian over 10^10 + 1 ranks, the first two exact, the others where its
    inverse puts them. Each rank belongs to the record given by its hash modulo 1001 (no inserts: itemcount is records +
    1), drawn again when that is 1000. Ranks beyond the first millions, each rarer than 1 in 10^8, are spread evenly.
    """
    theta, items, zeta, head = 0.99, 1e10 + 1, 26.46902820178302, 3_000_000
    second = (1 + 0.5**theta) / zeta
    eta = (1 - (2 / items) ** (1 - theta)) / (1 - second)
    below = np.maximum(((np.arange(head + 1) / items) ** (1 - theta) - 1 + eta) / eta, second)
    below[:2] = [0, 1 / zeta]
    p = np.bincount((fnv(np.arange(head)) % np.uint64(RECORDS + 1)).astype(int), weights=np.diff(below))
    p += (1 - below[-1]) / (RECORDS + 1)
    return p[:RECORDS] / (1 - p[RECORDS])


def test_c_reads_each_record_as_often_as_it_is_popular(loaded, run):
    monitor = Monitor(loaded)
    run("C", "-n", 20_000, "-P", 16)
    number = {name: i for i, name in enumerate(records(RECORDS))}
    read = [number[seen.words[1]] for seen in monitor.commands("HGETALL")]
    p = popularity()
    assert p.max() > 0.03
    assert_fits(np.bincount(read, minlength=RECORDS), p)


def test_d_inserts_and_reads_existing_records_mostly_the_newest(loaded, run):
    monitor = Monitor(loaded)
    inserts = run("D", "-n", 20_000).requests("INSERT")
    check_share(inserts, 20_000, 0.05)
    assert [calls(loaded, command) for command in ("hgetall", "hmset", "zadd")] == [20_000 - inserts, inserts, inserts]
    count = RECORDS + inserts
    assert loaded.ask("ZCARD", "_indices") == [str(count)]
    assert loaded.ask("DBSIZE") == [str(count + 1)]
    assert info(loaded)["keyspace_misses"] == "0"
    *names, next_name = records(count + 1)
    assert loaded.ask("EXISTS", names[RECORDS], names[-1]) == ["2"]
    assert loaded.ask("EXISTS", next_name) == ["0"]
    number = {name: i for i, name in enumerate(names)}
    newest, reads, latest = 0, 0, RECORDS - 1
    for _, words in monitor.commands("HGETALL", "HMSET"):
        n = number[words[1]]
        if words[0] == "HMSET":
            assert len(words) == 22
            latest = max(latest, n)
        else:
            reads += 1
            newest += n + 100 > latest
    # The hundred newest of 1000 to 2000 get two thirds of a zipfian's draws.
    assert newest / reads > 0.5


def test_e_scans_the_following_keys_of_the_index_then_reads_each_of_their_records(loaded, run):
    index = sorted((java_hash(name), name) for name in records(RECORDS))  # in the order of a sorted set
    monitor = Monitor(loaded)
    ran = run("E", "-n", 1000, "-c", 1)
    scans, inserts = ran.requests("SCAN"), ran.requests("INSERT")
    assert scans + inserts == 1000
    check_share(inserts, 1000, 0.05)
    assert [calls(loaded, command) for command in ("zrangebyscore", "hmset", "zadd")] == [scans, inserts, inserts]
    seen = iter(monitor.commands("ZRANGEBYSCORE", "HGETALL", "HMSET", "ZADD"))
    reads, lengths = 0, set()
    for _, words in seen:
        if words[0] == "HMSET":
            name = words[1]
            assert len(words) == 22
            assert next(seen).words == ["ZADD", "_indices", str(java_hash(name)), name]
            bisect.insort(index, (java_hash(name), name))
            continue
        score, length = int(words[2]), int(words[6])
        assert words == ["ZRANGEBYSCORE", "_indices", str(score), "+inf", "LIMIT", "0", str(length)]
        assert 1 <= length <= 100
        lengths.add(length)
        start = bisect.bisect_left(index, (score, ""))
        assert index[start][0] == score
        for _, name in index[start : start + length]:
            assert next(seen).words == ["HGETALL", name]
            reads += 1
    assert calls(loaded, "hgetall") == reads
    assert len(lengths) > 90


def test_e_sends_the_same_on_many_connections(loaded, run):
    assert calls(loaded, "zrangebyscore") == 0
    assert run("E", "-n", 500, "-c", 20).requests("SCAN") == calls(loaded, "zrangebyscore")


def test_f_reads_a_record_then_writes_one_of_its_fields_on_one_connection_and_as_one_request(loaded, run):
    monitor = Monitor(loaded)
    ran = run("F", "-n", 4000, "-c", 1)
    assert ran.total["requests"] == 4000
    modified = ran.requests("READ-MODIFY-WRITE")
    check_share(modified, 4000, 0.5)
    assert (calls(loaded, "hgetall"), calls(loaded, "hmset")) == (4000, modified)
    last = ""
    for _, words in monitor.commands("HGETALL", "HMSET"):
        if words[0] == "HMSET":
            assert len(words) == 4
            assert words[1] == last
        last = words[1] if words[0] == "HGETALL" else ""


def test_f_sends_the_same_on_many_connections(loaded, run):
    ran = run("F", "-n", 4000, "-c", 20, "--threads", 2, "-P", 3)
    assert (calls(loaded, "hgetall"), calls(loaded, "hmset")) == (4000, ran.requests("READ-MODIFY-WRITE"))
