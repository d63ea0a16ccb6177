// SPDX-License-Identifier: MIT
// A real server's own code, from the CPU samples of a real recording: work that the test requests must be
// reported under its name.
#include <algorithm>
#include <csignal>

#include "analysis/evidence.h"
#include "analysis/source.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr int kKeys = 1'000'000;

struct Interval {
	uint64_t start_ns, end_ns;
};

// With some quiet after it, so that the next work is a separate episode.
template <class Do> Interval During(Do act)
{
	uint64_t start = ft_now_ns();
	act();
	uint64_t end = ft_now_ns();
	sleep_for(Seconds(0.1));
	return {start, end};
}

Json Explain(const std::string &path)
{
	Result r = run({program("forktail"), "explain", path, "--json"});
	INFO(r.err);
	REQUIRE(r.status == 0);
	return parse_json(r.out);
}

// The episodes in an interval. Without a load generator they are long event-loop iterations.
std::vector<Json> EpisodesIn(const Json &explanation, const Interval &when)
{
	std::vector<Json> episodes;
	for (const Json &e : explanation["episodes"]) {
		uint64_t start = e["start_ns"], end = start + e["duration_ns"].get<uint64_t>();
		if (start < when.end_ns && end > when.start_ns)
			episodes.push_back(e);
	}
	return episodes;
}

// The one with the most samples. Null if none has any.
Json MostSampled(const Json &explanation, const Interval &when)
{
	Json best;
	uint64_t most = 0;
	for (const Json &e : EpisodesIn(explanation, when)) {
		uint64_t samples = 0;
		for (const Json &a : e["activities"])
			samples += a["samples"].get<uint64_t>();
		if (samples > most) {
			most = samples;
			best = e;
		}
	}
	return best;
}

std::string EvidenceOf(const Json &episode)
{
	std::string text;
	for (const Json &sentence : episode["evidence"])
		text += sentence.get<std::string>() + "\n";
	return text;
}

// The episode is the activity's, by its samples, and reports it.
void CheckNamed(const Json &explanation, const Interval &when, const std::string &name,
		const std::string &sentence)
{
	INFO("looking for " << name);
	Json e = MostSampled(explanation, when);
	REQUIRE(!e.is_null());
	INFO(e.dump(1));
	CHECK(e["activities"][0]["name"] == name);
	CHECK(e["activities"][0]["share"].get<double>() > 0.5);
	CHECK(EvidenceOf(e).find("the server ran " + sentence + " for ") != std::string::npos);
	double share = 0;
	for (const Json &a : e["activities"])
		share += a["share"].get<double>();
	CHECK(share == Approx(1.0));
}

uint64_t SamplesOf(const Json &own_code, const std::string &name)
{
	for (const Json &a : own_code["activities"])
		if (a["name"] == name)
			return a["samples"];
	return 0;
}

} // namespace

TEST_CASE("slow commands, a script and expiry are named by what the server ran")
{
	REQUIRE(root());
	Redis redis(
	    {.tcp = false, .config = {"--enable-debug-command", "yes", "--list-max-listpack-size", "1"}});
	redis.command({"DEBUG", "POPULATE", std::to_string(kKeys), "key", "10"});
	redis.command({"EVAL",
		       "local t = {} for i = 1, 1000 do t[i] = i end "
		       "for i = 1, 1000 do redis.call('rpush', 'list', unpack(t)) end",
		       "0"});
	redis.command({"DEBUG", "SET-ACTIVE-EXPIRE", "0"});
	redis.command({"EVAL", "for i = 1, 200000 do redis.call('set', 'px' .. i, i, 'px', 1) end", "0"});

	Recorder recorder(redis.pid());
	Interval keys = During([&] { redis.command({"KEYS", "*z"}); });
	Interval script = During([&] {
		redis.command({"EVAL", "local n = 0 for i = 1, 1e7 do n = n + i % 7 end return n", "0"});
	});
	Interval del = During([&] { redis.command({"DEL", "list"}); });
	Interval expiry = During([&] {
		redis.command({"DEBUG", "SET-ACTIVE-EXPIRE", "1"});
		CHECK(
		    eventually([&] { return std::stoi(redis.info("expired_keys")) >= 150000; }, Seconds(60)));
	});
	const Recorded r = recorder.stop();
	CHECK(r.dropped() == 0);

	Json j = Explain(recorder.path());
	CheckNamed(j, keys, "command/KEYS", "KEYS");
	CheckNamed(j, script, "command/EVAL", "EVAL");
	CheckNamed(j, del, "command/DEL", "DEL");
	// Removing so many keys also makes a table too large: some iterations rehash as much as they expire.
	uint64_t expired = 0;
	std::string evidence;
	for (const Json &e : EpisodesIn(j, expiry)) {
		expired += SamplesOf(e, "expire");
		evidence += EvidenceOf(e);
	}
	CHECK(expired > 20);
	INFO(evidence);
	CHECK(evidence.find("was expiring keys for ") != std::string::npos);
	Json in_script = MostSampled(j, script)["activities"][0];
	CHECK(in_script["lua_samples"] == in_script["samples"]); // it called no command

	// The run's own code is the serving thread's and consists of such activities.
	for (const Json &t : j["account"]["threads"])
		if (t["serving"] == true)
			CHECK(t["own_code"] == j["own_code"]);
	CHECK(SamplesOf(j["own_code"], "command/KEYS") > 20);
	CHECK(SamplesOf(j["own_code"], "expire") > 20);
	Result text = run({program("forktail"), "explain", recorder.path(), "--all"});
	CHECK(text.out.find("\ncommand/KEYS ") != std::string::npos);
}

