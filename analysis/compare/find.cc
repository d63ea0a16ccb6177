// SPDX-License-Identifier: MIT
// Finds the runs of a side, in the order in which they are paired.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "compare.h"

namespace forktail::analysis::compare
{

namespace
{

namespace fs = std::filesystem;

// Natural order: "pair-9" before "pair-10".
bool Before(const std::string &a, const std::string &b)
{
	size_t i = 0, j = 0;
	auto digit = [](char c) { return isdigit(static_cast<unsigned char>(c)) != 0; };
	while (i < a.size() && j < b.size()) {
		if (!digit(a[i]) || !digit(b[j])) {
			if (a[i] != b[j])
				return a[i] < b[j];
			i++, j++;
			continue;
		}
		size_t from_a = a.find_first_not_of('0', i), from_b = b.find_first_not_of('0', j);
		for (from_a = std::min(from_a, a.size()), i = from_a; i < a.size() && digit(a[i]);)
			i++;
		for (from_b = std::min(from_b, b.size()), j = from_b; j < b.size() && digit(b[j]);)
			j++;
		if (i - from_a != j - from_b)
			return i - from_a < j - from_b;
		if (int order = a.compare(from_a, i - from_a, b, from_b, j - from_b))
			return order < 0;
	}
	return a.size() - i < b.size() - j;
}

bool HoldsRecordings(const fs::path &directory)
{
	std::error_code ec;
	for (const auto &entry : fs::directory_iterator(directory, ec))
		if (entry.path().extension() == ".forktail" && entry.is_regular_file(ec))
			return true;
	return false;
}

// The runs at or below a directory. Directories within a run belong to it.
void RunsBelow(const fs::path &directory, int depth, std::vector<std::string> *runs)
{
	if (HoldsRecordings(directory)) {
		runs->push_back(directory);
		return;
	}
	std::error_code ec;
	for (const auto &entry : fs::directory_iterator(directory, ec))
		if (depth > 0 && entry.is_directory(ec) && !entry.is_symlink(ec))
			RunsBelow(entry.path(), depth - 1, runs);
}

} // namespace

bool FindRuns(const std::string &given, std::vector<std::string> *runs, std::string *error)
{
	constexpr int kDepth = 4; // as deep as the lab's directories
	std::error_code ec;
	runs->clear();
	if (!fs::exists(given, ec)) {
		*error = given + " does not exist";
		return false;
	}
	if (!fs::is_directory(given, ec) || HoldsRecordings(given)) {
		runs->push_back(given);
		return true;
	}
	for (const auto &entry : fs::directory_iterator(given, ec)) {
		std::vector<std::string> below;
		if (entry.is_directory(ec))
			RunsBelow(entry.path(), kDepth, &below);
		if (below.size() > 1) {
			*error = entry.path().string() + " holds " + std::to_string(below.size()) +
				 " runs. Name the run to compare";
			return false;
		}
		runs->insert(runs->end(), below.begin(), below.end());
	}
	std::sort(runs->begin(), runs->end(), Before);
	if (!runs->empty())
		return true;
	*error = given + " and its directories hold no recording (*.forktail)";
	return false;
}

} // namespace forktail::analysis::compare
