// SPDX-License-Identifier: MIT
// The request scanner on requests of Redis: arrays, inline commands, limits, and bytes that are none.
#include "tests/support/catch.h"
#include "tests/unit/loader/requests/scan.h"

using namespace forktail::test;

namespace
{

const std::string get = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";

} // namespace

TEST_CASE("arrays of strings are requests", "[requests]")
{
	CHECK(summary(scan_redis(get)) == "GET 0");
	CHECK(scan_redis(get).all[0].bytes == get.size());
	CHECK(summary(scan_redis(array({"gEt", "key"}))) == "GET 0");
	CHECK(summary(scan_redis(array({"PING"}))) == "PING 0");
	CHECK(summary(scan_redis(array({"no.such", "key"}))) == "other 0");
	CHECK(summary(scan_redis(array({""}))) == "other 0");
	CHECK(summary(scan_redis(array({"SET", "", ""}))) == "SET 0");
	CHECK(summary(scan_redis(array({"SET", std::string("\0\r\n*1\r\n", 8), std::string(70000, '\n')}))) ==
	      "SET 0");
	CHECK(summary(scan_redis(array({"HELLO", "3"}) + array({"FT.SEARCH", "i", "*"}) +
				 array({"JSON.GET", "k"}))) == "HELLO 0, FT.SEARCH 0, JSON.GET 0");
	CHECK(summary(scan_redis(get.substr(0, get.size() - 1))).empty());
}

TEST_CASE("empty arrays and empty lines are no requests", "[requests]")
{
	const std::string empty = "*0\r\n*-1\r\n*-7\r\n\r\n\n  \t \r\n";
	CHECK(summary(scan_redis(empty)).empty());
	const Arrivals after = scan_redis(empty + get);
	REQUIRE(summary(after) == "GET 0");
	CHECK(after.all[0].bytes == get.size());
	CHECK(after.all[0].end == empty.size() + get.size());
}

TEST_CASE("inline commands are requests, split into words as by the server", "[requests]")
{
	CHECK(summary(scan_redis("PING\r\nping\nGET key\r\n")) == "PING 0, PING 0, GET 0");
	CHECK(summary(scan_redis("  set\tkey  \"a value\" \r\n\"GET\" 'key'\r\n")) == "SET 0, GET 0");
	CHECK(summary(scan_redis("SET k \"quote \\\" CRLF \\r\\n \\x41\"\r\n")) == "SET 0");
	CHECK(summary(scan_redis("SET k 'it\\'s \\a'\r\n")) == "SET 0");
	CHECK(summary(scan_redis("SET k \"\\\\\"\r\nPI\"NG\"\r\n\vPING\r\n")) == "SET 0, PING 0, PING 0");
	CHECK(summary(scan_redis("SET k \xc3\xbc\r\n")) == "SET 0");
	CHECK(scan_redis("SET k v\r\n").all[0].bytes == 9);
	// The number and the lengths of the words are those of an array, unless there are escapes.
	CHECK(scan_redis("set k 'a b' \"\"\r\n").all[0].hash ==
	      scan_redis(array({"SET", "k", "a b", ""})).all[0].hash);
}

TEST_CASE("inline commands that the server refuses are refused", "[requests]")
{
	CHECK(summary(scan_redis("SET k \"open\r\n")) == "refused at 12");
	CHECK(summary(scan_redis("SET k 'open\\'\r\n")) == "refused at 14");
	CHECK(summary(scan_redis("SET k 'a \\\\'\r\n")) == "refused at 13"); // escapes the quote
	CHECK(summary(scan_redis("SET \"k\"v\r\n")) == "refused at 7");
	CHECK(summary(scan_redis(std::string("PING\0\r\n", 7))) == "refused at 4");
	CHECK(summary(scan_redis("GET " + std::string(SCAN_LINE - 4, 'k') + "\r\n")) ==
	      "refused at " + std::to_string(SCAN_LINE));
	CHECK(summary(scan_redis("GET " + std::string(SCAN_LINE - 5, 'k') + "\r\n")) == "GET 0");
	CHECK(scan_redis(std::string(1 << 20, 'x')).refused == SCAN_LINE);
	CHECK(scan_redis(std::string(1 << 20, ' ')).refused == SCAN_LINE);
}

TEST_CASE("counts and lengths have the server's limits and syntax", "[requests]")
{
	CHECK(summary(scan_redis("*2147483647\r\n")).empty());
	CHECK(summary(scan_redis("*2147483648\r\n")) == "refused at 10");
	CHECK(summary(scan_redis("*1\r\n$536870912\r\n")).empty());
	CHECK(summary(scan_redis("*1\r\n$536870913\r\n")) == "refused at 13");
	CHECK(summary(scan_redis("*1\r\n$-1\r\n")) == "refused at 5");
	CHECK(summary(scan_redis("*01\r\n")) == "refused at 2");
	CHECK(summary(scan_redis("*1\r\n$04\r\nPING\r\n")) == "refused at 6");
	CHECK(summary(scan_redis("*-0\r\n")) == "refused at 2");
	CHECK(summary(scan_redis("*-\r\n")) == "refused at 2");
	CHECK(summary(scan_redis("*\r\n")) == "refused at 1");
	CHECK(summary(scan_redis("*--1\r\n")) == "refused at 2");
	CHECK(summary(scan_redis("*-999999999999999999\r\n")).empty());
	CHECK(summary(scan_redis("*" + std::string(1 << 20, '9'))) == "refused at 10");
	CHECK(summary(scan_redis("*1\r\n:4\r\n")) == "refused at 4");
	CHECK(summary(scan_redis("*1\rx")) == "refused at 3");
	CHECK(summary(scan_redis("*1\r\n$4\r\nPINGS\r\n")) == "refused at 12");
	CHECK(summary(scan_redis("*1\r\n$4\r\nPING\r\r")) == "refused at 13");
}

