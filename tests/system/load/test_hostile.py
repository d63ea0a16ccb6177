# SPDX-License-Identifier: MIT
"""Hostile or completely broken servers, in each protocol: forktail-load ends by itself, reports the reason in one
sentence, exits with the right status, leaves a complete log, and uses little memory.
"""

import json
import time

import pytest

from fake import after_greeting, binary_reply, greeting_answer, with_opaque
from forktail.programs import program
from harness import Recording, eventually, ft, load, sanitized
from processes import run_measured

MB = 1 << 20
HIT, STORED = binary_reply(0, extras=bytes(4), value=b"abc"), binary_reply(1)
# The answers to a GET and a SET.
PROTOCOLS = {
    "redis": (b"$3\r\nabc\r\n", b"+OK\r\n"),
    "memcache_text": (b"VALUE key:000000000000 0 3\r\nabc\r\nEND\r\n", b"STORED\r\n"),
    "memcache_binary": (HIT, STORED),
    "memcache_meta": (b"VA 3 O@\r\nabc\r\n", b"HD O@\r\n"),
    # RESP3: pushes and attributes around an answer, which is a streamed string.
    "resp3": (
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n|1\r\n+ttl\r\n:3600\r\n$?\r\n;1\r\na\r\n;2\r\nbc\r\n;0\r\n",
        b">1\r\n+x\r\n+OK\r\n",
    ),
}
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)

NO_REPLY = "the server sent an invalid reply for this protocol"
OUT_OF_STEP = "the server did not answer the oldest request first: the opaque differs"
TOO_LATE = "no answer within --timeout"
TWO_GETS = ["-t", "get", "-n", 20, "-c", 2, "--timeout", "400ms", "--no-observer"]


def check_memory(ended, limit_bytes):
    assert ended.peak_bytes < limit_bytes or sanitized()


class Run:
    """A load on a hostile server that has ended, with the checks for every such server."""

    def __init__(self, directory, server, protocol, *words):
        log, figures = directory / "log", directory / "json"
        kind = ["--protocol", "redis", "--resp3"] if protocol == "resp3" else ["--protocol", protocol]
        self.ended = run_measured(
            program("forktail-load"), *server.where, "-q", "-o", log, "--json", figures, *kind, *words, timeout=30
        )
        self.status, self.out, self.err = self.ended.status, self.ended.out, self.ended.err
        assert self.status < 128, self.err
        self.log = Recording(log)
        assert self.log.error == ""
        assert self.log.whole
        self.json_text = figures.read_text()
        self.json = json.loads(self.json_text)
        self.total = self.json["runs"][0]["total"]
        assert self.total["requests"] == len(self.log.requests)
        assert self.json["exit_status"] == self.status
        check_memory(self.ended, 200 * MB)

    def check_lost(self, why):
        """It gave up both connections, for this reason, and reported that once."""
        assert self.status == 3
        assert self.err == f"forktail load: all 2 connections were lost: {why}\n"
        assert self.json["reason"] == "server lost"
        assert "connections lost" in self.out


@pytest.fixture
def run(tmp_path):
    """run(server, protocol, ...): a Run."""
    return lambda *words: Run(tmp_path, *words)


MUCH = b"x" * 60000

