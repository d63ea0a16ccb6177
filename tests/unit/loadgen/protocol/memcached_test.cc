// SPDX-License-Identifier: MIT
// The scanners of memcached's replies, text and binary: on every possible reply, cut at every byte, and on
// invalid replies.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"

namespace
{

int scan_of(memcached_text_scanner &s, const char **at, const char *end)
{
	return memcached_text_scan(&s, at, end);
}

int scan_of(memcached_binary_scanner &s, const char **at, const char *end)
{
	return memcached_binary_scan(&s, at, end);
}

template <class Scanner> struct Seen {
	int result = 0;
	size_t used = 0;
	Scanner s = {};
};

// Scans `text` in pieces that end at the given places, up to the first reply or refusal.
template <class Scanner> Seen<Scanner> scan(const std::string &text, const std::vector<size_t> &cuts = {})
{
	Seen<Scanner> seen;
	size_t from = 0;
	std::vector<size_t> ends = cuts;
	ends.push_back(text.size());
	for (size_t end : ends) {
		// A piece of exactly its size on the heap: the sanitizer reports a read beyond it.
		const std::vector<char> piece(text.begin() + static_cast<ptrdiff_t>(from),
					      text.begin() + static_cast<ptrdiff_t>(end));
		const char *at = piece.data();
		seen.result = scan_of(seen.s, &at, piece.data() + piece.size());
		seen.used = from + static_cast<size_t>(at - piece.data());
		if (seen.result != 0)
			break;
		from = end;
	}
	return seen;
}

const auto text = scan<memcached_text_scanner>;
const auto binary = scan<memcached_binary_scanner>;

std::vector<size_t> every_byte(const std::string &bytes)
{
	std::vector<size_t> cuts;
	for (size_t i = 1; i < bytes.size(); i++)
		cuts.push_back(i);
	return cuts;
}

std::string value(const std::string &key, const std::string &data, const std::string &more = "")
{
	return "VALUE " + key + " 0 " + std::to_string(data.size()) + more + "\r\n" + data + "\r\n";
}

struct Case {
	std::string reply;
	uint8_t kind;
};

const std::string longest_key(MEMCACHED_TEXT_KEY, 'k');

const Case texts[] = {
    {value("key:000000000001", "abcdefghijklmnop") + "END\r\n", MEMCACHED_TEXT_HIT},
    {value("k", "") + "END\r\n", MEMCACHED_TEXT_HIT},
    {value("k", "END\r\n") + "END\r\n", MEMCACHED_TEXT_HIT},
    {value("k", "x", " 18446744073709551615") + "END\r\n", MEMCACHED_TEXT_HIT},
    {value(longest_key, "x") + "END\r\n", MEMCACHED_TEXT_HIT},
    {value("\xc3\xa9t\xc3\xa9\xff\x80", "x") + "END\r\n", MEMCACHED_TEXT_HIT},
    {value("a", "1") + value("b", "\r\n", " 7") + value("c", "") + "END\r\n", MEMCACHED_TEXT_HIT},
    {"VALUE k 4294967295 0000000003\r\nabc\r\nEND\r\n", MEMCACHED_TEXT_HIT},
    {"END\r\n", MEMCACHED_TEXT_MISS},
    {"STORED\r\n", MEMCACHED_TEXT_STORED},
    {"NOT_STORED\r\n", MEMCACHED_TEXT_NOT_STORED},
    {"EXISTS\r\n", MEMCACHED_TEXT_EXISTS},
    {"NOT_FOUND\r\n", MEMCACHED_TEXT_NOT_FOUND},
    {"DELETED\r\n", MEMCACHED_TEXT_DELETED},
    {"TOUCHED\r\n", MEMCACHED_TEXT_TOUCHED},
    {"OK\r\n", MEMCACHED_TEXT_OK},
    {"RESET\r\n", MEMCACHED_TEXT_OK},
    {"0\r\n", MEMCACHED_TEXT_NUMBER},
    {"1234567\r\n", MEMCACHED_TEXT_NUMBER},
    {"18446744073709551615\r\n", MEMCACHED_TEXT_NUMBER},
    {"VERSION 1.6.18\r\n", MEMCACHED_TEXT_VERSION},
    {"STAT pid 7\r\nSTAT version 1.6.18\r\nSTAT slab_reassign_rescues 0\r\nEND\r\n", MEMCACHED_TEXT_STATS},
    {"ERROR\r\n", MEMCACHED_TEXT_ERROR},
    {"CLIENT_ERROR bad data chunk\r\n", MEMCACHED_TEXT_ERROR},
    {"SERVER_ERROR out of memory storing object\r\n", MEMCACHED_TEXT_ERROR},
    {"SERVER_ERROR\r\n", MEMCACHED_TEXT_ERROR},
    {value("a", "1") + "SERVER_ERROR out of memory writing get response\r\n", MEMCACHED_TEXT_ERROR},
    {"STAT pid 7\r\nERROR\r\n", MEMCACHED_TEXT_ERROR},
    {"VERSION " + std::string(MEMCACHED_LINE - 8, 'v') + "\r\n", MEMCACHED_TEXT_VERSION},
};

// A binary reply. The key and extras are parts of `body`.
std::string reply(uint8_t opcode, uint16_t status, const std::string &body, uint8_t extras = 0,
		  uint16_t key = 0)
{
	const auto size = static_cast<uint32_t>(body.size());
	const auto c = [](uint32_t byte) { return static_cast<char>(byte & 255); };
	return std::string{c(0x81),
			   c(opcode),
			   c(key >> 8u),
			   c(key),
			   c(extras),
			   c(0),
			   c(status >> 8u),
			   c(status),
			   c(size >> 24u),
			   c(size >> 16u),
			   c(size >> 8u),
			   c(size),
			   1,
			   2,
			   3,
			   4,
			   0,
			   0,
			   0,
			   0,
			   0,
			   0,
			   0,
			   9} +
	       body;
}

struct BinaryCase {
	std::string reply;
	uint8_t kind;
	uint8_t opcode;
	uint16_t status;
	const char *name;
};

const BinaryCase binaries[] = {
    {reply(0x01, 0, ""), MEMCACHED_BINARY_OK, 0x01, 0, "NO_ERROR"},
    {reply(0x00, 0, "\1\2\3\4abcdefghijklmnop", 4), MEMCACHED_BINARY_OK, 0x00, 0, "NO_ERROR"},
    {reply(0x0c, 0, "\1\2\3\4keyvalue", 4, 3), MEMCACHED_BINARY_OK, 0x0c, 0, "NO_ERROR"},
    {reply(0x00, 0x01, "Not found"), MEMCACHED_BINARY_MISS, 0x00, 0x01, "KEY_NOT_FOUND"},
    {reply(0x02, 0x02, "Data exists for key."), MEMCACHED_BINARY_EXISTS, 0x02, 0x02, "KEY_EXISTS"},
    {reply(0x01, 0x03, "Too large."), MEMCACHED_BINARY_ERROR, 0x01, 0x03, "VALUE_TOO_LARGE"},
    {reply(0x0e, 0x05, "Not stored."), MEMCACHED_BINARY_NOT_STORED, 0x0e, 0x05, "ITEM_NOT_STORED"},
    {reply(0x05, 0x06, ""), MEMCACHED_BINARY_ERROR, 0x05, 0x06, "NON_NUMERIC_VALUE"},
    {reply(0x50, 0x81, "Unknown command"), MEMCACHED_BINARY_UNKNOWN_COMMAND, 0x50, 0x81, "UNKNOWN_COMMAND"},
    {reply(0x01, 0x82, "Out of memory"), MEMCACHED_BINARY_OUT_OF_MEMORY, 0x01, 0x82, "OUT_OF_MEMORY"},
    {reply(0x01, 0x0182, ""), MEMCACHED_BINARY_ERROR, 0x01, 0x0182, "UNKNOWN_STATUS"},
};

const char opaque[] = {1, 2, 3, 4};

void check(const BinaryCase &c, const Seen<memcached_binary_scanner> &seen)
{
	CHECK(seen.result == 1);
	CHECK(seen.used == c.reply.size());
	CHECK(seen.s.kind == c.kind);
	CHECK(seen.s.opcode == c.opcode);
	CHECK(seen.s.status == c.status);
	CHECK(memcmp(&seen.s.opaque, opaque, sizeof(opaque)) == 0);
}

// How many replies a stream has, cut at random places. Every one must match its case.
template <class Scanner, class Cases> void scan_stream(const Cases &cases)
{
	std::string stream;
	std::vector<uint8_t> expected;
	for (int round = 0; round < 3; round++)
		for (const auto &c : cases) {
			stream += c.reply;
			expected.push_back(c.kind);
		}
	random_stream random = {7};
	for (int round = 0; round < 100; round++) {
		Scanner s = {};
		std::vector<uint8_t> found;
		// Pieces of a few bytes in one round, of many replies in another.
		const uint64_t largest = round % 2 ? 40 : stream.size();
		for (size_t from = 0; from < stream.size();) {
			const size_t size =
			    std::min<size_t>(1 + random_below(&random, largest), stream.size() - from);
			const std::vector<char> piece(stream.begin() + static_cast<ptrdiff_t>(from),
						      stream.begin() + static_cast<ptrdiff_t>(from + size));
			const char *at = piece.data(), *end = at + size;
			while (at < end) {
				const int result = scan_of(s, &at, end);
				REQUIRE(result >= 0);
				if (result == 1)
					found.push_back(s.kind);
			}
			from += size;
		}
		REQUIRE(found == expected);
	}
}

} // namespace

