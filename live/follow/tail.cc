// SPDX-License-Identifier: MIT
// Reads segment after segment by number. The name of the next one is known, so the directory of a large ring
// is not listed at every poll. It is listed at the start, and if the next segment is missing for some time.
#include "state.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"

namespace forktail::live
{

namespace
{

constexpr uint64_t kListEveryNs = 5'000'000'000;
constexpr uint64_t kTimesOfWork = 500; // listing the directory takes at most 1/500 of the time

bool SegmentNumber(const char *name, uint64_t *number)
{
	int end = 0;
	return sscanf(name, "segment-%20" SCNu64 ".forktail%n", number, &end) == 1 && end > 0 &&
	       name[end] == 0;
}

// Start time of a recording from its manifest; 0 if it has none yet.
uint64_t BeganNs(const std::string &path)
{
	ft_reader *reader = nullptr;
	char error[512];
	ft_block block;
	uint64_t start_ns = 0;
	if (ft_reader_open(&reader, path.c_str(), error, sizeof error))
		return 0;
	if (ft_reader_next(reader, &block) == 1 && block.kind == FT_BLOCK_MANIFEST)
		start_ns = common::Whole(
		    common::ParseObject(std::string(static_cast<const char *>(block.payload), block.bytes)),
		    "start_ns");
	ft_reader_close(reader);
	return start_ns;
}

} // namespace

std::string Tail::SegmentPath(uint64_t number) const
{
	char name[64];
	snprintf(name, sizeof name, "/segment-%010" PRIu64 ".forktail", number);
	return path_ + name;
}

// Numbers of the existing segments, in order.
std::vector<uint64_t> Tail::List()
{
	uint64_t began_ns = ft_now_ns();
	std::vector<uint64_t> numbers;
	if (DIR *dir = opendir(path_.c_str())) {
		uint64_t number;
		while (const dirent *entry = readdir(dir))
			if (SegmentNumber(entry->d_name, &number))
				numbers.push_back(number);
		closedir(dir);
	}
	std::sort(numbers.begin(), numbers.end());
	listed_ns_ = ft_now_ns();
	pause_ns_ = std::max(kListEveryNs, kTimesOfWork * (listed_ns_ - began_ns));
	return numbers;
}

Tail::OnDisk Tail::Look()
{
	uint64_t now_ns = ft_now_ns();
	struct stat st;
	if (looked_ns_ && now_ns - looked_ns_ < std::max(kListEveryNs, pause_ns_))
		return on_disk_;
	if (!ring_) {
		looked_ns_ = now_ns;
		on_disk_ = {};
		if (reader_ && stat(path_.c_str(), &st) == 0)
			on_disk_ = {static_cast<uint64_t>(st.st_size), BeganNs(path_), 1};
		return on_disk_;
	}
	OnDisk seen;
	std::vector<uint64_t> numbers = List();
	for (uint64_t number : numbers)
		if (stat(SegmentPath(number).c_str(), &st) == 0)
			seen.bytes += static_cast<uint64_t>(st.st_size);
	seen.segments = static_cast<uint32_t>(numbers.size());
	seen.oldest_ns = on_disk_.oldest_ns;
	if (!numbers.empty() && (numbers[0] != oldest_number_ || !seen.oldest_ns)) {
		seen.oldest_ns = BeganNs(SegmentPath(numbers[0]));
		oldest_number_ = numbers[0];
	}
	looked_ns_ = ft_now_ns();
	pause_ns_ = std::max(kListEveryNs, kTimesOfWork * (looked_ns_ - now_ns));
	return on_disk_ = seen;
}

// Opens the file as the current one. False: it has no complete block yet, or cannot be read.
bool Tail::Open(const std::string &path, std::string *error)
{
	ft_reader *reader = nullptr;
	char text[512] = "";
	int rc = ft_reader_open(&reader, path.c_str(), text, sizeof text);
	if (rc) {
		*error = rc == -ENODATA ? "" : text;
		return false;
	}
	if (reader_) {
		ft_damage damage;
		ft_reader_damage(reader_, &damage);
		damaged_ += damage.blocks_missing;
		ft_reader_close(reader_);
	}
	reader_ = reader;
	at_end_ = false;
	return true;
}

bool Tail::BeginRing(std::string *error)
{
	std::vector<uint64_t> numbers = List();
	if (numbers.empty())
		return false;
	size_t at = numbers.size() - 1;
	if (from_ns_) {
		// Back to the segment that contains from_ns. Earlier segments with a later time are from
		// another boot.
		uint64_t later_ns = BeganNs(SegmentPath(numbers[at]));
		while (at > 0 && (later_ns == 0 || later_ns > from_ns_)) {
			uint64_t began_ns = BeganNs(SegmentPath(numbers[at - 1]));
			if (later_ns && began_ns > later_ns)
				break;
			later_ns = began_ns ? began_ns : later_ns;
			at--;
		}
	}
	// The newest segment may not have a complete block yet.
	for (;; at--) {
		if (Open(SegmentPath(numbers[at]), error)) {
			number_ = numbers[at];
			return true;
		}
		if (at == 0 || from_ns_)
			return false;
	}
}

bool Tail::Begin(std::string *error)
{
	struct stat st;
	if (stat(path_.c_str(), &st)) {
		*error = "cannot read " + path_ + ": " + strerror(errno);
		return false;
	}
	ring_ = S_ISDIR(st.st_mode);
	if (!ring_)
		return Open(path_, error);
	if (access(path_.c_str(), R_OK | X_OK)) {
		*error = "cannot read " + path_ + ": " + strerror(errno);
		return false;
	}
	return BeginRing(error);
}

// Opens the segment after the current one.
bool Tail::OpenNext()
{
	std::string unreadable;
	if (!Open(SegmentPath(number_ + 1), &unreadable))
		return false;
	number_++;
	return true;
}

// Opens the first later segment that exists; or the newest, if the ring was emptied and numbering restarted.
bool Tail::OpenLater()
{
	if (ft_now_ns() - listed_ns_ < std::max(kListEveryNs, pause_ns_))
		return false;
	std::vector<uint64_t> numbers = List();
	if (numbers.empty() || numbers.back() == number_)
		return false;
	auto next = std::upper_bound(numbers.begin(), numbers.end(), number_);
	uint64_t number = next == numbers.end() ? numbers.back() : *next;
	std::string unreadable;
	if (!Open(SegmentPath(number), &unreadable))
		return false;
	number_ = number;
	return true;
}

Tail::Got Tail::Next(ft_block *block, std::string *error)
{
	error->clear();
	if (!reader_ && !Begin(error))
		return error->empty() ? Got::Nothing : Got::Failed;
	// A killed recorder does not seal its segment. If a next segment exists, this one is complete; data
	// written between the two checks is read first.
	for (int looks = 0; looks < 2; looks++) {
		int rc = ft_reader_follow(reader_, block);
		if (rc == 1)
			return at_end_ = false, Got::Block;
		if (rc < 0 && rc != -ESTALE) {
			*error = "cannot read " + path_ + ": " + strerror(-rc);
			return Got::Failed;
		}
		struct stat st;
		bool next = ring_ && stat(SegmentPath(number_ + 1).c_str(), &st) == 0;
		if (!next) {
			at_end_ = true;
			if (!ring_ || !OpenLater())
				return Got::Nothing;
			looks = 0;
			continue;
		}
		if (looks == 0 && !ft_reader_sealed(reader_))
			continue;
		if (!OpenNext())
			return at_end_ = true, Got::Nothing;
		looks = -1;
	}
	return Got::Nothing;
}

} // namespace forktail::live
