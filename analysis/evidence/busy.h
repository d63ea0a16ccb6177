// SPDX-License-Identifier: MIT
// Describes the server's on-CPU time: "the server was sending replies to about 5,000 clients for 31 ms".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scene.h"

namespace forktail::analysis
{

// System calls of event-loop iterations, counted by the recorder; all 0 if it did not count. The counter of
// one iteration stops at 65,535.
struct IterationCalls {
	bool at_least =
	    false; // a lower bound: over several iterations, or of an iteration that only samples show
	uint64_t reads = 0, writes = 0, accepted = 0, closed = 0;
};

// The calls of one iteration's span.
IterationCalls CallsOf(const ft_span &iteration);

// The phrase for activities of one group, after "the server": "ran KEYS", "was accepting 4,010 and freeing
// 3,990 connections". `names`: the activities; without any "".
std::string ActivityWords(const std::vector<std::string> &names, const IterationCalls &calls);

std::string BusySentence(const Scene &scene);

// Related activities in an interval, which are printed as one.
struct BusyGroup {
	std::vector<std::string> names; // longest first
	uint64_t samples = 0, lua_samples = 0, kernel_samples = 0, time_ns = 0;
	double share = 0;  // of the on-CPU time
	std::string stack; // of the first activity
};

// Longest first. TLS code that took long per accepted connection is named as handshakes.
std::vector<BusyGroup> BusyGroupsOf(const OwnCode &own, uint64_t accepted);
constexpr const char *kTls = "TLS (libssl, libcrypto)", *kTlsHandshakes = "TLS handshakes";
// "one transaction (EXEC) of 150,000 commands", if most of an interval's samples were in one; else "".
std::string TransactionText(const Scene &scene, const OwnCode &own, uint64_t from_ns, uint64_t to_ns);
// The noun for a group: "KEYS", "EVAL (Lua script)", "Eviction of keys". `names`: at least one activity.
std::string BusyActor(const std::vector<std::string> &names);
// Adds the event-loop iterations that overlap the scene, and their calls. False: a span may contain several
// iterations.
bool CountIterations(const Scene &scene, uint64_t *count, IterationCalls *calls);

} // namespace forktail::analysis
