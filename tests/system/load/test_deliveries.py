# SPDX-License-Identifier: MIT
"""Messages and their receivers, on real servers: each message is delivered as often as it should be, is an entry of the
log with its publish's times, and a stalled server shows in deliveries.
"""

import signal
import time
from collections import Counter

import numpy as np
import pytest
from load_run import check_refused

from harness import eventually, ft, load
from recorded import percentile
from server_counts import calls, info

SENT, DELIVERED = 0, 1  # operations in the log


def due(log, op):
    """Due times of an operation's entries, in order."""
    return np.sort(log.requests.intended_ns[log.requests.op == op])


def check_each_delivered(log, times):
    """Every sent message, `times` times, by its due time, which is unique in an open loop."""
    q = log.requests
    assert due(log, DELIVERED).tolist() == np.repeat(due(log, SENT), times).tolist()
    assert (q.status == ft.STATUS_OK).all()
    assert (q.start_ns >= q.intended_ns).all()
    assert (q.end_ns > q.start_ns).all()


def counts(consumers, received):
    """The figures of deliveries if all went well."""
    nothing = {"lost": 0, "duplicates": 0, "foreign": 0, "broken": 0}
    return {"consumers": consumers, "expected": received, "received": received, **nothing}


def subscribers(redis):
    return int(redis.ask("PUBSUB", "NUMSUB", "channel:000000000000")[1])


@pytest.fixture
def deliver(start_load):
    """deliver(redis, ...): a load that has ended well."""

    def run(redis, *words):
        ran = start_load("-s", redis.socket, *words)
        assert ran.wait().status == 0, ran.err
        assert ran.log.whole
        return ran

    return run


def test_every_subscriber_gets_every_message_and_each_is_an_entry_of_the_log(redis, deliver):
    run = deliver(redis, "--pubsub", "5:3", "--rate", 1000, "-n", 1500, "-c", 4, "-d", 200)
    log, operations = run.log, run.figures["operations"]
    assert log.manifest["ops"] == ["PUBLISH", "DELIVER"]
    check_each_delivered(log, 5)
    assert run.figures["deliveries"] == counts(5, 7500)
    # Separate connections, each with its record: 4 that publish, 5 that listen.
    delivered = log.requests[log.requests.op == DELIVERED]
    listening = Counter(delivered.connection.tolist())
    assert list(listening.values()) == [1500] * 5
    assert all(log.connections[one].closed_ns > log.connections[one].opened_ns for one in listening)
    assert len(log.connections) == 9
    # Figures like those of any operation.
    assert {name: one["requests"] for name, one in operations.items()} == {"PUBLISH": 1500, "DELIVER": 7500}
    assert run.figures["exact"] is True
    latencies = np.sort(delivered.end_ns - delivered.intended_ns)
    assert operations["DELIVER"]["latency_ns"]["p99"] == percentile(latencies, 99)
    assert "deliveries: 7500 of 7500 expected by 5 consumers, lost 0" in run.out
    # The requested size, including the stamp.
    assert operations["DELIVER"]["bytes"] == 7500 * 200


def test_a_closed_loop_over_several_threads_with_short_values_delivers_every_message(redis, deliver):
    run = deliver(redis, "--pubsub", 2, "-n", 4000, "-c", 6, "--threads", 2, "-P", 3)
    assert (run.log.with_op(SENT), run.log.with_op(DELIVERED)) == (4000, 8000)
    assert run.figures["deliveries"] == counts(2, 8000)


def test_messages_of_the_warm_up_are_in_the_log_and_in_no_figure(redis, deliver):
    run = deliver(redis, "--pubsub", 2, "--duration", 1, "--warmup", "500ms", "-c", 2, "--think", "2ms")
    sent, counted = run.log.with_op(SENT), run.figures["operations"]["PUBLISH"]["requests"]
    assert run.log.with_op(DELIVERED) == 2 * sent
    assert counted < sent
    assert run.figures["deliveries"] == counts(2, 2 * counted)


@pytest.mark.parametrize(
    "handoff, consumers, times, operations",
    [
        ("list", 1, 1, ["RPUSH", "BLPOP"]),
        ("list:3", 7, 1, ["RPUSH", "BLPOP"]),
        ("stream:2", 6, 3, ["XADD", "XREAD"]),
        ("group:2", 5, 1, ["XADD", "XREADGROUP"]),
    ],
)
def test_each_element_reaches_each_of_its_receivers_exactly_once(redis, deliver, handoff, consumers, times, operations):
    words = [] if handoff == "list" else ["--consumers", consumers]
    run = deliver(redis, "--rate", 2000, "-n", 2000, "-c", 4, "--handoff", handoff, *words)
    assert run.log.manifest["ops"] == operations
    check_each_delivered(run.log, times)
    assert run.figures["deliveries"] == counts(consumers, 2000 * times)
    if operations[0] == "RPUSH":
        assert redis.ask("DBSIZE") == ["0"]