TEST_CASE("a Redis function and a large transaction are named in servers without symbols")
{
	REQUIRE(root());
	constexpr size_t kQueued = 20'000;
	for (const std::string &server :
	     {std::string("redis-server"), newer_server("redis-server"), newer_server("valkey-server")}) {
		if (server.empty()) {
			WARN("skipped: Redis 8 and Valkey are not here");
			continue;
		}
		INFO(server);
		Redis redis({.tcp = false, .program = server});
		redis.command({"FUNCTION", "LOAD",
			       "#!lua name=test\nredis.register_function('busy', function() local n = 0 "
			       "for i = 1, 1e7 do n = n + i % 7 end return n end)"});
		Recorder recorder(redis.pid());
		const Interval function = During([&] { redis.command({"FCALL", "busy", "0"}); });
		recorder.stop();
		const Json script = MostSampled(Explain(recorder.path()), function);
		REQUIRE(!script.is_null());
		INFO(script.dump(1));
		CHECK((script["activities"][0]["name"] == "script" ||
		       script["activities"][0]["name"] == "command/FCALL"));

		Recorder of_requests(redis.pid(), {"--requests=1/1"}); // a smaller sample may leave it out
		redis.command({"PING"});
		redis.command({"MULTI"});
		for (size_t i = 0; i < kQueued; i++)
			redis.command({"SET", "key" + std::to_string(i), "value"});
		const Interval transaction = During([&] { redis.command({"EXEC"}); });
		of_requests.stop();
		const Json exec = MostSampled(Explain(of_requests.path()), transaction);
		REQUIRE(!exec.is_null());
		INFO(exec.dump(1));
		CHECK(EvidenceOf(exec).find("mostly in one transaction (EXEC) of 20,000 commands; ") !=
		      std::string::npos);
	}
}

TEST_CASE("unwanted samples are not taken")
{
	REQUIRE(root());
	Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}});
	redis.command({"DEBUG", "POPULATE", std::to_string(kKeys), "key", "10"});
	Recorder recorder(redis.pid(), {"--no-samples"});
	redis.command({"KEYS", "*z"});
	redis.command({"PING"}); // the long iteration has ended
	recorder.stop();
	Json j = Explain(recorder.path());
	CHECK(j["own_code"] == Json({{"samples", 0}, {"activities", Json::array()}}));
	REQUIRE(!j["episodes"].empty());
	CHECK(j["episodes"][0]["activities"].empty());
	CHECK(EvidenceOf(j["episodes"][0]).find("(a slow command or a long batch)") != std::string::npos);
}

TEST_CASE("a program without symbols is named by its files, and needs no event loop")
{
	REQUIRE(root());
	Process busy({"dash", "-c", "while :; do :; done"});
	Recorder recorder(busy.pid());
	sleep_for(Seconds(0.5));
	recorder.stop();
	forktail::analysis::Run run;
	std::string error;
	REQUIRE(forktail::analysis::LoadRun(recorder.path(), &run, &error));
	const std::vector<forktail::analysis::Activity> activities =
	    forktail::analysis::ActivitiesOf(run).kinds;
	CHECK(run.cpu_samples.size() > 10);
	for (const forktail::analysis::Activity &a : activities)
		CHECK((a.name.find("module/") == 0 || a.name == "allocate"));
	CHECK(std::any_of(activities.begin(), activities.end(),
			  [](const forktail::analysis::Activity &a) { return a.name == "module/dash"; }));
}

TEST_CASE("a child's samples are named like its parent's, also after its end")
{
	REQUIRE(root());
	Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}});
	redis.command({"DEBUG", "POPULATE", std::to_string(kKeys), "key", "10"});
	Recorder recorder(redis.pid());
	redis.command({"BGSAVE"});
	REQUIRE(eventually([&] { return redis.info("rdb_bgsave_in_progress") == "0"; }, Seconds(60)));
	const Recorded r = recorder.stop();
	const ft_thread *child = r.role("snapshot child");
	REQUIRE(child);
	Json j = Explain(recorder.path());
	for (const Json &t : j["account"]["threads"]) {
		if (t["tid"] != child->tid)
			continue;
		INFO(t.dump(1));
		CHECK(t["own_code"]["samples"].get<uint64_t>() > 20);
		CHECK(SamplesOf(t["own_code"], "rdb-save") > 0);
	}
}
