// SPDX-License-Identifier: MIT
// From reads and writes to requests: which write answers which request, arrivals of their first bytes, and
// what is left out when events are missing.
#include <cstring>
#include <string>
#include <vector>

#include "bpf/request_events.h"
#include "loader/requests.h"
#include "recording/recording.h"
#include "tests/support/catch.h"

namespace
{

constexpr uint32_t kTarget = 100;
constexpr uint64_t ms = 1'000'000;

struct Arrival {
	uint64_t t_ns;
	uint32_t bytes;
};

// One connection of a target, and the requests found on it.
class Stream
{
public:
	explicit Stream(uint8_t protocol = SCAN_REDIS, bool asynchronous = false)
	    : matcher_(matcher_open(Take, this))
	{
		const request_target target = {kTarget, protocol, asynchronous, false};
		matcher_target(matcher_, &target);
		ft_request_connection c = {};
		c.head = {FT_REQUEST_CONNECTION, 0, 1, 1};
		c.tgid = kTarget;
		c.start = offset_;
		matcher_event(matcher_, &c, sizeof c);
	}
	~Stream() { matcher_close(matcher_); }
	Stream(const Stream &) = delete;
	Stream &operator=(const Stream &) = delete;

	void Read(uint64_t t_ns, const std::string &bytes, const std::vector<Arrival> &arrivals = {},
		  size_t captured = SIZE_MAX)
	{
		std::vector<ft_request_arrival> all;
		uint32_t end = offset_;
		for (const Arrival &a : arrivals) {
			end += a.bytes;
			all.push_back({a.t_ns, a.t_ns, end, end});
		}
		ft_request_read e = {};
		if (all.size() > FT_READ_ARRIVALS) {
			ft_request_arrivals before = {};
			before.head = {FT_REQUEST_ARRIVALS, sequence_++, 1, t_ns};
			before.count = static_cast<uint32_t>(all.size());
			std::copy(all.begin(), all.end(), before.arrival);
			matcher_event(matcher_, &before, sizeof before);
		} else {
			std::copy(all.begin(), all.end(), e.arrival);
			e.arrivals = static_cast<uint32_t>(all.size());
		}
		captured = std::min(captured, bytes.size());
		offset_ += static_cast<uint32_t>(bytes.size());
		e.head = {FT_REQUEST_READ, sequence_++, 1, t_ns};
		e.tid = kTarget;
		e.end = offset_;
		e.bytes = static_cast<uint32_t>(bytes.size());
		e.captured = static_cast<uint32_t>(captured);
		std::string event(reinterpret_cast<const char *>(&e), sizeof e);
		event += bytes.substr(0, captured);
		std::vector<uint64_t> aligned(event.size() / 8 + 1);
		memcpy(aligned.data(), event.data(), event.size());
		matcher_event(matcher_, aligned.data(), event.size());
	}
	void Write(uint64_t t_ns, uint32_t bytes = 5, uint64_t left_ns = 0, const std::string &begin = "+OK")
	{
		ft_request_write e = {};
		e.head = {FT_REQUEST_WRITE, sequence_++, 1, t_ns};
		e.left_ns = left_ns;
		e.bytes = bytes;
		begin.copy(reinterpret_cast<char *>(e.begin), sizeof e.begin);
		matcher_event(matcher_, &e, sizeof e);
	}
	void Tick(uint64_t now_ns) { matcher_tick(matcher_, now_ns); }
	// An event that did not reach the ring.
	void Lose() { sequence_++; }
	void Skip(uint32_t bytes) { offset_ += bytes; }
	const std::vector<request_message> &Finish()
	{
		matcher_finish(matcher_);
		return requests;
	}
	uint64_t Count(request_count what) const { return counts.counts[what]; }

