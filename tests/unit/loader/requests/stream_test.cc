// SPDX-License-Identifier: MIT
// The request scanner on streams: the requests and their hashes are the same wherever the bytes are cut,
// bytes within values may be missing, and a lost scanner resumes.
#include <map>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"
#include "tests/unit/loader/requests/scan.h"

using namespace forktail::test;

namespace
{

const std::string redis_stream =
    array({"SET", "key", "value"}) + "*0\r\n" + array({"get", "a longer key than eight bytes"}) + "\r\n" +
    array({"MSET", "a", std::string("\r\n$\0", 4), "", ""}) + "PING\r\n" +
    "SET 'quoted key' \"a \\\" value\"\r\n" +
    array({"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"}) +
    array({"CLIENT", "REPLY", "SKIP"}) + array({"no.such.command.with.a.long.name", "k"}) + "*-1\r\n" +
    array({"SET", std::string(100, 'k'), std::string(200, 'v')}) + array({"MULTI"}) + array({"EXEC"});

const std::string memcached_stream =
    std::string("get a\r\nset key 0 0 5\r\nhello\r\nset key 0 0 5 noreply\r\nhello\r\n") +
    "gats 0 key another\r\nms key 4 T0 q\r\n\r\n\r\n\r\nmg key v q\r\n\r\nbad line\nincr key 1 noreply\r\n" +
    binary(0x01, std::string(8, '\0'), "a key of some bytes", "value") + binary(0x0d, "", "key", "") +
    binary(0x0a, "", "", "") + "cas " + std::string(100, 'k') + " 0 0 0 12345\r\n\r\nversion\r\n";

const std::map<scan_protocol, std::string> streams = {{SCAN_REDIS, redis_stream},
						      {SCAN_MEMCACHED, memcached_stream},
						      {SCAN_EITHER, redis_stream + memcached_stream}};

const std::map<scan_protocol, size_t> request_counts = {
    {SCAN_REDIS, 11}, {SCAN_MEMCACHED, 14}, {SCAN_EITHER, 24}};

uint64_t hash_of(scan_protocol protocol, const std::string &request)
{
	const Arrivals found = scan(protocol, request);
	REQUIRE(found.all.size() == 1);
	CHECK(found.all[0].hash != 0);
	return found.all[0].hash;
}

} // namespace

TEST_CASE("the requests of a stream are the same wherever it is cut", "[requests]")
{
	for (const auto &[protocol, stream] : streams) {
		const Arrivals whole = scan(protocol, stream);
		CAPTURE(protocol, summary(whole));
		REQUIRE(whole.refused == std::string::npos);
		CHECK(whole.all.back().end == stream.size());
		// An empty line is a request of memcached only.
		CHECK(whole.all.size() == request_counts.at(protocol));
		for (size_t piece = 1; piece <= 40; piece++)
			CHECK(scan(protocol, stream, piece) == whole);
		for (size_t cut = 1; cut < stream.size(); cut++)
			CHECK(scan_cut(protocol, stream, cut) == whole);
	}
}

TEST_CASE("a scanner is at rest after every request", "[requests]")
{
	for (const auto &[protocol, stream] : streams) {
		ScannedConnection connection(protocol);
		size_t from = 0;
		for (const Arrival &a : scan(protocol, stream).all) {
			REQUIRE(connection.bytes(stream.substr(from, a.end - from)));
			CHECK(connection.at_rest());
			from = a.end;
		}
	}
}

TEST_CASE("damaged streams are refused at the same byte wherever they are cut", "[requests]")
{
	random_stream random = random_begin(28, 0, 0);
	for (int i = 0; i < 300; i++)
		for (const auto &[protocol, stream] : streams) {
			std::string damaged = stream;
			for (int n = 0; n < 3; n++)
				damaged[random_below(&random, damaged.size())] =
				    static_cast<char>(random_below(&random, 256));
			const Arrivals whole = scan(protocol, damaged);
			CHECK(scan(protocol, damaged, 1) == whole);
			CHECK(scan(protocol, damaged, 1 + random_below(&random, 60)) == whole);
		}
}