GARBAGE, ZEROS = {"garbage": b"garbage\r\n"}, {"zeros": bytes(1000)}
# What a server answers to each GET, by the expected message. A pair: its beginning, and what follows repeatedly as long
# as it is read.
ATTACKS = {
    NO_REPLY: {
        "redis": {
            **GARBAGE,
            **ZEROS,
            "a negative length": b"$-5\r\n",
            "a negative count": b"*-7\r\n",
            "a count that is too large": b"*99999999999999\r\n",
            "a length that is too large": b"$99999999999999\r\n",
            "a length that is no number": b"$12a\r\n",
            "arrays 10,000 deep": b"*1\r\n" * 10000,
            "a string without its end": b"$3\r\nabcdef\r\n",
            "digits without end": (b":", b"1" * 60000),
            # A server may not push without a request for RESP3.
            "a push": b">1\r\n+a\r\n",
        },
        "resp3": {
            "a map that is too large": b"%2147483648\r\n",
            "attributes 10,000 deep": b"|1\r\n" * 10000,
            "a push within an array": b"*1\r\n>1\r\n+a\r\n",
            "an end of no stream": b".\r\n",
        },
        "memcache_meta": {
            **GARBAGE,
            **ZEROS,
            "a length that is too large": b"VA 99999999999999\r\n",
            "a negative length": b"VA -1\r\n",
            "a value without its end": b"VA 3 O0\r\nabcXX",
            "a line without end": (b"HD k", MUCH),
        },
        "memcache_text": {
            **GARBAGE,
            **ZEROS,
            "a negative length": b"VALUE key 0 -1\r\n",
            "a length that is too large": b"VALUE key 0 99999999999999\r\n",
            "a value without its end": b"VALUE key 0 3\r\nabcXXEND\r\n",
            "a key without end": (b"VALUE ", MUCH),
            "a line without end": (b"SERVER_ERROR ", MUCH),
        },
        "memcache_binary": {
            **GARBAGE,
            "a request's magic": b"\x80" + HIT[1:],
            "extras beyond the body": HIT[:4] + b"\x3c" + HIT[5:],
            "a length that is too large": binary_reply(0, body_bytes=4_000_000_000),
        },
    },
    TOO_LATE: {
        "redis": {
            "a string without end": (b"$4000000000\r\n", MUCH),
            "a line without end": (b"+", MUCH),
            "an error without end": (b"-ERR", MUCH),
            "an array without end": (b"*4000000000\r\n", b":1\r\n" * 10000),
            "half a reply": b"$10\r\nabc",
        },
        "resp3": {
            "a map of more than will ever come": (b"%2147483647\r\n", b":1\r\n" * 10000),
            "attributes without end": (b"", b"|1\r\n+a\r\n+b\r\n" * 4000),
            "a streamed array without end": (b"*?\r\n", b":1\r\n" * 10000),
            "a streamed string without end": (b"$?\r\n", b";4\r\nabcd\r\n" * 5000),
            "pushes without end": (b"", b">1\r\n+a\r\n" * 5000),
            "half a push": b">2\r\n+a\r\n",
            "a big number without end": (b"(", b"1" * 60000),
        },
        "memcache_meta": {
            "a value without end": b"VA 1000000000\r\n",
            "half a reply": b"VA 10\r\nab",
        },
        "memcache_text": {
            "a value without end": b"VALUE key 0 1000000000\r\n",
            "values without end": (b"", b"VALUE k 0 3\r\nabc\r\n" * 3000),
            "half a reply": b"VALUE key 0 10\r\nab",
        },
        "memcache_binary": {
            "a value that does not arrive": binary_reply(0, extras=b"abcd", body_bytes=1_000_000_000),
            "half a header": HIT[:13],
        },
    },
    OUT_OF_STEP: {
        "memcache_meta": {
            "the end of no batch": b"MN\r\n",
            "another request's opaque": b"HD O000000000007\r\n",
            "another opaque": b"VA 3 Oabc\r\nabc\r\n",
            "no opaque": b"VA 3\r\nabc\r\n",
        },
    },
}
# Over TCP the same bytes arrive in other pieces. A few cases are enough.
CASES = [
    pytest.param(why, protocol, answer, unix, id=f"{protocol}-{what}-{'unix' if unix else 'tcp'}")
    for unix in (True, False)
    for why, protocols in ATTACKS.items()
    for protocol, answers in protocols.items()
    for what, answer in answers.items()
    if unix or "garbage" in what or "without end" in what
]


@pytest.mark.parametrize(("why", "protocol", "answer", "unix"), CASES)
def test_both_connections_are_given_up_with_the_reason_if_replies_are_invalid_or_never_end(
    fake_server, run, why, protocol, answer, unix
):
    begin, then = answer if isinstance(answer, tuple) else (answer, b"")

    def act(peer, _request):
        peer.say(begin)
        if then:
            peer.say_on(then)
        return True

    ran = run(fake_server(after_greeting(act), unix=unix), protocol, *TWO_GETS)
    ran.check_lost(why)
    status = ft.STATUS_TIMEOUT if why == TOO_LATE else ft.STATUS_WRONG
    assert ran.log.requests.status.tolist() == [status, status]


def sets(request):
    return b"SET" in request or b"set " in request or request[:2] == b"\x80\x01" or request.startswith(b"ms ")


