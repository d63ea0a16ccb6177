// SPDX-License-Identifier: MIT
// A recorder's log of requests that the server's kernel saw: it is read like a load generator's, a ring's
// segments are one log, and what is outside the server's host is not guessed.
#include "tests/support/explained.h"
#include "tests/support/json.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/kernel_log.h"
#include "tests/unit/analysis/loaded_run.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/text.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

std::string SegmentPath(const TempDir &dir, int number)
{
	return dir.file("segment-000000000" + std::to_string(number) + ".forktail");
}

} // namespace

TEST_CASE("requests that the kernel saw are a load with its connections and clients")
{
	TempDir dir;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread();
		log.Tcp(1, 7);
		log.Tcp(2, 7);
		log.Unix(3, 4711, "python3");
		log.Tcp(4, 9, FT_CLIENT_HASHED);
		log.Request(1, 100, 110, 200);
		log.Request(3, 150, 0, 300, 2);
		log.Request(2, 350, 360, 400, 0);
		log.Request(4, 450, 2000, 500); // read outside the request: the clock was set
		log.Close();
	}
	const Run run = LoadedRun(dir.file("server.forktail"));
	CHECK(SeenInKernel(run));
	REQUIRE(run.loads.size() == 1);
	CHECK(run.loads[0].kernel);
	CHECK(run.loads[0].sample == 16);
	CHECK(run.loads[0].arrival == "closed");
	CHECK(run.loads[0].connection_count == 4);
	CHECK(run.loads[0].file == 0);
	CHECK(run.servers == std::vector<std::string>{"127.0.0.1:6379", "unix:/r"});
	CHECK(run.server_pids == std::vector<uint32_t>{100, 100});
	const Requests &q = run.requests;
	REQUIRE(q.size() == 4);
	CHECK(run.ops[q.op[0]] == "GET");
	CHECK(run.ops[q.op[1]] == "SET");
	CHECK(run.ops[q.op[2]] == "unknown");
	CHECK(q.read_ns[0] == kLogStart + 110'000);
	CHECK(q.read_ns[1] == 0);
	CHECK(q.read_ns[3] == 0);
	CHECK(q.written_ns[0] == kLogStart + 203'000);
	CHECK(q.request_bytes[0] == 33);
	CHECK(q.answer_bytes[3] == 44);
	CHECK(q.arrival_ns.empty());
	auto client = [&](size_t i) {
		return run.request_clients.at(run.connections[q.connection[i]].client - 1);
	};
	REQUIRE(run.request_clients.size() == 3);
	CHECK(client(0).name == "10.0.0.7");
	CHECK(client(2).name == "10.0.0.7");
	CHECK(client(1).name == "python3 (4711)");
	CHECK(client(1).pid == 4711);
	CHECK(client(1).address.empty());
	CHECK(client(3).hashed);
	CHECK(client(3).name.rfind("client-", 0) == 0);
	CHECK(run.connections[q.connection[0]].local_port == 40'001);
	CHECK(run.connections[q.connection[1]].inode == 903);
}

TEST_CASE("a load generator's log has no columns of the server's kernel")
{
	RunBuilder b;
	b.Request(0, 0, 10);
	b.Loop("closed");
	CHECK_FALSE(SeenInKernel(b.run));
	CHECK(b.run.requests.read_ns.empty());
}

TEST_CASE("a ring's segments are one kernel log: a repeated connection is the same one")
{
	TempDir dir;
	for (int i = 0; i < 3; i++) {
		// The last one is of a restarted recorder, which numbers connections from 1 again.
		const uint64_t began_ns = kLogStart + (i == 2 ? 500 * kLogMs : 0);
		const uint64_t start_ns = kLogStart + static_cast<uint64_t>(i) * 250 * kLogMs;
		std::string manifest = KernelManifest(R"(,"ring_start_ns":)" + std::to_string(began_ns));
		const std::string start = R"("start_ns":5000000000)";
		manifest.replace(manifest.find(start), start.size(),
				 R"("start_ns":)" + std::to_string(start_ns));
		KernelLog log(SegmentPath(dir, i), manifest);
		if (i == 0)
			log.Thread();
		log.Tcp(1, 7);
		if (i == 1)
			log.Tcp(2, 8);
		const auto at = static_cast<uint64_t>(i) * 250'000;
		log.Request(1, at + 100, at + 110, at + 200);
		if (i == 1)
			log.Request(2, at + 300, at + 310, at + 400);
		log.Close();
	}
	const Run run = LoadedRun(dir.path());
	REQUIRE(run.requests.size() == 4);
	const auto &connection = run.requests.connection;
	CHECK(connection[0] == connection[1]);
	CHECK(connection[2] != connection[0]);
	CHECK(connection[3] != connection[0]);
	CHECK(connection[3] != connection[2]);
	CHECK(run.connections.size() == 3);
	CHECK(run.connections[connection[0]].earlier.empty());
	CHECK(run.request_clients.size() == 2);
	REQUIRE(run.loads.size() == 2);
	CHECK(run.loads[0].connection_count == 2);
	CHECK(run.loads[1].connection_count == 1);
	CHECK(run.loads[1].first_connection == 2);
	CHECK(run.ops.size() == 4);
}

TEST_CASE("a server that began after the manifest is named by a note")
{
	TempDir dir;
	std::string manifest = KernelManifest();
	manifest.replace(manifest.find(R"("sample":16)"), 11, R"("sample":16,"slices":true)");
	KernelLog log(dir.file("server.forktail"), manifest);
	log.Thread();
	REQUIRE(ft_writer_json(log.w, FT_BLOCK_NOTE,
			       R"({"t_ns":5000000001,"kind":"request-servers",)"
			       R"("servers":["127.0.0.1:6379","unix:/r","127.0.0.1:6380"],)"
			       R"("server_info":[{"pid":100},{"pid":100},{"pid":200}]})") == 0);
	ft_connection c = {};
	c.id = 1;
	c.opened_ns = kLogStart;
	c.server = 2;
	log.Record(FT_BLOCK_CONNECTION, c);
	log.Request(1, 100, 110, 200);
	log.Close();
	const Run run = LoadedRun(dir.path());
	REQUIRE(run.servers.size() == 3);
	CHECK(run.servers[run.connections[run.requests.connection[0]].server] == "127.0.0.1:6380");
	CHECK(run.server_pids[2] == 200);
	CHECK(run.loads[0].slices);
}

TEST_CASE("after a reduced sample the whole log is of that sample")
{
	for (const bool reduced : {false, true}) {
		TempDir dir;
		std::string manifest = KernelManifest();
		manifest.replace(manifest.find(R"("sample":16)"), 11, R"("sample":1)");
		KernelLog log(dir.file("server.forktail"), manifest);
		log.Thread();
		log.Tcp(1, 7, FT_CLIENT_UNSAMPLED);
		log.Tcp(2, 7);
		log.Request(1, 100, 110, 200);
		log.Request(2, 150, 160, 250);
		if (reduced)
			REQUIRE(ft_writer_json(log.w, FT_BLOCK_NOTE,
					       R"({"t_ns":5000300000,"kind":"requests-sample",)"
					       R"("sample":16})") == 0);
		log.Request(2, 400, 410, 500);
		log.Close();
		const Run run = LoadedRun(dir.path());
		CHECK(run.loads[0].sample == (reduced ? 16 : 1));
		CHECK(run.requests.size() == (reduced ? 2 : 3));
		CHECK(run.connections[run.requests.connection[0]].local_port == (reduced ? 40'002 : 40'001));
		CHECK(run.files[0].damage.blocks_missing == 0);
		CHECK(run.warnings.empty());
	}
}

TEST_CASE("idle time of a request that the kernel saw is unattributed, never network")
{
	TempDir dir;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread(100, 160);
		log.Tcp(1, 7);
		for (uint64_t i = 0; i < 50; i++)
			log.Request(1, 1'000 * i, 1'000 * i + 5, 1'000 * i + 50);
		// Idle for 20 ms before it read the request, for 40 ms after that; then it worked for 10 ms.
		log.Request(1, 100'000, 120'000, 170'000, 2);
		log.Close();
	}
	Explained e;
	ExplainKernel(dir.path(), &e);
	const Blame &b = e.blame;
	REQUIRE(b.slow.size() == 1);
	CHECK(PartsSum(b, b.slow[0]) == 70 * kLogMs);
	CHECK(PartOf(b, 0, Cause::Network).total_ns() == 0);
	CHECK(PartOf(b, 0, Cause::ClientLate).total_ns() == 0);
	CHECK(PartOf(b, 0, Cause::Unknown).direct_ns == 20 * kLogMs);
	CHECK(PartOf(b, 0, Cause::Held).direct_ns == 40 * kLogMs);
	CHECK(PartOf(b, 0, Cause::ServerBusy).direct_ns == 10 * kLogMs);
	CHECK(b.idle.unread_ns == 20 * kLogMs);
	CHECK(b.idle.read_ns == 40 * kLogMs);
	CHECK(b.RowOf(Cause::Network).requests == 0);
	const nlohmann::json j = parse_json(ExplainJson(e, true));
	CHECK(j["loads"][0]["source"] == "kernel");
	CHECK(j["loads"][0]["sample"] == 16);
	CHECK(j["requests"]["in_kernel"]["idle_read_ns"] == 40 * kLogMs);
	CHECK(j["slow_requests"][0]["idle_unread_ns"] == 20 * kLogMs);
	const std::string text = flat(ExplainScreen(e, {.columns = 200}, 0));
	INFO(text);
	CHECK(
	    text.find(
		"The server had read requests and held them while it was idle: 57.1 % of the slow requests' "
		"time (held).") == 0);
	CHECK(
	    text.find("Requests were seen in the server's kernel, from arrival to reply; time in clients") !=
	    std::string::npos);
	CHECK(
	    text.find("1 in 16 connections was sampled: counts are of the sample, p99 of all requests is at "
		      "least 50.0 us, p99.9 of all requests is at least") != std::string::npos);
	CHECK(j["requests"]["latency_ns_of_all"]["p99"][1] == 0);
	CHECK(text.find("closed loop") == std::string::npos);
}

TEST_CASE("dropped events of requests leave no gap in what threads did")
{
	TempDir dir;
	{
		KernelLog log(dir.file("server.forktail"));
		log.Thread(100, 160);
		log.Tcp(1, 7);
		log.Request(1, 200'000, 200'005, 270'000);
		log.Record(FT_BLOCK_DROP,
			   ft_drop{kLogStart, kLogStart + 900 * kLogMs, 12, FT_DROP_RING, FT_DROP_REQUESTS});
		log.Close();
	}
	Explained e;
	ExplainKernel(dir.path(), &e);
	CHECK(PartOf(e.blame, 0, Cause::ServerBusy).total_ns() == 70 * kLogMs);
	const nlohmann::json j = parse_json(ExplainJson(e, false));
	CHECK(j["drops"]["intervals"][0]["what"] == "requests");
	CHECK(flat(ExplainScreen(e, {.columns = 200}, 0)).find("12 events of requests (ring full)") !=
	      std::string::npos);
}

TEST_CASE(
    "a server that is idle before it has written all of a large reply holds nothing: its client reads slowly")
{
	TempDir dir;
	for (const uint32_t bytes : {16u << 10, (16u << 10) + 1}) {
		CAPTURE(bytes);
		const std::string path = dir.file(std::to_string(bytes) + ".forktail");
		{
			KernelLog log(path);
			log.Thread(120, 160);
			log.Tcp(1, 7);
			log.answer_bytes = bytes;
			log.Request(1, 100'000, 110'000, 170'000);
			log.Close();
		}
		Explained e;
		ExplainKernel(path, &e);
		REQUIRE(e.blame.slow.size() == 1);
		const bool fits = bytes == 16 << 10;
		CHECK(PartOf(e.blame, 0, Cause::Held).direct_ns == (fits ? 40 * kLogMs : 0));
		CHECK(PartOf(e.blame, 0, Cause::Unknown).direct_ns == (fits ? 0 : 40 * kLogMs));
		const std::string text = flat(ExplainScreen(e, {.columns = 200}, 0));
		INFO(text);
		CHECK((text.find("the clients or the network took them slowly") != std::string::npos) ==
		      !fits);
		CHECK((text.find("held") != std::string::npos) == fits);
	}
}
