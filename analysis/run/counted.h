// SPDX-License-Identifier: MIT
// How fast a thread's code ran, by the CPU's counters: sums over stretches in which it kept its CPU. Code
// that waits for memory, or shares its core or cache with a neighbour, executes fewer instructions per cycle;
// a CPU with a lower frequency has fewer cycles per second.
#pragma once

#include <cstdint>

#include "recording/format.h"

namespace forktail::analysis
{

struct Counted {
	uint64_t readings = 0; // stretches
	uint64_t ns = 0, cycles = 0, instructions = 0;
	bool software = false;		      // events of the kernel in the place of the hardware's
	uint64_t misses = 0, with_misses = 0; // of the last-level cache; instructions while they were counted

	void Add(const ft_counters &c)
	{
		readings++;
		ns += c.duration_ns;
		cycles += c.cycles;
		instructions += c.instructions;
		software |= (c.flags & FT_COUNTED_SOFTWARE) != 0;
		if (c.flags & FT_COUNTED_MISSES) {
			misses += c.cache_misses;
			with_misses += c.instructions;
		}
	}
	// Without a part of it.
	Counted Without(const Counted &part) const
	{
		Counted rest = *this;
		rest.readings -= part.readings;
		rest.ns -= part.ns;
		rest.cycles -= part.cycles;
		rest.instructions -= part.instructions;
		rest.misses -= part.misses;
		rest.with_misses -= part.with_misses;
		return rest;
	}
	double PerCycle() const { return Ratio(instructions, cycles); }
	double Gigahertz() const { return Ratio(cycles, ns); }
	// Cache misses per 1,000 instructions.
	double Misses() const { return 1000 * Ratio(misses, with_misses); }

private:
	static double Ratio(uint64_t a, uint64_t b)
	{
		return b ? static_cast<double>(a) / static_cast<double>(b) : 0;
	}
};

} // namespace forktail::analysis
