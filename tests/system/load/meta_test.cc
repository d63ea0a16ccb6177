// SPDX-License-Identifier: MIT
// memcached's meta commands, as far as the other protocols have nothing similar: quiet reads without miss
// replies, opaques out of order, servers without meta commands. Also logging in to a memcached, in each
// protocol.
#include <climits>
#include <csignal>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/memcached.h"
#include "tests/system/load/fake.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

struct Ran {
	TempDir dir;
	Result result;
	Json run;
	Log log;

	explicit Ran(const Arguments &arguments, const ProcessOptions &options = {})
	{
		Arguments all = {"--protocol", "memcache_meta",	 "-q", "--no-observer",
				 "--json",     dir.file("json"), "-o", dir.file("log")};
		all.insert(all.end(), arguments.begin(), arguments.end());
		result = load(all, options);
		INFO(result.err);
		REQUIRE_FALSE(result.timed_out);
		run = parse_json(read_file(dir.file("json")))["runs"][0];
		log = read_log(dir.file("log"));
		CHECK(log.whole());
	}
};

// How to start a memcached that requires a login: it would refuse the fixture's questions.
MemcachedOptions guarded(bool sasl, const TempDir &dir)
{
	if (!sasl) {
		write_file(dir.file("passwords"), "joe:secret\n");
		return {.config = {"-Y", dir.file("passwords")}};
	}
	char host[HOST_NAME_MAX + 1] = "";
	gethostname(host, sizeof(host) - 1);
	write_file(dir.file("memcached.conf"), "mech_list: plain\nsasldb_path: " + dir.file("sasldb") + "\n");
	ProcessOptions password;
	password.input = "secret";
	const Result made = forktail::test::run({"/usr/sbin/saslpasswd2", "-p", "-c", "-f",
						 dir.file("sasldb"), "-a", "memcached", "-u", host, "joe"},
						Seconds(60), password);
	INFO(made.err);
	REQUIRE(made.status == 0);
	return {.config = {"-S"}, .environment = {"SASL_CONF_PATH=" + dir.path()}};
}

} // namespace

TEST_CASE("quiet reads: each missing reply is a miss, none is lost, and the server saw every request")
{
	Memcached server;
	Ran fill({"-s", server.socket(), "--fill", "50", "-d", "20"});
	const std::vector<Arguments> ways = {{},
					     {"-P", "16"},
					     {"-P", "16", "--batch", "3"},
					     {"-P", "7", "--rate", "20000"},
					     {"-P", "4", "--reconnect", "10"},
					     {"--blocking"},
					     {"--no-wait", "-P", "32"},
					     {"-P", "8", "--threads", "2"}};
	for (const Arguments &way : ways) {
		std::string name;
		for (const std::string &word : way)
			name += " " + word;
		INFO(name);
		const uint64_t hits = std::stoull(server.stat("get_hits")),
			       misses = std::stoull(server.stat("get_misses"));
		Arguments all = {"-s",	server.socket(), "--meta-quiet", "-t", "get",  "-r",
				 "100", "--key-pattern", "sequential",	 "-n", "2000", "-c",
				 "2"};
		all.insert(all.end(), way.begin(), way.end());
		Ran run(all);
		CHECK(run.result.status == 0);
		CHECK(run.run["total"]["requests"] == 2000);
		CHECK(run.run["total"]["errors"] == 0);
		CHECK(run.run["connections_broken"] == 0);
		const uint64_t asked_hits = std::stoull(server.stat("get_hits")) - hits;
		CHECK(run.run["total"]["misses"] == 2000 - asked_hits);
		CHECK(std::stoull(server.stat("get_misses")) - misses == 2000 - asked_hits);
		CHECK(run.log.with_status(FT_STATUS_MISS) == 2000 - asked_hits);
		if (contains(name, "--threads") || contains(name, "--no-wait") ||
		    contains(name, "--blocking"))
			continue; // threads have separate sequences
		CHECK(asked_hits == 1000);
	}
	// An unanswered read is only known from the next answer. It was sent, and costs less.
	CHECK(read_log(fill.dir.file("log")).manifest["server_info"][0]["protocol"] == "memcache_meta");
}

