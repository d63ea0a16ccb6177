# SPDX-License-Identifier: MIT
"""Scenarios of every topology run on real servers and have a figure in each cell. Runs are repeated, compared, and
resumed after the lab was killed.
"""

import json
import re
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple

import pytest

from harness import eventually, forktail, load, needs
from lab_runs import HEAD, REDIS, Lab, skip_without_memory_limits


@pytest.fixture
def start_lab(closing):
    """start_lab(scenario): a Lab, which is killed at the end of the test."""
    return lambda scenario: closing(Lab(scenario))


class Case(NamedTuple):
    """A topology, the load on it, and the expected figures."""

    servers: str  # and swap, and steps before the load
    load: str  # the rest of the step: to, load, events
    figures: str


PRIMARY = '[[server]]\nname = "primary"\nkind = "redis"\nlisten = "tcp"\n'
STANDBY = '[[server]]\nname = "standby"\nkind = "redis"\nlisten = "tcp"\nreplica_of = "primary"\n'
LOAD = "-n 4000 -c 4 -r 1000 --ratio 1:1"
CASES = {
    "one-redis": Case(
        REDIS,
        f'to = "redis"\nload = "{LOAD} --buckets=5ms,10ms"\n',
        "run.bucket_5ms run.redis.cpu_percent run.redis.used_memory run.SET.p99 run.GET.p99",
    ),
    "memcached": Case(
        '[[server]]\nname = "store"\nkind = "memcached"\nlisten = "tcp"\n',
        f'to = "store"\nload = "{LOAD}"\n',
        "run.store.cpu_percent run.store.d_cmd_set run.SET.p99 run.GET.rps",
    ),
    "replicas": Case(
        f'{PRIMARY}{STANDBY}count = 2\n[[step]]\nawait = "replicas"\nserver = "primary"\n',
        f'to = "primary"\nload = "{LOAD}"\n',
        "run.primary.cpu_percent run.standby1.cpu_percent run.standby2.used_memory",
    ),
    "nutcracker-in-front-of-three": Case(
        f'{REDIS}count = 3\n[[server]]\nname = "proxy"\nkind = "nutcracker"\nof = "redis"\n',
        f'to = "proxy"\nload = "{LOAD}"\n',
        "run.proxy.cpu_percent run.redis1.cpu_percent run.redis3.d_total_commands_processed run.redis.used_memory",
    ),
    "cluster": Case(
        """
[[server]]
name = "node"
kind = "redis"
listen = "tcp"
cluster = true
count = 3
[[step]]
name = "fill"
to = "node"
load = "--fill 1000 -d 100"
""",
        """
to = "node"
load = "--rate 500 --duration 3s -r 1000 -d 100 -c 4 --ratio 1:1"
[[step.event]]
at = "25%"
move_slots = 50
server = "node1"
to = "node2"
""",
        "run.node1.p99 run.node3.requests run.move_time run.redirects_moved fill.requests",
    ),
    "sentinel-failover": Case(
        f"""{PRIMARY}{STANDBY}
[[server]]
name = "sentinel"
kind = "sentinel"
listen = "tcp"
count = 3
of = "primary"
config = ["down-after-milliseconds 1000", "failover-timeout 10000"]
""",
        """
to = "sentinel"
errors = true
load = "--rate 300 --duration 10s -r 1000 -c 4 --ratio 1:1"
[[step.event]]
at = "10%"
kill = "primary"
[[step.log]]
name = "switched"
server = "sentinel"
text = "+switch-master"
""",
        "run.outages run.outage run.switched run.standby.used_memory",
    ),
    "a-search": Case(
        f'{REDIS}config = ["--enable-debug-command", "yes"]\n',
        """
to = "redis"
load = "--find 'p50 < 40ms' --command 'DEBUG SLEEP 0.01' -c 8 --duration 400ms --warmup 100ms --repeat 1"
""",
        "run.highest run.beyond run.highest.runs run.highest.explained_percent run.beyond.slow",
    ),
    "memory-limit-and-swap": Case(
        """
[swap]
kind = "file"
size = "128MiB"
[[server]]
name = "store"
kind = "redis"
memory = "24MiB"
[[step]]
name = "fill"
to = "store"
load = "--fill 40000 -d 1000"
[[step]]
note = "full"
""",
        'to = "store"\nload = "-n 2000 -c 4 -r 40000 -d 1000 --ratio 1:1"\n',
        "full.store.swap run.store.rss run.store.memory_percent run.host.swap_in_kb_s",
    ),
}


