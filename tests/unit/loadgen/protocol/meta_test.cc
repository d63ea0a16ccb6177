// SPDX-License-Identifier: MIT
// memcached's meta commands: the scanner of their replies on every possible reply, cut at every byte, and on
// invalid replies. Also the bytes of the commands on the wire.
#include <cstring>
#include <string>
#include <vector>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"

namespace
{

struct Seen {
	int result = 0;
	size_t used = 0;
	memcached_meta_scanner s = {};
};

// Scans `text` in pieces that end at the given places, up to the first reply or refusal.
Seen scan(const std::string &text, const std::vector<size_t> &cuts = {})
{
	Seen seen;
	size_t from = 0;
	std::vector<size_t> ends = cuts;
	ends.push_back(text.size());
	for (size_t end : ends) {
		// A piece of exactly its size on the heap: the sanitizer reports a read beyond it.
		const std::vector<char> piece(text.begin() + static_cast<ptrdiff_t>(from),
					      text.begin() + static_cast<ptrdiff_t>(end));
		const char *at = piece.data();
		seen.result = memcached_meta_scan(&seen.s, &at, piece.data() + piece.size());
		seen.used = from + static_cast<size_t>(at - piece.data());
		if (seen.result != 0)
			break;
		from = end;
	}
	return seen;
}

const int64_t none = -1, no_number = -2;

struct Case {
	std::string reply;
	uint8_t kind;
	int64_t opaque;
};

const std::string longest = "HD k" + std::string(MEMCACHED_LINE - 4, 'k') + "\r\n";

// All but the last two as memcached 1.6.18 sends them.
const Case replies[] = {
    {"VA 3 O13\r\nabc\r\n", MEMCACHED_META_VALUE, 13},
    {"VA 0 O9 W\r\n\r\n", MEMCACHED_META_VALUE, 9},
    {"VA 3 c1 f0 t-1 s3 ka O000000000014\r\nabc\r\n", MEMCACHED_META_VALUE, 14},
    {"VA 3 s3\r\nEN\r\r\n", MEMCACHED_META_VALUE, none},
    {"VA 2\r\n\r\n\r\n", MEMCACHED_META_VALUE, none},
    {"VA 3 O-1x\r\nabc\r\n", MEMCACHED_META_VALUE, no_number},
    {"VA 1 O1234567890123456789\r\nx\r\n", MEMCACHED_META_VALUE, no_number},
    {"VA 1 O123456789012345678\r\nx\r\n", MEMCACHED_META_VALUE, 123456789012345678},
    {"HD\r\n", MEMCACHED_META_DONE, none},
    {"HD O15\r\n", MEMCACHED_META_DONE, 15},
    {"HD c5 O0 s7\r\n", MEMCACHED_META_DONE, 0},
    {"HD O\r\n", MEMCACHED_META_DONE, no_number},
    {"EN\r\n", MEMCACHED_META_MISS, none},
    {"EN kYQ== b O1\r\n", MEMCACHED_META_MISS, 1},
    {"NF O1\r\n", MEMCACHED_META_NOT_FOUND, 1},
    {"NS O2\r\n", MEMCACHED_META_NOT_STORED, 2},
    {"EX O3\r\n", MEMCACHED_META_EXISTS, 3},
    {"MN\r\n", MEMCACHED_META_NOOP, none},
    {"ME a exp=-29 la=1 cas=1 fetch=yes cls=1 size=63\r\n", MEMCACHED_META_DEBUG, none},
    {"VERSION 1.6.18\r\n", MEMCACHED_META_VERSION, none},
    {"ERROR\r\n", MEMCACHED_META_ERROR, none},
    {"CLIENT_ERROR invalid flag\r\n", MEMCACHED_META_ERROR, none},
    {"CLIENT_ERRROR bad command line format\r\n", MEMCACHED_META_ERROR, none},
    {"SERVER_ERROR out of memory storing object\r\n", MEMCACHED_META_ERROR, none},
    {longest, MEMCACHED_META_DONE, none},
    {"VERSION " + std::string(MEMCACHED_LINE - 8, 'v') + "\r\n", MEMCACHED_META_VERSION, none},
};

bool same(const Case &c, const Seen &seen)
{
	const int64_t opaque = !seen.s.has_opaque ? none
			       : seen.s.opaque == MEMCACHED_META_NO_NUMBER
				   ? no_number
				   : static_cast<int64_t>(seen.s.opaque);
	return seen.result == 1 && seen.used == c.reply.size() && seen.s.kind == c.kind && opaque == c.opaque;
}

// A command on the wire, or why it is invalid.
std::string wire(const std::string &text, bool quiet = false, uint32_t opaque = 42)
{
	key_names names = {};
	values made = {};
	fill f = {};
	random_stream random = {11};
	char error[256] = "";
	command c = {};
	bytes to = {};
	patches where = {};
	const request_values v = {7, nullptr, 0, opaque, 0, 0};
	std::string all;

	REQUIRE(key_names_prepare(&names, "k", "4", 1000, error, sizeof(error)) == 0);
	f.names = &names;
	f.values = &made;
	f.keys = 1000;
	f.fields = 10;
	f.expiry_low = f.expiry_high = 60;
	f.fixed_value = "VAL";
	REQUIRE(value_sizes_parse("3", &made.sizes, error, sizeof(error)));
	REQUIRE(command_parse(&c, text.c_str(), error, sizeof(error)));
	if (!protocol_of(PROTOCOL_MEMCACHE_META)->fits(&c, error, sizeof(error))) {
		all = error;
	} else {
		// Refused or not (a flag O given by the user, below), the answers that it gets are
		// determined.
		protocol_of(PROTOCOL_MEMCACHE_META)->settle(&c, quiet, text.c_str(), error, sizeof(error));
		REQUIRE(protocol_of(PROTOCOL_MEMCACHE_META)->write(&c, &f, &v, &random, &to, &where));
		all.assign(to.at, to.length);
		// The number can be patched at any place.
		bool patched = !c.numbered;
		for (uint32_t i = 0; i < where.count; i++)
			if (where.list[i].kind == PART_OPAQUE) {
				const request_values next = {8, nullptr, 0, 4294967295u, 0, 0};
				patch_apply(&where.list[i], &f, &next, &random, to.at);
				patched =
				    std::string(to.at, to.length).find(" O004294967295") != std::string::npos;
			}
		CHECK(patched);
	}
	free(to.at);
	command_free(&c);
	key_names_free(&names);
	values_free(&made);
	return all;
}

} // namespace

