// SPDX-License-Identifier: MIT
// How long a thread's own code did what: CPU samples of an interval, counted by activity.
//
// A share of samples, each for the period it stands for, is an estimate of a share of time. An activity's
// time, of k samples, is known to about one part in the square root of k.
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
	uint64_t lua_samples = 0;    // of them in a script's own code
	uint64_t kernel_samples = 0; // of them in the kernel
	double share = 0;	     // of own code, by all its samples, 0..1
	uint64_t time_ns = 0;	     // that share of the own code's time
	std::string stack;	     // where it was seen most, innermost function first
	double error() const;	     // of time_ns, relative: samples^-1/2
};

struct OwnCode {
	uint64_t samples = 0;
	std::vector<ActivityTime> activities; // longest first
};

// Counts samples of own code; those in a frame (a fork, a fault) are the frame's. Threads may be added
// together.
class OwnCodeCount
{
public:
	OwnCodeCount(const Run &run, const Activities &activities) : run_(run), activities_(activities) {}
	void Add(const Thread &thread, uint64_t from_ns, uint64_t to_ns);
	// What another one has counted.
	void Add(const OwnCodeCount &other);
	// `own_ns`: how long own code ran in what was added.
	OwnCode Result(uint64_t own_ns) const;

private:
	struct Counted {
		uint64_t samples = 0, lua_samples = 0, kernel_samples = 0;
		double weight = 0;
		std::map<std::string, uint64_t> stacks;
	};
	const Run &run_;
	const Activities &activities_;
	std::map<std::string, Counted> counted_;
};

} // namespace forktail::analysis
