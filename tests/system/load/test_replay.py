# SPDX-License-Identifier: MIT
"""Recordings made by real servers, replayed on others: the resulting data is the same, requests are due at their times,
and harmful commands are skipped.
"""

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from load_run import check_refused

from fake import after_greeting
from harness import eventually, ft, load
from recorded import percentile
from server_counts import info


@pytest.fixture
def debuggable(serve):
    """debuggable(...): a redis-server of the test that has DEBUG DIGEST."""
    return lambda *words, **options: serve("redis", "--enable-debug-command", "yes", *words, **options)


@pytest.fixture
def written(tmp_path):
    """written(text): the path of a file with it."""

    def write(text):
        path = tmp_path / "recording"
        path.write_text(text)
        return path

    return write


def digest(redis):
    return redis.ask("DEBUG", "DIGEST")


def number(redis, key):
    return int(redis.ask("GET", key)[0] or 0)


def replay(redis, path, *words):
    """Replays to the end."""
    return load("-s", redis.socket, "--replay", path, "-q", *words)


def capture(redis, background, act):
    """The output of redis-cli monitor while act() runs. Over TCP, so that a server can distinguish its clients."""
    monitor = background("redis-cli", "-p", redis.port, "monitor")
    assert eventually(lambda: "OK" in monitor.out)
    act()
    redis.ask("ECHO", "the capture ends here")
    assert eventually(lambda: "the capture ends here" in monitor.out)
    monitor.signal(signal.SIGTERM)
    monitor.wait(10)
    return monitor.out


def offsets(text):
    """Offsets of a capture's lines from its first in ns. MONITOR prints whole microseconds: 1339518083.107412."""
    times = [int(line[:10]) * 10**9 + int(line[11:17]) * 1000 for line in text.splitlines() if line[:1].isdigit()]
    return [at - times[0] for at in times]


def fill_with_all_types(redis):
    """Every type of value, small and large, in two databases."""
    for database in "0", "3":
        redis.ask("SELECT", database)
        redis.ask("SET", "string", '\0\r\n"\udcff')  # a byte that is no UTF-8
        for n in "1", "1000", "100000", "12345678901":
            redis.ask("SET", f"int:{n}", n)
        redis.ask("SET", "compressible", "x" * 5000)
        for command in (
            "SET expires v EX 100000",
            "HSET hash f v",
            "SADD ints 1 2 3",
            "ZADD zset 1.5 a -inf b inf c",
            "PFADD hll a b c",
        ):
            redis.ask(*command.split())
        for i in range(700):
            redis.ask("RPUSH", "list", f"element {i}", "y" * i)
            redis.ask("HSET", "big hash", f"f{i}", "z" * 70 + str(i))
            redis.ask("SADD", "set", f"m{i}")
            redis.ask("ZADD", "big zset", str(i), f"m{i}")
            redis.ask("XADD", "stream", f"{i}-1", "f", f"v{i}")
        for command in (
            "XGROUP CREATE stream group 0",
            "XREADGROUP GROUP group one COUNT 9 STREAMS stream >",
            "XREADGROUP GROUP group two COUNT 5 STREAMS stream >",
            "XACK stream group 0-1 1-1",
        ):
            redis.ask(*command.split())
    redis.ask("SELECT", "0")
    redis.ask("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")


def test_a_capture_of_monitor_at_its_own_speed_has_the_same_data_and_the_same_due_times(
    debuggable, background, start_load, written
):
    recorded, empty = debuggable(tcp=True), debuggable()

    def act():
        at = ["-p", recorded.port, "-q"]
        ran = load(*at, "--rate", 2000, "--duration", 1, "-c", 8, "-r", 500, "--ratio", "1:1")
        assert ran.status == 0, ran.err
        ran = load(
            *at, "--dbnum", 3, "-n", 300, "-c", 4, "-r", 50, "--command", "HSET h:__int__ __field__ __data__",
            "--command", "INCRBY n:__int__ 3",
        )  # fmt: skip
        assert ran.status == 0, ran.err
        recorded.ask("EVAL", "return redis.call('INCR', 'by script')", "0")
        for command in ["MULTI"], ["SELECT", "5"], ["SET", "in transaction", "1"], ["EXEC"]:
            recorded.ask(*command)

    text = capture(recorded, background, act)
    run = start_load("-s", empty.socket, "--replay", written(text), observer=True).done()
    assert digest(recorded) == digest(empty)
    assert run.json["replay"]["scripted"] == 1
    assert run.log.with_status(ft.STATUS_OK) + run.log.with_status(ft.STATUS_MISS) == len(run.log.requests)
    # Only the script's own call is a line without a request.
    due, got = offsets(text), run.log.schedule().tolist()
    assert len(got) == len(due) - 1
    skipped = next((i for i, at in enumerate(got) if at != due[i]), len(got))
    assert got == due[:skipped] + due[skipped + 1 :]
    assert (run.log.requests.start_ns >= run.log.requests.intended_ns).all()
    # Our own SELECT belongs to no request.
    assert "EVAL" in run.log.manifest["ops"]
    assert "replayed from monitor" in run.out
    assert "omitted: 1 call from scripts" in run.out


