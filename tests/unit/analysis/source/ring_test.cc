// SPDX-License-Identifier: MIT
// Segments together are one recording: repeated records count once, evicted segments are not missed, and what
// is open at their end is included.
#include "tests/support/ring.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/loaded_run.h"

#include <sys/resource.h>

#include "analysis/run/read_blocks.h"
#include "analysis/source.h"

using namespace forktail::analysis;
using forktail::test::contains;
using forktail::test::kRingMs;
using forktail::test::kRingSecond;
using forktail::test::LoadedRun;
using forktail::test::read_file;
using forktail::test::RingWriter;
using forktail::test::TempDir;
using forktail::test::write_file;

namespace
{

// The own times of everything that the only thread did.
uint64_t Accounted(const Run &run)
{
	uint64_t ns = 0;
	for (const ft_span &s : run.spans)
		ns += s.on_cpu_ns + s.runnable_ns + s.blocked_ns;
	for (const ft_tally &t : run.tallies)
		ns += t.total_ns;
	return ns;
}

} // namespace

TEST_CASE("segments are read like one recording")
{
	TempDir dir;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 5);
	const Run run = LoadedRun(dir.path());
	CHECK(run.warnings.empty());
	REQUIRE(run.files.size() == 1);
	CHECK(run.files[0].start_ns == ring.began_ns);
	CHECK(run.files[0].end_ns == ring.began_ns + 6 * kRingSecond);
	CHECK(run.files[0].end_reason == "segment");
	REQUIRE(run.threads.size() == 1);
	CHECK(run.threads[0].start_ns == ring.began_ns);
	CHECK(run.threads[0].end_ns == ring.began_ns + 6 * kRingSecond);
	CHECK(Accounted(run) == 6 * kRingSecond);
	CHECK(run.spans.size() == 6);
	CHECK(run.targets.size() == 1);
	CHECK(run.missing.size() == 1);
	CHECK(run.programs.size() == 2);
	CHECK(run.quotas.size() == 1);
	CHECK(run.loops.size() == 1);
	CHECK(run.sockets.size() == 1);
	REQUIRE(run.series.size() == 1);
	CHECK(run.series[0].samples.size() == 6);
	REQUIRE(run.details.size() == 2);
	for (const ft_span &s : run.spans)
		CHECK(run.details[s.detail].name == "nine");
	CHECK(run.cost.bpf_ns == 6 * kRingMs);
	CHECK(run.cost.recorder_cpu_ns == 30);
}

TEST_CASE("evicted segments are not missed: accounts and costs cover only what is left")
{
	TempDir dir;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 9);
	for (uint64_t i = 0; i < 4; i++)
		REQUIRE(unlink(ring.path(i).c_str()) == 0);
	// A wait that began in an evicted segment.
	REQUIRE(unlink(ring.path(4).c_str()) == 0);
	const uint64_t begins_ns = ring.began_ns + 4 * kRingSecond;
	ring.Begin(4, begins_ns);
	ring.Record(FT_BLOCK_SPAN, RingWriter::Sleep(begins_ns - 3 * kRingSecond, 4 * kRingSecond));
	ring.End(begins_ns + kRingSecond);

	const Run run = LoadedRun(dir.path());
	CHECK(run.warnings.empty());
	CHECK(run.start_ns == begins_ns);
	REQUIRE(run.threads.size() == 1);
	CHECK(run.threads[0].start_ns == begins_ns);
	CHECK(Accounted(run) == 6 * kRingSecond);
	CHECK(run.spans[0].start_ns == begins_ns);
	CHECK(run.spans[0].blocked_ns == kRingSecond);
	CHECK(run.cost.bpf_ns == 5 * kRingMs);
}

