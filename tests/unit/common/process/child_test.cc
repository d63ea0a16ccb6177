// SPDX-License-Identifier: MIT
// How children are started, limited and read, and that nothing of them is left.
#include "common/process.h"

#include <csignal>
#include <fstream>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::common;
using namespace forktail::test;

namespace
{

Command Shell(const std::string &script)
{
	Command command;
	command.name = "the shell";
	command.argv = {"sh", "-c", script};
	return command;
}

// Runs a command to its end.
Child Ran(const Command &command)
{
	Child child;
	std::string error;
	const bool started = StartChild(command, &child, &error);
	INFO(error);
	REQUIRE(started);
	REQUIRE(eventually([&] { return HasEnded(&child); }));
	return child;
}

std::string SaysOfItself(bool idle)
{
	TempDir dir;
	Command command =
	    Shell("chrt -p $$; ionice -p $$; nice; cat /proc/$$/autogroup 2>/dev/null || echo no group");
	command.output = dir.file("said");
	command.group = Group::kSession;
	command.idle = idle;
	Child child = Ran(command);
	CHECK(EndedWell(child));
	CloseStreams(&child);
	return read_file(command.output);
}

std::string WhyNot(const Command &command)
{
	Child child;
	std::string error;
	CHECK_FALSE(StartChild(command, &child, &error));
	CHECK_FALSE(child.running());
	return error;
}

} // namespace

TEST_CASE("an idle child has the lowest priority, in other sessions too, and any other child has not")
{
	// Like the guard, whose files in /proc then belong to root.
	prctl(PR_SET_DUMPABLE, 0);
	const std::string idle = SaysOfItself(true), usual = SaysOfItself(false);
	prctl(PR_SET_DUMPABLE, 1);
	INFO(idle << usual);
	CHECK(idle.find("SCHED_IDLE") != std::string::npos);
	CHECK(idle.find("\nidle\n19\n") != std::string::npos);
	CHECK(usual.find("SCHED_OTHER") != std::string::npos);
	if (access("/proc/self/autogroup", F_OK) == 0) {
		CHECK(idle.find(" nice 19\n") != std::string::npos);
		CHECK(usual.find(" nice 0\n") != std::string::npos);
	}
}

TEST_CASE("the kernel kills an oom_victim first, also if this program's files in /proc belong to root")
{
	Command command = Shell("exec cat /proc/self/oom_score_adj");
	const std::vector<std::string> ours = LinesOf(command);
	command.oom_victim = true;
	prctl(PR_SET_DUMPABLE, 0);
	const std::vector<std::string> victims = LinesOf(command);
	prctl(PR_SET_DUMPABLE, 1);
	CHECK(victims == std::vector<std::string>{"1000"});
	CHECK(ours != victims);
}

TEST_CASE("A child's output and standard error arrive by line, and an unfinished line counts at the end")
{
	Command command = Shell("printf 'one\\rtwo\\n\\nthree' >&2; read word; echo $word; exec sleep 1000");
	command.in = command.out = kPipe;
	Child child;
	std::string error;
	REQUIRE(StartChild(command, &child, &error));
	REQUIRE(write(child.in, "in\n", 3) == 3);
	std::vector<std::string> out, err;
	REQUIRE(eventually([&] {
		for (const std::string &line : child.err.Read())
			err.push_back(line);
		for (const std::string &line : child.out.Read())
			out.push_back(line);
		return !out.empty();
	}));
	CHECK(out == std::vector<std::string>{"in"});
	CHECK(err == std::vector<std::string>{"one", "two"});
	EndChild(&child);
	CHECK(child.err.Read() == std::vector<std::string>{"three"});
	CHECK(HowItEnded(child) == "was killed by signal 9 (Killed)");
	CloseStreams(&child);
}

TEST_CASE("Very long lines are cut, and nothing of them is lost")
{
	Command command = Shell("head -c 100000 /dev/zero | tr '\\0' x");
	const std::vector<std::string> lines = LinesOf(command);
	REQUIRE(lines.size() == 2);
	CHECK(lines[0] == std::string(64 << 10, 'x'));
	CHECK(lines[1] == std::string(100000 - (64 << 10), 'x'));
}

