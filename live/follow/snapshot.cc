// SPDX-License-Identifier: MIT
// Saves a part of a ring.
//
// A snapshot is built in a temporary directory and published by a rename, so it is never visible half-done.
// The directory is locked meanwhile: an unlocked one was left by a killed process.
#include "live/snapshot.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "analysis/source.h"
#include "common/json.h"
#include "recording/recording.h"

namespace forktail::live::snapshot
{

// Links or copies a segment.

// Links or copies a complete file. Returns 0 or an errno; *linked: it is a hard link.
int LinkOrCopy(const std::string &from, const std::string &to, bool *linked);

// Copies the complete blocks of a recording that is being written, and seals the copy. Returns 0 or an errno;
// ENODATA: no complete block yet.
int SealedCopy(const std::string &from, const std::string &to);

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

// A hard link is free but needs the same file system and owner; a copy always works.

namespace
{

struct Closes {
	int fd;
	~Closes()
	{
		if (fd >= 0)
			close(fd);
	}
};

int WriteAll(int fd, const char *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, data, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		data += n;
		bytes -= static_cast<size_t>(n);
	}
	return 0;
}

int Copy(const std::string &from, const std::string &to)
{
	Closes in{open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
	if (in.fd < 0)
		return errno;
	Closes out{open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
	if (out.fd < 0)
		return errno;
	ft_give_to_caller(out.fd);
	std::vector<char> buffer(1 << 18);
	for (;;) {
		ssize_t n = read(in.fd, buffer.data(), buffer.size());
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			break;
		if (int rc = WriteAll(out.fd, buffer.data(), static_cast<size_t>(n)))
			return rc;
	}
	const int fd = std::exchange(out.fd, -1);
	return close(fd) ? errno : 0; // network file systems report a full disk here
}

struct EndReading {
	void operator()(ft_reader *r) const { ft_reader_close(r); }
};

// The latest time of any record in the file.
uint64_t LastInstant(ft_reader *reader)
{
	ft_places places;
	uint64_t last_ns = 0;
	if (ft_reader_places(reader, true, &places, nullptr, nullptr))
		return 0;
	for (size_t i = 0; i < places.count; i++)
		last_ns = std::max(last_ns, places.all[i].end_ns);
	ft_places_free(&places);
	return last_ns;
}

} // namespace

int LinkOrCopy(const std::string &from, const std::string &to, bool *linked)
{
	*linked = link(from.c_str(), to.c_str()) == 0;
	if (*linked)
		return 0;
	if (errno == ENOENT || errno == ENOSPC || errno == EDQUOT || errno == EEXIST)
		return errno;
	return Copy(from, to); // another file system, one without links, or another owner
}

int SealedCopy(const std::string &from, const std::string &to)
{
	char message[512];
	ft_reader *opened = nullptr;
	if (int rc = ft_reader_open(&opened, from.c_str(), message, sizeof message))
		return -rc;
	std::unique_ptr<ft_reader, EndReading> reader(opened);
	const uint64_t last_ns = LastInstant(reader.get());
	ft_block block;
	if (ft_reader_next(reader.get(), &block) != 1 || block.kind != FT_BLOCK_MANIFEST)
		return ENODATA;
	const std::string manifest(static_cast<const char *>(block.payload), block.bytes);
	ft_writer *writer = nullptr;
	if (int rc = ft_writer_open(&writer, to.c_str(), manifest.c_str()))
		return -rc;
	int rc = 0;
	while (!rc && ft_reader_next(reader.get(), &block) == 1)
		rc = ft_writer_block(writer, static_cast<ft_block_kind>(block.kind), block.record_size,
				     block.count, block.payload, block.bytes);
	const std::string summary = "{\"reason\":\"snapshot\",\"end_ns\":" + std::to_string(last_ns) + "}";
	const int closed = ft_writer_close(writer, summary.c_str());
	return rc ? -rc : -closed;
}

} // namespace forktail::live::snapshot
