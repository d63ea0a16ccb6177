# SPDX-License-Identifier: MIT
"""Broken clusters: redirects in a circle, to dead addresses, to invalid addresses, without end, and CLUSTER SLOTS that
is cut or invented. The load ends, reports what happened, and loses no request.
"""

import itertools
import time

import pytest
from load_run import check_refused

from fake import after_greeting, all_slots, greeting_answer
from forktail.servers.listen import free_port
from harness import ft

VALUE = b"$1\r\nx\r\n"
DOWN = b"-CLUSTERDOWN The cluster is down\r\n"


def redirect(kind, port):
    return f"-{kind} 1 127.0.0.1:{port}\r\n".encode()


class Node:
    """A node that answers like a real one, and act(command) to everything else.

    slots: its answer to CLUSTER SLOTS, else it has all of them. pause_s: before it reads what a new connection sends.
    """

    def __init__(self, fake_server, act, slots=b""):
        self.act, self.slots, self.pause_s = act, slots, 0
        self.port = fake_server(self._talk, unix=False).port
        self.address = f"127.0.0.1:{self.port}"

    def _talk(self, peer):
        time.sleep(self.pause_s)
        # One read may return several commands.
        after_greeting(lambda peer, request: peer.say(b"".join(map(self._answer, request.split(b"*")[1:]))))(peer)

    def _answer(self, command):
        if b"SLOTS" in command:
            return self.slots or all_slots(self.port)
        if b"COMMAND" in command:
            return b"-ERR unknown command\r\n"
        return b"+OK\r\n" if b"SETNAME" in command or b"ASKING" in command else self.act(command)


@pytest.fixture
def node(fake_server):
    """node(act): a Node, or with an answer instead of a function one that always gives it."""
    return lambda act, **more: Node(fake_server, act if callable(act) else lambda _command: act, **more)


@pytest.fixture
def load_on(start_load):
    """load_on(node, ...): a Load that has ended, whose log and figures agree."""

    def to_the_end(node, *words):
        run = start_load("--cluster", "--server", node.address, "-t", "get", "--drain", "1s", *words)
        run.wait()
        assert run.log.whole
        assert run.total["requests"] == len(run.log.requests)
        return run

    return to_the_end


@pytest.mark.parametrize("kind", ["MOVED", "ASK"])
def test_redirects_in_a_circle_end_as_errors(node, load_on, kind):
    a = node(lambda _command: redirect(kind, b.port))
    b = node(lambda _command: redirect(kind, a.port))
    run = load_on(a, "-n", 20, "-c", 1)
    assert run.total["requests"] == 20
    assert run.log.with_status(ft.STATUS_ERROR_REPLY) == 20
    assert run.figures["error_replies"][kind] == 20


def test_a_redirect_to_a_dead_address_waits_for_retry_and_no_longer(node, load_on):
    run = load_on(node(redirect("MOVED", free_port())), "-n", 5, "-c", 1, "--retry", "500ms")
    assert run.total["requests"] == 5
    assert run.log.with_status(ft.STATUS_OK) == 0
    assert (run.log.requests.end_ns - run.log.requests.intended_ns >= 100_000_000).all()


@pytest.mark.parametrize(
    "text",
    [
        "-MOVED",
        "-MOVED 1",
        "-MOVED x 127.0.0.1:1",
        "-MOVED 99999 127.0.0.1:1",
        "-MOVED 1 127.0.0.1",
        "-MOVED 1 127.0.0.1:0",
        "-MOVED 1 127.0.0.1:65536",
        "-MOVED 1 :::::",
        "-ASK 1 ",
        pytest.param(f"-MOVED 1 {'h' * 100000}:1", id="as long as a line may be"),
    ],
)
def test_an_invalid_redirect_is_an_error_reply_whatever_it_resembles(node, load_on, text):
    run = load_on(node(f"{text}\r\n".encode()), "-n", 10, "-c", 2)
    assert run.log.with_status(ft.STATUS_ERROR_REPLY) == 10


