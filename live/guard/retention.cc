// SPDX-License-Identifier: MIT
// See retention.h.
#include "retention.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "common/files/regular.h"
#include "common/json/json_read.h"

namespace forktail::live::guard
{
namespace
{

constexpr size_t kMostName = 100;
constexpr size_t kMostMarker = 1 << 20; // bytes

// The marker of a snapshot; an empty object: none.
common::Json MarkerIn(const std::filesystem::path &snapshot)
{
	std::string text;
	return common::ReadRegular(snapshot / kMarker, kMostMarker, &text) ? common::ParseObject(text)
									   : common::Json::object();
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

std::string SnapshotName(uint64_t realtime_ns, const Firing &first)
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

std::vector<SavedSnapshot> SnapshotsIn(const std::string &directory)
{
	std::vector<SavedSnapshot> saved;
	std::error_code ec;
	for (const auto &entry : std::filesystem::directory_iterator(directory, ec)) {
		if (entry.is_symlink(ec) || !entry.is_directory(ec))
			continue;
		const std::string name = entry.path().filename();
		const common::Json marker = MarkerIn(entry.path());
		if (const uint64_t number = common::Whole(marker, "number");
		    number && common::Text(marker, "name") == name)
			saved.push_back({name, number, BytesIn(entry.path()),
					 std::filesystem::exists(entry.path() / kKeepFile, ec)});
	}
	std::ranges::sort(saved, {}, &SavedSnapshot::number);
	return saved;
}

uint64_t NextNumber(const std::string &directory)
{
	const std::vector<SavedSnapshot> saved = SnapshotsIn(directory);
	return saved.empty() ? 1 : saved.back().number + 1;
}

size_t MakeRoom(const std::string &directory, uint64_t count, uint64_t bytes, const std::string &keep)
{
	std::vector<SavedSnapshot> saved = SnapshotsIn(directory);
	std::erase_if(saved, [](const SavedSnapshot &s) { return s.kept; });
	size_t left = saved.size(), gone = 0;
	uint64_t total = 0;
	for (const SavedSnapshot &k : saved)
		total += k.bytes;
	for (const SavedSnapshot &k : saved) {
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
