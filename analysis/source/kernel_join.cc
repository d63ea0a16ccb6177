// SPDX-License-Identifier: MIT
// Requests of the kernel log wait by socket until the load generator's log comes to them.
#include "kernel_join.h"

#include <algorithm>
#include <utility>

namespace forktail::analysis
{

KernelJoin::KernelJoin(std::vector<LogBlock> blocks, size_t window, const TimeSpan &part,
		       const SocketPairs &sockets, std::unique_ptr<WindowJoin> before, Run *kernel, Run *run)
    : WaitingJoin(std::move(blocks), window, kernel, part, {}, run->clocks_bound_ns), kernel_(kernel),
      run_(run), sockets_(sockets), lines_(run->connections.size())
{
	log_.Join(std::move(before));
}

void KernelJoin::Clear()
{
	for (Line &line : lines_)
		line = {};
}

// Adds the requests of the kernel log's current window to the lines of their sockets.
void KernelJoin::TakeWindow()
{
	const Requests &q = kernel_->requests;
	for (size_t i = q.lead; i < q.size(); i++) {
		if (q.connection[i] >= sockets_.size())
			continue; // a connection without a record
		const SameSocket *same = nullptr;
		for (const SameSocket &s : sockets_[q.connection[i]])
			if (s.opened_ns <= q.sent_ns[i] + bound_ns_)
				same = &s;
		if (!same)
			continue;
		Line &line = lines_[same->connection];
		if (line.first >= 16 && line.first >= line.seen.size() / 2) {
			line.seen.erase(line.seen.begin(),
					line.seen.begin() + static_cast<ptrdiff_t>(line.first));
			line.first = 0;
		}
		line.seen.push_back({q.sent_ns[i], q.read_ns.empty() ? 0 : q.read_ns[i], q.end_ns[i],
				     static_cast<uint8_t>(q.Behind(i))});
		waiting_++;
	}
}

// A load generator's log that has only slow requests leaves many of the kernel's without a match.
size_t KernelJoin::Prune()
{
	size_t waiting = 0;
	for (Line &line : lines_) {
		while (line.first < line.seen.size() && IsPast(line.seen[line.first].answered_ns))
			line.first++;
		line.seen.erase(line.seen.begin(), line.seen.begin() + static_cast<ptrdiff_t>(line.first));
		line.first = 0;
		waiting += line.seen.size();
	}
	return waiting;
}

// Both logs of one socket are in the same order: what was passed over is no later request's either.
bool KernelJoin::Find(const Requests &q, size_t i, Seen *seen)
{
	if (q.connection[i] >= lines_.size() || q.status[i] == FT_STATUS_UNSENT)
		return false;
	Line &line = lines_[q.connection[i]];
	while (line.first < line.seen.size() && line.seen[line.first].arrived_ns + bound_ns_ < q.sent_ns[i]) {
		line.first++;
		waiting_--;
	}
	if (line.first == line.seen.size() || line.seen[line.first].answered_ns > q.end_ns[i] + bound_ns_)
		return false;
	*seen = line.seen[line.first++];
	waiting_--;
	// Within the uncertainty of the clocks.
	seen->arrived_ns = std::clamp(seen->arrived_ns, q.sent_ns[i], q.end_ns[i]);
	seen->answered_ns = std::clamp(seen->answered_ns, seen->arrived_ns, q.end_ns[i]);
	if (seen->read_ns)
		seen->read_ns = std::clamp(seen->read_ns, seen->arrived_ns, seen->answered_ns);
	return true;
}

// A server behind a proxy becomes one of the run's with the first request that it answered.
uint8_t KernelJoin::BehindOf(uint8_t behind)
{
	if (!behind || behind > kernel_->behind.size())
		return 0;
	behind_.resize(kernel_->behind.size() + 1);
	uint8_t &mapped = behind_[behind];
	if (!mapped)
		mapped = AddBehind(kernel_->behind[behind - 1u], run_);
	return mapped;
}

void KernelJoin::Fill(Requests *q)
{
	for (size_t i = q->lead; i < q->size(); i++) {
		Seen seen = {};
		Reach(q->end_ns[i]);
		if (Find(*q, i, &seen) && HasBehind() && !q->behind[i])
			q->behind[i] = BehindOf(seen.behind);
		q->server_arrival_ns[i] = seen.arrived_ns;
		q->read_ns[i] = seen.read_ns;
		q->answered_ns[i] = seen.answered_ns;
	}
}

} // namespace forktail::analysis
