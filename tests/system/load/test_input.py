# SPDX-License-Identifier: MIT
"""External failures of forktail-load: servers of another kind, that refuse, die or send nonsense; full disks; Ctrl-C.
Each ends with one clear sentence, and the results up to then are intact.
"""

import itertools
import json
import signal
import time

import pytest
from load_run import check_refused

from fake import after_greeting
from forktail.servers.listen import free_port
from harness import Load, Recording, eventually, ft, load, needs_root, run_program


@pytest.fixture
def answering(fake_server):
    """answering(reply): the options for a server on TCP that answers each read with reply(data). An empty answer ends
    the connection."""

    def talk(reply):
        def talk_to(peer):
            while (request := peer.hear()) and (answer := reply(request)) and peer.say(answer):
                pass

        return talk_to

    return lambda reply: fake_server(talk(reply), unix=False).where


def redis_with(answer, info=b"$0\r\n\r\n"):
    """The replies of a Redis: answer(request) except to PING and INFO."""

    def reply(request):
        if b"\r\nPING\r\n" in request:
            return b"+PONG\r\n"
        return info if b"\r\nINFO\r\n" in request else answer(request)

    return reply


@pytest.mark.parametrize(
    "where, sentence",
    [
        (lambda: ["-p", free_port()], "cannot be reached"),
        (lambda: ["-s", "/nonexistent/redis.sock"], "unix:/nonexistent/redis.sock cannot be reached"),
        (lambda: ["-h", "no-such-host.invalid"], "cannot be reached"),
    ],
    ids=["port", "socket", "host"],
)
def test_nothing_listens_at_the_address(where, sentence):
    check_refused(sentence, *where())


