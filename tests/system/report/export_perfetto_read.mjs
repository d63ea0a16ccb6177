// SPDX-License-Identifier: MIT
// Reads a trace with Perfetto's own trace processor and checks it against explain --json:
//   node export_perfetto_read.mjs BUILD_PYTHON TRACE EXPLAIN_JSON
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { findTraceProcessor, TraceProcessor } from "../../support/trace_processor.mjs";

const [python, trace, json] = process.argv.slice(2);
console.warn = () => {}; // it prints how fast it reads
const explained = JSON.parse(readFileSync(json, "utf8"));
const processor = await TraceProcessor.load(findTraceProcessor(python), trace);
const value = (sql) => processor.value(sql);

const wrong = await processor.query(
  "select name, value from stats where value > 0 and (severity in ('error', 'data_loss') or name like 'clock_sync_failure%')");
assert.deepEqual(wrong, []);
assert.equal(await value("select count(*) from slice where dur < 0"), 0);

// Slow requests and the parts of their time, to the nanosecond.
assert.equal(await value("select count(*) from slice where category = 'slow-request'"), explained.slow.count);
const causes = await processor.query(
  "select replace(key, 'debug.', '') cause, sum(int_value) ns from slice join args using (arg_set_id) " +
    "where category = 'slow-request' group by 1");
const sums = Object.fromEntries(causes.map((c) => [c.cause, c.ns]));
for (const cause of explained.causes) assert.equal(sums[cause.cause], cause.time_ns, cause.cause);
assert.equal(
  await value("select coalesce(sum(dur), 0) from slice where category = 'slow-request'"),
  explained.causes.reduce((sum, c) => sum + c.time_ns, 0));

// An arrow goes from a slow request to a span with the name of one of its parts.
const arrows = await processor.query(
  "select o.category as from_category, i.name as cause, exists(select 1 from args a where a.arg_set_id = o.arg_set_id and " +
    "a.key = 'debug.' || i.name) as is_part from flow f join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in");
for (const arrow of arrows) if (arrow.from_category === "slow-request") assert.equal(arrow.is_part, 1, arrow.cause);
if (process.argv[5] === "fork") {
  assert.ok(await value(
    "select count(*) from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in " +
      "where 'slow-request' in (a.category, b.category) and 'fork' in (a.name, b.name)") > 0);
  assert.ok(arrows.length > 0);
  assert.ok(await value("select count(*) from slice where name = 'fork'") >= 1);
  assert.ok(await value("select count(*) from perf_sample where callsite_id is not null") > 0);
  assert.ok(await value(
    "select count(*) from thread_track t join slice s on s.track_id = t.id join thread using (utid) where thread.name like 'redis-server%'") > 0);
  assert.ok(await value(
    "select count(*) from counter join counter_track t on t.id = counter.track_id where t.name like 'target.rss%'") > 0);
}

// Counters of each second sum to all answered requests, and their largest maximum is the run's.
const counted = (name, how) =>
  value(`select coalesce(${how}(value), 0) from counter join counter_track t on t.id = counter.track_id where t.name = '${name}'`);
if (explained.requests.from === "request-log") {
  assert.equal(await counted("Requests per second", "sum"), explained.requests.count - explained.requests.errors);
  assert.equal(await counted("Latency max", "max"), explained.requests.latency_ns.max);
}
console.log("equal");
process.exit(0);