@pytest.mark.parametrize("unix", [True, False], ids=["unix", "tcp"])
@every_protocol
def test_replies_cut_at_every_byte_are_replies(fake_server, run, protocol, unix):
    get, set_ = PROTOCOLS[protocol]

    def act(peer, request):
        return peer.trickle(with_opaque(set_ if sets(request) else get, request), 200e-6)

    ran = run(fake_server(after_greeting(act), unix=unix), protocol, "-n", 60, "-c", 2, "--no-observer")
    assert (ran.status, ran.err) == (0, "")
    assert ran.log.requests.status.tolist() == [ft.STATUS_OK] * 60


def test_a_reply_of_512_mb_is_read_without_being_stored(fake_server, run):
    def act(peer, _request):
        peer.say(b"$536870912\r\n")
        peer.say_on(b"x" * MB, 512)
        return peer.say(b"\r\n")

    ran = run(fake_server(after_greeting(act)), "redis", "-t", "get", "-n", 2, "-c", 1, "--no-observer")
    assert ran.status == 0, ran.err
    assert ran.log.with_status(ft.STATUS_OK) == 2
    assert ran.total["bytes"] > 2 * 536870912
    check_memory(ran.ended, 64 * MB)


@every_protocol
def test_a_byte_now_and_then_is_no_answer_within_the_timeout(fake_server, run, protocol):
    def act(peer, request):
        return peer.trickle(with_opaque(PROTOCOLS[protocol][0], request), 0.3)

    ran = run(fake_server(after_greeting(act)), protocol, *TWO_GETS)
    ran.check_lost(TOO_LATE)
    assert ran.log.with_status(ft.STATUS_TIMEOUT) == 2
    assert (ran.log.requests.end_ns - ran.log.requests.intended_ns >= 400_000_000).all()


def endless(peer, _request):
    # Not one long string: a fast machine reads 4 GB of it before the drain is over.
    peer.say(b"*4000000000\r\n")
    peer.say_on(b"$262144\r\n" + b"x" * (1 << 18) + b"\r\n")
    return False


def test_an_endless_stream_does_not_outlast_the_duration_and_its_drain(fake_server, run):
    words = ["-t", "get", "--duration", "500ms", "--drain", "300ms", "-c", 2, "--no-observer"]
    ran = run(fake_server(after_greeting(endless)), "redis", *words)
    assert ran.status == 3
    assert ran.log.with_status(ft.STATUS_TIMEOUT) == 2
    assert ran.err.count("\n") == 1


def test_an_endless_stream_does_not_outlast_ctrl_c(fake_server, background):
    server = fake_server(after_greeting(endless))
    ran = background(program("forktail-load"), *server.where, "-t", "get", "-l", "-c", 2, "-q")
    # The search for an address, the probe, two of the load.
    assert eventually(lambda: len(server.accepted) == 4)
    time.sleep(0.5)
    assert ran.interrupt(10).status == 3  # no request was answered


@pytest.mark.parametrize("when", ["before a reply", "after its first byte", "before its last byte"])
@every_protocol
def test_a_server_that_closes_in_the_middle_of_a_reply_or_before_it(fake_server, run, protocol, when):
    reply = PROTOCOLS[protocol][0]
    part = {"before a reply": b"", "after its first byte": reply[:1]}.get(when, reply[:-1])

    def act(peer, _request):
        peer.say(part)
        return False

    ran = run(fake_server(after_greeting(act)), protocol, *TWO_GETS)
    ran.check_lost("the server closed the connection")
    assert ran.log.with_status(ft.STATUS_RESET) == 2


def test_a_server_that_closes_right_after_it_accepted(fake_server, run):
    # The first connections are good. The reopened ones are closed at once. The limit ends it.
    def talk(peer):
        if peer.number <= 3:  # the search for an address, the probe, two of the load
            after_greeting(lambda _peer, _request: False)(peer)
        else:
            peer.hear()

    reopening = ["--on-error", "reconnect", "--backoff", "1ms", "--max-errors", 20]
    ran = run(fake_server(talk), "redis", "-t", "get", "-n", 1000, "-c", 2, "--no-observer", *reopening)
    assert ran.status == 3
    assert "--max-errors" in ran.err
    assert ran.json["reason"] == "errors"


@every_protocol
def test_answers_without_a_request_after_one_was_answered(fake_server, run, protocol):
    def twice(peer, request):
        return peer.say(with_opaque(PROTOCOLS[protocol][0], request) * 2)

    ran = run(fake_server(after_greeting(twice)), protocol, *TWO_GETS)
    ran.check_lost("the server sent an answer without a request")
    # The first of the two was an answer.
    assert ran.log.with_status(ft.STATUS_OK) == 2