TEST_CASE("bytes that are no requests are refused at once", "[requests]")
{
	const std::string tls("\x16\x03\x01\x02\x00\x01", 6);
	CHECK(scan_redis(tls).refused == 0);
	CHECK(scan_redis("+OK\r\n").refused == 0);
	CHECK(scan_redis("$3\r\nfoo\r\n").refused == 0);
	CHECK(scan_redis("\x80\x01").refused == 0);
	CHECK(scan_redis(get + "\xff").refused == get.size());
	CHECK(scan_redis("G\xc3T k\r\n").refused == 1);
	for (int byte = 0; byte < 256; byte++) {
		const std::string garbage(100000, static_cast<char>(byte));
		for (scan_protocol protocol : {SCAN_REDIS, SCAN_MEMCACHED, SCAN_EITHER})
			CHECK(scan(protocol, garbage) == scan(protocol, garbage, 777));
	}
}

TEST_CASE("a command name of 1 MB is another command", "[requests]")
{
	const std::string name(1 << 20, 'g');
	CHECK(summary(scan_redis(array({name, "key"}) + get)) == "other 0, GET 0");
	CHECK(scan(SCAN_REDIS, array({name, "key"}), 1000).all == scan_redis(array({name, "key"})).all);
	// Its length is part of its identity, beyond the bytes that are kept.
	CHECK(scan_redis(array({name})).all[0].hash != scan_redis(array({name + "g"})).all[0].hash);
}

TEST_CASE("commands that block, push or change replies have flags", "[requests]")
{
	const auto flags = [](const std::vector<std::string> &words) {
		const Arrivals found = scan_redis(array(words));
		REQUIRE(found.all.size() == 1);
		return found.all[0].flags;
	};
	CHECK(flags({"BLPOP", "q", "0"}) == SCANNED_BLOCKING);
	CHECK(flags({"waitaof", "1", "0", "0"}) == SCANNED_BLOCKING);
	CHECK(flags({"XREAD", "STREAMS", "s", "$"}) == 0);
	CHECK(flags({"XREAD", "count", "2", "block", "0", "STREAMS", "s", "$"}) == SCANNED_BLOCKING);
	CHECK(flags({"XREAD", "STREAMS", "BLOCK", "$"}) == 0); // a key of that name
	CHECK(flags({"XREADGROUP", "GROUP", "BLOCK", "BLOCK", "STREAMS", "s", ">"}) == 0);
	CHECK(flags({"XREADGROUP", "GROUP", "g", "c", "BLOCK", "5", "STREAMS", "s", ">"}) ==
	      SCANNED_BLOCKING);
	CHECK(flags({"SUBSCRIBE", "c"}) == SCANNED_PUSHES);
	CHECK(flags({"PSYNC", "?", "-1"}) == SCANNED_PUSHES);
	CHECK(flags({"MULTI"}) == SCANNED_MULTI);
	CHECK(flags({"EXEC"}) == SCANNED_EXEC);
	CHECK(flags({"DISCARD"}) == SCANNED_EXEC);
	CHECK(flags({"RESET"}) == SCANNED_EXEC);
	CHECK(flags({"CLIENT", "TRACKING", "on", "BCAST"}) == SCANNED_TRACKING);
	CHECK(flags({"CLIENT", "TRACKING", "OFF"}) == 0);
	CHECK(flags({"CLIENT", "SETNAME", "REPLY"}) == 0);
	CHECK(flags({"CLIENT", "REPLY", "OFF"}) == (SCANNED_NO_REPLY | SCANNED_REPLY_OFF));
	CHECK(flags({"CLIENT", "REPLY", "SKIP"}) == SCANNED_NO_REPLY);
	CHECK(flags({"CLIENT", "REPLY", "ON"}) == 0);
	CHECK(flags({"CLIENT", "REPLY", "OFF", "x"}) == 0); // a syntax error
	CHECK(summary(scan_redis("client reply off\r\nBLPOP q 0\r\n")) == "CLIENT 12, BLPOP 5");
}

// Replies as of redis-server 7.0.
TEST_CASE("CLIENT REPLY is remembered for the requests after it", "[requests]")
{
	CHECK(summary(scan_redis("CLIENT REPLY SKIP\r\nPING\r\nECHO a\r\n")) == "CLIENT 4, PING 4, ECHO 0");
	CHECK(summary(scan_redis("CLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nPING\r\nPING\r\n")) ==
	      "CLIENT 4, CLIENT 4, PING 4, PING 0");
	CHECK(summary(scan_redis("CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING\r\n")) ==
	      "CLIENT 4, CLIENT 0, PING 0");
	CHECK(summary(scan_redis(
		  "CLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY ON\r\nPING\r\n")) ==
	      "CLIENT 12, PING 4, CLIENT 4, PING 4, CLIENT 0, PING 0");
	CHECK(summary(scan_redis("CLIENT REPLY OFF\r\nRESET\r\nPING\r\n")) == "CLIENT 12, RESET 32, PING 0");
	// A lost position does not end it.
	ScannedConnection connection(SCAN_REDIS);
	REQUIRE(connection.bytes("CLIENT REPLY OFF\r\n"));
	connection.lose();
	REQUIRE(connection.bytes(get));
	CHECK(summary(connection.arrivals()) == "CLIENT 12, GET 4");
}