TEST_CASE("memcached text: a complete reply is found, with its kind and nothing after it")
{
	for (const Case &c : texts) {
		INFO(c.reply);
		const auto seen = text(c.reply + "STORED\r\n", {});
		CHECK(seen.result == 1);
		CHECK(seen.used == c.reply.size());
		CHECK(seen.s.kind == c.kind);
	}
}

TEST_CASE("memcached text: a reply cut at every byte, at any two, and at all, is the same reply")
{
	for (const Case &c : texts) {
		const size_t size = c.reply.size();
		INFO(c.reply);
		const auto same = [&](const std::vector<size_t> &cuts) {
			const auto seen = text(c.reply, cuts);
			return seen.result == 1 && seen.used == size && seen.s.kind == c.kind;
		};
		CHECK(same(every_byte(c.reply)));
		bool all = true;
		for (size_t a = 1; a < size; a++) {
			all = all && same({a});
			for (size_t b = a + 1; b < size && size < 400; b++)
				all = all && same({a, b});
		}
		CHECK(all);
		CHECK(text(c.reply.substr(0, size - 1), {}).result == 0);
	}
}

TEST_CASE("memcached text: one scanner reads a stream of replies however it is cut")
{
	scan_stream<memcached_text_scanner>(texts);
}

TEST_CASE("memcached text: numbers, counts of values and error words are reported, cut or not")
{
	const std::string three = value("a", "1") + value("b", "", " 5") + value("c", "333") + "END\r\n";
	const std::string largest = "18446744073709551615\r\n",
			  full = "SERVER_ERROR out of memory storing object\r\n";
	for (const bool cut : {false, true}) {
		const auto seen = [&](const std::string &s) {
			return text(s, cut ? every_byte(s) : std::vector<size_t>{}).s;
		};
		CHECK(seen(three).values == 3);
		CHECK(seen(largest).number == UINT64_MAX);
		CHECK(seen("42\r\n").number == 42);
		CHECK(seen("ERROR\r\n").line.word == std::string("ERROR"));
		CHECK(seen("ERROR\r\n").line.explanation == std::string());
		CHECK(seen("CLIENT_ERROR bad data chunk\r\n").line.word == std::string("CLIENT_ERROR"));
		CHECK(seen("CLIENT_ERROR bad data chunk\r\n").line.explanation ==
		      std::string("bad data chunk"));
		CHECK(seen(full).line.word == std::string("SERVER_ERROR"));
		CHECK(seen(full).line.explanation ==
		      std::string("out of memory storing object").substr(0, MEMCACHED_EXPLANATION - 1));
		CHECK(seen("SERVER_ERROR " + std::string(100, 'x') + "\r\n").line.explanation ==
		      std::string(MEMCACHED_EXPLANATION - 1, 'x'));

		const memcached_text_scanner no_memory = seen(full);
		const memcached_text_scanner midway =
		    seen(value("a", "1") + "SERVER_ERROR out of memory writing get response\r\n");
		const memcached_text_scanner refused = seen("SERVER_ERROR Connection refused\r\n");
		const memcached_text_scanner client = seen("CLIENT_ERROR out of memory\r\n");
		CHECK(memcached_line_out_of_memory(&no_memory.line));
		CHECK(memcached_line_out_of_memory(&midway.line));
		CHECK_FALSE(memcached_line_out_of_memory(&refused.line));
		CHECK_FALSE(memcached_line_out_of_memory(&client.line));
	}
}

