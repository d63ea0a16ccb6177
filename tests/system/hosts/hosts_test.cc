// SPDX-License-Identifier: MIT
// Runs on several hosts: docs/guides/many-hosts.md exactly as written; two servers behind a proxy under one
// mpirun; a host whose link is down for a while; runs that cannot start.
#include "support.h"
#include "tests/support/recorded.h"

using namespace forktail::test;

namespace
{

// The page's commands and its plan, in order, as a script.
std::string PageScript()
{
	std::stringstream in(read_file(FORKTAIL_SOURCE_DIR "/docs/guides/many-hosts.md"));
	std::string script, block;
	for (std::string line; std::getline(in, line);) {
		if (line == "```sh" || line == "```toml")
			block = line;
		else if (line == "```" && !block.empty())
			script += block == "```toml" ? "END_OF_PLAN\n" : "", block.clear();
		else if (!block.empty())
			script += line + "\n";
		if (line == "```toml")
			script += "cat >plan.toml <<'END_OF_PLAN'\n";
	}
	return script;
}

// The run's requests during a fork, by load generator. "elsewhere": not at redis-a.
struct Forked {
	std::map<std::string, size_t> by_client;
	size_t elsewhere = 0;
};

Forked ForkedOf(const nlohmann::json &explained)
{
	Forked forked;
	const size_t first = explained["loads"][0]["connections"].get<size_t>();
	for (const nlohmann::json &r : explained["slow_requests"])
		for (const nlohmann::json &part : r["parts"]) {
			if (part["cause"] != "fork" && part["cause"] != "page-table-copy")
				continue;
			const std::string hop = part.value("hop", "");
			if (hop.find("redis-server 10.77.0.1:6379") == std::string::npos)
				forked.elsewhere++;
			else
				forked.by_client[r["connection"].get<size_t>() < first ? "client-a"
										       : "client-b"]++;
		}
	return forked;
}

// nutcracker on "proxy" in front of "redis-a" and "redis-b". Returns its address.
std::string serve_proxy(Hosts &hosts)
{
	write_file(hosts.dir.file("proxy.yml"),
		   "pool:\n  listen: " + hosts.address("proxy") +
		       ":22121\n  redis: true\n  distribution: ketama\n  hash: fnv1a_64\n  servers:\n   - " +
		       hosts.address("redis-a") + ":6379:1\n   - " + hosts.address("redis-b") + ":6379:1\n");
	hosts.serve("proxy", {"nutcracker", "-c", hosts.dir.file("proxy.yml"), "-s", "22222"});
	REQUIRE(eventually([&] {
		return shell("nsenter --net=/run/netns/proxy redis-cli -h " + hosts.address("proxy") +
			     " -p 22121 get x")
			   .status == 0;
	}));
	return hosts.address("proxy") + ":22121";
}

} // namespace

TEST_CASE("docs/guides/many-hosts.md exactly as written")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	{
		Hosts({"redis-a", "client-a", "client-b"}); // left by another test; the page makes new ones
	}
	TempDir dir;
	ProcessOptions options;
	options.directory = dir.path();
	const std::string bin = program("forktail");
	options.environment = {{"PATH", bin.substr(0, bin.rfind('/')) + ":" + getenv("PATH")}};
	const Result r = shell(PageScript(), options);
	if (r.status != 0)
		Hosts({"redis-a", "client-a", "client-b"});
	INFO(r.out);
	INFO(r.err);
	REQUIRE(r.status == 0);
	CHECK(r.err.find("from 2 loads") != std::string::npos);
	CHECK(r.out.find("10,000 requests") != std::string::npos); // explain's report on both logs
	for (const char *file :
	     {"redis-a/server.forktail", "client-a/load.forktail", "client-b/load.forktail"})
		CHECK(std::filesystem::exists(dir.file("run/hosts/") + file));
}