@pytest.mark.parametrize(
    "answer, sentence",
    [
        (b"ERROR\r\n", "is not a Redis server"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not a Redis server"),
        (b"", "closed it on PING"),
        (b"+HELLO\r\n", "refused the connection"),
    ],
    ids=["memcached", "web", "closes", "other"],
)
def test_the_server_there_is_no_redis(answering, answer, sentence):
    check_refused(sentence, *answering(lambda _request: answer))


def test_the_server_there_closes_the_connection_at_once(fake_server):
    check_refused("", *fake_server(lambda _peer: None, unix=False).where)


def test_the_server_there_does_not_answer(fake_server):
    def listen(peer):
        while peer.hear():
            pass

    check_refused("did not answer PING within 5 s", *fake_server(listen, unix=False).where)


def test_a_real_memcached_is_not_a_redis(serve):
    check_refused("is not a Redis server", "-p", serve("memcached", tcp=True).port)


@pytest.mark.parametrize(
    "words, password, sentence",
    [
        ([], None, "requires a password. Set FORKTAIL_PASSWORD"),
        ([], "wrong", "rejected the password of the default user"),
        (["--user", "nobody"], "right", "rejected the password of nobody"),
    ],
    ids=["none", "wrong", "unknown-user"],
)
def test_a_server_that_wants_a_password_gets_another(serve, words, password, sentence):
    redis = serve("redis", "--requirepass", "right")
    check_refused(sentence, "-s", redis.socket, *words, env={"FORKTAIL_PASSWORD": password})


def test_a_wrong_password_from_a_file_is_reported_with_the_file(serve, tmp_path):
    file = tmp_path / "password"
    file.write_text("wrong\n")
    redis = serve("redis", "--requirepass", "right")
    ran = check_refused("rejected the password", "-s", redis.socket, "--password-file", file)
    assert str(file) in ran.err


def test_a_password_is_sent_only_to_a_server_known_to_be_a_redis(answering):
    requests = []

    def reply(request):
        requests.append(request)
        return b"ERROR\r\n"

    check_refused("is not a Redis server", *answering(reply), env={"FORKTAIL_PASSWORD": "secret"})
    assert b"secret" not in b"".join(requests)


def test_a_password_that_the_server_does_not_request_does_no_harm(redis):
    assert load("-s", redis.socket, "-n", 100, "-q", env={"REDISCLI_AUTH": "left over"}).status == 0


@pytest.mark.parametrize(
    "words, sentence",
    [(["--dbnum", 99], "refused database 99"), (["-c", 50], "max number of clients reached")],
    ids=["database", "connections"],
)
def test_a_database_that_the_server_does_not_have_and_more_connections_than_it_accepts(serve, words, sentence):
    check_refused(sentence, "-s", serve("redis", "--maxclients", "20").socket, *words)


def test_more_connections_than_this_host_has_descriptors_for(redis):
    # Root may raise the hard limit, and so may forktail-load as root: request more than the kernel allows.
    check_refused("file descriptors", "-s", redis.socket, "-c", 1000000, "--threads", 1)


def test_a_server_that_loads_its_data_is_waited_for(answering):
    loading = itertools.repeat(b"-LOADING Redis is loading the dataset in memory\r\n", 4)
    serving = redis_with(lambda _request: b"+OK\r\n")

    def reply(request):
        return (b"\r\nPING\r\n" in request and next(loading, None)) or serving(request)

    ran = load(*answering(reply), "-t", "set", "-n", 10, "-c", 1, "-q")
    assert ran.status == 0, ran.err
    assert "is loading its data set; waiting up to 60 s" in ran.err
    assert ran.err.count("\n") == 1


def test_a_server_that_loads_its_data_is_waited_for_within_a_limit(answering):
    ran = load(*answering(lambda _request: b"-LOADING again\r\n"), "--loading-wait", "300ms")
    assert ran.status == 3
    assert "still loading" in ran.err


def test_if_a_server_is_killed_in_mid_run_table_and_log_contain_the_results_so_far(serve, start_load):
    redis = serve("redis")
    run = start_load("-s", redis.socket, "--duration", 60, "-P", 4, observer=True)
    run.under_way()
    redis.send_signal(signal.SIGKILL)
    log = run.done(3, timeout=20).log
    assert "all 50 connections were lost" in run.err
    assert "connection lost" in run.out
    assert log.summary["reason"] == "server lost"
    assert run.total["errors_by_kind"]["connection lost"] == log.with_status(ft.STATUS_RESET)
    assert 0 < log.with_status(ft.STATUS_RESET) <= 200
    assert log.with_status(ft.STATUS_OK) + log.with_status(ft.STATUS_MISS) > 100


def test_a_server_killed_in_an_open_loop_and_with_several_threads(serve, start_load):
    redis = serve("redis")
    run = start_load("-s", redis.socket, "--duration", 60, "--rate", 2000, "--threads", 3, observer=True)
    run.under_way()
    redis.send_signal(signal.SIGKILL)
    run.done(3, timeout=20)
    assert "all 50 connections were lost" in run.err


def test_if_the_server_closes_some_connections_the_others_continue(redis, start_load):
    run = start_load("-s", redis.socket, "--rate", 500, "--duration", 4, "-c", 10, observer=True)

    def active():
        # Those that have sent a request: all ten are set up, and none is the observer's.
        clients = (dict(word.partition("=")[::2] for word in line.split())
                   for line in redis.ask("CLIENT", "LIST", "TYPE", "normal")[0].splitlines())  # fmt: skip
        ids = [one["id"] for one in clients if one["name"] == "forktail" and one["cmd"] in ("get", "set")]
        return ids if len(ids) == 10 else None

    ids = eventually(active)
    assert ids
    assert [redis.ask("CLIENT", "KILL", "ID", one) for one in ids[:3]] == [["1"]] * 3
    log = run.done(timeout=20).log
    assert "3 of 10 connections were lost" in run.err
    assert len(log.requests) == 2000
    assert log.with_status(ft.STATUS_RESET) <= 3


def test_on_nonsense_in_mid_run_the_connection_is_given_up_and_the_requests_are_errors(answering, start_load):
    answers = itertools.chain([b"+OK\r\n"] * 9, itertools.repeat(b"garbage\r\n"))
    reply = redis_with(lambda request: b"+OK\r\n" if b"SETNAME" in request else next(answers), info=b"-ERR no\r\n")
    run = start_load(*answering(reply), "-t", "set", "-c", 1, "-n", 100).done(3)
    assert "an invalid reply for this protocol" in run.err
    assert run.log.with_status(ft.STATUS_OK) == 9
    assert run.log.with_status(ft.STATUS_WRONG) == 1


def test_a_reply_of_the_wrong_kind_is_an_error(answering, start_load):
    where = answering(redis_with(lambda _request: b":1\r\n"))
    run = start_load(*where, "-t", "set", "-c", 1, "-n", 10, observer=True).done(3)
    assert "every request failed: wrong reply" in run.err
    assert "wrong reply" in run.out
    assert run.log.with_status(ft.STATUS_WRONG) == 10


def test_an_answer_without_a_request_ends_the_connection(answering):
    ran = load(*answering(redis_with(lambda _request: b"+OK\r\n+OK\r\n")), "-t", "set", "-c", 1, "-n", 10, "-q")
    assert ran.status == 3
    assert "an answer without a request" in ran.err


@pytest.fixture
def full_disk(tmp_path):
    """A file system of 1 MB."""
    disk = tmp_path / "full"
    disk.mkdir()
    if run_program("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk).status:
        pytest.skip("no tmpfs can be mounted")
    yield disk
    run_program("umount", "-l", disk)


@needs_root
def test_if_the_logs_disk_fills_up_that_is_reported_once_the_figures_stay_and_the_log_is_complete_up_to_there(
    redis, full_disk, tmp_path
):
    path, figures = full_disk / "log", tmp_path / "json"
    ran = load("-s", redis.socket, "-n", 400000, "-P", 16, "-q", "-o", path, "--json", figures)
    assert ran.status == 3, ran.err
    assert str(path) in ran.err
    assert "No space left on device" in ran.err
    assert ran.err.count("\n") == 1
    document = json.loads(figures.read_text())
    assert document["runs"][0]["total"]["requests"] == 400000
    assert document["runs"][0]["exact"] is False
    assert document["log_error"] == "No space left on device"
    assert "400,000" in ran.out
    log = Recording(path)
    assert log.whole
    assert 16384 < len(log.requests) < 400000
    assert log.summary["log_error"] == "No space left on device"


@pytest.fixture
def disk(tmp_path):
    """A file system that can be frozen."""
    image, disk = tmp_path / "image", tmp_path / "disk"
    disk.mkdir()
    made = f"truncate -s 300M {image} && mkfs.ext4 -q {image} && mount -o loop {image} {disk}"
    if run_program("sh", "-c", made).status:
        pytest.skip("no file system image can be mounted")
    yield disk
    run_program("umount", "-l", disk)


@needs_root
def test_a_disk_that_hangs_delays_the_log_and_not_the_load(redis, disk):
    with Load(disk / "load", "-s", redis.socket, "-P", 16, "--duration", 4, observer=True) as run:
        time.sleep(0.7)
        # Freezing blocks every write() to the file system.
        frozen = run_program("fsfreeze", "-f", disk)
        time.sleep(2)
        run_program("fsfreeze", "-u", disk)
        assert frozen.status == 0
        assert run.wait().status == 0
        log, figures = run.log, run.figures
        assert log.whole
        assert figures["total"]["latency_ns"]["max"] < 2_000_000_000
        assert (log.drops.source == ft.DROP_LOG).all()
        assert (log.drops.start_ns < log.drops.end_ns).all()
        dropped = log.drops["count"].sum()
        assert figures["log_drops"] == dropped
        assert figures["total"]["requests"] == len(log.requests) + dropped
        assert figures["exact"] == (dropped == 0)
        assert ("disk was too slow" in run.err) == (dropped > 0)


def test_a_log_that_cannot_be_created(redis):
    check_refused("cannot write the log /nonexistent/log", "-s", redis.socket, "-o", "/nonexistent/log")


def test_figures_that_cannot_be_written_are_refused_before_the_load(redis):
    ran = load("-s", redis.socket, "-n", 100, "-q", "--json", "/nonexistent/json")
    assert ran.status == 3
    assert "cannot write /nonexistent/json" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_ctrl_c_and_sigterm_end_a_run_with_its_table_and_its_log(redis, start_load, number):
    run = start_load("-s", redis.socket, "--duration", 60, "-P", 3, "--threads", 2, observer=True)
    run.under_way()
    run.signal(number)
    log = run.done(timeout=10).log
    assert "standard deviation" in run.out
    assert log.summary["reason"] == "interrupted"
    assert log.summary["runs"][0]["total"]["requests"] == len(log.requests)
    assert log.with_status(ft.STATUS_TIMEOUT) == 0  # outstanding requests were waited for


def test_ctrl_c_while_the_server_hangs_does_not_hang(serve, start_load):
    redis = serve("redis")
    run = start_load("-s", redis.socket, "--duration", 60, "--rate", 1000, "-c", 5, observer=True)
    run.under_way()
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    run.signal(signal.SIGINT)
    log = run.done(timeout=5).log
    assert log.with_status(ft.STATUS_TIMEOUT) == 5
    assert log.with_status(ft.STATUS_UNSENT) > 50


def test_a_kill_9_loses_at_most_about_one_second_of_the_log(redis, start_load):
    run = start_load("-s", redis.socket, "--duration", 60, "--rate", 1000, observer=True)
    run.under_way()  # after a second
    time.sleep(2.5)
    run.signal(signal.SIGKILL)
    run.wait(5)
    assert run.log.error == ""
    assert run.log.damage.no_trailer
    assert len(run.log.requests) >= 1500


def test_a_limit_of_connections_is_not_mistaken_for_another_kind_of_server(fake_server):
    def limited(peer):
        if peer.number < 8:
            redis_like(peer)

    redis_like = after_greeting(lambda peer, _request: peer.say(b"$-1\r\n"))
    # Two of the eight were opened before the load's own: to find the address, and to ask the server what it is.
    sentence = "closed a connection on PING after 6 others had been opened. Does it limit connections (maxclients of "
    check_refused(sentence, *fake_server(limited).where, "-c", 20, "-n", 100, "-q", "--no-observer")
