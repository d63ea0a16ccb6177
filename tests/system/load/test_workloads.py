# SPDX-License-Identifier: MIT
"""forktail-load's requests to a real redis-server: every test of -t, custom commands, the growing base, and the keys
and values used. Counted by the server itself (INFO commandstats) and read with MONITOR.
"""

import math
import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from chi_squared import assert_fits
from load_run import LoadRun, key
from monitor import Monitor

from server_counts import calls, info

TESTS = {
    "SET": "set",
    "GET": "get",
    "INCR": "incr",
    "LPUSH": "lpush",
    "RPUSH": "rpush",
    "LPOP": "lpop",
    "RPOP": "rpop",
    "SADD": "sadd",
    "HSET": "hset",
    "SPOP": "spop",
    "ZADD": "zadd",
    "ZPOPMIN": "zpopmin",
    "LRANGE_100": "lrange",
    "LRANGE_300": "lrange",
    "LRANGE_500": "lrange",
    "LRANGE_600": "lrange",
    "MSET": "mset",
    "XADD": "xadd",
    "SMEMBERS": "smembers",
}
LENGTHS = """
local lengths = {}
for i = 0, ARGV[1] - 1 do lengths[i + 1] = redis.call('STRLEN', string.format('key:%012d', i)) end
return lengths
"""


@pytest.fixture
def run(redis):
    """run(...): a load of the Redis that has ended."""
    return lambda *words, **options: LoadRun("-s", redis.socket, *words, **options)


@pytest.fixture
def keys_asked(redis, run):
    """keys_asked(...): keys of 20,000 GETs, in the order of their arrival."""

    def ask(*words, keys=1000, seed=3):
        monitor = Monitor(redis)
        run("-t", "get", "-n", 20_000, "-P", 16, "-r", keys, "--seed", seed, *words)
        asked = [number_of(seen.words[1]) for seen in monitor.commands("GET")]
        assert len(asked) == 20_000
        return asked

    return ask


def number_of(name):
    return int(name.rpartition(":")[2])


@pytest.mark.parametrize("name", TESTS)
def test_every_test_of_t_by_its_name(redis, run, name):
    ran = run("-t", name, "-n", 500, "-c", 5, "-r", 20)
    assert [(one["name"], one["total"]["requests"], one["total"]["errors"]) for one in ran.runs] == [(name, 500, 0)]
    assert calls(redis, TESTS[name]) == 500


def test_all_tests_of_t_in_one_call_with_their_table(redis, run):
    ran = run("-t", "all", "-n", 400, "-c", 5, "-r", 20)
    assert [one["name"] for one in ran.runs] == ["PING_INLINE", "PING_MBULK", *TESTS]
    assert ran.each("requests", "errors")[2:] == [(400, 0)] * len(TESTS)
    assert all(f"\n{name} " in ran.out for name in TESTS)
    assert "requests/s" in ran.out
    expected = Counter({"lpush": 4 * 600, "sadd": 20 * 20})  # what tests need
    for command in TESTS.values():
        expected[command] += 400
    assert {command: calls(redis, command) for command in expected} == expected
    # The requested parts of a list or a set were returned: 600 elements of 3 bytes, 20 members of 9.
    assert redis.ask("SCARD", "set:000000000019") == ["20"]
    assert ran.totals[2 + list(TESTS).index("LRANGE_600")]["bytes"] > 400 * 600 * 5


@pytest.mark.parametrize("sizes, shortest, longest", [("1500", 1500, 1500), ("10-300", 10, 300)])
def test_elements_of_a_list_are_values_of_the_wanted_size(redis, run, sizes, shortest, longest):
    assert run("-t", "lrange_600", "-n", 50, "-c", 5, "-d", sizes).total["errors"] == 0
    lengths = {len(element) for element in redis.ask("LRANGE", "mylist", "0", "-1")}
    assert shortest <= min(lengths) <= max(lengths) <= longest