TEST_CASE("Two clients, a proxy and two servers under one mpirun, gathered from another file system")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	Hosts hosts({"redis-a", "redis-b", "proxy", "client-a", "client-b"});
	hosts.serve_redis("redis-a");
	hosts.serve_redis("redis-b");
	REQUIRE(hosts.redis("redis-a", {"DEBUG", "POPULATE", "1500000", "filler", "100"}).find("OK") == 0);
	const std::string to = serve_proxy(hosts), behind = "\"--behind\", \"" + hosts.address("redis-a") +
							    ":6379," + hosts.address("redis-b") + ":6379\", ";

	hosts.put_scratch_in_memory();
	hosts.begin(hosts.plan_begin("3s") + hosts.plan_hosts() + Hosts::record("redis-a", "6379") +
		    Hosts::record("redis-b", "6379") + Hosts::record("proxy", "22121") +
		    Hosts::load("client-a", to, behind, 2000) + Hosts::load("client-b", to, behind, 2000));
	REQUIRE(hosts.says("from 2 loads"));
	// A few hundred megabytes take several milliseconds each time.
	for (int i = 0; i < 6; i++) {
		hosts.redis("redis-a", {"BGSAVE"});
		usleep(400'000);
	}
	CHECK(hosts.finish() == 0);
	INFO(hosts.forktail->err());
	CHECK(hosts.nothing_left());

	for (const char *file :
	     {"redis-a/server.forktail", "redis-b/server.forktail", "proxy/server.forktail"}) {
		INFO(file);
		const Recorded recorded = read_recording(hosts.run_dir + "/hosts/" + file);
		CHECK(recorded.error.empty());
		CHECK(!recorded.damage.no_trailer);
		CHECK(!recorded.threads.empty());
	}
	for (const char *file : {"client-a/load.forktail", "client-b/load.forktail"})
		CHECK(hosts.explain(file)["requests"]["count"] == 6000);
	const Result whole =
	    run({program("forktail"), "explain", hosts.run_dir, "--json", "--requests", "--slow", "1ms"},
		Seconds(60));
	INFO(whole.err);
	REQUIRE(whole.status == 0);
	const Forked forked = ForkedOf(parse_json(whole.out));
	CHECK(forked.elsewhere == 0);
	CHECK(forked.by_client.size() == 2); // both
	const nlohmann::json json = hosts.run_json();
	CHECK(json["troubles"].empty());
	REQUIRE(json["hosts"].size() == 5);
	for (const nlohmann::json &host : json["hosts"]) {
		CHECK(host["host_name"] == host["name"]);
		CHECK(host["programs"].size() >= 1);
	}
	CHECK(json["hosts"][4]["roles"] == "load");
}

TEST_CASE(
    "Recorders on the hosts of a proxy and its servers see each request once, and the server it went to")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	Hosts hosts({"redis-a", "redis-b", "proxy", "client"});
	hosts.serve_redis("redis-a");
	hosts.serve_redis("redis-b");
	const std::string to = serve_proxy(hosts), requests = "options = [\"--requests=1/1\"]\n";
	hosts.begin(hosts.plan_begin("3s") + hosts.plan_hosts() + Hosts::record("redis-a", "6379") +
		    requests + Hosts::record("redis-b", "6379") + requests + Hosts::record("proxy", "22121") +
		    requests + Hosts::load("client", to, "", 2000));
	REQUIRE(hosts.says("from 1 load"));
	sleep(1);
	hosts.servers["redis-a"]->signal(SIGSTOP);
	usleep(200'000);
	hosts.servers["redis-a"]->signal(SIGCONT);
	CHECK(hosts.finish() == 0);
	const uint64_t sent = hosts.explain("client/load.forktail")["requests"]["count"];

	// With the load generator's log, and with what the recorders saw alone.
	for (const bool with_load : {true, false}) {
		INFO(with_load);
		if (!with_load)
			std::filesystem::remove(hosts.run_dir + "/hosts/client/load.forktail");
		const Result r = run(
		    {program("forktail"), "explain", hosts.run_dir, "--json", "--slow", "20ms"}, Seconds(60));
		INFO(r.err);
		REQUIRE(r.status == 0);
		const nlohmann::json json = parse_json(r.out);
		INFO(json["warnings"].dump(1) << json["hops"].dump(1) << json["answer"]);
		// The load generator asks for the server's INFO, which the recorders see too.
		const uint64_t count = json["requests"]["count"];
		CHECK(count >= sent);
		CHECK(count < sent + 100);
		REQUIRE(json["causes"].size() >= 1);
		CHECK(json["causes"][0]["cause"] == "stopped");
		CHECK(json["causes"][0]["share"].get<double>() > 0.8);
		REQUIRE(json["hops"].size() >= 2);
		CHECK(json["hops"][0]["name"].get<std::string>().find(":6379 on redis-a") !=
		      std::string::npos);
	}
}

TEST_CASE("A file that cannot be read stays on its host, with all other files of that host")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	Hosts hosts({"redis-a", "client-a"});
	hosts.serve_redis("redis-a");
	const std::string there = hosts.scratch;
	hosts.put_scratch_in_memory();
	hosts.begin(hosts.plan_begin("3s") + hosts.plan_hosts() + Hosts::record("redis-a", "6379") +
		    Hosts::load("client-a", hosts.address("redis-a")));
	REQUIRE(hosts.says("from 1 load"));
	// A directory cannot be read as a file, not even by root.
	std::string kept;
	for (const auto &directory : std::filesystem::directory_iterator(hosts.in_memory))
		if (directory.path().string().ends_with("-client-a"))
			kept = directory.path();
	REQUIRE(!kept.empty());
	std::filesystem::create_directory(kept + "/unreadable");
	CHECK(hosts.finish() == 1);
	INFO(hosts.forktail->err());
	CHECK(hosts.forktail->err().find("client-a: cannot read " + there) != std::string::npos);
	CHECK(hosts.forktail->err().find("unreadable: Is a directory") != std::string::npos);
	CHECK(hosts.forktail->err().find("client-a: its files are still in " + there) != std::string::npos);
	CHECK(std::filesystem::exists(kept + "/load.forktail"));
	CHECK(hosts.explain("client-a/load.forktail")["requests"]["count"] == 1500);
	CHECK(hosts.explain("redis-a/server.forktail").is_object());
	CHECK(hosts.run_json()["troubles"].size() >= 2);
}

