// SPDX-License-Identifier: MIT
// From a wait in futex to the thread at fault. The waker held the lock before the wait ended, at least since
// its own wait for the same lock ended. Before that the waker of that wait held it, and so on. A lock goes to
// its waiters in order, or to a thread that takes it while it is free. So a waker that did not wait itself
// held the lock all the time.
//
// A condition has no holder: the waker is the thread that was waited for, except for the time in which it
// waited for events or work itself.
#include "locks.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

// Steps from holder to holder, of the same lock or of a lock that a holder waits for in turn.
constexpr int kDepth = 4;
constexpr uint32_t kNobody = LockWait::kNobody;

// Whether a holder could not continue in this piece. A voluntary sleep does not count.
bool IsDelayed(const Piece &p)
{
	return p.span != kNoSpan && IsStall(p.cause) && p.cause != Cause::Sleep;
}

class Search
{
public:
	Search(ThreadTimelines *threads, uint32_t waiting) : threads_(*threads), waiting_(waiting) {}
	// Explains [from, to) of a wait. `otherwise`: the thread to blame if nothing is found.
	void Wait(const LockWait &wait, uint64_t from_ns, uint64_t to_ns, int depth, uint32_t otherwise);

	std::vector<Foreign> found;

private:
	// Adds what a thread did in [from, to) while others waited for it.
	void Doing(uint32_t thread, uint64_t from_ns, uint64_t to_ns, bool held, int depth,
		   uint32_t otherwise);
	void Add(uint64_t from_ns, uint64_t to_ns, uint32_t thread, Cause cause);
	const LockWait *Last(uint32_t thread, uint64_t address, uint64_t from_ns, uint64_t to_ns);
	const LockWait *OfSpan(uint32_t thread, uint32_t span);

	ThreadTimelines &threads_;
	const uint32_t waiting_;
};

void Search::Add(uint64_t from_ns, uint64_t to_ns, uint32_t thread, Cause cause)
{
	if (from_ns >= to_ns || thread == kNobody)
		return;
	if (!found.empty() && found.back().end_ns == from_ns && found.back().thread == thread &&
	    found.back().cause == cause)
		found.back().end_ns = to_ns;
	else
		found.push_back({from_ns, to_ns, thread, cause});
}

// The last of a thread's waits for a lock that ended in (from, to].
const LockWait *Search::Last(uint32_t thread, uint64_t address, uint64_t from_ns, uint64_t to_ns)
{
	const std::vector<LockWait> &waits = threads_.LockWaitsOf(thread);
	// A thread's waits do not overlap, so ends are in the same order as starts.
	auto end = std::partition_point(waits.begin(), waits.end(),
					[&](const LockWait &w) { return w.end_ns <= to_ns; });
	for (; end != waits.begin() && end[-1].end_ns > from_ns; end--)
		if (end[-1].address == address)
			return &end[-1];
	return nullptr;
}

const LockWait *Search::OfSpan(uint32_t thread, uint32_t span)
{
	const std::vector<LockWait> &waits = threads_.LockWaitsOf(thread);
	const auto wait = std::ranges::lower_bound(waits, span, {}, &LockWait::span);
	return wait != waits.end() && wait->span == span ? &*wait : nullptr;
}

void Search::Wait(const LockWait &wait, uint64_t from_ns, uint64_t to_ns, int depth, uint32_t otherwise)
{
	// A wait without a waker timed out: the holder at its begin still has the lock.
	uint32_t who = wait.waker != kNobody ? wait.waker : wait.holder;
	if (who == kNobody || who == waiting_ || depth == kDepth) {
		Add(from_ns, to_ns, otherwise, Cause::LockWait);
		return;
	}
	const bool throughout = wait.holder == who;
	const LockWait *own = throughout ? nullptr : Last(who, wait.address, from_ns, to_ns);
	uint64_t since_ns = own ? own->end_ns : from_ns;
	if (own)
		Wait(*own, from_ns, since_ns, depth + 1, otherwise);
	Doing(who, since_ns, to_ns, own || wait.holder != kNobody, depth, otherwise);
}

void Search::Doing(uint32_t thread, uint64_t from_ns, uint64_t to_ns, bool held, int depth,
		   uint32_t otherwise)
{
	const Timeline &t = threads_.Of(thread);
	uint64_t from = std::max(from_ns, t.start_ns()), to = std::min(to_ns, t.end_ns());
	if (t.empty() || from >= to) {
		Add(from_ns, to_ns, otherwise, Cause::LockWait);
		return;
	}
	Add(from_ns, from, otherwise, Cause::LockWait);
	for (uint32_t i = PieceAt(t, from); t.pieces[i].start_ns < to; i++) {
		const Piece &p = t.pieces[i];
		uint64_t start = std::max(from, p.start_ns), end = std::min(to, t.pieces[i + 1].start_ns);
		const LockWait *next =
		    p.cause == Cause::LockWait && p.span != kNoSpan ? OfSpan(thread, p.span) : nullptr;
		if (next)
			Wait(*next, start, end, depth + 1, held ? thread : otherwise);
		else if (p.cause == Cause::Idle && !held)
			Add(start, end, otherwise, Cause::LockWait);
		else
			Add(start, end, thread, IsDelayed(p) ? p.cause : Cause::LockWait);
	}
	Add(to, to_ns, otherwise, Cause::LockWait);
}

} // namespace

std::vector<Foreign> LockForeign(ThreadTimelines *threads, const Timeline &timeline, uint64_t from_ns,
				 uint64_t to_ns)
{
	Search search(threads, timeline.thread);
	const std::vector<LockWait> &waits = threads->LockWaitsOf(timeline.thread);
	auto wait = std::partition_point(waits.begin(), waits.end(),
					 [&](const LockWait &w) { return w.end_ns <= from_ns; });
	for (; wait != waits.end() && wait->start_ns < to_ns; wait++) {
		if (wait->start_ns >= wait->end_ns || wait->start_ns < timeline.start_ns() ||
		    wait->end_ns > timeline.end_ns())
			continue;
		const Piece &piece = timeline.pieces[PieceAt(timeline, wait->start_ns)];
		if (piece.span == wait->span && piece.cause == Cause::LockWait)
			search.Wait(*wait, wait->start_ns, wait->end_ns, 0, kNobody);
	}
	return std::move(search.found);
}

} // namespace forktail::analysis
