// SPDX-License-Identifier: MIT
// Requests by client and command: counts, percentiles within the histogram's error, causes of slow requests,
// and a bound on the number of groups.

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
			run.request_clients.push_back({"10.0.0." + std::to_string(c), "", 0, "", false});
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

bool ExplainGroups(const std::string &path, bool groups, Explained *e)
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
	const std::vector<RequestGroup> clients = groups.Clients(b.run), commands = groups.Commands(b.run);
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
	const std::vector<RequestGroup> clients = b.Count(7).Clients(b.run);
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
	REQUIRE(ExplainGroups(dir.path(), false, &e));
	REQUIRE(e.by_client.size() == 2);
	CHECK(e.by_client[0].name == "python3 (4711)");
	CHECK(e.by_client[0].slow == 1);
	CHECK(e.by_client[0].slow_ns == 5 * kLogMs);
	REQUIRE(e.by_client[0].causes.size() == 1);
	CHECK(e.by_client[0].causes[0].cause == Cause::ServerBusy);
	CHECK(e.by_client[1].slow == 0);
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
		REQUIRE(ExplainGroups(dir.path(), false, &e));
		CHECK(e.by_command.empty());
		CHECK_FALSE(parse_json(ExplainJson(e, false)).contains("commands"));
	}
	Explained e;
	REQUIRE(ExplainGroups(dir.path(), true, &e));
	REQUIRE(e.by_command.size() == 2);
	CHECK(e.by_command[0].requests + e.by_command[1].requests == 10);
	CHECK(GroupTable(e, {}, GroupBy::Command, &text, &error));
	CHECK_FALSE(GroupTable(e, {}, GroupBy::Client, &text, &error));
	CHECK(error.find("does not name clients") != std::string::npos);
}
