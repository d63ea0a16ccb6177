# SPDX-License-Identifier: MIT
"""The `forktail` command itself: exit statuses and one-line error messages."""

import shlex

import pytest

from harness import TREE, forktail


def check_refused(words, status, part):
    """An exit status, and an error of one line that contains `part`."""
    refused = forktail(*words)
    assert (refused.status, refused.out, refused.err.count("\n")) == (status, "", 1), refused.err
    assert part in refused.err


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "no command given"),
        ("exlpain", "unknown command 'exlpain'"),
        ("explain", "RUN"),
        ("expalin", "Did you mean explain?"),
        ("help expalin", "Did you mean explain?"),
        ("lab rnu x", "Did you mean run?"),
        ("explain . --sloww 1ms", "unknown option --sloww. Did you mean --slow?"),
        ("explain . --json x", 'unexpected argument "x"'),
        ("explain . --json-to", "--json-to needs a value: FILE"),
        ("explain . --memory 1", '--memory: expected a size from 16M to 16T such as 256M, got "1"'),
        ("explain . --cause forks", "Did you mean fork?"),
        ("causes fsnyc", "Did you mean fsync?"),
        ("record --prot 6379 -o x", "Did you mean --port?"),
        ("report a b c -o x.html", "RUN is given 3 times; at most 2 is allowed"),
        ("diff .", "two runs are needed: forktail diff . OTHER"),
        ("explain . --slow fast", "'fast'"),
        ("explain . --episodes many", '--episodes: expected a number, got "many"'),
        ("explain . --requests", "--json"),
        ("explain . --cause weather", "unknown cause 'weather'"),
        ("explain . --cause fork --all", "mutually exclusive"),
        ("explain . --format {p99.8}", "unknown placeholder {p99.8}"),
        ("explain . --format {p99", "{ without }"),
        ("explain . --format p99}", "} without {"),
        ("explain . --episode first", "--episode"),
        ("explain . --request -1", "--request"),
        ("explain . --color green", "--color"),
        ("explain . --since soon", "not 'soon'"),
        ("report . -o out.html --until -5", "not '-5'"),
        ("explain . --around +5s --since +1s", "mutually exclusive"),
        ("report .", "--output"),
        ("explain . --fail-if p99", 'the limit "p99" has no comparison'),
        ("explain . --fail-if 'p99 no worse than BASE'", "forktail gate --base"),
        ("gate", "RUN"),
        ("gate .", "no limit to check"),
        ("gate . 'p99 < fast'", '"fast" of p99 is not a number'),
        ("gate . 'p99 > 5ms'", 'write "p99 < 5ms"'),
        ("gate . 'errors > 0'", 'write "errors = 0"'),
        ("gate . 'frok.total < 5ms'", 'unknown cause "frok"'),
        ("gate . 'p99 no worse than BASE'", "--base RUN"),
        ("gate . 'p99 < 5ms' --slow fast", "'fast'"),
        ("gate . --limits none.toml", "none.toml: No such file"),
        ("gate . --limits limits.toml", "limits.toml:2: the limit"),
    ],
)
def test_wrong_usage_is_exit_status_2_and_one_sentence(tmp_path, monkeypatch, line, part):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "limits.toml").write_text('limits = [\n  "p99 5ms",\n]\n')
    check_refused(shlex.split(line), 2, part)


@pytest.mark.parametrize(
    ("line", "file", "part"),
    [
        ("explain nowhere", None, "no run at nowhere"),
        ("explain .", None, "holds no recording"),
        ("gate nowhere 'p99 < 5ms'", None, "no run at nowhere"),
        ("diff nowhere beyond", None, "nowhere does not exist"),
        ("gate . 'p99 < 5ms' --base .", None, "holds no recording"),
        ("explain .", "", "empty"),
        ("explain a.forktail", "", "empty"),
        ("explain a.forktail", "x" * 5000, "not a"),
        ("report . -o out.html", "x" * 5000, "not a"),
        ("explain /proc/self/mem", None, "/proc/self/mem"),
    ],
)
def test_input_that_is_no_run_is_exit_status_3_and_one_sentence(tmp_path, monkeypatch, line, file, part):
    monkeypatch.chdir(tmp_path)
    if file is not None:
        (tmp_path / "a.forktail").write_text(file)
    check_refused(shlex.split(line), 3, part)


def test_version_and_help_go_to_standard_output():
    version = forktail("--version")
    assert version.status == 0
    assert version.out.startswith("forktail ")
    for word in ("help", "--help"):
        printed = forktail(word)
        assert (printed.status, printed.err) == (0, "")
        assert "forktail explain RUN" in printed.out
    printed = forktail("explain", "--help")
    assert printed.status == 0
    assert "--slow" in printed.out


@pytest.mark.parametrize("words", ["explain", "record", "load", "doctor", "causes", "lab run", "clock probe", "gate"])
def test_help_of_a_command_begins_with_examples_and_fits_the_terminal(words):
    asked = forktail("help", *words.split(), env={"COLUMNS": "100"})
    same = forktail(*words.split(), "--help", env={"COLUMNS": "100"})
    assert (asked.status, asked.err) == (0, "")
    assert asked.out == same.out
    assert max(map(len, asked.out.splitlines())) <= 100, max(asked.out.splitlines(), key=len)
    if words != "lab run":
        assert asked.out.index("Examples:") < asked.out.index("Usage:")


def test_causes_has_the_words_of_the_documentation():
    page = (TREE / "docs/reference/causes.md").read_text()
    names = [
        line.split()[0] for line in forktail("causes", env={"COLUMNS": "200"}).out.splitlines()
    ]  # each has one line
    assert {"fork", "server-busy", "softirq/net_rx", "unknown"} <= set(names)
    for name in names:
        printed = forktail("causes", name, env={"COLUMNS": "500"})
        assert (printed.status, printed.err) == (0, ""), name
        section = page.partition(f"\n## {name.partition('/')[0]}\n")[2]
        first = section.splitlines()[0].replace("`", "")
        assert first and first in printed.out, name


def test_the_c_programs_are_found_next_to_the_command_and_get_its_arguments():
    version = forktail("load", "--version")
    assert version.status == 0
    assert "forktail-load" in version.out
    refused = forktail("record", "--no-such-option")
    assert refused.status == 2
    assert "no-such-option" in refused.err
