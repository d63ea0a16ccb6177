# SPDX-License-Identifier: MIT
"""Figures from other programs' output, also when it is damaged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forktail.failure import Failure
from forktail.lab.program_figures import (
    add_answer,
    add_benchmark_figures,
    add_explanation,
    add_load_figures,
    add_search,
    name_cause,
)
from forktail.lab.results import Point

FIGURES = {
    "requests": 100,
    "errors": 4,
    "misses": 7,
    "requests_per_s": 50.5,
    "mb_per_s": 0.5,
    "latency_ns": {"count": 96, "min": 1000, "p50": 2000, "p99.9": 9000, "max": 9999},
    "buckets": [{"up_to_ns": 500000, "requests": 5}, {"up_to_ns": 25000000, "requests": 99}, {"requests": 1}],
}
ONE_RUN = {
    "seconds": 2,
    "operations": {"READ-MODIFY-WRITE": FIGURES},
    "total": FIGURES,
    "client": {"cpu_s": 0.5},
    "sent_late_ns": {"mean": 11, "max": 22},
    "nodes": [
        {"server": "127.0.0.1:7001", "requests": 60, "errors": 1, "p50_ns": 1, "p99_ns": 2, "p99.9_ns": 3, "max_ns": 4},
        {"server": "another", "requests": 1},
    ],
    "redirects": {"moved": 3},
    "outages": [{"gap_ns": 5, "failed": 1, "delayed": 2}, {"gap_ns": 9, "failed": 1, "delayed": 3}],
}
EXPLAINED = {
    "slow": {"threshold_ns": 5000, "count": 12},
    "causes": [
        {"cause": "fork", "share": 0.6, "time_ns": 600, "what_if": {"p99": 40, "max": 50}},
        {"cause": "run-queue", "share": 0.25, "time_ns": 250, "what_if": {}},
        {"cause": "unknown", "share": 0.145, "time_ns": 145, "what_if": {}},
        {"cause": "steal", "share": 0.005, "time_ns": 5, "what_if": {}},
    ],
    "own_code": {"activities": [{"name": "command SET", "share": 0.3}]},
    "slow_requests": [
        {"latency_ns": 5, "parts": []},
        {
            "latency_ns": 4000,
            "parts": [
                {"cause": "fork", "direct_ns": 3000, "queued_ns": 900},
                {"cause": "network", "direct_ns": 1, "queued_ns": 0},
            ],
        },
    ],
    "hops": [
        {"name": "redis-server 127.0.0.1:7003", "address": "127.0.0.1:7003", "share": 0.75},
        {"name": "proxy", "share": 0.001},
    ],
    "episodes": [
        {"t_s": 1.5, "requests": 3, "worst_ns": 2000000, "causes": [], "evidence": ["the lesser"]},
        {
            "t_s": 2.25,
            "requests": 1000,
            "worst_ns": 90000000,
            "causes": [{"cause": "fork", "share": 1.0}],
            "evidence": ["it forked", "and copied"],
        },
    ],
}
SEARCHED = {
    "search": {
        "result": "held",
        "highest": {
            "rate": 900,
            "runs": 2,
            "held": 1,
            "start_unix_us": 1795378503123456,
            "end_unix_us": 1795378504000007,
            "client_at_limit": False,
        },
        "curve": [{"rate": 800, "requests_per_s": 799.5}, {"rate": 900, "requests_per_s": 899.5}],
    }
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def add(function: Callable[..., Any], path: Path, content: Any, *names: dict[str, str]) -> Point:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    point = Point()
    function("run", str(path), *names, point)
    return point


def load(path: Path, content: Any) -> Point:
    return add(add_load_figures, path, content, {"127.0.0.1:7001": "redis1"})


def explain(path: Path, content: Any) -> Point:
    return add(add_explanation, path, content, {"127.0.0.1:7003": "redis3"})


def test_figures_of_a_load(path: Path) -> None:
    numbers = load(path, {"runs": [ONE_RUN]}).numbers
    wanted = {
        "run.requests": 100, "run.succeeded": 96, "run.misses": 7, "run.error_percent": 4, "run.rps": 50.5,
        "run.p99_9": 9000, "run.READ_MODIFY_WRITE.max": 9999, "run.bucket_500us": 5, "run.bucket_25ms": 99,
        "run.bucket_over": 1, "run.late_mean": 11, "run.late_max": 22, "run.client_cpu_s": 0.5,
        "run.client_us_per_request": 5000, "run.redis1.requests": 60, "run.redis1.p99_9": 3,
        "run.redirects_moved": 3, "run.outages": 2, "run.outage": 9, "run.outage_failed": 2, "run.outage_delayed": 5,
    }  # fmt: skip
    assert {name: numbers.get(name) for name in wanted} == wanted


def test_several_tests_have_sums_and_no_percentiles_over_all(path: Path) -> None:
    numbers = load(path, {"runs": [ONE_RUN, ONE_RUN]}).numbers
    assert [numbers[f"run.{name}"] for name in ("requests", "errors", "seconds", "client_cpu_s")] == [200, 8, 4, 1]
    assert numbers["run.READ_MODIFY_WRITE.p50"] == 2000
    assert "run.rps" not in numbers and "run.p50" not in numbers


def test_without_an_answer_there_are_no_percentiles(path: Path) -> None:
    text = json.dumps({"runs": [ONE_RUN]}).replace('"count": 96', '"count": 0')
    numbers = load(path, text).numbers
    assert "run.p50" not in numbers
    assert numbers["run.requests"] == 100


@pytest.mark.parametrize("function", [load, explain], ids=["load", "explain"])
@pytest.mark.parametrize("text", ["", "[]", "null", '{"runs": [', "garbage"])
def test_no_json_is_refused(path: Path, function: Callable[[Path, Any], Point], text: str) -> None:
    with pytest.raises(Failure) as refused:
        function(path, text)
    assert str(refused.value) == f"{path} does not contain JSON"


def renamed(document: Any, *keys: str) -> list[str]:
    """The document with one key renamed, for each of them."""
    text = json.dumps(document)
    assert all(f'"{key}"' in text for key in keys)
    return [text.replace(f'"{key}"', '"other"', 1) for key in keys]


LOAD = json.dumps({"runs": [ONE_RUN]})


@pytest.mark.parametrize(
    "text",
    [
        "{}", '{"runs": 5}', '{"runs": [{}]}', '{"runs": [null]}',
        LOAD.replace('"requests": 100', '"requests": "100"', 1), LOAD.replace('"requests": 99', '"requests": null', 1),
        *renamed(
            {"runs": [ONE_RUN]}, "seconds", "total", "operations", "cpu_s", "mean", "misses", "latency_ns", "server",
            "p50_ns",
        ),
    ],
)  # fmt: skip
def test_other_json_is_refused_as_a_load(path: Path, text: str) -> None:
    with pytest.raises(Failure, match=f"^{path} is not output of forktail-load: "):
        load(path, text)


def test_figures_of_a_search(path: Path) -> None:
    path.write_text(json.dumps(SEARCHED))
    point = Point()
    rates = add_search("run", str(path), point)
    assert [(rate.name, rate.since, rate.until, rate.client_at_limit) for rate in rates] == [
        ("highest", "1795378503.123456", "1795378504.000007", False)
    ]
    assert point.numbers == {"run.highest": 900, "run.highest.runs": 2, "run.highest.held": 1, "run.rps": 899.5}
    assert point.texts == {"run.search": "held"}
    assert add(add_search, path, {}).numbers == {}
    with pytest.raises(Failure, match="is not output of forktail-load"):
        add(add_search, path, renamed(SEARCHED, "runs")[0])


@pytest.mark.parametrize(
    ("causes", "at_limit", "named"),
    [
        ("fork 60 %, steal 2 %", False, "fork 60 %"),
        ("server-busy 60 %, steal 2 %", False, "server-busy 60 %: command SET 30 %"),
        ("server-busy 60 %", True, "client at its limit"),
        ("", False, ""),
    ],
)
def test_the_name_of_a_cause(causes: str, at_limit: bool, named: str) -> None:
    point = Point(texts={"run.highest.causes": causes, "run.highest.own": "command SET 30 %, other 5 %"})
    name_cause("run.highest", at_limit, point)
    assert point.texts["run.highest.named"] == named


HEAD = '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms"\n'


@pytest.mark.parametrize(
    ("answer", "number", "text"),
    [
        ('[{"n": 7}]', 7, None),
        ('[{"n": 7.5}]', 7.5, None),
        ('[{"comm": "redis", "mb": 1.5}, {"comm": "dd", "mb": null}]', None, "redis 1.5, dd -"),
        ('[{"comm": "redis"}]', None, "redis"),
        ("[]", None, ""),
    ],
)
def test_an_answer_is_a_number_or_a_text(path: Path, answer: str, number: float | None, text: str | None) -> None:
    point = Point()
    path.write_text(answer)
    add_answer("run.q", str(path), point)
    assert (point.numbers.get("run.q"), point.texts.get("run.q")) == (number, text)


@pytest.mark.parametrize("damaged", ["", "7", "[7]", '{"n": 7}'])
def test_an_answer_that_is_no_table_is_refused(path: Path, damaged: str) -> None:
    path.write_text(damaged)
    with pytest.raises(Failure, match="is not output of forktail sql$"):
        add_answer("run.q", str(path), Point())


def test_figures_of_redis_benchmark(path: Path) -> None:
    point = add(
        add_benchmark_figures,
        path,
        HEAD + '"SET","1000.50","0.5","0.1","0.4","0.8","0.9","7.5"\n'
        '"LPUSH (needed to benchmark LRANGE)","1","1","1","1","1","1","1"\n'
        '"LRANGE_100 (first 100 elements)","20","1","1","1","1","1","2"\n',
    )
    assert point.numbers["run.SET.rps"] == 1000.5
    assert [point.numbers[f"run.SET.{name}"] for name in ("mean", "p99", "max")] == [500000, 900000, 7500000]
    assert point.numbers["run.LRANGE_100.rps"] == 20
    assert "run.LPUSH.rps" not in point.numbers


@pytest.mark.parametrize("text", ["", '"test","rps"\n', '"SET","100"\n', "ERR unknown command\n"])
def test_missing_output_of_redis_benchmark_is_no_result(path: Path, text: str) -> None:
    with pytest.raises(Failure) as refused:
        add(add_benchmark_figures, path, text)
    assert str(refused.value) == f"redis-benchmark printed no results ({path})"


def test_damaged_output_of_redis_benchmark_is_refused(path: Path) -> None:
    with pytest.raises(Failure) as refused:
        add(add_benchmark_figures, path, '"SET","1000.50","0.5","oops","0.4","0.8","0.9","7.5"\n')
    assert str(refused.value) == f'{path} is not output of redis-benchmark: "oops"'


def test_figures_of_an_explanation(path: Path) -> None:
    point = explain(path, EXPLAINED)
    wanted = {
        "run.slow_from": 5000, "run.slow": 12, "run.cause.fork.percent": 60, "run.cause.run_queue.time": 250,
        "run.cause.fork.without_p99": 40, "run.explained_percent": 85.5, "run.own.command_SET.percent": 30,
        "run.hop.redis3.percent": 75,
    }  # fmt: skip
    assert {name: point.numbers[name] for name in wanted} == pytest.approx(wanted)
    texts = point.texts
    assert texts["run.causes"] == "fork 60 %, run-queue 25 %, unknown 14 %"  # the others are too small to be named
    assert texts["run.hops"] == "redis3 75 %"  # with the scenario's name
    assert texts["run.own"] == "command SET 30 %"
    assert texts["run.longest"] == "fork 3.90 us"
    assert texts["run.worst"] == (
        "+2.250 s: 1,000 requests, worst 90.0 ms: fork 100 %\n  it forked\n  and copied\n"
        "+1.500 s: 3 requests, worst 2.00 ms: \n  the lesser"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{}", '{"slow": null}', json.dumps(EXPLAINED).replace('"p99": 40', '"p99": null'),
        json.dumps(EXPLAINED).replace('"episodes": [', '"episodes": 5, "x": ['),
        *renamed(
            EXPLAINED, "threshold_ns", "causes", "share", "what_if", "own_code", "name", "episodes", "worst_ns",
            "evidence", "t_s",
        ),
    ],
)  # fmt: skip
def test_other_json_is_refused_as_an_explanation(path: Path, text: str) -> None:
    with pytest.raises(Failure, match=f"^{path} is not output of forktail explain: "):
        explain(path, text)
