// SPDX-License-Identifier: MIT
// An explanation made by hand, of any size, for tests of its output. It resembles a Redis under an open-loop
// load: a fork with copy-on-write after it, a write blocked behind an fsync, and small stalls throughout.
#pragma once

#include <cstdint>

#include "tests/support/explained.h"

namespace forktail::analysis
{

struct SampleSize {
	double seconds = 60;
	uint32_t rate = 20'000;	     // requests per second
	size_t spans = 10'000;	     // about this many on the serving thread
	uint32_t slow_one_in = 4000; // a request that is slow only because of the server's own code
	uint64_t seed = 1;
	bool requests = true; // false: no request log, event-loop iterations replace requests
	bool recorder = true; // false: requests only
};

// The same size and seed give the same explanation.
analysis::Explained SampleExplanation(const SampleSize &size);

} // namespace forktail::analysis
