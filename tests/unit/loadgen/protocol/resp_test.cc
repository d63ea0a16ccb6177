// SPDX-License-Identifier: MIT
// The reply scanner on every possible reply and push of RESP2 and RESP3, cut at every byte, and on invalid
// replies.
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
	char kind = 0;
	std::string word;
};

// Scans `text` in pieces that end at the given places.
Seen scan(const std::string &text, const std::vector<size_t> &cuts = {})
{
	resp_scanner s = {};
	Seen seen;
	size_t from = 0;
	std::vector<size_t> ends = cuts;
	ends.push_back(text.size());
	for (size_t end : ends) {
		// A piece of exactly its size on the heap: the sanitizer reports a read beyond it.
		std::vector<char> piece(text.begin() + static_cast<ptrdiff_t>(from),
					text.begin() + static_cast<ptrdiff_t>(end));
		const char *at = piece.data();
		seen.result = resp_scan(&s, &at, piece.data() + piece.size());
		seen.used = from + static_cast<size_t>(at - piece.data());
		if (seen.result != 0)
			break;
		from = end;
	}
	seen.kind = static_cast<char>(s.kind);
	seen.word = s.word;
	return seen;
}

struct Case {
	const char *text;
	char kind;
};

const Case replies[] = {
    {"+OK\r\n", '+'},
    {"+PONG\r\n", '+'},
    {"+\r\n", '+'},
    {"-ERR no such command\r\n", '-'},
    {"-\r\n", '-'},
    {":0\r\n", ':'},
    {":-1234567890123\r\n", ':'},
    {":18446744073709551615\r\n", ':'},
    {"$0\r\n\r\n", '$'},
    {"$3\r\nabc\r\n", '$'},
    {"$4\r\n\r\n\r\n\r\n", '$'},
    {"$16\r\nabcdefghijklmnop\r\n", '$'},
    {"$-1\r\n", 'n'},
    {"*-1\r\n", 'n'},
    {"*0\r\n", '*'},
    {"*1\r\n$-1\r\n", '*'},
    {"*2\r\n$3\r\nfoo\r\n$3\r\nbar\r\n", '*'},
    {"*3\r\n:1\r\n*2\r\n+a\r\n*0\r\n-ERR inner\r\n", '*'},
    {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n", '*'}, // RESP_DEPTH deep
    // RESP3, with the kinds of the equivalent RESP2 replies
    {"_\r\n", 'n'},
    {"#t\r\n", '#'},
    {"#f\r\n", '#'},
    {",3.25\r\n", ','},
    {",-1.5e-10\r\n", ','},
    {",inf\r\n", ','},
    {",-inf\r\n", ','},
    {",nan\r\n", ','},
    {"(3492890328409238509324850943850943825024385\r\n", '('},
    {"(-1\r\n", '('},
    {"!21\r\nSYNTAX invalid syntax\r\n", '-'},
    {"!0\r\n\r\n", '-'},
    {"=15\r\ntxt:Some string\r\n", '$'},
    {"=4\r\nmkd:\r\n", '$'},
    {"~0\r\n", '*'},
    {"~3\r\n:1\r\n+a\r\n#t\r\n", '*'},
    {"%0\r\n", '*'},
    {"%2\r\n+a\r\n:1\r\n$1\r\nb\r\n*2\r\n_\r\n,1\r\n", '*'},
    {"*2\r\n%1\r\n~1\r\n+k\r\n!3\r\nERR\r\n=5\r\ntxt:x\r\n", '*'},
    {"$?\r\n;0\r\n", '$'},
    {"$?\r\n;4\r\nHell\r\n;5\r\no wor\r\n;1\r\nd\r\n;0\r\n", '$'},
    {"$?\r\n;2\r\n\r\n\r\n;0\r\n", '$'},
    {"*?\r\n.\r\n", '*'},
    {"*?\r\n:1\r\n*?\r\n+a\r\n.\r\n:3\r\n.\r\n", '*'},
    {"~?\r\n+a\r\n+b\r\n+c\r\n.\r\n", '*'},
    {"%?\r\n+a\r\n:1\r\n+b\r\n*2\r\n:1\r\n:2\r\n.\r\n", '*'},
    {"*2\r\n$?\r\n;1\r\na\r\n;0\r\n%?\r\n.\r\n", '*'},
    // Attributes are no elements, wherever they are.
    {"|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n*2\r\n:1\r\n:2\r\n", '*'},
    {"|0\r\n+OK\r\n", '+'},
    {"|1\r\n+a\r\n-ERR inside\r\n|1\r\n+b\r\n+c\r\n$3\r\nabc\r\n", '$'},
    {"*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n", '*'},
    {"*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n*0\r\n|0\r\n_\r\n", '*'},
    {"%1\r\n|1\r\n+a\r\n+b\r\n+k\r\n|1\r\n+a\r\n+b\r\n+v\r\n", '*'},
    {"*?\r\n|1\r\n+a\r\n+b\r\n+v\r\n.\r\n", '*'},
    {"|1\r\n|1\r\n+x\r\n+y\r\n+a\r\n+b\r\n:1\r\n", ':'},
};

// Pushes are not answers.
const Case pushes[] = {
    {">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nfoo\r\n", '>'},
    {">2\r\n$10\r\ninvalidate\r\n_\r\n", '>'},
    {">0\r\n", '>'},
    {">3\r\n+message\r\n+channel\r\n%1\r\n+a\r\n#t\r\n", '>'},
    {"|1\r\n+a\r\n+b\r\n>1\r\n+hello\r\n", '>'},
};

} // namespace

