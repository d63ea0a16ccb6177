// SPDX-License-Identifier: MIT
// One progress line for all load generators, from the last second that each reported.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace forktail::hosts
{

struct LoadSecond {
	double elapsed_s = 0, per_second = 0, p99_ms = 0, max_ms = 0;
	uint64_t errors = 0;
};

// Parses a progress line of forktail-load, "SET+GET 3 s 40,000/s p50 0.100 ms p99 0.310 ms max 1.200 ms
// errors 0". False: it is another line.
bool ReadProgress(const std::string &line, LoadSecond *second);

// By "HOST/NAME". "12 s  80,123/s from 2 loads  worst p99 0.310 ms (client-b)  max 4.100 ms  errors 0"
std::string MergedProgress(const std::map<std::string, LoadSecond> &loads);

} // namespace forktail::hosts
