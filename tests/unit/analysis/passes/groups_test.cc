// SPDX-License-Identifier: MIT
// Requests by client, command, connection and size: counts, percentiles within the histogram's error, causes
// of slow requests, and a bound on the number of groups.

#include "tests/support/explained.h"
#include "tests/support/json.h"
#include "tests/support/tempdir.h"
#include "tests/unit/analysis/kernel_log.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/explain.h"
#include "analysis/passes.h"
#include "analysis/text.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A run with requests of `clients` clients, one connection each.
struct ManyClients : RunBuilder {
	explicit ManyClients(uint32_t clients)
	{
		run.connections.clear();
		for (uint32_t c = 0; c < clients; c++) {
			run.request_clients.push_back({.name = "10.0.0." + std::to_string(c)});
			run.connections.emplace_back();
			run.connections.back().client = c + 1;
		}
	}
	RequestGroups Count(size_t most)
	{
		WholeLog log(run);
		RequestGroups groups(most);
		groups.Count(run, &log);
		return groups;
	}
};

bool ExplainGroups(const std::string &path, std::optional<GroupBy> groups, Explained *e)
{
	ExplainOptions options;
	options.slow.ns = kLogMs;
	options.groups = groups;
	std::string error;
	int status = 0;
	return ExplainRun(path, options, e, &error, &status);
}

} // namespace

TEST_CASE("clients and commands have their requests, the slowest first")
{
	ManyClients b(2);
	for (uint64_t i = 0; i < 100; i++) {
		b.Request(i * ms, i * ms, i * ms + 50 * us, 0, 0);
		b.Request(i * ms, i * ms, i * ms + 200 * us, 1, 1);
	}
	b.Request(200 * ms, 200 * ms, 210 * ms, 0, 1, FT_STATUS_RESET);
	b.run.connections.emplace_back(); // its client is unknown
	b.Request(300 * ms, 300 * ms, 300 * ms + 90 * us, 2, 0, FT_STATUS_MISS);
	const RequestGroups groups = b.Count(10);
	const std::vector<RequestGroup> clients = groups.Result(b.run, GroupBy::Client),
					commands = groups.Result(b.run, GroupBy::Command);
	CHECK(groups.Result(b.run, GroupBy::Connection).empty());
	CHECK(groups.Result(b.run, GroupBy::Size).empty());
	REQUIRE(clients.size() == 3);
	CHECK(clients[0].name == "10.0.0.1");
	CHECK(clients[0].client == 2);
	CHECK(clients[0].requests == 100);
	CHECK(clients[0].latencies.max == 200 * us);
	CHECK(clients[1].name == "unknown");
	CHECK(clients[1].client == 0);
	CHECK(clients[2].name == "10.0.0.0");
	CHECK(clients[2].requests == 101);
	CHECK(clients[2].errors == 1);
	CHECK(clients[2].latencies.max == 50 * us); // of answered requests
	REQUIRE(commands.size() == 2);
	CHECK(commands[0].name == "SET");
	CHECK(commands[0].requests == 101);
	CHECK(commands[1].name == "GET");
	CHECK(commands[1].requests == 101);
}

TEST_CASE("clients beyond the limit are one group")
{
	ManyClients b(1000);
	for (uint32_t c = 0; c < 1000; c++)
		b.Request(c * us, c * us, c * us + 50 * us, c);
	b.Request(2 * ms, 2 * ms, 3 * ms, 3);
	b.Request(2 * ms, 2 * ms, 5 * ms, 900);
	const std::vector<RequestGroup> clients = b.Count(7).Result(b.run, GroupBy::Client);
	REQUIRE(clients.size() == 8);
	CHECK(clients[0].name == "other");
	CHECK(clients[0].requests == 994);
	CHECK(clients[1].name == "10.0.0.3");
}