TEST_CASE("a complete reply is found, with its kind and nothing after it")
{
	for (const Case &c : replies) {
		INFO(c.text);
		const Seen seen = scan(std::string(c.text) + "+next\r\n");
		CHECK(seen.result == 1);
		CHECK(seen.used == strlen(c.text));
		CHECK(seen.kind == c.kind);
	}
}

TEST_CASE("a reply cut at every byte, and at every two, is the same reply")
{
	for (const Case &c : replies) {
		const std::string text = c.text;
		INFO(text);
		for (size_t a = 1; a < text.size(); a++) {
			Seen seen = scan(text, {a});
			CHECK(seen.result == 1);
			CHECK(seen.used == text.size());
			CHECK(seen.kind == c.kind);
			for (size_t b = a + 1; b < text.size(); b++) {
				seen = scan(text, {a, b});
				CHECK((seen.result == 1 && seen.used == text.size() && seen.kind == c.kind));
			}
		}
		CHECK(scan(text.substr(0, text.size() - 1)).result == 0);
	}
}

TEST_CASE("one scanner reads a stream of replies however it is cut")
{
	std::string stream;
	size_t expected = 0;
	size_t pushed = 0;
	for (int round = 0; round < 20; round++)
		for (const Case &c : replies) {
			stream += pushes[expected % std::size(pushes)].text;
			stream += c.text;
			expected++;
		}
	random_stream random = {7};
	for (int round = 0; round < 200; round++) {
		resp_scanner s = {};
		size_t found = 0;
		pushed = 0;
		for (size_t from = 0; from < stream.size();) {
			size_t size = std::min<size_t>(1 + random_below(&random, 40), stream.size() - from);
			std::vector<char> piece(stream.begin() + static_cast<ptrdiff_t>(from),
						stream.begin() + static_cast<ptrdiff_t>(from + size));
			const char *at = piece.data(), *end = at + size;
			while (at < end) {
				int result = resp_scan(&s, &at, end);
				REQUIRE(result >= 0);
				found += result == 1;
				pushed += result == 2;
			}
			from += size;
		}
		REQUIRE(found == expected);
		REQUIRE(pushed == expected);
	}
}

TEST_CASE("a push is distinguished from a reply, cut at every byte or not")
{
	for (const Case &c : pushes) {
		const std::string text = c.text;
		INFO(text);
		Seen seen = scan(text + "+next\r\n");
		CHECK((seen.result == 2 && seen.used == text.size()));
		for (size_t cut = 1; cut < text.size(); cut++) {
			seen = scan(text, {cut});
			CHECK((seen.result == 2 && seen.used == text.size() && seen.kind == '>'));
			CHECK(scan(text.substr(0, cut)).result == 0);
		}
	}
	// Between replies only.
	for (const char *text :
	     {"*1\r\n>1\r\n+a\r\n", "%1\r\n+a\r\n>1\r\n+a\r\n", "|1\r\n+a\r\n>1\r\n+a\r\n+OK\r\n",
	      ">1\r\n>1\r\n+a\r\n", "*?\r\n>0\r\n.\r\n"})
		CHECK(scan(text).result == -1);
}

TEST_CASE("a scanner is in its initial state after every reply and push")
{
	for (const auto &cases : {std::vector<Case>(std::begin(replies), std::end(replies)),
				  std::vector<Case>(std::begin(pushes), std::end(pushes))})
		for (const Case &c : cases) {
			INFO(c.text);
			resp_scanner s = {};
			const char *at = c.text;
			REQUIRE(resp_scan(&s, &at, c.text + strlen(c.text)) > 0);
			CHECK((s.state == 0 && s.depth == 0 && s.attributes == 0 && s.streamed == 0));
		}
}

TEST_CASE("a large value is skipped and not stored")
{
	const size_t size = 5000000;
	resp_scanner s = {};
	std::string head = "$" + std::to_string(size) + "\r\n", piece(65536, '\r');
	const char *at = head.data();
	CHECK(resp_scan(&s, &at, head.data() + head.size()) == 0);
	size_t left = size;
	while (left > 0) {
		size_t now = std::min(left, piece.size());
		at = piece.data();
		REQUIRE(resp_scan(&s, &at, piece.data() + now) == 0);
		left -= now;
	}
	const char tail[] = "\r\n";
	at = tail;
	CHECK(resp_scan(&s, &at, tail + 2) == 1);
}

