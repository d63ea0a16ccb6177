// SPDX-License-Identifier: MIT
// Segments are numbered in the order of their start, so any is found by binary search.
#include "ring.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <sys/file.h>

#include "common/format/sanitize.h"
#include "common/json/json_read.h"
#include "read_blocks.h"

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

} // namespace forktail::analysis
