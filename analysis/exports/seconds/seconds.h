// SPDX-License-Identifier: MIT
// Latencies of each second of a run by operation, as tools plot them. For long runs memory stays small: a
// second stores only the buckets with values.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/run/run.h"
#include "recording/histogram.h"

namespace forktail::analysis::exports
{

// Requests that were answered in one second, with the buckets of struct ft_histogram.
struct SecondOf {
	uint64_t count = 0, max_ns = 0;
	std::unordered_map<uint32_t, uint32_t> slots = {}; // count by bucket
	void Add(uint64_t latency_ns);
	void Merge(const SecondOf &other);
	// The highest value of the bucket of each percentile; the percentiles are in ascending order.
	std::vector<uint64_t> Percentiles(const std::vector<double> &which) const;
};

class Seconds
{
public:
	static constexpr uint64_t kNs = 1'000'000'000;
	// Counts the window's answered requests; errors are counted separately.
	void Add(const Run &run);
	// By second (of CLOCK_MONOTONIC) and operation.
	const std::map<std::pair<uint64_t, uint32_t>, SecondOf> &all() const { return all_; }
	// By second, all operations together.
	std::map<uint64_t, SecondOf> Together() const;
	const std::map<uint64_t, uint64_t> &errors() const { return errors_; }

private:
	std::map<std::pair<uint64_t, uint32_t>, SecondOf> all_;
	std::map<uint64_t, uint64_t> errors_;
};

} // namespace forktail::analysis::exports
