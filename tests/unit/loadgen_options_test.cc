// SPDX-License-Identifier: MIT
// Every wrong use of the command line: one sentence, exit status 2, and nothing done. No server is needed.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace ft::test;

namespace
{

Result load(std::vector<std::string> arguments, const ProcessOptions &options = {})
{
	arguments.insert(arguments.begin(), program("forktail-load"));
	return run(arguments, Seconds(20), options);
}

} // namespace

TEST_CASE("wrong values are refused with a sentence that names the option")
{
	const struct {
		std::vector<std::string> arguments;
		const char *says;
	} cases[] = {
	    {{"-c", "0"}, "-c is a whole number from 1"},
	    {{"-c", "many"}, "-c is a whole number"},
	    {{"-n", "0"}, "-n is"},
	    {{"-n", "-5"}, "-n is"},
	    {{"-p", "65536"}, "-p is"},
	    {{"-P", "0"}, "-P is"},
	    {{"-d", "0"}, "-d is"},
	    {{"-d", "1000000000"}, "-d is"},
	    {{"-r", "0"}, "-r is"},
	    {{"-r", "1000000000001"}, "-r is"},
	    {{"--threads", "0"}, "--threads is"},
	    {{"--threads", "4", "-c", "3"}, "4 threads need at least as many connections"},
	    {{"--dbnum", "x"}, "--dbnum is"},
	    {{"--rate", "0"}, "--rate is a number"},
	    {{"--rate", "fast"}, "--rate is a number"},
	    {{"--arrival", "bursty"}, "--arrival is constant or poisson"},
	    {{"--arrival", "poisson"}, "--arrival belongs to an open loop"},
	    {{"--duration", "0"}, "--duration is a time"},
	    {{"--duration", "1 week"}, "--duration is a time"},
	    {{"--ratio", "0:0"}, "--ratio is SETS:GETS"},
	    {{"--seed", "abc"}, "--seed is"},
	    {{"-t", "get,lpush"}, "there is no test \"lpush\""},
	    {{"-t", ""}, "there is no test"},
	    {{"-t", "get", "--ratio", "1:1"}, "choose one"},
	    {{"--fill", "0"}, "--fill is"},
	    {{"--fill", "10", "--rate", "5"}, "--fill sets N keys and ends"},
	    {{"--fill", "10", "-n", "5"}, "--fill sets N keys and ends"},
	    {{"-P", "100000", "-d", "100000"}, "lower -P or -d"},
	    {{"-s", std::string(200, 'x')}, "-s is longer"},
	    {{"--user", "alice"}, "--user needs a password"},
	    {{"run"}, "what is \"run\"?"},
	    {{"--drain", "-1"}, "--drain is a time"},
	    {{"--loading-wait", "soon"}, "--loading-wait is a time"},
	};
	for (const auto &c : cases) {
		const Result r = load(c.arguments);
		INFO(c.arguments[0] << ": " << r.err);
		CHECK(r.status == 2);
		CHECK(r.out.empty());
		CHECK(r.err.find(c.says) != std::string::npos);
		CHECK(r.err.rfind("forktail-load: ", 0) == 0);
		CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
	}
}

TEST_CASE("an unknown flag and a flag without its value are named")
{
	Result r = load({"--frequency", "5"});
	CHECK(r.status == 2);
	CHECK(r.err.find("--frequency") != std::string::npos);
	r = load({"-c"});
	CHECK(r.status == 2);
	CHECK(r.err.find("'c'") != std::string::npos);
}

TEST_CASE("a password in argv is refused and not repeated")
{
	for (const char *flag : {"-a", "--password"}) {
		const Result r = load({flag, "hunter2"});
		CHECK(r.status == 2);
		CHECK(r.err.find("FORKTAIL_PASSWORD") != std::string::npos);
		CHECK(r.err.find("hunter2") == std::string::npos);
		CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
	}
}

TEST_CASE("a password file that can't be read is the environment's fault")
{
	Result r = load({"--password-file", "/nonexistent/password"});
	CHECK(r.status == 3);
	CHECK(r.err.find("/nonexistent/password") != std::string::npos);
	TempDir dir;
	write_file(dir.file("empty"), "");
	r = load({"--password-file", dir.file("empty")});
	CHECK(r.status == 3);
	CHECK(r.err.find("empty") != std::string::npos);
}

TEST_CASE("help and version")
{
	Result r = load({"--help"});
	CHECK(r.status == 0);
	for (const char *option :
	     {"--ratio", "--rate", "--arrival", "--fill", "--seed", "--json", "--password-file"})
		CHECK(r.out.find(option) != std::string::npos);
	r = load({"--version"});
	CHECK(r.status == 0);
	CHECK(r.out.find("forktail-load") == 0);
}
