// SPDX-License-Identifier: MIT
// The harness itself, on which every test with servers depends.
#include <csignal>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/memory_cgroup.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"

using namespace forktail::test;

TEST_CASE("run returns output and status separately")
{
	const Result r = run({"sh", "-c", "cat; echo err >&2; exit 7"}, Seconds(10), {{}, "", "in"});
	CHECK(r.status == 7);
	CHECK(r.out == "in");
	CHECK(r.err == "err\n");
	CHECK_FALSE(r.timed_out);
}

TEST_CASE("run ends a program after its time limit, with a message")
{
	const Result r = run({"sleep", "100"}, Seconds(0.05));
	CHECK(r.timed_out);
	CHECK(r.status == 128 + SIGKILL);
}

TEST_CASE("a missing program exits with 127")
{
	const Result r = run({"/nonexistent/program"});
	CHECK(r.status == 127);
	CHECK(r.err.find("/nonexistent/program") != std::string::npos);
}

TEST_CASE("a program's peak memory is returned, and limited where possible")
{
	const std::vector<std::string> hundred = {"dd", "if=/dev/zero", "of=/dev/null", "bs=100M", "count=1"};
	const Result r = run(hundred);
	CHECK(r.status == 0);
	CHECK(r.peak_bytes >= 100 << 20);
	CHECK(r.peak_bytes < 130 << 20);
	MemoryCgroup cgroup(64 << 20);
	if (!cgroup.usable()) {
		WARN("SKIPPED: the limit, cannot make a memory cgroup here");
		return;
	}
	CHECK(run(cgroup.within(hundred)).status == 128 + SIGKILL);
	CHECK(run(cgroup.within({"sh", "-c", "echo ready; exit 7"})).status == 7);
}

TEST_CASE("environment and directory reach the program")
{
	const Result r = run({"sh", "-c", "echo $FT_X; pwd"}, Seconds(10), {{{"FT_X", "17"}}, "/", ""});
	CHECK(r.out == "17\n/\n");
}

TEST_CASE("a background process is signalled by pid and its status is stored")
{
	Process p({"sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done"});
	REQUIRE(eventually([&] { return p.out() == "ready\n"; }));
	CHECK(p.running());
	p.signal(SIGTERM);
	CHECK(p.wait(Seconds(10)) == 5);
	CHECK(p.wait(Seconds(10)) == 5);
}

TEST_CASE("no process outlives a killed test")
{
	int pipes[2];
	REQUIRE(pipe(pipes) == 0);
	const pid_t test = fork();
	REQUIRE(test >= 0);
	if (test == 0) {
		Process p({"sleep", "100"});
		const pid_t pid = p.pid();
		if (write(pipes[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		pause();
		_exit(0);
	}
	pid_t orphan = 0;
	REQUIRE(read(pipes[0], &orphan, sizeof(orphan)) == sizeof(orphan));
	close(pipes[0]);
	close(pipes[1]);
	CHECK(kill(orphan, 0) == 0);
	kill(test, SIGKILL);
	waitpid(test, nullptr, 0);
	CHECK(eventually([&] { return is_gone(orphan); }));
}

TEST_CASE("a server answers on its socket and its port, and has ended afterwards")
{
	pid_t pid = 0;
	std::string directory;
	{
		Redis redis({.tcp = true, .config = {"--appendonly", "yes"}, .program = "redis-server"});
		pid = redis.pid();
		directory = redis.directory();
		CHECK(redis.command({"PING"}) == "PONG");
		CHECK(redis.command({"SET", "k", std::string("a\0b", 3)}) == "OK");
		CHECK(redis.command({"GET", "k"}) == std::string("a\0b", 3));
		CHECK(redis.command({"GET", "none"}) == "(nil)");
		CHECK(redis.command({"INCR", "n"}) == "1");
		CHECK(redis.command({"MGET", "n", "none"}) == "1\n(nil)");
		CHECK(redis.command({"LPUSH", "k", "x"}).rfind("(error) WRONGTYPE", 0) == 0);
		CHECK(redis.info("process_id") == std::to_string(pid));
		CHECK(redis.info("tcp_port") == std::to_string(redis.port()));
		CHECK(redis.info("aof_enabled") == "1");
		CHECK(run({"redis-cli", "-p", std::to_string(redis.port()), "GET", "n"}).out == "1\n");
		CHECK(std::filesystem::exists(redis.socket()));
	}
	CHECK(kill(pid, 0) == -1);
	CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE("a stopped server ends too")
{
	Redis redis;
	redis.process().signal(SIGSTOP);
}

TEST_CASE("a server that cannot start reports why")
{
	std::string why;
	try {
		Redis redis({.tcp = false, .config = {"--maxmemory", "nonsense"}, .program = "redis-server"});
	} catch (const std::exception &e) {
		why = e.what();
	}
	CHECK(why.find("maxmemory") != std::string::npos);
}
