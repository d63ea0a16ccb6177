# SPDX-License-Identifier: MIT
"""memcached's meta commands, as far as the other protocols have nothing similar: quiet reads without miss replies,
opaques out of order, servers without meta commands. Also logging in to a memcached, in each protocol.
"""

import shutil
import socket

import pytest
from load_run import check_refused

from fake import after_greeting
from harness import ft, load, run_program
from server_counts import stats, tell

SASLPASSWD = shutil.which("saslpasswd2", path="/usr/sbin:/usr/bin:/usr/local/sbin")


@pytest.fixture
def empty(memcached):
    """A memcached without keys."""
    tell(memcached, "flush_all")
    return memcached


@pytest.fixture
def meta(start_load):
    """meta(where, ...): a load with meta commands."""
    return lambda where, *words: start_load("--protocol", "memcache_meta", *where, *words)


@pytest.mark.parametrize(
    "way",
    [
        [],
        ["-P", 16],
        ["-P", 16, "--batch", 3],
        ["-P", 7, "--rate", 20000],
        ["-P", 4, "--reconnect", 10],
        ["--blocking"],
        ["--no-wait", "-P", 32],
        ["-P", 8, "--threads", 2],
    ],
    ids=lambda way: "".join(map(str, way)) or "plain",
)
def test_quiet_reads_each_missing_reply_is_a_miss_none_is_lost_and_the_server_saw_every_request(empty, meta, way):
    where = ["-s", empty.socket]
    fill = meta(where, "--fill", 50, "-d", 20).done()
    assert fill.log.manifest["server_info"][0]["protocol"] == "memcache_meta"
    before = stats(empty)
    run = meta(
        where, "--meta-quiet", "-t", "get", "-r", 100, "--key-pattern", "sequential", "-n", 2000, "-c", 2, *way
    ).done()
    counted = stats(empty)
    hits, misses = (counted[name] - before[name] for name in ("get_hits", "get_misses"))
    total = run.total
    assert (total["requests"], total["errors"], run.figures["connections_broken"]) == (2000, 0, 0)
    assert total["misses"] == misses == run.log.with_status(ft.STATUS_MISS) == 2000 - hits
    if not {"--threads", "--no-wait", "--blocking"} & set(way):  # threads have separate sequences
        assert hits == 1000


COMMANDS = [
    "get __key__", "set __key__ __data__", "touch __key__ 60", "delete __key__", "incr counter 1", "mg __key__ v t f",
    "me __key__", "mn", "version",
]  # fmt: skip


def test_quiet_reads_among_other_commands(empty, meta):
    tell(empty, "set counter 0 0 1\r\n0")
    words = ["--meta-quiet", "-n", 20000, "-r", 200, "-c", 3, "-P", 9, "--batch", 4]
    run = meta(["-s", empty.socket], *words, *(word for command in COMMANDS for word in ("--command", command))).done()
    assert (run.total["errors"], run.total["requests"]) == (0, 20000)
    counter = tell(empty, "get counter", "END\r\n").split()[4]  # VALUE counter 0 BYTES NUMBER END
    assert run.figures["operations"]["INCR"]["requests"] == int(counter)


CHECKED = ["--verify", "-r", 300, "-d", "1-5000"]


@pytest.mark.parametrize("quiet", [[], ["--meta-quiet"]], ids=["plain", "quiet"])
def test_checked_values(empty, meta, quiet):
    run = meta(["-s", empty.socket], "--ratio", "1:3", "-n", 10000, "-P", 8, "-c", 3, *CHECKED, *quiet).done()
    assert run.total["errors"] == 0


def test_quiet_reads_with_misses_between_the_checked_hits(empty, meta):
    where = ["-s", empty.socket]
    meta(where, "--fill", 151, "--verify", "-d", "1-5000").done()
    run = meta(where, "--meta-quiet", "--ratio", "0:1", "-n", 3000, "-P", 4, "-c", 2, *CHECKED).done()
    assert run.total["errors"] == 0
    assert run.total["misses"] > 1000


def test_a_value_changed_by_another_client_is_found_by_a_quiet_read(empty, meta):
    where = ["-s", empty.socket]
    meta(where, "--fill", 300, "--verify", "-d", "1-5000").done()
    tell(empty, "set key:000000000007 0 0 3\r\nbad")
    words = ["--meta-quiet", "--ratio", "0:1", "-n", 3000, "--key-pattern", "sequential", "-P", 8, "-c", 1]
    run = meta(where, *words, *CHECKED).done(1)
    assert run.total["errors"] == 10
    assert "the value of key number 7 is not what was written" in run.err


