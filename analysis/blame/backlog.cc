// SPDX-License-Identifier: MIT
// Three things say that no backlog was there at an instant: the server's thread was idle while no due request
// waited for a connection; or a request that was due then took no longer than usual.
#include "backlog.h"

#include <algorithm>
#include <deque>

namespace forktail
{

namespace
{

constexpr uint64_t kMaxBuckets = 1 << 22;
constexpr uint32_t kMinShift = 16; // 65 us: finer than most queues, small enough for minutes of run

// A request due at an instant and answered within this many times the usual latency met no backlog.
constexpr uint64_t kUsualTimes = 2;

// What one connection (one place of its pipeline) carried, as far back as a request may have been due.
struct Slot {
	struct Use {
		uint64_t start_ns;
		uint64_t free_ns; // of the slot before it, in all
	};
	std::deque<Use> uses;
	uint64_t end_ns = 0; // of the last

	// How long the slot was free in [due, end_ns]. Due times come in order, or nearly.
	uint64_t FreeSince(uint64_t due_ns)
	{
		while (uses.size() > 1 && uses[1].start_ns <= due_ns)
			uses.pop_front();
		if (uses.size() < 2)
			return 0;
		uint64_t gap_ns = uses[1].free_ns - uses[0].free_ns;
		uint64_t within_ns = std::min(gap_ns, uses[1].start_ns - std::min(uses[1].start_ns, due_ns));
		return uses.back().free_ns - uses[1].free_ns + within_ns;
	}
	void Take(uint64_t start_ns, uint64_t until_ns)
	{
		uint64_t before = uses.empty() ? 0 : uses.back().free_ns;
		uses.push_back({start_ns, before + (start_ns - std::min(start_ns, end_ns))});
		end_ns = until_ns;
	}
};

} // namespace

ConnectionWaits WaitsForConnection(const Run &run)
{
	const Requests &q = run.requests;
	ConnectionWaits taken;
	bool open_loop = run.loads.empty();
	for (const Load &load : run.loads)
		open_loop |= load.arrival != "closed";
	if (!open_loop)
		return taken;

	// Of each connection the last `pipeline` completions: a slot was free once the oldest had come.
	std::vector<uint32_t> depth(run.connections.size(), 1);
	for (const Load &load : run.loads)
		for (uint32_t c = 0; c < load.connection_count; c++)
			if (load.first_connection + c < depth.size())
				depth[load.first_connection + c] = load.pipeline;
	std::vector<size_t> first(run.connections.size() + 1);
	for (size_t c = 0; c < depth.size(); c++)
		first[c + 1] = first[c] + depth[c];
	std::vector<Slot> slots(first.back());
	std::vector<uint32_t> next(run.connections.size());

	uint64_t *until = taken.until_ns.Extend(q.size()), *free = taken.free_ns.Extend(q.size());
	bool any = false;
	for (size_t i = 0; i < q.size(); i++) {
		uint32_t c = q.connection[i];
		Slot &slot = slots[first[c] + next[c]];
		// An answer that lay unread took it no more.
		until[i] = std::clamp(slot.end_ns, q.intended_ns[i], q.start_ns[i]);
		free[i] = std::min(slot.FreeSince(q.intended_ns[i]), until[i] - q.intended_ns[i]);
		any |= until[i] > q.intended_ns[i];
		// One that was never sent took no slot.
		if (q.status[i] == FT_STATUS_UNSENT)
			continue;
		slot.Take(q.start_ns[i], q.Arrived(i));
		next[c] = next[c] + 1 == depth[c] ? 0 : next[c] + 1;
	}
	if (!any)
		return {};
	return taken;
}

namespace
{

bool IdleAt(const Timeline &t, uint64_t t_ns)
{
	if (t.empty() || t_ns < t.start_ns() || t_ns >= t.end_ns())
		return false;
	CauseTimes times = {};
	const Piece &p = t.pieces[PieceAt(t, t_ns)];
	AddPiece(t, p, p.mix == kNoMix ? 1 : t.mixes[p.mix].total_ns, &times);
	return times[Index(Cause::Idle)] > 0;
}

} // namespace

Backlog BuildBacklog(const Run &run, const BacklogOf &of, const std::vector<uint64_t> &usual_ns,
		     const ConnectionWaits &taken)
{
	Backlog b;
	b.timeline = &of.timeline;
	b.behind = of.back;
	b.start_ns = run.start_ns;
	b.shift = kMinShift;
	uint64_t length_ns = run.end_ns - run.start_ns;
	while (length_ns >> b.shift >= kMaxBuckets)
		b.shift++;
	size_t buckets = (length_ns >> b.shift) + 1;
	b.clear_ns.resize(buckets);
	auto bucket = [&](uint64_t t_ns) {
		return std::min<size_t>(t_ns <= b.start_ns ? 0 : (t_ns - b.start_ns) >> b.shift, buckets - 1);
	};

	const Requests &q = run.requests;
	std::vector<int32_t> waits(taken.empty() ? 0 : buckets + 1);
	for (size_t i = 0; i < q.size(); i++) {
		uint32_t server =
		    of.served_by.empty() ? run.connections[q.connection[i]].server : of.served_by[i];
		if (server != of.server || IsError(q.status[i]) || (of.behind && q.behind[i] != of.behind))
			continue;
		uint64_t due = q.intended_ns[i], usual = usual_ns[q.op[i]];
		if (q.Arrived(i) - due <= kUsualTimes * usual) {
			uint64_t &clear = b.clear_ns[bucket(due)];
			clear = std::max(clear, due);
		} else if (!taken.empty() && taken.until_ns[i] - due > usual + taken.free_ns[i]) {
			waits[bucket(due)]++;
			waits[bucket(taken.until_ns[i]) + 1]--;
		}
	}
	// Idle: both, where there are two. The end of an idle span lies just outside of it.
	auto take_idle = [&](const Timeline &one, const Timeline *other) {
		for (uint64_t t_ns : one.idle_ns) {
			if (other && !IdleAt(*other, t_ns - 1))
				continue;
			uint64_t &clear = b.clear_ns[bucket(t_ns)];
			clear = std::max(clear, t_ns);
		}
	};
	take_idle(of.timeline, of.back);
	if (of.back)
		take_idle(*of.back, &of.timeline);

	b.waiting.resize(buckets);
	int64_t waiting = 0;
	uint64_t clear = 0;
	for (size_t i = 0; i < buckets; i++) {
		if (!waits.empty())
			waiting += waits[i];
		b.waiting[i] = waiting > 0;
		if (b.clear_ns[i] && !b.waiting[i])
			clear = b.clear_ns[i];
		b.clear_ns[i] = clear;
	}
	return b;
}

uint64_t Backlog::ClearBefore(uint64_t t_ns) const
{
	if (clear_ns.empty() || t_ns < start_ns)
		return 0;
	size_t bucket = std::min<size_t>((t_ns - start_ns) >> shift, clear_ns.size() - 1);
	auto idle = [&](const Timeline &t) {
		return !t.empty() && t_ns >= t.start_ns() && t_ns < t.end_ns() &&
		       t.pieces[PieceAt(t, t_ns)].cause == Cause::Idle;
	};
	if (!waiting[bucket] && idle(*timeline) && (!behind || idle(*behind)))
		return t_ns;
	if (clear_ns[bucket] <= t_ns)
		return clear_ns[bucket];
	return bucket ? clear_ns[bucket - 1] : 0;
}

} // namespace forktail
