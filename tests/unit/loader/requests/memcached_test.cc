// SPDX-License-Identifier: MIT
// The request scanner on requests of memcached: text, meta and binary, and on proxies, which serve both
// servers. Which lines have a data block was tried with memcached 1.6.18.
#include "tests/support/catch.h"
#include "tests/unit/loader/requests/scan.h"

using namespace forktail::test;

TEST_CASE("lines of memcached are requests", "[requests]")
{
	CHECK(summary(scan_memcached("get a\r\ngets a b c\r\ngat 0 a\r\nincr a 1\r\n")) ==
	      "GET 0, GETS 0, GAT 0, INCR 0");
	CHECK(summary(scan_memcached("delete a\r\ntouch a 0\r\nstats items\r\nversion\r\nquit\r\n")) ==
	      "DELETE 0, TOUCH 0, STATS 0, VERSION 0, QUIT 0");
	CHECK(summary(scan_memcached("  get  a \n")) == "GET 0");
	// The server answers ERROR.
	CHECK(summary(scan_memcached("\r\nhget a b\r\nGET a\r\nSET a 0 0 3\r\nlru_crawler enable\r\n")) ==
	      "other 0, other 0, other 0, other 0, other 0");
	CHECK(scan_memcached("get a\r\n").all[0].bytes == 7);
}

TEST_CASE("storage commands have a data block", "[requests]")
{
	CHECK(summary(scan_memcached("set k 0 0 5\r\nhello\r\nget k\r\n")) == "SET 0, GET 0");
	CHECK(scan_memcached("set k 0 0 5\r\nhello\r\n").all[0].bytes == 20);
	CHECK(summary(scan_memcached("add k 1 2 0\r\n\r\nreplace k 0 0 2\n\r\n\r\n")) == "ADD 0, REPLACE 0");
	CHECK(summary(scan_memcached("append k 0 0 1\r\na\r\nprepend k 0 0 +01 \r\na\r\n")) ==
	      "APPEND 0, PREPEND 0");
	CHECK(summary(scan_memcached("cas k 0 0 3 77\r\nabc\r\ncas k 0 0 3 77 noreply\r\nabc\r\n")) ==
	      "CAS 0, CAS 4");
	CHECK(summary(scan_memcached("set k 0 0 2147483645\r\nabc")).empty());
}

TEST_CASE("after an invalid storage line the server reads no data", "[requests]")
{
	const std::string next = "version\r\n";
	for (const std::string &line :
	     {std::string("set k 0 0 -1"), std::string("set k 0 0 2147483646"), std::string("set k 0 0 3x"),
	      std::string("set k 0 0 99999999999999999999999999"), std::string("set k"),
	      std::string("set k 0 0"), std::string("set k 0 0 3 noreply x"), std::string("cas k 0 0 3"),
	      "set " + std::string(251, 'k') + " 0 0 3"}) {
		INFO(line);
		const Arrivals found = scan_memcached(line + "\r\n" + next);
		REQUIRE(found.all.size() == 2);
		CHECK(found.all[1].command == "VERSION");
	}
	CHECK(summary(scan_memcached("set " + std::string(250, 'k') + " 0 0 3\r\nabc\r\n" + next)) ==
	      "SET 0, VERSION 0");
	CHECK(summary(scan_memcached("set k 0 0 3\r\nabcd\r\n")) == "refused at 16");
	CHECK(summary(scan_memcached("set k 0 0 3\r\nabc\rx")) == "refused at 17");
}

TEST_CASE("noreply and quiet requests of memcached have a flag", "[requests]")
{
	CHECK(summary(scan_memcached("set k 0 0 1 noreply\r\na\r\nset noreply 0 0 1\r\na\r\n")) ==
	      "SET 4, SET 0");
	CHECK(summary(
		  scan_memcached("delete k noreply\r\ndelete noreply\r\nincr k 1 noreply\r\ndecr k 1\r\n")) ==
	      "DELETE 4, DELETE 0, INCR 4, DECR 0");
	CHECK(summary(scan_memcached("touch k 0 noreply\r\nflush_all noreply\r\nverbosity 1 noreply\r\n")) ==
	      "TOUCH 4, FLUSH_ALL 4, VERBOSITY 4");
	CHECK(summary(scan_memcached("get noreply\r\nget k noreply\r\nset k 0 0 1 NOREPLY\r\na\r\n")) ==
	      "GET 0, GET 0, SET 0");
}

