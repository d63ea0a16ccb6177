// SPDX-License-Identifier: MIT
// When the server had no backlog, when it held requests, and its outages.
//
// Any of these shows that there was no backlog at an instant: the server's thread was idle while no due
// request waited for a connection, or a request due then took no longer than usual.
#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/blame.h"
#include "common/commands.h"
#include "common/json.h"

namespace forktail::analysis
{

namespace
{

constexpr uint32_t kBacklogShift = 16; // 65 us: finer than most queues, small enough for minutes of run

// A request due at an instant and answered within this many times the usual latency met no backlog.
constexpr uint64_t kUsualTimes = 2;

} // namespace

// How long the slot was free in [due, end_ns]. Due times come almost in order.
uint64_t ConnectionSlots::Slot::FreeSince(uint64_t due_ns)
{
	while (uses.size() - first > 1 && uses[first + 1].start_ns <= due_ns)
		first++;
	if (uses.size() - first < 2)
		return 0;
	const Use &oldest = uses[first], &next = uses[first + 1];
	uint64_t gap_ns = next.free_ns - oldest.free_ns;
	uint64_t within_ns = std::min(gap_ns, next.start_ns - std::min(next.start_ns, due_ns));
	return uses.back().free_ns - next.free_ns + within_ns;
}

void ConnectionSlots::Slot::Take(uint64_t start_ns, uint64_t until_ns)
{
	uint64_t before = uses.empty() ? 0 : uses.back().free_ns;
	if (first >= 16 && first >= uses.size() / 2) {
		uses.erase(uses.begin(), uses.begin() + static_cast<ptrdiff_t>(first));
		first = 0;
	}
	uses.push_back({start_ns, before + (start_ns - std::min(start_ns, end_ns))});
	end_ns = until_ns;
}

ConnectionSlots::ConnectionSlots(const Run &run, std::vector<LastUse> last_of)
    : open_loop_(run.loads.empty()), last_of_(std::move(last_of))
{
	for (const Load &load : run.loads)
		open_loop_ |= load.arrival != "closed";
}

// The last `pipeline` completions of each connection: a slot was free once the oldest had completed.
void ConnectionSlots::Grow(const Run &run)
{
	size_t known = depth_.size();
	depth_.resize(run.connections.size(), 1);
	for (const Load &load : run.loads)
		for (uint32_t c = 0; c < load.connection_count; c++)
			if (load.first_connection + c < depth_.size())
				depth_[load.first_connection + c] = load.pipeline;
	for (size_t c = known; c < depth_.size(); c++) {
		first_.push_back(slots_.size());
		slots_.resize(slots_.size() + depth_[c]);
	}
	next_.resize(depth_.size());
}

void ConnectionSlots::Wait(const Run &run, const HeldRule &rule, ConnectionWaits *waits)
{
	constexpr uint64_t long_ns = 1'000'000; // shorter holds delay no other request
	const Requests &q = run.requests;
	waits->until_ns.Truncate(0);
	waits->free_ns.Truncate(0);
	waits->held_ns.Truncate(0);
	if (!open_loop_)
		return;
	if (depth_.size() < run.connections.size())
		Grow(run);
	uint64_t *until = waits->until_ns.Extend(q.size()), *free = waits->free_ns.Extend(q.size()),
		 *held = waits->held_ns.Extend(q.size());
	bool any = false;
	for (size_t i = q.lead; i < q.size(); i++) {
		uint32_t c = q.connection[i];
		Slot &slot = slots_[first_[c] + next_[c]];
		uint64_t due = q.due_ns[i], taken_until = slot.end_ns, free_ns = slot.FreeSince(due);
		if (q.status[i] == FT_STATUS_UNSENT && c < last_of_.size() &&
		    last_of_[c].arrived_ns > taken_until && last_of_[c].start_ns <= q.sent_ns[i]) {
			uint64_t since = std::max(taken_until, due);
			free_ns += std::max(last_of_[c].start_ns, since) - since;
			taken_until = last_of_[c].arrived_ns;
		}
		// An answer that waited unread no longer occupies the connection.
		until[i] = std::clamp(taken_until, due, q.sent_ns[i]);
		free[i] = std::min(free_ns, until[i] - due);
		const uint64_t from = std::max(due, slot.held_from_ns),
			       to = std::min(until[i], slot.held_to_ns);
		held[i] = to > from ? to - from : 0;
		any |= until[i] > due;
		// A request that was never sent took no slot.
		if (q.status[i] == FT_STATUS_UNSENT)
			continue;
		slot.Take(q.sent_ns[i], q.Arrived(i));
		const bool blocks = q.op[i] < rule.blocking.size() && rule.blocking[q.op[i]];
		if (q.Arrived(i) - q.sent_ns[i] >= long_ns &&
		    (blocks || (rule.reads && q.Joined(i) && q.read_ns[i]))) {
			slot.held_from_ns = blocks ? q.sent_ns[i] : q.read_ns[i];
			slot.held_to_ns = blocks ? q.Arrived(i) : q.answered_ns[i];
		}
		next_[c] = next_[c] + 1 == depth_[c] ? 0 : next_[c] + 1;
	}
	if (any)
		return;
	waits->until_ns.Truncate(0);
	waits->free_ns.Truncate(0);
	waits->held_ns.Truncate(0);
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
	return times[Index(Cause::Idle)] > 0 && !WaitsInside(t, t_ns);
}

} // namespace

