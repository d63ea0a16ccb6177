# SPDX-License-Identifier: MIT
"""Plans of runs on several hosts: what they mean for each host, and their errors by line. Also the lines of ranks."""

import json
import os

import pytest

from forktail.failure import Failure
from forktail.hosts import (
    LoadSecond,
    MpiRun,
    describe_plan,
    jobs_of,
    main,
    merged_progress,
    mpi_command,
    parse_message,
    parse_plan,
    rank_plan,
    read_progress,
    roles_of,
)
from forktail.text import command_line

HOSTS = 'duration = "90s"\n[[hosts]]\nname = "a"\n[[hosts]]\nname = "b"\naddress = "10.0.0.2"\n'
LOAD = '[[load]]\nhost = "a"\n'
PLAN = (
    HOSTS
    + '[[record]]\nhost = "a"\nport = [6379, 6380]\noptions = ["--light"]\n'
    + '[[record]]\nhost = "a"\nname-of = "nutcracker"\n'
    + '[[load]]\nhost = "b"\nto = "a:6379"\noptions = ["--rate", "10"]\n'
)


def test_a_plan_defines_what_runs_where():
    plan = parse_plan(PLAN, "p.toml")
    assert plan.hosts[0].address == "a" and plan.hosts[1].network == "10.0.0.2"
    assert (plan.settle_ns, plan.scratch, plan.clocks) == (2 * 10**9, "/var/tmp", True)
    a, b = ([command_line(job["argv"]) for job in jobs_of(plan, host, "/d")] for host in plan.hosts)
    assert a == [
        "forktail-clock serve --listen a",
        "forktail-record -o /d/server.forktail --port 6379 --port 6380 --duration 212s --light",
        "forktail-record -o /d/server-2.forktail --name nutcracker --duration 212s",
    ]
    assert b == [
        "forktail-clock probe a -o /d/clock.forktail --duration 212s",
        "forktail-load -o /d/load.forktail --progress --server a:6379 --duration 90000ms --rate 10",
    ]
    assert [roles_of(plan, host) for host in plan.hosts] == ["2 recorders", "load"]
    assert describe_plan(plan).startswith(
        "a (a): 2 recorders\n  forktail-clock serve --listen a\n  forktail-record -o /var/"
    )


def test_ranks_get_the_plan_as_json():
    sent = json.loads(rank_plan(parse_plan(PLAN, "p.toml"), "77"))
    assert (sent["duration_ns"], sent["settle_ns"]) == (90 * 10**9, 2 * 10**9)
    assert [host["directory"] for host in sent["hosts"]] == [f"/var/tmp/forktail-hosts-77-{name}" for name in "ab"]
    assert [job["kind"] for job in sent["hosts"][0]["jobs"]] == [
        "clock",
        "recorder",
        "recorder",
    ]
    assert sent["hosts"][1]["jobs"][1]["argv"][2] == "/var/tmp/forktail-hosts-77-b/load.forktail"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            HOSTS + '[[load]]\nhost = "c"\n',
            'p.toml:7: a load needs a `host` from the plan, not "c"',
        ),
        (HOSTS + LOAD + "rate = 3\n", "p.toml:9: a load has no `rate`"),
        ('duraton = "3s"\n' + HOSTS + LOAD, "p.toml:1: a plan has no `duraton`"),
        (
            HOSTS + '[[hosts]]\nname = "a"\n' + LOAD,
            "p.toml:7: two hosts have the name a",
        ),
        (
            HOSTS + '[[hosts]]\nname = "c"\naddress = "10.0.0.2"\n' + LOAD,
            "p.toml:7: the hosts b and c have the same address, 10.0.0.2",
        ),
        (
            HOSTS + '[[hosts]]\nname = "../x"\n' + LOAD,
            "p.toml:7: a host needs a `name` that consists of letters, digits, '-', '_' and '.', not \"../x\"",
        ),
        (
            HOSTS + '[[hosts]]\nname = "c"\naddress = "c:2,d"\n' + LOAD,
            'p.toml:7: the address of c must be one name or address that mpirun accepts, not "c:2,d"',
        ),
        (HOSTS, "p.toml:1: the plan needs at least one [[record]] or [[load]]"),
        ('duration = "9s"\n', "p.toml:1: the plan has no [[hosts]]"),
        (
            HOSTS[17:] + LOAD,
            'p.toml:1: `duration` is missing: set the length of the run, such as "30s"',
        ),
        (
            'duration = "3 parsecs"\n',
            'p.toml:1: `duration` must be a time such as "30s", not "3 parsecs"',
        ),
        (
            'duration = "30"\n',
            'p.toml:1: `duration` must be a time such as "30s", not "30"',
        ),
        (
            HOSTS + '[[record]]\nhost = "a"\n',
            "p.toml:7: a [[record]] needs a target: `port`, `pid`, `name-of`, `unix`, `container` or `cgroup`",
        ),
        (
            HOSTS + LOAD + 'name = "x"\n' + LOAD + 'name = "x"\n',
            'p.toml:10: the name "x" is already used on a',
        ),
        (
            HOSTS + LOAD + 'name = "clock"\n',
            'p.toml:7: the name "clock" is already used on a',
        ),
        (
            HOSTS + '[load]\nhost = "a"\n',
            "p.toml:7: [[load]] must be written with two brackets",
        ),
        (
            'scratch = "here"\n' + HOSTS + LOAD,
            'p.toml:1: `scratch` must be an absolute path, not "here"',
        ),
        (
            'on_death = "cry"\n' + HOSTS + LOAD,
            'p.toml:1: `on_death` must be "end" or "continue", not "cry"',
        ),
        ("a = \n", "p.toml:1: "),
    ],
)
def test_an_error_in_a_plan_is_reported_with_its_line(text, sentence):
    with pytest.raises(Failure) as failure:
        parse_plan(text, "p.toml")
    assert failure.value.status == 2
    assert str(failure.value) == sentence or (sentence.endswith(": ") and str(failure.value).startswith(sentence))


