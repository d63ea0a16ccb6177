// SPDX-License-Identifier: MIT
// Whether a process uses io_uring: checked for this process before, while and after it has a ring.
#include "tests/support/catch.h"

#include <cerrno>
#include <cstring>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/targets.h"

TEST_CASE("a process uses io_uring while it has a ring open")
{
	CHECK(!has_io_uring(getpid()));
	io_uring_params parameters = {};
	const int ring = static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters));
	if (ring < 0) {
		WARN("SKIPPED: this kernel refuses rings: " << strerror(errno));
		return;
	}
	CHECK(has_io_uring(getpid()));
	close(ring);
	CHECK(!has_io_uring(getpid()));
	CHECK(!has_io_uring(0));
}
