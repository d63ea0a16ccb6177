// SPDX-License-Identifier: MIT
// See progress.h. Percentiles of several load generators cannot be merged, so the worst is printed; explain
// computes the total from their logs.
#include "progress.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace forktail::hosts
{
namespace
{

double NumberAfter(const std::string &line, const char *word)
{
	const size_t at = line.find(word);
	return at == std::string::npos ? 0 : strtod(line.c_str() + at + std::string(word).size(), nullptr);
}

std::string Grouped(uint64_t number)
{
	std::string text = std::to_string(number);
	for (size_t at = text.size(); at > 3; at -= 3)
		text.insert(at - 3, 1, ',');
	return text;
}

} // namespace

bool ReadProgress(const std::string &line, LoadSecond *second)
{
	const size_t rate = line.find("/s  "), before = line.rfind("  ", rate);
	if (rate == std::string::npos || before == std::string::npos)
		return false;
	std::string digits = line.substr(before + 2, rate - before - 2);
	digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
	const size_t elapsed = line.rfind("  ", before - 1);
	if (digits.empty() || elapsed == std::string::npos)
		return false;
	second->per_second = strtod(digits.c_str(), nullptr);
	second->elapsed_s = strtod(line.c_str() + elapsed, nullptr);
	second->p99_ms = NumberAfter(line, "p99 ");
	second->max_ms = NumberAfter(line, "max ");
	second->errors = static_cast<uint64_t>(NumberAfter(line, "errors "));
	return true;
}

std::string MergedProgress(const std::map<std::string, LoadSecond> &loads)
{
	LoadSecond all;
	std::string worst;
	for (const auto &[name, one] : loads) {
		all.elapsed_s = std::max(all.elapsed_s, one.elapsed_s);
		all.per_second += one.per_second;
		all.max_ms = std::max(all.max_ms, one.max_ms);
		all.errors += one.errors;
		if (!worst.empty() && one.p99_ms <= all.p99_ms)
			continue;
		all.p99_ms = one.p99_ms;
		worst = name.substr(0, name.find('/'));
	}
	char text[256];
	snprintf(text, sizeof(text),
		 "%.0f s  %s/s from %zu load%s  worst p99 %.3f ms (%s)  max %.3f ms  errors %" PRIu64,
		 all.elapsed_s, Grouped(static_cast<uint64_t>(all.per_second + 0.5)).c_str(), loads.size(),
		 loads.size() == 1 ? "" : "s", all.p99_ms, worst.c_str(), all.max_ms, all.errors);
	return text;
}

} // namespace forktail::hosts
