// SPDX-License-Identifier: MIT
// A thread's on-CPU time by activity: counts the CPU samples of an interval.
//
// The share of samples, weighted with their periods, estimates the share of time. With k samples the relative
// error of an activity's time is approximately 1 / sqrt(k).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "activity.h"
#include "analysis/run/run.h"

namespace forktail::analysis
{

struct ActivityTime {
	std::string name;
	uint64_t samples = 0;
	uint64_t lua_samples = 0;    // of them in Lua code
	uint64_t kernel_samples = 0; // of them in the kernel
	double share = 0;	     // of the weight of all samples, 0..1
	uint64_t time_ns = 0;	     // that share of the on-CPU time
	std::string stack;	     // the most frequent one, innermost function first
	double error() const;	     // of time_ns, relative: samples^-1/2
};

struct OwnCode {
	uint64_t samples = 0;
	std::vector<ActivityTime> activities; // longest first
	uint64_t transaction_samples = 0;     // of the samples in EXEC
};

// Counts samples of own code. Samples inside a frame (a fork, a fault) belong to the frame. Several threads
// may be added.
class OwnCodeCount
{
public:
	OwnCodeCount(const Run &run, const Activities &activities) : run_(run), activities_(activities) {}
	void Add(const Thread &thread, uint64_t from_ns, uint64_t to_ns);
	// Adds the counts of another object.
	void Add(const OwnCodeCount &other);
	// `own_ns`: the on-CPU time of what was added.
	OwnCode Result(uint64_t own_ns) const;

private:
	struct ActivityCount {
		uint64_t samples = 0, lua_samples = 0, kernel_samples = 0, transaction_samples = 0;
		double weight = 0;
		std::map<std::string, uint64_t> stacks;
	};
	const Run &run_;
	const Activities &activities_;
	std::map<std::string, ActivityCount> counts_;
};

} // namespace forktail::analysis
