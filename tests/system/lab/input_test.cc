// SPDX-License-Identifier: MIT
// The lab's messages when it cannot run, or is used wrongly.
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/system/lab/support.h"

using namespace forktail::test;
namespace fs = std::filesystem;

namespace
{

void CheckRefused(LabRun &demo, int status, const std::string &sentence)
{
	auto ended = demo.lab->wait(Seconds(30));
	INFO(demo.lab->err());
	CHECK(ended == status);
	CHECK(demo.lab->err().find(sentence) != std::string::npos);
	CHECK(demo.lab->out().empty());
	CHECK(demo.Alive() == std::vector<std::string>{});
}

} // namespace

TEST_CASE("The lab refuses wrong usage with status 2")
{
	for (const std::vector<std::string> &words : std::vector<std::vector<std::string>>{
		 {},
		 {"nonsense"},
		 {"demo", "--nonsense"},
		 {"demo", "--seconds", "0"},
		 {"demo", "--seconds", "soon"},
		 {"demo", "--rate", "-1"},
		 {"demo", "--size-mb", "0"},
		 {"demo", "extra"},
	     }) {
		std::vector<std::string> argv = {program("forktail"), "lab"};
		argv.insert(argv.end(), words.begin(), words.end());
		Result result = forktail::test::run(argv);
		INFO(result.err);
		CHECK(result.status == 2);
		CHECK_FALSE(result.err.empty());
		CHECK(result.out.empty());
	}
}

TEST_CASE("The lab's help names every option")
{
	Result result = forktail::test::run({program("forktail"), "lab", "demo", "--help"});
	CHECK(result.status == 0);
	for (const char *option : {"--out", "--seconds", "--rate", "--size-mb", "--no-client"})
		CHECK(result.out.find(option) != std::string::npos);
}

TEST_CASE("Without root the lab prints a message")
{
	Result result = forktail::test::run({"setpriv", "--reuid", "65534", "--regid", "65534",
					     "--clear-groups", program("forktail"), "lab", "demo"});
	CHECK(result.status == 3);
	CHECK(result.err == "forktail lab: lab demo records with BPF programs, which needs root: use sudo\n");
}

TEST_CASE("An existing run directory is not touched")
{
	TempDir dir;
	write_file(dir.file("mine"), "precious");
	LabRun demo({"--out", dir.path()});
	CheckRefused(demo, 3, "cannot create the run directory " + dir.path() + ": File exists");
	CHECK(read_file(dir.file("mine")) == "precious");
	CHECK(demo.Left() == std::vector<std::string>{});
}

TEST_CASE("Missing room for temporary data is reported, with the place")
{
	LabRun demo({}, {}, {{"TMPDIR", "/nonexistent"}});
	CheckRefused(demo, 3, "cannot create a temporary directory /nonexistent/forktail-lab.");
	CHECK_FALSE(fs::exists(demo.run));
}

TEST_CASE("A path too long for a socket is reported")
{
	TempDir dir;
	std::string deep = dir.file(std::string(120, 'd'));
	fs::create_directory(deep);
	LabRun demo({}, {}, {{"TMPDIR", deep}});
	CheckRefused(demo, 3, "Set TMPDIR to a shorter path");
	CHECK(fs::is_empty(deep));
	CHECK_FALSE(fs::exists(demo.run));
}

TEST_CASE("Without redis-server the lab names the missing program")
{
	LabRun demo({}, {}, {{"PATH", "/nonexistent"}});
	CheckRefused(demo, 3, "redis-server is not installed. Install it");
	CHECK(demo.Left() == std::vector<std::string>{});
	CHECK_FALSE(fs::exists(demo.run));
}

TEST_CASE("The message of a failing part is repeated")
{
	// A copy of forktail finds the other programs in its directory. One of them is broken here.
	TempDir bin;
	fs::copy_file(program("forktail"), bin.file("forktail"));
	fs::create_symlink(program("forktail-load"), bin.file("forktail-load"));
	std::string recorder = bin.file("forktail-record");

	SECTION("missing")
	{
		LabRun demo({}, bin.file("forktail"));
		CheckRefused(demo, 3, "cannot find forktail-record in " + bin.path());
	}
	SECTION("failing at once")
	{
		write_file(recorder, "#!/bin/sh\necho 'the kernel said no' >&2\nexit 3\n");
		fs::permissions(recorder, fs::perms::owner_all);
		LabRun demo({}, bin.file("forktail"));
		CheckRefused(demo, 3,
			     "forktail lab: forktail-record ended with status 3; its last messages:\n    the "
			     "kernel said no\n");
		CHECK(demo.Left() == std::vector<std::string>{});
		CHECK_FALSE(fs::exists(demo.run));
	}
	SECTION("failing at its end")
	{
		write_file(recorder, "#!/bin/sh\ntrap 'echo \"disk full\" >&2; exit 3' INT\n"
				     "echo 'recording something' >&2\nwhile :; do sleep 0.1; done\n");
		fs::permissions(recorder, fs::perms::owner_all);
		LabRun demo({"--seconds", "1"}, bin.file("forktail"));
		CheckRefused(demo, 3, "forktail-record ended with status 3; its last messages:\n");
		CHECK(demo.lab->err().find("\n    disk full\n") != std::string::npos);
		CHECK(demo.Left() == std::vector<std::string>{});
		CHECK_FALSE(fs::exists(demo.run));
	}
}
