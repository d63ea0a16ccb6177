// SPDX-License-Identifier: MIT
// What a blocked thread waited for, if its kernel stack shows more than the system call or fault.
//
// The recorder takes the stack of every wait that is long enough for a span, when the thread returns. So it
// takes no time of the server while that runs without waiting. Shorter waits keep the cause of their owner.
#pragma once

#include <string>
#include <vector>

#include "analysis/run/run.h"
#include "causes.h"

namespace forktail::analysis
{

class Waits
{
public:
	explicit Waits(const Run &run);
	// The cause of the blocked part of an off-CPU span.
	Cause CauseOf(const ft_span &span) const
	{
		return span.detail < causes_.size() && causes_[span.detail] != Cause::Unknown
			   ? causes_[span.detail]
			   : CauseOfOwner(span.owner);
	}

private:
	std::vector<Cause> causes_; // by detail; Unknown: its stack shows nothing
};

// The cause that a kernel stack ("function+0x1f", innermost first) shows, or Unknown.
Cause CauseOfStack(const std::vector<std::string> &stack);

// The functions in which a thread was blocked, innermost first, at most `most`, without offsets and without
// the scheduler's own at the top: "submit_bio_wait < blkdev_issue_flush". "" without a stack.
std::string StackText(const Detail &detail, size_t most);

} // namespace forktail::analysis
