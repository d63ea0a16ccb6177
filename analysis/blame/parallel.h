// SPDX-License-Identifier: MIT
// One loop over many items on all cores. Each worker gets one contiguous range and its own number, so that it
// can write to a place of its own; results don't depend on how many workers there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace forktail
{

// Workers that ForRanges uses for `count` items, at least 1.
inline size_t Workers(size_t count)
{
	size_t cores = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8);
	return std::min(cores, count / 50'000 + 1);
}

// Calls f(begin, end, worker) for Workers(count) ranges that cover [0, count) in order.
template <typename F> void ForRanges(size_t count, F f)
{
	size_t workers = Workers(count);
	std::vector<std::thread> threads;
	for (size_t w = 1; w < workers; w++)
		threads.emplace_back(
		    [&f, w, workers, count] { f(count * w / workers, count * (w + 1) / workers, w); });
	f(size_t{0}, count / workers, size_t{0});
	for (std::thread &t : threads)
		t.join();
}

} // namespace forktail
