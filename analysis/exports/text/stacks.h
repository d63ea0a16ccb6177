// SPDX-License-Identifier: MIT
// The time of each thread by cause and stack. Without idle time it equals the threads' accounts by cause.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analysis/explain/explanation.h"
#include "analysis/timeline/waits.h"

namespace forktail::analysis::exports
{

class Stacks
{
public:
	// Adds what began in a stretch.
	void Add(const Explanation &e, uint64_t from_ns, uint64_t to_ns);
	// Nanoseconds by thread (index into Run::threads) and "cause;outermost;...;innermost". A thread's own
	// code is divided among its samples.
	std::map<std::pair<uint32_t, std::string>, uint64_t> Result(const Explanation &e) const;

private:
	void AddThread(const Run &run, const Waits &waits, uint32_t thread, uint64_t from_ns, uint64_t to_ns);
	void AddSample(const Run &run, uint32_t thread, const ft_cpu_sample &sample);

	std::map<std::pair<uint32_t, std::string>, uint64_t> times_;
	// For own code: the time of samples, by stack.
	std::map<uint32_t, std::map<std::string, uint64_t>> samples_;
};

// A thread's name: "redis-server 4321", "redis-server/bio_aof_fsync 4324".
std::string ThreadName(const Run &run, const Thread &thread);

} // namespace forktail::analysis::exports