TEST_CASE("the hash of a request depends on its command, lengths and key", "[requests]")
{
	const std::string extras(8, '\0');
	const std::vector<std::pair<scan_protocol, std::string>> different = {
	    {SCAN_REDIS, array({"GET", "key"})},
	    {SCAN_REDIS, array({"GET", "kez"})},
	    {SCAN_REDIS, array({"TTL", "key"})},
	    {SCAN_REDIS, array({"GET", "key0"})},
	    {SCAN_REDIS, array({"GET", "ke"})},
	    {SCAN_REDIS, array({"MGET", "key", ""})},
	    {SCAN_REDIS, array({"MGET", "key", "a"})},
	    {SCAN_REDIS, array({"MGET", "key", "", ""})},
	    {SCAN_REDIS, array({"MGET", "", "key"})},
	    {SCAN_REDIS, array({"GET"})},
	    {SCAN_REDIS, array({"GET", ""})},
	    {SCAN_REDIS, array({"no.such", "key"})},
	    {SCAN_REDIS, array({"no.sucj", "key"})},
	    {SCAN_REDIS, array({"GET", std::string("key\0", 4)})},
	    {SCAN_REDIS, array({"GET", "12345678"})},
	    {SCAN_REDIS, array({"GET", "123456780"})},
	    {SCAN_MEMCACHED, "set key 0 0 5\r\nhello\r\n"},
	    {SCAN_MEMCACHED, "set key 0 0 6\r\nhello!\r\n"},
	    {SCAN_MEMCACHED, "set kez 0 0 5\r\nhello\r\n"},
	    {SCAN_MEMCACHED, "get key more\r\n"},
	    {SCAN_MEMCACHED, "gat 0 key\r\n"},
	    {SCAN_MEMCACHED, "gat 0 kez\r\n"},
	    {SCAN_MEMCACHED, binary(0x01, extras, "key", "value")},
	    {SCAN_MEMCACHED, binary(0x01, extras, "kez", "value")},
	    {SCAN_MEMCACHED, binary(0x01, extras, "key", "valu")},
	    {SCAN_MEMCACHED, binary(0x11, extras, "key", "value")},
	};
	std::map<uint64_t, std::string> seen;
	for (const auto &[protocol, request] : different) {
		INFO(request);
		CHECK(seen.emplace(hash_of(protocol, request), request).second);
	}
	// Not on the case of the command, nor on the bytes after the key's first ones.
	CHECK(hash_of(SCAN_REDIS, array({"get", "key"})) == hash_of(SCAN_REDIS, array({"GET", "key"})));
	CHECK(hash_of(SCAN_REDIS, array({"SET", "key", "a"})) ==
	      hash_of(SCAN_REDIS, array({"SET", "key", "b"})));
	const std::string key(SCAN_KEY, 'k');
	CHECK(hash_of(SCAN_REDIS, array({"GET", key + "a"})) ==
	      hash_of(SCAN_REDIS, array({"GET", key + "b"})));
	CHECK(hash_of(SCAN_REDIS, array({"GET", key.substr(1) + "a"})) !=
	      hash_of(SCAN_REDIS, array({"GET", key.substr(1) + "b"})));
	// An opaque number, which a proxy may replace, does not matter.
	std::string opaque = binary(0x00, "", "key", "");
	opaque[12] = 1;
	CHECK(hash_of(SCAN_MEMCACHED, opaque) == hash_of(SCAN_MEMCACHED, binary(0x00, "", "key", "")));
	// The same in a proxy's stream and in its server's.
	CHECK(hash_of(SCAN_EITHER, array({"GET", "key"})) == hash_of(SCAN_REDIS, array({"GET", "key"})));
	CHECK(hash_of(SCAN_EITHER, "get key\r\n") == hash_of(SCAN_MEMCACHED, "get key\r\n"));
}

TEST_CASE("hashes depend on the seed", "[requests]")
{
	const std::string request = array({"GET", "key"});
	const uint64_t before = hash_of(SCAN_REDIS, request);
	scanner_seed(28);
	CHECK(hash_of(SCAN_REDIS, request) != before);
	scanner_seed(0);
	CHECK(hash_of(SCAN_REDIS, request) == before);
}

