// SPDX-License-Identifier: MIT
// Requests of clients that nobody here wrote, by command: as many in the recording as the server has counted
// (INFO commandstats). What is left out is counted in the recording's note.
#include <filesystem>
#include <sstream>
#include <string>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"
#include "tests/system/record/requests.h"

using namespace forktail::test;

namespace
{

const std::string kClients = FORKTAIL_SOURCE_DIR "/tests/system/record/clients/";

using Counts = std::map<std::string, uint64_t>;

// Calls by command. Subcommands count as their command.
Counts ServerCounts(Redis &redis)
{
	Counts counts;
	std::istringstream text(redis.command({"INFO", "commandstats"}));
	for (std::string line; std::getline(text, line);) {
		if (line.find("cmdstat_") != 0)
			continue;
		std::string name = line.substr(8, line.find_first_of("|:") - 8);
		std::transform(name.begin(), name.end(), name.begin(), ::toupper);
		counts[name] += std::stoull(line.substr(line.find("calls=") + 6));
	}
	return counts;
}

// The test's own commands come over the Unix socket, those of clients over TCP.
Counts KernelCounts(const Log &kernel, uint64_t begin_ns, uint64_t end_ns)
{
	Counts counts;
	for (const ft_request &q : kernel.requests)
		if (kernel.connections.at(q.connection).local_port && q.start_ns >= begin_ns &&
		    q.start_ns <= end_ns)
			counts[kernel.manifest["ops"][q.op]]++;
	return counts;
}

// Commands that the recording does not name are one.
Counts Named(const Counts &counts, const Log &kernel)
{
	Counts named;
	const std::vector<std::string> ops = kernel.manifest["ops"];
	for (const auto &[name, count] : counts)
		named[std::count(ops.begin(), ops.end(), name) ? name : "other"] += count;
	return named;
}

// What a client did, as the server counts it.
struct Ran {
	std::string name;
	uint64_t begin_ns, end_ns;
	Counts counts;
};

Ran RunClient(Redis &redis, const Arguments &argv, const ProcessOptions &options = {})
{
	Ran ran = {argv.front() + " " + argv.back(), 0, 0, {}};
	const Counts before = ServerCounts(redis);
	ran.begin_ns = ft_now_ns();
	const Result r = run(argv, Seconds(60), options);
	ran.end_ns = ft_now_ns();
	INFO(ran.name << "\n" << r.err);
	REQUIRE(r.status == 0);
	for (const auto &[name, count] : ServerCounts(redis))
		if (const uint64_t more = count - (before.count(name) ? before.at(name) : 0); more)
			ran.counts[name] = more;
	ran.counts.erase("INFO");
	return ran;
}

bool Exists(const Arguments &command)
{
	const bool exists = run(command).status == 0;
	if (!exists)
		WARN("skipped: " << command.front() << " or its library is missing");
	return exists;
}

} // namespace

TEST_CASE("each command of a client is seen as often as the server counts it")
{
	REQUIRE(root());
	Redis redis({.tcp = true});
	const std::string port = std::to_string(redis.port());
	Recorder recorder(redis.pid(), {"--requests=1/1"});
	std::vector<Ran> all;
	const auto benchmark = [&](Arguments more) {
		Arguments argv = {"redis-benchmark", "-p", port, "-q"};
		argv.insert(argv.end(), more.begin(), more.end());
		all.push_back(RunClient(redis, argv));
	};
	benchmark({"-n", "1000", "-t",
		   "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"});
	benchmark({"-n", "20000", "-P", "16", "-r", "1000", "-t", "set,get,incr,lpush"});
	benchmark({"-n", "2000", "-P", "8", "-t", "lrange_600"});
	benchmark({"-n", "1000", "-k", "0", "-t", "set"});
	benchmark({"-n", "1000", "--threads", "2", "-t", "set,get", "-3"});
	if (Exists({"/usr/bin/python3", "-c", "import redis"}))
		all.push_back(RunClient(redis, {"/usr/bin/python3", kClients + "pipelines.py", port}));
	if (Exists({"php", "-r", "new Redis();"}))
		all.push_back(RunClient(redis, {"php", kClients + "client.php", port}));
	if (Exists({"ruby", "-e", "require 'redis'"}))
		all.push_back(RunClient(redis, {"ruby", kClients + "client.rb", port}));
	const ProcessOptions debian = with_environment({{"NODE_PATH", "/usr/share/nodejs"}});
	if (run({"node", "-e", "require('redis')"}, Seconds(60), debian).status == 0)
		all.push_back(RunClient(redis, {"node", kClients + "client.js", port}, debian));
	if (const std::string java = FORKTAIL_SOURCE_DIR "/build-java";
	    std::filesystem::exists(java + "/made"))
		all.push_back(RunClient(redis, {"java", "-cp", java + "/*:" + java, "Clients", port}));
	else
		WARN("skipped: Jedis and Lettuce (script/java fetches them)");
	recorder.stop();
	const Log kernel = read_log(recorder.path());
	for (const Ran &ran : all) {
		INFO(ran.name << "\n" << requests_note(kernel).dump());
		Counts seen = KernelCounts(kernel, ran.begin_ns, ran.end_ns);
		if (!ran.counts.count("CLIENT"))
			seen.erase("CLIENT"); // SETINFO, which Redis 7.0 refuses and does not count
		CHECK(Json(seen).dump() == Json(Named(ran.counts, kernel)).dump());
	}
}

