// SPDX-License-Identifier: MIT
// Parsing /proc/PID/maps.
#include "tests/support/catch.h"

#include <cstring>
#include <memory>
#include <unistd.h>
#include <vector>

#include "loader/samples.h"

namespace
{

std::vector<mapped_file> files(const std::string &text)
{
	std::vector<mapped_file> all;
	// On the heap, so that a sanitizer reports a read beyond its end.
	std::unique_ptr<char[]> copy(new char[text.size() + 1]);
	memcpy(copy.get(), text.c_str(), text.size() + 1);
	mappings_each(
	    copy.get(),
	    [](void *context, const mapped_file *f) {
		    static_cast<std::vector<mapped_file> *>(context)->push_back(*f);
	    },
	    &all);
	return all;
}

std::string base_name(const std::string &path, size_t size = 64)
{
	std::string name(size, 'x');
	mappings_base_name(path.c_str(), name.data(), size);
	return name.c_str();
}

} // namespace

TEST_CASE("a file with code is returned with all of its mappings and the place of its code")
{
	const auto all =
	    files("55d0c0000000-55d0c0001000 r--p 00000000 fe:01 1234   /usr/bin/redis-server\n"
		  "55d0c0001000-55d0c0009000 r-xp 00001000 fe:01 1234   /usr/bin/redis-server\n"
		  "55d0c0009000-55d0c000a000 rw-p 00009000 fe:01 1234   /usr/bin/redis-server\n"
		  "55d0c000a000-55d0c000b000 rw-p 00000000 00:00 0 \n"
		  "55d0c1000000-55d0c1100000 rw-p 00000000 00:00 0      [heap]\n"
		  "7f0000000000-7f0000001000 r--p 00000000 fe:01 77     /usr/lib/locale/C.utf8\n"
		  "7f0000100000-7f0000101000 r-xp 00000000 fe:02 1234   /opt/with space (deleted)\n"
		  "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0      [vdso]\n"
		  "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
	REQUIRE(all.size() == 3);
	CHECK(all[0].start == 0x55d0c0000000);
	CHECK(all[0].end == 0x55d0c000a000);
	CHECK(all[0].code_start == 0x55d0c0001000);
	CHECK(all[0].code_end == 0x55d0c0009000);
	CHECK(all[0].inode == 1234);
	CHECK(std::string(all[0].path) == "/usr/bin/redis-server");
	CHECK(std::string(all[1].path) == "/opt/with space (deleted)");
	CHECK(all[1].device[1] == 2);
	CHECK(all[2].inode == 0);
	CHECK(all[2].code_start == 0x7ffd00000000);
}

TEST_CASE("invalid lines are skipped, and so is an incomplete last line")
{
	CHECK(files("").empty());
	CHECK(files("\n\n\n").empty());
	CHECK(files("nonsense\n1000-0 r-xp 0 1:1 5 /a\n-\n1000-2000").empty());
	CHECK(files(std::string(100000, 'a')).empty());
	CHECK(files("1000-2000 r-xp 0 1:1 5 /last, without an end").size() == 1);
	const auto longest = files("1000-2000 r-xp 0 1:1 5 /" + std::string(100000, 'p') + "\n");
	REQUIRE(longest.size() == 1);
	CHECK(strlen(longest[0].path) == MAPPED_PATH - 1);
	std::string many;
	for (int i = 1; i < 3000; i++) {
		char line[100];
		snprintf(line, sizeof line, "%x000-%x800 r-xp 0 1:1 %d /f\n", i, i, i);
		many += line;
	}
	CHECK(files(many).size() == MAPPED_FILES);
}

TEST_CASE("this process' own maps have this program and the C library")
{
	char *text = mappings_read(getpid());
	REQUIRE(text);
	std::vector<std::string> names;
	for (const mapped_file &f : files(text))
		names.push_back(base_name(f.path));
	free(text);
	CHECK(std::count(names.begin(), names.end(), "libc.so.6") == 1);
	CHECK(std::count(names.begin(), names.end(), "[vdso]") == 1);
	CHECK(std::count(names.begin(), names.end(), "test_loader") == 1);
	CHECK(mappings_read(4194304) == nullptr);
}

TEST_CASE("a file's name is the last part of its path, also when it was deleted")
{
	CHECK(base_name("/usr/bin/redis-server") == "redis-server");
	CHECK(base_name("/usr/bin/redis-server (deleted)") == "redis-server");
	CHECK(base_name("[vdso]") == "[vdso]");
	CHECK(base_name("/") == "");
	CHECK(base_name("/a/" + std::string(1000, 'n'), 16) == std::string(15, 'n'));
}