SLOWLY = ["--rate", 1, "-n", 2, "-c", 2, "-t", "get", "--no-observer", "--timeout", 1]
silent = after_greeting(lambda _peer, _request: True)


def test_an_answer_without_a_request_in_one_piece_with_the_greetings_last_answer(fake_server):
    def early(peer):
        peer.say(greeting_answer(peer.hear()))  # PING
        named = greeting_answer(peer.hear())
        peer.say(named + b"+HELLO\r\n" if peer.number > 0 else named)
        silent(peer)

    ran = load(*fake_server(early).where, *SLOWLY)
    assert ran.status == 3
    assert "sent an answer without a request" in ran.err


def test_an_answer_without_a_request_before_the_first_was_sent(fake_server, run):
    # The second connection's first request has a second left.
    def idle(peer):
        for _ in range(2):
            peer.say(greeting_answer(peer.hear()))
        if peer.number == 3:  # after the search for an address, the probe, and the first of two
            time.sleep(0.2)
            peer.say(b"+HELLO\r\n")
        silent(peer)

    ran = run(fake_server(idle), "redis", *SLOWLY)
    assert ran.status == 3
    assert "lost" in ran.err
    assert ran.log.with_status(ft.STATUS_WRONG) == 0


@pytest.mark.parametrize(
    ("protocol", "test", "answer"),
    [
        ("redis", "get", b":1\r\n"),
        ("redis", "get", b"+OK\r\n"),
        ("redis", "get", b"*1\r\n$3\r\nabc\r\n"),
        ("redis", "set", b"$3\r\nabc\r\n"),
        ("redis", "set", b"*0\r\n"),
        ("memcache_text", "set", b"VALUE key 0 3\r\nabc\r\nEND\r\n"),
        ("memcache_text", "set", b"END\r\n"),
        ("memcache_text", "get", b"STORED\r\n"),
        ("memcache_text", "get", b"VERSION 1\r\n"),
        ("memcache_text", "get", b"12\r\n"),
        ("memcache_binary", "get", STORED),
        ("memcache_binary", "set", HIT),
        ("memcache_meta", "set", b"VA 3 O@\r\nabc\r\n"),
        ("memcache_meta", "set", b"EN\r\n"),
        ("memcache_meta", "get", b"HD O@\r\n"),
        ("resp3", "get", b"%1\r\n+a\r\n+b\r\n"),
        ("resp3", "get", b"#t\r\n"),
        ("resp3", "set", b"=5\r\ntxt:x\r\n"),
    ],
)
def test_answers_of_another_commands_kind_and_in_the_wrong_order_are_wrong_replies(
    fake_server, run, protocol, test, answer
):
    server = fake_server(after_greeting(lambda peer, request: peer.say(with_opaque(answer, request))))
    ran = run(server, protocol, "-t", test, "-n", 10, "-c", 1, "--no-observer")
    assert ran.log.with_status(ft.STATUS_WRONG) == 10
    assert ran.total["errors_by_kind"]["wrong reply"] == 10
    assert "wrong reply" in ran.out


GREETINGS = {
    "redis-string": ("redis", b"$4000000000\r\n"),
    "redis-line": ("redis", b"+"),
    "redis-array": ("redis", b"*1000000000\r\n$10\r\n0123456789\r\n"),
    "memcache_text": ("memcache_text", b"VERSION "),
    "memcache_binary": ("memcache_binary", binary_reply(11, body_bytes=1 << 29)),
}


@pytest.mark.parametrize(
    ("greeting", "slowly"),
    # More slow ones would test the same code, and each takes five seconds.
    [*((name, False) for name in GREETINGS), ("redis-string", True), ("memcache_binary", True)],
)
def test_an_endless_greeting_or_a_byte_now_and_then_is_given_up_within_seconds(fake_server, greeting, slowly):
    protocol, begin = GREETINGS[greeting]

    def talk(peer):
        peer.hear()
        peer.say(begin)
        if not slowly:
            peer.say_on(MUCH)
        for _ in range(1000):
            if not peer.say(b"x"):
                return
            time.sleep(0.1)

    ran = run_measured(program("forktail-load"), *fake_server(talk).where, "--protocol", protocol, "-n", 10, timeout=20)
    assert ran.status == 3
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    check_memory(ran, 64 * MB)


