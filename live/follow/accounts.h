// SPDX-License-Identifier: MIT
// Threads' time by cause, in slots of kSlotNs that are closed in order and then summed.
//
// Own times of spans and tallies are those of analysis/timeline's accounts. A slot gets of each what lies in
// it; when it is closed it is made to sum to the time that the thread was there: what is too much (a frame's
// own time is only known as a sum) goes to the next slot, what is missing is what the thread is in the middle
// of, if the recorder said so, else unknown. What comes later for a closed slot is left out, so that nothing
// steps back.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "live.h"
#include "server_names.h"

namespace forktail::live
{

constexpr size_t kOpenSlots = 128; // what came and isn't closed yet spans no more than that

class Accounts
{
public:
	explicit Accounts(Servers *servers) : servers_(servers) {}

	// What is known of a thread. `labelled` is its index into all(), or kNone as long as it has none.
	struct Known {
		uint32_t tid = 0, tgid = 0, parent_tgid = 0, flags = 0;
		uint64_t start_ns = 0, end_ns = 0; // 0: it is there
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
		struct Open { // what it is in the middle of
			analysis::Cause cause = analysis::Cause::Unknown;
			uint64_t start_ns = 0, seen_ns = 0, until_ns = 0;
			unsigned depth = 0;
		};
		std::vector<std::vector<Part>> slots;
		Open open;
		bool renamed = false;
		void Add(uint64_t slot, analysis::Cause cause, uint64_t ns, uint32_t count);
	};

	// Accounts begin here, or go on here when they had begun before (another recorder).
	void Begin(uint64_t t_ns, uint32_t min_span_ns);
	void Thread(const ft_thread &t);
	// The thread, made if it isn't known; nullptr if it isn't one to account for.
	Known *Find(uint32_t tid);
	// Of a thread that was announced, its place in all(); kNone without.
	uint32_t Label(Known *t);
	bool Serves(const Known &t) const;

	// [start_ns, end_ns) was all that cause's.
	void AddInterval(Known *t, analysis::Cause cause, uint64_t start_ns, uint64_t end_ns, uint32_t count);
	// `ns` of it were, wherever.
	void AddWithin(Known *t, analysis::Cause cause, uint64_t ns, uint64_t start_ns, uint64_t end_ns,
		       uint32_t count);
	// It is in the middle of that since start_ns, as of seen_ns.
	void SetOpen(Known *t, analysis::Cause cause, uint64_t start_ns, uint64_t seen_ns, unsigned depth);
	// Something of it ended then.
	void Moved(Known *t, uint64_t end_ns)
	{
		if (end_ns > t->open.seen_ns && end_ns < t->open.until_ns)
			t->open.until_ns = end_ns;
	}

	// Closes the slots that end at t_ns or before; whole seconds are added to *seconds.
	void CloseTo(uint64_t t_ns, std::vector<Second> *seconds);
	// All threads are gone: another recorder.
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
	// Of the second that isn't over.
	std::map<uint32_t, ThreadSecond> second_;
	analysis::CauseTimes sums_ = {};
};

} // namespace forktail::live
