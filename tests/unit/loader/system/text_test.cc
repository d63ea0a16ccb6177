// SPDX-License-Identifier: MIT
// Reading files as text: a process' files, and files longer than one read.
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>

#include "loader/system.h"

using namespace forktail::test;

TEST_CASE("a file of a process is read as one text")
{
	char text[256], small[5];
	Process p({"sleep", "60", "61"});
	// A program's name comes before its arguments.
	REQUIRE(eventually([&] { return read_proc(p.pid(), "cmdline", text, sizeof text) == 11; }));
	CHECK(std::string(text) == "sleep 60 61"); // in place of NULs
	CHECK(read_proc(p.pid(), "comm", text, sizeof text) == 5);
	CHECK(std::string(text) == "sleep"); // without the newline
	CHECK(read_proc(p.pid(), "cmdline", small, sizeof small) == 4);
	CHECK(std::string(small) == "slee");
	CHECK(read_proc(p.pid(), "no-such-file", text, sizeof text) == -ENOENT);
	CHECK(std::string(text).empty());
}

TEST_CASE("a long file is read completely, or up to the requested size")
{
	TempDir dir;
	const std::string path = dir.file("long"), content(200000, 'x');
	struct text text = {};
	std::ofstream(path) << content;
	CHECK(text_read_at(&text, AT_FDCWD, path.c_str(), 1 << 20));
	CHECK(std::string(text.bytes) == content);
	CHECK(text.length == content.size());
	free(text.bytes);
	text = {};
	CHECK_FALSE(text_read_at(&text, AT_FDCWD, path.c_str(), 1 << 16));
	CHECK(text.length > 0);
	CHECK(content.compare(0, text.length, text.bytes) == 0);
	CHECK_FALSE(text_read_at(&text, AT_FDCWD, dir.file("none").c_str(), 1 << 16));
	CHECK(text.length == 0);
	free(text.bytes);
}
