// SPDX-License-Identifier: MIT
// What belongs to a snapshot: its fork, copies, requests, memory, and how it is said.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/snapshots.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint32_t kChild = 777;
constexpr double kGb = 1e9;

// A request each millisecond for a second. BGSAVE forks at 100 ms for 20 ms, its child ends at 600 ms.
struct SnapshotRun {
	RunBuilder b;

	explicit SnapshotRun(const std::string &role = "snapshot child", uint32_t flags = FT_THREAD_ENDED)
	{
		b.Thread(kServer, 0, 1000 * ms);
		auto &child =
		    b.Thread(kChild, 120 * ms, 600 * ms, FT_THREAD_MAIN | FT_THREAD_CHILD | flags, role);
		child.parent_tgid = kServer;
		b.run.targets.resize(1);
		b.run.targets[0].pid = kServer;
		b.run.targets[0].comm = "redis-server";
		b.run.targets[0].cgroup = "/pods/x";
		b.run.servers = {"127.0.0.1:6379"};
		b.run.server_pids = {kServer};
		b.Frame(FT_FORK, 100 * ms, 120 * ms).arg[0] = kChild;
		b.Frame(FT_COW_COPY, 150 * ms, 151 * ms);
		b.Tally(FT_COW_COPY, 200 * ms, 201 * ms, 300 * us, 90);
		b.Tally(FT_COW_COPY, 700 * ms, 701 * ms, 300 * us, 50); // without a child
		b.Tally(FT_COW_COPY, 300 * ms, 301 * ms, 100 * us, 4, kChild);
		b.run.writes = {{kBase + 200 * ms, kBase + 201 * ms, 5'000'000, 1, kChild, ""},
				{kBase + 200 * ms, kBase + 201 * ms, 7'000'000, 1, 5, "dd"}};
		for (uint64_t t = 0; t < 1000; t++)
			b.Request(t * ms, t * ms, t * ms + (t >= 100 && t < 120 ? 20 * ms : 100 * us), 0,
				  t % 2);
		b.Loop("closed");
		b.run.ops = {"GET", "SET"};
	}
	void Level(const std::string &name, const std::string &label, const std::string &value, double before,
		   double during)
	{
		b.run.series.push_back(
		    {name,
		     "bytes",
		     {{label, value}},
		     {{kBase, before}, {kBase + 300 * ms, during}, {kBase + 800 * ms, 1}}});
	}
	Snapshots Find()
	{
		Run &run = b.Finish();
		SnapshotFinder finder(run);
		finder.Add(run, 0, UINT64_MAX);
		WholeLog log(run);
		finder.Count(run, &log, {kServer});
		for (uint64_t t = 100; t < 120; t++) {
			SlowRequest slow = {};
			slow.due_ns = slow.since_ns = kBase + t * ms;
			slow.latency_ns = 20 * ms;
			slow.sent_ns = slow.due_ns;
			slow.part_count = 1;
			const Part forked = {Cause::Fork, 0, 20 * ms, 0},
				   other = {Cause::RunQueue, 0, 20 * ms, 0};
			finder.AddSlow(run, slow, t < 117 ? &forked : &other, {kServer});
		}
		return finder.Result(run);
	}
};

} // namespace

TEST_CASE("a snapshot has its fork, its copies until the child ended, and the requests due meanwhile")
{
	SnapshotRun r;
	const Snapshots found = r.Find();
	REQUIRE(found.all.size() == 1);
	const Snapshot &one = found.all[0];
	CHECK(one.command == "BGSAVE");
	CHECK(one.start_ns == kBase + 100 * ms);
	CHECK(one.end_ns == kBase + 600 * ms);
	CHECK(one.ended);
	CHECK(one.fork_ns == 20 * ms);
	CHECK(one.copies == 91);
	CHECK(one.copied_bytes() == 91 * 4096);
	CHECK(one.copy_ns == 1300 * us);
	CHECK(one.child_copies == 4);
	CHECK(one.written_bytes == 5'000'000);
	CHECK(one.requests == 501);
	CHECK(one.slowed == 17);
	CHECK(one.writes == 250);
	CHECK(one.during.max == 20 * ms);
	CHECK(found.outside.max == 100 * us);
	CHECK(found.outside_count == 499);
	CHECK(one.curve == std::vector<std::pair<uint64_t, uint64_t>>{{kBase + 150 * ms, 4096},
								      {kBase + 201 * ms, 91 * 4096}});
}