def test_older_elements_in_a_queue_are_no_messages_of_this_run(redis, deliver):
    stamped = "forktail 00000000 000000000001 0000000000000000001 0000000000000000002 "
    redis.ask("RPUSH", "queue:000000000000", "old", stamped)
    run = deliver(redis, "--handoff", "list", "-n", 100)
    assert run.figures["deliveries"]["foreign"] == 2
    assert run.figures["deliveries"]["received"] == 100
    assert "unrelated messages 2" in run.out
    # A stream's readers begin after the existing entries.
    redis.ask("XADD", "stream:000000000000", "*", "message", "old")
    assert deliver(redis, "--handoff", "stream", "-n", 100).figures["deliveries"]["foreign"] == 0


def test_a_stalled_server_shows_in_the_deliveries_from_the_time_each_was_due(serve, start_load):
    redis = serve("redis")
    run = start_load("-s", redis.socket, "--pubsub", 3, "--rate", 1000, "--duration", 2, "-c", 5)
    assert eventually(lambda: calls(redis, "publish") > 200, 30)
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    redis.send_signal(signal.SIGCONT)
    assert run.wait().status == 0
    check_each_delivered(run.log, 3)
    # 300 of 2000 messages were due meanwhile, from 0.3 s before its end to its end, three times each.
    q = run.log.requests
    late = (q.op == DELIVERED) & (q.end_ns - q.intended_ns >= 100_000_000)
    assert late.sum() >= 3 * 150


def test_broken_subscribers_are_reopened_and_the_messages_they_missed_are_counted(redis, start_load):
    run = start_load(
        "-s", redis.socket, "--pubsub", 3, "--rate", 1000, "--duration", 3, "-c", 4, "--on-error", "reconnect",
        "--backoff", "200ms", "--drain", 1,
    )  # fmt: skip
    assert eventually(lambda: subscribers(redis) == 3)
    time.sleep(0.5)
    redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
    assert run.wait().status == 0
    deliveries = run.figures["deliveries"]
    assert deliveries["broken"] >= 3
    assert deliveries["expected"] == 9000
    assert deliveries["lost"] > 0
    assert deliveries["lost"] + deliveries["received"] == 9000
    assert "consumer connections were lost" in run.err
    assert run.log.with_op(DELIVERED) == deliveries["received"]
    # All three listened again before the end.
    q = run.log.requests
    last = (q.op == DELIVERED) & (q.intended_ns == due(run.log, SENT)[-1])
    assert len(set(q.connection[last])) == 3


def test_reopened_readers_of_a_stream_know_their_position_and_miss_nothing(redis, start_load):
    run = start_load(
        "-s", redis.socket, "--handoff", "stream", "--consumers", 2, "--rate", 1000, "--duration", 2, "-c", 4,
        "--on-error", "reconnect",
    )  # fmt: skip
    assert eventually(lambda: info(redis)["blocked_clients"] == "2")
    time.sleep(0.3)
    redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert run.wait().status == 0
    deliveries = run.figures["deliveries"]
    assert deliveries["broken"] >= 2
    assert deliveries["lost"] == 0
    assert deliveries["received"] >= deliveries["expected"]
    assert deliveries["duplicates"] == 0


def test_a_consumer_that_may_not_set_its_name_is_reopened_anyway(serve, start_load):
    redis = serve("redis")
    redis.ask("ACL", "SETUSER", "quiet", "on", ">secret", "~*", "&*", "+@all", "-client|setname")
    run = start_load(
        "-s", redis.socket, "--user", "quiet", "--pubsub", 2, "--rate", 500, "--duration", 3, "--on-error",
        "reconnect", "--backoff", "10ms", "--drain", 1, env={"FORKTAIL_PASSWORD": "secret"},
    )  # fmt: skip
    assert eventually(lambda: subscribers(redis) == 2)
    redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
    assert eventually(lambda: subscribers(redis) == 2, 2)
    assert run.wait().status == 0
    assert "consumer connections were lost 2 times" in run.err


def test_repeats_limits_and_series_treat_deliveries_as_another_operation(redis):
    ran = load(
        "-s", redis.socket, "--handoff", "list:2", "-n", 500, "-c", 3, "--repeat", 2, "-q", "--fail-if",
        "BLPOP.p99>0.000001ms", "--fail-if", "BLPOP.requests<1",
    )  # fmt: skip
    assert ran.status == 1
    assert "deliveries: 500 of 500 expected by 2 consumers" in ran.out
    assert ran.err.count("\n") == 2  # the first limit is broken in each repeat, the second never


@pytest.mark.parametrize(
    "words",
    [
        "--pubsub 0",
        "--pubsub 2:x",
        "--pubsub 2 --consumers 3",
        "--pubsub 2 -t set",
        "--pubsub 2 --blocking",
        "--pubsub 2 -r 10",
        "--handoff queue",
        "--handoff list:3 --consumers 2",
        "--handoff stream:2 --consumers 3",
        "--handoff list --replay x",
        "--handoff list --protocol memcache_text",
        "--consumers 3",
    ],
)
def test_wrong_usage_is_one_sentence(words):
    check_refused("", *words.split(), status=2)