BacklogBuilder::BacklogBuilder(const Run &run, uint64_t from_ns, const Timeline *timeline,
			       const Timeline *behind, uint64_t most)
{
	b_.timeline = timeline;
	b_.behind = behind;
	b_.start_ns = from_ns;
	b_.shift = kBacklogShift;
	uint64_t length_ns = run.end_ns - std::min(run.end_ns, from_ns);
	while (length_ns >> b_.shift >= most)
		b_.shift++;
	b_.clear_ns.resize((length_ns >> b_.shift) + 1);
	b_.due.resize(b_.clear_ns.size());
}

size_t BacklogBuilder::Bucket(uint64_t t_ns) const
{
	return std::min<size_t>(t_ns <= b_.start_ns ? 0 : (t_ns - b_.start_ns) >> b_.shift,
				b_.clear_ns.size() - 1);
}

void BacklogBuilder::Add(uint64_t due_ns, uint64_t arrived_ns, uint64_t usual_ns, uint64_t until_ns,
			 uint64_t free_ns, uint64_t times)
{
	const size_t bucket = Bucket(due_ns);
	b_.due[bucket] += static_cast<uint32_t>(times);
	if (arrived_ns - due_ns <= kUsualTimes * usual_ns) {
		uint64_t &clear = b_.clear_ns[bucket];
		clear = std::max(clear, due_ns);
	} else if (until_ns - due_ns > usual_ns + free_ns) {
		waits_.resize(b_.clear_ns.size() + 1);
		waits_[bucket] += static_cast<int32_t>(times);
		waits_[Bucket(until_ns) + 1] -= static_cast<int32_t>(times);
	}
}

// Idle: both threads, if there are two. The end of an idle span is just outside of it.
void BacklogBuilder::TakeIdle(const Timeline &one, const Timeline *other)
{
	for (uint64_t t_ns : one.idle_ns) {
		if (other && !IdleAt(*other, t_ns - 1))
			continue;
		uint64_t &clear = b_.clear_ns[Bucket(t_ns)];
		clear = std::max(clear, t_ns);
	}
}

void BacklogBuilder::AddIdle()
{
	TakeIdle(*b_.timeline, b_.behind);
	if (b_.behind)
		TakeIdle(*b_.behind, b_.timeline);
}

Backlog BacklogBuilder::Finish()
{
	b_.waiting.resize(b_.clear_ns.size());
	int64_t waiting = 0;
	uint64_t clear = 0;
	for (size_t i = 0; i < b_.clear_ns.size(); i++) {
		if (!waits_.empty())
			waiting += waits_[i];
		b_.waiting[i] = waiting > 0;
		if (b_.clear_ns[i] && !b_.waiting[i])
			clear = b_.clear_ns[i];
		b_.clear_ns[i] = clear;
	}
	waits_ = {};
	std::partial_sum(b_.due.begin(), b_.due.end(), b_.due.begin());
	return std::move(b_);
}

uint64_t Backlog::Since(uint64_t t_ns) const
{
	if (clear_ns.empty() || t_ns < start_ns)
		return t_ns;
	size_t bucket = std::min<size_t>((t_ns - start_ns) >> shift, clear_ns.size() - 1);
	uint64_t clear = clear_ns[bucket] <= t_ns ? clear_ns[bucket] : bucket ? clear_ns[bucket - 1] : 0;
	return clear ? clear : t_ns;
}

double Backlog::DueUntil(uint64_t t_ns) const
{
	if (due.empty() || t_ns < start_ns)
		return 0;
	const uint64_t ns = t_ns - start_ns, bucket = ns >> shift;
	if (bucket >= due.size())
		return due.back();
	const double before = bucket ? due[bucket - 1] : 0, size = static_cast<double>(uint64_t{1} << shift);
	return before + (due[bucket] - before) * static_cast<double>(ns - (bucket << shift)) / size;
}

double Backlog::Due(uint64_t from_ns, uint64_t to_ns) const
{
	return DueUntil(to_ns) - DueUntil(from_ns);
}

uint64_t Backlog::ClearBefore(uint64_t t_ns) const
{
	if (clear_ns.empty() || t_ns < start_ns)
		return 0;
	size_t bucket = std::min<size_t>((t_ns - start_ns) >> shift, clear_ns.size() - 1);
	auto idle = [&](const Timeline &t) {
		return !t.empty() && t_ns >= t.start_ns() && t_ns < t.end_ns() &&
		       t.pieces[PieceAt(t, t_ns)].cause == Cause::Idle && !WaitsInside(t, t_ns);
	};
	if (!waiting[bucket] && idle(*timeline) && (!behind || idle(*behind)))
		return t_ns;
	if (clear_ns[bucket] <= t_ns)
		return clear_ns[bucket];
	return bucket ? clear_ns[bucket - 1] : 0;
}

