// SPDX-License-Identifier: MIT
// How the server's host identifies a socket.
#include "tests/support/catch.h"

#include <sys/socket.h>
#include <unistd.h>

#include "loadgen/net.h"

TEST_CASE("a socket's inode is that of its descriptor in /proc")
{
	int pair[2];
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	for (int fd : pair)
		CHECK(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)) ==
		      "socket:[" + std::to_string(socket_inode(fd)) + "]");
	CHECK(socket_inode(pair[0]) != socket_inode(pair[1]));
	close(pair[0]);
	close(pair[1]);
	CHECK(socket_inode(-1) == 0);
}