TEST_CASE("explain lists clients and commands of a kernel log, with the causes of their slow requests")
{
	TempDir dir;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread(100, 160);
		log.Tcp(1, 7);
		log.Unix(2, 4711, "python3");
		for (uint64_t i = 0; i < 50; i++)
			log.Request(1, 1'000 * i, 1'000 * i + 5, 1'000 * i + 50);
		log.Request(2, 200'000, 200'005, 205'000, 2);
		log.Close();
	}
	Explained e;
	REQUIRE(ExplainGroups(dir.path(), {}, &e));
	const std::vector<RequestGroup> &clients = e.groups[static_cast<size_t>(GroupBy::Client)];
	REQUIRE(clients.size() == 2);
	CHECK(clients[0].name == "python3 (4711)");
	CHECK(clients[0].slow == 1);
	CHECK(clients[0].slow_ns == 5 * kLogMs);
	REQUIRE(clients[0].causes.size() == 1);
	CHECK(clients[0].causes[0].cause == Cause::ServerBusy);
	CHECK(clients[1].slow == 0);
	const nlohmann::json j = parse_json(ExplainJson(e, false));
	CHECK(j["clients"][0]["pid"] == 4711);
	CHECK(j["clients"][0]["causes"][0]["cause"] == "server-busy");
	CHECK(j["clients"][1]["address"] == "10.0.0.7");
	CHECK(j["commands"][0]["name"] == "SET");
	CHECK(j["commands"][1]["requests"] == 50);
	std::string text, error;
	REQUIRE(GroupTable(e, {}, GroupBy::Client, &text, &error));
	INFO(text);
	CHECK(text.find("python3 (4711)") < text.find("10.0.0.7"));
	CHECK(text.find("server-busy 100 %") != std::string::npos);
	REQUIRE(GroupTable(e, {}, GroupBy::Command, &text, &error));
	CHECK(text.find("\ncommand") == 0);
	for (const size_t columns : {20, 60, 80, 200}) {
		REQUIRE(GroupTable(e, {.columns = columns}, GroupBy::Client, &text, &error));
		for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
			CHECK(text.find('\n', at) - at <= std::max<size_t>(columns, 77));
	}
}

TEST_CASE("a load generator's log has commands on request, and no clients")
{
	TempDir dir;
	{
		KernelLog load(dir.file("load.forktail"),
			       R"({"program":"forktail-load","boot_id":"b1","servers":["127.0.0.1:6379"],)"
			       R"("arrival":"closed","ops":["SET","GET"]})");
		for (uint64_t i = 0; i < 10; i++) {
			ft_request q = {};
			q.intended_ns = q.start_ns = kLogStart + i * kLogMs;
			q.end_ns = q.start_ns + 100'000;
			q.op = i == 3;
			ft_requests_append(&load.requests, &q);
		}
		load.Close();
	}
	std::string text, error;
	{
		Explained e;
		REQUIRE(ExplainGroups(dir.path(), {}, &e));
		CHECK(e.groups[static_cast<size_t>(GroupBy::Command)].empty());
		CHECK_FALSE(parse_json(ExplainJson(e, false)).contains("commands"));
	}
	Explained e;
	REQUIRE(ExplainGroups(dir.path(), GroupBy::Command, &e));
	const std::vector<RequestGroup> &commands = e.groups[static_cast<size_t>(GroupBy::Command)];
	REQUIRE(commands.size() == 2);
	CHECK(commands[0].requests + commands[1].requests == 10);
	CHECK(GroupTable(e, {}, GroupBy::Command, &text, &error));
	CHECK_FALSE(GroupTable(e, {}, GroupBy::Client, &text, &error));
	CHECK(error.find("does not have the names of clients") != std::string::npos);
}

namespace
{

// The names of the groups in the order of the output, with their requests: "a: 3, b: 1".
std::string Listed(const std::string &path, GroupBy by)
{
	Explained e;
	REQUIRE(ExplainGroups(path, by, &e));
	std::string text;
	for (const RequestGroup &g : e.groups[static_cast<size_t>(by)])
		text += (text.empty() ? "" : "; ") + g.name + ": " + std::to_string(g.requests);
	return text;
}

} // namespace

TEST_CASE("TCP clients of one host are processes, and have the names and libraries that they gave")
{
	TempDir dir;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread(100, 160);
		log.Tcp(1, 1, 0, {4711, "python3", "", ""});
		log.Tcp(2, 1, 0, {4712, "python3", "", "redis-py"});
		log.Tcp(3, 1, 0, {4712, "python3", "billing", "redis-py"});
		log.Tcp(4, 7, 0, {0, "", "web", ""}); // of another host
		log.Tcp(5, 7);
		log.Tcp(1, 1, 0, {4711, "python3", "late\x01", ""}); // written again, with a name
		for (uint32_t c = 1; c <= 5; c++)
			for (uint64_t i = 0; i < c; i++)
				log.Request(c, 1'000 * i, 1'000 * i + 5, 1'000 * i + 10 * c);
		log.Close();
	}
	CHECK(Listed(dir.path(), GroupBy::Client) ==
	      "10.0.0.7: 5; web, 10.0.0.7: 4; billing, python3 (4712), redis-py: 3; "
	      "python3 (4712), redis-py: 2; late\\x01, python3 (4711): 1");
	CHECK(Listed(dir.path(), GroupBy::Connection) ==
	      "10.0.0.7:40005: 5; web, 10.0.0.7, port 40004: 4; "
	      "billing, python3 (4712), redis-py, port 40003: 3; python3 (4712), redis-py, port 40002: 2; "
	      "late\\x01, python3 (4711), port 40001: 1");
	Explained e;
	REQUIRE(ExplainGroups(dir.path(), GroupBy::Connection, &e));
	const nlohmann::json j = parse_json(ExplainJson(e, false));
	CHECK(j["clients"][2]["client_name"] == "billing");
	CHECK(j["clients"][2]["library"] == "redis-py");
	CHECK(j["clients"][2]["address"] == "10.0.0.1");
	CHECK(j["clients"][2]["pid"] == 4712);
	CHECK(j["connections"].size() == 5);
	CHECK_FALSE(j.contains("sizes"));
}

TEST_CASE("connections beyond the limit are one group")
{
	ManyClients b(100);
	for (uint32_t c = 0; c < 100; c++)
		b.Request(c * us, c * us, c * us + 50 * us, c);
	WholeLog log(b.run);
	RequestGroups groups(2);
	groups.Count(b.run, &log, GroupBy::Connection);
	const std::vector<RequestGroup> connections = groups.Result(b.run, GroupBy::Connection);
	REQUIRE(connections.size() == 11);
	CHECK(std::ranges::find(connections, "other", &RequestGroup::name)->requests == 90);
	CHECK(groups.Result(b.run, GroupBy::Client).size() == 3);
}

TEST_CASE("sizes are classes of request and reply")
{
	TempDir dir;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread(100, 160);
		log.Tcp(1, 7);
		const std::pair<uint32_t, uint32_t> sizes[] = {
		    {64, 64}, {65, 1024}, {30, 1025}, {30, 5 << 20}};
		for (uint64_t i = 0; i < std::size(sizes); i++) {
			std::tie(log.request_bytes, log.answer_bytes) = sizes[i];
			log.Request(1, 1'000 * i, 1'000 * i + 5, 1'000 * i + 10 + i);
		}
		log.Close();
	}
	CHECK(Listed(dir.path(), GroupBy::Size) ==
	      "request to 64 B, reply over 4 MiB: 1; request to 64 B, reply to 16 KiB: 1; "
	      "request to 1 KiB, reply to 1 KiB: 1; request to 64 B, reply to 64 B: 1");
}
