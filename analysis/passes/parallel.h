// SPDX-License-Identifier: MIT
// One loop over many items on all cores. Each worker gets one contiguous range and its own number, so that it
// can write to its own memory. Results do not depend on the number of workers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace forktail::analysis
{

// The maximum number of workers, at least 1.
inline size_t MaxWorkers()
{
	return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8);
}
// The workers that ForRanges uses for `count` items, at least 1.
inline size_t Workers(size_t count)
{
	return std::min(MaxWorkers(), count / 50'000 + 1);
}

// Calls f(begin, end, worker) for Workers(last - first) ranges that cover [first, last) in order.
template <typename F> void ForRanges(size_t first, size_t last, F f)
{
	size_t count = last - first, workers = Workers(count);
	std::vector<std::thread> threads;
	auto begin = [=](size_t w) { return first + count * w / workers; };
	for (size_t w = 1; w < workers; w++)
		threads.emplace_back([&f, begin, w] { f(begin(w), begin(w + 1), w); });
	f(begin(0), begin(1), size_t{0});
	for (std::thread &t : threads)
		t.join();
}

} // namespace forktail::analysis
