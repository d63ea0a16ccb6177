# SPDX-License-Identifier: MIT
"""RESP3 on a real Redis: every type it sends, cut at every byte, compared with the test's own reader; all tests under
--resp3, pushed invalidations counted one by one, and users that may not name a connection or use RESP3.
"""

import array
import fcntl
import itertools
import termios
import time

import pytest
from load_run import check_refused, key

from fake import greeting_answer
from forktail.servers.listen import connect_to
from harness import eventually, ft, load
from server_counts import calls, info


def end_of(text, at=0):
    """The place behind the element at `at`, by the protocol's definition. Raises ValueError if it is incomplete."""
    line = text.index(b"\r\n", at)
    kind, number = text[at : at + 1], text[at + 1 : line]
    at = line + 2
    if kind in b"$=!" and number != b"-1":
        at += int(number) + 2
        if len(text) < at:
            raise ValueError
    elements = int(number) if kind in b"*~>" else 2 * int(number) if kind in b"%|" else 0
    for _ in range(elements + (kind == b"|")):  # an attribute is followed by its element
        at = end_of(text, at)
    return at


def first(text):
    """The first element, None while it is incomplete."""
    try:
        return text[: end_of(text)]
    except ValueError:
        return None


class Speaker:
    """The test's own connection with RESP3."""

    def __init__(self, redis):
        self._socket, self._text = connect_to(redis.instance.endpoint, 20), b""

    def ask(self, request):
        """The bytes of the reply to a command. A push before it is a part of it."""
        self._socket.sendall(request)
        reply = self._reply()
        return reply + self._reply() if reply.startswith(b">") else reply

    def _reply(self):
        while not (whole := first(self._text)):
            more = self._socket.recv(65536)
            assert more
            self._text += more
        self._text = self._text[len(whole) :]
        return whole

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self._socket.close()


def request_of(command):
    words = command.encode().split()
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def say_and_wait(peer, data):
    """Sends it, and waits until it has been read, so that what follows is read separately."""
    unread = array.array("i", [0])
    peer.say(data)
    while not peer.over:
        fcntl.ioctl(peer.socket, termios.TIOCOUTQ, unread)  # of a Unix socket: what the other side has not read
        if unread[0] == 0:
            return
        time.sleep(0.0001)


def cutting(redis, question):
    """A server that passes everything on to a real one, and cuts its replies to the question, each at another byte."""

    def talk(peer):
        cuts = itertools.count(0, question.step)
        with Speaker(redis) as real:
            while request := peer.hear():
                while command := first(request):
                    request = request[len(command) :]
                    reply = real.ask(command)
                    if command == question.request:
                        cut = next(cuts) % len(reply)
                        say_and_wait(peer, reply[:cut])
                        reply = reply[cut:]
                    peer.say(reply)

    return talk


@pytest.fixture(scope="module")
def typed(module_serve):
    """A Redis with a key of every type."""
    redis = module_serve("redis", "--enable-debug-command", "yes")
    for command in (
        "HSET hash a 1 b 2",
        "SADD set x y z",
        "ZADD zset 1.5 a inf b -3e20 c",
        "XADD stream 1-1 field value",
        "RPUSH list 1 2 3",
        "SET string value",
    ):
        redis.ask(*command.split())
    return redis


# A command and the first byte of its reply.
QUESTIONS = {
    "HELLO 3": "%",
    "HGETALL hash": "%",
    "HGETALL none": "%",
    "SMEMBERS set": "~",
    "ZRANGE zset 0 -1 WITHSCORES": "*",
    "ZSCORE zset a": ",",
    "ZSCORE zset b": ",",
    "ZSCORE zset none": "_",
    "ZPOPMIN zset": "*",
    "GET string": "$",
    "GET none": "_",
    "LPOP none": "_",
    "INCR number": ":",
    "SET string value": "+",
    "LRANGE list 0 -1": "*",
    "XREAD STREAMS stream 0": "%",
    "INFO server": "=",
    "CONFIG GET *": "%",
    "COMMAND INFO get set xadd": "*",
    "CLIENT TRACKINGINFO": "%",
    "MEMORY STATS": "%",
    "DEBUG NOSUCHCOMMAND": "-",
    "INCR string": "-",
    "DEBUG PROTOCOL string": "$",
    "DEBUG PROTOCOL integer": ":",
    "DEBUG PROTOCOL double": ",",
    "DEBUG PROTOCOL null": "_",
    "DEBUG PROTOCOL array": "*",
    "DEBUG PROTOCOL set": "~",
    "DEBUG PROTOCOL map": "%",
    "DEBUG PROTOCOL attrib": "|",
    "DEBUG PROTOCOL bignum": "(",
    "DEBUG PROTOCOL verbatim": "=",
    "DEBUG PROTOCOL true": "#",
    "DEBUG PROTOCOL false": "#",
    "DEBUG PROTOCOL push": ">",
}


class Question:
    """A command, and how often its reply has to be cut: a long one not at every byte."""

    def __init__(self, typed, command):
        self.request = request_of(command)
        with Speaker(typed) as speaker:
            speaker.ask(request_of("HELLO 3"))
            self.reply = speaker.ask(self.request)
        self.step = 13 if len(self.reply) > 2000 else 1
        self.count = len(range(0, len(self.reply), self.step))