	std::vector<request_message> requests, transactions, arguments, names, keys;
	request_message counts = {};
	size_t connections = 0;

private:
	static void Take(void *context, const request_message *m)
	{
		auto *s = static_cast<Stream *>(context);
		if (m->kind == MESSAGE_REQUEST)
			s->requests.push_back(*m);
		else if (m->kind == MESSAGE_COUNTS)
			s->counts = *m;
		else if (m->kind == MESSAGE_CONNECTION)
			s->connections++;
		else if (m->kind == MESSAGE_TRANSACTION)
			s->transactions.push_back(*m);
		else if (m->kind == MESSAGE_ARGUMENTS)
			s->arguments.push_back(*m);
		else if (m->kind == MESSAGE_NAME)
			s->names.push_back(*m);
		else if (m->kind == MESSAGE_KEY)
			s->keys.push_back(*m);
	}
	matcher *matcher_;
	uint32_t offset_ = UINT32_MAX - 20; // offsets wrap around
	uint16_t sequence_ = 0;
};

const std::string kGet = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", kSet = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
const auto kGetBytes = static_cast<uint32_t>(kGet.size()), kSetBytes = static_cast<uint32_t>(kSet.size());

} // namespace

TEST_CASE("matcher: one request at a time")
{
	Stream s;
	s.Read(12 * ms, kGet, {{10 * ms, kGetBytes}});
	s.Write(15 * ms, 7, 14 * ms);
	s.Read(22 * ms, kSet, {{20 * ms, kSetBytes}});
	s.Write(25 * ms);
	const auto &found = s.Finish();
	REQUIRE(found.size() == 2);
	CHECK(s.connections == 1);
	CHECK(std::string(commands_name(found[0].request.command)) == "GET");
	CHECK(found[0].request.arrival_ns == 10 * ms);
	CHECK(found[0].request.read_ns == 12 * ms);
	CHECK(found[0].request.end_ns == 14 * ms);
	CHECK(found[0].request.written_ns == 15 * ms);
	CHECK(found[0].request.request_bytes == kGetBytes);
	CHECK(found[0].request.answer_bytes == 7);
	CHECK(found[1].request.arrival_ns == 20 * ms);
	CHECK(found[1].request.end_ns == 25 * ms);
}

TEST_CASE("matcher: a pipeline's requests have their own arrivals and share the write")
{
	Stream s;
	s.Read(20 * ms, kGet + kSet + kGet,
	       {{10 * ms, kGetBytes + 3}, {11 * ms, kSetBytes}, {12 * ms, kGetBytes - 3}});
	s.Write(25 * ms, 30);
	const auto &found = s.Finish();
	REQUIRE(found.size() == 3);
	CHECK(found[0].request.arrival_ns == 10 * ms);
	CHECK(found[1].request.arrival_ns == 10 * ms); // its first bytes came with the first piece
	CHECK(found[2].request.arrival_ns == 12 * ms - ms);
	CHECK(found[2].request.end_ns == 25 * ms);
	CHECK(found[2].request.answer_bytes == 10);
	CHECK(s.Count(COUNT_EXCHANGES) == 0);
}

TEST_CASE("matcher: a request may need several reads, and an answer several writes")
{
	Stream s;
	s.Read(12 * ms, kSet.substr(0, 10), {{10 * ms, 10}});
	s.Read(14 * ms, kSet.substr(10), {{13 * ms, kSetBytes - 10}});
	s.Write(15 * ms, 100);
	s.Write(16 * ms, 100);
	s.Write(18 * ms, 50);
	const auto &found = s.Finish();
	REQUIRE(found.size() == 1);
	CHECK(found[0].request.arrival_ns == 10 * ms);
	CHECK(found[0].request.read_ns == 14 * ms);
	CHECK(found[0].request.end_ns == 18 * ms);
	CHECK(found[0].request.answer_bytes == 250);
}

TEST_CASE("matcher: as many writes as requests answer one each, another number is an exchange")
{
	Stream s;
	s.Read(12 * ms, kGet + kGet, {{10 * ms, 2 * kGetBytes}});
	SECTION("one each")
	{
		s.Write(15 * ms, 5);
		s.Write(16 * ms, 6);
		const auto &found = s.Finish();
		REQUIRE(found.size() == 2);
		CHECK(found[0].request.end_ns == 15 * ms);
		CHECK(found[1].request.end_ns == 16 * ms);
		CHECK(found[1].request.answer_bytes == 6);
		CHECK(s.Count(COUNT_EXCHANGES) == 0);
	}
	SECTION("three writes")
	{
		for (uint64_t t : {15, 16, 17})
			s.Write(t * ms);
		const auto &found = s.Finish();
		REQUIRE(found.size() == 2);
		CHECK(found[0].request.end_ns == 16 * ms); // half of the bytes
		CHECK(found[1].request.end_ns == 17 * ms);
		CHECK(s.Count(COUNT_EXCHANGES) == 2);
	}
}

