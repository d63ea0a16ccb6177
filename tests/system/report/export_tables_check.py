# SPDX-License-Identifier: MIT
"""Reads an exported run with DuckDB and pyarrow, and compares it with the output of `forktail explain --json`.

    export_tables_check.py EXPLAINED.json PARQUET_DIR CSV_DIR

Sums are compared to the nanosecond. Prints each difference and exits with 1 if there is one.
"""
import fractions
import json
import math
import os
import sys

import duckdb
import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet

explained, parquet_dir, csv_dir = sys.argv[1:4]
with open(explained) as f:
    said = json.load(f)
db = duckdb.connect()
db.execute("set TimeZone = 'UTC'")
wrong = []


def same(what, found, wanted):
    if found != wanted:
        wrong.append(f"{what}: {found!r}, where explain says {wanted!r}")


def rows(query):
    return db.sql(query).fetchall()


def one(query):
    return rows(query)[0][0]


tables = sorted(name[:-8] for name in os.listdir(parquet_dir))
same("tables", tables, sorted(name[:-4] for name in os.listdir(csv_dir) if name.endswith(".csv")))
for table in tables:
    db.execute(f"create view {table} as select * from read_parquet('{parquet_dir}/{table}.parquet')")

causes = {c["cause"]: (c["requests"], c["direct_ns"], c["queued_ns"]) for c in said["causes"]}
same("causes by DuckDB", {r[0]: tuple(map(int, r[1:])) for r in rows(
    "select cause, count(distinct request), sum(direct_ns), sum(queued_ns) from parts group by 1")}, causes)
parts = parquet.read_table(f"{parquet_dir}/parts.parquet")
by_cause = parts.group_by("cause").aggregate([("total_ns", "sum")]).to_pydict()
same("causes by pyarrow", dict(zip(by_cause["cause"], by_cause["total_ns_sum"])),
     {cause: direct + queued for cause, (_, direct, queued) in causes.items()})
same("the table of causes", {r[0]: r[1] for r in rows("select cause, total_ns from causes")},
     {c["cause"]: c["time_ns"] for c in said["causes"]})
same("parts that don't sum to their request's latency", one(
    "select count(*) from (select request, sum(total_ns) total, any_value(latency_ns) latency from parts group by 1) "
    "where total <> latency"), 0)
same("requests", one("select count(*) from requests"),
     said["requests"]["count"] if said["requests"]["from"] == "request-log" else 0)
if said["requests"]["from"] == "request-log":
    same("slow requests in the log", one("select count(*) from requests where slow"), said["slow"]["count"])
    same("slow time in the log", int(one("select coalesce(sum(latency_ns), 0) from requests where slow")),
         said["slow"]["time_ns"])
    same("requests' numbers", one("select count(distinct request) from requests"), said["requests"]["count"])
    said_latency = said["requests"]["latency_ns"]
    answered = parquet.read_table(f"{parquet_dir}/requests.parquet", columns=["latency_ns", "status"])
    answered = answered.filter(compute.is_in(answered["status"], pyarrow.array(["ok", "miss"])))["latency_ns"].sort()
    same("answered requests", len(answered), said["requests"]["count"] - said["requests"]["errors"])
    for name, share in (("p50", "0.5"), ("p90", "0.9"), ("p99", "0.99"), ("p99.9", "0.999"), ("p99.99", "0.9999"), ("max", "1")):
        if len(answered) == 0:
            break
        # By rank, because quantile_disc's result for a share of some thousands depends on its rounding.
        rank = math.ceil(fractions.Fraction(share) * len(answered))
        same(f"{name} by DuckDB", one("select latency_ns from requests where status in ('ok', 'miss') "
                                      f"order by latency_ns limit 1 offset {max(rank, 1) - 1}"), said_latency[name])
        same(f"{name} by pyarrow", answered[max(rank, 1) - 1].as_py(), said_latency[name])
    same("due times that are not due_ns' own", one(
        "select count(distinct epoch_ns(due_time) - due_ns) > 8 from requests"), False)
same("slow requests", one("select count(*) from slow"), said["slow"]["count"])

# What only the server's kernel knows: in its own log, or joined with the log of a load generator.
seen = {c: one(f"select count({c}) from requests") for c in (
    "server_arrived_ns", "read_ns", "answered_ns", "written_ns", "request_bytes", "answer_bytes")}
