// SPDX-License-Identifier: MIT
// The public side of a follower: reads new blocks, closes accounts that are due, and reports pending events.
#include <cstdio>

#include "state.h"

namespace forktail::live
{

namespace
{

constexpr uint64_t kSliceNs = 4 * kSecondNs; // how long CPU slices are retained
constexpr uint64_t kSilentNs = 3 * kSecondNs;

} // namespace

Follower::Follower(const std::string &path, const Options &options)
    : state_(std::make_unique<State>(path, options))
{
}

Follower::~Follower() = default;

// Closes accounts two seconds behind real time; at the end of a recording, up to its last record.
void Follower::State::CloseUp()
{
	uint64_t now_ns = Now(), to_ns = newest_ns > kLagNs ? newest_ns - kLagNs : 0;
	uint64_t due_ns = std::min(now_ns > kLagNs ? now_ns - kLagNs : 0, newest_ns);
	if (tail.ended() && now_ns > read_at_ns + kSecondNs)
		due_ns = newest_ns;
	accounts.CloseTo(std::max(to_ns, due_ns), &batch->seconds);
}

bool Follower::Poll(Batch *batch, std::string *error)
{
	State &s = *state_;
	*batch = {};
	s.batch = batch;
	size_t bytes = 0;
	ft_block block;
	Tail::Got got;
	while ((got = s.tail.Next(&block, error)) == Tail::Got::Block) {
		s.read_at_ns = s.Now();
		s.Read(block);
		bytes += block.bytes;
		if (bytes >= s.options.read_bytes) {
			batch->more = true;
			break;
		}
	}
	if (s.begun) {
		s.requests.Settle(s.newest_ns, s.RequestBatch());
		s.requests.EndPoll();
		s.LookAtWaits();
		s.iterations.Report(s.slices, &batch->iterations);
		if (!batch->more)
			s.CloseUp();
		if (s.newest_ns > kSliceNs)
			s.slices.Forget(s.newest_ns - kSliceNs);
		if (!s.ended && !recording() && !batch->more) {
			s.ended = true;
			s.AddNote(s.newest_ns, "recorder-ended", kNone);
		} else if (s.ended && recording()) {
			s.ended = false;
			s.AddNote(s.newest_ns, "recorder-began", kNone);
		}
	}
	s.batch = nullptr;
	return got != Tail::Got::Failed;
}

void Follower::SetNow(uint64_t now_ns)
{
	state_->options.now_ns = now_ns;
}

const std::vector<Server> &Follower::servers() const
{
	return state_->servers.all();
}

const std::vector<ThreadTotals> &Follower::threads() const
{
	return state_->accounts.all();
}

const std::vector<RequestTotals> &Follower::requests() const
{
	return state_->requests.totals();
}

uint64_t Follower::accounted_to_ns() const
{
	return state_->begun ? state_->accounts.closed_to_ns() : 0;
}

uint64_t Follower::newest_ns() const
{
	return state_->newest_ns;
}

bool Follower::recording() const
{
	return state_->begun && state_->Now() < state_->newest_ns + kSilentNs;
}

uint64_t Follower::min_span_ns() const
{
	return state_->min_span_ns;
}

uint32_t Follower::request_sample() const
{
	return state_->requests.sample();
}

uint64_t Follower::requests_recorded_ns() const
{
	return state_->requests.recorded_ns(state_->newest_ns);
}

RecorderCost Follower::cost() const
{
	return state_->cost;
}

uint64_t Follower::dropped() const
{
	return state_->dropped;
}

uint64_t Follower::damaged() const
{
	return state_->tail.damaged();
}

Follower::Buffer Follower::buffer() const
{
	Tail::OnDisk seen = state_->tail.Look();
	return {seen.oldest_ns, state_->newest_ns, seen.bytes, seen.segments};
}

uint64_t Follower::RealtimeNs(uint64_t t_ns) const
{
	const ft_clock &c = state_->clock;
	return c.realtime_ns ? c.realtime_ns + (t_ns - c.monotonic_ns) : 0;
}

uint64_t Follower::MonotonicNs(uint64_t realtime_ns) const
{
	const ft_clock &c = state_->clock;
	return c.realtime_ns ? c.monotonic_ns + (realtime_ns - c.realtime_ns) : 0;
}

std::string Follower::DeviceName(uint32_t dev) const
{
	auto found = state_->devices.find(dev);
	if (found != state_->devices.end())
		return found->second;
	return std::to_string(dev >> 20) + ":" + std::to_string(dev & 0xfffff);
}

} // namespace forktail::live
