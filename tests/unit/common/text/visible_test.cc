// SPDX-License-Identifier: MIT
// Sanitized text is UTF-8 that neither moves the cursor nor reverses text, whatever bytes it had.
#include <cstdio>
#include <cstring>
#include <string>

#include "common/text.h"
#include "tests/support/catch.h"

namespace
{

std::string visible(const std::string &text)
{
	std::string out(VISIBLE_MOST * text.size() + 1, '?');
	size_t all = visible_text(out.data(), out.size(), text.data(), text.size());
	REQUIRE(all < out.size());
	REQUIRE(out[all] == 0);
	out.resize(all);
	return out;
}

std::string put(const char *text)
{
	char *at = nullptr;
	size_t size = 0;
	FILE *f = open_memstream(&at, &size);
	put_visible(f, text);
	fclose(f);
	std::string out(at, size);
	free(at);
	return out;
}

std::string utf8(uint32_t c)
{
	auto tail = [](uint32_t bits) { return std::string(1, static_cast<char>(0x80 | (bits & 0x3f))); };
	auto head = [](uint32_t byte) { return std::string(1, static_cast<char>(byte)); };
	return c < 0x800     ? head(0xc0 | c >> 6) + tail(c)
	       : c < 0x10000 ? head(0xe0 | c >> 12) + tail(c >> 6) + tail(c)
			     : head(0xf0 | c >> 18) + tail(c >> 12) + tail(c >> 6) + tail(c);
}

} // namespace

TEST_CASE("printable text is unchanged")
{
	for (const std::string text : {"", "redis-server", "a \"quoted\" \\ back\\x1bslash <b>&",
				       "gr\xc3\xbc\xc3\x9f", "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x90\x8c",
				       "\xd7\xa9\xd7\x9c", "\xc2\xa0", "\xef\xbf\xbd"}) {
		CHECK(visible(text) == text);
		CHECK(put(text.c_str()) == text);
	}
}

TEST_CASE("terminal control sequences become text")
{
	CHECK(visible("\x1b[2Jx") == "\\x1b[2Jx");
	CHECK(visible("\x1b]52;c;ZXZpbA==\a") == "\\x1b]52;c;ZXZpbA==\\x07");
	CHECK(visible("two\nlines\r\tand a tab") == "two\\x0alines\\x0d\\x09and a tab");
	CHECK(visible(std::string("a\0b", 3)) == "a\\x00b");
	CHECK(visible("\x7f") == "\\x7f");
	CHECK(visible("\xc2\x9b"
		      "31m") == "\\x9b31m");   // C1, which terminals read as ESC [
	CHECK(visible("\xc2\x85") == "\\x85"); // next line
	CHECK(put("a\x1b[0m") == "a\\x1b[0m");
}

TEST_CASE("characters that reverse text or are invisible are spelled out")
{
	CHECK(visible("\xe2\x80\xae"
		      "gpj.exe") == "\\u202egpj.exe");
	for (uint32_t c : {0x202a, 0x202e, 0x2066, 0x2069, 0x200f, 0x200b, 0x2028, 0x2029, 0x061c, 0xfeff}) {
		char wanted[16];
		snprintf(wanted, sizeof wanted, "\\u%04x", c);
		CHECK(visible(utf8(c)) == wanted);
	}
	CHECK(visible(utf8(0xe0041)) == "\\U000e0041");
	CHECK(visible(utf8(0x2010)) == utf8(0x2010));
	CHECK(visible(utf8(0x2070)) == utf8(0x2070));
}

TEST_CASE("bytes that are no UTF-8 are printed one by one")
{
	CHECK(visible("\xff") == "\\xff");
	CHECK(visible("a\x80z") == "a\\x80z");
	CHECK(visible("\xc3") == "\\xc3");
	CHECK(visible("\xc3(") == "\\xc3(");
	CHECK(visible("\xe2\x82") == "\\xe2\\x82");
	CHECK(visible("\xc0\x9b") == "\\xc0\\x9b");	     // ESC, too long
	CHECK(visible("\xe0\x80\x9b") == "\\xe0\\x80\\x9b"); // another one
	CHECK(visible("\xed\xa0\x80") == "\\xed\\xa0\\x80"); // a surrogate
	CHECK(visible("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
	CHECK(visible("\xe2\x80\x1b") == "\\xe2\\x80\\x1b");
}

TEST_CASE("sanitized text is unchanged when sanitized again")
{
	unsigned state = 1;
	for (int round = 0; round < 2000; round++) {
		std::string text;
		for (int i = 0; i < 24; i++) {
			state = state * 1103515245 + 12345;
			text += static_cast<char>(state >> 16);
		}
		std::string once = visible(text);
		CHECK(visible(once) == once);
		CHECK(once.size() >= text.size());
		for (char c : once)
			REQUIRE((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
	}
}

TEST_CASE("text without room ends between characters, and its full length is returned")
{
	const std::string text = "ab\xc3\xbc\x1bz";
	const std::string whole = "ab\xc3\xbc\\x1bz";
	for (size_t size = 0; size <= whole.size() + 1; size++) {
		std::string out(size + 1, '?');
		CHECK(visible_text(out.data(), size, text.data(), text.size()) == whole.size());
		CHECK(out[size] == '?');
		std::string got = size ? out.c_str() : "";
		CHECK(whole.compare(0, got.size(), got) == 0);
		size_t fits = size > 9 ? 9 : size > 8 ? 8 : size > 4 ? 4 : size > 2 ? 2 : size > 1 ? 1 : 0;
		CHECK(got.size() == fits);
	}
}
