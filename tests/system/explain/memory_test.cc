// SPDX-License-Identifier: MIT
// The memory of `forktail explain` and `forktail report`. A run is read in stretches, as many as --memory
// requires. Their number must not change the result, for any kind of run. With the default the run's length
// must not change the memory.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <malloc.h>
#include <memory>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/memory_cgroup.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/nutcracker.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

// Small enough for one or two seconds of a busy server to be several stretches, and large enough for each of
// the runs below to be one.
constexpr char kLittle[] = "32M", kMuch[] = "2G";
constexpr size_t kDefaultBytes = 256 << 20;

// A directory with a recording of some processes, and optionally of a load.
struct Made {
	TempDir dir;
	std::unique_ptr<Process> recorder, load;

	explicit Made(const std::vector<pid_t> &pids)
	{
		std::string list;
		for (const pid_t pid : pids)
			list += (list.empty() ? "" : ",") + std::to_string(pid);
		recorder = std::make_unique<Process>(std::vector<std::string>{
		    program("forktail"), "record", "--pid", list, "-o", dir.file("server.forktail")});
		REQUIRE(eventually(
		    [&] { return recorder->err().find("recording ") == 0 || !recorder->running(); },
		    Seconds(60)));
		INFO(recorder->err());
		REQUIRE(recorder->running());
	}
	void Load(const std::vector<std::string> &more, const char *log = "load.forktail")
	{
		std::vector<std::string> argv = {program("forktail"), "load", "-q"};
		if (log)
			argv.insert(argv.end(), {"-o", dir.file(log)});
		argv.insert(argv.end(), more.begin(), more.end());
		load = std::make_unique<Process>(argv);
	}
	void Stop()
	{
		const auto ended = load->wait(Seconds(60));
		INFO(load->err());
		REQUIRE(ended == 0);
		recorder->signal(SIGINT);
		const auto recorded = recorder->wait(Seconds(60));
		INFO(recorder->err());
		REQUIRE(recorded == 0);
	}
	Result Explain(const std::vector<std::string> &more) const
	{
		std::vector<std::string> argv = {program("forktail"), "explain", dir.path()};
		argv.insert(argv.end(), more.begin(), more.end());
		const Result r = run(argv);
		INFO(r.err);
		REQUIRE(r.status == 0);
		return r;
	}
};

// The first few places where two explanations differ.
std::string differences(const std::string &one, const std::string &other)
{
	const Json changes = Json::diff(parse_json(one), parse_json(other));
	std::string text;
	for (size_t i = 0; i < std::min<size_t>(changes.size(), 5); i++)
		text += changes[i].dump() + "\n";
	return text;
}

// What is reported about all slow requests together. The answer names the culprit of the episodes.
Json sums_of(const std::string &explanation)
{
	Json sums = parse_json(explanation);
	for (const char *each : {"answer", "episodes", "warnings", "slow_requests"})
		sums.erase(each);
	return sums;
}

// Checks that the result is the same for any memory, and returns it.
Json check_same(const Made &made)
{
	const std::vector<std::vector<std::string>> forms = {
	    {}, {"--json"}, {"--json", "--requests"}, {"--json", "--slow", "p50"}};
	Json last;
	for (std::vector<std::string> form : forms) {
		form.insert(form.end(), {"--memory", kLittle});
		const Result little = made.Explain(form);
		form.back() = kMuch;
		const Result much = made.Explain(form);
		if (little.out == much.out) {
			SUCCEED();
		} else if (form.size() > 3 && sums_of(little.out) == sums_of(much.out)) {
			SUCCEED(); // with little memory, --slow p50 loses some slow requests
		} else if (form[0] == "--json") {
			FAIL_CHECK(differences(much.out, little.out));
		} else {
			CHECK(little.out == much.out);
		}
		if (form[0] == "--json")
			last = parse_json(much.out);
	}
	return last;
}

// A synthetic run of any length, and forktail run on it within the default's memory.
struct Long {
	TempDir dir;
	std::string path = dir.file("run");
	MemoryCgroup cgroup{kDefaultBytes};

	Long(double millions, uint64_t per_second)
	{
		std::filesystem::create_directory(path);
		REQUIRE(run({program("bench_explain_run"), path, std::to_string(millions),
			     std::to_string(per_second)})
			    .status == 0);
		if (!cgroup.usable())
			WARN("SKIPPED: the limit, cannot make a memory cgroup here");
	}
	// Its output.
	std::string Forktail(std::vector<std::string> argv) const
	{
		argv.insert(argv.begin(), program("forktail"));
		malloc_trim(0); // this process' memory at the fork counts for the child
		const Result r = run(cgroup.usable() ? cgroup.within(argv) : argv, Seconds(120));
		INFO(argv[1] << " ended with " << r.status << ": " << r.err);
		REQUIRE(r.status == 0); // 137: the kernel killed it for lack of memory
		CHECK(r.peak_bytes < kDefaultBytes);
		return r.out;
	}
};

} // namespace

