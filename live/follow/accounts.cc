// SPDX-License-Identifier: MIT
// Fills slots as records arrive and closes them in order.
#include "state.h"

#include <algorithm>

#include "common/json.h"

namespace forktail::live
{

namespace
{

// A tally window is one millisecond long, and the position of a short interval in it is unknown. So the sum
// of a slot may be off by this much at its bounds although nothing is missing.
constexpr uint64_t kToleranceNs = 2'000'000;

// A server chooses how many threads it has and their names, so the number of labels is limited: further
// threads share one, which sums.
constexpr size_t kMostLabelsOfServer = 256;
constexpr size_t kMostLabels = 4096;
constexpr char kOthers[] = "other";

constexpr uint64_t UpToSlot(uint64_t t_ns)
{
	return (t_ns + kSlotNs - 1) / kSlotNs * kSlotNs;
}

std::string BaseName(const Accounts::Known &t)
{
	return t.role.empty() ? t.comm : t.role;
}

} // namespace

void Accounts::Known::Add(uint64_t slot, analysis::Cause cause, uint64_t ns, uint32_t count)
{
	if (slots.empty())
		slots.resize(kOpenSlots);
	std::vector<Part> &parts = slots[slot % kOpenSlots];
	for (Part &p : parts) {
		if (p.cause != cause)
			continue;
		p.ns = static_cast<uint32_t>(std::min<uint64_t>(p.ns + ns, UINT32_MAX));
		p.count += count;
		return;
	}
	parts.push_back({cause, static_cast<uint32_t>(std::min<uint64_t>(ns, UINT32_MAX)), count});
}

bool Accounts::IsOpen(uint64_t slot) const
{
	uint64_t first = closed_to_ns_ / kSlotNs;
	return slot >= first && slot < first + kOpenSlots;
}

void Accounts::Begin(uint64_t t_ns, uint32_t min_span_ns)
{
	closed_to_ns_ = UpToSlot(t_ns);
	min_span_ns_ = min_span_ns;
}

void Accounts::Thread(const ft_thread &t)
{
	if (t.flags & FT_THREAD_CLIENT)
		return;
	Known &known = threads_[t.tid];
	if (known.announced && (known.tgid != t.tgid || (known.end_ns && t.start_ns >= known.end_ns))) {
		GiveBack(&known); // the id was reused for another thread
		known = {};
	}
	std::string before = BaseName(known);
	known.tid = t.tid;
	known.tgid = t.tgid;
	known.parent_tgid = t.parent_tgid;
	known.flags = t.flags;
	known.start_ns = known.announced ? std::min(known.start_ns, t.start_ns) : t.start_ns;
	known.end_ns = t.flags & FT_THREAD_ENDED ? t.end_ns : 0;
	known.comm = common::VisibleName(t.comm);
	known.role = common::VisibleName(t.role);
	known.renamed = known.announced && BaseName(known) != before;
	known.announced = true;
}

Accounts::Known *Accounts::Find(uint32_t tid)
{
	auto found = threads_.find(tid);
	return found == threads_.end() ? nullptr : &found->second;
}

bool Accounts::Serves(const Known &t) const
{
	return !(t.flags & FT_THREAD_CHILD) && (t.has_loop || (t.flags & FT_THREAD_MAIN));
}

// Frees the name for another thread.
void Accounts::GiveBack(Known *t)
{
	if (t->labelled != kNone && all_[t->labelled].tid == t->tid)
		all_[t->labelled].alive = false;
	t->labelled = kNone;
}

uint32_t Accounts::Label(Known *t)
{
	if (!t->announced)
		return kNone;
	bool child = t->flags & FT_THREAD_CHILD;
	uint32_t process = child && t->parent_tgid ? t->parent_tgid : t->tgid;
	uint32_t server = servers_->Known(process);
	if (server == kNone)
		server = servers_->Of(process, t->comm, t->start_ns);
	if (t->labelled != kNone && !t->renamed && all_[t->labelled].server == server) {
		all_[t->labelled].has_loop |= t->has_loop;
		return t->labelled;
	}
	GiveBack(t);
	t->renamed = false;
	size_t &of_server = labels_of_[server];
	for (unsigned i = 1;; i++) {
		std::string name = BaseName(*t) + (i > 1 ? "/" + std::to_string(i) : "");
		const bool full = of_server >= kMostLabelsOfServer || labels_.size() >= kMostLabels;
		// A thread that is named like the shared label has that label, too.
		const bool shared = full && !labels_.contains({server, name});
		name = shared ? kOthers : name;
		auto [found, is_new] =
		    labels_.try_emplace({server, name}, static_cast<uint32_t>(all_.size()));
		of_server += is_new;
		if (is_new)
			all_.emplace_back();
		ThreadTotals &totals = all_[found->second];
		if (!shared && totals.alive && totals.tid != t->tid)
			continue;
		totals.server = server;
		totals.name = name;
		if (shared)
			return t->labelled = found->second;
		totals.tid = t->tid;
		totals.alive = true;
		totals.child = child;
		totals.main = t->flags & FT_THREAD_MAIN;
		totals.has_loop |= t->has_loop;
		return t->labelled = found->second;
	}
}

void Accounts::AddInterval(Known *t, analysis::Cause cause, uint64_t start_ns, uint64_t end_ns,
			   uint32_t count)
{
	uint64_t last = end_ns ? (end_ns - 1) / kSlotNs : 0;
	for (uint64_t at = std::max(start_ns, closed_to_ns_); at < end_ns;) {
		uint64_t slot = at / kSlotNs, to = std::min(end_ns, (slot + 1) * kSlotNs);
		if (!IsOpen(slot))
			return;
		t->Add(slot, cause, to - at, slot == last ? count : 0);
		at = to;
	}
}

// Distributes `ns` over the slots by their unaccounted time: spans within a frame are recorded before the
// frame.
void Accounts::AddWithin(Known *t, analysis::Cause cause, uint64_t ns, uint64_t start_ns, uint64_t end_ns,
			 uint32_t count)
{
	if (end_ns <= start_ns || end_ns <= closed_to_ns_)
		return;
	uint64_t first = start_ns / kSlotNs, last = (end_ns - 1) / kSlotNs;
	if (first == last) {
		if (IsOpen(first))
			t->Add(first, cause, ns, count);
		return;
	}
	if (start_ns < closed_to_ns_) {
		long double left = static_cast<long double>(end_ns - closed_to_ns_) / (end_ns - start_ns);
		ns = static_cast<uint64_t>(static_cast<long double>(ns) * left);
		start_ns = closed_to_ns_;
		first = start_ns / kSlotNs;
	}
	last = std::min(last, closed_to_ns_ / kSlotNs + kOpenSlots - 1);
	if (first > last)
		return;
	if (t->slots.empty())
		t->slots.resize(kOpenSlots);
	std::array<uint64_t, kOpenSlots> room;
	uint64_t all = 0;
	for (uint64_t slot = first; slot <= last; slot++) {
		uint64_t here = std::min(end_ns, (slot + 1) * kSlotNs) - std::max(start_ns, slot * kSlotNs);
		uint64_t taken = 0;
		for (const Known::Part &p : t->slots[slot % kOpenSlots])
			taken += p.ns;
		room[slot - first] = std::min(here, kSlotNs - std::min(taken, kSlotNs));
		all += room[slot - first];
	}
	uint64_t given = 0;
	for (uint64_t slot = first; slot <= last; slot++) {
		uint64_t part =
		    all ? static_cast<uint64_t>(static_cast<long double>(ns) * room[slot - first] / all)
			: ns / (last - first + 1);
		if (slot == last)
			part = ns - given;
		given += part;
		if (part || slot == last)
			t->Add(slot, cause, part, slot == last ? count : 0);
	}
}

void Accounts::SetOpen(Known *t, analysis::Cause cause, uint64_t start_ns, uint64_t seen_ns, unsigned depth)
{
	// Of one reading the innermost span counts.
	if (seen_ns < t->open.seen_ns + kSlotNs && depth < t->open.depth)
		return;
	t->open = {cause, start_ns, seen_ns, UINT64_MAX, depth};
}

void Accounts::FillGap(Known *t, uint64_t slot_ns, uint64_t from_ns, uint64_t to_ns, uint64_t gap_ns)
{
	const Known::Open &open = t->open;
	bool in_it = open.seen_ns && open.start_ns < to_ns && open.until_ns > from_ns;
	t->Add(slot_ns / kSlotNs, in_it ? open.cause : analysis::Cause::Unknown, gap_ns, 0);
}

// Takes exactly length_ns from a slot's parts, whose sum is at least that (except for rounding), and moves
// the surplus to the next slot.
void Accounts::TakeParts(Known *t, uint64_t slot_ns, uint64_t length_ns)
{
	uint64_t slot = slot_ns / kSlotNs;
	std::vector<Known::Part> parts;
	parts.swap(t->slots[slot % kOpenSlots]);
	uint64_t sum = 0;
	size_t largest = 0;
	for (size_t i = 0; i < parts.size(); i++) {
		sum += parts[i].ns;
		largest = parts[i].ns > parts[largest].ns ? i : largest;
	}
	bool carried = sum > length_ns + kToleranceNs;
	ThreadTotals &totals = all_[t->labelled];
	ThreadSecond &second = second_[t->labelled];
	second.thread = t->labelled;
	uint64_t left = length_ns;
	for (size_t i = 0; i < parts.size(); i++) {
		uint64_t ns = sum ? uint64_t{parts[i].ns} * length_ns / sum : 0;
		sums_[analysis::Index(parts[i].cause)] = ns;
		left -= ns;
		if (carried && parts[i].ns > ns)
			t->Add(slot + 1, parts[i].cause, parts[i].ns - ns, 0);
	}
	for (size_t i = 0; i < parts.size(); i++) {
		int c = analysis::Index(parts[i].cause);
		uint64_t ns = sums_[c] + (i == largest ? left : 0);
		totals.by_cause[c] += ns;
		totals.counts[c] += parts[i].count;
		second.by_cause[c] += ns;
		second.counts[c] += parts[i].count;
	}
	totals.accounted_ns += length_ns;
	parts.clear();
	t->slots[slot % kOpenSlots].swap(parts); // reuses its memory
}

void Accounts::CloseSlot(Known *t, uint64_t slot_ns)
{
	uint64_t slot = slot_ns / kSlotNs;
	uint64_t from_ns = std::max(slot_ns, t->start_ns), to_ns = slot_ns + kSlotNs;
	if (t->end_ns)
		to_ns = std::min(to_ns, t->end_ns);
	if (from_ns >= to_ns || Label(t) == kNone) {
		if (!t->slots.empty())
			t->slots[slot % kOpenSlots].clear();
		return;
	}
	if (t->slots.empty())
		t->slots.resize(kOpenSlots);
	uint64_t length_ns = to_ns - from_ns, sum = 0;
	for (const Known::Part &p : t->slots[slot % kOpenSlots])
		sum += p.ns;
	if (sum + std::min(kToleranceNs, length_ns / 2) < length_ns)
		FillGap(t, slot_ns, from_ns, to_ns, length_ns - sum);
	TakeParts(t, slot_ns, length_ns);
}

void Accounts::EndSecond(std::vector<Second> *seconds)
{
	Second s;
	s.start_ns = (closed_to_ns_ - 1) / kSecondNs * kSecondNs;
	for (auto &[label, second] : second_)
		s.threads.push_back(second);
	if (!s.threads.empty())
		seconds->push_back(std::move(s));
	second_.clear();
}

void Accounts::CloseTo(uint64_t t_ns, std::vector<Second> *seconds)
{
	while (closed_to_ns_ + kSlotNs <= t_ns) {
		uint64_t slot_ns = closed_to_ns_;
		// The surplus goes to the next slot, which must still be open.
		for (auto t = threads_.begin(); t != threads_.end();) {
			CloseSlot(&t->second, slot_ns);
			bool over = t->second.end_ns && t->second.end_ns <= slot_ns + kSlotNs;
			if (over)
				GiveBack(&t->second);
			t = over ? threads_.erase(t) : std::next(t);
		}
		closed_to_ns_ += kSlotNs;
		if (closed_to_ns_ % kSecondNs == 0)
			EndSecond(seconds);
	}
}

void Accounts::EndAll(uint64_t t_ns)
{
	for (auto &[tid, t] : threads_)
		GiveBack(&t);
	threads_.clear();
	second_.clear();
	closed_to_ns_ = UpToSlot(t_ns);
}

} // namespace forktail::live