TEST_CASE("memcached text: a reply after an error is not an error")
{
	memcached_text_scanner s = {};
	const std::string stream = "SERVER_ERROR out of memory\r\nSTORED\r\n";
	const char *at = stream.data(), *end = at + stream.size();
	REQUIRE(memcached_text_scan(&s, &at, end) == 1);
	CHECK(memcached_line_out_of_memory(&s.line));
	REQUIRE(memcached_text_scan(&s, &at, end) == 1);
	CHECK(s.kind == MEMCACHED_TEXT_STORED);
	CHECK(at == end);
}

TEST_CASE("memcached text: a large value is skipped and not stored")
{
	memcached_text_scanner s = {};
	const std::string head = "VALUE k 0 " + std::to_string(MEMCACHED_VALUE_BYTES) + "\r\n";
	const std::string piece(1u << 20u, '\r'), tail = "\r\nEND\r\n";
	const char *at = head.data();
	CHECK(memcached_text_scan(&s, &at, head.data() + head.size()) == 0);
	for (int i = 0; i < MEMCACHED_VALUE_BYTES >> 20; i++) {
		at = piece.data();
		REQUIRE(memcached_text_scan(&s, &at, piece.data() + piece.size()) == 0);
		REQUIRE(at == piece.data() + piece.size());
	}
	at = tail.data();
	CHECK(memcached_text_scan(&s, &at, tail.data() + tail.size()) == 1);
	CHECK(s.kind == MEMCACHED_TEXT_HIT);
}

