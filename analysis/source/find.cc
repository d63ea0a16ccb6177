// SPDX-License-Identifier: MIT
// A ring may cover days when only five minutes are requested. The needed segments are found by opening only a
// few.
#include "find.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "common/format/sanitize.h"
#include "common/format/units.h"
#include "ring.h"

namespace forktail::analysis
{

namespace
{

namespace fs = std::filesystem;

// What restrict.cc needs around a part, and late answers.
constexpr uint64_t kSegmentsBeforeNs = 11'000'000'000, kSegmentsAfterNs = 2'000'000'000,
		   kAnswersNs = 30'000'000'000;
constexpr size_t kFew = 4; // this many segments are always read

void FindIn(const fs::path &directory, const std::string &host, std::vector<Found> *files,
	    std::error_code *ec)
{
	fs::directory_iterator entries(directory, *ec);
	std::error_code ignored;
	for (; !*ec && entries != fs::directory_iterator(); entries.increment(*ec)) {
		const std::string path = entries->path().string();
		if (entries->path().extension() == ".forktail" && !entries->is_directory(ignored))
			files->push_back({path, host, IsSegment(path)});
	}
}

bool FindAll(const std::string &path, std::vector<Found> *files, std::string *error)
{
	std::error_code ec;
	fs::file_status status = fs::status(path, ec);
	if (ec || !fs::exists(status)) {
		*error = "no run at " + path +
			 (ec && ec != std::errc::no_such_file_or_directory ? ": " + ec.message() : "");
		return false;
	}
	if (!fs::is_directory(status)) {
		files->push_back({path, ""});
		return true;
	}
	FindIn(path, "", files, &ec);
	fs::path hosts = fs::path(path) / "hosts";
	if (std::error_code none; !ec && fs::is_directory(hosts, none))
		for (fs::directory_iterator each(hosts, ec); !ec && each != fs::directory_iterator();
		     each.increment(ec))
			if (each->is_directory(none))
				FindIn(each->path(), each->path().filename().string(), files, &ec);
	if (ec) {
		*error = "cannot list " + path + ": " + ec.message();
		return false;
	}
	if (files->empty()) {
		*error = path + " holds no recording (*.forktail). Name a run directory";
		return false;
	}
	return true;
}

// The extent of the requests in a ring's segments; until_ns 0: it has no requests.
TimeSpan RequestsOf(const Ring &ring)
{
	TimeSpan all = {UINT64_MAX, 0};
	uint64_t start_ns = 0, end_ns = 0;
	for (size_t i = 0; i < ring.size() && all.since_ns == UINT64_MAX; i++)
		if (TimeOfBlocks(ring.path(i), FT_BLOCK_REQUEST, &start_ns, &end_ns, nullptr))
			all.since_ns = start_ns;
	for (size_t i = ring.size(); i-- > 0 && all.until_ns == 0 && all.since_ns != UINT64_MAX;)
		if (TimeOfBlocks(ring.path(i), FT_BLOCK_REQUEST, &start_ns, &end_ns, nullptr))
			all.until_ns = end_ns;
	return all;
}

// The extent to which a part refers: that of the request logs next to a ring, else of the requests in it,
// else of the ring. False: unknown before everything is read.
bool FindWhole(Ring *ring, const std::vector<Found> &others, Run *run, TimeSpan *whole, bool *has_log)
{
	const SegmentHead &first = ring->Head(0);
	const std::string &last = ring->path(ring->size() - 1);
	uint64_t start_ns = 0, end_ns = 0;
	if (!first.known || !TimeOfBlocks(ring->path(0), 0, &start_ns, &end_ns, &run->clocks) ||
	    !TimeOfBlocks(last, 0, &start_ns, &end_ns, &run->clocks))
		return false;
	*whole = {first.start_ns, end_ns};
	TimeSpan logs = {UINT64_MAX, 0};
	for (const Found &other : others) {
		if (ReadHead(other.path).boot_id != first.boot_id)
			return false;
		if (TimeOfBlocks(other.path, FT_BLOCK_REQUEST, &start_ns, &end_ns, nullptr))
			logs = {std::min(logs.since_ns, start_ns), std::max(logs.until_ns, end_ns)};
	}
	if (!logs.until_ns && first.has_requests)
		logs = RequestsOf(*ring);
	*has_log = logs.until_ns != 0;
	if (*has_log)
		*whole = logs;
	return true;
}

// Keeps only the segments of a ring that a part may need.
void KeepPart(const PartAsked &asked, const std::string &path, const std::vector<Found> &others, Ring *ring,
	      std::optional<TimeSpan> *whole)
{
	Run run; // for the recorded time of day
	run.path = common::Visible(path);
	TimeSpan all, part;
	bool has_log = false;
	std::string error; // ignored here: the error is reported when the run is read
	if (!FindWhole(ring, others, &run, &all, &has_log) ||
	    FindPart(asked, run, all.since_ns, all.until_ns, &part, &error))
		return;
	const uint64_t after_ns = has_log ? kAnswersNs : kSegmentsAfterNs;
	*whole = all;
	ring->Leave(
	    ring->Reaching(part.since_ns - std::min(part.since_ns, kSegmentsBeforeNs),
			   part.until_ns > UINT64_MAX - after_ns ? UINT64_MAX : part.until_ns + after_ns));
}

} // namespace

bool FindRecordings(const std::string &path, const PartAsked &asked, std::vector<Found> *files,
		    std::optional<TimeSpan> *whole, Run *run, std::string *error)
{
	std::vector<Found> all;
	if (!FindAll(path, &all, error))
		return false;
	std::map<std::string, std::vector<std::string>> segments; // by host
	for (const Found &f : all)
		if (f.segment)
			segments[f.host].push_back(f.path);
	std::erase_if(all, [](const Found &f) { return f.segment; });
	std::sort(all.begin(), all.end(), [](const Found &a, const Found &b) { return a.path < b.path; });
	*files = all;
	for (const auto &[host, paths] : segments) {
		Ring ring(paths);
		if (size_t older = ring.LeaveNewestBoot())
			run->warnings.push_back(
			    common::Plural(older, "segment is", "segments are") +
			    " of an earlier boot and ignored: the clock starts at the boot");
		if (asked.any() && segments.size() == 1 && ring.size() > kFew)
			KeepPart(asked, path, all, &ring, whole);
		for (size_t i = 0; i < ring.size(); i++)
			files->push_back({ring.path(i), host, true});
	}
	return true;
}

} // namespace forktail::analysis