TEST_CASE("LinesOf returns what a program prints, with its standard error if requested")
{
	Command command = Shell("echo one; echo two >&2; echo $WORD; pwd");
	command.err = 1;
	command.environment = {{"WORD", "three"}, {"PATH", getenv("PATH")}};
	command.directory = "/usr";
	CHECK(LinesOf(command) == std::vector<std::string>{"one", "two", "three", "/usr"});
	command.argv = {"/nonexistent/program"};
	CHECK(LinesOf(command).empty());
	command = Shell("echo one; exec sleep 1000");
	command.limit_ns = 300'000'000;
	CHECK(LinesOf(command) == std::vector<std::string>{"one"});
}

TEST_CASE("A fork of this program returns its result")
{
	Command command;
	command.name = "the work";
	command.out = kPipe;
	command.work = [] { return std::string("done"); };
	Child child = Ran(command);
	CHECK(EndedWell(child));
	CHECK(child.out.Read() == std::vector<std::string>{"done"});
	CloseStreams(&child);
	command.work = [] { return std::string(); };
	child = Ran(command);
	CHECK_FALSE(EndedWell(child));
	CloseStreams(&child);
}

TEST_CASE("A program that cannot be started is refused with a message")
{
	Command command;
	command.name = "nothing";
	command.argv = {"/nonexistent/program"};
	CHECK(WhyNot(command) == "cannot start nothing (/nonexistent/program): No such file or directory");
	SECTION("or ends with a status, without a waiting parent")
	{
		Child child;
		std::string error;
		REQUIRE(ForkChild(command, &child, &error));
		REQUIRE(eventually([&] { return HasEnded(&child); }));
		CHECK(WEXITSTATUS(child.status) == kNotStarted);
		CloseStreams(&child);
	}
}

TEST_CASE("A child runs in the memory assigned to it")
{
	Command command = Shell("ulimit -d");
	command.memory_bytes = 256 << 20;
	const std::vector<std::string> lines = LinesOf(command);
	CHECK(lines == std::vector<std::string>{"262144"});
}

TEST_CASE("A child over its time limit is killed, and so are the processes that it started")
{
	TempDir dir;
	Command command = Shell("sleep 1000 & echo $! >" + dir.file("pid") + "; wait");
	command.limit_ns = 500'000'000;
	command.group = GENERATE(Group::kOwn, Group::kSession);
	command.group_ends = true;
	Child child = Ran(command);
	CHECK(child.timed_out);
	CHECK_FALSE(EndedWell(child));
	CHECK(eventually([&] { return is_gone(pid_in(dir.file("pid"))); }));
	CloseStreams(&child);
}

TEST_CASE("A child's death kills its own children, if requested")
{
	TempDir dir;
	Command command = Shell("sleep 1000 & echo $! >" + dir.file("pid"));
	command.group_ends = GENERATE(false, true);
	Child child = Ran(command);
	const pid_t grandchild = pid_in(dir.file("pid"));
	if (command.group_ends) {
		CHECK(eventually([&] { return is_gone(grandchild); }));
	} else {
		CHECK_FALSE(is_gone(grandchild));
		kill(grandchild, SIGKILL);
	}
	CloseStreams(&child);
}

TEST_CASE("A child gets the requested signal when its parent dies")
{
	TempDir dir;
	const pid_t parent = fork();
	REQUIRE(parent >= 0);
	if (parent == 0) {
		Command command = Shell("trap 'echo told >" + dir.file("told") + "; exit' TERM; echo $$ >" +
					dir.file("pid") + "; while :; do sleep 0.01; done");
		command.death_signal = SIGTERM;
		Child child;
		std::string error;
		if (StartChild(command, &child, &error))
			pause();
		_exit(1);
	}
	const pid_t child = pid_in(dir.file("pid"));
	kill(parent, SIGKILL);
	waitpid(parent, nullptr, 0);
	CHECK(eventually([&] { return is_gone(child); }));
	CHECK(read_file(dir.file("told")) == "told\n");
}

TEST_CASE("Stop signals are counted, and children do not inherit earlier ones")
{
	const pid_t program = fork();
	REQUIRE(program >= 0);
	if (program == 0) {
		signal(SIGHUP, SIG_IGN);
		CatchStops();
		raise(SIGINT);
		raise(SIGTERM);
		raise(SIGHUP);
		const std::vector<std::string> lines = LinesOf(Shell("kill -HUP $$; echo not killed"));
		_exit(Stops() == 2 && lines.empty() ? 42 : 1);
	}
	int status = 0;
	waitpid(program, &status, 0);
	CHECK(WEXITSTATUS(status) == 42);
}