def test_requests_to_a_cluster_that_stays_down_end_after_retry(node, load_on):
    run = load_on(node(DOWN), "-n", 6, "-c", 2, "--retry", "300ms")
    assert run.total["requests"] == 6
    assert run.log.with_status(ft.STATUS_OK) == 0
    assert run.figures["redirects"]["later"] > 6
    [one] = run.figures["nodes"]
    assert one["requests"] == 6  # the server did not say where keys are, and they have one
    [outage] = run.figures["outages"]
    assert (outage["failed"], outage["first_ok_ns"]) == (6, 0)


@pytest.mark.parametrize("kind", ["MOVED", "ASK"])
def test_a_redirect_after_a_long_wait_is_followed_as_at_once(node, load_on, kind):
    b = node(VALUE)
    answers = itertools.chain([DOWN] * 30, itertools.repeat(redirect(kind, b.port)))
    run = load_on(node(lambda _command: next(answers)), "-n", 1, "-c", 1, "--retry", "30s")
    assert run.figures["redirects"]["later"] == 30
    assert run.log.with_status(ft.STATUS_OK) == 1
    assert run.total["errors"] == 0


def test_after_an_ask_to_a_dead_address_the_keys_own_server_is_tried_again_once_that_is_known(node, load_on):
    answers = itertools.chain([redirect("ASK", free_port())], itertools.repeat(VALUE))
    run = load_on(node(lambda _command: next(answers)), "-n", 5, "-c", 1, "--retry", "30s")
    assert run.log.with_status(ft.STATUS_OK) == 5
    assert run.figures["redirects"]["ask"] == 1


def test_redirected_requests_of_a_connections_last_answers_are_sent_although_it_is_lost(node, load_on):
    def answer(_command):
        time.sleep(0.02)  # until no request waits that would be checked from time to time
        return VALUE

    ask = redirect("ASK", node(answer).port)
    # The third answer comes together with the fourth.
    answers = itertools.chain([ask, VALUE, b""], itertools.repeat(ask + b"this is no reply\r\n"))
    run = load_on(node(lambda _command: next(answers)), "-n", 4, "-c", 1, "-P", 2, "--on-error", "continue")
    assert run.log.with_status(ft.STATUS_OK) == 3
    assert run.log.with_status(ft.STATUS_WRONG) == 1


def test_a_later_test_waits_as_long_for_a_slow_server_as_the_first_whatever_else_is_checked(node, start_load):
    def answer(command):
        slow.pause_s = 0.8  # longer than the topology's own questions wait
        return b":600\r\n" if b"LPUSH" in command else b"*1\r\n" + VALUE if b"LRANGE" in command else VALUE

    slow = node(answer)
    run = start_load("--cluster", "--server", slow.address, "-t", "get,lrange_100", "--rate", 4, "-n", 8, "-c", 1)
    assert run.wait().status == 0, run.err
    assert [one["total"]["requests"] for one in run.json["runs"]] == [8, 8]


def check_unusable(address):
    check_refused("", "--cluster", "--server", address, "-q", "--no-observer", "-n", 1)


@pytest.mark.parametrize(
    "slots",
    [
        b"*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n",
        b"*1\r\n*3\r\n:0\r\n:16383\r\n$1\r\nx\r\n",
        b"*1\r\n*3\r\n:-5\r\n:-1\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
        b"*1\r\n*3\r\n:20000\r\n:9000000000\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
        b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:70000\r\n",
        b"*1\r\n:3\r\n",
        b"*0\r\n",
        b":7\r\n",
        b"+OK\r\n",
        b"nonsense\r\n",
    ],
)
def test_invented_cluster_slots_are_refused_in_a_sentence(node, slots):
    check_unusable(node(b"$-1\r\n", slots=slots).address)


@pytest.mark.parametrize("cut", range(1, len(all_slots(12345)), 7))
def test_cluster_slots_that_are_cut_are_refused_in_a_sentence(fake_server, cut):
    def talk(peer):
        while request := peer.hear():
            if not (answer := greeting_answer(request)):
                peer.say(all_slots(12345)[:cut])
                return
            peer.say(answer)

    check_unusable(f"127.0.0.1:{fake_server(talk, unix=False).port}")