def table(title, *columns, rest='rows = ["run"]\n'):
    """A table of a scenario. columns: title, value and, if not the default, format each."""
    text = f'[[table]]\ntitle = "{title}"\n{rest}'
    for column in columns:
        text += "[[table.column]]\n" + "".join(map('{} = "{}"\n'.format, ("title", "value", "format"), column))
    return text


@pytest.mark.quiet
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_topology_runs_is_recorded_and_explained_and_has_a_figure_in_each_cell(start_lab, case):
    figures = case.figures.split()
    columns = [("requests/s", "{row}.rps"), ("slow", "{row}.slow"), ("explained", "run.explained_percent", "percent")]
    columns += [(figure, figure) for figure in figures]
    step = f'[[step]]\nname = "run"\nrecord = true\n{case.load}'
    lab = start_lab(HEAD + case.servers + step + table("Figures", *columns))
    lab.start_scenario()
    if lab.program.wait(90).status == 3:
        skip_without_memory_limits(lab.err)
    lab.ends(0)
    lab.check_nothing_left()

    (point,) = lab.results()
    assert set(figures) - set(point["numbers"]) == set()
    assert point["recorded"] == ["points/point/run"]
    assert not lab.has_empty_cell(), (lab.run / "tables.txt").read_text()
    assert "Figures" in lab.out
    assert "points/point/run/report.html" in (lab.run / "report.html").read_text()
    recorded = lab.run / "points/point/run"
    files = ["server.forktail", "load.forktail", "run.json", "load.json", "load.txt", "explain.json", "report.html"]
    assert [file for file in files if not (recorded / file).stat().st_size] == []
    assert forktail("explain", recorded).status == 0


RECORDED = (
    HEAD + REDIS + '[[step]]\nname = "run"\nto = "redis"\nrecord = true\nrequests = "1/1"\nload = "-n 2000 -t set"\n'
    + table("Rates", ("requests/s", "{row}.rps"))
)  # fmt: skip


def is_client_recorded(lab):
    """Whether threads of the load are in the account of its recording, in which the kernel's requests are joined."""
    explanation = json.loads((lab.run / "points/point/run/explain.json").read_text())
    assert explanation["requests"]["network_split"]["known"] > 0
    return any(thread["client"] for thread in explanation["account"]["threads"])


def test_a_recorded_loads_threads_are_in_its_account(start_lab):
    lab = start_lab(RECORDED)
    lab.run_scenario()
    assert is_client_recorded(lab)


def test_a_recorded_loads_threads_are_not_in_its_account_if_excluded(start_lab):
    lab = start_lab(RECORDED)
    lab.run_scenario("--no-client")
    assert not is_client_recorded(lab)
    lab.run_scenario("--resume", status=3)  # that would be a different run
    lab.run_scenario("--resume", "--no-client")


def sweep(values, wait="1ms", more=""):
    """A point for each number of clients: a short load, and a wait."""
    steps = '[[step]]\nname = "run"\nto = "redis"\nload = "-n 2000 -c {clients} -t set"\n' + (
        f'[[step]]\nwait = "{wait}"\n'
    )
    rates = table("Rates", ("requests/s", "run.rps"), rest='by = "clients"\n')
    return f'{HEAD}[[sweep]]\nname = "clients"\nvalues = {values}\n{more}{REDIS}{steps}{rates}'


def test_repeats_have_ranges_two_runs_are_compared_and_finished_points_are_not_run_again(start_lab):
    first, second = start_lab(sweep("[1, 4]")), start_lab(sweep("[1, 4]"))
    first.run_scenario("--repeat", 2)
    points = first.results()
    assert [(point["repeats"], point["runs"]["run.requests"]) for point in points] == [(2, [2000, 2000])] * 2
    for point in points:
        one, other = point["runs"]["run.rps"]
        assert point["numbers"]["run.rps"] == pytest.approx((one + other) / 2)
    assert (first.run / "points/clients=4,repeat=2/point.json").exists()

    second.run_scenario()
    compared = forktail("lab", "compare", first.run, second.run)
    assert compared.status == 0, compared.err
    assert [text for text in ("requests/s", "ratio", "--repeat 4") if text not in compared.out] == []
    none = forktail("lab", "compare", first.run, second.temp)
    assert none.status == 3
    assert "results.json" in none.err

    finished = first.run / "points/clients=1,repeat=1/point.json"
    before, collected = finished.stat().st_mtime_ns, (first.run / "results.json").read_bytes()
    first.run_scenario("--repeat", 2, "--resume")
    assert ", point " not in first.err
    assert finished.stat().st_mtime_ns == before
    assert (first.run / "results.json").read_bytes() == collected  # with the time of the measurement

    first.run_scenario("--repeat", 2, status=3)
    assert first.err == (
        f"forktail lab: {first.run} exists: name another directory, or use --resume to continue in it\n"
    )
    for other in (["--repeat", 2, "--scale", "tiny"], ["--repeat", 3]):
        first.run_scenario("--resume", *other, status=3)
        assert first.err == (
            f"forktail lab: {first.run} was started with another scenario file, settings, scale or number of repeats\n"
        )
    first.check_nothing_left()