def rows(count, each_second, what, clients):
    """A recording as CSV: command i of client i modulo `clients`, evenly distributed over whole seconds."""
    times = (f"{i // each_second}.{i % each_second * 1000 // each_second:03}" for i in range(count))
    return "".join(f"{at},client-{i % clients},{what(i)}\n" for i, at in enumerate(times))


@pytest.fixture
def pushes(redis, start_load, written):
    """pushes(...): the log of a replay of 400 commands of 7 clients, which push their numbers to a list each."""
    recording = written("seconds,client,command\n" + rows(400, 200, lambda i: f"RPUSH,list:{i % 7},{i}", 7))
    return lambda *words: start_load("-s", redis.socket, "--replay", recording, *words, observer=True).done().log


def in_order(redis):
    """Each client's commands are in their order, however fast."""
    lists = [[int(element) for element in redis.ask("LRANGE", f"list:{i}", "0", "-1")] for i in range(7)]
    return lists == [list(range(i, 400, 7)) for i in range(7)]


def test_replayed_at_a_multiple_of_its_speed(redis, pushes):
    i = np.arange(400)
    expected = (i // 200 * 1_000_000_000 + i % 200 * 5_000_000) // 4
    assert pushes("--replay-speed", 4).schedule().tolist() == expected.tolist()
    assert in_order(redis)


def test_replayed_at_full_speed(redis, pushes):
    q = pushes("--replay-speed", "max", "-c", 3, "--threads", 2, "-P", 10).requests
    assert len(q) == 400
    assert (q.intended_ns == q.start_ns).all()
    assert in_order(redis)


def test_replayed_up_to_a_number_of_requests(redis, pushes):
    assert len(pushes("--replay-speed", "max", "-n", 123).requests) == 123
    assert redis.ask("LLEN", "list:0") == ["18"]  # of 0 .. 122 every seventh


def test_replayed_at_a_rate(redis, pushes):
    due = pushes("--rate", 1000, "--threads", 3, "-c", 3).schedule()
    assert due.tolist() == [i * 1_000_000 for i in range(400)]
    assert in_order(redis)


def test_replayed_for_a_duration(pushes):
    assert len(pushes("--duration", 1).requests) == 200


@pytest.mark.parametrize("speed", ["original", "max"])
def test_with_l_the_replay_starts_again_when_the_recording_ends(redis, start_load, written, speed):
    recording = written("0,a,INCR,n\n0.010,a,INCR,n\n0.020,b,INCR,n\n")
    run = start_load("-s", redis.socket, "--replay", recording, "-l", "--replay-speed", speed, observer=True)
    assert eventually(lambda: number(redis, "n") > 50, 30)
    assert run.interrupt(30).status == 0, run.err
    assert len(run.log.requests) == number(redis, "n")
    if speed == "original":
        assert run.log.schedule().tolist() == [i * 10_000_000 for i in range(len(run.log.requests))]


def test_an_append_only_file_of_every_type_makes_the_same_data(debuggable, start_load):
    recorded = debuggable("--appendonly", "yes", "--aof-timestamp-enabled", "yes")
    empty = debuggable()
    fill_with_all_types(recorded)
    aof = f"{recorded.directory}/appendonlydir"
    run = start_load("-s", empty.socket, "--replay", aof, "--replay-speed", "max").done()
    assert digest(recorded) == digest(empty)
    assert "lib" in str(empty.ask("FUNCTION", "LIST"))
    assert run.json["replay"]["format"] == "aof"


def test_a_leading_rdb_is_skipped_to_its_last_byte_whatever_it_contains_with_a_message(
    debuggable, redis, start_load, tmp_path
):
    recorded = debuggable("--appendonly", "yes")
    fill_with_all_types(recorded)
    recorded.ask("BGREWRITEAOF")
    idle = {"aof_rewrite_in_progress": "0", "aof_rewrite_scheduled": "0"}.items()
    assert eventually(lambda: idle <= info(recorded).items())
    recorded.ask("SET", "behind", "the RDB")
    assert recorded.ask("DBSIZE") == ["17"]  # of two databases with 16 keys each, and the last one
    directory = Path(recorded.directory, "appendonlydir")
    assert eventually(lambda: len(list(directory.iterdir())) == 3)  # a manifest, the RDB, and what follows
    [base], [increment] = (list(directory.glob(name)) for name in ("*.base.rdb", "*.incr.aof"))
    preamble = base.stat().st_size
    assert preamble > 10000
    # As older versions write it, in one file, and as a directory.
    one = tmp_path / "one.aof"
    one.write_bytes(base.read_bytes() + increment.read_bytes())
    for path in one, directory:
        redis.ask("FLUSHALL")
        run = start_load("-s", redis.socket, "--replay", path).done()
        assert f"skipped: an RDB of {preamble} bytes with 32 keys" in run.out
        assert redis.ask("GET", "behind") == ["the RDB"]
        assert redis.ask("DBSIZE") == ["1"]
        assert run.json["replay"]["preamble_bytes"] == preamble


def test_harmful_commands_are_skipped_with_a_message_and_if_allowed_they_are_sent(serve, written):
    redis = serve("redis")
    recording = written(
        "0,a,SET,k,v\n0,a,FLUSHALL\n0,a,CONFIG,SET,maxclients,77\n0,a,SHUTDOWN,NOSAVE\n0,b,BLPOP,none,0\n"
        "0,a,SUBSCRIBE,x\n"
    )
    default = redis.ask("CONFIG", "GET", "maxclients")
    safe = replay(redis, recording)
    assert safe.status == 0
    assert redis.ask("GET", "k") == ["v"]
    for skipped in (
        "FLUSHALL 1 (loses data)",
        "SHUTDOWN 1 (can stop the server)",
        "BLPOP 1 (blocks without limit)",
        "SUBSCRIBE 1 (changes the replies on its connection)",
    ):
        assert skipped in safe.out
    assert redis.ask("CONFIG", "GET", "maxclients") == default == ["maxclients", "10000"]
    assert replay(redis, recording, "--replay-allow", "flushall,config").status == 0
    assert redis.ask("EXISTS", "k") == ["0"]
    assert redis.ask("CONFIG", "GET", "maxclients") == ["maxclients", "77"]


def test_a_damaged_recording_is_replayed_up_to_the_damage_and_a_cut_tail_is_no_failure(redis, written):
    cut = replay(redis, written('1.0 [0 a:1] "set" "k" "1"\n1.1 [0 a:1] "set" "k" "2'))
    assert cut.status == 0
    assert "line 2" in cut.err
    assert cut.err.count("\n") == 1
    assert redis.ask("GET", "k") == ["1"]
    bad = replay(redis, written('1.0 [0 a:1] "set" "k" "3"\nnonsense\n1.1 [0 a:1] "set" "k" "4"\n'))
    assert bad.status == 3
    assert bad.err.count("\n") == 1
    assert redis.ask("GET", "k") == ["3"]


@pytest.mark.parametrize("speed", ["1", "max"])
@pytest.mark.parametrize(
    "text",
    [
        '1.0 [1 a:1] "set" "k" "1"\n1.1 [7 b:1] "set" "k" "7"\n1.1 [0 a:1] "set" "zero" "1"\n'
        '1.2 [7 b:1] "set" "k" "8"\n',
        # Its own SELECT is refused: what follows it does not go to the database before.
        "0,a,SELECT,1\n0,a,SET,k,1\n0,a,SELECT,7\n0,a,SET,k,7\n0,b,SET,zero,1\n",
    ],
    ids=["monitor", "csv"],
)
def test_a_server_without_the_recordings_databases_receives_nothing_in_a_wrong_one(serve, written, text, speed):
    redis = serve("redis", "--databases", "2")
    ran = replay(redis, written(text), "-P", 4, "--replay-speed", speed)
    assert ran.status == 3
    assert "refused database 7" in ran.err
    assert redis.ask("KEYS", "*") == ["zero"]
    redis.ask("SELECT", "1")
    assert redis.ask("GET", "k") == ["1"]


def test_a_stalled_server_is_charged_from_when_commands_were_due(serve, start_load, written):
    redis = serve("redis")
    recording = written(rows(2000, 1000, lambda _i: "INCR,n", 5))
    run = start_load("-s", redis.socket, "--replay", recording, observer=True)
    assert eventually(lambda: number(redis, "n") > 300, 30)
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.4)
    redis.send_signal(signal.SIGCONT)
    run.done()
    assert number(redis, "n") == 2000
    assert run.log.schedule().tolist() == [i * 1_000_000 for i in range(2000)]
    # 400 of them were due meanwhile, from 0.4 s before its end to its end.
    latencies = run.log.latencies()
    assert latencies[-1] >= 390_000_000
    assert percentile(latencies, 95) >= 250_000_000


