# SPDX-License-Identifier: MIT
"""The output of a run: tables, CSV, HdrHistogram's log, series, buckets, limits, repeats, a log of slow requests only,
the server's own reports. Each figure is checked against the request log, which has every request, or against another
program that reads the same format.
"""

import base64
import csv
import os
import re
import shlex
import signal
import socket
import time
import zlib
from collections import Counter

import numpy as np
import pytest
from load_run import check_refused

from harness import BIN, eventually, ft, load, needs, run_program
from recorded import percentile
from scrape import get
from server_counts import calls


@pytest.fixture
def run(redis, start_load):
    """run(...): a load of the Redis that has ended, with its observer."""

    def start(*words, status=0, observer=True):
        ran = start_load("-s", redis.socket, *words, observer=observer)
        assert ran.wait().status == status, ran.err
        assert ran.log.error == ""
        return ran

    return start


def hdr_count(line):
    """The number of values in a line of HdrHistogram's log, by the format's description."""
    plain = zlib.decompress(base64.b64decode(line, validate=True)[8:])[40:]
    at = total = 0
    while at < len(plain):
        value = shift = 0
        while True:
            byte, at = plain[at], at + 1
            value |= (byte if shift == 56 else byte & 0x7F) << shift
            if shift == 56 or not byte & 0x80:
                break
            shift += 7
        total += 0 if value & 1 else value >> 1  # negative: a run of zeros
    return total


def test_each_repeat_has_its_table_and_best_worst_mean_and_spread_of_all_runs_follow(run):
    ran = run("--repeat", 3, "-n", 500, "-t", "set,get")
    assert [(one["name"], one["total"]["requests"]) for one in ran.json["runs"]] == [("SET", 500)] * 3 + [
        ("GET", 500)
    ] * 3
    assert [(one["name"], one["runs"]) for one in ran.json["repeats"]] == [("SET", 3), ("GET", 3)]
    assert len(ran.log.requests) == 3000
    for test, repeats in enumerate(ran.json["repeats"]):
        rps = [one["total"]["requests_per_s"] for one in ran.json["runs"][3 * test : 3 * test + 3]]
        figures = repeats["requests_per_s"]
        assert [figures[name] for name in ("best", "worst", "mean")] == pytest.approx(
            [max(rps), min(rps), sum(rps) / 3]
        )
        assert figures["spread"] >= 0
        assert repeats["p99_ns"]["best"] <= repeats["p99_ns"]["worst"]
    assert "3 times" in ran.out
    assert "spread" in ran.out


def test_a_broken_limit_gives_exit_status_1_and_a_sentence(run):
    kept = run("-n", 500, "--fail-if", "p99>100s", "--fail-if", "errors>0", "--fail-if", "rps<0.001")
    assert kept.err == ""
    broken = run("-n", 500, "--fail-if", "p99.5>1us", "--fail-if", "errors>0", status=1)
    assert broken.err.count("\n") == 1
    assert "p99.5" in broken.err
    assert "limit" in broken.err
    assert broken.json["exit_status"] == 1
    # The percentile that a limit needs is computed without being requested.
    assert "p99.5" in broken.total["latency_ns"]