TEST_CASE("memory is that of the time of the snapshot, and unknown if it was not recorded")
{
	SnapshotRun bare;
	const Snapshot none = bare.Find().all[0];
	CHECK_FALSE(none.rss_bytes);
	CHECK_FALSE(none.peak_bytes());
	CHECK_FALSE(none.available_bytes);
	CHECK_FALSE(none.cgroup_left_bytes);

	SnapshotRun r;
	const std::string pid = std::to_string(kServer);
	r.Level("target.rss", "pid", pid, 1 * kGb, 1.1 * kGb);
	r.Level("target.rss", "pid", "5", 9 * kGb, 9 * kGb);
	r.Level("host.memory.available", "", "", 8 * kGb, 7 * kGb);
	r.Level("cgroup.memory.usage", "cgroup", "/pods", 2 * kGb, 3 * kGb);
	r.Level("cgroup.memory.limit", "cgroup", "/pods", 4 * kGb, 4 * kGb);
	r.Level("cgroup.memory.inactive_file", "cgroup", "/pods", 0, 0.5 * kGb);
	r.b.run.targets.push_back({});
	r.b.run.targets[1].pid = 5;
	r.Level("cgroup.memory.usage", "cgroup", "/pod", 2 * kGb, 3.9 * kGb); // of the other
	r.Level("cgroup.memory.limit", "cgroup", "/pod", 4 * kGb, 4 * kGb);
	const Snapshot one = r.Find().all[0];
	CHECK(one.rss_bytes == 1'000'000'000);
	CHECK(one.most_rss_bytes == 1'100'000'000);
	CHECK(one.peak_bytes() == 1'100'000'000 + 95 * 4096);
	CHECK(one.available_bytes == 7'000'000'000);
	CHECK(one.cgroup_left_bytes == 1'500'000'000);
}

TEST_CASE("a snapshot is one sentence; what is not known is left out")
{
	SnapshotRun r;
	Snapshots found = r.Find();
	CHECK(SnapshotText(r.b.run, found, found.all[0], kBase) ==
	      "BGSAVE at +0.100 s: fork 20.0 ms; copied 373 kB in 500 ms, 0.36 pages per write; slowed 17 "
	      "requests, "
	      "p99.9 during it 20.0 ms and 100 us outside; wrote 5.00 MB");
	found.all[0].fork_ns = 0;
	found.all[0].ended = false;
	found.all[0].requests = found.all[0].slowed = found.all[0].written_bytes = 0;
	found.all[0].writes.reset();
	CHECK(SnapshotText(r.b.run, found, found.all[0], kBase) ==
	      "BGSAVE at +0.100 s: fork too short to be recorded; copied 373 kB until the recording's end, "
	      "in 500 ms");
}

TEST_CASE("of a part of the recording, a snapshot says how much of it is explained")
{
	SnapshotRun r;
	r.Level("target.rss", "pid", std::to_string(kServer), 1 * kGb, 1.1 * kGb);
	Run &run = r.b.Finish();
	auto find = [&](uint64_t from_ns, uint64_t to_ns) {
		run.start_ns = kBase + from_ns;
		run.end_ns = kBase + to_ns;
		SnapshotFinder finder(run);
		finder.Add(run, run.start_ns, run.end_ns + 1);
		return finder.Result(run);
	};
	CHECK(find(0, 90 * ms).all.empty());
	CHECK(find(610 * ms, 1000 * ms).all.empty());

	const Snapshots late = find(160 * ms, 1000 * ms);
	REQUIRE(late.all.size() == 1);
	CHECK(late.all[0].explained_ns == 440 * ms);
	CHECK_FALSE(late.all[0].peak_bytes());
	CHECK(SnapshotText(run, late, late.all[0], kBase) ==
	      "BGSAVE at +0.120 s: fork not in the part explained, or short; copied 369 kB (0.04 % of "
	      "resident "
	      "memory) in the 440 ms explained of 480 ms; wrote 5.00 MB");

	const Snapshots early = find(0, 180 * ms);
	REQUIRE(early.all.size() == 1);
	CHECK(early.all[0].fork_ns == 20 * ms);
	CHECK(early.all[0].explained_ns == 80 * ms);
	CHECK(early.all[0].copied_bytes() == 4096);

	const Snapshots all = find(0, 1000 * ms);
	CHECK(all.all[0].whole());
	CHECK(all.all[0].peak_bytes());
}

TEST_CASE("only children that write a snapshot are snapshots")
{
	CHECK(SnapshotRun("child").Find().all.empty());
	CHECK(SnapshotRun("AOF rewrite child").Find().all[0].command == "BGREWRITEAOF");
	CHECK_FALSE(SnapshotRun("snapshot child", 0).Find().all[0].ended);
}

TEST_CASE("writes are unknown if not every request is in the log")
{
	SnapshotRun r;
	r.b.run.loads[0].only_slow = true;
	CHECK_FALSE(r.Find().all[0].writes);
}

TEST_CASE("writes are counted by what Redis says of a command, and unknown with scripts")
{
	SnapshotRun r;
	r.b.run.ops = {"lpos", "zremrangebyscore"};
	CHECK(r.Find().all[0].writes == 250);
	for (const char *code : {"EVALSHA", "other", "unknown"}) {
		SnapshotRun scripts;
		scripts.b.run.ops = {"GET", code};
		CHECK_FALSE(scripts.Find().all[0].writes);
	}
	SnapshotRun several; // an operation of several commands
	several.b.run.op_commands = {"GET", ""};
	CHECK_FALSE(several.Find().all[0].writes);
}

TEST_CASE("the copied bytes are a series that is 0 outside snapshots")
{
	SnapshotRun r;
	const Snapshots found = r.Find();
	AddCopiedSeries(found, &r.b.run);
	REQUIRE(r.b.run.series.size() == 1);
	const Series &series = r.b.run.series[0];
	CHECK(series.name == "target.snapshot_copied");
	CHECK(series.labels.at("pid") == std::to_string(kServer));
	REQUIRE(series.samples.size() == 4);
	CHECK(series.samples[0].value == 0);
	CHECK(series.samples[2].value == 91 * 4096);
	CHECK(series.samples[3].value == 0);
	CHECK(series.samples[3].t_ns == kBase + 600 * ms);
}
