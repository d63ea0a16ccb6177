// SPDX-License-Identifier: MIT
// What turns of event loops were made of. A turn's record comes after the spans in it; the tallies in it may
// come after it, so that a turn waits for another look at the recording before it is told.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "cpu_holders.h"
#include "live.h"

namespace forktail::live
{

// What a detail block says, as far as it is wanted.
struct DetailText {
	std::string name, stack;
	analysis::Cause told = analysis::Cause::Unknown; // by its stack
};

class Iterations
{
public:
	explicit Iterations(uint64_t parts_of_turns_ns) : parts_of_turns_ns_(parts_of_turns_ns) {}

	// A part of a span of a thread that serves: `ns` of [start_ns, end_ns) were of that cause. queue_cpu:
	// 1 + the CPU it waited for.
	struct Part {
		uint64_t start_ns, end_ns, ns;
		analysis::Cause cause;
		uint16_t queue_cpu;
		uint32_t detail;
	};
	void AddPart(uint32_t tid, const Part &part);
	void AddTally(uint32_t tid, analysis::Cause cause, const ft_tally &tally);
	// The thread waited for events: what came before is no part of its next turn.
	void Waited(uint32_t tid);
	void AddTurn(uint32_t tid, const Iteration &turn,
		     const std::unordered_map<uint32_t, DetailText> &details);

	// Tells the turns that came before the last call of this.
	void Tell(const Held &held, std::vector<Iteration> *turns);
	// The thread is no more: once its last turn is told nothing of it is kept.
	void Ended(uint32_t tid);
	void ForgetAll() { threads_.clear(); }
	size_t threads() const { return threads_.size(); } // of which something is kept

private:
	struct Short { // a tally, but of own code
		uint64_t start_ns, end_ns;
		uint32_t ns;
		analysis::Cause cause;
	};
	struct Pending {
		Iteration turn;
		std::vector<Part> parts;
		bool looked = false;
	};
	struct OfThread {
		std::vector<Part> parts;
		std::vector<Short> shorts;
		std::vector<Pending> pending;
		bool ended = false;
	};
	static void Thin(std::vector<Short> *shorts);
	void Finish(const OfThread &thread, const Held &held, Pending *pending);

	uint64_t parts_of_turns_ns_;
	std::unordered_map<uint32_t, OfThread> threads_;
};

} // namespace forktail::live