@pytest.mark.parametrize(
    "words, status, sentence",
    [
        (["-n", 500, "--fail-if", "GET.max>1us"], 1, "GET"),
        (["-t", "get", "-n", 100, "-r", 50, "--key-prefix", "none:", "--fail-if", "misses>99"], 1, "misses"),
        (["-t", "set,get", "-n", 100, "--fail-if", "GET.errors>=0"], 1, "GET"),
        (["-n", 100, "--fail-if", "requests=100"], 1, "requests is 100, exactly the forbidden 100"),
        (["-n", 100, "--fail-if", "requests!=100"], 0, ""),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_limits_of_an_operation_of_misses_and_of_exact_numbers(run, words, status, sentence):
    ran = run(*words, status=status)
    assert ran.err.count("\n") == status
    assert sentence in ran.err


def test_a_run_without_any_good_answer_has_exit_status_3_also_with_a_broken_limit(redis, run):
    redis.ask("LPUSH", "key:000000000000", "x")
    run("-t", "get", "-n", 100, "--fail-if", "errors>10%", status=3)


def test_a_limit_that_cannot_be_read_is_wrong_usage(redis):
    assert load("-s", redis.socket, "--fail-if", "nonsense").status == 2


@needs("redis-benchmark")
def test_csv_has_the_columns_and_test_names_of_redis_benchmark(redis):
    words = ["-s", redis.socket, "-t", "set,get", "-n", 100, "--csv"]
    ours, theirs = load(*words, "-q"), run_program("redis-benchmark", *words)
    assert (ours.status, theirs.status) == (0, 0)
    ours, theirs = ours.out.splitlines(), theirs.out.splitlines()
    assert ours[0] == theirs[0]
    assert [line.split(",")[0] for line in ours] == [line.split(",")[0] for line in theirs]
    assert len(ours) == 3


def test_the_last_csv_counts_and_replaces_the_table(run):
    ran = run("-t", "get", "-n", 1000, "--csv=/nonexistent/csv", "--csv", "--percentiles", "50,99.9")
    assert ran.out.count("\n") == 2


def test_csv_in_a_file_has_our_figures_beside_the_table(run, tmp_path):
    ran = run("-t", "get", "-n", 1000, f"--csv={tmp_path}/csv", "--percentiles", "99.9")
    assert "standard deviation" in ran.out
    text = (tmp_path / "csv").read_text()
    row = text.splitlines()[1].split(",")
    latencies = ran.log.latencies()
    ns = [latencies[0], *(percentile(latencies, p) for p in (50, 95, 99)), latencies[-1]]
    assert [row[0], *row[3:]] == ['"GET"', *(f'"{one * 1e-6:.3f}"' for one in ns)]


def test_all_seconds_of_hlog_and_series_together_equal_the_total(run, tmp_path):
    hlog, series = tmp_path / "hlog", tmp_path / "series"
    ran = run("--duration", "2500ms", "--rate", 2000, "--warmup", "300ms", "--hlog", hlog, "--series", series)
    lines = re.findall(r"^Tag=(\w+)(?:,[^,\n]*){3},([^,\n]*)$", hlog.read_text(), re.MULTILINE)
    values, rows, seconds = Counter(), Counter(), Counter()
    for operation, line in lines:
        values[operation] += hdr_count(line)
        rows[operation] += 1
    head, *table = csv.reader(series.read_text().splitlines())
    assert head[3] == "operation"
    assert {len(row) for row in table} == {len(head)}
    counts = Counter()
    for row in table:
        seconds[row[3]] += float(row[1])
        counts[row[3]] += int(row[4])
    assert {row[5] for row in table} == {"0"}
    requests = {name: one["requests"] for name, one in ran.figures["operations"].items()}
    assert set(requests) == {"GET", "SET"}
    assert min(requests.values()) > 0
    assert values == counts == requests
    assert min(rows["GET"], rows["SET"]) >= 3
    assert ran.total["requests"] == 5000
    assert seconds["GET"] >= 2.79


@pytest.mark.parametrize("option", ["--hlog", "--series"])
def test_a_file_that_cannot_be_written_is_an_error(redis, option):
    assert load("-s", redis.socket, option, "/nonexistent/x", "-n", 1).status == 3


def test_percentiles_of_any_kind_buckets_and_distribution_are_exact(run):
    ran = run("-n", 5000, "--percentiles", "0.1,25,50,99.99,100", "--buckets=50us,100us,1ms", "--distribution")
    latencies = ran.log.latencies()
    expected = {f"p{p:g}": percentile(latencies, p) for p in (0.1, 25, 50, 99.99, 100)}
    figures = ran.total["latency_ns"]
    assert {name: value for name, value in figures.items() if name.startswith("p")} == expected
    assert all(f"  {name} " in ran.out for name in expected)
    counts = np.diff(np.searchsorted(latencies, [0, 50_000, 100_000, 1_000_000, 2**63], side="right"))
    assert [bucket["requests"] for bucket in ran.total["buckets"]] == counts.tolist()
    assert counts.sum() == 5000
    rows = zip(["(0, 0.05 ms]", "(0.05, 0.1 ms]", "(0.1, 1 ms]", "over 1 ms"], counts, strict=True)
    for label, count in rows:  # of all operations
        assert re.search(rf" {re.escape(label)} .* {count:,} +{count / 50:.4g} %\n", ran.out), ran.out
    assert "latency distribution" in ran.out
    assert "100.000 % <=" in ran.out


def test_there_are_eight_buckets_by_default(run):
    buckets = run("-n", 100, "--buckets").total["buckets"]
    assert len(buckets) == 8
    assert (buckets[0]["up_to_ns"], buckets[7]["over_ns"]) == (25_000_000, 500_000_000)


def test_a_log_of_slow_requests_has_these_only_and_a_histogram_of_all(serve, start_load):
    redis = serve("redis")
    ran = start_load("-s", redis.socket, "--rate", 1000, "--duration", 2, "-c", 5, "--log", "slow:100ms")
    assert eventually(lambda: calls(redis, "get") > 100, 30)
    redis.send_signal(signal.SIGSTOP)
    time.sleep(0.4)
    redis.send_signal(signal.SIGCONT)
    assert ran.wait().status == 0
    assert ran.log.whole
    assert 250 <= len(ran.log.requests) < 2000
    assert ran.log.latencies()[0] >= 100_000_000
    figures = ran.figures
    assert (figures["total"]["requests"], figures["exact"], figures["percentile_error"]) == (2000, False, 0.001)
    assert "from the histogram" in ran.out
    # Every request is in the log's histograms.
    sums = {one["operation"]: sum(count for _, count in one["slots"]) for one in ran.log.histograms}
    assert [one["count"] for one in ran.log.histograms] == list(sums.values())
    assert {name: one["requests"] for name, one in figures["operations"].items()} == sums


def test_a_log_of_slow_requests_has_failed_ones_however_fast_they_were(redis, run):
    redis.ask("LPUSH", "key:000000000000", "x")
    failed = run("-t", "get", "-n", 300, "--log", "slow:10s", status=3)
    assert len(failed.log.requests) == failed.log.with_status(ft.STATUS_ERROR_REPLY) == 300


def test_latency_only_probes(run):
    probe = run("--latency", "--duration", 1)
    assert len(probe.log.requests) == 100
    assert list(probe.figures["operations"]) == ["PING"]
    assert len(probe.log.connections) == 1


@pytest.mark.parametrize("protocol", ["memcache_text", "memcache_binary"])
def test_latency_probes_memcached_too(memcached, protocol):
    ran = load("-s", memcached.socket, "--protocol", protocol, "--latency", "-n", 20, "-q")
    assert ran.status == 0, ran.err


def test_intrinsic_measures_how_late_this_host_wakes_threads(start_load):
    ran = start_load("--intrinsic", "--period", "2ms", "--duration", 1, "--threads", 2).done()
    assert 10 < len(ran.log.requests) <= 1000
    latencies = ran.log.latencies()
    figures = ran.total["latency_ns"]
    assert (figures["p99"], figures["max"]) == (percentile(latencies, 99), latencies[-1])
    assert (ran.log.requests.end_ns >= ran.log.requests.intended_ns).all()
    assert "wake-up" in ran.out


def test_intrinsic_runs_until_it_is_interrupted(background):
    ran = background(BIN / "forktail-load", "--intrinsic", "-q")
    time.sleep(0.3)
    ended = ran.interrupt(10)
    assert ended.status == 0
    assert "standard deviation" in ended.out


def test_the_reports_of_the_server_are_in_the_log_unless_disabled(serve, start_load):
    redis = serve("redis", "--slowlog-log-slower-than", "0")
    observed = start_load("-s", redis.socket, "--duration", "2500ms", "--rate", 200, observer=True).done()
    unobserved = start_load("-s", redis.socket, "--duration", "1500ms", "--rate", 200).done()
    kinds = [note["kind"] for note in observed.log.notes]
    assert kinds.count("load-start") == 1
    assert len(kinds) > 1
    assert len(observed.log.series) > 5
    assert len(observed.log.samples) > 5
    assert (len(unobserved.log.notes), unobserved.log.series) == (1, {})
    assert (observed.total["requests"], observed.total["errors"]) == (500, 0)
    # Without a log there is no observer.
    assert load("-s", redis.socket, "-n", 10, "-q").err == ""


def test_progress_is_one_line_per_second_on_request_and_none_otherwise(redis):
    words = ["-s", redis.socket, "--duration", "2300ms", "--rate", 500]
    assert load(*words).err == ""
    asked = load(*words, "--progress")
    assert asked.status == 0
    assert 2 <= asked.err.count("\n") <= 4
    for part in ("/s", "p50", "p99", "max", "errors 0", "ETA"):
        assert part in asked.err
    assert "\r" not in asked.err
    assert "\033" not in asked.err


@needs("script")
@pytest.mark.parametrize("quiet", [False, True], ids=["default", "quiet"])
def test_progress_is_one_line_on_a_terminal_but_none_with_q(redis, quiet):
    words = [str(BIN / "forktail-load"), "-s", redis.socket, "--duration", "1300ms", "--rate", "100", *["-q"] * quiet]
    # script(1) runs it on a new terminal. Both streams become one.
    terminal = run_program("script", "-qec", shlex.join(words), "/dev/null")
    assert terminal.status == 0
    assert ("\r\033[K" in terminal.out) is not quiet
    assert ("ETA" in terminal.out) is not quiet


def test_the_figures_of_each_second_are_sent_as_statsd_lines(run):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.setblocking(False)
        where = f"127.0.0.1:{listening.getsockname()[1]},my.load"
        ran = run("--statsd", where, "--rate", 1000, "--duration", 3, "--ratio", "1:1")
        lines = []
        while True:
            try:
                lines += listening.recv(2000).decode().splitlines()
            except BlockingIOError:
                break
    sums = Counter()
    for line in lines:
        name, value = re.fullmatch(r"([^:|]+):([\d.]+)\|[cg]", line).groups()
        sums[name] += float(value)
    assert (sums["my.load.requests"], sums["my.load.errors"]) == (3000, 0)
    assert sums["my.load.GET.requests"] + sums["my.load.SET.requests"] == 3000
    assert sums["my.load.GET.requests"] == ran.figures["operations"]["GET"]["requests"]
    assert sums["my.load.GET.p99_9"] > 0
    assert sums["my.load.max"] >= ran.total["latency_ns"]["max"] * 0.998e-6
    by_second = ran.figures["by_second"]
    assert by_second["reached_by_all"] <= by_second["reached_by_50_percent"]
    assert by_second["seconds"] <= 3


@pytest.mark.parametrize("where", ["", ",x", "host:0", "host:70000", "host,", "/run/socket"])
def test_a_wrong_address_for_statsd_is_wrong_usage(redis, where):
    assert load("-s", redis.socket, "--statsd", where).status == 2


def sum_of(text, metric):
    """The sum of all samples of a metric, whatever their labels."""
    return sum(float(value) for value in re.findall(rf"^{metric}(?:\{{.*\}})? (\S+)", text, re.MULTILINE))


def test_a_running_load_serves_its_figures_as_metrics(redis, start_load, tmp_path):
    path = str(tmp_path / "metrics")
    ran = start_load("-s", redis.socket, "--metrics", path, "--rate", 1000, "--duration", 20, "--ratio", "1:1")

    def served():
        answer = get(path)
        return answer if sum_of(answer.body, "forktail_load_requests_total") > 1500 else time.sleep(0.05)

    answer = eventually(served)
    assert answer
    assert answer.status == "HTTP/1.1 200 OK"
    text = answer.body
    assert 'forktail_load_requests_total{operation="GET",result="' in text
    requests = sum_of(text, "forktail_load_requests_total")
    assert sum_of(text, "forktail_load_latency_seconds_count") == requests
    assert sum_of(text, "forktail_load_sent_total") >= requests
    assert sum_of(text, "forktail_load_due_per_second") == 1000
    assert sum_of(text, "forktail_load_latency_seconds_sum") > 0
    assert "# EOF\n" in get(path, "/metrics", "Accept: application/openmetrics-text").body
    assert ran.interrupt(30).status == 0
    assert not os.path.exists(path)  # the socket is removed


def test_an_address_for_metrics_that_cannot_be_read_is_wrong_usage(redis):
    sentence = "'nowhere:x' is not an address for metrics"
    check_refused(sentence, "-s", redis.socket, "--metrics", "nowhere:x", status=2)
