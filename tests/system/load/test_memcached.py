# SPDX-License-Identifier: MIT
"""forktail-load's requests to a real memcached, in its text, binary and meta protocols, counted by memcached's own
"stats"; and through twemproxy.
"""

import pytest
from load_run import LoadRun, key

from server_counts import stats, tell


@pytest.fixture(params=["memcache_text", "memcache_binary", "memcache_meta"])
def protocol(request):
    return request.param


@pytest.fixture
def memcached(serve):
    return serve("memcached")


@pytest.fixture
def run(memcached, protocol):
    """run(...): a load of the memcached, with the protocol."""
    return lambda *words, **options: LoadRun("-s", memcached.socket, "--protocol", protocol, *words, **options)


def value(memcached, name):
    """The value of a key in the server, "" if it is missing."""
    line, _, rest = tell(memcached, f"get {name}", "END\r\n").partition("\r\n")
    return rest.removesuffix("\r\nEND\r\n") if line.startswith("VALUE ") else ""


def set_value(memcached, name, text):
    assert tell(memcached, f"set {name} 0 0 {len(text)}\r\n{text}") == "STORED\r\n"


def test_every_test_of_t_against_the_counters_of_memcached(memcached, run):
    def test(name, keys=100):
        ran = run("-t", name, "-n", 1000, "-r", keys, "-c", 5, "-P", 4, "-d", 20)
        assert ran.total["requests"] == 1000
        return ran.total

    assert test("set")["errors"] == 0
    assert stats(memcached)["cmd_set"] == 1000
    assert len(value(memcached, key(7))) == 20
    run("--fill", 100, "-d", 20)
    assert stats(memcached)["curr_items"] == 100
    get = test("get")
    assert (get["errors"], get["misses"]) == (0, 0)
    assert stats(memcached)["get_hits"] == 1000 + 1  # and the test's own
    misses = test("get", 1_000_000_000)["misses"]
    assert stats(memcached)["get_misses"] == misses > 990
    assert test("append")["errors"] == 0
    assert len(value(memcached, key(7))) > 20
    assert test("prepend")["errors"] == 0
    assert test("replace")["errors"] == 0
    assert len(value(memcached, key(7))) == 20
    assert test("touch")["errors"] == 0
    assert stats(memcached)["touch_hits"] == 1000
    set_value(memcached, key(0), "5")
    assert test("incr", 1)["errors"] == 0
    assert stats(memcached)["incr_hits"] == 1000
    assert value(memcached, key(0)) == "1005"
    assert test("decr", 1)["errors"] == 0
    assert stats(memcached)["decr_hits"] == 1000
    assert int(value(memcached, key(0))) == 5
    deleted, now = test("delete"), stats(memcached)
    assert deleted["misses"] == now["delete_misses"]
    assert now["delete_hits"] + now["delete_misses"] == 1000
    assert now["delete_hits"] > 90
    test("add")
    assert stats(memcached)["curr_items"] == 100


def test_all_tests_of_memcached_in_one_call(run):
    # INCR and DECR find the values of SET, which are no numbers: all of them fail, the others do not.
    ran = run("-t", "all", "-n", 500, "-r", 50)
    names = ["SET", "GET", "ADD", "REPLACE", "APPEND", "PREPEND", "INCR", "DECR", "TOUCH", "DELETE"]
    assert [(one["name"], one["total"]["requests"]) for one in ran.runs] == [(name, 500) for name in names]


def test_a_mix(memcached, run):
    ran, now = run("--ratio", "1:4", "-n", 5000, "-r", 100, "-P", 3, "--threads", 2), stats(memcached)
    sets = ran.requests("SET")
    assert (now["cmd_set"], now["cmd_get"]) == (sets, ran.requests("GET"))
    assert sets == pytest.approx(1000, rel=0.2)


def test_commands_in_capitals_with_numbers_that_differ_from_request_to_request_and_expiry(memcached, run):
    set_value(memcached, "counter", "0")
    own = run(
        "-n", 1000, "-r", 1000, "--command", "INCR counter __int__", "--command", "set k__int__ v__data__ __expiry__",
        "--expiry", "1000-2000",
    )  # fmt: skip
    assert own.total["errors"] == 0
    mean = int(value(memcached, "counter")) / own.requests("INCR")
    assert mean == pytest.approx(500, rel=0.15)  # of 0 .. 999


def test_inserts_are_new_keys_and_selects_and_updates_use_existing_keys(memcached, run):
    names = ["--key-prefix", "", "--key-length", "2-100"]
    run("--fill", 500, *names)
    before = stats(memcached)
    ran = run("-t", "insert,select,update", "-n", 300, "-r", 500, *names)
    assert ran.each("errors") == [(0,)] * 3
    now = stats(memcached)
    assert now["get_misses"] == before["get_misses"]
    assert now["total_items"] == before["total_items"] + 600
    assert value(memcached, key(1)) == ""


def test_verified_values_and_a_byte_changed_by_another_client(memcached, run):
    sizes = ["-d", "300-30000", "--verify"]
    read = ["-t", "get", "-r", 50, "-n", 1000, *sizes]
    run("--fill", 50, *sizes)
    good = run(*read)
    assert (good.total["errors"], good.total["misses"]) == (0, 0)
    text = value(memcached, key(33))
    assert len(text) >= 300
    set_value(memcached, key(33), text[:299] + chr(ord(text[299]) ^ 1) + text[300:])
    wrong = run(*read, status=1)
    assert "key number 33 " in wrong.err
    assert "offset 299" in wrong.err
    assert wrong.total["errors"] > 0


def test_through_twemproxy(serve):
    memcached = serve("memcached", tcp=True)
    proxy = serve("nutcracker", "redis: false", of=[memcached.address()])
    words = ["-t", "set,get,append,delete", "-n", 1000, "-r", 1, "-c", 5, "-P", 4]
    ran = LoadRun("-s", proxy.socket, "--protocol", "memcache_text", *words)
    assert ran.each("requests", "errors") == [(1000, 0)] * 4
    assert (ran.totals[1]["misses"], ran.totals[3]["misses"]) == (0, 999)
    now = stats(memcached)
    assert (now["get_hits"], now["delete_hits"]) == (1000, 1)