TEST_CASE("above 10,000 requests per second the sample becomes 1 in 16, and the whole log is of it")
{
	REQUIRE(root());
	Redis redis({.tcp = true});
	Recorder recorder(redis.pid(), {"--requests"});
	const Ran ran = RunClient(redis, {"redis-benchmark", "-p", std::to_string(redis.port()), "-q", "-n",
					  "4000000", "-c", "200", "-P", "16", "-t", "get"});
	recorder.stop();
	const Log kernel = read_log(recorder.path());
	const auto reduced = std::find_if(kernel.notes.begin(), kernel.notes.end(),
					  [](const Json &note) { return note["kind"] == "requests-sample"; });
	REQUIRE(reduced != kernel.notes.end());
	CHECK((*reduced)["sample"] == 16);

	// Connections of the sample have all of their requests, the others none since the note.
	std::map<uint32_t, uint64_t> of_connection;
	uint64_t sampled = 0;
	for (const ft_request &q : kernel.requests) {
		const ft_connection &c = kernel.connections.at(q.connection);
		if (kernel.manifest["ops"][q.op] != "GET" || !c.local_port)
			continue;
		of_connection[q.connection]++;
		sampled += !(c.client_flags & FT_CLIENT_UNSAMPLED);
		if (c.client_flags & FT_CLIENT_UNSAMPLED)
			CHECK(q.start_ns < (*reduced)["t_ns"].get<uint64_t>() + 100'000'000);
	}
	CHECK(of_connection.size() == 200);
	CHECK(sampled > 0);
	CHECK(sampled < ran.counts.at("GET") / 4);
	const Result explained =
	    run({program("forktail"), "explain", recorder.path(), "--by", "command", "--json"});
	INFO(explained.err);
	const Json j = parse_json(explained.out);
	CHECK(j["loads"][0]["sample"] == 16);
	for (const Json &command : j["commands"])
		if (command["command"] == "GET")
			CHECK(command["requests"] == sampled);
}

TEST_CASE("what has no answer of its own is left out and counted, and later requests are right")
{
	REQUIRE(root());
	if (!Exists({"/usr/bin/python3", "-c", "import redis"}))
		return;
	Redis redis({.tcp = true, .config = {"--repl-diskless-sync-delay", "0"}});
	Recorder recorder(redis.pid(), {"--requests=1/1"});
	const Ran ran =
	    RunClient(redis, {"/usr/bin/python3", kClients + "pushes.py", std::to_string(redis.port())});
	Redis replica({.tcp = true});
	replica.command({"REPLICAOF", "127.0.0.1", std::to_string(redis.port())});
	REQUIRE(eventually([&] { return replica.info("master_link_status") == "up"; }, Seconds(30)));
	recorder.stop();
	const Log kernel = read_log(recorder.path());
	const Json note = requests_note(kernel);
	INFO(note.dump());
	Counts seen = KernelCounts(kernel, ran.begin_ns, ran.end_ns);
	const Counts &counted = ran.counts;
	for (const std::string name : {"ECHO", "GET", "PUBLISH", "RPUSH", "PING", "HELLO"}) {
		INFO(name);
		CHECK(seen[name] == counted.at(name));
	}
	for (const std::string name : {"BLPOP", "XREAD", "SUBSCRIBE", "MONITOR", "PSYNC"}) {
		INFO(name);
		CHECK(seen[name] == 0);
	}
	CHECK(note["blocking"] == counted.at("BLPOP") + counted.at("XREAD"));
	CHECK(note["no_reply"] >= 50 + 1 + 20);
	CHECK(note["pushes"] >= 4); // SUBSCRIBE, UNSUBSCRIBE, MONITOR, the replica's
	CHECK(note["lost"] == 0);
}

TEST_CASE("libmemcached's requests are seen as often as memcached counts them")
{
	REQUIRE(root());
	if (!Exists({"memcslap", "--version"}))
		return;
	const bool binary = GENERATE(false, true);
	Memcached memcached({.tcp = true, .config = {"-t", "4"}});
	Recorder recorder(memcached.pid(), {"--requests=1/1"});
	for (const std::string test : {"set", "get"}) {
		Arguments argv = {
		    "memcslap",	       "--servers=127.0.0.1:" + std::to_string(memcached.port()),
		    "--concurrency=5", "--execute-number=500",
		    "--flush",	       "--initial-load=500",
		    "--test=" + test};
		if (binary)
			argv.push_back("--binary");
		const Result r = run(argv);
		INFO(r.out << r.err);
		REQUIRE(r.status == 0);
	}
	recorder.stop();
	const Log kernel = read_log(recorder.path());
	const Json note = requests_note(kernel);
	Counts seen = seen_commands(kernel);
	INFO(Json(seen).dump() << "\n" << note.dump());
	const uint64_t sets = std::stoull(memcached.stat("cmd_set")),
		       gets = std::stoull(memcached.stat("cmd_get"));
	CHECK(seen["SET"] == sets);
	CHECK(seen["GET"] == gets);
}