TEST_CASE("memcached text: an invalid reply is refused at the same byte however it is cut")
{
	struct Refused {
		std::string bytes;
		size_t at; // the offending byte
	};
	const Refused refused[] = {
	    {"\r\n", 0},
	    {" END\r\n", 0},
	    {"HTTP/1.1 400 Bad Request\r\n", 4},
	    {"+OK\r\n", 0},
	    {"-1\r\n", 0},
	    {"stored\r\n", 0},
	    {"STORE\r\n", 5},
	    {"STOREDX\r\n", 7},
	    {"STORED \r\n", 6},
	    {"END\n", 3},
	    {"END\rX", 4},
	    {"ABCDEFGHIJKLMNOP\r\n", 15},
	    {"VERSION\r\n", 7},
	    {"12a\r\n", 2},
	    {"12 \r\n", 2},
	    {"18446744073709551616\r\n", 19},
	    {"000000000000000000001\r\n", 20},
	    {"VALUE\r\n", 5},
	    {"VALUE  k 0 1\r\nx\r\nEND\r\n", 6},
	    {"VALUE k\r\n", 7},
	    {"VALUE k\tk 0 1\r\nx\r\nEND\r\n", 7},
	    {"VALUE k\t0 1\r\nx\r\nEND\r\n", 7},
	    {"VALUE " + longest_key + "k 0 1\r\nx\r\nEND\r\n", 6 + MEMCACHED_TEXT_KEY},
	    {"VALUE k  0 1\r\nx\r\nEND\r\n", 8},
	    {"VALUE k -1 1\r\nx\r\nEND\r\n", 8},
	    {"VALUE k 0\r\nx\r\nEND\r\n", 9},
	    {"VALUE k 4294967296 1\r\nx\r\nEND\r\n", 17},
	    {"VALUE k 0 \r\n\r\nEND\r\n", 10},
	    {"VALUE k 0 -1\r\n\r\nEND\r\n", 10},
	    {"VALUE k 0 1073741825\r\n", 19},
	    {"VALUE k 0 99999999999999999999\r\n", 19},
	    {"VALUE k 0 1 \r\nx\r\nEND\r\n", 12},
	    {"VALUE k 0 1 2 \r\nx\r\nEND\r\n", 13},
	    {"VALUE k 0 1 123456789012345678901\r\nx\r\nEND\r\n", 32},
	    {"VALUE k 0 1\rxx\r\nEND\r\n", 12},
	    {"VALUE k 0 1\r\nxy\r\nEND\r\n", 14},
	    {"VALUE k 0 1\r\nx\rEND\r\n", 15},
	    {value("k", "x") + "STORED\r\n", value("k", "x").size() + 6},
	    {value("k", "x") + "5\r\n", value("k", "x").size()},
	    {value("k", "x") + "STAT a b\r\n", value("k", "x").size() + 4},
	    {"STAT a b\r\n" + value("k", "x") + "END\r\n", 15},
	    {"STAT a b\r\nSTORED\r\n", 16},
	    {"STAT a b\r\nRESET\r\n", 15},
	    {"SERVER_ERROR " + std::string(MEMCACHED_LINE - 13, 'x') + "x\r\n", MEMCACHED_LINE},
	    {"STAT " + std::string(100000, 'x'), MEMCACHED_LINE},
	};
	for (const Refused &r : refused) {
		INFO(r.bytes.substr(0, 100));
		const auto same = [&](const std::vector<size_t> &cuts) {
			const auto seen = text(r.bytes, cuts);
			return seen.result == -1 && seen.used == r.at;
		};
		CHECK(text(r.bytes, {}).used == r.at);
		CHECK(same({}));
		CHECK(same(every_byte(r.bytes)));
		bool all = true;
		for (size_t cut = 1; cut < r.bytes.size() && cut < 3000; cut++)
			all = all && same({cut});
		CHECK(all);
	}
}

