// SPDX-License-Identifier: MIT
// A load generator's log joined with a kernel log: the same requests are found by socket and order, others
// are left out, and idle time is divided by where a request was.
#include "analysis/run/log_reader.h"

#include "tests/support/explained.h"
#include "tests/support/json.h"
#include "tests/support/tempdir.h"
#include "tests/unit/analysis/kernel_log.h"
#include "tests/unit/analysis/loaded_run.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/explain.h"
#include "analysis/run.h"
#include "analysis/text.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

std::string LoadManifest(const std::string &server = "127.0.0.1:6379", const std::string &arrival = "closed")
{
	return R"({"program":"forktail-load","boot_id":"b1","servers":[")" + server + R"("],"arrival":")" +
	       arrival + R"(","pipeline":1,"ops":["SET"]})";
}

// A load generator's log, with times in microseconds after kLogStart.
struct LoadLog : KernelLog {
	explicit LoadLog(const std::string &path, const std::string &manifest = LoadManifest())
	    : KernelLog(path, manifest)
	{
	}
	void Connect(uint32_t id, uint32_t port, uint64_t opened_us = 0, uint64_t closed_us = 0,
		     uint64_t inode = 0)
	{
		ft_connection c = {};
		c.opened_ns = kLogStart + opened_us * 1000;
		c.closed_ns = closed_us ? kLogStart + closed_us * 1000 : 0;
		c.id = id;
		c.local_port = port;
		c.inode = inode;
		Record(FT_BLOCK_CONNECTION, c);
	}
	void Sent(uint32_t connection, uint64_t sent_us, uint64_t end_us, uint64_t arrived_us = 0)
	{
		ft_request q = {};
		q.intended_ns = q.start_ns = kLogStart + sent_us * 1000;
		q.end_ns = kLogStart + end_us * 1000;
		q.arrival_ns = arrived_us ? kLogStart + arrived_us * 1000 : 0;
		q.connection = connection;
		if (ft_requests_full(&requests))
			REQUIRE(ft_requests_flush(&requests, w) == 0);
		ft_requests_append(&requests, &q);
	}
};

uint64_t Us(uint64_t us)
{
	return kLogStart + us * 1000;
}

Run LoadJoined(const TempDir &dir)
{
	Run run = LoadedRun(dir.path());
	CHECK(run.kernel_log_joined);
	return run;
}

Explained ExplainJoined(const TempDir &dir)
{
	ExplainOptions options;
	options.slow.ns = kLogMs;
	Explained e;
	std::string error;
	int status = 0;
	const bool explained = ExplainRun(dir.path(), options, &e, &error, &status);
	INFO(error);
	REQUIRE(explained);
	return e;
}

