// SPDX-License-Identifier: MIT
// Names of system calls: the names that explanations have always used, by this machine's numbers.
#include "tests/support/catch.h"

#include <cstdint>
#include <string>
#include <sys/syscall.h>

#include "recording/recording.h"

TEST_CASE("a system call's number has the kernel's name")
{
	CHECK(std::string(ft_syscall_name(SYS_read)) == "read");
	CHECK(std::string(ft_syscall_name(SYS_fdatasync)) == "fdatasync");
	CHECK(std::string(ft_syscall_name(SYS_futex)) == "futex");
	CHECK(std::string(ft_syscall_name(SYS_epoll_pwait)) == "epoll_pwait");
	CHECK(std::string(ft_syscall_name(SYS_clone3)) == "clone3");
	CHECK(ft_syscall_limit() > SYS_futex_waitv);
}

TEST_CASE("an invalid system call number has no name")
{
	CHECK(ft_syscall_name(-1) == nullptr);
	CHECK(ft_syscall_name(400) ==
	      nullptr); // in the gap below 424, from where on all machines have the same
	CHECK(ft_syscall_name(ft_syscall_limit()) == nullptr);
	CHECK(ft_syscall_name(INT32_MAX) == nullptr);
}