TEST_CASE("memcached meta: a complete reply is found, with its kind and opaque and nothing after it")
{
	for (const Case &c : replies) {
		INFO(c.reply);
		Seen seen = scan(c.reply + "HD O7\r\n");
		CHECK(same(c, seen));
	}
}

TEST_CASE("memcached meta: a reply cut at every byte, and at any two, is the same reply")
{
	for (const Case &c : replies) {
		const size_t size = c.reply.size();
		std::vector<size_t> everywhere;
		bool all = true;
		INFO(c.reply);
		for (size_t a = 1; a < size; a++) {
			everywhere.push_back(a);
			all = all && same(c, scan(c.reply, {a}));
			for (size_t b = a + 1; b < size && size < 100; b++)
				all = all && same(c, scan(c.reply, {a, b}));
		}
		CHECK(all);
		CHECK(same(c, scan(c.reply, everywhere)));
		CHECK(scan(c.reply.substr(0, size - 1)).result == 0);
	}
}

TEST_CASE("memcached meta: one scanner reads a stream of replies however it is cut")
{
	std::string stream;
	std::vector<uint8_t> expected;
	for (int round = 0; round < 3; round++)
		for (const Case &c : replies) {
			stream += c.reply;
			expected.push_back(c.kind);
		}
	random_stream random = {7};
	for (int round = 0; round < 100; round++) {
		memcached_meta_scanner s = {};
		std::vector<uint8_t> found;
		for (size_t from = 0; from < stream.size();) {
			const size_t size = std::min<size_t>(
			    1 + random_below(&random, round % 2 ? 40 : stream.size()), stream.size() - from);
			const std::vector<char> piece(stream.begin() + static_cast<ptrdiff_t>(from),
						      stream.begin() + static_cast<ptrdiff_t>(from + size));
			const char *at = piece.data(), *end = at + size;
			while (at < end) {
				const int result = memcached_meta_scan(&s, &at, end);
				REQUIRE(result >= 0);
				if (result == 1)
					found.push_back(s.kind);
			}
			from += size;
		}
		REQUIRE(found == expected);
	}
}

TEST_CASE("memcached meta: error words are reported, cut or not")
{
	const std::string full = "SERVER_ERROR out of memory storing object\r\n";
	for (size_t cut = 1; cut < full.size(); cut++) {
		const Seen seen = scan(full, {cut});
		CHECK(seen.s.line.word == std::string("SERVER_ERROR"));
		CHECK(seen.s.line.explanation == std::string("out of memory storing object"));
		CHECK(memcached_line_out_of_memory(&seen.s.line));
	}
	const Seen client = scan("CLIENT_ERROR out of memory\r\n");
	CHECK_FALSE(memcached_line_out_of_memory(&client.s.line));
	CHECK(scan("SERVER_ERROR " + std::string(100, 'x') + "\r\n").s.line.explanation ==
	      std::string(MEMCACHED_EXPLANATION - 1, 'x'));
}

