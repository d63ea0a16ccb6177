// SPDX-License-Identifier: MIT
// Evidence that is not of recorded threads: counters of the host and its cgroups, and the server's own logs.
#include "tests/support/catch.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/evidence/evidence_of.h"

#include "analysis/explain.h"

using namespace forktail::analysis;
using namespace forktail::test;

TEST_CASE("stolen CPU time is evidence where it may matter")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.run.cpus = 2;
	auto steal = [&](std::vector<Sample> samples) {
		b.run.series = {{"host.cpu.steal", "percent", {}, std::move(samples)}};
		b.Finish();
		return EvidenceOf(&b);
	};
	SECTION("in the reading that covers it")
	{
		holds(steal({{kBase - 100 * ms, 0}, {kBase + 100 * ms, 20}, {kBase + 200 * ms, 0}}),
		      "the hypervisor took 40.0 ms of CPU time from this host (steal) within 100 ms");
	}
	SECTION("an unchanged reading counts for the interval, together with the reading before it")
	{
		holds(steal({{kBase - 500 * ms, 10}}),
		      "the hypervisor took 40.0 ms of CPU time from this host (steal) within 200 ms");
	}
	SECTION("of a recorder that says how often it reads, in the time since the reading before")
	{
		b.run.metrics_ns = 500 * ms;
		holds(steal({{kBase - 500 * ms, 0},
			     {kBase - 100 * ms, 0},
			     {kBase + 100 * ms, 20},
			     {kBase + 600 * ms, 0}}),
		      "the hypervisor took 80.0 ms of CPU time from this host (steal) within 200 ms");
	}
	SECTION("of such a recorder, at most the time that a reading covers")
	{
		b.run.metrics_ns = 500 * ms;
		holds(steal({{kBase - 900 * ms, 0}, {kBase + 100 * ms, 20}, {kBase + 600 * ms, 0}}),
		      "the hypervisor took 200 ms of CPU time from this host (steal) within 500 ms");
	}
	SECTION("little compared with the longest request")
	{
		CHECK(steal({{kBase - 100 * ms, 0}, {kBase + 100 * ms, 10}, {kBase + 200 * ms, 0}})
			  .find("steal") == std::string::npos);
	}
	SECTION("at another time")
	{
		CHECK(steal({{kBase - 100 * ms, 90}, {kBase, 0}}).find("steal") == std::string::npos);
	}
}

TEST_CASE("kernel events that the host counts are evidence where they may matter")
{
	RunBuilder b;
	OneRequest(&b, 0);
	auto evidence = [&](const char *name, std::vector<Sample> samples) {
		b.run.series = {{name, "", {}, std::move(samples)}};
		b.Finish();
		return EvidenceOf(&b);
	};
	SECTION("an OOM kill, in a recording with readings at known times")
	{
		b.run.metrics_ns = 500 * ms;
		holds(evidence("host.oom_kills", {{kBase - 100 * ms, 2}, {kBase + 300 * ms, 3}}),
		      "the kernel's OOM killer killed 1 process on this host, at a time known to within 400 "
		      "ms\n");
	}
	SECTION("an OOM kill")
	{
		holds(evidence("host.oom_kills", {{kBase - 500 * ms, 2}, {kBase + 60 * ms, 3}}),
		      "the kernel's OOM killer killed 1 process on this host, at a time known to within 100 "
		      "ms\n");
	}
	SECTION("before and after")
	{
		CHECK(evidence("host.oom_kills",
			       {{kBase - 500 * ms, 2}, {kBase - 1 * ms, 3}, {kBase + 201 * ms, 4}})
			  .find("OOM") == std::string::npos);
	}
	SECTION("the first reading is no event")
	{
		CHECK(evidence("host.page_cache_drops", {{kBase + 60 * ms, 3}}).find("dropped") ==
		      std::string::npos);
	}
	SECTION("dropped caches")
	{
		holds(evidence("host.page_cache_drops", {{kBase, 2}, {kBase + 60 * ms, 3}}),
		      "the page cache was dropped (/proc/sys/vm/drop_caches)");
		holds(evidence("host.slab_drops", {{kBase, 2}, {kBase + 160 * ms, 3}}),
		      "caches of files and directories were dropped");
	}
}

TEST_CASE("the server's own logs of commands are evidence, slow ones before large ones")
{
	RunBuilder b;
	OneRequest(&b, 0);
	auto report = [&](uint64_t t_ns, const char *kind, const std::string &rest) {
		b.run.reports.push_back({t_ns, kind, 0, R"({"t_error_ns":10000000,)" + rest + "}"});
	};
	report(kBase + 50 * ms, "large-reply", R"("bytes":12000000,"command":["LRANGE","big","0","-1"])");
	report(kBase + 900 * ms, "large-request", R"("bytes":12000000,"command":["SET","big"])");
	report(kBase + 60 * ms, "slowlog", R"("duration_us":70000,"command":["SORT","big"])");
	report(kBase + 60 * ms, "slowlog", R"("duration_us":20,"command":["GET","small"])");
	b.Finish();
	const std::string evidence = EvidenceOf(&b);
	holds(evidence, "Valkey's command log lists LRANGE big 0 -1 with a reply of 12.0 MB, at a time known "
			"to within 10.0 ms\n");
	const size_t slow = evidence.find("Redis' slow log lists SORT big with 70.0 ms");
	CHECK(slow < evidence.find("Valkey's command log"));
	CHECK(evidence.find("SET big") == std::string::npos);
	CHECK(evidence.find("GET small") == std::string::npos);
}

