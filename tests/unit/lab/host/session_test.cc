// SPDX-License-Identifier: MIT
// The lab's programs and temporary directories end with its session, however it ends.
#include "lab/host/session.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::lab;
using forktail::test::eventually;
using forktail::test::is_gone;
using forktail::test::pid_in;
using forktail::test::read_file;
using forktail::test::TempDir;

namespace
{

Command Shell(const std::string &script)
{
	Command command;
	command.name = "the shell";
	command.argv = {"sh", "-c", script};
	return command;
}

// A session that is closed at the end of the test.
struct Opened {
	Session session;
	std::string error;
	Opened() { REQUIRE(OpenSession(&session, &error)); }
	~Opened() { CloseSession(&session, &error); }
	Child *Run(const Command &command)
	{
		Child *child = Start(&session, command, &error);
		INFO(error);
		REQUIRE(child);
		return child;
	}
	void Finish(Child *child)
	{
		bool ended = WaitForEnd(&session, child, 0, 10, &error);
		INFO(error);
		REQUIRE(ended);
	}
};

} // namespace

TEST_CASE("A child's standard error arrives by line, and its output in its file")
{
	TempDir dir;
	Opened opened;
	std::vector<std::string> lines;
	Command command = Shell("printf 'one\\rtwo\\n\\nthree' >&2; echo out");
	command.output = dir.file("out");
	command.on_line = [&lines](const std::string &line) { lines.push_back(line); };
	Child *child = opened.Run(command);
	opened.Finish(child);
	CHECK(lines == std::vector<std::string>{"one", "two", "three"});
	CHECK(read_file(dir.file("out")) == "out\n");
	CHECK(Succeeded(*child, &opened.error));
}

TEST_CASE("A failure reports how the child ended and its last output")
{
	Opened opened;
	SECTION("by its status")
	{
		Child *child =
		    opened.Run(Shell("for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; exit 3"));
		opened.Finish(child);
		CHECK_FALSE(Succeeded(*child, &opened.error));
		CHECK(opened.error ==
		      "the shell ended with status 3; its last messages:\n    line 3\n    line 4\n"
		      "    line 5\n    line 6\n    line 7\n    line 8");
	}
	SECTION("by a signal")
	{
		Child *child = opened.Run(Shell("kill -9 $$"));
		opened.Finish(child);
		CHECK_FALSE(Succeeded(*child, &opened.error));
		CHECK(opened.error == "the shell was killed by signal 9 (Killed)");
	}
	SECTION("by its log, when its standard error is empty")
	{
		TempDir dir;
		Command command = Shell("echo logged; exit 1");
		command.output = dir.file("log");
		Child *child = opened.Run(command);
		opened.Finish(child);
		CHECK_FALSE(Succeeded(*child, &opened.error));
		CHECK(opened.error == "the shell ended with status 1; its last messages:\n    logged");
	}
	SECTION("by not starting at all")
	{
		Command command;
		command.name = "nothing";
		command.argv = {"/nonexistent/program"};
		CHECK(Start(&opened.session, command, &opened.error) == nullptr);
		CHECK(opened.error ==
		      "cannot start nothing (/nonexistent/program): No such file or directory");
	}
}

TEST_CASE("Step fails only when a required child ends")
{
	Opened opened;
	Child *child = opened.Run(Shell("exit 0"));
	SECTION("not required")
	{
		opened.Finish(child);
	}
	SECTION("required")
	{
		child->needed = true;
		bool good = true;
		for (int i = 0; i < 100 && good; i++)
			good = Step(&opened.session, 100, &opened.error);
		CHECK_FALSE(good);
		CHECK(opened.error == "the shell ended with status 0");
	}
}

TEST_CASE("Waiting for a child that does not end stops at the limit")
{
	Opened opened;
	Child *child = opened.Run(Shell("exec sleep 1000"));
	CHECK_FALSE(WaitForEnd(&opened.session, child, 0, 1, &opened.error));
	CHECK(opened.error == "the shell did not end within 1 s");
	CHECK_FALSE(is_gone(child->pid));
}

