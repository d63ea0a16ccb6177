// SPDX-License-Identifier: MIT
// What a blocked thread waited for, where its kernel stack says more than the system call or fault it was in.
//
// The recorder takes the stack of every wait that is long enough for a span, as the thread comes back: so
// telling costs the server nothing, and nothing at all where nobody waits. Shorter waits stay what their
// owner says.
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
		return span.detail < told_.size() && told_[span.detail] != Cause::Unknown
			   ? told_[span.detail]
			   : CauseOfOwner(span.owner);
	}

private:
	std::vector<Cause> told_; // by detail; Unknown: its stack tells nothing
};

// The cause that a kernel stack tells ("function+0x1f", innermost first), or Unknown.
Cause CauseOfStack(const std::vector<std::string> &stack);

// The functions that a blocked thread was in, innermost first and at most `most` of them, without offsets and
// without the scheduler's own, which are at the top of every such stack: "submit_bio_wait <
// blkdev_issue_flush". "" without a stack.
std::string StackText(const Detail &detail, size_t most);

} // namespace forktail::analysis
