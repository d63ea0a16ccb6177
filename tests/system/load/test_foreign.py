# SPDX-License-Identifier: MIT
"""Options of other load generators: ours under their name, or refused with a sentence that names ours."""

import re

import pytest
from load_run import check_refused

from harness import TREE, load

STRING = r'"((?:[^"\\]|\\.)*)"'


def foreign_options():
    """The table in options_read.c: sentences by option, as it is written on the command line."""
    text = (TREE / "loadgen/options/options_read.c").read_text()
    strings = rf"((?:{STRING}[\s\\]*)+)"
    macros = {name: value for name, value, _ in re.findall(r"#define (\w+)\s+(?:\\\s+)?" + strings, text)}
    table = text.partition("foreign_options[] = {")[2].partition("{0},")[0]
    rows = re.findall(rf"\{{{STRING},\s*(?:(\w+)|{strings})\}}", table)
    assert len(rows) == table.count('{"') > 0
    return {
        ("--" if name[1:] else "-") + name: "".join(re.findall(STRING, macros.get(macro, written))).replace(r"\"", '"')
        for name, macro, written, _ in rows
    }


FOREIGN = foreign_options()


def options_in(text):
    """The options that a text names."""
    return set(re.findall(r"(?:^|[ ,`(])(--?[a-zA-Z0-9][a-z0-9-]*)", text))


@pytest.fixture(scope="module")
def ours():
    return options_in(load("--help").out)


@pytest.mark.parametrize("option", FOREIGN)
def test_every_option_of_another_load_generator_is_refused_with_its_sentence_with_and_without_a_value(option):
    for words in ([option], [option, "5"], [f"{option}=5" if option.startswith("--") else f"{option}5"]):
        ran = load(*words)
        assert (ran.status, ran.out, ran.err) == (2, "", f"forktail load: {option}: {FOREIGN[option]}\n")


@pytest.mark.parametrize("option", FOREIGN)
def test_each_sentence_names_an_option_that_exists_and_no_refused_one(ours, option):
    named = options_in(FOREIGN[option])
    assert named
    assert named <= ours
    assert option not in ours


def test_the_reference_has_every_option_of_other_load_generators():
    page = (TREE / "docs/reference/load.md").read_text()
    section = page[page.index("## Differences from other load generators") :]
    assert [one for one in FOREIGN if f"`{one}`" not in section and f"`{one} " not in section] == []


@pytest.mark.parametrize(
    "words",
    [
        ["--rps", "1000"],
        ["--cluster-mode"],
        ["--tls", "--tls-skip-verify"],
        ["--sequential", "-r", "100"],
        ["--command", "ZADD z __rand_int__ element:__rand_1st__:__rand_9th__"],
    ],
    ids=lambda words: words[0],
)
def test_other_names_of_the_same_options_are_accepted(words):
    ran = load(*words, "--check")
    assert ran.status == 0, ran.err


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("-s localhost", "-h HOST"),
        ("-s 127.0.0.1", "-h HOST"),
        ("-P memcache_text", "--protocol NAME"),
        ("-P workloads/workloada", "--ycsb LETTER"),
        ("-P workloada", "--ycsb LETTER"),
        ("-t 4", "--threads N"),
        ("-n allkeys", "--fill N"),
        ("--key-pattern=R:R", "R is uniform"),
        ("--key-pattern P:P", "P sequential with --key-split"),
        ("--ycsb workloada", "--ycsb A"),
        ("-p recordcount=1000", "recordcount is -r"),
        ("run redis", "--ycsb LETTER"),
        ("load redis", "--ycsb load"),
        ("-r 100000 set __key__ __data__", "--command 'set __key__ __data__'"),
    ],
)
def test_values_of_other_load_generators_options_of_our_names_are_answered_with_ours(words, ours):
    ran = load(*words.split(), "--check")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ours in ran.err


def test_a_socket_with_the_name_of_a_host_is_one(tmp_path):
    (tmp_path / "localhost").touch()
    assert load("-s", "localhost", "--check", cwd=tmp_path).status == 0


def test_a_tenth_random_number_is_refused():
    check_refused("__rand_10th__", "--command", "GET __rand_10th__", "--check", status=2)


def test_a_password_of_memtier_benchmark_is_refused_and_not_repeated():
    assert "hunter2" not in check_refused("FORKTAIL_PASSWORD", "--authenticate", "hunter2", status=2).err
