// SPDX-License-Identifier: MIT
// What a blocked thread waited for, if its kernel stack or its event-loop iteration shows more than the
// system call or fault.
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

// Whether a thread waited for one peer: in poll, select or on a socket inside an event-loop iteration.
// Recorders before FT_PEER_WAIT wrote that as idle, or as a wait on a socket.
bool WaitsForPeer(const Run &run, const Thread &thread, const ft_span &span);

class Waits
{
public:
	explicit Waits(const Run &run);
	// The cause of the blocked part of an off-CPU span of the thread.
	Cause CauseOf(const ft_span &span, const Thread &thread) const
	{
		if (span.detail < causes_.size() && causes_[span.detail] != Cause::Unknown)
			return causes_[span.detail];
		return WaitsForPeer(run_, thread, span) ? Cause::PeerWait : CauseOfOwner(span.owner);
	}

private:
	const Run &run_;
	std::vector<Cause> causes_; // by detail; Unknown: its stack shows nothing
};

// The cause that a kernel stack ("function+0x1f", innermost first) shows, or Unknown.
Cause CauseOfStack(const std::vector<std::string> &stack);

// The functions in which a thread was blocked, innermost first, at most `most`, without offsets and without
// the scheduler's own at the top: "submit_bio_wait < blkdev_issue_flush". "" without a stack.
std::string StackText(const Detail &detail, size_t most);

} // namespace forktail::analysis
