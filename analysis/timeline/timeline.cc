// SPDX-License-Identifier: MIT
// Builds timelines. A sweep over a thread's nested spans gives the innermost owner of each instant, and tally
// windows fill the time between spans.
//
// Between spans only totals per window are known, not the places of short intervals. A window's uncovered
// time counts as an even mix, so a request that overlaps part of a window gets part of each owner. The error
// is at most one window (about a millisecond on an active thread), and sums are unaffected.
#include "analysis/timeline.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "recording/recording.h"

namespace forktail::analysis
{

namespace
{

constexpr uint32_t kStride = 8; // pieces between two sums

// All tallies of one window.
struct Window {
	uint64_t start_ns, end_ns;
	size_t first, count; // in Run::tallies
	uint64_t uncovered_ns = 0;
};

struct Sweep {
	const Run &run;
	const Thread &thread;
	Waits waits;
	uint64_t end_ns;
	uint64_t cursor_ns;
	std::vector<Piece> pieces;

	void Emit(uint64_t to_ns, Cause cause, uint32_t span)
	{
		if (to_ns <= cursor_ns)
			return;
		pieces.push_back({cursor_ns, span, kNoMix, cause});
		cursor_ns = to_ns;
	}
	// Gives [cursor, to) to the innermost open span, or to none.
	void Advance(uint64_t to_ns, uint32_t index)
	{
		to_ns = std::min(to_ns, end_ns);
		if (index == kNoSpan) {
			Emit(to_ns, Cause::Unknown, kNoSpan);
			return;
		}
		const ft_span &s = run.spans[index];
		if (s.off_cpu)
			Emit(std::min(to_ns, s.start_ns + s.blocked_ns), waits.CauseOf(s, thread), index);
		Emit(to_ns, s.off_cpu ? WaitCauseOf(run, s) : CauseOfOwner(s.owner), index);
	}
};

// Pieces with the innermost span of each instant; uncovered time has no span.
std::vector<Piece> SweepSpans(const Run &run, const Thread &thread, uint64_t from_ns, uint64_t to_ns)
{
	struct Open {
		uint32_t span;
		uint64_t end_ns;
	};
	std::vector<Open> open;
	Sweep sweep = {run, thread, Waits(run), to_ns, from_ns, {}};
	sweep.pieces.reserve(2 * thread.span_count + 16);
	auto top = [&] { return open.empty() ? kNoSpan : open.back().span; };
	for (size_t i = 0; i < thread.span_count; i++) {
		uint32_t index = static_cast<uint32_t>(thread.first_span + i);
		const ft_span &s = run.spans[index];
		while (!open.empty() && open.back().end_ns <= s.start_ns) {
			sweep.Advance(open.back().end_ns, open.back().span);
			open.pop_back();
		}
		sweep.Advance(s.start_ns, top());
		// In a damaged recording an inner span might end after the one around it.
		uint64_t end_ns = s.start_ns + s.duration_ns;
		if (!open.empty())
			end_ns = std::min(end_ns, open.back().end_ns);
		open.push_back({index, end_ns});
	}
	while (!open.empty()) {
		sweep.Advance(open.back().end_ns, open.back().span);
		open.pop_back();
	}
	sweep.Advance(to_ns, kNoSpan);
	return std::move(sweep.pieces);
}

std::vector<Window> WindowsOf(const Run &run, const Thread &thread)
{
	std::vector<Window> windows;
	size_t end = thread.first_tally + thread.tally_count;
	for (size_t i = thread.first_tally; i < end;) {
		Window w = {run.tallies[i].start_ns, run.tallies[i].end_ns, i, 0};
		for (; i < end && run.tallies[i].start_ns == w.start_ns; i++) {
			w.end_ns = std::max(w.end_ns, run.tallies[i].end_ns);
			w.count++;
		}
		if (!windows.empty())
			windows.back().end_ns = std::min(windows.back().end_ns, w.start_ns);
		windows.push_back(w);
	}
	return windows;
}

// Cuts uncovered pieces at window bounds; a piece's mix is then its window's index, or kNoMix outside all.
std::vector<Piece> CutAtWindows(const std::vector<Piece> &in, uint64_t end_ns, std::vector<Window> *windows)
{
	std::vector<Piece> out;
	out.reserve(in.size() + windows->size());
	size_t w = 0;
	for (size_t i = 0; i < in.size(); i++) {
		if (in[i].span != kNoSpan) {
			out.push_back(in[i]);
			continue;
		}
		uint64_t at = in[i].start_ns, to = i + 1 < in.size() ? in[i + 1].start_ns : end_ns;
		while (at < to) {
			while (w < windows->size() && (*windows)[w].end_ns <= at)
				w++;
			Piece piece = {at, kNoSpan, kNoMix, Cause::Unknown};
			if (w == windows->size() || (*windows)[w].start_ns >= to) {
				at = to;
			} else if ((*windows)[w].start_ns > at) {
				at = (*windows)[w].start_ns;
			} else {
				at = std::min(to, (*windows)[w].end_ns);
				(*windows)[w].uncovered_ns += at - piece.start_ns;
				piece.mix = static_cast<uint32_t>(w);
			}
			out.push_back(piece);
		}
	}
	return out;
}

// Whether a drop affects a thread's account.
bool IsOfTime(const ft_drop &d)
{
	switch (d.source) {
	case FT_DROP_IO:
	case FT_DROP_LOG:
	case FT_DROP_UNWIND:
		return false;
	case FT_DROP_RING:
		return d.detail != FT_DROP_BLOCK_IO && d.detail != FT_DROP_CPU_SAMPLE &&
		       d.detail != FT_DROP_WRITES && d.detail != FT_DROP_REQUESTS && d.detail != FT_DROP_TCP;
	case FT_DROP_DISK:
		return d.detail == FT_BLOCK_SPAN || d.detail == FT_BLOCK_TALLY || d.detail == FT_BLOCK_THREAD;
	default:
		return true;
	}
}

bool MayHaveLostTime(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	for (const ft_drop &d : run.drops) {
		if (d.start_ns >= to_ns)
			break;
		if (d.end_ns > from_ns && IsOfTime(d))
			return true;
	}
	return false;
}

// What a window's uncovered time consists of, summing to it.
//
// Own code is only between spans. Other tallied intervals may also be inside a frame that became a span (a
// short softirq in a long fork). That time belongs to the frame, so they share what own code leaves. Time
// without a tally is Unknown, unless it is so little that a short interval across the window's bound explains
// it. With drops in the window all of it is Unknown.
void MixOf(const Run &run, const Window &w, std::vector<MixPart> *out)
{
	std::vector<MixPart> &parts = *out; // reused buffer
	parts.clear();
	uint64_t own_ns = 0, other_ns = 0;
	for (size_t i = w.first; i < w.first + w.count; i++)
		(run.tallies[i].owner == FT_OWN_CODE ? own_ns : other_ns) += run.tallies[i].total_ns;
	uint64_t uncovered = w.uncovered_ns;
	own_ns = std::min(own_ns, uncovered);
	uint64_t others = std::min(other_ns, uncovered - own_ns);
	uint64_t missing = uncovered - own_ns - others;
	uint64_t tolerance = std::max<uint64_t>(run.min_span_ns, uncovered / 1000);
	if (missing > tolerance && MayHaveLostTime(run, w.start_ns, w.end_ns)) {
		parts.push_back({Cause::Unknown, uncovered});
		return;
	}

	if (own_ns || other_ns == 0)
		parts.push_back({Cause::ServerBusy, own_ns});
	size_t first_other = parts.size();
	for (size_t i = w.first; i < w.first + w.count; i++) {
		const ft_tally &t = run.tallies[i];
		if (t.owner == FT_OWN_CODE || t.total_ns == 0 || parts.size() + 1 >= kApportionMax)
			continue;
		parts.push_back({CauseOfOwner(t.owner), t.total_ns});
	}
	// Others are scaled to what is left for them; a small missing amount is spread over all.
	uint64_t known = missing > tolerance ? own_ns + others : uncovered;
	uint64_t for_others = others;
	if (missing <= tolerance && missing > 0) {
		uint64_t two[2] = {own_ns, others}, shares[2];
		Apportion(known, two, 2, shares);
		if (first_other)
			parts[0].ns = shares[0];
		for_others = known - (first_other ? shares[0] : 0);
	}
	uint64_t weights[kApportionMax], shares[kApportionMax];
	size_t count = parts.size() - first_other;
	for (size_t i = 0; i < count; i++)
		weights[i] = parts[first_other + i].ns;
	if (count)
		Apportion(for_others, weights, count, shares);
	for (size_t i = 0; i < count; i++)
		parts[first_other + i].ns = shares[i];
	if (missing > tolerance)
		parts.push_back({Cause::Unknown, missing});
	std::erase_if(parts, [](const MixPart &p) { return p.ns == 0; });
}

// Replaces window numbers by mixes, or by a plain cause if a window has only one.
void ResolveMixes(const Run &run, const std::vector<Window> &windows, Timeline *t)
{
	std::vector<uint32_t> mix_of(windows.size(), kNoMix);
	std::vector<Cause> cause_of(windows.size(), Cause::Unknown);
	std::vector<MixPart> parts;
	for (size_t i = 0; i < windows.size(); i++) {
		if (windows[i].uncovered_ns == 0)
			continue;
		MixOf(run, windows[i], &parts);
		if (parts.size() == 1) {
			cause_of[i] = parts[0].cause;
			continue;
		}
		cause_of[i] = Cause::ServerBusy;
		mix_of[i] = static_cast<uint32_t>(t->mixes.size());
		t->mixes.push_back({static_cast<uint32_t>(t->mix_parts.size()),
				    static_cast<uint32_t>(parts.size()), windows[i].uncovered_ns});
		t->mix_parts.insert(t->mix_parts.end(), parts.begin(), parts.end());
	}
	for (Piece &p : t->pieces) {
		if (p.span != kNoSpan || p.mix == kNoMix)
			continue;
		uint32_t window = p.mix;
		p.mix = mix_of[window];
		p.cause = cause_of[window];
	}
}

// Whether all of [start_ns, end_ns] is within one event-loop iteration.
bool IsInside(const Run &run, const Thread &thread, uint64_t start_ns, uint64_t end_ns)
{
	const ft_span *iteration = IterationAt(run, thread, start_ns);
	return iteration && end_ns <= iteration->start_ns + iteration->duration_ns;
}

// The server's queue was empty at the end of each idle span, and at some instant of each window with a short
// idle time. That instant is unknown: the window's start is used, so that a stall in the same window still
// counts. A wait inside an iteration (poll for a name server's answer) is no such instant.
void FindIdle(const Run &run, const Thread &thread, Timeline *t)
{
	for (size_t i = 0; i < thread.span_count; i++) {
		const ft_span &s = run.spans[thread.first_span + i];
		if (s.owner != FT_IDLE || !s.blocked_ns)
			continue;
		const uint64_t end_ns = s.start_ns + s.blocked_ns;
		if (IsInside(run, thread, s.start_ns, end_ns))
			t->waits_inside.push_back({s.start_ns, end_ns});
		else
			t->idle_ns.push_back(end_ns);
	}
	// Idle spans of a thread do not overlap, and neither do its windows.
	auto of_spans = static_cast<ptrdiff_t>(t->idle_ns.size());
	for (size_t i = 0; i < thread.tally_count; i++) {
		const ft_tally &tally = run.tallies[thread.first_tally + i];
		if (tally.owner == FT_IDLE && tally.count &&
		    !IsInside(run, thread, tally.start_ns, tally.end_ns))
			t->idle_ns.push_back(tally.start_ns);
	}
	auto first = t->idle_ns.begin(), middle = first + of_spans, last = t->idle_ns.end();
	if (std::is_sorted(first, middle) && std::is_sorted(middle, last))
		std::inplace_merge(first, middle, last);
	else
		std::sort(first, last);
}

} // namespace

void AddPiece(const Timeline &t, const Piece &p, uint64_t ns, CauseTimes *times)
{
	if (p.mix == kNoMix) {
		(*times)[Index(p.cause)] += ns;
		return;
	}
	const Mix &mix = t.mixes[p.mix];
	uint64_t weights[kApportionMax], shares[kApportionMax];
	for (uint32_t i = 0; i < mix.part_count; i++)
		weights[i] = t.mix_parts[mix.first_part + i].ns;
	Apportion(ns, weights, mix.part_count, shares);
	for (uint32_t i = 0; i < mix.part_count; i++)
		(*times)[Index(t.mix_parts[mix.first_part + i].cause)] += shares[i];
}

void IndexTimeline(Timeline *t)
{
	size_t count = t->pieces.size() - 1; // without the sentinel
	t->sums.clear();
	// About as many buckets as pieces, of at least 4 us.
	uint64_t span_ns = t->end_ns() - t->start_ns();
	t->index_shift = 12;
	while (span_ns >> t->index_shift > std::max<uint64_t>(count, 1024))
		t->index_shift++;
	size_t buckets = (span_ns >> t->index_shift) + 2;
	t->index.resize(buckets);
	uint32_t piece = 0;
	for (size_t b = 0; b < buckets; b++) {
		uint64_t at = t->start_ns() + (static_cast<uint64_t>(b) << t->index_shift);
		while (piece + 1 < count && t->pieces[piece + 1].start_ns <= at)
			piece++;
		t->index[b] = piece;
	}
}

void SumUp(Timeline *t)
{
	if (t->empty() || !t->sums.empty())
		return;
	size_t count = t->pieces.size() - 1;
	CauseTimes sum = {};
	t->sums.reserve(count / kStride + 2);
	for (size_t i = 0; i < count; i++) {
		if (i % kStride == 0)
			t->sums.push_back(sum);
		AddPiece(*t, t->pieces[i], t->pieces[i + 1].start_ns - t->pieces[i].start_ns, &sum);
	}
}

Timeline BuildTimeline(const Run &run, uint32_t thread_index)
{
	const Thread &thread = run.threads[thread_index];
	Timeline t;
	t.thread = thread_index;
	uint64_t from_ns = std::max(thread.start_ns, run.loaded_from_ns),
		 to_ns = std::min(thread.end_ns, run.loaded_to_ns);
	if (to_ns <= from_ns)
		return t;
	std::vector<Window> windows = WindowsOf(run, thread);
	t.pieces = CutAtWindows(SweepSpans(run, thread, from_ns, to_ns), to_ns, &windows);
	ResolveMixes(run, windows, &t);
	t.pieces.push_back({to_ns, kNoSpan, kNoMix, Cause::Unknown});
	FindIdle(run, thread, &t);
	IndexTimeline(&t);
	return t;
}

uint32_t PieceAt(const Timeline &t, uint64_t t_ns)
{
	constexpr uint32_t few = 8; // usual, because there are about as many buckets as pieces
	const size_t bucket = (t_ns - t.start_ns()) >> t.index_shift;
	uint32_t piece = t.index[bucket];
	const uint32_t last = t.index[bucket + 1];
	if (last - piece > few) {
		const Piece *first = t.pieces.data() + piece;
		return piece - 1 +
		       static_cast<uint32_t>(
			   std::upper_bound(first, first + (last - piece + 1), t_ns,
					    [](uint64_t ns, const Piece &p) { return ns < p.start_ns; }) -
			   first);
	}
	while (piece < last && t.pieces[piece + 1].start_ns <= t_ns)
		piece++;
	return piece;
}

bool WaitsInside(const Timeline &t, uint64_t t_ns)
{
	auto wait = std::partition_point(t.waits_inside.begin(), t.waits_inside.end(),
					 [&](const TimeSpan &w) { return w.until_ns <= t_ns; });
	return wait != t.waits_inside.end() && wait->since_ns <= t_ns;
}

const ft_span *IterationAt(const Run &run, const Thread &thread, uint64_t t_ns)
{
	const ft_span *first = run.iterations.data() + thread.first_iteration,
		      *last = first + thread.iteration_count;
	const ft_span *after = std::upper_bound(
	    first, last, t_ns, [](uint64_t ns, const ft_span &s) { return ns < s.start_ns; });
	if (after == first)
		return nullptr;
	const ft_span &iteration = after[-1];
	return t_ns < iteration.start_ns + iteration.duration_ns && !MayBeMany(iteration) ? &iteration
											  : nullptr;
}

TimeSpan ClosedIteration(const Run &run, const Timeline &t, uint64_t t_ns)
{
	if (t.empty() || t.thread >= run.threads.size() || t_ns < t.start_ns() || t_ns >= t.end_ns())
		return {t_ns, t_ns};
	const ft_span *iteration = IterationAt(run, run.threads[t.thread], t_ns);
	if (!iteration)
		return {t_ns, t_ns};
	uint64_t start_ns = std::max(iteration->start_ns, t.start_ns());
	for (uint32_t p = PieceAt(t, start_ns); start_ns <= t_ns; start_ns = t.pieces[++p].start_ns) {
		const uint32_t span = t.pieces[p].span;
		if (span == kNoSpan || !run.spans[span].off_cpu)
			return {start_ns, iteration->start_ns + iteration->duration_ns};
	}
	return {t_ns, t_ns};
}

void AddTimes(const Timeline &t, uint64_t from_ns, uint64_t to_ns, CauseTimes *times)
{
	if (to_ns <= from_ns)
		return;
	uint64_t from = std::max(from_ns, t.start_ns()), to = std::min(to_ns, t.end_ns());
	if (t.empty() || from >= to) {
		(*times)[Index(Cause::Unknown)] += to_ns - from_ns;
		return;
	}
	(*times)[Index(Cause::Unknown)] += (from - from_ns) + (to_ns - to);

	uint32_t first = PieceAt(t, from), last = PieceAt(t, to - 1);
	auto end_of = [&](uint32_t i) { return t.pieces[i + 1].start_ns; };
	if (first == last) {
		AddPiece(t, t.pieces[first], to - from, times);
		return;
	}
	AddPiece(t, t.pieces[first], end_of(first) - from, times);
	AddPiece(t, t.pieces[last], to - t.pieces[last].start_ns, times);
	// Whole pieces between: by sums if there are many.
	uint32_t i = first + 1;
	uint32_t low = (i + kStride - 1) / kStride, high = last / kStride;
	if (high > low + 1 && !t.sums.empty()) {
		for (; i < low * kStride; i++)
			AddPiece(t, t.pieces[i], end_of(i) - t.pieces[i].start_ns, times);
		for (int c = 0; c < kTimelineCauses; c++)
			(*times)[c] += t.sums[high][c] - t.sums[low][c];
		i = high * kStride;
	}
	for (; i < last; i++)
		AddPiece(t, t.pieces[i], end_of(i) - t.pieces[i].start_ns, times);
}

// Few of a run's threads are needed, so none is built in advance.

const Timeline &ThreadTimelines::Of(uint32_t thread)
{
	auto found = built_.find(thread);
	if (found == built_.end())
		found = built_.emplace(thread, BuildTimeline(*run_, thread)).first;
	return found->second;
}

const std::vector<LockWait> &ThreadTimelines::LockWaitsOf(uint32_t thread)
{
	if (!finder_)
		finder_.emplace(run_->threads);
	auto found = lock_waits_.find(thread);
	if (found == lock_waits_.end())
		found = lock_waits_.emplace(thread, FindLockWaits(*run_, *finder_, thread)).first;
	return found->second;
}

// Load threads: which threads they are, and where they stalled while the server was idle.

namespace
{

// The recorded thread of a load generator with this tid that is the first to live after an instant, or -1.
// The first request may be due before its thread starts.
int64_t ClientThread(const Run &run, uint32_t tid, uint64_t t_ns)
{
	for (size_t i = 0; i < run.threads.size(); i++) {
		const Thread &t = run.threads[i];
		if (t.tid == tid && (t.flags & FT_THREAD_CLIENT) && t_ns < t.end_ns)
			return static_cast<int64_t>(i);
	}
	return -1;
}

// The tid of a request's load thread, from the test in which it was due in its log; 0: unknown. Tests do not
// overlap.
uint32_t TidOf(const Run &run, uint32_t connection, uint64_t intended_ns)
{
	uint32_t tid = 0, thread = run.connections[connection].thread;
	for (const LoadStart &start : run.load_starts) {
		const Load &load = run.loads[start.load];
		if (connection < load.first_connection ||
		    connection >= load.first_connection + load.connection_count || start.t_ns > intended_ns)
			continue;
		tid = thread < start.tids.size() ? start.tids[thread] : 0;
	}
	return tid;
}

bool IsStalled(const Piece &p)
{
	return p.span != kNoSpan && IsStall(p.cause) && !IsInterrupt(p.cause);
}

} // namespace

Clients FindClients(const Run &run, const std::vector<uint64_t> &first_due_ns)
{
	Clients clients;
	clients.of_connection.assign(run.connections.size(), -1);
	if (run.load_starts.empty())
		return clients;
	std::map<int64_t, int32_t> found; // by thread
	for (uint32_t connection = 0; connection < first_due_ns.size(); connection++) {
		uint64_t due = first_due_ns[connection];
		if (due == UINT64_MAX)
			continue;
		int64_t thread = ClientThread(run, TidOf(run, connection, due), due);
		if (thread < 0)
			continue;
		auto [known, is_new] =
		    found.try_emplace(thread, static_cast<int32_t>(clients.timelines.size()));
		if (is_new)
			clients.timelines.push_back(BuildTimeline(run, static_cast<uint32_t>(thread)));
		clients.of_connection[connection] = known->second;
	}
	return clients;
}

uint64_t StalledIdle::Between(uint64_t from_ns, uint64_t to_ns) const
{
	// Up to an instant: the whole intervals before it, and the part of the one that contains it.
	auto until = [&](uint64_t t_ns) -> uint64_t {
		size_t n = static_cast<size_t>(std::lower_bound(start_ns.begin(), start_ns.end(), t_ns) -
					       start_ns.begin());
		return n == 0 ? 0 : before_ns[n - 1] + std::min(t_ns, end_ns[n - 1]) - start_ns[n - 1];
	};
	return from_ns < to_ns ? until(to_ns) - until(from_ns) : 0;
}

StalledIdle FindStalledIdle(const Timeline &server, const Timeline &client)
{
	StalledIdle both;
	uint64_t sum = 0;
	size_t s = 0, c = 0;
	while (s + 1 < server.pieces.size() && c + 1 < client.pieces.size()) {
		const Piece &a = server.pieces[s], &b = client.pieces[c];
		uint64_t a_end = server.pieces[s + 1].start_ns, b_end = client.pieces[c + 1].start_ns;
		uint64_t from = std::max(a.start_ns, b.start_ns), to = std::min(a_end, b_end);
		if (from < to && a.cause == Cause::Idle && a.span != kNoSpan && IsStalled(b)) {
			both.start_ns.push_back(from);
			both.end_ns.push_back(to);
			both.before_ns.push_back(sum);
			sum += to - from;
		}
		(a_end <= b_end ? s : c)++;
	}
	return both;
}

// Sums as doubles: for an hour, 3.6e12 ns, a double still has a thousandth of a nanosecond.

namespace
{

void Add(Cause cause, double ns, Usage *u)
{
	if (IsStall(cause))
		u->stall += ns;
	else if (cause == Cause::ServerBusy)
		u->busy += ns;
	else if (cause == Cause::Idle)
		u->idle += ns;
	else if (cause == Cause::Network)
		u->socket += ns;
}

} // namespace

Curve BuildCurve(const Timeline &t)
{
	Curve c;
	c.timeline = &t;
	if (t.empty())
		return c;
	c.before.resize(t.pieces.size());
	Usage sum;
	for (size_t i = 0; i + 1 < t.pieces.size(); i++) {
		const Piece &p = t.pieces[i];
		double ns = static_cast<double>(t.pieces[i + 1].start_ns - p.start_ns);
		if (p.mix == kNoMix) {
			Add(p.cause, ns, &sum);
		} else {
			const Mix &mix = t.mixes[p.mix];
			double part = ns / static_cast<double>(mix.total_ns);
			for (uint32_t k = 0; k < mix.part_count; k++) {
				const MixPart &m = t.mix_parts[mix.first_part + k];
				Add(m.cause, part * static_cast<double>(m.ns), &sum);
			}
		}
		c.before[i + 1] = sum;
	}
	return c;
}

// Looks up causes by owner and by name.

namespace
{

constexpr std::array<Cause, FT_OWNER_LIMIT> CausesOfOwners()
{
	std::array<Cause, FT_OWNER_LIMIT> causes = {};
	causes.fill(Cause::Unknown);
	for (int c = 0; c < kTimelineCauses; c++)
		if (kCauseTable[c].owner != kNoOwner)
			causes[kCauseTable[c].owner] = static_cast<Cause>(c);
	return causes;
}
constexpr std::array<Cause, FT_OWNER_LIMIT> kCauseOfOwner = CausesOfOwners();

} // namespace

const char *AccountName(Cause c)
{
	return c == Cause::ServerBusy ? "own-code" : CauseName(c);
}

const char *FamilyName(Family family)
{
	static const char *const names[] = {"memory", "files",	 "cpu",	   "interrupts",
					    "server", "network", "client", "unknown"};
	return names[static_cast<size_t>(family)];
}

Cause CauseOfOwner(uint32_t owner)
{
	return owner < kCauseOfOwner.size() ? kCauseOfOwner[owner] : Cause::Unknown;
}

Cause WaitCauseOf(uint8_t span_flags)
{
	if (span_flags & FT_SPAN_THROTTLED)
		return Cause::CpuQuota;
	return span_flags & FT_SPAN_KSOFTIRQD ? Cause::SoftirqDeferred : Cause::RunQueue;
}

bool RemedyInfo::IsFor(const char *cause) const
{
	return (" " + std::string(causes) + " ").find(" " + std::string(cause) + " ") != std::string::npos;
}

const char *RemedyMeasured(const RemedyInfo &remedy)
{
	static const char *const names[] = {"", "lowers", "untested"};
	return names[remedy.measured];
}

const char *RemedyChange(const RemedyInfo &remedy)
{
	static const char *const names[] = {"live", "config", "restart", "host", "other"};
	return names[remedy.change];
}

bool CauseByName(const char *name, Cause *cause)
{
	for (int i = 0; i < kCauses; i++) {
		if (strcmp(kCauseTable[i].name, name) == 0) {
			*cause = static_cast<Cause>(i);
			return true;
		}
	}
	return false;
}

} // namespace forktail::analysis