EVIL = b"\x1b]52;c;QQ==\a\xff\xe2\x80\xae\xc2\x9bx"
PRINTED = r"\x1b]52;c;QQ==\x07\xff\u202e\x9bx"


def is_visible(text):
    """It has no control characters and none that change the direction of writing, and is valid UTF-8: otherwise reading
    it gave U+FFFD."""
    return "\ufffd" not in text and all(line.isprintable() for line in text.split("\n"))


def test_terminal_control_sequences_in_a_servers_refusal_are_printed_as_text(fake_server):
    def door(peer):
        while peer.hear() and peer.say(b"-" + EVIL + b"\r\n"):
            pass

    ran = load(*fake_server(door).where, "-n", 10, timeout=20)
    assert ran.status == 3
    assert f"refused the connection: {PRINTED}" in ran.err
    assert is_visible(ran.err)


def test_terminal_control_sequences_in_a_version_are_printed_as_text(fake_server, tmp_path):
    def versions(peer):
        while peer.hear() and peer.say(b"VERSION 1." + EVIL + b"\r\n"):
            pass

    ran = load(
        *fake_server(versions).where, "--protocol", "memcache_text", "-t", "get", "-n", 10, "--json", tmp_path / "json",
        "--timeout", "300ms", timeout=20,
    )  # fmt: skip
    assert is_visible(ran.err)
    assert is_visible(ran.out)


def test_terminal_control_sequences_in_answers_to_the_load_and_its_observer_are_printed_as_text(fake_server, run):
    def errors(peer):
        while request := peer.hear():
            if not peer.say(greeting_answer(request) or b"-" + EVIL + b" more\r\n"):
                return

    ran = run(fake_server(errors), "redis", "--command", "GET __key__", "-n", 50, "-c", 1)
    assert is_visible(ran.out)
    assert is_visible(ran.err)
    assert is_visible(ran.json_text)
    assert ran.log.with_status(ft.STATUS_ERROR_REPLY) == 50


def test_an_observer_has_the_same_server_and_neither_hangs_nor_grows(fake_server, run):
    def talk(peer):
        while request := peer.hear():
            answer = greeting_answer(request)
            if not answer and b"GET" in request:
                answer = b"$3\r\nabc\r\n"
            elif not answer or len(request) >= 30:  # what only the observer asks
                peer.say(b"$4000000000\r\n")
                peer.say_on(MUCH)
                continue
            if not peer.say(answer):
                return

    ran = run(
        fake_server(talk), "redis", "--command", "GET __key__", "--rate", 100, "--duration", "2500ms", "-c", 2
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert ran.log.with_status(ft.STATUS_OK) == 250
    check_memory(ran.ended, 64 * MB)


VERIFIED = ["--ratio", "0:1", "--verify", "-c", 1, "--no-observer"]


@pytest.mark.parametrize("protocol", ["redis", "memcache_text", "memcache_binary"])
def test_verify_finds_values_that_were_not_written(fake_server, run, protocol):
    server = fake_server(after_greeting(lambda peer, _request: peer.say(PROTOCOLS[protocol][0])))
    ran = run(server, protocol, *VERIFIED, "-d", 3, "-n", 10)
    assert ran.log.with_status(ft.STATUS_WRONG) == 10
    assert "is not what was written: the first wrong byte is at offset 0" in ran.err
    assert ran.status == 1


@pytest.mark.parametrize(
    ("protocol", "begin", "end"),
    [
        ("redis", b"$536870912\r\n", b"\r\n"),
        ("memcache_text", b"VALUE key:000000000000 0 536870912\r\n", b"\r\nEND\r\n"),
        ("memcache_binary", binary_reply(0, extras=b"abcd", body_bytes=536870916), b""),
    ],
    ids=["redis", "memcache_text", "memcache_binary"],
)
def test_verify_reads_no_more_than_a_value_may_have(fake_server, run, protocol, begin, end):
    def act(peer, _request):
        peer.say(begin)
        peer.say_on(b"x" * MB, 512)
        return peer.say(end)

    ran = run(fake_server(after_greeting(act)), protocol, *VERIFIED, "-n", 1)
    assert ran.status == 1, ran.err
    assert ran.log.with_status(ft.STATUS_WRONG) == 1
