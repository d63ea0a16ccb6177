// SPDX-License-Identifier: MIT
// The printed output: the text's sentences and columns, the JSON's keys, and the format of numbers.
#include "tests/support/catch.h"
#include "tests/support/explained.h"
#include "tests/support/json.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/run_builder.h"

#include <cerrno>
#include <cstdio>
#include <sstream>

#include "analysis/explain.h"
#include "analysis/text.h"
#include "common/format.h"

using namespace forktail::analysis;
using namespace forktail::common;
using namespace forktail::test;

namespace
{

// Explains a run built by hand as ExplainRun explains one that it has read.
Explained Explain(RunBuilder *b, Threshold threshold)
{
	Explained e;
	b->Finish();
	uint32_t thread = b->ThreadIndex();
	e.serving.push_back(thread == UINT32_MAX ? -1 : static_cast<int>(thread));
	const std::vector<Timeline> timelines = {thread == UINT32_MAX ? Timeline() : b->Timeline()};
	e.hop_threads = HopThreads(timelines);
	e.blame = BlameRun(b->run, timelines, threshold);
	e.episodes = FindEpisodes(&e.blame);
	FindEvidence(b->run, timelines, e.blame, ActivitiesOf(b->run), 4, 1000, &e.episodes);
	for (uint32_t t = 0; t < b->run.threads.size(); t++)
		e.accounts.push_back(AccountOf(b->run, t));
	e.zero_ns = kBase;
	e.measured_ns = 1000 * ms;
	e.run = std::move(b->run);
	FindOwnCode(&e);
	return e;
}

// A stall of 60 ms that is one frame of `owner`.
void StallRun(RunBuilder *b, ft_owner owner)
{
	b->Thread(kServer, 0, 1000 * ms);
	b->Frame(owner, 500 * ms, 560 * ms);
	b->Tally(FT_OWN_CODE, 0, 1000 * ms, 940 * ms);
	for (uint64_t t = 0; t < 400; t++)
		b->Request(t * ms, t * ms, t * ms + 100 * us);
	b->Request(500 * ms, 500 * ms, 561 * ms, 1);
	b->Loop("constant");
}

void ForkRun(RunBuilder *b)
{
	b->Thread(kServer, 0, 1000 * ms);
	b->Frame(FT_FORK, 500 * ms, 560 * ms);
	b->Off(FT_IDLE, 600 * ms, 900 * ms, 900 * ms);
	b->Tally(FT_OWN_CODE, 0, 1000 * ms, 640 * ms);
	for (uint64_t t = 0; t < 400; t++)
		b->Request(t * ms, t * ms, t * ms + 100 * us, 0, t % 2);
	b->Request(500 * ms, 500 * ms, 561 * ms, 1);
	b->Request(510 * ms, 511 * ms, 562 * ms, 2, 1, FT_STATUS_TIMEOUT);
	b->Loop("constant");
}

} // namespace

TEST_CASE("the cost of a copy outside its page fault is mentioned where it is not included")
{
	const std::string left_out = "the cost of a copy outside its page fault";
	for (const ft_owner owner : {FT_COW_COPY, FT_FORK}) {
		RunBuilder b;
		StallRun(&b, owner);
		const Explained e = Explain(&b, {});
		const std::string text = ExplainText(e, {});
		INFO(text);
		CHECK((text.find(left_out) != std::string::npos) == (owner == FT_COW_COPY));
	}
}

