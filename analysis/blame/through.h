// SPDX-License-Identifier: MIT
// Requests that went through a proxy: what each was spent on, hop by hop.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "context.h"
#include "elsewhere.h"
#include "sheet.h"

namespace forktail
{

// What one request was spent on, hop by hop.
struct Spent {
	std::vector<AtHop> hops;
	uint64_t between_ns = 0, late_ns = 0, since_ns = 0;

	AtHop &At(uint16_t hop)
	{
		for (AtHop &h : hops)
			if (h.hop == hop)
				return h;
		hops.push_back({hop});
		return hops.back();
	}
	uint64_t Sum(Cause cause) const
	{
		uint64_t ns = 0;
		for (const AtHop &h : hops)
			ns += h.direct[static_cast<size_t>(Index(cause))];
		return ns;
	}
};

// Finds where requests may go on to; servers are known.
void FindWays(const std::vector<Timeline> &timelines, Context *context);
// Keeps those ways that requests of the window took.
void NoteWays(Context *context);
// Finds out what passed on them, from the timelines as they are now.
void BuildRoutes(Context *context);
// Finds who was in front of whom, in the window.
void FindInFront(Context *context);
// Adds request i up into *spent, whose former content goes.
void Spend(const Context &context, const Through &through, size_t i, Spent *spent);
// Blames it.
void BlameThrough(const Context &context, const Through &through, size_t i, Spent *scratch, Sheet *sheet);

} // namespace forktail
