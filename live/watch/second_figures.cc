// SPDX-License-Identifier: MIT
// See second_figures.h.
#include "second_figures.h"

#include <algorithm>
#include <cmath>

namespace forktail::live::watch
{

void KeepLonger(uint64_t ns, const std::string &detail, Part *part)
{
	if (ns <= part->longest_ns)
		return;
	part->longest_ns = ns;
	part->detail = detail;
}

void AddPart(const Part &part, std::vector<Part> *to)
{
	auto same =
	    std::find_if(to->begin(), to->end(), [&](const Part &p) { return p.cause == part.cause; });
	if (same == to->end()) {
		to->push_back(part);
		return;
	}
	same->ns += part.ns;
	same->count += part.count;
	KeepLonger(part.longest_ns, part.detail, &*same);
}

std::vector<Part> ServingParts(const Figures &second, size_t *threads)
{
	std::vector<Part> parts;
	*threads = 0;
	for (const ThreadFigures &thread : second.threads) {
		if (!thread.serves)
			continue;
		++*threads;
		for (const Part &part : thread.parts)
			if (part.cause != analysis::Cause::Idle)
				AddPart(part, &parts);
	}
	std::stable_sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) {
		return analysis::IsStall(a.cause) != analysis::IsStall(b.cause) ? analysis::IsStall(a.cause)
										: a.ns > b.ns;
	});
	return parts;
}

uint64_t StalledNs(const Figures &second)
{
	uint64_t ns = 0;
	for (const ThreadFigures &thread : second.threads)
		for (const Part &part : thread.parts)
			if (thread.serves && analysis::IsStall(part.cause))
				ns += part.ns;
	return ns;
}

uint64_t Percentile(std::vector<uint64_t> *durations, double p)
{
	if (durations->empty())
		return 0;
	const double rank = std::ceil(p * static_cast<double>(durations->size()));
	const size_t at = std::clamp<size_t>(static_cast<size_t>(rank), 1, durations->size()) - 1;
	std::nth_element(durations->begin(), durations->begin() + static_cast<ptrdiff_t>(at),
			 durations->end());
	return (*durations)[at];
}

} // namespace forktail::live::watch
