// SPDX-License-Identifier: MIT
// Time at a thread, divided by responsible thread: while it waited for another one, that one's.
#pragma once

#include <array>
#include <cstdint>

#include "blamed_requests.h"
#include "context.h"

namespace forktail::analysis
{

// A request's time at one thread.
struct AtHop {
	uint16_t hop;
	CauseTimes direct = {};
	std::array<uint64_t, kStallCauses> queued = {};
};

// Adds the parts of a request at one thread with this timeline. What it queued for is in [since_ns, due_ns).
void AddPartsAt(const Context &context, const Timeline &timeline, AtHop at, uint64_t since_ns,
		uint64_t due_ns, uint64_t end_ns, Sheet *sheet);

} // namespace forktail::analysis
