// SPDX-License-Identifier: MIT
// Whether a process has a ring, asked of this one before it has, while it has, and after.
#include "tests/support/catch.h"

#include <cerrno>
#include <cstring>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/sockets/io_uring.h"

TEST_CASE("a process works over io_uring while it has a ring open")
{
	CHECK(!has_io_uring(getpid()));
	io_uring_params parameters = {};
	const int ring = static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters));
	if (ring < 0) {
		WARN("left out: this kernel refuses rings: " << strerror(errno));
		return;
	}
	CHECK(has_io_uring(getpid()));
	close(ring);
	CHECK(!has_io_uring(getpid()));
	CHECK(!has_io_uring(0));
}