def test_each_host_is_an_application_context_of_mpirun():
    plan = parse_plan(HOSTS + LOAD, "p.toml")
    plan.mpirun = ["--mca", "x", "y"]
    plan.hosts[1].programs = "/opt/ft"
    mpi = MpiRun("/b/forktail-rank", "/p.json", "/run", "t", "/hosts", ["-v"])
    line = command_line(mpi_command(mpi, plan, "gather", plan.hosts))
    assert line.startswith("mpirun --stdin all --bind-to none --oversubscribe --mca mpi_yield_when_idle 1 ")
    assert line.endswith(
        " --hostfile /hosts --mca x y -v --host localhost -np 1 /b/forktail-rank gather t --plan /p.json /run : "
        "--host a -np 1 /b/forktail-rank gather t a : --host 10.0.0.2 -np 1 /opt/ft/forktail-rank gather t b"
    )
    assert ("--allow-run-as-root" in line) == (os.geteuid() == 0)
    assert "--plan /p.json : --host a" in command_line(mpi_command(mpi, plan, "run", plan.hosts))


def test_progress_of_loads_is_added_up_and_the_worst_one_is_named():
    line = "SET+GET  12 s  40,123/s  p50 0.100 ms  p99 0.310 ms  max 1.200 ms  errors 4  ETA 3 s"
    assert read_progress(line) == LoadSecond(12, 40123, 0.31, 1.2, 4)
    assert read_progress("commands  1 s  7/s  no answer  errors 0") == LoadSecond(1, 7, 0, 0, 0)
    assert read_progress("forktail-load: 10.0.0.1 refused the connection") is None and read_progress("/s  ") is None
    loads = {
        "b/load": LoadSecond(11, 40000, 0.5, 0.9, 2),
        "a/load": LoadSecond(12, 1000, 0.3, 1.2, 1),
    }
    assert merged_progress(loads) == "12 s  41,000/s from 2 loads  worst p99 0.500 ms (b)  max 1.200 ms  errors 3"
    assert "from 1 load  worst p99 0.300 ms (a)" in merged_progress({"a/load": loads["a/load"]})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "mpirun noticed that process rank 2",
        '{"forktail":3}',
        '["forktail"]',
        '{"forktail":',
        "3",
    ],
)
def test_only_lines_of_ranks_are_parsed(line):
    assert parse_message(line) is None
    assert parse_message('{"forktail":"here","host":"a"}') == {
        "forktail": "here",
        "host": "a",
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["run", "/no/plan", "-o", "x"],
            "cannot read /no/plan: No such file or directory",
        ),
        (["run", "plan"], "no run directory is given. Name it with -o RUN."),
        (["run", "plan", "-o", ""], "no run directory is given. Name it with -o RUN."),
    ],
)
def test_refusals_of_the_command_line(words, sentence):
    with pytest.raises(Failure, match=sentence) as failure:
        main(words)
    assert failure.value.status == 2


def test_usage(capsys):
    assert (main([]), main(["--help"])) == (2, 0)
    usage = capsys.readouterr()
    assert usage.out == usage.err and usage.out.startswith("forktail hosts run PLAN.toml -o RUN [-- MPIRUN OPTIONS]   ")
