// SPDX-License-Identifier: MIT
// What a server was doing, told from a sampled stack by the names of its functions, and by what the kernel
// did for it (kernel_side.h).
//
// Names of activities are an interface like those of causes: docs/reference/causes.md lists them. They rest
// on the names that Redis, Valkey, KeyDB and memcached give their functions, which have been stable for a
// decade; a function that is not known is named itself.
#pragma once

#include <string>
#include <vector>

#include "analysis/run/run.h"
#include "kernel_side.h"

namespace forktail::analysis
{

struct Activity {
	std::string name; // "command/KEYS", "expire", "function/serverCron", "module/libc.so.6"
	std::string
	    where; // the functions that say so, innermost first: "keysCommand < call < processCommand"
	bool in_lua = false;	// a script's own code ran, rather than a command that it called
	bool in_kernel = false; // the kernel ran on the server's behalf
};

Activity ActivityOf(const Stack &stack, const KernelSide &side = {});

// Of all of a run's CPU samples.
struct Activities {
	std::vector<Activity> kinds;	 // that there are
	std::vector<uint32_t> of_sample; // the kind of each of the run's cpu_samples
	const Activity &Of(size_t sample) const;
};

Activities ActivitiesOf(const Run &run);

} // namespace forktail::analysis