split = said["requests"].get("network_split", {"known": 0, "requests": 0})
joined = split["known"]
alone = said["requests"]["count"] if [load["source"] for load in said["loads"]] == ["kernel"] else 0
same("requests with times of the kernel", (seen["server_arrived_ns"], seen["answered_ns"]), (joined, joined))
same("requests with sizes", (seen["request_bytes"], seen["answer_bytes"]), (alone, alone))
same("reads and writes known", (seen["read_ns"] > 0, seen["written_ns"] > 0), (joined + alone > 0, alone > 0))
same("times in another order", one("""
    select count(*) from requests where sent_ns > coalesce(server_arrived_ns, sent_ns)
        or not coalesce(server_arrived_ns, sent_ns) <= read_ns or read_ns > coalesce(answered_ns, end_ns)
        or coalesce(answered_ns, end_ns) > end_ns or written_ns < end_ns"""), 0)
same("answers to SET that are not +OK", one(
    "select count(*) from requests where op = 'SET' and (answer_bytes <> 5 or request_bytes <= answer_bytes)"), 0)
places = ["to_server_ns", "unread_at_server_ns", "to_client_ns"]
same("the network split", [int(n) for n in rows(
    f"select count(to_server_ns), {', '.join(f'coalesce(sum({p}), 0)' for p in places)} from slow")[0]],
     [split["requests"], *(split.get(p, 0) for p in places)])
same("connections with a client", one("select count(client) from connections"),
     one("select count(*) from connections") if alone else 0)
same("episodes", rows("select start_ns, requests, time_ns from episodes order by episode"),
     [(e["start_ns"], e["requests"], e["time_ns"]) for e in said["episodes"]])
same("evidence", [r[0] for r in rows("select sentence from evidence order by episode, position")],
     [s for e in said["episodes"] for s in e["evidence"]])

# With every span and tally once, they sum to the threads' accounts.
accounts = {}
for tid, start, cause, ns in rows("""
        select t.tid, t.start_ns, x.cause, sum(x.ns)::bigint from threads t join (
            select thread, cause, on_cpu_ns + runnable_ns + blocked_ns ns from spans where not off_cpu
            union all select thread, cause, blocked_ns from spans where off_cpu
            union all select thread, wait_cause, runnable_ns from spans where off_cpu
            union all select thread, cause, total_ns from tallies) x using (thread)
        where x.ns > 0 group by 1, 2, 3"""):
    accounts.setdefault((tid, start), {})[cause] = ns
threads = said["account"]["threads"]
same("accounts", accounts, {(t["tid"], t["start_ns"]): t["by_cause"] for t in threads if t["by_cause"]})
same("threads", one("select count(*) from threads"), len(threads))
same("the run's row", rows("select requests, slow_requests, threshold_ns, p99_9_ns, drops from runs"),
     [(said["requests"]["count"], said["slow"]["count"], said["slow"]["threshold_ns"],
       said["requests"]["latency_ns"]["p99.9"], said["drops"]["count"])])

# CSV, read with Parquet's types, has the same rows.
for table in tables:
    types = {name: kind for name, kind in rows(f"select column_name, column_type from (describe {table})")}
    db.execute(f"create table csv_{table} as select * from read_csv('{csv_dir}/{table}.csv', header = true, "
               f"columns = {json.dumps(types)}, allow_quoted_nulls = false, auto_detect = false, quote = '\"', "
               "escape = '\"', new_line = '\\r\\n')")
    n = one(f"select count(*) from {table}")
    same(f"rows of {table}.csv", one(f"select count(*) from csv_{table}"), n)
    same(f"rows of {table}.parquet that {table}.csv has not", one(
        f"select count(*) from (select * from {table} except all select * from csv_{table})"), 0)
    same(f"run ids in {table}", one(f"select count(distinct run_id) from {table}"), 1 if n else 0)
    written = parquet.ParquetFile(f"{parquet_dir}/{table}.parquet")
    same(f"what {table}.parquet says of its rows", written.metadata.num_rows, n)
    if n:
        chunk = written.metadata.row_group(0).column(0)
        same(f"how {table}.parquet is kept", (chunk.compression, chunk.is_stats_set), ("ZSTD", True))

for line in wrong:
    print(line[:2000])
sys.exit(1 if wrong else 0)