TEST_CASE("a recorder that was killed and continued in its ring is reported once")
{
	TempDir dir;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 2);
	const std::string whole = read_file(ring.path(2));
	write_file(ring.path(2), whole.substr(0, whole.size() - 60)); // without its trailer
	RingWriter again{dir.path(), "b1", 110 * kRingSecond};
	for (uint64_t i = 3; i < 6; i++) { // the same thread, which starts another account
		again.Begin(i, again.began_ns + (i - 3) * kRingSecond);
		again.Second(i, again.began_ns + (i - 2) * kRingSecond);
		again.End(again.began_ns + (i - 2) * kRingSecond);
	}
	Run run = LoadedRun(dir.path());
	REQUIRE(run.warnings.size() == 2);
	CHECK(run.warnings[0].find("segment-0000000002.forktail: ") == 0);
	CHECK(run.warnings[0].find("the file has no end") != std::string::npos);
	CHECK(run.warnings[1] ==
	      "the recorder stopped and resumed in its ring: 7.00 s between are not recorded");
	CHECK(run.files.size() == 1);
	REQUIRE(run.threads.size() == 1);
	CHECK(run.threads[0].start_ns == 100 * kRingSecond);
	CHECK(run.threads[0].end_ns == 113 * kRingSecond);
	CHECK(Accounted(run) == 6 * kRingSecond);
	CHECK(run.cost.bpf_ns == 6 * kRingMs);
	CHECK(run.series.size() == 1);

	// Damage in several segments is one message too.
	std::string flipped = read_file(ring.path(0));
	flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
	write_file(ring.path(0), flipped);
	run = LoadedRun(dir.path());
	REQUIRE(run.warnings.size() == 2);
	CHECK(run.warnings[0].find("segment-0000000000.forktail and 1 further segment: ") == 0);
}

TEST_CASE("the current segment is not damaged, and ends with what is open in it")
{
	TempDir dir;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 1);
	ring.Begin(2, ring.began_ns + 2 * kRingSecond);
	// What has ended since, and what has not, is reported as open.
	ring.Record(FT_BLOCK_OPEN, RingWriter::Sleep(ring.began_ns + 2 * kRingSecond, 500 * kRingMs));
	ring.Second(2, ring.began_ns + 3 * kRingSecond);
	REQUIRE(ft_writer_flush(ring.w) == 0);
	ring.Record(FT_BLOCK_OPEN, RingWriter::Sleep(ring.began_ns + 3 * kRingSecond, 200 * kRingMs));
	ring.Record(FT_BLOCK_OPEN, RingWriter::Sleep(ring.began_ns + 3 * kRingSecond, 1200 * kRingMs));
	REQUIRE(ft_writer_flush(ring.w) == 0);
	const Run run = LoadedRun(dir.path());
	CHECK(run.warnings.empty());
	CHECK(run.spans.size() == 4);
	CHECK(run.end_ns == ring.began_ns + 4200 * kRingMs);
	CHECK(Accounted(run) == 4200 * kRingMs);
	ring.End(0);
}

TEST_CASE("an open record counts until a later record of its thread")
{
	OpenSpans open;
	ft_span frame = RingWriter::Sleep(1000, 100 * kRingMs),
		wait = RingWriter::Sleep(2000, 100 * kRingMs - 1000);
	frame.off_cpu = 0;
	frame.owner = FT_FORK;
	wait.depth = 1;
	open.Add(frame);
	open.Add(wait);
	open.Add(frame); // the next segment repeats it
	open.Add(wait);
	CHECK(open.StillOpen().size() == 2);
	// It has run since, within the frame.
	ft_span later = wait;
	later.start_ns = 150 * kRingMs;
	later.duration_ns = 50 * kRingMs;
	open.Note(later);
	REQUIRE(open.StillOpen().size() == 1);
	CHECK(open.StillOpen()[0].owner == FT_FORK);
	// Records of another thread, and earlier ones, do not count.
	later.tid = 7;
	later.depth = 0;
	open.Note(later);
	later.tid = 100;
	later.start_ns = 0;
	open.Note(later);
	CHECK(open.StillOpen().size() == 1);
	later.start_ns = 150 * kRingMs;
	open.Note(later);
	CHECK(open.StillOpen().empty());
	// The next record counts.
	open.Add(RingWriter::Sleep(300 * kRingMs, 5 * kRingMs));
	CHECK(open.StillOpen().size() == 1);
	ft_tally tally = {};
	tally.tid = 100;
	tally.end_ns = 306 * kRingMs;
	open.Note(tally);
	CHECK(open.StillOpen().empty());
}