bool IsBlockingCommand(const std::string &name)
{
	const command_row *row = commands_row(name.data(), name.substr(0, name.find(' ')).size());
	return row && row->flags & (COMMAND_BLOCKING | COMMAND_BLOCK_OPTION);
}

uint64_t HeldTimes::Between(uint64_t from_ns, uint64_t to_ns) const
{
	uint64_t held_ns = 0;
	auto at =
	    std::ranges::partition_point(intervals_, [&](const Interval &i) { return i.to_ns <= from_ns; });
	for (; at != intervals_.end() && at->from_ns < to_ns; ++at)
		held_ns += std::min(to_ns, at->to_ns) - std::max(from_ns, at->from_ns);
	return held_ns;
}

namespace
{

// The value that holds for half of the time. A series has a sample where its value changes, so that a count
// of samples would say how often it was blocked, not for how long.
double Usual(const std::vector<Sample> &samples, uint64_t end_ns)
{
	struct Held {
		double value;
		uint64_t ns;
	};
	std::vector<Held> values;
	uint64_t total_ns = 0;
	for (size_t i = 0; i < samples.size(); i++) {
		const uint64_t until_ns = i + 1 < samples.size() ? samples[i + 1].t_ns : end_ns;
		values.push_back(
		    {samples[i].value, until_ns > samples[i].t_ns ? until_ns - samples[i].t_ns : 0});
		total_ns += values.back().ns;
	}
	std::ranges::sort(values, {}, &Held::value);
	uint64_t below_ns = 0;
	for (const Held &v : values)
		if ((below_ns += v.ns) * 2 >= total_ns)
			return v.value;
	return values.back().value;
}

} // namespace

HeldBuilder::HeldBuilder(const Run &run)
{
	if (run.servers.size() != 1 || !run.behind.empty())
		return;
	const auto series = std::ranges::find_if(
	    run.series, [](const Series &s) { return s.name == "redis.blocked_clients"; });
	if (series == run.series.end() || series->samples.empty())
		return;
	const double usual = Usual(series->samples, run.end_ns);
	for (const Sample &s : series->samples)
		if (s.value >= usual + 1)
			instants_.push_back({s.t_ns, s.value - usual});
}

void HeldBuilder::Add(uint64_t from_ns, uint64_t to_ns, uint64_t times)
{
	auto at =
	    std::ranges::partition_point(instants_, [&](const Instant &i) { return i.t_ns <= from_ns; });
	for (; at != instants_.end() && at->t_ns < to_ns; ++at) {
		at->waiting += times;
		at->from_ns = std::min(at->from_ns, from_ns);
		at->to_ns = std::max(at->to_ns, to_ns);
	}
}

HeldTimes HeldBuilder::Finish() const
{
	HeldTimes held;
	for (const Instant &i : instants_) {
		if (!i.waiting || 2 * i.blocked < static_cast<double>(i.waiting))
			continue;
		if (!held.intervals_.empty() && i.from_ns <= held.intervals_.back().to_ns)
			held.intervals_.back().to_ns = std::max(held.intervals_.back().to_ns, i.to_ns);
		else
			held.intervals_.push_back({i.from_ns, i.to_ns});
	}
	return held;
}

// Most outages come from the load generator's records, because only it saw the last answer before and the
// first one after. Times alone decide which requests waited in one: the log has no keys, so it does not say
// whose key was without a server.

namespace
{

// An answer is read a little after it arrived. By then the next request may also have been answered.
constexpr uint64_t kReadNs = 1'000'000;

} // namespace

std::vector<Outage> OutagesOf(const Run &run)
{
	std::vector<Outage> outages;
	for (const ServerReport &report : run.reports) {
		if (report.kind != "outage")
			continue;
		common::Json j = common::ParseJson(report.text);
		uint64_t last = common::Whole(j, "last_ok_ns"), first = common::Whole(j, "first_ok_ns");
		uint64_t begin = last ? last : common::Whole(j, "noticed_ns");
		if (begin && (!first || first > begin))
			outages.push_back({begin, first ? first : UINT64_MAX});
	}
	return outages;
}

uint64_t WithoutServer(const std::vector<Outage> &outages, uint64_t due_ns, uint64_t end_ns, bool failed,
		       int server)
{
	uint64_t longest = 0;
	for (const Outage &o : outages) {
		if (o.server != kAnyServer && server != kAnyServer && o.server != server)
			continue;
		uint64_t from = std::max(due_ns, o.begin_ns), to = std::min(end_ns, o.end_ns);
		bool waited_out = failed || (o.end_ns != UINT64_MAX && end_ns + kReadNs >= o.end_ns);
		if (waited_out && to > from)
			longest = std::max(longest, to - from);
	}
	return longest;
}

} // namespace forktail::analysis
