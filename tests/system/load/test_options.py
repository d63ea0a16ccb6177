# SPDX-License-Identifier: MIT
"""Every wrong use of the command line gives one message and exit status 2, and does nothing. No server is needed."""

import pytest
from load_run import check_refused

from harness import load

WRONG = [
    (["-c", "0"], "-c: expected a whole number from 1"),
    (["-c", "many"], "-c: expected a whole number"),
    (["-n", "0"], "-n: expected"),
    (["-n", "-5"], "-n: expected"),
    (["-p", "65536"], "-p: expected"),
    (["-P", "0"], "-P: expected"),
    (["-d", "0"], "value size: expected BYTES"),
    (["-d", "1000000000"], "1 to 67108864 bytes"),
    (["-d", "20-10"], "value size: expected BYTES"),
    (["-d", "10:1,20"], "value size: expected BYTES"),
    (["-d", "lognormal:100"], "value size: expected BYTES"),
    (["-r", "0"], "-r: expected"),
    (["-r", "1000000000001"], "-r: expected"),
    (["--threads", "0"], "--threads: expected"),
    (["--threads", "4", "-c", "3"], "4 threads need at least as many connections"),
    (["--busy-poll", "--threads", "1024", "-c", "1024"], "and one more"),
    (["--busy-poll", "--blocking"], "but --blocking sleeps in read()"),
    (["--busy-poll", "--intrinsic"], "--intrinsic measures wake-ups"),
    (["--intrinsic", "--period", "5s"], "--period is from 1us to 1s"),
    (["--intrinsic", "--period", "500ms", "--duration", "100ms"], "--duration is shorter than --period"),
    (["--arrival-times", "-s", "/tmp/x"], "--arrival-times needs TCP"),
    (["--arrival-times", "--server", "h:1", "--server", "unix:///tmp/x"], "--arrival-times needs TCP"),
    (["--arrival-times", "--tls"], "TLS hides which bytes arrived when"),
    (["--dbnum", "x"], "--dbnum: expected"),
    (["--rate", "0"], "--rate: expected a number"),
    (["--rate", "fast"], "--rate: expected a number"),
    (["--arrival", "bursty"], "--arrival: expected constant or poisson"),
    (["--arrival", "poisson"], "--arrival needs an open loop"),
    (["--duration", "0"], "--duration: expected a time"),
    (["--duration", "1 week"], "--duration: expected a time"),
    (["--ratio", "0:0"], "--ratio: expected SETS:GETS"),
    (["--seed", "abc"], "--seed: expected"),
    (["-t", "get,lpushx"], 'unknown test "lpushx"'),
    (["-t", "lpush", "--protocol", "memcache_text"], 'unknown test "lpush" for memcached'),
    (["--protocol", "http"], "--protocol: expected redis, memcache_text, memcache_binary or memcache_meta"),
    (["--command", 'SET "x'], "invalid command"),
    (["--command", "LPUSH x", "--protocol", "memcache_text"], "LPUSH is not a memcached command"),
    (["--command", "get", "--protocol", "memcache_binary"], "GET has the form GET KEY"),
    (["--command-ratio", "2"], "needs a --command before it"),
    (["--command", "PING", "--command-ratio", "0"], "--command-ratio: expected"),
    (["--command", "PING", "-t", "get"], "mutually exclusive. Choose one"),
    (["--ycsb", "G"], "--ycsb: expected A, B, C, D, E, F or load"),
    (["--ycsb", "A", "--protocol", "memcache_text"], "memcached has none"),
    (["--ycsb", "E", "-P", "2"], "needs -P 1"),
    (["--ycsb", "A", "--verify"], "--ycsb uses hashes"),
    (["--ycsb", "A", "--expiry", "5"], "do not expire"),
    (["--ycsb", "A", "-t", "get"], "mutually exclusive. Choose one"),
    (["--key-pattern", "normal"], "is not a key pattern"),
    (["--key-pattern", "zipf:0"], "the exponent"),
    (["--key-pattern", "hot:90"], "hot takes a percentage"),
    (["--key-length", "0"], "--key-length: expected BYTES"),
    (["--key-length", "65537"], "--key-length: expected BYTES"),
    (["--key-length", "10-9"], "--key-length: expected BYTES"),
    (["--key-length", "5", "-r", "100"], "5 bytes are too short for the prefix and the 2 digits"),
    (["--key-length", "251", "--protocol", "memcache_text"], "at most 250 bytes"),
    (["--key-length", "10-251", "--protocol", "memcache_text"], "at most 250 bytes"),
    (["--key-prefix", "x" * 240, "--protocol", "memcache_binary"], "at most 250 bytes"),
    (["--key-prefix", "x" * 65536], "--key-prefix is longer"),
    (["--compressible", "101"], "--compressible: expected a percentage"),
    (["--fields", "0"], "--fields: expected"),
    (["--expiry", "0"], "--expiry: expected SECONDS"),
    (["--expiry", "9-3"], "--expiry: expected SECONDS"),
    (["--percentiles", "50,101"], "--percentiles: expected a list"),
    (["--buckets=2ms,1ms"], "--buckets: expected a list"),
    (["--fail-if", "p99"], "p99"),
    (["--fail-if", "unknown>5%"], '"unknown>5%" needs a recording'),
    (["--fail-if", "p99 no worse than BASE"], "forktail gate"),
    (["--find", "p99 > 2ms"], '--find: "p99 > 2ms" holds only while requests are slow'),
    (["--find", "errors > 1%"], 'write "errors < 1%"'),
    (["--find", "rps < 1000"], 'write "rps > 1000"'),
    (["--log", "some", "-o", "x"], "--log: expected all or slow:TIME"),
    (["--log", "slow:1ms"], "--log needs -o FILE"),
    (["--keys", "0", "-o", "x"], '--keys: expected a number from 1 to 32, got "0"'),
    (["--keys", "33", "-o", "x"], '--keys: expected a number from 1 to 32, got "33"'),
    (["--keys", "many", "-o", "x"], '--keys: expected a number from 1 to 32, got "many"'),
    (["--keys", "8"], "--keys needs -o FILE"),
    (["--hash-keys", "-o", "x"], "--hash-keys needs --keys"),
    (["--on-error", "panic"], "--on-error: expected continue, reconnect or stop"),
    (["--cpus", "0-"], "--cpus: expected a list"),
    (["-k", "2"], "-k: expected"),
    (["-l", "-n", "5"], "-l runs until Ctrl-C"),
    (["--batch", "2"], "--batch must be at most the pipeline"),
    (["--rate", "5", "--batch", "1"], "--batch needs a closed loop"),
    (["--rate", "5", "--think", "1ms"], "--think needs a closed loop"),
    (["--rate", "5", "--profile", "ramp:1-2x3s"], "mutually exclusive. Choose one"),
    (["--profile", "sine:1,2,3s"], "this profile has no end"),
    (["--latency", "-t", "get"], "mutually exclusive. Choose one"),
    (["-t", ""], "unknown test"),
    (["-t", "get", "--ratio", "1:1"], "mutually exclusive. Choose one"),
    (["--fill", "0"], "--fill: expected"),
    (["--fill", "10", "--rate", "5"], "--fill sets N keys and stops"),
    (["--fill", "10", "-n", "5"], "--fill sets N keys and stops"),
    (["-P", "100000", "-d", "100000"], "Lower -P or -d"),
    (["-s", "x" * 200], "-s: longer"),
    (["--user", "alice"], "--user needs a password"),
    (["run"], 'unexpected argument "run"'),
    (["--drain", "-1"], "--drain: expected a time"),
    (["--loading-wait", "soon"], "--loading-wait: expected a time"),
]


