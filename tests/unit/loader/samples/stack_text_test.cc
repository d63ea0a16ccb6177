// SPDX-License-Identifier: MIT
// Stacks as text: names from a target's files cannot add lines, and nothing is written beyond the end.
#include "tests/support/catch.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "loader/samples.h"

namespace
{

std::vector<std::string> lines(const stack_text &t)
{
	std::vector<std::string> all;
	const char *at = t.bytes;
	stack_line line;
	while (stack_text_line(&at, &line)) {
		std::string text(line.function, line.function_length);
		if (line.module)
			text += " in " + std::string(line.module, line.module_length);
		all.push_back(text);
	}
	return all;
}

// On the heap, so that a sanitizer reports a write beyond its end.
std::unique_ptr<stack_text> begun(const std::string &program)
{
	auto t = std::make_unique<stack_text>();
	memset(t.get(), 'x', sizeof *t);
	stack_text_begin(t.get(), program.c_str());
	return t;
}

} // namespace

TEST_CASE("a stack's text has a line for the program, each frame, and each kernel function")
{
	auto t = begun("redis-server");
	CHECK(stack_text_frame(t.get(), "keysCommand", "redis-server"));
	CHECK(stack_text_frame(t.get(), "", "libc.so.6"));
	CHECK(stack_text_frame(t.get(), "", ""));
	CHECK(stack_text_kernel(t.get(), "tcp_sendmsg"));
	CHECK(lines(*t) == std::vector<std::string>{"redis-server", "keysCommand in redis-server",
						    " in libc.so.6", " in ", "tcp_sendmsg"});
}

TEST_CASE("long names are cut, and a line that does not fit is omitted")
{
	const std::string huge(100000, 'n'), cut(STACK_NAME_BYTES, 'n');
	auto t = begun(huge);
	size_t frames = 0, kernel = 0;
	while (stack_text_frame(t.get(), huge.c_str(), huge.c_str()))
		frames++;
	CHECK(t->length < STACK_TEXT_BYTES / 2);
	while (stack_text_kernel(t.get(), huge.c_str()))
		kernel++;
	CHECK(t->length < STACK_TEXT_BYTES);
	CHECK(strlen(t->bytes) == t->length);
	CHECK_FALSE(stack_text_frame(t.get(), "", ""));
	const auto all = lines(*t);
	REQUIRE(all.size() == 1 + frames + kernel);
	CHECK(frames >= 4);
	CHECK(kernel >= 10);
	CHECK(all.front() == cut);
	CHECK(all[1] == cut + " in " + cut);
	CHECK(all.back() == cut);
	// Every length up to the end.
	for (size_t room = 1; room < 600; room++) {
		auto u = begun("p");
		while (stack_text_kernel(u.get(), std::string(room % STACK_NAME_BYTES, 'k').c_str()))
			;
		REQUIRE(u->length < STACK_TEXT_BYTES);
		REQUIRE(strlen(u->bytes) == u->length);
	}
}

TEST_CASE("a name can be neither a separate line nor a kernel function")
{
	auto t = begun("a\nb");
	CHECK(stack_text_frame(t.get(), "main\ndo_fork", "lib\tc.so\nx"));
	CHECK(stack_text_kernel(t.get(), "k\tm"));
	CHECK(lines(*t) == std::vector<std::string>{"a?b", "main?do_fork in lib?c.so?x", "k?m"});
}
