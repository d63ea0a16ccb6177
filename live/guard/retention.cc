// SPDX-License-Identifier: MIT
// See retention.h.
#include "retention.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace forktail::live::guard
{
namespace
{

constexpr size_t kMostName = 100;
constexpr char kTime[] = "00000000T000000Z-";

bool IsSnapshotName(const std::string &name)
{
	for (size_t i = 0; i < sizeof(kTime) - 1; i++)
		if (i >= name.size() ||
		    (kTime[i] == '0' ? !isdigit(static_cast<unsigned char>(name[i])) : name[i] != kTime[i]))
			return false;
	return true;
}

uint64_t BytesIn(const std::filesystem::path &directory)
{
	std::error_code ec;
	uint64_t bytes = 0;
	for (const auto &entry : std::filesystem::directory_iterator(directory, ec))
		if (const uint64_t size = entry.is_regular_file(ec) ? entry.file_size(ec) : 0; !ec)
			bytes += size;
	return bytes;
}

} // namespace

std::string SnapshotName(uint64_t realtime_ns, const Fired &first)
{
	const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
	char when[32] = "";
	struct tm utc = {};
	gmtime_r(&seconds, &utc);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &utc);
	std::string name = when;
	for (const std::string &part : {first.server, first.trigger})
		if (!part.empty())
			name += "-" + part;
	std::string out;
	for (const char c : name)
		if (isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.')
			out += c;
		else if (out.back() != '-')
			out += '-';
	return out.substr(0, kMostName);
}

std::vector<Kept> SnapshotsIn(const std::string &directory)
{
	std::vector<Kept> kept;
	std::error_code ec;
	for (const auto &entry : std::filesystem::directory_iterator(directory, ec))
		if (IsSnapshotName(entry.path().filename()) && !entry.is_symlink(ec) &&
		    entry.is_directory(ec))
			kept.push_back({entry.path().filename(), BytesIn(entry.path())});
	std::sort(kept.begin(), kept.end(), [](const Kept &a, const Kept &b) { return a.name < b.name; });
	return kept;
}

size_t MakeRoom(const std::string &directory, uint64_t count, uint64_t bytes, const std::string &keep)
{
	std::vector<Kept> kept = SnapshotsIn(directory);
	size_t left = kept.size(), gone = 0;
	uint64_t total = 0;
	for (const Kept &k : kept)
		total += k.bytes;
	for (const Kept &k : kept) {
		if (left <= count && total <= bytes)
			break;
		std::error_code ec;
		if (k.name == keep)
			continue;
		std::filesystem::remove_all(directory + "/" + k.name, ec);
		left--;
		total -= k.bytes;
		gone += !ec;
	}
	return gone;
}

} // namespace forktail::live::guard
