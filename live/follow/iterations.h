// SPDX-License-Identifier: MIT
// The parts of event-loop iterations. The record of an iteration follows the spans in it, but its tallies may
// come later. So an iteration is reported one reading of the recording later.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "cpu_holders.h"
#include "live.h"

namespace forktail::live
{

// The needed fields of a detail block.
struct DetailText {
	std::string name, stack;
	analysis::Cause told = analysis::Cause::Unknown; // by its stack
};

class Iterations
{
public:
	explicit Iterations(uint64_t parts_of_turns_ns) : parts_of_turns_ns_(parts_of_turns_ns) {}

	// A part of a span of a serving thread: `ns` of [start_ns, end_ns) had this cause. queue_cpu: 1 + the
	// CPU that it waited for.
	struct Part {
		uint64_t start_ns, end_ns, ns;
		analysis::Cause cause;
		uint16_t queue_cpu;
		uint32_t detail;
	};
	void AddPart(uint32_t tid, const Part &part);
	void AddTally(uint32_t tid, analysis::Cause cause, const ft_tally &tally);
	// The thread waited for events: earlier parts are not part of its next iteration.
	void Waited(uint32_t tid);
	void AddTurn(uint32_t tid, const Iteration &turn,
		     const std::unordered_map<uint32_t, DetailText> &details);

	// Reports the iterations that were added before the previous call.
	void Tell(const Held &held, std::vector<Iteration> *turns);
	// The thread ended: its state is dropped after its last iteration is reported.
	void Ended(uint32_t tid);
	void ForgetAll() { threads_.clear(); }
	size_t threads() const { return threads_.size(); } // threads with state

private:
	struct Short { // a tally of a cause other than own code
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