TEST_CASE("any gap within a value is skipped", "[requests]")
{
	const std::string value(40, 'v'), next = array({"GET", "key"});
	const std::vector<std::pair<scan_protocol, std::string>> requests = {
	    {SCAN_REDIS, array({"SET", "key", value})},
	    {SCAN_REDIS, array({"MSET", "key", value, "key", value})},
	    {SCAN_MEMCACHED, "set key 0 0 40\r\n" + value + "\r\n"},
	    {SCAN_MEMCACHED, binary(0x01, std::string(8, '\0'), "key", value)},
	};
	for (const auto &[protocol, request] : requests) {
		const Arrivals whole = scan(protocol, request);
		const size_t first = request.find(value);
		const size_t after =
		    first + value.size() + (protocol == SCAN_MEMCACHED && request[0] != 's' ? 0 : 2);
		for (size_t from = first; from < after; from++)
			for (size_t to = from; to <= after; to++) {
				CAPTURE(request, from, to);
				ScannedConnection connection(protocol);
				REQUIRE(connection.bytes(request.substr(0, from)));
				CHECK(connection.gap(to - from) ==
				      (to == request.size() && to > from ? 1 : 0));
				REQUIRE(connection.bytes(request.substr(to)));
				CHECK(connection.arrivals() == whole);
				CHECK(connection.at_rest());
			}
	}
}

TEST_CASE("a gap of other bytes loses the position", "[requests]")
{
	const std::string set = array({"SET", "key", "value"});
	const size_t key = set.find("key"), value = set.find("value");
	for (size_t from = 0; from < set.size(); from++)
		for (size_t bytes = 1; bytes <= set.size() + 3; bytes++) {
			CAPTURE(from, bytes);
			ScannedConnection connection(SCAN_REDIS);
			REQUIRE(connection.bytes(set.substr(0, from)));
			const bool in_key = from >= key && from + bytes <= key + 5;
			const bool in_value = from >= value && from + bytes <= set.size();
			const bool end_of_word = from >= key - 6 && from + bytes <= key - 4; // its CRLF
			const int result = connection.gap(bytes);
			CHECK((result >= 0) == (in_key || in_value || end_of_word));
			if (result == 0) {
				REQUIRE(connection.bytes(set.substr(from + bytes)));
				REQUIRE(summary(connection.arrivals()) == "SET 0");
			}
		}
	for (const char *line : {"get ke", "set key 0 0 5", "PING", ""}) {
		ScannedConnection connection(SCAN_EITHER);
		REQUIRE(connection.bytes(line));
		CHECK(connection.gap(1) == -1);
		CHECK(connection.at_rest());
	}
	ScannedConnection header(SCAN_MEMCACHED);
	REQUIRE(header.bytes(binary(0x00, "", "key", "").substr(0, 10)));
	CHECK(header.gap(5) == -1);
}

TEST_CASE("without bytes of its key a request has no hash", "[requests]")
{
	const std::string key(100, 'k'), get = array({"GET", key});
	const size_t at = get.find(key);
	const auto hash = [&](const std::string &request, scan_protocol protocol, size_t from, size_t bytes) {
		ScannedConnection connection(protocol);
		REQUIRE(connection.bytes(request.substr(0, from)));
		REQUIRE(connection.gap(bytes) == 0);
		REQUIRE(connection.bytes(request.substr(from + bytes)));
		REQUIRE(connection.arrivals().all.size() == 1);
		return connection.arrivals().all[0].hash;
	};
	const uint64_t whole = hash_of(SCAN_REDIS, get);
	CHECK(hash(get, SCAN_REDIS, at + 10, 20) == 0);
	CHECK(hash(get, SCAN_REDIS, at + SCAN_KEY - 1, 5) == 0);
	CHECK(hash(get, SCAN_REDIS, at + SCAN_KEY, 5) == whole);
	const std::string set = binary(0x01, std::string(8, '\0'), "key", "value");
	CHECK(hash(set, SCAN_MEMCACHED, 24, 8) == hash_of(SCAN_MEMCACHED, set)); // the extras
	CHECK(hash(set, SCAN_MEMCACHED, 24, 9) == 0);
	CHECK(hash(set, SCAN_MEMCACHED, 24, 15) == 0);
	CHECK(hash(set, SCAN_MEMCACHED, 35, 4) == hash_of(SCAN_MEMCACHED, set));
}