def test_when_connections_break_the_rest_is_sent_with_on_error_reconnect(redis, start_load, written):
    recording = written(rows(1500, 500, lambda i: f"SET,k{i},v", 4))
    run = start_load("-s", redis.socket, "--replay", recording, "--on-error", "reconnect", observer=True)
    assert eventually(lambda: redis.ask("EXISTS", "k200") == ["1"], 30)
    redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    run.done()
    assert len(run.log.requests) == 1500
    assert int(redis.ask("DBSIZE")[0]) >= run.log.with_status(ft.STATUS_OK)
    assert run.log.with_status(ft.STATUS_RESET) <= 4
    assert redis.ask("EXISTS", "k1499") == ["1"]


def test_a_recording_of_one_instant_repeated_ends_with_ctrl_c(redis, start_load, written):
    run = start_load("-s", redis.socket, "--replay", written("0,a,INCR,n\n0,b,INCR,n\n"), "-l", observer=True)
    assert eventually(lambda: number(redis, "n") >= 4, 30)
    assert run.interrupt(30).status == 0, run.err


def test_a_connection_that_breaks_at_our_select_is_as_fast_as_before_once_it_is_back(fake_server, start_load, written):
    # Answers the last two only when both have arrived, as -P 2 sends them.
    def act(peer, request):
        if b"SELECT\r\n$1\r\n0" in request:
            peer.say(b"+OK\r\n")  # for the SET ahead of it
            return False
        if b"GET" in request:
            return b"x" not in request or b"y" not in request or peer.say(b"$1\r\na\r\n$1\r\nb\r\n")
        return peer.say(b"+OK\r\n")

    recording = written('1.0 [1 a:1] "SET" "k" "1"\n1.0 [0 a:1] "GET" "x"\n1.0 [0 a:1] "GET" "y"\n')
    run = start_load(
        *fake_server(after_greeting(act)).where, "--replay", recording, "--replay-speed", "max", "-c", 1, "-P", 2,
        "--on-error", "reconnect", "--backoff", "1ms", "--timeout", "5s",
    ).done()  # fmt: skip
    assert run.log.with_status(ft.STATUS_OK) == 3


@pytest.mark.parametrize(
    "words",
    [
        "-t set",
        "-d 100",
        "--blocking",
        "--reconnect 5",
        "--replay-speed 0",
        "--replay-format rdb",
        "--replay-allow get",
        "--replay-allow monitor",
        "--rate 5 --replay-speed 2",
        "--protocol memcache_text",
        "--replay-order time",
        "--replay-sample 0%",
        "--replay-sample 101%",
        "--replay-sample half",
        "--cluster -P 2",
        "--cluster --read-from any",
        "--sentinel 127.0.0.1",
        "--server a --server b",
        "--wait 1",
    ],
)
def test_wrong_options_of_a_replay_are_one_sentence(written, words):
    check_refused("", "--replay", written("0,a,PING\n"), *words.split(), status=2)


@pytest.mark.parametrize("words", ["--replay-speed 2", "--replay-order key", "--replay-sample 5"])
def test_options_that_need_a_recording(words):
    check_refused("", *words.split(), status=2)


def test_no_recording_is_one_sentence(written, tmp_path):
    for path in tmp_path / "none", tmp_path, "/dev/null":
        check_refused("", "--replay", path)
    check_refused("", "--replay", written("0,a,PING\n"), "--replay-format", "monitor")
