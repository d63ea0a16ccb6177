# SPDX-License-Identifier: MIT
"""Reads forktail's exports with third-party libraries (tests/python/requirements.txt), and compares them with the
output of `forktail explain --json`: tables with DuckDB and pyarrow, texts with HdrHistogram's reader, OpenTelemetry's
messages and Prometheus' parser.
"""

import base64
import json
import math
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from importlib import import_module
from multiprocessing import get_context

import pytest

from harness import BIN, TREE

PYTHON = TREE / "build-python"
LIBRARIES = next(PYTHON.glob("lib/python3*/site-packages"), PYTHON)
HDRHISTOGRAM = (LIBRARIES / "hdrh").exists()  # it is not there for every kind of machine
SHARES = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p99.9": "0.999", "p99.99": "0.9999", "max": "1"}

needs_readers = pytest.mark.skipif(
    not ((PYTHON / "made").exists() and (BIN / "forktail-parquet").exists()),
    reason="no build-python/ (script/python), or forktail-parquet was built without it",
)


def _take_libraries():
    # NumPy, too: the system's, which is loaded, is older than pyarrow needs.
    for name in [name for name in sys.modules if name.partition(".")[0] == "numpy"]:
        del sys.modules[name]
    sys.path.insert(0, str(LIBRARIES))


def with_libraries(check, *arguments):
    """Calls check(*arguments) in another process, which has these libraries: forktail's own package uses them where it
    finds them."""
    with ProcessPoolExecutor(1, get_context("fork"), _take_libraries) as pool:
        return pool.submit(check, *arguments).result()


def percentile_rank(count, name):
    """The rank of a percentile of `count` values, from 1."""
    return max(1, math.ceil(Fraction(SHARES[name]) * count))


class Tables:
    """An export's Parquet tables, in DuckDB and for pyarrow."""

    def __init__(self, directory):
        self._directory = directory
        self._db = import_module("duckdb").connect()
        self._db.execute("set TimeZone = 'UTC'")
        self.names = sorted(path.stem for path in directory.iterdir())
        for name in self.names:
            self._db.execute(f"create view {name} as select * from read_parquet('{directory}/{name}.parquet')")

    def execute(self, statement):
        self._db.execute(statement)

    def rows(self, query):
        return self._db.sql(query).fetchall()

    def one(self, query):
        return self.rows(query)[0][0]

    def arrow(self, name, columns=None):
        return import_module("pyarrow.parquet").read_table(self._directory / f"{name}.parquet", columns=columns)

    def file(self, name):
        return import_module("pyarrow.parquet").ParquetFile(self._directory / f"{name}.parquet")


def tables_equal(explained, parquet, csv_tables):
    """The directories of a Parquet and of a CSV export have explain's results. Sums are compared to the nanosecond."""
    tables = Tables(parquet)
    assert tables.names == sorted(path.stem for path in csv_tables.glob("*.csv"))
    _causes_equal(explained, tables)
    _requests_equal(explained, tables)
    _kernel_columns_equal(explained, tables)
    _accounts_equal(explained, tables)
    _csv_has_the_same_rows(tables, csv_tables)


def _causes_equal(explained, tables):
    causes = {c["cause"]: (c["requests"], c["direct_ns"], c["queued_ns"]) for c in explained["causes"]}
    query = "select cause, count(distinct request), sum(direct_ns), sum(queued_ns) from parts group by 1"
    assert {cause: tuple(map(int, sums)) for cause, *sums in tables.rows(query)} == causes
    by_cause = tables.arrow("parts").group_by("cause").aggregate([("total_ns", "sum")]).to_pydict()
    sums = dict(zip(by_cause["cause"], by_cause["total_ns_sum"], strict=True))
    assert sums == {cause: direct + queued for cause, (_, direct, queued) in causes.items()}
    times = {c["cause"]: c["time_ns"] for c in explained["causes"]}
    assert dict(tables.rows("select cause, total_ns from causes")) == times
    # Parts sum to their request's latency.
    query = "select sum(total_ns) total, any_value(latency_ns) latency from parts group by request"
    assert tables.one(f"select count(*) from ({query}) where total <> latency") == 0


