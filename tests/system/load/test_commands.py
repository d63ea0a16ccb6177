# SPDX-License-Identifier: MIT
"""Files of commands on a real server: weights, key patterns, data sets and cursors as the server saw them, each example
of contrib/workloads, and what is refused before any request.
"""

from collections import Counter
from itertools import pairwise

import pytest
from load_run import LoadRun, key
from monitor import Monitor

from forktail.servers import find_server
from harness import TREE, load
from server_counts import calls

EXAMPLES = sorted((TREE / "contrib/workloads").glob("*.commands"))
# These need Redis 8 or its modules.
SPECIAL = {"documents", "search", "vectors"}


@pytest.fixture
def run(redis, tmp_path):
    """run(text, ...): the load of one connection with a file of commands."""

    def start(text, *words):
        (tmp_path / "file").write_text(text)
        return LoadRun("-s", redis.socket, "--commands", tmp_path / "file", "-c", 1, *words)

    return start


def test_weights_key_patterns_key_spaces_and_rows_of_a_data_set_arrive_as_written(redis, run, tmp_path):
    (tmp_path / "data.csv").write_text("id,name\n1,one\n2,two\n3,three\n")
    monitor = Monitor(redis)
    run(
        "# a comment\n\ndata data.csv\n"
        "3 key-space=5 key-pattern=sequential GET __key__\n"
        "  HSET h:__field:id__ name __field:name__ n __int:7:9__\n",
        *["-n", 8000, "-r", 1000, "--seed", 5],
    )
    commands = [seen.words for seen in monitor.commands("GET", "HSET")]
    assert len(commands) == 8000
    gets = [words[1] for words in commands if words[0] == "GET"]
    assert gets == [key(i % 5) for i in range(len(gets))]
    assert 5700 < len(gets) < 6300  # of 6000, 8 standard deviations
    sets = [words for words in commands if words[0] == "HSET"]
    rows = Counter((words[1], words[3]) for words in sets)
    assert set(rows) == {("h:1", "one"), ("h:2", "two"), ("h:3", "three")}
    assert min(rows.values()) > len(sets) // 4
    assert {words[5] for words in sets} == {"7", "8", "9"}


def test_a_scan_continues_at_its_cursor_sees_every_key_and_begins_again(redis, run):
    assert load("-s", redis.socket, "--fill", 1000, "-q").status == 0
    monitor = Monitor(redis)
    run("SCAN __cursor__ COUNT 50\n", "-n", 200)
    cursors = [seen.words[1] for seen in monitor.commands("SCAN")]
    assert len(cursors) == 200
    assert cursors[0] == "0"
    length = cursors.index("0", 1)  # of a whole scan
    assert 10 < length < 60
    assert len(set(cursors)) == length
    assert cursors[length + 1] == cursors[1]


def test_the_key_of_a_scan_remains_until_its_end_though_keys_are_drawn(redis, run):
    # More than a listpack, which HSCAN returns as a whole.
    fields = [word for k in range(600) for word in (f"f{k}", "v")]
    for i in range(3):
        redis.ask("HSET", f"h:{i:012}", *fields)
    monitor = Monitor(redis)
    run("key-space=3 HSCAN h:__key_number__ __cursor__ COUNT 50\n", "-n", 300, "--seed", 3)
    scans = [seen.words for seen in monitor.commands("HSCAN")]
    assert scans[0][2] == "0"
    assert all(words[2] == "0" or words[1] == before[1] for before, words in pairwise(scans))
    assert len({words[1] for words in scans}) == 3


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_accepted_by_servers_that_have_their_commands(serve, path):
    redis = serve("redis8" if find_server("redis8") else "redis")
    ran = LoadRun("-s", redis.socket, "--commands", path, "-n", 2000, "-r", 1000, status=None)
    assert ran.total["requests"] == 2000
    if path.stem in SPECIAL and ran.total["errors"] == 2000:
        assert ran.status == 3
        pytest.skip(f"{redis.kind} {redis.version} has not the commands of {path.name}")
    assert (ran.status, ran.total["errors"]) == (0, 0)


def test_at_least_six_examples_need_only_redis():
    assert len(EXAMPLES) - len(SPECIAL) >= 6


@pytest.mark.parametrize(
    "text, sentence, more",
    [
        ("# only a comment\n", "has no commands", []),
        ("GET __key__\nGET __kee__\n", "file:2: there is no placeholder __kee__", []),
        ("0 GET a\n", "file:1: expected a weight from 1 to 1000000", []),
        ("7\n", "file:1: there is no command in this line", []),
        ("key-pattern=zapf GET __key__\n", "file:1: ", []),
        ("key-space=0 GET __key__\n", "key-space: expected a number of keys", []),
        ("data none.csv\nGET __field:id__\n", "cannot read {directory}/none.csv", []),
        ("data data.csv\nGET __field:name__\n", 'the data set has no column "name"', []),
        ("data data.csv\ndata data.csv\nGET a\n", "file:2: there are two data sets", []),
        ("GET __cursor__\n", "would never end", []),
        ("SCAN __cursor__\n", "__cursor__ needs -P 1", ["-P", 4]),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line_before_any_request(redis, tmp_path, text, sentence, more):
    (tmp_path / "data.csv").write_text("id\n1\n")
    (tmp_path / "file").write_text(text)
    ran = load("-s", redis.socket, "--commands", tmp_path / "file", *more)
    assert ran.status == 2
    assert sentence.format(directory=tmp_path) in ran.err
    assert calls(redis, "get") == calls(redis, "scan") == 0


def test_a_file_that_does_not_exist_is_wrong_usage(redis, tmp_path):
    assert load("-s", redis.socket, "--commands", tmp_path / "none").status == 2
