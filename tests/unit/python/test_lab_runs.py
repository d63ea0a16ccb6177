# SPDX-License-Identifier: MIT
"""What the lab does around servers and loads: events' due times, counters, sides of pairs, repeats, command lines."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from forktail.failure import Failure
from forktail.host.session import Child
from forktail.lab.counters import Counters, CpuCounters, HostCounters, add_difference, add_moment, read_counters
from forktail.lab.experiment import merge, needs_root
from forktail.lab.main import main
from forktail.lab.pairs import apply_side, draw_order
from forktail.lab.point_run import make_plan
from forktail.lab.results import Point
from forktail.lab.scenario import Action, NetworkSpec, Scenario, ServerSpec, Size, StepSpec, SwapSpec
from forktail.lab.steps import event_times
from forktail.servers import Instance, ServerPlan, Topology, find_kind
from forktail.text import command_line

EVENTS = [Action(at="50%"), Action(at="25%"), Action(at="0s")]
LOADS = [("500us", 500e-6), ("20ms", 0.02), ("4s", 4), ("60", 60), ("2m", 120), ("1h", 3600), ("0.5h", 1800)]


@pytest.mark.parametrize(("duration", "seconds"), LOADS)
def test_an_event_at_a_share_is_due_in_the_loads_own_unit_of_time(duration: str, seconds: float) -> None:
    times = event_times(StepSpec(events=EVENTS), ["--rate", "10", "--duration", duration, "-c", "2"])
    assert times == [(0, EVENTS[2]), (pytest.approx(seconds / 4), EVENTS[1]), (pytest.approx(seconds / 2), EVENTS[0])]


def test_the_order_of_pairs_is_that_of_mt19937_64_and_does_not_depend_on_their_number() -> None:
    # Printed by C++: std::mt19937_64 r(seed); r() & 1.
    for seed, bits in [(1, "0000010100011101"), (4, "1000101000001101"), (1234567890123456789, "1110101001101001")]:
        assert draw_order(seed, 16) == [bit == "1" for bit in bits]
    assert draw_order(4, 700)[:400] == draw_order(4, 400)


def scenario(servers: int = 1) -> Scenario:
    specs = [ServerSpec(name=f"redis{i}", kind="redis") for i in range(servers)]
    return Scenario(name="sample", constants={"bytes": "10"}, sizes=[Size("keys")], servers=specs)


def test_a_side_changes_constants_and_settings() -> None:
    one, settings = scenario(), {"keys": "5"}
    apply_side("bytes=300 maxmemory=123mb 'save=3600 1'", one, settings)
    assert settings == {"keys": "5", "bytes": "300"}
    assert one.servers[0].config == ["--maxmemory", "123mb", "--save", "3600 1"]
    apply_side("", one, settings)
    assert len(settings) == 2


def test_a_side_can_be_a_file_or_a_program(tmp_path: Path) -> None:
    one, file = scenario(), tmp_path / "new.conf"
    file.write_text('# a comment\nappendonly yes\n  appendfsync always\n\nsave "3600 1"\r\n')
    apply_side(str(file), one, {})
    assert one.servers[0].config == ["--appendonly", "yes", "--appendfsync", "always", "--save", "3600 1"]
    file.chmod(0o700)
    apply_side(str(file), one, {})
    assert one.servers[0].program == str(file)


@pytest.mark.parametrize(
    ("side", "servers", "sentence"),
    [
        ("/nowhere/redis", 1, "/nowhere/redis is not a program, a file or a setting NAME=VALUE"),
        ("=5", 1, "=5 is not a program, a file or a setting NAME=VALUE"),
        ("maxmemory 'no end", 1, "a quote is not closed: maxmemory 'no end"),
        ("hz=50", 2, "hz needs a scenario with one server, and sample has 2"),
    ],
)
def test_an_impossible_side_is_wrong_usage(side: str, servers: int, sentence: str) -> None:
    with pytest.raises(Failure) as refused:
        apply_side(side, scenario(servers), {})
    assert str(refused.value) == sentence


def test_a_plan_has_the_values_of_its_point() -> None:
    spec = ServerSpec("redis", "redis", count="{n}", memory="{n}MiB", listen="{where}", config=["--port", "{n*2}"])
    plan = make_plan(spec, {"n": "3", "where": "tcp"})
    assert (plan.count, plan.memory_bytes, plan.tcp, plan.config) == (3, 3 << 20, True, ["--port", "6"])
    spec.memory = "much"
    with pytest.raises(Failure, match='"much" is not a size of memory, such as 256MiB'):
        make_plan(spec, {"n": "3", "where": "tcp"})


def test_repeats_become_medians_and_ranges() -> None:
    points = [Point(numbers={"run.rps": value}, texts={"run.causes": str(value)}) for value in (3.0, 9.0, 5.0)]
    points[0].numbers["run.once"] = 7
    merged = merge(points)
    assert merged.numbers == {"run.rps": 5, "run.once": 7}
    assert (sorted(merged.runs["run.rps"]), merged.repeats) == ([3, 5, 9], 3)
    assert merged.texts == {"run.causes": "5.0"}
    alone = merge([Point(numbers={"run.rps": 1})])
    assert (alone.runs, alone.repeats) == ({}, 1)


@pytest.mark.parametrize(
    ("one", "root"),
    [
        (Scenario(servers=[ServerSpec()], steps=[StepSpec(load="-n 1"), StepSpec(action=Action(wait="1s"))]), False),
        (Scenario(swap=SwapSpec(kind="zram")), True),
        (Scenario(servers=[ServerSpec(memory="1MiB")]), True),
        (Scenario(steps=[StepSpec(record=True)]), True),
        (Scenario(steps=[StepSpec(action=Action(spread="on"))]), True),
        (Scenario(steps=[StepSpec(action=Action(napi_threads="1"))]), True),
        (Scenario(network=NetworkSpec(servers=["redis"])), True),
        (Scenario(steps=[StepSpec(load="-n 1", events=[Action(spread="off")])]), True),
    ],
)
def test_what_needs_root(one: Scenario, root: bool) -> None:
    assert needs_root(one) == root


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["redis-server", "--save", "", "x=[1]{2}"], "redis-server --save '' x=[1]{2}"),
        (["a b", "it's", "$HOME"], "'a b' 'it'\"'\"'s' '$HOME'"),
    ],
)
def test_a_command_line_has_quotes_where_a_shell_needs_them(argv: list[str], line: str) -> None:
    assert command_line(argv) == line
    assert subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], stdout=subprocess.PIPE, text=True).stdout == (
        "".join(f"{word}\n" for word in argv)
    )


def counted(t_ns: int, busy_s: float, idle_s: float, received: int) -> HostCounters:
    softirqs = {"NET_RX": received, "NET_TX": 2, "TIMER": 3 * received}
    return HostCounters(
        t_ns, [CpuCounters(busy_s, busy_s / 2, 0, idle_s, softirqs) for _ in range(2)], 0, 0, 0, 0, 4, 1
    )


def test_the_cost_of_a_step_is_a_difference_of_counters() -> None:
    kind = find_kind("redis")
    assert kind
    busy = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\ninput()"
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE) as process:
        child = Child.__new__(Child)
        child.pid, child.ended = process.pid, False
        one = Instance(name="redis1", server="redis", kind=kind, directory="", log="", child=child)
        topology = Topology(plans=[ServerPlan(name="redis", memory_bytes=1 << 30)], instances=[one])
        before = read_counters(topology)
        time.sleep(1)
        after = read_counters(topology)
        assert process.stdin
        process.stdin.write(b"\n")
    before.info["redis1"] = {"keyspace_hits": "3", "redis_version": "7.0.15", "gone": "1"}
    after.info["redis1"] = {"keyspace_hits": "10", "redis_version": "7.0.15", "new": "5"}
    point = Point()
    add_difference("run", topology, before, after, 1000, point)
    numbers = point.numbers
    assert 0.1 < numbers["run.redis1.cpu_s"] < 1
    assert numbers["run.redis1.cpu_us_per_request"] == pytest.approx(numbers["run.redis1.cpu_s"] * 1000)
    assert numbers["run.redis1.rss"] > 1 << 20
    assert numbers["run.redis.rss"] == numbers["run.redis1.rss"]  # the sum of one
    assert numbers["run.redis1.memory_percent"] == 100 * numbers["run.redis1.rss"] / (1 << 30)
    assert numbers["run.redis1.d_keyspace_hits"] == 7
    assert numbers["run.redis1.new"] == 5
    assert not {"run.redis1.redis_version", "run.redis1.d_new", "run.redis1.gone"} & numbers.keys()
    assert 0 <= numbers["run.host.cpu_percent"] <= 100
    add_moment("now", topology, after, point)
    assert numbers["now.redis1.keyspace_hits"] == 10


def test_the_load_of_the_host_is_a_share_of_each_cpu() -> None:
    point = Point()
    add_difference("run", Topology(), Counters(counted(0, 1, 5, 7)), Counters(counted(10**9, 1.8, 5.2, 10)), 0, point)
    wanted = {
        "cpu0_percent": 80, "cpu1_percent": 80, "cpu_percent": 80, "softirq0_percent": 40, "softirq_percent": 40,
        "steal0_percent": 0, "net_softirqs1_s": 3, "NET_RX0_s": 3, "TIMER1_s": 9, "memory_percent": 75,
    }  # fmt: skip
    assert {name: point.numbers[f"run.host.{name}"] for name in wanted} == wanted


def lab(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Status and error of a command that starts nothing."""
    with pytest.raises((SystemExit, Failure)) as ended:
        main(words)
    error = ended.value
    return (error.status, str(error)) if isinstance(error, Failure) else (int(error.code or 0), capsys.readouterr().err)


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ([], 2, "name one of the commands demo, list"),
        (["nonsense"], 2, 'unknown command "nonsense"'),
        (["run"], 2, "NAME is required"),
        (["run", "x", "--repeat", "0"], 2, "--repeat: expected a number from 1 to 1000"),
        (["demo", "--rate", "-1"], 2, "--rate: expected a number from 1 to"),
        (["run", "nosuch"], 2, "unknown scenario nosuch: forktail lab list prints all scenarios"),
        (["run", "a1-key-length", "--resume"], 2, "--resume needs --out with the directory to continue in"),
        (["run", "a1-key-length", "--set", "clients"], 2, "--set needs NAME=VALUE, not clients"),
        (["run", "demo", "--repeat", "2"], 2, "--repeat and --write need a scenario with tables"),
        (["run", "a1-key-length", "--scale", "huge"], 2, "a scale must be a number above 0"),
        (["show", "nosuch"], 2, "unknown scenario nosuch"),
        (["pairs", "a1-key-length", "-o", "x"], 2, "pairs need one point and one recorded load"),
        (["serve", "nosuch"], 2, "unknown kind of server"),
        (["--scenarios", "/nonexistent", "list"], 2, "no scenarios in /nonexistent: name their directory"),
        (["compare", "/nonexistent", "/nonexistent"], 3, "cannot read /nonexistent/results.json"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str], status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    got, error = lab(words, capsys)
    assert (got, sentence in error) == (status, True), error