def _requests_equal(explained, tables):
    requests, slow = explained["requests"], explained["slow"]
    has_log = requests["from"] == "request-log"
    assert tables.one("select count(*) from requests") == (requests["count"] if has_log else 0)
    assert tables.one("select count(*) from slow") == slow["count"]
    if has_log:
        query = "select count(*), coalesce(sum(latency_ns), 0)::bigint from requests where slow"
        assert tables.rows(query) == [(slow["count"], slow["time_ns"])]
        assert tables.one("select count(distinct request) from requests") == requests["count"]
        compute, arrow = import_module("pyarrow.compute"), import_module("pyarrow")
        answered = tables.arrow("requests", ["latency_ns", "status"])
        answered = answered.filter(compute.is_in(answered["status"], arrow.array(["ok", "miss"])))["latency_ns"].sort()
        assert len(answered) == requests["count"] - requests["errors"]
        for name in SHARES if len(answered) else ():
            # By rank, because quantile_disc's result for a share of some thousands depends on its rounding.
            rank = percentile_rank(len(answered), name) - 1
            by_duckdb = tables.one(
                "select latency_ns from requests where status in ('ok', 'miss') "
                f"order by latency_ns limit 1 offset {rank}"
            )
            assert by_duckdb == answered[rank].as_py() == requests["latency_ns"][name], name
        # Due times are due_ns' own.
        assert tables.one("select count(distinct epoch_ns(due_time) - due_ns) from requests") <= 8
    episodes = [(e["start_ns"], e["requests"], e["time_ns"]) for e in explained["episodes"]]
    assert tables.rows("select start_ns, requests, time_ns from episodes order by episode") == episodes
    sentences = [(sentence,) for e in explained["episodes"] for sentence in e["evidence"]]
    assert tables.rows("select sentence from evidence order by episode, position") == sentences
    run = (
        requests["count"],
        slow["count"],
        slow["threshold_ns"],
        requests["latency_ns"]["p99.9"],
        explained["drops"]["count"],
    )
    assert tables.rows("select requests, slow_requests, threshold_ns, p99_9_ns, drops from runs") == [run]


def _kernel_columns_equal(explained, tables):
    """What only the server's kernel knows: in its own log, or joined with the log of a load generator."""
    split = explained["requests"].get("network_split", {"known": 0, "requests": 0})
    joined = split["known"]
    from_kernel = [load["source"] for load in explained["loads"]] == ["kernel"]
    alone = explained["requests"]["count"] if from_kernel else 0
    names = ["server_arrived_ns", "answered_ns", "request_bytes", "answer_bytes", "read_ns", "written_ns"]
    *counts, read, written = tables.rows(f"select {', '.join(f'count({name})' for name in names)} from requests")[0]
    assert counts == [joined, joined, alone, alone]
    assert (read > 0, written > 0) == (joined + alone > 0, alone > 0)
    # Times are in order.
    query = """
        select count(*) from requests where sent_ns > coalesce(server_arrived_ns, sent_ns)
            or not coalesce(server_arrived_ns, sent_ns) <= read_ns or read_ns > coalesce(answered_ns, end_ns)
            or coalesce(answered_ns, end_ns) > end_ns or written_ns < end_ns"""
    assert tables.one(query) == 0
    # Answers to SET are +OK.
    query = "select count(*) from requests where op = 'SET' and (answer_bytes <> 5 or request_bytes <= answer_bytes)"
    assert tables.one(query) == 0
    places = ["to_server_ns", "unread_at_server_ns", "to_client_ns"]
    sums = ", ".join(f"coalesce(sum({place}), 0)::bigint" for place in places)
    wanted = (split["requests"], *(split.get(place, 0) for place in places))
    assert tables.rows(f"select count(to_server_ns), {sums} from slow") == [wanted]
    clients, connections = tables.rows("select count(client), count(*) from connections")[0]
    assert clients == (connections if alone else 0)


