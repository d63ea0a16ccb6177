// SPDX-License-Identifier: MIT
// A process that dies in a run on several hosts is named, the other recordings are complete, and nothing is
// left on any host.
#include "support.h"
#include "tests/support/recorded.h"

using namespace forktail::test;

namespace
{

struct ThreeHosts : Hosts {
	ThreeHosts() : Hosts({"redis-a", "client-a", "client-b"}) { serve_redis("redis-a"); }
	std::string Plan(const std::string &duration, const std::string &more = "") const
	{
		return plan_begin(duration) + more + plan_hosts() + record("redis-a", "6379") +
		       load("client-a", address("redis-a")) + load("client-b", address("redis-a"));
	}
	// Waits for the load on both hosts.
	void Begin(const std::string &duration, const std::string &more = "")
	{
		begin(Plan(duration, more));
		const bool both = says("from 2 loads");
		INFO(forktail->err());
		REQUIRE(both);
	}
	void Kill(const std::string &name, const std::string &program) const
	{
		const pid_t pid = find(name, program);
		REQUIRE(pid > 0); // 0 would be this test and its process group
		REQUIRE(kill(pid, SIGKILL) == 0);
	}
	bool Whole(const std::string &file) const
	{
		const std::string whole = run_dir + "/hosts/" + file;
		return std::filesystem::exists(whole) && !read_recording(whole).damage.no_trailer;
	}
};

} // namespace

TEST_CASE("Each rank is killed in turn: it is named, all recordings are complete, nothing is left")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	ThreeHosts hosts;
	for (const std::string &name : hosts.names) {
		INFO(name);
		hosts.Begin("60s");
		hosts.Kill(name, "forktail-rank");
		CHECK(hosts.finish() == 1);
		INFO(hosts.forktail->err());
		CHECK(hosts.forktail->err().find("the rank on " + name) != std::string::npos);
		CHECK(hosts.forktail->err().find("was killed by signal 9") != std::string::npos);
		for (const char *file :
		     {"redis-a/server.forktail", "client-a/load.forktail", "client-b/load.forktail"}) {
			INFO(file);
			CHECK(hosts.Whole(file));
		}
		CHECK(hosts.run_json()["troubles"].size() == 1);
		CHECK(hosts.nothing_left());
	}
}

TEST_CASE("Rank 0, which leads the others up to the load, is killed: it is named, and nothing is left")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	ThreeHosts hosts;
	hosts.begin(hosts.Plan("60s"));
	// It waits for the recorder, which takes some time to load its programs.
	REQUIRE(eventually([&] { return hosts.find("redis-a", "forktail-record") > 0; }, Seconds(30)));
	const pid_t rank = hosts.leader();
	REQUIRE(rank > 0);
	REQUIRE(kill(rank, SIGKILL) == 0);
	const int status = hosts.finish();
	INFO(hosts.forktail->err());
	CHECK(status == 3); // nothing had started
	CHECK(hosts.forktail->err().find("rank 0, on this host, was killed by signal 9") !=
	      std::string::npos);
	CHECK(hosts.run_json()["troubles"].size() >= 1);
	CHECK(hosts.nothing_left());
}

TEST_CASE("A host that is lost is named, and the run ends with the others' files")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	ThreeHosts hosts;
	hosts.Begin("3s");
	REQUIRE(shell("ip link set ft3 down").status == 0); // client-b's
	CHECK(hosts.forktail->wait(Seconds(150)).value_or(-1) == 1);
	const std::string said = hosts.forktail->err();
	INFO(said);
	CHECK(said.find("client-b (load) has not reported for ") != std::string::npos);
	CHECK(said.find("cannot fetch the files of client-b: they are still in " + hosts.scratch) !=
	      std::string::npos);
	CHECK(hosts.Whole("redis-a/server.forktail"));
	CHECK(hosts.Whole("client-a/load.forktail"));
	CHECK_FALSE(std::filesystem::exists(hosts.run_dir + "/hosts/client-b/load.forktail"));
	CHECK(hosts.run_json()["troubles"].size() >= 1);
	CHECK(hosts.explain("client-a/load.forktail")["requests"]["count"] == 1500);
	CHECK(eventually([&] { return hosts.inside("redis-a").empty() && hosts.inside("client-a").empty(); },
			 Seconds(15)));
}

TEST_CASE("A dead load generator or recorder is named, and the plan decides whether the others continue")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	ThreeHosts hosts;
	hosts.Begin("60s");
	hosts.Kill("client-b", "forktail-load");
	CHECK(hosts.finish() == 1);
	CHECK(hosts.forktail->err().find("client-b: the load (load) was killed by signal 9") !=
	      std::string::npos);
	CHECK(hosts.Whole("redis-a/server.forktail"));
	CHECK(hosts.Whole("client-a/load.forktail"));
	CHECK(hosts.nothing_left());

	hosts.Begin("4s", "on_death = \"continue\"\n");
	hosts.Kill("redis-a", "forktail-record");
	CHECK(hosts.finish() == 1);
	CHECK(hosts.forktail->err().find("redis-a: the recorder (server) was killed by signal 9") !=
	      std::string::npos);
	// 500 per second for all of 4 s: they were not ended.
	for (const char *file : {"client-a/load.forktail", "client-b/load.forktail"})
		CHECK(hosts.explain(file)["requests"]["count"] == 2000);
	CHECK(hosts.nothing_left());
}

TEST_CASE("Ctrl-C ends everything, and so does the death of forktail itself")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	ThreeHosts hosts;
	hosts.Begin("60s");
	hosts.forktail->signal(SIGINT);
	CHECK(hosts.finish() == 1);
	INFO(hosts.forktail->err());
	for (const char *file :
	     {"redis-a/server.forktail", "client-a/load.forktail", "client-b/load.forktail"})
		CHECK(hosts.Whole(file));
	CHECK(hosts.run_json()["troubles"].size() == 1);
	CHECK(hosts.nothing_left());

	hosts.Begin("60s");
	hosts.forktail->signal(SIGKILL);
	hosts.forktail->wait(Seconds(10));
	// Nothing gathers now, but all programs end.
	CHECK(eventually(
	    [&] {
		    return hosts.inside("redis-a").empty() && hosts.inside("client-a").empty() &&
			   hosts.inside("client-b").empty();
	    },
	    Seconds(30)));
	size_t recordings = 0;
	for (const auto &file : std::filesystem::recursive_directory_iterator(hosts.scratch))
		if (file.path().extension() == ".forktail") {
			recordings++;
			CHECK(!read_recording(file.path()).damage.no_trailer);
		}
	CHECK(recordings == 5); // and how two hosts' clocks compare with the first one's
}
