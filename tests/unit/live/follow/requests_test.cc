// SPDX-License-Identifier: MIT
// What a follower makes of the requests that forktail record --requests writes: each is counted once, for its
// server, command and client, also before its connection is known, and memory has a limit.
#include <cstring>

#include "live/follow.h"
#include "live/guard/metrics.h"
#include "recording/recording.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::live;
using forktail::test::TempDir;

namespace
{

constexpr uint64_t kBegan = 5000 * kSecondNs;
constexpr uint64_t kUs = 1000;

struct RequestLog {
	bool on = false; // requests are recorded from the begin on
	std::string sample = "1", ops = R"(["unknown","GET","SET","other"])";
	std::string servers =
	    R"("servers":["127.0.0.1:6379","unix:/s"],"server_info":[{"pid":500},{"pid":501}])";
	ft_writer *w = nullptr;
	ft_requests columns = {};

	RequestLog() { REQUIRE(ft_requests_init(&columns) == 0); }
	~RequestLog()
	{
		if (w)
			ft_writer_close(w, "{}");
		ft_requests_free(&columns);
	}
	RequestLog(const RequestLog &) = delete;
	RequestLog &operator=(const RequestLog &) = delete;

	void Begin(const std::string &path, uint64_t ring_start_ns = kBegan)
	{
		if (w)
			ft_writer_close(w, "{}");
		const std::string manifest =
		    R"({"program":"forktail-record","clock_id":"c","start_ns":)" + std::to_string(kBegan) +
		    R"(,"ring_start_ns":)" + std::to_string(ring_start_ns) +
		    R"(,"targets":[{"pid":500,"comm":"redis-server","listens":["tcp:6379"]},)"
		    R"({"pid":501,"comm":"redis-server","listens":["unix:/s"]}],)"
		    R"("requests":{"source":"kernel","sample":)" +
		    sample + (on ? R"(,"on":true)" : "") + R"(},"ops":)" + ops + "," + servers + "}";
		REQUIRE(ft_writer_open(&w, path.c_str(), manifest.c_str()) == 0);
	}
	void Connection(uint32_t id, uint32_t server, const char (&address)[16], const char *comm = "",
			uint32_t flags = 0, const char *name = "")
	{
		ft_connection c = {};
		c.opened_ns = kBegan;
		c.id = id;
		c.server = server;
		memcpy(c.client_address, address, sizeof c.client_address);
		snprintf(c.client_comm.raw, sizeof c.client_comm.raw, "%s", comm);
		snprintf(c.client_name, sizeof c.client_name, "%s", name);
		c.client_flags = flags;
		REQUIRE(ft_writer_record(w, FT_BLOCK_CONNECTION, &c) == 0);
	}
	// Ended at this time since kBegan.
	void Request(uint32_t connection, uint8_t op, uint64_t end_ns, uint64_t ns,
		     uint8_t status = FT_STATUS_OK)
	{
		ft_request q = {};
		q.end_ns = kBegan + end_ns;
		q.start_ns = q.intended_ns = q.end_ns - ns;
		q.connection = connection;
		q.op = op;
		q.status = status;
		const ft_request_seen seen = {q.end_ns, q.end_ns, 10, 10};
		ft_requests_append_seen(&columns, &q, &seen);
		if (ft_requests_full(&columns))
			Block();
	}
	void Block() { REQUIRE(ft_requests_flush(&columns, w) == 0); }
	void Flush()
	{
		Block();
		REQUIRE(ft_writer_flush(w) == 0);
	}
};

constexpr char kFirst[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '\xff', '\xff', 10, 0, 0, 7};
constexpr char kSixth[16] = {0x20, 0x01, 0x0d, '\xb8', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
constexpr char kLocal[16] = {};

struct Followed {
	Follower follower;
	Batch batch;
	explicit Followed(const std::string &path) : follower(path, Clients()) {}
	static Options Clients()
	{
		Options options;
		options.request_seconds = true;
		return options;
	}
	void To(uint64_t since_ns)
	{
		std::string error;
		follower.SetNow(kBegan + since_ns);
		REQUIRE(follower.Poll(&batch, &error));
	}
	const RequestTotals *Of(uint32_t server, const std::string &command) const
	{
		for (const RequestTotals &t : follower.requests())
			if (t.server == server && t.command == command)
				return &t;
		return nullptr;
	}
	uint64_t Count(uint32_t server, const std::string &command) const
	{
		const RequestTotals *t = Of(server, command);
		return t ? t->times.count : 0;
	}
};

bool HasLine(const std::string &text, const std::string &line)
{
	return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

} // namespace

TEST_CASE("requests are counted once by server, command and client, also before their connection is known")
{
	TempDir dir;
	RequestLog log;
	log.Begin(dir.file("r"));
	Followed f(dir.file("r"));
	log.Connection(1, 0, kFirst);
	log.Connection(2, 0, kSixth);
	log.Connection(3, 1, kLocal, "redis-cli");
	// Blocks of requests are written at once, records of connections later.
	for (int i = 0; i < 100; i++)
		log.Request(1, 1, 1100 * kUs * 1000, 20 * kUs);
	log.Request(2, 2, 1200 * kUs * 1000, 3000 * kUs);
	log.Block();
	f.To(1300 * kUs * 1000);
	CHECK(f.follower.requests().empty());
	log.Request(3, 1, 2100 * kUs * 1000, 40 * kUs);
	log.Flush();
	f.To(2200 * kUs * 1000);
	REQUIRE(f.follower.servers().size() == 2);
	CHECK(f.Count(0, "GET") == 100);
	CHECK(f.Of(0, "GET")->times.sum_ns == 2'000'000);
	CHECK(f.Of(0, "GET")->times.counts[5] == 100); // up to 32 us
	CHECK(f.Count(0, "SET") == 1);
	CHECK(f.Count(1, "GET") == 1);
	CHECK(f.follower.requests().size() == 3);
	CHECK(f.follower.newest_ns() == kBegan + 2100 * kUs * 1000);

	REQUIRE(f.batch.requests.size() == 2);
	const RequestSecond &first =
	    f.batch.requests[0].server == 0 ? f.batch.requests[0] : f.batch.requests[1];
	CHECK(first.start_ns == kBegan + kSecondNs);
	CHECK(first.times.count() == 101);
	CHECK(first.times.max() == 3000 * kUs);
	REQUIRE(first.clients.size() == 2);
	CHECK(first.clients[0].client.Name() == "10.0.0.7");
	CHECK(first.clients[0].count == 100);
	CHECK(first.clients[0].max_ns == 20 * kUs);
	CHECK(first.clients[1].client.Name() == "2001:db8::9");
	CHECK(first.clients[1].sum_ns == 3000 * kUs);
	const RequestSecond &other =
	    f.batch.requests[0].server == 0 ? f.batch.requests[1] : f.batch.requests[0];
	REQUIRE(other.clients.size() == 1);
	CHECK(other.clients[0].client.Name() == "redis-cli");
	const std::vector<ClientTotals> &clients = f.follower.request_clients();
	REQUIRE(clients.size() == 3);
	CHECK(clients[0].client == "10.0.0.7");
	CHECK(clients[0].count == 100);
	CHECK(clients[0].sum_ns == 2000 * kUs);
	CHECK(clients[2].client == "redis-cli");
	CHECK(clients[2].server == 1);

	// Nothing is counted again.
	f.To(2300 * kUs * 1000);
	CHECK(f.batch.requests.empty());
	CHECK(f.Count(0, "GET") == 100);
}

TEST_CASE("a second of requests may precede the record of its connection")
{
	TempDir dir;
	RequestLog log;
	log.Begin(dir.file("r"));
	Followed f(dir.file("r"));
	log.Connection(1, 0, kFirst);
	for (uint64_t i = 0; i < 100'000; i++)
		log.Request(1, 1, i * 5 * kUs, 20 * kUs);
	log.Flush();
	f.To(kSecondNs);
	CHECK(f.Count(0, "GET") == 100'000);
	REQUIRE(f.batch.requests.size() == 1);
	CHECK(f.batch.requests[0].times.count() == 100'000);
}

TEST_CASE("a sample is scaled, and totals outlive segments and recorders")
{
	TempDir dir;
	RequestLog log;
	auto segment = [&](unsigned number) {
		char name[64];
		snprintf(name, sizeof name, "segment-%010u.forktail", number);
		return dir.file(name);
	};
	Followed f(dir.path());
	CHECK(f.follower.request_sample() == 0);
	log.sample = "16";
	log.Begin(segment(1));
	log.Connection(1, 0, kFirst);
	log.Request(1, 1, 100 * kUs, 20 * kUs);
	log.Flush();
	f.To(kSecondNs);
	CHECK(f.follower.request_sample() == 16);
	CHECK(f.Count(0, "GET") == 16);
	CHECK(f.Of(0, "GET")->times.sum_ns == 16 * 20 * kUs);
	CHECK(f.batch.requests.at(0).sample == 16);
	CHECK(f.batch.requests.at(0).times.count() == 1);

	// The connection's record in the next segment comes after its first request there.
	log.Begin(segment(2));
	log.Request(1, 2, 1500 * kUs * 1000, 20 * kUs);
	log.Block();
	f.To(2 * kSecondNs);
	CHECK(f.Count(0, "SET") == 16);

	// Another recorder: the same numbers are other connections, and its operations have other numbers.
	log.sample = "1";
	log.ops = R"(["unknown","DEL","GET"])";
	log.Begin(segment(3), kBegan + 2 * kSecondNs);
	log.Request(1, 2, 2500 * kUs * 1000, 20 * kUs);
	log.Block();
	f.To(3 * kSecondNs);
	CHECK(f.Count(0, "GET") == 16);
	log.Connection(1, 1, kLocal, "redis-cli");
	log.Flush();
	f.To(3 * kSecondNs);
	CHECK(f.Count(0, "GET") == 16);
	CHECK(f.Count(1, "GET") == 1);

	const metrics::Metrics metrics;
	const std::string text = metrics.Text(f.follower, metrics::MetricsFormat::Text);
	INFO(text);
	const std::string get = "{server=\"redis-server:6379\",command=\"GET\",outcome=\"ok\"";
	CHECK(HasLine(text, "forktail_request_seconds_count" + get + "} 16"));
	CHECK(HasLine(text, "forktail_request_seconds_sum" + get + "} 0.000320000"));
	CHECK(HasLine(text, "forktail_request_seconds_bucket" + get + ",le=\"1.6e-05\"} 0"));
	CHECK(HasLine(text, "forktail_request_seconds_bucket" + get + ",le=\"3.2e-05\"} 16"));
	CHECK(HasLine(text, "forktail_request_seconds_bucket" + get + ",le=\"+Inf\"} 16"));
	CHECK(HasLine(text, "forktail_request_sample 1"));
	CHECK(HasLine(text, "forktail_requests_recorded_seconds_total 0.000000000"));
	CHECK(text.find("command=\"DEL\"") == std::string::npos);
}

TEST_CASE("requests are counted by outcome")
{
	TempDir dir;
	RequestLog log;
	log.Begin(dir.file("r"));
	log.Connection(1, 0, kFirst);
	log.Request(1, 1, 1000 * kUs * 1000, 20 * kUs);
	log.Request(1, 1, 1001 * kUs * 1000, 20 * kUs, FT_STATUS_MISS);
	log.Request(1, 1, 1002 * kUs * 1000, 20 * kUs, FT_STATUS_ERROR_REPLY);
	log.Request(1, 1, 1003 * kUs * 1000, 20 * kUs, FT_STATUS_ERROR_REPLY);
	log.Flush();
	Followed f(dir.file("r"));
	f.To(2 * kSecondNs);
	std::map<Outcome, uint64_t> counts;
	for (const RequestTotals &t : f.follower.requests())
		counts[t.outcome] += t.times.count;
	const uint64_t one = counts[Outcome::Ok];
	CHECK(one > 0); // times the sample
	CHECK(counts[Outcome::Miss] == one);
	CHECK(counts[Outcome::Error] == 2 * one);
}

TEST_CASE("the time in which requests were recorded, and a sample that was reduced")
{
	TempDir dir;
	RequestLog log;
	log.on = true;
	log.Begin(dir.file("r"));
	Followed f(dir.file("r"));
	auto note = [&](uint64_t since_ns, const std::string &more) {
		REQUIRE(ft_writer_json(
			    log.w, FT_BLOCK_NOTE,
			    (R"({"t_ns":)" + std::to_string(kBegan + since_ns) + "," + more + "}").c_str()) ==
			0);
	};
	log.Connection(1, 0, kFirst);
	log.Request(1, 1, 100 * kUs, 20 * kUs);
	note(2 * kSecondNs, R"("kind":"requests-sample","sample":16)");
	log.Request(1, 1, 3 * kSecondNs, 20 * kUs);
	log.Flush();
	f.To(3 * kSecondNs);
	CHECK(f.Count(0, "GET") == 17);
	CHECK(f.follower.request_sample() == 16);
	CHECK(f.follower.requests_recorded_ns() == 3 * kSecondNs);
	note(4 * kSecondNs, R"("kind":"requests-slice","on":false)");
	log.Request(1, 1, 7 * kSecondNs, 20 * kUs);
	log.Flush();
	f.To(8 * kSecondNs);
	CHECK(f.follower.requests_recorded_ns() == 4 * kSecondNs);
	note(8 * kSecondNs, R"("kind":"requests-slice","on":true)");
	log.Request(1, 1, 10 * kSecondNs, 20 * kUs);
	log.Flush();
	f.To(10 * kSecondNs);
	CHECK(f.follower.requests_recorded_ns() == 6 * kSecondNs);
	note(11 * kSecondNs, R"("kind":"requests-ended")");
	log.Request(1, 1, 12 * kSecondNs, 20 * kUs);
	log.Flush();
	f.To(12 * kSecondNs);
	CHECK(f.follower.requests_recorded_ns() == 7 * kSecondNs);
}

TEST_CASE("requests of unknown connections and servers are counted as other")
{
	TempDir dir;
	RequestLog log;
	log.Begin(dir.file("r"));
	Followed f(dir.file("r"));
	log.Connection(2, 9, kFirst); // a server that the recorder has not listed
	log.Request(1, 1, 100 * kUs, 20 * kUs);
	log.Request(2, 2, 100 * kUs, 20 * kUs);
	log.Flush();
	f.To(kSecondNs);
	CHECK(f.Count(kNone, "GET") == 0);
	CHECK(f.Count(kNone, "SET") == 1);
	log.Request(2, 2, 5 * kSecondNs, 20 * kUs);
	log.Flush();
	f.To(5 * kSecondNs);
	CHECK(f.Count(kNone, "GET") == 1); // its connection was lost
	CHECK(f.Count(kNone, "SET") == 2);
	CHECK(f.batch.requests.empty());

	// The recorder lists it after it has found it.
	REQUIRE(ft_writer_json(log.w, FT_BLOCK_NOTE,
			       R"({"t_ns":1,"kind":"target-began","pid":502,"comm":"valkey-server"})") == 0);
	REQUIRE(ft_writer_json(log.w, FT_BLOCK_NOTE,
			       R"({"t_ns":1,"kind":"request-servers","server_info":[{},{},{},{},{},{},{},)"
			       R"({},{},{"pid":502}]})") == 0);
	log.Request(2, 2, 5100 * kUs * 1000, 20 * kUs);
	log.Flush();
	f.To(6 * kSecondNs);
	CHECK(f.Count(2, "SET") == 1);
	CHECK(f.follower.servers().at(2).name == "valkey-server");
	CHECK(f.Count(kNone, "SET") == 2);
}

TEST_CASE("numbers of clients, commands and servers are limited, and no request is lost")
{
	TempDir dir;
	RequestLog log;
	log.ops = "[";
	for (int i = 0; i < 200; i++)
		log.ops += (i ? ",\"C" : "\"C") + std::to_string(i) + "\"";
	log.ops += "]";
	log.Begin(dir.file("r"));
	Followed f(dir.file("r"));
	for (uint32_t id = 1; id <= 3000; id++) {
		char address[16] = {0x20, 1, static_cast<char>(id >> 8), static_cast<char>(id)};
		address[15] = 1;
		log.Connection(id, 0, address, "", id == 3000 ? FT_CLIENT_HASHED : 0);
	}
	REQUIRE(ft_writer_flush(log.w) == 0);
	for (uint32_t id = 1; id <= 3000; id++)
		log.Request(id, static_cast<uint8_t>(id % 256), 100 * kUs, id * kUs);
	log.Flush();
	f.To(kSecondNs);
	uint64_t all = 0, of_clients = 0;
	for (const RequestTotals &t : f.follower.requests())
		all += t.times.count;
	CHECK(all == 3000);
	CHECK(f.follower.requests().size() == kMostCommands + 1);
	CHECK(f.Count(0, "other") > 1000);
	REQUIRE(f.batch.requests.size() == 1);
	CHECK(f.batch.requests[0].clients.size() == kMostClients + 1);
	for (const RequestSecond::OfClient &c : f.batch.requests[0].clients)
		of_clients += c.count;
	CHECK(of_clients == 3000);
	const RequestSecond::OfClient &rest = f.batch.requests[0].clients.back();
	CHECK(rest.client.Name() == "other");
	CHECK(rest.count == 2000);
	CHECK(rest.max_ns == 3000 * kUs);
}

TEST_CASE("a log without the kernel's requests, and blocks that are not one, count nothing")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(),
			       R"({"program":"forktail-load","start_ns":5000000000000,"ops":["GET"]})") == 0);
	Followed f(dir.file("r"));
	ft_requests columns;
	REQUIRE(ft_requests_init(&columns) == 0);
	ft_request q = {};
	q.end_ns = kBegan;
	q.start_ns = q.intended_ns = kBegan - 1;
	ft_requests_append(&columns, &q);
	ft_requests_flush(&columns, w);
	ft_requests_free(&columns);
	ft_writer_close(w, "{}");
	f.To(kSecondNs);
	CHECK(f.follower.requests().empty());

	RequestLog log;
	log.Begin(dir.file("s"));
	Followed g(dir.file("s"));
	const std::string garbage(4096, '\x81');
	ft_writer_block(log.w, FT_BLOCK_REQUEST, 0, 1000, garbage.data(), garbage.size());
	log.Flush();
	g.To(kSecondNs);
	CHECK(g.follower.requests().empty());
}

TEST_CASE("bounds of buckets are inclusive")
{
	for (size_t i = 0; i < ServiceTimes::kBuckets; i++) {
		ServiceTimes t;
		t.Add(ServiceTimes::BoundNs(i), 3);
		t.Add(ServiceTimes::BoundNs(i) + 1);
		CHECK(t.counts[i] == 3);
		CHECK(t.counts[i + 1] == 1);
		CHECK(t.count == 4);
	}
	CHECK(ServiceTimes::BoundNs(ServiceTimes::kBuckets - 1) == 4'194'304'000);
}

TEST_CASE(
    "a client is its connection's name, else its process, else its address; those beyond a limit are one")
{
	TempDir dir;
	RequestLog log;
	log.Begin(dir.file("r"));
	Followed f(dir.file("r"));
	log.Connection(1, 0, kFirst, "python3"); // a process of this host, over TCP
	log.Connection(2, 0, kFirst, "python3", 0, "billing");
	for (uint32_t c = 3; c <= 150; c++)
		log.Connection(c, 0, kLocal, ("client-" + std::to_string(c)).c_str());
	for (uint32_t c = 1; c <= 150; c++)
		log.Request(c, 1, 1100 * kUs * 1000, 20 * kUs);
	log.Flush();
	f.To(1300 * kUs * 1000);
	const std::vector<ClientTotals> &clients = f.follower.request_clients();
	REQUIRE(clients.size() == kMostClientTotals + 1);
	CHECK(clients[0].client == "python3");
	CHECK(clients[1].client == "billing");
	CHECK(clients.back().client == "other");
	CHECK(clients.back().server == kNone);
	CHECK(clients.back().count == 50);
}