TEST_CASE("segments of an earlier boot are skipped with a message")
{
	TempDir dir;
	RingWriter before{dir.path(), "b0", 500 * kRingSecond};
	before.Sealed(0, 4);
	RingWriter ring{dir.path()};
	for (uint64_t i = 5; i < 8; i++) {
		ring.Begin(i, ring.began_ns + (i - 5) * kRingSecond);
		ring.Second(i, ring.began_ns + (i - 4) * kRingSecond);
		ring.End(ring.began_ns + (i - 4) * kRingSecond);
	}
	const Run run = LoadedRun(dir.path());
	REQUIRE(run.warnings.size() == 1);
	CHECK(run.warnings[0].find("5 segments are of an earlier boot") == 0);
	CHECK(run.spans.size() == 3);
	CHECK(Accounted(run) == 3 * kRingSecond);
}

TEST_CASE("only the segments that a part needs are read")
{
	TempDir dir;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 99);
	auto open = [&](const std::string &since, const std::string &until, TimeSpan *whole) {
		PartAsked asked;
		Run run;
		RunSource source;
		std::string error;
		REQUIRE(ParsePart(since, until, "", &asked, &error));
		REQUIRE(source.Open(dir.path(), false, &run, &error, asked));
		*whole = source.Span(&run);
		return run.clocks.size(); // one per segment
	};
	TimeSpan whole;
	CHECK(open("", "", &whole) == 100);
	CHECK(open("-5s", "", &whole) <= 18);
	CHECK(whole.since_ns == ring.began_ns);
	CHECK(whole.until_ns == ring.began_ns + 100 * kRingSecond);
	CHECK(open("+50s", "+52s", &whole) <= 17);
	CHECK(open("+50s", "+52s", &whole) >= 13);
	// By the time of day.
	const uint64_t at = 1'700'000'000 + 130;
	CHECK(open(std::to_string(at), std::to_string(at + 2), &whole) <= 17);
}

TEST_CASE("a segment that is evicted while it is read is either read or skipped")
{
	TempDir dir;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 29);
	auto load = [&] {
		Run run;
		RunSource source;
		std::string error;
		REQUIRE(source.Open(dir.path(), false, &run, &error));
		for (uint64_t i = 0; i < 5; i++)
			unlink(ring.path(i).c_str());
		source.LoadServers(&run);
		source.Finish(&run);
		return run;
	};
	Run run = load();
	CHECK(run.warnings.empty());
	CHECK(run.spans.size() == 30);

	// No file descriptors are left to keep it open.
	ring.Sealed(0, 4);
	struct rlimit files, few;
	REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
	few = files;
	few.rlim_cur = 100;
	REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
	run = load();
	REQUIRE(setrlimit(RLIMIT_NOFILE, &files) == 0);
	REQUIRE(run.warnings.size() == 1);
	CHECK(contains(run.warnings, "5 segments of the ring were evicted while it was read"));
	CHECK(run.spans.size() == 25);
}

TEST_CASE("segments are found by bisection, even if some cannot be read")
{
	TempDir dir;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 20);
	Ring found;
	std::string error;
	auto reaching = [&](uint64_t from_s, uint64_t to_s) {
		REQUIRE(FindRing(dir.path(), &found, &error));
		return found.Reaching(ring.began_ns + from_s * kRingSecond + 1,
				      ring.began_ns + to_s * kRingSecond + 1);
	};
	CHECK(reaching(3, 5) == std::pair<size_t, size_t>(3, 6));
	CHECK(reaching(0, 0) == std::pair<size_t, size_t>(0, 1));
	CHECK(reaching(20, 90) == std::pair<size_t, size_t>(20, 21));
	REQUIRE(FindRing(dir.path(), &found, &error));
	CHECK(found.Reaching(0, 5) == std::pair<size_t, size_t>(0, 0));
	for (uint64_t i : {4, 10, 11})
		write_file(ring.path(i), "nonsense");
	CHECK(reaching(3, 5).second == 6);
	CHECK(reaching(3, 5).first <= 4);
	CHECK(reaching(12, 15) == std::pair<size_t, size_t>(12, 16));
	CHECK(IsSegment("/x/segment-0000000042.forktail"));
	CHECK_FALSE(IsSegment("/x/segment-.forktail"));
	CHECK_FALSE(IsSegment("/x/segment-1x.forktail"));
	CHECK_FALSE(IsSegment("/x/server.forktail"));
	TempDir none;
	CHECK_FALSE(FindRing(none.path(), &found, &error));
	CHECK(error.find(none.path() + " holds no ring") == 0);
	CHECK_FALSE(FindRing(none.path() + "/x", &found, &error));
	CHECK(error == none.path() + "/x does not exist");
}
