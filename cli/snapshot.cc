// SPDX-License-Identifier: MIT
// forktail snapshot.
#include "live/snapshot.h"

#include <cstdio>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "analysis/source.h"
#include "command.h"
#include "common/format.h"
#include "common/json.h"
#include "common/text.h"

namespace forktail::cli
{

namespace
{

// The ring's time span and clocks. False: *error is one sentence.
bool ReadTimes(const std::string &directory, analysis::Run *run, analysis::TimeSpan *whole,
	       std::string *error)
{
	analysis::Ring ring;
	if (!analysis::FindRing(directory, &ring, error))
		return false;
	ring.LeaveNewestBoot();
	uint64_t start_ns = 0, end_ns = 0, last_ns = 0;
	run->path = directory;
	size_t first = 0, last = ring.size();
	while (first < last && !analysis::TimeOfBlocks(ring.path(first), 0, &start_ns, &end_ns, &run->clocks))
		first++; // it was evicted just now
	while (last > first &&
	       !analysis::TimeOfBlocks(ring.path(last - 1), 0, &last_ns, &end_ns, &run->clocks))
		last--; // it was begun just now
	*error = "nothing is recorded yet in " + directory;
	if (first >= last)
		return false;
	*whole = {ring.Head(first).known ? ring.Head(first).start_ns : start_ns, end_ns};
	return true;
}

// The requested part of the ring as it is now. Times have the format of forktail explain --since.
int FindAsked(const analysis::PartAsked &part, live::snapshot::SnapshotRequest *asked, analysis::Run *run,
	      std::string *error)
{
	analysis::TimeSpan whole, found;
	if (!ReadTimes(asked->ring, run, &whole, error))
		return kCant;
	if (int status = analysis::FindPart(part, *run, whole.since_ns, whole.until_ns, &found, error))
		return status;
	asked->from_ns = found.since_ns;
	asked->to_ns = found.until_ns;
	return kDone;
}

} // namespace

int SnapshotCommand(int argc, char **argv)
{
	CLI::App app(
	    "Save a part of the ring that forktail record --keep writes as a run directory. The recorder "
	    "continues.\n"
	    "Exit status: 0 done, 2 usage, 3 no ring, no data of that time in it, or RUN cannot be created.",
	    "forktail snapshot");
	app.footer("  forktail snapshot /run/forktail --last 60s -o spike\n");
	live::snapshot::SnapshotRequest asked;
	std::string since, until, last;
	app.add_option("DIR", asked.ring, "Directory of the ring")->required();
	app.add_option("-o,--output", asked.out, "Create this run directory")->type_name("RUN")->required();
	auto *lasts =
	    app.add_option("--last", last, "Save the last TIME of the ring: 60s, 5m (default: all of it)")
		->type_name("TIME");
	app.add_option("--since", since,
		       "Save from TIME: -5m before the ring's end, +12.5s after its start, 20:15:03 or "
		       "2026-11-22T20:15:03 in UTC, or seconds since 1970")
	    ->type_name("TIME")
	    ->excludes(lasts);
	app.add_option("--until", until, "Save up to TIME, in the same formats (default: the ring's end)")
	    ->type_name("TIME")
	    ->excludes(lasts);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	analysis::PartAsked part;
	std::string error;
	uint64_t last_ns = 0;
	if (!last.empty() && (!parse_duration(last.c_str(), TIME_ANY, TIME_S, &last_ns) || !last_ns))
		return Refuse("--last needs a duration such as 60s or 5m, not '" + last + "'", kUsage);
	if (!last.empty() && last.find_first_not_of("0123456789.") == std::string::npos)
		last += "s";
	if (!ParsePart(last.empty() ? since : "-" + last, until, "", &part, &error))
		return Refuse(error, kUsage);
	analysis::Run run;
	if (int why = FindAsked(part, &asked, &run, &error))
		return Refuse(error, why);
	asked.why = "requested";
	live::snapshot::SnapshotResult taken;
	if (live::snapshot::TakeSnapshot(asked, &taken, &error) != live::snapshot::SnapshotWhy::Done)
		return Refuse(error, kCant);
	printf("%s: %s of %s in %s, %s\n", common::Visible(asked.out).c_str(),
	       common::FormatDuration(taken.to_ns - taken.from_ns).c_str(),
	       common::Visible(asked.ring).c_str(),
	       common::Plural(taken.segments, "segment", "segments").c_str(),
	       common::FormatBytes(taken.bytes).c_str());
	return fflush(stdout) ? kCant : kDone;
}

} // namespace forktail::cli