TEST_CASE("matcher: an answer of which more follows is not complete at the next read")
{
	Stream s;
	s.Read(12 * ms, kGet, {{10 * ms, kGetBytes}});
	s.Write(13 * ms, 100000);
	SECTION("the client sent another request meanwhile")
	{
		s.Read(15 * ms, kSet, {{12 * ms, kSetBytes}});
		s.Write(20 * ms, 100000);
		const auto &found = s.Finish();
		REQUIRE(found.size() == 2);
		CHECK(found[0].request.end_ns == 13 * ms);
		CHECK(found[1].request.end_ns == 20 * ms);
		CHECK(s.Count(COUNT_EXCHANGES) == 2);
	}
	SECTION("the socket's buffer was full")
	{
		s.Write(14 * ms, 0);
		s.Tick(100'000 * ms);
		CHECK(s.requests.empty());
		s.Write(200'000 * ms, 5000);
		const auto &found = s.Finish();
		REQUIRE(found.size() == 1);
		CHECK(found[0].request.end_ns == 200'000 * ms);
	}
	SECTION("it was complete: the next request arrived after it")
	{
		s.Read(15 * ms, kSet, {{14 * ms, kSetBytes}});
		s.Write(20 * ms);
		const auto &found = s.Finish();
		REQUIRE(found.size() == 2);
		CHECK(found[0].request.end_ns == 13 * ms);
		CHECK(found[1].request.end_ns == 20 * ms);
		CHECK(s.Count(COUNT_EXCHANGES) == 0);
	}
	SECTION("it never ended")
	{
		s.Write(14 * ms, 0);
		CHECK(s.Finish().empty());
	}
}

TEST_CASE("matcher: a request may end among bytes that were not captured")
{
	const std::string large = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n" + std::string(5000, 'x') + "\r\n";
	const auto bytes = static_cast<uint32_t>(large.size());
	Stream s;
	s.Read(12 * ms, large + kSet + kGet, {{10 * ms, bytes + kSetBytes + kGetBytes}}, 3000);
	s.Write(15 * ms, 15);
	SECTION("what follows is left out until all is answered")
	{
		s.Read(22 * ms, kGet, {{14 * ms, kGetBytes}});
		s.Write(25 * ms);
		const auto &found = s.Finish();
		REQUIRE(found.size() == 2);
		CHECK(found[0].request.end_ns == 15 * ms);
		CHECK(found[1].request.arrival_ns == 14 * ms);
		CHECK(s.Count(COUNT_LOST) > 0);
	}
	SECTION("with several writes it is not known which one answers")
	{
		s.Write(16 * ms);
		CHECK(s.Finish().empty());
	}
}

TEST_CASE("matcher: a request of many arguments is found although not all of it was captured")
{
	std::string keys = "get", array = "*40001\r\n$4\r\nMGET\r\n";
	for (int i = 0; i < 40000; i++) {
		keys += " key12345";
		array += "$3\r\nk12\r\n";
	}
	const struct {
		uint8_t protocol;
		std::string request, next, command;
		bool estimated;
	} rows[] = {{SCAN_MEMCACHED, keys + "\r\n", "get k\r\n", "GET", true},
		    {SCAN_REDIS, array, kGet, "MGET", false}};
	for (const auto &row : rows) {
		INFO(row.command);
		const auto bytes = static_cast<uint32_t>(row.request.size());
		Stream s(row.protocol);
		s.Read(12 * ms, row.request.substr(0, 100'000), {{10 * ms, 100'000}}, 30'000);
		s.Read(13 * ms, row.request.substr(100'000), {{11 * ms, bytes - 100'000}}, 0);
		s.Write(15 * ms, 5000);
		s.Write(16 * ms, 5000);
		s.Read(32 * ms, row.next, {{30 * ms, static_cast<uint32_t>(row.next.size())}});
		s.Write(35 * ms);
		const auto &found = s.Finish();
		REQUIRE(found.size() == 2);
		CHECK(std::string(commands_name(found[0].request.command)) == row.command);
		CHECK(found[0].request.arrival_ns == 10 * ms);
		CHECK(found[0].request.read_ns == 13 * ms);
		CHECK(found[0].request.written_ns == 16 * ms);
		CHECK(found[0].request.request_bytes == bytes);
		CHECK(found[1].request.arrival_ns == 30 * ms);
		REQUIRE(s.arguments.size() == 1);
		CHECK(s.arguments[0].arguments.read_ns == 13 * ms);
		CHECK(s.arguments[0].arguments.estimated == row.estimated);
		CHECK(s.arguments[0].arguments.count >= 39'900);
		CHECK(s.arguments[0].arguments.count <= 40'100);
	}
}

TEST_CASE("matcher: after missing events a connection is left out until it is idle")
{
	Stream s;
	s.Read(12 * ms, kGet, {{10 * ms, kGetBytes}});
	s.Write(15 * ms);
	SECTION("a read")
	{
		s.Lose();
		s.Skip(kGetBytes);
		s.Write(25 * ms);
	}
	SECTION("a write")
	{
		s.Read(22 * ms, kGet, {{20 * ms, kGetBytes}});
		s.Lose();
	}
	s.Read(32 * ms, kSet, {{30 * ms, kSetBytes}});
	s.Write(35 * ms);
	const auto &found = s.Finish();
	REQUIRE(found.size() == 2);
	CHECK(found[1].request.arrival_ns == 30 * ms);
	CHECK(std::string(commands_name(found[1].request.command)) == "SET");
}

TEST_CASE("matcher: a pipeline with a missing piece is left out, not guessed")
{
	Stream s;
	s.Read(12 * ms, kGet, {{10 * ms, kGetBytes}});
	s.Lose();
	s.Skip(10);
	s.Read(13 * ms, kGet + kGet, {{11 * ms, 2 * kGetBytes}}); // arrived before the last write is known
	s.Write(15 * ms);
	CHECK(s.Finish().size() <= 2);
	CHECK(s.Count(COUNT_LOST) >= 1);
}

TEST_CASE("matcher: found in the middle of a value")
{
	Stream s;
	s.Read(12 * ms, "zzzz\nzzzz\nzzz\n", {{10 * ms, 14}});
	s.Read(22 * ms, "zz\r\n", {{20 * ms, 4}});
	s.Write(25 * ms);
	s.Read(32 * ms, kGet, {{30 * ms, kGetBytes}});
	s.Write(35 * ms);
	const auto &found = s.Finish();
	REQUIRE(found.size() == 1);
	CHECK(found[0].request.arrival_ns == 30 * ms);
}

TEST_CASE("matcher: a blocking command is left out, and what follows waits for its answer")
{
	const std::string blpop = "*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$1\r\n0\r\n";
	const auto bytes = static_cast<uint32_t>(blpop.size());
	Stream s;
	s.Read(12 * ms, blpop, {{10 * ms, bytes}});
	s.Read(22 * ms, kGet, {{20 * ms, kGetBytes}});
	s.Write(500 * ms);
	s.Read(522 * ms, kGet, {{520 * ms, kGetBytes}});
	s.Write(525 * ms);
	const auto &found = s.Finish();
	REQUIRE(found.size() == 1);
	CHECK(found[0].request.arrival_ns == 520 * ms);
	CHECK(s.Count(COUNT_BLOCKING) == 2); // and what was behind it
}

TEST_CASE("matcher: in a transaction nothing blocks")
{
	const std::string all =
	    "*1\r\n$5\r\nMULTI\r\n*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$1\r\n0\r\n*1\r\n$4\r\nEXEC\r\n";
	Stream s;
	s.Read(12 * ms, all, {{10 * ms, static_cast<uint32_t>(all.size())}});
	s.Write(15 * ms);
	CHECK(s.Finish().size() == 3);
	CHECK(s.Count(COUNT_BLOCKING) == 0);
}

TEST_CASE("matcher: a subscriber's messages are no answers")
{
	const std::string subscribe = "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n";
	Stream s;
	s.Read(12 * ms, subscribe, {{10 * ms, static_cast<uint32_t>(subscribe.size())}});
	for (uint64_t t = 15; t < 300; t++)
		s.Write(t * ms);
	SECTION("as long as it is one")
	{
		CHECK(s.Finish().empty());
		CHECK(s.Count(COUNT_PUSHES) == 1);
	}
	SECTION("later requests are seen again")
	{
		const std::string end = "*2\r\n$11\r\nUNSUBSCRIBE\r\n$1\r\nc\r\n";
		s.Read(402 * ms, end, {{400 * ms, static_cast<uint32_t>(end.size())}});
		s.Write(405 * ms);
		s.Read(412 * ms, kGet, {{410 * ms, kGetBytes}});
		s.Write(415 * ms);
		s.Write(418 * ms); // a late message
		const auto &found = s.Finish();
		REQUIRE(found.size() == 1);
		CHECK(found[0].request.end_ns == 415 * ms);
		CHECK(s.Count(COUNT_PUSHES) == 2);
	}
}

TEST_CASE("matcher: invalidations of tracked keys are no answers")
{
	const std::string on = "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n";
	Stream s;
	s.Read(12 * ms, on, {{10 * ms, static_cast<uint32_t>(on.size())}});
	s.Write(15 * ms);
	s.Read(22 * ms, kGet, {{20 * ms, kGetBytes}});
	s.Write(25 * ms);
	s.Write(28 * ms);
	const auto &found = s.Finish();
	REQUIRE(found.size() == 2);
	CHECK(found[1].request.end_ns == 25 * ms);
}

TEST_CASE("matcher: TLS has times and sizes, no commands")
{
	const std::string record = "\x16\x03\x01 handshake";
	Stream s;
	s.Read(12 * ms, record, {{10 * ms, static_cast<uint32_t>(record.size())}});
	s.Write(15 * ms);
	s.Read(22 * ms, "\x17\x03\x03 data", {{20 * ms, 8}});
	s.Write(25 * ms);
	const auto &found = s.Finish();
	REQUIRE(found.size() == 2);
	CHECK(found[1].request.command == COMMAND_UNKNOWN);
	CHECK(found[1].request.request_bytes == 8);
	CHECK(s.Count(COUNT_UNKNOWN) == 2);
}

TEST_CASE("matcher: a proxy may read more before it answers")
{
	Stream s(SCAN_REDIS, true);
	SECTION("two requests with a write each")
	{
		s.Read(12 * ms, kGet, {{10 * ms, kGetBytes}});
		s.Read(14 * ms, kSet, {{13 * ms, kSetBytes}});
		s.Write(15 * ms);
		s.Write(18 * ms);
		const auto &found = s.Finish();
		REQUIRE(found.size() == 2);
		CHECK(found[0].request.end_ns == 15 * ms);
		CHECK(found[1].request.end_ns == 18 * ms);
	}
	SECTION("unknown which write answers which")
	{
		s.Read(12 * ms, kGet, {{10 * ms, kGetBytes}});
		s.Read(14 * ms, kSet + kGet, {{13 * ms, kSetBytes + kGetBytes}});
		s.Write(15 * ms);
		s.Write(18 * ms);
		CHECK(s.Finish().empty());
		CHECK(s.Count(COUNT_LOST) == 3);
	}
}

TEST_CASE("matcher: garbage and cut events are harmless")
{
	Stream s;
	for (int i = 0; i < 300; i++) {
		std::string bytes(static_cast<size_t>(i), static_cast<char>(i * 37));
		s.Read((10 + static_cast<uint64_t>(i)) * ms, bytes + "x", {{10 * ms, 1}},
		       static_cast<size_t>(i) / 2);
		if (i % 3 == 0)
			s.Write((10 + static_cast<uint64_t>(i)) * ms);
	}
	s.Finish();
	CHECK(s.connections <= 1);
}

TEST_CASE("a large transaction is reported with its number of commands")
{
	const std::string multi = "*1\r\n$5\r\nMULTI\r\n", exec = "*1\r\n$4\r\nEXEC\r\n",
			  discard = "*1\r\n$7\r\nDISCARD\r\n";
	uint64_t t = 0;
	Stream s;
	auto send = [&](const std::string &bytes) {
		t += 3;
		s.Read((t - 1) * ms, bytes, {{(t - 2) * ms, static_cast<uint32_t>(bytes.size())}});
		s.Write(t * ms);
	};
	auto queue = [&](size_t commands) {
		for (size_t i = 0; i < commands; i++)
			send(i % 2 ? kGet : kSet);
	};
	send(multi);
	queue(TRANSACTION_LARGE + 500);
	send(exec);
	REQUIRE(s.transactions.size() == 1);
	CHECK(s.transactions[0].transaction.commands == TRANSACTION_LARGE + 500);
	CHECK(s.transactions[0].transaction.read_ns == (t - 1) * ms);
	CHECK(s.transactions[0].transaction.tid == kTarget);
	queue(TRANSACTION_LARGE); // outside
	send(exec);
	send(multi);
	queue(TRANSACTION_LARGE);
	send(discard);
	send(multi);
	queue(TRANSACTION_LARGE - 1); // small
	send(exec);
	send(multi);
	queue(TRANSACTION_LARGE);
	s.Lose(); // how many commands were queued is unknown
	queue(TRANSACTION_LARGE);
	send(exec);
	CHECK(s.transactions.size() == 1);
}

TEST_CASE("the begin of an answer says whether it is an error or a miss")
{
	struct Begin {
		std::string text;
		uint8_t status;
		bool known = true;
	};
	const Begin begins[] = {{"+OK\r\n", FT_STATUS_OK},
				{"$3\r\nabc\r", FT_STATUS_OK},
				{"$-1\r\n", FT_STATUS_MISS},
				{"*-1\r\n", FT_STATUS_MISS},
				{"_\r\n", FT_STATUS_MISS},
				{":-1\r\n", FT_STATUS_OK},
				{"-ERR unk", FT_STATUS_ERROR_REPLY},
				{"!21\r\nSYN", FT_STATUS_ERROR_REPLY},
				{">2\r\n$10\r", FT_STATUS_OK, false},
				{std::string("\x17\x03\x03\0\x1a", 5), FT_STATUS_OK, false},
				{"", FT_STATUS_OK, false},
				{"STORED\r\n", FT_STATUS_OK},
				{"VALUE k ", FT_STATUS_OK},
				{"END\r\n", FT_STATUS_MISS},
				{"NOT_FOUN", FT_STATUS_MISS},
				{"NOT_STOR", FT_STATUS_OK},
				{"ERROR\r\n", FT_STATUS_ERROR_REPLY},
				{"SERVER_E", FT_STATUS_ERROR_REPLY},
				{"HD\r\n", FT_STATUS_OK},
				{"EN\r\n", FT_STATUS_MISS},
				{std::string("\x81\0\0\0\0\0\0\0", 8), FT_STATUS_OK},
				{std::string("\x81\0\0\0\0\0\0\x01", 8), FT_STATUS_MISS},
				{std::string("\x81\0\0\0\0\0\0\x05", 8), FT_STATUS_OK},
				{std::string("\x81\0\0\0\0\0\0\x82", 8), FT_STATUS_ERROR_REPLY}};
	for (const Begin &begin : begins) {
		INFO(begin.text);
		Stream s;
		s.Read(5 * ms, kGet, {{4 * ms, kGetBytes}});
		s.Write(6 * ms, 8, 0, begin.text);
		s.Read(8 * ms, kSet, {{7 * ms, kSetBytes}});
		s.Write(9 * ms);
		const auto &requests = s.Finish();
		REQUIRE(requests.size() == 2);
		CHECK(requests[0].request.status == begin.status);
		CHECK(requests[1].request.status == FT_STATUS_OK);
		CHECK(s.Count(COUNT_NO_OUTCOME) == !begin.known);
	}
}

TEST_CASE("of a pipeline, the answers are looked at that begin a write")
{
	Stream one;
	one.Read(5 * ms, kGet + kGet, {{4 * ms, 2 * kGetBytes}});
	one.Write(6 * ms, 10, 0, "-ERR");
	CHECK(one.Finish().at(0).request.status == FT_STATUS_ERROR_REPLY);
	CHECK(one.requests.at(1).request.status == FT_STATUS_OK);
	CHECK(one.Count(COUNT_NO_OUTCOME) == 1);
	Stream each;
	each.Read(5 * ms, kGet + kGet, {{4 * ms, 2 * kGetBytes}});
	each.Write(6 * ms, 5);
	each.Write(7 * ms, 5, 0, "$-1\r\n");
	CHECK(each.Finish().at(0).request.status == FT_STATUS_OK);
	CHECK(each.requests.at(1).request.status == FT_STATUS_MISS);
	CHECK(each.Count(COUNT_NO_OUTCOME) == 0);
	// A large answer goes in several writes, of which the first begins it.
	Stream large;
	large.Read(5 * ms, kGet, {{4 * ms, kGetBytes}});
	large.Write(6 * ms, 65536, 0, "$99999\r\n");
	large.Write(7 * ms, 34476, 0, "-ERR");
	CHECK(large.Finish().at(0).request.status == FT_STATUS_OK);
}

namespace
{

std::string Bulk(const std::vector<std::string> &words)
{
	std::string text = "*" + std::to_string(words.size()) + "\r\n";
	for (const std::string &word : words)
		text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
	return text;
}

std::string KeyOf(const request_message &m)
{
	return {reinterpret_cast<const char *>(m.key.text), m.key.bytes};
}

} // namespace

TEST_CASE("matcher: a connection's name is reported when the server has accepted it, its library in any case")
{
	Stream s;
	const std::string first = Bulk({"CLIENT", "SETINFO", "LIB-NAME", "redis-py"});
	s.Read(2 * ms, first, {{1 * ms, static_cast<uint32_t>(first.size())}});
	CHECK(s.names.empty());
	uint64_t t_ns = 3 * ms;
	auto ask = [&](const std::string &request, const char *answer = "+OK") {
		s.Write(t_ns += ms, 5, 0, answer);
		s.Read(t_ns += ms, request);
	};
	ask(Bulk({"CLIENT", "SETNAME", "two words"}), "-ERR");
	ask(Bulk({"CLIENT", "SETNAME", "refused"}), "-ERR");
	ask(Bulk({"HELLO", "3", "AUTH", "user", "wrong", "SETNAME", "spoofed"}), "-ERR");
	ask(Bulk({"CLIENT", "SETNAME", std::string(SCAN_TEXT + 1, 'n')}), "-ERR");
	ask(Bulk({"MULTI"}));
	ask(Bulk({"CLIENT", "SETNAME", "queued"}));
	ask(Bulk({"DISCARD"}));
	ask(Bulk({"RESET"}));
	ask(Bulk({"PING"}));
	s.Write(t_ns += ms);
	s.Finish();
	CHECK(s.connections == 1);
	REQUIRE(s.names.size() == 3);
	CHECK(s.names[0].name.as == TEXT_LIBRARY);
	CHECK(s.names[0].name.text == std::string("redis-py"));
	CHECK(s.names[1].name.as == TEXT_NAME);
	CHECK(s.names[1].name.text == std::string(SCAN_TEXT - 1, 'n'));
	CHECK(s.names[2].name.as == TEXT_NAME);
	CHECK(s.names[2].name.text == std::string());
}

TEST_CASE("matcher: keys are reported of requests that the server answered a millisecond after it had read "
	  "them, or later")
{
	scanner_keep_keys(8);
	Stream s;
	s.Read(10 * ms, Bulk({"GET", "waited"}), {{2 * ms, 26}}); // long on its way, answered at once
	s.Write(10 * ms + 1);
	s.Read(20 * ms, Bulk({"GET", "first:123456"}));
	s.Write(22 * ms);
	// Which of several took long is not known.
	s.Read(30 * ms, Bulk({"GET", "second"}) + Bulk({"KEYS", "*"}));
	s.Write(32 * ms);
	s.Read(40 * ms, Bulk({"SMEMBERS", "big"}));
	s.Write(42 * ms);
	s.Finish();
	REQUIRE(s.keys.size() == 2);
	CHECK(KeyOf(s.keys[0]) == "first:12");
	CHECK(KeyOf(s.keys[1]) == "big");
	CHECK(s.keys[1].key.read_ns == 40 * ms);
	CHECK(s.keys[1].key.tid == kTarget);
	scanner_keep_keys(0);
}

TEST_CASE("matcher: keys that are too many in a second are counted")
{
	scanner_keep_keys(8);
	Stream s;
	const std::string first = Bulk({"GET", "0"});
	for (uint64_t i = 0; i < 300; i++) {
		s.Read((10 + 3 * i) * ms, Bulk({"GET", "0"}),
		       i ? std::vector<Arrival>()
			 : std::vector<Arrival>{{9 * ms, static_cast<uint32_t>(first.size())}});
		s.Write((12 + 3 * i) * ms);
	}
	s.Read(2000 * ms, Bulk({"GET", "later"}));
	s.Write(2010 * ms);
	s.Finish();
	REQUIRE(s.keys.size() == 201);
	CHECK(KeyOf(s.keys.back()) == "later");
	CHECK(s.Count(COUNT_KEYS_LEFT_OUT) == 100);
	scanner_keep_keys(0);
}