TEST_CASE("an open loop with a snapshot has the same explanation in one stretch and in many")
{
	REQUIRE(geteuid() == 0);
	Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}});
	redis.command({"DEBUG", "POPULATE", "500000", "key", "100"});
	Made made({redis.pid()});
	made.Load({"-s", redis.socket(), "--rate", "20000", "--duration", "4", "-r", "500000", "-d", "100",
		   "--ratio", "1:4"});
	sleep_for(Seconds(1));
	CHECK(redis.command({"BGSAVE"}) == "Background saving started");
	made.Stop();
	const Json explanation = check_same(made);
	CHECK(explanation["requests"]["count"] == 80'000);
	CHECK(explanation["causes"].size() > 2);

	// A part, of which more is read than itself: its first requests may have waited from before.
	const auto part = [&](const char *memory) {
		return made.Explain({"--json", "--since", "+2s", "--until", "+3s", "--memory", memory}).out;
	};
	const std::string much = part(kMuch);
	CHECK(parse_json(much)["requests"]["count"] == 20'000);
	CHECK(parse_json(much)["episodes"].size() > 0);
	for (const char *memory : {kLittle, "64M"}) {
		INFO(memory);
		CHECK(differences(much, part(memory)) == "");
	}
}

TEST_CASE("a pipelined closed loop has the same explanation in one stretch and in many, with less memory")
{
	REQUIRE(geteuid() == 0);
	Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}});
	Made made({redis.pid()});
	made.Load({"-s", redis.socket(), "-n", "1000000", "-P", "16", "-c", "20", "-r", "100000"});
	sleep_for(Seconds(1));
	redis.command({"DEBUG", "SLEEP", "0.1"});
	made.Stop();
	const Json explanation = check_same(made);
	CHECK(explanation["requests"]["count"] == 1'000'000);
	CHECK(made.Explain({"--memory", kLittle}).peak_bytes < made.Explain({"--memory", kMuch}).peak_bytes);
}

TEST_CASE("requests through a proxy have the same explanation in one stretch and in many")
{
	REQUIRE(geteuid() == 0);
	std::vector<std::unique_ptr<Redis>> servers;
	NutcrackerOptions options;
	options.tcp = true;
	std::vector<pid_t> pids;
	std::string behind;
	for (int i = 0; i < 2; i++) {
		servers.push_back(std::make_unique<Redis>(
		    RedisOptions{.tcp = true, .config = {"--enable-debug-command", "yes"}}));
		const std::string where = "127.0.0.1:" + std::to_string(servers[i]->port());
		options.servers.push_back(where);
		behind += (i ? ",server" : "server") + std::to_string(i) + "=" + where;
		pids.push_back(servers[i]->pid());
	}
	Nutcracker proxy(options);
	pids.push_back(proxy.pid());
	Made made(pids);
	made.Load({"-p", std::to_string(proxy.port()), "--behind", behind, "-n", "200000", "-P", "16", "-c",
		   "20", "-r", "100000"});
	sleep_for(Seconds(0.5));
	servers[1]->command({"DEBUG", "SLEEP", "0.1"});
	made.Stop();
	const Json explanation = check_same(made);
	CHECK(explanation["requests"]["count"] == 200'000);
	CHECK(explanation["hops"].size() == 3);
}

TEST_CASE("a memcached with threads has the same explanation in one stretch and in many")
{
	REQUIRE(geteuid() == 0);
	Memcached memcached({.tcp = false, .config = {"-t", "4"}});
	Made made({memcached.pid()});
	made.Load({"-s", memcached.socket(), "--protocol", "memcache_text", "-n", "150000", "-c", "40", "-r",
		   "100000"});
	sleep_for(Seconds(0.5));
	memcached.process().signal(SIGSTOP);
	sleep_for(Seconds(0.1));
	memcached.process().signal(SIGCONT);
	made.Stop();
	const Json explanation = check_same(made);
	CHECK(explanation["requests"]["count"] == 150'000);
	CHECK(explanation["hops"].size() > 1);
}

TEST_CASE("iterations instead of requests have the same explanation in one stretch and in many")
{
	REQUIRE(geteuid() == 0);
	Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}});
	redis.command({"DEBUG", "POPULATE", "500000", "key", "100"});
	Made made({redis.pid()});
	made.Load({"-s", redis.socket(), "--rate", "20000", "--duration", "3", "-r", "500000"}, nullptr);
	sleep_for(Seconds(1));
	CHECK(redis.command({"BGSAVE"}) == "Background saving started");
	made.Stop();
	const Json explanation = check_same(made);
	CHECK(explanation["requests"]["from"] == "iterations");
	CHECK(explanation["requests"]["count"].get<uint64_t>() > 0);
}

// These do not test speed. When runs were loaded completely, they took gigabytes.
TEST_CASE("20 million requests take no more memory than documented, slow ones or not")
{
	Long made(20, 50'000);
	made.Forktail({"explain", made.path});
	const Json explanation = parse_json(made.Forktail({"explain", made.path, "--json"}));
	CHECK(explanation["requests"]["count"] == 20'000'000);
	made.Forktail({"report", made.path, "-o", made.dir.file("page.html")});
	CHECK(std::filesystem::file_size(made.dir.file("page.html")) > 100'000);
	const Json all = parse_json(made.Forktail({"explain", made.path, "--json", "--slow", "1us"}));
	CHECK(all["slow"]["count"] == 20'000'000);
}

TEST_CASE("a long time of a server's spans and tallies takes no more memory than documented")
{
	Long made(0.09, 100);
	const Json explanation = parse_json(made.Forktail({"explain", made.path, "--json"}));
	CHECK(explanation["requests"]["count"] == 90'000);
	CHECK(explanation["requests"]["duration_ns"].get<double>() == Approx(900e9).epsilon(0.001));
	// Each request is then a separate episode, because they do not overlap.
	made.Forktail({"explain", made.path, "--slow", "1us"});
	made.Forktail({"report", made.path, "-o", made.dir.file("page.html")});
}