TEST_CASE("an error's first word is stored, cut or not, up to the room available")
{
	CHECK(scan("-WRONGTYPE Operation against\r\n").word == "WRONGTYPE");
	for (size_t cut = 1; cut < 20; cut++)
		CHECK(scan("-WRONGTYPE Operation against\r\n", {cut}).word == "WRONGTYPE");
	CHECK(scan("-ERR\r\n").word == "ERR");
	CHECK(scan("-ABCDEFGHIJKLMNOPQRSTUVWXYZ and more\r\n").word == "ABCDEFGHIJKLMNO");
	CHECK(scan("- x\r\n").word == "");
	for (size_t cut = 1; cut < 26; cut++)
		CHECK(scan("!21\r\nSYNTAX invalid syntax\r\n", {cut}).word == "SYNTAX");
	CHECK(scan("!0\r\n\r\n").word == "");
	CHECK(scan("|1\r\n-OOPS\r\n+a\r\n-ERR x\r\n").word == "ERR");
	// An error inside an array is not the reply's error.
	CHECK(scan("*1\r\n!6\r\nOOPS a\r\n").word == "");
	CHECK(scan("*1\r\n-OOPS in here\r\n").word == "");
}

TEST_CASE("an invalid reply is refused")
{
	for (const char *text :
	     {"ERROR\r\n", "HTTP/1.1 400 Bad Request\r\n", "\r\n", "$\r\n", "$-2\r\n", "$1x\r\na\r\n",
	      "$--1\r\n", "*-7\r\n", ":\r\n", ":1-2\r\n", "$1\r\nab\r\n", "$1\r\na\rb", "+OK\rX",
	      "$99999999999\r\n", "*99999999999\r\n", ":123456789012345678901\r\n", "$ 1\r\n", "$0\r\nx\r\n",
	      "$+1\r\n",
	      // One array more than RESP_DEPTH.
	      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n",
	      "|1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n~1\r\n:7\r\n",
	      // Types that RESP3 has and does not have
	      "_1\r\n", "#\r\n", "#x\r\n", "#tt\r\n", ",\r\n", ",abc\r\n", ",1 2\r\n", "(\r\n", "(-\r\n",
	      "(1.5\r\n", "(1-1\r\n", "!-1\r\n", "=-1\r\n", "=3\r\ntxt\r\n", "=?\r\n", "!?\r\n", ">?\r\n",
	      "|?\r\n", ">-1\r\n", "|-1\r\n", "%-1\r\n", "~-1\r\n", ".\r\n", ";1\r\na\r\n", "*1\r\n.\r\n",
	      "*?\r\n*1\r\n.\r\n", "%?\r\n+a\r\n.\r\n", "*?1\r\n", "*??\r\n", "*-?\r\n", "*1?\r\n", ":?\r\n",
	      "$?\r\nabc\r\n", "$?\r\n;?\r\n", "$?\r\n;-1\r\n", "$?\r\n;1\r\na\r\n$1\r\n", "%2147483648\r\n",
	      "|2147483648\r\n", "*?\r\n..\r\n", "*?\r\n.1\r\n"}) {
		INFO(text);
		CHECK(scan(text).result == -1);
		for (size_t cut = 1; cut + 1 < strlen(text); cut++)
			CHECK(scan(text, {cut}).result == -1);
	}
}

TEST_CASE("a reply of impossible length is waited for, or refused, without memory")
{
	// Nested arrays with as many elements as 32 bits count: four bytes of state each, and no more.
	for (const char *text :
	     {"*1000000000\r\n", "*4294967295\r\n", "$4294967295\r\n", "*1\r\n*4294967295\r\n",
	      "%2147483647\r\n", "|2147483647\r\n", ">4294967295\r\n", "~4294967295\r\n", "=4294967295\r\n",
	      "$?\r\n;4294967295\r\n", "*?\r\n+a\r\n"}) {
		INFO(text);
		CHECK(scan(text).result == 0);
		CHECK(scan(text, {1, 4}).result == 0);
	}
	for (const char *text :
	     {"*4294967296\r\n", "$4294967296\r\n", "*-2\r\n", "$-2\r\n", "*-0\r\n", "$-0\r\n"}) {
		INFO(text);
		CHECK(scan(text).result == -1);
		CHECK(scan(text, {1, 3}).result == -1);
	}
	std::string deep;
	for (int i = 0; i < 10000; i++)
		deep += "*1\r\n";
	const Seen seen = scan(deep);
	CHECK(seen.result == -1);
	CHECK(seen.used == RESP_DEPTH * 4 + 3); // the LF of the array that is one too many
}

TEST_CASE("random bytes never cause a read beyond the buffer or an endless loop")
{
	random_stream random = {1};
	const char alphabet[] = "+-:$*_#,(!=%~>|;.?0123456789\r\nabt ";
	for (int round = 0; round < 100000; round++) {
		std::vector<char> bytes(1 + random_below(&random, 30));
		for (char &b : bytes)
			b = alphabet[random_below(&random, sizeof(alphabet) - 1)];
		resp_scanner s = {};
		const char *at = bytes.data(), *end = at + bytes.size();
		int result = 1;
		while (at < end && result > 0) {
			const char *before = at;
			result = resp_scan(&s, &at, end);
			REQUIRE(at <= end);
			if (result > 0)
				REQUIRE(at > before);
		}
	}
}