@pytest.mark.parametrize("command", QUESTIONS)
def test_every_type_that_redis_sends_in_resp3_is_read_to_its_end_wherever_it_is_cut(
    typed, fake_server, start_load, command
):
    question = Question(typed, command)
    kind = QUESTIONS[command]
    assert chr(question.reply[0]) == kind
    server = fake_server(cutting(typed, question))
    run = start_load(*server.where, "-3", "--command", command, "-n", question.count, "-c", 1, "--timeout", "5s")
    run.done(3 if kind == "-" else 0)
    status = {"-": ft.STATUS_ERROR_REPLY, "_": ft.STATUS_MISS}.get(kind, ft.STATUS_OK)
    assert run.log.with_status(status) == question.count
    assert run.figures["pushes"] == (question.count if kind == ">" else 0)


def test_all_tests_under_resp3_have_the_same_answers_and_none_of_them_is_wrong(redis, start_load):
    run = start_load(
        "-s", redis.socket, "-3", "-t", "all", "-n", 500, "-r", 100, "-c", 5, "-P", 4, observer=True
    )  # fmt: skip
    assert run.wait(200).status == 0, run.err
    assert len(run.json["runs"]) > 15
    for one in run.json["runs"]:
        assert (one["total"]["errors"], one["total"]["requests"], one["pushes"]) == (0, 500, 0), one["name"]
    assert run.log.with_status(ft.STATUS_WRONG) == 0
    assert run.log.manifest["server_info"][0]["resp"] == 3


def test_ycsb_and_verified_values_under_resp3(redis):
    at = ["-s", redis.socket, "-3", "-q"]
    no_errors = ["--fail-if", "errors>0"]
    assert load(*at, "--ycsb", "load", "-r", 200, "-c", 2).status == 0
    scans = load(*at, "--ycsb", "E", "-r", 200, "-n", 200, "-c", 2, *no_errors)
    assert scans.status == 0, scans.err
    redis.ask("FLUSHALL")
    verified = load(
        *at, "--tracking", "--ratio", "1:1", "--verify", "-r", 20, "-d", "1-3000", "-n", 5000, "-P", 4, *no_errors
    )
    assert verified.status == 0, verified.err
    assert "pushes received" in verified.out


@pytest.mark.parametrize(
    ("tracking", "invalidations"),
    [("--tracking", 100), ("--tracking=bcast", 101)],
    ids=["for the keys that were read", "for every change"],
)
def test_each_invalidation_is_counted_once(redis, start_load, tracking, invalidations):
    run = start_load(
        "-s", redis.socket, "--resp3", "--command", "GET __key__", "-r", 100, "--key-pattern", "sequential", "-c", 1,
        "--rate", 1000, "-l", tracking,
    )  # fmt: skip

    # With broadcasts the server does not track which client read which key.
    def tracked():
        return info(redis)["tracking_total_keys"] == "100" or ("bcast" in tracking and calls(redis, "get") > 100)

    assert eventually(tracked, 60)
    assert info(redis)["tracking_clients"] == "1"
    clients = redis.ask("CLIENT", "LIST")[0]
    assert " name=forktail " in clients
    assert " resp=3" in clients
    for i in range(100):
        assert redis.ask("SET", key(i), "x") == ["OK"]
    redis.ask("SET", "another", "x")
    # All pushes so far have arrived before an answer that it has read.
    seen = calls(redis, "get")
    assert eventually(lambda: calls(redis, "get") >= seen + 3, 60)
    run.interrupt()
    assert run.figures["pushes"] == invalidations
    # Requests due and not sent when the load was stopped are not counted.
    assert run.total["errors"] == run.total["errors_by_kind"].get("never sent", 0)


def test_reopened_connections_use_resp3_track_and_have_their_name_too(serve):
    redis = serve("redis", "--requirepass", "secret")
    redis.ask("AUTH", "secret")
    at = ["-s", redis.socket, "-q", "-c", 2, "--reconnect", 10, "--fail-if", "errors>0"]
    ran = load(*at, "-3", "--tracking=bcast", "-n", 200, "-P", 3, "--ratio", "1:1", env={"FORKTAIL_PASSWORD": "secret"})
    assert ran.status == 0, ran.err
    assert "pushes received" in ran.out
    assert calls(redis, "hello") >= 20
    assert calls(redis, "client|tracking") == calls(redis, "hello")
    assert calls(redis, "client|setname") >= calls(redis, "hello")

    # A user that may not name connections works without names.
    redis.ask("ACL", "SETUSER", "joe", "on", ">pw", "~*", "+get", "+set")
    joe = load(*at, "--user", "joe", "-n", 100, "--no-observer", env={"FORKTAIL_PASSWORD": "pw"})
    assert joe.status == 0, joe.err


def test_a_server_without_resp3_is_reported_in_a_sentence(fake_server):
    def old(peer):
        while request := peer.hear():
            unknown = b"-ERR unknown command `HELLO`, with args\r\n"
            if not peer.say(unknown if b"HELLO" in request else greeting_answer(request)):
                return

    sentence = "rejected HELLO 3 (ERR unknown command `HELLO`, with args). Redis supports RESP3 from version 6.0"
    check_refused(sentence, *fake_server(old).where, "-3", "-n", 10, "-q", "--no-observer")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tracking"], "--tracking needs --resp3"),
        (["-3", "--tracking=x"], "--tracking=bcast"),
        (["-3", "--protocol", "memcache_text"], "memcached does not use RESP3"),
    ],
    ids=["tracking", "mode", "memcached"],
)
def test_pushes_need_resp3(words, says):
    check_refused(says, *words, status=2)
