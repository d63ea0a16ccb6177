// SPDX-License-Identifier: MIT
// The recorder's error messages: one clear sentence, the right exit status, nothing lost.
#include <algorithm>
#include <csignal>
#include <sys/mount.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

Result record(std::vector<std::string> arguments)
{
	arguments.insert(arguments.begin(), program("forktail-record"));
	return run(arguments);
}

// One line that contains all of `words`.
void check_sentence(const Result &r, int status, const std::vector<std::string> &words)
{
	INFO(r.err);
	CHECK(r.status == status);
	CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
	for (const std::string &word : words)
		CHECK(r.err.find(word) != std::string::npos);
}

} // namespace

TEST_CASE("wrong usage is exit status 2")
{
	check_sentence(record({"-o", "x"}), 2, {"--pid", "--port", "--unix", "--name"});
	check_sentence(record({"--pid", "1"}), 2, {"-o FILE"});
	check_sentence(record({"--pid", "abc", "-o", "x"}), 2, {"abc"});
	check_sentence(record({"--pid", "0", "-o", "x"}), 2, {"0"});
	check_sentence(record({"--port", "70000", "-o", "x"}), 2, {"65535"});
	check_sentence(record({"--pid", "1", "--duration", "soon", "-o", "x"}), 2, {"soon", "30s"});
	check_sentence(record({"--pid", "1", "--duration", "0", "-o", "x"}), 2, {"--duration"});
	check_sentence(record({"--pid", "1", "--requests=1/3", "-o", "x"}), 2,
		       {"--requests", "power of two", "1/3"});
	check_sentence(record({"--pid", "1", "--hash-clients", "-o", "x"}), 2,
		       {"--hash-clients needs --requests"});
	check_sentence(record({"--pid", "1", "--min-span", "10ns", "-o", "x"}), 2, {"--min-span", "1us"});
	check_sentence(record({"redis", "-o", "x"}), 2, {"redis", "--name"});
	const Result unknown = record({"--what"});
	CHECK(unknown.status == 2);
	CHECK(unknown.err.find("--what") != std::string::npos);
}

TEST_CASE("missing targets are exit status 3")
{
	check_sentence(record({"--pid", "4194303", "-o", "x"}), 3, {"no process 4194303"});
	check_sentence(record({"--port", std::to_string(free_port()), "-o", "x"}), 3,
		       {"nothing listens on port"});
	check_sentence(record({"--unix", "/nowhere/redis.sock", "-o", "x"}), 3,
		       {"nothing listens on /nowhere/redis.sock"});
	check_sentence(record({"--name", "no-such-server", "-o", "x"}), 3,
		       {"no process is named no-such-server"});
}

TEST_CASE("without root it exits with 3 and mentions sudo")
{
	REQUIRE(root());
	Redis redis;
	TempDir dir;
	const Result r =
	    run({"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
		 program("forktail-record"), "--pid", std::to_string(redis.pid()), "-o", dir.file("x")});
	check_sentence(r, 3, {"sudo"});
}

TEST_CASE("an output that cannot be created is exit status 3")
{
	REQUIRE(root());
	Redis redis;
	check_sentence(record({"--pid", std::to_string(redis.pid()), "-o", "/proc/nowhere/x.forktail"}), 3,
		       {"/proc/nowhere/x.forktail"});
}

TEST_CASE("a full disk ends the recording cleanly, with a message and exit status 3")
{
	REQUIRE(root());
	TempDir dir;
	REQUIRE(mount("forktail-test", dir.path().c_str(), "tmpfs", 0, "size=256k") == 0);
	{
		Redis redis;
		const std::string path = dir.file("server.forktail");
		Process recorder(
		    {program("forktail-record"), "--pid", std::to_string(redis.pid()), "-o", path});
		Process load({"redis-benchmark", "-s", redis.socket(), "-n", "10000000", "-t", "set", "-q"});
		const auto status = recorder.wait(Seconds(60));
		INFO(recorder.err());
		CHECK(status == 3);
		CHECK(recorder.err().find("No space left on device") != std::string::npos);
		const Recorded r = read_recording(path);
		CHECK(r.error.empty());
		CHECK(!r.damage.no_trailer);
		CHECK(r.damage.gaps == 0);
		CHECK(!r.tallies.empty());
	}
	CHECK(umount(dir.path().c_str()) == 0);
}

TEST_CASE("doctor lists the available features; as the user nobody it exits with 3 and mentions sudo")
{
	REQUIRE(root());
	const Result r = record({"--doctor"});
	INFO(r.out);
	CHECK((r.status == 0 || r.status == 1));
	CHECK(r.out.find("sched_switch") != std::string::npos);
	CHECK(r.out.find("can make a") != std::string::npos);
	const Result nobody = run({"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
				   program("forktail-record"), "--doctor"});
	CHECK(nobody.status == 3);
	CHECK(nobody.out.find("sudo") != std::string::npos);
}