TEST_CASE("an entry of the slow log is evidence where the iteration is that it fits")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Thread(200, 0, 900 * ms, 0, "redis-server", kServer);
	b.run.reports.push_back(
	    {kBase + 400 * ms, "slowlog", 0,
	     R"({"t_error_ns":900000000,"duration_us":368000,"command":["LCS","a","b"]})"});
	b.run.reports.push_back({kBase + 400 * ms, "slowlog", 0,
				 R"({"t_error_ns":900000000,"duration_us":70000,"command":["SORT","big"]})"});
	b.Frame(FT_ITERATION, 10 * ms, 81 * ms);
	b.Frame(FT_ITERATION, 500 * ms, 869 * ms, 0, UINT64_MAX, 200);
	b.Finish();
	const std::string evidence = EvidenceOf(&b);
	// The one runs in this episode, whatever the second in which it was logged. The other runs later.
	holds(evidence, "Redis' slow log lists SORT big with 70.0 ms\n");
	CHECK(evidence.find("LCS") == std::string::npos);
}

TEST_CASE("memory limits of cgroups are evidence, of the innermost cgroups that reached one")
{
	RunBuilder b;
	OneRequest(&b, 0);
	auto add = [&](const char *name, const char *cgroup, double before, double after) {
		Series series = {name, "", {}, {{kBase, before}, {kBase + 60 * ms, after}}};
		if (*cgroup)
			series.labels["cgroup"] = cgroup;
		b.run.series.push_back(series);
	};
	add("cgroup.memory.limit_hits", "/pods/x", 5, 40);
	add("cgroup.memory.limit_hits", "/pods", 5, 41);
	add("cgroup.memory.limit_hits", "/pods/other", 5, 5);
	add("cgroup.memory.high_hits", "/pods", 0, 1);
	SECTION("limits")
	{
		b.Finish();
		const std::string evidence = EvidenceOf(&b);
		holds(evidence,
		      "the memory limit was reached by the cgroup /pods/x (35 times); a thread that "
		      "reaches it has to reclaim memory (counted between two readings, usually 100 "
		      "ms apart)\n");
		holds(evidence, "memory.high was reached by the cgroup /pods (1 time); ");
		CHECK(evidence.find("/pods (36") == std::string::npos);
		CHECK(evidence.find("/pods/other") == std::string::npos);
		CHECK(evidence.find("OOM") == std::string::npos);
	}
	SECTION("of two targets in different cgroups")
	{
		add("cgroup.memory.limit_hits", "/pods/another", 0, 1);
		b.Finish();
		holds(EvidenceOf(&b), "the memory limit was reached by the cgroup /pods/x (35 times), the "
				      "cgroup /pods/another (1 time); ");
	}
	SECTION("of many targets")
	{
		for (const char *cgroup : {"/a", "/b", "/c", "/d"})
			add("cgroup.memory.limit_hits", cgroup, 0, 1);
		b.Finish();
		holds(EvidenceOf(&b), "the cgroup /a (1 time), the cgroup /b (1 time), 2 others; ");
	}
	SECTION("an OOM kill in one")
	{
		add("host.oom_kills", "", 2, 4);
		add("cgroup.memory.oom_kills", "/pods/x", 0, 1);
		b.Finish();
		holds(EvidenceOf(&b),
		      "killed 2 processes on this host, of these in the cgroup /pods/x (1 process), at");
	}
}

TEST_CASE("what the server counted is the growth of its counters")
{
	RunBuilder b;
	auto count = [&](std::vector<Sample> cycles, std::vector<Sample> loop, std::vector<Sample> commands) {
		b.run.series = {{"redis.eventloop_cycles", "", {}, std::move(cycles)},
				{"redis.eventloop_duration_sum", "", {}, std::move(loop)},
				{"redis.eventloop_duration_cmd_sum", "", {}, std::move(commands)}};
		return ServerCountOf(b.run);
	};
	const uint64_t at = kBase, later = kBase + 2000 * ms;
	const auto known =
	    count({{at, 100}, {later, 4100}}, {{at, 500}, {kBase + 900 * ms, 700}, {later, 1'200'500}},
		  {{at, 90}, {later, 300'090}});
	REQUIRE(known);
	CHECK(known->ns == 2000 * ms);
	CHECK(known->cycles == 4000);
	CHECK(known->loop_ns == 1200 * ms);
	CHECK(known->command_ns == 300 * ms);
	// One answer, and a restart.
	CHECK(!count({{at, 100}}, {{at, 500}}, {{at, 90}}));
	CHECK(!count({{at, 100}, {later, 7}}, {{at, 500}, {later, 30}}, {{at, 90}, {later, 3}}));
	b.run.series.clear();
	CHECK(!ServerCountOf(b.run));
}