TEST_CASE("A host whose link is down for two seconds: the run continues and is complete")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	Hosts hosts({"redis-a", "client-a", "client-b"});
	hosts.serve_redis("redis-a");
	hosts.begin(hosts.plan_begin("6s") + hosts.plan_hosts() + Hosts::record("redis-a", "6379") +
		    Hosts::load("client-a", hosts.address("redis-a")) +
		    Hosts::load("client-b", hosts.address("redis-a")));
	REQUIRE(hosts.says("from 2 loads"));
	REQUIRE(shell("ip link set ft3 down; sleep 2; ip link set ft3 up").status == 0);
	CHECK(hosts.finish() == 0);
	INFO(hosts.forktail->err());
	CHECK(hosts.nothing_left());
	const nlohmann::json a = hosts.explain("client-a/load.forktail"),
			     b = hosts.explain("client-b/load.forktail");
	CHECK(a["requests"]["count"] == 3000);
	CHECK(b["requests"]["count"] == 3000);
	CHECK(b["requests"]["latency_ns"]["max"] > 1e9); // the host with that link
}

TEST_CASE("A run that cannot start reports why in one sentence, and leaves nothing")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	Hosts hosts({"redis-a", "client-a"});
	hosts.serve_redis("redis-a");
	const std::string all = hosts.plan_begin("2s") + hosts.plan_hosts() +
				Hosts::record("redis-a", "6379") +
				Hosts::load("client-a", hosts.address("redis-a"));
	auto refused = [&](const std::string &plan, const std::string &sentence) {
		hosts.begin(plan);
		CHECK(hosts.finish() == 3);
		INFO(hosts.forktail->err());
		CHECK(hosts.forktail->err().find(sentence) != std::string::npos);
		CHECK(hosts.nothing_left());
	};
	SECTION("a recorder without root")
	{
		// Hosts have unique names, by which Open MPI's daemons identify each other.
		write_file(hosts.dir.file("agent"),
			   "#!/bin/sh\nhost=$1\nshift\nexec nsenter --net=/run/netns/$host unshare --uts "
			   "sh -c 'hostname $0; exec setpriv --reuid=nobody --regid=nogroup --clear-groups "
			   "sh -c \"$*\"' $host \"$@\"\n");
		std::filesystem::permissions(hosts.dir.file("agent"), std::filesystem::perms(0755));
		std::filesystem::permissions(hosts.dir.path(), std::filesystem::perms(0755));
		std::filesystem::permissions(hosts.scratch, std::filesystem::perms(01777));
		refused(all, "redis-a: forktail-record ended with status 3");
	}
	SECTION("another version of a program")
	{
		const std::string old = hosts.dir.file("old");
		std::filesystem::create_directory(old);
		for (const char *name : {"forktail-clock", "forktail-rank", "forktail-record"})
			std::filesystem::create_symlink(program(name), old + "/" + name);
		write_file(old + "/forktail-load", "#!/bin/sh\necho forktail-load 0.0.9\n");
		std::filesystem::permissions(old + "/forktail-load", std::filesystem::perms(0755));
		const std::string host = "network = \"" + hosts.address("client-a") + "\"\n";
		std::string plan = all;
		plan.insert(plan.find(host), "programs = \"" + old + "\"\n");
		refused(plan, "client-a: " + old + "/forktail-load has version 0.0.9, but this run needs ");
	}
	SECTION("nothing to record")
	{
		refused(hosts.plan_begin("2s") + hosts.plan_hosts() + Hosts::record("redis-a", "6380"),
			"redis-a: forktail-record ended with status 3; its last messages: forktail record: "
			"nothing listens on port 6380");
	}
	SECTION("no mpirun")
	{
		hosts.path = hosts.dir.path();
		refused(all, "cannot find mpirun on PATH. Install openmpi-bin.");
	}
	SECTION("a host that cannot be reached")
	{
		std::string plan = all;
		plan.replace(plan.find("name = \"client-a\""), 17,
			     "name = \"client-a\"\naddress = \"nowhere\"\n");
		refused(plan, "forktail: mpirun ended with status ");
	}
}
