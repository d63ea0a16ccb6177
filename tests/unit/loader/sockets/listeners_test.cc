// SPDX-License-Identifier: MIT
// Listening sockets of this process, as listed in /proc.
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/unit/loader/support.h"

#include <algorithm>
#include <sys/stat.h>

#include "loader/targets.h"

using namespace forktail::test;

namespace
{

unsigned long inode_of(const Socket &s)
{
	struct stat st = {};
	fstat(s.fd(), &st);
	return st.st_ino;
}

std::vector<std::string> listened(pid_t pid)
{
	std::vector<std::string> all;
	json_t *list = listen_addresses(pid);
	for (size_t i = 0; i < json_array_size(list); i++)
		all.emplace_back(json_string_value(json_array_get(list, i)));
	json_decref(list);
	std::sort(all.begin(), all.end());
	return all;
}

} // namespace

TEST_CASE("a port's listening socket and its process are found")
{
	Socket s(true), other(true);
	inodes found = {};
	REQUIRE(listeners_on_port(&found, s.port()) == 0);
	REQUIRE(found.count == 1);
	CHECK(found.inode[0] == inode_of(s));
	CHECK(holds_socket(getpid(), &found));
	Process stranger({"sleep", "60"});
	CHECK(eventually([&] { return !holds_socket(stranger.pid(), &found); },
			 Seconds(10))); // once for this process itself
	CHECK_FALSE(holds_socket(-1, &found));

	REQUIRE(listeners_on_port(&found, other.port()) == 0); // adds to the existing entries
	CHECK(found.count == 2);
}

TEST_CASE("sockets that do not listen are not found")
{
	Socket bound(false);
	inodes found = {};
	CHECK(listeners_on_port(&found, bound.port()) == 0);
	CHECK(listeners_on_path(&found, "/nowhere.sock") == 0);
	CHECK(found.count == 0);
}

TEST_CASE("sockets beyond the limit are omitted")
{
	Socket s(true);
	inodes full = {};
	full.count = INODES_MAX;
	CHECK(listeners_on_port(&full, s.port()) == 0);
	CHECK(full.count == INODES_MAX);
}

TEST_CASE("the sockets a process listens on are a list of addresses")
{
	const std::vector<std::string> before = listened(getpid());
	TempDir dir;
	Socket tcp(true), bound(false), path(dir.file("a b.sock")), no_text(dir.file("\xff.sock"));
	std::vector<std::string> wanted = before;
	wanted.push_back("tcp:" + std::to_string(tcp.port()));
	wanted.push_back("unix:" + dir.file("a b.sock"));
	wanted.push_back("unix:" + dir.file("\\xff.sock"));
	std::sort(wanted.begin(), wanted.end());
	CHECK(listened(getpid()) == wanted);
	Process stranger({"sleep", "60"});
	CHECK(eventually([&] { return listened(stranger.pid()).empty(); }, Seconds(10)));
}