TEST_CASE("quiet reads among other commands, and checked values")
{
	Memcached server;
	server.command("set counter 0 0 1\r\n0");
	Ran mixed({"-s",
		   server.socket(),
		   "--meta-quiet",
		   "-n",
		   "20000",
		   "-r",
		   "200",
		   "-c",
		   "3",
		   "-P",
		   "9",
		   "--batch",
		   "4",
		   "--command",
		   "get __key__",
		   "--command",
		   "set __key__ __data__",
		   "--command",
		   "touch __key__ 60",
		   "--command",
		   "delete __key__",
		   "--command",
		   "incr counter 1",
		   "--command",
		   "mg __key__ v t f",
		   "--command",
		   "me __key__",
		   "--command",
		   "mn",
		   "--command",
		   "version"});
	INFO(mixed.result.out);
	CHECK(mixed.run["total"]["errors"] == 0);
	CHECK(mixed.run["total"]["requests"] == 20000);
	CHECK(mixed.run["operations"]["INCR"]["requests"] ==
	      std::stoull(server.command("get counter", "END\r\n").substr(19)));
	server.command("flush_all");
	for (const Arguments &quiet : {Arguments{}, Arguments{"--meta-quiet"}}) {
		Arguments all = {"-s", server.socket(), "--ratio", "1:3",   "--verify", "-r", "300",
				 "-d", "1-5000",	"-n",	   "10000", "-P",	"8",  "-c",
				 "3"};
		all.insert(all.end(), quiet.begin(), quiet.end());
		Ran verified(all);
		INFO(verified.result.err);
		CHECK(verified.result.status == 0);
		CHECK(verified.run["total"]["errors"] == 0);
	}
	// Misses between the checked hits.
	server.command("flush_all");
	Ran half({"-s", server.socket(), "--fill", "151", "--verify", "-d", "1-5000"});
	Ran some({"-s", server.socket(), "--meta-quiet", "--ratio", "0:1", "--verify", "-r", "300", "-d",
		  "1-5000", "-n", "3000", "-P", "4", "-c", "2"});
	INFO(some.result.err);
	CHECK(some.run["total"]["errors"] == 0);
	CHECK(some.run["total"]["misses"] > 1000);
	Ran again({"-s", server.socket(), "--fill", "300", "--verify", "-d", "1-5000"});
	// A value changed by another client is found by a quiet read, too.
	server.command("set key:000000000007 0 0 3\r\nbad");
	Ran wrong({"-s", server.socket(), "--meta-quiet", "--ratio", "0:1", "--verify", "-r", "300", "-d",
		   "1-5000", "-n", "3000", "--key-pattern", "sequential", "-P", "8", "-c", "1"});
	CHECK(wrong.result.status == 1);
	CHECK(wrong.run["total"]["errors"] == 10);
	CHECK(contains(wrong.result.err, "the value of key number 7 is not what was written"));
}

TEST_CASE("quiet reads whose server is out of step: the connection is closed, with the reason")
{
	// The answers to two reads and the "mn" after them.
	const std::vector<std::pair<std::string, std::string>> answers = {
	    {"VA 3 O000000000001\r\nabc\r\nVA 3 O000000000000\r\nabc\r\nMN\r\n",
	     "did not answer the end of a batch"},
	    {"VA 3 O000000000002\r\nabc\r\n", "the opaque differs"},
	    {"VA 3 O000000000001\r\nabc\r\nEN\r\n", "did not answer the end of a batch"},
	    {"MN\r\nMN\r\n", "an answer without a request"},
	};
	for (const auto &[answer, why] : answers) {
		INFO(answer);
		FakeServer server(
		    after_greeting([&](Peer &peer, const std::string &) { return peer.say(answer); }));
		Ran run(server.where({"--meta-quiet", "-t", "get", "-n", "2", "-P", "2", "-c", "1", "--think",
				      "3s", "--timeout", "20s"}));
		INFO(run.result.err);
		CHECK(run.run["total"]["requests"] == 2);
		if (answer == "MN\r\nMN\r\n") // the second one may come after the end
			CHECK(run.run["total"]["misses"] == 2);
		else
			CHECK(contains(run.result.err, why));
	}
}

TEST_CASE("a memcached without meta commands is reported in a sentence")
{
	FakeServer old([](Peer &peer) {
		for (std::string request; !(request = peer.hear()).empty();)
			if (!peer.say(request == "version\r\n" ? "VERSION 1.5.6\r\n" : "ERROR\r\n"))
				return;
	});
	const Result r = load(old.where({"--protocol", "memcache_meta", "-n", "10"}));
	CHECK(r.status == 3);
	CHECK(lines(r.err) == 1);
	CHECK(contains(
	    r.err,
	    "is a memcached without meta commands, which need version 1.6. Use --protocol memcache_text"));
	CHECK(
	    contains(load({"--meta-quiet", "--protocol", "memcache_text"}).err, "--protocol memcache_meta"));
}

TEST_CASE("logging in to a memcached, again on each new connection, and being refused")
{
	for (const std::string protocol : {"memcache_binary", "memcache_text", "memcache_meta"}) {
		INFO(protocol);
		TempDir passwords;
		Memcached server(guarded(protocol == "memcache_binary", passwords));
		const auto with = [&](const std::string &password, const Arguments &more) {
			Arguments all = {"--protocol",	protocol,
					 "-s",		server.socket(),
					 "-q",		"--no-observer",
					 "-n",		"300",
					 "-r",		"20",
					 "-c",		"2",
					 "--reconnect", "10",
					 "--fail-if",	"errors>0"};
			all.insert(all.end(), more.begin(), more.end());
			return load(all, with_environment({{"FORKTAIL_PASSWORD", password}}));
		};
		const Result in = with("secret", {"--user", "joe"});
		INFO(in.err);
		CHECK(in.status == 0);
		CHECK(in.err.empty());
		const Result wrong = with("sesame", {"--user", "joe"});
		CHECK(wrong.status == 3);
		CHECK(lines(wrong.err) == 1);
		CHECK(contains(wrong.err, "rejected the password of joe. It was read from the environment"));
		const Result nobody = with("secret", {});
		CHECK(nobody.status == 3);
		CHECK(lines(nobody.err) == 1);
		CHECK(contains(nobody.err, "requires a login. Set --user"));
	}
	Memcached open;
	const Result r =
	    load({"--protocol", "memcache_binary", "-s", open.socket(), "--user", "joe", "-n", "10"},
		 with_environment({{"FORKTAIL_PASSWORD", "secret"}}));
	CHECK(r.status == 3);
	CHECK(contains(r.err, "does not support logins. memcached needs to be started with -S for SASL"));
}