TEST_CASE("memcached meta: an invalid reply is refused, cut or not")
{
	for (const std::string &text : {std::string("END\r\n"),
					std::string("VALUE k 0 1\r\na\r\n"),
					std::string("HTTP/1.1 400 Bad Request\r\n"),
					std::string("\r\n"),
					std::string("+OK\r\n"),
					std::string("VA\r\n"),
					std::string("VA \r\n"),
					std::string("VA x\r\n"),
					std::string("VA 1x\r\na\r\n"),
					std::string("VA -1\r\n"),
					std::string("VA 1073741825\r\n"),
					std::string("VA 99999999999\r\n"),
					std::string("VA 1\r\nab\r\n"),
					std::string("VA 1\r\na\rb"),
					std::string("VA 0\r\nx\r\n"),
					std::string("HD \r\n"),
					std::string("HD  O1\r\n"),
					std::string("HD O1 \r\n"),
					std::string("HD\n"),
					std::string("HD O1\rx"),
					std::string("HDX\r\n"),
					std::string("HD k\x01\r\n"),
					std::string("hd\r\n"),
					std::string("EN\rx"),
					std::string("HD k\tx\r\n"),
					"HD k" + std::string(MEMCACHED_LINE, 'k') + "\r\n",
					"SERVER_ERROR " + std::string(MEMCACHED_LINE, 'k') + "\r\n"}) {
		INFO(text);
		const Seen whole = scan(text);
		CHECK(whole.result == -1);
		for (size_t cut = 1; cut + 1 < std::min<size_t>(text.size(), 60); cut++) {
			const Seen seen = scan(text, {cut});
			CHECK((seen.result == -1 && seen.used == whole.used));
		}
	}
}

TEST_CASE("memcached meta: a large value is skipped and not stored")
{
	const size_t size = 5000000;
	memcached_meta_scanner s = {};
	std::string head = "VA " + std::to_string(size) + " O1\r\n", piece(65536, '\r');
	const char *at = head.data();
	CHECK(memcached_meta_scan(&s, &at, head.data() + head.size()) == 0);
	for (size_t left = size; left > 0;) {
		const size_t now = std::min(left, piece.size());
		at = piece.data();
		REQUIRE(memcached_meta_scan(&s, &at, piece.data() + now) == 0);
		left -= now;
	}
	const char tail[] = "\r\n";
	at = tail;
	CHECK(memcached_meta_scan(&s, &at, tail + 2) == 1);
}

TEST_CASE("memcached meta: classic commands become meta commands, others stay, each with its number")
{
	const std::string number = " O000000000042";
	CHECK(wire("get __key__") == "mg k007" + number + " v\r\n");
	CHECK(wire("get __key__", true) == "mg k007" + number + " v q\r\n");
	CHECK(wire("GETS __key__") == "mg k007" + number + " c v\r\n");
	CHECK(wire("set __key__ __data__") == "ms k007 3" + number + "\r\nVAL\r\n");
	CHECK(wire("set __key__ __data__", true) == "ms k007 3" + number + "\r\nVAL\r\n");
	CHECK(wire("set __key__ x__data__ __expiry__") == "ms k007 4" + number + " T60\r\nxVAL\r\n");
	CHECK(wire("add a b") == "ms a 1" + number + " ME\r\nb\r\n");
	CHECK(wire("replace a b 5") == "ms a 1" + number + " T5 MR\r\nb\r\n");
	CHECK(wire("append a b") == "ms a 1" + number + " MA\r\nb\r\n");
	CHECK(wire("prepend a b") == "ms a 1" + number + " MP\r\nb\r\n");
	CHECK(wire("delete a") == "md a" + number + "\r\n");
	CHECK(wire("incr a 5") == "ma a" + number + " D5 v\r\n");
	CHECK(wire("decr a 5") == "ma a" + number + " D5 MD v\r\n");
	CHECK(wire("touch a 60") == "mg a" + number + " T60\r\n");
	CHECK(wire("version") == "version\r\n");
	CHECK(wire("mn") == "mn\r\n");
	CHECK(wire("me a") == "me a\r\n");
	CHECK(wire("mg __key__ v f t") == "mg k007" + number + " v f t\r\n");
	CHECK(wire("mg __key__ v", true) == "mg k007" + number + " v q\r\n");
	// A number given by the user stays, and then nothing is omitted.
	CHECK(wire("mg __key__ v f t O123", true) == "mg k007 v f t O123\r\n");
	CHECK(wire("MS __key__ __data__ T30 F5") == "ms k007 3" + number + " T30 F5\r\nVAL\r\n");
	CHECK(wire("ma n D5 N0", true) == "ma n" + number + " D5 N0\r\n");
	CHECK(wire("md a q").find("--meta-quiet") != std::string::npos);
	CHECK(wire("ms a b q").find("--meta-quiet") != std::string::npos);
	CHECK(wire("mx a").find("is not a memcached command") != std::string::npos);
	CHECK(wire("get a b") == "memcached's GET has the form GET KEY");
	CHECK(wire("incr a") == "memcached's INCR has the form INCR KEY NUMBER");
	CHECK(wire("ms a") == "memcached's MS has the form MS KEY DATA [FLAG ...]");
	CHECK(wire("set a") == "memcached's SET has the form SET KEY DATA [EXPIRY]");
}
