// SPDX-License-Identifier: MIT
// Joins a load generator's log with a kernel log of the same requests: the first says when a request was due,
// sent and answered, the second when the server's kernel had it, when it was read, and when its answer left.
//
// On one socket both logs have the requests in the same order. The kernel log may lack some: its connections
// are sampled, and events get lost. It has others: a connection's set-up. A request of the
// load generator's log contains the times of the same request in the kernel log. The logs are read in step,
// because neither may fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/run/part.h"
#include "analysis/run/run.h"
#include "analysis/run/socket_pairs.h"
#include "log_reader.h"

namespace forktail::analysis
{

class KernelJoin : public WaitingJoin
{
public:
	// `blocks` are the kernel log's, by time, of which only requests in `part` are read, in windows of
	// `window`. `kernel` has its connections and servers; its requests are replaced. `run` has the load
	// generator's; servers behind a proxy are added to it. `sockets` must outlive this object. `before`
	// completes the kernel log first; null: nothing does.
	KernelJoin(std::vector<LogBlock> blocks, size_t window, const TimeSpan &part,
		   const SocketPairs &sockets, std::unique_ptr<WindowJoin> before, Run *kernel, Run *run);
	void Fill(Requests *requests) override;
	bool HasBehind() const override { return !kernel_->behind.empty(); }

private:
	struct Seen {
		uint64_t arrived_ns, read_ns, answered_ns;
		uint8_t behind; // as in the kernel log
	};
	// Requests on one socket that were not joined yet, from index `first`.
	struct Line {
		std::vector<Seen> seen;
		size_t first = 0;
	};
	void TakeWindow() override;
	size_t Prune() override;
	void Clear() override;
	bool Find(const Requests &requests, size_t i, Seen *seen);
	uint8_t BehindOf(uint8_t behind);

	Run *kernel_, *run_;
	const SocketPairs &sockets_;
	std::vector<Line> lines_;     // by Run::connections
	std::vector<uint8_t> behind_; // in the kernel log -> 1 + index into Run::behind
};

} // namespace forktail::analysis
