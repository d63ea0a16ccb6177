// SPDX-License-Identifier: MIT
// Another process writes to the disk that a server waits for: it is named.
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

TEST_CASE("a process that writes to the server's disk is named, with the amount written")
{
	REQUIRE(root());
	Redis redis({.tcp = false, .config = {"--appendonly", "yes", "--appendfsync", "always"}});
	TempDir dir;
	if (!on_a_disk(redis.directory()) || !on_a_disk(dir.path())) {
		WARN("SKIPPED: temporary directories are not on a disk here");
		return;
	}
	Recorder recorder(redis.pid());
	{
		Process writer({"sh", "-c",
				"while :; do dd if=/dev/zero of=" + dir.file("other") +
				    " bs=1M count=100 conv=fsync; done"});
		Process load({"redis-benchmark", "-s", redis.socket(), "-n", "100000000", "-t", "set", "-q"});
		sleep_for(Seconds(3));
		writer.signal(SIGKILL);
	}
	const std::string path = recorder.path();
	const Recorded r = recorder.stop();
	uint64_t written = 0;
	for (const ft_writes &w : r.writes) {
		CHECK(w.start_ns <= w.end_ns);
		if (std::string(w.comm.raw) == "dd")
			written += w.bytes;
	}
	CHECK(written >= 10 << 20);

	const Result explained = run({program("forktail"), "explain", path, "--json"});
	REQUIRE(explained.status == 0);
	const Json j = parse_json(explained.out);
	bool named = false;
	std::string all;
	for (const Json &e : j["episodes"])
		for (const Json &sentence : e["evidence"]) {
			const std::string text = sentence;
			all += text + "\n";
			named |= text.find("sync() on the serving thread") != std::string::npos &&
				 text.find("files were written by dd (") != std::string::npos;
		}
	INFO(all);
	CHECK(named);
}
