// SPDX-License-Identifier: MIT
// See snapshot_plan.h.
#include "snapshot_plan.h"

#include <algorithm>

namespace forktail::live::guard
{
namespace
{

// The longest delay until the recorder writes an event, and how long the planner waits for a recorder that
// writes nothing.
constexpr uint64_t kWrittenNs = 1'200'000'000, kPatienceNs = 6'000'000'000;

uint64_t Before(uint64_t t_ns, uint64_t ns)
{
	return t_ns > ns ? t_ns - ns : 0;
}

} // namespace

Came Planner::Fire(const Fired &fired, uint64_t before_ns, uint64_t after_ns)
{
	const bool begins = plan_.empty();
	if (begins && fired.end_ns + before_ns < cool_ns_) {
		counted_++;
		return Came::Counted;
	}
	const uint64_t from_ns = Before(fired.start_ns, before_ns), to_ns = fired.end_ns + after_ns;
	plan_.from_ns = begins ? from_ns : std::min(plan_.from_ns, from_ns);
	const uint64_t most_ns = begins ? to_ns : plan_.fired[0].end_ns + kMostAfterNs;
	plan_.to_ns = std::max(plan_.to_ns, std::min(to_ns, std::max(most_ns, plan_.to_ns)));
	plan_.count++;
	if (plan_.fired.size() < kFiredKept)
		plan_.fired.push_back(fired);
	return begins ? Came::Begun : Came::Added;
}

Plan Planner::Due(uint64_t newest_ns, uint64_t now_ns)
{
	Plan due;
	if (plan_.empty() || making_ || now_ns < cool_ns_ ||
	    (newest_ns < plan_.to_ns + kWrittenNs && now_ns < plan_.to_ns + kPatienceNs))
		return due;
	std::swap(due, plan_);
	making_ = true;
	return due;
}

void Planner::Made(uint64_t now_ns)
{
	making_ = false;
	cool_ns_ = now_ns + cooldown_ns_;
}

} // namespace forktail::live::guard
