# SPDX-License-Identifier: MIT
"""`forktail explain` on a terminal and in a pipe: it fits on a screen for a real run, views show everything about one
item, and a missing item is refused with one message.
"""

import json
import os
import re
from types import SimpleNamespace

import pytest

from forktail.text import format_count, format_duration
from harness import BIN, forktail, run_program, synthetic_run

SCREEN_LINES = 40


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that was made without a server. path: its directory; json: its explanation."""
    path = synthetic_run(tmp_path_factory.mktemp("made") / "run", 0.05, 5000)
    return SimpleNamespace(path=path, json=json.loads(forktail("explain", path, "--json", "--requests").out))


@pytest.fixture
def explain(made):
    """explain(*words, env={}): the end of `forktail explain` of the run."""
    return lambda *words, **options: forktail("explain", made.path, *words, **options)


@pytest.fixture
def on_terminal(made):
    """on_terminal(columns, environment): what explain prints on a terminal that is so wide."""

    def print_it(columns, environment):
        command = f"stty cols {columns}; {environment} {BIN / 'forktail'} explain {made.path}"
        return run_program("script", "-qec", command, "/dev/null").out.replace("\r", "")

    return print_it


def check_screen(text, columns):
    """Plain lines, at most `columns` wide. Returns their number."""
    assert "\x1b" not in text
    assert text.endswith("\n")
    assert [line for line in text.splitlines() if len(line) > columns] == []
    return text.count("\n")


UTF8 = "LC_ALL=C.UTF-8 TERM=xterm"


def test_a_terminal_gets_colours_and_its_width(on_terminal):
    assert "\x1b[1m" in on_terminal(72, f"{UTF8} NO_COLOR=")
    plain = on_terminal(72, f"{UTF8} NO_COLOR=1")
    assert "█" in plain
    assert check_screen(plain, 72) <= SCREEN_LINES + 2
    assert "\x1b[0;" not in on_terminal(80, f"{UTF8} NO_COLOR= ")


def test_a_pipe_gets_neither_colours_nor_unicode(explain):
    piped = explain(env={"COLUMNS": "80", "LC_ALL": "C"})
    assert piped.status == 0
    assert check_screen(piped.out, 80) <= SCREEN_LINES
    assert "█" not in piped.out
    assert "█" not in explain("--ascii", env={"LC_ALL": "C.UTF-8"}).out
    assert "\x1b[1m" in explain("--color=always", env={"NO_COLOR": "1"}).out
    assert "\x1b[0;" not in explain("--color", "never").out


def test_a_requests_parts_and_the_requests_ahead_of_it_are_shown(made, explain):
    slow = made.json["slow_requests"]
    # One of those that waited for a fork, which takes 40 ms, but not the first.
    one = next(one for one in slow if 10_000_000 <= one["latency_ns"] <= 30_000_000)
    view = explain("--request", one["id"])
    assert view.status == 0, view.err
    assert f"{format_count(one['latency_ns'])} ns\n" in view.out
    for word in ["due", "sent", "answered", *(part["cause"] for part in one["parts"])]:
        assert f"\n{word} " in view.out

    # Sent before it, and not answered when it was due; the last due first.
    ahead = [
        other
        for other in reversed(slow)
        if other["start_ns"] <= one["start_ns"] < other["start_ns"] + other["latency_ns"]
        and (other["sent_ns"], other["id"]) < (one["sent_ns"], one["id"])
    ]
    same = [other["id"] for other in ahead if other["connection"] == one["connection"]]
    others = [other["id"] for other in ahead if other["connection"] != one["connection"]]
    assert others
    noun = "slow request" if len(same) == 1 else "slow requests"
    title, _, table = view.out.partition(" on other connections of its thread\n")
    assert title.endswith(
        f"\nAhead of it: {format_count(len(same))} {noun} on its connection, {format_count(len(others))}"
    )
    listed = [int(number) for number in re.findall(r"^ *(\d+) +\+", table, re.MULTILINE)]
    assert listed == (same + others)[:12]


def test_the_first_slow_request_had_none_ahead_of_it(made, explain):
    assert "No slow request was ahead of it." in explain("--request", made.json["slow_requests"][0]["id"]).out


def test_an_episodes_view_has_its_worst_request(made, explain):
    view = explain("--episode", 1)
    assert view.status == 0
    assert view.out.startswith("Episode 1 of ")
    largest = max(made.json["episodes"], key=lambda one: one["time_ns"])
    assert f"{format_duration(largest['worst_ns'])}  " in view.out  # among its worst requests


def test_a_causes_view_has_its_time(made, explain):
    first = made.json["causes"][0]
    view = explain("--cause", first["cause"])
    assert view.status == 0
    assert view.out.startswith(f"{first['cause']}: ")
    assert format_duration(first["time_ns"]) in view.out
    assert "It affected none of the " in explain("--cause", "ptrace").out


def test_a_missing_item_is_refused_with_one_message(made, explain):
    request = explain("--request", 4_000_000_000)
    assert request.status == 3
    assert "is not one of the " in request.err
    episode = explain("--episode", len(made.json["episodes"]) + 1)
    assert (episode.status, episode.err.count("\n")) == (3, 1)
    assert explain("--episode", 0).status == 3


def test_the_line_for_scripts_has_the_numbers_of_the_json(made, explain):
    first, requests = made.json["causes"][0], made.json["requests"]
    cause = first["cause"]
    line = explain(
        "--format",
        f"{{p99.9_ns}} {{max_ns}} {{requests}} {{cause}} {{{cause}.total_ns}} {{{cause}.without.p99_ns}} "
        "{ptrace.total_ns} {drops} {{}}",
    )
    assert line.status == 0
    assert line.out == (
        f"{requests['latency_ns']['p99.9']} {requests['latency_ns']['max']} {requests['count']} {cause} "
        f"{first['time_ns']} {first['what_if']['p99']} 0 {made.json['drops']['count']} {{}}\n"
    )
    line = explain("--format", r"a{{b}}\t{softirq/net_rx.share}{start}{run}").out
    assert line.startswith("a{b}\t0.")
    assert line.endswith(f"{made.path}\n")


@pytest.mark.parametrize(
    "wrong",
    ["{}", "{p99.8}", "{fork}", "{fork.weather}", "{fork.without.p50}", "{p99_h}", "{p99", "p99}", "{_ms}"],
)
def test_a_wrong_line_for_scripts_is_refused(explain, wrong):
    refused = explain("--format", wrong)
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "--format" in refused.err


@pytest.mark.parametrize("view", [[], ["--all"], ["--episode", 1], ["--format", "{p99_ms}"], ["--requests"]])
def test_json_is_written_into_a_file_together_with_any_view_and_equals_what_is_printed(explain, tmp_path, view):
    file = tmp_path / "explained.json"
    file.write_text("of an earlier run")
    listed = ["--requests"] if "--requests" in view else []
    both = explain(*view, "--json-to", file)
    assert both.status == 0, both.err
    assert file.read_text() == explain("--json", *listed).out
    if not listed:
        assert both.out == explain(*view).out


@pytest.mark.parametrize("path", ["nowhere/a.json", "/dev/full"])
def test_json_that_cannot_be_written_is_one_message_and_nothing_is_printed(explain, tmp_path, path):
    if path == "/dev/full" and not os.access(path, os.W_OK):
        pytest.skip("no /dev/full")
    refused = explain("--json-to", tmp_path / path)
    assert (refused.status, refused.out) == (3, "")
    why = "No space left on device" if path == "/dev/full" else "No such file or directory"
    assert refused.err == f"forktail: cannot write {tmp_path / path}: {why}\n"
