// SPDX-License-Identifier: MIT
// What the server's own code was, in words: "the server was sending replies to about 5,000 clients for 31
// ms".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scene.h"

namespace forktail::analysis
{

// Calls that turns of the event loop made, as the recorder counted them; all 0 if it did not. Of one turn at
// most 65,535: that or more.
struct TurnCalls {
	bool at_least =
	    false; // added up over several turns, or of one that only samples saw: there may be more
	uint64_t reads = 0, writes = 0, accepted = 0, closed = 0;
};

// Of one turn's span.
TurnCalls CallsOf(const ft_span &iteration);

// What activities that are one thing to a user say together, after "the server": "ran KEYS", "was accepting
// 4,010 and freeing 3,990 connections". `names`: of the activities; of none "".
std::string ActivityWords(const std::vector<std::string> &names, const TurnCalls &calls);

std::string BusySentence(const Scene &scene);

// Activities that are one thing to a user, in an interval.
struct BusyGroup {
	std::vector<std::string> names; // longest first
	uint64_t samples = 0, lua_samples = 0, kernel_samples = 0, time_ns = 0;
	double share = 0;  // of own code
	std::string stack; // of the first
};

// Longest first.
std::vector<BusyGroup> BusyGroupsOf(const OwnCode &own);
constexpr const char *kTlsHandshakes = "TLS handshakes";
// What ran, as a noun: "KEYS", "EVAL (Lua script)", "Eviction of keys". `names`: of the activities, at least
// one.
std::string BusyActor(const std::vector<std::string> &names);
// Adds the event-loop iterations that reach into the scene, and their calls. False: one of them may be many.
bool CountIterations(const Scene &scene, uint64_t *count, TurnCalls *calls);

} // namespace forktail::analysis