TEST_CASE("Closing a session ends children, their children, and temporary directories")
{
	TempDir dir;
	std::string temp;
	pid_t child_pid, grandchild;
	{
		Opened opened;
		REQUIRE(MakeTempDirectory(&opened.session, &temp, &opened.error));
		std::ofstream(temp + "/data") << "x";
		Child *child = opened.Run(Shell("sleep 1000 & echo $! >" + dir.file("pid") + "; wait"));
		child_pid = child->pid;
		grandchild = pid_in(dir.file("pid"));
		CHECK_FALSE(is_gone(child_pid));
		CHECK_FALSE(is_gone(grandchild));
		CHECK(CloseSession(&opened.session, &opened.error));
	}
	CHECK(is_gone(child_pid));
	CHECK(is_gone(grandchild));
	CHECK_FALSE(std::filesystem::exists(temp));
}

TEST_CASE("A child's death kills its own children")
{
	TempDir dir;
	Opened opened;
	Child *child = opened.Run(Shell("sleep 1000 & echo $! >" + dir.file("pid") + "; exec sleep 1000"));
	pid_t grandchild = pid_in(dir.file("pid"));
	kill(child->pid, SIGKILL);
	opened.Finish(child);
	CHECK(eventually([&] { return is_gone(grandchild); }));
}

TEST_CASE("A released directory stays")
{
	TempDir dir;
	std::filesystem::create_directory(dir.file("kept"));
	std::filesystem::create_directory(dir.file("removed"));
	{
		Opened opened;
		Keep(opened.session.keeper, Leftover::kDirectory, dir.file("kept"));
		Keep(opened.session.keeper, Leftover::kDirectory, dir.file("removed"));
		Release(opened.session.keeper, Leftover::kDirectory, dir.file("kept"));
	}
	CHECK(std::filesystem::exists(dir.file("kept")));
	CHECK_FALSE(std::filesystem::exists(dir.file("removed")));
}

TEST_CASE("kill -9 of the lab, or of lab and keeper, leaves no process")
{
	bool keeper_too = GENERATE(false, true);
	INFO("keeper too: " << keeper_too);
	TempDir dir;
	pid_t lab = fork();
	REQUIRE(lab >= 0);
	if (lab == 0) {
		Session session;
		std::string error, temp;
		if (!OpenSession(&session, &error) || !MakeTempDirectory(&session, &temp, &error))
			_exit(1);
		Child *child =
		    Start(&session, Shell("sleep 1000 & echo $! >" + dir.file("pid") + "; wait"), &error);
		if (!child)
			_exit(1);
		std::ofstream(dir.file("child")) << child->pid << '\n';
		std::ofstream(dir.file("keeper")) << session.keeper.pid << '\n';
		std::ofstream(dir.file("temp")) << temp << '\n';
		while (Step(&session, 100, &error)) {
		}
		_exit(1);
	}
	pid_t child = pid_in(dir.file("child")), keeper = pid_in(dir.file("keeper"));
	pid_t grandchild = pid_in(dir.file("pid"));
	REQUIRE(eventually([&] { return !read_file(dir.file("temp")).empty(); }));
	std::string temp = read_file(dir.file("temp"));
	temp.pop_back();
	CHECK(std::filesystem::exists(temp));
	CHECK_FALSE(is_gone(child));

	if (keeper_too)
		kill(keeper, SIGKILL);
	kill(lab, SIGKILL);
	waitpid(lab, nullptr, 0);
	CHECK(eventually([&] { return is_gone(child); }));
	CHECK(eventually([&] { return is_gone(keeper); }, forktail::test::Seconds(30)));
	if (keeper_too) {
		// No process is left that knows of these.
		kill(grandchild, SIGKILL);
		std::filesystem::remove_all(temp);
	} else {
		CHECK(is_gone(grandchild));
		CHECK_FALSE(std::filesystem::exists(temp));
	}
}

TEST_CASE("A stop signal ends every wait")
{
	TempDir dir;
	pid_t lab = fork(); // a stopped session stays stopped, so it runs in a separate process
	REQUIRE(lab >= 0);
	if (lab == 0) {
		Session session;
		std::string error;
		if (!OpenSession(&session, &error))
			_exit(1);
		Child *child = Start(&session, Shell("exec sleep 1000"), &error);
		std::ofstream(dir.file("child")) << (child ? child->pid : 0) << '\n';
		bool ended = child && WaitForEnd(&session, child, 0, 1000, &error);
		bool as_said = !ended && StopSignal() == SIGTERM && error == "stopped by Terminated";
		_exit(CloseSession(&session, &error) && as_said ? 42 : 1);
	}
	pid_t child = pid_in(dir.file("child"));
	REQUIRE(child > 0);
	kill(lab, SIGTERM);
	int status = 0;
	waitpid(lab, &status, 0);
	CHECK(WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 42);
	CHECK(is_gone(child));
}
