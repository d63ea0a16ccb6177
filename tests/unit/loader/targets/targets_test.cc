// SPDX-License-Identifier: MIT
// Which processes --pid, --port, --unix and --name select, tested on this machine's own processes.
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/unit/loader/support.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <sys/wait.h>

#include "loader/targets.h"

using namespace forktail::test;

namespace
{

bool has(const targets &t, pid_t pid)
{
	return std::find(t.pids, t.pids + t.count, pid) != t.pids + t.count;
}

std::unique_ptr<targets> none()
{
	return std::make_unique<targets>();
}

// A free process id: its process has just ended.
pid_t free_pid()
{
	const pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, nullptr, 0);
	return pid;
}

// A process with this name.
Process process_called(const TempDir &dir, const std::string &name)
{
	std::filesystem::copy_file("/bin/sleep", dir.file(name));
	return Process({dir.file(name), "60"});
}

} // namespace

TEST_CASE("--pid takes a list of existing processes, each once")
{
	auto t = none();
	pid_t which = 0;
	const std::string self = std::to_string(getpid()), parent = std::to_string(getppid());
	CHECK(targets_add_pids(t.get(), self.c_str(), &which) == 1);
	CHECK(targets_add_pids(t.get(), (parent + "," + self).c_str(), &which) == 2);
	CHECK(t->count == 2);
	CHECK(t->pids[0] == getpid());
	CHECK(t->pids[1] == getppid());

	const pid_t gone = free_pid();
	CHECK(targets_add_pids(t.get(), (self + "," + std::to_string(gone)).c_str(), &which) == -ESRCH);
	CHECK(which == gone);
}

TEST_CASE("--pid takes nothing but a list of numbers")
{
	auto t = none();
	pid_t which = 0;
	const std::string self = std::to_string(getpid());
	for (const std::string &text :
	     {std::string(), std::string("redis"), std::string("0"), std::string("-5"),
	      std::string("4194305"), std::string("99999999999999999999"), "," + self, self + ",",
	      self + ",,1", self + " 1", self + "x"}) {
		INFO(text);
		CHECK(targets_add_pids(t.get(), text.c_str(), &which) == -EINVAL);
	}
	CHECK(t->count <= 1); // the numbers before the error
}

TEST_CASE("more targets than allowed are refused")
{
	auto t = none();
	while (t->count < TARGETS_MAX)
		t->pids[t->count++] = 1 << 22;
	pid_t which = 0;
	CHECK(targets_add_pid(t.get(), getpid()) == -E2BIG);
	CHECK(targets_add_pids(t.get(), std::to_string(getpid()).c_str(), &which) == -E2BIG);
	CHECK(targets_add_name(t.get(), "test_loader") == -E2BIG);
	t->pids[0] = getpid();
	CHECK(targets_add_pid(t.get(), getpid()) == 1); // it is already in the list
}

TEST_CASE("--port takes a number from 1 to 65535")
{
	CHECK(port_number("1") == 1);
	CHECK(port_number("6379") == 6379);
	CHECK(port_number("65535") == 65535);
	for (const char *text : {"", "0", "65536", "-1", "redis", "80x", "6379,6380", "4294967297"}) {
		INFO(text);
		CHECK(port_number(text) == -EINVAL);
	}
}

TEST_CASE("a port's targets are all processes that have its listening socket open")
{
	Socket listening(true), bound(false);
	auto t = none();
	REQUIRE(targets_add_port(t.get(), listening.port()) >= 1);
	CHECK(has(*t, getpid()));
	const size_t before = t->count;

	int hold[2];
	REQUIRE(pipe(hold) == 0);
	const pid_t child = fork(); // inherits it
	if (child == 0) {
		char byte;
		close(hold[1]);
		if (read(hold[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	auto both = none();
	CHECK(targets_add_port(both.get(), listening.port()) == static_cast<int>(before) + 1);
	CHECK(has(*both, getpid()));
	CHECK(has(*both, child));
	close(hold[1]);
	close(hold[0]);
	waitpid(child, nullptr, 0);

	auto empty = none();
	CHECK(targets_add_port(empty.get(), bound.port()) == -ENOENT); // not listening
	CHECK(empty->count == 0);
}

TEST_CASE("a Unix socket is found by its bound path and by any other path to it")
{
	TempDir dir;
	Socket socket(dir.file("redis.sock"));
	auto t = none();
	REQUIRE(targets_add_unix(t.get(), dir.file("redis.sock").c_str()) == 1);
	CHECK(t->pids[0] == getpid());
	std::filesystem::create_symlink(dir.file("redis.sock"), dir.file("link.sock"));
	CHECK(targets_add_unix(t.get(), dir.file("link.sock").c_str()) == 1);
	CHECK(targets_add_unix(t.get(), (dir.path() + "/./redis.sock").c_str()) == 1);
	CHECK(t->count == 1);
	CHECK(targets_add_unix(t.get(), dir.file("other.sock").c_str()) == -ENOENT);
}

TEST_CASE("--name selects by a process' comm or its program's full name")
{
	TempDir dir;
	const std::string pid = std::to_string(getpid()), name = "ft-" + pid,
			  longer = "ft-" + pid + "-of-a-server";
	Process one = process_called(dir, name), two = process_called(dir, longer);
	auto t = none();
	REQUIRE(eventually([&] { return targets_add_name(t.get(), name.c_str()) == 1; }, Seconds(10)));
	CHECK(t->pids[0] == one.pid());
	REQUIRE(longer.size() > 15); // comm is cut there
	REQUIRE(eventually([&] { return targets_add_name(t.get(), longer.c_str()) == 1; }, Seconds(10)));
	CHECK(has(*t, two.pid()));
	CHECK(targets_add_name(t.get(), (name + "-nobody").c_str()) == -ENOENT);
}
