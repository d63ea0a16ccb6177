// SPDX-License-Identifier: MIT
// Timelines of threads that others wait for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lock_waits.h"
#include "timeline.h"

namespace forktail::analysis
{

// Timelines of any threads of a run from their own records, each built on first use.
class ThreadTimelines
{
public:
	explicit ThreadTimelines(const Run &run) : run_(&run) {}
	const Run &run() const { return *run_; }
	// `thread` is an index into Run::threads.
	const Timeline &Of(uint32_t thread);
	const std::vector<LockWait> &LockWaitsOf(uint32_t thread);

private:
	const Run *run_;
	std::map<uint32_t, Timeline> built_;
	std::optional<ThreadFinder> finder_;
	std::map<uint32_t, std::vector<LockWait>> lock_waits_;
};

} // namespace forktail::analysis
