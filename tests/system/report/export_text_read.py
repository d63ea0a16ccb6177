# SPDX-License-Identifier: MIT
# Reads forktail's exports with third-party libraries, and checks them against explain --json:
#   python export_text_read.py DIRECTORY
# The directory has explain.json and run.hlog, run.folded, run.speedscope.json, run.otlp.jsonl and run.prom.
import base64
import collections
import fractions
import importlib.util
import json
import math
import pathlib
import sys

from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2
from prometheus_client.openmetrics.parser import text_string_to_metric_families

if importlib.util.find_spec("hdrh"):
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader

directory = pathlib.Path(sys.argv[1])
explained = json.loads((directory / "explain.json").read_text())
has_log = explained["requests"]["from"] == "request-log"


def equal(got, wanted, what):
    assert got == wanted, f"{what}: {got} rather than {wanted}"


def near(got, wanted, off, what):
    assert abs(got - wanted) <= off, f"{what}: {got} rather than {wanted}"


def account():
    """Time of servers' threads by cause, without idle time."""
    times = collections.Counter()
    for thread in explained["account"]["threads"]:
        if not thread["client"]:
            times.update(thread["by_cause"])
    return times


def hlog():
    everything = HdrHistogram(1, 2**42 - 1, 3)
    reader = HistogramLogReader(str(directory / "run.hlog"), everything)
    tags = set()
    while True:
        interval = reader.get_next_interval_histogram()
        if interval is None:
            break
        tags.add(interval.get_tag())
        everything.add(interval)
    requests = explained["requests"]
    equal(everything.get_total_count(), requests["count"] - requests["errors"] if has_log else 0, "hlog's requests")
    if has_log and everything.get_total_count():
        count = everything.get_total_count()
        for share, name in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"), ("0.999", "p99.9"), ("0.9999", "p99.99"), ("1", "max")):
            exact = requests["latency_ns"][name]
            rank = math.ceil(fractions.Fraction(share) * count)  # which the reader would round to the nearest
            near(everything.get_value_at_percentile(100 * rank / count), exact, exact * 0.001 + 1, f"hlog's {name}")
        assert tags and None not in tags, tags


def folded_sums():
    sums = collections.Counter()
    for line in (directory / "run.folded").read_text().splitlines():
        stack, us = line.rsplit(" ", 1)
        sums[stack.split(";")[0]] += int(us)
    return sums


def speedscope():
    whole = json.loads((directory / "run.speedscope.json").read_text())
    equal(whole["$schema"], "https://www.speedscope.app/file-format-schema.json", "speedscope's schema")
    names = [frame["name"] for frame in whole["shared"]["frames"]]
    sums, stacks = collections.Counter(), collections.defaultdict(set)
    for profile in whole["profiles"]:
        equal((profile["type"], profile["unit"]), ("sampled", "nanoseconds"), "speedscope's profile")
        equal(len(profile["samples"]), len(profile["weights"]), "speedscope's weights")
        equal(profile["endValue"] - profile["startValue"], sum(profile["weights"]), "speedscope's length")
        for sample, weight in zip(profile["samples"], profile["weights"]):
            sums[names[sample[0]]] += weight
            stacks[names[sample[0]]].add(tuple(sample))
    return sums, stacks


def otlp():
    roots, sums = 0, collections.Counter()
    for line in (directory / "run.otlp.jsonl").read_text().splitlines():
        data = json.loads(line)
        for resource in data["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:  # ids are hexadecimal in OTLP, base64 in protobuf's JSON
                    for key in ("traceId", "spanId", "parentSpanId"):
                        if key in span:
                            span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        for resource in json_format.ParseDict(data, trace_pb2.TracesData()).resource_spans:
            assert {"service.name", "host.name"} <= {a.key for a in resource.resource.attributes}
            for scope in resource.scope_spans:
                ends = {}
                for span in scope.spans:
                    equal((len(span.trace_id), len(span.span_id)), (16, 8), "otlp's ids")
                    if not span.parent_span_id:
                        roots += 1
                        ends[span.span_id] = (span.start_time_unix_nano, span.end_time_unix_nano)
                        continue
                    length = span.end_time_unix_nano - span.start_time_unix_nano
                    sums[span.name] += length
                    at, end = ends[span.parent_span_id]
                    near(span.start_time_unix_nano, at, 1_000_000, "otlp's part follows the one before")
                    ends[span.parent_span_id] = (span.end_time_unix_nano, end)
                for at, end in ends.values():
                    near(at, end, 1_000_000, "otlp's parts end with the request")
    equal(roots, explained["slow"]["count"], "otlp's requests")
    for cause in explained["causes"]:
        equal(sums[cause["cause"]], cause["time_ns"], f"otlp's {cause['cause']}")


def openmetrics():
    values, threads = {}, collections.Counter()
    text = (directory / "run.prom").read_text()
    assert text.endswith("# EOF\n")
    blamed = collections.Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "forktail_thread_seconds_total":
                threads[sample.labels["cause"]] += sample.value
            elif sample.name == "forktail_blamed_seconds_total":
                blamed[sample.labels["cause"]] += sample.value
            else:
                values[sample.name, sample.labels.get("quantile", "")] = sample.value
    equal(values["forktail_requests_total", ""], explained["requests"]["count"], "openmetrics' requests")
    equal(values["forktail_slow_requests_total", ""], explained["slow"]["count"], "openmetrics' slow requests")
    equal(values["forktail_request_errors_total", ""], explained["requests"]["errors"], "openmetrics' errors")
    equal(values["forktail_episodes_total", ""], len(explained["episodes"]), "openmetrics' episodes")
    for quantile, name in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"), ("0.999", "p99.9"), ("0.9999", "p99.99"), ("1", "max")):
        near(values["forktail_latency_seconds", quantile] * 1e9, explained["requests"]["latency_ns"][name], 1, f"openmetrics' {name}")
    for cause in explained["causes"]:
        near(blamed[cause["cause"]] * 1e9, cause["time_ns"], 10, f"openmetrics' {cause['cause']}")
    return threads


if importlib.util.find_spec("hdrh"):
    hlog()
else:
    print("no hdrhistogram for this machine (tests/python/requirements.txt): run.hlog is not read")
otlp()
threads = openmetrics()
folded, (scope, stacks) = folded_sums(), speedscope()
for cause, ns in account().items():
    near(threads[cause] * 1e9, ns, 100, f"openmetrics' {cause}")  # they are doubles here
    if cause != "idle":
        equal(scope[cause], ns, f"speedscope's {cause}")
        near(folded[cause] * 1000, ns, 500 * len(stacks[cause]), f"folded's {cause}")
assert set(folded) <= set(scope) <= set(threads)
print("equal")
