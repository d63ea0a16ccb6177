// SPDX-License-Identifier: MIT
// A real recorder with a ring on a real server: parts of it are saved as snapshots and explained while it
// continues, and after it was killed.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sys/mount.h>
#include <unistd.h>

#include "analysis/source.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

const std::string kForktail = FORKTAIL_BIN_DIR "/forktail", kRecorder = FORKTAIL_BIN_DIR "/forktail-record";

Process Keep(const Redis &redis, const std::string &ring)
{
	return Process({kRecorder, "--pid", std::to_string(redis.pid()), "--keep", "60s", "-o", ring});
}

// Waits until there are this many segments.
bool HasSegments(const std::string &dir, size_t count)
{
	for (int i = 0; i < 600; i++) {
		forktail::analysis::Ring ring;
		std::string error;
		if (forktail::analysis::FindRing(dir, &ring, &error) && ring.size() >= count)
			return true;
		usleep(50'000);
	}
	return false;
}

Json Explained(const std::vector<std::string> &words)
{
	std::vector<std::string> argv = {kForktail, "explain"};
	argv.insert(argv.end(), words.begin(), words.end());
	argv.push_back("--json");
	const Result r = run(argv);
	INFO(r.err);
	REQUIRE(r.status == 0);
	return parse_json(r.out);
}

Result Snapshot(const std::vector<std::string> &words)
{
	std::vector<std::string> argv = {kForktail, "snapshot"};
	argv.insert(argv.end(), words.begin(), words.end());
	return run(argv);
}

// How long the longest sleep in an explanation's slow iterations was.
double SleepNs(const Json &explained)
{
	for (const Json &cause : explained["causes"])
		if (cause["cause"] == "sleep")
			return cause["time_ns"].get<double>();
	return 0;
}

size_t Warnings(const Json &explained, const std::string &part)
{
	size_t count = 0;
	for (const Json &warning : explained["warnings"])
		count += warning.get<std::string>().find(part) != std::string::npos;
	return count;
}

} // namespace

TEST_CASE("a part of a ring is saved while its recorder continues, and after it was killed")
{
	REQUIRE(geteuid() == 0);
	TempDir dir;
	const std::string ring = dir.file("ring");
	Redis redis({.config = {"--enable-debug-command", "yes"}});
	{
		Process recorder = Keep(redis, ring);
		INFO(recorder.err());
		REQUIRE(HasSegments(ring, 2));
		CHECK(run({kForktail, "mark", ring, "deploy 42"}).status == 0);
		redis.command({"DEBUG", "SLEEP", "0.2"});
		usleep(1'500'000); // events are written within a second
		const Result taken = Snapshot({ring, "--last", "5s", "-o", dir.file("now")});
		INFO(taken.err);
		REQUIRE(taken.status == 0);
		CHECK(taken.out.find(dir.file("now") + ": ") == 0);
		CHECK(recorder.running());
		// The sleep is in the snapshot, and in the explanation of the ring itself.
		for (const Json &e : {Explained({dir.file("now")}), Explained({ring, "--since", "-6s"})}) {
			CHECK(SleepNs(e) >= 199e6);
			CHECK(Warnings(e, "segment") == 0);
			REQUIRE(e["marks"].size() == 1);
			CHECK(e["marks"][0]["text"] == "deploy 42");
		}
		CHECK(HasSegments(ring, 3));
		recorder.signal(SIGKILL);
		recorder.wait(Seconds(10));
	}
	// One sentence, and everything up to then.
	Json killed = Explained({ring});
	CHECK(Warnings(killed, "the file has no end") == 1);
	CHECK(SleepNs(killed) >= 199e6);
	CHECK(killed["account"]["threads"].size() >= 1);
	{
		Process recorder = Keep(redis, ring);
		INFO(recorder.err());
		// A segment begins before the programs are attached.
		REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0; }, Seconds(30)));
		REQUIRE(HasSegments(ring, 4));
		redis.command({"DEBUG", "SLEEP", "0.3"});
		usleep(1'500'000);
		REQUIRE(Snapshot({ring, "-o", dir.file("all")}).status == 0);
		recorder.signal(SIGTERM);
		CHECK(recorder.wait(Seconds(20)) == 0);
	}
	const Json all = Explained({dir.file("all")});
	CHECK(SleepNs(all) >= 499e6);
	CHECK(all["requests"]["from"] == "iterations");
}

TEST_CASE("a mark that cannot be made is one sentence")
{
	TempDir dir;
	const auto refused = [&](const std::vector<std::string> &arguments, int status) {
		std::vector<std::string> words = {kForktail, "mark"};
		words.insert(words.end(), arguments.begin(), arguments.end());
		const Result result = run(words);
		INFO(result.err);
		CHECK(result.status == status);
		CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
	};
	refused({dir.path(), ""}, 2);
	refused({dir.path(), "two\nlines"}, 2);
	refused({dir.path(), std::string(201, 'x')}, 2);
	refused({dir.path(), "x", "--at", "yesterday"}, 2);
	refused({dir.file("nothing"), "x"}, 3);
	CHECK(std::filesystem::is_empty(dir.path()));
	CHECK(run({kForktail, "mark", dir.path(), "x", "--at", "1764000000.5"}).status == 0);
	CHECK(read_file(dir.file("marks")) == "1764000000.500000000 x\n");
}

