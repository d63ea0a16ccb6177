// SPDX-License-Identifier: MIT
// Classifies a sampled stack as an activity of the server, by function names and by the kernel's work for the
// server (kernel_side.h).
//
// Activity names are an interface, like cause names: docs/reference/causes.md lists them. They rely on
// function names of Redis, Valkey, KeyDB and memcached that have been stable for a decade. An unknown
// function becomes "function/NAME".
#pragma once

#include <string>
#include <vector>

#include "analysis/run/run.h"
#include "kernel_side.h"

namespace forktail::analysis
{

struct Activity {
	std::string name; // "command/KEYS", "script", "expire", "function/serverCron", "module/libc.so.6"
	std::string
	    where; // the functions that identify it, innermost first: "keysCommand < call < processCommand"
	bool in_lua = false;	     // Lua code ran, not a command that the script called
	bool in_kernel = false;	     // the kernel ran on the server's behalf
	bool in_transaction = false; // EXEC ran, or a command that the transaction had queued
};

Activity ActivityOf(const Stack &stack, const KernelSide &side = {});

// The activities of all CPU samples of a run.
// Of the samples that were loaded when they were made.
struct Activities {
	uint64_t loaded_from_ns = 0, loaded_to_ns = 0; // as of the run then
	std::vector<Activity> kinds;		       // distinct ones
	std::vector<uint32_t> of_sample;	       // the kind of each of the run's cpu_samples
	const Activity &Of(size_t sample) const;
	bool AreOf(const Run &run) const; // false: other samples are loaded now
};

Activities ActivitiesOf(const Run &run);

} // namespace forktail::analysis
