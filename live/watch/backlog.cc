// SPDX-License-Identifier: MIT
// See backlog.h. It uses a second follower, so the first one keeps its position.
#include "backlog.h"

#include <algorithm>

namespace forktail::live::watch
{

namespace
{

live::Options OptionsFrom(uint64_t from_ns)
{
	live::Options options;
	options.from_ns = std::max<uint64_t>(from_ns, 1);
	options.request_seconds = true;
	return options;
}

} // namespace

Backlog::Backlog(const std::string &path, uint64_t from_ns, uint64_t to_ns)
    : from_ns_(from_ns), to_ns_(to_ns), follower_(path, OptionsFrom(from_ns))
{
}

bool Backlog::Step()
{
	std::string error;
	if (!follower_.Poll(&batch_, &error))
		return true;
	history_.Take(batch_, follower_);
	if (batch_.more && follower_.accounted_to_ns() < to_ns_)
		return false;
	// Iterations are reported one Poll() after they are read.
	if (follower_.Poll(&batch_, &error))
		history_.Take(batch_, follower_);
	return true;
}

double Backlog::done() const
{
	const uint64_t at_ns = std::clamp(follower_.accounted_to_ns(), from_ns_, std::max(from_ns_, to_ns_));
	return to_ns_ <= from_ns_
		   ? 1
		   : static_cast<double>(at_ns - from_ns_) / static_cast<double>(to_ns_ - from_ns_);
}

} // namespace forktail::live::watch