def _accounts_equal(explained, tables):
    """With every span and tally once, they sum to the threads' accounts."""
    accounts = defaultdict(dict)
    query = """
        select t.tid, t.start_ns, x.cause, sum(x.ns)::bigint from threads t join (
            select thread, cause, on_cpu_ns + runnable_ns + blocked_ns ns from spans where not off_cpu
            union all select thread, cause, blocked_ns from spans where off_cpu
            union all select thread, wait_cause, runnable_ns from spans where off_cpu
            union all select thread, cause, total_ns from tallies) x using (thread)
        where x.ns > 0 group by 1, 2, 3"""
    for tid, start_ns, cause, ns in tables.rows(query):
        accounts[tid, start_ns][cause] = ns
    threads = explained["account"]["threads"]
    assert accounts == {(t["tid"], t["start_ns"]): t["by_cause"] for t in threads if t["by_cause"]}
    assert tables.one("select count(*) from threads") == len(threads)


def _csv_has_the_same_rows(tables, csv_tables):
    for name in tables.names:
        types = json.dumps(dict(tables.rows(f"select column_name, column_type from (describe {name})")))
        how = "header = true, allow_quoted_nulls = false, auto_detect = false, new_line = '\\r\\n'"
        read = f"""read_csv('{csv_tables}/{name}.csv', columns = {types}, {how}, quote = '"', escape = '"')"""
        tables.execute(f"create table csv_{name} as select * from {read}")
        count, runs = tables.rows(f"select count(*), count(distinct run_id) from {name}")[0]
        assert tables.one(f"select count(*) from csv_{name}") == count, name
        query = f"select * from {name} except all select * from csv_{name}"
        assert tables.one(f"select count(*) from ({query})") == 0, name
        assert runs == (1 if count else 0), name
        written = tables.file(name).metadata
        assert written.num_rows == count, name
        if count:
            column = written.row_group(0).column(0)
            assert (column.compression, column.is_stats_set) == ("ZSTD", True), name


def texts_equal(explained, directory):
    """run.folded, run.speedscope.json, run.otlp.jsonl, run.openmetrics and run.prom of a directory have explain's
    results."""
    _otlp_equals(explained, directory / "run.otlp.jsonl")
    in_metrics = _openmetrics_equals(explained, directory / "run.openmetrics")
    _prometheus_has(directory / "run.prom", directory / "run.openmetrics")
    folded = _folded_sums(directory / "run.folded")
    scope, stacks = _speedscope_sums(directory / "run.speedscope.json")
    account = Counter()  # time of servers' threads by cause
    for thread in explained["account"]["threads"]:
        if not thread["client"]:
            account.update(thread["by_cause"])
    for cause, ns in account.items():
        assert in_metrics[cause] * 1e9 == pytest.approx(ns, rel=0, abs=100), cause  # they are doubles here
        if cause != "idle":
            assert scope[cause] == ns, cause
            assert folded[cause] * 1000 == pytest.approx(ns, rel=0, abs=500 * len(stacks[cause])), cause
    assert set(folded) <= set(scope) <= set(in_metrics)


def hlog_equals(explained, path):
    """So has the file for HdrHistogram."""
    everything = import_module("hdrh.histogram").HdrHistogram(1, 2**42 - 1, 3)
    reader = import_module("hdrh.log").HistogramLogReader(str(path), everything)
    tags = set()
    while (interval := reader.get_next_interval_histogram()) is not None:
        tags.add(interval.get_tag())
        everything.add(interval)
    requests = explained["requests"]
    count = everything.get_total_count()
    assert count == (requests["count"] - requests["errors"] if requests["from"] == "request-log" else 0)
    if count:
        assert tags and None not in tags
        for name in SHARES:
            exact = requests["latency_ns"][name]
            share = 100 * percentile_rank(count, name) / count  # which the reader would round to the nearest
            found = everything.get_value_at_percentile(share)
            assert found == pytest.approx(exact, rel=0, abs=exact * 0.001 + 1), name


def _folded_sums(path):
    sums = Counter()
    for line in path.read_text().splitlines():
        stack, us = line.rsplit(" ", 1)
        sums[stack.split(";")[0]] += int(us)
    return sums


