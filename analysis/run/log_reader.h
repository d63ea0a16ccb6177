// SPDX-License-Identifier: MIT
// Reads the request logs of recordings: blocks of columns, decoded window by window on all cores. The next
// window is decoded while the current one is processed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "read_blocks.h"

namespace forktail::analysis
{

// A log is written in the order of time, except for what lay in its writer's buffers.
constexpr uint64_t kLogDisorderNs = 1'500'000'000;

struct LogBlock {
	OpenFile *file;
	ft_place place;
};

// A proxy on another host passes requests on through a connection.
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

// Joins a load generator's log with a kernel log of the same requests: the first says when a request was due,
// sent and answered, the second when the server's kernel had it, when it was read, and when its answer left.
//
// On one socket both logs have the requests in the same order. The kernel log may lack some: its connections
// are sampled, and events get lost. It has others: a connection's set-up. A request of the load generator's
// log contains the times of the same request in the kernel log. The logs are read in step, because neither
// may fit in memory.

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
	uint64_t noted_ = 0;	      // requests of the kernel log that were in a pass so far
	std::vector<uint8_t> behind_; // in the kernel log -> 1 + index into Run::behind
};

// A proxy on one host, its servers on another, and a kernel log of each: every request is in both. The
// recorder of a proxy notes the local ends of its connections, so the other log's connections from there are
// known to be the proxy's. Their requests are parts of requests at the proxy. They are not counted again, but
// say which server a request was passed on to.
//
// A recorder that sees both ends joins them itself, by a hash of the request (loader/requests.h). A
// log has no hash: here a proxy's request is joined with one of the same command and size that lies within
// it. Of several the longest is taken, shorter proxy requests first: a request that was long at the proxy was
// long at its server, or the proxy itself stalled.

// By connection of a kernel log; empty: none is a proxy's. Adds the connections' servers to the run's servers
// behind proxies.
std::vector<PassedOn> FindPassedOn(const std::vector<Target> &targets, Run *run);

class PassedOnJoin : public WaitingJoin
{
public:
	// `blocks`: of the same log, by time. `run` has its connections; it and `passed_on` must outlive this
	// object.
	PassedOnJoin(std::vector<LogBlock> blocks, size_t window, const TimeSpan &part,
		     const std::vector<PassedOn> &passed_on, const std::vector<Target> &targets,
		     const Run &run);
	void Fill(Requests *requests) override;
	bool HasBehind() const override { return true; }

private:
	struct PartSeen {
		uint64_t arrived_ns, answered_ns;
		uint8_t behind; // as in Requests
		bool taken;
	};
	// By proxy, command and size.
	using Line = std::vector<PartSeen>;
	void TakeWindow() override;
	size_t Prune() override;
	void Clear() override { lines_.clear(); }
	uint8_t Take(const Requests &requests, size_t i);

	const Run &run_;
	const std::vector<PassedOn> &passed_on_;
	std::vector<uint32_t>
	    proxy_of_server_; // as PassedOn::proxy, by index into run.servers; 0: it is none
	Run parts_;	      // its requests are those of the current window
	std::unordered_map<uint64_t, Line> lines_;
};

} // namespace forktail::analysis