TEST_CASE("memcached binary: a complete reply is found, with its fields and nothing after it")
{
	for (const BinaryCase &c : binaries) {
		INFO(c.name);
		check(c, binary(c.reply + reply(0x0a, 0, ""), {}));
		CHECK(std::string(memcached_binary_status_name(c.status)) == c.name);
	}
}

TEST_CASE("memcached binary: a reply cut at every byte, at any two, and at all, is the same reply")
{
	for (const BinaryCase &c : binaries) {
		INFO(c.name);
		check(c, binary(c.reply, every_byte(c.reply)));
		for (size_t a = 1; a < c.reply.size(); a++) {
			check(c, binary(c.reply, {a}));
			for (size_t b = a + 1; b < c.reply.size(); b++)
				check(c, binary(c.reply, {a, b}));
		}
		CHECK(binary(c.reply.substr(0, c.reply.size() - 1), {}).result == 0);
	}
}

TEST_CASE("memcached binary: one scanner reads a stream of replies however it is cut")
{
	scan_stream<memcached_binary_scanner>(binaries);
}

TEST_CASE("memcached binary: a large body is skipped and not stored")
{
	std::string head = reply(0, 0, "");
	head[8] = 0x40; // 1 GiB
	memcached_binary_scanner s = {};
	const std::string piece(1u << 20u, '\x81');
	const char *at = head.data();
	CHECK(memcached_binary_scan(&s, &at, head.data() + head.size()) == 0);
	for (int i = 1; i <= MEMCACHED_BINARY_BODY >> 20; i++) {
		at = piece.data();
		REQUIRE(memcached_binary_scan(&s, &at, piece.data() + piece.size()) ==
			(i == MEMCACHED_BINARY_BODY >> 20));
		REQUIRE(at == piece.data() + piece.size());
	}
	CHECK(s.kind == MEMCACHED_BINARY_OK);
}

TEST_CASE("memcached binary: an invalid reply is refused at the same byte however it is cut")
{
	std::string request = reply(0, 0, ""), large = request, larger = request;
	request[0] = '\x80';
	large[8] = 0x40, large[11] = 1;
	larger[8] = '\xff';
	struct Refused {
		std::string bytes;
		size_t at;
	};
	const Refused refused[] = {
	    {"ERROR\r\n", 0},
	    {std::string(1, 0), 0},
	    {request, 0},
	    {large, 11},
	    {larger, 11},
	    {reply(0, 0, "abc", 4), 11}, // more extras than body
	    {reply(0, 0, "abcdefg", 4, 4), 11},
	    {reply(0, 0, "abc", 0, 65535), 11},
	};
	for (const Refused &r : refused) {
		INFO(r.bytes.size());
		CHECK(binary(r.bytes, {}).result == -1);
		CHECK(binary(r.bytes, {}).used == r.at);
		CHECK(binary(r.bytes, every_byte(r.bytes)).used == r.at);
		for (size_t cut = 1; cut < r.bytes.size(); cut++) {
			const auto seen = binary(r.bytes, {cut});
			CHECK((seen.result == -1 && seen.used == r.at));
		}
	}
}
