// SPDX-License-Identifier: MIT
// How far an explanation is, as one number that goes up from 0 to 1, although it is made in many passes, and
// how many is not known before: each pass has its place in a plan, and those beyond the plan half of what is
// left each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace forktail::analysis
{

class Progress
{
public:
	Progress() = default;
	// `see` is called with 0..1, now and then.
	explicit Progress(std::function<void(double)> see) : see_(std::move(see)) {}
	// The passes that come next: how far all is when each has ended, going up. What was planned before
	// and did not come has been done.
	void Plan(std::vector<double> ends)
	{
		ends_ = std::move(ends);
		next_ = 0;
		from_ = to_ = std::max(from_, to_);
	}
	// A pass begins, and with that the one before has ended.
	void Begin()
	{
		from_ = to_;
		double planned = next_ < ends_.size() ? ends_[next_++] : 0;
		to_ = planned > from_ ? planned : from_ + (1 - from_) / 2;
		At(0);
	}
	// How much of the pass is done, 0..1.
	void At(double part)
	{
		if (see_)
			see_(from_ + (to_ - from_) * std::clamp(part, 0.0, 1.0));
	}
	void At(uint64_t done, uint64_t all) { At(static_cast<double>(done) / static_cast<double>(all)); }

private:
	std::function<void(double)> see_;
	std::vector<double> ends_;
	size_t next_ = 0;
	double from_ = 0, to_ = 0;
};

} // namespace forktail::analysis
