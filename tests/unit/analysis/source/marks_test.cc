// SPDX-License-Identifier: MIT
// Marks in a file next to a recording: those that any program appends, those of AddMark, and files that are
// no marks.
#include "tests/support/explained.h"
#include "tests/support/json.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/kernel_log.h"
#include "tests/unit/analysis/run_builder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "analysis/source.h"
#include "analysis/text.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint64_t kDay = 1'764'000'000'000'000'000; // the time of day when the recording began

// A recording with an episode 100 ms after its begin.
void Record(const std::string &path)
{
	KernelLog log(path);
	ft_clock clock = {};
	clock.monotonic_ns = kLogStart;
	clock.realtime_ns = kDay;
	log.Record(FT_BLOCK_CLOCK, clock);
	log.Thread();
	log.Tcp(1, 7);
	for (uint64_t i = 0; i < 50; i++)
		log.Request(1, 1'000 * i, 1'000 * i + 5, 1'000 * i + 50);
	log.Request(1, 100'000, 100'005, 170'000, 2);
	log.Close();
}

} // namespace

TEST_CASE("marks are shown with their times, and with the episode that followed")
{
	TempDir dir;
	Record(dir.file("server.forktail"));
	std::string error;
	REQUIRE(AddMark(dir.path(), kDay + 80 * kLogMs, "deploy \"42\"", &error));
	// What any program can append, in any order.
	FILE *f = fopen(dir.file("marks").c_str(), "a");
	fputs("1763999999.5 before the recording\n1764000000.150 in the episode\n1763999000 long before\n"
	      "1764009999 after the recording\n",
	      f);
	fclose(f);
	Explained e;
	ExplainKernel(dir.path(), &e);
	REQUIRE(e.run.marks.size() == 3);
	CHECK(e.run.marks[0].text == "before the recording");
	CHECK(e.run.marks[1].t_ns == kLogStart + 80 * kLogMs);
	CHECK(e.run.warnings.empty());
	const auto j = parse_json(ExplainJson(e, true));
	CHECK(j["marks"].size() == 3);
	CHECK(j["marks"][1]["text"] == "deploy \"42\"");
	CHECK(j["marks"][1]["t_s"].get<double>() == Approx(0.08));
	const std::string marks =
	    "Marks: -0.500 s before the recording; +0.080 s deploy \"42\"; +0.150 s in the episode.";
	const std::string screen = flat(ExplainScreen(e, {.columns = 200}, 1));
	INFO(screen);
	CHECK(screen.find(marks) != std::string::npos);
	CHECK(screen.find("\"in the episode\" was marked 50.0 ms after it began") != std::string::npos);
	CHECK(flat(ExplainText(e, {})).find(marks) != std::string::npos);
}

TEST_CASE("a mark before an episode is that episode's, and a recording alone has marks too")
{
	TempDir dir;
	Record(dir.file("one.forktail"));
	std::string error;
	REQUIRE(AddMark(dir.file("one.forktail"), kDay - 2'000 * kLogMs, "deploy", &error));
	CHECK(read_file(dir.file("one.forktail.marks")) == "1763999998.000000000 deploy\n");
	Explained e;
	ExplainKernel(dir.file("one.forktail"), &e);
	REQUIRE(e.episodes.size() == 1);
	REQUIRE_FALSE(e.episodes[0].evidence.empty());
	CHECK(e.episodes[0].evidence.back() == "\"deploy\" was marked 2.10 s before it began");
}

TEST_CASE("lines that are no marks are ignored with a warning, and links are not followed")
{
	TempDir dir;
	Record(dir.file("server.forktail"));
	write_file(dir.file("marks"),
		   "deploy 42\n1764000000.1\n1764000000.1 \n\n1e99 x\n1764000000.1 a\x1b[31mb\n");
	Explained e;
	ExplainKernel(dir.path(), &e);
	REQUIRE(e.run.marks.size() == 1);
	CHECK(e.run.marks[0].text.find('\x1b') == std::string::npos);
	REQUIRE(e.run.warnings.size() == 1);
	CHECK(e.run.warnings[0].find("4 lines of ") == 0);

	REQUIRE(unlink(dir.file("marks").c_str()) == 0);
	write_file(dir.file("elsewhere"), "1764000000.1 x\n");
	REQUIRE(symlink(dir.file("elsewhere").c_str(), dir.file("marks").c_str()) == 0);
	std::string error;
	CHECK(ReadMarks(dir.path()).empty());
	CHECK_FALSE(AddMark(dir.path(), kDay, "x", &error));
	CHECK(error.find("cannot write ") == 0);
	REQUIRE(unlink(dir.file("marks").c_str()) == 0);
	REQUIRE(link(dir.file("elsewhere").c_str(), dir.file("marks").c_str()) == 0);
	CHECK_FALSE(AddMark(dir.path(), kDay, "x", &error));
	CHECK(read_file(dir.file("elsewhere")) == "1764000000.1 x\n");
}

TEST_CASE("of a long file of marks its end is read")
{
	TempDir dir;
	Record(dir.file("server.forktail"));
	std::string text;
	while (text.size() < (1 << 20))
		text += "1764000000.1 earlier\n";
	write_file(dir.file("marks"), "1764000000.1 first\n" + text + "1764000000.2 last\n");
	Explained e;
	ExplainKernel(dir.path(), &e);
	CHECK(e.run.warnings.empty());
	CHECK(e.run.marks.front().text == "earlier");
	CHECK(e.run.marks.back().text == "last");
	CHECK(flat(ExplainScreen(e, {.columns = 200}, 0)).find("+0.200 s last; and ") != std::string::npos);
}