@pytest.mark.parametrize("words, sentence", WRONG, ids=[" ".join(words)[:40] for words, _ in WRONG])
def test_wrong_values_are_refused_with_a_sentence_that_names_the_option(words, sentence):
    check_refused(sentence, *words, status=2)


@pytest.mark.parametrize(
    "words, named",
    [
        (["--frequency", "5"], "unknown option --frequency. See forktail load --help"),
        (["--ratr", "5"], "unknown option --ratr. Did you mean --rate?"),
        (["--tls=yes"], "--tls takes no value"),
        (["--rate"], "--rate needs a value: N"),
        (["-q", "-qX"], "unknown option -X. See forktail load --help"),
        (["-c5", "-X"], "unknown option -X. See forktail load --help"),
        (["-c"], "-c needs a value: N"),
    ],
)
def test_an_unknown_flag_and_a_flag_without_its_value_are_named(words, named):
    ran = load(*words)
    assert (ran.status, ran.out, ran.err) == (2, "", f"forktail load: {named}\n")


@pytest.mark.parametrize(
    "words", ["-n 100k", "-n 1e6", "-n 1.5k", "-r 1M", "--rate 10k", "-d 1k", "-d 1KiB-2kB", "--fill 2G"]
)
def test_numbers_may_be_short(words):
    ran = load(*words.split(), "--check")
    assert (ran.status, ran.err) == (0, "")


def test_files_that_cannot_be_written_are_found_before_the_load(tmp_path):
    for option in ("-o", "--json", "--csv=", "--hlog", "--series"):
        words = [option + "/nowhere/x"] if option.endswith("=") else [option, "/nowhere/x"]
        for more in ([], ["--check"]):
            assert "/nowhere/x: No such file or directory" in check_refused("cannot write", *words, *more, status=3).err
    check_refused("two options name the file same", "--hlog", "same", "--series", "same", status=2)


@pytest.mark.parametrize("flag", ["-a", "--password"])
def test_a_password_in_argv_is_refused_and_not_repeated(flag):
    assert "hunter2" not in check_refused("FORKTAIL_PASSWORD", flag, "hunter2", status=2).err


def test_an_unreadable_password_file_is_an_environment_error(tmp_path):
    missing, empty = "/nonexistent/password", tmp_path / "empty"
    empty.touch()
    for file in (missing, empty):
        ran = load("--password-file", file)
        assert ran.status == 3
        assert str(file) in ran.err


def test_help_and_version():
    ran = load("--help")
    assert ran.status == 0
    for option in ("--ratio", "--rate", "--arrival", "--fill", "--seed", "--json", "--password-file"):
        assert option in ran.out
    ran = load("--version")
    assert ran.status == 0
    assert ran.out.startswith("forktail-load")