def test_a_run_in_reverse_order_has_the_same_table(start_lab):
    lab = start_lab(sweep("[1, 2, 4]"))
    lab.run_scenario("--reverse", "--repeat", 2)
    order = re.findall(r"point \d of 6: clients (\d) \((\d) of 2\)", lab.err)
    assert order == [(clients, repeat) for repeat in "21" for clients in "421"]
    assert [point["values"]["clients"] for point in lab.results()] == ["1", "2", "4"]


def test_a_killed_run_continues_where_it_was(start_lab):
    lab = start_lab(sweep("[1, 2, 3, 4]", wait="2s"))
    lab.start_scenario()
    assert lab.prints("point 3 of 4"), lab.err
    lab.program.signal(SIGKILL)
    lab.program.wait(20)
    assert eventually(lambda: not lab.alive(), 60)
    assert lab.left() == []
    points = [lab.run / f"points/clients={number}/point.json" for number in (1, 2, 3)]
    assert [point.exists() for point in points] == [True, True, False]
    times = [point.stat().st_mtime_ns for point in points[:2]]

    lab.run_scenario("--resume")
    assert [point.stat().st_mtime_ns for point in points[:2]] == times
    assert "point 2 of 4" not in lab.err
    assert "point 3 of 4: clients 3" in lab.err
    assert len(lab.results()) == 4
    assert not lab.has_empty_cell()
    lab.check_nothing_left()


def test_points_on_the_same_servers_are_repeated_together(start_lab):
    lab = start_lab(sweep("[1, 2, 3]", more="keep_servers = true\n"))
    lab.run_scenario()
    logs = [(lab.run / f"points/clients={number}/logs/redis.log").exists() for number in (1, 2)]
    assert logs == [True, False]
    (lab.run / "points/clients=2/point.json").unlink()
    lab.run_scenario("--resume")
    assert [number for number in (1, 2, 3) if f"point {number} of 3" not in lab.err] == []
    assert len(lab.results()) == 3
    lab.check_nothing_left()


@needs("tc")
def test_servers_behind_a_link_are_reached_at_its_speed_also_by_their_replicas(start_lab):
    link = '[network]\nrate = "20mbit"\nservers = ["primary"]\n'
    load_1_mb = '[[step]]\nname = "run"\nto = "primary"\nrecord = true\nload = "-t set -n 200 -d 5000 -c 2"\n'
    replica = '[[step]]\nstart = "standby"\n[[step]]\nawait = "replicas"\nserver = "primary"\n'
    lab = start_lab(f"{HEAD}{link}{PRIMARY}{STANDBY}later = true\n{load_1_mb}{replica}")
    lab.run_scenario()
    numbers = lab.results()[0]["numbers"]
    # 64 kB of the first megabyte are sent at once.
    assert numbers["run.mb_s"] < 1.1 * 20 / 8
    assert numbers["run.requests"] == 200
    links = Path("/sys/class/net")
    assert eventually(lambda: not any(one.name.startswith("ft") for one in links.iterdir()))
    lab.check_nothing_left()


@needs("tc")
@needs("ethtool")
def test_threads_of_the_kernel_poll_a_network_in_place_of_soft_interrupts(start_lab):
    network = '[network]\nnapi = true\nservers = ["redis"]\n'
    sweep = '[[sweep]]\nname = "how"\nvalues = ["interrupts", "threads"]\nalso.cpus = ["off", "0"]\n'
    steps = '[[step]]\nnapi_threads = "{cpus}"\n[[step]]\nname = "run"\nto = "redis"\nload = "-t set -n 20000 -c 2"\n'
    rates = table("Rates", ("NET_RX/s", "run.host.NET_RX0_s + run.host.NET_RX1_s"), rest='by = "how"\n')
    lab = start_lab(f'{HEAD}{sweep}{network}{REDIS}listen = "tcp"\n{steps}{rates}')
    lab.run_scenario()
    interrupts, threads = (
        point["numbers"]["run.host.NET_RX0_s"] + point["numbers"]["run.host.NET_RX1_s"] for point in lab.results()
    )
    if "cannot poll" in lab.err:
        pytest.skip("this kernel polls no veth pair in threads")
    assert threads < interrupts / 2
    lab.check_nothing_left()