TEST_CASE("meta commands of memcached are requests", "[requests]")
{
	CHECK(summary(scan_memcached("mg k\r\nmg k v q\r\nmg q\r\nmg k s v\r\nmn\r\nme k\r\n")) ==
	      "MG 0, MG 4, MG 0, MG 0, MN 0, ME 0");
	CHECK(summary(scan_memcached(
		  "ms k 3\r\nabc\r\nms k 3 T0 q\r\nabc\r\nms q 0\r\n\r\nms a2V5 1 b\r\na\r\n")) ==
	      "MS 0, MS 4, MS 0, MS 0");
	CHECK(summary(scan_memcached("ms k\r\nms k x\r\nms k -1\r\nms k S3\r\n")) ==
	      "MS 0, MS 0, MS 0, MS 0");
	CHECK(summary(scan_memcached("md k q\r\nma k N0 q\r\nmd k\r\nma k\r\n")) == "MD 4, MA 4, MD 0, MA 0");
}

TEST_CASE("lines of many keys have no limit, others have", "[requests]")
{
	std::string keys;
	for (int i = 0; i < 50000; i++)
		keys += " key:" + std::to_string(i);
	CHECK(summary(scan_memcached("get" + keys + "\r\ngats 0" + keys + "\r\n")) == "GET 0, GATS 0");
	CHECK(summary(scan_memcached("delete" + keys + "\r\n")) == "refused at " + std::to_string(SCAN_LINE));
	CHECK(summary(scan(SCAN_MEMCACHED, "delete" + keys + "\r\n", 333)) ==
	      "refused at " + std::to_string(SCAN_LINE));
	CHECK(scan_memcached(std::string(1 << 20, 'x')).refused == SCAN_LINE);
	CHECK(scan_memcached(std::string(1 << 20, ' ')).refused == SCAN_LINE);
}

TEST_CASE("bytes that are no requests of memcached are refused at once", "[requests]")
{
	CHECK(scan_memcached("*1\r\n").refused == 0);
	CHECK(scan_memcached("\x81\x01").refused == 0);
	CHECK(scan_memcached(std::string("\0", 1)).refused == 0);
	CHECK(scan_memcached("get\ta\r\n").refused == 3);
	CHECK(scan_memcached("get a\rb\r\n").refused == 6);
}

TEST_CASE("binary requests of memcached", "[requests]")
{
	const std::string extras(8, '\0');
	const std::string stream = binary(0x00, "", "key", "") + binary(0x01, extras, "key", "value") +
				   binary(0x11, extras, "key", "value") + binary(0x0a, "", "", "") +
				   binary(0x30, "", "", "") + binary(0x21, "", "PLAIN", "name");
	CHECK(summary(scan_memcached(stream)) == "GET 0, SET 0, SET 4, NOOP 0, other 0, AUTH 0");
	CHECK(scan_memcached(stream).all[1].bytes == 24 + 8 + 3 + 5);
	// Extras and key are longer than the body; a body beyond every item limit.
	std::string invalid = binary(0x01, extras, "key", "value");
	invalid[4] = 100;
	CHECK(scan_memcached(invalid).refused == 11);
	invalid[4] = 8;
	invalid[8] = 0x7f;
	CHECK(scan_memcached(invalid).refused == 11);
}

TEST_CASE("a proxy's requests are of either server", "[requests]")
{
	const auto either = [](const std::string &stream) { return summary(scan(SCAN_EITHER, stream)); };
	CHECK(either(array({"SET", "k", "v"}) + "set k 0 0 1\r\nv\r\n" + binary(0x00, "", "k", "")) ==
	      "SET 0, SET 0, GET 0");
	// A line of a memcached command in lower case is one; others are inline commands.
	CHECK(
	    either(
		"get k\r\nmg k q\r\nPING\r\nping\r\nhget h f\r\nGeT k\r\nset k 0 0 1\r\nv\r\nget'' k\r\n") ==
	    "GET 0, MG 4, PING 0, PING 0, HGET 0, GET 0, SET 0, GET 0");
	CHECK(either("\r\n\r\ninfo replication\r\n\"ping\"\r\n") == "INFO 0, PING 0");
	CHECK(either("client reply off\r\nget k\r\nping\r\n") == "CLIENT 12, GET 0, PING 4");
	CHECK(either("\x16\x03\x01") == "refused at 0");
	CHECK(either("set k 'open\r\nx") == "SET 0"); // memcached's, with too few words
}