@pytest.mark.parametrize(
    "answer, why",  # answers to two reads and the "mn" after them
    [
        (
            b"VA 3 O000000000001\r\nabc\r\nVA 3 O000000000000\r\nabc\r\nMN\r\n",
            "did not answer the end of a batch",
        ),
        (b"VA 3 O000000000002\r\nabc\r\n", "the opaque differs"),
        (b"VA 3 O000000000001\r\nabc\r\nEN\r\n", "did not answer the end of a batch"),
        (b"MN\r\nMN\r\n", "an answer without a request"),
    ],
    ids=["backwards", "unknown", "get's-end", "two-ends"],
)
def test_quiet_reads_whose_server_is_out_of_step_the_connection_is_closed_with_the_reason(
    fake_server, meta, answer, why
):
    server = fake_server(after_greeting(lambda peer, _request: peer.say(answer)))
    words = ["--meta-quiet", "-t", "get", "-n", 2, "-P", 2, "-c", 1, "--think", "3s", "--timeout", "20s"]
    run = meta(server.where, *words)
    run.wait()
    assert run.log.whole
    assert run.total["requests"] == 2
    if answer == b"MN\r\nMN\r\n":  # the second one may come after the end
        assert run.total["misses"] == 2
    else:
        assert why in run.err


def test_a_memcached_without_meta_commands_is_reported_in_a_sentence(fake_server):
    def old(peer):
        while request := peer.hear():
            peer.say(b"VERSION 1.5.6\r\n" if request == b"version\r\n" else b"ERROR\r\n")

    sentence = "is a memcached without meta commands, which need version 1.6. Use --protocol memcache_text"
    check_refused(sentence, *fake_server(old).where, "--protocol", "memcache_meta", "-n", 10)


def test_quiet_reads_need_meta_commands():
    check_refused("--protocol memcache_meta", "--meta-quiet", "--protocol", "memcache_text", status=2)


@pytest.fixture
def guarded(serve, tmp_path):
    """guarded(protocol): a memcached that requires the login joe with the password secret."""

    def start(protocol):
        if protocol != "memcache_binary":
            (tmp_path / "passwords").write_text("joe:secret\n")
            return serve("memcached", "-Y", str(tmp_path / "passwords"))
        if not SASLPASSWD:
            pytest.skip("no saslpasswd2")
        database = tmp_path / "sasldb"
        (tmp_path / "memcached.conf").write_text(f"mech_list: plain\nsasldb_path: {database}\n")
        words = ["-p", "-c", "-f", database, "-a", "memcached", "-u", socket.gethostname(), "joe"]
        made = run_program(SASLPASSWD, *words, input="secret")
        assert made.status == 0, made.err
        return serve("memcached", "-S", env={"SASL_CONF_PATH": str(tmp_path)})

    return start


@pytest.mark.parametrize("protocol", ["memcache_binary", "memcache_text", "memcache_meta"])
def test_logging_in_to_a_memcached_again_on_each_new_connection_and_being_refused(guarded, protocol):
    server = guarded(protocol)
    words = [
        "-s", server.socket, "--protocol", protocol, "-q", "--no-observer", "-n", 300, "-r", 20, "-c", 2,
        "--reconnect", 10, "--fail-if", "errors>0",
    ]  # fmt: skip
    joe, password, wrong = ["--user", "joe"], {"FORKTAIL_PASSWORD": "secret"}, {"FORKTAIL_PASSWORD": "sesame"}
    ran = load(*words, *joe, env=password)
    assert (ran.status, ran.err) == (0, "")
    rejected = "rejected the password of joe. It was read from the environment"
    check_refused(rejected, *words, *joe, env=wrong)
    check_refused("requires a login. Set --user", *words, env=password)


def test_a_login_to_a_memcached_that_has_none(memcached):
    words = ["-s", memcached.socket, "--protocol", "memcache_binary", "--user", "joe", "-n", 10]
    sentence = "does not support logins. memcached needs to be started with -S for SASL"
    check_refused(sentence, *words, env={"FORKTAIL_PASSWORD": "secret"})
