// SPDX-License-Identifier: MIT
// A server whose event loop uses io_uring: it is idle where it waits for its ring, it stalls where it is
// stopped, it has iterations, and notes report what cannot be recorded.
#include <algorithm>
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/recorded.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr double kMs = 1e6;
constexpr int kNoRing = 77; // the server's exit status without io_uring

bool warns(const Json &explanation, const std::string &text)
{
	for (const Json &warning : explanation["warnings"])
		if (warning.get<std::string>().find(text) != std::string::npos)
			return true;
	return false;
}

void check_requests(const Json &j, uint32_t pid)
{
	double stopped = 0;
	for (const Json &r : j["slow_requests"])
		for (const Json &part : r["parts"]) {
			CHECK(part["cause"] != "syscall");
			CHECK(part["cause"] != "unknown");
			if (part["cause"] == "stopped")
				stopped = std::max(stopped, part["direct_ns"].get<double>());
		}
	CHECK(stopped >= 90 * kMs);
	CHECK(std::any_of(j["episodes"].begin(), j["episodes"].end(),
			  [](const Json &episode) { return episode["causes"][0]["cause"] == "stopped"; }));
	bool serves = false;
	for (const Json &t : j["account"]["threads"]) {
		INFO(t.dump());
		const double wall = t["wall_ns"], accounted = t["accounted_ns"];
		CHECK(std::abs(accounted - wall) <= wall * 0.001 + 1000);
		if (t["tid"] != pid)
			continue;
		serves = t["serving"];
		CHECK(t["by_cause"].value("idle", 0.0) > 0.3 * wall);
		CHECK(t["by_cause"].value("syscall", 0.0) < 0.01 * wall);
	}
	CHECK(serves);
	CHECK(warns(j, "uses io_uring"));
}

// Puts load on such a server, stops it for 100 ms, and checks the explanation. With `workers` the kernel's
// own threads work for its ring. They exist before the recording begins.
void check_rings(const std::vector<std::string> &record, bool workers)
{
	TempDir dir;
	const std::string socket = dir.file("uring.sock");
	std::vector<std::string> argv = {FORKTAIL_URING_SERVER, socket};
	if (workers)
		argv.push_back("workers");
	Process server(argv);
	REQUIRE(eventually([&] { return access(socket.c_str(), F_OK) == 0 || !server.running(); }));
	if (!server.running() && server.wait(Seconds(1)) == kNoRing) {
		WARN("SKIPPED: this kernel refuses rings: " + server.err());
		return;
	}
	if (workers)
		REQUIRE(run({program("forktail-load"), "-q", "-s", socket, "-t", "get", "--rate", "2000",
			     "-c", "4", "--no-observer", "--duration", "1"})
			    .status == 0);
	Recorder recorder(server.pid(), record);
	Process load({program("forktail-load"), "-q", "-s", socket, "-t", "get", "--rate", "2000", "-c", "4",
		      "--no-observer", "-o", dir.file("load.forktail"), "--duration", "3"});
	sleep_for(Seconds(1.5));
	server.signal(SIGSTOP);
	sleep_for(Seconds(0.1));
	server.signal(SIGCONT);
	INFO(load.err());
	REQUIRE(load.wait(Seconds(60)) == 0);
	const Recorded recorded = recorder.stop();
	const uint32_t pid = static_cast<uint32_t>(server.pid());

	CHECK(parse_json(recorded.manifest)["targets"][0]["io_uring"] == true);
	const uint64_t iterations = recorded.count(pid, FT_ITERATION);
	CHECK(iterations > 20); // most are too short to be recorded, or merged where the CPU is busy
	for (const auto &[key, t] : recorded.threads)
		CHECK((t.tgid != pid || t.tid == pid)); // nothing is recorded of the kernel's threads
	std::filesystem::copy(recorder.path(), dir.file("server.forktail"));
	const Result r =
	    run({program("forktail"), "explain", dir.path(), "--json", "--requests", "--slow", "20ms"});
	INFO(r.err);
	REQUIRE(r.status == 0);
	check_requests(parse_json(r.out), pid);
}

} // namespace

TEST_CASE("a server over io_uring is idle where it waits for its ring")
{
	REQUIRE(root());
	check_rings({}, false);
}

TEST_CASE("the kernel's own workers of a ring are not the server's threads")
{
	REQUIRE(root());
	check_rings({}, true);
}

TEST_CASE("its iterations are found by its waits also where system calls are traced")
{
	REQUIRE(root());
	check_rings({"--exact"}, false);
}

TEST_CASE("for a server with epoll there is no note about rings")
{
	REQUIRE(root());
	Redis server;
	Recorder recorder(server.pid());
	server.command({"SET", "a", "1"});
	const Recorded recorded = recorder.stop();
	CHECK(parse_json(recorded.manifest)["targets"][0]["io_uring"] == false);
	const Result doctor = run({program("forktail"), "doctor"});
	CHECK(doctor.out.find("servers on io_uring: ") != std::string::npos);
	CHECK(doctor.out.find("Requests (--requests) have times and sizes, and no commands") !=
	      std::string::npos);
}