@pytest.mark.parametrize("name", ["ping_inline", "ping_mbulk"])
def test_ping_inline_and_as_an_array(redis, run, name):
    assert run("-t", name, "-n", 1000).total["errors"] == 0
    few = calls(redis, "ping")
    assert run("-t", name, "-n", 3000).total["errors"] == 0
    # Connecting takes the same in both.
    assert calls(redis, "ping") - few - few == 2000


def test_ping_is_both(run):
    assert run("-t", "ping", "-n", 100).each("bytes") == [(100 * (6 + 7),), (100 * (14 + 7),)]


def test_inserts_are_new_keys_and_selects_and_updates_use_existing_keys(redis, run):
    names = ["--key-prefix", "", "--key-length", "2-100"]
    run("--fill", 3000, *names)
    assert redis.ask("DBSIZE") == ["3000"]
    lengths = {len(name) for name in redis.ask("KEYS", "*")}
    assert min(lengths) >= 2
    assert max(lengths) == 100
    assert len(lengths) >= 97
    ran = run("-t", "insert,select,update", "-r", 3000, "-n", 2000, "-P", 4, "--threads", 2, *names)
    assert redis.ask("DBSIZE") == ["5000"]
    assert ran.each("requests", "errors", "misses") == [(2000, 0, 0)] * 3
    assert (calls(redis, "get"), calls(redis, "set")) == (2000, 3000 + 2 * 2000)
    assert info(redis)["keyspace_misses"] == "0"
    # Mixed, as commands: reads may use this run's own keys.
    mixed = run(
        "-r", 5000, "-n", 4000, "--command", "SET __new_key__ __data__", "--command", "GET __key__", "--command-ratio",
        3, *names,
    )  # fmt: skip
    assert mixed.total["misses"] == 0
    assert redis.ask("DBSIZE") == [str(5000 + mixed.requests("SET"))]
    assert mixed.requests("SET") + mixed.requests("GET") == 4000


def test_every_placeholder_of_a_custom_command_arrives(redis, run):
    monitor = Monitor(redis)
    ran = run(
        "-n", 2000, "-r", 50, "-d", 4, "--fields", 25, "--expiry", "7-9",
        "--command", "HSET h:__key__ __field__ __data__",
        "--command", r'ZADD z __score__ "a b\x00\n\""',
        "--command", "SET n:__int__:__rand_int__ __data__ EX __expiry__",
        "--command", "MSET __other_key__ 1 __key__ 2",
    )  # fmt: skip
    assert ran.total["errors"] == 0
    number = "0{10}[0-4][0-9]"
    forms = {
        "HSET": rf"HSET h:key:{number} (field(?:[01][0-9]|2[0-4])) ....",
        "ZADD": r'ZADD z (0\.[0-9]{6}) a b\0\n"',
        "SET": rf"SET n:({number}):({number}) .... EX ([0-9])",
        "MSET": rf"MSET (key:{number}) 1 key:{number} 2",
    }
    drawn = defaultdict(list)
    for _, words in monitor.commands(*forms):
        assert len(words) == {"HSET": 4, "ZADD": 4}.get(words[0], 5)
        drawn[words[0]].append(re.fullmatch(forms[words[0]], " ".join(words), re.DOTALL).groups())
    assert [len(drawn[name]) for name in forms] == pytest.approx([500] * 4, rel=0.2)
    (fields,), (scores,), (first, second, expiries), (other,) = (
        [set(column) for column in zip(*drawn[name], strict=True)] for name in forms
    )
    assert len(fields) == 25
    assert len(scores) > 400
    # 500 draws from 50 omit one every few hundred times, and never five.
    assert min(len(first), len(second), len(other)) > 45
    assert expiries == {"7", "8", "9"}


def test_custom_commands_have_the_shares_of_command_ratio(redis, run):
    ran = run(
        "-n", 20_000, "-P", 8, "--seed", 1, "--command", "INCR a", "--command-ratio", 6, "--command", "INCR b",
        "--command-ratio", 3, "--command", "INCR c",
    )  # fmt: skip
    counts = [int(count) for count in redis.ask("MGET", "a", "b", "c")]
    assert sum(counts) == 20_000
    assert_fits(counts, [0.6, 0.3, 0.1])
    assert ran.requests("INCR#2") == counts[1]


