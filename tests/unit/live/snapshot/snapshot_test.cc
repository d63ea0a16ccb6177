// SPDX-License-Identifier: MIT
// A snapshot is a run: hard links to sealed segments and a copy of the current segment. It is complete or
// does not exist.
#include "live/snapshot.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/source.h"
#include "common/json.h"
#include "tests/support/ring.h"
#include "tests/support/tempdir.h"

using namespace forktail::analysis;
using namespace forktail::common;
using namespace forktail::live::snapshot;
using forktail::test::kRingMs;
using forktail::test::kRingSecond;
using forktail::test::read_file;
using forktail::test::RingWriter;
using forktail::test::TempDir;
using forktail::test::write_file;

namespace
{

size_t Entries(const std::string &dir)
{
	size_t count = 0;
	for (const auto &entry : std::filesystem::directory_iterator(dir))
		count += !entry.path().empty();
	return count;
}

} // namespace

TEST_CASE("a snapshot of a part has its segments, and they survive eviction")
{
	TempDir dir, to;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 9);
	SnapshotRequest asked{dir.path(), ring.began_ns + 3500 * kRingMs, ring.began_ns + 5500 * kRingMs,
			      "a test", to.file("run")};
	SnapshotResult taken;
	std::string error;
	REQUIRE(TakeSnapshot(asked, &taken, &error) == SnapshotWhy::Done);
	CHECK(taken.segments == 3);
	CHECK(taken.copied == 0);
	CHECK(taken.from_ns == ring.began_ns + 3 * kRingSecond);
	CHECK(taken.to_ns == ring.began_ns + 6 * kRingSecond);
	CHECK(Entries(to.path()) == 1);
	CHECK(Entries(asked.out) == 4);
	struct stat st;
	REQUIRE(stat((asked.out + "/" + RingWriter::Name(3)).c_str(), &st) == 0);
	CHECK(st.st_nlink == 2);
	REQUIRE(stat(asked.out.c_str(), &st) == 0);
	CHECK((st.st_mode & 0777) == 0700);
	const Json about = ParseObject(read_file(asked.out + "/run.json"));
	CHECK(about["snapshot"]["why"] == "a test");
	CHECK(about["snapshot"]["from_ns"] == taken.from_ns);
	CHECK(about["snapshot"]["to_realtime_ns"] == 1'700'000'000 * kRingSecond + taken.to_ns);
	CHECK(about["snapshot"]["boot_id"] == "b1");

	for (uint64_t i = 0; i < 10; i++)
		REQUIRE(unlink(ring.path(i).c_str()) == 0);
	Run run;
	REQUIRE(LoadRun(asked.out, &run, &error));
	CHECK(run.warnings.empty());
	CHECK(run.spans.size() == 3);
	CHECK(run.threads[0].end_ns - run.threads[0].start_ns == 3 * kRingSecond);
}

TEST_CASE("the current segment is copied as far as it is written, and sealed")
{
	TempDir dir, to;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 1);
	ring.Begin(2, ring.began_ns + 2 * kRingSecond);
	ring.Second(2, ring.began_ns + 3 * kRingSecond);
	REQUIRE(ft_writer_flush(ring.w) == 0);
	SnapshotRequest asked{dir.path(), 0, UINT64_MAX, "", to.file("run/")};
	SnapshotResult taken;
	std::string error;
	REQUIRE(TakeSnapshot(asked, &taken, &error) == SnapshotWhy::Done);
	CHECK(taken.segments == 3);
	CHECK(taken.copied == 1);
	// The recorder continues, and nothing of that is in the copy.
	ring.Second(2, ring.began_ns + 4 * kRingSecond);
	ring.End(ring.began_ns + 4 * kRingSecond);
	Run run;
	REQUIRE(LoadRun(asked.out, &run, &error));
	CHECK(run.warnings.empty());
	CHECK(run.spans.size() == 3);
	CHECK(run.files[0].end_reason == "snapshot");
	CHECK(run.end_ns == ring.began_ns + 3 * kRingSecond);
}

TEST_CASE("a snapshot that cannot be taken leaves nothing, with a message")
{
	TempDir dir, to;
	RingWriter ring{dir.path()};
	ring.Sealed(0, 3);
	std::string error;
	auto take = [&](const std::string &from, uint64_t since_s, uint64_t until_s, const std::string &out) {
		return TakeSnapshot({from, ring.began_ns + since_s * kRingSecond,
				     ring.began_ns + until_s * kRingSecond, "", out},
				    nullptr, &error);
	};
	CHECK(take(to.path(), 0, 9, to.file("run")) == SnapshotWhy::NoRing);
	CHECK(error.find("holds no ring") != std::string::npos);
	CHECK(take(dir.path(), 50, 90, to.file("run")) == SnapshotWhy::Nothing);
	CHECK(TakeSnapshot({dir.path(), 0, 5, "", to.file("run")}, nullptr, &error) == SnapshotWhy::Nothing);
	CHECK(error == dir.path() + " has no data of that time");
	CHECK(take(dir.path(), 0, 9, dir.path()) == SnapshotWhy::Exists);
	CHECK(error == dir.path() + " exists. Name a new directory for the snapshot.");
	CHECK(take(dir.path(), 0, 9, to.file("none/run")) == SnapshotWhy::Cant);
	CHECK(error.find("cannot create " + to.file("none/run") + ": ") == 0);
	CHECK(Entries(to.path()) == 0);

	// Unfinished snapshots of other processes are deleted, unless those still run.
	std::filesystem::create_directory(to.file(".forktail-snapshot-dead00"));
	write_file(to.file(".forktail-snapshot-dead00/x"), "x");
	std::filesystem::create_directory(to.file(".forktail-snapshot-works0"));
	int fd = open(to.file(".forktail-snapshot-works0").c_str(), O_RDONLY | O_DIRECTORY);
	REQUIRE(flock(fd, LOCK_EX) == 0);
	CHECK(take(dir.path(), 0, 9, to.file("run")) == SnapshotWhy::Done);
	close(fd);
	CHECK(Entries(to.path()) == 2);
	CHECK(std::filesystem::exists(to.file(".forktail-snapshot-works0")));
}
