// SPDX-License-Identifier: MIT
// What passed at a thread, divided by whose doing it was: while it waited for another one, that one's.
#pragma once

#include <array>
#include <cstdint>

#include "blamed_requests.h"
#include "context.h"

namespace forktail::analysis
{

// What a request was spent on at one thread.
struct AtHop {
	uint16_t hop;
	CauseTimes direct = {};
	std::array<uint64_t, kStallCauses> queued = {};
};

// Adds the parts of a request with due time and end at one thread, whose timeline it is. What it queued for
// lies in [since_ns, due_ns).
void AddPartsAt(const Context &context, const Timeline &timeline, AtHop at, uint64_t since_ns,
		uint64_t due_ns, uint64_t end_ns, Sheet *sheet);

} // namespace forktail::analysis