// Connection 0 of a load generator is number 1 of the kernel log, port 40001.
void OneRequest(const TempDir &dir)
{
	KernelLog log(dir.file("server.forktail"));
	log.Thread(100, 160);
	log.Tcp(1, 7);
	for (uint64_t i = 0; i < 50; i++)
		log.Request(1, 1'000 * i + 10, 1'000 * i + 15, 1'000 * i + 50);
	// Idle for 10 ms on its way, 5 ms unread, 12 ms after that, and for 20 ms of the answer's way.
	log.Request(1, 110'000, 115'000, 127'000);
	log.Close();
	LoadLog load(dir.file("load.forktail"));
	load.Connect(0, 40'001);
	for (uint64_t i = 0; i < 50; i++)
		load.Sent(0, 1'000 * i, 1'000 * i + 60);
	load.Sent(0, 100'000, 150'000, 147'000);
	load.Close();
}

} // namespace

TEST_CASE("requests of both logs are joined by socket and order; others of the kernel log are left out")
{
	TempDir dir;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread();
		log.Tcp(1, 7);
		log.Tcp(2, 8);
		log.Request(1, 10, 11, 12); // the connection's set-up
		log.Request(1, 110, 115, 180);
		log.Request(2, 120, 125, 170); // another client
		// The second is lost; the third is on the connection's second half of a pipeline.
		log.Request(1, 510, 515, 580);
		log.Request(1, 511, 0, 590);
		log.Request(1, 710, 715, 790); // answered after the client had given up
		log.Close();
	}
	{
		LoadLog load(dir.file("load.forktail"));
		load.Connect(0, 40'001);
		load.Sent(0, 100, 200);
		load.Sent(0, 300, 400);
		load.Sent(0, 500, 600);
		load.Sent(0, 500, 600);
		load.Sent(0, 700, 780);
		load.Close();
	}
	const Run run = LoadJoined(dir);
	CHECK_FALSE(SeenInKernel(run));
	CHECK(run.loads.size() == 1);
	CHECK(run.connections.size() == 1);
	CHECK(run.ops == std::vector<std::string>{"SET"});
	CHECK(run.behind.empty());
	const Requests &q = run.requests;
	REQUIRE(q.size() == 5);
	CHECK(q.server_arrival_ns[0] == Us(110));
	CHECK(q.read_ns[0] == Us(115));
	CHECK(q.answered_ns[0] == Us(180));
	CHECK_FALSE(q.Joined(1));
	CHECK(q.server_arrival_ns[2] == Us(510));
	CHECK(q.server_arrival_ns[3] == Us(511));
	CHECK(q.read_ns[3] == 0);
	CHECK_FALSE(q.Joined(4));
	CHECK(q.written_ns.empty());
}

TEST_CASE("a port that is used again, and Unix sockets by their inode")
{
	Run run, kernel;
	run.servers = {"127.0.0.1:6379", "unix:/r"};
	kernel.servers = {"unix:/r", "0.0.0.0:6379", "0.0.0.0:6380"};
	auto add = [](Run *to, Connection c) { to->connections.push_back(c); };
	// The third one is open when another begins with the same port: which is which is not known.
	add(&run, {.opened_ns = 100, .closed_ns = 200, .local_port = 7});
	add(&run, {.opened_ns = 300, .closed_ns = 400, .local_port = 7});
	add(&run, {.opened_ns = 100, .local_port = 8});
	add(&run, {.opened_ns = 150, .local_port = 8});
	add(&run, {.opened_ns = 100, .server = 1, .inode = 55});
	run.connections[1].earlier.push_back({.opened_ns = 210, .closed_ns = 290, .local_port = 9});

	add(&kernel, {.opened_ns = 90, .local_port = 7, .server = 1}); // its end was not seen
	add(&kernel, {.opened_ns = 310, .closed_ns = 400, .local_port = 7, .server = 1});
	add(&kernel, {.opened_ns = 110, .local_port = 8, .server = 1});
	add(&kernel, {.opened_ns = 110, .server = 0, .inode = 55});
	add(&kernel, {.opened_ns = 110, .local_port = 7, .server = 2}); // another server
	add(&kernel, {.opened_ns = 215, .local_port = 9, .server = 1});
	add(&kernel, {.opened_ns = 215, .server = 1});
	const auto pairs = PairSockets(kernel, run, 0);
	auto of = [&](size_t c) {
		std::vector<uint32_t> found;
		for (const SameSocket &s : pairs[c])
			found.push_back(s.connection);
		return found;
	};
	using Found = std::vector<uint32_t>;
	CHECK(of(0) == Found{0, 1}); // it may have lived on until its port's next socket
	CHECK(of(1) == Found{1});
	CHECK(of(2).empty());
	CHECK(of(3) == Found{4});
	CHECK(of(4).empty());
	CHECK(of(5) == Found{1});
	CHECK(of(6).empty());
	CHECK(pairs[0][1].opened_ns == 300);

	kernel.connections[3].readers = {{120, 77}};
	kernel.connections[5].readers = {{220, 78}}; // of one of several sockets
	TakeReaders(kernel, pairs, &run);
	REQUIRE(run.connections[4].readers.size() == 1);
	CHECK(run.connections[4].readers[0].tid == 77);
	CHECK(run.connections[1].readers.empty());
}

TEST_CASE("the logs are read in step, whatever the size of windows")
{
	TempDir dir;
	constexpr uint64_t count = 6 * FT_REQUEST_BLOCK;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread();
		log.Tcp(1, 7);
		log.Tcp(2, 8);
		for (uint64_t i = 0; i < count; i++) {
			if (i % 7)
				log.Request(1, 1'000 * i + 10, 1'000 * i + 15, 1'000 * i + 50);
			log.Request(2, 1'000 * i + 11, 1'000 * i + 15, 1'000 * i + 50);
		}
		log.Close();
	}
	{
		LoadLog load(dir.file("load.forktail"));
		load.Connect(0, 40'001);
		for (uint64_t i = 0; i < count; i++)
			load.Sent(0, 1'000 * i, 1'000 * i + 60);
		load.Close();
	}
	const Run whole = LoadJoined(dir);
	REQUIRE(whole.requests.size() == count);
	Run run;
	RunSource source;
	std::string error;
	REQUIRE(source.Open(dir.path(), false, &run, &error));
	auto log = source.OpenLog(FT_REQUEST_BLOCK, &run);
	for (int pass = 0; pass < 2; pass++) {
		uint64_t windows = 0, joined = 0, wrong = 0;
		ForWindows(log.get(), [&] {
			const Requests &q = run.requests;
			windows++;
			for (size_t i = 0; i < q.size(); i++)
				wrong +=
				    q.server_arrival_ns[i] != whole.requests.server_arrival_ns[q.Number(i)];
			for (size_t i = q.lead; i < q.size(); i++)
				joined += q.Joined(i);
		});
		CHECK(windows == 6);
		CHECK(wrong == 0);
		CHECK(joined == count - (count + 6) / 7);
		log->KeepLead(100);
	}
}

TEST_CASE("idle time of a joined request is divided by where the request was")
{
	TempDir dir;
	OneRequest(dir);
	const Explained e = ExplainJoined(dir);
	const Blame &b = e.blame;
	REQUIRE(b.slow.size() == 1);
	CHECK(b.joined == 51);
	CHECK(PartsSum(b, b.slow[0]) == 50 * kLogMs);
	CHECK(PartOf(b, 0, Cause::Network).direct_ns == 30 * kLogMs);
	CHECK(PartOf(b, 0, Cause::Unknown).direct_ns == 5 * kLogMs);
	CHECK(PartOf(b, 0, Cause::Held).direct_ns == 12 * kLogMs);
	CHECK(PartOf(b, 0, Cause::ClientLate).direct_ns == 3 * kLogMs);
	const nlohmann::json j = parse_json(ExplainJson(e, true));
	for (const nlohmann::json &split :
	     {j["requests"]["network_split"], j["slow_requests"][0]["network_split"]}) {
		CHECK(split["to_server_ns"] == 10 * kLogMs);
		CHECK(split["unread_at_server_ns"] == 5 * kLogMs);
		CHECK(split["to_client_ns"] == 20 * kLogMs);
		CHECK(split["unread_at_client_ns"] == 3 * kLogMs);
	}
	CHECK(j["requests"]["network_split"]["known"] == 51);
	CHECK(j["requests"]["network_split"]["requests"] == 1);
	const std::string text = ExplainText(e, {.columns = 500}, 1);
	INFO(text);
	CHECK(text.find("on the way to the server for 10.0 ms, unread there while its thread was idle for "
			"5.00 ms, replies on the way back for 20.0 ms, unread at the client for 3.00 ms") !=
	      std::string::npos);
	REQUIRE(!e.notes.empty());
	CHECK(e.notes.back() == "the server's kernel saw all of the load generator's requests; requests of "
				"others that it saw are left out");
}

TEST_CASE("a request that the kernel log lacks is explained as without it")
{
	TempDir dir;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread(100, 160);
		log.Tcp(1, 7);
		log.Request(1, 10, 15, 50);
		log.Close();
	}
	{
		LoadLog load(dir.file("load.forktail"));
		load.Connect(0, 40'001);
		load.Sent(0, 0, 60);
		load.Sent(0, 100'000, 150'000);
		load.Close();
	}
	const Explained e = ExplainJoined(dir);
	REQUIRE(e.blame.slow.size() == 1);
	CHECK(PartOf(e.blame, 0, Cause::Network).direct_ns == 50 * kLogMs);
	CHECK(e.blame.split.requests == 0);
	CHECK(e.notes.back().find("saw 1 of the load generator's 2 requests") != std::string::npos);
	CHECK(parse_json(ExplainJson(e, true))["slow_requests"][0].count("network_split") == 0);
}

TEST_CASE("the kernel log says which server behind a proxy answered")
{
	TempDir dir;
	std::string manifest = KernelManifest(
	    R"(,"behind":[{"name":"a","address":"127.0.0.1:6379"},{"name":"b","address":"127.0.0.1:7002"}])");
	{
		KernelLog log(dir.file("server.forktail"), manifest);
		log.Thread();
		log.Tcp(1, 7);
		log.Request(1, 110, 115, 180, 1, 2);
		log.Request(1, 310, 315, 380, 1, 0);
		log.Close();
	}
	{
		LoadLog load(dir.file("load.forktail"));
		load.Connect(0, 40'001);
		load.Sent(0, 100, 200);
		load.Sent(0, 300, 400);
		load.Close();
	}
	const Run run = LoadJoined(dir);
	REQUIRE(run.behind.size() == 1); // only those that answered
	CHECK(run.behind[0].address == "127.0.0.1:7002");
	REQUIRE(run.requests.size() == 2);
	CHECK(run.requests.Behind(0) == 1);
	CHECK(run.requests.Behind(1) == 0);
}