TEST_CASE("the text begins with the answer and stays within 100 columns")
{
	RunBuilder b;
	ForkRun(&b);
	Explained e = Explain(&b, {1 * ms, 0});
	e.run.cost.known = e.run.cost.bpf_known = e.run.cost.bpf_ns_is_estimate = true;
	e.run.cost.bpf_ns = 20 * ms;
	e.run.cost.recorder_cpu_ns = 5 * ms;
	e.run.cost.load_cpu_ns = 250 * ms;
	e.run.cost.recorder_rss_bytes = 23'000'000;
	e.run.cost.programs = {{"sched_switch", 100'000, 200, 20 * ms}};
	RecordingFile recorder;
	recorder.program = "forktail-record";
	recorder.start_ns = kBase;
	recorder.end_ns = kBase + 1000 * ms;
	e.run.files.push_back(recorder);
	e.server_count = {1000 * ms, 4000, 620 * ms, 155 * ms};
	e.run.warnings.push_back("load.forktail: 12.0 kB in 1 place could not be read");
	e.run.missing.push_back({"page faults", "perf events are forbidden here"});
	e.run.clocks.push_back({kBase, 1'700'000'000'250'000'000, 0, 0});
	// Its first word ends where the text of the following lines begins.
	e.episodes[0].evidence.push_back("74 words");
	std::string text = ExplainText(e, {});

	holds(text, "\n   74 words\n");
	holds(text, "402 requests in 1.00 s, open loop at 1,000/s, 1 error (1 timed out)\n");
	holds(text, "p50 100 us   p99 100 us   p99.9 61.0 ms   p99.99 61.0 ms   max 61.0 ms\n");
	holds(text, "2 requests of 1.00 ms or more in 1 episode; 100 % of their time is explained\n");
	holds(text, "\nfork                   2     109 ms   96.6 %         1.00 ms       1.00 ms\n");
	holds(text, "1  +0.500 s  62.0 ms  2 requests, worst 61.0 ms: fork 97 %, server-busy 3 %\n");
	holds(text, "\n   fork() copied page tables for 60.0 ms\n");
	holds(text,
	      "Server thread redis-server (100): 1.00 s recorded, 100 % of it accounted for: own code 64.0 %,"
	      "\nstalls 6.0 %, idle 30.0 %. By its own count (INFO, over 1.00 s) its event loop was busy "
	      "62.0 % of"
	      "\nthe time, in commands 15.5 %; it does not count polling and waiting for a CPU.\n");
	holds(text, "\n+0.000 s is 2023-11-14 22:13:20.250 UTC.\n");
	holds(text, "No events were dropped.\n");
	holds(text, "Recording cost: BPF programs took 20.0 ms (2.0 % of one CPU, estimated), 100,000 runs "
		    "of 200 ns on"
		    "\naverage; the recorder took 5.00 ms of CPU (0.50 %), 250 ms more to load its programs, "
		    "and 23.0 MB of"
		    "\nmemory.\n");
	e.run.cost.bpf_known = false;
	e.run.cost.windows = 4;
	holds(flat(ExplainText(e, {})),
	      "BPF programs ran 100,000 times; the recording is too short to measure their time "
	      "(4 windows). Record for 2 s or more; the recorder");
	holds(text, "Warning: load.forktail: 12.0 kB in 1 place could not be read.\n");
	holds(text, "Not recorded: page faults: perf events are forbidden here.\n");
	CHECK(text.find('\033') == std::string::npos);
	std::istringstream lines(text);
	for (std::string line; std::getline(lines, line);) {
		INFO(line);
		CHECK(line.size() <= 100);
		CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
	}
	Style colour;
	colour.colour = true;
	CHECK(ExplainText(e, colour).find("\033[1m") != std::string::npos);
}

TEST_CASE("commands as the server counted them are beside the log's requests")
{
	RunBuilder b;
	ForkRun(&b);
	Explained e = Explain(&b, {1 * ms, 0});
	CHECK(ExplainText(e, {}).find("as the server counted") == std::string::npos);
	CHECK(!parse_json(ExplainJson(e))["account"].contains("server_commands"));
	ServerCommand set = {"set", 1500, 3, 2, 3 * ms, 1 * us, 8 * us, OperationCount{1510, 1500, 30 * ms}};
	ServerCommand info = {"info", 4, 0, 0, 200 * us, 33 * us, 66 * us, {}};
	e.server_commands = {1000 * ms, {set, info}};
	const std::string text = ExplainText(e, {});
	holds(text, "\ncommand  calls     time     mean   p50 <=   p99 <=  requests  difference  service\n"
		    "set      1,500  3.00 ms  2.00 us  1.00 us  8.00 us     1,510          -7  20.0 us\n"
		    "info         4   200 us  50.0 us  33.0 us  66.0 us         -           -        -\n");
	Style narrow;
	narrow.columns = 60;
	holds(ExplainText(e, narrow), "\ncommand  calls     time     mean   p50 <=   p99 <=  requests\n");
	const nlohmann::json counted = parse_json(ExplainJson(e))["account"]["server_commands"];
	CHECK(counted["ns"] == 1000 * ms);
	REQUIRE(counted["commands"].size() == 2);
	CHECK(counted["commands"][0] == nlohmann::json({{"name", "set"},
							{"calls", 1500},
							{"rejected", 3},
							{"failed", 2},
							{"time_ns", 3 * ms},
							{"mean_ns", 2 * us},
							{"p50_ns", 1 * us},
							{"p99_ns", 8 * us},
							{"requests", 1510},
							{"difference", -7},
							{"served", 1500},
							{"service_ns", 20 * us}}));
	CHECK(!counted["commands"][1].contains("requests"));
	e.server_commands->commands.assign(7, set);
	holds(ExplainText(e, {}), "\n(2 more commands: --json)\n");
}

TEST_CASE("threads as the server counted them are beside their CPU time")
{
	RunBuilder b;
	ForkRun(&b);
	Explained e = Explain(&b, {1 * ms, 0});
	CHECK(!parse_json(ExplainJson(e))["account"].contains("server_threads"));
	e.server_threads.period = {kBase, kBase + 900 * ms};
	ServerThread main = {"main", 200 * ms, 120 * ms, {}, {}, {}, 0, 210 * ms};
	ServerThread io = {"io_thd_1", {}, 90 * ms, 12, 3400, 3390, -1, 0};
	e.server_threads.threads = {main, io};
	holds(ExplainText(e, {}),
	      "\nthread    connections  reads  writes   active  CPU (INFO)  CPU (kernel)  difference\n"
	      "main                -      -       -   120 ms      200 ms        210 ms    -10.0 ms\n"
	      "io_thd_1           12  3,400   3,390  90.0 ms           -             -           -\n");
	const nlohmann::json counted = parse_json(ExplainJson(e))["account"]["server_threads"];
	CHECK(counted["ns"] == 900 * ms);
	CHECK(counted["threads"][0] == nlohmann::json({{"name", "main"},
						       {"tid", kServer},
						       {"kernel_cpu_ns", 210 * ms},
						       {"cpu_ns", 200 * ms},
						       {"cpu_difference_ns", -10'000'000},
						       {"active_ns", 120 * ms},
						       {"active_difference_ns", -90'000'000}}));
	CHECK(counted["threads"][1] == nlohmann::json({{"name", "io_thd_1"},
						       {"active_ns", 90 * ms},
						       {"connections", 12},
						       {"reads", 3400},
						       {"writes", 3390}}));
	e.server_threads.threads[0].cpu_ns.reset();
	holds(ExplainText(e, {}),
	      "\nmain                -      -       -   120 ms        210 ms    -90.0 ms\n");
}

TEST_CASE("dropped events are located in time")
{
	RunBuilder b;
	ForkRun(&b);
	b.run.drops.push_back({kBase + 100 * ms, kBase + 200 * ms, 1204, FT_DROP_RING, FT_COW_COPY});
	b.run.drops.push_back({kBase + 300 * ms, kBase + 350 * ms, 7, FT_DROP_LOG, 0});
	b.run.programs = {"sched_switch", "sched_wakeup"};
	b.run.drops.push_back({kBase + 400 * ms, kBase + 600 * ms, 2, FT_DROP_MISSED, 1});
	b.run.drops.push_back({kBase + 700 * ms, kBase + 800 * ms, 9, FT_DROP_DISK, FT_BLOCK_TALLY});
	b.run.drops.push_back({kBase + 800 * ms, kBase + 900 * ms, 1, FT_DROP_DISK, FT_BLOCK_STACK});
	std::string text = ExplainText(Explain(&b, {1 * ms, 0}), {});
	holds(text, "Dropped: 9 tallies (the recorder's disk was too slow) between +0.700 s and +0.800 s.\n");
	holds(text, "Dropped: 1 names (the recorder's disk was too slow) between +0.800 s and +0.900 s.\n");
	holds(text, "Dropped: 1,204 cow-copy spans (ring full) between +0.100 s and +0.200 s.\n");
	holds(text, "Dropped: 7 entries of the request log between +0.300 s and +0.350 s.\n");
	holds(text,
	      "Dropped: 2 runs of sched_wakeup (skipped by the kernel) between +0.400 s and +0.600 s.\n");
	CHECK(text.find("No events were dropped") == std::string::npos);
}

TEST_CASE("a run with nothing slow, without answers, and with iterations only")
{
	RunBuilder b;
	SECTION("nothing slow")
	{
		ForkRun(&b);
		holds(ExplainText(Explain(&b, {1000 * ms, 0}), {}), "\nNo request of 1.00 s or more.\n");
	}
	SECTION("no answers")
	{
		b.Request(0, 0, 5 * ms, 0, 0, FT_STATUS_REFUSED);
		std::string text = ExplainText(Explain(&b, {1 * ms, 0}), {});
		holds(text, "1 request in 1.00 s, 1 error (1 refused)\nNo request was answered.\n");
		holds(text, "0 % of their time is explained");
	}
	SECTION("iterations")
	{
		b.Thread(kServer, 0, 1000 * ms);
		b.Frame(FT_FORK, 500 * ms, 560 * ms);
		b.Frame(FT_ITERATION, 499 * ms, 561 * ms);
		b.Tally(FT_OWN_CODE, 0, 1000 * ms, 940 * ms);
		std::string text = ExplainText(Explain(&b, {1 * ms, 0}), {});
		holds(
		    text,
		    "No request log: stalls are found from 1 event-loop iteration over 1.00 s of recording.");
		holds(text, "1 iteration of 1.00 ms or more in 1 episode");
		holds(text, "\nfork                   1    60.0 ms  ");
	}
}

TEST_CASE("the JSON has the documented keys")
{
	RunBuilder b;
	ForkRun(&b);
	b.run.drops.push_back({kBase + 100 * ms, kBase + 200 * ms, 3, FT_DROP_RING, FT_DROP_TALLY});
	b.run.drops.push_back({kBase + 300 * ms, kBase + 400 * ms, 4, FT_DROP_DISK, FT_BLOCK_SPAN});
	Explained e = Explain(&b, {1 * ms, 0});
	e.run.cost.known = true;
	e.run.cost.bpf_ns = 12;
	e.run.cost.bpf_known = true;
	e.run.cost.recorder_cpu_ns = 34;
	e.run.cost.helper_deaths = {{"unwind", 2}};
	e.run.cost.main_loop_stalls = 1;
	nlohmann::json j = parse_json(ExplainJson(e, true));

	CHECK(j["requests"]["count"] == 402);
	CHECK(j["requests"]["errors"] == 1);
	CHECK(j["requests"]["latency_ns"]["p50"] == 100 * us);
	CHECK(j["requests"]["latency_ns"]["p99.9"] == 61 * ms);
	for (const char *key : {"p50", "p90", "p99", "p99.9", "p99.99", "max", "mean"})
		CHECK(j["requests"]["latency_ns"].contains(key));
	CHECK(j["slow"]["threshold_ns"] == 1 * ms);
	CHECK(j["slow"]["count"] == 2);
	REQUIRE(!j["causes"].empty());
	CHECK(j["causes"][0]["cause"] == "fork");
	CHECK(j["causes"][0]["requests"] == 2);
	CHECK(j["causes"][0]["time_ns"].get<uint64_t>() >= 109 * ms);
	CHECK(j["causes"][0]["share"].get<double>() > 0.9);
	for (const char *key : {"p99", "p99.9", "p99.99", "max"})
		CHECK(j["causes"][0]["what_if"].contains(key));
	CHECK(j["causes"][0]["what_if"]["max"] == 1 * ms);
	REQUIRE(j["episodes"].size() == 1);
	CHECK(j["episodes"][0]["start_ns"] == kBase + 500 * ms);
	CHECK(j["episodes"][0]["t_s"].get<double>() == Approx(0.5));
	CHECK(j["episodes"][0]["duration_ns"] == 62 * ms);
	CHECK(j["episodes"][0]["requests"] == 2);
	CHECK(j["episodes"][0]["worst_ns"] == 61 * ms);
	CHECK(j["episodes"][0]["causes"][0]["cause"] == "fork");
	CHECK(!j["episodes"][0]["evidence"].empty());
	REQUIRE(j["account"]["threads"].size() == 1);
	const nlohmann::json &thread = j["account"]["threads"][0];
	CHECK(thread["tid"] == kServer);
	CHECK(thread["comm"] == "redis-server");
	CHECK(thread["serving"] == true);
	CHECK(thread["wall_ns"] == 1000 * ms);
	CHECK(thread["accounted_ns"] == 1000 * ms);
	CHECK(thread["by_cause"]["fork"] == 60 * ms);
	CHECK(thread["by_cause"]["idle"] == 300 * ms);
	CHECK(thread["by_cause"]["own-code"] == 640 * ms);
	CHECK(j["drops"]["count"] == 7);
	CHECK(j["drops"]["intervals"][0]["what"] == "tally");
	CHECK(j["drops"]["intervals"][1]["source"] == "disk");
	CHECK(j["drops"]["intervals"][1]["what"] == "span");
	CHECK(j["cost"]["bpf_ns"] == 12);
	CHECK(j["cost"]["recorder_cpu_ns"] == 34);
	CHECK(j["cost"]["windows"].is_null()); // as in an old recording
	CHECK(j["cost"]["helper_deaths"] == nlohmann::json{{"unwind", 2}});
	CHECK(j["cost"]["main_loop_stalls"] == 1);
	REQUIRE(j["slow_requests"].size() == 2);
	for (const nlohmann::json &r : j["slow_requests"]) {
		uint64_t sum = 0;
		for (const nlohmann::json &part : r["parts"])
			sum += part["direct_ns"].get<uint64_t>() + part["queued_ns"].get<uint64_t>();
		CHECK(sum == r["latency_ns"].get<uint64_t>());
	}
	CHECK(j["slow_requests"][1]["status"] == "timeout");
	CHECK(j["slow_requests"][1]["op"] == "SET");
	CHECK(!parse_json(ExplainJson(e)).contains("slow_requests"));
}

// JSON is assembled from pieces. The result must be what a JSON library writes.
TEST_CASE("JSON written in pieces has the same layout as one document")
{
	RunBuilder b;
	std::string text;
	SECTION("with entries in every list")
	{
		ForkRun(&b);
		b.run.drops.push_back({kBase + 100 * ms, kBase + 200 * ms, 3, FT_DROP_RING, FT_DROP_TALLY});
		Explained e = Explain(&b, {1 * ms, 0});
		e.notes.push_back("a line\nand \"another\"");
		REQUIRE(!e.episodes.empty());
		text = ExplainJson(e, true);
	}
	SECTION("with empty lists")
	{
		b.Request(0, 0, 5 * ms, 0, 0, FT_STATUS_REFUSED);
		const Explained e = Explain(&b, {1000 * ms, 0});
		REQUIRE(e.episodes.empty());
		text = ExplainJson(e, true);
	}
	CHECK(text == nlohmann::ordered_json::parse(text).dump(2) + "\n");
}

TEST_CASE("unwritable JSON is an error")
{
	RunBuilder b;
	ForkRun(&b);
	Explained e = Explain(&b, {1 * ms, 0});
	FILE *full = fopen("/dev/full", "w");
	REQUIRE(full);
	setvbuf(full, nullptr, _IONBF, 0);
	CHECK(!WriteExplainJson(e, full));
	CHECK(errno == ENOSPC);
	fclose(full);
}

TEST_CASE("names of untrusted text that is no UTF-8 do not break the JSON")
{
	RunBuilder b;
	ForkRun(&b);
	Explained e = Explain(&b, {1 * ms, 0});
	e.run.threads[0].comm = "\xff\xfe";
	CHECK(parse_json(ExplainJson(e))["account"]["threads"].size() == 1);
}

TEST_CASE("numbers are readable")
{
	CHECK(FormatDuration(0) == "0 ns");
	CHECK(FormatDuration(812) == "812 ns");
	CHECK(FormatDuration(999) == "999 ns");
	CHECK(FormatDuration(1000) == "1.00 us");
	CHECK(FormatDuration(9'994) == "9.99 us");
	CHECK(FormatDuration(9'996) == "10.0 us");
	CHECK(FormatDuration(99'960) == "100 us");
	CHECK(FormatDuration(999'600) == "1.00 ms");
	CHECK(FormatDuration(58'900'000) == "58.9 ms");
	CHECK(FormatDuration(1'204'000'000) == "1.20 s");
	CHECK(FormatDuration(312'000'000'000) == "312 s");
	CHECK(FormatDuration(4'321'000'000'000) == "4,321 s");
	CHECK(FormatCount(0) == "0");
	CHECK(FormatCount(999) == "999");
	CHECK(FormatCount(1'204'311) == "1,204,311");
	CHECK(FormatBytes(84'000'000) == "84.0 MB");
	CHECK(FormatBytes(512) == "512 B");
	CHECK(FormatPercent(0.614) == "61.4 %");
	CHECK(FormatPercent(0) == "0 %");
	CHECK(FormatPercent(1) == "100 %");
	CHECK(FormatPercent(0.9999) == "> 99.9 %");
	CHECK(FormatPercent(0.0004) == "0.04 %");
	CHECK(FormatPercent(0.000004) == "< 0.01 %");
	CHECK(FormatShare(0.614) == "61 %");
	CHECK(FormatShare(0.999) == "99 %");
	CHECK(FormatShare(0.004) == "0.40 %");
	CHECK(FormatOffset(kBase + 12'304 * ms, kBase) == "+12.304 s");
	CHECK(FormatOffset(kBase - 120 * ms, kBase) == "-0.120 s");
	CHECK(Plural(1, "request", "requests") == "1 request");
	CHECK(Plural(2412, "request", "requests") == "2,412 requests");
}

TEST_CASE("cause names are stable and convert in both directions")
{
	for (int c = 0; c < kCauses; c++) {
		Cause back = Cause::Idle;
		CHECK(CauseByName(CauseName(static_cast<Cause>(c)), &back));
		CHECK(back == static_cast<Cause>(c));
	}
	CHECK(std::string(CauseName(CauseOfOwner(FT_SOFTIRQ))) == "softirq/hi");
	CHECK(std::string(CauseName(CauseOfOwner(FT_SOFTIRQ + 9))) == "softirq/rcu");
	CHECK(std::string(CauseName(CauseOfOwner(FT_FAULT_OTHER))) == "page-fault");
	CHECK(CauseOfOwner(39) == Cause::Unknown);
	CHECK(CauseOfOwner(FT_ITERATION) == Cause::Unknown);
	CHECK(std::string(AccountName(Cause::ServerBusy)) == "own-code");
	Cause cause;
	CHECK(!CauseByName("idle", &cause)); // only on timelines
	CHECK(!CauseByName("Fork", &cause));
}