TEST_CASE("values of 512 MB are skipped", "[requests]")
{
	ScannedConnection connection(SCAN_REDIS);
	REQUIRE(connection.bytes("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n"));
	for (int i = 0; i < 512; i++)
		REQUIRE(connection.gap(1 << 20) == 0);
	REQUIRE(connection.bytes("\r\n"));
	REQUIRE(connection.arrivals().all.size() == 1);
	CHECK(connection.arrivals().all[0].bytes == 32 + (512u << 20) + 2);
	CHECK(connection.gap(UINT64_MAX) == -1);
}

TEST_CASE("a lost scanner resumes at a request that is certain", "[requests]")
{
	CHECK(scanner_may_begin(SCAN_REDIS, '*'));
	CHECK(!scanner_may_begin(SCAN_REDIS, 'G'));
	CHECK(!scanner_may_begin(SCAN_MEMCACHED, '*'));
	CHECK(scanner_may_begin(SCAN_MEMCACHED, 'g'));
	CHECK(!scanner_may_begin(SCAN_MEMCACHED, 'G'));
	CHECK(!scanner_may_begin(SCAN_MEMCACHED, 0));
	CHECK(scanner_may_begin(SCAN_MEMCACHED, 0x80));
	CHECK(scanner_may_begin(SCAN_EITHER, '*'));
	CHECK(scanner_may_begin(SCAN_EITHER, 0x80));
	for (unsigned i = 1; i < COMMAND_OTHER; i++)
		if (commands_flags(i) & COMMAND_MEMCACHED)
			CHECK(scanner_may_begin(SCAN_MEMCACHED,
						static_cast<uint8_t>(tolower(commands_name(i)[0]))));

	const auto lost = [](scan_protocol protocol, const std::string &stream) {
		ScannedConnection connection(protocol);
		connection.lose();
		connection.bytes(stream);
		return summary(connection.arrivals());
	};
	CHECK(lost(SCAN_REDIS, array({"GET", "k"}) + "PING\r\n") == "GET 0, PING 0");
	CHECK(lost(SCAN_REDIS, "PING\r\n") == "refused at 0");
	CHECK(lost(SCAN_REDIS, "\r\n") == "refused at 0");
	CHECK(lost(SCAN_MEMCACHED, "get k\r\nunheard of\r\n") == "GET 0, other 0");
	CHECK(lost(SCAN_MEMCACHED, "some text of a value\r\n") == "refused at 4");
	CHECK(lost(SCAN_EITHER, "ping\r\n") == "refused at 4");
	CHECK(lost(SCAN_EITHER, "get k\r\n") == "GET 0");
	// Refused bytes lose it, too.
	ScannedConnection connection(SCAN_REDIS);
	REQUIRE(!connection.bytes("\xff"));
	CHECK(!connection.bytes("PING\r\n"));
	CHECK(connection.bytes("*0\r\n" + array({"GET", "k"}) + "PING\r\n"));
	CHECK(summary(connection.arrivals()).starts_with("GET 0, PING 0"));
}

namespace
{

// What the requests of a stream say of the connection, or their keys: "NAME billing, KEY k". The same however
// the stream is cut.
std::string texts(scan_protocol protocol, const std::string &stream)
{
	static const char *const kinds[] = {"-", "KEY ", "NAME ", "LIBRARY "};
	const Arrivals whole = scan(protocol, stream);
	for (size_t piece = 1; piece < 8; piece++)
		CHECK(scan(protocol, stream, piece) == whole);
	std::string text;
	for (const Arrival &a : whole.all)
		text += (text.empty() ? "" : ", ") + std::string(kinds[a.text_as]) + a.text;
	return text;
}

} // namespace

