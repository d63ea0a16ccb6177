// SPDX-License-Identifier: MIT
// A snapshot is built in a temporary directory and published by a rename, so it is never visible half-done.
// The directory is locked meanwhile: an unlocked one was left by a killed process.
#include "snapshot.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "analysis/source.h"
#include "common/format/sanitize.h"
#include "common/json/json_read.h"
#include "copy.h"
#include "recording/recording.h"

namespace forktail::live::snapshot
{

namespace
{

namespace fs = std::filesystem;

constexpr char kBegun[] = ".forktail-snapshot-";

// The unpublished directory.
struct Unpublished {
	std::string path;
	int fd = -1;
	bool done = false;
	~Unpublished()
	{
		std::error_code ec;
		if (!path.empty() && !done)
			fs::remove_all(path, ec);
		if (fd >= 0)
			close(fd);
	}
};

// Converts an errno to the result and a sentence.
SnapshotWhy Fail(const std::string &what, int error, std::string *text)
{
	*text = what + ": " + std::strerror(error);
	return error == ENOSPC || error == EDQUOT ? SnapshotWhy::DiskFull : SnapshotWhy::Cant;
}

// Removes the directories that killed processes left in the parent.
void RemoveUnfinished(const fs::path &parent)
{
	std::error_code ec;
	std::vector<std::string> found;
	for (fs::directory_iterator each(parent, ec); !ec && each != fs::directory_iterator();
	     each.increment(ec))
		if (each->path().filename().string().starts_with(kBegun))
			found.push_back(each->path().string());
	for (const std::string &path : found) {
		int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		struct stat st;
		if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
			fs::remove_all(path, ec);
		close(fd);
	}
}

SnapshotWhy Begin(const std::string &out, Unpublished *unpublished, std::string *error)
{
	struct stat st;
	if (lstat(out.c_str(), &st) == 0) {
		*error = out + " exists. Name a new directory for the snapshot.";
		return SnapshotWhy::Exists;
	}
	fs::path whole(out);
	if (!whole.has_filename()) // "RUN/"
		whole = whole.parent_path();
	const fs::path parent = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
	RemoveUnfinished(parent);
	std::string path = parent.string() + "/" + kBegun + "XXXXXX";
	if (!mkdtemp(path.data()))
		return Fail("cannot create " + out, errno, error);
	unpublished->path = path;
	unpublished->fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (unpublished->fd < 0 || flock(unpublished->fd, LOCK_EX | LOCK_NB))
		return Fail("cannot create " + out, errno, error);
	ft_give_to_caller(unpublished->fd);
	return SnapshotWhy::Done;
}

// 0 or an errno; ENOENT: the segment was evicted, ENODATA: it is still empty.
int TakeSegment(const std::string &from, const std::string &to, SnapshotResult *taken)
{
	const int fd = open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno;
	const bool written = analysis::BeingWritten(fd);
	close(fd);
	bool linked = false;
	if (int rc = written ? SealedCopy(from, to) : LinkOrCopy(from, to, &linked))
		return rc;
	struct stat st;
	taken->bytes += stat(to.c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
	taken->segments++;
	taken->copied += !linked;
	return 0;
}

SnapshotWhy TakeSegments(const SnapshotRequest &asked, analysis::Ring *ring, const std::string &to,
			 SnapshotResult *taken, std::string *last, std::string *error)
{
	for (size_t i = 0; i < ring->size(); i++) {
		const std::string &from = ring->path(i);
		const std::string copy = (fs::path(to) / fs::path(from).filename()).string();
		const int rc = TakeSegment(from, copy, taken);
		if (rc == ENOENT || rc == ENODATA) { // evicted meanwhile, or just begun
			unlink(copy.c_str());
			continue;
		}
		if (rc)
			return Fail("cannot save " + from + " in " + asked.out, rc, error);
		if (!taken->from_ns)
			taken->from_ns = analysis::ReadHead(copy).start_ns;
		*last = copy;
	}
	if (taken->segments)
		return SnapshotWhy::Done;
	*error = "the recorder evicted all segments of that time from " + asked.ring + " during the snapshot";
	return SnapshotWhy::Nothing;
}

uint64_t ByClock(const std::vector<ft_clock> &clocks, uint64_t t_ns)
{
	return clocks.empty() ? 0 : clocks.back().realtime_ns + (t_ns - clocks.back().monotonic_ns);
}

// A new file in the snapshot, for the same user as its segments.
bool WriteFile(const std::string &path, const std::string &text)
{
	std::ofstream file(path, std::ios::binary);
	file << text;
	file.close();
	if (!file)
		return false;
	if (int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW); fd >= 0) {
		fchmod(fd, 0600);
		ft_give_to_caller(fd);
		close(fd);
	}
	return true;
}

// Writes run.json: source, time and reason of the snapshot.
bool WriteRunJson(const SnapshotRequest &asked, const SnapshotResult &taken, const std::string &boot,
		  const std::vector<ft_clock> &clocks, const std::string &to)
{
	std::error_code ec;
	ft_clock now = {};
	ft_clock_read(&now);
	const common::Json json = {{"program", "forktail"},
				   {"version", FORKTAIL_VERSION},
				   {"snapshot",
				    {{"ring", fs::absolute(asked.ring, ec).lexically_normal().string()},
				     {"why", asked.why},
				     {"boot_id", boot},
				     {"from_ns", taken.from_ns},
				     {"to_ns", taken.to_ns},
				     {"from_realtime_ns", ByClock(clocks, taken.from_ns)},
				     {"to_realtime_ns", ByClock(clocks, taken.to_ns)},
				     {"taken_realtime_ns", now.realtime_ns},
				     {"segments", taken.segments}}}};
	return WriteFile(to + "/run.json",
			 json.dump(2, ' ', false, common::Json::error_handler_t::replace) + "\n");
}

// Publishes the directory, unless its name is taken by now.
SnapshotWhy Publish(const SnapshotRequest &asked, Unpublished *unpublished, std::string *error)
{
	int rc =
	    renameat2(AT_FDCWD, unpublished->path.c_str(), AT_FDCWD, asked.out.c_str(), RENAME_NOREPLACE);
	if (rc && (errno == EINVAL ||
		   errno == ENOSYS)) // the file system lacks RENAME_NOREPLACE; rename does not replace
		rc = rename(unpublished->path.c_str(), asked.out.c_str()); // a directory that is not empty
	const int failed = rc ? errno : 0;
	unpublished->done = !failed;
	if (!failed)
		return SnapshotWhy::Done;
	const SnapshotWhy why = Fail("cannot create " + asked.out, failed, error);
	return failed == EEXIST || failed == ENOTEMPTY ? SnapshotWhy::Exists : why;
}

// Restricts the ring to the requested time.
SnapshotWhy FindTime(const SnapshotRequest &asked, analysis::Ring *ring, std::string *error)
{
	if (!analysis::FindRing(asked.ring, ring, error))
		return SnapshotWhy::NoRing;
	ring->LeaveNewestBoot();
	uint64_t start_ns = 0, end_ns = 0;
	const std::string newest = ring->path(ring->size() - 1);
	ring->Leave(ring->Reaching(asked.from_ns, asked.to_ns));
	if (asked.from_ns <= asked.to_ns && ring->size() &&
	    (ring->path(ring->size() - 1) != newest || ring->size() > 1 ||
	     (analysis::TimeOfBlocks(newest, 0, &start_ns, &end_ns, nullptr) && end_ns >= asked.from_ns)))
		return SnapshotWhy::Done;
	*error = asked.ring + " has no data of that time";
	return SnapshotWhy::Nothing;
}

} // namespace

SnapshotWhy TakeSnapshot(const SnapshotRequest &asked, SnapshotResult *taken, std::string *error)
{
	SnapshotResult unasked;
	taken = taken ? taken : &unasked;
	*taken = SnapshotResult();
	analysis::Ring ring;
	Unpublished unpublished;
	std::string last;
	SnapshotWhy why = FindTime(asked, &ring, error);
	if (why == SnapshotWhy::Done)
		why = Begin(asked.out, &unpublished, error);
	if (why == SnapshotWhy::Done)
		why = TakeSegments(asked, &ring, unpublished.path, taken, &last, error);
	if (why != SnapshotWhy::Done)
		return why;
	std::vector<ft_clock> clocks;
	uint64_t start_ns = 0;
	analysis::TimeOfBlocks(last, 0, &start_ns, &taken->to_ns, &clocks);
	taken->to_ns = std::max(taken->to_ns, taken->from_ns);
	const std::string marks = analysis::ReadMarks(asked.ring);
	if ((!marks.empty() && !WriteFile(analysis::MarksPath(unpublished.path), marks)) ||
	    !WriteRunJson(asked, *taken, analysis::ReadHead(last).boot_id, clocks, unpublished.path))
		return Fail("cannot write " + asked.out, errno ? errno : ENOSPC, error);
	for (const auto &[name, text] : asked.files)
		if (!WriteFile(unpublished.path + "/" + name, text))
			return Fail("cannot write " + asked.out, errno ? errno : ENOSPC, error);
	return Publish(asked, &unpublished, error);
}

} // namespace forktail::live::snapshot
