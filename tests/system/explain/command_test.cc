// SPDX-License-Identifier: MIT
// The `forktail` command itself: exit statuses and one-line error messages.
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

#include <algorithm>

using forktail::test::program;
using forktail::test::Result;
using forktail::test::run;
using forktail::test::TempDir;
using forktail::test::write_file;

namespace
{

// Runs it and checks its exit status and that its error is one line that contains `part`.
void Refuses(std::vector<std::string> args, int status, const std::string &part)
{
	args.insert(args.begin(), program("forktail"));
	Result r = run(args);
	std::string line;
	for (const std::string &a : args)
		line += a + " ";
	INFO(line);
	INFO(r.err);
	CHECK(r.status == status);
	CHECK(r.out.empty());
	CHECK(r.err.find(part) != std::string::npos);
	CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
}

} // namespace

TEST_CASE("wrong usage is exit status 2 and one sentence")
{
	TempDir dir;
	Refuses({}, 2, "no command given");
	Refuses({"exlpain"}, 2, "unknown command 'exlpain'");
	Refuses({"explain"}, 2, "RUN");
	Refuses({"explain", dir.path(), "--sloww", "1ms"}, 2, "--sloww");
	Refuses({"explain", dir.path(), "--slow", "fast"}, 2, "'fast'");
	Refuses({"explain", dir.path(), "--episodes", "many"}, 2, "--episodes");
	Refuses({"explain", dir.path(), "--requests"}, 2, "--json");
	Refuses({"explain", dir.path(), "--cause", "weather"}, 2, "unknown cause 'weather'");
	Refuses({"explain", dir.path(), "--cause", "fork", "--all"}, 2, "mutually exclusive");
	Refuses({"explain", dir.path(), "--format", "{p99.8}"}, 2, "unknown placeholder {p99.8}");
	Refuses({"explain", dir.path(), "--format", "{p99"}, 2, "{ without }");
	Refuses({"explain", dir.path(), "--format", "p99}"}, 2, "} without {");
	Refuses({"explain", dir.path(), "--episode", "first"}, 2, "--episode");
	Refuses({"explain", dir.path(), "--request", "-1"}, 2, "--request");
	Refuses({"explain", dir.path(), "--color", "green"}, 2, "--color");
	Refuses({"explain", dir.path(), "--since", "soon"}, 2, "not 'soon'");
	Refuses({"report", dir.path(), "-o", dir.file("out.html"), "--until", "-5"}, 2, "not '-5'");
	Refuses({"explain", dir.path(), "--around", "+5s", "--since", "+1s"}, 2, "mutually exclusive");
	Refuses({"report", dir.path()}, 2, "--output");
	Refuses({"explain", dir.path(), "--fail-if", "p99"}, 2, "the limit \"p99\" has no comparison");
	Refuses({"explain", dir.path(), "--fail-if", "p99 no worse than BASE"}, 2, "forktail gate --base");
	Refuses({"gate"}, 2, "RUN");
	Refuses({"gate", dir.path()}, 2, "no limit to check");
	Refuses({"gate", dir.path(), "p99 < fast"}, 2, "\"fast\" of p99 is not a number");
	Refuses({"gate", dir.path(), "p99 > 5ms"}, 2, "write \"p99 < 5ms\"");
	Refuses({"gate", dir.path(), "errors > 0"}, 2, "write \"errors = 0\"");
	Refuses({"gate", dir.path(), "frok.total < 5ms"}, 2, "unknown cause \"frok\"");
	Refuses({"gate", dir.path(), "p99 no worse than BASE"}, 2, "--base RUN");
	Refuses({"gate", dir.path(), "p99 < 5ms", "--slow", "fast"}, 2, "'fast'");
	Refuses({"gate", dir.path(), "--limits", dir.file("none.toml")}, 2, "none.toml: No such file");
	write_file(dir.file("limits.toml"), "limits = [\n  \"p99 5ms\",\n]\n");
	Refuses({"gate", dir.path(), "--limits", dir.file("limits.toml")}, 2, "limits.toml:2: the limit");
}

TEST_CASE("input that is no run is exit status 3 and one sentence")
{
	TempDir dir;
	Refuses({"explain", dir.file("nowhere")}, 3, "no run at " + dir.file("nowhere"));
	Refuses({"explain", dir.path()}, 3, "holds no recording");
	Refuses({"gate", dir.file("nowhere"), "p99 < 5ms"}, 3, "no run at " + dir.file("nowhere"));
	Refuses({"gate", dir.path(), "p99 < 5ms", "--base", dir.path()}, 3, "holds no recording");
	write_file(dir.file("a.forktail"), "");
	Refuses({"explain", dir.path()}, 3, "empty");
	Refuses({"explain", dir.file("a.forktail")}, 3, "empty");
	write_file(dir.file("a.forktail"), std::string(5000, 'x'));
	Refuses({"explain", dir.file("a.forktail")}, 3, "not a");
	Refuses({"report", dir.path(), "-o", dir.file("out.html")}, 3, "not a");
	Refuses({"explain", "/proc/self/mem"}, 3, "/proc/self/mem");
}

TEST_CASE("version and help go to standard output")
{
	Result r = run({program("forktail"), "--version"});
	CHECK(r.status == 0);
	CHECK(r.out.find("forktail ") == 0);
	for (const char *word : {"help", "--help"}) {
		r = run({program("forktail"), word});
		CHECK(r.status == 0);
		CHECK(r.out.find("forktail explain RUN") != std::string::npos);
		CHECK(r.err.empty());
	}
	r = run({program("forktail"), "explain", "--help"});
	CHECK(r.status == 0);
	CHECK(r.out.find("--slow") != std::string::npos);
}

TEST_CASE("the C programs are found next to the command and get its arguments")
{
	Result r = run({program("forktail"), "load", "--version"});
	CHECK(r.status == 0);
	CHECK(r.out.find("forktail-load") != std::string::npos);
	r = run({program("forktail"), "record", "--no-such-option"});
	CHECK(r.status == 2);
	CHECK(r.err.find("no-such-option") != std::string::npos);
}