TEST_CASE("names of connections and libraries are kept as they were sent", "[requests]")
{
	CHECK(texts(SCAN_REDIS, array({"CLIENT", "SETNAME", "Billing-7"})) == "NAME Billing-7");
	CHECK(texts(SCAN_REDIS, array({"client", "setname", ""})) == "NAME ");
	CHECK(texts(SCAN_REDIS, "CLIENT SETNAME \"a b\"\r\n") == "NAME a b");
	CHECK(texts(SCAN_REDIS, array({"CLIENT", "SETNAME"})) == "-");
	CHECK(texts(SCAN_REDIS, array({"CLIENT", "SETINFO", "lib-name", "redis-py"})) == "LIBRARY redis-py");
	CHECK(texts(SCAN_REDIS, array({"CLIENT", "SETINFO", "LIB-VER", "5.0"})) == "-");
	CHECK(texts(SCAN_REDIS, array({"CLIENT", "KILL", "SETNAME", "x"})) == "-");
	CHECK(texts(SCAN_REDIS, array({"HELLO", "3", "SETNAME", "web"})) == "NAME web");
	CHECK(texts(SCAN_REDIS, array({"HELLO", "3", "AUTH", "user", "secret", "SETNAME", "web"})) ==
	      "NAME web");
	CHECK(texts(SCAN_REDIS, array({"HELLO", "3", "AUTH", "SETNAME", "secret"})) == "-");
	CHECK(texts(SCAN_REDIS, array({"HELLO", "3", "AUTH", "user", "SETNAME"}) + array({"PING"})) ==
	      "-, -");
	CHECK(texts(SCAN_REDIS, array({"AUTH", "secret"})) == "-");
	CHECK(texts(SCAN_REDIS, array({"RESET"})) == "NAME "); // it has none any more
	const std::string name(40, 'n');
	CHECK(texts(SCAN_REDIS, array({"CLIENT", "SETNAME", name})) == "NAME " + name.substr(0, SCAN_TEXT));
	CHECK(texts(SCAN_REDIS, array({"GET", "key"})) == "-");
}

TEST_CASE("the first bytes of keys are kept if that is wanted", "[requests]")
{
	scanner_keep_keys(4);
	CHECK(texts(SCAN_REDIS, array({"GET", "user:1"}) + array({"get", "k"})) == "KEY user, KEY k");
	CHECK(texts(SCAN_REDIS, array({"SET", "cart:7", "value"})) == "KEY cart");
	CHECK(texts(SCAN_REDIS, array({"MGET", "a", "b"})) == "KEY a");
	CHECK(texts(SCAN_REDIS, array({"BITOP", "AND", "target", "b"})) == "KEY targ");
	CHECK(texts(SCAN_REDIS, array({"PING", "hello"})) == "-");
	CHECK(texts(SCAN_REDIS, array({"AUTH", "secret"})) == "-");
	CHECK(texts(SCAN_REDIS, array({"CLIENT", "SETNAME", "billing"})) == "NAME billing");
	CHECK(texts(SCAN_MEMCACHED, "get key:1 key:2\r\ngat 10 other\r\nstats items\r\n") ==
	      "KEY key:, KEY othe, -");
	CHECK(texts(SCAN_MEMCACHED, "set longkey 0 0 5\r\nvalue\r\n") == "KEY long");
	CHECK(texts(SCAN_MEMCACHED, binary(0x01, std::string(8, '\0'), "ab", "value")) == "KEY ab");
	CHECK(texts(SCAN_MEMCACHED, binary(0x01, std::string(8, '\0'), "abcdef", "value")) == "KEY abcd");
	// Bytes that were not captured are not part of it.
	ScannedConnection connection(SCAN_REDIS);
	REQUIRE(connection.bytes("*2\r\n$3\r\nGET\r\n$6\r\nus"));
	REQUIRE(connection.gap(4) == 0);
	REQUIRE(connection.bytes("\r\n"));
	CHECK(connection.arrivals().all[0].text_as == TEXT_NONE);
	scanner_keep_keys(0);
	CHECK(texts(SCAN_REDIS, array({"GET", "user:1"})) == "-");
}