TEST_CASE("every command for runs accepts a ring with a request log while it is written")
{
	REQUIRE(geteuid() == 0);
	TempDir dir;
	Redis redis;
	const std::string one = dir.file("one"), two = dir.file("two");
	const auto load = [&](const std::string &ring) {
		REQUIRE(HasSegments(ring, 1));
		REQUIRE(run({FORKTAIL_BIN_DIR "/forktail-load", "-s", redis.socket(), "--rate", "1000", "-n",
			     "2000", "-q", "-o", ring + "/load.forktail"})
			    .status == 0);
		REQUIRE(HasSegments(ring, 2));
	};
	{
		Process recorder = Keep(redis, one);
		load(one);
		recorder.signal(SIGTERM);
		CHECK(recorder.wait(Seconds(20)) == 0);
	}
	Process recorder = Keep(redis, two);
	load(two);
	const auto forktail_says = [&](std::vector<std::string> words) {
		words.insert(words.begin(), kForktail);
		const Result r = run(words, Seconds(60));
		INFO(words[1] << ": " << r.err);
		CHECK(r.status == 0);
		return r.out;
	};
	CHECK(Explained({two})["requests"]["count"] == 2000);
	CHECK(forktail_says({"sql", two, "--csv", "select count(*) from requests"}).find("\n2000\n") !=
	      std::string::npos);
	for (const char *format :
	     {"parquet", "csv", "perfetto", "hlog", "folded", "speedscope", "otlp", "openmetrics"}) {
		forktail_says({"export", two, "--to", format, "-o", dir.file(format)});
		CHECK(std::filesystem::exists(dir.file(format)));
	}
	forktail_says({"report", two, "-o", dir.file("page.html")});
	CHECK(std::filesystem::file_size(dir.file("page.html")) > 10000);
	const Json compared = parse_json(run({kForktail, "diff", one, two, "--json"}, Seconds(60)).out);
	CHECK(compared["a"]["runs"][0]["p99.9_ns"].get<double>() > 0);
	CHECK(run({kForktail, "gate", two, "p50 < 1s"}).status == 0);
	CHECK(run({kForktail, "gate", two, "p50 < 1us"}).status == 1);
	CHECK(recorder.running());
}

TEST_CASE("a part that cannot be saved from a ring is one sentence and leaves nothing")
{
	TempDir dir;
	auto refused = [&](const std::vector<std::string> &words, int status, const std::string &why) {
		const Result r = Snapshot(words);
		INFO(r.err);
		CHECK(r.status == status);
		CHECK(r.out.empty());
		CHECK(r.err.find(why) != std::string::npos);
		CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
	};
	const std::string out = dir.file("run");
	refused({dir.path(), "-o", out}, 3, dir.path() + " holds no ring (segment-*.forktail)");
	refused({dir.file("none"), "-o", out}, 3, dir.file("none") + " does not exist");
	refused({dir.path()}, 2, "-o");
	refused({dir.path(), "-o", out, "--last", "x"}, 2,
		"--last needs a duration such as 60s or 5m, not 'x'");
	refused({dir.path(), "-o", out, "--last", "5s", "--since", "-5s"}, 2, "--since");
	refused({dir.path(), "-o", out, "--since", "soon"}, 2, "--since takes a time");
	CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("a full disk has no incomplete snapshot")
{
	REQUIRE(geteuid() == 0);
	TempDir dir, disk;
	const std::string ring = dir.file("ring");
	Redis redis;
	Process recorder = Keep(redis, ring);
	INFO(recorder.err());
	REQUIRE(HasSegments(ring, 2));
	recorder.signal(SIGTERM);
	CHECK(recorder.wait(Seconds(20)) == 0);
	CHECK(Snapshot({ring, "-o", dir.path()}).err.find(dir.path() + " exists.") != std::string::npos);
	const Result nothing = Snapshot({ring, "--since", "+1h", "-o", dir.file("run")});
	CHECK(nothing.status == 3);
	CHECK(nothing.err.find(ring + " has no data at that time: the run lasts from +0 s to") !=
	      std::string::npos);

	REQUIRE(mount("forktail-test", disk.path().c_str(), "tmpfs", 0, "size=16k") == 0);
	const Result full = Snapshot({ring, "-o", disk.file("run")}); // copies: another file system
	const bool empty = std::filesystem::is_empty(disk.path());
	REQUIRE(umount(disk.path().c_str()) == 0);
	CHECK(full.status == 3);
	CHECK(full.err.find("No space left on device") != std::string::npos);
	CHECK(empty);
}
