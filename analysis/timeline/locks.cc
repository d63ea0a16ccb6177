// SPDX-License-Identifier: MIT
// From a wait in futex to the thread at fault. Who ends a wait had the lock before, and had it at least since
// its own wait for the same lock ended; until then it was with whoever ended that one's, and so on. A lock
// goes to who waits for it in the order in which they came, or to who comes by when nobody has it: so who
// ended a wait without having waited itself had the lock all the time.
//
// With a condition nobody holds anything: who ended the wait is who was waited for, but not for what it spent
// waiting for events or work itself.
#include "locks.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

// From holder to holder, of the same lock or of one that a holder waits for in turn.
constexpr int kDepth = 4;
constexpr uint32_t kNobody = LockWait::kNobody;

// Whether a holder was kept from going on there. One that sleeps by its own wish isn't.
bool KeptFrom(const Piece &p)
{
	return p.span != kNoSpan && IsStall(p.cause) && p.cause != Cause::Sleep;
}

class Search
{
public:
	Search(ThreadTimelines *threads, uint32_t waiting) : threads_(*threads), waiting_(waiting) {}
	// What lies in [from, to) of a wait. `otherwise`: whose it is where nothing is found.
	void Wait(const LockWait &wait, uint64_t from_ns, uint64_t to_ns, int depth, uint32_t otherwise);

	std::vector<Foreign> found;

private:
	// What a thread did in [from, to) while others waited for it.
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
	// A thread's waits don't overlap, so that ends are in order like starts.
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
	// A wait that nobody ended timed out: whoever had the lock when it began has it still.
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
			Add(start, end, thread, KeptFrom(p) ? p.cause : Cause::LockWait);
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
