// SPDX-License-Identifier: MIT
// Threads' time by cause, in slots of kSlotNs that are closed in order and then summed.
//
// Own times of spans and tallies are those of analysis/timeline's accounts. A slot gets the part of each that
// overlaps it. When a slot is closed, its sum is made equal to the time that the thread existed in it: a
// surplus (a frame's own time is only known as a sum) goes to the next slot; missing time gets the cause of
// the thread's open span, if the recorder wrote one, else unknown. Records that arrive for a closed slot are
// ignored, so that counters never decrease.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "live.h"
#include "server_names.h"

namespace forktail::live
{

constexpr size_t kOpenSlots = 128; // most slots that are open at a time

class Accounts
{
public:
	explicit Accounts(Servers *servers) : servers_(servers) {}

	// State of a thread. `labelled` is its index into all(), or kNone before it has one.
	struct Known {
		uint32_t tid = 0, tgid = 0, parent_tgid = 0, flags = 0;
		uint64_t start_ns = 0, end_ns = 0; // 0: it runs
		std::string comm, role;
		uint32_t labelled = kNone;
		bool has_loop = false;
		bool announced = false;

	private:
		friend class Accounts;
		struct Part {
			analysis::Cause cause;
			uint32_t ns, count;
		};
		struct Open { // its open span
			analysis::Cause cause = analysis::Cause::Unknown;
			uint64_t start_ns = 0, seen_ns = 0, until_ns = 0;
			unsigned depth = 0;
		};
		std::vector<std::vector<Part>> slots;
		Open open;
		bool renamed = false;
		void Add(uint64_t slot, analysis::Cause cause, uint64_t ns, uint32_t count);
	};

	// Starts the accounts at t_ns, or resumes them after another recorder.
	void Begin(uint64_t t_ns, uint32_t min_span_ns);
	void Thread(const ft_thread &t);
	// The thread; nullptr if it is not accounted for.
	Known *Find(uint32_t tid);
	// The index of an announced thread in all(); else kNone.
	uint32_t Label(Known *t);
	bool Serves(const Known &t) const;

	// All of [start_ns, end_ns) had this cause.
	void AddInterval(Known *t, analysis::Cause cause, uint64_t start_ns, uint64_t end_ns, uint32_t count);
	// `ns` of [start_ns, end_ns) had this cause, at unknown positions.
	void AddWithin(Known *t, analysis::Cause cause, uint64_t ns, uint64_t start_ns, uint64_t end_ns,
		       uint32_t count);
	// The thread has an open span since start_ns, as read at seen_ns.
	void SetOpen(Known *t, analysis::Cause cause, uint64_t start_ns, uint64_t seen_ns, unsigned depth);
	// A span of the thread ended at end_ns.
	void Moved(Known *t, uint64_t end_ns)
	{
		if (end_ns > t->open.seen_ns && end_ns < t->open.until_ns)
			t->open.until_ns = end_ns;
	}

	// Closes the slots that end at or before t_ns and adds complete seconds to *seconds.
	void CloseTo(uint64_t t_ns, std::vector<Second> *seconds);
	// Ends all threads, when another recorder starts.
	void EndAll(uint64_t t_ns);

	uint64_t closed_to_ns() const { return closed_to_ns_; }
	const std::vector<ThreadTotals> &all() const { return all_; }

private:
	void CloseSlot(Known *t, uint64_t slot_ns);
	void FillGap(Known *t, uint64_t slot_ns, uint64_t from_ns, uint64_t to_ns, uint64_t gap_ns);
	void TakeParts(Known *t, uint64_t slot_ns, uint64_t length_ns);
	void EndSecond(std::vector<Second> *seconds);
	void GiveBack(Known *t);
	bool IsOpen(uint64_t slot) const;

	Servers *servers_;
	uint64_t closed_to_ns_ = 0;
	uint32_t min_span_ns_ = 20'000;
	std::unordered_map<uint32_t, Known> threads_; // by tid
	std::vector<ThreadTotals> all_;
	std::map<std::pair<uint32_t, std::string>, uint32_t> labels_;
	std::map<uint32_t, size_t> labels_of_; // how many a server has
	// Of the current second.
	std::map<uint32_t, ThreadSecond> second_;
	analysis::CauseTimes sums_ = {};
};

} // namespace forktail::live