@pytest.mark.quiet
def test_a_recording_answers_queries_and_the_end_of_a_server_is_a_result(start_lab):
    parts = '[[sweep]]\nname = "part"\nvalues = [1, 2]\nkeep_servers = true\n'
    server = '[[server]]\nname = "redis"\nkind = "redis"\nmemory = "24MiB"\nmay_end = true\n'
    query = '[[step.query]]\nname = "{}"\nsql = "{}"\n'
    step = (
        '[[step]]\nname = "run"\nto = "redis"\nrecord = true\nerrors = true\n'
        'load = "-t insert -n 200000 -r 1 -d 500 -c 4"\n'
        + query.format("threads", "select count(*) from threads where role = 'redis-server'")
        + query.format("ends", "select role, child from threads where role = 'redis-server'")
    )
    columns = ("killed", "run.redis.oom_kills"), ("ended", "run.redis.ended", "text")
    lab = start_lab(HEAD + parts + server + step + table("Ends", *columns, rest='by = "part"\n'))
    lab.start_scenario()
    if lab.program.wait(90).status == 3:
        skip_without_memory_limits(lab.err)
    lab.ends(0)
    point, later = lab.results()
    assert (later["numbers"], later["texts"]) == ({}, {"run.redis.ended": "ended before"})
    assert point["numbers"]["run.threads"] == 1
    assert point["texts"]["run.ends"] == "redis-server False"
    assert (point["numbers"]["run.redis.oom_kills"], point["texts"]["run.redis.ended"]) == (
        1,
        "killed by the OOM killer",
    )
    lab.check_nothing_left()


def test_redis_benchmark_can_generate_the_load(start_lab):
    step = '[[step]]\nname = "run"\nto = "redis"\nby = "redis-benchmark"\nload = "-n 2000 -c 4 -t set,lrange_100"\n'
    columns = [("requests/s", "run.{row}.rps"), ("p99", "run.{row}.p99", "ms")]
    rates = table("Rates", *columns, rest='rows = ["SET", "LRANGE_100"]\n')
    lab = start_lab(HEAD + REDIS + step + rates)
    lab.run_scenario()
    numbers = lab.results()[0]["numbers"]
    assert all(numbers[figure] > 0 for figure in ("run.SET.rps", "run.SET.max", "run.LRANGE_100.p99")), numbers
    assert not lab.has_empty_cell()
    lab.check_nothing_left()


@pytest.mark.parametrize("words", ["--nonsense 5", "-t nosuch", "-n -5", "--rate soon --duration 1s"])
def test_options_that_forktail_load_refuses_are_refused_before_anything_starts_with_its_own_message(start_lab, words):
    sentence = load(*words.split()).err.partition("\n")[0]
    assert sentence
    lab = start_lab(f'{HEAD}{REDIS}[[step]]\nname = "run"\nto = "redis"\nload = "{words}"\n')
    lab.run_scenario(status=2)
    assert lab.err == f"forktail lab: {lab.scenario}:7: {sentence}\n"
    assert not lab.run.exists()
    lab.check_nothing_left()


@pytest.mark.parametrize(
    "step",
    [
        'to = "redis"\nname = "run"\nload = "-n 10"\n',
        'ask = "FLUSHALL"\nserver = "redis"\n',
        'await = "snapshot"\nserver = "redis"\n',
    ],
    ids=["load", "ask", "await"],
)
def test_another_server_is_not_used_when_the_scenarios_own_is_missing(start_lab, step):
    lab = start_lab(f"{HEAD}{REDIS}later = true\n[[step]]\n{step}")
    lab.run_scenario(status=3)
    assert f"forktail lab: {lab.scenario}:8: the server redis is not running\n" in lab.err
    lab.check_nothing_left()


def test_points_that_would_share_a_directory_are_refused(start_lab):
    lab = start_lab(sweep('["{1+1}", "{4/2}"]'))
    lab.run_scenario(status=3)
    assert lab.err == f"forktail lab: {lab.scenario}: two points are the same at this scale: clients 2\n"
    assert not lab.run.exists()


def test_invalid_scenarios_are_refused_before_anything_starts(start_lab):
    lab = start_lab(HEAD + '[[step]]\nwait = "soon"\n')
    lab.run_scenario(status=2)
    assert lab.err == f'forktail lab: {lab.scenario}:4: `wait` must be a time such as 2s, not "soon"\n'
    lab.scenario.write_text(HEAD + '[[step]]\nwait = "1ms"\n')
    lab.run_scenario("--scale", "huge", status=2)
    assert 'a scale must be a number above 0 and at most 1000, or small, or tiny, not "huge"' in lab.err
    assert not lab.run.exists()
    lab.run_scenario("--scale", "tiny")
    lab.check_nothing_left()
