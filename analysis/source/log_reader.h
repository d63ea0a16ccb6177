// SPDX-License-Identifier: MIT
// Reads the request logs of recordings: blocks of columns, decoded window by window on all cores. The next
// window is decoded while the current one is processed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/run/log.h"
#include "analysis/run/part.h"
#include "analysis/run/progress.h"
#include "read_blocks.h"

namespace forktail::analysis
{

// A log is written in the order of time, except for what lay in its writer's buffers.
constexpr uint64_t kLogDisorderNs = 1'500'000'000;

struct LogBlock {
	OpenFile *file;
	ft_place place;
};

// A proxy on another host passes requests on through a connection (passed_on.h).
struct PassedOn {
	uint32_t proxy = 0; // 1 + index into Run::targets; 0: the connection is a client's own
	uint8_t behind = 0; // the connection's server, as in Requests
};

// Which connections' requests are read: clients' own, or those that a proxy passes on (`wanted`). Null or
// empty: all.
struct ConnectionsRead {
	const std::vector<PassedOn> *passed_on = nullptr;
	bool wanted = false;

	bool LeavesOut(uint32_t connection) const
	{
		if (!passed_on || passed_on->empty())
			return false;
		return (connection < passed_on->size() && (*passed_on)[connection].proxy) != wanted;
	}
};

// Completes each window of the log with what another log has of its requests.
class WindowJoin
{
public:
	virtual ~WindowJoin() = default;
	// Goes back to the beginning of the log.
	virtual void Rewind() = 0;
	// Sets what the other log has of the next window's own requests: server_arrival_ns, read_ns,
	// answered_ns (0: unknown), and `behind` if that was unknown.
	virtual void Fill(Requests *requests) = 0;
	virtual bool HasBehind() const = 0;
};

class LogReader : public Log
{
public:
	// Blocks are in the order of files. A window has about `window` requests, preceded by as many of the
	// window before as KeepLead() requests. Only requests due in `part` are read.
	LogReader(std::vector<LogBlock> blocks, size_t window, Run *run, const TimeSpan &part = {},
		  const ConnectionsRead &connections = {});
	~LogReader() override;
	uint64_t Count() const override { return count_; }
	void Rewind() override;
	bool Next() override;
	void Forget() override { loaded_ = SIZE_MAX; }
	// At most half a window.
	void KeepLead(size_t requests) override { lead_ = std::min(requests, window_ / 2); }
	// Gets the progress of passes; must outlive this object.
	void OnProgress(Progress *progress) { progress_ = progress; }
	// Each window gets what another log has of its requests. Null: nothing.
	void Join(std::unique_ptr<WindowJoin> join);
	// The earliest due time in the first block of the next window; UINT64_MAX: the log has no further
	// window.
	uint64_t NextStart() const
	{
		return next_ == windows_.size() ? UINT64_MAX
						: blocks_[windows_[next_].first_block].place.start_ns;
	}

private:
	struct Window {
		size_t first_block, end_block, count;
	};
	// A request on a connection without a connection record.
	struct Unknown {
		size_t request;
		uint32_t id;
		OpenFile *file;
	};
	struct Decoded {
		Requests requests;
		std::vector<Unknown> unknown;
		// Per block: the number of valid requests in the part, the number of others, whether the
		// block could be read, and whether it had the column.
		std::vector<uint32_t> kept, outside;
		std::vector<uint8_t> lost, behind, arrivals, seen;
	};
	struct Scratch;
	Decoded Decode(const Window &window, size_t lead, Requests room);
	void DecodeBlock(const LogBlock &block, size_t at, Scratch *scratch, Decoded *out, size_t index);
	void Begin(size_t window, Requests room);
	void Take(size_t room_for_lead, Decoded *decoded);
	void JoinWindow(Requests *requests);
	size_t AddLead(size_t room, Requests *requests) const;

	std::vector<LogBlock> blocks_;
	std::vector<Window> windows_;
	std::vector<Scratch> scratch_; // per worker
	size_t window_;
	Run *run_;
	TimeSpan part_;
	ConnectionsRead connections_;
	uint64_t count_ = 0;
	size_t lead_ = 0;
	size_t next_ = 0;	   // window
	size_t loaded_ = SIZE_MAX; // the window in run_->requests
	size_t counted_ = 0;	   // blocks whose malformed requests were counted
	bool behind_ = false, arrivals_ = false, seen_ = false; // a block so far had the column
	uint64_t number_ = 0;					// number of the next window's first request
	std::future<Decoded> ahead_;
	Requests spare_; // a spare buffer
	Progress *progress_ = nullptr;
	std::unique_ptr<WindowJoin> join_; // null: none
};

// A join with another log, whose requests wait until the first log comes to them.
class WaitingJoin : public WindowJoin
{
public:
	// `window`: of the other log; twice as many requests wait before old ones are dropped. `bound_ns`: by
	// how much times of the two may differ.
	WaitingJoin(std::vector<LogBlock> blocks, size_t window, Run *other, const TimeSpan &part,
		    const ConnectionsRead &connections, uint64_t bound_ns)
	    : log_(std::move(blocks), window, other, part, connections), bound_ns_(bound_ns),
	      most_(window > SIZE_MAX / 2 ? SIZE_MAX : 2 * window)
	{
	}
	void Rewind() override;

protected:
	// Reads the other log up to an instant.
	void Reach(uint64_t t_ns);
	// Whether a request that ended then can no longer be joined.
	bool IsPast(uint64_t end_ns) const { return end_ns + kLogDisorderNs < reached_ns_; }
	// Lets the requests of the other log's window wait.
	virtual void TakeWindow() = 0;
	// Drops what is past. Returns how many still wait.
	virtual size_t Prune() = 0;
	virtual void Clear() = 0;

	LogReader log_;
	size_t waiting_ = 0;
	const uint64_t bound_ns_;

private:
	const size_t most_;
	uint64_t reached_ns_ = 0;
};

} // namespace forktail::analysis
