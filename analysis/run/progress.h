// SPDX-License-Identifier: MIT
// The progress of an explanation, as one number that grows from 0 to 1 over many passes, whose number is not
// known in advance. Each pass has its place in a plan; each one beyond the plan gets half of the rest.
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
	// Calls `see` with 0..1, occasionally.
	explicit Progress(std::function<void(double)> see) : see_(std::move(see)) {}
	// Plans the next passes: the total progress at the end of each, ascending. Passes planned earlier
	// count as done.
	void Plan(std::vector<double> ends)
	{
		ends_ = std::move(ends);
		next_ = 0;
		from_ = to_ = std::max(from_, to_);
	}
	// Begins a pass, which ends the one before.
	void Begin()
	{
		from_ = to_;
		double planned = next_ < ends_.size() ? ends_[next_++] : 0;
		to_ = planned > from_ ? planned : from_ + (1 - from_) / 2;
		At(0);
	}
	// Sets the progress of the pass, 0..1.
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