def _speedscope_sums(path):
    whole = json.loads(path.read_text())
    assert whole["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    names = [frame["name"] for frame in whole["shared"]["frames"]]
    sums, stacks = Counter(), defaultdict(set)
    for profile in whole["profiles"]:
        assert (profile["type"], profile["unit"]) == ("sampled", "nanoseconds")
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
            sums[names[sample[0]]] += weight
            stacks[names[sample[0]]].add(tuple(sample))
    return sums, stacks


def _otlp_spans(path):
    """The spans of each message and scope, as OpenTelemetry's own messages."""
    parse = import_module("google.protobuf.json_format").ParseDict
    message = import_module("opentelemetry.proto.trace.v1.trace_pb2").TracesData
    for line in path.read_text().splitlines():
        data = json.loads(line)
        for resource in data["resourceSpans"]:
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                for key in {"traceId", "spanId", "parentSpanId"} & span.keys():
                    # Ids are hexadecimal in OTLP, base64 in protobuf's JSON.
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        for resource in parse(data, message()).resource_spans:
            assert {"service.name", "host.name"} <= {a.key for a in resource.resource.attributes}
            yield from (scope.spans for scope in resource.scope_spans)


def _otlp_equals(explained, path):
    roots, sums = 0, Counter()
    for spans in _otlp_spans(path):
        ends = {}  # of each request: the end of its parts so far, and its own
        for span in spans:
            assert (len(span.trace_id), len(span.span_id)) == (16, 8)
            if not span.parent_span_id:
                roots += 1
                ends[span.span_id] = (span.start_time_unix_nano, span.end_time_unix_nano)
                continue
            sums[span.name] += span.end_time_unix_nano - span.start_time_unix_nano
            at, end = ends[span.parent_span_id]
            assert abs(span.start_time_unix_nano - at) <= 1_000_000  # a part follows the one before
            ends[span.parent_span_id] = (span.end_time_unix_nano, end)
        assert all(abs(at - end) <= 1_000_000 for at, end in ends.values())  # parts end with the request
    assert roots == explained["slow"]["count"]
    assert {c["cause"]: sums[c["cause"]] for c in explained["causes"]} == {
        c["cause"]: c["time_ns"] for c in explained["causes"]
    }


def _prometheus_has(path, same):
    """The text format has the samples of OpenMetrics, each in a family of a type that the format knows."""
    text = path.read_text()
    values = lambda lines: {line for line in lines.splitlines() if not line.startswith("#")}  # noqa: E731
    assert values(text) == values(same.read_text())
    types = dict(line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE "))
    assert set(types.values()) == {"counter", "gauge", "summary"}
    for name in {line.split("{")[0].split()[0] for line in values(text)}:
        assert types[name] == ("counter" if name.endswith("_total") else types[name]), name
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=False)
        assert checked.returncode == 0


def _openmetrics_equals(explained, path):
    """Returns the time of threads in seconds, by cause."""
    parse = import_module("prometheus_client.openmetrics.parser").text_string_to_metric_families
    text = path.read_text()
    assert text.endswith("# EOF\n")
    by_cause, values = defaultdict(Counter), {}
    for sample in (sample for family in parse(text) for sample in family.samples):
        if "cause" in sample.labels:
            by_cause[sample.name][sample.labels["cause"]] += sample.value
        else:
            values[sample.name, sample.labels.get("quantile", "")] = sample.value
    requests = explained["requests"]
    wanted = {
        ("forktail_requests_total", ""): requests["count"],
        ("forktail_slow_requests_total", ""): explained["slow"]["count"],
        ("forktail_request_errors_total", ""): requests["errors"],
        ("forktail_episodes_total", ""): len(explained["episodes"]),
    }
    assert {key: values[key] for key in wanted} == wanted
    for name, quantile in SHARES.items():
        latency_ns = values["forktail_latency_seconds", quantile] * 1e9
        assert latency_ns == pytest.approx(requests["latency_ns"][name], rel=0, abs=1), name
    for cause in explained["causes"]:
        blamed_ns = by_cause["forktail_blamed_seconds_total"][cause["cause"]] * 1e9
        assert blamed_ns == pytest.approx(cause["time_ns"], rel=0, abs=10), cause
    return by_cause["forktail_thread_seconds_total"]
