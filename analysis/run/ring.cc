// SPDX-License-Identifier: MIT
// The segments of a ring, and marks of users.
//
// Segments are numbered in the order of their start, so any is found by binary search.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/source.h"
#include "common/format.h"
#include "common/json.h"
#include "common/text.h"
#include "read_blocks.h"
#include "recording/recording.h"

namespace forktail::analysis
{

namespace
{

namespace fs = std::filesystem;

std::unique_ptr<ft_reader, CloseReader> OpenReader(const std::string &path)
{
	char message[512];
	ft_reader *reader = nullptr;
	ft_reader_open(&reader, path.c_str(), message, sizeof message);
	return std::unique_ptr<ft_reader, CloseReader>(reader);
}

} // namespace

SegmentHead ReadHead(const std::string &path)
{
	SegmentHead head;
	ft_block block;
	auto reader = OpenReader(path);
	if (!reader || ft_reader_next(reader.get(), &block) != 1 || block.kind != FT_BLOCK_MANIFEST)
		return head;
	const common::Json manifest = common::ParseVisibleObject(PayloadText(block));
	head.start_ns = common::Whole(manifest, "start_ns");
	head.boot_id = common::Text(manifest, "boot_id");
	head.has_requests = common::Member(manifest, "requests") != nullptr;
	head.known = head.start_ns != 0;
	return head;
}

bool IsSegment(const std::string &path)
{
	constexpr char begin[] = "segment-", end[] = ".forktail";
	const std::string name = fs::path(path).filename().string();
	if (!name.starts_with(begin) || !name.ends_with(end))
		return false;
	const std::string number =
	    name.substr(sizeof begin - 1, name.size() - (sizeof begin - 1) - (sizeof end - 1));
	return !number.empty() && std::all_of(number.begin(), number.end(),
					      [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool BeingWritten(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK;
	flock(fd, LOCK_UN);
	return false;
}

Ring::Ring(std::vector<std::string> paths)
{
	std::erase_if(paths, [](const std::string &path) { return !IsSegment(path); });
	// By number, independent of the number of digits.
	std::sort(paths.begin(), paths.end(), [](const std::string &a, const std::string &b) {
		return a.size() != b.size() ? a.size() < b.size() : a < b;
	});
	for (std::string &path : paths)
		segments_.push_back({std::move(path), {}});
}

const SegmentHead &Ring::Head(size_t i)
{
	Segment &s = segments_[i];
	if (!s.head)
		s.head = ReadHead(s.path);
	return *s.head;
}

size_t Ring::LeaveNewestBoot()
{
	size_t newest = size();
	while (newest > 0 && !Head(newest - 1).known)
		newest--;
	if (!newest)
		return 0;
	const std::string boot = Head(newest - 1).boot_id;
	// An unreadable segment belongs to the boot of the next readable one.
	size_t low = 0, high = newest - 1;
	while (low < high) {
		size_t middle = low + (high - low) / 2, at = middle;
		while (at < high && !Head(at).known)
			at++;
		if (at == high || Head(at).boot_id == boot)
			high = middle;
		else
			low = at + 1;
	}
	segments_.erase(segments_.begin(), segments_.begin() + static_cast<ptrdiff_t>(low));
	return low;
}

// The first segment that begins after an instant.
size_t Ring::FirstAfter(uint64_t t_ns)
{
	size_t low = 0, high = size();
	while (low < high) {
		size_t middle = low + (high - low) / 2, at = middle;
		while (at < high && !Head(at).known)
			at++;
		if (at == high || Head(at).start_ns > t_ns)
			high = middle;
		else
			low = at + 1;
	}
	return low;
}

std::pair<size_t, size_t> Ring::Reaching(uint64_t from_ns, uint64_t to_ns)
{
	const size_t first = FirstAfter(from_ns);
	return {first ? first - 1 : 0, FirstAfter(to_ns)};
}

void Ring::Leave(std::pair<size_t, size_t> range)
{
	segments_.erase(segments_.begin() + static_cast<ptrdiff_t>(range.second), segments_.end());
	segments_.erase(segments_.begin(), segments_.begin() + static_cast<ptrdiff_t>(range.first));
}

bool FindRing(const std::string &directory, Ring *ring, std::string *error)
{
	std::vector<std::string> paths;
	std::error_code ec;
	fs::directory_iterator entries(directory, ec);
	for (; !ec && entries != fs::directory_iterator(); entries.increment(ec))
		paths.push_back(entries->path().string());
	if (ec) {
		*error = ec == std::errc::no_such_file_or_directory
			     ? directory + " does not exist"
			     : "cannot list " + directory + ": " + ec.message();
		return false;
	}
	*ring = Ring(std::move(paths));
	if (ring->size())
		return true;
	*error = directory + " holds no ring (segment-*.forktail). forktail record --keep writes one";
	return false;
}

bool TimeOfBlocks(const std::string &path, uint32_t kind, uint64_t *start_ns, uint64_t *end_ns,
		  std::vector<ft_clock> *clocks)
{
	auto reader = OpenReader(path);
	ft_places places;
	if (!reader || ft_reader_places(reader.get(), false, &places, nullptr, nullptr))
		return false;
	*start_ns = UINT64_MAX;
	*end_ns = 0;
	for (size_t i = 0; i < places.count; i++) {
		const ft_place &p = places.all[i];
		ft_block block;
		if (p.end_ns && (!kind || p.kind == kind)) {
			*start_ns = std::min(*start_ns, p.start_ns);
			*end_ns = std::max(*end_ns, p.end_ns);
		}
		if (!clocks || p.kind != FT_BLOCK_CLOCK || ft_reader_read(reader.get(), &p, &block) != 1)
			continue;
		for (uint32_t k = 0; k < block.count; k++) {
			clocks->emplace_back();
			ft_block_record(&block, k, &clocks->back(), sizeof(ft_clock));
		}
	}
	ft_places_free(&places);
	return *end_ns != 0;
}

namespace
{

constexpr off_t kMost = 1 << 20;
constexpr size_t kLongest = 200; // bytes of a mark's text that are kept

// A closed descriptor is -1. Only a regular file with one name: the directory may belong to another user.
int OpenMarks(const std::string &path, int flags)
{
	const int fd = open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
	struct stat st;
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1)) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

// False: not a mark.
bool ParseMark(const std::string &line, DatedMark *mark)
{
	const char *rest = line.c_str();
	double seconds;
	if (!parse_number(&rest, &seconds) || *rest != ' ' || seconds >= 1e10)
		return false;
	mark->realtime_ns = static_cast<uint64_t>(std::llround(seconds * 1e9));
	mark->text = common::Visible(std::string(rest + 1).substr(0, kLongest));
	return !mark->text.empty();
}

} // namespace

std::string MarksPath(const std::string &run)
{
	std::error_code ec;
	return std::filesystem::is_directory(run, ec) ? run + "/marks" : run + ".marks";
}

std::string ReadMarks(const std::string &run)
{
	const int fd = OpenMarks(MarksPath(run), O_RDONLY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return "";
	}
	const off_t from = std::max<off_t>(0, st.st_size - kMost);
	std::string text(static_cast<size_t>(st.st_size - from), '\0');
	const ssize_t n = pread(fd, text.data(), text.size(), from);
	close(fd);
	text.resize(n > 0 ? static_cast<size_t>(n) : 0);
	if (from) // in the middle of a line
		text.erase(0, std::min(text.size(), text.find('\n') + 1));
	return text;
}

bool AddMark(const std::string &run, uint64_t realtime_ns, const std::string &text, std::string *error)
{
	const std::string path = MarksPath(run);
	const int fd = OpenMarks(path, O_WRONLY | O_APPEND | O_CREAT);
	*error = "cannot write " + path + ": " + std::strerror(errno);
	if (fd < 0)
		return false;
	ft_clock now = {};
	ft_clock_read(&now);
	realtime_ns = realtime_ns ? realtime_ns : now.realtime_ns;
	char seconds[32];
	snprintf(seconds, sizeof seconds, "%llu.%09llu",
		 static_cast<unsigned long long>(realtime_ns / 1'000'000'000),
		 static_cast<unsigned long long>(realtime_ns % 1'000'000'000));
	const std::string line = std::string(seconds) + " " + text + "\n";
	const ssize_t n = write(fd, line.data(), line.size()); // at once: other programs append too
	if (n != static_cast<ssize_t>(line.size()))
		*error = "cannot write " + path + ": " + std::strerror(n < 0 ? errno : ENOSPC);
	ft_give_to_caller(fd);
	close(fd);
	return n == static_cast<ssize_t>(line.size());
}

std::vector<DatedMark> MarksIn(const std::string &file_text, size_t *ignored)
{
	std::istringstream lines(file_text);
	std::vector<DatedMark> marks;
	*ignored = 0;
	DatedMark mark;
	for (std::string line; std::getline(lines, line);)
		if (ParseMark(line, &mark))
			marks.push_back(mark);
		else
			*ignored += !line.empty();
	return marks;
}

void FindMarks(Run *run)
{
	constexpr uint64_t before_ns = 60'000'000'000;
	size_t ignored = 0;
	for (DatedMark &mark : MarksIn(ReadMarks(run->path), &ignored)) {
		const uint64_t t_ns = MonotonicNs(*run, mark.realtime_ns);
		if (t_ns && t_ns + before_ns >= run->start_ns && t_ns <= run->end_ns)
			run->marks.push_back({t_ns, std::move(mark.text), false});
	}
	std::stable_sort(run->marks.begin(), run->marks.end(),
			 [](const Mark &a, const Mark &b) { return a.t_ns < b.t_ns; });
	if (ignored)
		run->warnings.push_back(common::Plural(ignored, "line of ", "lines of ") +
					common::Visible(MarksPath(run->path)) +
					(ignored == 1 ? " is no mark" : " are no marks") +
					" (seconds since 1970, a space, a text)");
}

} // namespace forktail::analysis
