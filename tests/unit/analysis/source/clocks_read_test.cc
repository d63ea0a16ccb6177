// SPDX-License-Identifier: MIT
// Clock recordings with wrong manifests or round trips: the run is read anyway. A load generator's clock is
// either known with a bound, or its log is skipped with a message.
#include <cstring>
#include <random>

#include "analysis/source.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::analysis;
using forktail::test::TempDir;

namespace
{

constexpr uint64_t kStart = 5'000'000'000'000, kMs = 1'000'000;

void Write(const std::string &path, const std::string &manifest, const std::vector<ft_probe> &probes = {})
{
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, path.c_str(), manifest.c_str()) == 0);
	for (const ft_probe &p : probes)
		REQUIRE(ft_writer_record(w, FT_BLOCK_PROBE, &p) == 0);
	REQUIRE(ft_writer_close(w, R"({"end_ns":5001000000000,"reason":"duration"})") == 0);
}

std::string Manifest(const std::string &program, const std::string &clock, const std::string &more = "")
{
	return R"({"program":")" + program + R"(","version":"0.1.0","host":"h","boot_id":"b1","clock_id":")" +
	       clock + R"(","start_ns":5000000000000)" + more + "}";
}

// A server and a load generator with different clocks, and the clock recording that compares them.
bool ReadWith(const TempDir &dir, const std::string &clock_manifest, const std::vector<ft_probe> &probes,
	      Run *run)
{
	Write(dir.file("server.forktail"), Manifest("forktail-record", "server"));
	Write(dir.file("load.forktail"),
	      Manifest("forktail-load", "client", R"(,"servers":["10.0.0.1:6379"],"ops":["GET"])"));
	Write(dir.file("clock.forktail"), clock_manifest, probes);
	std::string error;
	const bool read = LoadRun(dir.path(), run, &error);
	INFO(error);
	return read;
}

const RecordingFile &FileBy(const Run &run, const std::string &program)
{
	for (const RecordingFile &f : run.files)
		if (f.program == program)
			return f;
	throw std::runtime_error("no recording by " + program);
}

std::vector<ft_probe> Trips(uint64_t ahead_ns)
{
	std::vector<ft_probe> trips;
	for (uint64_t t = kStart; t < kStart + 1000 * kMs; t += 100 * kMs)
		trips.push_back({t, t + 20'000 + ahead_ns, t + 21'000 + ahead_ns, t + 41'000, 8, 8, 0});
	return trips;
}

const char kPeer[] = R"(,"peer":{"address":"a","host":"s","clock_id":"server"})";

} // namespace

TEST_CASE("a correct clock recording connects the two clocks", "[clocks]")
{
	TempDir dir;
	Run run;
	REQUIRE(ReadWith(dir, Manifest("forktail-clock", "client", kPeer), Trips(3600'000 * kMs), &run));
	CHECK(FileBy(run, "forktail-load").overlaid);
	REQUIRE(run.host_clocks.size() == 2);
	CHECK(run.clocks_bound_ns > 0);
	CHECK(run.clocks_bound_ns < 100'000);
	CHECK(std::llabs(run.host_clocks[1].offset_ns - static_cast<int64_t>(3600'000 * kMs)) <=
	      static_cast<int64_t>(run.clocks_bound_ns));
}

TEST_CASE("a manifest that does not name its clocks connects nothing", "[clocks]")
{
	for (const char *peer :
	     {"", R"(,"peer":7)", R"(,"peer":{})", R"(,"peer":{"clock_id":3})", R"(,"peer":[])",
	      R"(,"peer":{"clock_id":"client"})", R"(,"peer":{"clock_id":"nobody"})"}) {
		TempDir dir;
		Run run;
		INFO(peer);
		REQUIRE(ReadWith(dir, Manifest("forktail-clock", "client", peer), Trips(0), &run));
		size_t left_out = 0;
		for (const RecordingFile &f : run.files)
			left_out += f.program != "forktail-clock" && !f.overlaid;
		CHECK(left_out == 1);
		CHECK(run.clocks_bound_ns == 0);
		CHECK(run.warnings.size() >= 1);
	}
}

TEST_CASE("arbitrary round trips give a bound, or the log is skipped", "[clocks]")
{
	std::mt19937_64 random(11);
	for (int i = 0; i < 300; i++) {
		std::vector<ft_probe> probes(1 + random() % 40);
		for (ft_probe &p : probes) {
			uint64_t words[5];
			for (uint64_t &w : words)
				w = random() >> random() % 64;
			memcpy(&p, words, sizeof p);
		}
		if (i % 3 == 0) // some are wrong only now and then
			for (const ft_probe &p : Trips(random() >> 20))
				probes.push_back(p);
		TempDir dir;
		Run run;
		INFO("case " << i);
		REQUIRE(ReadWith(dir, Manifest("forktail-clock", "client", kPeer), probes, &run));
		CHECK((FileBy(run, "forktail-load").overlaid && FileBy(run, "forktail-record").overlaid) ==
		      (run.clocks_bound_ns > 0));
	}
}