def zipf(key, exponent=0.99):
    return (key + 1) ** -exponent


def gaussian(deviation):
    scale = deviation * 1000 * math.sqrt(2)
    return lambda key: math.erf((key + 1 - 500) / scale) - math.erf((key - 500) / scale)


def in_proportion(weight):
    """Probabilities of the keys 0 .. 999."""
    weights = np.array([weight(key) for key in range(1000)], float)
    return weights / weights.sum()


PATTERNS = {
    "uniform": lambda key: 1,
    "zipf": zipf,
    "zipf:1.5": lambda key: zipf(key, 1.5),
    "latest:0.8": lambda key: (1000 - key) ** -0.8,
    "gaussian": gaussian(1 / 6),
    "gaussian:0.05": gaussian(0.05),
    "hot:90:10": lambda key: 0.9 / 100 if key < 100 else 0.1 / 900,
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_key_patterns_arrive_at_the_server_with_the_distributions_of_their_names(keys_asked, pattern):
    asked = keys_asked("--key-pattern", pattern)
    assert max(asked) < 1000
    assert_fits(np.bincount(asked, minlength=1000), in_proportion(PATTERNS[pattern]))


def test_scattered_keys_are_equally_popular_at_other_places_each_key_at_most_once(keys_asked):
    counts = np.bincount(keys_asked("--key-pattern", "zipf-scattered"), minlength=1000)
    assert len(counts) == 1000
    top = np.sort(counts)[-10:].sum()
    assert top == pytest.approx(in_proportion(zipf)[:10].sum() * 20_000, rel=0.05)
    assert counts[:10].sum() < top / 2


def test_sequential_keys_arrive_in_order(keys_asked):
    asked = keys_asked("--key-pattern", "sequential", "-c", 1, keys=999)
    assert asked == [i % 999 for i in range(20_000)]


@pytest.mark.parametrize("pattern", ["uniform", "sequential", "zipf"])
def test_split_keys_stay_on_their_connection(serve, pattern):
    redis = serve("redis", tcp=True)
    monitor = Monitor(redis)
    LoadRun(
        *redis.load_words(), "-t", "set", "-n", 4000, "-c", 4, "-r", 100, "--key-split", "--key-pattern", pattern,
        "--threads", 2,
    )  # fmt: skip
    keys = defaultdict(set)
    for client, words in monitor.commands("SET"):
        keys[client].add(number_of(words[1]))
    assert len(keys) == 4
    assert all(max(own) - min(own) < 25 for own in keys.values())
    assert {min(own) // 25 for own in keys.values()} == {0, 1, 2, 3}
    if pattern != "zipf":
        assert len(set().union(*keys.values())) == 100


@pytest.mark.parametrize("pattern", ["uniform", "zipf", "hot:80:20"])
def test_a_seed_repeats_the_order_of_keys_and_another_one_does_not(keys_asked, pattern):
    words = ["-c", 1, "--key-pattern", pattern]
    asked = keys_asked(*words)
    assert asked == keys_asked(*words)
    assert asked != keys_asked(*words, seed=4)


def test_names_have_the_prefix(redis, run):
    run("--fill", 10, "--key-prefix", "a {b}:")
    assert redis.ask("EXISTS", "a {b}:000000000009") == ["1"]


@pytest.mark.parametrize("length", [5, 17, 1000, 65536])
def test_names_have_the_length(redis, run, length):
    run("--fill", 10, "--key-length", length)
    names = redis.ask("KEYS", "*")
    assert [len(name) for name in names] == [length] * 10
    assert all(name.startswith("key:") for name in names)
    assert run("-t", "get", "-r", 10, "-n", 300, "-P", 3, "--key-length", length).total["misses"] == 0


@pytest.fixture
def filled(redis, run):
    """filled("10-29"): the lengths of the values of 4000 keys."""

    def fill(sizes):
        run("--fill", 4000, "-d", sizes, "--seed", 5)
        return [int(length) for length in redis.ask("EVAL", LENGTHS, "0", "4000")]

    return fill


def test_values_have_a_fixed_size(filled):
    assert set(filled("123")) == {123}


@pytest.mark.parametrize(
    "sizes, shares",
    [
        ("10-29", {size: 0.05 for size in range(10, 30)}),
        ("100:80,1000:15,10000:5", {100: 0.8, 1000: 0.15, 10000: 0.05}),
    ],
    ids=["range", "list"],
)
def test_values_have_the_sizes_of_a_range_or_a_list(filled, sizes, shares):
    lengths = Counter(filled(sizes))
    assert set(lengths) == set(shares)
    assert_fits([lengths[size] for size in shares], list(shares.values()))


def test_values_have_lognormal_sizes(filled):
    lengths = sorted(filled("lognormal:300,1,5000"))
    assert lengths[2000] == pytest.approx(300, rel=0.08)  # five deviations of the median
    assert lengths[3364] == pytest.approx(300 * math.e, rel=0.12)
    assert lengths[-1] <= 5000


@pytest.mark.parametrize("percent", [0, 50, 100])
def test_a_compressible_share_of_a_value_is_one_repeated_letter(redis, run, percent):
    run("--fill", 1, "-d", 64_000, "--compressible", percent)
    [value] = redis.ask("GET", key(0))
    assert len(value) == 64_000
    share = percent / 100
    assert value.count("x") / 64_000 == pytest.approx(share + (1 - share) / 94, abs=0.01)


def test_every_set_has_an_expiry_within_the_range(redis, run):
    monitor = Monitor(redis)
    assert run("-t", "set", "-n", 2000, "-r", 500, "--expiry", "1000-1100").total["errors"] == 0
    sets = [seen.words for seen in monitor.commands("SET")]
    assert {(len(words), words[3]) for words in sets} == {(5, "EX")}
    assert {int(words[4]) for words in sets} == set(range(1000, 1101))
    assert all(0 < int(redis.ask("TTL", name)[0]) <= 1100 for name in redis.ask("KEYS", "*"))


@pytest.mark.parametrize("sizes", ["1", "16", "50-200", "200000"])
def test_verified_values_are_right(run, sizes):
    run("--fill", 100, "-d", sizes, "--verify", "--seed", 1)
    good = run("-t", "get", "-r", 100, "-n", 2000, "-P", 4, "-d", sizes, "--verify", "--seed", 2)
    assert (good.total["errors"], good.total["misses"]) == (0, 0)
    both = run("--ratio", "1:3", "-r", 100, "-n", 2000, "-d", sizes, "--verify")
    assert both.total["errors"] == 0


def test_a_byte_of_a_verified_value_that_another_client_changes_is_found(redis, run):
    value = ["-d", 200_000, "--verify"]
    read = ["-t", "get", "-r", 100, "-n", 2000, *value]
    run("--fill", 100, *value)
    [was] = redis.ask("GETRANGE", key(42), "170017", "170017")
    redis.ask("SETRANGE", key(42), "170017", "?" if was == "!" else "!")
    wrong = run(*read, status=1)
    assert "key number 42 " in wrong.err
    assert "offset 170017" in wrong.err
    errors = wrong.total["errors"]
    assert errors > 0
    assert wrong.total["errors_by_kind"]["wrong reply"] == errors
    redis.ask("SETRANGE", key(42), "170017", was)
    redis.ask("APPEND", key(7), "x")
    longer = run(*read, status=1)
    assert "key number 7 " in longer.err
    assert "offset 200000" in longer.err


def test_through_a_proxy_the_server_behind_it_has_the_same_counts(serve):
    redis = serve("redis", tcp=True)
    proxy = serve("nutcracker", of=[redis.address()])
    words = ["-t", "set,get,incr,lpush,mset", "-n", 1000, "-r", 1, "-c", 5, "-P", 4]
    ran = LoadRun("-s", proxy.socket, *words)
    assert ran.each("requests", "errors") == [(1000, 0)] * 5
    assert ran.totals[1]["misses"] == 0
    assert [calls(redis, command) for command in ("get", "incr", "lpush")] == [1000] * 3
